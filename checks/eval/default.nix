# The tables of evaluations, with any lib: the stand-in's or nixpkgs' own.
#
# Each file of ./tables, and ./serving.nix, is a table:
#   { lib } -> { values ? [ { name; expr; expected; } ]; errors ? [ { name; expr; message; } ]; }
#   values  `expr` must equal `expected`
#   errors  `expr` must throw, and the text must contain `message`
#
# -> results   name -> what `expr` came to
#    failures  [ { name; expected; actual; } ], also for an error row that did not throw
#    errors    name -> `expr`, to be evaluated one at a time: Nix cannot look at the text of an error
#    messages  name -> `message`
{ lib }:
let
  inherit (builtins)
    attrNames
    concatMap
    filter
    listToAttrs
    match
    tryEval
    ;
  names = filter (name: match ".*[.]nix" name != null) (attrNames (builtins.readDir ./tables));
  files = map (name: ./tables + "/${name}") names ++ [ ./serving.nix ];
  tables = map (file: import file { inherit lib; } // { prefix = baseNameOf (toString file); }) files;
  rowsOf =
    kind:
    concatMap (
      table: map (row: row // { name = "${table.prefix} ${row.name}"; }) (table.${kind} or [ ])
    ) tables;
  values = rowsOf "values";
  errors = rowsOf "errors";
  byName =
    field: rows:
    listToAttrs (
      map (row: {
        inherit (row) name;
        value = row.${field};
      }) rows
    );

  rows = map (row: row.name) (values ++ errors);
  twice = filter (name: builtins.length (filter (other: other == name) rows) > 1) rows;

  wrong = concatMap (
    row:
    if row.expr == row.expected then
      [ ]
    else
      [
        {
          inherit (row) name expected;
          actual = row.expr;
        }
      ]
  ) values;
  silent = concatMap (
    row:
    let
      outcome = tryEval (builtins.deepSeq row.expr row.expr);
    in
    if outcome.success then
      [
        {
          inherit (row) name;
          expected = "an error: ${row.message}";
          actual = outcome.value;
        }
      ]
    else
      [ ]
  ) errors;
in
assert twice == [ ] || throw "two rows have one name: ${builtins.head twice}";
{
  results = byName "expr" values;
  failures = wrong ++ silent;
  errors = byName "expr" errors;
  messages = byName "message" errors;
}

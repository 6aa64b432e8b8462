# How values, options and definitions are written in messages.
lib:
let
  inherit (builtins) addErrorContext tryEval;

  # Deeper values are not looked at: they may be endless. No message is long enough to show that.
  depthLimit = 10;

  linesOf = text: lib.filter lib.isString (lib.split "\n" text);

  showString =
    indent: text:
    let
      lines = linesOf text;
      escaped = map (lib.replaceStrings [ "\${" "''" ] [ "''\${" "'''" ]) lines;
      inner = "\n${indent}  ";
      end = if lib.last lines == "" then "\n${indent}" else inner + lib.last escaped;
    in
    if lib.length lines == 1 then
      "\"" + lib.escape [ "\\" "\"" "\${" ] text + "\""
    else
      "''" + inner + lib.concatStringsSep inner (lib.init escaped) + end + "''";

  showFunction =
    f:
    let
      args = lib.mapAttrsToList (name: hasDefault: name + lib.optionalString hasDefault "?") (
        lib.functionArgs f
      );
    in
    if args == [ ] then "<function>" else "<function, args: {${lib.concatStringsSep ", " args}}>";

  # Brackets around one item a line.
  block =
    indent: open: close: items:
    if items == [ ] then
      "${open} ${close}"
    else
      open + lib.concatMapStrings (item: "\n${indent}  ${item}") items + "\n${indent}${close}";

  show =
    depth: indent: value:
    let
      below = show (depth + 1) (indent + "  ");
      showAttr =
        name: inner:
        "${lib.escapeNixIdentifier name} = ${addErrorContext "while evaluating an attribute `${name}`" (below inner)};";
    in
    if depth > depthLimit then
      "\"<unevaluated>\""
    else if lib.isInt value then
      toString value
    else if lib.isString value then
      showString indent value
    else if lib.isPath value then
      toString value
    else if lib.isList value then
      block indent "[" "]" (map below value)
    else if lib.isFunction value then
      showFunction value
    else if lib.isDerivation value then
      "<derivation ${value.name or "???"}>"
    else if lib.isAttrs value then
      block indent "{" "}" (lib.mapAttrsToList showAttr value)
    else
      # null, true, false and floats are written as JSON writes them
      lib.toJSON value;

  showDef =
    def:
    let
      shown = tryEval (show 0 "" def.value);
      lines = linesOf shown.value;
      text =
        lib.concatStringsSep "\n    " (lib.take 5 lines)
        + lib.optionalString (lib.length lines > 5) "\n    ...";
    in
    "\n- In `${def.file}'"
    + lib.optionalString shown.success (if lib.length lines > 1 then ":\n    ${text}" else ": ${text}");
in
{
  showDefs = lib.concatMapStrings showDef;
  showFiles = lib.concatMapStringsSep " and " (file: "`${file}'");

  # a."b.c".d; placeholders such as * and <name> stay bare
  showOption = lib.concatMapStringsSep "." (
    part: if part == "*" || lib.match "<.*>" part != null then part else lib.escapeNixIdentifier part
  );
}

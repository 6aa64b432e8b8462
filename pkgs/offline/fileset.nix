# lib.fileset, as far as sources here need it: toSource, unions, fileFilter, and paths as sets.
#
# A set is { bases; has }: nothing outside the folders (or files) `bases` is in it, and `has path type` says which files below
# are. As in nixpkgs, a folder without any file of the set is left out of the source.
let
  inherit (builtins)
    any
    attrNames
    pathExists
    readDir
    stringLength
    substring
    ;

  # `inner` is `outer` or below it
  under =
    outer: inner:
    inner == outer || substring 0 (stringLength outer + 1) inner == "${outer}/" || outer == "/";

  coerce =
    value:
    if value ? has then
      value
    else if !pathExists value then
      throw "lib.fileset: ${toString value} does not exist"
    else
      let
        base = toString value;
      in
      {
        bases = [ base ];
        has = path: _: under base path;
      };

  hasExt =
    name: extension:
    let
      suffix = ".${extension}";
      start = stringLength name - stringLength suffix;
    in
    start >= 0 && substring start (-1) name == suffix;

  folderHasAny =
    set: folder:
    any (base: under base folder || under folder base) set.bases
    && (
      let
        entries = readDir folder;
      in
      any (name: entryIn set "${folder}/${name}" entries.${name}) (attrNames entries)
    );

  entryIn =
    set: path: type:
    if type == "directory" then folderHasAny set path else set.has path type;
in
{
  unions =
    values:
    let
      sets = map coerce values;
    in
    {
      bases = builtins.concatMap (set: set.bases) sets;
      has = path: type: any (set: set.has path type) sets;
    };

  fileFilter =
    predicate: value:
    let
      set = coerce value;
    in
    {
      inherit (set) bases;
      has =
        path: type:
        set.has path type
        && predicate {
          inherit type;
          name = baseNameOf path;
          hasExt = hasExt (baseNameOf path);
        };
    };

  toSource =
    { root, fileset }:
    let
      set = coerce fileset;
    in
    {
      outPath = builtins.path {
        name = "source";
        path = root;
        filter = entryIn set;
      };
    };
}

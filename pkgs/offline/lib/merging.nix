# How a type makes one value of several definitions. A definition is { file; value; }.
lib:
let
  priorityHint = "Use `lib.mkForce value` or `lib.mkDefault value` to change the priority on any of these definitions.\n";
in
{
  mergeOneOption =
    loc: defs:
    if lib.length defs == 1 then
      (lib.head defs).value
    else
      throw "The option `${lib.showOption loc}' is defined multiple times while it's expected to be unique.\n\nDefinition values:${lib.showDefs defs}\n${priorityHint}";

  mergeEqualOption =
    loc: defs:
    let
      first = lib.head defs;
      agree =
        def:
        def.value == first.value
        || throw "The option `${lib.showOption loc}' has conflicting definition values:${
          lib.showDefs [
            first
            def
          ]
        }\n${priorityHint}";
    in
    # A lone definition is not compared: it may be a function, which equals nothing.
    builtins.seq (lib.all agree (lib.tail defs)) first.value;

  # For types that do not say how: by the kind of the values.
  mergeDefaultOption =
    loc: defs:
    let
      values = map (def: def.value) defs;
      every = is: lib.all is values;
    in
    if lib.length values == 1 then
      lib.head values
    else if every lib.isFunction then
      arg: lib.mergeDefaultOption loc (map (def: def // { value = def.value arg; }) defs)
    else if every lib.isList then
      lib.concatLists values
    else if every lib.isAttrs then
      lib.mergeAttrsList values
    else if every lib.isBool then
      lib.any lib.id values
    else if every lib.isString then
      lib.concatStrings values
    else if every lib.isInt && every (value: value == lib.head values) then
      lib.head values
    else
      throw "Cannot merge definitions of `${lib.showOption loc}'. Definition values:${lib.showDefs defs}";
}

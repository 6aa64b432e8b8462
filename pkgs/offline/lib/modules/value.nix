# The value of one option, or of one place inside an option's value.
lib: {
  # What is wrong with `defs` for a type's check: null, or the definitions that it refuses.
  refused =
    check: defs:
    let
      bad = lib.filter (def: !check def.value) defs;
    in
    if bad == [ ] then null else lib.showDefs bad;

  # { error; value; }: error is null or the text that follows "is not of type ...".
  judge =
    type: loc: defs:
    if type ? judge then
      type.judge loc defs
    else
      {
        error = lib.refused type.check defs;
        value = type.merge loc defs;
      };

  mergeDefinitions =
    loc: type: defs:
    let
      settled = lib.settle defs;
      inherit (settled) definitions;
      verdict = lib.judge type loc definitions;
      # Types that judge their definitions themselves are announced with another word than plain checks.
      reason =
        if type ? judge then " TypeError: ${verdict.error}" else " Definition values:${verdict.error}";
      isDefined = definitions != [ ];
    in
    {
      inherit (settled) priority definitions;
      inherit isDefined;
      value =
        if !isDefined then
          type.emptyValue.value
            or (throw "The option `${lib.showOption loc}' was accessed but has no value defined. Try setting the option.")
        else if verdict.error == null then
          verdict.value
        else
          throw "A definition for option `${lib.showOption loc}' is not of type `${type.description}'.${reason}";
    };

  # A declared option with its value and where that came from.
  evalOption =
    loc: option: defs:
    let
      type = option.type or lib.types.unspecified;
      default = lib.optional (option ? default) {
        file = lib.head option.declarations;
        value = lib.mkOptionDefault option.default;
      };
      all = default ++ defs;
      alone = def: def // { value = (lib.mergeDefinitions loc type [ def ]).value; };
      merged =
        if option.readOnly or false && lib.length all > 1 then
          throw "The option `${lib.showOption loc}' is read-only, but it's set multiple times. Definition values:${lib.showDefs (map alone all)}"
        else
          lib.mergeDefinitions loc type all;
    in
    option
    // {
      inherit loc type;
      inherit (merged) isDefined;
      value = builtins.addErrorContext "while evaluating the option `${lib.showOption loc}':" (
        (option.apply or lib.id) merged.value
      );
      highestPrio = merged.priority;
      files = map (def: def.file) merged.definitions;
      definitions = map (def: def.value) merged.definitions;
      definitionsWithLocations = merged.definitions;
      __toString = _: lib.showOption loc;
    };
}

# Types of single values.
lib:
let
  inherit (lib) addCheck mkOptionType;

  # A type whose definitions must all be equal.
  equal =
    name: description: check:
    mkOptionType {
      inherit name description check;
      descriptionClass = "noun";
      merge = lib.mergeEqualOption;
    };

  str = equal "str" "string" lib.isString;
  int = equal "int" "signed integer" lib.isInt;

  # A check added to a type, under a name of its own.
  narrowed =
    type: check: names:
    addCheck type check // names;
  meaning =
    name: description: { inherit name description; } // { descriptionClass = "nonRestrictiveClause"; };
  limits = low: high: "between ${toString low} and ${toString high} (both inclusive)";
  between =
    low: high: names:
    narrowed int (n: n >= low && n <= high) names;
in
{
  inherit str int;
  bool = equal "bool" "boolean" lib.isBool;
  float = equal "float" "floating point number" lib.isFloat;
  number = lib.types.either int lib.types.float;

  ints = {
    between =
      low: high:
      between low high {
        name = "intBetween";
        description = "integer ${limits low high}";
      };
    positive = narrowed int (n: n > 0) (meaning "positiveInt" "positive integer, meaning >0");
    unsigned = narrowed int (n: n >= 0) (meaning "unsignedInt" "unsigned integer, meaning >=0");
    u16 = between 0 65535 {
      name = "unsignedInt16";
      description = "16 bit unsigned integer; ${limits 0 65535}";
    };
  };
  port = lib.types.ints.u16;

  numbers = {
    positive = narrowed lib.types.number (n: n > 0) (
      meaning "numberPositive" "positive integer or floating point number, meaning >0"
    );
    nonnegative = narrowed lib.types.number (n: n >= 0) (
      meaning "numberNonnegative" "nonnegative integer or floating point number, meaning >=0"
    );
    between =
      low: high:
      narrowed lib.types.number (n: n >= low && n <= high) {
        name = "numberBetween";
        description = "integer or floating point number between ${lib.toJSON low} and ${lib.toJSON high} (both inclusive)";
      };
  };

  nonEmptyStr = equal "nonEmptyStr" "non-empty string" (
    value: lib.isString value && lib.match "[ \t\n]*" value == null
  );
  strMatching =
    pattern:
    equal "strMatching ${lib.escapeNixString pattern}" "string matching the pattern ${pattern}" (
      value: lib.isString value && lib.match pattern value != null
    );
  singleLineStr =
    let
      line = lib.types.strMatching "[^\n\r]*\n?";
    in
    line
    // {
      name = "singleLineStr";
      description = "(optionally newline-terminated) single-line string";
      merge = loc: defs: lib.removeSuffix "\n" (line.merge loc defs);
    };
  separatedString =
    sep:
    mkOptionType {
      name = "separatedString";
      description = "strings concatenated with ${lib.toJSON sep}";
      descriptionClass = "noun";
      check = lib.isString;
      merge = _: defs: lib.concatMapStringsSep sep (def: def.value) defs;
    };
  lines = lib.types.separatedString "\n";

  path = equal "path" "absolute path" (
    value: lib.isStringLike value && lib.hasPrefix "/" (toString value)
  );

  package = mkOptionType {
    name = "package";
    descriptionClass = "noun";
    check = value: lib.isDerivation value || lib.isStorePath value;
    merge =
      loc: defs:
      let
        value = lib.mergeOneOption loc defs;
      in
      if lib.isPath value || (lib.isString value && !lib.hasContext value) then
        lib.toDerivation value
      else
        value;
  };

  enum =
    values:
    let
      show =
        value:
        if lib.isString value then
          "\"${value}\""
        else if lib.isInt value then
          toString value
        else if lib.isBool value then
          lib.boolToString value
        else
          "<${lib.typeOf value}>";
      count = lib.length values;
    in
    mkOptionType {
      name = "enum";
      description =
        if count == 0 then
          "impossible (empty enum)"
        else if count == 1 then
          "value ${show (lib.head values)} (singular enum)"
        else
          "one of ${lib.concatMapStringsSep ", " show values}";
      descriptionClass = if count < 2 then "noun" else "conjunction";
      check = value: lib.elem value values;
      merge = lib.mergeEqualOption;
    };

  unspecified = mkOptionType {
    name = "unspecified";
    description = "unspecified value";
    descriptionClass = "noun";
  };
  raw = mkOptionType {
    name = "raw";
    description = "raw value";
    descriptionClass = "noun";
    merge = lib.mergeOneOption;
  };
  optionType = mkOptionType {
    name = "optionType";
    descriptionClass = "noun";
    check = value: value._type or null == "option-type";
    merge = lib.mergeOneOption;
  };
}

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

  int = equal "int" "signed integer" lib.isInt;
  # Integers of some kind, with a clause that says which.
  narrowed =
    kind: clause: check:
    addCheck int check
    // {
      name = "${kind}Int";
      description = "${kind} integer, meaning ${clause}";
      descriptionClass = "nonRestrictiveClause";
    };
in
{
  inherit int;
  str = equal "str" "string" lib.isString;
  bool = equal "bool" "boolean" lib.isBool;
  float = equal "float" "floating point number" lib.isFloat;

  ints = {
    positive = narrowed "positive" ">0" (n: n > 0);
    unsigned = narrowed "unsigned" ">=0" (n: n >= 0);
  };
  port = addCheck int (n: n >= 0 && n <= 65535) // {
    name = "unsignedInt16";
    description = "16 bit unsigned integer; between 0 and 65535 (both inclusive)";
  };

  unspecified = mkOptionType {
    name = "unspecified";
    description = "unspecified value";
    descriptionClass = "noun";
  };

  # For mkPackageOption, and for the options that steer an evaluation.
  package = mkOptionType {
    name = "package";
    descriptionClass = "noun";
    check = value: lib.isDerivation value || lib.isStorePath value;
    merge = lib.mergeOneOption;
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

# Canonical JSON: compact, keys sorted bytewise, non-ASCII kept, numbers as ./numbers.nix writes them. The tensor cache's
# key is a hash over such a text, so it must not depend on the version of Nix, as that of `builtins.toJSON` does.
{
  lib,
  characters,
  numbers,
}:
let
  inherit (builtins)
    isAttrs
    isBool
    isFloat
    isInt
    isList
    ;

  inherit (characters) controlCodes controls;
  short = {
    "\\u0008" = "\\b";
    "\\u0009" = "\\t";
    "\\u000a" = "\\n";
    "\\u000c" = "\\f";
    "\\u000d" = "\\r";
  };
  from = [
    "\""
    "\\"
  ]
  ++ controls;
  to = [
    "\\\""
    "\\\\"
  ]
  ++ map (code: short.${code} or code) controlCodes;

  string = text: "\"${builtins.replaceStrings from to text}\"";
  render =
    value:
    if isBool value then
      if value then "true" else "false"
    else if isInt value || isFloat value then
      numbers.format value
    else if isList value then
      "[${lib.concatMapStringsSep "," render value}]"
    else if isAttrs value then
      "{${
        lib.concatStringsSep "," (lib.mapAttrsToList (name: item: "${string name}:${render item}") value)
      }}"
    else
      string value;
in
{
  inherit render;
}

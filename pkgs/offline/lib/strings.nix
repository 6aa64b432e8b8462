# Text.
lib:
let
  inherit (builtins)
    concatStringsSep
    elem
    filter
    genList
    isPath
    isString
    match
    replaceStrings
    split
    stringLength
    substring
    toJSON
    ;
  letters = text: genList (n: substring n 1 text) (stringLength text);
  upper = letters "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  lower = letters "abcdefghijklmnopqrstuvwxyz";
  # Words that may not stand as a bare attribute name.
  keywords = [
    "assert"
    "else"
    "if"
    "in"
    "inherit"
    "let"
    "or"
    "rec"
    "then"
    "with"
  ];
in
{
  inherit (builtins)
    concatStringsSep
    match
    replaceStrings
    split
    stringLength
    substring
    toJSON
    ;

  stringToCharacters = letters;
  concatStrings = concatStringsSep "";
  concatMapStrings = f: list: lib.concatStrings (map f list);
  concatMapStringsSep =
    sep: f: list:
    concatStringsSep sep (map f list);
  optionalString = condition: text: if condition then text else "";

  hasPrefix = prefix: text: substring 0 (stringLength prefix) text == prefix;
  hasSuffix =
    suffix: text:
    let
      start = stringLength text - stringLength suffix;
    in
    start >= 0 && substring start (-1) text == suffix;
  hasInfix = infix: text: builtins.length (split (lib.escapeRegex infix) text) > 1;
  removeSuffix =
    suffix: text:
    if lib.hasSuffix suffix text then
      substring 0 (stringLength text - stringLength suffix) text
    else
      text;
  splitString = sep: text: filter isString (split (lib.escapeRegex sep) text);
  toLower = replaceStrings upper lower;

  escape = chars: replaceStrings chars (map (char: "\\" + char) chars);
  escapeRegex = lib.escape (letters "\\[{()^$?*+|.");
  escapeNixString = text: lib.escape [ "$" ] (toJSON text);
  escapeNixIdentifier =
    name:
    if match "[a-zA-Z_][a-zA-Z0-9_'-]*" name != null && !elem name keywords then
      name
    else
      lib.escapeNixString name;

  isStringLike = value: isString value || isPath value || value ? outPath || value ? __toString;
  isStorePath = value: lib.isStringLike value && dirOf (toString value) == builtins.storeDir;
}

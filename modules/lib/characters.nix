# Characters that a plain Nix string literal cannot name.
{ lib }:
let
  hex = n: lib.fixedWidthString 2 "0" (lib.toLower (lib.toHexString n));
  # Nix strings cannot hold NUL.
  codes = map (n: "\\u00${hex n}") (lib.range 1 31);
  fromCode = code: builtins.fromJSON "\"${code}\"";

  hex16 = n: lib.fixedWidthString 4 "0" (lib.toHexString n);
  # Unicode's 66 noncharacters: U+FDD0 to U+FDEF, and the last two of each plane (beyond the first as surrogate pairs).
  noncharacterCodes =
    map (n: "\\u${hex16 n}") (lib.range 64976 65007)
    ++ [
      "\\uFFFE"
      "\\uFFFF"
    ]
    ++ lib.concatMap (plane: map (low: "\\u${hex16 (55296 + 64 * plane - 1)}\\u${low}") [ "DFFE" "DFFF" ]) (lib.range 1 16);
in
{
  # U+0001 to U+001F as JSON writes them, and as they are.
  controlCodes = codes;
  controls = map fromCode codes;
  delete = fromCode "\\u007f";

  # systemd drops a line that holds one of these.
  noncharacters = map fromCode noncharacterCodes;

  # [ character ] -> string -> bool. No regular expression: those of Nix recurse, and overflow on long texts.
  containsAny =
    characters: text: builtins.replaceStrings characters (map (_: "") characters) text != text;
}

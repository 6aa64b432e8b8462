# Characters that a plain Nix string literal cannot name.
{ lib }:
let
  inherit (lib) concatMap range;

  figures = lib.genList (n: lib.substring n 1 "0123456789abcdef") 16;
  hex = n: (if n >= 16 then hex (n / 16) else "") + builtins.elemAt figures (n - n / 16 * 16);
  hex4 = n: lib.substring (lib.stringLength (hex n)) 4 ("0000" + hex n);
  toCode = n: "\\u${hex4 n}";
  fromCode = code: builtins.fromJSON "\"${code}\"";

  # Nix strings cannot hold NUL.
  controlCodes = map toCode (range 1 31);

  # Unicode's 66 noncharacters: U+FDD0 to U+FDEF, and the last two of each plane, beyond the first as surrogate pairs.
  noncharacterCodes =
    map toCode (range 64976 65007)
    ++ map toCode (range 65534 65535)
    ++ concatMap (plane: map (low: toCode (55295 + 64 * plane) + toCode low) (range 57342 57343)) (
      range 1 16
    );
in
{
  # U+0001 to U+001F as JSON writes them, and as they are.
  inherit controlCodes;
  controls = map fromCode controlCodes;
  delete = fromCode (toCode 127);

  # systemd drops a line that holds one of these.
  noncharacters = map fromCode noncharacterCodes;

  # [ character ] -> string -> bool. No regular expression: those of Nix recurse, and overflow on long texts.
  containsAny =
    characters: text: builtins.replaceStrings characters (map (_: "") characters) text != text;
}

# Numbers as an engine's command line writes them.
#
# `builtins.toJSON` and `toString` of a float differ between versions of Nix (six digits with `%g`, six decimals, or as
# many digits as it takes), so neither is used: the digits are found by arithmetic, and so are the same everywhere.
{ lib }:
let
  inherit (builtins) floor isInt;
  inherit (lib) removeSuffix;

  abs = x: if x < 0 then 0 - x else x;
  isIntegral = x: isInt x || hasNoFraction (abs x);
  # Above 2^53 every double is integral, and `floor` must not see what does not fit 64 bits.
  hasNoFraction = x: x >= 9007199254740992.0 || x == floor x;

  # { mantissa in [1, 10), exponent } of a positive number.
  normalise =
    let
      go =
        mantissa: exponent:
        if mantissa < 1 then
          go (mantissa * 10) (exponent - 1)
        else if mantissa >= 10 then
          go (mantissa / 10.0) (exponent + 1)
        else
          { inherit mantissa exponent; };
    in
    x: go (x * 1.0) 0;

  # { digits = an integer of six figures, exponent, exact = no figure was lost } of a positive number.
  sixFigures =
    x:
    let
      inherit (normalise x) mantissa exponent;
      scaled = mantissa * 100000;
      rounded = floor (scaled + 0.5);
      carried = rounded >= 1000000;
    in
    {
      digits = if carried then 100000 else rounded;
      exponent = if carried then exponent + 1 else exponent;
      exact = abs (scaled - rounded) < 0.0001;
    };

  zeros = count: lib.concatStrings (lib.genList (_: "0") count);
  trimZeros = text: if lib.hasSuffix "0" text then trimZeros (removeSuffix "0" text) else text;

  # C's %g for a positive number that is not integral, hence smaller than 10^6.
  formatFraction =
    x:
    let
      inherit (sixFigures x) digits exponent;
      figures = toString digits;
      cut = lib.substring;
      whole = if exponent >= 0 then cut 0 (exponent + 1) figures else "0";
      fraction =
        if exponent >= 0 then cut (exponent + 1) 6 figures else zeros (0 - exponent - 1) + figures;
      power = toString (0 - exponent);
      rest = trimZeros (cut 1 5 figures);
    in
    if exponent >= -4 then
      withPoint whole (trimZeros fraction)
    else
      "${withPoint (cut 0 1 figures) rest}e-${
        lib.optionalString (lib.stringLength power < 2) "0"
      }${power}";
  withPoint = whole: fraction: if fraction == "" then whole else "${whole}.${fraction}";
in
{
  # int | float -> string. Integral values have no point (1.0 -> "1"); others are written as `%g` writes them.
  format =
    x:
    if isInt x then
      toString x
    else if isIntegral x then
      # "%f" in every version of Nix; -0.0 is 0
      if x == 0 then "0" else removeSuffix ".000000" (toString x)
    else
      lib.optionalString (x < 0) "-" + formatFraction (abs x);

  # Does the number keep its value when it is written with at most six significant figures, or as an integer?
  isExact = x: isIntegral x || (sixFigures (abs x)).exact;
}

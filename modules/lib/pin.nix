# What a unit needs of a pin: file -> { image, home, cacheFormat }.
file:
let
  pin = fromTOML (builtins.readFile file);
  commit = pin.tt_metal or "";
  name = builtins.head (builtins.match "(.*)\\.toml" (baseNameOf (toString file)));
in
{
  inherit (pin) image home;
  # The tensor files' format goes with the library that writes them: its wheel, else the commit that it was built from.
  cacheFormat =
    if pin ? wheel then
      "${pin.wheel.name}-${pin.wheel.version}"
    else if commit != "" then
      "tt-metal-${commit}"
    else
      name;
}

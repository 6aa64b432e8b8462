# The NixOS module and the arms say the same, each in its own words: the unit's command is compared with the one that is
# rendered from arms/prod.toml, argument by argument, and so is that of the variant with prefix caching.
{
  self,
  lib,
  pkgs,
  system,
  ...
}:
let
  units = builtins.toFile "units.json" (
    builtins.toJSON (import ./eval/serving-units.nix { inherit lib; })
  );
  shelf = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../arms
      ../pins
    ];
  };
in
pkgs.runCommand "arm-matches-module" { nativeBuildInputs = [ self.packages.${system}.ttx.env ]; } ''
  python3 ${./eval/arm_matches_module.py} ${shelf}/arms ${units} | tee $out
''

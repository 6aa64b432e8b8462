# Functions of the modules; all of them are pure, and need nothing of nixpkgs but its lib.
{ lib }:
let
  characters = import ./characters.nix { inherit lib; };
  numbers = import ./numbers.nix { inherit lib; };
  json = import ./json.nix { inherit lib characters numbers; };
in
{
  inherit characters json numbers;
  flags = import ./flags.nix { inherit lib json; };
  mesh = import ./mesh.nix { inherit lib; };
  cacheKey = import ./cache-key.nix { inherit lib json; };
}

# What comes of the hosts' configurations, as data: { <host> = { failing, warnings, tmpfiles, units.<unit> = [ line ]; }; }.
#
#   lib    of nixpkgs, or one that gives the same results
#   nixos  null: by our own ./harness.nix; else nixos/ of a nixpkgs tree, whose lib is given: by NixOS itself
{
  lib,
  nixos ? null,
}:
let
  harness = import ./harness.nix { inherit lib; };
  isOurs = lib.hasPrefix "tenstorrent-serving-";

  byHarness =
    modules:
    let
      evaluation = harness modules;
    in
    {
      inherit (evaluation) config failing units;
    };
  byNixos =
    modules:
    let
      inherit (import ./nixos.nix { inherit nixos lib modules; }) config;
    in
    {
      inherit config;
      failing = map (item: item.message) (lib.filter (item: !item.assertion) config.assertions);
      units = lib.mapAttrs (_: unit: unit.text) (
        lib.filterAttrs (name: _: isOurs name) config.systemd.units
      );
    };
in
lib.mapAttrs (
  _: modules:
  let
    result = (if nixos == null then byHarness else byNixos) modules;
  in
  {
    inherit (result) failing;
    inherit (result.config) warnings;
    docker = result.config.virtualisation.docker.enable;
    tenstorrent = result.config.hardware.tenstorrent.enable;
    tmpfiles = lib.filter (lib.hasPrefix "d \"") result.config.systemd.tmpfiles.rules;
    units = lib.mapAttrs (_: lib.splitString "\n") result.units;
  }
) (import ./hosts)

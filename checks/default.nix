# Every file beside this one is a check: a function from { self, lib, pkgs, system, ... } to one derivation.
{ lib, ... }@arguments:
lib.mapAttrs'
  (file: _: {
    name = lib.removeSuffix ".nix" file;
    value = import (./. + "/${file}") arguments;
  })
  (
    lib.filterAttrs (
      file: type: type == "regular" && lib.hasSuffix ".nix" file && file != "default.nix"
    ) (builtins.readDir ./.)
  )

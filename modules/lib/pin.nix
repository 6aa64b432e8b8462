# What the module needs of a pin, read from its TOML file.
{ lib }:
file:
let
  pin = lib.importTOML file;
in
pin

# What arm-matches-module compares: for each arm that has a NixOS configuration, the lines of its unit that follow from
# the arm. { lib, modules ? the folder } -> { <arm> = { ExecStart, ExecStop, TimeoutStartSec, TimeoutStopSec }; }
{
  lib,
  modules ? ../../modules,
}:
let
  harness = import ./harness.nix { inherit lib; };
  unitOf =
    module:
    let
      inherit ((harness [ module ]).config.systemd) services;
    in
    {
      inherit (services.tenstorrent-serving-prod.serviceConfig)
        ExecStart
        ExecStop
        TimeoutStartSec
        TimeoutStopSec
        ;
    };
in
{
  prod = unitOf (modules + "/prod.nix");
  prod-prefix = unitOf (modules + "/prod-prefix.nix");
}

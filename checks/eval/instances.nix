# A serving instance that nothing is wrong with, and short ways to evaluate others like it, for the tables.
{ lib }:
let
  harness = import ./harness.nix { inherit lib; };
  good = {
    enable = true;
    image = lib.mkDefault "registry.example/engine@sha256:1111111111111111111111111111111111111111111111111111111111111111";
    cacheFormat = lib.mkDefault "f";
    model.path = lib.mkDefault "/m";
    mesh = lib.mkDefault "P150";
  };

  # services.tenstorrent-serving -> what ./harness.nix gives
  evaluate =
    serving:
    harness [
      ../../modules/tenstorrent-serving.nix
      { services.tenstorrent-serving = serving; }
    ];
  like =
    instance:
    lib.mkMerge [
      good
      instance
    ];
in
{
  inherit evaluate good like;

  # one instance `e`, and its path
  one = instance: evaluate { instances.e = like instance; };
  at = "services.tenstorrent-serving.instances.e";
}

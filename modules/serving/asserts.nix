# What is refused, and what is only warned about. Every sentence begins with the full path of the option and shows its value.
{
  lib,
  functions,
  top, # config.services.tenstorrent-serving
  launches, # { <name> = ./launch.nix of the enabled instance; }
}:
let
  inherit (lib)
    concatMap
    concatLists
    filter
    mapAttrsToList
    ;
  show = functions.json.render;
  enabled = lib.filterAttrs (_: instance: instance.enable) top.instances;
  names = lib.attrNames enabled;

  checks = import ./checks.nix { inherit lib functions show; };
  at = name: "services.tenstorrent-serving.instances.${name}";

  # What one instance must be like.
  each = concatLists (
    mapAttrsToList (name: instance: checks.ofInstance (at name) name instance launches.${name}) enabled
  );

  # What two instances may not have in common.
  pairs = concatMap (a: map (b: { inherit a b; }) (filter (b: builtins.lessThan a b) names)) names;
  between = concatMap (
    { a, b }:
    checks.ofPair {
      first = {
        path = at a;
        instance = enabled.${a};
        launch = launches.${a};
      };
      second = {
        path = at b;
        instance = enabled.${b};
        launch = launches.${b};
      };
    }
  ) pairs;

  folders =
    concatMap (option: checks.ofFolder "services.tenstorrent-serving.${option}" top.${option})
      [
        "cacheDir"
        "hfDir"
      ];
in
{
  assertions = if enabled == { } then [ ] else folders ++ each ++ between;
  warnings = concatLists (mapAttrsToList (name: checks.warningsOf (at name)) enabled);
}

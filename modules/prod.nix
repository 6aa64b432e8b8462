# What production serves. It says on its own what arms/prod.toml says, and reads nothing of it: the check
# arm-matches-module holds the two against each other, so that neither can drift alone. Only the versions come from one
# place for both, the pin.
let
  pin = import ./lib/pin.nix ../pins/current.toml;
in
{
  imports = [ ./tenstorrent-serving.nix ];

  services.tenstorrent-serving.instances.prod = {
    enable = true;

    inherit (pin) image cacheFormat;
    metalHome = pin.home;

    model = {
      id = "Qwen/Qwen3.6-27B";
      path = "/var/lib/tenstorrent/models/Qwen3.6-27B";
      revision = "local"; # the folder decides, not a revision of the hub
      servedName = "qwen3.6-27b";
      weightsVariables = [
        "QWEN36_LM_HEAD_BF4"
        "QWEN36_MLP_DOWN_BF4"
        "QWEN36_GDN_BF4"
      ];
    };

    cards.count = 2;
    mesh = "P150x2";

    settings = {
      max-model-len = 65536;
      max-num-seqs = 32;
      block-size = 64;
      async-scheduling = false;
    };
    tt = {
      trace_mode = "all";
      fabric_config = "FABRIC_1D";
    };
  };
}

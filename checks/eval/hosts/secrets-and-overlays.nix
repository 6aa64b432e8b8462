# Secrets by name, an overlay over the image's own sources, environment that changes weights, and a relaxed directive.
{ lib, ... }:
{
  imports = [ ../../../modules/tenstorrent-serving.nix ];
  services.tenstorrent-serving = {
    cacheDir = "/fast/caches";
    engineUser.uid = 4000;
    engineUser.gid = 4000;
    instances.dev = {
      enable = true;
      image = "registry.example/engine:nightly";
      cacheFormat = "tt-metal-0123456789abcdef0123456789abcdef01234567";
      metalHome = "/opt/tt-metal";
      model = {
        id = "example/Model-8B";
        path = "/srv/models/model-8b";
        revision = "abc123";
        environment.MODEL_VARIANT = "text";
        weightsVariables = [
          "MODEL_VARIANT"
          "NOT_SET"
        ];
      };
      settings = {
        dtype = "bfloat16";
        enable-prefix-caching = true;
        async-scheduling = false;
        allowed-origins = [
          "https://a.example"
          "https://b.example"
        ];
        gpu-memory-utilization = 0.95;
        max-model-len = null;
      };
      tt = {
        optimizations = "accuracy";
        trace_region_size = 900000000;
      };
      cards.count = 4;
      mesh = "(2,2)";
      weightsEnvironment.LM_HEAD_FORMAT = "bf4";
      secrets = [
        "VLLM_API_KEY"
        "HF_TOKEN"
      ];
      environmentFile = "/run/secrets/dev.env";
      overlays = [
        {
          source = "/home/dev/tt-metal/models/demos/example";
          target = "models/demos/example";
        }
      ];
      address = "0.0.0.0";
      stopGraceSec = 300;
      bootTimeoutSec = 7200;
    };
  };
  systemd.services.tenstorrent-serving-dev = {
    restartIfChanged = true;
    serviceConfig.ProtectHome = lib.mkForce "read-only";
  };
}

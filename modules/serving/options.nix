# services.tenstorrent-serving: what may be asked. Typed options are those that the module itself reads; everything else
# is `settings`, whose keys are the engine's own flags.
{
  lib,
  pkgs,
  ...
}:
let
  inherit (lib) mkOption types;
  valueTypes = import ./types.nix { inherit lib; };
in
{
  options.services.tenstorrent-serving = {
    docker = lib.mkPackageOption pkgs "docker-client" { };

    cacheDir = mkOption {
      type = types.str;
      default = "/var/cache/tenstorrent";
      description = "Folder of the tensor caches (`KEY/`) and of the kernel caches (`jit/`). Tens of GB for each model.";
    };

    hfDir = mkOption {
      type = types.str;
      default = "/var/lib/tenstorrent/hf";
      description = "Hugging Face folder (`HF_HOME`) of the instances whose model has no path of its own.";
    };

    engineUser = {
      uid = mkOption {
        type = types.ints.unsigned;
        default = 1000;
        description = "User that the images' engine runs as: the owner of the cache folders.";
      };
      gid = mkOption {
        type = types.ints.unsigned;
        default = 1000;
        description = "Group that the images' engine runs as.";
      };
    };

    instances = mkOption {
      default = { };
      description = ''
        Engines to serve, each as the unit `tenstorrent-serving-<name>.service`. The unit is the arm of the same
        meaning: `ttx arm render` prints the command that it runs.
      '';
      example = lib.literalExpression ''
        {
          prod = {
            enable = true;
            image = "registry.example/vllm-tt@sha256:…";
            cacheFormat = "ttnn-0.81.1";
            model.path = "/srv/models/Qwen3.6-27B";
            cards.count = 2;
            mesh = "P150x2";
            settings.max-model-len = 65536;
          };
        }
      '';
      type = types.attrsOf (
        types.submodule (
          { name, config, ... }:
          {
            options = import ./instance.nix {
              inherit
                lib
                valueTypes
                name
                config
                ;
            };
          }
        )
      );
    };
  };
}

# The options of one instance.
{
  lib,
  valueTypes,
  name,
  config,
}:
let
  inherit (lib) mkOption types;
  variables = types.attrsOf types.str;
in
{
  enable = lib.mkEnableOption "this engine";

  arm = mkOption {
    type = types.str;
    default = name;
    defaultText = lib.literalExpression "<name>";
    description = "The arm that this instance is: it names the container (`ttx-<arm>`), its label and its kernel cache.";
  };

  command = mkOption {
    type = types.nonEmptyListOf types.str;
    default = [
      "vllm"
      "serve"
    ];
    description = "The engine's program and what comes before the model.";
  };

  image = mkOption {
    type = types.str;
    example = "registry.example/vllm-tt@sha256:…";
    description = "Image of the engine. It is never pulled by the unit; name it by digest, so that a tag cannot move under it.";
  };

  metalHome = mkOption {
    type = types.str;
    default = "/home/container_app_user/tt-metal";
    description = "Where tt-metal lies inside the image. Overlays go there.";
  };

  cacheFormat = mkOption {
    type = types.str;
    example = "ttnn-0.81.1";
    description = "What the format of the tensor files depends on. Part of the tensor cache's key.";
  };

  model = {
    id = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "Qwen/Qwen3.6-27B";
      description = "Hugging Face id. The engine is given it when there is no `model.path`; it names the cache in any case.";
    };
    path = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "/srv/models/Qwen3.6-27B";
      description = "Folder of the checkpoint on the host. It has the same path inside of the container, read-only.";
    };
    revision = mkOption {
      type = types.str;
      default = "";
      description = "Revision of the checkpoint. Part of the tensor cache's key.";
    };
    servedName = mkOption {
      type = types.str;
      default = if config.model.id != null then config.model.id else name;
      defaultText = lib.literalExpression "model.id, else <name>";
      description = "The name that clients ask for.";
    };
    environment = mkOption {
      type = variables;
      default = { };
      description = "Environment that the model requires.";
    };
    weightsVariables = mkOption {
      type = types.listOf types.str;
      default = [ ];
      description = "Names of the variables that change the bytes of the model's tensor cache. Part of its key.";
    };
  };

  settings = mkOption {
    default = { };
    example = {
      max-model-len = 65536;
      async-scheduling = false;
    };
    description = ''
      The engine's flags without their leading dashes, as [vLLM documents them](https://docs.vllm.ai/en/stable/cli/serve/).
      `true` becomes `--flag`, `false` becomes `--no-flag`, a list repeats the flag, a set becomes JSON, `null` takes back
      what another module asked for. `host`, `port`, `served-model-name`, `revision` and `additional-config` come from
      other options.
    '';
    type = valueTypes.settings {
      dtype = mkOption {
        type = types.nullOr types.str;
        default = null;
        description = "Data type of the weights. Part of the tensor cache's key.";
      };
    };
  };

  tt = mkOption {
    default = { };
    example = {
      trace_mode = "all";
      fabric_config = "FABRIC_1D";
    };
    description = "The key `tt` of vLLM's `--additional-config`, which the Tenstorrent plugin reads.";
    type = valueTypes.settings {
      optimizations = mkOption {
        type = types.nullOr types.str;
        default = null;
        description = "`performance` or `accuracy`. Part of the tensor cache's key.";
      };
    };
  };

  mesh = mkOption {
    type = types.str;
    example = "P150x2";
    description = "How the cards form one device (`MESH_DEVICE`): a name that the Tenstorrent plugin knows, or `(rows,columns)`.";
  };

  cards = {
    count = mkOption {
      type = types.ints.positive;
      default = if config.cards.ids == [ ] then 1 else lib.length config.cards.ids;
      defaultText = lib.literalExpression "length of cards.ids, else 1";
      description = "How many cards.";
    };
    ids = mkOption {
      type = types.listOf types.str;
      default = [ ];
      example = [ "blackhole-0123456789abcdef" ];
      description = ''
        Which cards, by the names that udev gives them in `/dev/tenstorrent/by-id`. Without them the cards are
        `/dev/tenstorrent/0` and up, numbers that may move when the host's cards do.
      '';
    };
  };

  environment = mkOption {
    type = variables;
    default = { };
    description = "Environment of the engine.";
  };

  weightsEnvironment = mkOption {
    type = variables;
    default = { };
    description = "Environment of the engine that changes the bytes of the tensor cache. Part of its key.";
  };

  secrets = mkOption {
    type = types.listOf types.str;
    default = [ ];
    example = [ "HF_TOKEN" ];
    description = "Names of variables that the engine gets from `environmentFile`. Their values are in no command line.";
  };

  environmentFile = mkOption {
    type = types.nullOr types.str;
    default = null;
    example = "/run/secrets/serving.env";
    description = ''
      File of `NAME=value` lines with the values of `secrets`, as systemd.exec(5) describes `EnvironmentFile=`. Keep it out
      of the Nix store, which everyone can read. systemd credentials (`LoadCredential=`) are not offered: docker takes
      the values from its client's environment, and nothing else may run in the unit to put them there.
    '';
  };

  overlays = mkOption {
    default = [ ];
    description = "Source trees put over the image's own, read-only.";
    type = types.listOf (
      types.submodule {
        options = {
          source = mkOption {
            type = types.str;
            description = "Folder on the host.";
          };
          target = mkOption {
            type = types.str;
            example = "models/demos/qwen36";
            description = "Folder relative to `metalHome`.";
          };
        };
      }
    );
  };

  hugepages = mkOption {
    type = types.bool;
    default = false;
    description = "Give the engine `/dev/hugepages-1G`, which a host without a translating IOMMU needs.";
  };

  address = mkOption {
    type = types.str;
    default = "127.0.0.1";
    description = ''
      Address that the port is published on. Docker forwards published ports by rules of its own, which the host's firewall
      does not see: an address other than 127.0.0.1 opens the port, whatever `networking.firewall` says.
    '';
  };

  port = mkOption {
    type = types.port;
    default = 8000;
    description = "Port of the engine, the same inside and outside of the container.";
  };

  bootTimeoutSec = mkOption {
    type = types.ints.positive;
    default = 5400;
    description = "How long the start may take. The first one converts the weights.";
  };

  stopGraceSec = mkOption {
    type = types.ints.positive;
    default = 120;
    description = "How long the engine may take to close its cards before it is killed. A killed engine may leave a card that needs a reset.";
  };
}

# What the serving module refuses of one instance by assertion, so that everything is reported at once.
{ lib }:
let
  functions = import ../../../modules/lib { inherit lib; };
  inherit (import ../instances.nix { inherit lib; })
    at
    evaluate
    good
    one
    ;

  # The sentences of an instance, without the option's path in front of each.
  refused = name: instance: sentences: {
    name = "refused: ${name}";
    expr = (one instance).failing;
    expected = map (
      sentence: if lib.hasPrefix "services." sentence then sentence else "${at}.${sentence}"
    ) sentences;
  };
  accepted = name: instance: refused name instance [ ];
in
{
  values = [
    (accepted "nothing of a good instance" { })
    (refused "a mesh of more chips" { mesh = "P150x2"; } [
      "mesh: \"P150x2\" has 2 chips, but ${at}.cards.count is 1."
    ])
    (refused "a mesh that is not known" { mesh = "P150X2"; } [
      "mesh: \"P150X2\" is not a mesh that is known: BH-Galaxy, N150, N150x4, N300, P100, P150, P150x2, P150x4, P150x8, P300, P300x2, T3K, TG, or (rows,columns)."
    ])
    (accepted "nothing of a literal mesh" {
      mesh = "(1,4)";
      cards.count = 4;
    })
    (accepted "nothing of ids that decide the count" {
      mesh = "P150x2";
      cards.ids = [
        "blackhole-aa"
        "blackhole-bb"
      ];
    })
    (refused "ids that are not as many as the count" {
      mesh = "P150x2";
      cards.count = 2;
      cards.ids = [ "blackhole-aa" ];
    } [ "cards.ids: [\"blackhole-aa\"] names 1 cards, but ${at}.cards.count is 2." ])
    (refused "two cards that are one"
      {
        mesh = "P150x2";
        cards.ids = [
          "blackhole-aa"
          "blackhole-AA"
        ];
      }
      [ "cards.ids: [\"blackhole-aa\"] named more than once; two cards that are one cannot form a mesh." ]
    )
    (refused "a card that only its host can look up" { cards.ids = [ "0000:01:00.0" ]; } [
      "cards.ids: \"0000:01:00.0\" is not a name of /dev/tenstorrent/by-id, such as blackhole-0123456789abcdef; a module cannot look up others."
    ])
    (refused "derived flags"
      {
        settings = {
          port = 1;
          additional-config = { };
          api-key = "s3cret";
        };
      }
      [
        "settings.additional-config: {} may not be set; use `tt`."
        "settings.api-key: \"s3cret\" may not be set; name VLLM_API_KEY in `secrets`, as everyone can read a command line."
        "settings.port: 1 may not be set; use `port`."
      ]
    )
    (refused "a flag with its dashes" { settings."--max-model-len" = 1; } [
      "settings: \"--max-model-len\" is not a name of a flag; write it without its leading dashes."
    ])
    (accepted "nothing of a flag that is taken back" { settings.port = null; })
    (refused "numbers of too many digits"
      {
        settings.a = 0.1234567;
        settings.b = [
          1
          { c = 3.14159265; }
        ];
        tt.d = 0.1234567;
      }
      (
        map
          (
            option:
            "${option}: the number needs more than six significant digits, which would be lost on the command line; write it as text."
          )
          [
            "settings.a"
            "settings.b[1].c"
            "tt.d"
          ]
      )
    )
    (refused "derived variables, in each place"
      {
        environment.MESH_DEVICE = "P300";
        weightsEnvironment.TT_CACHE_PATH = "/x";
        model.environment.TT_VISIBLE_DEVICES = "1";
      }
      [
        "model.environment.TT_VISIBLE_DEVICES: \"1\" may not be set; use `cards`."
        "environment.MESH_DEVICE: \"P300\" may not be set; use `mesh`."
        "weightsEnvironment.TT_CACHE_PATH: \"/x\" may not be set; the cache is chosen by its key."
      ]
    )
    (refused "what is no variable" { environment."A=B" = ""; } [
      "environment: \"A=B\" is not a name of a variable."
    ])
    (refused "a secret in plain sight" { environment.HF_TOKEN = "s3cret"; } [
      "environment.HF_TOKEN: a secret's value may not be here, where everyone can read it; name it in `secrets`."
    ])
    (refused "secrets without values, twice, and set as well"
      {
        environment.B = "";
        secrets = [
          "A"
          "A"
          "B"
          "c-d"
        ];
      }
      [
        "secrets: \"B\" is set in plain sight as well."
        "secrets: \"c-d\" is not a name of a variable."
        "secrets: [\"A\"] named more than once; name it once."
        "secrets: [\"A\",\"A\",\"B\",\"c-d\"] get no value, as ${at}.environmentFile is not set."
      ]
    )
    (refused "paths that docker's --mount cannot carry"
      {
        model.path = "/a,b";
        overlays = [
          {
            source = "/c\"d";
            target = "e\nf";
          }
        ];
      }
      (
        map (what: "${what}, which docker's --mount cannot carry.") [
          "model.path: \"/a,b\" has a comma, a double quote or a control character"
          "overlays[0].source: \"/c\\\"d\" has a comma, a double quote or a control character"
          "overlays[0].target: \"e\\nf\" has a comma, a double quote or a control character"
        ]
      )
    )
    (refused "paths that are relative, or leave their place"
      {
        model.path = "m";
        metalHome = "tt-metal";
        environmentFile = "secrets.env";
        overlays = [
          {
            source = "s";
            target = "/t";
          }
          {
            source = "/s";
            target = "a/../../b";
          }
        ];
      }
      [
        "metalHome: \"tt-metal\" is not an absolute path."
        "model.path: \"m\" is not an absolute path."
        "environmentFile: \"secrets.env\" is not an absolute path."
        "overlays[0].source: \"s\" is not an absolute path."
        "overlays[0].target: \"/t\" is not a path below metalHome."
        "overlays[1].target: \"a/../../b\" is not a path below metalHome."
      ]
    )
    (refused "two overlays with one target" {
      overlays =
        map
          (source: {
            inherit source;
            target = "t";
          })
          [
            "/a"
            "/b"
          ];
    } [ "overlays: [\"t\"] named more than once; one target takes one source." ])
    (refused "an id that would be read as a flag"
      {
        model.path = null;
        model.id = "--trust-remote-code";
      }
      [
        "model.id: \"--trust-remote-code\" is not a Hugging Face id."
      ]
    )
    (refused "no model" { model.path = null; } [
      "model: neither `id` nor `path` is set, so there is nothing to serve."
    ])
    (refused "names that docker or a folder cannot have"
      {
        arm = "-x";
        image = "--privileged";
        cacheFormat = "a/b";
        address = "localhost";
      }
      [
        "arm: \"-x\" cannot be part of a container's name."
        "image: \"--privileged\" is not the name of an image."
        "cacheFormat: \"a/b\" cannot be part of a folder's name."
        "address: \"localhost\" is not an IP address."
      ]
    )
    (refused "characters that systemd drops a line for"
      { environment.A = "x" + builtins.head functions.characters.noncharacters; }
      [
        "services.tenstorrent-serving.instances.e: \"A=x${builtins.head functions.characters.noncharacters}\" holds a Unicode noncharacter, and systemd drops a line that does."
      ]
    )
    {
      name = "refused: folders of all instances";
      expr =
        (evaluate {
          cacheDir = "cache";
          hfDir = "/a,b";
          instances.e = good;
        }).failing;
      expected = [
        "services.tenstorrent-serving.cacheDir: \"cache\" is not an absolute path."
        "services.tenstorrent-serving.hfDir: \"/a,b\" has a comma, a double quote or a control character, which docker's --mount cannot carry."
      ];
    }
    {
      name = "refused: a name that no unit can have";
      expr = (evaluate { instances."a/b" = good; }).failing;
      expected = [
        "services.tenstorrent-serving.instances.a/b: \"a/b\" cannot be part of a unit's name."
        "services.tenstorrent-serving.instances.a/b.arm: \"a/b\" cannot be part of a container's name."
      ];
    }
  ];
}

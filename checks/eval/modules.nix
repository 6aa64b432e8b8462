# The module system itself: priorities, merges, submodules, free-form settings.
{ lib }:
let
  inherit (lib) mkOption types;
  config = modules: (lib.evalModules { inherit modules; }).config;
  options = modules: (lib.evalModules { inherit modules; }).options;
  # One option `x` of a type, and its definitions, each from a module of its own.
  one =
    type: defs:
    (config ([ { options.x = mkOption { inherit type; }; } ] ++ map (x: { config.x = x; }) defs)).x;
  phrase = type: type.description;
  json = types.attrsOf value;
  value = types.nullOr (
    types.oneOf [
      types.bool
      types.int
      types.float
      types.str
      (types.attrsOf value)
      (types.listOf value)
    ]
  ) // { description = "JSON value"; };
in
{
  values = [
    {
      name = "a default yields to a definition, a definition to mkForce";
      expr =
        let
          x = mkOption {
            type = types.int;
            default = 1;
          };
        in
        map (defs: (config ([ { options = { inherit x; }; } ] ++ map (x: { inherit x; }) defs)).x) [
          [ ]
          [ (lib.mkDefault 2) ]
          [
            (lib.mkDefault 2)
            3
          ]
          [
            (lib.mkForce 4)
            3
            (lib.mkDefault 2)
          ]
          [
            (lib.mkOverride 10 5)
            (lib.mkForce 4)
          ]
        ];
      expected = [
        1
        2
        3
        4
        5
      ];
    }
    {
      name = "conditions nest, and a false one leaves nothing behind";
      expr = one (types.attrsOf types.int) [
        (lib.mkIf true {
          a = lib.mkIf false 1;
          b = lib.mkIf true (lib.mkMerge [
            (lib.mkDefault 1)
            2
          ]);
        })
        (lib.mkIf false { c = throw "a false condition was looked into"; })
      ];
      expected.b = 2;
    }
    {
      name = "a condition may read the configuration that it is part of";
      expr = config [
        (
          { config, lib, ... }:
          {
            options.on = lib.mkEnableOption "it";
            options.out = lib.mkOption { type = lib.types.str; };
            config = lib.mkMerge [
              (lib.mkIf config.on { out = "on"; })
              (lib.mkIf (!config.on) { out = "off"; })
              { on = true; }
            ];
          }
        )
      ];
      expected = {
        on = true;
        out = "on";
      };
    }
    {
      name = "lists: importers last, mkBefore and mkAfter around them, order kept inside";
      expr = one (types.listOf types.str) [
        (lib.mkAfter [ "z" ])
        [
          "m"
          "n"
        ]
        (lib.mkBefore [ "a" ])
        (lib.mkOrder 600 [ "b" ])
        (lib.mkIf true [ "o" ])
        [ (lib.mkIf false "gone") ]
      ];
      expected = [
        "a"
        "b"
        "o"
        "m"
        "n"
        "z"
      ];
    }
    {
      name = "imports: each key once, files before what imports them";
      expr =
        let
          shared = {
            key = "shared";
            x = [ "shared" ];
          };
        in
        (config [
          { options.x = mkOption { type = types.listOf types.str; }; }
          {
            imports = [
              shared
              { x = [ "inner" ]; }
            ];
            x = [ "outer" ];
          }
          shared
        ]).x;
      expected = [
        "inner"
        "shared"
        "outer"
      ];
    }
    {
      name = "arguments: special ones, _module.args, and a set that passes them on";
      expr =
        (lib.evalModules {
          specialArgs.depth = 3;
          modules = [
            (
              args@{ depth, greeting, ... }:
              {
                options.x = args.lib.mkOption { type = args.lib.types.str; };
                config = {
                  x = "${greeting} ${toString depth} ${toString args.config._module.args.extra}";
                  _module.args.extra = depth + 1;
                };
              }
            )
            { _module.args.greeting = lib.mkForce "hello"; }
            { _module.args.greeting = "unheard"; }
          ];
        }).config.x;
      expected = "hello 3 4";
    }
    {
      name = "submodules know their name, merge over files and keep priorities";
      expr = one (types.attrsOf (
        types.submodule (
          { name, config, ... }:
          {
            options = {
              label = mkOption {
                type = types.str;
                default = "the ${name}";
              };
              port = mkOption { type = types.port; };
              next = mkOption {
                type = types.int;
                default = config.port + 1;
              };
            };
          }
        )
      )) [
        { a.port = lib.mkDefault 1; }
        {
          a.port = 80;
          b = lib.mkIf true { port = 90; };
        }
        { b.label = lib.mkForce "b"; }
        { c = lib.mkIf false { port = 1; }; }
        { b = { config, ... }: { next = config.port * 2; }; }
      ];
      expected = {
        a = {
          label = "the a";
          next = 81;
          port = 80;
        };
        b = {
          label = "b";
          next = 180;
          port = 90;
        };
      };
    }
    {
      name = "a submodule without a definition, in a list and behind null";
      expr = config [
        {
          options =
            let
              type = types.submodule {
                options.n = mkOption {
                  type = types.int;
                  default = 7;
                };
              };
            in
            {
              alone = mkOption { inherit type; default = { }; };
              bare = mkOption { inherit type; };
              list = mkOption { type = types.listOf type; };
              none = mkOption { type = types.nullOr type; };
              some = mkOption { type = types.nullOr type; };
            };
          config = {
            list = [
              { }
              { n = 8; }
            ];
            some.n = 9;
          };
        }
      ];
      expected = {
        alone.n = 7;
        bare.n = 7;
        list = [
          { n = 7; }
          { n = 8; }
        ];
        none = null;
        some.n = 9;
      };
    }
    {
      name = "shorthand: in types.submodule a set is configuration, in submoduleWith a module";
      expr = [
        (one (types.submodule { options.config = mkOption { type = types.int; }; }) [ { config = 3; } ])
        (one
          (types.submoduleWith { modules = [ { options.n = mkOption { type = types.int; }; } ]; })
          [ { config.n = 3; } ]
        )
      ];
      expected = [
        { config = 3; }
        { n = 3; }
      ];
    }
    {
      name = "free-form settings beside declared ones";
      expr = one (types.submodule {
        freeformType = json;
        options.port = mkOption {
          type = types.port;
          default = 8000;
        };
      }) [
        {
          max-model-len = 65536;
          deep = {
            a = [
              1
              null
              "x"
            ];
            b = lib.mkDefault 1.5;
          };
          trust = true;
        }
        {
          deep.b = 2;
          deep.c = null;
          max-model-len = lib.mkForce 4096;
          gone = lib.mkIf false 1;
        }
      ];
      expected = {
        deep = {
          a = [
            1
            null
            "x"
          ];
          b = 2;
          c = null;
        };
        max-model-len = 4096;
        port = 8000;
        trust = true;
      };
    }
    {
      name = "free-form at the root, nested under declared options";
      expr = config [
        {
          freeformType = types.attrsOf types.anything;
          options.a.b = mkOption { default = 1; };
          config = {
            a.c = 2;
            d = 3;
          };
        }
      ];
      expected = {
        a = {
          b = 1;
          c = 2;
        };
        d = 3;
      };
    }
    {
      name = "_module.check off lets unknown definitions pass";
      expr = config [
        { options.x = mkOption { default = 1; }; }
        {
          _module.check = false;
          unknown = 2;
        }
      ];
      expected.x = 1;
    }
    {
      name = "apply, read-only, internal and coerced values";
      expr = config [
        {
          options = {
            twice = mkOption {
              type = types.int;
              apply = n: n * 2;
            };
            fixed = mkOption {
              type = types.str;
              readOnly = true;
              internal = true;
            };
            ports = mkOption { type = types.coercedTo types.port (port: [ port ]) (types.listOf types.port); };
            text = mkOption { type = types.coercedTo types.int toString types.str; };
          };
          config = {
            twice = 21;
            fixed = "set once";
            ports = lib.mkMerge [
              80
              [ 90 ]
            ];
            text = 5;
          };
        }
      ];
      expected = {
        fixed = "set once";
        ports = [
          80
          90
        ];
        text = "5";
        twice = 42;
      };
    }
    {
      name = "what options tell about themselves";
      expr =
        let
          shown = options [
            {
              _file = "declared.nix";
              options.a.b = mkOption {
                type = types.int;
                default = 1;
                description = "A number.";
              };
              options.c = mkOption { type = types.str; };
            }
            {
              _file = "defined.nix";
              a.b = lib.mkDefault 2;
            }
          ];
        in
        {
          inherit (shown.a.b)
            value
            isDefined
            files
            highestPrio
            loc
            definitionsWithLocations
            declarations
            ;
          type = shown.a.b.type.description;
          text = "${shown.a.b}";
          undefined = shown.c.isDefined;
        };
      expected = {
        declarations = [ "declared.nix" ];
        definitionsWithLocations = [
          {
            file = "defined.nix";
            value = 2;
          }
        ];
        files = [ "defined.nix" ];
        highestPrio = 1000;
        isDefined = true;
        loc = [
          "a"
          "b"
        ];
        text = "a.b";
        type = "signed integer";
        undefined = false;
        value = 2;
      };
    }
    {
      name = "types that merge";
      expr = {
        lines = one types.lines [
          "a"
          "b"
        ];
        anything = one types.anything [
          {
            a.b = 1;
            c = [ 1 ];
          }
          { a.d = "x"; }
        ];
        attrs = one types.attrs [
          { a.b = 1; }
          { a.c = 2; }
        ];
        equal = one types.str [
          "same"
          "same"
        ];
        unspecified = one types.unspecified [
          [ 1 ]
          [ 2 ]
        ];
        lazy = builtins.attrNames (one (types.lazyAttrsOf types.int) [ { a = lib.mkIf false 1; } ]);
        line = one types.singleLineStr [ "line\n" ];
        none = one (types.attrsOf types.int) [ ];
      };
      expected = {
        anything = {
          a = {
            b = 1;
            d = "x";
          };
          c = [ 1 ];
        };
        attrs.a.b = 1;
        equal = "same";
        lazy = [ "a" ];
        line = "line";
        lines = "b\na";
        none = { };
        unspecified = [
          2
          1
        ];
      };
    }
    {
      name = "types in words";
      expr = map phrase [
        (types.nullOr (types.listOf types.str))
        (types.listOf (types.nullOr types.int))
        (types.attrsOf (types.either types.int types.bool))
        (types.either types.ints.positive types.str)
        (types.listOf types.ints.unsigned)
        (types.oneOf [
          types.bool
          types.int
          (types.listOf types.str)
        ])
        types.port
        types.number
        (types.ints.between 1 4)
        (types.enum [
          "a"
          1
          true
        ])
        (types.enum [ "only" ])
        (types.enum [ ])
        (types.strMatching "[a-z]+")
        (types.coercedTo types.int toString types.str)
        (types.submodule { freeformType = types.attrsOf types.int; })
        (types.submodule { })
        (types.nonEmptyListOf types.str)
        types.path
        types.package
        types.lines
        json
      ];
      expected = [
        "null or (list of string)"
        "list of (null or signed integer)"
        "attribute set of (signed integer or boolean)"
        "positive integer, meaning >0, or string"
        "list of (unsigned integer, meaning >=0)"
        "boolean or signed integer or list of string"
        "16 bit unsigned integer; between 0 and 65535 (both inclusive)"
        "signed integer or floating point number"
        "integer between 1 and 4 (both inclusive)"
        "one of \"a\", 1, true"
        "value \"only\" (singular enum)"
        "impossible (empty enum)"
        "string matching the pattern [a-z]+"
        "string or signed integer convertible to it"
        "open submodule of attribute set of signed integer"
        "submodule"
        "non-empty (list of string)"
        "absolute path"
        "package"
        "strings concatenated with \"\\n\""
        "attribute set of (JSON value)"
      ];
    }
    {
      name = "packages by name";
      expr =
        let
          tool = {
            type = "derivation";
            name = "tool-1";
            outPath = "/nix/store/00000000000000000000000000000000-tool-1";
            meta.mainProgram = "tool";
          };
          option = lib.mkPackageOption { inherit tool; } "tool" { };
        in
        {
          inherit (option) defaultText description;
          type = phrase option.type;
          program = lib.getExe (one option.type [ tool ]);
        };
      expected = {
        defaultText = {
          _type = "literalExpression";
          text = "pkgs.tool";
        };
        description = "The tool package to use.";
        program = "/nix/store/00000000000000000000000000000000-tool-1/bin/tool";
        type = "package";
      };
    }
  ];
}

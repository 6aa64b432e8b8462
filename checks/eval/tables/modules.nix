# The module system: priorities, conditions, imports, arguments.
{ lib }:
let
  inherit (lib) mkOption types;
  inherit (import ../evaluate.nix { inherit lib; })
    config
    options
    one
    ;
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
        ];
      expected = [
        1
        2
        3
        4
      ];
    }
    {
      name = "conditions nest, and a false one leaves nothing behind";
      expr = one (types.attrsOf types.int) [
        (lib.mkIf true {
          a = lib.mkIf false 1;
          b = lib.mkIf true (
            lib.mkMerge [
              (lib.mkDefault 1)
              2
            ]
          );
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
      name = "lists: later modules first, order kept inside, false conditions leave no item";
      expr = one (types.listOf types.str) [
        [
          "m"
          "n"
        ]
        (lib.mkIf true [ "o" ])
        [ (lib.mkIf false "gone") ]
        (lib.mkMerge [
          [ "p" ]
          [ "q" ]
        ])
      ];
      expected = [
        "p"
        "q"
        "o"
        "m"
        "n"
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
      name = "apply, read-only and internal options";
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
          };
          config = {
            twice = 21;
            fixed = "set once";
          };
        }
      ];
      expected = {
        fixed = "set once";
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
  ];
}

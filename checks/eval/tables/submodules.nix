# Submodules and free-form settings.
{ lib }:
let
  inherit (lib) mkOption types;
  inherit (import ../evaluate.nix { inherit lib; })
    config
    options
    one
    json
    settings
    ;
in
{
  values = [
    {
      name = "a submodule may have an option named config";
      expr = one (types.submodule { options.config = mkOption { type = types.int; }; }) [
        { config = 3; }
      ];
      expected.config = 3;
    }
    {
      name = "submodules know their name, merge over files and keep priorities";
      expr =
        one
          (types.attrsOf (
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
          ))
          [
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
              alone = mkOption {
                inherit type;
                default = { };
              };
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
      name = "free-form settings beside declared ones";
      expr =
        one
          (types.submodule {
            freeformType = types.attrsOf json;
            options.port = mkOption {
              type = types.port;
              default = 8000;
            };
          })
          [
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
          freeformType = types.attrsOf json;
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
  ];
}

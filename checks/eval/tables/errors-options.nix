# What the module system refuses, and in which words: options and modules.
{ lib }:
let
  inherit (lib) mkOption types;
  inherit (import ../evaluate.nix { inherit lib; })
    config
    options
    one
    settings
    served
    ;
  tool = {
    type = "derivation";
    name = "tool-1";
    outPath = "/nix/store/00000000000000000000000000000000-tool-1";
  };
in
{
  errors = [
    {
      name = "an unknown option, with the nearest known ones";
      expr = served { services.serve.modle = "x"; };
      message = "The option `services.serve.modle' does not exist. Definition values:\n- In `file.nix': \"x\"\n\nDid you mean `services.serve.model', `services.serve.models' or `services.serve.enable'?";
    }
    {
      name = "an unknown option at the root";
      expr = served { servces.serve.enable = true; };
      message = "Did you mean `services'?";
    }
    {
      name = "an unknown option of a submodule, its path quoted";
      expr = served { services.serve.instances."a.b".prot = 1; };
      message = "The option `services.serve.instances.\"a.b\".prot' does not exist. Definition values:\n- In `file.nix': 1\n\nDid you mean `services.serve.instances.\"a.b\".port'?";
    }
    {
      name = "an option declared under config";
      expr = config [ { x = mkOption { default = 1; }; } ];
      message = "It seems as if you're trying to declare an option by placing it into `config' rather than `options'!";
    }
    {
      name = "a submodule without options";
      expr = one (types.submodule { }) [ { x = 1; } ];
      message = "However there are no options defined in `a.b'.";
    }
    {
      name = "no value";
      expr = one types.str [ ];
      message = "The option `a.b' was accessed but has no value defined. Try setting the option.";
    }
    {
      name = "no value because of a false condition";
      expr = one types.str [ (lib.mkIf false "x") ];
      message = "The option `a.b' was accessed but has no value defined. Try setting the option.";
    }
    {
      name = "no value in a submodule";
      expr = (one (types.attrsOf settings) [ { x.flag = 1; } ]).x.port;
      message = "The option `a.b.x.port' was accessed but has no value defined. Try setting the option.";
    }
    {
      name = "a read-only option set twice";
      expr =
        (config [
          {
            options.x = mkOption {
              type = types.str;
              readOnly = true;
              default = "default";
            };
            config.x = "other";
          }
        ]).x;
      message = "The option `x' is read-only, but it's set multiple times. Definition values:\n- In `file.nix': \"default\"\n- In `file.nix': \"other\"";
    }
    {
      name = "a read-only option of a submodule: its default is known by the file that declares it";
      expr =
        (one (types.submodule {
          options.c = mkOption {
            type = types.int;
            readOnly = true;
            default = 1;
          };
        }) [ { c = 2; } ]).c;
      message = "Definition values:\n- In `declared.nix': 1\n- In `defined-1.nix': 2";
    }
    {
      name = "a list that may not be empty has no value of its own";
      expr = one (types.nonEmptyListOf types.str) [ ];
      message = "The option `a.b' was accessed but has no value defined. Try setting the option.";
    }
    {
      name = "a condition that is not a boolean";
      expr = one types.str [ (lib.mkIf "yes" "x") ];
      message = "‘mkIf’ called with a non-Boolean condition";
    }
    {
      name = "an option declared twice";
      expr =
        (lib.evalModules {
          modules =
            map
              (file: {
                _file = file;
                options.x = mkOption {
                  type = types.int;
                  description = "x";
                };
              })
              [
                "one.nix"
                "two.nix"
              ];
        }).config.x;
      message = "The option `x' in `one.nix' is already declared in `two.nix'.";
    }
    {
      name = "an option under an option";
      expr =
        (config [
          { options.x = mkOption { type = types.int; }; }
          { options.x.y = mkOption { type = types.int; }; }
        ]).x;
      message = "The option `x' in module `file.nix' would be a parent of the following options, but its type `signed integer' does not support nested options.\n - option(s) with prefix `x.y' in module `file.nix'";
    }
    {
      name = "a value where options are nested";
      expr = served { services.serve = "on"; };
      message = "In module `file.nix', you're trying to define a value of type `string'\nrather than an attribute set for the option\n`services.serve'!";
    }
    {
      name = "configuration beside a config attribute";
      expr = config [
        {
          config = { };
          services = { };
        }
      ];
      message = "Module `:anon-1' has an unsupported attribute `services'. This is caused by introducing a top-level `config' or `options' attribute.";
    }
    {
      name = "an anonymous module beside a config attribute";
      expr =
        (lib.evalModules {
          modules = [
            {
              imports = [
                {
                  options = { };
                  x = 1;
                }
              ];
            }
          ];
        }).config;
      message = "Module `:anon-1:anon-1' has an unsupported attribute `x'.";
    }
    {
      name = "a module that is a number";
      expr = config [ { imports = [ (_: 3) ]; } ];
      message = "module file.nix (:anon-1:anon-1) does not look like a module.";
    }
    {
      name = "a package set without the package";
      expr = (lib.mkPackageOption { } "tool" { }).default;
      message = "tool cannot be found in pkgs";
    }
    {
      name = "a program of something that is not a package";
      expr = lib.getExe' "tool" "tool";
      message = "lib.meta.getExe': The first argument is of type string, but it should be a derivation instead.";
    }
  ];
}

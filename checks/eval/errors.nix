# What the module system refuses, and in which words.
{ lib }:
let
  inherit (lib) mkOption types;
  config =
    modules:
    (lib.evalModules {
      modules = map (
        m:
        {
          _file = "file.nix";
        }
        // m
      ) modules;
    }).config;
  # One option `a.b` of a type, and its definitions, each from a file of its own.
  one =
    type: defs:
    (lib.evalModules {
      modules =
        [
          {
            _file = "declared.nix";
            options.a.b = mkOption { inherit type; };
          }
        ]
        ++ lib.imap1 (n: b: {
          _file = "defined-${toString n}.nix";
          config.a = { inherit b; };
        }) defs;
    }).config.a.b;
  json =
    types.nullOr (
      types.oneOf [
        types.bool
        types.int
        types.float
        types.str
        (types.attrsOf json)
        (types.listOf json)
      ]
    )
    // {
      description = "JSON value";
    };
  settings = types.submodule {
    freeformType = types.attrsOf json;
    options.port = mkOption { type = types.port; };
  };
  served =
    definition:
    config [
      {
        options.services.serve = {
          enable = lib.mkEnableOption "it";
          model = mkOption { type = types.str; };
          models = mkOption { type = types.listOf types.str; };
          instances = mkOption {
            type = types.attrsOf (types.submodule { options.port = mkOption { type = types.port; }; });
            default = { };
          };
        };
      }
      definition
    ];
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
      name = "a string where a number is wanted";
      expr = one types.int [ "8000" ];
      message = "A definition for option `a.b' is not of type `signed integer'. Definition values:\n- In `defined-1.nix': \"8000\"";
    }
    {
      name = "of several definitions only the wrong ones are shown";
      expr = one types.str [
        "fine"
        1
        null
      ];
      message = "is not of type `string'. Definition values:\n- In `defined-3.nix': null\n- In `defined-2.nix': 1";
    }
    {
      name = "a port out of range";
      expr = one types.port [ 65536 ];
      message = "A definition for option `a.b' is not of type `16 bit unsigned integer; between 0 and 65535 (both inclusive)'. Definition values:\n- In `defined-1.nix': 65536";
    }
    {
      name = "a number that must be positive";
      expr = one types.ints.positive [ 0 ];
      message = "is not of type `positive integer, meaning >0'";
    }
    {
      name = "not one of the choices";
      expr = one (types.enum [
        "docker"
        "podman"
      ]) [ "lxc" ];
      message = "is not of type `one of \"docker\", \"podman\"'. Definition values:\n- In `defined-1.nix': \"lxc\"";
    }
    {
      name = "not matching the pattern";
      expr = one (types.strMatching "[a-z]+") [ "A" ];
      message = "is not of type `string matching the pattern [a-z]+'";
    }
    {
      name = "an item of a list";
      expr = one (types.listOf types.str) [
        [ "a" ]
        [
          "b"
          2
        ]
      ];
      message = "A definition for option `a.b.\"[definition 1-entry 2]\"' is not of type `string'. Definition values:\n- In `defined-2.nix': 2";
    }
    {
      name = "not a list at all";
      expr = one (types.listOf types.str) [ "a" ];
      message = "A definition for option `a.b' is not of type `list of string'. TypeError: Definition values:\n- In `defined-1.nix': \"a\"";
    }
    {
      name = "an empty list where one item is the least";
      expr = one (types.nonEmptyListOf types.str) [ [ ] ];
      message = "is not of type `non-empty (list of string)'. TypeError: Definition values:\n- In `defined-1.nix': [ ]";
    }
    {
      name = "an attribute of a set";
      expr = one (types.attrsOf types.bool) [ { "c.d" = "yes"; } ];
      message = "A definition for option `a.b.\"c.d\"' is not of type `boolean'";
    }
    {
      name = "not a set at all";
      expr = one (types.attrsOf types.bool) [ [ ] ];
      message = "is not of type `attribute set of boolean'. TypeError: Definition values:";
    }
    {
      name = "neither of two types";
      expr = one (types.either types.int types.str) [ true ];
      message = "TypeError: The option `a.b` is neither a value of type `signed integer` nor `string`, Definition values:\n- In `defined-1.nix': true";
    }
    {
      name = "two types at once behind null";
      expr = one (types.nullOr (types.either types.int types.str)) [
        1
        "x"
      ];
      message = "The option `a.b' is defined multiple times while it's expected to be unique.";
    }
    {
      name = "null and not null";
      expr = one (types.nullOr types.int) [
        1
        null
      ];
      message = "The option `a.b` is defined both null and not null, in `defined-2.nix' and `defined-1.nix'.";
    }
    {
      name = "neither null nor the type";
      expr = one (types.nullOr types.int) [ "1" ];
      message = "is not of type `null or signed integer'";
    }
    {
      name = "not convertible";
      expr = one (types.coercedTo types.int toString types.str) [ true ];
      message = "is not of type `string or signed integer convertible to it'. TypeError: Definition values:";
    }
    {
      name = "not a submodule";
      expr = one (types.submodule { }) [ 1 ];
      message = "is not of type `submodule'. TypeError: Definition values:";
    }
    {
      name = "a wrong value in an option of a submodule";
      expr = one settings [ { port = "80"; } ];
      message = "A definition for option `a.b.port' is not of type `16 bit unsigned integer; between 0 and 65535 (both inclusive)'. Definition values:\n- In `defined-1.nix': \"80\"";
    }
    {
      name = "a wrong value among free-form settings";
      expr = one settings [ { flag.deep = x: x; } ];
      message = "A definition for option `a.b.flag.deep' is not of type `JSON value'";
    }
    {
      name = "free-form settings that are not a set";
      expr = one settings [ 3 ];
      message = "is not of type `open submodule of attribute set of (JSON value)'";
    }
    {
      name = "definitions that contradict each other";
      expr = one types.str [
        "one"
        "two"
      ];
      message = "The option `a.b' has conflicting definition values:\n- In `defined-2.nix': \"two\"\n- In `defined-1.nix': \"one\"\nUse `lib.mkForce value` or `lib.mkDefault value` to change the priority on any of these definitions.";
    }
    {
      name = "contradictions inside free-form settings";
      expr = one settings [
        { flag = 1; }
        { flag = 2; }
      ];
      message = "The option `a.b.flag' has conflicting definition values:";
    }
    {
      name = "two packages";
      expr = one types.package [
        {
          type = "derivation";
          name = "one";
        }
        {
          type = "derivation";
          name = "two";
        }
      ];
      message = "The option `a.b' is defined multiple times while it's expected to be unique.\n\nDefinition values:\n- In `defined-2.nix': <derivation two>\n- In `defined-1.nix': <derivation one>";
    }
    {
      name = "something else than a package";
      expr = one types.package [ "tool" ];
      message = "is not of type `package'";
    }
    {
      name = "a relative path";
      expr = one types.path [ "var/cache" ];
      message = "is not of type `absolute path'";
    }
    {
      name = "kinds that anything cannot merge";
      expr = one types.anything [
        { c = 1; }
        { c = "1"; }
      ];
      message = "The option `a.b.c' has conflicting option types in `defined-2.nix' and `defined-1.nix'";
    }
    {
      name = "kinds that an option without a type cannot merge";
      expr = one types.unspecified [
        1
        "1"
      ];
      message = "Cannot merge definitions of `a.b'. Definition values:";
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
      name = "a condition that is not a boolean";
      expr = one types.str [ (lib.mkIf "yes" "x") ];
      message = "‘mkIf’ called with a non-Boolean condition";
    }
    {
      name = "an option declared twice";
      expr =
        (lib.evalModules {
          modules = map
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
            { imports = [ { options = { }; x = 1; } ]; }
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
      name = "a module of another class";
      expr =
        (lib.evalModules {
          class = "nixos";
          modules = [
            {
              _class = "homeManager";
              _file = "home.nix";
            }
          ];
        }).config;
      message = "The module `home.nix` (class: \"homeManager\") cannot be imported into a module evaluation that expects class \"nixos\".";
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
    {
      name = "values are shown as people would write them";
      expr = one types.int [
        {
          float = 1.5;
          bool = true;
          nothing = null;
          path = /etc/hosts;
          "quoted name" = "a \"b\" \${c} \\ d";
          "if" = { };
        }
      ];
      message = "Definition values:\n- In `defined-1.nix':\n    {\n      bool = true;\n      float = 1.5;\n      \"if\" = { };\n      nothing = null;\n    ...";
    }
    {
      name = "functions, nested values and lines in messages";
      expr = one types.int [
        [ { inherit (lib) id; } ]
        [ ({ a, b ? 1 }: a) ]
        "one\n  two ''three'' \${four}\n"
        "five\nsix"
        [ [ { } ] ]
        [ { __functor = _: x: x; } ]
      ];
      message = "- In `defined-3.nix':\n    ''\n      one\n        two '''three''' ''\${four}\n    ''";
    }
    {
      name = "values that go deeper than a message does";
      expr = one types.int [ { a.b.c.d.e.f.g.h.i.j.k.l = 1; } ];
      message = "Definition values:\n- In `defined-1.nix':";
    }
    {
      name = "deep values on one short line";
      expr = one types.int [ [ [ [ [ [ [ [ [ [ [ [ 1 ] ] ] ] ] ] ] ] ] ] ] ];
      message = "Definition values:";
    }
    {
      name = "values that themselves cannot be evaluated";
      expr = one types.int [ { a = throw "no"; } ];
      message = "Definition values:\n- In `defined-1.nix'";
    }
  ];
}

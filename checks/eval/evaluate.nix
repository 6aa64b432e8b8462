# Short ways to evaluate modules, for the tables.
{ lib }:
let
  inherit (lib) mkOption types;
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

  # Modules without a file of their own are in file.nix: no row depends on where the project lies.
  inFile = module: if builtins.isAttrs module then { _file = "file.nix"; } // module else module;
in
{
  inherit json;
  config = modules: (lib.evalModules { modules = map inFile modules; }).config;
  options = modules: (lib.evalModules { modules = map inFile modules; }).options;

  # The value of one option `a.b` of a type, its definitions in files of their own.
  one =
    type: defs:
    (lib.evalModules {
      modules = [
        {
          _file = "declared.nix";
          options.a.b = mkOption { inherit type; };
        }
      ]
      ++ lib.imap0 (n: b: {
        _file = "defined-${toString (n + 1)}.nix";
        config.a = { inherit b; };
      }) defs;
    }).config.a.b;

  # Settings as a service has them.
  settings = types.submodule {
    freeformType = types.attrsOf json;
    options.port = mkOption { type = types.port; };
  };

  # A service, and one definition for it.
  served =
    definition:
    (lib.evalModules {
      modules = [
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
        (inFile definition)
      ];
    }).config;
}

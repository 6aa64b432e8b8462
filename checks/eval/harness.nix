# Evaluates modules as NixOS would, without NixOS: the options that our modules merely mention are declared here, packages
# are placeholders, and `utils` has the one function that we call. That this is faithful is shown by ../against-nixos.
#
#   harness { inherit lib; } [ module ... ] -> { config, failing, warnings, units.<unit> = text; }
{ lib }:
let
  inherit (lib) mkOption types;

  fakeHash = "00000000000000000000000000000000";
  package = name: rec {
    type = "derivation";
    inherit name;
    pname = name;
    outPath = "/nix/store/${fakeHash}-${name}";
    drvPath = "${outPath}.drv";
    outputName = "out";
    outputs = [ "out" ];
    meta.mainProgram = name;
  };
  pkgs =
    lib.genAttrs [
      "coreutils"
      "docker-client"
      "findutils"
      "glibcLocales"
      "gnugrep"
      "gnused"
      "systemd"
      "tzdata"
    ] package
    // {
      runtimeShell = "/bin/sh";
    };

  # nixos/lib/utils.nix: an argument is a JSON string (systemd's quoting is a superset) without specifiers and variables.
  utils.escapeSystemdExecArgs = lib.concatMapStringsSep " " (
    argument: lib.replaceStrings [ "%" "$" ] [ "%%" "$$" ] (builtins.toJSON (toString argument))
  );

  unitText = import ./unit-text.nix { inherit lib pkgs; };

  words = mkOption {
    type = types.listOf types.str;
    default = [ ];
  };
  section = mkOption {
    type = types.attrsOf (
      types.oneOf [
        types.bool
        types.int
        types.str
        (types.listOf types.str)
      ]
    );
    default = { };
  };
  service = types.submodule {
    options = {
      description = mkOption {
        type = types.str;
        default = "";
      };
      wantedBy = words;
      after = words;
      requires = words;
      restartIfChanged = mkOption {
        type = types.bool;
        default = true;
      };
      startLimitIntervalSec = mkOption { type = types.int; };
      startLimitBurst = mkOption { type = types.int; };
      unitConfig = section;
      serviceConfig = section;
    };
  };

  stubs = {
    options = {
      assertions = mkOption {
        type = types.listOf types.unspecified;
        default = [ ];
      };
      warnings = words;
      hardware.tenstorrent.enable = lib.mkEnableOption "the Tenstorrent driver and tools";
      virtualisation.docker.enable = lib.mkEnableOption "Docker";
      systemd.services = mkOption {
        type = types.attrsOf service;
        default = { };
      };
      systemd.tmpfiles.rules = words;
    };
  };
in
modules:
let
  evaluation = lib.evalModules {
    modules = [ stubs ] ++ modules;
    specialArgs = { inherit pkgs utils; };
  };
  inherit (evaluation) config;
in
{
  inherit config;
  failing = map (item: item.message) (lib.filter (item: !item.assertion) config.assertions);
  inherit (config) warnings;
  # { <unit>.service = text; }
  units = lib.mapAttrs' (
    name: definition: lib.nameValuePair "${name}.service" (unitText definition)
  ) config.systemd.services;
}

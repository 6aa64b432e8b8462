# The text that NixOS makes of a service, for the parts of a service that our modules use (nixos/lib/systemd-lib.nix).
{ lib, pkgs }:
let
  text =
    value:
    if value == true then
      "true"
    else if value == false then
      "false"
    else
      toString value;
  section =
    entries:
    lib.concatStrings (
      lib.concatLists (
        lib.mapAttrsToList (
          name: value: map (item: "${name}=${text item}\n") (if lib.isList value then value else [ value ])
        ) entries
      )
    );

  # What NixOS gives every service.
  path = map (name: pkgs.${name}) [
    "coreutils"
    "findutils"
    "gnugrep"
    "gnused"
    "systemd"
  ];
  environment = {
    LOCALE_ARCHIVE = "${pkgs.glibcLocales}/lib/locale/locale-archive";
    PATH =
      lib.concatMapStringsSep ":" (package: "${package}/bin") path
      + ":"
      + lib.concatMapStringsSep ":" (package: "${package}/sbin") path;
    TZDIR = "${pkgs.tzdata}/share/zoneinfo";
  };
in
service:
''
  [Unit]
  ${section (
    {
      After = toString service.after;
      Description = service.description;
      Requires = toString service.requires;
      StartLimitBurst = toString service.startLimitBurst;
      StartLimitIntervalSec = toString service.startLimitIntervalSec;
    }
    // service.unitConfig
  )}
  [Service]
''
+ lib.concatStrings (
  lib.mapAttrsToList (name: value: "Environment=${builtins.toJSON "${name}=${value}"}\n") environment
)
+ lib.optionalString (!service.restartIfChanged) "X-RestartIfChanged=false\n"
+ section service.serviceConfig
+ "\n[Install]\nWantedBy=${lib.concatStringsSep " " service.wantedBy}\n"

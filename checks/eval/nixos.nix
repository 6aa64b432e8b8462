# All modules of a real NixOS over a package set in which every package is only a name, so that nothing is built or
# fetched: the text of units, the assertions and the warnings need no more. Used by ../against-nixos.
#
#   nixos    nixos/ of a nixpkgs tree
#   lib      the lib of a tree of about the same age
#   modules  what to add
{
  nixos,
  lib,
  modules,
}:
let
  named =
    name:
    let
      path = "/nix/store/00000000000000000000000000000000-${name}";
    in
    {
      type = "derivation";
      inherit name;
      pname = name;
      version = "1";
      outPath = path;
      drvPath = "${path}.drv";
      outputName = "out";
      outputs = [ "out" ];
      out = named name;
      meta.mainProgram = name;
      override = _: named name;
      overrideAttrs = _: named name;
    };
  writer = name: _: named name;
  platform = lib.systems.elaborate "x86_64-linux";
  linux = {
    kernel = named "linux" // {
      version = "6.12";
    };
    tt-kmd = named "tt-kmd";
    extend = _: linux;
  };
  # What an evaluation of the modules asks for. When it says "attribute 'x' missing", x belongs here.
  packages = [
    "bashInteractive"
    "coreutils"
    "dhcpcd"
    "docker"
    "docker-client"
    "findutils"
    "fish"
    "glibcLocales"
    "gnugrep"
    "gnused"
    "kexec-tools"
    "kmod"
    "logrotate"
    "makeInitrdNGTool"
    "nix"
    "nsncd"
    "openresolv"
    "shadow"
    "sudo"
    "systemd"
    "tt-smi"
    "tt-system-tools"
    "tzdata"
    "util-linux"
    "xonsh"
    "zsh"
  ];
  formats = [
    "hocon"
    "ini"
    "json"
    "keyValue"
    "toml"
    "xml"
    "yaml"
  ];
  pkgs = lib.genAttrs packages named // {
    _type = "pkgs";
    inherit lib;
    config = { };
    overlays = [ ];
    appendOverlays = _: pkgs;
    __splicedPackages = pkgs;
    pkgsStatic.callPackage = _: _: named "called";
    stdenv = {
      hostPlatform = platform;
      buildPlatform = platform;
      isx86_64 = true;
      cc.bintools.dynamicLinker = "/lib/ld.so";
    };
    linuxPackages = linux;
    formats = lib.genAttrs formats (
      _: _: {
        type = lib.types.anything;
        generate = writer;
      }
    );
    runtimeShell = "/bin/sh";
    writeScript = writer;
    writeScriptBin = writer;
    writeShellScript = writer;
    writeShellScriptBin = writer;
    writeText = writer;
    writeTextFile = arguments: named arguments.name;
  };
in
import (nixos + "/lib/eval-config.nix") {
  inherit lib;
  system = null;
  modules = [
    {
      nixpkgs.pkgs = pkgs;
      nixpkgs.hostPlatform = "x86_64-linux";
      system.stateVersion = "25.05";
      # Keeps away what builds packages of its own.
      boot.isContainer = true;
      documentation.enable = false;
      environment.stub-ld.enable = false;
    }
  ]
  # NixOS has the option since 25.11.
  ++ lib.optional (!(builtins.pathExists (nixos + "/modules/hardware/tenstorrent.nix"))) {
    options.hardware.tenstorrent.enable = lib.mkEnableOption "the Tenstorrent driver and tools";
  }
  ++ modules;
}

# The package set of the stand-in: exactly the attributes that docs/reference/nixpkgs-surface.md lists.
{ lib, system }:
let
  inherit (import ./build.nix { inherit system; }) mkDerivation runCommand hostTool;

  pkgs = {
    inherit lib runCommand;
    callPackage =
      file: arguments:
      let
        function = import file;
      in
      function (builtins.intersectAttrs (builtins.functionArgs function) pkgs // arguments);
    runtimeShell = "/bin/bash";

    python3 = import ./python.nix { inherit lib system mkDerivation; };

    git = hostTool { name = "git"; };
    shellcheck = hostTool { name = "shellcheck"; };
    ruff = pkgs.python3.withPackages (ps: [ ps.ruff ]);

    # No distribution, nor a registry of packages that this set may use, has nixfmt: its check says so.
    nixfmt = null;
    nixfmt-tree = runCommand "nixfmt-tree" { meta.mainProgram = "treefmt"; } ''
      mkdir -p $out/bin
      printf '#!/bin/sh\necho "nixfmt is not in the stand-in for nixpkgs: run nix fmt where nixpkgs can be had" >&2\nexit 1\n' \
        >$out/bin/treefmt
      chmod +x $out/bin/treefmt
    '';

    mkShellNoCC =
      {
        packages ? [ ],
        shellHook ? "",
      }:
      mkDerivation {
        name = "nix-shell";
        nativeBuildInputs = packages;
        inherit shellHook;
        buildCommand = "mkdir $out";
      };
  };
in
pkgs

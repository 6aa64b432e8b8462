# The package set of the stand-in: exactly the attributes that docs/reference/nixpkgs-surface.md lists.
{ lib, system }:
let
  inherit (import ./build.nix { inherit system; }) mkDerivation runCommand hostTool;

  # A program that says that it is not here, and that nothing was done.
  absent =
    program: code:
    runCommand program { meta.mainProgram = program; } ''
      mkdir -p $out/bin
      cat >$out/bin/${program} <<'EOF'
      #!/bin/sh
      echo "skipped: ${program} is not in the stand-in for nixpkgs; nothing was formatted or checked" >&2
      exit ${toString code}
      EOF
      chmod +x $out/bin/${program}
    '';

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
    dockerTools = import ./docker.nix { inherit system mkDerivation; };

    bashInteractive = hostTool { name = "bash"; };
    git = hostTool { name = "git"; };
    nix = hostTool {
      name = "nix";
      program = "nix-instantiate";
      package = "nix-bin";
    };
    shellcheck = hostTool { name = "shellcheck"; };
    ruff = pkgs.python3.withPackages (ps: [ ps.ruff ]);

    # Neither Debian nor a registry of Python packages has a formatter for Nix.
    nixfmt = absent "nixfmt" 0;
    nixfmt-tree = absent "treefmt" 1;

    mkShellNoCC =
      {
        packages ? [ ],
        shellHook ? "",
      }:
      mkDerivation {
        name = "nix-shell";
        # `nix develop` runs a script of its own in place of this one, which writes the environment to these.
        outputs = [ "out" ];
        nativeBuildInputs = packages;
        inherit shellHook;
        buildCommand = "mkdir $out";
      };
  };
in
pkgs

# The Nix files, as the formatter of RFC 166 writes them.
{ lib, pkgs, ... }:
pkgs.runCommand "nix-format" { nativeBuildInputs = [ pkgs.nixfmt ]; } ''
  find ${
    lib.fileset.toSource {
      root = ../.;
      fileset = lib.fileset.fileFilter (file: file.hasExt "nix") ../.;
    }
  } -name '*.nix' -print0 | xargs -0 nixfmt --check
  touch $out
''

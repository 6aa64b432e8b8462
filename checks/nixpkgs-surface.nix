# docs/reference/nixpkgs-surface.md lists what the project uses of nixpkgs, no less and no more; the stand-in has just that.
{ lib, pkgs, ... }:
let
  inherit (import ./surface/names.nix) used exported documented;
  without = names: lib.filter (name: !lib.elem name names);
  listed = documented.lib ++ documented.pkgs;
  # The locked wheels hold what the libraries need in turn, too.
  isLibrary = lib.hasPrefix "pkgs.python3.pkgs.";

  complaints = lib.concatMap ({ what, names }: map (name: "${name} ${what}") names) [
    {
      what = "is used, but not in docs/reference/nixpkgs-surface.md";
      names = without (listed ++ documented.named) used;
    }
    {
      what = "is in docs/reference/nixpkgs-surface.md, but nothing uses it";
      names = without used (listed ++ documented.named);
    }
    {
      what = "is in docs/reference/nixpkgs-surface.md, but the stand-in does not have it";
      names = without (exported.lib ++ exported.pkgs) listed;
    }
    {
      what = "is in the stand-in, but not in docs/reference/nixpkgs-surface.md";
      names = lib.filter (name: !isLibrary name) (without listed (exported.lib ++ exported.pkgs));
    }
  ];
in
pkgs.runCommand "nixpkgs-surface"
  {
    report = lib.concatStringsSep "\n" complaints;
  }
  ''
    if [ -n "$report" ]; then
      printf '%s\n' "$report" >&2
      exit 1
    fi
    touch $out
  ''

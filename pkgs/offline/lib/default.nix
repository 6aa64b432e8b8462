# The part of nixpkgs' lib that this project uses, with the same results and the same error texts.
#
# The rooms below see each other through one flat set; what leaves it is the list at the end, which
# docs/reference/nixpkgs-surface.md describes and checks/nixpkgs-surface.nix compares.
let
  rooms = [
    ./trivial.nix
    ./lists.nix
    ./attrsets.nix
    ./strings.nix
    ./distance.nix
    ./pretty.nix
    ./options.nix
    ./merging.nix
    ./meta.nix
    ./modules/properties.nix
    ./modules/load.nix
    ./modules/value.nix
    ./modules/tree.nix
    ./modules/eval.nix
    ./types/base.nix
  ];
  kinds = [
    ./types/scalars.nix
    ./types/containers.nix
    ./types/unions.nix
  ];
  open = files: builtins.foldl' (all: file: all // import file internal) { } files;

  internal = open rooms // {
    types = open kinds // {
      inherit (internal) addCheck mkOptionType;
    };
    inherit public;
  };
  public = internal;
in
public

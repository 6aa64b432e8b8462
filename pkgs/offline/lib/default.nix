# The part of nixpkgs' lib that this project uses, with the same results and the same error texts.
#
# The rooms below see each other through one flat set. What leaves it is `public`: docs/reference/nixpkgs-surface.md lists
# it, checks/nixpkgs-surface.nix compares the list with this one and the uses, checks/against-nixpkgs-lib with nixpkgs.
let
  open = builtins.foldl' (all: room: all // import room internal) { };

  internal =
    open [
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
    ]
    // {
      inherit public;
      types = open [
        ./types/scalars.nix
        ./types/containers.nix
        ./types/unions.nix
      ];
    };

  public = {
    inherit (internal)
      any
      attrNames
      attrValues
      concatLists
      concatMap
      concatMapStringsSep
      concatStrings
      concatStringsSep
      elem
      evalModules
      filter
      filterAttrs
      foldl'
      genAttrs
      genList
      getExe'
      hasInfix
      hasPrefix
      hasSuffix
      imap0
      importTOML
      isList
      length
      listToAttrs
      literalExpression
      mapAttrs
      mapAttrs'
      mapAttrsToList
      mkDefault
      mkEnableOption
      mkForce
      mkIf
      mkMerge
      mkOption
      mkPackageOption
      nameValuePair
      optional
      optionalAttrs
      optionalString
      optionals
      range
      removeSuffix
      replaceStrings
      sort
      splitString
      stringLength
      substring
      toLower
      unique
      ;
    types = {
      inherit (internal.types)
        attrsOf
        bool
        float
        int
        ints
        listOf
        nonEmptyListOf
        nullOr
        oneOf
        port
        str
        submodule
        unspecified
        ;
    };
  };
in
public

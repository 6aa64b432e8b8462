# Three lists of names, such as "lib.types.str": what docs/reference/nixpkgs-surface.md lists, what the stand-in has, and what
# the project's Nix files use.
#
# How uses are found, and what that cannot see:
#   - `lib.a.b`, `pkgs.a`, `types.a`, `ps.a`, `python3.pkgs.a`, `dockerTools.a` and
#     `inherit (lib) a b;` by regular expression, comments left out; a name built at run time (`lib.${x}`) is not seen, a
#     name in a text counts
#   - what a file of pkgs/ takes from callPackage: the arguments of its function
#   - `mkPackageOption pkgs "a"`
#   - files of `ignored` are not read, `promised` counts as used
let
  inherit (builtins)
    attrNames
    concatMap
    elem
    elemAt
    filter
    foldl'
    functionArgs
    head
    isList
    isString
    length
    match
    readDir
    readFile
    split
    tail
    ;
  root = ../..;

  # Tables about the stand-in itself, and what runs with a real nixpkgs only.
  ignored = [
    "checks/eval/evaluate[.]nix"
    "checks/eval/nixos[.]nix"
    "checks/eval/tables/.*"
    "checks/surface/.*"
  ];
  isIgnored = path: builtins.any (pattern: match pattern path != null) ignored;

  # Used by nobody here, but part of what an evaluation of modules is, and taken by `nix develop` itself.
  promised = [
    "lib.mkMerge"
    "pkgs.bashInteractive"
  ];

  # Sets of names rather than values: a use is cut after the first name below the innermost of them.
  spaces = [
    "lib"
    "lib.fileset"
    "lib.licenses"
    "lib.types"
    "lib.types.ints"
    "pkgs"
    "pkgs.dockerTools"
    "pkgs.python3"
    "pkgs.python3.pkgs"
  ];

  # Those that are nothing themselves.
  emptySpaces = filter (name: name != "pkgs.python3") spaces;

  dotted = builtins.concatStringsSep ".";
  words = text: filter (word: isString word && word != "") (split "[[:space:].]+" text);
  unique =
    names:
    attrNames (
      builtins.listToAttrs (
        map (name: {
          inherit name;
          value = null;
        }) names
      )
    );
  # Groups of every match.
  matches = pattern: text: filter isList (split pattern text);

  cut =
    parts:
    let
      go =
        done: rest:
        if rest == [ ] || !elem (dotted done) spaces then
          dotted done
        else
          go (done ++ [ (head rest) ]) (tail rest);
    in
    go [ (head parts) ] (tail parts);

  # How files call what is `lib` or `pkgs` of another name.
  full =
    name:
    let
      parts = words name;
      first = head parts;
    in
    {
      types = [ "lib" ] ++ parts;
      dockerTools = [ "pkgs" ] ++ parts;
      python3 = [ "pkgs" ] ++ parts;
      ps = [
        "pkgs"
        "python3"
        "pkgs"
      ]
      ++ tail parts;
    }
    .${first} or parts;

  files =
    folder:
    concatMap (
      name:
      let
        kind = (readDir (root + "/${folder}")).${name};
        path = if folder == "" then name else "${folder}/${name}";
      in
      if kind == "directory" then
        files path
      else if kind == "regular" && match ".*[.]nix" name != null && !isIgnored path then
        [ path ]
      else
        [ ]
    ) (attrNames (readDir (root + "/${folder}")));
  # What callPackage calls.
  packageFiles = filter (path: match "pkgs/[^/]*[.]nix" path != null && path != "pkgs/lib.nix") (
    files "pkgs"
  );
  sources = [
    "flake.nix"
  ]
  ++ filter (path: match "pkgs/offline/.*" path == null) (files "pkgs")
  ++ files "modules"
  ++ files "checks";

  usesIn =
    path:
    let
      lines = filter isString (split "\n" (readFile (root + "/${path}")));
      text = builtins.concatStringsSep "\n" (filter (line: match "[[:space:]]*#.*" line == null) lines);
    in
    map (groups: cut (full (elemAt groups 1))) (
      matches "(^|[^a-zA-Z0-9_'./-])((lib|types|pkgs|ps|python3|dockerTools)[.][a-zA-Z_][a-zA-Z0-9_'.-]*)" text
    )
    ++ concatMap (groups: map (name: cut (words (head groups) ++ [ name ])) (words (elemAt groups 1))) (
      matches "inherit[[:space:]]*[(](lib[a-zA-Z.]*)[)]([^;]*);" text
    )
    ++ map (groups: "pkgs.${head groups}") (matches "mkPackageOption pkgs \"([^\"]*)\"" text);

  usesOfPackage =
    path: map (name: "pkgs.${name}") (attrNames (functionArgs (import (root + "/${path}"))));

  # Names of a set, entering those in `spaces`; of a package that is one of them, without what any derivation has.
  ofDerivation =
    set:
    attrNames (set.drvAttrs or { })
    ++ [
      "all"
      "drvAttrs"
      "drvPath"
      "meta"
      "out"
      "outPath"
      "outputName"
      "passthru"
      "type"
    ];
  namesIn =
    prefix: set:
    if !elem prefix spaces then
      [ prefix ]
    else if set.type or null == "derivation" then
      [ prefix ] ++ below prefix (removeAttrs set (ofDerivation set))
    else
      below prefix set;
  below = prefix: set: concatMap (name: namesIn "${prefix}.${name}" set.${name}) (attrNames set);

  standIn = (import (root + "/pkgs/offline/flake.nix")).outputs { self = standIn; };

  # Rows of the tables under the given heading: | `name` | ...
  documentedUnder =
    heading:
    let
      text = readFile (root + "/docs/reference/nixpkgs-surface.md");
      parts = filter isString (split "\n## " ("\n" + text));
      section = filter (part: head (filter isString (split "\n" part)) == heading) parts;
    in
    map head (matches "\n[|] `([^`]*)` " (head section));
in
{
  used = unique (
    filter (name: !elem name emptySpaces) (
      promised ++ concatMap usesIn sources ++ concatMap usesOfPackage packageFiles
    )
  );
  exported = {
    lib = namesIn "lib" standIn.lib;
    pkgs = namesIn "pkgs" standIn.legacyPackages.x86_64-linux;
  };
  documented = {
    lib = documentedUnder "lib";
    pkgs = documentedUnder "pkgs";
    named = documentedUnder "Packages that modules name";
  };
}

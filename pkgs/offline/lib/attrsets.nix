# Attribute sets.
lib:
let
  inherit (builtins)
    attrNames
    filter
    foldl'
    head
    isAttrs
    length
    listToAttrs
    mapAttrs
    removeAttrs
    tail
    zipAttrsWith
    ;
in
{
  inherit (builtins)
    attrNames
    attrValues
    catAttrs
    genericClosure
    getAttr
    hasAttr
    intersectAttrs
    listToAttrs
    mapAttrs
    removeAttrs
    zipAttrsWith
    ;

  nameValuePair = name: value: { inherit name value; };
  mapAttrsToList = f: set: map (name: f name set.${name}) (attrNames set);
  attrsToList = lib.mapAttrsToList lib.nameValuePair;
  mapAttrs' = f: set: listToAttrs (lib.mapAttrsToList f set);
  genAttrs = names: f: listToAttrs (map (name: lib.nameValuePair name (f name)) names);
  filterAttrs = pred: set: removeAttrs set (filter (name: !pred name set.${name}) (attrNames set));
  optionalAttrs = condition: set: if condition then set else { };
  getAttrs = names: set: lib.genAttrs names (name: set.${name});
  mergeAttrsList = foldl' (a: b: a // b) { };
  concatMapAttrs = f: set: lib.mergeAttrsList (lib.mapAttrsToList f set);
  zipAttrs = zipAttrsWith (_: values: values);
  recurseIntoAttrs = set: set // { recurseForDerivations = true; };

  attrByPath =
    path: default: set:
    if path == [ ] then
      set
    else if set ? ${head path} then
      lib.attrByPath (tail path) default set.${head path}
    else
      default;
  hasAttrByPath =
    path: set: path == [ ] || (set ? ${head path} && lib.hasAttrByPath (tail path) set.${head path});
  setAttrByPath = path: value: lib.foldr (name: inner: { ${name} = inner; }) value path;
  getAttrFromPath =
    path: lib.attrByPath path (throw ("cannot find attribute '" + lib.concatStringsSep "." path + "'"));

  # The right side wins; two sets at the same place are merged in turn.
  recursiveUpdate =
    left: right:
    zipAttrsWith (
      _: sides:
      if length sides == 2 && isAttrs (head sides) && isAttrs (lib.last sides) then
        lib.recursiveUpdate (head sides) (lib.last sides)
      else
        lib.last sides
    ) [
      left
      right
    ];

  # Every leaf under the sets for which `into` holds, with its path.
  mapLeaves =
    into: f:
    let
      go = path: mapAttrs (name: value: visit (path ++ [ name ]) value);
      visit = path: value: if isAttrs value && into value then go path value else f path value;
    in
    go [ ];

  isDerivation = value: value.type or null == "derivation";

  # A store path that is not a derivation yet, dressed as one.
  toDerivation =
    path:
    let
      outPath = builtins.storePath path;
      self = {
        type = "derivation";
        name = builtins.unsafeDiscardStringContext (builtins.substring 33 (-1) (baseNameOf outPath));
        inherit outPath;
        outputs = [ "out" ];
        out = self;
        outputName = "out";
      };
    in
    self;
}

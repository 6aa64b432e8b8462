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
    listToAttrs
    mapAttrs
    ;

  nameValuePair = name: value: { inherit name value; };
  mapAttrsToList = f: set: map (name: f name set.${name}) (attrNames set);
  mapAttrs' = f: set: listToAttrs (lib.mapAttrsToList f set);
  genAttrs = names: f: listToAttrs (map (name: lib.nameValuePair name (f name)) names);
  filterAttrs = pred: set: removeAttrs set (filter (name: !pred name set.${name}) (attrNames set));
  optionalAttrs = condition: set: if condition then set else { };
  mergeAttrsList = foldl' (a: b: a // b) { };
  zipAttrs = zipAttrsWith (_: values: values);

  attrByPath =
    path: default: set:
    if path == [ ] then
      set
    else if set ? ${head path} then
      lib.attrByPath (tail path) default set.${head path}
    else
      default;
  setAttrByPath =
    path: value: if path == [ ] then value else { ${head path} = lib.setAttrByPath (tail path) value; };

  # The right side wins; two sets at the same place are merged in turn.
  recursiveUpdate =
    left: right:
    zipAttrsWith
      (
        _: sides:
        if length sides == 2 && isAttrs (head sides) && isAttrs (lib.last sides) then
          lib.recursiveUpdate (head sides) (lib.last sides)
        else
          lib.last sides
      )
      [
        left
        right
      ];

  # Every leaf under the sets for which `into` holds.
  mapLeaves =
    into: f:
    mapAttrs (_: value: if isAttrs value && into value then lib.mapLeaves into f value else f value);

  isDerivation = value: value.type or null == "derivation";
}

# Types that accept values of several types.
lib:
let
  inherit (lib)
    mkOptionType
    phrase
    relocateInner
    ;

  nullOr =
    element:
    mkOptionType {
      name = "nullOr";
      description = "null or ${
        phrase [
          "noun"
          "conjunction"
        ] element
      }";
      descriptionClass = "conjunction";
      check = value: value == null || element.check value;
      merge =
        loc: defs:
        let
          sides = lib.partition (def: def.value == null) defs;
        in
        if sides.right == [ ] then
          element.merge loc defs
        else if sides.wrong == [ ] then
          null
        else
          throw "The option `${lib.showOption loc}` is defined both null and not null, in ${
            lib.showFiles (map (def: def.file) defs)
          }.";
      emptyValue.value = null;
      relocate = relocateInner element nullOr;
    };

  either =
    left: right:
    mkOptionType {
      name = "either";
      description =
        if left.descriptionClass == "nonRestrictiveClause" then
          "${left.description}, or ${
            phrase [
              "noun"
              "conjunction"
            ] right
          }"
        else
          "${
            phrase [
              "noun"
              "conjunction"
            ] left
          } or ${
            phrase [
              "noun"
              "conjunction"
              "composite"
            ] right
          }";
      descriptionClass = "conjunction";
      check = value: left.check value || right.check value;
      # All definitions must be of the same one.
      judge =
        loc: defs:
        let
          first = lib.judge left loc defs;
          second = lib.judge right loc defs;
          error = "The option `${lib.showOption loc}` is neither a value of type `${left.description}` nor `${right.description}`, Definition values: ${lib.showDefs defs}";
        in
        if first.error == null then
          first
        else if second.error == null then
          second
        else
          {
            inherit error;
            value = lib.warn "One or more definitions did not pass the type-check of the 'either' type.\n${error}" (
              lib.mergeOneOption loc defs
            );
          };
    };
in
{
  inherit nullOr;
  oneOf = types: lib.foldl' either (lib.head types) (lib.tail types);
}

# What every type is made of.
lib:
let
  # A type's phrase, in brackets where it could be misread inside another phrase.
  phrase =
    classes: type:
    if lib.elem (type.descriptionClass or null) classes then
      type.description
    else
      "(${type.description})";
in
{
  inherit phrase;

  # name              for people who ask for the type
  # description       a phrase for messages; descriptionClass says how it combines with others
  # check             whether a definition fits, looking no deeper than it must
  # merge             loc -> definitions -> value
  # judge             loc -> definitions -> { error; value; }, for types that must look at the definitions together
  # emptyValue.value  the value without a definition, if there is one
  # relocate          file -> the same type, its submodules' modules known to be declared in that file
  mkOptionType =
    {
      name,
      description ? name,
      descriptionClass ? null,
      check ? (_: true),
      merge ? lib.mergeDefaultOption,
      judge ? null,
      emptyValue ? { },
      relocate ? null,
    }:
    {
      _type = "option-type";
      inherit
        name
        description
        descriptionClass
        check
        emptyValue
        relocate
        ;
      merge = if judge == null then merge else loc: defs: (judge loc defs).value;
    }
    // lib.optionalAttrs (judge != null) { inherit judge; };

  # An error text for a judging type, null when all definitions fit.
  misfit =
    check: defs:
    let
      shown = lib.refused check defs;
    in
    if shown == null then null else "Definition values: ${shown}";

  # A type around `inner` can be relocated when `inner` can.
  relocateInner =
    inner: rebuild: if inner.relocate == null then null else file: rebuild (inner.relocate file);

  addCheck =
    type: check:
    type
    // {
      check = value: type.check value && check value;
    }
    // lib.optionalAttrs (type ? judge) rec {
      judge =
        loc: defs:
        let
          verdict = type.judge loc defs;
        in
        verdict // { error = if verdict.error != null then verdict.error else lib.misfit check defs; };
      merge = loc: defs: (judge loc defs).value;
    };
}

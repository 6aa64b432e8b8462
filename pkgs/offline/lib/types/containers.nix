# Types made of other types: lists, sets, submodules.
lib:
let
  inherit (lib)
    misfit
    mkOptionType
    phrase
    relocateInner
    ;
  inside = phrase [
    "noun"
    "composite"
  ];

  # The definitions of each attribute, over all definitions of the set.
  byName =
    defs:
    lib.zipAttrs (
      map (
        def:
        lib.mapAttrs (_: value: {
          inherit (def) file;
          inherit value;
        }) def.value
      ) defs
    );

  # lazy: an attribute exists as soon as a definition names it, even if only under a false condition.
  attrsOf =
    lazy: element:
    let
      kind = lib.optionalString lazy "lazy ";
    in
    mkOptionType {
      name = if lazy then "lazyAttrsOf" else "attrsOf";
      description = "${kind}attribute set of ${inside element}";
      descriptionClass = "composite";
      check = lib.isAttrs;
      judge =
        loc: defs:
        let
          merged = lib.mapAttrs (name: lib.mergeDefinitions (loc ++ [ name ]) element) (byName defs);
          kept = if lazy then merged else lib.filterAttrs (_: attr: attr.isDefined) merged;
        in
        {
          error = misfit lib.isAttrs defs;
          value = lib.mapAttrs (_: attr: attr.value) kept;
        };
      emptyValue.value = { };
      relocate = relocateInner element (attrsOf lazy);
    };

  listOf =
    element:
    mkOptionType {
      name = "listOf";
      description = "list of ${inside element}";
      descriptionClass = "composite";
      check = lib.isList;
      judge =
        loc: defs:
        let
          entry =
            n: def: m: value:
            lib.mergeDefinitions (loc ++ [ "[definition ${toString n}-entry ${toString m}]" ]) element [
              {
                inherit (def) file;
                inherit value;
              }
            ];
          entries = lib.concatLists (lib.imap1 (n: def: lib.imap1 (entry n def) def.value) defs);
        in
        {
          error = misfit lib.isList defs;
          value = map (item: item.value) (lib.filter (item: item.isDefined) entries);
        };
      emptyValue.value = [ ];
      relocate = relocateInner element listOf;
    };

  # shorthand: a set as definition is all configuration, its attributes `options` and `imports` included.
  submoduleWith =
    args@{
      modules,
      shorthandOnlyDefinesConfig ? false,
      specialArgs ? { },
      class ? null,
      description ? null,
    }:
    let
      evaluate =
        prefix: extra:
        lib.evalModules {
          inherit prefix specialArgs class;
          modules = [ { _module.args.name = lib.mkOptionDefault "‹name›"; } ] ++ modules ++ extra;
        };
      bare = evaluate [ ] [ ];
      inherit (bare._module) freeformType;
      fits = value: lib.isAttrs value || lib.isFunction value || lib.types.path.check value;
      asModule =
        def:
        {
          _file = def.file;
        }
        // (
          if lib.isAttrs def.value && shorthandOnlyDefinesConfig then
            { config = def.value; }
          else
            { imports = [ def.value ]; }
        );
    in
    mkOptionType {
      name = "submodule";
      description =
        if description != null then
          description
        else if freeformType != null then
          "open submodule of ${inside freeformType}"
        else
          "submodule";
      check = fits;
      judge = loc: defs: {
        error = misfit fits defs;
        value = (evaluate loc ([ { _module.args.name = lib.last loc; } ] ++ map asModule defs)).config;
      };
      emptyValue.value = bare.config;
      relocate =
        file:
        submoduleWith (
          args
          // {
            modules = map (m: {
              _file = file;
              imports = [ m ];
            }) modules;
          }
        );
    };
in
{
  inherit listOf submoduleWith;
  attrsOf = attrsOf false;
  lazyAttrsOf = attrsOf true;
  nonEmptyListOf =
    element:
    lib.addCheck (listOf element) (list: list != [ ])
    // {
      description = "non-empty ${phrase [ "noun" ] (listOf element)}";
      emptyValue = { };
    };
  submodule =
    modules:
    submoduleWith {
      modules = lib.toList modules;
      shorthandOnlyDefinesConfig = true;
    };

  attrs = mkOptionType {
    name = "attrs";
    description = "attribute set";
    check = lib.isAttrs;
    merge = _: defs: lib.mergeAttrsList (map (def: def.value) defs);
    emptyValue.value = { };
  };

  # Sets are merged attribute by attribute; anything else must be equal. Packages count as one value.
  anything = mkOptionType {
    name = "anything";
    descriptionClass = "noun";
    merge =
      loc: defs:
      let
        kindOf =
          value: if lib.isAttrs value && lib.isStringLike value then "package" else lib.typeOf value;
        kind = kindOf (lib.head defs).value;
        merge =
          {
            set = (lib.types.attrsOf lib.types.anything).merge;
            package = lib.mergeOneOption;
          }
          .${kind} or lib.mergeEqualOption;
      in
      if lib.all (def: kindOf def.value == kind) defs then
        merge loc defs
      else
        throw "The option `${lib.showOption loc}' has conflicting option types in ${
          lib.showFiles (map (def: def.file) defs)
        }";
  };
}

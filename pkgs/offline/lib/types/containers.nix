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

  # A definition that is a set is all configuration, attributes named `options` or `imports` included.
  submodule =
    written:
    let
      modules = lib.toList written;
      evaluate =
        prefix: extra:
        lib.evalModules {
          inherit prefix;
          modules = [ { _module.args.name = lib.mkOptionDefault "‹name›"; } ] ++ modules ++ extra;
        };
      bare = evaluate [ ] [ ];
      inherit (bare._module) freeformType;
      isPath = value: lib.isStringLike value && lib.hasPrefix "/" (toString value);
      fits = value: lib.isAttrs value || lib.isFunction value || isPath value;
      asModule =
        def:
        {
          _file = def.file;
        }
        // (if lib.isAttrs def.value then { config = def.value; } else { imports = [ def.value ]; });
    in
    mkOptionType {
      name = "submodule";
      description =
        if freeformType == null then "submodule" else "open submodule of ${inside freeformType}";
      check = fits;
      judge = loc: defs: {
        error = misfit fits defs;
        value = (evaluate loc ([ { _module.args.name = lib.last loc; } ] ++ map asModule defs)).config;
      };
      emptyValue.value = bare.config;
      relocate =
        file:
        submodule (
          map (m: {
            _file = file;
            imports = [ m ];
          }) modules
        );
    };
in
{
  inherit listOf submodule;
  attrsOf = attrsOf false;
  lazyAttrsOf = attrsOf true;

  nonEmptyListOf =
    element:
    lib.addCheck (listOf element) (list: list != [ ])
    // {
      description = "non-empty ${phrase [ "noun" ] (listOf element)}";
      emptyValue = { };
    };
}

# evalModules: modules in, options and configuration out.
lib:
let
  # The options that steer the evaluation itself.
  builtinModule = {
    _file = "lib/modules.nix";
    key = "lib/modules.nix";
    options._module = {
      args = lib.mkOption { type = lib.types.lazyAttrsOf lib.types.raw; };
      check = lib.mkOption {
        type = lib.types.bool;
        default = true;
      };
      freeformType = lib.mkOption {
        type = lib.types.nullOr lib.types.optionType;
        default = null;
      };
    };
  };

  suggest =
    prefix: options: path:
    let
      parent = lib.init path;
      siblings = lib.attrNames (lib.attrByPath parent { } options);
      candidates = if parent == [ ] then lib.remove "_module" siblings else siblings;
      quoted = map (name: "`${lib.showOption (prefix ++ parent ++ [ name ])}'") (
        lib.nearest (lib.last path) candidates
      );
      several = "${lib.concatStringsSep ", " (lib.init quoted)} or ${lib.last quoted}";
    in
    lib.optionalString (quoted != [ ])
      "\n\nDid you mean ${if lib.length quoted == 1 then lib.head quoted else several}?";

  refuseUnknown =
    prefix: options: def:
    let
      where = lib.showOption prefix;
      base = "The option `${
        lib.showOption (prefix ++ def.path)
      }' does not exist. Definition values:${lib.showDefs [ def ]}${suggest prefix options def.path}";
    in
    if lib.attrNames options != [ "_module" ] then
      throw base
    else if prefix == [ ] then
      throw ''
        ${base}

        It seems as if you're trying to declare an option by placing it into `config' rather than `options'!
      ''
    else
      throw ''
        ${base}

        However there are no options defined in `${where}'. Are you sure you've
        declared your options properly? This can happen if you e.g. declared your options in `types.submodule'
        under `config' rather than `options'.
      '';
in
{
  evalModules =
    {
      modules,
      prefix ? [ ],
      specialArgs ? { },
    }:
    let
      collected = lib.collectModules (
        {
          lib = lib.public;
          inherit options config specialArgs;
        }
        // specialArgs
      ) (modules ++ [ builtinModule ]);
      # Later modules come first: what is imported is merged before what imports it.
      ordered = lib.reverseList collected;

      matched = lib.matchTree prefix ordered (
        lib.concatMap (
          m:
          map (config: {
            inherit (m) file;
            inherit config;
          }) (lib.spread m.config)
        ) ordered
      );
      inherit (matched) options;

      declaredConfig = lib.mapLeaves (node: !lib.isOption node) (option: option.value) options;
      inherit (declaredConfig._module) freeformType;
      freeformConfig = freeformType.merge prefix (
        map (def: {
          inherit (def) file;
          value = lib.setAttrByPath def.path def.value;
        }) matched.unmatched
      );
      config =
        if freeformType == null || matched.unmatched == [ ] then
          declaredConfig
        else
          lib.recursiveUpdate freeformConfig declaredConfig;

      checked =
        if matched.unmatched != [ ] && freeformType == null && declaredConfig._module.check then
          refuseUnknown prefix options (lib.head matched.unmatched)
        else
          lib.id;
    in
    {
      _type = "configuration";
      options = checked options;
      config = checked (removeAttrs config [ "_module" ]);
      _module = checked config._module;
    };
}

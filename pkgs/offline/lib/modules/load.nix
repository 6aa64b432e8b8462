# Modules as they are written, brought into one form and collected with all that they import.
lib:
let
  # Attributes that are about the module, not configuration.
  about = [
    "_file"
    "key"
    "imports"
    "freeformType"
  ];

  # { file; key; imports; options; config; } of a module that is a set.
  normalize =
    file: key: m:
    let
      explicit = m ? config || m ? options;
      unknown = removeAttrs m (
        about
        ++ [
          "config"
          "options"
        ]
      );
      names = lib.attrNames unknown;
      config = if explicit then m.config or { } else removeAttrs m about;
    in
    if !lib.isAttrs m then
      throw "module ${file} (${key}) does not look like a module."
    else if explicit && names != [ ] then
      throw "Module `${key}' has an unsupported attribute `${lib.head names}'. This is caused by introducing a top-level `config' or `options' attribute. Add configuration attributes immediately on the top level instead, or move all of them (namely: ${toString names}) into the explicit `config' attribute."
    else
      {
        file = toString m._file or file;
        key = toString m.key or key;
        imports = m.imports or [ ];
        options = m.options or { };
        config =
          if m ? freeformType then
            lib.mkMerge [
              config
              { _module = { inherit (m) freeformType; }; }
            ]
          else
            config;
      };

  # A module function gets the arguments that it names; those that nobody passes come from the configuration, lazily.
  call =
    key: args: m:
    if lib.isFunction m then
      m (
        args
        // lib.mapAttrs (
          name: _:
          builtins.addErrorContext "while evaluating the module argument `${name}' in \"${key}\":" (
            args.${name} or args.config._module.args.${name}
          )
        ) (lib.functionArgs m)
      )
    else
      m;

  load =
    args: file: key: m:
    if lib.isFunction m || lib.isAttrs m then
      normalize file key (call key args m)
    else
      normalize (toString m) (toString m) (call (toString m) args (import m));
in
{
  # Every module reachable from `modules`, each key once, importers before what they import.
  collectModules =
    args: modules:
    let
      loadAll =
        file: key:
        lib.imap1 (
          n: written:
          let
            m = load args file "${key}:anon-${toString n}" written;
          in
          {
            inherit (m) key;
            module = m;
          }
        );
    in
    map (item: item.module) (
      builtins.genericClosure {
        startSet = loadAll "<unknown-file>" "" modules;
        operator = item: loadAll item.module.file item.key item.module.imports;
      }
    );
}

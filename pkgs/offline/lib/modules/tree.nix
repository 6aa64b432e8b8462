# Declarations and definitions matched, level by level.
lib:
let
  alreadyDeclared =
    loc: decls:
    throw "The option `${lib.showOption loc}' in `${(lib.elemAt decls 1).file}' is already declared in `${(lib.head decls).file}'.";

  notNestable =
    loc: option: inner:
    let
      lines = lib.concatMap (
        decl:
        map (
          name: " - option(s) with prefix `${lib.showOption (loc ++ [ name ])}' in module `${decl.file}'"
        ) (lib.attrNames decl.options)
      ) inner;
    in
    throw "The option `${lib.showOption loc}' in module `${option.file}' would be a parent of the following options, but its type `${
      option.options.type.description or "<no description>"
    }' does not support nested options.\n${lib.concatStringsSep "\n" (lib.sort (a: b: a < b) lines)}";

  notASet =
    path: def:
    throw ''
      In module `${def.file}', you're trying to define a value of type `${lib.typeOf def.config}'
      rather than an attribute set for the option
      `${path}'!

      This usually happens if `${path}' has option
      definitions inside that are not matched. Please check how to properly define
      this option by e.g. referring to `man 5 configuration.nix'!
    '';

  # The option of a lone declaration; the modules of a submodule learn in which file they were declared.
  declare =
    decl:
    let
      option = decl.options;
      relocate = option.type.relocate or null;
    in
    option
    // {
      declarations = [ decl.file ];
    }
    // lib.optionalAttrs (relocate != null) { type = relocate decl.file; };
in
{
  # decls: [ { file; options; } ], defs: [ { file; config; } ], both under the path `prefix`.
  # -> { options: the tree of evaluated options; unmatched: definitions of what nobody declared, with their path }
  matchTree =
    prefix: decls: defs:
    let
      declared = lib.zipAttrs (
        map (
          decl:
          lib.mapAttrs (_: options: {
            inherit (decl) file;
            inherit options;
          }) decl.options
        ) decls
      );
      path = lib.concatStringsSep "." prefix;
      defined = lib.zipAttrs (
        map (
          def:
          if lib.isAttrs def.config then
            lib.mapAttrs (_: value: {
              inherit (def) file;
              inherit value;
            }) def.config
          else
            notASet path def
        ) defs
      );

      results = lib.mapAttrs (
        name: decls:
        let
          loc = prefix ++ [ name ];
          here = defined.${name} or [ ];
          kinds = lib.partition (decl: lib.isOption decl.options) decls;
          below = lib.concatMap (
            def:
            map (config: {
              inherit (def) file;
              inherit config;
            }) (lib.spread def.value)
          ) here;
        in
        if kinds.right == [ ] then
          lib.matchTree loc decls below
        else if kinds.wrong != [ ] then
          notNestable loc (lib.head kinds.right) kinds.wrong
        else if lib.length decls > 1 then
          alreadyDeclared loc decls
        else
          {
            options = lib.evalOption loc (declare (lib.head decls)) here;
            unmatched = [ ];
          }
      ) declared;

      leftOver =
        lib.mapAttrs (_: result: result.unmatched) results // removeAttrs defined (lib.attrNames results);
    in
    {
      options = lib.mapAttrs (_: result: result.options) results;
      unmatched =
        if defs == [ ] then
          [ ]
        else
          lib.concatLists (
            lib.mapAttrsToList (name: map (def: def // { path = [ name ] ++ def.path or [ ]; })) leftOver
          );
    };
}

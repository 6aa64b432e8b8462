# Values, warnings and refusals.
lib: {
  inherit (builtins)
    isAttrs
    isBool
    isFloat
    isInt
    isList
    isPath
    isString
    typeOf
    ;

  id = x: x;
  min = a: b: if b < a then b else a;
  max = a: b: if a < b then b else a;

  # A set that can be called counts as a function, as in the language itself.
  isFunction = f: builtins.isFunction f || (f ? __functor && lib.isFunction (f.__functor f));
  functionArgs =
    f:
    if f ? __functor then
      f.__functionArgs or (lib.functionArgs (f.__functor f))
    else
      builtins.functionArgs f;

  # builtins.warn came with Nix 2.23.
  warn = builtins.warn or (message: builtins.trace "evaluation warning: ${message}");
  assertMsg = condition: message: condition || throw message;

  importTOML = file: builtins.fromTOML (builtins.readFile file);
}

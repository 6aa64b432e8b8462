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
  const = x: _: x;
  flip =
    f: a: b:
    f b a;
  pipe = builtins.foldl' (value: step: step value);

  min = a: b: if b < a then b else a;
  max = a: b: if a < b then b else a;

  boolToString = b: if b then "true" else "false";

  # A set that can be called counts as a function, as in the language itself.
  isFunction = f: builtins.isFunction f || (f ? __functor && lib.isFunction (f.__functor f));
  functionArgs =
    f:
    if f ? __functor then f.__functionArgs or (lib.functionArgs (f.__functor f)) else builtins.functionArgs f;

  # builtins.warn came with Nix 2.23.
  warn = builtins.warn or (message: builtins.trace "evaluation warning: ${message}");
  warnIf = condition: message: if condition then lib.warn message else lib.id;
  throwIf = condition: message: if condition then throw message else lib.id;
  throwIfNot = condition: lib.throwIf (!condition);
  assertMsg = condition: message: condition || throw message;

  importJSON = file: builtins.fromJSON (builtins.readFile file);
  importTOML = file: builtins.fromTOML (builtins.readFile file);
}

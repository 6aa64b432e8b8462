# Wrappers around a definition: conditions, merges, priorities.
lib:
let
  inherit (builtins)
    concatMap
    isAttrs
    isBool
    mapAttrs
    ;
  tagOf = value: value._type or "";
  override = priority: content: {
    _type = "override";
    inherit priority content;
  };
  plainPriority = 100;
in
{
  mkIf = condition: content: {
    _type = "if";
    inherit condition content;
  };
  mkMerge = contents: {
    _type = "merge";
    inherit contents;
  };
  mkOptionDefault = override 1500;
  mkDefault = override 1000;
  mkForce = override 50;

  # A whole configuration as plain sets: wrappers move down onto each attribute, where they stay lazy, so that a
  # condition may read the configuration it is part of.
  spread =
    config:
    let
      onEach =
        wrap:
        map (part: if isAttrs part then mapAttrs (_: wrap) part else part) (lib.spread config.content);
    in
    {
      merge = concatMap lib.spread config.contents;
      "if" = onEach (lib.mkIf config.condition);
      override = onEach (override config.priority);
    }
    .${tagOf config} or [ config ];

  # The values that one definition stands for, conditions decided.
  decide =
    value:
    {
      merge = concatMap lib.decide value.contents;
      "if" =
        if !isBool value.condition then
          throw "‘mkIf’ called with a non-Boolean condition"
        else if value.condition then
          lib.decide value.content
        else
          [ ];
    }
    .${tagOf value} or [ value ];

  # What remains of `defs` when only the strongest (numerically least) priority counts.
  settle =
    defs:
    let
      decided = concatMap (
        def:
        map
          (value: {
            inherit (def) file;
            inherit value;
          })
          (builtins.addErrorContext "while evaluating definitions from `${def.file}':" (lib.decide def.value))
      ) defs;
      isOverride = def: tagOf def.value == "override";
      priorityOf = def: if isOverride def then def.value.priority else plainPriority;
      priority = lib.foldl' (least: def: lib.min least (priorityOf def)) 9999 decided;
      unwrap = def: if isOverride def then def // { value = def.value.content; } else def;
    in
    {
      inherit priority;
      definitions = map unwrap (lib.filter (def: priorityOf def == priority) decided);
    };
}

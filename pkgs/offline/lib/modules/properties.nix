# Wrappers around a definition: conditions, merges, priorities, order.
lib:
let
  inherit (builtins)
    concatMap
    isAttrs
    isBool
    mapAttrs
    sort
    ;
  tagOf = value: value._type or "";
  override = priority: content: {
    _type = "override";
    inherit priority content;
  };
  order = priority: content: {
    _type = "order";
    inherit priority content;
  };
  plainPriority = 100;
  plainOrder = 1000;
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
  mkOverride = override;
  mkOptionDefault = override 1500;
  mkDefault = override 1000;
  mkForce = override 50;
  mkOrder = order;
  mkBefore = order 500;
  mkAfter = order 1500;

  # A whole configuration as plain sets: wrappers move down onto each attribute, where they stay lazy, so that a
  # condition may read the configuration it is part of.
  spread =
    config:
    let
      onEach =
        wrap: map (part: if isAttrs part then mapAttrs (_: wrap) part else part) (lib.spread config.content);
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

  # What remains of `defs` when only the strongest (numerically least) priority counts, in order.
  settle =
    defs:
    let
      decided = concatMap (
        def:
        map (value: {
          inherit (def) file;
          inherit value;
        }) (builtins.addErrorContext "while evaluating definitions from `${def.file}':" (lib.decide def.value))
      ) defs;
      priorityOf = def: if tagOf def.value == "override" then def.value.priority else plainPriority;
      priority = lib.foldl' (least: def: lib.min least (priorityOf def)) 9999 decided;
      unwrap =
        tag: def: if tagOf def.value == tag then def // { value = def.value.content; } else def;
      strongest = map (unwrap "override") (lib.filter (def: priorityOf def == priority) decided);
      placeOf = def: if tagOf def.value == "order" then def.value.priority else plainOrder;
      ordered = map (unwrap "order") (sort (a: b: placeOf a < placeOf b) strongest);
    in
    {
      inherit priority;
      definitions = ordered;
    };
}

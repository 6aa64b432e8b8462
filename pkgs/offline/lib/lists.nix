# Lists.
lib:
let
  inherit (builtins)
    concatMap
    elem
    elemAt
    filter
    foldl'
    genList
    isList
    length
    sort
    ;
in
{
  inherit (builtins)
    all
    any
    concatLists
    concatMap
    elem
    elemAt
    filter
    foldl'
    genList
    groupBy
    head
    length
    partition
    sort
    tail
    ;

  optional = condition: value: if condition then [ value ] else [ ];
  optionals = condition: values: if condition then values else [ ];
  toList = value: if isList value then value else [ value ];
  flatten = value: concatMap (item: if isList item then lib.flatten item else [ item ]) (lib.toList value);

  last =
    list:
    lib.throwIf (list == [ ]) "lists.last: list must not be empty!" elemAt list (length list - 1);
  init =
    list:
    lib.throwIf (list == [ ]) "lists.init: list must not be empty!" genList (elemAt list) (length list - 1);
  take = count: list: genList (elemAt list) (lib.min count (length list));
  drop = count: list: genList (n: elemAt list (count + n)) (lib.max 0 (length list - count));
  reverseList = list: genList (n: elemAt list (length list - 1 - n)) (length list);
  range = from: to: genList (n: from + n) (lib.max 0 (to - from + 1));
  imap0 = f: list: genList (n: f n (elemAt list n)) (length list);
  imap1 = f: lib.imap0 (n: f (n + 1));
  zipListsWith =
    f: a: b:
    genList (n: f (elemAt a n) (elemAt b n)) (lib.min (length a) (length b));

  unique = foldl' (seen: item: if elem item seen then seen else seen ++ [ item ]) [ ];
  remove = item: filter (other: other != item);
  subtractLists = gone: filter (item: !elem item gone);
  intersectLists = wanted: filter (item: elem item wanted);
  count = pred: list: length (filter pred list);
  findFirst =
    pred: default: list:
    let
      found = filter pred list;
    in
    if found == [ ] then default else builtins.head found;
  foldr =
    f: nul: list:
    foldl' (acc: item: f item acc) nul (lib.reverseList list);

  sortOn =
    key: list:
    map (pair: pair.item) (
      sort (a: b: a.key < b.key) (
        map (item: {
          key = key item;
          inherit item;
        }) list
      )
    );
}

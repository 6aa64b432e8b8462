# Lists.
lib:
let
  inherit (builtins)
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
    head
    length
    partition
    sort
    tail
    ;

  optional = condition: value: if condition then [ value ] else [ ];
  optionals = condition: values: if condition then values else [ ];
  toList = value: if isList value then value else [ value ];

  last = list: elemAt list (length list - 1);
  init = list: genList (elemAt list) (length list - 1);
  take = count: list: genList (elemAt list) (lib.min count (length list));
  reverseList = list: genList (n: elemAt list (length list - 1 - n)) (length list);
  range = from: to: genList (n: from + n) (lib.max 0 (to - from + 1));
  imap0 = f: list: genList (n: f n (elemAt list n)) (length list);
  imap1 = f: lib.imap0 (n: f (n + 1));

  unique = foldl' (seen: item: if elem item seen then seen else seen ++ [ item ]) [ ];
  remove = item: filter (other: other != item);

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

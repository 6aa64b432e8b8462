# How many single-character edits part two words: the hint "did you mean" needs it.
lib: {
  # Edit distance, one row of the table at a time (Wagner and Fischer, 1974).
  levenshtein =
    a: b:
    let
      above = lib.range 0 (lib.stringLength b);
      columns = lib.stringToCharacters b;
      # From the row above and a character of `a`, the next row.
      nextRow =
        row: char:
        lib.foldl' (
          cells: column:
          let
            n = lib.length cells;
            replaced = lib.elemAt row (n - 1) + (if column == char then 0 else 1);
            inserted = lib.last cells + 1;
            removed = lib.elemAt row n + 1;
          in
          cells ++ [ (lib.min replaced (lib.min inserted removed)) ]
        ) [ (lib.head row + 1) ] columns;
    in
    lib.last (lib.foldl' nextRow above (lib.stringToCharacters a));

  # At most three of `names` that are near to `name`, nearest first. In a large set only those two edits away count.
  nearest =
    name: names:
    let
      distance = lib.levenshtein name;
      close = if lib.length names < 100 then names else lib.filter (other: distance other <= 2) names;
    in
    lib.take 3 (lib.sortOn distance close);
}

# Functions for lists and attribute sets.
{ lib }:
{
  values = [
    {
      name = "lists";
      expr = {
        any = map (lib.any (n: n > 2)) [
          [
            1
            3
          ]
          [ ]
        ];
        concat = lib.concatLists [
          [ 1 ]
          [ ]
          [ 2 ]
        ];
        concatMap =
          lib.concatMap
            (n: [
              n
              n
            ])
            [
              1
              2
            ];
        elem = lib.elem 2 [ 1 ];
        filter = lib.filter (n: n > 1) [
          1
          2
        ];
        fold = lib.foldl' (a: b: "${a}${b}") "" [
          "a"
          "b"
        ];
        gen = lib.genList (n: n * n) 3;
        imap = lib.imap0 (n: item: "${toString n}${item}") [
          "a"
          "b"
        ];
        length = lib.length [ 1 ];
        list = map lib.isList [
          [ ]
          "x"
        ];
        optional = lib.optional false 1 ++ lib.optional true 2;
        optionals = lib.optionals false [ 1 ] ++ lib.optionals true [ 2 ];
        ranges = [
          (lib.range 2 4)
          (lib.range 2 2)
          (lib.range 2 1)
        ];
        sort = lib.sort (a: b: a < b) [
          3
          1
          2
        ];
        unique = lib.unique [
          2
          1
          2
          1
        ];
      };
      expected = {
        any = [
          true
          false
        ];
        concat = [
          1
          2
        ];
        concatMap = [
          1
          1
          2
          2
        ];
        elem = false;
        filter = [ 2 ];
        fold = "ab";
        gen = [
          0
          1
          4
        ];
        imap = [
          "0a"
          "1b"
        ];
        length = 1;
        list = [
          true
          false
        ];
        optional = [ 2 ];
        optionals = [ 2 ];
        ranges = [
          [
            2
            3
            4
          ]
          [ 2 ]
          [ ]
        ];
        sort = [
          1
          2
          3
        ];
        unique = [
          2
          1
        ];
      };
    }
    {
      name = "attribute sets";
      expr =
        let
          set = {
            b = 2;
            a = 1;
          };
        in
        {
          names = lib.attrNames set;
          values = lib.attrValues set;
          filtered = lib.filterAttrs (name: value: name == "b" || value > 5) set;
          generated = lib.genAttrs [ "x" "y" ] (name: name + name);
          fromList = lib.listToAttrs [ (lib.nameValuePair "c" 3) ];
          mapped = lib.mapAttrs (name: value: "${name}${toString value}") set;
          renamed = lib.mapAttrs' (name: value: lib.nameValuePair "${name}${name}" value) set;
          listed = lib.mapAttrsToList (name: value: "${name}${toString value}") set;
          optional = lib.optionalAttrs false set // lib.optionalAttrs true { c = 3; };
        };
      expected = {
        filtered.b = 2;
        fromList.c = 3;
        generated = {
          x = "xx";
          y = "yy";
        };
        listed = [
          "a1"
          "b2"
        ];
        mapped = {
          a = "a1";
          b = "b2";
        };
        names = [
          "a"
          "b"
        ];
        optional.c = 3;
        renamed = {
          aa = 1;
          bb = 2;
        };
        values = [
          1
          2
        ];
      };
    }
  ];
}

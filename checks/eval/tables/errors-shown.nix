# How values look in errors.
{ lib }:
let
  inherit (lib) types;
  inherit (import ../evaluate.nix { inherit lib; }) one;
in
{
  errors = [
    {
      name = "values are shown as people would write them";
      expr = one types.int [
        {
          float = 1.5;
          bool = true;
          nothing = null;
          path = /etc/hosts;
          "quoted name" = "a \"b\" \${c} \\ d";
          "if" = { };
        }
      ];
      message = "Definition values:\n- In `defined-1.nix':\n    {\n      bool = true;\n      float = 1.5;\n      \"if\" = { };\n      nothing = null;\n    ...";
    }
    {
      name = "functions, nested values and lines in messages";
      expr = one types.int [
        [ { f = x: x; } ]
        [
          (
            {
              a,
              b ? 1,
            }:
            a
          )
        ]
        "one\n  two ''three'' \${four}\n"
        "five\nsix"
        [ [ { } ] ]
        [ { __functor = _: x: x; } ]
      ];
      message = "- In `defined-3.nix':\n    ''\n      one\n        two '''three''' ''\${four}\n    ''";
    }
    {
      name = "values without an end";
      expr =
        let
          endless = {
            again = endless;
          };
        in
        one types.int [ endless ];
      message = "Definition values:\n- In `defined-1.nix':\n    {\n      again = {";
    }
    {
      name = "values that themselves cannot be evaluated";
      expr = one types.int [ { a = throw "no"; } ];
      message = "Definition values:\n- In `defined-1.nix'";
    }
  ];
}

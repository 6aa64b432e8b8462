# Types: what they merge, and how they are called.
{ lib }:
let
  inherit (lib) types;
  inherit (import ../evaluate.nix { inherit lib; })
    one
    json
    ;
  tool = {
    type = "derivation";
    name = "tool-1";
    outPath = "/nix/store/00000000000000000000000000000000-tool-1";
  };
in
{
  values = [
    {
      name = "types that merge";
      expr = {
        equal = one types.str [
          "same"
          "same"
        ];
        unspecified = map (one types.unspecified) [
          [
            [ 1 ]
            [ 2 ]
          ]
          [
            { a.b = 1; }
            { a.c = 2; }
          ]
          [
            "a"
            "b"
          ]
          [
            true
            false
          ]
          [
            1
            1
          ]
        ];
        none = one (types.attrsOf types.int) [ ];
      };
      expected = {
        equal = "same";
        none = { };
        unspecified = [
          [
            2
            1
          ]
          { a.b = 1; }
          "ba"
          true
          1
        ];
      };
    }
    {
      name = "types in words";
      expr = map (type: type.description) [
        (types.nullOr (types.listOf types.str))
        (types.listOf (types.nullOr types.int))
        (types.attrsOf (
          types.oneOf [
            types.int
            types.bool
          ]
        ))
        (types.oneOf [
          types.ints.positive
          types.str
        ])
        (types.listOf types.ints.unsigned)
        (types.oneOf [
          types.bool
          types.int
          (types.listOf types.str)
        ])
        types.port
        (types.submodule { freeformType = types.attrsOf types.int; })
        (types.submodule { })
        (types.nonEmptyListOf types.str)
        (types.attrsOf json)
      ];
      expected = [
        "null or (list of string)"
        "list of (null or signed integer)"
        "attribute set of (signed integer or boolean)"
        "positive integer, meaning >0, or string"
        "list of (unsigned integer, meaning >=0)"
        "boolean or signed integer or list of string"
        "16 bit unsigned integer; between 0 and 65535 (both inclusive)"
        "open submodule of attribute set of signed integer"
        "submodule"
        "non-empty (list of string)"
        "attribute set of (JSON value)"
      ];
    }
    {
      name = "packages by name";
      expr =
        let
          tool = {
            type = "derivation";
            name = "tool-1";
            outPath = "/nix/store/00000000000000000000000000000000-tool-1";
          };
          option = lib.mkPackageOption { inherit tool; } "tool" { };
        in
        {
          inherit (option) defaultText description;
          type = option.type.description;
          program = lib.getExe' (one option.type [ tool ]) "tool";
        };
      expected = {
        defaultText = {
          _type = "literalExpression";
          text = "pkgs.tool";
        };
        description = "The tool package to use.";
        program = "/nix/store/00000000000000000000000000000000-tool-1/bin/tool";
        type = "package";
      };
    }
  ];
}

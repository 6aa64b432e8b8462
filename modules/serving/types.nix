# Types of the values that an engine's settings may have.
{ lib }:
let
  inherit (lib) types;
  scalars = [
    types.bool
    types.int
    types.float
    types.str
  ];
  # Recursive, hence a description of its own: the derived one would have no end.
  json =
    types.oneOf (
      scalars
      ++ [
        (types.listOf json)
        (types.attrsOf json)
      ]
    )
    // {
      description = "JSON value";
    };
in
{
  inherit json;

  # { flag = value; }; null takes back what another module asked for.
  settings =
    module:
    types.submodule {
      freeformType = types.attrsOf (types.nullOr json);
      options = module;
    };
}

# How many chips a mesh has: the names that MESH_DEVICE may take, as vllm-tt-plugin reads them, or a literal "(r,c)".
{ lib }:
let
  chips = {
    N150 = 1;
    N150x4 = 4;
    N300 = 2;
    P100 = 1;
    P150 = 1;
    P150x2 = 2;
    P150x4 = 4;
    P150x8 = 8;
    P300 = 2;
    P300x2 = 4;
    T3K = 8;
    TG = 32;
    BH-Galaxy = 32;
  };
  literal = builtins.match "\\(([1-9][0-9]{0,2}),([1-9][0-9]{0,2})\\)";
in
{
  names = lib.attrNames chips;

  # string -> int, or null for a mesh that is not known.
  chipsOf =
    mesh:
    let
      shape = literal mesh;
    in
    if shape != null then
      lib.foldl' (product: side: product * builtins.fromJSON side) 1 shape
    else
      chips.${mesh} or null;
}

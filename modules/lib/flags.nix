# An engine's settings as its command line: docs/reference/launch.md, "Engine command".
{ lib, json }:
let
  inherit (builtins)
    isBool
    isList
    isString
    ;

  scalar = value: if isString value then value else json.render value;

  # A value that starts with a dash would be read as a flag, and an empty one is easily lost: both are attached.
  withValue =
    flag: value:
    let
      text = scalar value;
    in
    if text == "" || lib.hasPrefix "-" text then
      [ "--${flag}=${text}" ]
    else
      [
        "--${flag}"
        text
      ];
in
{
  # { flag = value; } -> [ argument ], sorted by flag. null means: not asked for.
  render =
    settings:
    lib.concatLists (
      lib.mapAttrsToList (
        flag: value:
        if value == null then
          [ ]
        else if isBool value then
          [ (if value then "--${flag}" else "--no-${flag}") ]
        else if isList value then
          lib.concatMap (withValue flag) value
        else
          withValue flag value
      ) settings
    );
}

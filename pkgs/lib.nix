# Small functions over the project's own files, for other flakes.
{ lib }:
let
  tomlFiles = folder: lib.filter (lib.hasSuffix ".toml") (lib.attrNames (builtins.readDir folder));
  readAll =
    folder:
    lib.listToAttrs (
      map (file: {
        name = lib.removeSuffix ".toml" file;
        value = lib.importTOML (folder + "/${file}");
      }) (tomlFiles folder)
    );
in
{
  # name -> the pin, as written
  pins = readAll ../pins;

  # name -> the arm as written: `extends` is not followed, which is ttx's part
  arms = removeAttrs (readAll ../arms) [ "models" ];
}

# mypy --strict over the package (its settings are in pyproject.toml) and over the scripts beside it.
{ lib, pkgs, ... }:
let
  src = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.fileFilter (
      file: file.hasExt "py" || file.name == "pyproject.toml" || file.name == "py.typed"
    ) ../.;
  };
in
pkgs.runCommand "python-types"
  { nativeBuildInputs = [ (pkgs.callPackage ../pkgs/dev-python.nix { }) ]; }
  ''
    export MYPY_CACHE_DIR=$TMPDIR/mypy
    cd ${src}/python
    mypy --no-color-output
    for script in ../pkgs/offline/install.py ../pkgs/offline/wheels/refresh.py ../checks/*/*.py; do
      mypy --no-color-output --strict --config-file= "$script"
    done
    touch $out
  ''

# ruff's rules and its formatter, for the package, its tests and the scripts beside it.
{ lib, pkgs, ... }:
let
  src = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.fileFilter (file: file.hasExt "py" || file.name == "pyproject.toml") ../.;
  };
in
pkgs.runCommand "python-lint" { nativeBuildInputs = [ pkgs.ruff ]; } ''
  export RUFF_NO_CACHE=true
  cd ${src}/python
  ruff check .
  ruff format --check .

  # Scripts print, and stand alone: no package around them.
  cd ..
  for folder in checks pkgs; do
    ruff check --config python/pyproject.toml --ignore T201,INP001 $folder
    ruff format --config python/pyproject.toml --check $folder
  done
  touch $out
''

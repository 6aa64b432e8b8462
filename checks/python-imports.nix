# Rooms import only downwards (docs/explanation), and only the rooms that may do so start processes or print.
{ lib, pkgs, ... }:
pkgs.runCommand "python-imports" { nativeBuildInputs = [ pkgs.python3 ]; } ''
  python3 ${./python-imports/rooms.py} ${
    lib.fileset.toSource {
      root = ../python;
      fileset = lib.fileset.fileFilter (file: file.hasExt "py") ../python/ttstack;
    }
  }/ttstack
  touch $out
''

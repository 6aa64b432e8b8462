# The tests that need no more than a sandbox. The others (marked host, docker) are run by `./bootstrap check`, with this
# check's Python: its attribute `python`. Some rooms have a check of their own, which runs more rounds: slots, cache, bench.
{ lib, pkgs, ... }:
let
  python = pkgs.callPackage ../pkgs/dev-python.nix { };
  src = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../CONTRIBUTING.md
      ../README.md
      ../arms
      ../bootstrap
      ../checks/python-imports
      ../docs
      ../flake.lock
      ../modules
      ../pins
      (lib.fileset.fileFilter (file: !file.hasExt "pyc") ../python)
    ];
  };
in
pkgs.runCommand "python-tests"
  {
    nativeBuildInputs = [ python ];
    passthru = { inherit python src; };
  }
  ''
    cp -r ${src} source
    chmod -R u+w source
    cd source/python
    export HOME=$TMPDIR PYTHONPATH=$PWD
    python3 -m pytest -p no:cacheprovider -n 2 -m "not host and not docker" \
      --ignore tests/slots --ignore tests/cache --ignore-glob '*/tests/bench/test_suite_*.py'
    touch $out
  ''

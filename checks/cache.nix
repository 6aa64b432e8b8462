# Tensor caches: keys, markers, registry, seeding, reservation, gc, kills at 190 and more random moments, and what runs
# do with them, as far as no root is needed.
{
  self,
  pkgs,
  system,
  ...
}:
let
  inherit (self.checks.${system}.python-tests) python src;
in
pkgs.runCommand "cache" { nativeBuildInputs = [ python ]; } ''
  cp -r ${src} source
  chmod -R u+w source
  cd source/python
  export HOME=$TMPDIR PYTHONPATH=$PWD
  # TTX_TEST_ROUNDS: kills of gc, of builds and of the registry, each; those of seeding are 100 always.
  TTX_TEST_ROUNDS=30 python3 -m pytest -p no:cacheprovider -m "not host and not docker" tests/cache
  python3 -m pytest -p no:cacheprovider -m "not host and not docker" tests/run/test_run_caches.py
  touch $out
''

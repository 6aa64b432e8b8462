# Tensor caches: keys, markers, registry, seeding, reservation, gc and kills at random moments, as far as no root is needed.
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
  python3 -m pytest -p no:cacheprovider -m "not host and not docker" tests/cache
  touch $out
''

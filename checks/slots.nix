# Who gets a card: the races of processes for slots and of whole runs, with more rounds than in the check `python-tests`.
{
  self,
  pkgs,
  system,
  ...
}:
let
  inherit (self.checks.${system}.python-tests) python src;
in
pkgs.runCommand "slots" { nativeBuildInputs = [ python ]; } ''
  cp -r ${src} source
  chmod -R u+w source
  cd source/python
  export HOME=$TMPDIR PYTHONPATH=$PWD TTX_TEST_ROUNDS=50
  python3 -m pytest -p no:cacheprovider -m "not host and not docker" \
    tests/slots tests/run/test_updown.py tests/run/test_interrupts.py tests/run/test_leftovers.py
  touch $out
''

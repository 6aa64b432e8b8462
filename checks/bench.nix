# The built ttx measures the simulated engine with each suite, in the sandbox. Then the suites' tests: against the simulated
# engine once more, with each of its faults, and against llama.cpp's own server, with prompts of up to 32k tokens.
{
  self,
  pkgs,
  system,
  ...
}:
let
  inherit (self.checks.${system}.python-tests) python src;
  suites = {
    smoke = "";
    sweep32k = "--set runs=2";
    infbench = "--set runs=3 --set waves=3 --set prompt_tokens=256 --set output_tokens=48 --set max_concurrency=8";
    soak = "--set duration_s=3 --set output_tokens=48,64 --set sample_every_s=1";
  };
  measure = suite: ''
    # a pipe: Nix' log looks like a terminal, and would get the live display
    { ttx run sim --suite ${suite} ${suites.${suite}} --json >${suite}.json || true; } 2>&1 | cat
    python3 ${./bench/measured.py} ${suite} <${suite}.json
  '';
in
pkgs.runCommand "bench"
  {
    nativeBuildInputs = [
      self.packages.${system}.ttx
      python
    ];
  }
  ''
    export HOME=$TMPDIR TTX_STATE=$TMPDIR/state
    ${builtins.concatStringsSep "\n" (map measure (builtins.attrNames suites))}
    test "$(ttx status --json | tr -d '[:space:]')" = "[]"

    cp -r ${src} source
    chmod -R u+w source
    cd source/python
    export PYTHONPATH=$PWD TTX_TEST_LONGEST=32768
    python3 -m pytest -p no:cacheprovider -m "not host and not docker" tests/bench/test_suite_*.py
    touch $out
  ''

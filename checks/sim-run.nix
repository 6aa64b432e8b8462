# The built ttx, not the source tree, takes the arms that need no card from slot to a quotable record, and leaves nothing.
{
  self,
  lib,
  pkgs,
  system,
  ...
}:
pkgs.runCommand "sim-run"
  {
    nativeBuildInputs = [
      self.packages.${system}.ttx
      pkgs.python3
    ];
  }
  ''
    export HOME=$TMPDIR TTX_STATE=$TMPDIR/state
    ${lib.concatMapStringsSep "\n"
      (arm: ''
        # a pipe: Nix' log looks like a terminal, and would get the live display
        { ttx run ${arm} --json >${arm}.json; } 2>&1 | cat
        python3 ${./sim-run/quotable.py} <${arm}.json
      '')
      [
        "sim"
        "sim-pair"
      ]
    }

    test "$(ttx status --json | tr -d '[:space:]')" = "[]"
    ttx slot ls --json | python3 -c 'import json, sys; assert {slot["state"] for slot in json.load(sys.stdin)} == {"free"}'
    touch $out
  ''

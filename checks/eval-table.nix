# Every table of ./eval: values, what is refused, and in which words; the words are compared with those of the lib of
# whichever nixpkgs this flake runs with.
{
  self,
  lib,
  pkgs,
  ...
}:
let
  inherit (import ./eval { inherit lib; }) failures;
  tree = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ./against-nixpkgs-lib
      ./eval
      ../arms
      ../modules
      ../pins
      ../pkgs/offline/lib
    ];
  };
in
pkgs.runCommand "eval-table"
  {
    nativeBuildInputs = [ pkgs.nix ];
    report = lib.concatMapStringsSep "\n" (row: ''
      FAILED ${row.name}
        expected ${builtins.toJSON row.expected}
        actual   ${builtins.toJSON row.actual}
    '') failures;
  }
  ''
    if [ -n "$report" ]; then
      printf '%s\n' "$report" >&2
      exit 1
    fi
    # Copies: the evaluator inside has no store.
    cp -r ${tree} tree
    cp -rL ${self.inputs.nixpkgs}/lib nixpkgs-lib
    export HOME=$TMPDIR
    sh tree/checks/against-nixpkgs-lib nixpkgs-lib | tee $out
  ''

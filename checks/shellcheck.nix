# Every shell script of the tree, found by its first line or its name.
{ self, pkgs, ... }:
pkgs.runCommand "shellcheck" { nativeBuildInputs = [ pkgs.shellcheck ]; } ''
  cd ${self}
  find . -type f -exec awk '
    FNR > 1 { nextfile }
    /^#!.*[\/ ](ba|da)?sh( |$)/ || FILENAME ~ /\.sh$/ { print FILENAME }
  ' {} + >$TMPDIR/scripts
  cat $TMPDIR/scripts
  grep -qx ./bootstrap $TMPDIR/scripts # the search itself works
  xargs -d '\n' shellcheck -x <$TMPDIR/scripts
  touch $out
''

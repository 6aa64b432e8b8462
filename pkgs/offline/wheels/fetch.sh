#!/bin/sh
# usage: fetch.sh LOCK MACHINE MINOR DIR    download what LOCK lists for MACHINE (x86_64, aarch64) into DIR
#
# MINOR is a Python such as 3.11, or `all`: those of every supported distribution. Runs inside the fixed-output
# derivation and in refresh.py, so that both see the same files.
set -eu
lock=$1 machine=$2 minors=$3 dir=$4
[ "$minors" != all ] || minors='3.11 3.12 3.13 3.14'
mkdir -p "$dir"
for minor in $minors; do
  # --require-hashes leaves exactly one candidate per package, so pip's version and the index' state don't matter.
  python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir \
    --no-deps --require-hashes --only-binary :all: --implementation cp --python-version "$minor" \
    --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" \
    --requirement "$lock" --dest "$dir"
done

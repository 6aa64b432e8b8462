#!/bin/sh
# usage: fetch.sh LOCK MACHINE DIR    download what LOCK lists for MACHINE (x86_64, aarch64) into DIR
#
# Runs inside the fixed-output derivation and in refresh.py, so that both see the same files. Wheels for every Python
# that a supported distribution has land in one folder: see ../python.nix for why.
set -eu
lock=$1 machine=$2 dir=$3
mkdir -p "$dir"
for minor in 11 12 13 14; do
  # --require-hashes leaves exactly one candidate per package, so pip's version and the index' state don't matter.
  python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir \
    --no-deps --require-hashes --only-binary :all: --implementation cp --python-version "3.$minor" \
    --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" \
    --requirement "$lock" --dest "$dir"
done

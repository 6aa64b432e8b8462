# The Python that checks the project: ttx's libraries and the tools of the tests. The project itself is not in it; it is
# imported from the source tree.
{ lib, python3 }:
python3.withPackages (
  ps:
  [
    ps.argcomplete
    ps.duckdb
    ps.fastjsonschema
    ps.jinja2
    ps.pygal
    ps.rich
    ps.tomlkit

    ps.hypothesis
    ps.mpmath
    ps.mypy
    ps.pytest
    ps.pytest-xdist
  ]
  # nixpkgs has none; the tests with a real llama.cpp server are skipped without it.
  ++ lib.optional (ps ? xllamacpp) ps.xllamacpp
)

# The Python that checks the project: ttx's libraries and the tools of the tests. The project itself is not in it; it is
# imported from the source tree.
{ python3 }:
python3.withPackages (ps: [
  ps.argcomplete
  ps.fastjsonschema
  ps.jinja2
  ps.rich
  ps.tomlkit

  ps.hypothesis
  ps.mypy
  ps.pytest
  ps.pytest-xdist
])

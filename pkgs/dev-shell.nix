# What `nix develop` gives: the tools of the checks.
{
  callPackage,
  git,
  mkShellNoCC,
  nixfmt-tree,
  ruff,
  shellcheck,
}:
mkShellNoCC {
  packages = [
    (callPackage ./dev-python.nix { })
    git
    nixfmt-tree
    ruff
    shellcheck
  ];
}

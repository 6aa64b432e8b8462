# The NixOS modules of this project. Each imports its file, so that errors name it and importing twice is importing once;
# a bare path would do the same, but `nix flake check` of Nix 2.8 refuses it.
builtins.mapAttrs (_: file: { imports = [ file ]; }) {
  default = ./tenstorrent-serving.nix;
  tenstorrent-serving = ./tenstorrent-serving.nix;
  prod = ./prod.nix;
  prod-prefix = ./prod-prefix.nix;
}

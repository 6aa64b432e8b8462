# The NixOS modules of this project; paths, so that errors name their files.
{
  default = ./tenstorrent-serving.nix;
  tenstorrent-serving = ./tenstorrent-serving.nix;
  prod = ./prod.nix;
  prod-prefix = ./prod-prefix.nix;
}

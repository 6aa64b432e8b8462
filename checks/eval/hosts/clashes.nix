# Two engines that want one card and one port, one of them with a mesh that does not fit.
let
  instance = {
    enable = true;
    image = "registry.example/engine:latest";
    cacheFormat = "ttnn-0.81.1";
    model.path = "/srv/models/small";
  };
in
{
  imports = [ ../../../modules/tenstorrent-serving.nix ];
  services.tenstorrent-serving.instances = {
    a = instance // {
      cards.count = 2;
      mesh = "P150";
    };
    b = instance // {
      mesh = "P150";
    };
    off = instance // {
      enable = false;
      mesh = "no such mesh";
    };
  };
}

# Two engines on a host, one card each.
let
  instance = card: port: {
    enable = true;
    image = "registry.example/engine@sha256:2222222222222222222222222222222222222222222222222222222222222222";
    cacheFormat = "ttnn-0.81.1";
    model.path = "/srv/models/small";
    cards.ids = [ card ];
    mesh = "P150";
    inherit port;
  };
in
{
  imports = [ ../../../modules/tenstorrent-serving.nix ];
  services.tenstorrent-serving.instances = {
    left = instance "blackhole-00000000000000aa" 8001;
    right = instance "blackhole-00000000000000bb" 8002;
  };
}

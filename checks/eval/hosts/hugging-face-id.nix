# A model by its Hugging Face id, on a host that needs 1 GiB hugepages, published on IPv6.
{
  imports = [ ../../../modules/tenstorrent-serving.nix ];
  services.tenstorrent-serving.instances.hub = {
    enable = true;
    arm = "hub-nightly";
    image = "registry.example/engine@sha256:3333333333333333333333333333333333333333333333333333333333333333";
    cacheFormat = "ttnn-0.81.1";
    model = {
      id = "example/Model-8B";
      revision = "main";
    };
    mesh = "P150";
    hugepages = true;
    address = "::1";
    port = 9000;
  };
}

# Production with prefix caching on: the arm prod-prefix in production's place.
{
  imports = [ ./prod.nix ];

  services.tenstorrent-serving.instances.prod = {
    arm = "prod-prefix";
    settings.enable-prefix-caching = true;
  };
}

# The simulated engine as an image, for tests of everything around containers. It holds Python, the package and no shell;
# `docker run IMAGE ttx-sim serve ROOT FLAGS...` is how arms start it, so it has no entry point.
{
  callPackage,
  dockerTools,
  lib,
}:
let
  inherit (callPackage ./ttx.nix { }) ttstack;

  # What the arms will ask for.
  reference = lib.splitString ":" (lib.importTOML ../pins/sim-image.toml).image;

  image = {
    name = builtins.elemAt reference 0;
    tag = builtins.elemAt reference 1;
    config = {
      Cmd = [
        "ttx-sim"
        "--help"
      ];
      # The reference brings the package in. A link to it at the image's root would be one more layer that changes with it.
      Env = [ "PATH=${ttstack}/bin" ];
    };
  };
in
dockerTools.buildLayeredImage (
  image
  // {
    # skopeo and podman of Debian 12 read no compressed archive.
    compressor = "none";
  }
)
// {
  # A program that writes the same archive: nix build .#sim-image.stream && ./result | docker load
  stream = dockerTools.streamLayeredImage image;
}

# Serves models on Tenstorrent cards: each instance is a systemd unit whose container is what `ttx` would start for the
# arm of the same meaning. docs/reference/launch.md says how an instance becomes a command, docs/reference/unit.md what the
# unit is like.
{
  config,
  lib,
  pkgs,
  utils,
  ...
}:
let
  top = config.services.tenstorrent-serving;
  functions = import ./lib { inherit lib; };
  enabled = lib.filterAttrs (_: instance: instance.enable) top.instances;
  launches = lib.mapAttrs (
    _: instance:
    import ./serving/launch.nix {
      inherit
        lib
        functions
        top
        instance
        ;
    }
  ) enabled;
  checked = import ./serving/asserts.nix {
    inherit
      lib
      functions
      top
      launches
      ;
  };

  # tmpfiles.d(5) splits at blanks outside of quotes and expands %.
  folder =
    mode: owner: path:
    "d ${lib.replaceStrings [ "%" ] [ "%%" ] (builtins.toJSON path)} ${mode} ${owner} -";
  engineFolder = folder "0755" "${toString top.engineUser.uid} ${toString top.engineUser.gid}";
in
{
  imports = [ ./serving/options.nix ];

  config = lib.mkIf (enabled != { }) {
    inherit (checked) assertions warnings;

    hardware.tenstorrent.enable = lib.mkDefault true;
    virtualisation.docker.enable = lib.mkDefault true;

    # docker refuses to bind a folder that does not exist.
    systemd.tmpfiles.rules = lib.unique (
      [ (folder "0755" "root root" top.cacheDir) ]
      ++ [ (folder "0755" "root root" "${top.cacheDir}/jit") ]
      ++ lib.optional (lib.any (instance: instance.model.path == null) (lib.attrValues enabled)) (
        engineFolder top.hfDir
      )
      ++ lib.concatMap (
        launch:
        map engineFolder [
          launch.cacheDir
          launch.jitDir
        ]
      ) (lib.attrValues launches)
    );

    systemd.services = lib.mapAttrs' (
      name: instance:
      lib.nameValuePair "tenstorrent-serving-${name}" (
        import ./serving/unit.nix {
          inherit
            lib
            pkgs
            utils
            name
            instance
            ;
          docker = lib.getExe' top.docker "docker";
          launch = launches.${name};
        }
      )
    ) enabled;
  };
}

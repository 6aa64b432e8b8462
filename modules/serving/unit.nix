# One instance as a systemd service: docs/reference/unit.md, directive by directive.
{
  lib,
  pkgs,
  utils,
  docker, # path of the client
  name,
  instance,
  launch,
}:
let
  inherit (utils) escapeSystemdExecArgs;

  # systemd expands % in paths; the quotes keep blanks, and a backslash is kept by being doubled.
  path = text: lib.replaceStrings [ "%" ] [ "%%" ] text;
  quotedPath = text: path (builtins.toJSON text);

  refuseLeftover = ''
    if "$0" container inspect "$1" >/dev/null 2>&1; then
      echo "a container $1 exists already, perhaps with a running engine." >&2
      echo "See: docker ps -a --filter name=$1; if it is not needed: docker stop -t $2 $1 && docker rm $1" >&2
      exit 1
    fi
  '';
  grace = toString instance.stopGraceSec;
in
{
  description = "Tenstorrent serving engine ${name}";
  wantedBy = [ "multi-user.target" ];
  after = [ "docker.service" ];
  requires = [ "docker.service" ];

  # A switch must not end an engine that takes minutes to boot and may be answering people. When its command has changed,
  # restart it in a quiet hour: systemctl restart tenstorrent-serving-NAME
  restartIfChanged = lib.mkDefault false;

  # Each failed boot opens the cards and compiles kernels: three tries, then a person looks.
  startLimitIntervalSec = 3600;
  startLimitBurst = 3;

  unitConfig.RequiresMountsFor = map quotedPath (
    lib.filter (source: !(lib.hasPrefix "/dev/" source)) (map (mount: mount.source) launch.mounts)
  );

  serviceConfig = {
    Type = "exec";
    # Never `rm -f`: a container of that name may be someone's running engine. ExecStop runs only after a start that
    # succeeded, so this keeps it from stopping that engine as well.
    ExecStartPre = escapeSystemdExecArgs [
      pkgs.runtimeShell
      "-c"
      refuseLeftover
      docker
      launch.container
      grace
    ];
    ExecStart = escapeSystemdExecArgs ([ docker ] ++ launch.arguments);
    # "-": the container may have ended by itself.
    ExecStop = escapeSystemdExecArgs [
      "-${docker}"
      "stop"
      "-t"
      grace
      launch.container
    ];
    TimeoutStartSec = instance.bootTimeoutSec;
    # More than `docker stop` needs, so that the daemon and not systemd ends the engine: its cards want an orderly
    # teardown.
    TimeoutStopSec = instance.stopGraceSec + 60;
    Restart = "on-failure";
    # The driver needs a moment to let go of pinned pages.
    RestartSec = 30;
    # 128 + SIGTERM is how a graceful stop ends. 137 (killed after the grace) stays a failure.
    SuccessExitStatus = 143;
    KillMode = "mixed";

    # Hardening. What runs in this unit is the docker client, which needs the daemon's socket and nothing else; the engine
    # is the daemon's child, and its own limits are in its command. Relaxed are:
    # - User: it stays root, since root owns the daemon's socket (membership of the group docker is no less than root).
    # - PrivateUsers: in a user namespace the socket's owner would be no one.
    # - ProcSubset: the client reads /proc/sys and /proc/cpuinfo through Go's runtime.
    # - SystemCallFilter: without "~@privileged @resources", as Go raises its limit of open files at start.
    AmbientCapabilities = "";
    CapabilityBoundingSet = "";
    LockPersonality = true;
    MemoryDenyWriteExecute = true;
    NoNewPrivileges = true;
    # The daemon hands the cards to the container; the client opens none.
    PrivateDevices = true;
    # The daemon is reached by a socket file, which a network namespace does not hide.
    PrivateNetwork = true;
    PrivateTmp = true;
    ProtectClock = true;
    ProtectControlGroups = true;
    # Empty, not forbidden: the client looks for its configuration there, and warns when it may not.
    ProtectHome = "tmpfs";
    ProtectHostname = true;
    ProtectKernelLogs = true;
    ProtectKernelModules = true;
    ProtectKernelTunables = true;
    ProtectProc = "invisible";
    ProtectSystem = "strict";
    RestrictAddressFamilies = [ "AF_UNIX" ];
    RestrictNamespaces = true;
    RestrictRealtime = true;
    RestrictSUIDSGID = true;
    SystemCallArchitectures = "native";
    SystemCallFilter = [ "@system-service" ];
    UMask = "0077";
  }
  // lib.optionalAttrs (instance.environmentFile != null) {
    EnvironmentFile = path instance.environmentFile;
  };
}

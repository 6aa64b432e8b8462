# One instance as an argument list: docs/reference/launch.md, section by section. The same arm rendered by
# `ttstack.render` must give the same list; neither side knows of the other.
{
  lib,
  functions,
  top, # config.services.tenstorrent-serving
  instance,
}:
let
  inherit (functions)
    cacheKey
    flags
    ;
  inherit (instance) model;

  given = lib.filterAttrs (_: value: value != null);
  settings = given instance.settings;
  tt = given instance.tt;
  port = toString instance.port;
  hasPath = model.path != null;
  # Unset in a configuration that the assertions refuse; the text only has to be renderable then.
  id = if model.id == null then "" else model.id;
  root = if hasPath then model.path else id;

  derivedSettings = {
    host = "0.0.0.0";
    inherit (instance) port;
    served-model-name = model.servedName;
  }
  // lib.optionalAttrs (!hasPath && model.revision != "") { inherit (model) revision; }
  // lib.optionalAttrs (tt != { }) { additional-config = { inherit tt; }; };

  engine = instance.command ++ [ root ] ++ flags.render (settings // derivedSettings);

  fixedEnvironment = {
    ARCH_NAME = "blackhole";
    VLLM_PLUGINS = "tt,tt_model_registry";
    VLLM_TARGET_DEVICE = "tt";
    VLLM_USE_V2_MODEL_RUNNER = "0";
  }
  // (if hasPath then { HF_HUB_OFFLINE = "1"; } else { HF_HOME = "/hf"; });

  derivedEnvironment = {
    MESH_DEVICE = instance.mesh;
    # Indices among the devices that the engine sees, not node numbers.
    TT_VISIBLE_DEVICES = lib.concatMapStringsSep "," toString (lib.range 0 (instance.cards.count - 1));
    TT_CACHE_PATH = "/cache/tensors";
    TT_METAL_CACHE = "/cache/jit";
  };

  asked =
    fixedEnvironment // model.environment // instance.environment // instance.weightsEnvironment;
  environment = asked // derivedEnvironment;

  key = cacheKey {
    model = if id != "" then id else root;
    inherit (model) revision;
    inherit (instance) mesh;
    dtype = settings.dtype or "auto";
    optimizations = tt.optimizations or "default";
    format = instance.cacheFormat;
    env =
      instance.weightsEnvironment
      // lib.filterAttrs (name: _: lib.elem name model.weightsVariables) asked;
  };

  container = "ttx-${instance.arm}";
  cacheDir = "${top.cacheDir}/${key}";
  jitDir = "${top.cacheDir}/jit/${instance.arm}-${instance.cacheFormat}";

  node = number: "/dev/tenstorrent/${toString number}";
  sources =
    if instance.cards.ids == [ ] then
      lib.genList node instance.cards.count
    else
      map (id: "/dev/tenstorrent/by-id/${id}") instance.cards.ids;

  labels = {
    "ttstack.arm" = instance.arm;
    "ttstack.cache" = key;
  }
  // lib.optionalAttrs (instance.cards.ids == [ ]) {
    "org.tenstorrent.tt-model.devices" = derivedEnvironment.TT_VISIBLE_DEVICES;
  };

  mounts = [
    (if hasPath then readOnly model.path model.path else writable top.hfDir "/hf")
    (writable cacheDir "/cache/tensors")
    (writable jitDir "/cache/jit")
  ]
  ++ lib.optional instance.hugepages (writable "/dev/hugepages-1G" "/dev/hugepages-1G")
  ++ map ({ source, target }: readOnly source "${instance.metalHome}/${target}") instance.overlays;
  writable = source: target: {
    inherit source target;
    readonly = false;
  };
  readOnly = source: target: {
    inherit source target;
    readonly = true;
  };

  # docker reads an IPv6 address only in brackets.
  address = if lib.hasInfix ":" instance.address then "[${instance.address}]" else instance.address;

  pair = name: value: "${name}=${value}";
  option = flag: value: [
    flag
    value
  ];
in
{
  inherit
    cacheDir
    container
    jitDir
    mounts
    sources
    ;

  # What follows `docker`.
  arguments = [
    "run"
    "--rm"
  ]
  ++ option "--name" container
  ++ option "--pull" "never"
  ++ option "--ipc" "host"
  ++ option "--cap-drop" "ALL"
  ++ option "--security-opt" "no-new-privileges"
  ++ option "--stop-timeout" (toString instance.stopGraceSec)
  ++ option "--log-driver" "json-file"
  ++ option "--log-opt" "max-size=64m"
  ++ option "--log-opt" "max-file=4"
  ++ lib.concatMap (option "--label") (lib.mapAttrsToList pair labels)
  ++ lib.concatLists (
    lib.imap0 (position: source: option "--device" "${source}:${node position}") sources
  )
  ++ lib.concatMap (
    mount:
    option "--mount" "type=bind,src=${mount.source},dst=${mount.target}${lib.optionalString mount.readonly ",readonly"}"
  ) mounts
  ++ option "--publish" "${address}:${port}:${port}"
  ++ lib.concatMap (option "--env") (lib.mapAttrsToList pair environment)
  ++ lib.concatMap (option "--env") (lib.sort builtins.lessThan instance.secrets)
  ++ [ instance.image ]
  ++ engine;
}

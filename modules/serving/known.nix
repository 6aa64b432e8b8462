# Names that mean something to the engine.
{
  # Flags that are made from other options, or may not be written at all.
  derivedFlags = {
    host = "it is 0.0.0.0 in a container; use `address`";
    port = "use `port`";
    served-model-name = "use `model.servedName`";
    revision = "use `model.revision`";
    additional-config = "use `tt`";
    model = "use `model`";
    config = "a file would hide flags from this configuration";
    uds = "the engine must listen on `port`";
    api-key = "name VLLM_API_KEY in `secrets`, as everyone can read a command line";
    hf-token = "name HF_TOKEN in `secrets`, as everyone can read a command line";
  };

  # Variables that are made from other options.
  derivedVariables = {
    MESH_DEVICE = "use `mesh`";
    TT_VISIBLE_DEVICES = "use `cards`";
    TT_METAL_VISIBLE_DEVICES = "use `cards`";
    TT_CACHE_PATH = "the cache is chosen by its key";
    TT_METAL_CACHE = "the cache is chosen by the arm";
  };

  # Never in plain sight: a command line can be read by everyone.
  secretVariables = [
    "HF_TOKEN"
    "HUGGING_FACE_HUB_TOKEN"
    "JWT_SECRET"
    "VLLM_API_KEY"
  ];

  # What vllm-tt-plugin reads of `additional_config.tt`; it ignores anything else without a word.
  knownTt = [
    "dispatch_core_axis"
    "enable_model_warmup"
    "fabric_config"
    "fabric_reliability_mode"
    "l1_small_size"
    "mpi_args"
    "optimizations"
    "rank_binding"
    "register_test_models"
    "sample_on_device_mode"
    "trace_mode"
    "trace_region_size"
    "worker_l1_size"
  ];
}

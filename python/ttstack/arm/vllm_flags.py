"""The flags of ``vllm serve``, by the kind of value that each takes.

Names and kinds as vLLM 0.25.1 defines them (``vllm/engine/arg_utils.py``, ``vllm/entrypoints/openai/cli_args.py``);
a pin with another version adds or corrects some with its ``extra-flags``.
"""

from __future__ import annotations

# --NAME and --no-NAME
_BOOL = """
allow-credentials allow-deprecated-quantization async-scheduling calculate-kv-scales cudagraph-metrics
data-parallel-external-lb data-parallel-hybrid-lb disable-cascade-attn disable-chunked-mm-input
disable-custom-all-reduce disable-fastapi-docs disable-hybrid-kv-cache-manager disable-nccl-for-dp-synchronization
disable-sliding-window disable-uvicorn-access-log enable-auto-tool-choice enable-chunked-prefill
enable-cumem-allocator enable-dbo enable-elastic-ep enable-ep-weight-filter enable-eplb enable-expert-parallel
enable-flash-late-interaction enable-flashinfer-autotune enable-force-include-usage enable-layerwise-nvtx-tracing
enable-log-deltas enable-log-outputs enable-log-requests enable-logging-iteration-details enable-lora
enable-mamba-cache-stochastic-rounding enable-mfu-metrics enable-mixed-moe-lora-format enable-mm-embeds
enable-offline-docs enable-per-request-metrics enable-prefix-caching enable-prompt-embeds enable-prompt-tokens-details
enable-request-id-headers enable-return-routed-experts enable-server-load-tracking enable-sleep-mode
enable-ssl-refresh enable-tokenizer-info-endpoint enable-tower-connector-lora enforce-eager
exclude-tools-when-tool-choice-none fail-on-environ-validation fully-sharded-loras interleave-mm-strings
jit-monitor-verbose kv-cache-metrics kv-sharing-fast-prefill language-model-only log-error-stack mm-encoder-only
numa-bind ray-workers-use-nsight return-tokens-as-token-ids scheduler-reserve-full-isl skip-mm-profiling
skip-tokenizer-init specialize-active-lora tokens-only trust-remote-code trust-request-chat-template use-fp64-gumbel
use-tqdm-on-load
"""
# --NAME only: there is no negative form
_SWITCH = """
aggregate-engine-logging data-parallel-multi-port-external-lb disable-log-stats grpc headless
"""
_INT = """
api-server-count block-size cp-kv-cache-interleave-size cpu-distributed-timeout-seconds data-parallel-rank
data-parallel-rpc-port data-parallel-size data-parallel-size-local data-parallel-start-rank
data-parallel-supervisor-port dbo-decode-token-threshold dbo-prefill-token-threshold dcp-kv-cache-interleave-size
decode-context-parallel-size distributed-timeout-seconds dp-supervisor-probe-failure-threshold h11-max-header-count
h11-max-incomplete-event-size kv-cache-memory-bytes long-prefill-token-threshold mamba-block-size
mamba-cache-philox-rounds master-port max-cpu-loras max-cudagraph-capture-size max-log-len max-logprobs
max-long-partial-prefills max-lora-rank max-loras max-model-len max-num-batched-tokens max-num-partial-prefills
max-num-seqs max-parallel-loading-workers mm-shm-cache-max-object-size-mb nnodes node-rank num-gpu-blocks-override
offload-group-size offload-num-in-group offload-prefetch-step optimization-level pipeline-parallel-size
prefill-context-parallel-size prefill-schedule-interval renderer-num-workers safetensors-prefetch-block-size
safetensors-prefetch-num-threads seed shutdown-timeout spec-tokens ssl-cert-reqs stream-interval tensor-parallel-size
ubatch-size
"""
_FLOAT = """
cpu-offload-gb dp-supervisor-probe-interval-s dp-supervisor-probe-timeout-s gpu-memory-utilization
kv-cache-metrics-sample kv-offloading-size mm-encoder-fp8-scale-save-margin mm-ipc-gpu-memory-gb mm-processor-cache-gb
video-pruning-rate watermark
"""
_STR = """
all2all-backend allowed-headers allowed-local-media-path allowed-methods allowed-origins attention-backend
chat-template chat-template-content-format code-revision config-format convert data-parallel-address
data-parallel-backend dcp-comm-backend device-ids disable-access-log-for-endpoints distributed-executor-backend
download-dir dtype expert-placement-strategy fingerprint-mode fingerprint-value gdn-prefill-backend generation-config
hf-config-path io-processor-plugin jit-monitor-mode kv-cache-dtype kv-offloading-backend linear-backend load-format
log-config-file logprobs-mode lora-dtype mamba-backend mamba-cache-dtype mamba-cache-mode mamba-ssm-cache-dtype
master-addr mm-encoder-attn-backend mm-encoder-attn-dtype mm-encoder-fp8-scale-path mm-encoder-fp8-scale-save-path
mm-encoder-tp-mode mm-processor-cache-type mm-tensor-ipc model-impl moe-backend offload-backend otlp-traces-endpoint
override-attention-dtype performance-mode prefix-caching-hash-algo pt-load-map-location quantization reasoning-parser
reasoning-parser-plugin response-role root-path runner safetensors-load-strategy scheduler-cls scheduling-policy
show-hidden-metrics-for-version spec-method spec-model ssl-ca-certs ssl-certfile ssl-ciphers ssl-keyfile tokenizer
tokenizer-mode tokenizer-revision tool-call-parser tool-parser-plugin tool-server uvicorn-log-level worker-cls
worker-extension-cls
"""
# one flag with one or more values after it (nargs="+"): given twice, only the last counts
_LIST = """
allowed-media-domains collect-detailed-traces cpu-offload-params cudagraph-capture-sizes ignore-patterns
kv-cache-dtype-skip-layers logits-processors lora-modules lora-target-modules numa-bind-cpus numa-bind-nodes
offload-params
"""
# given once per value
_APPEND = """
middleware
"""
# a JSON object
_JSON = """
attention-config compilation-config default-chat-template-kwargs default-mm-loras diffusion-config ec-transfer-config
eplb-config hf-overrides ir-op-priority kernel-config kv-events-config kv-transfer-config limit-mm-per-prompt
media-io-kwargs mm-processor-kwargs model-class-overrides model-loader-extra-config override-generation-config
pooler-config profiler-config quantization-config reasoning-config speculative-config structured-outputs-config
weight-transfer-config
"""

VLLM: dict[str, str] = {
    name: kind
    for kind, names in (
        ("bool", _BOOL),
        ("switch", _SWITCH),
        ("int", _INT),
        ("float", _FLOAT),
        ("str", _STR),
        ("list", _LIST),
        ("append", _APPEND),
        ("json", _JSON),
    )
    for name in names.split()
}
"""Flag -> kind, without those that are derived or may not be used (``ttstack.arm.flags.REFUSED``)."""

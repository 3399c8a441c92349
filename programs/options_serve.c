/* programs/options_serve.c - what llama-server and vllm serve call their options, and what jitserve makes of each.
 *
 * Every option that they list has an entry, or the name of one of jitserve's own. What changes no answer is taken and
 * told; what would change one is refused with what to do instead. tests/server/t_serve_options.c has all names.
 */
#include "programs/options.h"

#define CARDS "a model lies whole on what --device names"
#define FETCH "--hf-repo NAME fetches a model of Hugging Face's hub, and a file is given as MODEL"
#define DRAFTS "jitserve takes draft tokens from the text itself; see --speculate"
#define KV_TYPE "keys and values have one type here; give both the same, or --kv-type TYPE"
#define ROPE "positions are computed as the model's file says"
#define TEXT_ONLY "jitserve reads text only"
#define LORA "jitserve runs a model as it is; merge it into the model's file"
#define LOG "jitserve writes no log; GET /metrics has numbers"
#define PACKED "weights are packed into memory of their own"
#define CORES "numactl, taskset and chrt do this for any program"
#define BATCHES "a prompt is cut into passes on its own; --batch and --max-pass-ms say how long they are"
#define SHARED_KV "answers share the KV cache in pages, and what they have in common; --kv-memory says how much"
#define GRAMMAR "a request says so: response_format, json_schema or grammar"
#define CONTEXT_ENDS "an answer ends when its context is full; --context makes it larger"
#define TEMPLATE "give the template as a file, with --template FILE"
#define TOOLS "jitserve runs no tools; a client does, and sends what they say"
#define PARSERS "how a model writes calls and reasoning is read off its template"
#define PAGE "the page at / has no settings of the server's; --no-page leaves it out"
#define PROXY "a reverse proxy in front of jitserve does that"
#define CORS_ALL "pages of --cors-origin may use any method and header"
#define ONE_HOST "jitserve runs on one machine; several are put behind a reverse proxy"
#define PLACES "a cache of generated kernels is kept; --cache says where"
#define NAME_IT "name the model: --hf-repo OWNER/NAME"
#define PRECISION "numbers are computed as --numerics says, and weights stay as the file has them"
#define CODE_OF_MODELS "no code of a model's repository is ever run"

const struct option_foreign option_serve_table[] = {
	/* What both call otherwise. */
	{ "ctx-size ctx n-ctx num-ctx max-model-len", OPTION_SAME, "context", NULL, "auto|-1" },
	{ "predict", OPTION_SAME, "n-predict", NULL, NULL },
	{ "np n-parallel max-num-seqs", OPTION_SAME, "parallel", NULL, "-1" },
	{ "temperature", OPTION_SAME, "temp", NULL, NULL },
	{ "top-n-sigma", OPTION_SAME, "top-nsigma", NULL, NULL },
	{ "typical-p", OPTION_SAME, "typical", NULL, NULL },
	{ "l", OPTION_SAME, "logit-bias", NULL, NULL },
	{ "served-model-name", OPTION_SAME, "alias", NULL, NULL },
	{ "chat-template-file", OPTION_SAME, "template", NULL, NULL },
	{ "chat-template", OPTION_SAME_FILE, "template", TEMPLATE, NULL },
	{ "kv-cache-dtype", OPTION_SAME, "kv-type", NULL, "auto" },
	{ "cache-type-k ctk", OPTION_HALF, "kv-type", KV_TYPE, NULL },
	{ "cache-type-v ctv", OPTION_HALF, "kv-type", KV_TYPE, NULL },
	{ "dev", OPTION_SAME, "device", NULL, NULL },
	{ "rea", OPTION_SAME, "reasoning", NULL, "auto" },
	{ "think", OPTION_SAME, "reasoning-format", NULL, NULL },
	{ "slot-save-path", OPTION_SAME, "slot-save", NULL, NULL },
	{ "ssl-key-file ssl-keyfile", OPTION_SAME, "tls-key", NULL, NULL },
	{ "ssl-cert-file ssl-certfile", OPTION_SAME, "tls-cert", NULL, NULL },
	{ "cors-origins allowed-origins", OPTION_SAME_LIST, "cors-origin", NULL, NULL },
	{ "to timeout", OPTION_SAME, "read-timeout", NULL, NULL },
	{ "no-ui no-webui", OPTION_SAME, "no-page", NULL, NULL },
	{ "hf hfr", OPTION_SAME, "hf-repo", NULL, NULL },
	{ "hff", OPTION_SAME, "hf-file", NULL, NULL },
	{ "hft hf-token", OPTION_REFUSED, NULL, "set HF_TOKEN to the token; a command line is seen by all users",
	  NULL },
	{ "mu model-url dr docker-repo", OPTION_REFUSED, NULL, FETCH, NULL },

	/* llama-server: the machine. */
	{ "ngl gpu-layers n-gpu-layers sm split-mode ts tensor-split mg main-gpu ot override-tensor ncmoe n-cpu-moe "
	  "fitt "
	  "fit-target fitc fit-ctx",
	  OPTION_UNUSED_VALUE, NULL, CARDS, NULL },
	{ "cmoe cpu-moe kvo kv-offload nkvo no-kv-offload no-host op-offload no-op-offload", OPTION_UNUSED, NULL, CARDS,
	  NULL },
	{ "use-tqdm-on-load", OPTION_UNUSED_SWITCH, NULL, PACKED, NULL },
	{ "fit", OPTION_UNUSED_SWITCH, NULL, CARDS, NULL },
	{ "fa flash-attn", OPTION_UNUSED_SWITCH, NULL, "attention is always computed that way", NULL },
	{ "b batch-size ub ubatch-size", OPTION_UNUSED_VALUE, NULL, BATCHES, NULL },
	{ "tb threads-batch", OPTION_UNUSED_VALUE, NULL, "--threads is for prompts and generation alike", NULL },
	{ "mlock mmap no-mmap dio direct-io ndio no-direct-io", OPTION_UNUSED, NULL, PACKED, NULL },
	{ "lm load-mode", OPTION_UNUSED_VALUE, NULL, PACKED, NULL },
	{ "repack nr no-repack", OPTION_UNUSED, NULL, "weights are always packed", NULL },
	{ "numa prio poll prio-batch poll-batch cpu-strict cpu-strict-batch", OPTION_UNUSED_VALUE, NULL, CORES, NULL },
	{ "C cpu-mask Cr cpu-range Cb cpu-mask-batch Crb cpu-range-batch", OPTION_REFUSED, NULL,
	  "taskset -c LIST jitserve ... says which cores are used", NULL },
	{ "warmup no-warmup", OPTION_UNUSED, NULL, "there is nothing to warm up", NULL },
	{ "check-tensors", OPTION_UNUSED, NULL, "files are always checked", NULL },
	{ "rpc", OPTION_REFUSED, NULL, ONE_HOST, NULL },
	{ "list-devices", OPTION_REFUSED, NULL, "jitrun --devices lists them", NULL },
	{ "cl cache-list", OPTION_REFUSED, NULL, "jitrun list lists the models that are on this machine", NULL },
	{ "completion-bash", OPTION_REFUSED, NULL, "--print-completion bash prints it", NULL },
	{ "usage", OPTION_REFUSED, NULL, "--help has the options for every day, --help-all all", NULL },
	{ "license", OPTION_REFUSED, NULL, "the file LICENSE has it", NULL },

	/* Its cache. */
	{ "cb cont-batching nocb no-cont-batching", OPTION_UNUSED, NULL, "requests are always computed together",
	  NULL },
	{ "swa-full kvu kv-unified no-kvu no-kv-unified cache-idle-slots no-cache-idle-slots", OPTION_UNUSED, NULL,
	  SHARED_KV, NULL },
	{ "ctxcp ctx-checkpoints swa-checkpoints cms checkpoint-min-step cram cache-ram dt defrag-thold cache-reuse",
	  OPTION_UNUSED_VALUE, NULL, SHARED_KV, NULL },
	{ "cache-prompt no-cache-prompt", OPTION_UNUSED, NULL,
	  "what was computed is always used again, and changes no bit; a request's cache_prompt says otherwise", NULL },
	{ "sps slot-prompt-similarity", OPTION_UNUSED_VALUE, NULL, SHARED_KV, NULL },
	{ "lcs lookup-cache-static lcd lookup-cache-dynamic", OPTION_REFUSED, NULL, DRAFTS, NULL },
	{ "keep", OPTION_REFUSED, NULL, CONTEXT_ENDS, "0" },
	{ "context-shift", OPTION_REFUSED, NULL, CONTEXT_ENDS, NULL },
	{ "no-context-shift", OPTION_UNUSED, NULL, CONTEXT_ENDS, NULL },

	/* What of its options a request says here. */
	{ "r reverse-prompt", OPTION_REFUSED, NULL, "a request says so: stop", NULL },
	{ "sp special ignore-eos", OPTION_REFUSED, NULL, "a request says so: return_tokens, ignore_eos", NULL },
	{ "e escape", OPTION_UNUSED, NULL, "texts come as JSON", NULL },
	{ "no-escape", OPTION_UNUSED, NULL, "texts come as JSON", NULL },
	{ "grammar grammar-file j json-schema jf json-schema-file", OPTION_REFUSED, NULL, GRAMMAR, NULL },
	{ "sampler-seq sampling-seq", OPTION_REFUSED, NULL, "name the samplers: --samplers \"top_k;top_p;temperature\"",
	  NULL },
	{ "bs backend-sampling", OPTION_UNUSED, NULL, "it changes nothing of what is chosen", NULL },
	{ "spm-infill", OPTION_REFUSED, NULL, "/infill puts the parts in the order that the model's file says", NULL },
	{ "embd-normalize", OPTION_REFUSED, NULL, "embeddings have length 1", "2" },
	{ "reasoning-budget", OPTION_REFUSED, NULL,
	  "a request says so: reasoning_budget; --reasoning off is for all of them", "-1" },
	{ "reasoning-budget-message", OPTION_REFUSED, NULL, "a request says so: reasoning_budget_message", NULL },
	{ "reasoning-preserve no-reasoning-preserve", OPTION_UNUSED, NULL,
	  "the model's template says what becomes of earlier reasoning", NULL },
	{ "chat-template-kwargs default-chat-template-kwargs", OPTION_REFUSED, NULL,
	  "a request says so: chat_template_kwargs; --reasoning on and off are for all of them", "{}" },
	{ "jinja", OPTION_UNUSED, NULL, "chat templates are always read as Jinja", NULL },
	{ "no-jinja", OPTION_REFUSED, NULL, "chat templates are always read as Jinja; /v1/completions uses none",
	  NULL },
	{ "skip-chat-parsing", OPTION_REFUSED, NULL, "/v1/completions gives the text as the model wrote it", NULL },
	{ "no-skip-chat-parsing prefill-assistant no-prefill-assistant", OPTION_UNUSED, NULL,
	  "a request whose last message is the assistant's is gone on with", NULL },

	/* Adapters, pictures, drafts, positions. */
	{ "lora lora-scaled control-vector control-vector-scaled control-vector-layer-range", OPTION_REFUSED, NULL,
	  LORA, NULL },
	{ "lora-init-without-apply", OPTION_REFUSED, NULL, LORA, NULL },
	{ "mm mmproj mmu mmproj-url mmproj-auto image-min-tokens image-max-tokens media-path mtmd-batch-max-tokens",
	  OPTION_REFUSED, NULL, TEXT_ONLY, NULL },
	{ "no-mmproj no-mmproj-auto mmproj-offload no-mmproj-offload", OPTION_UNUSED, NULL, TEXT_ONLY, NULL },
	{ "rope-scaling rope-scale rope-freq-base rope-freq-scale yarn-orig-ctx yarn-ext-factor yarn-attn-factor "
	  "yarn-beta-slow yarn-beta-fast override-kv gan grp-attn-n gaw grp-attn-w rope-theta",
	  OPTION_REFUSED, NULL, ROPE, NULL },
	{ "md model-draft spec-draft-model hfd hfrd hf-repo-draft spec-draft-hf draft draft-n draft-max draft-min "
	  "draft-n-min draft-p-min draft-p-split spec-draft-n-max spec-draft-n-min spec-draft-p-split spec-draft-p-min "
	  "spec-type spec-default",
	  OPTION_REFUSED, NULL, DRAFTS, NULL },
	{ "td threads-draft spec-draft-threads tbd threads-batch-draft spec-draft-threads-batch Cd cpu-mask-draft "
	  "spec-draft-cpu-mask Crd cpu-range-draft spec-draft-cpu-range cpu-strict-draft spec-draft-cpu-strict "
	  "prio-draft "
	  "spec-draft-prio poll-draft spec-draft-poll Cbd cpu-mask-batch-draft spec-draft-cpu-mask-batch Crbd "
	  "cpu-range-batch-draft spec-draft-cpu-range-batch cpu-strict-batch-draft spec-draft-cpu-strict-batch "
	  "prio-batch-draft spec-draft-prio-batch poll-batch-draft spec-draft-poll-batch ctkd cache-type-k-draft "
	  "spec-draft-type-k ctvd cache-type-v-draft spec-draft-type-v otd override-tensor-draft "
	  "spec-draft-override-tensor ncmoed n-cpu-moe-draft spec-draft-ncmoe spec-draft-n-cpu-moe devd device-draft "
	  "spec-draft-device ngld gpu-layers-draft n-gpu-layers-draft spec-draft-ngl cd ctx-size-draft",
	  OPTION_UNUSED_VALUE, NULL, DRAFTS, NULL },
	{ "cmoed cpu-moe-draft spec-draft-cpu-moe spec-draft-backend-sampling no-spec-draft-backend-sampling",
	  OPTION_UNUSED, NULL, DRAFTS, NULL },
	{ "spec-ngram-mod-n-min spec-ngram-mod-n-max spec-ngram-mod-n-match spec-ngram-simple-size-n "
	  "spec-ngram-simple-size-m spec-ngram-simple-min-hits spec-ngram-map-k-size-n spec-ngram-map-k-size-m "
	  "spec-ngram-map-k-min-hits spec-ngram-map-k4v-size-n spec-ngram-map-k4v-size-m spec-ngram-map-k4v-min-hits "
	  "spec-ngram-size-n spec-ngram-size-m spec-ngram-min-hits",
	  OPTION_UNUSED_VALUE, NULL, DRAFTS, NULL },

	/* Its server. */
	{ "embedding embeddings rerank reranking", OPTION_UNUSED, NULL,
	  "every model answers /v1/embeddings, and one that "
	  "ranks /v1/rerank",
	  NULL },
	{ "metrics", OPTION_UNUSED, NULL, "GET /metrics is always answered", NULL },
	{ "slots", OPTION_UNUSED, NULL, "GET /slots is answered unless --no-slots is given", NULL },
	{ "props", OPTION_REFUSED, NULL, "GET /props is answered, and nothing is changed by POST", NULL },
	{ "ui webui", OPTION_UNUSED, NULL, "there is a page at /", NULL },
	{ "ui-config webui-config ui-config-file webui-config-file", OPTION_REFUSED, NULL, PAGE, NULL },
	{ "ui-mcp-proxy webui-mcp-proxy tools mcp-servers-config mcp-servers-json ag agent tool-server", OPTION_REFUSED,
	  NULL, TOOLS, NULL },
	{ "no-ui-mcp-proxy no-webui-mcp-proxy no-ag no-agent", OPTION_UNUSED, NULL, TOOLS, NULL },
	{ "path api-prefix root-path", OPTION_REFUSED, NULL, PROXY, NULL },
	{ "reuse-port", OPTION_REFUSED, NULL, "give each server a port of its own, or a socket from systemd", NULL },
	{ "cors-methods cors-headers allowed-methods allowed-headers", OPTION_UNUSED_VALUE, NULL, CORS_ALL, NULL },
	{ "cors-credentials allow-credentials", OPTION_REFUSED, NULL,
	  "a key goes in Authorization, and no cookies are read", NULL },
	{ "no-cors-credentials", OPTION_UNUSED, NULL, "a key goes in Authorization, and no cookies are read", NULL },
	{ "threads-http api-server-count", OPTION_UNUSED_VALUE, NULL,
	  "--max-connections says how many are open at once", NULL },
	{ "tags", OPTION_UNUSED_VALUE, NULL, "/v1/models names a model by --alias alone", NULL },
	{ "models-preset", OPTION_REFUSED, NULL, "--config FILE has the options of a server", NULL },
	{ "models-autoload", OPTION_UNUSED, NULL, "models are loaded as they are asked for", NULL },
	{ "no-models-autoload", OPTION_REFUSED, NULL, "models are loaded as they are asked for", NULL },
	{ "sleep-idle-seconds", OPTION_SAME, "keep-alive", NULL, NULL },
	{ "perf no-perf", OPTION_UNUSED, NULL, "timings are in each answer", NULL },
	{ "log-disable log-prefix no-log-prefix log-timestamps no-log-timestamps v log-verbose", OPTION_UNUSED, NULL,
	  LOG, NULL },
	{ "log-file log-colors lv verbosity log-verbosity log-prompts-dir", OPTION_UNUSED_VALUE, NULL, LOG, NULL },
	{ "embd-gemma-default fim-qwen-1.5b-default fim-qwen-3b-default fim-qwen-7b-default fim-qwen-7b-spec "
	  "fim-qwen-14b-spec fim-qwen-30b-default gpt-oss-20b-default gpt-oss-120b-default vision-gemma-4b-default "
	  "vision-gemma-12b-default",
	  OPTION_REFUSED, NULL, NAME_IT, NULL },

	/* vllm serve: the model. */
	{ "revision", OPTION_REFUSED, NULL, "--hf-repo OWNER/NAME@REVISION names one", NULL },
	{ "code-revision tokenizer-revision", OPTION_REFUSED, NULL, "all files of a model have one revision", NULL },
	{ "tokenizer hf-config-path skip-tokenizer-init", OPTION_REFUSED, NULL,
	  "the tokenizer and the configuration lie beside the weights", NULL },
	{ "tokenizer-mode load-format config-format model-impl", OPTION_REFUSED, NULL, "what a file is, its bytes say",
	  "auto" },
	{ "task runner convert", OPTION_REFUSED, NULL, "a model answers all that it can", "auto|generate|none" },
	{ "dtype", OPTION_REFUSED, NULL, PRECISION, "auto|half|float16|bfloat16|float|float32" },
	{ "q quantization quantization-config quantization-param-path", OPTION_REFUSED, NULL,
	  "weights are read as the file has them; jitquant makes smaller ones", NULL },
	{ "trust-remote-code no-trust-remote-code", OPTION_UNUSED, NULL, CODE_OF_MODELS, NULL },
	{ "download-dir", OPTION_REFUSED, NULL, "HF_HUB_CACHE says where the cache is", NULL },
	{ "safetensors-load-strategy model-loader-extra-config ignore-patterns pt-load-map-location",
	  OPTION_UNUSED_VALUE, NULL, PACKED, NULL },
	{ "hf-overrides rope-scaling logits-processor-pattern override-neuron-config override-pooler-config "
	  "pooler-config override-attention-dtype",
	  OPTION_REFUSED, NULL, "a model is run as its files say", NULL },
	{ "generation-config", OPTION_REFUSED, NULL,
	  "sampling is as the model's files say unless options say otherwise", "auto" },
	{ "override-generation-config", OPTION_REFUSED, NULL, "--temp, --top-p and so on say it", "{}" },
	{ "logits-processors", OPTION_REFUSED, NULL, CODE_OF_MODELS, NULL },
	{ "max-logprobs", OPTION_UNUSED_VALUE, NULL, "a request may ask for 20, or n_probs of any number", NULL },
	{ "logprobs-mode", OPTION_REFUSED, NULL, "a request says so: post_sampling_probs", "raw_logprobs" },
	{ "disable-sliding-window disable-cascade-attn", OPTION_UNUSED, NULL, "a model is run as its files say", NULL },
	{ "enforce-eager", OPTION_UNUSED, NULL, "kernels are generated as they are needed", NULL },
	{ "max-seq-len-to-capture cuda-graph-sizes O compilation-config optimization-level", OPTION_UNUSED_VALUE, NULL,
	  "kernels are generated for a model's shapes, and tuned by jitwarm", NULL },
	{ "performance-mode kernel-config attention-backend attention-config mamba-config", OPTION_UNUSED_VALUE, NULL,
	  "kernels are generated for a model's shapes, and tuned by jitwarm", NULL },
	{ "enable-sleep-mode", OPTION_REFUSED, NULL, "--keep-alive says when a model that nobody asks is closed",
	  NULL },
	{ "allowed-local-media-path allowed-media-domains limit-mm-per-prompt mm-processor-kwargs media-io-kwargs "
	  "mm-processor-cache-gb mm-processor-cache-type mm-encoder-tp-mode mm-encoder-attn-backend video-pruning-rate "
	  "mm-shm-cache-max-object-size-mb interleave-mm-strings skip-mm-profiling enable-mm-embeds",
	  OPTION_REFUSED, NULL, TEXT_ONLY, NULL },
	{ "disable-mm-preprocessor-cache language-model-only", OPTION_UNUSED, NULL, TEXT_ONLY, NULL },
	{ "enable-prompt-embeds", OPTION_REFUSED, NULL, "prompts are texts or tokens", NULL },
	{ "seed-per-request renderer-num-workers", OPTION_UNUSED_VALUE, NULL, "requests are computed one like another",
	  NULL },
	{ "guided-decoding-backend structured-outputs-config reasoning-config", OPTION_UNUSED_VALUE, NULL, GRAMMAR,
	  NULL },
	{ "guided-decoding-disable-fallback guided-decoding-disable-any-whitespace "
	  "guided-decoding-disable-additional-properties",
	  OPTION_UNUSED, NULL, GRAMMAR, NULL },
	{ "reasoning-parser reasoning-parser-plugin tool-call-parser tool-parser-plugin", OPTION_UNUSED_VALUE, NULL,
	  PARSERS, NULL },
	{ "enable-reasoning enable-auto-tool-choice exclude-tools-when-tool-choice-none", OPTION_UNUSED, NULL, PARSERS,
	  NULL },
	{ "chat-template-content-format", OPTION_UNUSED_VALUE, NULL, "the template says what form it reads", NULL },
	{ "trust-request-chat-template", OPTION_REFUSED, NULL, TEMPLATE, NULL },
	{ "response-role", OPTION_REFUSED, NULL, "answers are the assistant's", "assistant" },

	/* Its cards, batches and memory. */
	{ "tensor-parallel-size tp gpu-memory-utilization swap-space cpu-offload-gb cpu-offload-params block-size "
	  "num-gpu-blocks-override num-lookahead-slots kv-offloading-size kv-offloading-backend kv-cache-memory-bytes "
	  "mamba-cache-dtype mamba-ssm-cache-dtype mamba-block-size mamba-cache-mode prefix-caching-hash-algo "
	  "kv-sharing-fast-prefill offload-backend",
	  OPTION_UNUSED_VALUE, NULL, SHARED_KV, NULL },
	{ "enable-prefix-caching no-enable-prefix-caching use-v2-block-manager calculate-kv-scales "
	  "disable-hybrid-kv-cache-manager no-disable-hybrid-kv-cache-manager",
	  OPTION_UNUSED, NULL, SHARED_KV, NULL },
	{ "enable-chunked-prefill multi-step-stream-outputs disable-chunked-mm-input async-scheduling",
	  OPTION_UNUSED_SWITCH, NULL, BATCHES, NULL },
	{ "max-num-batched-tokens max-num-partial-prefills max-long-partial-prefills long-prefill-token-threshold "
	  "num-scheduler-steps scheduler-delay-factor scheduling-policy preemption-mode scheduler-cls stream-interval "
	  "watermark scheduler-reserve-full-isl",
	  OPTION_UNUSED_VALUE, NULL, BATCHES, NULL },
	{ "pipeline-parallel-size pp data-parallel-size dp decode-context-parallel-size dcp "
	  "prefill-context-parallel-size pcp nnodes n data-parallel-size-local dpl",
	  OPTION_REFUSED, NULL, ONE_HOST, "1" },
	{ "distributed-executor-backend worker-cls worker-extension-cls max-parallel-loading-workers master-addr "
	  "master-port node-rank r data-parallel-rank dpn data-parallel-start-rank dpr data-parallel-address dpa "
	  "data-parallel-rpc-port dpp data-parallel-backend dpb all2all-backend ubatch-size num-redundant-experts "
	  "eplb-config expert-placement-strategy tokenizer-pool-size tokenizer-pool-type tokenizer-pool-extra-config "
	  "distributed-timeout-seconds dbo-decode-token-threshold dbo-prefill-token-threshold "
	  "data-parallel-supervisor-port dp-supervisor-probe-interval-s dp-supervisor-probe-timeout-s "
	  "dp-supervisor-probe-failure-threshold dcp-kv-cache-interleave-size cp-kv-cache-interleave-size",
	  OPTION_UNUSED_VALUE, NULL, ONE_HOST, NULL },
	{ "worker-use-ray engine-use-ray ray-workers-use-nsight disable-custom-all-reduce enable-expert-parallel ep "
	  "data-parallel-hybrid-lb dph data-parallel-external-lb dpe data-parallel-multi-port-external-lb enable-eplb "
	  "enable-dbo enable-multimodal-encoder-data-parallel headless enable-elastic-ep",
	  OPTION_UNUSED, NULL, ONE_HOST, NULL },
	{ "kv-transfer-config kv-events-config ec-transfer-config weight-transfer-config", OPTION_REFUSED, NULL,
	  ONE_HOST, NULL },
	{ "tokens-only", OPTION_REFUSED, NULL, ONE_HOST, NULL },
	{ "sc spec-method spec-model spec-tokens speculative-config speculative-model speculative-model-quantization "
	  "num-speculative-tokens speculative-draft-tensor-parallel-size spec-draft-tp speculative-max-model-len "
	  "speculative-disable-by-batch-size ngram-prompt-lookup-max ngram-prompt-lookup-min "
	  "spec-decoding-acceptance-method typical-acceptance-sampler-posterior-threshold "
	  "typical-acceptance-sampler-posterior-alpha speculative-disable-mqa-scorer "
	  "disable-logprobs-during-spec-decoding qlora-adapter-name-or-path",
	  OPTION_REFUSED, NULL, DRAFTS, NULL },
	{ "enable-lora enable-lora-bias lora-modules fully-sharded-loras max-loras max-lora-rank lora-extra-vocab-size "
	  "lora-dtype max-cpu-loras long-lora-scaling-factors default-mm-loras lora-target-modules "
	  "specialize-active-lora "
	  "enable-tower-connector-lora enable-prompt-adapter max-prompt-adapters max-prompt-adapter-token "
	  "prompt-adapters",
	  OPTION_REFUSED, NULL, LORA, NULL },

	/* Its server. */
	{ "uds", OPTION_REFUSED, NULL, "systemd hands over any socket; see LISTEN_FDS", NULL },
	{ "ssl-ca-certs ssl-ciphers", OPTION_REFUSED, NULL, PROXY, NULL },
	{ "ssl-cert-reqs", OPTION_REFUSED, NULL, PROXY, "0" },
	{ "enable-ssl-refresh", OPTION_REFUSED, NULL, PROXY, NULL },
	{ "middleware", OPTION_REFUSED, NULL, PROXY, NULL },
	{ "uvicorn-log-level max-log-len log-config-file disable-access-log-for-endpoints otlp-traces-endpoint "
	  "collect-detailed-traces show-hidden-metrics-for-version kv-cache-metrics-sample aggregate-engine-logging "
	  "observability-config profiler-config fingerprint-mode fingerprint-value",
	  OPTION_UNUSED_VALUE, NULL, LOG, NULL },
	{ "disable-log-stats disable-log-requests enable-log-requests disable-uvicorn-access-log enable-log-outputs "
	  "enable-log-deltas log-error-stack kv-cache-metrics cudagraph-metrics enable-layerwise-nvtx-tracing "
	  "enable-mfu-metrics enable-logging-iteration-details",
	  OPTION_UNUSED, NULL, LOG, NULL },
	{ "return-tokens-as-token-ids", OPTION_REFUSED, NULL, "a request says so: return_tokens", NULL },
	{ "enable-request-id-headers enable-prompt-tokens-details enable-per-request-metrics "
	  "enable-server-load-tracking enable-force-include-usage enable-tokenizer-info-endpoint "
	  "disable-frontend-multiprocessing disable-fastapi-docs enable-offline-docs enable-flash-late-interaction "
	  "disable-async-output-proc disable-endpoint-pickling grpc",
	  OPTION_UNUSED, NULL, "docs/serving.md says what is in answers, and at which addresses", NULL },
	{ "h11-max-incomplete-event-size h11-max-header-count", OPTION_UNUSED_VALUE, NULL,
	  "the head of a request is bounded, and --max-body bounds the rest", NULL },
	{ "cohere-is-reasoning-model", OPTION_UNUSED, NULL, PARSERS, NULL },
	{ "cohere-format", OPTION_UNUSED_VALUE, NULL, TEMPLATE, NULL },
	{ "shutdown-timeout", OPTION_SAME, "stop-timeout", NULL, NULL },
	{ "additional-config override-config", OPTION_REFUSED, NULL, "--config FILE has options by their long names",
	  NULL },
};
const int option_serve_count = sizeof option_serve_table / sizeof *option_serve_table;

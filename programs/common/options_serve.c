/* programs/common/options_serve.c - what llama-server and vllm serve call their options, and what jitserve makes of
 * each.
 *
 * Every option that they list has an entry, or the name of one of jitserve's own. What changes no answer is taken and
 * told; what would change one is refused with what to do instead. tests/server/t_serve_options.c has all names.
 */
#include "programs/common/options.h"

#define CARDS "a model lies whole on what --device names"
#define FETCH "--hf-repo NAME fetches a model of Hugging Face's hub, and a file is given as MODEL"
#define DRAFTS "draft tokens come from the text itself and from --draft MODEL; see --speculate"
#define KV_TYPE "keys and values have one type here; give both the same, or --kv-type TYPE"
#define ROPE "positions are computed as the model's file says"
#define PICTURES "the model's files say how its pictures are processed"
#define LORA "an adapter's files say all of it"
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
#define CACHE_SETTINGS "a cache of generated kernels is kept; --cache says where"
#define NAME_IT "name the model: --hf-repo OWNER/NAME"
#define PRECISION "numbers are computed as --numerics says, and weights stay as the file has them"
#define CODE_OF_MODELS "no code of a model's repository is ever run"

const struct option_foreign option_serve_table[] = {
#include "programs/common/options_shared.def"

	/* What both call otherwise. */
	{ "ctx-size ctx n-ctx num-ctx max-model-len", OPTION_SAME, "context", NULL, "auto|-1" },
	OPTION_AS("predict", "n-predict"),
	{ "np n-parallel max-num-seqs", OPTION_SAME, "parallel", NULL, "-1" },
	OPTION_AS("served-model-name", "alias"),
	{ "chat-template", OPTION_SAME_FILE, "template", TEMPLATE, NULL },
	{ "kv-cache-dtype", OPTION_SAME, "kv-type", NULL, "auto" },
	{ "rea", OPTION_SAME, "reasoning", NULL, "auto" },
	OPTION_AS("think", "reasoning-format"),
	OPTION_AS("slot-save-path", "slot-save"),
	OPTION_AS("ssl-key-file ssl-keyfile", "tls-key"),
	OPTION_AS("ssl-cert-file ssl-certfile", "tls-cert"),
	{ "cors-origins allowed-origins", OPTION_SAME_LIST, "cors-origin", NULL, NULL },
	OPTION_AS("to timeout", "read-timeout"),
	OPTION_AS("no-ui no-webui", "no-page"),
	OPTION_TOLD("mu model-url dr docker-repo", OPTION_REFUSED, FETCH),

	/* llama-server: the machine. */
	OPTION_TOLD("ngl gpu-layers n-gpu-layers sm split-mode ts tensor-split mg main-gpu ot override-tensor ncmoe "
	            "n-cpu-moe fitt fit-target fitc fit-ctx",
	            OPTION_UNUSED_VALUE, CARDS),
	OPTION_TOLD("use-tqdm-on-load", OPTION_UNUSED_SWITCH, PACKED),
	OPTION_TOLD("fit", OPTION_UNUSED_SWITCH, CARDS),
	OPTION_TOLD("b batch-size ub ubatch-size", OPTION_UNUSED_VALUE, BATCHES),
	OPTION_TOLD("mlock mmap no-mmap dio direct-io ndio no-direct-io", OPTION_UNUSED, PACKED),
	OPTION_TOLD("lm load-mode", OPTION_UNUSED_VALUE, PACKED),
	OPTION_TOLD("numa prio poll prio-batch poll-batch cpu-strict cpu-strict-batch", OPTION_UNUSED_VALUE, CORES),
	OPTION_TOLD("C cpu-mask Cr cpu-range Cb cpu-mask-batch Crb cpu-range-batch", OPTION_REFUSED,
	            "taskset -c LIST jitserve ... says which cores are used"),
	OPTION_TOLD("rpc", OPTION_REFUSED, ONE_HOST),
	OPTION_TOLD("list-devices", OPTION_REFUSED, "jitrun --devices lists them"),
	OPTION_TOLD("cl cache-list", OPTION_REFUSED, "jitrun list lists the models that are on this machine"),
	OPTION_TOLD("completion-bash", OPTION_REFUSED, "--print-completion bash prints it"),
	OPTION_TOLD("usage", OPTION_REFUSED, "--help has the options for every day, --help-all all"),
	OPTION_TOLD("license", OPTION_REFUSED, "the file LICENSE has it"),

	/* Its cache. */
	OPTION_TOLD("cb cont-batching nocb no-cont-batching", OPTION_UNUSED, "requests are always computed together"),
	OPTION_TOLD("swa-full kvu kv-unified no-kvu no-kv-unified cache-idle-slots no-cache-idle-slots", OPTION_UNUSED,
	            SHARED_KV),
	OPTION_TOLD("ctxcp ctx-checkpoints swa-checkpoints cms checkpoint-min-step cram cache-ram dt defrag-thold "
	            "cache-reuse",
	            OPTION_UNUSED_VALUE, SHARED_KV),
	OPTION_TOLD(
		"cache-prompt no-cache-prompt", OPTION_UNUSED,
		"what was computed is always used again, and changes no bit; a request's cache_prompt says otherwise"),
	OPTION_TOLD("sps slot-prompt-similarity", OPTION_UNUSED_VALUE, SHARED_KV),
	OPTION_TOLD("lcs lookup-cache-static lcd lookup-cache-dynamic", OPTION_REFUSED, DRAFTS),
	{ "keep", OPTION_REFUSED, NULL, CONTEXT_ENDS, "0" },
	OPTION_TOLD("context-shift", OPTION_REFUSED, CONTEXT_ENDS),
	OPTION_TOLD("no-context-shift", OPTION_UNUSED, CONTEXT_ENDS),

	/* What of its options a request says here. */
	OPTION_TOLD("r reverse-prompt", OPTION_REFUSED, "a request says so: stop"),
	OPTION_TOLD("sp special ignore-eos", OPTION_REFUSED, "a request says so: return_tokens, ignore_eos"),
	OPTION_TOLD("e escape", OPTION_UNUSED, "texts come as JSON"),
	OPTION_TOLD("no-escape", OPTION_UNUSED, "texts come as JSON"),
	OPTION_TOLD("grammar grammar-file j json-schema jf json-schema-file", OPTION_REFUSED, GRAMMAR),
	OPTION_TOLD("bs backend-sampling", OPTION_UNUSED, "it changes nothing of what is chosen"),
	{ "embd-normalize", OPTION_REFUSED, NULL, "embeddings have length 1", "2" },
	{ "reasoning-budget", OPTION_REFUSED, NULL,
	  "a request says so: reasoning_budget; --reasoning off is for all of them", "-1" },
	OPTION_TOLD("reasoning-budget-message", OPTION_REFUSED, "a request says so: reasoning_budget_message"),
	OPTION_TOLD("reasoning-preserve no-reasoning-preserve", OPTION_UNUSED,
	            "the model's template says what becomes of earlier reasoning"),
	{ "chat-template-kwargs default-chat-template-kwargs", OPTION_REFUSED, NULL,
	  "a request says so: chat_template_kwargs; --reasoning on and off are for all of them", "{}" },
	OPTION_TOLD("no-jinja", OPTION_REFUSED, "chat templates are always read as Jinja; /v1/completions uses none"),
	OPTION_TOLD("skip-chat-parsing", OPTION_REFUSED, "/v1/completions gives the text as the model wrote it"),
	OPTION_TOLD("no-skip-chat-parsing prefill-assistant no-prefill-assistant", OPTION_UNUSED,
	            "a request whose last message is the assistant's is continued"),

	/* Adapters, pictures, drafts, positions. */
	OPTION_TOLD("control-vector control-vector-scaled control-vector-layer-range", OPTION_REFUSED,
	            "there are no control vectors here; --lora takes adapters"),
	OPTION_AS("mm", "mmproj"),
	OPTION_AS("no-mmproj no-mmproj-auto language-model-only", "no-images"),
	OPTION_AS("media-path allowed-local-media-path", "image-dir"),
	OPTION_TOLD("mmu mmproj-url", OPTION_REFUSED, "--mmproj FILE takes a file"),
	OPTION_TOLD("image-min-tokens image-max-tokens", OPTION_REFUSED, PICTURES),
	OPTION_TOLD("mtmd-batch-max-tokens", OPTION_UNUSED_VALUE, "pictures are encoded one by one"),
	OPTION_TOLD("mmproj-auto mmproj-offload no-mmproj-offload", OPTION_UNUSED,
	            "an image encoder beside the model is taken, and runs on --device"),
	OPTION_TOLD(
		"rope-scaling rope-scale rope-freq-base rope-freq-scale yarn-orig-ctx yarn-ext-factor yarn-attn-factor "
		"yarn-beta-slow yarn-beta-fast override-kv gan grp-attn-n gaw grp-attn-w rope-theta",
		OPTION_REFUSED, ROPE),
#include "programs/common/draft_foreign.def"
	OPTION_TOLD("hfd hfrd hf-repo-draft spec-draft-hf", OPTION_REFUSED,
	            "--draft MODEL takes a model that is on this machine; jitpull fetches one"),
	OPTION_TOLD("spec-type spec-default", OPTION_REFUSED, DRAFTS),
	OPTION_TOLD(
		"spec-draft-threads-batch Cd "
		"cpu-mask-draft spec-draft-cpu-mask Crd cpu-range-draft spec-draft-cpu-range cpu-strict-draft "
		"spec-draft-cpu-strict prio-draft spec-draft-prio poll-draft spec-draft-poll Cbd cpu-mask-batch-draft "
		"spec-draft-cpu-mask-batch Crbd cpu-range-batch-draft spec-draft-cpu-range-batch "
		"cpu-strict-batch-draft spec-draft-cpu-strict-batch prio-batch-draft spec-draft-prio-batch "
		"poll-batch-draft spec-draft-poll-batch otd override-tensor-draft spec-draft-override-tensor ncmoed "
		"n-cpu-moe-draft spec-draft-ncmoe spec-draft-n-cpu-moe",
		OPTION_UNUSED_VALUE, DRAFTS),
	OPTION_TOLD("cmoed cpu-moe-draft spec-draft-cpu-moe spec-draft-backend-sampling no-spec-draft-backend-sampling",
	            OPTION_UNUSED, DRAFTS),
	OPTION_TOLD(
		"spec-ngram-mod-n-min spec-ngram-mod-n-max spec-ngram-mod-n-match spec-ngram-simple-size-n "
		"spec-ngram-simple-size-m spec-ngram-simple-min-hits spec-ngram-map-k-size-n spec-ngram-map-k-size-m "
		"spec-ngram-map-k-min-hits spec-ngram-map-k4v-size-n spec-ngram-map-k4v-size-m "
		"spec-ngram-map-k4v-min-hits spec-ngram-size-n spec-ngram-size-m spec-ngram-min-hits",
		OPTION_UNUSED_VALUE, DRAFTS),

	/* Its server. */
	OPTION_TOLD("embedding embeddings rerank reranking", OPTION_UNUSED,
	            "every model answers /v1/embeddings, and one that ranks /v1/rerank"),
	OPTION_TOLD("metrics", OPTION_UNUSED, "GET /metrics is always answered"),
	OPTION_TOLD("slots", OPTION_UNUSED, "GET /slots is answered unless --no-slots is given"),
	OPTION_TOLD("props", OPTION_REFUSED, "GET /props is answered, and nothing is changed by POST"),
	OPTION_TOLD("ui webui", OPTION_UNUSED, "there is a page at /"),
	OPTION_TOLD("ui-config webui-config ui-config-file webui-config-file", OPTION_REFUSED, PAGE),
	OPTION_TOLD("ui-mcp-proxy webui-mcp-proxy tools mcp-servers-config mcp-servers-json ag agent tool-server",
	            OPTION_REFUSED, TOOLS),
	OPTION_TOLD("no-ui-mcp-proxy no-webui-mcp-proxy no-ag no-agent", OPTION_UNUSED, TOOLS),
	OPTION_TOLD("path api-prefix root-path", OPTION_REFUSED, PROXY),
	OPTION_TOLD("reuse-port", OPTION_REFUSED, "give each server a port of its own, or a socket from systemd"),
	OPTION_TOLD("cors-methods cors-headers allowed-methods allowed-headers", OPTION_UNUSED_VALUE, CORS_ALL),
	OPTION_TOLD("cors-credentials allow-credentials", OPTION_REFUSED,
	            "a key goes in Authorization, and no cookies are read"),
	OPTION_TOLD("no-cors-credentials", OPTION_UNUSED, "a key goes in Authorization, and no cookies are read"),
	OPTION_TOLD("threads-http api-server-count", OPTION_UNUSED_VALUE,
	            "--max-connections says how many are open at once"),
	OPTION_TOLD("tags", OPTION_UNUSED_VALUE, "/v1/models names a model by --alias alone"),
	OPTION_TOLD("models-preset", OPTION_REFUSED, "--config FILE has the options of a server"),
	OPTION_TOLD("models-autoload", OPTION_UNUSED, "models are loaded as they are asked for"),
	OPTION_TOLD("no-models-autoload", OPTION_REFUSED, "models are loaded as they are asked for"),
	OPTION_AS("sleep-idle-seconds", "keep-alive"),
	OPTION_TOLD("perf no-perf", OPTION_UNUSED, "timings are in each answer"),
	OPTION_TOLD("log-disable log-prefix no-log-prefix log-timestamps no-log-timestamps v log-verbose",
	            OPTION_UNUSED, LOG),
	OPTION_TOLD("log-file log-colors lv verbosity log-verbosity log-prompts-dir", OPTION_UNUSED_VALUE, LOG),
	OPTION_TOLD("embd-gemma-default fim-qwen-1.5b-default fim-qwen-3b-default fim-qwen-7b-default fim-qwen-7b-spec "
	            "fim-qwen-14b-spec fim-qwen-30b-default gpt-oss-20b-default gpt-oss-120b-default "
	            "vision-gemma-4b-default vision-gemma-12b-default",
	            OPTION_REFUSED, NAME_IT),

	/* vllm serve: the model. */
	OPTION_TOLD("revision", OPTION_REFUSED, "--hf-repo OWNER/NAME@REVISION names one"),
	OPTION_TOLD("code-revision tokenizer-revision", OPTION_REFUSED, "all files of a model have one revision"),
	OPTION_TOLD("tokenizer hf-config-path skip-tokenizer-init", OPTION_REFUSED,
	            "the tokenizer and the configuration lie beside the weights"),
	{ "tokenizer-mode load-format config-format model-impl", OPTION_REFUSED, NULL, "what a file is, its bytes say",
	  "auto" },
	{ "task runner convert", OPTION_REFUSED, NULL, "a model answers all that it can", "auto|generate|none" },
	{ "dtype", OPTION_REFUSED, NULL, PRECISION, "auto|half|float16|bfloat16|float|float32" },
	OPTION_TOLD("q quantization quantization-config quantization-param-path", OPTION_REFUSED,
	            "weights are read as the file has them; jitquant makes smaller ones"),
	OPTION_TOLD("trust-remote-code no-trust-remote-code", OPTION_UNUSED, CODE_OF_MODELS),
	OPTION_TOLD("download-dir", OPTION_REFUSED, "HF_HUB_CACHE says where the cache is"),
	OPTION_TOLD("safetensors-load-strategy model-loader-extra-config ignore-patterns pt-load-map-location",
	            OPTION_UNUSED_VALUE, PACKED),
	OPTION_TOLD("hf-overrides rope-scaling logits-processor-pattern override-neuron-config override-pooler-config "
	            "pooler-config override-attention-dtype",
	            OPTION_REFUSED, "a model is run as its files say"),
	{ "generation-config", OPTION_REFUSED, NULL,
	  "sampling is as the model's files say unless options say otherwise", "auto" },
	{ "override-generation-config", OPTION_REFUSED, NULL, "--temp, --top-p and so on say it", "{}" },
	OPTION_TOLD("logits-processors", OPTION_REFUSED, CODE_OF_MODELS),
	OPTION_TOLD("max-logprobs", OPTION_UNUSED_VALUE, "a request may ask for 20, or n_probs of any number"),
	{ "logprobs-mode", OPTION_REFUSED, NULL, "a request says so: post_sampling_probs", "raw_logprobs" },
	OPTION_TOLD("disable-sliding-window disable-cascade-attn", OPTION_UNUSED, "a model is run as its files say"),
	OPTION_TOLD("enforce-eager", OPTION_UNUSED, "kernels are generated as they are needed"),
	OPTION_TOLD("max-seq-len-to-capture cuda-graph-sizes O compilation-config optimization-level",
	            OPTION_UNUSED_VALUE, "kernels are generated for a model's shapes, and tuned by jitwarm"),
	OPTION_TOLD("performance-mode kernel-config attention-backend attention-config mamba-config",
	            OPTION_UNUSED_VALUE, "kernels are generated for a model's shapes, and tuned by jitwarm"),
	OPTION_TOLD("enable-sleep-mode", OPTION_REFUSED, "--keep-alive says when a model that nobody asks is closed"),
	OPTION_TOLD("allowed-media-domains", OPTION_REFUSED, "--image-hosts HOST,... says whose pictures are fetched"),
	OPTION_TOLD("limit-mm-per-prompt", OPTION_REFUSED, "--max-images N says how many a request may have"),
	OPTION_TOLD("mm-processor-cache-gb", OPTION_REFUSED, "--image-cache MIB says how much is kept"),
	OPTION_TOLD("mm-processor-kwargs media-io-kwargs mm-processor-cache-type mm-encoder-tp-mode "
	            "mm-encoder-attn-backend video-pruning-rate mm-shm-cache-max-object-size-mb interleave-mm-strings "
	            "skip-mm-profiling enable-mm-embeds",
	            OPTION_REFUSED, PICTURES),
	OPTION_TOLD("disable-mm-preprocessor-cache", OPTION_UNUSED, "--image-cache 0 keeps nothing of pictures"),
	OPTION_TOLD("enable-prompt-embeds", OPTION_REFUSED, "prompts are texts or tokens"),
	OPTION_TOLD("seed-per-request renderer-num-workers", OPTION_UNUSED_VALUE,
	            "requests are computed one like another"),
	OPTION_TOLD("guided-decoding-backend structured-outputs-config reasoning-config", OPTION_UNUSED_VALUE, GRAMMAR),
	OPTION_TOLD("guided-decoding-disable-fallback guided-decoding-disable-any-whitespace "
	            "guided-decoding-disable-additional-properties",
	            OPTION_UNUSED, GRAMMAR),
	OPTION_TOLD("reasoning-parser reasoning-parser-plugin tool-call-parser tool-parser-plugin", OPTION_UNUSED_VALUE,
	            PARSERS),
	OPTION_TOLD("enable-reasoning enable-auto-tool-choice exclude-tools-when-tool-choice-none", OPTION_UNUSED,
	            PARSERS),
	OPTION_TOLD("chat-template-content-format", OPTION_UNUSED_VALUE, "the template says what form it reads"),
	OPTION_TOLD("trust-request-chat-template", OPTION_REFUSED, TEMPLATE),
	{ "response-role", OPTION_REFUSED, NULL, "answers are the assistant's", "assistant" },

	/* Its cards, batches and memory. */
	OPTION_TOLD("tensor-parallel-size tp gpu-memory-utilization swap-space cpu-offload-gb cpu-offload-params "
	            "block-size num-gpu-blocks-override num-lookahead-slots kv-offloading-size kv-offloading-backend "
	            "kv-cache-memory-bytes mamba-cache-dtype mamba-ssm-cache-dtype mamba-block-size mamba-cache-mode "
	            "prefix-caching-hash-algo kv-sharing-fast-prefill offload-backend",
	            OPTION_UNUSED_VALUE, SHARED_KV),
	OPTION_TOLD("enable-prefix-caching no-enable-prefix-caching use-v2-block-manager calculate-kv-scales "
	            "disable-hybrid-kv-cache-manager no-disable-hybrid-kv-cache-manager",
	            OPTION_UNUSED, SHARED_KV),
	OPTION_TOLD("enable-chunked-prefill multi-step-stream-outputs disable-chunked-mm-input async-scheduling",
	            OPTION_UNUSED_SWITCH, BATCHES),
	OPTION_TOLD("max-num-batched-tokens max-num-partial-prefills max-long-partial-prefills "
	            "long-prefill-token-threshold num-scheduler-steps scheduler-delay-factor scheduling-policy "
	            "preemption-mode scheduler-cls stream-interval watermark scheduler-reserve-full-isl",
	            OPTION_UNUSED_VALUE, BATCHES),
	{ "pipeline-parallel-size pp data-parallel-size dp decode-context-parallel-size dcp "
	  "prefill-context-parallel-size pcp nnodes n data-parallel-size-local dpl",
	  OPTION_REFUSED, NULL, ONE_HOST, "1" },
	OPTION_TOLD("distributed-executor-backend worker-cls worker-extension-cls max-parallel-loading-workers "
	            "master-addr master-port node-rank r data-parallel-rank dpn data-parallel-start-rank dpr "
	            "data-parallel-address dpa data-parallel-rpc-port dpp data-parallel-backend dpb all2all-backend "
	            "ubatch-size num-redundant-experts eplb-config expert-placement-strategy tokenizer-pool-size "
	            "tokenizer-pool-type tokenizer-pool-extra-config distributed-timeout-seconds "
	            "dbo-decode-token-threshold dbo-prefill-token-threshold data-parallel-supervisor-port "
	            "dp-supervisor-probe-interval-s dp-supervisor-probe-timeout-s "
	            "dp-supervisor-probe-failure-threshold dcp-kv-cache-interleave-size cp-kv-cache-interleave-size",
	            OPTION_UNUSED_VALUE, ONE_HOST),
	OPTION_TOLD(
		"worker-use-ray engine-use-ray ray-workers-use-nsight disable-custom-all-reduce enable-expert-parallel "
		"ep data-parallel-hybrid-lb dph data-parallel-external-lb dpe data-parallel-multi-port-external-lb "
		"enable-eplb enable-dbo enable-multimodal-encoder-data-parallel headless enable-elastic-ep",
		OPTION_UNUSED, ONE_HOST),
	OPTION_TOLD("kv-transfer-config kv-events-config ec-transfer-config weight-transfer-config", OPTION_REFUSED,
	            ONE_HOST),
	OPTION_TOLD("tokens-only", OPTION_REFUSED, ONE_HOST),
	OPTION_TOLD("sc spec-method spec-model spec-tokens speculative-config speculative-model "
	            "speculative-model-quantization num-speculative-tokens speculative-draft-tensor-parallel-size "
	            "spec-draft-tp speculative-max-model-len speculative-disable-by-batch-size ngram-prompt-lookup-max "
	            "ngram-prompt-lookup-min spec-decoding-acceptance-method "
	            "typical-acceptance-sampler-posterior-threshold typical-acceptance-sampler-posterior-alpha "
	            "speculative-disable-mqa-scorer disable-logprobs-during-spec-decoding qlora-adapter-name-or-path",
	            OPTION_REFUSED, DRAFTS),
	OPTION_TOLD("enable-lora fully-sharded-loras specialize-active-lora", OPTION_UNUSED,
	            "adapters are on where --lora, --lora-modules or --lora-dir names some"),
	OPTION_TOLD("max-loras max-cpu-loras", OPTION_UNUSED_VALUE, "a model has up to 64 adapters, all in memory"),
	OPTION_TOLD("lora-dtype", OPTION_UNUSED_VALUE, "an adapter's numbers stay what they are"),
	OPTION_TOLD("enable-lora-bias lora-extra-vocab-size long-lora-scaling-factors lora-target-modules",
	            OPTION_REFUSED, LORA),
	OPTION_TOLD("default-mm-loras enable-tower-connector-lora", OPTION_REFUSED,
	            "adapters are for the text part of a model"),
	OPTION_TOLD("enable-prompt-adapter max-prompt-adapters max-prompt-adapter-token prompt-adapters",
	            OPTION_REFUSED, "prompt adapters are not done; --lora takes those of matrices"),

	/* Its server. */
	OPTION_TOLD("uds", OPTION_REFUSED, "systemd hands over any socket; see LISTEN_FDS"),
	OPTION_TOLD("ssl-ca-certs ssl-ciphers", OPTION_REFUSED, PROXY),
	{ "ssl-cert-reqs", OPTION_REFUSED, NULL, PROXY, "0" },
	OPTION_TOLD("enable-ssl-refresh", OPTION_REFUSED, PROXY),
	OPTION_TOLD("middleware", OPTION_REFUSED, PROXY),
	OPTION_TOLD(
		"uvicorn-log-level max-log-len log-config-file disable-access-log-for-endpoints otlp-traces-endpoint "
		"collect-detailed-traces show-hidden-metrics-for-version kv-cache-metrics-sample "
		"aggregate-engine-logging observability-config profiler-config fingerprint-mode fingerprint-value",
		OPTION_UNUSED_VALUE, LOG),
	OPTION_TOLD("disable-log-stats disable-log-requests enable-log-requests disable-uvicorn-access-log "
	            "enable-log-outputs enable-log-deltas log-error-stack kv-cache-metrics cudagraph-metrics "
	            "enable-layerwise-nvtx-tracing enable-mfu-metrics enable-logging-iteration-details",
	            OPTION_UNUSED, LOG),
	OPTION_TOLD("return-tokens-as-token-ids", OPTION_REFUSED, "a request says so: return_tokens"),
	OPTION_TOLD("enable-request-id-headers enable-prompt-tokens-details enable-per-request-metrics "
	            "enable-server-load-tracking enable-force-include-usage enable-tokenizer-info-endpoint "
	            "disable-frontend-multiprocessing disable-fastapi-docs enable-offline-docs "
	            "enable-flash-late-interaction disable-async-output-proc disable-endpoint-pickling grpc",
	            OPTION_UNUSED, "docs/serving.md says what is in answers, and at which addresses"),
	OPTION_TOLD("h11-max-incomplete-event-size h11-max-header-count", OPTION_UNUSED_VALUE,
	            "the head of a request is bounded, and --max-body bounds the rest"),
	OPTION_TOLD("cohere-is-reasoning-model", OPTION_UNUSED, PARSERS),
	OPTION_TOLD("cohere-format", OPTION_UNUSED_VALUE, TEMPLATE),
	OPTION_AS("shutdown-timeout", "stop-timeout"),
	OPTION_TOLD("additional-config override-config", OPTION_REFUSED,
	            "--config FILE has options by their long names"),
};
const int option_serve_count = sizeof option_serve_table / sizeof *option_serve_table;

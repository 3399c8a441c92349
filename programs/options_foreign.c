/* programs/options_foreign.c - what llama.cpp, ollama and others call the options of a program that runs models, and
 * what jitrun makes of each.
 *
 * An entry whose row a program lacks is not there for it. What changes no text is taken and told; what would change it
 * is refused.
 */
#include "programs/options.h"

#define CARDS "jitrun computes on the CPU, unless --device names a card"
#define FETCH "jitrun pull NAME fetches a model of Hugging Face's hub, which then is a model by that name"
#define SERVER "jitrun is no server; jitserve MODEL is"
#define DRAFTS "jitrun takes draft tokens from the text itself; see --speculate"
#define KV_TYPE "keys and values have one type here; give both the same, or --kv-type TYPE"
#define ROPE "positions are computed as the model's file says"
#define TEXT_ONLY "jitrun reads text only"

const struct option_foreign option_foreign_table[] = {
	{ "m", OPTION_SAME, "model", NULL },
	{ "ctx-size ctx n-ctx num-ctx max-model-len", OPTION_SAME, "context", NULL },
	{ "predict max-tokens num-predict", OPTION_SAME, "n-predict", NULL },
	{ "temperature", OPTION_SAME, "temp", NULL },
	{ "top-n-sigma", OPTION_SAME, "top-nsigma", NULL },
	{ "typical-p", OPTION_SAME, "typical", NULL },
	{ "l", OPTION_SAME, "logit-bias", NULL },
	{ "reverse-prompt", OPTION_SAME, "stop", NULL },
	{ "sys system-prompt", OPTION_SAME, "system", NULL },
	{ "cnv conversation i interactive if interactive-first", OPTION_SAME, "chat", NULL },
	{ "no-cnv no-conversation", OPTION_SAME, "no-chat", NULL },
	{ "st", OPTION_SAME, "single-turn", NULL },
	{ "chat-template-file", OPTION_SAME, "template", NULL },
	{ "e", OPTION_SAME, "escape", NULL },
	{ "display-prompt", OPTION_SAME, "echo", NULL },
	{ "verbose-prompt", OPTION_SAME, "show-prompt", NULL },
	{ "parse-special", OPTION_SAME, "special", NULL },
	{ "ub ubatch-size", OPTION_SAME, "batch", NULL },
	{ "kv-cache-dtype", OPTION_SAME, "kv-type", NULL },
	{ "cache-type-k ctk", OPTION_HALF, "kv-type", KV_TYPE },
	{ "cache-type-v ctv", OPTION_HALF, "kv-type", KV_TYPE },
	{ "n-threads num-threads", OPTION_SAME, "threads", NULL },
	{ "dev", OPTION_SAME, "device", NULL },
	{ "list-devices", OPTION_SAME, "devices", NULL },

	{ "ngl gpu-layers n-gpu-layers", OPTION_UNUSED_VALUE, NULL, CARDS },
	{ "sm split-mode ts tensor-split mg main-gpu ot override-tensor ncmoe n-cpu-moe", OPTION_UNUSED_VALUE, NULL,
	  CARDS },
	{ "tensor-parallel-size gpu-memory-utilization", OPTION_UNUSED_VALUE, NULL, CARDS },
	{ "cmoe cpu-moe kvo kv-offload nkvo no-kv-offload no-host op-offload no-op-offload", OPTION_UNUSED, NULL,
	  CARDS },
	{ "fa flash-attn", OPTION_UNUSED_SWITCH, NULL, "attention is always computed that way" },
	{ "b batch-size", OPTION_UNUSED_VALUE, NULL,
	  "a prompt is cut into passes on its own; --batch says how long they are" },
	{ "tb threads-batch", OPTION_UNUSED_VALUE, NULL, "--threads is for prompts and generation alike" },
	{ "mlock mmap no-mmap dio direct-io ndio no-direct-io", OPTION_UNUSED, NULL,
	  "weights are packed into memory of their own" },
	{ "lm load-mode", OPTION_UNUSED_VALUE, NULL, "weights are packed into memory of their own" },
	{ "repack nr no-repack", OPTION_UNUSED, NULL, "weights are always packed" },
	{ "warmup no-warmup", OPTION_UNUSED, NULL, "there is nothing to warm up" },
	{ "jinja", OPTION_UNUSED, NULL, "chat templates are always read as Jinja" },
	{ "numa prio poll prio-batch poll-batch cpu-strict cpu-strict-batch", OPTION_UNUSED_VALUE, NULL,
	  "numactl and chrt do this for any program" },
	{ "color co", OPTION_UNUSED_SWITCH, NULL, "jitrun prints no colours" },
	{ "no-display-prompt", OPTION_UNUSED, NULL, "the prompt is printed with --echo alone" },
	{ "no-escape", OPTION_UNUSED, NULL, "a backslash is one, unless --escape is given" },
	{ "perf no-perf show-timings no-show-timings", OPTION_UNUSED, NULL,
	  "--verbose says more at the end, and --quiet nothing" },
	{ "log-disable log-prefix no-log-prefix log-timestamps no-log-timestamps simple-io", OPTION_UNUSED, NULL,
	  "jitrun writes no log" },
	{ "log-file log-colors lv verbosity log-verbosity", OPTION_UNUSED_VALUE, NULL, "jitrun writes no log" },
	{ "offline", OPTION_UNUSED, NULL, "HF_HUB_OFFLINE=1 says so to jitpull, and nothing else uses the network" },
	{ "check-tensors", OPTION_UNUSED, NULL, "files are always checked" },
	{ "swa-full kvu kv-unified no-kvu no-kv-unified", OPTION_UNUSED, NULL, "there is one KV cache for one text" },
	{ "dt defrag-thold", OPTION_UNUSED_VALUE, NULL, "the KV cache has no holes" },
	{ "keepalive", OPTION_UNUSED_VALUE, NULL, "a model is closed when jitrun ends" },
	{ "nowordwrap insecure trust-remote-code", OPTION_UNUSED, NULL, "jitrun never does otherwise" },

	{ "hf hfr", OPTION_SAME, "hf-repo", NULL },
	{ "hff", OPTION_SAME, "hf-file", NULL },
	{ "hf hfr hf-repo hff hf-file mu model-url dr docker-repo", OPTION_REFUSED, NULL, FETCH },
	{ "hft hf-token", OPTION_REFUSED, NULL, "set HF_TOKEN to the token; a command line is seen by all users" },
	{ "jf", OPTION_SAME, "json-schema-file", NULL },
	{ "format", OPTION_REFUSED, NULL, "--json-schema '{}' asks for JSON, and a schema for a form of it" },
	{ "lora lora-scaled control-vector control-vector-scaled", OPTION_REFUSED, NULL,
	  "jitrun runs a model as it is; merge it into the model's file" },
	{ "mm mmproj image audio video", OPTION_REFUSED, NULL, TEXT_ONLY },
	{ "rope-scaling rope-scale rope-freq-base rope-freq-scale yarn-orig-ctx yarn-ext-factor yarn-attn-factor",
	  OPTION_REFUSED, NULL, ROPE },
	{ "yarn-beta-slow yarn-beta-fast override-kv gan grp-attn-n gaw grp-attn-w", OPTION_REFUSED, NULL, ROPE },
	{ "md model-draft draft draft-n draft-max draft-min draft-p-min", OPTION_REFUSED, NULL, DRAFTS },
	{ "keep context-shift", OPTION_REFUSED, NULL,
	  "a text ends when its context is full; --context makes it larger" },
	{ "chat-template", OPTION_REFUSED, NULL, "give the template as a file, with --template FILE" },
	{ "no-jinja", OPTION_REFUSED, NULL, "chat templates are always read as Jinja; --no-chat does without" },
	{ "sysf system-prompt-file", OPTION_REFUSED, NULL, "give its text: --system \"$(cat FILE)\"" },
	{ "in-prefix in-suffix in-prefix-bos", OPTION_REFUSED, NULL,
	  "the chat template says what stands around a message; --template FILE takes another" },
	{ "sampler-seq sampling-seq", OPTION_REFUSED, NULL,
	  "name the samplers: --samplers \"top_k;top_p;temperature\"" },
	{ "bf binary-file in-file", OPTION_REFUSED, NULL, "--file FILE reads any file" },
	{ "ppl", OPTION_REFUSED, NULL, "give --perplexity FILE" },
	{ "C cpu-mask Cr cpu-range cpu-mask-batch cpu-range-batch", OPTION_REFUSED, NULL,
	  "taskset -c LIST jitrun ... says which cores are used" },
	{ "mli multiline-input", OPTION_REFUSED, NULL, "a line that ends with a backslash goes on in the next one" },
	{ "host port np parallel cb cont-batching api-key serve", OPTION_REFUSED, NULL, SERVER },
	{ "rpc", OPTION_REFUSED, NULL, "jitrun runs on one machine" },
	{ "pg", OPTION_REFUSED, NULL, "give -p and -n; prompt and generation are timed apart" },
	{ "mmp", OPTION_UNUSED_VALUE, NULL, "weights are packed into memory of their own" },
};
const int option_foreign_count = sizeof option_foreign_table / sizeof *option_foreign_table;

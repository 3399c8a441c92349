/* programs/common/options_foreign.c - what llama.cpp, ollama and others call the options of a program that runs models,
 * and what jitrun makes of each.
 *
 * An entry whose row a program lacks is not there for it. What changes no text is taken and told; what would change it
 * is refused.
 */
#include "programs/common/options.h"

#define CARDS "jitrun computes on the CPU, unless --device names a card"
#define FETCH "jitrun pull NAME fetches a model of Hugging Face's hub, which then is a model by that name"
#define SERVER "jitrun is no server; jitserve MODEL is"
#define KV_TYPE "keys and values have one type here; give both the same, or --kv-type TYPE"
#define ROPE "positions are computed as the model's file says"
#define TEXT_ONLY "jitrun reads text only"

const struct option_foreign option_foreign_table[] = {
#include "programs/common/options_shared.def"

	OPTION_AS("m", "model"),
	OPTION_AS("ctx-size ctx n-ctx num-ctx max-model-len", "context"),
	OPTION_AS("predict max-tokens num-predict", "n-predict"),
	OPTION_AS("reverse-prompt", "stop"),
	OPTION_AS("sys system-prompt", "system"),
	OPTION_AS("cnv conversation i interactive if interactive-first", "chat"),
	OPTION_AS("no-cnv no-conversation", "no-chat"),
	OPTION_AS("st", "single-turn"),
	OPTION_AS("e", "escape"),
	OPTION_AS("display-prompt", "echo"),
	OPTION_AS("verbose-prompt", "show-prompt"),
	OPTION_AS("parse-special", "special"),
	OPTION_AS("ub ubatch-size", "batch"),
	OPTION_AS("kv-cache-dtype", "kv-type"),
	OPTION_AS("n-threads num-threads", "threads"),
	OPTION_AS("list-devices", "devices"),

	OPTION_TOLD("ngl gpu-layers n-gpu-layers", OPTION_UNUSED_VALUE, CARDS),
	OPTION_TOLD("sm split-mode ts tensor-split mg main-gpu ot override-tensor ncmoe n-cpu-moe", OPTION_UNUSED_VALUE,
	            CARDS),
	OPTION_TOLD("tensor-parallel-size gpu-memory-utilization", OPTION_UNUSED_VALUE, CARDS),
	OPTION_TOLD("b batch-size", OPTION_UNUSED_VALUE,
	            "a prompt is cut into passes on its own; --batch says how long they are"),
	OPTION_TOLD("mlock mmap no-mmap dio direct-io ndio no-direct-io", OPTION_UNUSED,
	            "weights are packed into memory of their own"),
	OPTION_TOLD("lm load-mode", OPTION_UNUSED_VALUE, "weights are packed into memory of their own"),
	OPTION_TOLD("numa prio poll prio-batch poll-batch cpu-strict cpu-strict-batch", OPTION_UNUSED_VALUE,
	            "numactl and chrt do this for any program"),
	OPTION_TOLD("color co", OPTION_UNUSED_SWITCH, "jitrun prints no colours"),
	OPTION_TOLD("no-display-prompt", OPTION_UNUSED, "the prompt is printed with --echo alone"),
	OPTION_TOLD("no-escape", OPTION_UNUSED, "a backslash is one, unless --escape is given"),
	OPTION_TOLD("perf no-perf show-timings no-show-timings", OPTION_UNUSED,
	            "--verbose says more at the end, and --quiet nothing"),
	OPTION_TOLD("log-disable log-prefix no-log-prefix log-timestamps no-log-timestamps simple-io", OPTION_UNUSED,
	            "jitrun writes no log"),
	OPTION_TOLD("log-file log-colors lv verbosity log-verbosity", OPTION_UNUSED_VALUE, "jitrun writes no log"),
	OPTION_TOLD("offline", OPTION_UNUSED, "nothing is fetched"),
	OPTION_TOLD("swa-full kvu kv-unified no-kvu no-kv-unified", OPTION_UNUSED,
	            "there is one KV cache for one text"),
	OPTION_TOLD("dt defrag-thold", OPTION_UNUSED_VALUE, "the KV cache has no holes"),
	OPTION_TOLD("keepalive", OPTION_UNUSED_VALUE, "a model is closed when jitrun ends"),
	OPTION_TOLD("nowordwrap insecure trust-remote-code", OPTION_UNUSED, "jitrun never does otherwise"),

	OPTION_TOLD("hf hfr hf-repo hff hf-file mu model-url dr docker-repo", OPTION_REFUSED, FETCH),
	OPTION_AS("jf", "json-schema-file"),
	OPTION_TOLD("format", OPTION_REFUSED, "--json-schema '{}' asks for JSON, and a schema for a form of it"),
	OPTION_TOLD("control-vector control-vector-scaled", OPTION_REFUSED,
	            "jitrun runs a model as it is; merge it into the model's file"),
	OPTION_AS("mm", "mmproj"),
	OPTION_TOLD("audio video", OPTION_REFUSED, TEXT_ONLY),
	OPTION_TOLD(
		"rope-scaling rope-scale rope-freq-base rope-freq-scale yarn-orig-ctx yarn-ext-factor yarn-attn-factor",
		OPTION_REFUSED, ROPE),
	OPTION_TOLD("yarn-beta-slow yarn-beta-fast override-kv gan grp-attn-n gaw grp-attn-w", OPTION_REFUSED, ROPE),
#include "programs/common/draft_foreign.def"
	OPTION_TOLD("hfd hfrd hf-repo-draft spec-draft-hf", OPTION_REFUSED, FETCH),
	OPTION_TOLD("keep context-shift", OPTION_REFUSED,
	            "a text ends when its context is full; --context makes it larger"),
	OPTION_TOLD("chat-template", OPTION_REFUSED, "give the template as a file, with --template FILE"),
	OPTION_TOLD("no-jinja", OPTION_REFUSED, "chat templates are always read as Jinja; --no-chat does without"),
	OPTION_TOLD("sysf system-prompt-file", OPTION_REFUSED, "give its text: --system \"$(cat FILE)\""),
	OPTION_TOLD("in-prefix in-suffix in-prefix-bos", OPTION_REFUSED,
	            "the chat template says what stands around a message; --template FILE takes another"),
	OPTION_TOLD("bf binary-file in-file", OPTION_REFUSED, "--file FILE reads any file"),
	OPTION_TOLD("ppl", OPTION_REFUSED, "give --perplexity FILE"),
	OPTION_TOLD("C cpu-mask Cr cpu-range cpu-mask-batch cpu-range-batch", OPTION_REFUSED,
	            "taskset -c LIST jitrun ... says which cores are used"),
	OPTION_TOLD("mli multiline-input", OPTION_REFUSED, "a line that ends with a backslash goes on in the next one"),
	OPTION_TOLD("host port np parallel cb cont-batching api-key serve", OPTION_REFUSED, SERVER),
	OPTION_TOLD("rpc", OPTION_REFUSED, "jitrun runs on one machine"),
	OPTION_TOLD("pg", OPTION_REFUSED, "give -p and -n; prompt and generation are timed apart"),
	OPTION_TOLD("mmp", OPTION_UNUSED_VALUE, "weights are packed into memory of their own"),
};
const int option_foreign_count = sizeof option_foreign_table / sizeof *option_foreign_table;

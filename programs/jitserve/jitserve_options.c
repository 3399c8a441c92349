/* programs/jitserve/jitserve_options.c - jitserve's command line. */
#include <limits.h>
#include <string.h>

#include "jit/target.h"
#include "programs/jitserve/jitserve.h"
#include "programs/common/shared_rows.h"
#include "runtime/host/pool.h"
#include "include/jitrun.h"

struct serve_arguments serve = {
	.host = "127.0.0.1",
	.port = 8080,
	.device = "cpu",
	.connections = 512,
	.per_address = 256,
	.read_seconds = 60,
	.alive_seconds = 15,
	.stop_seconds = 30,
	.body_mib = 16,
	.unread_kib = 1024,
	.parallel = 16,
	.queue = 256,
	.answers = 128,
	.responses = 256,
	.responses_mib = 64,
	.responses_seconds = 86400,
	.slot_files = 256,
	.slot_mib = 16384,
	.models_max = -1,
	.kv_type = "f16",
	.numerics = "exact",
	.speculate = "auto",
	.draft.kv_type = "f16",
	.predict = -1,
	.reasoning_budget = -1,
};

static struct option_about about;
static char isa_choices[TARGET_LIST_MAX];

static const struct option_row rows[] = {
	{ .name = "config",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "options that are not given here, nor by the environment: a line each, long name = value",
	  .target = &serve.config },
	{ .name = "Where", .kind = OPTION_GROUP },
	{ .name = "host",
	  .kind = OPTION_TEXT,
	  .value = "ADDRESS",
	  .help = "the address to listen on; one that other machines reach needs a key (127.0.0.1)",
	  .target = &serve.host },
	{ .name = "port",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "the port; 0: any that is free, which the ready message names (8080)",
	  .high = 65535,
	  .target = &serve.port },
	{ .name = "probe",
	  .kind = OPTION_FLAG,
	  .help = "serve nothing: ask the server at --host and --port whether it is ready (exit status 0, else 1)",
	  .target = &serve.probe },
	{ .name = "Who may ask", .kind = OPTION_GROUP },
	{ .name = "api-key",
	  .kind = OPTION_LIST,
	  .value = "KEY",
	  .help = "a key as those of --api-key-file; several times, or with commas between: any of these; all users "
	          "of this machine see it in ps, so that JITRUN_API_KEY or the file is better",
	  .target = &serve.api_key },
	{ .name = "api-key-file",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "answer only those who send one of the keys in FILE, one a line, as a bearer token or as X-Api-Key",
	  .target = &serve.api_key_file },
	{ .name = "tls-cert",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "speak HTTPS alone, with the certificate in FILE, in PEM form, those that vouch for it behind it",
	  .target = &serve.tls_cert },
	{ .name = "tls-key",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "the key that belongs to --tls-cert, in PEM form",
	  .target = &serve.tls_key },
	{ .name = "insecure",
	  .kind = OPTION_FLAG,
	  .help = "listen where other machines reach it without any key",
	  .target = &serve.insecure },
	{ .name = "allow-host",
	  .kind = OPTION_LIST,
	  .value = "NAME",
	  .help = "a name by which clients call this server, in the header field Host; on 127.0.0.1 all but its own "
	          "names are refused, so that no web page can ask through a name of its own; several times: any of "
	          "these",
	  .target = &serve.allow_host },
	{ .name = "no-page", .kind = OPTION_FLAG, .help = "serve no web page at /", .target = &serve.no_page },
	{ .name = "cors-origin",
	  .kind = OPTION_LIST,
	  .value = "ORIGIN",
	  .help = "let web pages of ORIGIN ask, such as https://example.org; localhost: of this machine, from any "
	          "port; *: all; several times: any of these",
	  .target = &serve.cors_origin },
	{ .name = "Models", .kind = OPTION_GROUP },
	{ .name = "model",
	  .letter = 'm',
	  .kind = OPTION_LIST,
	  .value = "MODEL",
	  .help = "a model, in the place of MODEL or behind those",
	  .target = &serve.more_models },
	{ .name = "hf-repo",
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "another model: OWNER/NAME[:QUANT] of Hugging Face's hub, which jitpull fetches unless it is here; "
	          "also -hf",
	  .target = &serve.hf_repo },
	ROW_HF_FILE(serve.hf_file),
	ROW_OFFLINE(serve.offline),
	{ .name = "alias",
	  .letter = 'a',
	  .kind = OPTION_LIST,
	  .value = "NAME",
	  .help = "what requests call the first model, whose file's name is understood as well; several times: the "
	          "second model, and so on",
	  .target = &serve.alias },
	{ .name = "models-dir",
	  .kind = OPTION_FILE,
	  .value = "DIR",
	  .help = "serve every model in DIR and the folders in it, by its file's name without the ending: those that "
	          "are there and those that come. Each is opened when it is asked for",
	  .target = &serve.models_dir },
	{ .name = "presets-dir",
	  .kind = OPTION_TEXT,
	  .value = "DIR",
	  .help = "serve the presets in DIR, and let clients make, copy and delete such models: POST /api/create",
	  .target = &serve.presets_dir },
	{ .name = "models-max",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "models that are open at once; one that was not used for the longest leaves for another, as soon as "
	          "it answers nobody; 0: any number (with --models-dir or --presets-dir 4, else 0)",
	  .low = 0,
	  .high = SERVE_MAX_MODELS,
	  .target = &serve.models_max },
	{ .name = "keep-alive",
	  .kind = OPTION_TEXT,
	  .value = "DURATION",
	  .help = "how long a model stays open that nobody asks: seconds, or a duration such as 5m or 1h30m; 0: until "
	          "its last answer ends; -1: for good (with --models-dir or --presets-dir 5m, else -1)",
	  .target = &serve.keep_alive },
	{ .name = "memory-limit",
	  .kind = OPTION_INT,
	  .value = "MIB",
	  .help = "memory that all models may take, each with its KV cache: the first is loaded at the start, others "
	          "when they are asked for, and those that were not used for the longest leave to make room; 0: seven "
	          "eighths of what is free, where there are several (0)",
	  .high = 1 << 30,
	  .target = &serve.memory_mib },
	ROW_THREADS(serve.threads),
	{ .name = "device",
	  .letter = 'd',
	  .kind = OPTION_OPEN_CHOICE,
	  .value = "cpu|ref",
	  .help = "what computes, as jitrun --device (cpu)",
	  .target = &serve.device },
	ROW_RANKS(serve.ranks),
	ROW_SPLIT(serve.split),
	ROW_ISA(isa_choices, serve.isa),
	ROW_CACHE(serve.cache_dir),
	ROW_NO_CACHE(serve.no_cache),
	ROW_SEALED(serve.sealed),
	{ .name = "lora",
	  .kind = OPTION_LIST,
	  .value = "[NAME=]FILE[:SCALE]",
	  .help = "an adapter (LoRA) of the first model: a folder of PEFT's, or a GGUF file; one with a NAME is used "
	          "by requests that have it as model, others by all that say nothing, times SCALE (1); several times: "
	          "each of these",
	  .target = &serve.lora },
	{ .name = "lora-scaled",
	  .kind = OPTION_LIST,
	  .value = "FILE:SCALE",
	  .help = "the same, as llama.cpp writes it; behind those of --lora",
	  .target = &serve.lora_scaled },
	{ .name = "lora-modules",
	  .kind = OPTION_LIST,
	  .value = "NAME=FILE",
	  .help = "the same, as vLLM writes it: also a JSON object with name, path and base_model_name, the model it "
	          "is "
	          "for; once for each",
	  .target = &serve.lora_modules },
	{ .name = "lora-init-without-apply",
	  .kind = OPTION_FLAG,
	  .help = "adapters without a name have scale 0 until POST /lora-adapters or a request says otherwise",
	  .target = &serve.lora_unapplied },
	{ .name = "lora-dir",
	  .kind = OPTION_TEXT,
	  .value = "DIR",
	  .help = "let clients load and unload adapters that are in DIR: POST /v1/load_lora_adapter and "
	          "/v1/unload_lora_adapter",
	  .target = &serve.lora_dir },
	{ .name = "max-lora-rank",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "ranks that the adapters of one request may have together, a multiple of 4; 0: 256 (0)",
	  .high = 16384,
	  .target = &serve.lora_ranks },
#include "programs/jitserve/options_images.def"
	{ .name = "template",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "read the chat template from FILE instead of from the model; a model without one gets ChatML",
	  .target = &serve.template_file },
	{ .name = "reasoning",
	  .kind = OPTION_CHOICE,
	  .value = "template|on|off|auto",
	  .help = "whether models that can do both shall reason before they answer; a request's chat_template_kwargs "
	          "with enable_thinking, and its reasoning_effort, say otherwise (as the template does)",
	  .target = &serve.reasoning },
#include "programs/common/reasoning_rows.def"
	{ .name = "reasoning-format",
	  .kind = OPTION_CHOICE,
	  .value = "auto|none|deepseek",
	  .help = "where a model's reasoning stands in answers: none: in the text, else in reasoning_content (auto)",
	  .target = &serve.reasoning_format },
	{ .name = "pooling",
	  .kind = OPTION_CHOICE,
	  .value = "last|mean|cls|rank|none",
	  .help = "what a text's embedding is: the row of its last token, the mean of all, or the first token's row; "
	          "rank: the model ranks texts and has no vectors; none: /embedding gives one of each token (as the "
	          "model's files say, else last, of models that encode mean)",
	  .target = &serve.pooling },
	{ .name = "Requests", .kind = OPTION_GROUP },
	{ .name = "n-predict",
	  .letter = 'n',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "most tokens of an answer whose request does not say; -1: as many as its context holds (-1)",
	  .low = -1,
	  .high = INT_MAX,
	  .target = &serve.predict },
	{ .name = "parallel",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "answers that are computed together (16)",
	  .low = 1,
	  .high = 1024,
	  .target = &serve.parallel },
	{ .name = "queue",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "answers that may wait beyond these; more are refused with status 429 (256)",
	  .high = 100000,
	  .target = &serve.queue },
	{ .name = "context",
	  .letter = 'c',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "size of each answer's context in tokens, which is never divided; 0: what the model was trained for, "
	          "as far as the memory for the KV cache goes, but 4096 in any case. Memory is only taken for tokens "
	          "that are there (0)",
	  .high = INT_MAX,
	  .target = &serve.context },
	ROW_KV_TYPE(serve.kv_type),
	ROW_NUMERICS("exact: the same bits on every device; bounded: BF16 weights may be multiplied in pairs, within a "
	             "stated error, where this CPU has AVX512_BF16 and measures them at least 1.4 times as fast as "
	             "floats; answers still depend on nothing else; always-bounded: where it does not, too (exact)",
	             serve.numerics),
	{ .name = "kv-memory",
	  .kind = OPTION_INT,
	  .value = "MIB",
	  .help = "memory for the KV cache of all answers, in pages that they share; 0: half of what is free; with "
	          "--memory-limit or several models, for each: half of what the weights leave, or its part of a "
	          "quarter of the limit (0)",
	  .high = 1 << 30,
	  .target = &serve.kv_mib },
	{ .name = "max-pass-ms",
	  .kind = OPTION_INT,
	  .value = "MS",
	  .help = "a prompt is cut so that one piece of it delays others no longer; 0: 200 (0)",
	  .high = 60000,
	  .target = &serve.pass_ms },
	ROW_BATCH("most tokens of a pass; 0: 264, on NVIDIA cards 512 (0)", serve.batch_tokens),
	ROW_SPECULATE(serve.speculate),
#define DRAFT serve.draft
#include "programs/common/draft_rows.def"
	{ .name = "check-bits",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "compute one of N answers again when nothing else is to be computed, alone and from its beginning, "
	          "and count in /metrics whether its logits have the same bits; 0: none (0)",
	  .high = INT_MAX,
	  .target = &serve.check_bits },
	{ .name = "slot-save",
	  .kind = OPTION_TEXT,
	  .value = "DIR",
	  .help = "let clients save what answers have computed, and restore it, in files of this folder: POST "
	          "/slots/N?action=save, restore or erase",
	  .target = &serve.slot_save },
	{ .name = "slot-files",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "files that may be in the folder of --slot-save; a slot that would be one more is not saved; 0: any "
	          "number (256)",
	  .high = 1000000,
	  .target = &serve.slot_files },
	{ .name = "slot-files-mib",
	  .kind = OPTION_INT,
	  .value = "MIB",
	  .help = "size of all files in that folder together; 0: any (16384)",
	  .high = 1 << 30,
	  .target = &serve.slot_mib },
	{ .name = "pull-with",
	  .kind = OPTION_TEXT,
	  .value = "PROGRAM",
	  .help = "let clients fetch models by POST /api/pull, which runs PROGRAM: jitpull; models in the cache are "
	          "served by name (nothing is fetched)",
	  .target = &serve.pull_with },
	{ .name = "Limits", .kind = OPTION_GROUP },
	{ .name = "max-connections",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "connections open at once (512)",
	  .low = 4,
	  .high = 100000,
	  .target = &serve.connections },
	{ .name = "max-connections-per-address",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "connections open at once from one address; behind a proxy that is the proxy's; 0: any number (256)",
	  .high = 100000,
	  .target = &serve.per_address },
	{ .name = "max-body",
	  .kind = OPTION_INT,
	  .value = "MIB",
	  .help = "size of a request (16)",
	  .low = 1,
	  .high = 1024,
	  .target = &serve.body_mib },
	{ .name = "max-answers",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "answers that one request may ask for: n, to each of its prompts (128)",
	  .low = 1,
	  .high = 100000,
	  .target = &serve.answers },
	{ .name = "max-answers-per-client",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "answers of one client that may wait or be computed, by its key, or its connection where there are "
	          "no keys; more are refused with status 429; 0: --parallel and seven eighths of --queue (0)",
	  .high = 200000,
	  .target = &serve.client_answers },
#include "programs/common/response_rows.def"
	{ .name = "max-unread",
	  .kind = OPTION_INT,
	  .value = "KIB",
	  .help = "what a client may leave unread of its answer before it is dropped (1024)",
	  .low = 1,
	  .high = 1 << 20,
	  .target = &serve.unread_kib },
	{ .name = "read-timeout",
	  .kind = OPTION_INT,
	  .value = "SECONDS",
	  .help = "time in which a request must arrive whole, and in which a client must have read what is left of an "
	          "answer that is complete (60)",
	  .low = 1,
	  .high = 3600,
	  .target = &serve.read_seconds },
	{ .name = "sse-ping-interval",
	  .kind = OPTION_INT,
	  .value = "SECONDS",
	  .help = "silence in a stream after which a comment is sent (15)",
	  .low = 1,
	  .high = 3600,
	  .target = &serve.alive_seconds },
	{ .name = "stop-timeout",
	  .kind = OPTION_INT,
	  .value = "SECONDS",
	  .help = "time that running requests have to end when the server is asked to stop (30)",
	  .high = 3600,
	  .target = &serve.stop_seconds },
#include "programs/jitserve/options_failure.def"
#define SAMPLING serve.sampling
#include "programs/common/sampling_rows.def"
	{ .name = "additional-properties",
	  .kind = OPTION_FLAG,
	  .help = "objects of a JSON Schema with `properties` may have other members where neither it nor the request "
	          "says (else they have none)",
	  .target = &serve.additional },
	{ .name = "Proof", .kind = OPTION_GROUP },
	{ .name = "replay",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "serve nothing; make the answer in FILE again and print its text: a JSON object with path, "
	          "request and replay, which is the header field X-Jitrun-Replay, and with answer, if that is "
	          "to be compared",
	  .target = &serve.replay },
	{ .name = "no-replay",
	  .kind = OPTION_FLAG,
	  .help = "send no X-Jitrun-Replay, for which all weights are read once at the start",
	  .target = &serve.no_replay },
	{ .name = "Output", .kind = OPTION_GROUP },
	{ .name = "no-slots",
	  .kind = OPTION_FLAG,
	  .help = "do not answer /slots, which says how many requests are being computed",
	  .target = &serve.no_slots },
	{ .name = "verbose",
	  .kind = OPTION_FLAG,
	  .help = "put the prompt and how tokens were chosen into whole answers, as __verbose; a request's verbose "
	          "wins",
	  .target = &serve.verbose },
	{ .name = "spm-infill", .kind = OPTION_FLAG, .help = "text behind a gap first", .target = &serve.spm_infill },
	{ .name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "no progress bar", .target = &serve.quiet },
	OPTION_ABOUT(about),
};

static bool given[sizeof rows / sizeof rows[0]];

static struct option_program program = {
	.name = "jitserve",
	.usage = "[MODEL...] [options]",
	.purpose = "serve language models over HTTP",
	.description =
		"jitserve answers requests as OpenAI's API has them. MODEL is a path, or a name that jitrun list "
		"prints. It is ready when it says so on "
		"standard error, and when /readyz answers with status 200. Many requests are computed"
		" together, and the answer to each is the same, bit for bit, whatever else the server"
		" computes. It listens on this machine alone unless told otherwise, speaks HTTP/1.1 "
		"without encryption unless --tls-cert is given, and belongs behind a reverse proxy where others "
		"reach it. A client that closes its connection, or its half of it, has gone: its request ends "
		"within one pass. Several models are loaded as they are asked for; options count for all of "
		"them. At / is a page for people. SIGTERM ends the server: running requests may finish within "
		"--stop-timeout.",
	.examples = "jitserve model.gguf\n"
		    "jitserve qwen3:0.6b\n"
		    "jitserve --models-dir ~/models --keep-alive 10m\n"
		    "jitserve model.gguf --host 0.0.0.0 --api-key-file keys.txt\n"
		    "curl http://127.0.0.1:8080/v1/models",
	.exit_status = ".TP\n0\nEnded as asked.\n.TP\n1\nSomething failed.\n.TP\n2\nThe command line is wrong."
		       "\n.TP\n3\nA card has failed, with --on-device-failure exit; or a rank, with --ranks.",
	.environment =
		".TP\n.B LISTEN_FDS, LISTEN_PID\nA socket from systemd, which is used instead of --host and --port.\n"
		".TP\n.B NOTIFY_SOCKET\nWhere systemd is told that the server is ready, and that it stops.\n"
		".TP\n.B JITRUN_CONTEXT, JITRUN_API_KEY ...\nEach option that is not on the command line, by its long "
		"name "
		"in large letters with _ for \\-; of flags 1 or 0, of several values a comma between. JITRUN_CONFIG is "
		"the "
		"file of options.\n.TP\n.B LLAMA_ARG_CTX_SIZE, LLAMA_API_KEY ...\nThe same by llama\\-server's names, "
		"where jitserve has such an option.\n"
		".TP\n.B COLUMNS\nColumns of the terminal, for help.",
	.files =
		".TP\n.I $XDG_CACHE_HOME/jitrun\nGenerated kernels.\n.TP\n.I FILE of \\-\\-config\nLines of long "
		"option "
		"names: context = 8192. A flag stands alone or is true or false; what may be given several times has a "
		"line each time; # begins a comment.",
	.see_also = ".BR jitrun (1),\n.BR jitwarm (1)",
	.foreign = option_serve_table,
	.given = given,
	.row = rows,
	.n_rows = sizeof rows / sizeof rows[0],
	.quiet = &serve.quiet,
	.operand = serve.model,
	.operand_name = "MODEL",
	.max_operands = SERVE_MAX_MODELS
};

bool serve_given(const char *name) { return options_given(&program, name); }

int serve_begin(int argc, char **argv)
{
	char why[400];
	int status;

	target_list(isa_choices, sizeof isa_choices, TARGETS_OF_CPUS, "", "|");
	serve.sampling = sampling_args_usual;
	program.n_foreign = option_serve_count;
	if (!options_parse(&program, argc, argv))
		return SERVE_USAGE;
	if (options_about(&program, &about, jit_version(), &status))
		return status;
	if (!serve_settings(&program))
		return SERVE_USAGE;
	if (serve.probe)
		return serve_probe();
	if ((status = serve_find_models(&program)))
		return status;
	if (serve.n_models == 0 && !serve_has_more())
		return serve_usage("which model? A GGUF file, a directory of safetensors, --models-dir or --pull-with");
	if (serve.replay && serve.models_dir)
		return serve_usage("--replay goes without --models-dir");
	if (!serve_read_keep(serve.keep_alive, &serve.keep))
		return serve_usage("--keep-alive: expected seconds, or a duration such as 5m or 1h30m; -1: for good");
	if (!sampling_args_check(&serve.sampling, why))
		return serve_usage(why);
	return serve_run();
}

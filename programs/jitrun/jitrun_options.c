/* programs/jitrun/jitrun_options.c - jitrun's command line: the table of options. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "jit/target.h"
#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/shared_rows.h"
#include "programs/common/options.h"

struct jitrun_options opt = {
	.device = "cpu",
	.kv_type = "f16",
	.activations = "auto",
	.numerics = "exact",
	.speculate = "auto",
	.draft.kv_type = "f16",
	.tune = "quick",
	.launch = "token",
	.n = N_DEFAULT,
	.logprobs = -1,
	.think = "dim",
	.reasoning_budget = -1,
};

/* Read off the table of targets before the command line is. */
static char isa_choices[TARGET_LIST_MAX], card_choices[TARGET_LIST_MAX],
	device_choices[TARGET_LIST_MAX] = "auto|cpu|ref|";

static void list_targets(void)
{
	size_t n = strlen(device_choices);

	target_list(isa_choices, sizeof isa_choices, TARGETS_OF_CPUS, "", "|");
	target_list(card_choices, sizeof card_choices, TARGETS_OF_CARDS, "", "|");
	target_list(device_choices + n, sizeof device_choices - n, TARGETS_OF_CARDS, "sim:", "|");
}

static const struct option_row rows[] = {
	{ .name = "Prompt", .kind = OPTION_GROUP },
	ROW_MODEL(opt.model),
	{ .name = "hf-repo",
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "the model OWNER/NAME[:QUANT] of Hugging Face's hub, which jitpull fetches unless it is here; also "
	          "-hf",
	  .target = &opt.hf_repo },
	ROW_HF_FILE(opt.hf_file),
	ROW_OFFLINE(opt.offline),
	{ .name = "prompt",
	  .letter = 'p',
	  .kind = OPTION_TEXT,
	  .value = "TEXT",
	  .help = "the text to continue; without it and without --file, standard input is read",
	  .target = &opt.prompt },
	{ .name = "file",
	  .letter = 'f',
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "read the prompt from FILE, - for standard input",
	  .target = &opt.file },
	{ .name = "prompt-ids",
	  .kind = OPTION_TEXT,
	  .value = "IDS",
	  .help = "the prompt as token ids: digits with commas between, 1,2,3",
	  .target = &opt.prompt_ids },
	{ .name = "escape",
	  .kind = OPTION_FLAG,
	  .help = "read \\n, \\t, \\r, \\\", \\', \\\\ and \\xHH in --prompt, --system and --stop as the characters "
	          "they stand for",
	  .target = &opt.escape },
	{ .name = "special",
	  .kind = OPTION_FLAG,
	  .help = "read names of control tokens, such as <|im_start|>, in the prompt or in the text of --perplexity as "
	          "these tokens; without it they are plain text",
	  .target = &opt.special },
	{ .name = "prompt-cache",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "keep in FILE what was computed of the prompt, and begin with as much of it as this prompt has in "
	          "common; for one model, KV type and version of jitrun",
	  .target = &opt.prompt_cache },
	{ .name = "prompt-cache-all",
	  .kind = OPTION_FLAG,
	  .help = "keep the generated text there, too; conversations always do",
	  .target = &opt.prompt_cache_all },
	{ .name = "prompt-cache-ro",
	  .kind = OPTION_FLAG,
	  .help = "use that file, and never write it",
	  .target = &opt.prompt_cache_ro },
	{ .name = "echo",
	  .kind = OPTION_FLAG,
	  .help = "print the prompt before the generated text",
	  .target = &opt.echo },
	{ .name = "Conversation", .kind = OPTION_GROUP },
	{ .name = "system",
	  .kind = OPTION_TEXT,
	  .value = "TEXT",
	  .help = "begin the conversation with this system message",
	  .target = &opt.system },
	{ .name = "single-turn",
	  .kind = OPTION_FLAG,
	  .help = "answer --prompt, or one message, and end",
	  .target = &opt.single_turn },
	{ .name = "chat",
	  .kind = OPTION_FLAG,
	  .help = "hold a conversation even where standard input is no terminal: each line is a message",
	  .target = &opt.chat },
	{ .name = "no-chat",
	  .kind = OPTION_FLAG,
	  .help = "never hold a conversation: without a prompt, end with an error",
	  .target = &opt.no_chat },
	{ .name = "no-history",
	  .kind = OPTION_FLAG,
	  .help = "neither show nor keep what was typed in other conversations on a terminal",
	  .target = &opt.no_history },
	{ .name = "template",
	  .kind = OPTION_FILE,
	  .value = "FILE|NAME",
	  .help = "read the chat template from FILE instead of from the model, or take the one that the model's files "
	          "call "
	          "NAME",
	  .target = &opt.template_file },
	{ .name = "think",
	  .kind = OPTION_CHOICE,
	  .value = "show|dim|hide",
	  .help = "the model's reasoning before an answer: dim: shown, and dimmed on a terminal; hide: left out; with "
	          "--json, dim puts it into the member \"reasoning\" and show into the text (dim)",
	  .target = &opt.think },
	{ .name = "reasoning-budget",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "tokens of reasoning after which it is closed and the answer begins; 0: at once; -1: as many as the "
	          "model makes (-1)",
	  .low = -1,
	  .high = INT_MAX,
	  .target = &opt.reasoning_budget },
	{ .name = "reasoning-budget-message",
	  .kind = OPTION_TEXT,
	  .value = "TEXT",
	  .help = "what then stands at the end of the reasoning (nothing)",
	  .target = &opt.reasoning_message },
	{ .name = "show-prompt",
	  .kind = OPTION_FLAG,
	  .help = "show what the chat template makes of the conversation before each answer",
	  .target = &opt.show_prompt },
	{ .name = "Generation", .kind = OPTION_GROUP },
	{ .name = "n-predict",
	  .letter = 'n',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "tokens to generate; -1: until the end of the text or until the context is full (256)",
	  .low = -1,
	  .high = INT_MAX,
	  .target = &opt.n },
	{ .name = "context",
	  .letter = 'c',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "size of the context in tokens; 0: what the model was trained for, as far as half of the "
	          "free memory goes, but 4096 in any case (0)",
	  .high = INT_MAX,
	  .target = &opt.context },
	{ .name = "ignore-eos",
	  .kind = OPTION_FLAG,
	  .help = "do not stop at an end-of-text token",
	  .target = &opt.ignore_eos },
	{ .name = "stop",
	  .letter = 'r',
	  .kind = OPTION_LIST,
	  .value = "TEXT",
	  .help = "end before this text, which is not printed; several times: before any of these",
	  .target = &opt.stop },
	{ .name = "image",
	  .kind = OPTION_LIST,
	  .value = "FILE",
	  .help = "put this picture (PNG, JPEG, WebP, GIF, BMP) in front of the prompt, or where the prompt has the "
	          "model's mark of a picture; several times: several pictures. The model is a folder of "
	          "safetensors, or a GGUF file with that of its image encoder",
	  .target = &opt.image },
	{ .name = "mmproj",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "the image encoder of a GGUF file, as llama.cpp has it (the file mmproj-*.gguf beside the model)",
	  .target = &opt.mmproj },
	{ .name = "lora",
	  .kind = OPTION_LIST,
	  .value = "FILE[:SCALE]",
	  .help = "lay this adapter (LoRA) over the model, times SCALE (1): a folder of PEFT's, or a GGUF file; "
	          "several "
	          "times: all of them, in this order",
	  .target = &opt.lora },
	{ .name = "lora-scaled",
	  .kind = OPTION_LIST,
	  .value = "FILE:SCALE",
	  .help = "the same, as llama.cpp writes it; behind those of --lora",
	  .target = &opt.lora_scaled },
	{ .name = "lora-init-without-apply",
	  .kind = OPTION_FLAG,
	  .help = "open the adapters, which shows what is wrong with them, and run the model without them",
	  .target = &opt.lora_unapplied },
#include "programs/common/grammar_rows.def"
	{ .name = "perplexity",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "generate nothing; print the perplexity of the model on the text of FILE, in windows of --context "
	          "tokens (512) whose second halves are scored",
	  .target = &opt.perplexity },
	{ .name = "imatrix-out",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "with --perplexity: write the text's importance matrix, for jitquant; activations are f32 then",
	  .target = &opt.imatrix_out },
#define SAMPLING opt.sampling
#include "programs/common/sampling_rows.def"
	{ .name = "Output", .kind = OPTION_GROUP },
	{ .name = "print-ids",
	  .kind = OPTION_FLAG,
	  .help = "print the generated token ids on one line instead of text",
	  .target = &opt.print_ids },
	{ .name = "json",
	  .kind = OPTION_FLAG,
	  .help = "print one JSON line at the end, with ids, text, timings and counters, instead of text",
	  .target = &opt.json },
	{ .name = "json-stream",
	  .kind = OPTION_FLAG,
	  .help = "print a JSON line for each token as it comes, with id, text and log probability, and at the end the "
	          "line "
	          "of --json",
	  .target = &opt.json_stream },
	{ .name = "logprobs",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "with --json or --json-stream: the log probability of each token and of the N likeliest ones in its "
	          "place",
	  .high = JIT_LOGPROBS_MOST,
	  .target = &opt.logprobs },
	ROW_QUIET(opt.quiet),
	{ .name = "verbose",
	  .letter = 'v',
	  .kind = OPTION_FLAG,
	  .help = "a longer summary: the model, kernels, the cache, memory bandwidth",
	  .target = &opt.verbose },
	{ .name = "report",
	  .kind = OPTION_FLAG,
	  .help = "at the end, list every kernel with its key, source, size, registers, expected bytes and share of "
	          "the time; with --json as its member \"report\"",
	  .target = &opt.report },
	{ .name = "profile",
	  .kind = OPTION_FLAG,
	  .help = "at the end, a table on standard error of where the time went: for each kernel its launches, their "
	          "time, its share of the time of passes, and the bytes it should move by that time. Cards time "
	          "each launch by itself, which makes passes slower",
	  .target = &opt.profile },
	{ .name = "trace",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "write a timeline of all threads to FILE, in Chrome's trace format, which Perfetto opens",
	  .target = &opt.trace },
	{ .name = "Machine", .kind = OPTION_GROUP },
	{ .name = "device",
	  .kind = OPTION_OPEN_CHOICE,
	  .value = device_choices,
	  .help = "auto: the device that is predicted to be done first, with the numbers; cpu runs the generated code; "
	          "ref interprets it, slowly; cuda or cuda:NUMBER is an NVIDIA card, "
	          "cuda:0,1 two that compute together; "
	          "vulkan or vulkan:NUMBER is what a driver of Vulkan offers; "
	          "sim:NAME runs code for that card in a simulator, very slowly; amd, amd:NUMBER or amd:TARGET is a "
	          "Radeon card (run on a fake driver so far, not yet on a card) (cpu)",
	  .target = &opt.device },
	{ .name = "devices",
	  .kind = OPTION_FLAG,
	  .help = "list the devices that --device takes here, with what each is, or why it cannot be used, and exit",
	  .target = &opt.devices },
	ROW_ISA(isa_choices, opt.isa),
	ROW_THREADS(opt.threads),
	ROW_RANKS(opt.ranks),
	ROW_SPLIT(opt.split),
	ROW_BATCH(BATCH_HELP, opt.batch),
	ROW_SPECULATE(opt.speculate),
#define DRAFT opt.draft
#include "programs/common/draft_rows.def"
	{ .name = "launch",
	  .kind = OPTION_CHOICE,
	  .value = "op|layer|token",
	  .help = "how much of a pass goes to a card in one launch (token)",
	  .target = &opt.launch },
	{ .name = "workgroups",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "workgroups of a launch on a card, all of them at once; 0: as many as it has room for (0)",
	  .high = 1024,
	  .target = &opt.workgroups },
	{ .name = "units",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "compute units of a simulated card; 0: 2 (0)",
	  .high = 256,
	  .target = &opt.units },
	ROW_KV_TYPE(opt.kv_type),
	ROW_ACTIVATIONS(opt.activations),
	ROW_NUMERICS(
		"exact: the same bits on every device; bounded: weights in F16 and BF16 may be multiplied by inputs "
		"rounded to their type, within a stated error: by cards in prompts; by CPUs always, of BF16, where "
		"they have AVX512_BF16 and measure pairs at least 1.4 times as fast as floats; always-bounded: by "
		"those that do not, too (exact)",
		opt.numerics),
	{ .name = "tune",
	  .kind = OPTION_CHOICE,
	  .value = "off|cached|quick",
	  .help = "most kernels have several schedules (prefetch, unrolling, blocking) with the same results; quick: "
	          "measure during the first tokens which are fastest on this processor, and keep that in the cache; "
	          "cached: only use what is in the cache; off: use the defaults (quick)",
	  .target = &opt.tune },
	ROW_CACHE(opt.cache),
	{ .name = "cache-limit",
	  .kind = OPTION_INT,
	  .value = "MIB",
	  .help = "size limit of such a directory; the least recently used entries are removed first (256)",
	  .low = 1,
	  .high = 1 << 20,
	  .target = &opt.cache_limit },
	{ .name = "cache-weights",
	  .kind = OPTION_FLAG,
	  .help = "keep the packed weights of this model on disk, and map them the next time: about as large as the "
	          "model's "
	          "files ($JITRUN_WEIGHT_CACHE, which alone does the same, or $XDG_CACHE_HOME/jitrun-weights)",
	  .target = &opt.cache_weights },
	{ .name = "cache-weights-limit",
	  .kind = OPTION_INT,
	  .value = "GIB",
	  .help = "size limit of that directory; the least recently used weights are removed first (64)",
	  .low = 1,
	  .high = 1 << 20,
	  .target = &opt.cache_weights_limit },
	{ .name = "copy-weights",
	  .kind = OPTION_FLAG,
	  .help = "copy the weights of a packed model (.jkm) into memory of this process, in huge pages and with their "
	          "checksums compared, instead of mapping the file: slower to start, and other processes share nothing",
	  .target = &opt.copy_weights },
	ROW_SEALED(opt.sealed),
	ROW_NO_CACHE(opt.no_cache),
	{ .name = "Looking inside", .kind = OPTION_GROUP },
	{ .name = "dump-ir",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "write the IR of every kernel generated; -: to standard output, in the place of the text",
	  .target = &opt.dump_ir },
	{ .name = "dump-asm",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "write every kernel generated as bytes that an assembler accepts",
	  .target = &opt.dump_asm },
	{ .name = "target",
	  .kind = OPTION_CHOICE,
	  .value = card_choices,
	  .help = "the card that --dump-objects is for",
	  .target = &opt.target },
	{ .name = "dump-objects",
	  .kind = OPTION_FILE,
	  .value = "DIR",
	  .help = "generate no text; write the code objects (of NVIDIA cards the PTX) of every kernel, and of passes "
	          "over 1, 4, 8 and 16 tokens, for the card of --target; reads the model's header alone",
	  .target = &opt.dump_objects },
	{ .name = "perf-map",
	  .kind = OPTION_FLAG,
	  .help = "write /tmp/perf-PID.map, so that perf shows kernels by name",
	  .target = &opt.perf_map },
	{ .name = "jitdump",
	  .kind = OPTION_FILE,
	  .value = "DIR",
	  .help = "write DIR/jit-PID.dump; perf inject --jit makes of it kernels that perf annotate can show; record "
	          "with -k mono",
	  .target = &opt.jitdump },
	{ .name = "gdb", .kind = OPTION_FLAG, .help = "tell gdb the names of kernels", .target = &opt.gdb },
	OPTION_ABOUT(opt.about),
};

static const struct option_command commands[] = {
	{ "", "MODEL", "continue a text, or talk where there is none and the model has a chat template" },
	{ "info", "MODEL", "say what a model is, whether it runs here, and in how much memory" },
	{ "list", "", "list the models that ollama, Hugging Face's libraries and others have put here" },
	{ "pull", "NAME", "fetch a model of Hugging Face's hub, by jitpull" },
	{ "rm", "NAME", "remove a model of Hugging Face's cache" },
	{ "ps", "", "list the models that a running jitserve has in memory" },
	{ "doctor", "", "say what this machine is, and what of it jitrun uses" },
};

static bool given[sizeof rows / sizeof rows[0]];
static struct option_program program = {
	.given = given,
	.name = "jitrun",
	.usage = "MODEL [options]",
	.command = commands,
	.n_commands = sizeof commands / sizeof *commands,
	.purpose = "run a large language model with machine code generated for it",
	.description =
		"jitrun reads a GGUF or safetensors model (a file, or a directory with config.json), or one that "
		"jitwarm pack-model packed (.jkm). MODEL is a path, or a name that jitrun list prints; a path that "
		"exists wins. jitrun generates machine code for exactly its shapes and continues the prompt. "
		"Statistics go to standard error. A prompt may be as long as the context; then one token is generated. "
		"On a terminal, control characters in the text other than newline and tab are shown as U+FFFD; files "
		"and pipes get every byte as it is. Without a prompt it talks: /help lists commands, among them /set "
		"and /show, and Tab completes them.",
	.examples = "jitrun model.gguf --prompt \"Once upon a time\" -n 100\njitrun run qwen3:0.6b\n"
		    "jitrun model-directory --file question.txt --temp 0.8 --top-p 0.9 --seed 7\njitrun model.gguf "
		    "--prompt-ids 1,15043 --print-ids --quiet",
	.exit_status =
		".TP\n0\nDone.\n.TP\n1\nSomething failed; one sentence on standard error says what.\n"
		".TP\n2\nThe command line is wrong.\n.TP\n3\nThe answer of a command is no: this model "
		"does not run here, no model does, or a device computes wrongly.\n.TP\n130\nInterrupted by Ctrl\\-C.",
	.environment =
		".TP\n.B JITRUN_CACHE\nThe cache of generated code, as \\fB\\-\\-cache\\fR.\n"
		".TP\n.B XDG_CACHE_HOME\nWhere the cache is otherwise: \\fI$XDG_CACHE_HOME/jitrun\\fR, or "
		"\\fI~/.cache/jitrun\\fR.\n.TP\n.B JITRUN_HOST, JITRUN_API_KEY\nThe jitserve that \\fBjitrun ps\\fR "
		"asks, and its key.\n.TP\n.B COLUMNS\nColumns of the terminal, for help, tables and text."
		"\n.TP\n.B JITRUN_HISTORY\nThe file of what was typed in conversations on a terminal; empty: none "
		"is kept, as with \\fB\\-\\-no\\-history\\fR.\n.TP\n.B XDG_STATE_HOME\nWhere that file is "
		"otherwise: \\fI$XDG_STATE_HOME/jitrun/history\\fR, or \\fI~/.local/state/jitrun/history\\fR."
		"\n.TP\n.B LC_ALL, LC_CTYPE, LANG\nThe terminal's character set; UTF\\-8 where they say nothing.",
	.files = ".TP\n.I ~/.local/state/jitrun/history\nWhat was typed in conversations on a terminal, for the arrow "
		 "keys. Only the user may read it. It may be removed.\n.TP\n.I ~/.cache/jitrun\nGenerated code, and "
		 "which schedules are fastest. It may be removed."
		 "\n.TP\n.I ~/.cache/jitrun-weights\nPacked weights, where \\fB\\-\\-cache\\-weights\\fR or "
		 "$JITRUN_WEIGHT_CACHE asks for it. \\fBjitwarm\\fR has \\fBlist\\fR and \\fBgc\\fR for them.",
	.see_also = ".BR jitwarm (1),\n.BR jitbench (1),\n.BR jitquant (1)",
	.row = rows,
	.n_rows = sizeof rows / sizeof rows[0],
	.everyday = "prompt file system single-turn n-predict context stop temp top-k top-p seed threads json quiet "
		    "verbose help help-all version",
	.foreign = option_foreign_table,
	.operand = opt.operand,
	.max_operands = OPERANDS_MAX,
	.quiet = &opt.quiet
};

static const char *check_together(void)
{
	return opt.json_stream && (opt.perplexity || opt.print_ids)
	               ? "--json-stream goes without --perplexity and --print-ids"
	       : opt.logprobs >= 0 && !opt.json && !opt.json_stream ? "--logprobs goes with --json or --json-stream"
	       : opt.prompt_cache && opt.perplexity                 ? "--prompt-cache goes without --perplexity"
	       : !opt.prompt_cache && (opt.prompt_cache_all || opt.prompt_cache_ro)
	               ? "--prompt-cache-all and --prompt-cache-ro go with --prompt-cache FILE"
	               : jitrun_check_draft();
}

bool jitrun_parse_options(int argc, char **argv, int *status)
{
	char why[400];

	list_targets();
	opt.sampling = sampling_args_usual;
	program.n_foreign = option_foreign_count;
	*status = EXIT_USAGE;
	if (!options_parse(&program, argc, argv) || options_about(&program, &opt.about, jit_version(), status))
		return false;
	const char *wrong = sampling_args_check(&opt.sampling, why) ? check_together() : why;
	opt.json = opt.json || opt.json_stream;
	if (wrong) {
		*status = jitrun_usage(wrong);
		return false;
	}
	*status = jitrun_take_words(opt.operand, program.n_operands);
	/* A word alone may be a command that is misspelled; behind "run" it is a model. */
	bool alone = program.n_operands && opt.model == opt.operand[0];
	if (*status == 0)
		*status = jitrun_fetch();
	if (*status == 0 && opt.model && !opt.devices &&
	    jitrun_find_model(opt.model, alone ? &program : NULL, status) && jitrun_use_preset(&program, status))
		opt.model = jitrun_model.path;
	if (*status == 0)
		*status = jitrun_unescape();
	return *status == 0;
}

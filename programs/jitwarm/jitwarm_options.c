/* programs/jitwarm/jitwarm_options.c - jitwarm's command line: the table of options, and the commands. */
#include <string.h>

#include "jit/backend.h"
#include "programs/jitwarm/jitwarm.h"
#include "programs/common/model_names.h"
#include "programs/common/shapes.h"
#include "include/jitrun.h"
#include "runtime/session/session.h"

struct warm_arguments warm = { .weights = "q8_0",
	                       .activations = "auto",
	                       .numerics = "exact",
	                       .kv_type = "any",
	                       .limit = -1,
	                       .weights_limit = -1 };

static struct option_about about;
static char target_choices[64 + TARGET_LIST_MAX] = "native";

static const struct option_row rows[] = {
	{ .name = "Models", .kind = OPTION_GROUP },
	{ .name = "shape",
	  .kind = OPTION_LIST,
	  .value = "SHAPE",
	  .help = "compile for a model of this shape, besides or instead of files: " SHAPE_NAMES ", or sizes such as "
	          "hidden=1024,layers=28,heads=16,kv_heads=8,head_dim=128,ffn=3072,vocab=151936,arch=qwen3,tied=1; may "
	          "be given several times",
	  .target = &warm.shapes },
	{ .name = "weights",
	  .kind = OPTION_CHOICE,
	  .value = MIXTURE_NAMES,
	  .help = "the format of the weights of --shape (q8_0)",
	  .target = &warm.weights },
	{ .name = "Sessions to compile for", .kind = OPTION_GROUP },
	{ .name = "target",
	  .letter = 't',
	  .kind = OPTION_LIST,
	  .value = target_choices,
	  .help = "the processor to generate code for, which need not be in this machine; x86 and rdna: all of that "
	          "kind; may be given several times (native)",
	  .target = &warm.targets },
	{ .name = "device",
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "a card of this machine, cuda or cuda:NUMBER, or several together, cuda:0,1: its target, and also "
	          "the code that its driver makes "
	          "of each kernel, which sealed runs on it need; verify and import compare such code with what the "
	          "driver makes now",
	  .target = &warm.device },
	{ .name = "activations",
	  .kind = OPTION_CHOICE,
	  .value = "auto|f32|any",
	  .help = "type of the activations in the sessions to come; auto: int8 blocks against quantised weights; f32; "
	          "any: both (auto)",
	  .target = &warm.activations },
	{ .name = "numerics",
	  .kind = OPTION_CHOICE,
	  .value = "exact|bounded|any",
	  .help = "numerics class of those sessions; see jitrun --help; bounded has kernels of both for CPUs, which "
	          "choose where they run (exact)",
	  .target = &warm.numerics },
	{ .name = "kv-type",
	  .kind = OPTION_CHOICE,
	  .value = "f16|f32|q8_0|any",
	  .help = "type of the KV cache in those sessions (any)",
	  .target = &warm.kv_type },
	{ .name = "batch",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "most prompt tokens that those sessions compute in one pass; 0: as many as jitrun allows (0)",
	  .high = SESSION_MAX_TOKENS,
	  .target = &warm.batch },
	{ .name = "tuned",
	  .kind = OPTION_FLAG,
	  .help = "also make the schedules that were measured to be fastest on this processor, from the cache; such a "
	          "pack depends on where it is made",
	  .target = &warm.tuned },
	{ .name = "Cache and commands", .kind = OPTION_GROUP },
	{ .name = "const",
	  .letter = 'c',
	  .kind = OPTION_LIST,
	  .value = "NAME=VALUE",
	  .help = "of explain: the value of a constant of the files of kernels, as jitk takes it; may be given several "
	          "times",
	  .target = &warm.constants },
	{ .name = "out",
	  .letter = 'o',
	  .kind = OPTION_FILE,
	  .value = "PATH",
	  .help = "when PATH ends in .jkp, write a pack: one file, the same wherever and whenever it is made; what a "
	          "pack of that name holds stays in it; otherwise add to the cache directory PATH",
	  .target = &warm.out },
	{ .name = "replace",
	  .kind = OPTION_FLAG,
	  .help = "let --out and export replace a pack that is there, instead of adding to it or refusing",
	  .target = &warm.replace },
	{ .name = "cache",
	  .kind = OPTION_FILE,
	  .value = "PATH",
	  .help = "the cache to work on: directories and packs, separated by colons ($JITRUN_CACHE, or "
	          "$XDG_CACHE_HOME/jitrun)",
	  .target = &warm.cache },
	{ .name = "limit",
	  .kind = OPTION_INT,
	  .value = "MIB",
	  .help = "size that gc leaves in a directory; the least recently used entries are removed first (256)",
	  .high = 1 << 30,
	  .target = &warm.limit },
	{ .name = "cache-weights-limit",
	  .kind = OPTION_INT,
	  .value = "GIB",
	  .help = "size that gc leaves in the directory of packed weights (64)",
	  .high = 1 << 20,
	  .target = &warm.weights_limit },
	{ .name = "remove",
	  .kind = OPTION_FLAG,
	  .help = "verify removes entries that are damaged or differ from directories",
	  .target = &warm.remove },
	{ .name = "unverified",
	  .kind = OPTION_FLAG,
	  .help = "import takes the code of a pack as it is, also from other versions, without generating it again to "
	          "compare; whoever wrote the pack then decides what is executed",
	  .target = &warm.unverified },
	{ .name = "seconds",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "time limit of tune, about; 0: until it finds no further gain (0)",
	  .high = 3600,
	  .target = &warm.seconds },
	{ .name = "Output", .kind = OPTION_GROUP },
	{ .name = "json", .kind = OPTION_FLAG, .help = "print one JSON line instead of text", .target = &warm.json },
	{ .name = "quiet",
	  .letter = 'q',
	  .kind = OPTION_FLAG,
	  .help = "no progress bar and no summary",
	  .target = &warm.quiet },
	OPTION_ABOUT(about),
};

static const struct option_command commands[] = {
	{ "", "MODEL... --out PATH",
	  "generate every kernel that the models can need, for the targets asked for; of the models, only the headers "
	  "are read" },
	{ "pack-model", "MODEL --out FILE.jkm",
	  "write the model as one file that jitrun maps into memory: weights packed for the targets asked for, their "
	  "kernels, tokenizer and chat templates. Processes share its pages, and nothing is packed at start" },
	{ "list", "[CACHE]",
	  "list the kernels in a cache: keys, sizes, files; of a packed model (.jkm) its sections too; and packed "
	  "weights that jitrun --cache-weights keeps" },
	{ "show", "KEY",
	  "print a kernel: sizes, registers, its IR as comments, and its bytes as an assembler accepts them; says "
	  "whether the cache holds the same code" },
	{ "verify", "[CACHE]",
	  "generate every kernel of a cache again and compare the bytes; of a packed model (.jkm) every checksum "
	  "first" },
	{ "gc", "[CACHE]",
	  "remove what this version cannot use, and the least recently used entries beyond --limit; of packed weights, "
	  "beyond --cache-weights-limit" },
	{ "export", "FILE.jkp", "write the kernels of a cache to a pack, for the targets asked for (all)" },
	{ "import", "FILE.jkp",
	  "generate every kernel of a pack again, compare, and add them to the first directory that can be written; "
	  "when one differs, nothing is added" },
	{ "explain", "MODEL|FILE.jk...",
	  "list every kernel that the models can need, or that texts of kernels have (jitk), and whether the cache has "
	  "it; if not, how the most similar one there differs" },
	{ "tune", "MODEL",
	  "run the model and measure which schedules of its kernels are fastest on this processor, for decoding, draft "
	  "tokens and prompts; tries more of them than sessions do, ignores earlier results, and keeps the new ones in "
	  "the cache" },
};

/* What runs each of the commands, and how many operands it takes. */
static const struct {
	int (*run)(void);
	int min, max;
	const char *says;
	bool of_cache; /* its operand is a cache */
	bool of_models;
} running[] = {
	{ warm_make, 0, WARM_MAX_OPERANDS, "", false, true },
	{ warm_pack_model, 1, 1, "pack-model takes one model", false, true },
	{ warm_list, 0, 1, "list takes one cache at most", true, false },
	{ warm_show, 1, 1, "show takes one key", false, false },
	{ warm_verify, 0, 1, "verify takes one cache at most", true, false },
	{ warm_gc, 0, 1, "gc takes one cache at most", true, false },
	{ warm_export, 1, 1, "export takes the pack to write", false, false },
	{ warm_import, 1, 1, "import takes the pack to read", false, false },
	{ warm_explain, 0, WARM_MAX_OPERANDS, "", false, true },
	{ warm_tune, 1, 1, "tune takes one model", false, true },
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };
_Static_assert(sizeof running / sizeof *running == N_COMMANDS, "a function for each command");

static struct option_program program = {
	.name = "jitwarm",
	.usage = "[COMMAND] [options]",
	.purpose = "compile the machine code that a model needs ahead of time",
	.description =
		"jitwarm generates every kernel that jitrun can need for a model, for this machine or for another, "
		"from the header of the model alone: for prompts of every length, and for every number of draft "
		"tokens. It writes them to a cache directory or to a pack, which is one file, the same wherever and "
		"whenever it is made. With all of them, jitrun --sealed runs without generating any code. jitrun "
		"executes the code that it finds in a cache or a pack. The checksums detect damage, not forgery, so "
		"what counts is who may write the files: files of anybody but you and root, and files that others may "
		"write, are refused. verify, and import unless told otherwise, generate every kernel again and "
		"compare, which detects forgery as well.",
	.examples = "jitwarm model.gguf --target x86 --out kernels.jkp\njitrun model.gguf --cache kernels.jkp --sealed "
		    "--prompt \"Once upon a time\"\njitwarm --shape qwen3-0.6b --weights q4_k_m --out "
		    "kernels.jkp\njitwarm explain model.gguf --cache kernels.jkp\njitwarm verify kernels.jkp\n"
		    "jitwarm model.gguf --device cuda --out kernels.jkp",
	.exit_status = ".TP\n0\nDone.\n.TP\n1\nSomething failed.\n.TP\n2\nThe command line is wrong.\n"
		       ".TP\n3\nThe answer is no: something is missing, damaged or differs.",
	.environment = ".TP\n.B JITRUN_CACHE\nThe cache to work on, as \\fB\\-\\-cache\\fR.\n"
		       ".TP\n.B XDG_CACHE_HOME\nWhere it is otherwise: \\fI$XDG_CACHE_HOME/jitrun\\fR, or "
		       "\\fI~/.cache/jitrun\\fR.",
	.files = ".TP\n.I ~/.cache/jitrun\nThe cache of generated code: a file \\fI*.jko\\fR for each kernel, and what "
		 "was measured of them.\n.TP\n.I *.jkp\nA pack: many kernels in one file.\n.TP\n.I *.jkm\nA packed "
		 "model: weights, tokenizer and kernels in one file.",
	.see_also = ".BR jitrun (1),\n.BR jitbench (1)",
	.everyday = "shape weights target device out cache tuned json quiet help help-all version",
	.row = rows,
	.n_rows = sizeof rows / sizeof rows[0],
	.command = commands,
	.n_commands = N_COMMANDS,
	.operand = warm.operand,
	.max_operands = WARM_MAX_OPERANDS
};

static void list_targets(void)
{
	size_t at = strlen(target_choices);

	for (size_t i = 0; i < backend_count; i++)
		at += (size_t)snprintf(target_choices + at, sizeof target_choices - at, "|%s", backend_table[i]->name);
	target_choices[at++] = '|';
	target_list(target_choices + at, sizeof target_choices - at, TARGETS_ALL, "", "|");
}

static int run_on_device(int c)
{
	struct error e = { 0 };
	int status = warm.device && !warm_open_device(&e) ? warm_fail(&e) : running[c].run();

	warm_close_device();
	return status;
}

/* 0, or the exit status after a sentence. A first word may be a command that is misspelled. */
static int find_model(const char **word, bool command)
{
	struct model_named m;
	struct error err = { 0 };
	int status = WARM_USAGE;

	if (model_named(&m, *word, &err)) {
		*word = m.path; /* for as long as the program runs */
		m.path = NULL;
		status = 0;
	} else if (!command || err.code != ERROR_IO || !options_refuse_word(&program, *word, m.near)) {
		status = warm_fail(&err);
	}
	model_named_free(&m);
	return status;
}

static int run_command(void)
{
	int c = 0;

	for (int i = 1; i < N_COMMANDS && warm.n_operands; i++)
		if (strcmp(warm.operand[0], commands[i].name) == 0)
			c = i;
	if (c) {
		warm.n_operands--;
		memmove(warm.operand, warm.operand + 1, (size_t)warm.n_operands * sizeof *warm.operand);
	}
	if (warm.n_operands < running[c].min || warm.n_operands > running[c].max)
		return warm_usage(running[c].says);
	for (int i = 0, status; running[c].of_models && i < warm.n_operands; i++)
		if ((status = find_model(&warm.operand[i], c == 0)) != 0)
			return status;
	if (running[c].of_cache && warm.n_operands)
		warm.cache = warm.operand[0];
	return run_on_device(c);
}

int warm_run(int argc, char **argv)
{
	int status;

	list_targets();
	if (!options_parse(&program, argc, argv))
		return WARM_USAGE;
	warm.n_operands = program.n_operands;
	if (options_about(&program, &about, jit_version(), &status))
		return status;
	return run_command();
}

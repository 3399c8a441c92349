/* bench/jitbench_options.c - jitbench's command line: the table of options, the commands, lists of numbers. */
#include "bench/jitbench_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench/measurement.h"
#include "jit/target.h"
#include "programs/common/shared_rows.h"
#include "programs/common/shapes.h"
#include "include/jitrun.h"

struct jitbench_options opt = {
	.prompt = "512",
	.generate = "128",
	.depth = "0",
	.small = "0",
	.sequences = "0",
	.threads = "0",
	.repetitions = 5,
	.noise = 10,
	.threshold = 10,
	.read_gb = 60,
	.kv_type = "f16",
	.activations = "auto",
	.numerics = "exact",
	.format = "markdown",
	.device = "cpu",
};

/* Read off the table of targets before the command line is. */
static char isa_choices[TARGET_LIST_MAX], device_choices[TARGET_LIST_MAX + 16] = "cpu|ref|cuda|";

static void list_targets(void)
{
	size_t n = strlen(device_choices);

	target_list(isa_choices, sizeof isa_choices, TARGETS_OF_CPUS, "", "|");
	target_list(device_choices + n, sizeof device_choices - n, TARGETS_OF_CARDS, "sim:", "|");
}

static const struct option_row rows[] = {
	{ .name = "Model", .kind = OPTION_GROUP },
	ROW_MODEL(opt.model),
	{ .name = "shape",
	  .kind = OPTION_CHOICE,
	  .value = SHAPE_NAMES,
	  .help = "measure a model of this shape with random weights, instead of reading one",
	  .target = &opt.shape },
	{ .name = "weights",
	  .kind = OPTION_CHOICE,
	  .value = MIXTURE_NAMES,
	  .help = "the format of the random weights; formats of less than six bits use Q6_K for the output matrix "
	          "(q8_0)",
	  .target = &opt.weights },
	{ .name = "write",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "keep the model with random weights as a GGUF file, for other programs to read; otherwise it is "
	          "temporary, in $TMPDIR or, without that, in memory",
	  .target = &opt.write },
	{ .name = "Tests", .kind = OPTION_GROUP },
	{ .name = "prompt",
	  .letter = 'p',
	  .kind = OPTION_TEXT,
	  .value = "N,...",
	  .help = "time prompts of N tokens; 0: none (512)",
	  .target = &opt.prompt },
	{ .name = "generate",
	  .letter = 'n',
	  .kind = OPTION_TEXT,
	  .value = "N,...",
	  .help = "time N tokens generated one by one; 0: none (128)",
	  .target = &opt.generate },
	{ .name = "depth",
	  .letter = 'd',
	  .kind = OPTION_TEXT,
	  .value = "N,...",
	  .help = "with N tokens in the context already (0)",
	  .target = &opt.depth },
	{ .name = "small-batches",
	  .letter = 'b',
	  .kind = OPTION_TEXT,
	  .value = "N,...",
	  .help = "time batches of N tokens with logits for each; 0: none (0)",
	  .target = &opt.small },
	{ .name = "small",
	  .kind = OPTION_FLAG,
	  .help = "the same as --small-batches 2,4,8,16,32",
	  .target = &opt.all_small },
	{ .name = "sequences",
	  .kind = OPTION_TEXT,
	  .value = "N,...",
	  .help = "time the tokens of --generate of N sequences together, in passes over one token of each; 0: none "
	          "(0)",
	  .target = &opt.sequences },
	{ .name = "no-start",
	  .kind = OPTION_FLAG,
	  .help = "do not measure loading, time to the first token, code generation and memory",
	  .target = &opt.no_start },
	{ .name = "profile",
	  .kind = OPTION_FLAG,
	  .help = "behind the rows, run each test of one sequence once more and print, on standard error, where its "
	          "time went: launches, time, share and GB/s of each kernel, as jitrun --profile",
	  .target = &opt.profile },
	{ .name = "predict",
	  .kind = OPTION_FLAG,
	  .help = "measure nothing; predict how long a token, or a pass over the first of --small-batches (at most "
	          "16), takes on the card of --device sim:..., at the first depth, from what its simulator counts and "
	          "its data sheet; with --shape, only a few layers are simulated",
	  .target = &opt.predict },
	{ .name = "read-bandwidth",
	  .kind = OPTION_FLOAT,
	  .value = "GB/S",
	  .help = "with --predict --ranks: how fast each machine reads weights; the table then says how fast the model "
	          "would be by rows and by layers, over networks of 1 to 100 Gbit/s (60)",
	  .low = 0.001,
	  .high = 100000,
	  .target = &opt.read_gb },
	{ .name = "report",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "with --predict: a report of `jitrun doctor --report` from such a card, whose measured times of a "
	          "launch and a barrier, and whose bandwidth, replace what is assumed; the card may then be one that "
	          "no data sheet is known of",
	  .target = &opt.report },
	{ .name = "kernels",
	  .kind = OPTION_FLAG,
	  .help = "time only the kernels, for which a header is enough: generating all; opening all from a cache "
	          "directory and from a pack; opening those of one token; looking one up; generating those of one "
	          "pass, with one thread and with all, and those of its layers with all; for a card also linking",
	  .target = &opt.kernels },
	{ .name = "Measuring", .kind = OPTION_GROUP },
	{ .name = "repetitions",
	  .letter = 'r',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "repeat each test N times, starts at most 3 (5)",
	  .low = 1,
	  .high = MAX_REPETITIONS,
	  .target = &opt.repetitions },
	{ .name = "noise",
	  .kind = OPTION_FLOAT,
	  .value = "PERCENT",
	  .help = "refuse a number when the quartiles of its repetitions, or of the limit measured around them, are "
	          "further apart (10)",
	  .low = 0.001,
	  .high = 1000,
	  .target = &opt.noise },
	{ .name = "threshold",
	  .kind = OPTION_FLOAT,
	  .value = "PERCENT",
	  .help = "compare: differences below this are no differences (10)",
	  .low = 0.001,
	  .high = 99,
	  .target = &opt.threshold },
	{ .name = "force", .kind = OPTION_FLAG, .help = "take noisy numbers for good", .target = &opt.force },
	{ .name = "output",
	  .letter = 'o',
	  .kind = OPTION_CHOICE,
	  .value = "markdown|md|csv|json|jsonl",
	  .help = "format of the output (markdown)",
	  .target = &opt.format },
	{ .name = "Machine", .kind = OPTION_GROUP },
	{ .name = "threads",
	  .letter = 't',
	  .kind = OPTION_TEXT,
	  .value = "N,...",
	  .help = "worker threads; 0: one per core this process may use (0)",
	  .target = &opt.threads },
	ROW_BATCH(BATCH_HELP, opt.batch),
	{ .name = "device",
	  .kind = OPTION_OPEN_CHOICE,
	  .value = device_choices,
	  .help = "cpu; ref, the interpreter; cuda or cuda:NUMBER, an NVIDIA card; cuda:0,1, two together; amd, "
	          "amd:NUMBER or amd:TARGET, a "
	          "Radeon card; or a simulated card, for --predict and --kernels: the time that a simulator takes "
	          "says nothing of a card (cpu)",
	  .target = &opt.device },
	ROW_RANKS(opt.ranks),
	ROW_SPLIT(opt.split),
	ROW_ISA(isa_choices, opt.isa),
	ROW_KV_TYPE(opt.kv_type),
	ROW_ACTIVATIONS(opt.activations),
	ROW_NUMERICS(
		"exact: the same bits on every device; bounded: float matrix products within a stated error, where "
		"they are faster; always-bounded: where they are not, too; the table says what was computed (exact)",
		opt.numerics),
	ROW_CACHE(opt.cache),
	ROW_NO_CACHE(opt.no_cache),
	OPTION_ABOUT(opt.about),
};

static const struct option_command commands[] = {
	{ "", "MODEL", "time a model" },
	{ "suite", "[TEXT]",
	  "time matrices and attention of well-known models on random data, kernel by kernel; with TEXT, only the rows "
	  "that contain it; -o json prints a report for compare" },
	{ "compare", "A.json B.json", "compare two reports of suite, row by row" },
	{ "passes", "",
	  "time one layer of --shape (qwen3-0.6b) for passes of 1 to 16 tokens, for prompts and at several depths, and "
	  "print what kernels for exactly that many tokens, or for a range of depths, would gain" },
	{ "schedules", "",
	  "time one layer of --shape (qwen3-0.6b) with each of the kernel schedules that jitwarm tune tries, changing "
	  "one setting at a time" },
};

static struct option_program program = {
	.name = "jitbench",
	.usage = "[COMMAND] MODEL [options]",
	.purpose = "measure how fast a model runs, as a share of what the machine can do",
	.description =
		"jitbench times prompts, generation, small batches and starts. Before and after every repetition it "
		"measures, in the same process, how fast memory is read and how fast the cores multiply. A test is "
		"printed as a share of that limit: of the arithmetic peak for prompts (pp), of the memory bandwidth "
		"for generation (tg) and small batches. Beside a number stands how far its repetitions spread, "
		"between the quartiles. One that spreads too far is noisy: it has a ~ before it, is left out of CSV "
		"and "
		"JSON, and the exit status is 3; a single repetition is never noisy. The exit status of compare is 4 "
		"when something is slower: its share of the limit fell by more than --threshold.",
	.examples = "jitbench model.gguf\njitbench model.gguf -p 128,512 -n 64 -d 0,2048 -t 1,2 -o "
		    "csv\njitbench --shape qwen3-0.6b --weights q4_k_m --write random.gguf\n"
		    "jitbench suite -o json > before.json\njitbench compare before.json after.json",
	.exit_status = ".TP\n0\nDone.\n.TP\n1\nSomething failed.\n.TP\n2\nThe command line is wrong.\n"
		       ".TP\n3\nA number is noisy.\n.TP\n4\ncompare: something is slower.",
	.environment = ".TP\n.B JITRUN_CACHE\nThe cache of generated code, as \\fB\\-\\-cache\\fR.\n"
		       ".TP\n.B TMPDIR\nWhere models with random weights are kept while they are measured.",
	.files = ".TP\n.I ~/.cache/jitrun\nThe cache of generated code, which jitrun uses as well.\n.TP\n.I $TMPDIR\n"
		 "Or /tmp: packs of kernels that starts are measured with. Models with random weights are kept in "
		 "memory, and here where TMPDIR is set.",
	.see_also = ".BR jitrun (1),\n.BR jitwarm (1)",
	.everyday = "model shape weights write prompt generate depth small repetitions force output threads isa help "
		    "help-all version",
	.foreign = option_foreign_table,
	.row = rows,
	.n_rows = sizeof rows / sizeof rows[0],
	.command = commands,
	.n_commands = sizeof commands / sizeof *commands,
	.operand = opt.operand,
	.max_operands = MAX_OPERANDS
};

int jitbench_usage(const char *text)
{
	fprintf(stderr, "jitbench: %s\nTry 'jitbench --help'.\n", text);
	return EXIT_USAGE;
}

static bool parse_list(const char *name, const char *text, long max, struct list *out)
{
	const char *at = text;

	for (out->n = 0;;) {
		char *end;
		errno = 0;
		long v = strtol(at, &end, 10);
		if (end == at || (*end && *end != ',') || errno || v < 0 || v > max || out->n == MAX_LIST) {
			char quoted[80];
			fprintf(stderr,
			        "jitbench: --%s: \"%s\" is not a list of at most %d whole numbers from 0 to %ld, such "
			        "as 1,2,3\nTry 'jitbench --help'.\n",
			        name, error_quote(quoted, sizeof quoted, text, strlen(text)), MAX_LIST, max);
			return false;
		}
		out->value[out->n++] = v;
		if (!*end)
			return true;
		at = end + 1;
	}
}

static bool parse_lists(void)
{
	return parse_list("prompt", opt.prompt, MAX_TOKENS, &opt.list.prompt) &&
	       parse_list("generate", opt.generate, MAX_TOKENS, &opt.list.generate) &&
	       parse_list("depth", opt.depth, MAX_TOKENS, &opt.list.depth) &&
	       parse_list("sequences", opt.sequences, 256, &opt.list.sequences) &&
	       parse_list("threads", opt.threads, 1024, &opt.list.threads) &&
	       parse_list("small-batches", opt.all_small ? "2,4,8,16,32" : opt.small, 32, &opt.list.small);
}

bool jitbench_parse_options(int argc, char **argv, int *status)
{
	list_targets();
	program.n_foreign = option_foreign_count;
	*status = EXIT_USAGE;
	if (!options_parse(&program, argc, argv) || options_about(&program, &opt.about, jit_version(), status))
		return false;
	opt.n_operands = program.n_operands;
	return parse_lists();
}

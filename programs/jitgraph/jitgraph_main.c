/* programs/jitgraph/jitgraph_main.c - jitgraph's command line, and which part does what. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "programs/common/allocator.h"
#include "programs/common/output.h"
#include "programs/jitgraph/jitgraph.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"

struct jitgraph_arguments jitgraph = { .seed = -1, .shown = 16, .rtol = 1e-5, .atol = 1e-8 };
jit_cancel *jitgraph_cancel;

static struct option_about about;
static const char *operand[2];

static const struct option_row rows[] = {
	{ .name = "What is run", .kind = OPTION_GROUP },
	{ .name = "size",
	  .letter = 's',
	  .kind = OPTION_LIST,
	  .value = "NAME=N",
	  .help = "the number of a size that the text declares, or of a dimension that an ONNX file names",
	  .target = &jitgraph.sizes },
	{ .name = "input",
	  .letter = 'i',
	  .kind = OPTION_LIST,
	  .value = "NAME=VALUES",
	  .help = "an input's values: FILE.npy, FILE.safetensors or FILE.gguf (the tensor of that name, or :TENSOR "
	          "behind it), FILE.pb (ONNX's TensorProto), raw:FILE, random:SEED, iota, zeros, or a number for all "
	          "elements; a FILE.safetensors or FILE.gguf alone gives all inputs that it names",
	  .target = &jitgraph.in },
	{ .name = "random",
	  .kind = OPTION_INT,
	  .value = "SEED",
	  .help = "inputs without values get random ones: floats between 0 and 1, integers of any bits",
	  .high = 1e15,
	  .target = &jitgraph.seed },
	{ .name = "out",
	  .letter = 'o',
	  .kind = OPTION_LIST,
	  .value = "NAME=FILE",
	  .help = "write an output as .npy, or as FILE.safetensors; raw:FILE: its bytes alone; a FILE.safetensors "
	          "without a name gets all outputs",
	  .target = &jitgraph.out },
	{ .name = "expect",
	  .kind = OPTION_LIST,
	  .value = "NAME=FILE",
	  .help = "of check: what an output should be near to; files as of --input",
	  .target = &jitgraph.expect },
	{ .name = "rtol",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "of check: how far an element may be from the expected one, as a part of that (1e-5)",
	  .high = 1e300,
	  .target = &jitgraph.rtol },
	{ .name = "atol",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "of check: and beside that (1e-8)",
	  .high = 1e300,
	  .target = &jitgraph.atol },
	{ .name = "Where", .kind = OPTION_GROUP },
	{ .name = "device",
	  .letter = 'd',
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "cpu; ref, which interprets kernels; sim:gfx1100 and so on, a simulated card; cuda or amd; auto: the "
	          "one that should be done first, with the numbers behind that (cpu)",
	  .target = &jitgraph.device },
	{ .name = "isa",
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "instruction set of the CPU's code, avx2, avx512 and so on (the best of this CPU)",
	  .target = &jitgraph.isa },
	{ .name = "threads",
	  .letter = 't',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "threads; 0: one for each core that may be used; results are the same (0)",
	  .high = POOL_MAX_THREADS,
	  .target = &jitgraph.threads },
	{ .name = "times",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "runs of bench; 0: half a second of them (0)",
	  .high = 1000000,
	  .target = &jitgraph.times },
	{ .name = "each",
	  .kind = OPTION_LIST,
	  .value = "SIZES",
	  .help = "of bench: \"n=64 m=4\", sizes beside those of --size; given several times, they are run in turn, "
	          "and "
	          "a thread compiles the next ones meanwhile",
	  .target = &jitgraph.each },
	{ .name = "json", .kind = OPTION_FLAG, .help = "print what bench measured as JSON", .target = &jitgraph.json },
	{ .name = "What is shown", .kind = OPTION_GROUP },
	{ .name = "stage",
	  .kind = OPTION_CHOICE,
	  .value = "read|needed|equal|constants|products|all|kernels",
	  .help = "of dump: the graph as read, behind one pass, or behind all of them; its kernels; otherwise all of "
	          "that",
	  .target = &jitgraph.stage },
	{ .name = "elements",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of dump: how many elements of a constant are shown; 0: all, so that the text can be read again (16)",
	  .high = 1e15,
	  .target = &jitgraph.shown },
	{ .name = "kernels",
	  .kind = OPTION_FLAG,
	  .help = "of dump: the text of each kernel, too",
	  .target = &jitgraph.kernels },
#define COMPUTE jitgraph
#include "programs/common/compute_rows.def"
#undef COMPUTE
	{ .name = "quiet",
	  .letter = 'q',
	  .kind = OPTION_FLAG,
	  .help = "print errors alone, and what check, bench and dump are for",
	  .target = &jitgraph.quiet },
	OPTION_ABOUT(about),
};
enum { ROWS = sizeof rows / sizeof rows[0] };
static bool given[ROWS];

static const struct {
	struct option_command say;
	int (*do_it)(void);
	const char *own; /* options that no other command has, spaces between */
} commands[] = {
	{ { "run", "FILE", "run a graph, and print or write its outputs" }, jitgraph_run, "out" },
	{ { "check", "FILE", "compare what is compiled with the interpreter, bit for bit, and with expected outputs" },
	  jitgraph_check,
	  "expect rtol atol" },
	{ { "bench", "FILE", "time the runs of a graph" }, jitgraph_bench, "times json each" },
	{ { "dump", "FILE", "show a graph before and behind each pass, and its kernels" },
	  jitgraph_dump,
	  "stage elements kernels" },
};
enum { COMMANDS = sizeof commands / sizeof *commands };
static struct option_command say_commands[COMMANDS];

static struct option_program program = {
	.name = "jitgraph",
	.usage = "COMMAND FILE [options]",
	.purpose = "run graphs of tensors, from text or ONNX files, with the same bits on every CPU and card",
	.description =
		"jitgraph compiles a graph of tensor operations to kernels for its exact shapes, and runs them. A file "
		"is a graph as text, which docs/graphs.md describes, or an ONNX file (docs/onnx.md). Sizes that it "
		"names are given with --size. The results are the same, bit for bit, on every device and with any "
		"number of threads.\n"
		"For each output, run prints its type, its shape, a hash of all bytes (FNV-1a of 64 bits), the sum "
		"and the first elements.",
	.examples = "jitgraph run mlp.graph -s n=64 -i x=x.npy -i weights.safetensors -o y=y.npy\n"
		    "jitgraph run model.onnx -s batch=1 --random 1\n"
		    "jitgraph check model.onnx -s batch=1 -i input=x.npy --expect output=y.npy --rtol 1e-4\n"
		    "jitgraph bench model.onnx -s batch=8 --random 1 -t 2 --json\n"
		    "jitgraph bench mlp.graph --each n=64 --each n=128 --random 1\n"
		    "jitgraph dump mlp.graph -s n=64 --kernels\n"
		    "jitgraph dump model.onnx -s batch=1 --stage all --elements 0 > model.graph",
	.exit_status = ".TP\n0\nDone; of check: all elements are equal, or near enough.\n.TP\n1\nSomething failed, or "
		       "elements differ.\n.TP\n2\nThe command line is wrong.\n.TP\n130\nInterrupted.",
	.environment =
		".TP\n.B JITRUN_CACHE\nWhere code is kept, as of --cache.\n.TP\n.B COLUMNS\nColumns of the terminal, "
		"for help.",
	.files = ".TP\n.I ~/.cache/jitrun\nCode that was generated.",
	.see_also = ".BR jitk (1),\n.BR jitrun (1),\n.BR jitrun (3)",
	.row = rows,
	.n_rows = ROWS,
	.command = say_commands,
	.n_commands = COMMANDS,
	.quiet = &jitgraph.quiet,
	.operand_name = NULL,
	.operand = operand,
	.max_operands = 2,
	.given = given
};

/* ---- what every part says */

int jitgraph_fail(const char *sentence)
{
	fflush(stdout);
	fprintf(stderr, "jitgraph: %s.\n", sentence);
	return JITGRAPH_FAILED;
}

int jitgraph_fail_error(const jit_error *err)
{
	const int status = jitgraph_fail(err->message);

	return err->code == JIT_ERROR_CANCELLED ? JITGRAPH_INTERRUPTED : status;
}

static int wrong(const char *sentence)
{
	fprintf(stderr, "jitgraph: %s.\nTry 'jitgraph --help'.\n", sentence);
	return JITGRAPH_USAGE;
}

bool jitgraph_sizes(char *out, size_t room, jit_error *err)
{
	size_t at = 0;

	out[0] = 0;
	for (int i = 0; i < jitgraph.sizes.n; i++) {
		const int n = snprintf(out + at, room - at, "%s ", jitgraph.sizes.value[i]);
		if (strpbrk(jitgraph.sizes.value[i], " ,\t\n") || n < 0 || (at += (size_t)n) >= room) {
			*err = (jit_error){ .code = JIT_ERROR_ARGUMENT };
			snprintf(err->message, sizeof err->message, "--size %.100s: expected NAME=N",
			         jitgraph.sizes.value[i]);
			return false;
		}
	}
	return true;
}

jit_graph *jitgraph_open(jit_error *err) { return jitgraph_open_more("", err); }

jit_graph *jitgraph_open_more(const char *more, jit_error *err)
{
	char sizes[4000];

	if (!jitgraph_sizes(sizes, sizeof sizes, err))
		return NULL;
	const size_t n = strlen(sizes);
	if ((size_t)snprintf(sizes + n, sizeof sizes - n, "%s", more) >= sizeof sizes - n) {
		*err = (jit_error){ .code = JIT_ERROR_ARGUMENT, .message = "--each: more than 4000 bytes of sizes" };
		return NULL;
	}
	return jit_graph_open(&JIT_GRAPH_OPTIONS(.path = jitgraph.file, .sizes = sizes), err);
}

/* ---- the beginning */

static void on_signal(int number) { jit_cancel_set(jitgraph_cancel, 1); }

/* Whether an option was given that only another command has; then an error is printed. */
static bool has_foreign(int command)
{
	char names[80], sentence[160];

	for (int i = 0; i < COMMANDS; i++) {
		snprintf(names, sizeof names, "%s", commands[i].own);
		for (char *save, *name = i == command ? NULL : strtok_r(names, " ", &save); name;
		     name = strtok_r(NULL, " ", &save))
			if (options_given(&program, name)) {
				snprintf(sentence, sizeof sentence, "--%s is of the command %s", name,
				         commands[i].say.name);
				wrong(sentence);
				return true;
			}
	}
	return false;
}

static int begin(int argc, char **argv)
{
	struct sigaction on = { .sa_handler = on_signal };
	jit_error err = { 0 };
	int status, command = 0;

	for (int i = 0; i < COMMANDS; i++)
		say_commands[i] = commands[i].say;
	if (!options_parse(&program, argc, argv))
		return JITGRAPH_USAGE;
	if (options_about(&program, &about, jit_version(), &status))
		return status;
	jitgraph.command = program.n_operands > 0 ? operand[0] : NULL;
	jitgraph.file = program.n_operands > 1 ? operand[1] : NULL;
	if (!jitgraph.command)
		return wrong("a command is missing: run, check, bench or dump");
	while (command < COMMANDS && strcmp(jitgraph.command, commands[command].say.name) != 0)
		command++;
	if (command == COMMANDS) {
		char sentence[200], quoted[80];
		snprintf(sentence, sizeof sentence, "%s is no command; expected run, check, bench or dump",
		         error_quote(quoted, sizeof quoted, jitgraph.command, strlen(jitgraph.command)));
		return wrong(sentence);
	}
	if (has_foreign(command))
		return JITGRAPH_USAGE;
	if (!jitgraph.file)
		return wrong("a file is missing: a graph as text, or an ONNX file");
	if (!(jitgraph_cancel = jit_cancel_open(&err)))
		return jitgraph_fail_error(&err);
	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	return commands[command].do_it();
}

int main(int argc, char **argv)
{
	output_begin();
	allocator_begin();
	system_file_limit_is_error();
	const int status = begin(argc, argv);
	jit_cancel_close(jitgraph_cancel);
	return output_end("jitgraph", status, JITGRAPH_FAILED);
}

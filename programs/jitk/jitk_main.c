/* programs/jitk/jitk_main.c - jitk's command line, and which part does what. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/common/allocator.h"
#include "programs/common/output.h"
#include "programs/jitk/jitk.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"

struct jitk_arguments jitk = { .n = -1, .steps = -1 };
jit_cancel *jitk_cancel;

static struct option_about about;
static const char *operand[2];

static const struct option_row rows[] = {
	{ .name = "What is run", .kind = OPTION_GROUP },
	{ .name = "kernel",
	  .letter = 'k',
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "which kernel of the file (the only one)",
	  .target = &jitk.kernel },
	{ .name = "const",
	  .letter = 'c',
	  .kind = OPTION_LIST,
	  .value = "NAME=VALUE",
	  .help = "the value of a constant; may be given several times",
	  .target = &jitk.constants },
	{ .name = "in",
	  .letter = 'i',
	  .kind = OPTION_LIST,
	  .value = "NAME=VALUES",
	  .help = "what an array has before the run: FILE.npy, raw:FILE, random:SEED, iota, zeros, or a number for all "
	          "elements; of a scalar its number (arrays that are written: zeros)",
	  .target = &jitk.in },
	{ .name = "out",
	  .letter = 'o',
	  .kind = OPTION_LIST,
	  .value = "NAME=FILE",
	  .help = "write an array to FILE after the run, as .npy; raw:FILE: its bytes alone",
	  .target = &jitk.out },
	{ .name = "check",
	  .kind = OPTION_FLAG,
	  .help = "a subscript out of range ends the run, with line, array and index",
	  .target = &jitk.check },
	{ .name = "n",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of example: the size, as --const n=N says it",
	  .high = 1e15,
	  .target = &jitk.n },
	{ .name = "steps",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of example: launches of snn (200) and stencil (6)",
	  .high = 1e9,
	  .target = &jitk.steps },
	{ .name = "Where", .kind = OPTION_GROUP },
	{ .name = "device",
	  .letter = 'd',
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "cpu; ref, which interprets; sim:gfx1100 and so on, a simulated card; cuda or amd; auto: the one "
	          "that "
	          "should be done first, with the numbers behind that (cpu)",
	  .target = &jitk.device },
	{ .name = "isa",
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "instruction set of the CPU's code, avx2, avx512 and so on; emit-ir and disassemble take cards', too "
	          "(the best of this CPU)",
	  .target = &jitk.isa },
	{ .name = "threads",
	  .letter = 't',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "threads; 0: one for each core that may be used; results are the same (0)",
	  .high = POOL_MAX_THREADS,
	  .target = &jitk.threads },
	{ .name = "times",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "runs of bench; 0: half a second of them (0)",
	  .high = 1000000,
	  .target = &jitk.times },
	{ .name = "tune",
	  .kind = OPTION_FLAG,
	  .help = "try the values of the constants that the file lists behind `tune`, on copies of the arrays, and "
	          "keep "
	          "the fastest for this machine; without it, run and bench take what was kept",
	  .target = &jitk.tune },
#define COMPUTE jitk
#include "programs/common/compute_rows.def"
#undef COMPUTE
	{ .name = "dump-objects",
	  .kind = OPTION_FILE,
	  .value = "DIR",
	  .help = "of disassemble: print nothing; write what the driver of the card that --isa names loads, "
	          "DIR/KERNEL.CARD.co, of NVIDIA's cards .ptx",
	  .target = &jitk.dump_objects },
	{ .name = "trace",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "of run, bench and example: write a timeline of all threads to FILE, in Chrome's trace format, which "
	          "Perfetto opens",
	  .target = &jitk.trace },
	{ .name = "perf-map",
	  .kind = OPTION_FLAG,
	  .help = "write /tmp/perf-PID.map for perf",
	  .target = &jitk.perf_map },
	{ .name = "jitdump",
	  .kind = OPTION_FILE,
	  .value = "DIR",
	  .help = "write DIR/jit-PID.dump for perf inject --jit",
	  .target = &jitk.jitdump },
	{ .name = "gdb", .kind = OPTION_FLAG, .help = "show gdb the kernels' names", .target = &jitk.gdb },
	{ .name = "quiet",
	  .letter = 'q',
	  .kind = OPTION_FLAG,
	  .help = "print results and errors alone",
	  .target = &jitk.quiet },
	OPTION_ABOUT(about),
};

static const struct {
	struct option_command say;
	int (*do_it)(void);
} commands[] = {
	{ { "run", "FILE.jk", "run a kernel, and print what it wrote" }, jitk_run },
	{ { "check", "FILE.jk", "print all that is wrong, or how each access finds memory and where values are kept" },
	  jitk_check },
	{ { "bench", "FILE.jk", "time a kernel beside what this device's memory and arithmetic give" }, jitk_bench },
	{ { "test", "FILE.jk",
	    "compare every target of this CPU and every simulated card with the interpreter, bit for bit" },
	  jitk_test },
	{ { "report", "FILE.jk", "say for each target whether the kernel is native there, and if not, why" },
	  jitk_report },
	{ { "example", "[NAME]", "list the examples that jitk has in it, or run one with inputs that it makes" },
	  jitk_example },
	{ { "emit-ir", "FILE.jk", "print the IR of a kernel" }, jitk_emit_ir },
	{ { "disassemble", "FILE.jk", "print its machine code, as lines an assembler accepts; PTX as it is" },
	  jitk_disassemble },
};
enum { COMMANDS = sizeof commands / sizeof *commands };
static struct option_command say_commands[COMMANDS];

static struct option_program program = {
	.name = "jitk",
	.usage = "COMMAND [FILE.jk|NAME] [options]",
	.purpose = "compile and run kernels that you write, with the same bits on every CPU and card",
	.description =
		"jitk runs kernels written in jitrun's kernel language, which docs/kernels.md describes. No compiler "
		"is needed beside it. A kernel's shapes are constants, given in the file or with --const; for each "
		"set of them machine code is made in some milliseconds, and kept in the cache. The results are the "
		"same, bit for bit, on every device and with any number of threads.",
	.examples = "jitk run saxpy.jk -c n=1000 -i a=1.5 -i x=x.npy -i y=y.npy -o y=out.npy\n"
		    "jitk check saxpy.jk -c n=1000\n"
		    "jitk test saxpy.jk -c n=1000 -i a=1.5 -i x=random:1 -i y=random:2\n"
		    "jitk bench saxpy.jk -c n=10000000 -i a=1.5 -i x=random:1 -i y=random:2\n"
		    "jitk example mandelbrot\n"
		    "jitk example snn --n 200000 --steps 500",
	.exit_status =
		".TP\n0\nDone; of test: all devices gave the same bits.\n.TP\n1\nSomething failed, or a device gave "
		"other bits.\n.TP\n2\nThe command line is wrong.\n.TP\n130\nInterrupted.",
	.environment =
		".TP\n.B JITRUN_CACHE\nWhere code is kept, as of --cache.\n.TP\n.B COLUMNS\nColumns of the terminal, "
		"for help.",
	.files = ".TP\n.I ~/.cache/jitrun\nCode that was generated, and in tuned\\-*.txt which constants are fastest "
		 "here.",
	.see_also = ".BR jitrun (1),\n.BR jitwarm (1),\n.BR jitbench (1)",
	.row = rows,
	.n_rows = sizeof rows / sizeof rows[0],
	.command = say_commands,
	.n_commands = COMMANDS,
	.quiet = &jitk.quiet,
	.operand_name = NULL,
	.operand = operand,
	.max_operands = 2
};

/* ---- what every part says */

int jitk_fail(const char *sentence)
{
	fflush(stdout);
	fprintf(stderr, "jitk: %s.\n", sentence);
	return JITK_FAILED;
}

int jitk_fail_error(const jit_error *err)
{
	const int status = jitk_fail(err->message);

	return err->code == JIT_ERROR_CANCELLED ? JITK_INTERRUPTED : status;
}

int jitk_wrong(const char *sentence)
{
	fprintf(stderr, "jitk: %s.\nTry 'jitk --help'.\n", sentence);
	return JITK_USAGE;
}

bool jitk_constants(char out[JITK_CONSTANTS_MAX], struct error *err)
{
	size_t at = 0;

	out[0] = 0;
	for (int i = 0; i < jitk.constants.n; i++) {
		const int n = snprintf(out + at, JITK_CONSTANTS_MAX - at, "%s ", jitk.constants.value[i]);
		if (strpbrk(jitk.constants.value[i], " ,\t\n"))
			return error_set(err, ERROR_ARGUMENT, "--const %.100s: expected NAME=VALUE",
			                 jitk.constants.value[i]);
		if (n < 0 || (at += (size_t)n) >= JITK_CONSTANTS_MAX)
			return error_set(err, ERROR_ARGUMENT, "--const: more than %d bytes", JITK_CONSTANTS_MAX - 1);
	}
	return true;
}

jit_compute *jitk_compute_open(const char *device, const char *isa, int threads, jit_error *err)
{
	const jit_compute_options o =
		JIT_COMPUTE_OPTIONS(.device = device ? device : jitk.device, .isa = isa ? isa : jitk.isa,
	                            .threads = threads, .sealed = jitk.sealed,
	                            .cache_dir = jitk.no_cache ? "" : jitk.cache, .dump_ir = jitk.dump_ir,
	                            .dump_asm = jitk.dump_asm, .trace = device ? NULL : jitk.trace,
	                            .jitdump = jitk.jitdump, .perf_map = jitk.perf_map, .gdb = jitk.gdb,
	                            .cancel = jitk_cancel);

	return jit_compute_open(&o, err);
}

jit_kernel *jitk_kernel_open(jit_compute *c, jit_error *err)
{
	static char messages[1 << 16];
	char constants[JITK_CONSTANTS_MAX];
	struct error e = { 0 };

	if (!jitk_constants(constants, &e)) {
		*err = (jit_error){ .code = JIT_ERROR_ARGUMENT };
		snprintf(err->message, sizeof err->message, "%s", e.text);
		return NULL;
	}
	jit_kernel *k =
		jit_kernel_open(c,
	                        &JIT_KERNEL_OPTIONS(.source = jitk.text, .n = jitk.text_bytes, .path = jitk.file,
	                                            .kernel = jitk.kernel, .constants = constants, .check = jitk.check,
	                                            .messages = messages, .n_messages = sizeof messages),
	                        err);
	if (!k && messages[0]) {
		fputs(messages, stderr);
		snprintf(err->message, sizeof err->message, "%.300s cannot be compiled", jitk.file);
	}
	return k;
}

/* ---- the beginning */

static void on_signal(int number) { jit_cancel_set(jitk_cancel, 1); }

static bool command_is(const char *name) { return strcmp(jitk.command, name) == 0; }

/* NULL: every option that only some commands have is of this one. */
static const char *misplaced_option(void)
{
	if ((jitk.n >= 0 || jitk.steps >= 0) && !command_is("example"))
		return "--n and --steps are of the command example";
	if (jitk.dump_objects && !command_is("disassemble"))
		return "--dump-objects is of the command disassemble";
	if (jitk.trace && !command_is("run") && !command_is("bench") && !command_is("example"))
		return "--trace is of the commands run, bench and example";
	return NULL;
}

static int begin(int argc, char **argv)
{
	struct sigaction on = { .sa_handler = on_signal };
	jit_error err = { 0 };
	int status;

	for (int i = 0; i < COMMANDS; i++)
		say_commands[i] = commands[i].say;
	if (!options_parse(&program, argc, argv))
		return JITK_USAGE;
	if (options_about(&program, &about, jit_version(), &status))
		return status;
	jitk.command = program.n_operands > 0 ? operand[0] : NULL;
	jitk.file = program.n_operands > 1 ? operand[1] : NULL;
	if (!jitk.command)
		return jitk_wrong(
			"a command is missing: run, check, bench, test, report, example, emit-ir or disassemble");
	if (!(jitk_cancel = jit_cancel_open(&err)))
		return jitk_fail_error(&err);
	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	const char *misplaced = misplaced_option();
	if (misplaced)
		return jitk_wrong(misplaced);
	if (strcmp(jitk.command, "example") == 0)
		return jitk_example();
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(jitk.command, commands[i].say.name) == 0)
			return !jitk.file                    ? jitk_wrong("a file of kernels is missing: FILE.jk")
			       : jitk_choose_device(&status) ? commands[i].do_it()
			                                     : status;
	char sentence[200], quoted[80];
	snprintf(sentence, sizeof sentence,
	         "%s is no command; expected run, check, bench, test, report, example, emit-ir or disassemble",
	         error_quote(quoted, sizeof quoted, jitk.command, strlen(jitk.command)));
	return jitk_wrong(sentence);
}

int main(int argc, char **argv)
{
	output_begin();
	allocator_begin();
	system_file_limit_is_error();
	const int status = begin(argc, argv);
	jit_cancel_close(jitk_cancel);
	return output_end("jitk", status, JITK_FAILED);
}

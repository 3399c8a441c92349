/* programs/jitopt/jitopt_main.c - jitopt's command line, and which part does what. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "programs/common/allocator.h"
#include "programs/common/output.h"
#include "programs/jitopt/jitopt.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"

struct jitopt_arguments jitopt = { .dimension = 0, .instance = 1, .seed = 1, .save_every = 100, .target = NAN };
jit_cancel *jitopt_cancel;

static struct option_about about;
static const char *operand[2];

static const struct option_row rows[] = {
	{ .name = "What is made small", .kind = OPTION_GROUP },
	{ .name = "dimension",
	  .letter = 'n',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "coordinates (of bbob 10; of problem as published; run needs it)",
	  .high = 100000,
	  .target = &jitopt.dimension },
	{ .name = "objectives",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "values of a candidate (1 with CMA-ES, else 2; of dtlz1 and so on 3)",
	  .high = 16,
	  .target = &jitopt.objectives },
	{ .name = "function",
	  .letter = 'f',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of bbob: which of the 24; 0: all of them (0)",
	  .high = 24,
	  .target = &jitopt.function },
	{ .name = "instance",
	  .letter = 'i',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of bbob: which shift and rotation (1)",
	  .high = 100000,
	  .target = &jitopt.instance },
	{ .name = "const",
	  .letter = 'c',
	  .kind = OPTION_LIST,
	  .value = "NAME=VALUE",
	  .help = "a constant of a kernel; may be given several times",
	  .target = &jitopt.constants },
	{ .name = "in",
	  .kind = OPTION_LIST,
	  .value = "NAME=VALUES",
	  .help = "what another array of a kernel has: FILE.npy, raw:FILE, random:SEED, iota, or a number; of a scalar "
	          "its "
	          "number",
	  .target = &jitopt.in },
	{ .name = "lower",
	  .kind = OPTION_TEXT,
	  .value = "X[,X...]",
	  .help = "lower bounds: one number, or one for each coordinate (none; of many objectives 0)",
	  .target = &jitopt.lower },
	{ .name = "upper",
	  .kind = OPTION_TEXT,
	  .value = "X[,X...]",
	  .help = "upper bounds (none; of many objectives 1)",
	  .target = &jitopt.upper },
	{ .name = "bounds",
	  .kind = OPTION_CHOICE,
	  .value = "box|penalty",
	  .help = "of CMA-ES: fold candidates into the bounds, or let the distance cost (box)",
	  .target = &jitopt.bounds },
	{ .name = "How", .kind = OPTION_GROUP },
	{ .name = "method",
	  .letter = 'm',
	  .kind = OPTION_CHOICE,
	  .value = "cma|nsga2|nsga3|moead",
	  .help = "one objective: cma; several: the others (cma; of problem nsga2)",
	  .target = &jitopt.method },
	{ .name = "start",
	  .kind = OPTION_TEXT,
	  .value = "X[,X...]",
	  .help = "of CMA-ES: the first mean (the middle of the bounds, or 0; of bbob drawn in [-4, 4])",
	  .target = &jitopt.start },
	{ .name = "sigma",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "of CMA-ES: the first step size; 0: a quarter of the narrowest bounds, or 1; of bbob 2 (0)",
	  .high = 1e100,
	  .target = &jitopt.sigma },
	{ .name = "population",
	  .letter = 'p',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "candidates at a time; 0: by dimension or method (0)",
	  .high = 1000000,
	  .target = &jitopt.population },
	{ .name = "divisions",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of nsga3 and moead: steps of an axis of their directions; 0: by the objectives (0)",
	  .high = 20000,
	  .target = &jitopt.divisions },
	{ .name = "restarts",
	  .kind = OPTION_CHOICE,
	  .value = "none|same|ipop|bipop",
	  .help = "of CMA-ES: what follows a run that is over: nothing, the same again, twice the population, or that "
	          "in turn with small ones (none; of bbob bipop)",
	  .target = &jitopt.restarts },
	{ .name = "runs",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of CMA-ES: runs at most, without bipop's small ones; 0: 10 (0)",
	  .high = 1000,
	  .target = &jitopt.runs },
	{ .name = "separable",
	  .kind = OPTION_FLAG,
	  .help = "of CMA-ES: a diagonal covariance matrix, for many dimensions",
	  .target = &jitopt.separable },
	{ .name = "passive",
	  .kind = OPTION_FLAG,
	  .help = "of CMA-ES: learn from the better half alone",
	  .target = &jitopt.passive },
	{ .name = "seed",
	  .letter = 's',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of all random numbers (1)",
	  .high = 1e15,
	  .target = &jitopt.seed },
	{ .name = "evaluations",
	  .letter = 'e',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "values to compute at most, in whole populations; 0: of cma any number, of the others 25000 (0)",
	  .high = 1e15,
	  .target = &jitopt.evaluations },
	{ .name = "target",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "of CMA-ES: be done at this value; of bbob above the least one (of bbob 1e-8)",
	  .low = -1e300,
	  .high = 1e300,
	  .target = &jitopt.target },
	{ .name = "reference",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "with two or three objectives: print the volume below this value of each; 0: none (of problem 1.1)",
	  .high = 1e300,
	  .target = &jitopt.reference },
	{ .name = "Where", .kind = OPTION_GROUP },
	{ .name = "device",
	  .letter = 'd',
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "where a kernel runs: cpu, ref, sim:gfx1100 and so on, cuda, amd (cpu)",
	  .target = &jitopt.device },
	{ .name = "threads",
	  .letter = 't',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "threads of a kernel; 0: one for each core that may be used; results are the same (0)",
	  .high = POOL_MAX_THREADS,
	  .target = &jitopt.threads },
	{ .name = "cache",
	  .kind = OPTION_FILE,
	  .value = "PATH",
	  .help = "directories and packs that keep a kernel's code ($JITRUN_CACHE, or ~/.cache/jitrun)",
	  .target = &jitopt.cache },
	{ .name = "Files", .kind = OPTION_GROUP },
	{ .name = "state",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "keep the state there, from which --resume goes on with the same bits",
	  .target = &jitopt.state },
	{ .name = "save-every",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "generations between two writings of the state (100)",
	  .low = 1,
	  .high = 1e9,
	  .target = &jitopt.save_every },
	{ .name = "resume",
	  .kind = OPTION_FLAG,
	  .help = "go on from the file of --state; it says the method and all that belongs to it",
	  .target = &jitopt.resume },
	{ .name = "log",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "write a line for each generation: evaluations, best value, step size, condition",
	  .target = &jitopt.log },
	{ .name = "front",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "of many objectives: write the first front, a line for each point: its values, then coordinates",
	  .target = &jitopt.front },
	{ .name = "json", .kind = OPTION_FLAG, .help = "print the result as JSON", .target = &jitopt.json },
	{ .name = "quiet",
	  .letter = 'q',
	  .kind = OPTION_FLAG,
	  .help = "print results and errors alone",
	  .target = &jitopt.quiet },
	OPTION_ABOUT(about),
};

static const struct {
	struct option_command say;
	int (*do_it)(void);
} commands[] = {
	{ { "run", "OBJECTIVE", "make an objective small: FILE.jk, FILE.so[:SYMBOL], or command:TEXT" }, jitopt_run },
	{ { "bbob", "", "solve functions of the black-box optimisation benchmark, and print what it took" },
	  jitopt_bbob },
	{ { "problem", "NAME", "solve zdt1 to zdt4, zdt6 or dtlz1 to dtlz4, and print the volume of the front" },
	  jitopt_problem },
};
enum { COMMANDS = sizeof commands / sizeof *commands };
static struct option_command say_commands[COMMANDS];

static struct option_program program = {
	.name = "jitopt",
	.usage = "COMMAND [OBJECTIVE|NAME] [options]",
	.purpose = "find the least values of functions by evolution, with the same run on every machine",
	.description =
		"jitopt makes one value small by CMA-ES, or several at once by NSGA-II, NSGA-III or MOEA/D. The "
		"objective is a kernel (docs/kernels.md), which computes a whole population on a CPU or a card, a "
		"function of a shared object, or a command that reads candidates and writes values. The same seed "
		"gives "
		"the same run, bit for bit, for any number of threads, device and machine, as long as the objective "
		"gives the same values; docs/evolution.md says how.",
	.examples = "jitopt bbob --function 10 --dimension 20 --instance 1 --target 1e-8 --seed 1\n"
		    "jitopt problem dtlz2 --method nsga3 --front front.txt\n"
		    "jitopt run sphere.jk --dimension 10 --lower -5 --upper 5 --target 1e-10\n"
		    "jitopt run ./model.so:loss --dimension 8 --state run.state\n"
		    "jitopt run ./model.so:loss --state run.state --resume\n"
		    "jitopt run \"command:python3 loss.py\" --dimension 3 --evaluations 2000",
	.exit_status =
		".TP\n0\nDone; with a target: it was reached.\n.TP\n1\nSomething failed.\n.TP\n2\nThe command line "
		"is wrong.\n.TP\n3\nA target was not reached.\n.TP\n130\nInterrupted; with \\-\\-state, the last "
		"state is in its file.",
	.environment =
		".TP\n.B JITRUN_CACHE\nWhere a kernel's code is kept, as of --cache.\n.TP\n.B COLUMNS\nColumns of "
		"the terminal, for help.",
	.files = ".TP\n.I ~/.cache/jitrun\nCode that was generated.",
	.see_also = ".BR jitk (1),\n.BR jitrun (1)",
	.row = rows,
	.n_rows = sizeof rows / sizeof rows[0],
	.command = say_commands,
	.n_commands = COMMANDS,
	.quiet = &jitopt.quiet,
	.operand_name = NULL,
	.operand = operand,
	.max_operands = 2
};

int jitopt_fail(const char *sentence)
{
	fflush(stdout);
	fprintf(stderr, "jitopt: %s.\n", sentence);
	return JITOPT_FAILED;
}

int jitopt_fail_error(const jit_error *err)
{
	const int status = jitopt_fail(err->message);

	return err->code == JIT_ERROR_CANCELLED  ? JITOPT_INTERRUPTED
	       : err->code == JIT_ERROR_ARGUMENT ? JITOPT_USAGE
	                                         : status;
}

int jitopt_wrong(const char *sentence)
{
	fprintf(stderr, "jitopt: %s.\nTry 'jitopt --help'.\n", sentence);
	return JITOPT_USAGE;
}

static void on_signal(int number) { jit_cancel_set(jitopt_cancel, 1); }

static int begin(int argc, char **argv)
{
	struct sigaction on = { .sa_handler = on_signal };
	jit_error err = { 0 };
	int status;
	char sentence[160], quoted[80];

	for (int i = 0; i < COMMANDS; i++)
		say_commands[i] = commands[i].say;
	if (!options_parse(&program, argc, argv))
		return JITOPT_USAGE;
	if (options_about(&program, &about, jit_version(), &status))
		return status;
	jitopt.command = program.n_operands > 0 ? operand[0] : NULL;
	jitopt.operand = program.n_operands > 1 ? operand[1] : NULL;
	jitopt.has_target = !isnan(jitopt.target);
	if (!jitopt.command)
		return jitopt_wrong("a command is missing: run, bbob or problem");
	if (jitopt.resume && !jitopt.state)
		return jitopt_wrong("--resume needs the file of the state: --state FILE");
	if (!(jitopt_cancel = jit_cancel_open(&err)))
		return jitopt_fail_error(&err);
	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	signal(SIGPIPE, SIG_IGN); /* a command that ended is said in a sentence */
	for (int i = 0; i < COMMANDS; i++) {
		if (strcmp(jitopt.command, commands[i].say.name) != 0)
			continue;
		const bool needs = *commands[i].say.operands != 0;
		if (needs && !jitopt.operand)
			return jitopt_wrong(i ? "the name of a problem is missing"
			                      : "an objective is missing: FILE.jk, FILE.so, or command:TEXT");
		if (!needs && jitopt.operand)
			return jitopt_wrong("bbob takes no name; --function says which one");
		return commands[i].do_it();
	}
	snprintf(sentence, sizeof sentence, "%s is no command; expected run, bbob or problem",
	         error_quote(quoted, sizeof quoted, jitopt.command, strlen(jitopt.command)));
	return jitopt_wrong(sentence);
}

int main(int argc, char **argv)
{
	output_begin();
	allocator_begin();
	system_file_limit_is_error();
	const int status = begin(argc, argv);
	jit_cancel_close(jitopt_cancel);
	return output_end("jitopt", status, JITOPT_FAILED);
}

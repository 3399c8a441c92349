/* programs/jiteml/jiteml_main.c - jiteml's command line, and which part does what. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "eml/levels.h"
#include "programs/common/allocator.h"
#include "programs/common/output.h"
#include "programs/jiteml/jiteml.h"
#include "programs/jiteml/jiteml_data.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"

struct jiteml_arguments jiteml = {
	.variables = -1, .cap = 12, .digits = 40, .form = "text", .examined = 20, .terms = 3, .enough = 1e-9
};
jit_cancel *jiteml_cancel;
const char *const jiteml_names[2] = { "x", "y" };

static struct option_about about;
static const char *operand[3];

static const struct option_row rows[] = {
	{ .name = "Trees", .kind = OPTION_GROUP },
	{ .name = "size",
	  .letter = 'k',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "leaves and inner nodes of the largest trees that are enumerated; 0: 15 with one variable, else 13 "
	          "or "
	          "21 (0)",
	  .high = LEVELS_MAX,
	  .target = &jiteml.size },
	{ .name = "max",
	  .letter = 'm',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of find: the largest tree that is searched; 0: 10 more than --size (0)",
	  .high = LEVELS_MAX,
	  .target = &jiteml.max },
	{ .name = "variables",
	  .letter = 'v',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of enumerate: leaves beside 1: none, x, or x and y (1)",
	  .high = LEVELS_VARIABLES,
	  .target = &jiteml.variables },
	{ .name = "extended",
	  .letter = 'x',
	  .kind = OPTION_FLAG,
	  .help = "extended reals: Ln(0) is minus infinity, and exp of that 0",
	  .target = &jiteml.extended },
	{ .name = "cap",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "real parts of which exp is taken are at most this from 0 (12)",
	  .low = 1,
	  .high = 300,
	  .target = &jiteml.cap },
	{ .name = "digits",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "in which two expressions must agree to be equal (40)",
	  .low = 1,
	  .high = 90,
	  .target = &jiteml.digits },
	{ .name = "form",
	  .letter = 'f',
	  .kind = OPTION_CHOICE,
	  .value = "text|c|latex|rpn|gnuplot",
	  .help = "how expressions are printed; gnuplot: a script that draws the tree (text)",
	  .target = &jiteml.form },
	{ .name = "Formulas of data", .kind = OPTION_GROUP },
	{ .name = "target",
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "the column that is explained (the last one)",
	  .target = &jiteml.target },
	{ .name = "sequence",
	  .kind = OPTION_TEXT,
	  .value = "N,N...",
	  .help = "in place of a file: numbers a, which their places n explain, from 1",
	  .target = &jiteml.sequence },
	{ .name = "lags",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of --sequence: numbers before each one that may explain it, too: a1, the last one, a2 and so on (0)",
	  .high = NUMBERS_LAGS,
	  .target = &jiteml.lags },
	{ .name = "operations",
	  .kind = OPTION_TEXT,
	  .value = "NAME[,NAME...]",
	  .help = "of which formulas are made: +,-,*,/,^,exp,ln,sqrt,sin,cos,tanh,square,inverse (all but ^)",
	  .target = &jiteml.operations },
	{ .name = "looked",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "functions that are looked at, in millions (20)",
	  .low = 1,
	  .high = 100000,
	  .target = &jiteml.examined },
	{ .name = "terms",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "functions that are added up at most (3)",
	  .low = 1,
	  .high = 8,
	  .target = &jiteml.terms },
	{ .name = "no-constants",
	  .kind = OPTION_FLAG,
	  .help = "fit no numbers inside of functions, as in exp(-0.7 x)",
	  .target = &jiteml.no_constants },
	{ .name = "enough",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "an error that ends the search; errors are parts of the target's standard deviation (1e-9)",
	  .low = 0,
	  .high = 1,
	  .target = &jiteml.enough },
	{ .name = "front",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "write a line for each formula: size, error, and its text",
	  .target = &jiteml.front },
	{ .name = "Where", .kind = OPTION_GROUP },
	{ .name = "device",
	  .letter = 'd',
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "where kernels run: cpu, ref, sim:gfx1100 and so on, cuda, amd (cpu)",
	  .target = &jiteml.device },
	{ .name = "threads",
	  .letter = 't',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "threads of kernels; 0: one for each core that may be used; results are the same (0)",
	  .high = POOL_MAX_THREADS,
	  .target = &jiteml.threads },
	{ .name = "cache",
	  .kind = OPTION_FILE,
	  .value = "PATH",
	  .help = "directories and packs that keep kernels' code ($JITRUN_CACHE, or ~/.cache/jitrun)",
	  .target = &jiteml.cache },
	{ .name = "Output", .kind = OPTION_GROUP },
	{ .name = "json", .kind = OPTION_FLAG, .help = "print results as JSON, a line each", .target = &jiteml.json },
	{ .name = "quiet",
	  .letter = 'q',
	  .kind = OPTION_FLAG,
	  .help = "print results and errors alone",
	  .target = &jiteml.quiet },
	OPTION_ABOUT(about),
};

static const struct {
	struct option_command say;
	int operands;
	int (*do_it)(void);
} commands[] = {
	{ { "enumerate", "", "count the values of all trees by size" }, 0, jiteml_enumerate },
	{ { "find", "EXPRESSION", "the smallest tree with the value of an expression in x and y" }, 1, jiteml_find },
	{ { "identities", "", "find trees for the functions of a pocket calculator" }, 0, jiteml_identities },
	{ { "prove", "EXPRESSION EXPRESSION", "whether two expressions are equal in 40 digits" }, 2, jiteml_prove },
	{ { "fit", "FILE", "formulas of data, by size and error: a CSV or .npy file, or --sequence" }, -1, jiteml_fit },
	{ { "show", "EXPRESSION", "print an expression as --form says" }, 1, jiteml_show },
};
enum { COMMANDS = sizeof commands / sizeof *commands };
static struct option_command say_commands[COMMANDS];

static struct option_program program = {
	.name = "jiteml",
	.usage = "COMMAND [EXPRESSION...] [options]",
	.purpose = "find functions as trees of one operator, eml(x, y) = exp(x) - Ln(y)",
	.description =
		"jiteml enumerates trees of eml(x, y) = exp(x) - Ln(y), the constant 1 and variables by their size, "
		"and finds the smallest ones that compute a given expression. Kernels (docs/kernels.md) compute "
		"all trees of a size, on a CPU or a card, with the same bits. What is found is compared in 40 "
		"digits. docs/eml.md says more.",
	.examples = "jiteml enumerate --size 15\n"
		    "jiteml find \"x*y\" --max 17\n"
		    "jiteml identities\n"
		    "jiteml prove \"eml(1, eml(eml(1, x), 1))\" \"ln(x)\"\n"
		    "jiteml show \"eml(1, eml(eml(1, x), 1))\" --form latex",
	.exit_status =
		".TP\n0\nDone.\n.TP\n1\nSomething failed.\n.TP\n2\nThe command line is wrong.\n.TP\n3\nNothing was "
		"found, or the expressions are not equal.\n.TP\n130\nInterrupted.",
	.environment = ".TP\n.B JITRUN_CACHE\nWhere kernels' code is kept, as of --cache.\n.TP\n.B COLUMNS\nColumns of "
		       "the terminal, for help.",
	.files = ".TP\n.I ~/.cache/jitrun\nCode that was generated.",
	.see_also = ".BR jitk (1),\n.BR jitopt (1),\n.BR jitrun (1)",
	.row = rows,
	.n_rows = sizeof rows / sizeof rows[0],
	.command = say_commands,
	.n_commands = COMMANDS,
	.quiet = &jiteml.quiet,
	.operand_name = NULL,
	.operand = operand,
	.max_operands = 3
};

int jiteml_fail(const char *sentence)
{
	fflush(stdout);
	fprintf(stderr, "jiteml: %s.\n", sentence);
	return JITEML_FAILED;
}

int jiteml_fail_error(const jit_error *err)
{
	const int status = jiteml_fail(err->message);

	return err->code == JIT_ERROR_CANCELLED ? JITEML_INTERRUPTED : status;
}

int jiteml_wrong(const char *sentence)
{
	fprintf(stderr, "jiteml: %s.\nTry 'jiteml --help'.\n", sentence);
	return JITEML_USAGE;
}

bool jiteml_read(struct expression *e, const char *what, const char *text)
{
	struct error err = { 0 };

	if (expression_read(e, what, text, jiteml_names, 2, &err))
		return true;
	jiteml_fail(err.text);
	return false;
}

static void on_signal(int number) { jit_cancel_set(jiteml_cancel, 1); }

static int begin(int argc, char **argv)
{
	struct sigaction on = { .sa_handler = on_signal };
	jit_error err = { 0 };
	int status;
	char sentence[200], quoted[80];

	for (int i = 0; i < COMMANDS; i++)
		say_commands[i] = commands[i].say;
	if (!options_parse(&program, argc, argv))
		return JITEML_USAGE;
	if (options_about(&program, &about, jit_version(), &status))
		return status;
	if (program.n_operands == 0)
		return jiteml_wrong("a command is missing: enumerate, find, fit, identities, prove or show");
	jiteml.command = operand[0];
	jiteml.operand[0] = program.n_operands > 1 ? operand[1] : NULL;
	jiteml.operand[1] = program.n_operands > 2 ? operand[2] : NULL;
	if (!(jiteml_cancel = jit_cancel_open(&err)))
		return jiteml_fail_error(&err);
	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	for (int i = 0; i < COMMANDS; i++) {
		if (strcmp(jiteml.command, commands[i].say.name) != 0)
			continue;
		if (program.n_operands - 1 == commands[i].operands || (commands[i].operands < 0 && !jiteml.operand[1]))
			return commands[i].do_it();
		snprintf(sentence, sizeof sentence, "%s takes %s", jiteml.command,
		         commands[i].operands < 0    ? "one file"
		         : commands[i].operands == 0 ? "options alone"
		         : commands[i].operands == 1 ? "one expression; quote it for the shell"
		                                     : "two expressions; quote them for the shell");
		return jiteml_wrong(sentence);
	}
	snprintf(sentence, sizeof sentence,
	         "%s is no command; expected enumerate, find, fit, identities, prove or show",
	         error_quote(quoted, sizeof quoted, jiteml.command, strlen(jiteml.command)));
	return jiteml_wrong(sentence);
}

int main(int argc, char **argv)
{
	output_begin();
	allocator_begin();
	system_file_limit_is_error();
	const int status = begin(argc, argv);
	jit_cancel_close(jiteml_cancel);
	return output_end("jiteml", status, JITEML_FAILED);
}

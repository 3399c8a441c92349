/* programs/options.h - command lines from one table: parsing, --help, the man page and the bash completion.
 *
 * Owns: what is made of a program's option table (an array of struct option_row), which the program owns. Values are
 * stored through each row's target. A wrong command line gives one sentence and a hint on standard error; the program
 * then exits with status 2.
 */
#ifndef RUNTIME_OPTIONS_H
#define RUNTIME_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

enum option_kind {
	OPTION_FLAG,
	OPTION_TEXT,
	OPTION_FILE,
	OPTION_INT,
	OPTION_FLOAT,
	OPTION_CHOICE,
	OPTION_OPEN_CHOICE, /* other values are taken too: whoever uses them refuses what it does not know */
	OPTION_LIST,
	OPTION_GROUP
};

/* What an option of kind LIST was given, time after time; its value may name choices. */
enum { OPTION_LIST_MOST = 32 };
struct option_list {
	const char *value[OPTION_LIST_MOST];
	int n;
};

struct option_row {
	const char *name; /* long name without dashes; of a GROUP: its heading */
	char letter;      /* short name, or 0 */
	enum option_kind kind;
	const char *value; /* name of the value in help ("N"), or the choices "a|b" */
	const char *help;  /* one sentence, no full stop; default in parentheses */
	double low, high;  /* INT, FLOAT: accepted range, both ends included */
	void *target; /* bool *, const char **, long *, double *; CHOICE: const char **; LIST: struct option_list * */
};

/* A first operand that says what to do; the program looks for it itself. */
struct option_command {
	const char *name, *operands; /* name "": without a command */
	const char *help;            /* as of an option */
};

struct option_program {
	const char *name, *usage, *purpose; /* usage without the name: "MODEL [options]" */
	const char *description, *examples; /* for the man page; paragraphs */
	const struct option_row *row;
	int n_rows;
	const struct option_command *command;
	int n_commands; /* none: 0 */
	const char **operand;
	int max_operands, n_operands; /* filled by options_parse */
};

/* Fills targets and operands. False: one sentence and a hint were printed on stderr. */
bool options_parse(struct option_program *p, int argc, char **argv);
void options_help(const struct option_program *p, FILE *out);
void options_man(const struct option_program *p, FILE *out);        /* roff, section 1 */
void options_completion(const struct option_program *p, FILE *out); /* bash */

/* What every program says of itself: four rows of its table, and the answer. */
struct option_about {
	bool help, version, man, completion;
};
#define OPTION_ABOUT(about) \
	{ "help", 'h', OPTION_FLAG, 0, "print this help", 0, 0, &(about).help }, \
		{ "version", 0, OPTION_FLAG, 0, "print the version", 0, 0, &(about).version }, \
		{ "print-man", 0, OPTION_FLAG, 0, "print the man page", 0, 0, &(about).man }, \
	{ \
		"print-completion", 0, OPTION_FLAG, 0, "print the bash completion", 0, 0, &(about).completion \
	}
/* Whether something was asked; then it was printed on standard output, whose end (output.h) says whether it got there,
 * and *status is the program's exit status. */
bool options_about(const struct option_program *p, const struct option_about *about, const char *version, int *status);

#endif

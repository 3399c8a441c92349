/* programs/common/options.h - command lines from one table: parsing, --help, the man page, and completion in bash, zsh
 * and fish.
 *
 * Owns: what is made of a program's option table (an array of struct option_row), which the program owns. Values are
 * stored through each row's target. A wrong command line gives one sentence and a hint on standard error; the program
 * then exits with status 2.
 *
 *   options.c             parsing
 *   options_names.c       names that are no rows: those of other programs, and what is likely meant by a wrong one
 *   options_foreign.c     the names of other programs
 *   options_serve.c       those of other servers
 *   options_settings.c    the same options from a file and from the environment
 *   options_help.c        --help, --help-all, --version, the man page
 *   options_completion.c  the completions
 */
#ifndef PROGRAMS_OPTIONS_H
#define PROGRAMS_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

/* The status of a program whose command line is wrong. */
enum { EXIT_USAGE = 2 };

enum option_kind {
	OPTION_FLAG,
	OPTION_TEXT,
	OPTION_FILE,
	OPTION_INT,
	OPTION_FLOAT,
	OPTION_CHOICE,
	OPTION_OPEN_CHOICE, /* other values are taken too: their user refuses what it does not know */
	OPTION_LIST,
	OPTION_GROUP
};

/* What an option of kind LIST was given, time after time; its value may name choices. */
enum { OPTION_LIST_MAX = 32 };
struct option_list {
	const char *value[OPTION_LIST_MAX];
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

/* What other programs call an option, so that their command lines are understood, or answered. */
enum option_foreign_kind {
	OPTION_SAME,      /* another name of the row `row` */
	OPTION_SAME_LIST, /* the same, with several values of it at once: a,b or ["a","b"] */
	OPTION_SAME_FILE, /* the same where the value is a file; otherwise it is refused */
	OPTION_HALF,   /* the same, of what is two options there: both must be given and say the same, else `answer` */
	OPTION_UNUSED, /* a flag that changes nothing here; `answer` is told as a note */
	OPTION_UNUSED_VALUE,  /* the same with a value */
	OPTION_UNUSED_SWITCH, /* the same, with on, off, auto, 0 or 1 behind it or not */
	OPTION_REFUSED        /* it would change what is done: `answer` says what to do instead */
};
struct option_foreign {
	const char *names; /* without dashes, spaces between: "ngl gpu-layers"; one dash or two, as they are typed */
	enum option_foreign_kind kind;
	const char *row;    /* of SAME and HALF */
	const char *answer; /* of the others: a sentence without its end */
	const char *usual;  /* NULL, or values with '|' between that ask for nothing: of SAME and REFUSED */
};
/* Rows as most are: another name of a row, and what is answered to a name that has none. */
#define OPTION_AS(names, row) \
	{ \
		names, OPTION_SAME, row, NULL, NULL \
	}
#define OPTION_TOLD(names, kind, answer) \
	{ \
		names, kind, NULL, answer, NULL \
	}
/* options_foreign.c: those of programs that run models; options_shared.def has what both tables begin with. */
extern const struct option_foreign option_foreign_table[];
extern const int option_foreign_count;
/* options_serve.c: those of servers. */
extern const struct option_foreign option_serve_table[];
extern const int option_serve_count;

/* A first operand that says what to do; the program looks for it itself. */
struct option_command {
	const char *name, *operands; /* name "": without a command */
	const char *help;            /* as of an option */
};

struct option_program {
	const char *name, *usage, *purpose; /* usage without the name: "MODEL [options]" */
	const char *description, *examples; /* for the man page; paragraphs */
	/* More of its sections, in roff; NULL: none. */
	const char *exit_status, *environment, *files, *see_also;
	const char *everyday; /* long names of the options that --help shows, spaces between; NULL: all */
	const struct option_row *row;
	int n_rows;
	const struct option_command *command;
	int n_commands; /* none: 0 */
	const struct option_foreign *foreign;
	int n_foreign;
	const char *operand_name; /* what its operands are, for completion: "MODEL"; NULL: files */
	const bool *quiet;        /* when it points to true at the end, no notes are printed; NULL: they are */
	const char **operand;
	int max_operands, n_operands; /* filled by options_parse */
	bool *given;                  /* of each row, whether it was given; NULL: nobody asks */
	const char *where;            /* "FILE:3: ", what stands before complaints; NULL: nothing */
	char *said;                   /* where complaints go, `room` bytes; NULL: to standard error */
	size_t room;
	char *settings; /* by options_settings(): the file's text, which rows point into; free() it behind their use */
};

/* Where else options come from; the command line wins, then the environment. */
struct option_settings {
	const char *file;   /* NULL: none */
	const char *prefix; /* of variables: "JITRUN_"; the name follows in large letters */
	const char *never;  /* names of rows that come from the command line alone, spaces between */
	const struct option_variable {
		const char *name, *row;
		bool inverse; /* 0 gives the flag */
	} * variable;         /* what other programs call them */
	int n_variables;
};
/* After options_parse, of a program with `given`. Texts live as long as the program. False: an error was printed. */
bool options_settings(struct option_program *p, const struct option_settings *s);

/* Fills targets and operands. False: one sentence and a hint were printed on stderr. Notes about options that are not
 * used are printed there, too. */
bool options_parse(struct option_program *p, int argc, char **argv);
/* What a file says of an option that the command line does not have. False: its value is wrong, which was told. */
bool options_preset(const struct option_program *p, const char *name, const char *value);
/* Whether the command line had it. */
bool options_given(const struct option_program *p, const char *name);
/* To lines of so many columns; all: of all options, otherwise of those for every day. */
void options_help(const struct option_program *p, bool all, int columns, FILE *out);
void options_man(const struct option_program *p, const char *version, FILE *out); /* roff, section 1 */
/* shell: "bash", "zsh" or "fish". */
void options_completion(const struct option_program *p, const char *shell, FILE *out);

/* What every program says of itself: rows of its table, and the answer. */
struct option_about {
	bool help, help_all, version, man;
	const char *completion;
};
#define OPTION_ABOUT(about) \
	{ "help", 'h', OPTION_FLAG, 0, "print the options for every day", 0, 0, &(about).help }, \
		{ "help-all", 0, OPTION_FLAG, 0, "print all options", 0, 0, &(about).help_all }, \
		{ "version", 0, OPTION_FLAG,     0, "print the version, its commit, and the target for this CPU", \
		  0,         0, &(about).version }, \
		{ "print-man", 0, OPTION_FLAG, 0, "print the man page", 0, 0, &(about).man }, \
	{ \
		"print-completion", 0, OPTION_CHOICE, "bash|zsh|fish", "print the completion for a shell", 0, 0, \
			&(about).completion \
	}
/* Whether something was asked; then it was printed on standard output, whose end (output.h) says whether it got there,
 * and *status is the program's exit status. */
bool options_about(const struct option_program *p, const struct option_about *about, const char *version, int *status);

/* ---- between the parts */

bool options_complain(const struct option_program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
const struct option_row *options_find(const struct option_program *p, const char *name, size_t n);
/* name: n bytes without dashes. */
const struct option_foreign *options_foreign(const struct option_program *p, const char *name, size_t n);
/* Says what is likely meant by it; false. typed: with its dashes. */
bool options_unknown(const struct option_program *p, const char *typed, const char *name, size_t n);
/* Whether there is a name that one wrong letter, or two letters in the wrong order, could have made of this one. */
bool options_is_near(const struct option_program *p, const char *name, size_t n);
/* How far what was typed is from a name, large letters being small ones, and 1 more; 0: too far to be meant. */
unsigned options_distance(const char *typed, size_t n, const char *name, size_t m);
/* The operand is no model's name; whether it can be neither a command nor a file, either: that was said, with a model's
 * name that is near, or NULL. */
bool options_refuse_word(const struct option_program *p, const char *word, const char *near);
/* A value of a row, however it came. False: an error was printed. */
bool options_store(const struct option_program *p, const struct option_row *o, const char *value);
/* Several of a list's in one text: a,b or ["a","b"]. */
bool options_store_all(const struct option_program *p, const struct option_row *o, const char *value);
/* Whether the text is one of those with '|' between. */
bool options_is_choice(const char *choices, const char *text);
/* Whether its values are the choices that `value` lists. */
bool options_has_choices(const struct option_row *o);

#endif

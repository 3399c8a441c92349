/* programs/jiteml/jiteml.h - what the parts of jiteml share: its command line, and proofs. */
#ifndef PROGRAMS_JITEML_H
#define PROGRAMS_JITEML_H

#include "base/error.h"
#include "eml/expression.h"
#include "include/jitrun_kernel.h"
#include "programs/common/options.h"

enum { JITEML_DONE, JITEML_FAILED, JITEML_USAGE, JITEML_NOT_FOUND = 3, JITEML_INTERRUPTED = 130 };

struct jiteml_arguments {
	const char *command, *operand[2];
	const char *device, *cache, *form, *target, *sequence, *operations, *front;
	long size, max, variables, threads, digits, lags, examined, terms;
	double cap, enough;
	bool extended, no_constants, json, quiet;
};
extern struct jiteml_arguments jiteml;
extern jit_cancel *jiteml_cancel;         /* set by a signal */
extern const char *const jiteml_names[2]; /* of variables */

/* Prints the sentence on standard error; returns JITEML_FAILED, JITEML_USAGE, or JITEML_INTERRUPTED where that was why.
 */
int jiteml_fail(const char *sentence);
int jiteml_fail_error(const jit_error *err);
int jiteml_wrong(const char *sentence);
/* An expression in x and y. False: an error was printed. */
bool jiteml_read(struct expression *e, const char *what, const char *text);

/* An expression as --form says. */
void jiteml_write(const struct expression *e, const char *const *names, FILE *out);

/* A script for gnuplot that draws the tree. False: there is no memory. */
bool jiteml_draw(const struct expression *e, const char *const *names, FILE *out);

/* ---- jiteml_prove.c: whether two expressions are equal, by MPFR */

enum { JITEML_POINTS = 64 };
struct jiteml_proof {
	bool done;                     /* false: this build has no MPFR */
	unsigned points, equal;        /* choices of the variables in (0, 4), and how many of these agree */
	unsigned others, equal_others; /* with negative ones, where both have values */
	double digits;                 /* in which they agree at all points that agree at all: the least */
	double apart[2];               /* where they first do not */
};
/* extended: Ln(0) is minus infinity. */
void jiteml_prove_equal(const struct expression *a, const struct expression *b, bool extended,
                        struct jiteml_proof *out);
/* "40 digits at 64 of 64 points" */
void jiteml_print_proof(const struct jiteml_proof *p, FILE *out);

/* ---- commands */

int jiteml_enumerate(void);
int jiteml_find(void);
int jiteml_identities(void);
int jiteml_prove(void);
int jiteml_show(void);
int jiteml_fit(void);

#endif

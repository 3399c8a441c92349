/* programs/jitrun/wrap.h - text that comes token by token, cut between words at the terminal's width.
 *
 * Owns: the word that is not over yet, which is held back until it is known whether it fits, and the column. Between
 * characters of two columns a line may end anywhere. A word that is longer than a line is the terminal's to cut.
 */
#ifndef PROGRAMS_WRAP_H
#define PROGRAMS_WRAP_H

#include <stdbool.h>
#include <stdio.h>

enum { WRAP_MAX = 1024 };

struct wrap {
	FILE *out;
	bool terminal;       /* false: text is written as it is, at once */
	bool uncut;          /* lines are the terminal's to cut; control characters are replaced all the same */
	bool dim;            /* what is held */
	bool within;         /* a word that is where it has to be: the rest of it follows, without being held back */
	int column, columns; /* columns 0: nobody knows, and nothing is cut */
	char held[WRAP_MAX]; /* blanks, and the word behind them */
	size_t n_blanks, n;
};

void wrap_begin(struct wrap *w, FILE *out, bool terminal);
/* As output_text(), which says what a terminal is shown of control characters. dim: in a fainter colour. False: it
 * could not be written. */
bool wrap_text(struct wrap *w, const char *text, size_t n, bool dim);
/* Writes what is held. */
bool wrap_flush(struct wrap *w);

#endif

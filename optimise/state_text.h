/* optimise/state_text.h - states of optimisers as lines of text, "name value value ...", with exact numbers.
 *
 * Floats are hexadecimal, so that a state that was read is the state that was written, bit by bit. The last line is
 * "sum" and a hash of everything before it: a file that was cut or changed is refused.
 */
#ifndef OPTIMISE_STATE_TEXT_H
#define OPTIMISE_STATE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "optimise/draw.h"

void state_write_reals(FILE *f, const char *field, const double *x, size_t n);
void state_write_count(FILE *f, const char *field, uint64_t x);
/* Three counts: the two halves of the seed, and how many numbers were drawn. */
void state_write_draw(FILE *f, const struct random_stream *d);
/* The last line; text: the n bytes before it. */
void state_write_sum(FILE *f, const char *text, size_t n);

/* The first error is kept, and everything read behind it is 0. */
struct state_reader {
	const char *text, *end;
	const char *name; /* of the file, for messages */
	int line;         /* from 1 */
	struct error *err;
	bool failed;
};
/* Looks at the last line first; text need not end in a zero byte. */
struct state_reader state_reader_open(const char *text, size_t n, const char *name, struct error *err);
void state_read_reals(struct state_reader *r, const char *field, double *x, size_t n, bool finite);
/* low to high, both included. */
uint64_t state_read_count(struct state_reader *r, const char *field, uint64_t low, uint64_t high);
struct random_stream state_read_draw(struct state_reader *r);
/* The rest must be empty. False: something was wrong. */
bool state_reader_close(struct state_reader *r);

#endif

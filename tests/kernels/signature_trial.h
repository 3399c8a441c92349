/* tests/kernels/signature_trial.h - one launch of one kernel, held against its signature byte by byte.
 *
 * A trial has a random key and launch (signature_draws.c). Each argument gets memory of its own, filled with what the
 * kernel can compute with, between guard zones. The kernel runs in the interpreter, which tells of every load and
 * store:
 *
 *   - nothing outside the arguments' memory and the 256 readable bytes behind it is touched;
 *   - exactly the bytes that rows say are written are written, and all that are to be read are read, each awaited or
 *     given where the row says so; of rows whose bytes data choose, nothing but those;
 *   - what is read beside those bytes makes no difference: a second run finds other bytes there, and in all that is
 *     written alone, and must leave the same.
 *
 * One unit at a time is judged, or several together.
 */
#ifndef TESTS_SIGNATURE_TRIAL_H
#define TESTS_SIGNATURE_TRIAL_H

#include "kernels-templates/signature.h"

enum { TRIAL_ARGS = 24, TRIAL_PAGES = 8, TRIAL_AREAS = TRIAL_ARGS + TRIAL_PAGES, TRIAL_GUARD = 4096 };

struct trial {
	const struct target *target;
	struct key key;
	int64_t units;                     /* all that there are */
	uint64_t columns, tiles, position; /* of the launch */
	uint64_t matrices, rows;           /* how many of either data choose among */
	uint64_t groups, window;
};

/* What is wrong with what rows say; a trial then must fail. */
enum trial_lie {
	LIE_NONE,
	LIE_SHORT, /* the last byte is missing */
	LIE_LONG,  /* there is one more */
	LIE_SHIFTED,
	LIE_ABSENT,
	LIE_READ,     /* what is written is read, too */
	LIE_WRITTEN,  /* what is read is written, too */
	LIE_DATAFLOW, /* awaited or given, or not */
	LIE_COUNT
};
struct trial_lies {
	enum trial_lie lie;
	unsigned slot;
};

/* A random number below n, and where such numbers begin. */
uint32_t trial_draw(uint32_t n);
void trial_seed(uint64_t seed);

/* signature_draws.c: a random launch of that kind; its key may still be refused. */
void trial_draw_launch(struct trial *t, enum key_kind kind);

enum trial_end { TRIAL_PASSED, TRIAL_FAILED, TRIAL_REFUSED };
/* text: what is wrong. Fails the test where memory is short. */
enum trial_end trial_run(const struct trial *t, const struct trial_lies *lies, char text[512]);

#endif

/* grammar/call/call_parts.h - the machine that reads calls: what its files share.
 *
 * A state is a set of threads, for a text may be read in several ways until its next bytes tell: in each of them the
 * machine of the schema is in a state of its own, and a thread whose JSON is dead is gone.
 */
#ifndef GRAMMAR_CALL_PARTS_H
#define GRAMMAR_CALL_PARTS_H

#include "grammar/call/call.h"
#include "grammar/call/threads.h"

enum call_values { VALUES_PLAIN, VALUES_PYTHON, VALUES_BRACES, VALUES_JSON };

enum call_mark {
	MARK_BEHIND_NAME,
	MARK_FIRST_KEY,
	MARK_NEXT_KEY,
	MARK_BEHIND_KEY,
	MARK_BEHIND_TEXT_KEY,
	MARK_BEHIND_VALUE,
	MARK_END,
	MARK_QUOTE,
	MARK_QUOTE_END,
	MARK_CDATA,
	MARK_CDATA_END,
	CALL_MARKS
};

/* What a thread is at. THREAD_MARK and those behind it: inside of that mark, `at` bytes of which were read. */
enum thread_mode {
	THREAD_NAME,   /* at: 1 behind the first byte */
	THREAD_KEY,    /* the same */
	THREAD_TEXT,   /* at: bytes of `stop` that were read; aux: whether it could be read as JSON (call_values.c) */
	THREAD_CDATA,  /* at: as before */
	THREAD_QUOTED, /* at: as before; aux: of THREAD_BRACES */
	THREAD_JSON,   /* aux: how deep it is, and flags */
	THREAD_PYTHON, /* the same; at: letters of None that were read */
	THREAD_BRACES, /* at: what is expected; aux: a bit for each value around, behind a one: whether it is an object
	                */
	THREAD_END,
	THREAD_MARK
};

enum { STOP_MAX = 80 };
/* THREAD_MARK + MARK_BEHIND_NAME: aux is 0, or GAP_BEGINS * (1 + i) of gap i, and how many bytes of it were read. */
enum { GAPS_MAX = 4, GAP_MAX = 80, GAP_BEGINS = 256 };

struct call_machine {
	struct machine machine;
	struct machine *json;
	enum call_values values;
	char *mark[CALL_MARKS];
	bool told;           /* keys tell whether a text follows */
	bool loose;          /* line ends in marks may be left out */
	char *gap[GAPS_MAX]; /* how what may stand before the mark behind the name begins */
	uint32_t n_gaps;
	enum { GAP_ENDS, GAP_WORDS, GAP_NUMBER } goes_on; /* and how it goes on: not at all; ... */
	const char *stop;                                 /* what no text may hold; NULL: it may hold anything */
	uint8_t fallback[STOP_MAX];                       /* of `stop`, as Knuth, Morris and Pratt have it */
	struct threads threads;                           /* inner: the schema's machine's */
};

/* The schema's machine behind these bytes; MACHINE_DEAD. */
uint32_t call_feed(struct call_machine *m, uint32_t json, const char *bytes);
/* A thread of the next state, and all that can follow without a byte. A dead one is nothing. */
void call_add(struct call_machine *m, struct thread t);
/* call_values.c: a value follows; told: none that is a text. What a byte makes of a thread in a value. */
void call_value(struct call_machine *m, uint32_t json);
void call_value_step(struct call_machine *m, struct thread t, uint8_t byte);
/* What can follow a thread in a value without a byte. */
void call_value_follow(struct call_machine *m, const struct thread *t);
/* How many characters of a class a thread in a text takes for sure. */
uint32_t call_value_easy(struct call_machine *m, const struct thread *t, enum easy class);

#endif

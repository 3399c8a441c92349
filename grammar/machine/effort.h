/* grammar/machine/effort.h - how much work and memory a grammar may take.
 *
 * Owns: the account. Grammars come from outside, and small ones can ask for any amount of work: every search takes
 * steps from the account of the thread, and stops where there are no more. Steps are counted, not time: the same
 * grammar comes as far on every machine. A step is some ten nanoseconds. Nothing here is an error by itself: who began
 * an account looks at the end whether it was enough.
 *
 * Memory that the system refuses is noted in the account as well: deep in a search nobody can say so, and a byte that
 * is refused for it must not be taken for one that the grammar does not allow.
 *
 * Code without an account (effort_begin was not called on its thread) may take what it likes.
 */
#ifndef GRAMMAR_EFFORT_H
#define GRAMMAR_EFFORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"

/* For reading a grammar and finding its first tokens; what a text may have saved up for one token; what each token adds
 * to that. Bytes of all that a grammar keeps. */
enum { EFFORT_TO_OPEN = 60000000, EFFORT_SAVED = 40000000, EFFORT_OF_TOKEN = 2000000, EFFORT_BYTES = 192 << 20 };

struct effort {
	uint64_t left;
	size_t bytes;             /* that are still free */
	bool spent;               /* steps or bytes were not enough */
	bool stopped;             /* somebody no longer wants the result */
	bool lost;                /* the system refused memory: what was found since does not hold */
	bool (*stop)(void *user); /* whether that is so; asked at times; NULL: never */
	void *user;
	uint64_t ask_at; /* when as many steps are left */
	uint64_t told;   /* those that were left when the thread's bound was told of them last */
};

/* What all accounts together may take on a thread, from effort_bind() to effort_unbind(). */
struct effort_bound {
	uint64_t left;
	bool hit;                 /* it was not enough for some account, which was told that it is spent */
	bool (*stop)(void *user); /* as in struct effort; NULL: never */
	void *user;
};
void effort_bind(struct effort_bound *b);
void effort_unbind(void);
bool effort_bound_is_hit(void); /* of this thread; without a bound it is not */

extern _Thread_local struct effort *effort_of_thread;

bool effort_ask(struct effort *e);
/* With so many steps, and EFFORT_BYTES. */
static inline void effort_give(struct effort *e, uint64_t steps)
{
	e->left = e->ask_at = e->told = steps;
	e->bytes = EFFORT_BYTES;
}
static inline void effort_cut(struct effort *e, uint64_t max)
{
	e->left = e->ask_at = e->told = e->left < max ? e->left : max;
}
/* Some more, up to so many. */
static inline void effort_add(struct effort *e, uint64_t steps, uint64_t max)
{
	if (e->left < max)
		e->left = e->left + steps < max ? e->left + steps : max;
	e->ask_at = e->told = e->left;
}
/* Whether the account was enough; else err says so, instead of what it said before. */
bool effort_check(const struct effort *e, struct error *err);

/* Returns the account that was the thread's before, for effort_end(). */
static inline struct effort *effort_begin(struct effort *e)
{
	struct effort *before = effort_of_thread;

	effort_of_thread = e;
	return before;
}
static inline void effort_end(struct effort *before) { effort_of_thread = before; }

/* Whether no more may be done. */
static inline bool effort_over_of(const struct effort *e) { return e->spent || e->stopped || e->lost; }
static inline bool effort_over(void) { return effort_of_thread && effort_over_of(effort_of_thread); }
/* Whether that is so although memory was there. */
static inline bool effort_limited(void) { return effort_over() && !effort_of_thread->lost; }
/* False: no more may be done. */
static inline bool effort_take(uint64_t steps)
{
	struct effort *e = effort_of_thread;

	if (!e)
		return true;
	if (e->left < steps) {
		e->left = 0;
		e->spent = true;
		return false;
	}
	e->left -= steps;
	return e->left <= e->ask_at ? effort_ask(e) : !effort_over();
}
/* Something else has a bound of its own that was reached. */
static inline void effort_refuse(void)
{
	if (effort_of_thread && !effort_of_thread->lost)
		effort_of_thread->spent = true;
}
/* As the functions of the same names, and what is refused is noted. */
static inline void *effort_noted(void *p)
{
	if (!p && effort_of_thread)
		effort_of_thread->lost = true;
	return p;
}
static inline void *effort_malloc(size_t bytes) { return effort_noted(malloc(bytes)); }
static inline void *effort_calloc(size_t n, size_t size) { return effort_noted(calloc(n, size)); }
static inline void *effort_realloc(void *p, size_t bytes) { return effort_noted(realloc(p, bytes)); }
static inline bool effort_array(void **array, size_t *capacity, size_t n, size_t size)
{
	return array_grow(array, capacity, n, size) || effort_noted(NULL);
}
/* Memory that is kept, from so many bytes to so many. */
static inline bool effort_grow(size_t from, size_t to)
{
	struct effort *e = effort_of_thread;

	if (!e || to <= from)
		return true;
	if (e->bytes < to - from) {
		e->spent = true;
		return false;
	}
	e->bytes -= to - from;
	return true;
}

#endif

#include "grammar/regex/reach.h"

#include "grammar/machine/effort.h"

enum { REACH_MAX = 24, REACH_STEPS = 8192 };

static bool reach_add(struct reach *r, uint32_t state)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->state[i] == state)
			return true;
	if (r->n == REACH_STATES)
		return false;
	r->state[r->n++] = state;
	return true;
}

/* The bytes of characters, one behind the other. */
static const struct sequence {
	unsigned n;
	uint8_t low[4], high[4];
} sequences[] = {
	{ 1, { 0x20 }, { 0x7e } },
	{ 2, { 0xc2, 0x80 }, { 0xdf, 0xbf } },
	{ 3, { 0xe0, 0xa0, 0x80 }, { 0xe0, 0xbf, 0xbf } },
	{ 3, { 0xe1, 0x80, 0x80 }, { 0xec, 0xbf, 0xbf } },
	{ 3, { 0xed, 0x80, 0x80 }, { 0xed, 0x9f, 0xbf } },
	{ 3, { 0xee, 0x80, 0x80 }, { 0xef, 0xbf, 0xbf } },
	{ 4, { 0xf0, 0x90, 0x80, 0x80 }, { 0xf0, 0xbf, 0xbf, 0xbf } },
	{ 4, { 0xf1, 0x80, 0x80, 0x80 }, { 0xf3, 0xbf, 0xbf, 0xbf } },
	{ 4, { 0xf4, 0x80, 0x80, 0x80 }, { 0xf4, 0x8f, 0xbf, 0xbf } },
};
enum { SEQUENCES = sizeof sequences / sizeof *sequences };

/* Where all characters lead that begin with the first `at` bytes; bytes that are not told apart are tried once. False:
 * one is dead, or there are too many. */
static bool reach_bytes(struct reach *r, uint32_t state, const struct sequence *q, unsigned at, enum easy class)
{
	int last = -1;

	for (unsigned byte = q->low[at]; byte <= q->high[at]; byte++) {
		if (r->class_of[byte] == last || (q->n == 1 && easy_of(byte) < class))
			continue;
		last = r->class_of[byte];
		uint32_t next = r->steps++ < REACH_STEPS && effort_take(3) ? r->step(r->user, state, (uint8_t)byte) : 0;
		if (!next || !(at + 1 == q->n ? reach_add(r, next) : reach_bytes(r, next, q, at + 1, class)))
			return false;
	}
	return true;
}

uint32_t reach_from(struct reach *r, uint32_t state, enum easy class)
{
	r->state[0] = state;
	r->n = 1;
	r->steps = 0;
	for (uint32_t length = 0, from = 0; length < REACH_MAX; length++) {
		unsigned to = r->n;
		for (unsigned i = from; i < to; i++)
			for (unsigned k = 0; k < (class == EASY_ANY ? SEQUENCES : 1); k++)
				if (!reach_bytes(r, r->state[i], &sequences[k], 0, class))
					return length;
		if (r->n == to)
			return UINT32_MAX;
		from = to;
	}
	return REACH_MAX;
}

#include "runtime/draft.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Runs are removed in the reverse of the order they came in. So taking the newest run out of an open-addressed table leaves the table as it was
 * before that run came, and no place needs a mark for what was deleted. */

bool draft_open(struct draft *d, const int32_t *ids, uint32_t capacity)
{
	uint64_t slots = 16;

	while (slots < 2 * (uint64_t)capacity)
		slots *= 2;
	memset(d, 0, sizeof *d);
	d->ids = ids;
	d->capacity = capacity;
	d->mask = (uint32_t)(slots - 1);
	for (int r = 0; r < DRAFT_RUNS; r++) {
		d->latest[r] = calloc(slots, sizeof **d->latest);
		d->earlier[r] = calloc((size_t)capacity + 1, sizeof **d->earlier);
		if (!d->latest[r] || !d->earlier[r])
			return false;
	}
	return true;
}

void draft_close(struct draft *d)
{
	for (int r = 0; r < DRAFT_RUNS; r++) {
		free(d->latest[r]);
		free(d->earlier[r]);
	}
	memset(d, 0, sizeof *d);
}

static bool same_run(const struct draft *d, uint32_t a, uint32_t b, uint32_t n)
{
	return memcmp(d->ids + a + 1 - n, d->ids + b + 1 - n, n * sizeof *d->ids) == 0;
}

/* The slot of the run of n tokens that ends at `end`: its own, or the free one where it belongs. */
static uint32_t *run_slot(const struct draft *d, uint32_t end, uint32_t n)
{
	uint32_t *table = d->latest[n - DRAFT_SHORTEST];
	uint64_t h = n;

	for (uint32_t i = end + 1 - n; i <= end; i++)
		h = (h ^ (uint32_t)d->ids[i]) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
	uint32_t at = (uint32_t)(h >> 16) & d->mask;
	while (table[at] && !same_run(d, table[at] - 1, end, n))
		at = (at + 1) & d->mask;
	return &table[at];
}

void draft_extend(struct draft *d, uint32_t n)
{
	assert(n <= d->capacity);
	for (; d->indexed < n; d->indexed++)
		for (uint32_t run = DRAFT_SHORTEST; run <= DRAFT_LONGEST && run <= d->indexed + 1; run++) {
			uint32_t *slot = run_slot(d, d->indexed, run);
			d->earlier[run - DRAFT_SHORTEST][d->indexed] = *slot;
			*slot = d->indexed + 1;
		}
}

void draft_rewind(struct draft *d, uint32_t n)
{
	while (d->indexed > n) {
		uint32_t end = --d->indexed;
		for (uint32_t run = DRAFT_SHORTEST; run <= DRAFT_LONGEST && run <= end + 1; run++)
			*run_slot(d, end, run) = d->earlier[run - DRAFT_SHORTEST][end];
	}
}

static uint32_t agreement(const struct draft *d, uint32_t a, uint32_t b)
{
	uint32_t n = 0, most = a + 1 < DRAFT_REACH ? a + 1 : DRAFT_REACH;

	while (n < most && d->ids[a - n] == d->ids[b - n])
		n++;
	return n;
}

struct draft_match draft_find(const struct draft *d)
{
	struct draft_match best = { 0 };

	for (uint32_t run = DRAFT_LONGEST; run >= DRAFT_SHORTEST && d->indexed && !best.length; run--) {
		const uint32_t *earlier = d->earlier[run - DRAFT_SHORTEST];
		uint32_t end = d->indexed - 1, at = earlier[end];
		/* a place that is not among those of the longer run agrees in this run only: the latest will do */
		for (int i = 0; at && i < (run == DRAFT_LONGEST ? DRAFT_PLACES : 1) && best.length < DRAFT_REACH; i++, at = earlier[at - 1]) {
			uint32_t n = agreement(d, at - 1, end);
			if (n > best.length)
				best = (struct draft_match){ n, at };
		}
	}
	return best;
}

struct draft_match draft_resume(const struct draft *d, uint32_t expected)
{
	struct draft_match best = { 0, expected };
	uint32_t end = d->indexed - 1;

	assert(expected < d->indexed);
	for (uint32_t away = 0; away <= DRAFT_NEAR; away++)
		for (int side = 0; side < (away ? 2 : 1); side++) {
			uint32_t next = side ? expected - away : expected + away;      /* below 0: beyond the end */
			uint32_t n = next && next <= end ? agreement(d, next - 1, end) : 0;
			if (n > best.length)
				best = (struct draft_match){ n, next };
		}
	return best;
}

void draft_copy(const struct draft *d, struct draft_match m, int32_t *out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = m.next + i < d->indexed ? d->ids[m.next + i] : out[m.next + i - d->indexed];
}

#include "runtime/speculate/draft.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Runs are removed in the reverse of the order they came in. So taking the newest run out of an open-addressed table
 * leaves the table as it was before that run came, and no slot needs a tombstone. */

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

static bool same_tokens(const struct draft *d, uint32_t a, uint32_t b, uint32_t n)
{
	return memcmp(d->ids + a, d->ids + b, n * sizeof *d->ids) == 0;
}

/* The slot of the run of n tokens that ends at `end`: its own, or the free one where it belongs. */
static uint32_t *run_slot(const struct draft *d, uint32_t end, uint32_t n)
{
	uint32_t *table = d->latest[n - DRAFT_SHORTEST];
	uint64_t h = n;

	for (uint32_t i = end + 1 - n; i <= end; i++)
		h = (h ^ (uint32_t)d->ids[i]) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
	uint32_t at = (uint32_t)(h >> 16) & d->mask;
	while (table[at] && !same_tokens(d, table[at] - n, end + 1 - n, n))
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

static void forget_change(struct draft *d, uint32_t i)
{
	d->changes--;
	memmove(d->change + i, d->change + i + 1, (d->changes - i) * sizeof *d->change);
}

void draft_rewind(struct draft *d, uint32_t n)
{
	while (d->indexed > n) {
		uint32_t end = --d->indexed;
		for (uint32_t run = DRAFT_SHORTEST; run <= DRAFT_LONGEST && run <= end + 1; run++)
			*run_slot(d, end, run) = d->earlier[run - DRAFT_SHORTEST][end];
	}
	for (uint32_t i = d->changes; i-- > 0;)
		if (d->change[i].is + d->change[i].is_n > n)
			forget_change(d, i);
}

/* Of what ends before a and before b: how many tokens are the same. */
static uint32_t agreement(const struct draft *d, uint32_t a, uint32_t b)
{
	uint32_t n = 0, min = a < b ? a : b, max = min < DRAFT_REACH ? min : DRAFT_REACH;

	while (n < max && d->ids[a - 1 - n] == d->ids[b - 1 - n])
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
		for (int i = 0; at && i < (run == DRAFT_LONGEST ? DRAFT_POSITIONS : 1) && best.length < DRAFT_REACH;
		     i++, at = earlier[at - 1]) {
			uint32_t n = agreement(d, at, end + 1);
			if (n > best.length)
				best = (struct draft_match){ .length = n, .next = at };
		}
	}
	return best;
}

struct draft_match draft_resume(const struct draft *d, uint32_t expected)
{
	struct draft_match best = { .next = expected };
	uint32_t end = d->indexed - 1;

	assert(expected < d->indexed);
	for (uint32_t away = 0; away <= DRAFT_NEAR; away++)
		for (int side = 0; side < (away ? 2 : 1); side++) {
			uint32_t next = side ? expected - away : expected + away; /* below 0: beyond the end */
			uint32_t n = next && next <= end ? agreement(d, next, end + 1) : 0;
			if (n > best.length)
				best = (struct draft_match){ .length = n, .next = next };
		}
	return best;
}

/* ---- copies */

/* One that has made so many tokens: the next is ids[next], or token `within` of the change. */
struct copier {
	const struct draft *d;
	const int32_t *out;
	uint32_t skip, made, next, within;
	const struct draft_change *change;
};

static const struct draft_change *change_at(const struct draft *d, uint32_t at)
{
	for (const struct draft_change *c = d->change; c < d->change + d->changes; c++)
		if (at + c->was_n <= d->indexed && same_tokens(d, c->was, at, c->was_n) &&
		    agreement(d, c->was, at) >= c->before)
			return c;
	return NULL;
}

static struct copier copy_begin(const struct draft *d, struct draft_match m, const int32_t *out)
{
	return (struct copier){ d, out, m.made, 0, m.next, 0, change_at(d, m.next) };
}

/* Behind the text lie the drafts. A copy that left much out may catch up with them: then it stays where it is. */
static int32_t copied_token(const struct copier *c)
{
	uint32_t at = c->change ? c->change->is + c->within : c->next,
		 drafts = c->made > c->skip ? c->made - c->skip : 0;

	if (at >= c->d->indexed + drafts)
		at = c->d->indexed + drafts - 1;
	return at < c->d->indexed ? c->d->ids[at] : c->out[at - c->d->indexed];
}

static void copy_step(struct copier *c)
{
	c->made++;
	if (c->change && ++c->within < c->change->is_n)
		return;
	c->next += c->change ? c->change->was_n : 1;
	c->within = 0;
	c->change = change_at(c->d, c->next);
}

void draft_copy(const struct draft *d, struct draft_match m, int32_t *out, uint32_t n)
{
	for (struct copier c = copy_begin(d, m, out); c.made < m.made + n; copy_step(&c))
		if (c.made >= m.made)
			out[c.made - m.made] = copied_token(&c);
}

struct draft_standing draft_standing(const struct draft *d, struct draft_match m, uint32_t n)
{
	struct copier c = copy_begin(d, m, NULL);

	while (c.made < n)
		copy_step(&c);
	return (struct draft_standing){ c.made - c.within, c.next, c.change };
}

bool draft_follows(const struct draft *d, uint32_t next, uint32_t to)
{
	struct copier c = copy_begin(d, (struct draft_match){ .next = next, .made = d->indexed - to }, NULL);

	while (to + c.made < d->indexed && copied_token(&c) == d->ids[to + c.made])
		copy_step(&c);
	return to + c.made == d->indexed;
}

/* A change begins where the two differ. What was only put in or left out counts with the token before it, and one more
 * must agree: a token alone is found everywhere. Seen again elsewhere, a change needs no more before it than both
 * places have. */
void draft_note_change(struct draft *d, uint32_t was, uint32_t was_n, uint32_t is, uint32_t is_n)
{
	uint32_t before = 0;

	while (was_n && is_n && d->ids[was] == d->ids[is])
		was++, is++, was_n--, is_n--;
	if (was && is && (!was_n || !is_n) && d->ids[was - 1] == d->ids[is - 1])
		was--, is--, was_n++, is_n++, before = 1;
	if (!was_n || !is_n || was_n > DRAFT_CHANGE_MAX || is_n > DRAFT_CHANGE_MAX)
		return;
	for (struct draft_change *c = d->change; c < d->change + d->changes; c++)
		if (c->was_n == was_n && c->is_n == is_n && same_tokens(d, c->was, was, was_n) &&
		    same_tokens(d, c->is, is, is_n)) {
			uint32_t same = agreement(d, c->was, was);
			if (c->before > same)
				c->before = same;
			return;
		}
	if (d->changes == DRAFT_CHANGES)
		d->changes--;
	memmove(d->change + 1, d->change, d->changes++ * sizeof *d->change);
	d->change[0] = (struct draft_change){ was, was_n, is, is_n, before };
}

void draft_doubt_change(struct draft *d, const struct draft_change *change, uint32_t at)
{
	uint32_t i = (uint32_t)(change - d->change), same = agreement(d, change->was, at);

	if (same == DRAFT_REACH || same == change->was)
		forget_change(d, i);
	else
		d->change[i].before = same + 1;
}

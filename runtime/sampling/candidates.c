#include "runtime/sampling/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"
#include "runtime/sampling/greatest.h"

/* A candidate while it is sorted: its key, in bits that order as integers do, and its place in the list. */
struct candidate_word {
	uint32_t key;
	int32_t at;
};

bool candidates_open(struct candidates *c, int32_t room)
{
	size_t n = room > 0 ? (size_t)room : 1;

	*c = (struct candidates){ .room = room, .changed = room };
	c->id = malloc(n * sizeof *c->id);
	c->logit = malloc(n * sizeof *c->logit);
	c->p = malloc(n * sizeof *c->p);
	c->key = malloc(n * sizeof *c->key);
	c->word = malloc(n * sizeof *c->word);
	c->other = malloc(n * sizeof *c->other);
	return c->id && c->logit && c->p && c->key && c->word && c->other;
}

void candidates_close(struct candidates *c)
{
	free(c->id);
	free(c->logit);
	free(c->p);
	free(c->key);
	free(c->word);
	free(c->other);
}

static void restore_ids(struct candidates *c)
{
	for (int32_t i = 0; i < c->changed; i++)
		c->id[i] = i;
	c->changed = 0;
}

void candidates_load(struct candidates *c, const float *logits, int32_t n)
{
	restore_ids(c);
	memcpy(c->logit, logits, (size_t)n * sizeof *logits);
	c->n = n;
	c->has_p = c->sorted = false;
}

bool candidates_all(const struct candidates *c) { return c->changed == 0; }

int32_t candidates_first_max(const struct candidates *c) { return greatest_first(c->logit, c->n); }

float candidates_max(const struct candidates *c) { return c->n ? c->logit[candidates_first_max(c)] : -INFINITY; }

/* ---- sorting */

static uint32_t ordered_bits(float key)
{
	uint32_t u;

	key += 0.0f; /* -0 is 0 */
	memcpy(&u, &key, 4);
	return u ^ (u >> 31 ? 0xffffffffu : 0x80000000u);
}

static bool before(const struct candidates *c, struct candidate_word a, struct candidate_word b)
{
	return a.key != b.key ? a.key < b.key : c->id[a.at] < c->id[b.at];
}

static void insertion_sort(const struct candidates *c, struct candidate_word *w, int32_t n)
{
	for (int32_t i = 1; i < n; i++) {
		struct candidate_word x = w[i];
		int32_t j = i;
		for (; j > 0 && before(c, x, w[j - 1]); j--)
			w[j] = w[j - 1];
		w[j] = x;
	}
}

enum { DIGIT = 11, DIGITS = 1 << DIGIT, KEY_BITS = 32, ID_BITS = 31 };

/* One pass of a stable sort by a digit of the key, or of the id: from a to b. False: all have the same, and stay in
 * a. */
static bool radix_pass(const struct candidates *c, const struct candidate_word *a, struct candidate_word *b,
                       unsigned shift, bool by_id)
{
	uint32_t start[DIGITS] = { 0 };

	for (int32_t i = 0; i < c->n; i++)
		start[((by_id ? (uint32_t)c->id[a[i].at] : a[i].key) >> shift) % DIGITS]++;
	uint32_t sum = 0;
	for (int d = 0; d < DIGITS; d++) {
		uint32_t count = start[d];
		if (count == (uint32_t)c->n)
			return false;
		start[d] = sum;
		sum += count;
	}
	for (int32_t i = 0; i < c->n; i++)
		b[start[((by_id ? (uint32_t)c->id[a[i].at] : a[i].key) >> shift) % DIGITS]++] = a[i];
	return true;
}

static void radix_passes(struct candidates *c, unsigned bits, bool by_id)
{
	for (unsigned shift = 0; shift < bits; shift += DIGIT)
		if (radix_pass(c, c->word, c->other, shift, by_id)) {
			struct candidate_word *w = c->word;
			c->word = c->other;
			c->other = w;
		}
}

static bool ids_ascend(const struct candidates *c)
{
	for (int32_t i = 1; i < c->n; i++)
		if (c->id[i] < c->id[i - 1])
			return false;
	return true;
}

/* The list becomes the first k of the words, whose logits these are. */
static void gather(struct candidates *c, const float *logits, int32_t k)
{
	int32_t *ids = (int32_t *)(void *)c->other;
	float *floats = (float *)(void *)c->other;

	for (int32_t i = 0; i < k; i++)
		ids[i] = c->id[c->word[i].at];
	memcpy(c->id, ids, (size_t)k * sizeof *ids);
	for (int32_t i = 0; i < k; i++)
		floats[i] = logits[c->word[i].at];
	memcpy(c->logit, floats, (size_t)k * sizeof *floats);
	for (int32_t i = 0; c->has_p && i < k; i++)
		floats[i] = c->p[c->word[i].at];
	if (c->has_p)
		memcpy(c->p, floats, (size_t)k * sizeof *floats);
	c->n = k;
	c->changed = k > c->changed ? k : c->changed;
}

/* By key, then id. */
static void sort_by_key(struct candidates *c)
{
	enum { SHORT = 48 };

	for (int32_t i = 0; i < c->n; i++)
		c->word[i] = (struct candidate_word){ ordered_bits(c->key[i]), i };
	if (c->n <= SHORT) {
		insertion_sort(c, c->word, c->n);
	} else {
		if (!ids_ascend(c))
			radix_passes(c, ID_BITS, true);
		radix_passes(c, KEY_BITS, false);
	}
	gather(c, c->logit, c->n);
}

void candidates_key_logits(struct candidates *c)
{
	for (int32_t i = 0; i < c->n; i++)
		c->key[i] = -c->logit[i];
}

void candidates_sort(struct candidates *c)
{
	if (c->sorted)
		return;
	candidates_key_logits(c);
	sort_by_key(c);
	c->sorted = true;
}

/* ---- the first k of many: a heap whose top is the last of them */

static void sift(const struct candidates *c, int32_t at, int32_t n)
{
	struct candidate_word *h = c->word, x = h[at];

	for (;;) {
		int32_t kid = 2 * at + 1;
		if (kid >= n)
			break;
		if (kid + 1 < n && before(c, h[kid], h[kid + 1]))
			kid++;
		if (!before(c, x, h[kid]))
			break;
		h[at] = h[kid];
		at = kid;
	}
	h[at] = x;
}

static struct candidate_word word_of(const float *logits, int32_t at)
{
	return (struct candidate_word){ ordered_bits(-logits[at]), at };
}

enum { BLOCK = 32 };

/* Whether a block has one that is not less. */
static bool block_reaches(const float *x, float min)
{
	int any = 0;

	for (int j = 0; j < BLOCK; j++)
		any |= x[j] >= min;
	return any;
}

/* The first k, as a heap. Most blocks have nothing that belongs to them, and are passed over. */
static void select_first(struct candidates *c, const float *logits, int32_t k)
{
	for (int32_t i = 0; i < k; i++)
		c->word[i] = word_of(logits, i);
	for (int32_t i = k / 2; i-- > 0;)
		sift(c, i, k);
	for (int32_t i = k; i < c->n;) {
		if (c->n - i >= BLOCK && !block_reaches(logits + i, logits[c->word[0].at])) {
			i += BLOCK;
			continue;
		}
		for (int32_t end = c->n - i < BLOCK ? c->n : i + BLOCK; i < end; i++) {
			struct candidate_word w = word_of(logits, i);
			if (before(c, w, c->word[0])) {
				c->word[0] = w;
				sift(c, 0, k);
			}
		}
	}
}

static void take_first(struct candidates *c, const float *logits, int32_t k)
{
	select_first(c, logits, k);
	for (int32_t left = k - 1; left > 0; left--) {
		struct candidate_word last = c->word[0];
		c->word[0] = c->word[left];
		c->word[left] = last;
		sift(c, 0, left);
	}
	gather(c, logits, k);
	c->sorted = true;
}

/* So many of a list; more are sooner sorted with all of it. */
static bool is_small_part(int32_t k, int32_t n) { return k <= n / 16; }

void candidates_keep_first(struct candidates *c, int32_t k)
{
	if (!c->sorted && is_small_part(k, c->n)) {
		take_first(c, c->logit, k);
		return;
	}
	candidates_sort(c);
	c->n = k < c->n ? k : c->n;
}

void candidates_load_first(struct candidates *c, const float *logits, int32_t n, int32_t k)
{
	if (!is_small_part(k, n)) {
		candidates_load(c, logits, n);
		candidates_keep_first(c, k);
		return;
	}
	restore_ids(c);
	c->n = n;
	c->has_p = false;
	take_first(c, logits, k);
}

/* ---- dropping some */

/* Entry `from` moves to the place `to`. */
static void move(struct candidates *c, int32_t to, int32_t from)
{
	c->id[to] = c->id[from];
	c->logit[to] = c->logit[from];
	if (c->has_p)
		c->p[to] = c->p[from];
}

static void keep_count(struct candidates *c, int32_t kept)
{
	if (kept < c->n && kept > c->changed)
		c->changed = kept;
	c->n = kept;
}

void candidates_keep_from(struct candidates *c, float min)
{
	int32_t kept = 0;

	for (int32_t i = 0; i < c->n;) {
		int32_t end = c->n - i < BLOCK ? c->n : i + BLOCK;
		if (end - i == BLOCK && !block_reaches(c->logit + i, min))
			i = end;
		for (; i < end; i++)
			if (c->logit[i] >= min)
				move(c, kept++, i);
	}
	keep_count(c, kept);
}

void candidates_drop_head(struct candidates *c, int32_t n)
{
	for (int32_t i = n; i < c->n; i++)
		move(c, i - n, i);
	keep_count(c, c->n - n);
}

/* ---- heads of a mass */

enum { BUCKETS = 1024, NARROWED = 1024 /* lists longer than that */ };

static int32_t bucket_of(float key, float min)
{
	float b = (key - min) * 16;

	return b < BUCKETS - 1 ? (int32_t)b : BUCKETS - 1; /* inf and NaN are far away */
}

/* Drops what cannot belong to the head: buckets of keys, taken in order until they have its mass, and some more than
 * rounding could matter. */
static void narrow(struct candidates *c, float mass, int32_t min)
{
	double sum[BUCKETS] = { 0 }, all = 0;
	int32_t count[BUCKETS] = { 0 }, b = 0, n = 0, kept = 0;
	float first = INFINITY;

	for (int32_t i = 0; i < c->n; i++)
		first = c->key[i] < first ? c->key[i] : first;
	for (int32_t i = 0; i < c->n; i++) {
		int32_t at = bucket_of(c->key[i], first);
		sum[at] += (double)c->p[i];
		count[at]++;
	}
	for (; b < BUCKETS; b++) {
		all += sum[b];
		n += count[b];
		if (all > (double)mass + 1e-4 && n >= min)
			break;
	}
	for (int32_t i = 0; i < c->n; i++)
		if (bucket_of(c->key[i], first) <= b) {
			move(c, kept, i);
			c->key[kept++] = c->key[i];
		}
	keep_count(c, kept);
}

void candidates_keep_mass(struct candidates *c, float mass, bool above, int32_t min)
{
	double sum = 0;
	int32_t n = 0;

	if (c->n > NARROWED)
		narrow(c, mass, min);
	sort_by_key(c);
	while (n < c->n) {
		sum += (double)c->p[n++];
		if (n >= min && (above ? sum > (double)mass : sum >= (double)mass))
			break;
	}
	c->n = n;
}

/* ---- probabilities */

double candidates_exp(struct candidates *c)
{
	double sum = 0;

	math_host_exp_below(c->p, c->logit, (size_t)c->n, candidates_max(c));
	for (int32_t i = 0; i < c->n; i++)
		sum += (double)c->p[i];
	c->has_p = true;
	return sum;
}

double candidates_softmax(struct candidates *c)
{
	double sum = candidates_exp(c);

	for (int32_t i = 0; i < c->n; i++)
		c->p[i] = (float)((double)c->p[i] / sum);
	return c->n ? math_host_log(sum) : 0;
}

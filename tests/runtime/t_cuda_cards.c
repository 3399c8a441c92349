/* tests/runtime/t_cuda_cards.c - the memory of several simulated cards that compute together.
 *
 * Over random lists of shares: each card has the weights of its units, at its own addresses, and what is in no share;
 * what was copied there in any cuts is read back; a card needs little more than its share; and all memory is given
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/cuda_simulated.h"
#include "runtime/plan/weights.h"

enum { SHARES = 6, ROUNDS = 60, GAP = 9000, MAX = 8 << 20 };

static uint64_t state = 5;

static uint64_t draw(uint64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % n;
}

/* Shares with gaps between them; returns where the last gap ends. */
static size_t draw_shares(struct cut_share share[SHARES])
{
	uint64_t at = 0;

	for (unsigned i = 0; i < SHARES; i++) {
		at += draw(2) ? draw(GAP) : 0;
		share[i] = (struct cut_share){ .at = at, .bytes = 1 + draw(3000), .units = 1 + draw(i % 2 ? 600 : 7) };
		at += share[i].bytes * share[i].units;
	}
	return (size_t)(at + 4096 + draw(GAP));
}

static void copy_in_parts(struct device *d, uint8_t *to, uint8_t *bytes, size_t n, bool back)
{
	struct error err = { 0 };

	for (size_t at = 0, part; at < n; at += part) {
		part = 1 + draw(draw(2) ? 40000 : 300);
		part = part < n - at ? part : n - at;
		if (back ? !d->read(d, bytes + at, to + at, part, &err)
		         : !d->upload(d, to + at, bytes + at, part, &err))
			fail_msg("%s", err.text);
	}
}

/* What kernels may read behind what they need is there. */
static void check_behind(const uint8_t *here, const uint8_t *bytes, size_t n, uint64_t at)
{
	assert_memory_equal(here + at, bytes + at, n - at < WEIGHTS_SLACK ? n - at : WEIGHTS_SLACK);
}

/* Cards' memory is the process's. */
static void check_card(const struct cuda *c, unsigned card, const uint8_t *arena, const uint8_t *bytes, size_t n,
                       const struct cut_share share[SHARES])
{
	const uint8_t *here = (const uint8_t *)(uintptr_t)cuda_on_card(c, card, (uint64_t)(uintptr_t)arena);
	uint64_t end = 0;

	assert_true(!card || here != arena);
	for (unsigned i = 0; i < SHARES; i++) {
		const struct cut_share *s = &share[i];
		const uint64_t first = cut_begin(s->units, card, c->cards),
			       behind = cut_begin(s->units, card + 1, c->cards);
		assert_true(first <= behind && behind <= s->units);
		assert_memory_equal(here + end, bytes + end, s->at - end);
		assert_memory_equal(here + s->at + first * s->bytes, bytes + s->at + first * s->bytes,
		                    (behind - first) * s->bytes);
		check_behind(here, bytes, n, s->at);
		check_behind(here, bytes, n, s->at + behind * s->bytes);
		end = s->at + s->units * s->bytes;
	}
	assert_memory_equal(here + end, bytes + end, n - end);
}

static void check_round(struct device *d)
{
	struct cuda *c = (struct cuda *)d;
	struct cut_share share[SHARES];
	const size_t n = draw_shares(share), before = cuda_simulation.used;
	uint8_t *bytes = malloc(n), *back = malloc(n);
	struct error err = { 0 };
	uint64_t shared = 0;

	assert_true(bytes && back && n < MAX);
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)draw(256);
	for (unsigned i = 0; i < SHARES; i++)
		shared += share[i].bytes * share[i].units;
	uint8_t *arena = d->alloc_shares(d, n, share, SHARES, &err);
	assert_non_null(arena);
	copy_in_parts(d, arena, bytes, n, false);
	copy_in_parts(d, arena, back, n, true);
	assert_memory_equal(back, bytes, n);
	assert_int_equal(cuda_settle(c), 0);
	for (unsigned card = 0; card < c->cards; card++)
		check_card(c, card, arena, bytes, n, share);

	const uint64_t needs = d->share_bytes(d, n, share, SHARES),
		       slack = SHARES * (3 * (uint64_t)c->granule + 4096 + 8 * 3000);
	assert_true(needs >= n - shared + shared / c->cards);
	assert_true(needs <= n - shared + shared / c->cards + slack);
	assert_true(cuda_simulation.used - before <= needs * c->cards);
	d->release(d, arena, n);
	assert_int_equal(cuda_simulation.used, before);
	free(bytes);
	free(back);
}

static void test_shares(void **unused)
{
	static const char *const names[] = { "sim:sm90x2", "sim:sm90x4", "sim:sm90x8" };

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		struct error err = { 0 };
		struct device *d = device_open(names[i], NULL, &err);
		assert_non_null(d);
		for (unsigned round = 0; round < ROUNDS; round++)
			check_round(d);
		device_close(d);
	}
}

/* Places that are given back are given again, and none overlap. */
static void test_setups(void **unused)
{
	enum { SETUPS = 12, STEPS = 300 };
	struct {
		uint8_t *p;
		size_t bytes;
	} have[SETUPS] = { { NULL, 0 } };
	struct error err = { 0 };
	struct device *d = device_open("sim:sm90x2", NULL, &err);
	uint8_t *highest = NULL, *lowest = NULL;

	assert_non_null(d);
	for (unsigned step = 0; step < STEPS; step++) {
		const unsigned i = (unsigned)draw(SETUPS);
		if (have[i].p) {
			d->release(d, have[i].p, have[i].bytes);
			have[i].p = NULL;
			continue;
		}
		have[i].bytes = 1 + draw(200000);
		have[i].p = d->alloc(d, have[i].bytes, DEVICE_BUFFERS, &err);
		assert_non_null(have[i].p);
		for (unsigned k = 0; k < SETUPS; k++)
			assert_true(k == i || !have[k].p || have[k].p + have[k].bytes <= have[i].p ||
			            have[i].p + have[i].bytes <= have[k].p);
		highest = have[i].p > highest ? have[i].p : highest;
		lowest = !lowest || have[i].p < lowest ? have[i].p : lowest;
	}
	assert_true(highest - lowest < SETUPS * 210000);
	for (unsigned i = 0; i < SETUPS; i++)
		d->release(d, have[i].p, have[i].bytes);
	device_close(d);
}

/* All cards' units are an op's, one behind the other. */
static void test_units(void **unused)
{
	for (unsigned cards = 1; cards <= CUDA_CARDS_MAX; cards *= 2)
		for (uint64_t units = 0; units < 3000; units++) {
			uint64_t max = 0, min = units;
			assert_int_equal(cut_begin(units, 0, cards), 0);
			assert_int_equal(cut_begin(units, cards, cards), units);
			for (unsigned card = 0; card < cards; card++) {
				const uint64_t from = cut_begin(units, card, cards),
					       end = cut_begin(units, card + 1, cards);
				assert_true(from <= end);
				max = end - from > max ? end - from : max;
				min = end - from < min ? end - from : min;
			}
			assert_true(max - min <= 16);
			assert_true(units >= 64 * cards || max - min <= 1);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_shares), cmocka_unit_test(test_setups),
		                            cmocka_unit_test(test_units) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/runtime/t_cuda_partition.c - how the units of a stage are distributed to the blocks of a launch.
 *
 * Properties over random walks of stages: every unit has one share, blocks lie in the launch, what can be on blocks of
 * its own or on free ones is, and no block has many more units than others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "runtime/device/cuda/cuda_partition.h"

enum { BLOCKS_MAX = 200, LOTS_MAX = 6, WALKS = 2000, STAGES = 40 };

static uint64_t state = 7;

static uint32_t draw(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

static uint64_t share_of(const struct cuda_lot *l, uint64_t share) { return l->per + (share < l->rest); }

/* Adds the lot's blocks to those that work; returns the most units that a wave with shares of its own has, or a block.
 */
static uint64_t check_lot(const struct cuda_lot *l, uint32_t blocks, unsigned working[])
{
	uint64_t units = 0, max = 0;

	assert_true(l->blocks >= 1 && l->blocks <= blocks && l->first < blocks);
	for (uint32_t i = 0; i < l->blocks; i++) {
		uint64_t mine = 0;
		for (uint32_t w = 0; w < l->waves; w++) {
			uint64_t of_wave = share_of(l, (uint64_t)w * l->blocks + i);
			max = of_wave > max ? of_wave : max;
			mine += of_wave;
		}
		assert_true(mine > 0);
		units += mine;
		working[(l->first + i) % blocks]++;
	}
	assert_int_equal(units, l->units);
	return max;
}

/* Units, or as many as a block does at once where there are more units than blocks. */
static uint64_t portions(const struct cuda_lot *l, bool spread)
{
	return spread ? l->units : l->units / l->waves + (l->units % l->waves != 0);
}

/* What the block with most turns must have, when no block has those of two lots. */
static uint64_t fewest_rounds(const struct cuda_lot lot[], uint32_t n, bool spread, uint32_t blocks)
{
	for (uint64_t max = 1;; max++) {
		uint64_t used = 0;
		for (uint32_t i = 0; i < n; i++)
			used += (portions(&lot[i], spread) + max - 1) / max;
		if (used <= blocks)
			return max;
	}
}

static void walk(uint32_t blocks)
{
	struct cuda_ring d = { .blocks = blocks };
	unsigned before[BLOCKS_MAX] = { 0 }, now[BLOCKS_MAX];

	for (unsigned stage = 0; stage < STAGES; stage++) {
		struct cuda_lot lot[LOTS_MAX] = { { 0 } };
		uint32_t n = 1 + draw(LOTS_MAX), unused = 0;
		uint64_t units = 0, all = 0, max = 0;
		memset(now, 0, sizeof now);
		for (uint32_t i = 0; i < blocks; i++)
			unused += !before[i];
		for (uint32_t i = 0; i < n; i++) {
			lot[i] = (struct cuda_lot){ .units = 1 + draw(draw(4) ? 2 * blocks : 20 * blocks),
				                    .waves = draw(4) ? 1 : 8 };
			units += lot[i].units;
		}
		const bool spread = units <= blocks;
		for (uint32_t i = 0; i < n; i++)
			all += portions(&lot[i], spread);
		lot[0].last_are_long = n == 1 && draw(3) == 0;
		cuda_partition(&d, lot, n);
		for (uint32_t i = 0; i < n; i++) {
			uint64_t of_lot = check_lot(&lot[i], blocks, now);
			max = of_lot > max ? of_lot : max;
		}
		const bool free_alone = !lot[0].last_are_long && all <= 2 * (uint64_t)unused;
		const uint32_t there = free_alone ? unused : blocks;
		for (uint32_t i = 0; i < blocks; i++) {
			assert_true(now[i] <= 1 || n > blocks || all > there);
			assert_true(now[i] <= 1 || n > there);
			assert_true(!free_alone || !now[i] || !before[i] || n > unused);
		}
		if (n <= there)
			assert_true(max <= fewest_rounds(lot, n, spread, there));
		if (lot[0].last_are_long)
			for (uint32_t i = 0; i < lot[0].blocks && i < unused; i++)
				assert_false(before[(lot[0].first + lot[0].blocks - 1 - i) % blocks] &&
				             lot[0].blocks > unused);
		memcpy(before, now, sizeof now);
	}
}

static void test_walks(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < WALKS; i++)
		walk(1 + draw(BLOCKS_MAX));
}

/* The stages of a layer of Qwen3-0.6B on 132 blocks: its second is where the first is not. */
static void test_layer(void **unused)
{
	struct cuda_ring d = { .blocks = 132 };
	struct cuda_lot down = { .units = 32, .waves = 1 },
			qkv[3] = { { .units = 64, .waves = 1 },
		                   { .units = 32, .waves = 1 },
		                   { .units = 32, .waves = 1 } },
			attention = { .units = 128, .waves = 1, .last_are_long = true };
	(void)unused;

	cuda_partition(&d, &down, 1);
	cuda_partition(&d, qkv, 3);
	assert_int_equal(qkv[0].first, 32);
	assert_int_equal(qkv[0].blocks, 50);
	assert_int_equal(qkv[1].blocks, 25);
	assert_int_equal(qkv[2].blocks, 25);
	cuda_partition(&d, &attention, 1);
	assert_int_equal((attention.first + attention.blocks) % 132, 32); /* behind the 32 that are free */
	assert_int_equal(attention.blocks, 128);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_walks), cmocka_unit_test(test_layer) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/kernels/t_experts.c - matmuls whose weights are chosen by data, against the plain loop of each column with its
 * own matrix: slots of tokens, and groups of columns, on every target. Bytes must be equal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/matmul/recipe.h"
#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain.h"
#include "tests/kernels/plain_quants.h"
#include "tests/kernels/matmul_check.h"
#include "tests/support/shared.h"
#include "tests/support/widths.h"

enum { EXPERTS = 5, SLOTS = 3, TOKENS = 7, COLUMNS = SLOTS * TOKENS, MATRICES = 2 };

/* All matrices, packed for both layouts; inputs and results by column. */
struct choice {
	struct key key;
	uint8_t *rows[EXPERTS][MATRICES], *packed[2];
	float *bias[MATRICES], *added[MATRICES], *x, *old, *want, *got;
	int8_t *q, *want_q, *got_q;
	struct activation_block *s, *want_s, *got_s;
	int32_t expert[COLUMNS], routes[TOKENS][ROUTE_MAX];
	struct route_group *group;
	unsigned groups;
	uint64_t out_n;
};

static unsigned matrices(const struct key *key) { return key->flags & KEY_PAIR ? 2 : 1; }

static void pack(struct choice *c, enum weight_layout layout)
{
	const struct key *key = &c->key;
	uint64_t block = weight_block_bytes(key_dtype(key->weight), layout, key->k),
		 each = numerics_pad(key->rows) / 32 * block * matrices(key);

	c->packed[layout] = kernel_buffer(EXPERTS * each + 512, 0);
	for (unsigned e = 0; e < EXPERTS; e++)
		for (unsigned m = 0; m < matrices(key); m++)
			pack_rows(key, layout, c->rows[e][m], c->packed[layout] + e * each, m, matrices(key));
}

/* Slots of a token have different matrices; one of them nobody chooses. */
static void choose(struct choice *c)
{
	for (unsigned t = 0; t < TOKENS; t++)
		for (unsigned i = 0, first = draw_number(EXPERTS - 1); i < SLOTS; i++)
			c->expert[t * SLOTS + i] = c->routes[t][i] = (int32_t)((first + i) % (EXPERTS - 1));
}

/* Groups of every size, with an empty one before the last; some share a matrix. */
static void group(struct choice *c)
{
	static const int32_t sizes[] = { 1, 7, 0, 2, 11, 0 };
	int32_t first = 0;

	c->groups = sizeof sizes / sizeof *sizes;
	c->group = kernel_buffer(c->groups * sizeof *c->group, 0);
	for (unsigned g = 0; g < c->groups; g++) {
		c->group[g] = (struct route_group){ (int32_t)(g * 3 % EXPERTS), first, sizes[g], 0 };
		for (int32_t i = 0; i < sizes[g]; i++)
			c->expert[first + i] = c->group[g].expert;
		first += sizes[g];
	}
	assert_int_equal(first, COLUMNS);
}

/* Which column of the inputs a column of the results is made of. */
static unsigned input_of(const struct choice *c, unsigned column)
{
	return c->key.tile_n == 1 ? column / c->key.kv_heads : column;
}

static void expect(struct choice *c)
{
	const struct key *key = &c->key;
	uint64_t rp = numerics_pad(key->rows), kp = numerics_pad(key->k), ap = rp * (key->flags & KEY_SCALED ? 2 : 1);

	memcpy(c->want, c->old, c->out_n * 4);
	for (unsigned i = 0; i < COLUMNS; i++) {
		uint8_t **rows = c->rows[c->expert[i]];
		uint64_t bias = (uint64_t)c->expert[i] * rp, in = input_of(c, i);
		struct plain_matmul m = {
			.w = { key_dtype(key->weight), key->rows, key->k, rows[0] },
			.w2 = { key_dtype(key->weight), key->rows, key->k, rows[1] },
			.flags = key->flags,
			.act = (enum key_act)key->act,
			.columns = 1,
			.q = c->q + in * kp,
			.s = c->s + in * (kp / 32),
			.bias = c->bias[0] + bias,
			.bias2 = c->bias[1] + bias,
			.added = { c->added[0] + i * ap, c->added[1] + i * ap },
			.out = c->want + i * rp,
			.outq = c->want_q + i * rp,
			.outs = c->want_s + i * (rp / 32)
		};
		if (key->activation == key_type(DTYPE_F32))
			m.x = c->x + in * kp;
		plain_matmul(&m);
	}
}

static void open_choice(struct choice *c, const struct key *key)
{
	uint64_t kp = numerics_pad(key->k);

	*c = (struct choice){ .key = *key, .out_n = COLUMNS * numerics_pad(key->rows) };
	for (unsigned e = 0; e < EXPERTS; e++)
		for (unsigned m = 0; m < MATRICES; m++)
			c->rows[e][m] = make_rows(key);
	for (unsigned m = 0; m < MATRICES; m++) {
		c->bias[m] = make_columns(EXPERTS, key->rows);
		c->added[m] = make_added(COLUMNS, key);
	}
	pack(c, WEIGHT_BY_VECTOR);
	pack(c, WEIGHT_LANE_CONTIGUOUS);
	c->x = make_columns(COLUMNS, key->k);
	c->old = make_columns(COLUMNS, key->rows);
	c->q = kernel_buffer(COLUMNS * kp, 0);
	c->s = kernel_buffer(COLUMNS * kp / 2, 0);
	plain_quantise(c->x, COLUMNS * kp / 32, c->q, c->s);
	c->want = kernel_buffer(c->out_n * 4, 0);
	c->got = kernel_buffer(c->out_n * 4, 0);
	c->want_q = kernel_buffer(c->out_n, 0x55);
	c->got_q = kernel_buffer(c->out_n, 0x55);
	c->want_s = kernel_buffer(c->out_n / 2, 0x55);
	c->got_s = kernel_buffer(c->out_n / 2, 0x55);
	kernel_know(c->routes, sizeof c->routes);
	if (key->tile_n == 1)
		choose(c);
	else
		group(c);
	expect(c);
}

static void close_choice(struct choice *c)
{
	for (unsigned i = 0; i < EXPERTS * MATRICES; i++)
		free(c->rows[i / MATRICES][i % MATRICES]);
	for (unsigned i = 0; i < 2; i++) {
		free(c->packed[i]);
		free(c->bias[i]);
		free(c->added[i]);
	}
	void *all[] = { c->x, c->old, c->want, c->got, c->q, c->want_q, c->got_q, c->s, c->want_s, c->got_s, c->group };
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static unsigned schedules_run; /* of two row blocks */

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

static void run(const struct kernel_way *way, struct choice *c)
{
	const struct key *key = &c->key;
	enum weight_layout layout = weight_layout_of(&way->target);
	bool floats = key->activation == key_type(DTYPE_F32);
	uint64_t arg[MATMUL_ARGS] = {
		[MATMUL_W] = address(c->packed[layout]),
		[MATMUL_X] = floats ? address(c->x) : address(c->q),
		[MATMUL_XS] = address(c->s),
		[MATMUL_OUT] = address(c->got),
		[MATMUL_BIAS] = address(c->bias[0]),
		[MATMUL_W2] = address(c->packed[layout] + weight_block_bytes(key_dtype(key->weight), layout, key->k)),
		[MATMUL_BIAS2] = address(c->bias[1]),
		[MATMUL_ADDED] = address(c->added[0]),
		[MATMUL_ADDED2] = address(c->added[1]),
		[MATMUL_OUTQ] = address(c->got_q),
		[MATMUL_OUTS] = address(c->got_s),
		[MATMUL_ROUTES] = key->tile_n == 1 ? address(c->routes) : address(c->group)
	};
	uint32_t blocks = (key->rows + 31) / 32, units = blocks * (key->tile_n == 1 ? COLUMNS : c->groups),
		 cut = draw_number(units + 1);
	struct problem p = { .key = *key };
	struct kernel k;

	memcpy(c->got, c->old, c->out_n * 4);
	memset(c->got_q, 0x55, c->out_n);
	memset(c->got_s, 0x55, c->out_n / 2);
	kernel_open(&k, way, key);
	kernel_run(&k, arg, cut, units);
	kernel_run(&k, arg, 0, cut);
	kernel_close(&k);
	same_output("out", way, &p, c->got, c->want, c->out_n * 4);
	same_output("outq", way, &p, c->got_q, c->want_q, c->out_n);
	same_output("outs", way, &p, c->got_s, c->want_s, c->out_n / 2);
}

/* Every schedule that the target's lists have, and two row blocks side by side with any level. */
static void run_schedules(const struct kernel_way *way, struct choice *c)
{
	uint32_t list[TEMPLATE_SCHEDULES_MAX + 4];
	struct key key = c->key;
	key.target = (uint8_t)way->target.id;
	unsigned n = template_schedules(&key, list);

	for (uint32_t level = 1; level <= 4; level++)
		list[n++] = 0x2000 | level;
	for (unsigned i = 1; i < n; i++) {
		c->key.schedule = key.schedule = list[i];
		if (!matmul_recipe(&key, &way->target).refusal) {
			run(way, c);
			schedules_run += list[i] >> 12 == 2;
		}
	}
	c->key.schedule = 0;
}

static void check(const struct problem *p)
{
	static unsigned round;
	const struct kernel_way *ways;
	struct choice c;
	if (!test_mine(round++))
		return;
	unsigned n = kernel_ways_and_cards(&ways, (int)round);

	open_choice(&c, &p->key);
	for (unsigned i = 0; i < n; i++)
		if (p->key.tile_n <= widths_routes(&ways[i].target)) {
			run(&ways[i], &c);
			if (p->key.tile_n == 1 && ways[i].native)
				run_schedules(&ways[i], &c);
		}
	close_choice(&c);
}

/* Those of a matmul that is not added to anything. */
static uint32_t draw_flags(void)
{
	for (;;) {
		uint32_t flags = flag_sets[draw_number(FLAG_SETS)];
		if (!(flags & KEY_RESIDUAL))
			return flags | KEY_EXPERTS;
	}
}

static const uint32_t lengths[] = { 32, 64, 96, 256, 384, 768, 1280, 2048 };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void test_slots(void **unused)
{
	unsigned at = 0;

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned i = 0; i < LENGTHS; i++, at++) {
			const uint32_t flags = draw_flags(), rows = 1 + draw_number(70);
			struct problem p = problem(mix, rows, lengths[i], 1, 1, 1, flags);
			p.key.heads = SLOTS;
			p.key.kv_heads = at % 2 ? 1 : SLOTS;
			if (test_full() || at % (test_quick() ? 13 : 5) == 0)
				check(&p);
		}
	assert_true(schedules_run > (test_quick() ? 0 : 10));
}

static void test_groups(void **unused)
{
	unsigned at = 0;

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned i = 0; i < LENGTHS; i++)
			for (unsigned width = 2; width <= 8; width *= 2, at++) {
				const uint32_t flags = draw_flags(), rows = 1 + draw_number(70);
				struct problem p = problem(mix, rows, lengths[i], width, 1, 1, flags);
				if (test_full() || at % (test_quick() ? 31 : 11) == 0)
					check(&p);
			}
}

static void test_refusals(void **unused)
{
	static const struct {
		uint32_t flags, tile_n, heads, kv_heads, row_blocks;
	} wrong[] = {
		{ KEY_EXPERTS, 3, 0, 0, 1 },
		{ KEY_EXPERTS, 16, 0, 0, 1 },
		{ KEY_EXPERTS, 4, 2, 2, 1 },
		{ KEY_EXPERTS, 1, 0, 0, 1 },
		{ KEY_EXPERTS, 1, 33, 1, 1 },
		{ KEY_EXPERTS, 1, 4, 3, 1 },
		{ KEY_EXPERTS, 1, 4, 8, 1 },
		{ KEY_EXPERTS, 1, 2, 2, 2 },
		{ KEY_EXPERTS | KEY_RESIDUAL, 1, 2, 2, 1 },
		{ KEY_EXPERTS | KEY_WIDE, 4, 0, 0, 1 },
		{ 0, 1, 2, 2, 1 },
	};

	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct problem p = problem(0, 64, 64, wrong[i].tile_n, 1, wrong[i].row_blocks, 0);
		p.key.flags = wrong[i].flags;
		p.key.act = 0;
		p.key.heads = wrong[i].heads;
		p.key.kv_heads = wrong[i].kv_heads;
		kernel_refused(&p.key);
	}
	/* 2 GiB */
	struct problem p = problem(0, 1 << 20, 1 << 12, 1, 1, 1, 0);
	p.key.flags = KEY_EXPERTS;
	p.key.act = 0;
	p.key.heads = p.key.kv_heads = 2;
	kernel_refused(&p.key);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_slots), cmocka_unit_test(test_groups),
		                            cmocka_unit_test(test_refusals) };
	make_mixes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/kernels/t_matmul.c - the matmul template against the plain loops: every way to run, formats, activations, odd
 * shapes, flags. Bytes must be equal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/matmul/matmul_schedule.h"
#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain.h"
#include "tests/kernels/plain_quants.h"
#include "tests/support/shared.h"

struct problem {
	struct key key;
	uint32_t tiles;
};

/* Everything a launch touches, twice where it is written: `got` by the kernel, `expected` by the plain loop. */
struct data {
	uint8_t *rows[2], *packed[2]; /* packed: by layout */
	float *x, *bias[2];
	struct activation_block *s;
	int8_t *q;
	struct {
		float *out;
		struct activation_block *outs;
		int8_t *outq;
	} got, expected;
	uint64_t out_n, columns;
	uint32_t turn; /* flags that int8 inputs are turned with */
};

static uint64_t state = 1;

static uint32_t draw(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 40) % n;
}

static enum dtype weight_type(const struct key *key) { return (enum dtype)(key->weight - 1); }

/* A random row of any format: halves stay finite, block scales are small. */
static uint8_t *make_rows(const struct key *key)
{
	enum dtype type = weight_type(key);
	uint64_t bytes = (uint64_t)key->k / dtype_table[type].block * dtype_table[type].bytes * key->rows;
	uint8_t *p = malloc(bytes ? bytes : 1);

	assert_non_null(p);
	for (uint64_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)draw(256);
	for (uint64_t i = 0; type == DTYPE_F32 && i < bytes; i += 4) {
		float f = kernel_random(&state);
		memcpy(p + i, &f, 4);
	}
	for (uint64_t i = 1; type == DTYPE_F16 && i < bytes; i += 2)
		p[i] = (uint8_t)(draw(2) << 7 | draw(0x40));
	for (uint64_t i = 1; type == DTYPE_BF16 && i < bytes; i += 2)
		p[i] = (uint8_t)(draw(2) << 7 | (draw(8) ? 0x3a + draw(7) : draw(0x20)));
	return dtype_table[type].block > 1 ? plain_random_row(p, type, key->k * key->rows, draw) : p;
}

/* Into every `stride`-th block of dst from `first` on. */
static void pack_rows(const struct key *key, enum weight_layout layout, const uint8_t *rows, uint8_t *dst,
                      unsigned first, unsigned stride)
{
	enum dtype type = weight_type(key);
	uint64_t row_bytes = (uint64_t)key->k / dtype_table[type].block * dtype_table[type].bytes;

	for (uint32_t block = 0; block * 32 < key->rows; block++) {
		const void *row[32];
		for (uint32_t r = 0; r < 32; r++)
			row[r] = block * 32 + r < key->rows ? rows + (block * 32 + r) * row_bytes : NULL;
		weight_pack_block(type, layout,
		                  dst + (block * stride + first) * weight_block_bytes(type, layout, key->k), row,
		                  key->k);
	}
}

/* [columns][pad(n)] with +0 pads. */
static float *make_columns(uint64_t columns, uint32_t n)
{
	uint64_t np = numerics_pad(n);
	float *p = kernel_buffer(columns * np * 4, 0);
	for (uint64_t c = 0; c < columns; c++)
		for (uint32_t i = 0; i < n; i++)
			p[c * np + i] = kernel_random(&state);
	return p;
}

static void make_data(struct data *d, const struct problem *p)
{
	const struct key *key = &p->key;
	uint64_t rp = numerics_pad(key->rows), kp = numerics_pad(key->k);

	memset(d, 0, sizeof *d);
	d->columns = (uint64_t)key->tile_n * p->tiles;
	d->out_n = d->columns * rp;
	for (int i = 0; i < 2; i++) {
		d->rows[i] = make_rows(key);
		d->bias[i] = make_columns(1, key->rows);
	}
	for (int layout = WEIGHT_BY_VECTOR; layout <= WEIGHT_LANE_CONTIGUOUS; layout++) {
		unsigned matrices = key->flags & KEY_PAIR ? 2 : 1;
		uint64_t bytes =
			weight_packed_bytes(weight_type(key), (enum weight_layout)layout, matrices * rp, key->k);
		d->packed[layout] = malloc(bytes);
		assert_non_null(d->packed[layout]);
		kernel_know(d->packed[layout], bytes);
		for (unsigned i = 0; i < matrices; i++)
			pack_rows(key, (enum weight_layout)layout, d->rows[i], d->packed[layout], i, matrices);
	}
	d->x = make_columns(d->columns, key->k);
	d->q = kernel_buffer(d->columns * kp, 0);
	d->s = kernel_buffer(d->columns * kp / 2, 0);
	plain_quantise(d->x, d->columns * kp / 32, d->q, d->s);
	d->got.out = make_columns(d->columns, key->rows);
	d->expected.out = kernel_buffer(d->out_n * 4, 0);
	memcpy(d->expected.out, d->got.out, d->out_n * 4);
	d->got.outq = kernel_buffer(d->out_n, 0x55);
	d->expected.outq = kernel_buffer(d->out_n, 0x55);
	d->got.outs = kernel_buffer(d->out_n / 2, 0x55);
	d->expected.outs = kernel_buffer(d->out_n / 2, 0x55);
}

static void free_data(struct data *d)
{
	for (int i = 0; i < 2; i++) {
		free(d->rows[i]);
		free(d->packed[i]);
		free(d->bias[i]);
	}
	free(d->x);
	free(d->q);
	free(d->s);
	free(d->got.out);
	free(d->got.outq);
	free(d->got.outs);
	free(d->expected.out);
	free(d->expected.outq);
	free(d->expected.outs);
}

static void expect(struct data *d, const struct key *key)
{
	struct plain_matmul m = {
		.w = { weight_type(key), key->rows, key->k, d->rows[0] },
		.w2 = { weight_type(key), key->rows, key->k, d->rows[1] },
		.flags = key->flags,
		.act = (enum key_act)key->act,
		.columns = (uint32_t)d->columns,
		.q = d->q,
		.s = d->s,
		.bias = d->bias[0],
		.bias2 = d->bias[1],
		.out = d->expected.out,
		.outq = d->expected.outq,
		.outs = d->expected.outs,
	};
	if (key->activation == DTYPE_F32 + 1)
		m.x = d->x;
	plain_matmul(&m);
}

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

/* Items of item_bytes, [tile][column][n], as [tile][panel][n][column], into a buffer of their own. */
static void *turned(const struct target *target, const void *from, const struct problem *p, uint64_t n,
                    size_t item_bytes)
{
	uint64_t columns = p->key.tile_n,
		 panel = template_wide_panel(target, weight_type(&p->key), (enum dtype)(p->key.activation - 1),
	                                     (unsigned)columns);
	uint8_t *to = kernel_buffer(columns * p->tiles * n * item_bytes, 0x55);

	for (uint64_t c = 0; c < p->tiles * columns; c++) {
		uint64_t first = c - c % columns % panel, end = c - c % columns + columns,
			 width = end - first < panel ? end - first : panel;
		for (uint64_t i = 0; i < n; i++)
			memcpy(to + (first * n + i * width + c - first) * item_bytes,
			       (const uint8_t *)from + (c * n + i) * item_bytes, item_bytes);
	}
	return to;
}

static void *turned_input(const struct target *target, const struct data *d, const struct problem *p)
{
	uint64_t kp = numerics_pad(p->key.k);
	bool floats = p->key.activation == DTYPE_F32 + 1;
	unsigned item = d->turn & KEY_BLOCK_MAJOR ? 32 : 4;
	uint8_t *x = turned(target, floats ? (const void *)d->x : d->q, p, floats ? kp : kp / item, item);
	for (uint64_t i = 0; d->turn & KEY_UNSIGNED && i < d->columns * kp; i++)
		x[i] ^= 0x80;
	return x;
}

/* The launch in two calls, cut at a random unit. */
static void launch(const struct kernel_way *way, const struct kernel *k, struct data *d, const struct problem *p)
{
	const struct key *key = &p->key;
	const uint8_t *packed = d->packed[weight_layout_of(&way->target)];
	uint64_t arg[MATMUL_ARGS] = {
		[MATMUL_W] = address(packed),
		[MATMUL_X] = key->activation == DTYPE_F32 + 1 ? address(d->x) : address(d->q),
		[MATMUL_XS] = address(d->s),
		[MATMUL_OUT] = address(d->got.out),
		[MATMUL_TILES] = p->tiles,
		[MATMUL_BIAS] = address(d->bias[0]),
		[MATMUL_W2] =
			address(packed + weight_block_bytes(weight_type(key), weight_layout_of(&way->target), key->k)),
		[MATMUL_BIAS2] = address(d->bias[1]),
		[MATMUL_OUTQ] = address(d->got.outq),
		[MATMUL_OUTS] = address(d->got.outs),
	};
	uint32_t blocks = (key->rows + 31) / 32, units = (blocks + key->row_blocks - 1) / key->row_blocks,
		 cut = draw(units + 1);
	void *x = NULL, *s = NULL;
	if (key->flags & KEY_WIDE) {
		x = turned_input(&way->target, d, p);
		s = turned(&way->target, d->s, p, numerics_pad(key->k) / 32, sizeof *d->s);
		arg[MATMUL_X] = address(x);
		arg[MATMUL_XS] = address(s);
	}
	kernel_run(k, arg, cut, units);
	kernel_run(k, arg, 0, cut);
	free(x);
	free(s);
}

static void same(const char *what, const struct kernel_way *way, const struct problem *p, const void *got,
                 const void *expected, uint64_t n)
{
	char text[KEY_TEXT_MAX];
	if (memcmp(got, expected, n) == 0)
		return;
	for (uint64_t i = 0; i + 4 <= n; i += 4)
		if (memcmp((const char *)got + i, (const char *)expected + i, 4) != 0) {
			float g, e;
			memcpy(&g, (const char *)got + i, 4);
			memcpy(&e, (const char *)expected + i, 4);
			fail_msg("%s, %s, %u tiles: %s differs first at byte %llu: %a, expected %a", way->name,
			         key_text(&p->key, text, sizeof text), p->tiles, what, (unsigned long long)i, (double)g,
			         (double)e);
		}
}

/* CPUs have wide tiles where there are more than eight columns, others have none. */
static bool takes(const struct target *target, const struct key *key)
{
	if (key->flags & KEY_MMA)
		return template_mma(target, weight_type(key), (enum dtype)(key->activation - 1), false);
	return key->flags & KEY_WIDE ? template_wide_weights(target, weight_type(key))
	                             : key->tile_n <= template_tile_n(target);
}

/* One way; old: what out held before. */
static void check_way(const struct kernel_way *way, const struct problem *p, struct data *d, const float *old)
{
	struct kernel k;

	if (!takes(&way->target, &p->key))
		return;
	memcpy(d->got.out, old, d->out_n * 4);
	d->turn = p->key.flags & KEY_WIDE ? template_wide_interleave(&way->target, weight_type(&p->key),
	                                                             (enum dtype)(p->key.activation - 1), p->key.tile_n)
	                                  : 0;
	memset(d->got.outq, 0x55, d->out_n);
	memset(d->got.outs, 0x55, d->out_n / 2);
	kernel_open(&k, way, &p->key);
	launch(way, &k, d, p);
	kernel_close(&k);
	same("out", way, p, d->got.out, d->expected.out, d->out_n * 4);
	same("outq", way, p, d->got.outq, d->expected.outq, d->out_n);
	same("outs", way, p, d->got.outs, d->expected.outs, d->out_n / 2);
}

static float *expect_data(struct data *d, const struct problem *p)
{
	make_data(d, p);
	float *old = kernel_buffer(d->out_n * 4, 0);
	memcpy(old, d->got.out, d->out_n * 4);
	expect(d, &p->key);
	return old;
}

/* Cards take turns: each problem on one, but for JITRUN_TEST_FULL. */
static void check(const struct problem *p)
{
	static int turn;
	const struct kernel_way *ways;
	unsigned n = kernel_ways_and_cards(&ways, turn++);
	struct data d;
	float *old = expect_data(&d, p);

	for (unsigned i = 0; i < n; i++)
		check_way(&ways[i], p, &d, old);
	free(old);
	free_data(&d);
}

struct mix {
	enum dtype weight, activation;
};
static const struct mix mixes[] = {
	{ DTYPE_F32, DTYPE_F32 },    { DTYPE_F16, DTYPE_F32 },     { DTYPE_BF16, DTYPE_F32 },
	{ DTYPE_Q8_0, DTYPE_F32 },   { DTYPE_Q8_0, DTYPE_Q8_0 },   { DTYPE_Q4_0, DTYPE_F32 },
	{ DTYPE_Q4_0, DTYPE_Q8_0 },  { DTYPE_Q4_1, DTYPE_F32 },    { DTYPE_Q4_1, DTYPE_Q8_0 },
	{ DTYPE_Q5_0, DTYPE_F32 },   { DTYPE_Q5_0, DTYPE_Q8_0 },   { DTYPE_Q5_1, DTYPE_F32 },
	{ DTYPE_Q5_1, DTYPE_Q8_0 },  { DTYPE_IQ4_NL, DTYPE_F32 },  { DTYPE_IQ4_NL, DTYPE_Q8_0 },
	{ DTYPE_MXFP4, DTYPE_F32 },  { DTYPE_MXFP4, DTYPE_Q8_0 },  { DTYPE_Q2_K, DTYPE_F32 },
	{ DTYPE_Q2_K, DTYPE_Q8_0 },  { DTYPE_Q3_K, DTYPE_F32 },    { DTYPE_Q3_K, DTYPE_Q8_0 },
	{ DTYPE_Q4_K, DTYPE_F32 },   { DTYPE_Q4_K, DTYPE_Q8_0 },   { DTYPE_Q5_K, DTYPE_F32 },
	{ DTYPE_Q5_K, DTYPE_Q8_0 },  { DTYPE_Q6_K, DTYPE_F32 },    { DTYPE_Q6_K, DTYPE_Q8_0 },
	{ DTYPE_IQ4_XS, DTYPE_F32 }, { DTYPE_IQ4_XS, DTYPE_Q8_0 },
};
enum { MIXES = sizeof mixes / sizeof mixes[0] };

/* Gates have an activation function. */
static void set_flags(struct key *key, uint32_t flags)
{
	key->flags = flags;
	key->act = flags & (KEY_PAIR | KEY_GATED) ? ACT_SILU : ACT_NONE;
}

static struct problem problem(unsigned mix, uint32_t rows, uint32_t k, uint32_t columns, uint32_t tiles,
                              unsigned row_blocks, uint32_t flags)
{
	struct problem p = { .tiles = tiles };
	uint32_t block = dtype_table[mixes[mix].weight].block;
	p.key.kind = KEY_MATMUL;
	p.key.weight = (uint8_t)(mixes[mix].weight + 1);
	p.key.activation = (uint8_t)(mixes[mix].activation + 1);
	p.key.rows = rows;
	p.key.k = (k + block - 1) / block * block;
	p.key.tile_n = columns;
	p.key.row_blocks = (uint8_t)row_blocks;
	set_flags(&p.key, flags);
	return p;
}

/* Every flag combination that matmul takes. */
static const uint32_t flag_sets[] = {
	0,
	KEY_BIAS,
	KEY_RESIDUAL,
	KEY_BIAS | KEY_RESIDUAL,
	KEY_QUANTISED_OUT,
	KEY_BIAS | KEY_QUANTISED_OUT,
	KEY_RESIDUAL | KEY_QUANTISED_OUT,
	KEY_BIAS | KEY_RESIDUAL | KEY_QUANTISED_OUT,
	KEY_GATED | KEY_BIAS,
	KEY_GATED | KEY_QUANTISED_OUT,
	KEY_PAIR,
	KEY_PAIR | KEY_BIAS,
	KEY_PAIR | KEY_BIAS2,
	KEY_PAIR | KEY_BIAS | KEY_BIAS2,
	KEY_PAIR | KEY_QUANTISED_OUT,
	KEY_PAIR | KEY_BIAS | KEY_QUANTISED_OUT,
	KEY_PAIR | KEY_BIAS2 | KEY_QUANTISED_OUT,
	KEY_PAIR | KEY_BIAS | KEY_BIAS2 | KEY_QUANTISED_OUT,
};
enum {
	FLAG_SETS = sizeof flag_sets / sizeof flag_sets[0],
	ONE_MATRIX = 10 /* the sets before the first with a pair */
};

static const uint32_t row_counts[] = { 1, 31, 33, 64, 97 };
/* Rounded up to whole blocks of the weights. 2048 and 3072 have eight spans, 384 and 3072 spans with a short segment;
 * of blocks of 256, the spans of 768, 1280, 2560 and 2816 begin in the middle. */
static const uint32_t lengths[] = {
	32, 64, 96, 224, 256, 288, 384, 512, 768, 1024, 1088, 1280, 2048, 2560, 2816, 3072
};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static void test_shapes(void **unused)
{
	unsigned step = test_full() ? 1 : test_quick() ? 11 : 4, at = 0;
	for (unsigned mix = 0; mix < MIXES; mix++)
		for (uint32_t columns = 1; columns <= TEMPLATE_MAX_COLUMNS; columns++)
			for (unsigned i = 0; i < LENGTHS; i++, at++) {
				uint32_t rows = row_counts[draw(5)], tiles = 1 + draw(lengths[i] > 1024 ? 2 : 3);
				struct problem p = problem(mix, rows, lengths[i], columns, tiles, 1 + draw(2),
				                           flag_sets[draw(FLAG_SETS)]);
				if (at % step == 0)
					check(&p);
			}
}

/* Many columns, which lie side by side. */
static void test_wide(void **unused)
{
	static const uint32_t widths[] = { 24, 12, 10, 1, 2, 3, 5, 7, 9, 13, 14, 16, 17, 20, 21, 23 };
	unsigned n = sizeof widths / sizeof widths[0], at = 0;

	for (unsigned mix = 0; mix < MIXES; mix++)
		for (unsigned i = 0;
		     template_wide_weights(&target_table[TARGET_AVX2], mixes[mix].weight) && i < (test_quick() ? 3 : n);
		     i++, at++) {
			uint32_t k = lengths[draw(LENGTHS)];
			struct problem p = problem(mix, row_counts[draw(5)], k, widths[at % n], 1 + draw(2), 1,
			                           KEY_WIDE | flag_sets[draw(FLAG_SETS)]);
			if (k % dtype_table[mixes[mix].weight].block == 0)
				check(&p);
		}
}

/* By integer matrix products, on targets that have them. */
static void test_matrices(void **unused)
{
	unsigned mix = 0, at = 0;

	while (mixes[mix].weight != DTYPE_Q8_0 || mixes[mix].activation != DTYPE_Q8_0)
		mix++;
	for (unsigned i = 0; i < LENGTHS; i++)
		for (unsigned j = 0; j < 2; j++, at++) {
			uint32_t flags = flag_sets[j ? draw(ONE_MATRIX) : ONE_MATRIX + draw(FLAG_SETS - ONE_MATRIX)],
				 columns = template_mma_tile_n(lengths[i], flags);
			struct problem p =
				problem(mix, row_counts[draw(5)], lengths[i], at % 3 ? columns : TEMPLATE_MMA_LEAST,
			                1 + draw(2), 1, KEY_MMA | flags);
			if (!test_quick() || at % 5 == 0)
				check(&p);
		}
}

static void test_one_column(void **unused)
{
	for (unsigned mix = 0; mix < MIXES; mix++)
		for (unsigned i = 0; i < 5; i++)
			for (unsigned j = 0; j < (test_quick() ? 3 : LENGTHS); j++) {
				struct problem pair = problem(mix, row_counts[i], lengths[j], 1, 1 + draw(2), 2,
				                              flag_sets[draw(ONE_MATRIX)]);
				struct problem silu = problem(mix, row_counts[i], lengths[j], 1, 1, 1 + draw(2),
				                              flag_sets[ONE_MATRIX + draw(FLAG_SETS - ONE_MATRIX)]);
				check((i + j + mix) % 2 ? &pair : &silu);
			}
}

static void test_flags(void **unused)
{
	for (unsigned mix = 0; mix < MIXES; mix++)
		for (unsigned i = 0; i < FLAG_SETS; i++)
			for (unsigned row_blocks = 1; row_blocks <= 2; row_blocks++) {
				struct problem p = problem(mix, 65 + draw(32), 64, 1 + draw(8), 1 + draw(2), row_blocks,
				                           flag_sets[i]);
				check(&p);
			}
}

/* Lengths that are no multiple of 32: padded weights and activations. */
static void test_padding(void **unused)
{
	static const uint32_t odd[] = { 1, 2, 31, 33, 100, 257, 300, 1000 };
	for (unsigned mix = 0; mix < 3; mix++)
		for (unsigned i = 0; i < sizeof odd / sizeof odd[0]; i++) {
			struct problem p = problem(mix, row_counts[draw(5)], odd[i], 1 + draw(8), 1, 1 + draw(2),
			                           flag_sets[draw(FLAG_SETS)]);
			check(&p);
		}
}

/* n columns at once are n times one column: by construction, and said here for itself. */
static void test_columns_do_not_matter(void **unused)
{
	const struct kernel_way *ways;
	unsigned n = kernel_ways_and_cards(&ways, KERNEL_ALL_CARDS);
	for (unsigned mix = 0; mix < MIXES; mix++)
		for (unsigned i = 0; i < n; i++) {
			struct problem wide = problem(mix, 97, 768, 7, 1, 2, 0), narrow = wide;
			struct data d;
			struct kernel k;
			narrow.key.tile_n = 1;
			narrow.tiles = 7;
			make_data(&d, &wide);
			kernel_open(&k, &ways[i], &wide.key);
			launch(&ways[i], &k, &d, &wide);
			kernel_close(&k);
			memcpy(d.expected.out, d.got.out, d.out_n * 4);
			memset(d.got.out, 0x55, d.out_n * 4);
			kernel_open(&k, &ways[i], &narrow.key);
			launch(&ways[i], &k, &d, &narrow);
			kernel_close(&k);
			same("out", &ways[i], &narrow, d.got.out, d.expected.out, d.out_n * 4);
			free_data(&d);
		}
}

/* ---- schedules */

enum { DIGITS = 16 /* of a field */, ALONE_MOST = MATMUL_SCHEDULE_FIELDS * DIGITS };

static bool has_schedule(const struct target *t, const struct key *key, uint32_t schedule)
{
	struct key k = *key;
	struct matmul_schedule ignored;

	k.schedule = schedule;
	return !matmul_schedule(&k, t, &ignored);
}

/* Those that differ from the usual one in one field; the distance of several columns comes with both levels. */
static unsigned list_alone(const struct target *t, const struct key *key, uint32_t out[ALONE_MOST])
{
	unsigned n = 0;

	for (unsigned f = 0; f < MATMUL_SCHEDULE_FIELDS; f++)
		for (uint32_t digit = 1; digit < DIGITS; digit++)
			if (has_schedule(t, key, digit << 4 * f))
				out[n++] = digit << 4 * f;
			else if (has_schedule(t, key, digit << 4 * f | SCHEDULE_BOTH_LEVELS))
				out[n++] = digit << 4 * f | SCHEDULE_BOTH_LEVELS;
	return n;
}

/* Any there is, made of those; 0: none was found. */
static uint32_t draw_schedule(const struct target *t, const struct key *key, const uint32_t alone[], unsigned n)
{
	for (unsigned tries = 0; n && tries < 20; tries++) {
		uint32_t s = 0;
		for (unsigned i = 0; i < 3; i++) {
			uint32_t one = alone[draw(n)];
			for (unsigned f = 0; f < MATMUL_SCHEDULE_FIELDS; f++)
				s |= s >> 4 * f & 15 ? 0 : one & 15u << 4 * f;
		}
		if (s && has_schedule(t, key, s))
			return s;
	}
	return 0;
}

/* What changes registers or the loops; distances and levels come with them. */
static const struct {
	uint32_t columns, wide;
} schedule_tile_n[] = { { 1, 0 },        { 4, 0 },         { 8, 0 },         { 4, KEY_WIDE },
	                { 8, KEY_WIDE }, { 16, KEY_WIDE }, { 12, KEY_WIDE }, { 24, KEY_WIDE } };
enum { SCHEDULE_COLUMNS = sizeof schedule_tile_n / sizeof *schedule_tile_n };

/* Every way of going through the weights gives the bits of the plain loops: all that differ in one field, and some that
 * differ in several. */
static void test_schedules(void **unused)
{
	static const uint32_t ks[] = { 512, 768, 2048 };
	uint32_t alone[ALONE_MOST];
	const struct kernel_way *ways;
	unsigned n = kernel_ways(&ways), tried[MATMUL_SCHEDULE_FIELDS] = { 0 }, at = 0, drawn = test_quick() ? 1 : 3;

	for (unsigned mix = 0; mix < MIXES; mix++)
		for (unsigned c = 0; c < SCHEDULE_COLUMNS; c++) {
			struct problem p =
				problem(mix, 97, ks[at++ % 3], schedule_tile_n[c].columns, 1, 1 + draw(2), 0);
			if (schedule_tile_n[c].wide)
				p.key.row_blocks = 1;
			set_flags(&p.key, schedule_tile_n[c].wide | flag_sets[draw(FLAG_SETS)]);
			struct data d;
			float *old = expect_data(&d, &p);
			for (unsigned i = 0; i < n; i++) {
				unsigned found =
					takes(&ways[i].target, &p.key) ? list_alone(&ways[i].target, &p.key, alone) : 0;
				for (unsigned j = 0; j < found + (found ? drawn : 0); j++) {
					p.key.schedule =
						j < found ? alone[j]
							  : draw_schedule(&ways[i].target, &p.key, alone, found);
					if (j < found && test_quick() && (j + at + i) % 5)
						continue;
					check_way(&ways[i], &p, &d, old);
					for (unsigned f = 0; f < MATMUL_SCHEDULE_FIELDS; f++)
						tried[f] += (p.key.schedule >> 4 * f & 15) != 0;
				}
				p.key.schedule = 0;
			}
			free(old);
			free_data(&d);
		}
	for (unsigned f = 0; f < MATMUL_SCHEDULE_FIELDS; f++)
		assert_true(tried[f] > 0);
}

/* Lists are of what there is: every schedule near a legal one is legal, and what packs have too. */
static void test_schedule_lists(void **unused)
{
	unsigned all = 0;

	for (unsigned mix = 0; mix < MIXES; mix++)
		for (unsigned c = 0; c < SCHEDULE_COLUMNS; c++)
			for (unsigned target = TARGET_NONE + 1; target < TARGET_COUNT; target++) {
				struct problem p = problem(mix, 97, 2048, schedule_tile_n[c].columns, 1, 1,
				                           schedule_tile_n[c].wide);
				uint32_t list[TEMPLATE_SCHEDULES_MOST];
				p.key.target = (uint8_t)target;
				unsigned n = template_schedules(&p.key, list);
				assert_in_range(n, 1, target_table[target].lane_bytes ? 1 : 6);
				assert_int_equal(list[0], 0);
				for (unsigned step = 0; step < 12; step++) {
					unsigned near =
						template_schedules_near(&p.key, draw(TEMPLATE_SCHEDULE_FIELDS), list);
					assert_true(near < TEMPLATE_SCHEDULES_MOST);
					for (unsigned i = 0; i < near; i++) {
						struct key k = p.key;
						char name[TEMPLATE_SCHEDULE_NAME];
						k.schedule = list[i];
						assert_null(template_schedule_refusal(&k));
						assert_true(k.schedule != p.key.schedule);
						assert_true(strlen(template_schedule_name(&k, name, sizeof name)) + 1 <
						            sizeof name);
					}
					all += near;
					p.key.schedule = near ? list[draw(near)] : p.key.schedule;
				}
			}
	assert_true(all > 0);
}

static unsigned spills(const struct kernel_way *way, const struct problem *p)
{
	char text[KEY_TEXT_MAX];
	struct kernel k;

	kernel_open(&k, way, &p->key);
	unsigned n = k.stats.spills_in_inner_loops;
	kernel_close(&k);
	if (n)
		print_message("%s: %s: %u spills in inner loops\n", way->name, key_text(&p->key, text, sizeof text), n);
	return n;
}

/* Some of them. */
static unsigned spills_of_schedules(const struct kernel_way *way, const struct problem *p, unsigned times)
{
	uint32_t alone[ALONE_MOST];
	unsigned n = list_alone(&way->target, &p->key, alone), bad = 0;

	for (unsigned i = 0; i < (test_quick() ? (times + 1) / 2 : times); i++) {
		struct problem one = *p;
		if ((one.key.schedule = draw_schedule(&way->target, &p->key, alone, n)))
			bad += spills(way, &one);
	}
	return bad;
}

/* Shapes of real models: compiled, not run. */
/* Where a core waits for few lines at a time, both cache levels are usual for one column and for guesses, elsewhere and
 * for prompts they are not. */
static void test_usual_levels(void **unused)
{
	static const uint32_t columns[] = { 1, 4, 8, 16, 24 };

	for (unsigned mix = 0; mix < MIXES; mix++)
		for (unsigned c = 0; c < sizeof columns / sizeof *columns; c++)
			for (unsigned wide = columns[c] > 16; wide <= (columns[c] > 1); wide++) {
				struct problem p = problem(mix, 97, 2048, columns[c], 1, 1, wide ? KEY_WIDE : 0);
				struct matmul_schedule few, many;
				if (!takes(&target_table[TARGET_AVX512_AMX], &p.key) ||
				    !takes(&target_table[TARGET_AVX512_VNNI], &p.key))
					continue;
				assert_null(matmul_schedule(&p.key, &target_table[TARGET_AVX512_AMX], &few));
				assert_null(matmul_schedule(&p.key, &target_table[TARGET_AVX512_VNNI], &many));
				if (many.prefetch_level ==
				    SCHEDULE_SECOND_LEVEL) /* row blocks that are unpacked as a whole */
					assert_int_equal(few.prefetch_level, SCHEDULE_SECOND_LEVEL);
				else
					assert_int_equal(few.prefetch_level == SCHEDULE_BOTH_LEVELS, columns[c] <= 16);
				if (columns[c] == 1)
					assert_int_equal(many.prefetch_level, SCHEDULE_FIRST_LEVEL);
			}
	(void)unused;
}

static void test_no_spills(void **unused)
{
	static const struct {
		uint32_t rows, k, flags;
	} shapes[] = {
		{ 2048, 1024, 0 },
		{ 1024, 2048, KEY_RESIDUAL },
		{ 3072, 1024, KEY_PAIR },
		{ 3072, 1024, KEY_PAIR | KEY_QUANTISED_OUT },
		{ 1024, 3072, KEY_RESIDUAL },
		{ 151936, 1024, 0 },
		{ 2048, 2048, KEY_RESIDUAL },
		{ 512, 2048, 0 },
		{ 8192, 2048, KEY_PAIR | KEY_QUANTISED_OUT },
		{ 2048, 8192, KEY_RESIDUAL },
		{ 128256, 2048, 0 },
		{ 4096, 4096, KEY_RESIDUAL },
		{ 14336, 4096, KEY_PAIR | KEY_QUANTISED_OUT },
		{ 4096, 14336, KEY_RESIDUAL },
		{ 896, 896, KEY_BIAS },
		{ 4864, 896, KEY_PAIR | KEY_QUANTISED_OUT },
		{ 896, 4864, KEY_RESIDUAL },
		{ 32000, 4096, 0 },
		{ 11008, 4096, KEY_PAIR | KEY_QUANTISED_OUT },
	};
	const struct kernel_way *ways;
	unsigned n = kernel_ways(&ways), bad = 0;

	for (unsigned i = 0; i < n; i++)
		for (unsigned shape = 0; ways[i].native && shape < sizeof shapes / sizeof shapes[0]; shape++)
			for (unsigned mix = 0; mix < MIXES; mix++)
				for (uint32_t columns = 1; columns <= 8; columns++) {
					struct problem p = problem(mix, shapes[shape].rows, shapes[shape].k, columns, 1,
					                           1, shapes[shape].flags);
					bad += spills(&ways[i], &p);
					if (columns == 1 || columns == 4 || columns == 8)
						bad += spills_of_schedules(&ways[i], &p, columns == 1 ? 6 : 2);
				}
	for (unsigned i = 0; i < n; i++)
		for (unsigned shape = 2; ways[i].native && shape < 5; shape++)
			for (unsigned mix = 0; mix < MIXES; mix++)
				/* From 3 on: plans have no narrower ones. */
				for (uint32_t columns = 3;
				     template_wide_weights(&target_table[TARGET_AVX2], mixes[mix].weight) &&
				     columns <= TEMPLATE_MAX_WIDE;
				     columns++) {
					struct problem p = problem(mix, shapes[shape].rows, shapes[shape].k, columns, 1,
					                           1, KEY_WIDE | shapes[shape].flags);
					bad += spills(&ways[i], &p);
					if (columns % 12 == 0 || columns == 4 || columns == 8 || columns == 16)
						bad += spills_of_schedules(&ways[i], &p, 2);
				}
	assert_int_equal(bad, 0);
}

/* Compiled for cards, not run. Kernels fit in the order they are written, too: that is what is left when the
 * scheduler's needs too many registers. */
static void test_cards_registers(void **unused)
{
	static const char *const cards[] = { "gfx1030", "gfx1100", "gfx1200" };
	static const uint32_t columns[] = { 1, 2, 3, 4, 8, 16 }, flags[] = {
		KEY_GATED | KEY_QUANTISED_OUT, KEY_PAIR | KEY_BIAS | KEY_BIAS2, KEY_BIAS | KEY_RESIDUAL
	};
	enum { WIDTHS = sizeof columns / sizeof *columns, SETS = sizeof flags / sizeof *flags };
	unsigned kernels = 0;

	for (unsigned mix = 0; mix < MIXES; mix++)
		for (unsigned card = 0; card < 3; card++)
			for (unsigned i = 0; i < 2 * WIDTHS * SETS; i++) {
				const struct compile_options options = {
					.skip = i < WIDTHS * SETS ? COMPILE_SKIP_SCHED : 0, .verify_passes = true
				};
				struct problem p = problem(mix, 31, 768, columns[i % WIDTHS], 1, 1 + mix % 2,
				                           flags[i / WIDTHS % SETS]);
				char text[KEY_TEXT_MAX];
				struct error err = { 0 };
				struct object o = { 0 };
				p.key.target = (uint8_t)(target_find(cards[card]) - target_table);
				if (!compile_key(&o, &p.key, template_build, &options, NULL, &err))
					fail_msg("%s%s: %s", key_text(&p.key, text, sizeof text),
					         options.skip ? " as it is written" : "", err.text);
				object_free(&o);
				kernels++;
			}
	assert_int_equal(kernels, MIXES * 3 * 2 * WIDTHS * SETS);
}

static void test_refusals(void **unused)
{
	static const struct target target = { .name = "test", .lanes = 8, .vector_regs = 16 };
	struct problem good = problem(3, 32, 64, 1, 1, 1, 0), bad[24];
	unsigned n = 0;

	for (unsigned i = 0; i < 24; i++)
		bad[i] = good;
	bad[n++].key.weight = DTYPE_I64 + 1;
	bad[n++].key.weight = 0;
	bad[n++].key.activation = DTYPE_F16 + 1;
	bad[n].key.weight = DTYPE_F32 + 1;
	bad[n++].key.activation = DTYPE_Q8_0 + 1;
	bad[n++].key.k = 33;
	bad[n++].key.rows = 0;
	bad[n++].key.tile_n = 9;
	bad[n++].key.row_blocks = 3;
	set_flags(&bad[n++].key, KEY_BIAS2);
	set_flags(&bad[n++].key, KEY_PAIR | KEY_RESIDUAL);
	set_flags(&bad[n++].key, KEY_PAIR | KEY_GATED);
	set_flags(&bad[n++].key, KEY_GATED | KEY_RESIDUAL);
	bad[n].key.flags = KEY_WIDE;
	bad[n++].key.tile_n = TEMPLATE_MAX_WIDE + 1;
	bad[n].key.flags = KEY_WIDE;
	bad[n++].key.row_blocks = 2;
	set_flags(&bad[n++].key, KEY_WIDE | KEY_PAIR | KEY_RESIDUAL);
	bad[n++].key.flags = KEY_PAIR; /* no activation function */
	bad[n++].key.flags = KEY_GATED;
	bad[n++].key.act = ACT_SILU; /* no gate */
	set_flags(&bad[n].key, KEY_PAIR);
	bad[n++].key.act = KEY_ACT_COUNT;
	bad[n++].key.schedule = 1; /* the usual level, written out */
	bad[n++].key.schedule = 0xf;
	bad[n++].key.schedule = 0x2000;  /* two row blocks of one */
	bad[n++].key.schedule = 0x30000; /* three columns of one */
	bad[n++].key.schedule = 1u << 24;
	for (unsigned i = 0; i <= n; i++) {
		struct error err = { 0 };
		struct ir ir;
		ir_init(&ir, 8);
		bool built = template_build(&ir, i < n ? &bad[i].key : &good.key, &target, &err);
		ir_free(&ir);
		assert_int_equal(built, i == n);
		assert_int_equal(err.code, i < n ? ERROR_UNSUPPORTED : ERROR_NONE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_padding),
		cmocka_unit_test(test_one_column),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_matrices),
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_columns_do_not_matter),
		cmocka_unit_test(test_schedules),
		cmocka_unit_test(test_schedule_lists),
		cmocka_unit_test(test_usual_levels),
		cmocka_unit_test(test_no_spills),
		cmocka_unit_test(test_cards_registers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

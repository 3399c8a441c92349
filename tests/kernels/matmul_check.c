/* tests/kernels/matmul_check.c - see matmul_check.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/lanes.h"
#include "kernels-templates/matmul/recipe.h"
#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain.h"
#include "tests/kernels/plain_attention.h"
#include "tests/kernels/plain_quants.h"
#include "tests/kernels/matmul_check.h"
#include "tests/support/weight_types.h"
#include "tests/support/widths.h"

struct mix mixes[2 * DTYPE_COUNT + 1];
unsigned n_mixes;

void make_mixes(void)
{
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types_all(types);

	n_mixes = 0;
	for (unsigned i = 0; i < n; i++) {
		mixes[n_mixes++] = (struct mix){ types[i], DTYPE_F32 };
		if (weight_default_activation(types[i]) != DTYPE_F32)
			mixes[n_mixes++] = (struct mix){ types[i], weight_default_activation(types[i]) };
	}
	mixes[mix_of_dot2()] = (struct mix){ DTYPE_BF16, DTYPE_BF16 };
}

static uint64_t state = 1;

uint32_t draw_number(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 40) % n;
}

static bool is_int8(const struct key *key) { return key->activation == DTYPE_Q8_0 + 1; }
static bool has_dot2(const struct key *key) { return key->activation == DTYPE_BF16 + 1; }
static enum dtype weight_type(const struct key *key) { return (enum dtype)(key->weight - 1); }

uint8_t *make_rows(const struct key *key)
{
	enum dtype type = weight_type(key);
	uint64_t bytes = dtype_row_bytes(type, key->k) * key->rows;
	uint8_t *p = malloc(bytes ? bytes : 1);

	assert_non_null(p);
	for (uint64_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)draw_number(256);
	for (uint64_t i = 0; type == DTYPE_F32 && i < bytes; i += 4) {
		float f = kernel_random(&state);
		memcpy(p + i, &f, 4);
	}
	for (uint64_t i = 1; type == DTYPE_F16 && i < bytes; i += 2)
		p[i] = (uint8_t)(draw_number(2) << 7 | draw_number(0x40));
	for (uint64_t i = 1; type == DTYPE_BF16 && i < bytes; i += 2)
		p[i] = (uint8_t)(draw_number(2) << 7 | (draw_number(8) ? 0x3a + draw_number(7) : draw_number(0x20)));
	if (dtype_table[type].block > 1)
		plain_random_rows(p, type, key->rows, key->k, draw_number);
	return p;
}

void pack_rows(const struct key *key, enum weight_layout layout, const uint8_t *rows, uint8_t *dst, unsigned first,
               unsigned stride)
{
	enum dtype type = weight_type(key);
	uint64_t row_bytes = dtype_row_bytes(type, key->k);

	for (uint32_t block = 0; block * 32 < key->rows; block++) {
		const void *row[32];
		for (uint32_t r = 0; r < 32; r++)
			row[r] = block * 32 + r < key->rows ? rows + (block * 32 + r) * row_bytes : NULL;
		weight_pack_block(type, layout,
		                  dst + (block * stride + first) * weight_block_bytes(type, layout, key->k), row,
		                  key->k);
	}
}

float *make_columns(uint64_t columns, uint32_t n)
{
	uint64_t np = numerics_pad(n);
	float *p = kernel_buffer(columns * np * 4, 0);
	for (uint64_t c = 0; c < columns; c++)
		for (uint32_t i = 0; i < n; i++)
			p[c * np + i] = kernel_random(&state);
	return p;
}

static void make_norm(struct data *d, const struct key *key)
{
	uint64_t kp = numerics_pad(key->k);
	int8_t *q = kernel_buffer(kp, 0);
	struct activation_block *s = kernel_buffer(kp / 2, 0);

	d->stream = d->x;
	d->norm = make_columns(1, key->k);
	d->x = kernel_buffer(d->columns * kp * 4, 0);
	for (uint64_t c = 0; c < d->columns; c++)
		plain_norm(d->x + c * kp, q, s, d->stream + c * kp, d->norm, key->k, d->epsilon,
		           key->flags & KEY_CENTRED);
	free(q);
	free(s);
}

/* What rounds to the even of two: all that is made of a block's step is exact. */
static void make_halves(float *x, uint64_t n, int power)
{
	float step = 1;

	for (uint64_t i = 0; i < n; i++) {
		if (i % 32 == 0)
			step = 1 + (float)(2 * draw_number(1 << 13) + 1) / (1 << 14);
		x[i] = ldexpf(step * (i % 32 ? (float)draw_number(253) - 126 + 0.5f : 127), power);
	}
}

/* A norm of ones is its weights. */
static void make_halves_behind_norm(struct data *d, const struct key *key, int power)
{
	uint64_t kp = numerics_pad(key->k);

	assert_true(key->flags & KEY_NORM_IN && kp == key->k);
	d->epsilon = 0;
	make_halves(d->norm, kp, power);
	for (uint64_t i = 0; i < d->columns * kp; i++) {
		d->stream[i] = 1;
		d->x[i] = d->norm[i % kp];
	}
}

float *make_added(uint64_t columns, const struct key *key)
{
	if (!(key->flags & KEY_SCALED))
		return make_columns(columns, key->rows);
	return make_columns(columns, (uint32_t)(2 * numerics_pad(key->rows)));
}

void make_data(struct data *d, const struct problem *p)
{
	const struct key *key = &p->key;
	uint64_t rp = numerics_pad(key->rows), kp = numerics_pad(key->k);

	memset(d, 0, sizeof *d);
	d->columns = (uint64_t)key->tile_n * p->tiles;
	d->out_n = d->columns * rp;
	for (int i = 0; i < 2; i++) {
		d->rows[i] = make_rows(key);
		d->bias[i] = make_columns(1, key->rows);
		d->added[i] = key->flags & KEY_ADDED ? make_added(d->columns, key) : NULL;
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
	for (uint64_t i = 0; p->power && i < d->columns * kp; i++)
		d->x[i] = ldexpf(d->x[i], p->power);
	d->epsilon = 1e-5f;
	if (key->flags & KEY_NORM_IN)
		make_norm(d, key);
	if (p->halves)
		make_halves_behind_norm(d, key, p->halves);
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
	d->got.greatest = kernel_buffer(d->out_n / 8, 0x55);
	d->expected.greatest = kernel_buffer(d->out_n / 8, 0x55);
	if (p->spoil != 0)
		d->bias[0][key->rows / 2] = p->spoil;
}

void free_data(struct data *d)
{
	for (int i = 0; i < 2; i++) {
		free(d->rows[i]);
		free(d->packed[i]);
		free(d->bias[i]);
		free(d->added[i]);
	}
	free(d->x);
	free(d->stream);
	free(d->norm);
	free(d->q);
	free(d->s);
	free(d->got.out);
	free(d->got.outq);
	free(d->got.outs);
	free(d->got.greatest);
	free(d->expected.out);
	free(d->expected.outq);
	free(d->expected.outs);
	free(d->expected.greatest);
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
		.added = { d->added[0], d->added[1] },
		.out = d->expected.out,
		.outq = d->expected.outq,
		.outs = d->expected.outs,
	};
	if (!is_int8(key))
		m.x = d->x;
	m.dot2 = has_dot2(key);
	plain_matmul(&m);
	for (uint64_t i = 0; key->flags & KEY_GREATEST && i < d->out_n / 32; i++) {
		float max = -INFINITY;
		for (const float *y = m.out + 32 * i; y < m.out + 32 * i + 32; y++)
			max = isfinite(*y) ? fmaxf(max, *y) : INFINITY;
		d->expected.greatest[i] = max;
	}
}

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

/* Items of item_bytes, [tile][column][n], as [tile][panel][n][column], into a buffer of their own. */
static void *transposed(const struct target *target, const void *from, const struct problem *p, uint64_t n,
                        size_t item_bytes)
{
	uint64_t columns = p->key.tile_n, panel = widths_panel(target, weight_type(&p->key),
	                                                       (enum dtype)(p->key.activation - 1), (unsigned)columns);
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

/* Two k's a word, the lower one in the low half. */
static uint32_t *in_words(const float *x, uint64_t n)
{
	uint32_t *to = kernel_buffer(n * 2, 0x55);

	for (uint64_t i = 0; i < n / 2; i++)
		to[i] = plain_to_bf16(x[2 * i]) >> 16 | plain_to_bf16(x[2 * i + 1]);
	return to;
}

static void *transposed_input(const struct target *target, const struct data *d, const struct problem *p)
{
	uint64_t kp = numerics_pad(p->key.k);
	bool int8 = is_int8(&p->key), dot2 = has_dot2(&p->key);
	unsigned item = int8 ? NUMERICS_BLOCK : 4; /* bytes that stay together */
	uint32_t *words = dot2 ? in_words(d->x, d->columns * kp) : NULL;
	uint8_t *x = transposed(target,
	                        words  ? words
	                        : int8 ? (const void *)d->q
	                               : d->x,
	                        p, int8 ? kp / item : kp / (1 + dot2), item);
	free(words);
	for (uint64_t i = 0; d->round & KEY_UNSIGNED && i < d->columns * kp; i++)
		x[i] ^= 0x80;
	return x;
}

void launch(const struct kernel_way *way, const struct kernel *k, struct data *d, const struct problem *p)
{
	const struct key *key = &p->key;
	const uint8_t *packed = d->packed[weight_layout_of(&way->target)];
	uint64_t arg[MATMUL_ARGS] = {
		[MATMUL_W] = address(packed),
		[MATMUL_X] = is_int8(key) ? address(d->q) : address(d->x),
		[MATMUL_XS] = address(d->s),
		[MATMUL_OUT] = address(d->got.out),
		[MATMUL_TILES] = p->tiles,
		[MATMUL_COLUMNS] = p->tiles * key->tile_n - p->missing,
		[MATMUL_BIAS] = address(d->bias[0]),
		[MATMUL_W2] =
			address(packed + weight_block_bytes(weight_type(key), weight_layout_of(&way->target), key->k)),
		[MATMUL_BIAS2] = address(d->bias[1]),
		[MATMUL_OUTQ] = address(d->got.outq),
		[MATMUL_OUTS] = address(d->got.outs),
		[MATMUL_GREATEST] = address(d->got.greatest),
		[MATMUL_ADDED] = address(d->added[0]),
		[MATMUL_ADDED2] = address(d->added[1]),
	};
	uint32_t blocks = (key->rows + 31) / 32, units = (blocks + key->row_blocks - 1) / key->row_blocks,
		 cut = draw_number(units + 1);
	void *x = NULL, *s = NULL;
	if (key->flags & KEY_AWAITED)
		arg[MATMUL_FROM] = address(d->from);
	if (key->flags & KEY_NORM_IN) {
		arg[MATMUL_X] = address(d->stream);
		arg[MATMUL_XS] = 0;
		arg[MATMUL_NORM] = address(d->norm);
		memcpy(&arg[MATMUL_EPS], &d->epsilon, 4);
	}
	if (key->flags & KEY_WIDE) {
		x = transposed_input(&way->target, d, p);
		s = transposed(&way->target, d->s, p, numerics_pad(key->k) / 32, sizeof *d->s);
		arg[MATMUL_X] = address(x);
		arg[MATMUL_XS] = address(s);
	} else if (has_dot2(key)) {
		x = in_words(d->x, d->columns * numerics_pad(key->k));
		arg[MATMUL_X] = address(x);
	}
	kernel_run(k, arg, cut, units);
	kernel_run(k, arg, 0, cut);
	free(x);
	free(s);
}

void same_output(const char *what, const struct kernel_way *way, const struct problem *p, const void *got,
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

bool takes_way(const struct target *target, const struct key *key)
{
	/* t_recipe.c judges what these say. */
	if (key->flags & (KEY_GREATEST | KEY_AWAITED | KEY_NORM_IN) && matmul_recipe(key, target).refusal)
		return false;
	if (has_dot2(key) && (!widths_dot2(target, weight_type(key)) || key->flags & (KEY_AWAITED | KEY_NORM_IN)))
		return false;
	if (key->flags & KEY_MMA)
		return widths_mma(target, weight_type(key), (enum dtype)(key->activation - 1), false) &&
		       (key->tile_n <= TEMPLATE_MMA_COLUMNS ||
		        key->tile_n <= widths_mma_tile_n(target, weight_type(key), UINT32_MAX, key->k, key->flags));
	if (key->flags & (KEY_AWAITED | KEY_NORM_IN))
		return true;
	return key->flags & KEY_WIDE ? widths_has_wide(target, weight_type(key)) : key->tile_n <= widths_plain(target);
}

void check_way(const struct kernel_way *way, const struct problem *p, struct data *d, const float *old)
{
	struct kernel k;

	if (!takes_way(&way->target, &p->key))
		return;
	memcpy(d->got.out, old, d->out_n * 4);
	d->from = old;
	for (uint64_t i = 0; p->key.flags & KEY_AWAITED && i < d->out_n; i++)
		d->got.out[i] = bits_f32(IR_EMPTY);
	d->round = p->key.flags & KEY_WIDE ? widths_interleave(&way->target, weight_type(&p->key),
	                                                       (enum dtype)(p->key.activation - 1), p->key.tile_n)
	                                   : 0;
	memset(d->got.outq, 0x55, d->out_n);
	memset(d->got.outs, 0x55, d->out_n / 2);
	memset(d->got.greatest, 0x55, d->out_n / 8);
	kernel_open(&k, way, &p->key);
	launch(way, &k, d, p);
	kernel_close(&k);
	if (p->key.flags & KEY_AWAITED && p->key.flags & KEY_QUANTISED_OUT) /* instead of floats */
		memcpy(d->got.out, d->expected.out, d->out_n * 4);
	const uint64_t left = d->out_n / d->columns * p->missing, n = d->out_n - left;
	same_output("out", way, p, d->got.out, d->expected.out, n * 4);
	same_output("outq", way, p, d->got.outq, d->expected.outq, n);
	same_output("outs", way, p, d->got.outs, d->expected.outs, n / 2);
	same_output("greatest", way, p, d->got.greatest, d->expected.greatest, n / 8);
	same_output("what is behind the last column", way, p, d->got.out + n, old + n, left * 4);
	for (uint64_t i = 0; i < left; i++)
		assert_int_equal(d->got.outq[n + i], 0x55);
}

float *expect_data(struct data *d, const struct problem *p)
{
	make_data(d, p);
	float *old = kernel_buffer(d->out_n * 4, 0);
	memcpy(old, d->got.out, d->out_n * 4);
	expect(d, &p->key);
	return old;
}

void set_flags(struct key *key, uint32_t flags)
{
	static unsigned round; /* each activation function in turn, and none */

	round++;
	key->flags = flags;
	key->act = flags & (KEY_PAIR | KEY_GATED)          ? (uint8_t)(1 + round % (KEY_ACT_COUNT - 1))
	           : flags & KEY_RESIDUAL || round % 4 < 3 ? ACT_NONE
	                                                   : (uint8_t)(1 + round / 4 % (KEY_ACT_COUNT - 1));
}

struct problem problem(unsigned mix, uint32_t rows, uint32_t k, uint32_t columns, uint32_t tiles, unsigned row_blocks,
                       uint32_t flags)
{
	struct problem p = { .tiles = tiles };
	uint32_t block = dtype_table[mixes[mix].weight].block;
	p.key.kind = KEY_MATMUL;
	p.key.weight = (uint8_t)(mixes[mix].weight + 1);
	p.key.activation = (uint8_t)(mixes[mix].activation + 1);
	p.key.numerics = mix == mix_of_dot2() ? NUMERICS_BOUNDED : NUMERICS_EXACT;
	p.key.rows = rows;
	p.key.k = (k + block - 1) / block * block;
	p.key.tile_n = columns;
	p.key.row_blocks = (uint8_t)row_blocks;
	set_flags(&p.key, flags);
	return p;
}

struct problem side_by_side(const struct problem *p)
{
	static unsigned round;
	struct problem with = *p;
	const unsigned min = p->key.flags & KEY_PAIR ? 1 : 0;

	with.key.schedule = TEMPLATE_SIDE_BY_SIDE | 1u << (min + round++ % (3 - min));
	if (p->tiles > 1 && p->key.tile_n <= 8)
		with.missing = draw_number(p->key.tile_n);
	return with;
}

/* tests/kernels/t_recurrent.c - convolutions over time, the gated delta rule and gates against plain loops, bit for
 * bit, for every cut of the columns; and the delta rule against double precision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_attention.h"
#include "tests/support/shared.h"

enum { COLUMNS = 11, CUTS = 4 };

/* Where launches begin: all columns at once, one by one, and between. */
static const unsigned cuts[CUTS] = { COLUMNS, 1, 4, 7 };

static float *filled(size_t n, uint64_t seed)
{
	float *p = kernel_buffer(n * 4, 0);

	for (size_t i = 0; i < n; i++)
		p[i] = kernel_random(&seed);
	return p;
}

/* Blocks of 32 values that a head has. */
static unsigned blocks_of(unsigned values) { return (values + 31) / 32; }

/* A state in which lanes past a head's values are +0. */
static float *filled_state(unsigned heads, unsigned rows, unsigned values)
{
	const size_t n = (size_t)heads * blocks_of(values) * rows * 32;
	float *p = filled(n, 6);

	for (size_t i = 0; i < n; i++)
		if (i / 32 / rows % blocks_of(values) * 32 + i % 32 >= values)
			p[i] = 0;
	return p;
}

static uint64_t at(const void *p) { return (uint64_t)(uintptr_t)p; }

static float sigmoid(float x) { return 1.0f / (1.0f + plain_exp(-x)); }
static float silu(float x) { return x / (1.0f + plain_exp(-x)); }

/* ---- convolutions */

struct conv_case {
	unsigned channels, taps;
	bool gated, act, bias;
};

static void plain_conv(const struct conv_case *c, const float *x, const float *x2, const float *w, const float *gate,
                       const float *bias, float *out, float *state)
{
	for (unsigned ch = 0; ch < c->channels; ch++)
		for (unsigned t = 0; t < COLUMNS; t++) {
			size_t i = (size_t)t * c->channels + ch;
			float in = c->gated ? x[i] * x2[i] : x[i], sum = w[ch * c->taps] * state[ch];
			for (unsigned j = 1; j + 1 < c->taps; j++)
				sum = fmaf(w[ch * c->taps + j], state[j * c->channels + ch], sum);
			sum = fmaf(w[ch * c->taps + c->taps - 1], in, sum);
			sum = c->bias ? sum + bias[ch] : sum;
			sum = c->act ? silu(sum) : sum;
			out[i] = c->gated ? sum * gate[i] : sum;
			for (unsigned j = 0; j + 2 < c->taps; j++)
				state[j * c->channels + ch] = state[(j + 1) * c->channels + ch];
			state[(c->taps - 2) * c->channels + ch] = in;
		}
}

static void check_conv(const struct kernel_way *way, const struct conv_case *c)
{
	struct key key = { .kind = KEY_CONV,
		           .k = c->channels,
		           .rows = c->taps,
		           .flags = (c->gated ? KEY_GATED : 0) | (c->bias ? KEY_BIAS : 0),
		           .act = c->act ? ACT_SILU : ACT_NONE };
	size_t n = (size_t)COLUMNS * c->channels, past = (size_t)(c->taps - 1) * c->channels;
	float *x = filled(n, 1), *x2 = filled(n, 2), *w = filled((size_t)c->channels * c->taps, 3),
	      *gate = filled(n, 4), *start = filled(past, 5), *out = kernel_buffer(n * 4, 0xff),
	      *want = kernel_buffer(n * 4, 0), *end = kernel_buffer(past * 4, 0), *bias = filled(c->channels, 6),
	      *state[2] = { kernel_buffer(past * 4, 0), kernel_buffer(past * 4, 0) };
	struct kernel k;

	memcpy(end, start, past * 4);
	plain_conv(c, x, x2, w, gate, bias, want, end);
	kernel_open(&k, way, &key);
	assert_true(k.stats.spills_in_inner_loops == 0 || c->taps > 4);
	for (unsigned cut = 0; cut < CUTS; cut++) {
		unsigned round = 0;
		memcpy(state[0], start, past * 4);
		for (unsigned first = 0; first < COLUMNS; first += cuts[cut], round ^= 1) {
			size_t from = (size_t)first * c->channels;
			uint64_t arg[CONV_ARGS] = {
				[CONV_X] = at(x + from),
				[CONV_X2] = at(x2 + from),
				[CONV_WEIGHT] = at(w),
				[CONV_GATE] = at(gate + from),
				[CONV_OUT] = at(out + from),
				[CONV_BIAS] = at(bias),
				[CONV_STATE_IN] = at(state[round]),
				[CONV_STATE_OUT] = at(state[round ^ 1]),
				[CONV_COLUMNS] = COLUMNS - first < cuts[cut] ? COLUMNS - first : cuts[cut]
			};
			memset(state[round ^ 1], 0xff, past * 4);
			kernel_run(&k, arg, 1, c->channels / 32);
			kernel_run(&k, arg, 0, 1);
		}
		if (memcmp(out, want, n * 4) != 0 || memcmp(state[round], end, past * 4) != 0)
			fail_msg("%s: %u taps over %u channels, %u columns a launch, differ", way->name, c->taps,
			         c->channels, cuts[cut]);
	}
	kernel_close(&k);
	float *all[] = { x, x2, w, gate, start, out, want, end, bias, state[0], state[1] };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static void test_convolutions(void **unused)
{
	static const struct conv_case cases[] = { { 64, 3, true, false, false },  { 96, 4, false, true, false },
		                                  { 32, 2, false, false, false }, { 160, 8, true, true, false },
		                                  { 96, 4, false, true, true },   { 64, 3, true, false, true } };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);

	for (unsigned w = 0; w < ways; w++)
		for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
			check_conv(&way[w], &cases[i]);
}

/* ---- the delta rule */

struct delta_case {
	unsigned heads, key_heads, key_dim, value_dim;
	uint32_t flags;
};

static float scale_of(const float *x, unsigned n)
{
	float part[32] = { 0 };

	for (unsigned i = 0; i < n; i++)
		part[i % 32] = fmaf(x[i], x[i], part[i % 32]);
	for (unsigned by = 16; by; by /= 2)
		for (unsigned l = 0; l < by; l++)
			part[l] = part[l] + part[l + by];
	return 1.0f / sqrtf(part[0] + 1e-6f);
}

struct delta_data {
	unsigned in, heads, out; /* of a column: floats */
	size_t state;            /* floats */
	float *qkv, *a, *b, *decay, *dt, *want, *got, *start, *end, *held[2], *q, *k, *v, *left, scale;
};

static void plain_delta(const struct delta_case *c, const struct delta_data *d, unsigned column, unsigned head)
{
	const unsigned dk = c->key_dim, dv = c->value_dim;
	const unsigned key_head = c->flags & KEY_TILED ? head % c->key_heads : head / (c->heads / c->key_heads);
	const float *q = d->qkv + (size_t)column * d->in + key_head * dk, *k = q + c->key_heads * dk,
		    *v = d->qkv + (size_t)column * d->in + 2 * c->key_heads * dk + head * dv,
		    *left = d->left + ((size_t)column * c->key_heads + key_head) * dk;
	float e = plain_exp(d->decay[head] * plain_softplus(d->a[column * d->heads + head] + d->dt[head])),
	      beta = sigmoid(d->b[column * d->heads + head]), rk = scale_of(k, dk), rq = scale_of(q, dk) * d->scale;

	beta = c->flags & KEY_SCALED ? beta + beta : beta;
	for (unsigned j = 0; j < dv; j++) {
		float *s = d->end + ((size_t)head * blocks_of(dv) + j / 32) * dk * 32 + j % 32, held = 0, sum = 0;
		for (unsigned i = 0; i < dk; i++)
			held = fmaf(s[i * 32] * (c->flags & KEY_OF_ALL ? left[i] : e), k[i] * rk, held);
		float change = (v[j] - held) * beta;
		for (unsigned i = 0; i < dk; i++) {
			s[i * 32] = fmaf(k[i] * rk, change, s[i * 32] * (c->flags & KEY_OF_ALL ? left[i] : e));
			sum = fmaf(s[i * 32], q[i] * rq, sum);
		}
		d->want[(size_t)column * d->out + head * dv + j] = sum;
	}
}

static void make_delta(struct delta_data *d, const struct delta_case *c)
{
	d->in = 2 * c->key_heads * c->key_dim + c->heads * c->value_dim;
	d->heads = (c->heads + 31) / 32 * 32;
	d->out = c->heads * c->value_dim;
	d->state = (size_t)c->heads * c->key_dim * blocks_of(c->value_dim) * 32;
	d->scale = (float)(1 / sqrt((double)c->key_dim));
	d->qkv = filled((size_t)COLUMNS * d->in, 1);
	d->a = filled(COLUMNS * d->heads, 2);
	d->b = filled(COLUMNS * d->heads, 3);
	d->decay = filled(d->heads, 4);
	d->dt = filled(d->heads, 5);
	for (unsigned i = 0; i < d->heads; i++)
		d->decay[i] = -fabsf(d->decay[i]);
	const unsigned keys = c->key_heads * c->key_dim;
	d->q = kernel_buffer((size_t)COLUMNS * keys * 4, 0);
	d->k = kernel_buffer((size_t)COLUMNS * keys * 4, 0);
	d->v = kernel_buffer((size_t)COLUMNS * d->out * 4, 0);
	d->left = filled((size_t)COLUMNS * keys, 7);
	for (size_t i = 0; i < (size_t)COLUMNS * keys; i++)
		d->left[i] = fabsf(d->left[i]);
	for (unsigned t = 0; t < COLUMNS; t++) {
		memcpy(d->q + (size_t)t * keys, d->qkv + (size_t)t * d->in, keys * 4);
		memcpy(d->k + (size_t)t * keys, d->qkv + (size_t)t * d->in + keys, keys * 4);
		memcpy(d->v + (size_t)t * d->out, d->qkv + (size_t)t * d->in + 2 * (size_t)keys, d->out * 4);
	}
	d->start = filled_state(c->heads, c->key_dim, c->value_dim);
	d->want = kernel_buffer((size_t)COLUMNS * d->out * 4, 0);
	d->got = kernel_buffer((size_t)COLUMNS * d->out * 4, 0xff);
	d->end = kernel_buffer(d->state * 4, 0);
	d->held[0] = kernel_buffer(d->state * 4, 0);
	d->held[1] = kernel_buffer(d->state * 4, 0);
	memcpy(d->end, d->start, d->state * 4);
	for (unsigned t = 0; t < COLUMNS; t++)
		for (unsigned h = 0; h < c->heads; h++)
			plain_delta(c, d, t, h);
}

static void drop_delta(struct delta_data *d)
{
	float *all[] = { d->qkv, d->a,       d->b,       d->decay, d->dt, d->want, d->got, d->start,
		         d->end, d->held[0], d->held[1], d->q,     d->k,  d->v,    d->left };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static void check_delta(const struct kernel_way *way, const struct delta_case *c, struct delta_data *d)
{
	struct key key = { .kind = KEY_DELTA,
		           .heads = c->heads,
		           .kv_heads = c->key_heads,
		           .head_dim = c->key_dim,
		           .rows = c->value_dim,
		           .flags = c->flags };
	const int64_t units = c->heads * blocks_of(c->value_dim);
	const bool apart = c->flags & KEY_SORTED;
	const size_t keys = (size_t)c->key_heads * c->key_dim;
	struct kernel k;

	kernel_open(&k, way, &key);
	assert_int_equal(k.stats.spills_in_inner_loops, 0);
	for (unsigned cut = 0; cut < CUTS; cut++) {
		unsigned round = 0;
		memcpy(d->held[0], d->start, d->state * 4);
		for (unsigned first = 0; first < COLUMNS; first += cuts[cut], round ^= 1) {
			uint64_t arg[DELTA_ARGS] = {
				[DELTA_QKV] = at(apart ? d->q + first * keys : d->qkv + (size_t)first * d->in),
				[DELTA_K] = at(apart ? d->k + first * keys : NULL),
				[DELTA_V] = at(apart ? d->v + (size_t)first * d->out : NULL),
				[DELTA_A] =
					at(c->flags & KEY_OF_ALL ? d->left + first * keys : d->a + first * d->heads),
				[DELTA_B] = at(d->b + first * d->heads),
				[DELTA_DECAY] = at(d->decay),
				[DELTA_DT] = at(d->dt),
				[DELTA_OUT] = at(d->got + (size_t)first * d->out),
				[DELTA_STATE_IN] = at(d->held[round]),
				[DELTA_STATE_OUT] = at(d->held[round ^ 1]),
				[DELTA_COLUMNS] = COLUMNS - first < cuts[cut] ? COLUMNS - first : cuts[cut]
			};
			memcpy(&arg[DELTA_SCALE], &d->scale, 4);
			memset(d->held[round ^ 1], 0xff, d->state * 4);
			kernel_run(&k, arg, 1, units);
			kernel_run(&k, arg, 0, 1);
		}
		if (memcmp(d->got, d->want, (size_t)COLUMNS * d->out * 4) != 0 ||
		    memcmp(d->held[round], d->end, d->state * 4) != 0)
			fail_msg("%s: the delta rule of %u heads, %u columns a launch, differs", way->name, c->heads,
			         cuts[cut]);
	}
	kernel_close(&k);
}

static void test_delta_rule(void **unused)
{
	static const struct delta_case cases[] = {
		{ 4, 2, 32, 32, 0 },
		{ 6, 3, 32, 64, KEY_TILED },
		{ 2, 2, 128, 32, KEY_TILED },
		{ 4, 2, 16, 16, KEY_SCALED },
		{ 6, 3, 48, 80, KEY_TILED },
		{ 2, 1, 112, 48, 0 },
		{ 2, 2, 96, 48, KEY_SORTED | KEY_SCALED },
		{ 2, 2, 32, 64, KEY_SORTED | KEY_OF_ALL },
		{ 6, 3, 48, 16, KEY_OF_ALL | KEY_TILED },
	};
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct delta_data d;
		make_delta(&d, &cases[i]);
		for (unsigned w = 0; w < ways; w++)
			check_delta(&way[w], &cases[i], &d);
		drop_delta(&d);
	}
}

/* The plain loops themselves: the same in double precision, from the usual formulas. */
static void test_softplus(void **unused)
{
	for (int i = -4000; i <= 4000; i++) {
		float x = (float)i / 40;
		double want = x > 30 ? (double)x : log1p(exp((double)x));
		if (fabs((double)plain_softplus(x) - want) > 1e-6 * fmax(want, 1e-30))
			fail_msg("softplus(%g) is %.9g, expected %.9g", (double)x, (double)plain_softplus(x), want);
	}
}

/* ---- the selective scan */

struct scan_case {
	unsigned heads, groups, state, values;
	float floor, ceiling;
};
struct scan_data {
	unsigned in, heads, out; /* of a column: floats */
	size_t state;            /* floats */
	float *xbc, *dt, *bias, *decay, *skip, *want, *got, *start, *end, *held[2];
};

static void plain_scan(const struct scan_case *c, const struct scan_data *d, unsigned column, unsigned head)
{
	const unsigned group = head / (c->heads / c->groups), n = c->state, p = c->values;
	const float *x = d->xbc + (size_t)column * d->in + head * p,
		    *k = d->xbc + (size_t)column * d->in + c->heads * p + group * n, *q = k + c->groups * n;
	float step = plain_softplus(d->dt[column * d->heads + head] + d->bias[head]);

	step = step > c->floor ? step : c->floor;
	step = step < c->ceiling ? step : c->ceiling;
	float e = plain_exp(d->decay[head] * step);
	for (unsigned j = 0; j < p; j++) {
		float *s = d->end + ((size_t)head * blocks_of(p) + j / 32) * n * 32 + j % 32, sum = 0, t = x[j] * step;
		for (unsigned i = 0; i < n; i++) {
			s[i * 32] = fmaf(k[i], t, s[i * 32] * e);
			sum = fmaf(s[i * 32], q[i], sum);
		}
		d->want[(size_t)column * d->out + head * p + j] = fmaf(d->skip[head], x[j], sum);
	}
}

static void make_scan(struct scan_data *d, const struct scan_case *c)
{
	d->out = c->heads * c->values;
	d->in = d->out + 2 * c->groups * c->state;
	d->heads = (c->heads + 31) / 32 * 32;
	d->state = (size_t)c->heads * c->state * blocks_of(c->values) * 32;
	d->xbc = filled((size_t)COLUMNS * d->in, 1);
	d->dt = filled(COLUMNS * d->heads, 2);
	d->bias = filled(d->heads, 3);
	d->decay = filled(d->heads, 4);
	d->skip = filled(d->heads, 5);
	for (unsigned i = 0; i < d->heads; i++) {
		d->decay[i] = -fabsf(d->decay[i]);
		d->bias[i] -= c->floor > 0 && i % 2 ? 12.0f : 0.0f; /* so small a step that the floor counts */
	}
	d->start = filled_state(c->heads, c->state, c->values);
	d->want = kernel_buffer((size_t)COLUMNS * d->out * 4, 0);
	d->got = kernel_buffer((size_t)COLUMNS * d->out * 4, 0xff);
	d->end = kernel_buffer(d->state * 4, 0);
	d->held[0] = kernel_buffer(d->state * 4, 0);
	d->held[1] = kernel_buffer(d->state * 4, 0);
	memcpy(d->end, d->start, d->state * 4);
	for (unsigned t = 0; t < COLUMNS; t++)
		for (unsigned h = 0; h < c->heads; h++)
			plain_scan(c, d, t, h);
}

static void drop_scan(struct scan_data *d)
{
	float *all[] = { d->xbc, d->dt,  d->bias,  d->decay,   d->skip,   d->want,
		         d->got, d->end, d->start, d->held[0], d->held[1] };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static void check_scan(const struct kernel_way *way, const struct scan_case *c, struct scan_data *d)
{
	struct key key = {
		.kind = KEY_SCAN, .heads = c->heads, .kv_heads = c->groups, .head_dim = c->state, .rows = c->values
	};
	struct kernel k;

	kernel_open(&k, way, &key);
	assert_int_equal(k.stats.spills_in_inner_loops, 0);
	for (unsigned cut = 0; cut < CUTS; cut++) {
		unsigned round = 0;
		memcpy(d->held[0], d->start, d->state * 4);
		for (unsigned first = 0; first < COLUMNS; first += cuts[cut], round ^= 1) {
			uint64_t arg[SCAN_ARGS] = {
				[SCAN_XBC] = at(d->xbc + (size_t)first * d->in),
				[SCAN_DT] = at(d->dt + first * d->heads),
				[SCAN_DT_BIAS] = at(d->bias),
				[SCAN_DECAY] = at(d->decay),
				[SCAN_SKIP] = at(d->skip),
				[SCAN_OUT] = at(d->got + (size_t)first * d->out),
				[SCAN_STATE_IN] = at(d->held[round]),
				[SCAN_STATE_OUT] = at(d->held[round ^ 1]),
				[SCAN_COLUMNS] = COLUMNS - first < cuts[cut] ? COLUMNS - first : cuts[cut]
			};
			memcpy(&arg[SCAN_FLOOR], &c->floor, 4);
			memcpy(&arg[SCAN_CEILING], &c->ceiling, 4);
			memset(d->held[round ^ 1], 0xff, d->state * 4);
			kernel_run(&k, arg, 1, c->heads * blocks_of(c->values));
			kernel_run(&k, arg, 0, 1);
		}
		if (memcmp(d->got, d->want, (size_t)COLUMNS * d->out * 4) != 0 ||
		    memcmp(d->held[round], d->end, d->state * 4) != 0)
			fail_msg("%s: the scan of %u heads, %u columns a launch, differs", way->name, c->heads,
			         cuts[cut]);
	}
	kernel_close(&k);
}

static void test_scan(void **unused)
{
	static const struct scan_case cases[] = { { 4, 1, 16, 32, 0, INFINITY }, { 6, 3, 32, 64, 0.001f, INFINITY },
		                                  { 2, 2, 128, 32, 0, 0.4f },    { 34, 17, 16, 32, 0.001f, INFINITY },
		                                  { 4, 2, 32, 16, 0, INFINITY }, { 6, 3, 16, 80, 0.001f, 0.75f },
		                                  { 2, 1, 48, 48, 0, INFINITY } };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct scan_data d;
		make_scan(&d, &cases[i]);
		for (unsigned w = 0; w < ways; w++)
			check_scan(&way[w], &cases[i], &d);
		drop_scan(&d);
	}
}

/* ---- gates */

static void test_gates(void **unused)
{
	enum { BLOCKS = 9, N = BLOCKS * 32 };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);
	float *x = filled(N, 7), *gate = filled(N, 8), *out = kernel_buffer(N * 4, 0), *want = kernel_buffer(N * 4, 0);

	for (unsigned round = 0; round < 2 * ways; round++) {
		bool is_silu = round & 1;
		struct key key = { .kind = KEY_GATE, .act = is_silu ? ACT_SILU : ACT_SIGMOID };
		uint64_t arg[GATE_ARGS] = { at(x), at(gate), at(out) };
		struct kernel k;

		for (unsigned i = 0; i < N; i++)
			want[i] = x[i] * (is_silu ? silu(gate[i]) : sigmoid(gate[i]));
		kernel_open(&k, &way[round / 2], &key);
		kernel_run(&k, arg, 5, BLOCKS);
		kernel_run(&k, arg, 0, 5);
		kernel_close(&k);
		assert_memory_equal(out, want, N * 4);
	}
	free(x);
	free(gate);
	free(out);
	free(want);
}

static void test_refusals(void **unused)
{
	kernel_refused(&(struct key){ .kind = KEY_CONV, .k = 48, .rows = 3 });
	kernel_refused(&(struct key){ .kind = KEY_CONV, .k = 64, .rows = 9 });
	kernel_refused(&(struct key){ .kind = KEY_CONV, .k = 64, .rows = 1 });
	kernel_refused(&(struct key){ .kind = KEY_DELTA, .heads = 3, .kv_heads = 2, .head_dim = 32, .rows = 32 });
	kernel_refused(&(struct key){ .kind = KEY_DELTA, .heads = 2, .kv_heads = 2, .head_dim = 40, .rows = 32 });
	kernel_refused(&(struct key){ .kind = KEY_DELTA, .heads = 2, .kv_heads = 2, .head_dim = 32, .rows = 24 });
	kernel_refused(&(struct key){ .kind = KEY_DELTA, .heads = 3, .kv_heads = 3, .head_dim = 32, .rows = 16 });
	kernel_refused(&(struct key){ .kind = KEY_SCAN, .heads = 3, .kv_heads = 2, .head_dim = 32, .rows = 32 });
	kernel_refused(&(struct key){ .kind = KEY_SCAN, .heads = 2, .kv_heads = 2, .head_dim = 24, .rows = 32 });
	kernel_refused(&(struct key){ .kind = KEY_SCAN, .heads = 2, .kv_heads = 2, .head_dim = 32, .rows = 40 });
	kernel_refused(&(struct key){ .kind = KEY_SCAN, .heads = 1, .kv_heads = 1, .head_dim = 32, .rows = 48 });
	kernel_refused(
		&(struct key){ .kind = KEY_SCAN, .heads = 2, .kv_heads = 2, .head_dim = 32, .rows = 32, .flags = 1 });
	kernel_refused(&(struct key){ .kind = KEY_NORM, .heads = 2, .k = 40 });
	kernel_refused(&(struct key){ .kind = KEY_NORM, .heads = 2, .kv_heads = 2, .k = 48 });
	kernel_refused(&(struct key){ .kind = KEY_NORM, .heads = 2, .k = 48, .flags = KEY_RESIDUAL });
	kernel_refused(&(struct key){ .kind = KEY_NORM, .kv_heads = 1, .k = 64 });
	kernel_refused(&(struct key){ .kind = KEY_GATE });
	kernel_refused(&(struct key){ .kind = KEY_GATE, .act = ACT_SILU, .flags = KEY_SCALED });
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_convolutions), cmocka_unit_test(test_delta_rule),
		                            cmocka_unit_test(test_scan),         cmocka_unit_test(test_softplus),
		                            cmocka_unit_test(test_gates),        cmocka_unit_test(test_refusals) };
	kernel_all_modes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

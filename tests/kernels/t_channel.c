/* tests/kernels/t_channel.c - the selective scan of channels (KEY_CHANNEL) against plain loops, bit for bit, for every
 * cut of the columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_attention.h"

enum { COLUMNS = 11, CUTS = 4 };

/* How many columns a launch has. */
static const unsigned cuts[CUTS] = { COLUMNS, 1, 4, 7 };

struct channels {
	unsigned n, rows, narrow; /* narrow: floats of a column's keys */
	size_t state;             /* floats */
	float *x, *dt, *bias, *b, *c, *decay, *skip, *want, *got, *start, *end, *held[2];
};

static float *filled(size_t n, uint64_t seed)
{
	float *p = kernel_buffer(n * 4, 0);

	for (size_t i = 0; i < n; i++)
		p[i] = kernel_random(&seed);
	return p;
}

static uint64_t at(const void *p) { return (uint64_t)(uintptr_t)p; }

static void plain_column(struct channels *d, unsigned column)
{
	const float *b = d->b + (size_t)column * d->narrow, *c = d->c + (size_t)column * d->narrow;

	for (unsigned ch = 0; ch < d->n; ch++) {
		const size_t i = (size_t)column * d->n + ch, first = (size_t)ch / 32 * d->rows * 32 + ch % 32;
		float step = plain_softplus(d->dt[i] + d->bias[ch]), in = d->x[i] * step, sum = 0;
		for (unsigned row = 0; row < d->rows; row++) {
			float *s = d->end + first + (size_t)row * 32;
			*s = fmaf(b[row], in, *s * plain_exp(d->decay[first + (size_t)row * 32] * step));
			sum = fmaf(*s, c[row], sum);
		}
		d->want[i] = fmaf(d->skip[ch], d->x[i], sum);
	}
}

static void make(struct channels *d, unsigned n, unsigned rows)
{
	const size_t all = (size_t)COLUMNS * n;

	*d = (struct channels){ .n = n, .rows = rows, .narrow = (unsigned)numerics_pad(rows) };
	d->state = (size_t)n * rows;
	d->x = filled(all, 1);
	d->dt = filled(all, 2);
	d->bias = filled(n, 3);
	d->b = filled((size_t)COLUMNS * d->narrow, 4);
	d->c = filled((size_t)COLUMNS * d->narrow, 5);
	d->decay = filled(d->state, 6);
	d->skip = filled(n, 7);
	d->start = filled(d->state, 8);
	d->want = kernel_buffer(all * 4, 0);
	d->got = kernel_buffer(all * 4, 0xff);
	d->end = kernel_buffer(d->state * 4, 0);
	d->held[0] = kernel_buffer(d->state * 4, 0);
	d->held[1] = kernel_buffer(d->state * 4, 0);
	for (size_t i = 0; i < d->state; i++)
		d->decay[i] = -fabsf(d->decay[i]);
	memcpy(d->end, d->start, d->state * 4);
	for (unsigned t = 0; t < COLUMNS; t++)
		plain_column(d, t);
}

static void drop(struct channels *d)
{
	float *all[] = { d->x,    d->dt,  d->bias, d->b,     d->c,       d->decay,  d->skip,
		         d->want, d->got, d->end,  d->start, d->held[0], d->held[1] };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static void check(const struct kernel_way *way, struct channels *d)
{
	const struct key key = { .kind = KEY_CHANNEL, .k = d->n, .rows = d->rows };
	struct kernel k;

	kernel_open(&k, way, &key);
	assert_int_equal(k.stats.spills_in_inner_loops, 0);
	for (unsigned cut = 0; cut < CUTS; cut++) {
		unsigned round = 0;
		memcpy(d->held[0], d->start, d->state * 4);
		for (unsigned first = 0; first < COLUMNS; first += cuts[cut], round ^= 1) {
			const size_t wide = (size_t)first * d->n, narrow = (size_t)first * d->narrow;
			const uint64_t arg[CHANNEL_ARGS] = {
				[CHANNEL_X] = at(d->x + wide),
				[CHANNEL_DT] = at(d->dt + wide),
				[CHANNEL_DT_BIAS] = at(d->bias),
				[CHANNEL_B] = at(d->b + narrow),
				[CHANNEL_C] = at(d->c + narrow),
				[CHANNEL_DECAY] = at(d->decay),
				[CHANNEL_SKIP] = at(d->skip),
				[CHANNEL_OUT] = at(d->got + wide),
				[CHANNEL_STATE_IN] = at(d->held[round]),
				[CHANNEL_STATE_OUT] = at(d->held[round ^ 1]),
				[CHANNEL_COLUMNS] = COLUMNS - first < cuts[cut] ? COLUMNS - first : cuts[cut]
			};
			memset(d->held[round ^ 1], 0xff, d->state * 4);
			kernel_run(&k, arg, 1, d->n / 32);
			kernel_run(&k, arg, 0, 1);
		}
		if (memcmp(d->got, d->want, (size_t)COLUMNS * d->n * 4) != 0 ||
		    memcmp(d->held[round], d->end, d->state * 4) != 0)
			fail_msg("%s: the scan of %u channels with %u rows, %u columns a launch, differs", way->name,
			         d->n, d->rows, cuts[cut]);
	}
	kernel_close(&k);
}

static void test_channels(void **unused)
{
	static const unsigned cases[][2] = { { 64, 16 }, { 32, 1 }, { 96, 20 }, { 160, 33 }, { 64, 256 } };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct channels d;
		make(&d, cases[i][0], cases[i][1]);
		for (unsigned w = 0; w < ways; w++)
			check(&way[w], &d);
		drop(&d);
	}
}

static void test_refusals(void **unused)
{
	kernel_refused(&(struct key){ .kind = KEY_CHANNEL, .rows = 16 });
	kernel_refused(&(struct key){ .kind = KEY_CHANNEL, .k = 48, .rows = 16 });
	kernel_refused(&(struct key){ .kind = KEY_CHANNEL, .k = 64 });
	kernel_refused(&(struct key){ .kind = KEY_CHANNEL, .k = 64, .rows = CHANNEL_MAX_STATE + 1 });
	kernel_refused(&(struct key){ .kind = KEY_CHANNEL, .k = (1u << 20) + 32, .rows = 16 });
	kernel_refused(&(struct key){ .kind = KEY_CHANNEL, .k = 64, .rows = 16, .flags = KEY_GATED });
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_channels), cmocka_unit_test(test_refusals) };

	kernel_all_modes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/language/t_kernel_examples.c - the kernels of docs/examples/kernels that no other test runs, on every machine,
 * against plain C: exact where the order is known, else double precision.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/language/kernel_sort_tests.h"
#include "tests/language/run_kernel.h"
#include "tests/support/shared.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

static uint64_t splitmix(uint64_t seed, uint64_t counter)
{
	uint64_t z = seed + counter * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}
static uint32_t word(uint64_t i) { return (uint32_t)(splitmix(1, i) >> 32); }
static float number(uint64_t i, float low, float high)
{
	return low + (high - low) * ((float)(word(i) >> 8) / (1 << 24));
}
static void *fill(const struct run *r, const char *name, unsigned n, unsigned seed, float low, float high)
{
	float *x = run_array(r, name);

	for (unsigned k = 0; k < n; k++)
		x[k] = number(seed * 100000 + k, low, high);
	return x;
}

static const unsigned sizes[] = { 0, 1, 7, 31, 32, 33, 97, 1023, 1024, 1025 };
enum { SIZES = sizeof sizes / sizeof *sizes };
static enum run_machines machines_for(unsigned n) { return n < 98 || n == 1025 ? RUN_CARDS : RUN_CPUS; }

static void open_of_size(struct run *r, const char *example, unsigned n)
{
	char constants[40];

	snprintf(constants, sizeof constants, "n=%u", n);
	run_open_example(r, example, NULL, constants);
}

static void test_silu(void **state)
{
	struct run r;

	for (unsigned s = 0; s < SIZES; s++) {
		open_of_size(&r, "silu", sizes[s]);
		const float *x = fill(&r, "x", sizes[s], s, -20, 20), *y = run_array(&r, "y");
		run_everywhere(&r, machines_for(sizes[s]));
		for (unsigned k = 0; k < sizes[s]; k++) {
			const double want = (double)x[k] / (1 + exp(-(double)x[k]));
			assert_true(fabs((double)y[k] - want) <= 4e-7 * fabs(want));
		}
		run_close(&r);
	}
}

static void check_layernorm(unsigned n)
{
	char constants[40];
	struct run r;

	snprintf(constants, sizeof constants, "rows=3 n=%u", n);
	run_open_example(&r, "layernorm", NULL, constants);
	const float *x = fill(&r, "x", 3 * n, 1, -3, 5), *scale = fill(&r, "scale", n, 2, -2, 2);
	const float *bias = fill(&r, "bias", n, 3, -1, 1), *y = run_array(&r, "y");
	run_everywhere(&r, machines_for(n));
	for (unsigned row = 0; row < 3; row++, x += n, y += n) {
		double mean = 0, variance = 0;
		for (unsigned k = 0; k < n; k++)
			mean += (double)x[k] / n;
		for (unsigned k = 0; k < n; k++)
			variance += ((double)x[k] - mean) * ((double)x[k] - mean) / n;
		for (unsigned k = 0; k < n; k++) {
			const double by = ((double)x[k] - mean) / sqrt(variance + 1e-5);
			assert_true(fabs((double)y[k] - (by * (double)scale[k] + (double)bias[k])) < 1e-5);
		}
	}
	run_close(&r);
}

static void test_layernorm(void **state)
{
	for (unsigned s = 0; s < SIZES; s++)
		check_layernorm(sizes[s]);
}

static void check_matmul(unsigned m, unsigned n, unsigned k, unsigned wide)
{
	char constants[80];
	struct run r;

	snprintf(constants, sizeof constants, "m=%u n=%u k=%u wide=%u", m, n, k, wide);
	run_open_example(&r, "matmul", NULL, constants);
	const float *a = fill(&r, "a", m * k, 1, -1, 1), *b = fill(&r, "b", k * n, 2, -1, 1), *c = run_array(&r, "c");
	run_everywhere(&r, m * n * k < 40000 ? RUN_CARDS : RUN_CPUS);
	for (unsigned y = 0; y < m; y++)
		for (unsigned x = 0; x < n; x++) {
			float want = 0;
			for (unsigned p = 0; p < k; p++)
				want = fmaf(a[y * k + p], b[p * n + x], want);
			assert_memory_equal(&c[y * n + x], &want, 4);
		}
	run_close(&r);
}

static void test_matmul(void **state)
{
	check_matmul(0, 5, 5, 128);
	check_matmul(5, 0, 5, 128);
	check_matmul(5, 5, 0, 128);
	check_matmul(1, 1, 1, 256);
	check_matmul(31, 33, 7, 128);
	check_matmul(3, 97, 32, 256);
	check_matmul(2, 1025, 31, 128);
	/* of four rows, and columns of each choice, one less and one more; cards have 4 and 8 vectors side by side */
	check_matmul(4, 127, 5, 128);
	check_matmul(4, 128, 5, 128);
	check_matmul(5, 129, 5, 128);
	check_matmul(3, 255, 5, 256);
	check_matmul(4, 256, 5, 256);
	check_matmul(5, 257, 5, 256);
	check_matmul(11, 523, 3, 256);
}

static void test_histogram(void **state)
{
	struct run r;

	for (unsigned s = 0; s < SIZES; s++) {
		uint32_t want[256] = { 0 };
		open_of_size(&r, "histogram", sizes[s]);
		uint32_t *x = run_array(&r, "x");
		for (unsigned k = 0; k < sizes[s]; k++) {
			x[k] = word(k) >> (k % 3 ? 0 : 6); /* many of a few bins */
			want[x[k] >> 24]++;
		}
		run_everywhere(&r, machines_for(sizes[s]));
		assert_memory_equal(run_array(&r, "bins"), want, sizeof want);
		run_close(&r);
	}
}

static void check_sums(const uint32_t *x, const uint32_t *y, unsigned n)
{
	uint32_t sum = 0;

	for (unsigned k = 0; k < n; k++) {
		sum += x[k];
		assert_int_equal(y[k], sum);
	}
}

static void open_scan(struct run *r, const char *kernel, unsigned n, unsigned part)
{
	char constants[40];

	snprintf(constants, sizeof constants, "n=%u part=%u", n, part);
	run_open_example(r, "prefix_sum", kernel, constants);
	uint32_t *x = run_array(r, "x");
	for (unsigned k = 0; k < n; k++)
		x[k] = word(k);
}

/* In two launches, as on a card. */
static void check_parts(unsigned n, unsigned part)
{
	struct run totals, parts;

	open_scan(&totals, "totals", n, part);
	run_everywhere(&totals, machines_for(n));
	open_scan(&parts, "parts", n, part);
	memcpy(run_array(&parts, "total"), run_array(&totals, "total"), (n + part - 1) / part * sizeof(uint32_t));
	run_everywhere(&parts, machines_for(n));
	check_sums(run_array(&parts, "x"), run_array(&parts, "y"), n);
	run_close(&totals);
	run_close(&parts);
}

static void test_prefix_sum(void **state)
{
	struct run r;

	for (unsigned s = 0; s < SIZES; s++) {
		open_scan(&r, "prefix_sum", sizes[s], 1);
		run_everywhere(&r, machines_for(sizes[s]));
		check_sums(run_array(&r, "x"), run_array(&r, "y"), sizes[s]);
		run_close(&r);
		check_parts(sizes[s], 1024);
		check_parts(sizes[s], 31);
	}
	check_parts(2049, 1024);
}

/* --- options */

static double tree(double s, double x, double t, double r, double v, int steps)
{
	const double dt = t / steps, up = exp(v * sqrt(dt)), down = 1 / up, interest = exp(r * dt);
	const double chance = (interest - down) / (up - down);
	double value[64];

	for (int k = 0; k < steps; k++)
		value[k] = fmax(0, x - s * pow(up, 2 * k - steps));
	for (int j = steps - 1; j > 0; j--)
		for (int k = 0; k < j; k++)
			value[k] = ((1 - chance) * value[k] + chance * value[k + 1]) / interest;
	return value[0];
}

static void check_binomial(unsigned n, int steps)
{
	char constants[40];
	struct run q;

	snprintf(constants, sizeof constants, "n=%u steps=%d", n, steps);
	run_open_example(&q, "binomial", NULL, constants);
	const float *s = fill(&q, "s", n, 1, 50, 150), *x = fill(&q, "x", n, 2, 50, 150);
	const float *t = fill(&q, "t", n, 3, 0.25f, 2), *r = fill(&q, "r", n, 4, 0.01f, 0.05f);
	const float *v = fill(&q, "v", n, 5, 0.1f, 0.6f), *o = run_array(&q, "o");
	run_everywhere(&q, machines_for(n));
	for (unsigned k = 0; k < n; k++) {
		const double want = tree((double)s[k], (double)x[k], (double)t[k], (double)r[k], (double)v[k], steps);
		assert_true(fabs((double)o[k] - want) < 2e-3);
	}
	run_close(&q);
}

static void test_binomial(void **state)
{
	check_binomial(0, 64);
	check_binomial(1, 64);
	check_binomial(7, 1);
	check_binomial(31, 2);
	check_binomial(32, 3);
	check_binomial(33, 16);
	check_binomial(97, 31);
}

/* --- the spiking network: a plain one, in which spikes go out to their targets */

enum { NEURONS = 97, SYNAPSES = 4 };

struct network {
	unsigned n;
	double v[NEURONS], se[NEURONS], si[NEURONS];
	uint8_t rest[NEURONS], spiked[NEURONS];
	uint32_t spikes[NEURONS];
};

static unsigned target_of(unsigned n, unsigned i, unsigned k)
{
	const unsigned t = (unsigned)(splitmix(UINT64_C(0xdeadbeef12345678), i * SYNAPSES + k) % n);

	return t == i ? (t + 1) % n : t;
}

static void deliver(struct network *w)
{
	const unsigned excitatory = w->n / 5 * 4;

	for (unsigned i = 0; i < w->n; i++)
		for (unsigned k = 0; w->spiked[i] && k < SYNAPSES; k++) {
			const unsigned t = target_of(w->n, i, k);
			if (i < excitatory)
				w->se[t] += t < excitatory ? 0.2 : 0.3;
			else
				w->si[t] += 0.3;
		}
}

static void advance(struct network *w)
{
	const double dt = 0.1;

	deliver(w);
	for (unsigned i = 0; i < w->n; i++) {
		w->se[i] -= w->se[i] * (dt / 10);
		w->si[i] -= w->si[i] * (dt / 5);
		w->spiked[i] = 0;
		if (w->rest[i]) {
			w->rest[i]--;
			w->v[i] = -70;
			continue;
		}
		const double drive = 45 + (double)i * (20 / (double)w->n) + w->se[i] * 1.0 - w->si[i] * 1.0;
		w->v[i] += dt * (-65 - w->v[i] + drive) / 10;
		if (w->v[i] >= -50) {
			w->v[i] = -70;
			w->rest[i] = 20;
			w->spiked[i] = 1;
			w->spikes[i]++;
		}
	}
}

static void put_state(const struct run *r, const struct network *w)
{
	memcpy(run_array(r, "v"), w->v, w->n * sizeof *w->v);
	memcpy(run_array(r, "se"), w->se, w->n * sizeof *w->se);
	memcpy(run_array(r, "si"), w->si, w->n * sizeof *w->si);
	memcpy(run_array(r, "rest"), w->rest, w->n);
	uint32_t *spiked = run_array(r, "spiked"), *next = run_array(r, "next"), *clear = run_array(r, "clear");
	for (unsigned k = 0; k < (w->n + 31) / 32; k++) {
		spiked[k] = next[k] = 0;
		clear[k] = 0x12345678;
	}
	for (unsigned i = 0; i < w->n; i++)
		spiked[i / 32] |= (uint32_t)(w->spiked[i] != 0) << i % 32;
	memcpy(run_array(r, "spikes"), w->spikes, w->n * sizeof *w->spikes);
}

static void check_state(const struct run *r, const struct network *w)
{
	assert_memory_equal(run_array(r, "v"), w->v, w->n * sizeof *w->v);
	assert_memory_equal(run_array(r, "se"), w->se, w->n * sizeof *w->se);
	assert_memory_equal(run_array(r, "si"), w->si, w->n * sizeof *w->si);
	assert_memory_equal(run_array(r, "rest"), w->rest, w->n);
	const uint32_t *next = run_array(r, "next"), *clear = run_array(r, "clear");
	for (unsigned i = 0; i < w->n; i++)
		assert_int_equal(next[i / 32] >> i % 32 & 1, w->spiked[i] != 0);
	for (unsigned k = 0; k < (w->n + 31) / 32; k++)
		assert_int_equal(clear[k], 0);
	assert_memory_equal(run_array(r, "spikes"), w->spikes, w->n * sizeof *w->spikes);
}

static void check_network(unsigned n, enum run_machines machines)
{
	struct network w = { .n = n };
	struct run r;
	unsigned edges = 0, compared = 0;

	open_of_size(&r, "snn", n);
	uint32_t *first = run_array(&r, "first"), *source = run_array(&r, "source");
	for (unsigned t = 0; t < n; t++) {
		w.v[t] = -65;
		first[t] = edges;
		for (unsigned i = 0; i < n; i++)
			for (unsigned k = 0; k < SYNAPSES; k++)
				if (target_of(n, i, k) == t)
					source[edges++] = i;
	}
	first[n] = edges;
	for (unsigned t = 0; t < 110; t++) {
		unsigned before = 0;
		for (unsigned i = 0; i < n; i++)
			before += w.spiked[i] != 0;
		const bool compare = t == 0 || (before && compared < 4);
		if (compare)
			put_state(&r, &w);
		advance(&w);
		if (compare) {
			run_everywhere(&r, machines);
			check_state(&r, &w);
			compared++;
		}
	}
	assert_true(n == 0 || compared > 1);
	/* all edges at once, and each neuron in another state */
	for (unsigned i = 0; i < n; i++) {
		w.spiked[i] = 1;
		w.rest[i] = (uint8_t)(word(i) % 3);
		w.v[i] = (double)number(i, -70, -49);
		w.se[i] = (double)number(i + 1000, 0, 2);
		w.si[i] = (double)number(i + 2000, 0, 2);
	}
	put_state(&r, &w);
	advance(&w);
	run_everywhere(&r, machines);
	check_state(&r, &w);
	run_close(&r);
}

static void test_network(void **state)
{
	check_network(0, RUN_CARDS);
	check_network(1, RUN_CARDS);
	check_network(33, RUN_CARDS);
	check_network(NEURONS, RUN_CARDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silu),          cmocka_unit_test(test_layernorm),
		cmocka_unit_test(test_matmul),        cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_binomial),      cmocka_unit_test(test_prefix_sum),
		cmocka_unit_test(test_network),       cmocka_unit_test(kernel_sort_steps),
		cmocka_unit_test(kernel_sort_merges),
	};

	return cmocka_run_group_tests_name("t_kernel_examples", tests, NULL, NULL);
}

/* bench/eml/levels.c - levels of eml(x, y) as plain loops in C, beside jiteml's kernels: a line of JSON for each size.
 *
 *   gcc -O2 -o levels levels.c -lm && ./levels 17
 *
 * "kernel_seconds" is processor time for the hashes of all trees, "processor_seconds" for all of it.
 */
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POINTS = 3, SIZES = 32, CHUNK = 1 << 16 };
static const double at[POINTS] = { 0.57721566490153286061, 0.58578643762690495120, 0.56714329040978387300 };

struct value {
	double complex e[POINTS], l[POINTS];
};
struct level {
	struct value *value;
	uint32_t *left, *right;
	size_t n;
};
static struct level level[SIZES];
static uint64_t *slot, slots = 1 << 24, hash[CHUNK];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t mix(uint64_t h, double x)
{
	uint64_t bits, m;

	memcpy(&bits, &x, sizeof bits);
	m = (h ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
	return m << 29 | m >> 35;
}

static uint64_t hash_of(const struct value *a, const struct value *b)
{
	uint64_t h = 0, bits;

	for (int p = 0; p < POINTS; p++) {
		const double re = creal(a->e[p]) - creal(b->l[p]), im = cimag(a->e[p]) - cimag(b->l[p]);
		const double high = fmax(fmax(fabs(re), fabs(im)), 0.0078125);
		double grid;
		if (isnan(re) || isnan(im))
			return 0;
		memcpy(&bits, &high, sizeof bits);
		bits &= UINT64_C(0x7ff0000000000000);
		memcpy(&grid, &bits, sizeof grid);
		grid *= 1572864;
		h = mix(mix(h, (re + grid) - grid), (im + grid) - grid);
	}
	h = (h ^ h >> 32) * UINT64_C(0x94d049bb133111eb);
	h ^= h >> 29;
	return h ? h : 1;
}

static int is_new(uint64_t h)
{
	for (uint64_t i = h & (slots - 1);; i = (i + 1) & (slots - 1)) {
		if (slot[i] == h)
			return 0;
		if (!slot[i]) {
			slot[i] = h;
			return 1;
		}
	}
}

static void add(struct level *v, const double complex z[POINTS])
{
	struct value *out = &v->value[v->n++];
	int left = 1, right = 1;

	for (int p = 0; p < POINTS; p++) {
		left &= fabs(creal(z[p])) <= 12;
		right &= cabs(z[p]) > 1e-11;
	}
	for (int p = 0; p < POINTS; p++) {
		const double complex w =
			fabs(cimag(z[p])) <= fmax(1e-11 * fabs(creal(z[p])), 1e-13) ? creal(z[p]) + 0.0 * I : z[p];
		out->e[p] = left ? cexp(w) : NAN;
		out->l[p] = right ? clog(w) : NAN;
	}
}

static void next(int size)
{
	struct level *v = &level[size];
	size_t trees = 0;
	const double begun = now();
	double hashes = 0;

	for (int i = 1; i + 2 <= size; i += 2)
		trees += level[i].n * level[size - 1 - i].n;
	v->value = malloc(trees * sizeof *v->value);
	for (int i = 1; i + 2 <= size; i += 2) {
		const struct level *a = &level[i], *b = &level[size - 1 - i];
		for (size_t from = 0; from < a->n * b->n; from += CHUNK) {
			const size_t n = a->n * b->n - from < CHUNK ? a->n * b->n - from : CHUNK;
			const double t = now();
			for (size_t k = 0; k < n; k++)
				hash[k] = hash_of(&a->value[(from + k) / b->n], &b->value[(from + k) % b->n]);
			hashes += now() - t;
			for (size_t k = 0; k < n; k++) {
				const struct value *x = &a->value[(from + k) / b->n], *y = &b->value[(from + k) % b->n];
				double complex z[POINTS];
				if (!hash[k] || !is_new(hash[k]))
					continue;
				for (int p = 0; p < POINTS; p++)
					z[p] = x->e[p] - y->l[p];
				add(v, z);
			}
		}
	}
	printf("{\"size\":%d,\"trees\":%zu,\"values\":%zu,\"processor_seconds\":%.6f,\"kernel_seconds\":%.6f}\n", size,
	       trees, v->n, now() - begun, hashes);
}

int main(int argc, char **argv)
{
	const int largest = argc > 1 ? atoi(argv[1]) : 17;
	double complex one[POINTS], x[POINTS];

	slot = calloc(slots, sizeof *slot);
	level[1].value = malloc(2 * sizeof *level[1].value);
	for (int p = 0; p < POINTS; p++) {
		one[p] = 1;
		x[p] = at[p];
	}
	add(&level[1], one);
	add(&level[1], x);
	for (int k = 0; k < 2; k++) {
		uint64_t h = 0;
		for (int p = 0; p < POINTS; p++) {
			const double re = k ? at[p] : 1, high = re;
			uint64_t bits;
			double grid;
			memcpy(&bits, &high, sizeof bits);
			bits &= UINT64_C(0x7ff0000000000000);
			memcpy(&grid, &bits, sizeof grid);
			grid *= 1572864;
			h = mix(mix(h, (re + grid) - grid), 0);
		}
		h = (h ^ h >> 32) * UINT64_C(0x94d049bb133111eb);
		is_new(h ^ h >> 29);
	}
	for (int size = 3; size <= largest && size < SIZES; size += 2)
		next(size);
	return 0;
}

/* bench/kernels/serial.c - the examples of docs/examples/kernels as plain loops, for one core and no vectors: what
 * compare.py compares with. Built by compare.py: gcc -O2 -ffp-contract=off serial.c -lm.
 *
 * Rule for editors: the same computation in the same order as the example, written as one would write it in C. Nothing
 * is tuned: ISPC's published ratios are against such files.
 */
#define _GNU_SOURCE
#include <math.h>

#include "worker.h"

#define ARRAY(type, i) ((type *)(void *)c->array[i].data)

/* ---- mandelbrot */

static int iterations_of(float c_re, float c_im, int max)
{
	float re = c_re, im = c_im;
	int k;

	for (k = 0; k < max; k++) {
		if (re * re + im * im > 4.f)
			break;
		const float new_re = re * re - im * im, new_im = 2.f * re * im;
		re = c_re + new_re;
		im = c_im + new_im;
	}
	return k;
}

static void mandelbrot(const struct worker_case *c)
{
	const int width = (int)worker_constant(c, "width"), height = (int)worker_constant(c, "height");
	const float dx = (1.f - -2.f) / (float)width, dy = (1.f - -1.f) / (float)height;
	int *o = ARRAY(int, 0);

	for (int j = 0; j < height; j++)
		for (int i = 0; i < width; i++)
			o[j * width + i] = iterations_of(-2.f + (float)i * dx, -1.f + (float)j * dy, 256);
}

/* ---- noise */

static float grad(const int *perm, int x, int y, int z, float dx, float dy, float dz)
{
	const int h = perm[perm[perm[x] + y] + z] & 15;
	const float u = h < 8 || h == 12 || h == 13 ? dx : dy;
	const float v = h < 4 || h == 12 || h == 13 ? dy : dz;

	return ((h & 1) != 0 ? -u : u) + ((h & 2) != 0 ? -v : v);
}

static float weight(float t)
{
	const float t3 = t * t * t, t4 = t3 * t;

	return 6 * t4 * t - 15 * t4 + 10 * t3;
}

static float lerp_of(float t, float low, float high) { return (1 - t) * low + t * high; }

static float noise_at(const int *perm, float x, float y, float z)
{
	const int ix = (int)floorf(x), iy = (int)floorf(y), iz = (int)floorf(z);
	const float dx = x - (float)ix, dy = y - (float)iy, dz = z - (float)iz;
	const int jx = ix & 255, jy = iy & 255, jz = iz & 255;
	const float w000 = grad(perm, jx, jy, jz, dx, dy, dz);
	const float w100 = grad(perm, jx + 1, jy, jz, dx - 1, dy, dz);
	const float w010 = grad(perm, jx, jy + 1, jz, dx, dy - 1, dz);
	const float w110 = grad(perm, jx + 1, jy + 1, jz, dx - 1, dy - 1, dz);
	const float w001 = grad(perm, jx, jy, jz + 1, dx, dy, dz - 1);
	const float w101 = grad(perm, jx + 1, jy, jz + 1, dx - 1, dy, dz - 1);
	const float w011 = grad(perm, jx, jy + 1, jz + 1, dx, dy - 1, dz - 1);
	const float w111 = grad(perm, jx + 1, jy + 1, jz + 1, dx - 1, dy - 1, dz - 1);
	const float wx = weight(dx), wy = weight(dy), wz = weight(dz);
	const float x00 = lerp_of(wx, w000, w100), x10 = lerp_of(wx, w010, w110);
	const float x01 = lerp_of(wx, w001, w101), x11 = lerp_of(wx, w011, w111);

	return lerp_of(wz, lerp_of(wy, x00, x10), lerp_of(wy, x01, x11));
}

static void noise(const struct worker_case *c)
{
	const int width = (int)worker_constant(c, "width"), height = (int)worker_constant(c, "height");
	const float dx = (10.f - -10.f) / (float)width, dy = (10.f - -10.f) / (float)height;
	const int *perm = ARRAY(int, 0);
	float *o = ARRAY(float, 1);

	for (int j = 0; j < height; j++)
		for (int i = 0; i < width; i++) {
			const float x = -10.f + (float)i * dx, y = -10.f + (float)j * dy;
			float lambda = 1, o1 = 1, sum = 0;
			for (int k = 0; k < 8; k++) {
				sum += fabsf(o1 * noise_at(perm, lambda * x, lambda * y, lambda * 0.6f));
				lambda *= 1.99f;
				o1 *= 0.6f;
			}
			o[j * width + i] = sum * 0.5f;
		}
}

/* ---- stencil */

static void stencil(const struct worker_case *c)
{
	const long n = worker_constant(c, "n"), p = n * n;
	const float *all = ARRAY(float, 0), *vsq = ARRAY(float, 1);
	float *o = ARRAY(float, 2);

	for (long z = 4; z < n - 4; z++)
		for (long y = 4; y < n - 4; y++)
			for (long x = 4; x < n - 4; x++) {
				const long i = (z * n + y) * n + x;
				const float *a = all + i;
				const float div =
					0.5f * a[0] - 0.25f * (a[1] + a[-1] + a[n] + a[-n] + a[p] + a[-p]) +
					0.125f * (a[2] + a[-2] + a[2 * n] + a[-2 * n] + a[2 * p] + a[-2 * p]) +
					-0.0625f * (a[3] + a[-3] + a[3 * n] + a[-3 * n] + a[3 * p] + a[-3 * p]);
				o[i] = 2 * a[0] - o[i] + vsq[i] * div;
			}
}

/* ---- options */

static float cnd(float x)
{
	const float l = fabsf(x), k = 1.f / (1.f + 0.2316419f * l);
	const float k2 = k * k, k3 = k2 * k, k4 = k2 * k2, k5 = k3 * k2;
	float w = 0.31938153f * k - 0.356563782f * k2 + 1.781477937f * k3 - 1.821255978f * k4 + 1.330274429f * k5;

	w *= 0.39894228040f * expf(-l * l * 0.5f);
	return x > 0 ? 1 - w : w;
}

static void black_scholes(const struct worker_case *c)
{
	const long n = worker_constant(c, "n");
	const float *s = ARRAY(float, 0), *x = ARRAY(float, 1), *t = ARRAY(float, 2), *r = ARRAY(float, 3),
		    *v = ARRAY(float, 4);
	float *o = ARRAY(float, 5);

	for (long i = 0; i < n; i++) {
		const float root = sqrtf(t[i]);
		const float d1 = (logf(s[i] / x[i]) + (r[i] + v[i] * v[i] * 0.5f) * t[i]) / (v[i] * root);
		const float d2 = d1 - v[i] * root;
		o[i] = s[i] * cnd(d1) - x[i] * expf(-r[i] * t[i]) * cnd(d2);
	}
}

enum { STEPS = 64 };

static float binomial_of(float s, float x, float t, float r, float v)
{
	float value[STEPS];
	const float dt = t / STEPS, up = expf(v * sqrtf(dt)), down = 1 / up, interest = expf(r * dt);
	const float chance = (interest - down) / (up - down);

	for (int j = 0; j < STEPS; j++) {
		const float price = s * powf(up, (float)(2 * j - STEPS));
		value[j] = 0 < x - price ? x - price : 0;
	}
	for (int j = 1; j < STEPS; j++)
		for (int k = 0; k < STEPS - j; k++)
			value[k] = ((1 - chance) * value[k] + chance * value[k + 1]) / interest;
	return value[0];
}

static void binomial(const struct worker_case *c)
{
	const long n = worker_constant(c, "n");
	const float *s = ARRAY(float, 0), *x = ARRAY(float, 1), *t = ARRAY(float, 2), *r = ARRAY(float, 3),
		    *v = ARRAY(float, 4);
	float *o = ARRAY(float, 5);

	for (long i = 0; i < n; i++)
		o[i] = binomial_of(s[i], x[i], t[i], r[i], v[i]);
}

/* ---- vectors, rows and matrices */

static void saxpy(const struct worker_case *c)
{
	const long n = worker_constant(c, "n");
	const float a = (float)c->array[0].value, *x = ARRAY(float, 1);
	float *y = ARRAY(float, 2);

	for (long i = 0; i < n; i++)
		y[i] = a * x[i] + y[i];
}

static void silu(const struct worker_case *c)
{
	const long n = worker_constant(c, "n");
	const float *x = ARRAY(float, 0);
	float *y = ARRAY(float, 1);

	for (long i = 0; i < n; i++)
		y[i] = x[i] / (1 + expf(-x[i]));
}

static void softmax(const struct worker_case *c)
{
	const long rows = worker_constant(c, "rows"), n = worker_constant(c, "n");

	for (long r = 0; r < rows; r++) {
		const float *x = ARRAY(float, 0) + r * n;
		float *y = ARRAY(float, 1) + r * n, m = -INFINITY, s = 0;
		for (long j = 0; j < n; j++)
			m = m > x[j] ? m : x[j];
		for (long j = 0; j < n; j++)
			s += expf(x[j] - m);
		for (long j = 0; j < n; j++)
			y[j] = expf(x[j] - m) * (1 / s);
	}
}

static void layernorm(const struct worker_case *c)
{
	const long rows = worker_constant(c, "rows"), n = worker_constant(c, "n");
	const float *scale = ARRAY(float, 1), *bias = ARRAY(float, 2);

	for (long r = 0; r < rows; r++) {
		const float *x = ARRAY(float, 0) + r * n;
		float *y = ARRAY(float, 3) + r * n, mean = 0, variance = 0;
		for (long j = 0; j < n; j++)
			mean += x[j];
		mean /= (float)n;
		for (long j = 0; j < n; j++)
			variance += (x[j] - mean) * (x[j] - mean);
		const float by = 1 / sqrtf(variance / (float)n + 0.00001f);
		for (long j = 0; j < n; j++)
			y[j] = (x[j] - mean) * by * scale[j] + bias[j];
	}
}

static void matmul(const struct worker_case *c)
{
	const long m = worker_constant(c, "m"), n = worker_constant(c, "n"), k = worker_constant(c, "k");
	const float *a = ARRAY(float, 0), *b = ARRAY(float, 1);
	float *o = ARRAY(float, 2);

	for (long y = 0; y < m; y++)
		for (long x = 0; x < n; x++) {
			float s = 0;
			for (long p = 0; p < k; p++)
				s += a[y * k + p] * b[p * n + x];
			o[y * n + x] = s;
		}
}

/* ---- integers */

static void histogram(const struct worker_case *c)
{
	const long n = worker_constant(c, "n");
	const uint32_t *x = ARRAY(uint32_t, 0);
	uint32_t *bins = ARRAY(uint32_t, 1);

	for (long i = 0; i < n; i++)
		bins[x[i] >> 24]++;
}

static void prefix_sum(const struct worker_case *c)
{
	const long n = worker_constant(c, "n");
	const uint32_t *x = ARRAY(uint32_t, 0);
	uint32_t *y = ARRAY(uint32_t, 1), sum = 0;

	for (long j = 0; j < n; j++)
		y[j] = sum += x[j];
}

static int in_order(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void sort(const struct worker_case *c)
{
	const long n = worker_constant(c, "n");

	memcpy(c->array[2].data, c->array[1].data, (size_t)n * 4);
	qsort(c->array[2].data, (size_t)n, 4, in_order);
}

/* ---- one step of the spiking network */

static void snn(const struct worker_case *c)
{
	const long n = worker_constant(c, "n"), excitatory = n / 5 * 4;
	const uint32_t *first = ARRAY(uint32_t, 0), *source = ARRAY(uint32_t, 1), *spiked = ARRAY(uint32_t, 2);
	uint32_t *next = ARRAY(uint32_t, 3), *clear = ARRAY(uint32_t, 4), *spikes = ARRAY(uint32_t, 9);
	double *v = ARRAY(double, 5), *se = ARRAY(double, 6), *si = ARRAY(double, 7);
	uint8_t *rest = ARRAY(uint8_t, 8);

	memset(clear, 0, (size_t)(n + 31) / 32 * 4);
	for (long i = 0; i < n; i++) {
		double e = se[i], h = si[i];
		const double weight_in = i < excitatory ? 0.2 : 0.3;
		for (uint32_t k = first[i]; k < first[i + 1]; k++)
			if (spiked[source[k] >> 5] >> (source[k] & 31) & 1) {
				if (source[k] < (uint32_t)excitatory)
					e += weight_in;
				else
					h += 0.3;
			}
		e -= e * (0.1 / 10);
		h -= h * (0.1 / 5);
		se[i] = e;
		si[i] = h;
		const unsigned waits = rest[i];
		const double drive = 45 + (double)i * (20 / (double)n) + e * 1.0 - h * 1.0;
		const double moved = v[i] + 0.1 * (-65 - v[i] + drive) / 10;
		const bool spike = waits == 0 && moved >= -50;
		v[i] = waits != 0 || spike ? -70 : moved;
		rest[i] = (uint8_t)(waits ? waits - 1 : spike ? 20 : 0);
		if (spike) {
			next[i >> 5] |= UINT32_C(1) << (i & 31);
			spikes[i]++;
		}
	}
}

/* ---- the worker */

static const struct {
	const char *name;
	void (*run)(const struct worker_case *c);
} all[] = { { "mandelbrot", mandelbrot },
	    { "noise", noise },
	    { "stencil", stencil },
	    { "binomial", binomial },
	    { "saxpy", saxpy },
	    { "black_scholes", black_scholes },
	    { "silu", silu },
	    { "softmax", softmax },
	    { "layernorm", layernorm },
	    { "matmul", matmul },
	    { "histogram", histogram },
	    { "prefix_sum", prefix_sum },
	    { "bitonic_sort", sort },
	    { "snn", snn } };

static size_t number_of(const struct worker_case *c)
{
	size_t i = 0;

	while (i < sizeof all / sizeof *all && strcmp(all[i].name, c->name) != 0)
		i++;
	return i;
}

static const char *open_case(struct worker_case *c)
{
	return number_of(c) == sizeof all / sizeof *all ? "there is no such example" : NULL;
}

static bool run_case(struct worker_case *c)
{
	all[number_of(c)].run(c);
	return true;
}

int main(void)
{
	const struct worker w = { open_case, run_case, NULL, NULL, NULL };

	return worker_main(&w);
}

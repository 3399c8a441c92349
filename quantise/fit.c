#include "quantise/fit.h"

#include <immintrin.h>

enum { TRIES = 8, ROUNDS = 4 }; /* scales on each side of the plain one; steps from the best of them */
static const float try_step = 0.025f;

static float sum_of(__m128 v)
{
	__m128 pairs = _mm_add_ps(v, _mm_movehl_ps(v, v));

	return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_shuffle_ps(pairs, pairs, 1)));
}

/* The nearest levels; halves go to the even integer, or to the lower of a list. */
static inline __m128 nearest(const struct fit_levels *l, __m128 v)
{
	if (!l->listed) {
		v = _mm_min_ps(_mm_max_ps(v, _mm_set1_ps(l->min)), _mm_set1_ps(l->max));
		return _mm_cvtepi32_ps(_mm_cvtps_epi32(v));
	}
	__m128 level = _mm_set1_ps(l->list[0]);
	for (int i = 1; i < l->listed; i++) {
		float low = l->list[i - 1], high = l->list[i];
		__m128 above = _mm_cmpgt_ps(v, _mm_set1_ps((low + high) * 0.5f));
		level = _mm_add_ps(level, _mm_and_ps(above, _mm_set1_ps(high - low)));
	}
	return level;
}

/* ---- a scale */

struct moments {
	float xq, qq; /* sums of w x q, w q q */
};

static struct moments moments_at(const struct fit_levels *l, float inverse, const float *x, const float *w, int n)
{
	__m128 xq = _mm_setzero_ps(), qq = xq;

	for (int i = 0; i < n; i += 4) {
		__m128 xs = _mm_loadu_ps(x + i), q = nearest(l, _mm_mul_ps(xs, _mm_set1_ps(inverse)));
		__m128 wq = _mm_mul_ps(_mm_loadu_ps(w + i), q);
		xq = _mm_add_ps(xq, _mm_mul_ps(wq, xs));
		qq = _mm_add_ps(qq, _mm_mul_ps(wq, q));
	}
	return (struct moments){ sum_of(xq), sum_of(qq) };
}

/* By how much a scale of xq / qq lowers the error, from that of all zeros. */
static float gain_of(struct moments m) { return m.qq > 0 ? m.xq * m.xq / m.qq : 0; }

static float largest(const float *x, int n)
{
	float max = 0;

	for (int i = 0; i < n; i++)
		if (__builtin_fabsf(x[i]) > __builtin_fabsf(max))
			max = x[i];
	return max;
}

float fit_scale(const struct fit_levels *l, const float *x, const float *w, int n)
{
	float extreme = largest(x, n), gain = 0;
	struct moments best = { 0, 0 };

	if (extreme == 0)
		return 0;
	for (int end = 0; end < 2; end++)
		for (int t = -TRIES; t <= TRIES; t += l->listed ? 2 : 1) { /* lists take longer */
			float level = (end ? l->max : l->min) * (1 + try_step * (float)t);
			struct moments m = moments_at(l, level / extreme, x, w, n);
			if (gain_of(m) > gain) {
				gain = gain_of(m);
				best = m;
			}
		}
	for (int r = 0; r < ROUNDS && gain > 0; r++) {
		struct moments m = moments_at(l, best.qq / best.xq, x, w, n);
		if (gain_of(m) <= gain)
			break;
		gain = gain_of(m);
		best = m;
	}
	return gain > 0 ? best.xq / best.qq : 0;
}

/* ---- a scale and a minimum */

struct line_moments {
	float w, x, q, qq, xq;
};

static struct line_moments line_moments_at(float max, float inverse, float minimum, const float *x, const float *w,
                                           int n)
{
	const struct fit_levels l = { .min = 0, .max = max };
	__m128 sw = _mm_setzero_ps(), sx = sw, sq = sw, sqq = sw, sxq = sw;

	for (int i = 0; i < n; i += 4) {
		__m128 xs = _mm_loadu_ps(x + i), ws = _mm_loadu_ps(w + i);
		__m128 q = nearest(&l, _mm_mul_ps(_mm_sub_ps(xs, _mm_set1_ps(minimum)), _mm_set1_ps(inverse)));
		__m128 wq = _mm_mul_ps(ws, q);
		sw = _mm_add_ps(sw, ws);
		sx = _mm_add_ps(sx, _mm_mul_ps(ws, xs));
		sq = _mm_add_ps(sq, wq);
		sqq = _mm_add_ps(sqq, _mm_mul_ps(wq, q));
		sxq = _mm_add_ps(sxq, _mm_mul_ps(wq, xs));
	}
	return (struct line_moments){ sum_of(sw), sum_of(sx), sum_of(sq), sum_of(sqq), sum_of(sxq) };
}

/* The best line for given levels; the gain is from the error of all zeros. */
static double solve(const struct line_moments *m, bool not_above, struct fit_line *out)
{
	double w = m->w, x = m->x, q = m->q, qq = m->qq, xq = m->xq, det = w * qq - q * q, scale = 0, minimum = 0;

	if (det > 1e-6 * w * qq) {
		scale = (w * xq - q * x) / det;
		minimum = (qq * x - q * xq) / det;
	} else if (w > 0) {
		minimum = x / w;
	}
	if (not_above && minimum > 0) {
		minimum = 0;
		scale = qq > 0 ? xq / qq : 0;
	}
	*out = (struct fit_line){ (float)scale, (float)minimum };
	return scale < 0 ? -1 : scale * xq + minimum * x;
}

static void range_of(const float *x, int n, float *low, float *high)
{
	*low = *high = x[0];
	for (int i = 1; i < n; i++) {
		*low = x[i] < *low ? x[i] : *low;
		*high = x[i] > *high ? x[i] : *high;
	}
}

struct fit_line fit_line(float max, bool not_above, const float *x, const float *w, int n)
{
	struct fit_line best, now;
	double gain = -1, g;
	float low, high;

	range_of(x, n, &low, &high);
	if (not_above && low > 0)
		low = 0;
	best = (struct fit_line){ 0, low };
	if (high <= low)
		return best;
	for (int t = -TRIES; t <= TRIES; t++) {
		float inverse = max * (1 + try_step * (float)t) / (high - low);
		struct line_moments m = line_moments_at(max, inverse, low, x, w, n);
		g = solve(&m, not_above, &now);
		if (g > gain) {
			gain = g;
			best = now;
		}
	}
	for (int r = 0; r < ROUNDS && best.scale > 0; r++) {
		struct line_moments m = line_moments_at(max, 1 / best.scale, best.minimum, x, w, n);
		g = solve(&m, not_above, &now);
		if (g <= gain)
			break;
		gain = g;
		best = now;
	}
	return best;
}

/* ---- what is left */

float fit_error(const struct fit_levels *l, struct fit_line line, const float *x, const float *w, int n, int8_t *level)
{
	float inverse = line.scale != 0 ? 1 / line.scale : 0, four[4];
	__m128 s = _mm_set1_ps(line.scale), b = _mm_set1_ps(line.minimum), sum = _mm_setzero_ps();

	for (int i = 0; i < n; i += 4) {
		__m128 above = _mm_sub_ps(_mm_loadu_ps(x + i), b);
		__m128 q = nearest(l, _mm_mul_ps(above, _mm_set1_ps(inverse)));
		__m128 off = _mm_sub_ps(above, _mm_mul_ps(s, q));
		sum = _mm_add_ps(sum, _mm_mul_ps(_mm_mul_ps(off, off), _mm_loadu_ps(w + i)));
		if (!level)
			continue;
		_mm_storeu_ps(four, q);
		for (int k = 0; k < 4; k++)
			level[i + k] = (int8_t)four[k];
	}
	return sum_of(sum);
}

#include "quantise/points.h"

#include <emmintrin.h>
#include <pthread.h>
#include <string.h>

/* For given signs, the error of a point at scale s is (sum w x x) - s (2 a - s b), where a = sum w x level and
 * b = sum w level level do not depend on s: they are made once for each point, as sums of what its two halves add. */

enum { MAX_POINTS = 2048, HALF_CODES = 81, SCALES = 12, REFINED = 2, ROUNDS = 3, SHIFTS = 2 };

/* The digits of each half of a point as one number. */
static uint8_t half_code[CODEBOOKS][2][MAX_POINTS];

static void make_codes(void)
{
	for (int name = 0; name < CODEBOOKS; name++) {
		const struct codebook *c = codebook((enum codebook_name)name);
		int half = c->width / 2;
		for (int p = 0; p < c->points; p++)
			for (int h = 0; h < 2; h++) {
				int code = 0;
				for (int i = half - 1; i >= 0; i--)
					code = code * c->levels + c->digit[p * c->width + h * half + i];
				half_code[name][h][p] = (uint8_t)code;
			}
	}
}

/* a and b of every point, for the numbers of one. */
struct table {
	float a[MAX_POINTS], b[MAX_POINTS];
};

/* A part, for whatever scale: its points are groups of numbers. */
struct part {
	const struct points_shape *shape;
	const struct codebook *book;
	int groups, shifts;
	float max, top; /* the largest magnitude, and the level that goes with it */
	float x[32], w[32];
	uint8_t sign[4];
	struct table table[8][SHIFTS]; /* books of four have 8 groups and one shift alone */
};

struct choice {
	float gain, a, b;
	uint16_t point[8];
	uint8_t shift[8];
};

static float level_of(const struct part *p, int digit, int shift)
{
	return p->shape->shift_over ? (float)p->book->level[digit] + (shift ? -0.125f : 0.125f)
	                            : (float)p->book->level[digit];
}

/* What the digits of half a point add. */
static void make_half(const struct part *p, int at, int shift, float a[HALF_CODES], float b[HALF_CODES])
{
	int n = 1;

	a[0] = b[0] = 0;
	for (int i = 0; i < p->book->width / 2; i++) {
		float x = p->x[at + i], w = p->w[at + i];
		for (int d = p->book->levels - 1; d >= 0; d--) {
			float level = level_of(p, d, shift), wl = w * level;
			for (int k = 0; k < n; k++) {
				a[d * n + k] = a[k] + wl * x;
				b[d * n + k] = b[k] + wl * level;
			}
		}
		n *= p->book->levels;
	}
}

static void make_table(struct part *p, int group, int shift)
{
	const uint8_t *low = half_code[p->shape->book][0], *high = half_code[p->shape->book][1];
	struct table *t = &p->table[group][shift];
	float a[2][HALF_CODES], b[2][HALF_CODES];
	int at = group * p->book->width;

	make_half(p, at, shift, a[0], b[0]);
	make_half(p, at + p->book->width / 2, shift, a[1], b[1]);
	for (int k = 0; k < p->book->points; k++) {
		t->a[k] = a[0][low[k]] + a[1][high[k]];
		t->b[k] = b[0][low[k]] + b[1][high[k]];
	}
}

/* Magnitudes, their signs beside them. Where minuses must be even, the number that costs least has the other sign. */
static void take_signs(struct part *p, const struct block *b, int at, int eight)
{
	int minuses = 0, cheapest = 0;

	p->sign[eight] = 0;
	for (int i = 8 * eight; i < 8 * eight + 8; i++) {
		bool minus = b->x[at + i] < 0;
		p->x[i] = minus ? -b->x[at + i] : b->x[at + i];
		p->sign[eight] |= (uint8_t)(minus << i % 8);
		minuses += minus;
		if (i == 8 * eight || p->w[i] * p->x[i] < p->w[cheapest] * p->x[cheapest])
			cheapest = i;
	}
	if (p->shape->even_signs && minuses % 2) {
		p->x[cheapest] = -p->x[cheapest];
		p->sign[eight] ^= (uint8_t)(1 << cheapest % 8);
	}
}

static void make_part(struct part *p, const struct points_shape *s, const struct block *b, int part)
{
	int length = POINTS_N / s->parts, at = part * length;
	const struct codebook *book = codebook(s->book);

	p->shape = s;
	p->book = book;
	p->groups = length / book->width;
	p->shifts = s->shift_over ? SHIFTS : 1;
	p->max = 0;
	p->top = level_of(p, book->levels - 1, 0);
	memcpy(p->w, b->w + at, (size_t)length * sizeof *p->w);
	memcpy(p->x, b->x + at, (size_t)length * sizeof *p->x);
	for (int i = 0; !s->shift_over && i < length / 8; i++)
		take_signs(p, b, at, i);
	for (int i = 0; i < length; i++)
		p->max = __builtin_fabsf(p->x[i]) > p->max ? __builtin_fabsf(p->x[i]) : p->max;
	for (int g = 0; g < p->groups; g++)
		for (int shift = 0; shift < p->shifts; shift++)
			make_table(p, g, shift);
}

/* The point with the largest scale * (2 a - scale * b); the first one of several. */
static float best_point(const struct table *t, int points, float scale, uint16_t *point)
{
	const __m128 s = _mm_set1_ps(scale), s2 = _mm_set1_ps(2 * scale), ss = _mm_mul_ps(s, s);
	__m128 max = _mm_set1_ps(-__FLT_MAX__), at = _mm_setzero_ps(), now = _mm_setr_ps(0, 1, 2, 3);
	float lane[4], number[4];
	int best = 0;

	for (int k = 0; k < points; k += 4, now = _mm_add_ps(now, _mm_set1_ps(4))) {
		__m128 gain =
			_mm_sub_ps(_mm_mul_ps(s2, _mm_loadu_ps(t->a + k)), _mm_mul_ps(ss, _mm_loadu_ps(t->b + k)));
		__m128 more = _mm_cmpgt_ps(gain, max);
		max = _mm_max_ps(gain, max);
		at = _mm_or_ps(_mm_and_ps(more, now), _mm_andnot_ps(more, at));
	}
	_mm_storeu_ps(lane, max);
	_mm_storeu_ps(number, at);
	for (int i = 1; i < 4; i++)
		if (lane[i] > lane[best] || (lane[i] == lane[best] && number[i] < number[best]))
			best = i;
	*point = (uint16_t)number[best];
	return lane[best];
}

/* Groups that share a shift, with the better one. */
static void choose_shared(const struct part *p, float scale, int first, int n, struct choice *c)
{
	uint16_t point[SHIFTS][8];
	float gain[SHIFTS] = { 0, 0 };
	int shift = 0;

	for (int k = 0; k < p->shifts; k++) {
		for (int g = 0; g < n; g++)
			gain[k] += best_point(&p->table[first + g][k], p->book->points, scale, &point[k][g]);
		if (gain[k] > gain[shift])
			shift = k;
	}
	c->gain += gain[shift];
	for (int g = 0; g < n; g++) {
		const struct table *t = &p->table[first + g][shift];
		c->point[first + g] = point[shift][g];
		c->shift[first + g] = (uint8_t)shift;
		c->a += t->a[point[shift][g]];
		c->b += t->b[point[shift][g]];
	}
}

static void choose(const struct part *p, float scale, struct choice *c)
{
	int shared = p->shape->shift_over / p->book->width;

	shared = shared ? shared : 1;
	shared = shared < p->groups ? shared : p->groups;
	memset(c, 0, sizeof *c);
	for (int g = 0; g < p->groups; g += shared)
		choose_shared(p, scale, g, shared, c);
}

/* The scale that the part would like best. */
static float liked_scale(const struct part *p)
{
	float best = 0, gain = 0;
	struct choice c;

	for (int t = 0; p->max > 0 && t < SCALES; t++) {
		float scale = p->max * (0.3f + 0.1f * (float)t) / p->top;
		for (int r = 0; r <= REFINED; r++) {
			choose(p, scale, &c);
			if (c.gain <= gain)
				break;
			gain = c.gain;
			best = scale;
			scale = c.b > 0 && c.a > 0 ? c.a / c.b : scale;
		}
	}
	return best;
}

/* ---- all parts */

struct fitting {
	const struct points_shape *shape;
	const struct block *block;
	float liked[POINTS_MAX_PARTS], scale; /* scale: the half's, times the unit */
	double gain, a, b;                    /* sums over parts, of n a and n n b */
	struct points now;
};

static void keep(struct fitting *f, const struct part *p, int part, int i, const struct choice *c)
{
	int width = p->book->width, length = POINTS_N / f->shape->parts;

	f->now.i[part] = i;
	f->gain += c->gain;
	f->a += (2 * i + 1) * (double)c->a;
	f->b += (2 * i + 1) * (double)(2 * i + 1) * c->b;
	for (int g = 0; g < p->groups; g++) {
		f->now.point[part * p->groups + g] = c->point[g];
		f->now.shift[(part * length + g * width) / 8] = c->shift[g];
	}
	memcpy(f->now.sign + part * length / 8, p->sign, (size_t)length / 8);
}

/* The integer around the one it would like, with which the part has the least error. */
static void choose_part(struct fitting *f, struct part *p, int part)
{
	int max = f->shape->max, best = 0;
	float want = f->scale > 0 ? (f->liked[part] / f->scale - 1) * 0.5f : 0;
	int near = want <= 0 ? 0 : want >= (float)max ? max : (int)(want + 0.5f);
	struct choice c, min = { .gain = -__FLT_MAX__ };

	make_part(p, f->shape, f->block, part);
	for (int i = near - 1; i <= near + 1; i++) {
		if (i < 0 || i > max)
			continue;
		choose(p, f->scale * (float)(2 * i + 1), &c);
		if (c.gain <= min.gain)
			continue;
		min = c;
		best = i;
	}
	keep(f, p, part, best, &min);
}

void points_fit(const struct points_shape *s, const struct block *b, struct points *out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct fitting f = { .shape = s, .block = b };
	struct part p;
	float max = 0;
	double gain = 0;

	pthread_once(&once, make_codes);
	memset(p.sign, 0, sizeof p.sign);
	for (int part = 0; part < s->parts; part++) {
		make_part(&p, s, b, part);
		f.liked[part] = liked_scale(&p);
		max = f.liked[part] > max ? f.liked[part] : max;
	}
	f.scale = max / (float)(2 * s->max + 1);
	for (int r = 0; r < ROUNDS; r++) {
		float half;
		f.now.scale = block_half(b, f.scale / s->unit, &half);
		f.scale = half * s->unit;
		f.gain = f.a = f.b = 0;
		for (int part = 0; part < s->parts; part++)
			choose_part(&f, &p, part);
		if (r > 0 && f.gain <= gain)
			break;
		gain = f.gain;
		*out = f.now;
		if (!(f.a > 0 && f.b > 0))
			break;
		f.scale = (float)(f.a / f.b);
	}
}

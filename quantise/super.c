#include "quantise/super.h"

#include <string.h>

enum { ROUNDS = 4 };

struct search {
	const struct super_shape *shape;
	const struct block *block;
	int length;                            /* of a part */
	struct fit_line line[SUPER_MAX_PARTS]; /* what each part would like; minima here are below 0 */
	float scale, minimum;                  /* tried now */
	struct super now;
};

static int nearest_integer(float v, int min, int max)
{
	float half = v < 0 ? -0.5f : 0.5f;

	return v <= (float)min ? min : v >= (float)max ? max : (int)(v + half);
}

static float part_error(const struct search *s, int part, int n, int m, int8_t *level)
{
	struct fit_line line = { s->scale * (float)n, -(s->minimum * (float)m) };
	int at = part * s->length;

	return fit_error(s->shape->levels, line, s->block->x + at, s->block->w + at, s->length, level);
}

/* The integers around the ones it would like, with which the part has the least error. */
static float choose(struct search *s, int part)
{
	const struct super_shape *h = s->shape;
	float min = 0;
	int want = s->scale != 0 ? nearest_integer(s->line[part].scale / s->scale, h->min, h->max) : 0;
	int want_m = s->minimum != 0 ? nearest_integer(-s->line[part].minimum / s->minimum, 0, h->max) : 0;
	bool any = false;

	for (int n = want - 1; n <= want + 1; n++)
		for (int m = want_m - h->minima; m <= want_m + h->minima; m++) {
			if (n < h->min || n > h->max || m < 0 || m > h->max)
				continue;
			float error = part_error(s, part, n, m, NULL);
			if (any && error >= min)
				continue;
			any = true;
			min = error;
			s->now.n[part] = n;
			s->now.m[part] = m;
		}
	return part_error(s, part, s->now.n[part], s->now.m[part], s->now.level + part * s->length);
}

/* For these integers and levels, the scale and minimum with the least error. */
static void solve(struct search *s)
{
	double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;

	for (int i = 0; i < SUPER; i++) {
		double w = s->block->w[i], x = s->block->x[i], b = -s->now.m[i / s->length];
		double a = (double)s->now.n[i / s->length] * s->now.level[i];
		aa += w * a * a;
		ab += w * a * b;
		bb += w * b * b;
		xa += w * x * a;
		xb += w * x * b;
	}
	double det = aa * bb - ab * ab;
	if (bb > 0 && det > 1e-9 * aa * bb) {
		s->scale = (float)((xa * bb - xb * ab) / det);
		s->minimum = (float)((xb * aa - xa * ab) / det);
	} else if (aa > 0) {
		s->scale = (float)((xa - ab * s->minimum) / aa);
	}
}

static void fit_parts(struct search *s)
{
	const struct super_shape *h = s->shape;
	float scale = 0, minimum = 0;

	for (int p = 0; p < h->parts; p++) {
		const float *x = s->block->x + p * s->length, *w = s->block->w + p * s->length;
		s->line[p] = h->minima ? fit_line(h->levels->max, true, x, w, s->length)
		                       : (struct fit_line){ fit_scale(h->levels, x, w, s->length), 0 };
		if (__builtin_fabsf(s->line[p].scale) > __builtin_fabsf(scale))
			scale = s->line[p].scale;
		minimum = -s->line[p].minimum > minimum ? -s->line[p].minimum : minimum;
	}
	/* the largest gets the integer farthest from 0 */
	s->scale = scale / (float)(h->min < 0 ? h->min : h->max);
	s->minimum = minimum / (float)h->max;
}

void super_fit(const struct super_shape *shape, const struct block *b, struct super *out)
{
	struct search s = { .shape = shape, .block = b, .length = SUPER / shape->parts };
	float min = 0;

	fit_parts(&s);
	for (int r = 0; r < ROUNDS; r++) {
		float error = 0;
		s.now.scale = block_half(b, s.scale, &s.scale);
		s.now.minimum = block_half(b, s.minimum, &s.minimum);
		for (int p = 0; p < shape->parts; p++)
			error += choose(&s, p);
		if (r > 0 && error >= min)
			break;
		min = error;
		*out = s.now;
		solve(&s);
	}
}

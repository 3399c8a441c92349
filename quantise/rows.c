/* quantise/rows.c - types whose rows begin with a scale: parts of 32 numbers have an integer step of it, and name one
 * of two lists of levels. A number is scale * step * level.
 */
#include <string.h>

#include "base/number.h"
#include "quantise/blocks.h"

enum { PART = 32, PARTS = BLOCK_MAX / PART, LISTS = 2, ROUNDS = 4 };

/* The steps are first, first + apart, ..., `count` of them. */
struct shape {
	struct fit_levels list[LISTS];
	int first, apart, count;
	unsigned head, block; /* bytes */
};

/* What a part became: the number of its step, and its list. */
struct part {
	int number, list;
};
struct found {
	struct part part[PARTS];
	int8_t level[BLOCK_MAX];
};

#define IQ4_LEVELS(up) \
	{ \
		-127 + (up), -104 + (up), -83 + (up), -65 + (up), -49 + (up), -35 + (up), -22 + (up), -10 + (up), \
			1 + (up), 13 + (up), 25 + (up), 38 + (up), 53 + (up), 69 + (up), 89 + (up), 113 + (up) \
	}
#define IQ5_LEVELS(up) \
	{ \
		-126 + (up), -114 + (up), -103 + (up), -92 + (up), -83 + (up), -74 + (up), -65 + (up), -57 + (up), \
			-50 + (up), -43 + (up), -36 + (up), -30 + (up), -24 + (up), -18 + (up), -12 + (up), -6 + (up), \
			-1 + (up), 5 + (up), 11 + (up), 17 + (up), 23 + (up), 29 + (up), 36 + (up), 43 + (up), \
			51 + (up), 59 + (up), 68 + (up), 77 + (up), 87 + (up), 97 + (up), 109 + (up), 121 + (up) \
	}
#define IQ2_LEVELS(up) \
	{ \
		-31 + (up), -13 + (up), 1 + (up), 17 + (up) \
	}

static const struct shape iq4_ks = {
	{ { -127, 113, 16, IQ4_LEVELS(0) }, { -123, 117, 16, IQ4_LEVELS(4) } }, -127, 2, 128, 4, 136
};
static const struct shape iq5_ks = {
	{ { -126, 121, 32, IQ5_LEVELS(0) }, { -124, 123, 32, IQ5_LEVELS(2) } }, -127, 2, 128, 4, 168
};
static const struct shape iq2_ks = {
	{ { -31, 17, 4, IQ2_LEVELS(0) }, { -26, 22, 4, IQ2_LEVELS(5) } }, -16, 1, 32, 2, 70
};

static int step_of(const struct shape *s, int number) { return s->first + number * s->apart; }

/* ---- what each part would like: two scales, one of each list, which wait where its block will be written */

static void put_wishes(uint8_t *block, float wish[PARTS][LISTS]) { memcpy(block, wish, sizeof(float[PARTS][LISTS])); }
static void get_wishes(const uint8_t *block, float wish[PARTS][LISTS])
{
	memcpy(wish, block, sizeof(float[PARTS][LISTS]));
}

/* The largest of all. */
static float wish(const struct shape *s, const struct row *r, uint8_t *blocks)
{
	float scale[PARTS][LISTS], largest = 0;
	struct block b;

	for (uint64_t at = 0; at < r->n; at += BLOCK_MAX, blocks += s->block) {
		row_block(r, at, &b);
		for (int p = 0; p < PARTS; p++)
			for (int l = 0; l < LISTS; l++) {
				scale[p][l] = fit_scale(&s->list[l], b.x + p * PART, b.w + p * PART, PART);
				if (__builtin_fabsf(scale[p][l]) > __builtin_fabsf(largest))
					largest = scale[p][l];
			}
		put_wishes(blocks, scale);
	}
	return largest;
}

/* ---- for a scale of the row, the parts' steps and lists */

static int nearest_number(const struct shape *s, float step)
{
	float number = (step - (float)s->first) / (float)s->apart;

	return number <= 0 ? 0 : number >= (float)(s->count - 1) ? s->count - 1 : (int)(number + 0.5f);
}

static float part_error(const struct shape *s, float scale, struct part p, const float *x, const float *w,
                        int8_t *level)
{
	struct fit_line line = { scale * (float)step_of(s, p.number), 0 };

	return fit_error(&s->list[p.list], line, x, w, PART, level);
}

/* Of the steps around the ones it would like, that with the least error; the first of equals. */
static float choose_part(const struct shape *s, float scale, const float wish[LISTS], const float *x, const float *w,
                         struct part *out)
{
	float min = 0;
	bool any = false;

	for (int l = 0; l < LISTS; l++) {
		int want = scale != 0 ? nearest_number(s, wish[l] / scale) : 0;
		for (int number = want - 1; number <= want + 1; number++) {
			struct part p = { number, l };
			if (number < 0 || number >= s->count)
				continue;
			float error = part_error(s, scale, p, x, w, NULL);
			if (any && error >= min)
				continue;
			any = true;
			min = error;
			*out = p;
		}
	}
	return min;
}

static float choose(const struct shape *s, float scale, const uint8_t *wishes, const struct block *b, struct found *out)
{
	float wish[PARTS][LISTS], error = 0;

	get_wishes(wishes, wish);
	for (int p = 0; p < PARTS; p++) {
		const float *x = b->x + p * PART, *w = b->w + p * PART;
		choose_part(s, scale, wish[p], x, w, &out->part[p]);
		error += part_error(s, scale, out->part[p], x, w, out->level + p * PART);
	}
	return error;
}

/* ---- the row's scale */

struct sums {
	double xa, aa, error;
};

/* The sums of which the best scale for these steps and levels is the quotient. */
static void add(struct sums *sums, const struct shape *s, const struct block *b, const struct found *f)
{
	for (int i = 0; i < BLOCK_MAX; i++) {
		double a = (double)step_of(s, f->part[i / PART].number) * f->level[i], w = b->w[i];
		sums->xa += w * b->x[i] * a;
		sums->aa += w * a * a;
	}
}

static struct sums sums_of(const struct shape *s, const struct row *r, float scale, const uint8_t *blocks)
{
	struct sums sums = { 0, 0, 0 };
	struct found f;
	struct block b;

	for (uint64_t at = 0; at < r->n; at += BLOCK_MAX, blocks += s->block) {
		row_block(r, at, &b);
		sums.error += choose(s, scale, blocks, &b, &f);
		add(&sums, s, &b, &f);
	}
	return sums;
}

/* As the file stores it, to `out`, and what that is among the scaled numbers. */
static float stored(const struct shape *s, const struct row *r, float scale, uint8_t *out)
{
	struct block b = { .power = r->power };

	if (s->head == 2) {
		block_put16(out, block_half(&b, scale, &scale));
		return scale;
	}
	float d = (float)((double)scale * number_power(-r->power));
	memcpy(out, &d, sizeof d);
	return (float)((double)d * number_power(r->power));
}

static float fit_row(const struct shape *s, const struct row *r, uint8_t *out)
{
	uint8_t head[4];
	float best = 0, scale = wish(s, r, out + s->head) / (float)s->first;
	double min = 0;

	for (int round = 0; round < ROUNDS; round++) {
		scale = stored(s, r, scale, head);
		struct sums sums = sums_of(s, r, scale, out + s->head);
		if (round > 0 && sums.error >= min)
			break;
		min = sums.error;
		best = scale;
		memcpy(out, head, s->head);
		if (sums.aa <= 0)
			break;
		scale = (float)(sums.xa / sums.aa);
	}
	return best;
}

/* ---- where the bits lie */

static uint8_t code_of(const struct fit_levels *l, int8_t level)
{
	uint8_t code = 0;

	while (code < l->listed - 1 && l->list[code] < level)
		code++;
	return code;
}

static void codes_of(const struct shape *s, const struct found *f, uint8_t code[BLOCK_MAX])
{
	for (int i = 0; i < BLOCK_MAX; i++)
		code[i] = code_of(&s->list[f->part[i / PART].list], f->level[i]);
}

static void put_steps(uint8_t *out, const struct found *f)
{
	for (int p = 0; p < PARTS; p++)
		out[p] = (uint8_t)(f->part[p].number << 1 | f->part[p].list);
}

static void put_iq4(uint8_t *out, const struct found *f, const uint8_t *code)
{
	put_steps(out, f);
	for (int p = 0; p < PARTS; p++)
		for (int i = 0; i < PART / 2; i++)
			out[PARTS + p * 16 + i] = (uint8_t)(code[p * PART + i] | code[p * PART + i + 16] << 4);
}

static void put_iq5(uint8_t *out, const struct found *f, const uint8_t *code)
{
	memset(out, 0, 168);
	put_steps(out, f);
	for (int i = 0; i < BLOCK_MAX; i++) {
		out[8 + i / 64 * 32 + i % 32] |= (uint8_t)((code[i] & 15) << i / 32 % 2 * 4);
		out[136 + i % 32] |= (uint8_t)((code[i] >> 4) << i / 32);
	}
}

static void put_iq2(uint8_t *out, const struct found *f, const uint8_t *code)
{
	memset(out, 0, 70);
	for (int p = 0; p < PARTS; p++) {
		out[0] |= (uint8_t)(f->part[p].list << p);
		out[1] |= (uint8_t)(f->part[p].number >> 4 << p);
		out[2 + p / 2] |= (uint8_t)((f->part[p].number & 15) << p % 2 * 4);
	}
	for (int i = 0; i < BLOCK_MAX; i++)
		out[6 + i / 128 * 32 + i % 32] |= (uint8_t)(code[i] << i / 32 % 4 * 2);
}

static void encode(const struct shape *s, const struct row *r, uint8_t *out,
                   void (*put)(uint8_t *out, const struct found *f, const uint8_t *code))
{
	float scale = fit_row(s, r, out);
	uint8_t *block = out + s->head, code[BLOCK_MAX];
	struct found f;
	struct block b;

	for (uint64_t at = 0; at < r->n; at += BLOCK_MAX, block += s->block) {
		row_block(r, at, &b);
		choose(s, scale, block, &b, &f);
		codes_of(s, &f, code);
		put(block, &f, code);
	}
}

static void of_iq4_ks(const struct row *r, uint8_t *out) { encode(&iq4_ks, r, out, put_iq4); }
static void of_iq5_ks(const struct row *r, uint8_t *out) { encode(&iq5_ks, r, out, put_iq5); }
static void of_iq2_ks(const struct row *r, uint8_t *out) { encode(&iq2_ks, r, out, put_iq2); }

row_encoder row_encoder_of(enum dtype type)
{
	switch (type) {
	case DTYPE_IQ4_KS: return of_iq4_ks;
	case DTYPE_IQ5_KS: return of_iq5_ks;
	case DTYPE_IQ2_KS: return of_iq2_ks;
	default: return NULL;
	}
}

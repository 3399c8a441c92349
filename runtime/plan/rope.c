#include "runtime/plan/rope.h"

#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"
#include "jit/store/record.h"

static const double pi = 3.14159265358979323846;

/* llama3: long wavelengths are divided by factor, short ones kept, a linear ramp between. */
static double scale_llama3(double f, const struct model_rope *r)
{
	double wavelength = 2 * pi / f, old = r->original_context;

	if (wavelength > old / r->low_freq_factor)
		return f / r->factor;
	if (wavelength < old / r->high_freq_factor || r->high_freq_factor == r->low_freq_factor)
		return f;
	double smooth = (old / wavelength - r->low_freq_factor) / (r->high_freq_factor - r->low_freq_factor);
	return (1 - smooth) * f / r->factor + smooth * f;
}

/* YaRN: which pair index turns `rotations` times within the original context. */
static double yarn_dimension(double rotations, const struct model_rope *r)
{
	return r->dims * math_host_log(r->original_context / (rotations * 2 * pi)) / (2 * math_host_log(r->theta));
}

static double floor_of(double x)
{
	double t = (double)(int64_t)x;
	return t > x ? t - 1 : t;
}

static double scale_yarn(double f, uint32_t i, const struct model_rope *r)
{
	double low = yarn_dimension(r->beta_fast, r), high = yarn_dimension(r->beta_slow, r);
	if (r->yarn_truncate) {
		low = floor_of(low);
		high = -floor_of(-high);
	}
	if (low < 0)
		low = 0;
	if (high > r->dims - 1)
		high = r->dims - 1;
	if (low == high)
		high += 0.001;
	double ramp = (i - low) / (high - low);
	ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
	return f / r->factor * ramp + f * (1 - ramp);
}

float rope_frequencies(float *inv_freq, const struct model_rope *r)
{
	for (uint32_t i = 0; i < r->dims / 2; i++) {
		double f = 1.0 / math_host_pow(r->theta, 2.0 * i / r->dims);
		if (r->freq_factors)
			f = r->freq_factors[i] >= MODEL_ROPE_STILL ? 0 : f / (double)r->freq_factors[i];
		switch (r->scaling) {
		case ROPE_NONE:
		case ROPE_LONG: break;
		case ROPE_LINEAR: f /= r->factor; break;
		case ROPE_LLAMA3: f = r->freq_factors ? f : scale_llama3(f, r); break;
		case ROPE_YARN: f = scale_yarn(f, i, r); break;
		}
		inv_freq[i] = (float)f;
	}
	return r->scaling == ROPE_YARN || r->scaling == ROPE_LONG ? (float)r->attention_factor : 1.0f;
}

void rope_rows(float *cos, float *sin, const float *inv_freq, uint32_t half, uint32_t rotated, float factor,
               uint64_t pos0, uint32_t n)
{
	for (uint32_t c = 0; c < n; c++)
		for (uint32_t i = 0; i < half; i++) {
			double s = 0, k = 1;
			bool rotates = i < rotated;
			if (rotates)
				math_host_sincos((float)(pos0 + c) * inv_freq[i], &s, &k);
			cos[(uint64_t)c * half + i] = (float)k * (rotates ? factor : 1.0f);
			sin[(uint64_t)c * half + i] = (float)s * (rotates ? factor : 1.0f);
		}
}

uint32_t rope_tables(const struct model_spec *s)
{
	return s->layer_rotation || s->query_scale != 0 ? (uint32_t)ROPE_TABLES : 1;
}

uint32_t rope_half(const struct model_spec *s) { return s->latent.rank ? s->latent.rotating / 2 + 1 : s->head_dim / 2; }

static bool open_one(struct rope *r, enum model_rotation which, const struct model_rope *of, uint64_t context,
                     struct error *err)
{
	struct model_rope rope = *of;

	r->rotated[which] = of->dims / 2;
	r->inv_freq[which] = calloc(of->dims / 2 + 1, sizeof *r->inv_freq[which]);
	if (!r->inv_freq[which])
		return error_set(err, ERROR_MEMORY, "no memory for %u rotary frequencies", of->dims / 2);
	if (rope.scaling == ROPE_LONG && context > rope.original_context)
		rope.freq_factors = rope.long_factors;
	r->factor[which] = rope_frequencies(r->inv_freq[which], &rope);
	return true;
}

/* Pairs of the heads that rotate so. */
static uint32_t half_of(const struct model_spec *s, enum model_rotation which)
{
	for (uint32_t i = 0; s->layer_rotation && s->layer_sizes && i < s->layers; i++)
		if (s->layer_rotation[i] == which)
			return s->layer_sizes[i].head_dim / 2;
	return rope_half(s);
}

/* By which part each pair rotates: sections one behind the other, or in turn as far as there are pairs of a section. */
static bool open_parts(struct rope *r, const struct model_rope *of, struct error *err)
{
	const uint32_t *section = of->sections;

	if (!section[0])
		return true;
	r->part = calloc(of->dims / 2 + 1, 1);
	if (!r->part)
		return error_set(err, ERROR_MEMORY, "no memory for %u rotary frequencies", of->dims / 2);
	for (uint32_t i = 0; i < of->dims / 2; i++)
		if (of->interleaved)
			r->part[i] = i % 3 && i < 3 * section[i % 3] ? (uint8_t)(i % 3) : 0;
		else
			r->part[i] = i < section[0] ? 0 : i < section[0] + section[1] ? 1 : 2;
	return true;
}

bool rope_open(struct rope *r, const struct model_spec *s, uint64_t context, struct error *err)
{
	*r = (struct rope){
		.half = rope_half(s),
		.row = { [ROTATION_MAIN] = half_of(s, ROTATION_MAIN), [ROTATION_WINDOW] = half_of(s, ROTATION_WINDOW) },
		.tables = rope_tables(s),
		.query_scale = s->query_scale,
		.query_scale_length = s->query_scale_length,
		.query_scale_offset = s->query_scale_offset,
		.query_scale_still = s->query_scale_still
	};
	return open_parts(r, &s->rope, err) && open_one(r, ROTATION_MAIN, &s->rope, context, err) &&
	       (r->tables == 1 || open_one(r, ROTATION_WINDOW, &s->window_rope, context, err));
}

void rope_close(struct rope *r)
{
	for (int i = 0; i < ROTATION_NONE; i++)
		free(r->inv_freq[i]);
	free(r->part);
	memset(r, 0, sizeof *r);
}

uint64_t rope_checksum(const struct rope *r, uint64_t sum)
{
	for (int i = 0; i < ROTATION_NONE; i++)
		if (r->inv_freq[i]) {
			sum = record_checksum(r->inv_freq[i], r->rotated[i] * sizeof *r->inv_freq[i], sum);
			sum = record_checksum(&r->factor[i], sizeof r->factor[i], sum);
		}
	return sum;
}

/* Rows of a table, times 1 + query_scale * ln(1 + floor((position + query_scale_offset) / query_scale_length)). */
static void scale_queries(const struct rope *r, float *to, const float *from, uint64_t pos0, uint32_t n)
{
	for (uint32_t c = 0; c < n; c++) {
		double steps =
			r->query_scale != 0 ? (double)((pos0 + c + r->query_scale_offset) / r->query_scale_length) : 0;
		float by = (float)(1 + r->query_scale * math_host_log(1 + steps));
		for (uint32_t i = 0; i < r->half; i++)
			to[(uint64_t)c * r->half + i] = from[(uint64_t)c * r->half + i] * by;
	}
}

static void fill_rows(const struct rope *r, float *cos, float *sin, enum model_rotation which, uint64_t pos0,
                      uint32_t n)
{
	rope_rows(cos, sin, r->inv_freq[which], r->row[which], r->rotated[which], r->factor[which], pos0, n);
}

void rope_fill(const struct rope *r, float *cos, float *sin, uint32_t capacity, uint32_t first, uint64_t pos0,
               uint32_t n)
{
	const uint64_t table = (uint64_t)capacity * r->half, window = ROTATION_WINDOW * table,
		       none = ROTATION_NONE * table + (uint64_t)first * r->half,
		       queries = ROPE_TABLE_QUERIES * table + (uint64_t)first * r->half,
		       row = (uint64_t)first * r->row[ROTATION_MAIN];

	fill_rows(r, cos + row, sin + row, ROTATION_MAIN, pos0, n);
	if (r->tables == 1)
		return;
	const uint64_t at = window + (uint64_t)first * r->row[ROTATION_WINDOW];
	fill_rows(r, cos + at, sin + at, ROTATION_WINDOW, pos0, n);
	rope_rows(cos + none, sin + none, NULL, r->half, 0, 1, pos0, n);
	const uint64_t of = r->query_scale_still ? none : (uint64_t)first * r->half;
	scale_queries(r, cos + queries, cos + of, pos0, n);
	scale_queries(r, sin + queries, sin + of, pos0, n);
}

void rope_fill_three(const struct rope *r, float *cos, float *sin, uint32_t token, const uint64_t position[3])
{
	const uint32_t row = r->row[ROTATION_MAIN], rotated = r->rotated[ROTATION_MAIN];
	const float *freq = r->inv_freq[ROTATION_MAIN];
	double s, k;

	rope_rows(cos + (uint64_t)token * row, sin + (uint64_t)token * row, freq, row, rotated,
	          r->factor[ROTATION_MAIN], 0, 1);
	for (uint32_t i = 0; i < rotated; i++) {
		math_host_sincos((double)((float)position[r->part[i]] * freq[i]), &s, &k);
		cos[(uint64_t)token * row + i] = (float)k * r->factor[ROTATION_MAIN];
		sin[(uint64_t)token * row + i] = (float)s * r->factor[ROTATION_MAIN];
	}
}

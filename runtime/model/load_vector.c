/* runtime/model/load_vector.c - vectors as kernels read them, made of those in files. */
#include "runtime/model/load_weights.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"
#include "kernels-templates/templates.h"

/* Numbers of each channel, in blocks of 32 channels of which each number's lie side by side. */
static void put_by_channel(float *x, uint64_t n, uint32_t each)
{
	float block[32 * CHANNEL_MAX_STATE];

	for (uint64_t at = 0; at < n; at += 32 * (uint64_t)each) {
		memcpy(block, x + at, 32 * (size_t)each * sizeof *block);
		for (uint32_t c = 0; c < 32; c++)
			for (uint32_t i = 0; i < each; i++)
				x[at + i * 32 + c] = block[c * each + i];
	}
}

static void change_vector(float *out, const struct model_tensor *t)
{
	for (uint64_t i = 0; t->plus_one && i < t->cols; i++)
		out[i] += 1.0f;
	for (uint64_t i = 0; t->times != 0 && i < t->cols; i++)
		out[i] *= t->times;
	for (uint64_t i = 0; t->each_times && i < t->cols; i++)
		out[i] *= t->each_times[i];
	for (uint64_t i = 0; t->minus_exp && i < t->cols; i++)
		out[i] = (float)-math_host_exp((double)out[i]);
	if (t->by_channel)
		put_by_channel(out, t->cols, t->by_channel);
}

/* One vector, from its file to where it goes; raw has room for the longest. */
static bool convert_vector(float *out, void *raw, const struct model *m, const struct model_tensor *t,
                           struct error *err)
{
	const uint32_t head_dim = t->rope_head && t->head_rows ? t->rope_head : m->spec.head_dim;

	if (!t->bytes)
		return true;
	for (uint64_t i = 0; t->ones && i < t->cols; i++)
		out[i] = 1.0f;
	if (t->given)
		memcpy(out, t->given, t->bytes);
	if (t->ones || t->given)
		return true;
	if (!model_read(m, t, 0, t->bytes, raw, err))
		return false;
	for (uint64_t i = 0; t->head_rows && i < t->cols; i++)
		weight_to_f32(t->type, out + i,
		              (uint8_t *)raw + model_source_row(t, head_dim, i) * dtype_table[t->type].bytes, 1);
	for (uint32_t e = 0; !t->head_rows && e < (t->experts ? t->experts : 1); e++)
		weight_to_f32(t->type, out + e * numerics_pad(t->cols), (uint8_t *)raw + e * t->row_bytes, t->cols);
	for (uint64_t h = 0; t->rope_dims && !t->head_rows && h < t->cols; h += head_dim) {
		float head[4096];
		assert(head_dim <= 4096);
		memcpy(head, out + h, head_dim * sizeof *head);
		for (uint32_t i = 0; i < head_dim; i++)
			out[h + i] = head[model_source_row(t, head_dim, i)];
	}
	change_vector(out, t);
	return true;
}

bool load_read_vector(float *out, const struct model *m, const struct model_tensor *t, struct error *err)
{
	void *raw = malloc(t->bytes + 1);
	const bool ok = raw ? convert_vector(out, raw, m, t, err)
	                    : error_set(err, ERROR_MEMORY, "no memory for %.100s", t->name);

	free(raw);
	return ok;
}

size_t load_longest_vector(const struct model_spec *s)
{
	size_t longest = 0;

#define X(name) longest = s->name.bytes > longest ? s->name.bytes : longest;
	WEIGHTS_VECTORS_EACH(X)
#undef X

	for (uint32_t i = 0; i < s->layers; i++)
		for (int v = 0; v < VECTOR_SLOTS; v++)
			longest = s->layer[i].vector[v].bytes > longest ? s->layer[i].vector[v].bytes : longest;
	return longest;
}

/* Where in `converted` a vector goes that is at p in the device's memory. */
static float *twin(float *converted, const struct weights *w, const float *p)
{
	return p ? converted + (p - w->vectors) : NULL;
}

/* Numbers by distance, of what the file has of them. */
static bool convert_bias(float *out, const struct model *m, struct error *err)
{
	const struct model_tensor *t = &m->spec.score_bias;
	const uint64_t n = t->bytes ? t->rows * t->cols : 0;
	void *raw = malloc(t->bytes + 1);
	float *bucket = malloc((n + 1) * sizeof *bucket);
	bool ok = (raw && bucket) ||
	          error_set(err, ERROR_MEMORY, "no memory for %llu numbers of distances", (unsigned long long)n);

	ok = ok && (!n || model_read(m, t, 0, t->bytes, raw, err));
	for (uint64_t r = 0; ok && n && r < t->rows; r++)
		weight_to_f32(t->type, bucket + r * t->cols, (const uint8_t *)raw + r * t->row_bytes, t->cols);
	if (ok)
		weights_fill_bias(out, &m->spec, n ? bucket : NULL);
	free(raw);
	free(bucket);
	return ok;
}

bool load_convert_all(const struct weights *w, float *converted, void *raw, const struct model *m,
                      const struct weights_part *part, struct error *err)
{
	bool ok = true;

#define X(name) ok = ok && convert_vector(twin(converted, w, w->name), raw, m, &m->spec.name, err);
	WEIGHTS_VECTORS_EACH(X)
#undef X

	ok = ok && (!w->score_bias || convert_bias(twin(converted, w, w->score_bias), m, err));
	for (uint32_t i = part ? part->first : 0; i < (part ? part->end : m->spec.layers); i++)
		for (int v = 0; v < VECTOR_SLOTS && ok; v++)
			ok = convert_vector(twin(converted, w, w->layer[i].vector[v]), raw, m,
			                    &m->spec.layer[i].vector[v], err);
	return ok;
}

/* tests/kernels/plain_attention.c - numerics.h rules 6 to 10 as scalar loops (plain_attention.h). Compile without
 * contraction. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "tests/kernels/plain.h"
#include "tests/kernels/plain_attention.h"

float plain_exp(float x)
{
	if (isnan(x))
		return x;
	if (x < -87.0f)
		return 0.0f;
	if (x > 88.0f)
		x = 88.0f;
	float n = nearbyintf(x * NUMERICS_EXP_LOG2E);
	float r = fmaf(n, -NUMERICS_EXP_LN2_HI, x);
	r = fmaf(n, -NUMERICS_EXP_LN2_LO, r);
	float p = NUMERICS_EXP_C6;
	p = fmaf(p, r, NUMERICS_EXP_C5);
	p = fmaf(p, r, NUMERICS_EXP_C4);
	p = fmaf(p, r, NUMERICS_EXP_C3);
	p = fmaf(p, r, NUMERICS_EXP_C2);
	p = fmaf(p, r, 1.0f);
	p = fmaf(p, r, 1.0f);
	return p * (float)ldexp(1.0, (int)n);
}

float plain_softplus(float x)
{
	float u = plain_exp(-fabsf(x)), s = u / (2.0f + u), z = s * s, p = 2.0f / 13;

	for (int odd = 11; odd >= 1; odd -= 2)
		p = fmaf(p, z, 2.0f / (float)odd);
	return (x > 0.0f ? x : 0.0f) + p * s;
}

static float half_value(uint16_t h)
{
	int e = h >> 10 & 31, m = h & 1023;
	double v = e == 31 ? (m ? NAN : INFINITY) : e == 0 ? ldexp(m, -24) : ldexp(1024 + m, e - 25);
	return (float)(h & 0x8000 ? -v : v);
}

/* Each is asked for very often. */
float plain_f16_to_f32(uint16_t h)
{
	static float value[1 << 16];

	if (value[1] == 0)
		for (uint32_t i = 1 << 16; i--;)
			value[i] = half_value((uint16_t)i);
	return value[h];
}

uint16_t plain_f32_to_f16(float x)
{
	uint16_t sign = signbit(x) ? 0x8000 : 0;
	double a = fabs((double)x);
	int e;

	if (isnan(x))
		return sign | 0x7e00;
	if (a >= 65520.0)
		return sign | 0x7c00;
	frexp(a, &e); /* a in [2^(e-1), 2^e): eleven bits of it */
	int unit = a == 0.0 || e - 11 < -24 ? -24 : e - 11;
	unsigned q = (unsigned)nearbyint(ldexp(a, -unit)); /* halves go to even */
	return (uint16_t)(sign | (((unsigned)(unit + 25) << 10) + q - 1024));
}

static float sum_lanes(const float partial[32])
{
	float p[32], t[32];
	memcpy(p, partial, sizeof p);
	for (unsigned stride = 16; stride; stride /= 2) {
		for (unsigned l = 0; l < 32; l++)
			t[l] = p[l] + p[l ^ stride];
		memcpy(p, t, sizeof p);
	}
	return p[0];
}

float plain_norm_scale(const float *x, unsigned n, float eps)
{
	float partial[32] = { 0 };
	for (unsigned i = 0; i < n; i++)
		partial[i % 32] = fmaf(x[i], x[i], partial[i % 32]);
	float mean = sum_lanes(partial) / (float)n;
	return 1.0f / sqrtf(mean + eps);
}

static void norm(float *out, int8_t *outq, struct activation_block *outs, const float *x, const float *weight,
                 const float *bias, unsigned k, float eps, bool centred)
{
	unsigned padded = (k + 31) / 32 * 32;
	float partial[32] = { 0 }, mean = 0.0f;

	for (unsigned i = 0; centred && i < k; i++)
		partial[i % 32] = partial[i % 32] + x[i];
	if (centred)
		mean = sum_lanes(partial) / (float)k;
	for (unsigned i = 0; i < padded; i++)
		out[i] = i < k ? (centred ? x[i] - mean : x[i]) : 0.0f;
	float r = plain_norm_scale(out, k, eps);
	for (unsigned i = 0; i < k; i++)
		out[i] = bias ? fmaf(out[i] * r, weight[i], bias[i]) : (out[i] * r) * weight[i];
	if (outq)
		plain_quantise(out, padded / 32, outq, outs);
}

void plain_norm(float *out, int8_t *outq, struct activation_block *outs, const float *x, const float *weight,
                unsigned k, float eps, bool centred)
{
	norm(out, outq, outs, x, weight, NULL, k, eps, centred);
}

void plain_norm_bias(float *out, int8_t *outq, struct activation_block *outs, const float *x, const float *weight,
                     const float *bias, unsigned k, float eps)
{
	norm(out, outq, outs, x, weight, bias, k, eps, true);
}

void plain_rotate(float *out, const float *x, unsigned dims, const struct plain_angles *a)
{
	float r = a->norm ? plain_norm_scale(x, dims, a->eps) : 0.0f;
	float y[512];

	for (unsigned i = 0; i < dims; i++)
		y[i] = a->norm && !a->last ? (x[i] * r) * a->norm[i] : x[i];
	for (unsigned i = 0; i < dims / 2; i++) {
		float p = y[i], q = y[i + dims / 2], c = a->cos[i], s = a->sin[i];
		float qs = q * s, ps = p * s;
		out[i] = fmaf(p, c, -qs);
		out[i + dims / 2] = fmaf(q, c, ps);
	}
	for (unsigned i = 0; a->norm && a->last && i < dims; i++)
		out[i] = (out[i] * r) * a->norm[i];
}

uint64_t plain_cache_row(enum dtype type, unsigned dims)
{
	return type == DTYPE_F16 ? dims * 2 : type == DTYPE_F32 ? dims * 4 : (dims + 31) / 32 * 4 + (dims + 3) / 4 * 4;
}

static uint64_t chunk_at(const struct plain_cache *c, uint64_t chunk)
{
	return (c->pages ? c->pages - 1 - chunk : chunk) * c->chunk_bytes;
}

uint64_t *plain_pages(const struct plain_cache *c, unsigned chunks)
{
	uint64_t *table = malloc((chunks + 1) * sizeof *table);

	for (unsigned i = 0; i < chunks; i++)
		table[i] = (uintptr_t)c->k + chunk_at(c, i) - PLAIN_KEYS;
	table[chunks] = c->pages ? 0 : table[0] + chunks * c->chunk_bytes;
	return table;
}

uint64_t plain_values(const struct plain_cache *c) { return (uintptr_t)c->v - (uintptr_t)c->k + PLAIN_KEYS; }

/* Where a head at a position begins: the block of 32 positions with its keys, and its values. */
static uint8_t *keys_at(const struct plain_cache *c, unsigned head, uint64_t position)
{
	return (uint8_t *)c->k + chunk_at(c, position / 128) +
	       (head * 128 + position % 128 / 32 * 32) * plain_cache_row(c->type, c->dims);
}

static uint8_t *values_at(const struct plain_cache *c, unsigned head, uint64_t position)
{
	return (uint8_t *)c->v + chunk_at(c, position / 128) +
	       (head * 128 + position % 128) * plain_cache_row(c->type, c->dims);
}

/* The bytes of dimension d: an element; of int8 the quant, and the scale. */
struct element {
	uint8_t *value, *scale;
};

static struct element key_element(const struct plain_cache *c, unsigned head, uint64_t position, unsigned d)
{
	uint8_t *block = keys_at(c, head, position);
	uint64_t lane = position % 32;
	if (c->octets)
		return (struct element){ block + d / 8 * 512 + lane * 16 + d % 8 * 2, NULL };
	if (c->type != DTYPE_Q8_0)
		return (struct element){ block + (d * 32 + lane) * (c->type == DTYPE_F16 ? 2 : 4), NULL };
	block += d / 32 * (32 * 4 + 32 * 32);
	return (struct element){ block + 128 + d % 32 / 4 * 128 + lane * 4 + d % 4, block + lane * 4 };
}

static struct element value_element(const struct plain_cache *c, unsigned head, uint64_t position, unsigned d)
{
	uint8_t *row = values_at(c, head, c->octets ? position / 8 * 8 : position);
	if (c->octets)
		return (struct element){ row + d / 32 * 512 + d % 32 * 16 + position % 8 * 2, NULL };
	if (c->type != DTYPE_Q8_0)
		return (struct element){ row + d * (c->type == DTYPE_F16 ? 2 : 4), NULL };
	return (struct element){ row + (c->dims + 31) / 32 * 4 + d, row + d / 32 * 4 };
}

static float get(const struct plain_cache *c, struct element e)
{
	uint16_t h;
	float v;
	if (c->type == DTYPE_F16) {
		memcpy(&h, e.value, 2);
		return plain_f16_to_f32(h);
	}
	memcpy(&v, e.scale ? e.scale : e.value, 4);
	return e.scale ? v * (float)(int8_t)*e.value : v;
}

typedef struct element element_fn(const struct plain_cache *c, unsigned head, uint64_t position, unsigned d);

/* Blocks of 32 dimensions, filled up with zeros to whole words of four. */
static void put_int8(const struct plain_cache *c, unsigned head, uint64_t position, const float *x, element_fn *at)
{
	for (unsigned first = 0; first < c->dims; first += 32) {
		float amax = 0.0f;
		for (unsigned d = first; d < c->dims && d < first + 32; d++)
			amax = fabsf(x[d]) > amax ? fabsf(x[d]) : amax;
		float scale = amax / 127.0f;
		memcpy(at(c, head, position, first).scale, &scale, 4);
		for (unsigned d = first; d < (c->dims + 3) / 4 * 4 && d < first + 32; d++) {
			float q = scale == 0.0f || d >= c->dims ? 0.0f : x[d] / scale;
			*at(c, head, position, d).value = (uint8_t)(int8_t)nearbyintf(
				q > 127.0f    ? 127.0f
				: q < -127.0f ? -127.0f
					      : q);
		}
	}
}

static void put(const struct plain_cache *c, unsigned head, uint64_t position, const float *x, element_fn *at)
{
	if (c->type == DTYPE_Q8_0) {
		put_int8(c, head, position, x, at);
		return;
	}
	for (unsigned d = 0; d < c->dims; d++) {
		uint16_t h = plain_f32_to_f16(x[d]);
		uint8_t *to = at(c, head, position, d).value;
		if (c->type == DTYPE_F16)
			memcpy(to, &h, 2);
		else
			memcpy(to, &x[d], 4);
	}
}

void plain_store(const struct plain_cache *c, unsigned head, uint64_t position, const float *key, const float *value)
{
	put(c, head, position, key, key_element);
	put(c, head, position, value, value_element);
}

void plain_spoil(const struct plain_cache *c, unsigned head, uint64_t position)
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned d = 0; d < c->dims; d++) {
			struct element e = (i ? value_element : key_element)(c, head, position, d);
			memset(e.value, 0xff, c->type == DTYPE_F16 ? 2 : c->type == DTYPE_F32 ? 4 : 1);
			if (e.scale)
				memset(e.scale, 0xff, 4);
		}
}

struct head_state {
	float max, sum, o[512];
};

/* The positions first..last of one chunk. */
static void attend_chunk(struct head_state *st, const float *q, const struct plain_cache *c, unsigned head,
                         uint64_t first, uint64_t last, const float *bias, const float *slope, uint64_t column)
{
	float s[NUMERICS_CHUNK], partial[32] = { 0 }, m = -INFINITY;

	for (uint64_t j = first; j <= last; j++) {
		float acc = 0.0f;
		for (unsigned d = 0; d < c->dims; d++)
			acc = fmaf(get(c, key_element(c, head, j, d)), q[d], acc);
		if (c->cap != 0) {
			float t = acc / c->cap, part = 2.0f / (1.0f + plain_exp(t + t));
			acc = c->cap * (1.0f + -part);
		}
		if (bias)
			acc = acc + bias[j];
		if (slope) {
			const float by = (float)((int64_t)j - (int64_t)column) * *slope;
			acc = acc + by;
		}
		s[j - first] = acc;
		m = acc > m ? acc : m;
	}
	for (uint64_t j = first; j <= last; j++) {
		s[j - first] = plain_exp(s[j - first] - m);
		partial[j % 32] += s[j - first];
	}
	float l = sum_lanes(partial), max = m > st->max ? m : st->max;
	float a = plain_exp(st->max - max), b = plain_exp(m - max), lb = l * b;
	st->sum = fmaf(st->sum, a, lb);
	for (unsigned d = 0; d < c->dims; d++) {
		float o = 0.0f;
		for (uint64_t j = first; j <= last; j++)
			o = fmaf(s[j - first], get(c, value_element(c, head, j, d)), o);
		float ob = o * b;
		st->o[d] = fmaf(st->o[d], a, ob);
	}
	st->max = max;
}

void plain_attention(float *out, const float *q, const struct plain_cache *c, unsigned heads, uint64_t position,
                     uint64_t window)
{
	const uint64_t first = window && position + 1 > window ? position + 1 - window : 0;

	plain_attention_of(out, q, c, heads, &(struct plain_sight){ .first = first, .last = position });
}

void plain_attention_of(float *out, const float *q, const struct plain_cache *c, unsigned heads,
                        const struct plain_sight *sight)
{
	unsigned group = heads / c->kv_heads;
	const uint64_t first = sight->first, position = sight->last;

	for (unsigned h = 0; h < heads; h++) {
		struct head_state st = { .max = c->sinks ? c->sinks[h] : -INFINITY, .sum = c->sinks ? 1.0f : 0.0f };
		for (uint64_t j = first; j <= position;) {
			uint64_t end = j / NUMERICS_CHUNK * NUMERICS_CHUNK + NUMERICS_CHUNK - 1;
			end = end < position ? end : position;
			const float *bias =
				sight->bias ? sight->bias + (2 * h + 1) * sight->reach - sight->column : NULL;
			attend_chunk(&st, q + h * c->dims, c, h / group, j, end, bias, c->slopes ? c->slopes + h : NULL,
			             position);
			j = end + 1;
		}
		for (unsigned d = 0; d < c->dims; d++)
			out[h * c->dims + d] = st.o[d] / st.sum;
	}
}

/* tests/plain_attention.c - numerics.h rules 6 to 10 as scalar loops (plain_attention.h). Compile without contraction. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "tests/plain.h"
#include "tests/plain_attention.h"

float plain_exp(float x)
{
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

float plain_f16_to_f32(uint16_t h)
{
	int e = h >> 10 & 31, m = h & 1023;
	double v = e == 31 ? (m ? NAN : INFINITY) : e == 0 ? ldexp(m, -24) : ldexp(1024 + m, e - 25);
	return (float)(h & 0x8000 ? -v : v);
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
	frexp(a, &e);                                     /* a in [2^(e-1), 2^e): eleven bits of it */
	int unit = a == 0.0 || e - 11 < -24 ? -24 : e - 11;
	unsigned q = (unsigned)nearbyint(ldexp(a, -unit));    /* halves go to even */
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

static float norm_scale(const float *x, unsigned n, float eps)
{
	float partial[32] = { 0 };
	for (unsigned i = 0; i < n; i++)
		partial[i % 32] = fmaf(x[i], x[i], partial[i % 32]);
	float mean = sum_lanes(partial) / (float)n;
	return 1.0f / sqrtf(mean + eps);
}

void plain_norm(float *out, int8_t *outq, struct activation_block *outs, const float *x, const float *weight, unsigned k, float eps)
{
	float r = norm_scale(x, k, eps);
	unsigned padded = (k + 31) / 32 * 32;

	for (unsigned i = 0; i < padded; i++)
		out[i] = i < k ? (x[i] * r) * weight[i] : 0.0f;
	if (outq)
		plain_quantise(out, padded / 32, outq, outs);
}

void plain_rotate(float *out, const float *x, unsigned dims, const struct plain_angles *a)
{
	float r = a->norm ? norm_scale(x, dims, a->eps) : 0.0f;
	float y[256];

	for (unsigned i = 0; i < dims; i++)
		y[i] = a->norm ? (x[i] * r) * a->norm[i] : x[i];
	for (unsigned i = 0; i < dims / 2; i++) {
		float p = y[i], q = y[i + dims / 2], c = a->cos[i], s = a->sin[i];
		float qs = q * s, ps = p * s;
		out[i] = fmaf(p, c, -qs);
		out[i + dims / 2] = fmaf(q, c, ps);
	}
}

static void put(const struct plain_cache *c, void *at, uint64_t i, float v)
{
	uint16_t h = plain_f32_to_f16(v);
	if (c->half)
		memcpy((char *)at + i * 2, &h, 2);
	else
		memcpy((char *)at + i * 4, &v, 4);
}

static float get(const struct plain_cache *c, const void *at, uint64_t i)
{
	uint16_t h;
	float v;
	if (!c->half) {
		memcpy(&v, (const char *)at + i * 4, 4);
		return v;
	}
	memcpy(&h, (const char *)at + i * 2, 2);
	return plain_f16_to_f32(h);
}

static uint64_t key_index(const struct plain_cache *c, unsigned head, uint64_t position, unsigned d)
{
	uint64_t block = head * 4 + position % 128 / 32;
	return position / 128 * c->chunk_elements + (block * c->dims + d) * 32 + position % 32;
}

static uint64_t value_index(const struct plain_cache *c, unsigned head, uint64_t position, unsigned d)
{
	return position / 128 * c->chunk_elements + (head * 128 + position % 128) * c->dims + d;
}

void plain_store(const struct plain_cache *c, unsigned head, uint64_t position, const float *key, const float *value)
{
	for (unsigned d = 0; d < c->dims; d++) {
		put(c, c->k, key_index(c, head, position, d), key[d]);
		put(c, c->v, value_index(c, head, position, d), value[d]);
	}
}

struct head_state { float max, sum, o[256]; };

/* The positions first..last of one chunk. */
static void attend_chunk(struct head_state *st, const float *q, const struct plain_cache *c, unsigned head, uint64_t first, uint64_t last)
{
	float s[NUMERICS_CHUNK], partial[32] = { 0 }, m = -INFINITY;

	for (uint64_t j = first; j <= last; j++) {
		float acc = 0.0f;
		for (unsigned d = 0; d < c->dims; d++)
			acc = fmaf(get(c, c->k, key_index(c, head, j, d)), q[d], acc);
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
			o = fmaf(s[j - first], get(c, c->v, value_index(c, head, j, d)), o);
		float ob = o * b;
		st->o[d] = fmaf(st->o[d], a, ob);
	}
	st->max = max;
}

void plain_attention(float *out, const float *q, const struct plain_cache *c, unsigned heads, uint64_t position, uint64_t window)
{
	unsigned group = heads / c->kv_heads;
	uint64_t first = window && position + 1 > window ? position + 1 - window : 0;

	for (unsigned h = 0; h < heads; h++) {
		struct head_state st = { .max = -INFINITY };
		for (uint64_t j = first; j <= position; ) {
			uint64_t end = j / NUMERICS_CHUNK * NUMERICS_CHUNK + NUMERICS_CHUNK - 1;
			end = end < position ? end : position;
			attend_chunk(&st, q + h * c->dims, c, h / group, j, end);
			j = end + 1;
		}
		for (unsigned d = 0; d < c->dims; d++)
			out[h * c->dims + d] = st.o[d] / st.sum;
	}
}

/* tests/kernels/plain.c - plain loops for matmul, quantise and embed (plain.h). Compile without contraction. */
#include <math.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "tests/kernels/plain.h"
#include "tests/kernels/plain_attention.h"
#include "tests/kernels/plain_quants.h"

uint64_t plain_row_bytes(const struct plain_matrix *m) { return dtype_row_bytes(m->type, m->k); }

static float half_at(const uint8_t *p) { return plain_f16_to_f32((uint16_t)(p[0] | p[1] << 8)); }

float plain_weight(const struct plain_matrix *m, uint32_t row, uint32_t k)
{
	const uint8_t *p = m->data + row * plain_row_bytes(m);
	uint32_t bits;
	float f;

	switch (m->type) {
	case DTYPE_F32: memcpy(&f, p + (uint64_t)k * 4, 4); return f;
	case DTYPE_F16: return half_at(p + (uint64_t)k * 2);
	case DTYPE_BF16:
		bits = (uint32_t)p[(uint64_t)k * 2] << 16 | (uint32_t)p[(uint64_t)k * 2 + 1] << 24;
		memcpy(&f, &bits, 4);
		return f;
	default: {
		struct plain_quant w = plain_quant(m->type, p, k);
		float product = w.scale * (float)w.q;
		return w.has_minimum ? product + w.minimum : product;
	}
	}
}

static float combine(const float *total, unsigned n)
{
	return n == 1 ? total[0] : combine(total, n / 2) + combine(total + n / 2, n / 2);
}

/* w: the padded row as floats. */
static float dot_f32(const float *w, uint64_t kp, unsigned spans, const float *x)
{
	float total[NUMERICS_MAX_SPANS], acc;

	for (unsigned s = 0; s < spans; s++) {
		uint64_t first = kp / spans * s, end = first + kp / spans;
		total[s] = 0.0f;
		for (uint64_t segment = first; segment < end; segment += NUMERICS_SEGMENT) {
			acc = 0.0f;
			for (uint64_t k = segment; k < end && k < segment + NUMERICS_SEGMENT; k++)
				acc = fmaf(w[k], x[k], acc);
			total[s] = total[s] + acc;
		}
	}
	return combine(total, spans);
}

uint32_t plain_to_bf16(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	if (isnan(x))
		return (bits | 1u << 22) >> 16 << 16;
	const uint32_t rest = bits & 0xffff, whole = bits - rest;
	return rest > 0x8000 || (rest == 0x8000 && whole & 0x10000) ? whole + 0x10000 : whole;
}

static double normal_or_zero(double x) { return fabs(x) < 0x1p-126 ? copysign(0, x) : x; }

/* c + x * y as rule 13 has it of pairs. Numbers of these tests are far enough from the ends of double, in which the
 * sum of a product of 16 bits and a float is exact, or else rounded to odd. */
static double add_product(double x, double y, double c)
{
	const double product = normal_or_zero(x) * normal_or_zero(y), sum = product + normal_or_zero(c);
	const double of_c = sum - product, error = (product - (sum - of_c)) + (normal_or_zero(c) - of_c);
	int exponent, ignored;

	const bool odd = fmod(ldexp(frexp(sum, &ignored), 53), 2) != 0;
	const double to_odd = error == 0 || odd ? sum : nextafter(sum, error > 0 ? INFINITY : -INFINITY);
	const float part = (float)frexp(to_odd, &exponent);
	return normal_or_zero(ldexp(part, exponent));
}

/* The odd k of a pair first. */
static float dot_of_pairs(const float *w, uint64_t kp, unsigned spans, const float *x)
{
	float total[NUMERICS_MAX_SPANS];

	for (unsigned s = 0; s < spans; s++) {
		uint64_t first = kp / spans * s, end = first + kp / spans;
		total[s] = 0.0f;
		for (uint64_t segment = first; segment < end; segment += NUMERICS_SEGMENT) {
			double acc = 0;
			for (uint64_t k = segment; k < end && k < segment + NUMERICS_SEGMENT; k++) {
				const uint32_t bits = plain_to_bf16(x[k ^ 1]);
				float at;
				memcpy(&at, &bits, 4);
				acc = add_product(w[k ^ 1], at, acc);
			}
			total[s] = total[s] + (float)acc;
		}
	}
	return combine(total, spans);
}

/* Quants first..end-1, all of one block of activations, into one chain. */
static float add_part(float acc, const struct plain_quant *w, uint32_t first, uint32_t end, const int8_t *q,
                      const struct activation_block *x)
{
	int32_t sum = 0;

	for (uint32_t i = first; i < end; i++)
		sum += w[i].q * q[i];
	w += first;
	float both = w->scale * x->d;
	acc = fmaf(both, (float)sum, acc);
	if (w->has_minimum) {
		float d_sum = w->halves ? x->d * (float)x->sum[first % 32 / 16] : x->d_sum;
		acc = fmaf(w->minimum, d_sum, acc);
	}
	return acc;
}

static float dot_int8(const struct plain_quant *w, uint32_t k, const int8_t *q, const struct activation_block *x)
{
	uint32_t blocks = k / 32;
	unsigned spans = numerics_spans(k);
	float acc[NUMERICS_MAX_SPANS];

	for (unsigned s = 0; s < spans; s++) {
		acc[s] = 0.0f;
		for (uint32_t n = blocks / spans * s; n < blocks / spans * (s + 1); n++) {
			uint32_t step = w[n * 32].halves ? 16 : 32;
			for (uint32_t i = n * 32; i < n * 32 + 32; i += step)
				acc[s] = add_part(acc[s], w, i, i + step, q, &x[n]);
		}
	}
	return combine(acc, spans);
}

/* One row of w times every column, into out[column]. */
static void dots(const struct plain_matmul *m, const struct plain_matrix *w, uint32_t row, float *out)
{
	uint64_t kp = numerics_pad(w->k);
	float *weights = calloc(kp, sizeof *weights);
	struct plain_quant *quants = calloc(kp, sizeof *quants);

	for (uint32_t k = 0; weights && m->x && k < w->k && row < w->rows; k++)
		weights[k] = plain_weight(w, row, k);
	for (uint32_t k = 0; quants && !m->x && k < w->k && row < w->rows; k++)
		quants[k] = plain_quant(w->type, w->data + row * plain_row_bytes(w), k);
	for (uint32_t c = 0; c < m->columns; c++)
		if (row >= w->rows)
			out[c] = 0.0f;
		else if (m->dot2)
			out[c] = dot_of_pairs(weights, kp, numerics_spans(w->k), m->x + c * kp);
		else if (m->x)
			out[c] = dot_f32(weights, kp, numerics_spans(w->k), m->x + c * kp);
		else
			out[c] = dot_int8(quants, w->k, m->q + c * kp, m->s + c * (kp / 32));
	free(weights);
	free(quants);
}

static float activate(enum key_act act, float x)
{
	float positive = x > 0.0f ? x : 0.0f;

	switch (act) {
	case ACT_SILU: return x / (1.0f + plain_exp(-x));
	case ACT_GELU: {
		float square = x * x, z = x * fmaf(square, 0.044715f, 1.0f);
		z = z * 1.5957691216057308f;
		return x / (1.0f + plain_exp(-z));
	}
	case ACT_RELU2: return positive * positive;
	case ACT_SIGMOID: return 1.0f / (1.0f + plain_exp(-x));
	case ACT_SWIGLU_OAI: {
		float cut = x < 7.0f ? x : 7.0f, slope = cut * 1.702f;
		return cut / (1.0f + plain_exp(-slope));
	}
	case ACT_GELU_ERF: {
		static const float c[] = { -0.159378134f, 0.210118131f, -0.0571671305f, 0.130416343f,
			                   0.0993471537f, 0.120845526f, 0.11962326f };
		float a = fabsf(x), t = 1.0f / fmaf(a, 0.3f, 1.0f), p = 0.0361948101f, half = a * 0.5f,
		      square = a * half;
		for (int i = 0; i < 7; i++)
			p = fmaf(p, t, c[i]);
		float q = t * p;
		q = q * plain_exp(-square);
		return fmaf(-a, q, positive);
	}
	case ACT_RELU: return positive;
	case ACT_SOFTPLUS: return plain_softplus(x);
	default: assert(false && "an activation function"); return 0;
	}
}

/* act(first) * second */
static float gate(enum key_act act, float first, float second)
{
	if (act == ACT_SWIGLU_OAI)
		second = (second > 7.0f ? 7.0f : second < -7.0f ? -7.0f : second) + 1.0f;
	return activate(act, first) * second;
}

static float finish(const struct plain_matmul *m, uint32_t row, float y, float second, float old)
{
	if (m->flags & KEY_BIAS)
		y = y + m->bias[row];
	if (m->flags & KEY_BIAS2)
		second = second + m->bias2[row];
	if (m->flags & KEY_PAIR)
		y = gate(m->act, y, second);
	if (m->flags & KEY_GATED)
		y = gate(m->act, old, y);
	if (m->act && !(m->flags & (KEY_PAIR | KEY_GATED)))
		y = activate(m->act, y);
	return m->flags & KEY_RESIDUAL ? old + y : y;
}

/* With KEY_SCALED a row block's 32 factors lie in front of its 32 numbers. */
static float adapted(const struct plain_matmul *m, int which, uint32_t c, uint32_t row, float y)
{
	const uint64_t rp = numerics_pad(m->w.rows);
	const float *block = m->added[which] + (c * rp + row / 32 * 32) * 2;

	if (!(m->flags & KEY_SCALED))
		return y + m->added[which][c * rp + row];
	return fmaf(y, block[row % 32], block[32 + row % 32]);
}

void plain_matmul(const struct plain_matmul *m)
{
	uint64_t rp = numerics_pad(m->w.rows);
	float first[PLAIN_MAX_COLUMNS], second[PLAIN_MAX_COLUMNS] = { 0 };

	assert(m->columns <= PLAIN_MAX_COLUMNS);
	for (uint32_t row = 0; row < rp; row++) {
		dots(m, &m->w, row, first);
		if (m->flags & KEY_PAIR)
			dots(m, &m->w2, row, second);
		for (uint32_t c = 0; c < m->columns; c++) {
			float *out = m->out + c * rp + row;
			if (m->flags & KEY_ADDED) {
				first[c] = adapted(m, 0, c, row, first[c]);
				second[c] = m->flags & KEY_PAIR ? adapted(m, 1, c, row, second[c]) : 0;
			}
			*out = finish(m, row, first[c], second[c], *out);
		}
	}
	if (m->flags & KEY_QUANTISED_OUT)
		for (uint32_t c = 0; c < m->columns; c++)
			plain_quantise(m->out + c * rp, rp / 32, m->outq + c * rp, m->outs + c * (rp / 32));
}

void plain_quantise(const float *x, uint64_t blocks, int8_t *q, struct activation_block *s)
{
	for (uint64_t n = 0; n < blocks; n++) {
		const float *in = x + n * 32;
		float largest = 0.0f, d;
		int sum = 0;
		for (unsigned i = 0; i < 32; i++)
			largest = fabsf(in[i]) > largest ? fabsf(in[i]) : largest;
		d = largest / 127.0f;
		s[n] = (struct activation_block){ .d = d };
		for (unsigned i = 0; i < 32; i++) {
			float r = d == 0.0f ? 0.0f : in[i] / d;
			r = r > 127.0f ? 127.0f : r < -127.0f ? -127.0f : r;
			q[n * 32 + i] = (int8_t)nearbyintf(r);
			s[n].sum[i / 16] += q[n * 32 + i];
			sum += q[n * 32 + i];
		}
		s[n].d_sum = d * (float)sum;
	}
}

void plain_embed(const struct plain_matrix *w, const int32_t *ids, uint32_t columns, float *out)
{
	uint64_t kp = numerics_pad(w->k);
	for (uint32_t c = 0; c < columns; c++)
		for (uint64_t k = 0; k < kp; k++)
			out[c * kp + k] = k < w->k ? plain_weight(w, (uint32_t)ids[c], (uint32_t)k) : 0.0f;
}

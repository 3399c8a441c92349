/* tests/loaders/model_to_gguf.c - see model_to_gguf.h. */
#include "tests/loaders/model_to_gguf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/model/model_arch.h"

float half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff, bits;
	float f;

	if (exponent == 0) {
		f = ldexpf((float)fraction, -24);
		return sign ? -f : f;
	}
	bits = exponent == 31 ? sign | 0x7f800000 | fraction << 13 : sign | (exponent + 112) << 23 | fraction << 13;
	memcpy(&f, &bits, 4);
	return f;
}

/* To nearest, ties to even. */
uint16_t float_to_half(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	uint16_t sign = bits >> 16 & 0x8000;
	bits &= 0x7fffffff;
	if (bits > 0x7f800000)
		return sign | 0x7e00;
	if (bits >= 0x477ff000)
		return sign | 0x7c00;
	if (bits < 0x38800000)
		return sign | (uint16_t)lrintf(ldexpf(fabsf(f), 24));
	bits += 0xfff + (bits >> 13 & 1);
	return sign | (uint16_t)((bits >> 13) - (112 << 10));
}

static uint16_t float_to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	if ((bits & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint8_t *model_tensor_bytes(const struct model *m, const struct model_tensor *t)
{
	uint8_t *p = t->bytes ? malloc(t->bytes) : NULL;

	if (t->bytes && (!p || !model_read(m, t, 0, t->bytes, p, NULL)))
		abort();
	return p;
}

static void decode_row(const struct model_tensor *t, const uint8_t *data, uint64_t row, float *out)
{
	const uint8_t *p = data + row * t->row_bytes;

	for (uint64_t i = 0; i < t->cols; i++) {
		uint16_t h = 0;
		if (t->type == DTYPE_F32) {
			memcpy(&out[i], p + 4 * i, 4);
			continue;
		}
		memcpy(&h, p + 2 * i, 2);
		uint32_t bits = (uint32_t)h << 16;
		if (t->type == DTYPE_F16)
			out[i] = half_to_float(h);
		else
			memcpy(&out[i], &bits, 4);
	}
}

static void encode_q8_0(struct bytes *b, const float *x)
{
	float max = 0;
	int8_t q[32];

	for (int i = 0; i < 32; i++)
		max = fmaxf(max, fabsf(x[i]));
	float scale = max / 127, inverse = scale > 0 ? 1 / scale : 0; /* the inverse, as every writer of Q8_0 has it */
	uint16_t half = float_to_half(scale);
	for (int i = 0; i < 32; i++)
		q[i] = (int8_t)roundf(x[i] * inverse);
	bytes_put(b, &half, 2);
	bytes_put(b, q, 32);
}

static void encode_row(struct bytes *b, enum dtype type, const float *x, uint64_t n)
{
	for (uint64_t i = 0; i < n; i += type == DTYPE_Q8_0 ? 32 : 1) {
		uint16_t h = type == DTYPE_F16 ? float_to_half(x[i]) : float_to_bf16(x[i]);
		if (type == DTYPE_Q8_0)
			encode_q8_0(b, x + i);
		else
			bytes_put(b, type == DTYPE_F32 ? (const void *)&x[i] : &h, type == DTYPE_F32 ? 4 : 2);
	}
}

/* GGUF's row r of a head is row (r % 2) * half + r / 2 of the halves apart. */
static uint64_t source_row(uint64_t r, uint32_t head_dim)
{
	uint64_t head = r / head_dim * head_dim, in = r % head_dim;

	return head + in % 2 * (head_dim / 2) + in / 2;
}

static void put_tensor(struct gguf_writer *w, const struct model *m, const char *name, const struct model_tensor *t,
                       enum dtype type, uint32_t pair_head_dim)
{
	bool vector = t->rows == 1;
	struct bytes b = { 0 };
	float *row = malloc(t->cols * sizeof *row), *moved = malloc(t->cols * sizeof *row);

	if (!t->bytes) {
		free(row);
		free(moved);
		return;
	}
	if (!row || !moved)
		abort();
	uint8_t *data = model_tensor_bytes(m, t);
	if (vector || (type == DTYPE_Q8_0 && t->cols % 32))
		type = DTYPE_F32;
	for (uint64_t r = 0; r < t->rows; r++) {
		decode_row(t, data, pair_head_dim && !vector ? source_row(r, pair_head_dim) : r, row);
		for (uint64_t i = 0; i < t->cols; i++)
			moved[i] = pair_head_dim && vector ? row[source_row(i, pair_head_dim)] : row[i];
		encode_row(&b, type, moved, t->cols);
	}
	gguf_write_tensor(w, name, type, vector ? 1 : 2, (const uint64_t[]){ t->cols, t->rows }, b.p, b.n);
	bytes_forget(&b);
	free(data);
	free(row);
	free(moved);
}

/* Where the file says pairs and the model is by halves, rows move; the other way round no model here needs. */
static void put_layer(struct gguf_writer *w, const struct model *m, uint32_t i, bool pairs_in_file, enum dtype type)
{
	const struct model_spec *s = &m->spec;
	const struct model_layer *l = &s->layer[i];
	uint32_t pairs = pairs_in_file && !l->q.rope_pairs ? s->head_dim : 0;
	const struct {
		const char *name;
		const struct model_tensor *t;
		uint32_t pairs;
	} list[] = {
		{ "attn_norm.weight", &l->attn_norm, 0 }, { "attn_q.weight", &l->q, pairs },
		{ "attn_k.weight", &l->k, pairs },        { "attn_v.weight", &l->v, 0 },
		{ "attn_output.weight", &l->o, 0 },       { "ffn_norm.weight", &l->ffn_norm, 0 },
		{ "ffn_gate.weight", &l->gate, 0 },       { "ffn_up.weight", &l->up, 0 },
		{ "ffn_down.weight", &l->down, 0 },       { "attn_q.bias", &l->q_bias, pairs },
		{ "attn_k.bias", &l->k_bias, pairs },     { "attn_v.bias", &l->v_bias, 0 },
		{ "attn_output.bias", &l->o_bias, 0 },    { "ffn_gate.bias", &l->gate_bias, 0 },
		{ "ffn_up.bias", &l->up_bias, 0 },        { "ffn_down.bias", &l->down_bias, 0 },
		{ "attn_q_norm.weight", &l->q_norm, 0 },  { "attn_k_norm.weight", &l->k_norm, 0 },
	};
	char name[64];

	for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
		snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", i, list[k].name);
		put_tensor(w, m, name, list[k].t, type, list[k].pairs);
	}
}

/* llama3 scaling as GGUF has it: a divisor for each frequency. */
static void put_llama3(struct gguf_writer *w, const struct model_rope *r)
{
	uint32_t half = r->dims / 2;
	float *factor = malloc(half * sizeof *factor);

	if (!factor)
		abort();
	for (uint32_t i = 0; i < half; i++) {
		double wavelength = 2 * 3.14159265358979323846 * pow(r->theta, 2.0 * i / r->dims),
		       swaps = r->original_context / wavelength;
		double smooth = (swaps - r->low_freq_factor) / (r->high_freq_factor - r->low_freq_factor);
		smooth = smooth < 0 ? 0 : smooth > 1 ? 1 : smooth;
		factor[i] = (float)(1 / ((1 - smooth) / r->factor + smooth));
	}
	gguf_write_tensor(w, "rope_freqs.weight", DTYPE_F32, 1, (const uint64_t[]){ half }, factor,
	                  half * sizeof *factor);
	free(factor);
}

static void key_u32(struct gguf_writer *w, const char *arch, const char *suffix, uint32_t value)
{
	char key[96];

	snprintf(key, sizeof key, "%s.%s", arch, suffix);
	gguf_write_u32(w, key, value);
}

static void key_f32(struct gguf_writer *w, const char *arch, const char *suffix, double value)
{
	char key[96];

	snprintf(key, sizeof key, "%s.%s", arch, suffix);
	gguf_write_f32(w, key, (float)value);
}

static void put_rope(struct gguf_writer *w, const char *arch, const struct model_rope *r)
{
	char key[96];

	key_u32(w, arch, "rope.dimension_count", r->dims);
	key_f32(w, arch, "rope.freq_base", r->theta);
	if (r->scaling != ROPE_LINEAR && r->scaling != ROPE_YARN)
		return;
	snprintf(key, sizeof key, "%s.rope.scaling.type", arch);
	gguf_write_string(w, key, r->scaling == ROPE_YARN ? "yarn" : "linear");
	key_f32(w, arch, "rope.scaling.factor", r->factor);
	if (r->scaling == ROPE_LINEAR)
		return;
	key_u32(w, arch, "rope.scaling.original_context_length", r->original_context);
	key_f32(w, arch, "rope.scaling.yarn_beta_fast", r->beta_fast);
	key_f32(w, arch, "rope.scaling.yarn_beta_slow", r->beta_slow);
	key_f32(w, arch, "rope.scaling.attn_factor",
	        r->attention_factor / (r->factor > 1 ? 0.1 * log(r->factor) + 1 : 1));
}

bool model_to_gguf(struct gguf_writer *w, const struct model *m, enum dtype type, struct error *err)
{
	const struct model_spec *s = &m->spec;
	const struct arch_row *same = arch_of_hf(s->arch_name);
	const char *arch = same && !same->gguf ? "llama" : s->arch_name;
	const struct arch_row *row = arch_of_gguf(arch, strlen(arch));

	if (s->layer_is_sliding || (s->rope.scaling == ROPE_YARN && !s->rope.yarn_truncate))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: GGUF cannot say that only some layers slide, or that YaRN does not truncate",
		                 s->name);
	gguf_writer_start(w, 3, 32);
	gguf_write_string(w, "general.architecture", arch);
	gguf_write_string(w, "general.name", s->name);
	key_u32(w, arch, "block_count", s->layers);
	key_u32(w, arch, "context_length", s->context_train);
	key_u32(w, arch, "embedding_length", s->hidden);
	key_u32(w, arch, "feed_forward_length", s->ffn);
	key_u32(w, arch, "attention.head_count", s->heads);
	key_u32(w, arch, "attention.head_count_kv", s->kv_heads);
	key_u32(w, arch, "attention.key_length", s->head_dim);
	key_u32(w, arch, "attention.value_length", s->head_dim);
	key_u32(w, arch, "vocab_size", s->vocab);
	key_f32(w, arch, "attention.layer_norm_rms_epsilon", (double)s->norm_eps);
	if (s->sliding_window)
		key_u32(w, arch, "attention.sliding_window", s->sliding_window);
	put_rope(w, arch, &s->rope);
	put_tensor(w, m, "token_embd.weight", &s->embed, type, 0);
	put_tensor(w, m, "output_norm.weight", &s->final_norm, type, 0);
	if (!s->tied)
		put_tensor(w, m, "output.weight", &s->lm_head, type, 0);
	if (s->rope.scaling == ROPE_LLAMA3)
		put_llama3(w, &s->rope);
	for (uint32_t i = 0; i < s->layers; i++)
		put_layer(w, m, i, row && row->gguf_pairs, type);
	return true;
}

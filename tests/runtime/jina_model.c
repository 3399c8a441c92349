/* tests/runtime/jina_model.c - see jina_model.h. */
#include "tests/runtime/jina_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/loaders/model_to_gguf.h"
#include "loaders/files/gguf_write.h"
#include "tests/loaders/st_writer.h"
#include "tests/runtime/tiny_model.h"

enum { HIDDEN = JINA_HIDDEN, HEADS = 6, DIM = HIDDEN / HEADS, FFN = 64, LAYERS = 2, TENSORS = 5 + LAYERS * 15 };

struct matrix {
	char hf[80], gguf[60];
	uint64_t rows, columns; /* rows: 0: a vector */
	float *w;
};
static struct matrix all[TENSORS];
static unsigned made;

static uint32_t state;

static int below(int n)
{
	state = state * 1664525 + 1013904223;
	return (int)((state >> 8) % (uint32_t)n);
}

/* Numbers of seven bits. about: what they lie around; scale: a power of two. */
static void put(const char *hf, const char *gguf, uint64_t rows, uint64_t columns, float about, float scale)
{
	struct matrix *m = &all[made++];
	const uint64_t n = (rows ? rows : 1) * columns;

	snprintf(m->hf, sizeof m->hf, "%s", hf);
	snprintf(m->gguf, sizeof m->gguf, "%s", gguf);
	m->rows = rows;
	m->columns = columns;
	m->w = calloc(n, sizeof *m->w);
	assert_non_null(m->w);
	for (uint64_t i = 0; i < n; i++)
		m->w[i] = about + (float)(below(127) - 63) * scale;
}

static void put_of(unsigned layer, const char *hf, const char *gguf, uint64_t rows, uint64_t columns, float about,
                   float scale)
{
	char a[80], b[60];

	snprintf(a, sizeof a, "encoder.layer.%u.%s", layer, hf);
	snprintf(b, sizeof b, "blk.%u.%s", layer, gguf);
	put(a, b, rows, columns, about, scale);
}

static void make(void)
{
	if (made)
		return;
	state = 5;
	put("embeddings.word_embeddings.weight", "token_embd.weight", JINA_VOCAB, HIDDEN, 0, 0x1p-6F);
	put("embeddings.token_type_embeddings.weight", "token_types.weight", 2, HIDDEN, 0, 0x1p-7F);
	put("embeddings.LayerNorm.weight", "token_embd_norm.weight", 0, HIDDEN, 1, 0x1p-7F);
	put("embeddings.LayerNorm.bias", "token_embd_norm.bias", 0, HIDDEN, 0, 0x1p-8F);
	for (unsigned i = 0; i < LAYERS; i++) {
		put_of(i, "attention.self.query.weight", "attn_q.weight", HIDDEN, HIDDEN, 0, 0x1p-8F);
		put_of(i, "attention.self.query.bias", "attn_q.bias", 0, HIDDEN, 0, 0x1p-8F);
		put_of(i, "attention.self.key.weight", "attn_k.weight", HIDDEN, HIDDEN, 0, 0x1p-8F);
		put_of(i, "attention.self.key.bias", "attn_k.bias", 0, HIDDEN, 0, 0x1p-8F);
		put_of(i, "attention.self.value.weight", "attn_v.weight", HIDDEN, HIDDEN, 0, 0x1p-8F);
		put_of(i, "attention.self.value.bias", "attn_v.bias", 0, HIDDEN, 0, 0x1p-8F);
		put_of(i, "attention.output.dense.weight", "attn_output.weight", HIDDEN, HIDDEN, 0, 0x1p-8F);
		put_of(i, "attention.output.dense.bias", "attn_output.bias", 0, HIDDEN, 0, 0x1p-8F);
		put_of(i, "attention.output.LayerNorm.weight", "attn_output_norm.weight", 0, HIDDEN, 1, 0x1p-7F);
		put_of(i, "attention.output.LayerNorm.bias", "attn_output_norm.bias", 0, HIDDEN, 0, 0x1p-8F);
		put_of(i, "mlp.gated_layers.weight", "ffn_up.weight", 2 * FFN, HIDDEN, 0, 0x1p-8F);
		put_of(i, "mlp.wo.weight", "ffn_down.weight", HIDDEN, FFN, 0, 0x1p-8F);
		put_of(i, "mlp.wo.bias", "ffn_down.bias", 0, HIDDEN, 0, 0x1p-8F);
		put_of(i, "mlp.layernorm.weight", "layer_output_norm.weight", 0, HIDDEN, 1, 0x1p-7F);
		put_of(i, "mlp.layernorm.bias", "layer_output_norm.bias", 0, HIDDEN, 0, 0x1p-8F);
	}
	put("pooler.dense.weight", "", HIDDEN, HIDDEN, 0, 0x1p-8F);
	assert_int_equal(made, TENSORS);
}

void jina_write_folder(const char *dir, const char *feeds)
{
	struct st_writer w;
	char config[1000];
	size_t n;

	make();
	n = (size_t)snprintf(config, sizeof config,
	                     "{\"architectures\": [\"JinaBertForMaskedLM\"], \"model_type\": \"bert\", "
	                     "\"position_embedding_type\": \"alibi\", %s%s%s\"emb_pooler\": \"mean\", "
	                     "\"hidden_act\": \"gelu\", \"hidden_size\": %d, \"num_attention_heads\": %d, "
	                     "\"num_hidden_layers\": %d, \"intermediate_size\": %d, \"vocab_size\": %d, "
	                     "\"type_vocab_size\": 2, \"max_position_embeddings\": %d, \"layer_norm_eps\": 1e-12, "
	                     "\"model_max_length\": 8192, \"attn_implementation\": null, \"pad_token_id\": 0}",
	                     feeds ? "\"feed_forward_type\": \"" : "", feeds ? feeds : "", feeds ? "\", " : "", HIDDEN,
	                     HEADS, LAYERS, FFN, JINA_VOCAB, JINA_CONTEXT);
	tiny_write(dir, "config.json", config, n);
	st_writer_start(&w);
	for (unsigned i = 0; i < TENSORS; i++) {
		const struct matrix *m = &all[i];
		const uint64_t shape[] = { m->rows ? m->rows : m->columns, m->columns };
		st_write_tensor(&w, m->hf, DTYPE_F32, m->rows ? 2 : 1, shape, m->w,
		                (m->rows ? m->rows : 1) * m->columns * sizeof *m->w);
	}
	uint8_t *file = st_writer_finish(&w, 8, &n);
	tiny_write(dir, "model.safetensors", file, n);
	free(file);
}

/* ---- GGUF */

struct part {
	char name[60];
	enum dtype type;
	uint64_t rows, columns;
	const float *w;
};

static void put_part(struct part *p, unsigned *n, const char *name, enum dtype type, uint64_t rows, uint64_t columns,
                     const float *w)
{
	p[*n] = (struct part){ .type = rows && strcmp(name, "token_types.weight") != 0 ? type : DTYPE_F32,
		               .rows = rows,
		               .columns = columns,
		               .w = w };
	snprintf(p[*n].name, sizeof p->name, "%s", name);
	++*n;
}

static void put_data(const struct gguf_out *o, const struct part *p)
{
	static const uint8_t zeros[64];
	const uint64_t n = (p->rows ? p->rows : 1) * p->columns;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t bits;
		memcpy(&bits, &p->w[i], 4);
		const uint16_t half = p->type == DTYPE_F16 ? float_to_half(p->w[i]) : (uint16_t)(bits >> 16);
		fwrite(p->type == DTYPE_F32 ? (const void *)&p->w[i] : &half, dtype_table[p->type].bytes, 1, o->f);
	}
	fwrite(zeros, 1, gguf_put_padding(o, n * dtype_table[p->type].bytes), o->f);
}

void jina_write_gguf(const char *path, enum dtype type, bool fused)
{
	struct part part[TENSORS + LAYERS];
	struct gguf_out o;
	FILE *f = fopen(path, "wb");
	unsigned n = 0;

	make();
	assert_non_null(f);
	for (unsigned i = 0; i < TENSORS; i++) {
		const struct matrix *m = &all[i];
		char gate[60];
		if (!m->gguf[0])
			continue;
		if (fused || m->rows != 2 * FFN) {
			put_part(part, &n, m->gguf, type, m->rows, m->columns, m->w);
			continue;
		}
		snprintf(gate, sizeof gate, "%.*s.ffn_gate.weight", (int)strcspn(m->gguf + 4, ".") + 4, m->gguf);
		put_part(part, &n, gate, type, FFN, HIDDEN, m->w);
		put_part(part, &n, m->gguf, type, FFN, HIDDEN, m->w + FFN * HIDDEN);
	}
	gguf_put_begin(&o, f, 32);
	gguf_put_string(&o, "general.architecture", "jina-bert-v2");
	gguf_put_u32(&o, "jina-bert-v2.context_length", JINA_CONTEXT);
	gguf_put_u32(&o, "jina-bert-v2.embedding_length", HIDDEN);
	gguf_put_u32(&o, "jina-bert-v2.feed_forward_length", FFN);
	gguf_put_u32(&o, "jina-bert-v2.block_count", LAYERS);
	gguf_put_u32(&o, "jina-bert-v2.attention.head_count", HEADS);
	gguf_put_f32(&o, "jina-bert-v2.attention.layer_norm_epsilon", 1e-12F);
	gguf_put_key(&o, "jina-bert-v2.attention.causal", GGUF_BOOL);
	gguf_put_raw(&o, "", 1);
	for (unsigned i = 0; i < n; i++) {
		const uint64_t ne[] = { part[i].columns, part[i].rows };
		gguf_put_tensor(&o, (struct gguf_str){ part[i].name, strlen(part[i].name) }, part[i].type,
		                part[i].rows ? 2 : 1, ne);
	}
	gguf_put_end(&o);
	for (unsigned i = 0; i < n; i++)
		put_data(&o, &part[i]);
	assert_int_equal(fclose(f), 0);
}

/* ---- plain loops */

/* layer: from 1; 0: of the embedding */
static const float *named(unsigned layer, const char *name)
{
	char whole[80];

	if (layer)
		snprintf(whole, sizeof whole, "encoder.layer.%u.%s", layer - 1, name);
	else
		snprintf(whole, sizeof whole, "embeddings.%s", name);
	for (unsigned i = 0; i < TENSORS; i++)
		if (strcmp(all[i].hf, whole) == 0)
			return all[i].w;
	fail_msg("no tensor %s", whole);
	return NULL;
}

/* y = w x + b, of rows of x. */
static void product(double *y, const double *x, size_t n, const float *w, const float *b, int rows, int columns)
{
	for (size_t t = 0; t < n; t++)
		for (int r = 0; r < rows; r++) {
			double sum = b ? (double)b[r] : 0;
			for (int c = 0; c < columns; c++)
				sum += (double)w[r * columns + c] * x[t * (size_t)columns + (size_t)c];
			y[t * (size_t)rows + (size_t)r] = sum;
		}
}

static void norm(double *x, size_t n, const float *w, const float *b)
{
	for (size_t t = 0; t < n; t++, x += HIDDEN) {
		double mean = 0, square = 0;
		for (int i = 0; i < HIDDEN; i++)
			mean += x[i] / HIDDEN;
		for (int i = 0; i < HIDDEN; i++)
			square += (x[i] - mean) * (x[i] - mean) / HIDDEN;
		for (int i = 0; i < HIDDEN; i++)
			x[i] = (x[i] - mean) / sqrt(square + 1e-12) * (double)w[i] + (double)b[i];
	}
}

/* What a head's scores lose with distance: of the greatest power of two of heads first, then what lies between. */
static double slope(int head) { return head < 4 ? pow(2, -2.0 * (head + 1)) : pow(2, -(2.0 * (head - 4) + 1)); }

static void attend(double *y, const double *q, const double *k, const double *v, size_t n)
{
	double *p = calloc(n, sizeof *p);

	for (int h = 0; h < HEADS; h++)
		for (size_t t = 0; t < n; t++) {
			double max = -INFINITY, sum = 0;
			for (size_t s = 0; s < n; s++) {
				p[s] = -slope(h) * fabs((double)t - (double)s);
				for (int i = h * DIM; i < (h + 1) * DIM; i++)
					p[s] += q[t * HIDDEN + (size_t)i] * k[s * HIDDEN + (size_t)i] / sqrt(DIM);
				max = fmax(max, p[s]);
			}
			for (size_t s = 0; s < n; s++)
				sum += p[s] = exp(p[s] - max);
			for (int i = h * DIM; i < (h + 1) * DIM; i++) {
				y[t * HIDDEN + (size_t)i] = 0;
				for (size_t s = 0; s < n; s++)
					y[t * HIDDEN + (size_t)i] += p[s] / sum * v[s * HIDDEN + (size_t)i];
			}
		}
	free(p);
}

static void add(double *x, const double *y, size_t n)
{
	for (size_t i = 0; i < n * HIDDEN; i++)
		x[i] += y[i];
}

static void layer(double *x, size_t n, unsigned at)
{
	double *m = calloc(n * (5 * HIDDEN + 3 * FFN), sizeof *m), *q = m, *k = q + n * HIDDEN, *v = k + n * HIDDEN,
	       *a = v + n * HIDDEN, *y = a + n * HIDDEN, *g = y + n * HIDDEN, *f = g + n * 2 * FFN;

	product(q, x, n, named(at, "attention.self.query.weight"), named(at, "attention.self.query.bias"), HIDDEN,
	        HIDDEN);
	product(k, x, n, named(at, "attention.self.key.weight"), named(at, "attention.self.key.bias"), HIDDEN, HIDDEN);
	product(v, x, n, named(at, "attention.self.value.weight"), named(at, "attention.self.value.bias"), HIDDEN,
	        HIDDEN);
	attend(a, q, k, v, n);
	product(y, a, n, named(at, "attention.output.dense.weight"), named(at, "attention.output.dense.bias"), HIDDEN,
	        HIDDEN);
	add(x, y, n);
	norm(x, n, named(at, "attention.output.LayerNorm.weight"), named(at, "attention.output.LayerNorm.bias"));
	product(g, x, n, named(at, "mlp.gated_layers.weight"), NULL, 2 * FFN, HIDDEN);
	for (size_t t = 0; t < n; t++)
		for (int i = 0; i < FFN; i++) {
			const double z = g[t * 2 * FFN + (size_t)i];
			f[t * FFN + (size_t)i] = z / 2 * (1 + erf(z / sqrt(2))) * g[t * 2 * FFN + FFN + (size_t)i];
		}
	product(y, f, n, named(at, "mlp.wo.weight"), named(at, "mlp.wo.bias"), HIDDEN, FFN);
	add(x, y, n);
	norm(x, n, named(at, "mlp.layernorm.weight"), named(at, "mlp.layernorm.bias"));
	free(m);
}

void jina_plain(const int32_t *ids, const int32_t *types, size_t n, double *rows)
{
	make();
	const float *word = named(0, "word_embeddings.weight"), *type = named(0, "token_type_embeddings.weight");
	for (size_t t = 0; t < n; t++)
		for (size_t i = 0; i < HIDDEN; i++)
			rows[t * HIDDEN + i] =
				(double)word[(size_t)ids[t] * HIDDEN + i] + (double)type[(size_t)types[t] * HIDDEN + i];
	norm(rows, n, named(0, "LayerNorm.weight"), named(0, "LayerNorm.bias"));
	for (unsigned i = 0; i < LAYERS; i++)
		layer(rows, n, i + 1);
}

/* tests/runtime/latent_model.c - see latent_model.h. Failures of the system end the test program. */
#include "tests/runtime/latent_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/loaders/gguf_writer.h"
#include "tests/loaders/model_to_gguf.h"
#include "tests/loaders/st_writer.h"
#include "tests/runtime/tiny_model.h"

enum { MAX_TOKENS = 160, MAX = 2048 };
enum { HIDDEN = LATENT_HIDDEN, FFN = LATENT_FFN };

/* ---- weights: each tensor's numbers follow from its name */

static uint32_t of_name(const struct latent_model *m, const char *name)
{
	uint32_t h = 2166136261u ^ m->seed * 2654435761u;

	for (const char *p = name; *p; p++)
		h = (h ^ (uint8_t)*p) * 16777619u;
	return h;
}

static float number_of(uint32_t h, uint64_t i)
{
	h ^= (uint32_t)i * 2246822519u;
	h = (h ^ h >> 15) * 2654435769u;
	h = (h ^ h >> 13) * 3266489917u;
	h ^= h >> 16;
	return (float)((int)(h >> 24) - 128) / 512;
}

static float number(const struct latent_model *m, const char *name, uint64_t i)
{
	return number_of(of_name(m, name), i);
}

struct tensor {
	char name[80];       /* in safetensors */
	unsigned rows, cols; /* rows 0: a vector, of a norm */
};

static float *values(const struct latent_model *m, const struct tensor *t)
{
	uint64_t n = (uint64_t)(t->rows ? t->rows : 1) * t->cols;
	float *out = malloc(n * sizeof *out);

	if (!out)
		abort();
	for (uint64_t i = 0; i < n; i++)
		out[i] = number(m, t->name, i) + (t->rows ? 0 : 1);
	return out;
}

/* Of a layer, and its name in GGUF; k_b and v_b are apart there. */
struct named {
	struct tensor t;
	const char *gguf;
};

static unsigned layer_tensors(const struct latent_model *m, unsigned layer, struct named out[16])
{
	unsigned head = m->rest + m->rotating, from = m->query_rank ? m->query_rank : HIDDEN, n = 0;
	const struct {
		const char *name, *gguf;
		unsigned rows, cols;
	} all[] = {
		{ "input_layernorm", "attn_norm", 0, HIDDEN },
		{ m->query_rank ? "self_attn.q_b_proj" : "self_attn.q_proj", m->query_rank ? "attn_q_b" : "attn_q",
		  m->heads * head, from },
		{ "self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa", m->rank + m->rotating, HIDDEN },
		{ "self_attn.kv_a_layernorm", "attn_kv_a_norm", 0, m->rank },
		{ "self_attn.kv_b_proj", NULL, m->heads * (m->rest + m->value), m->rank },
		{ "self_attn.o_proj", "attn_output", HIDDEN, m->heads * m->value },
		{ "post_attention_layernorm", "ffn_norm", 0, HIDDEN },
		{ "mlp.gate_proj", "ffn_gate", FFN, HIDDEN },
		{ "mlp.up_proj", "ffn_up", FFN, HIDDEN },
		{ "mlp.down_proj", "ffn_down", HIDDEN, FFN },
		{ "self_attn.q_a_proj", "attn_q_a", m->query_rank, HIDDEN },
		{ "self_attn.q_a_layernorm", "attn_q_a_norm", 0, m->query_rank },
	};

	for (unsigned i = 0; i < sizeof all / sizeof *all - (m->query_rank ? 0 : 2); i++, n++) {
		snprintf(out[n].t.name, sizeof out[n].t.name, "model.layers.%u.%s.weight", layer, all[i].name);
		out[n].t.rows = all[i].rows;
		out[n].t.cols = all[i].cols;
		out[n].gguf = all[i].gguf;
	}
	return n;
}

static const struct tensor outer[] = { { "model.embed_tokens.weight", LATENT_VOCAB, HIDDEN },
	                               { "model.norm.weight", 0, HIDDEN },
	                               { "lm_head.weight", LATENT_VOCAB, HIDDEN } };

/* ---- safetensors */

static void put_hf(const struct latent_model *m, struct st_writer *w, const struct tensor *t)
{
	bool longer = m->longer && strstr(t->name, m->longer);
	struct tensor more = *t;
	more.rows += longer;
	float *v = values(m, &more);
	uint64_t shape[2] = { more.rows ? more.rows : more.cols, more.cols };

	st_write_tensor(w, t->name, DTYPE_F32, more.rows ? 2 : 1, shape, v,
	                (size_t)(more.rows ? more.rows : 1) * more.cols * 4);
	free(v);
}

void latent_write_hf(const struct latent_model *m, const char *folder)
{
	struct st_writer w;
	char config[1500], low[60] = "null";
	size_t n;

	st_writer_start(&w);
	for (int i = 0; i < 3; i++)
		put_hf(m, &w, &outer[i]);
	for (unsigned l = 0; l < LATENT_LAYERS + m->later; l++) {
		struct named t[16];
		for (unsigned i = 0, all = layer_tensors(m, l, t); i < all; i++)
			put_hf(m, &w, &t[i].t);
	}
	uint8_t *file = st_writer_finish(&w, 8, &n);
	tiny_write(folder, "model.safetensors", file, n);
	free(file);
	if (m->query_rank)
		snprintf(low, sizeof low, "%u", m->query_rank);
	snprintf(config, sizeof config,
	         "{\"model_type\": \"deepseek_v3\", \"architectures\": [\"DeepseekV3ForCausalLM\"], "
	         "\"num_hidden_layers\": %d, \"hidden_size\": %d, \"intermediate_size\": %d, \"vocab_size\": %d, "
	         "\"num_attention_heads\": %u, \"num_key_value_heads\": %u, \"hidden_act\": \"silu\", "
	         "\"rms_norm_eps\": 1e-05, \"max_position_embeddings\": 512, \"tie_word_embeddings\": false, "
	         "\"kv_lora_rank\": %u, \"q_lora_rank\": %s, \"qk_nope_head_dim\": %u, \"qk_rope_head_dim\": %u, "
	         "\"v_head_dim\": %u, \"rope_interleave\": true, \"rope_theta\": 10000.0, "
	         "\"num_nextn_predict_layers\": %u%s}",
	         LATENT_LAYERS, HIDDEN, FFN, LATENT_VOCAB, m->heads, m->heads, m->rank, low, m->rest, m->rotating,
	         m->value, m->said,
	         m->yarn ? ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"beta_fast\": 32, "
	                   "\"beta_slow\": 1, \"original_max_position_embeddings\": 64, \"mscale\": 1.0, "
	                   "\"mscale_all_dim\": 1.0}"
	                 : "");
	tiny_write(folder, "config.json", config, strlen(config));
}

/* ---- GGUF */

static void put_gguf(const struct latent_model *m, struct gguf_writer *w, const char *name, enum dtype type,
                     const uint64_t ne[3], unsigned dims, const float *v)
{
	uint64_t count = ne[0] * ne[1] * ne[2];
	uint8_t *q = NULL;
	size_t bytes = count * 4;

	if (m->skip && strstr(name, m->skip))
		return;
	if (type == DTYPE_Q8_0 && ne[0] % 32 == 0 && dims > 1) {
		q = malloc(bytes = count / 32 * 34);
		if (!q)
			abort();
		for (uint64_t b = 0; b < count / 32; b++) {
			uint16_t half = float_to_half(1.0f / 512);
			memcpy(q + b * 34, &half, 2);
			for (int i = 0; i < 32; i++)
				q[b * 34 + 2 + (uint64_t)i] =
					(uint8_t)(int8_t)fmaxf(-127, v[b * 32 + (uint64_t)i] * 512);
		}
	}
	gguf_write_tensor(w, name, q ? DTYPE_Q8_0 : DTYPE_F32, dims, ne, q ? (const void *)q : v, bytes);
	free(q);
}

/* What the converter makes of kv_b_proj. */
static void put_by_head(const struct latent_model *m, struct gguf_writer *w, unsigned layer, enum dtype type,
                        const float *v)
{
	unsigned each = m->rest + m->value;
	float *k = malloc((size_t)m->heads * m->rank * m->rest * 4),
	      *o = calloc((size_t)m->heads * m->rank * (m->value + 1), 4);
	bool longer = m->longer && strcmp(m->longer, "attn_v_b.weight") == 0;
	const uint64_t kne[3] = { m->rest, m->rank, m->heads }, one[3] = { m->rank, m->value + longer, m->heads };
	char name[60];

	if (!k || !o)
		abort();
	for (unsigned h = 0; h < m->heads; h++)
		for (unsigned l = 0; l < m->rank; l++) {
			for (unsigned d = 0; d < m->rest; d++)
				k[(h * m->rank + l) * m->rest + d] = v[(h * each + d) * m->rank + l];
			for (unsigned d = 0; d < m->value; d++)
				o[(h * m->value + d) * m->rank + l] = v[(h * each + m->rest + d) * m->rank + l];
		}
	snprintf(name, sizeof name, "blk.%u.attn_k_b.weight", layer);
	put_gguf(m, w, name, type, kne, 3, k);
	snprintf(name, sizeof name, "blk.%u.attn_v_b.weight", layer);
	put_gguf(m, w, name, type, one, 3, o);
	free(k);
	free(o);
}

static void put_keys(const struct latent_model *m, struct gguf_writer *w)
{
	const struct {
		const char *name;
		unsigned value;
	} key[] = { { "block_count", LATENT_LAYERS + m->said },
		    { "nextn_predict_layers", m->said },
		    { "context_length", 512 },
		    { "embedding_length", HIDDEN },
		    { "feed_forward_length", FFN },
		    { "attention.head_count", m->heads },
		    { "attention.head_count_kv", 1 },
		    { "attention.key_length", m->rank + m->rotating },
		    { "attention.value_length", m->rank },
		    { "attention.kv_lora_rank", m->rank },
		    { "attention.key_length_mla", m->rest + m->rotating },
		    { "attention.value_length_mla", m->value },
		    { "rope.dimension_count", m->rotating },
		    { "attention.q_lora_rank", m->query_rank } };
	char name[80];

	gguf_write_string(w, "general.architecture", "deepseek2");
	for (size_t i = 0; i < sizeof key / sizeof *key - !m->query_rank; i++) {
		snprintf(name, sizeof name, "deepseek2.%s", key[i].name);
		if (!m->skip || strcmp(m->skip, key[i].name) != 0)
			gguf_write_u32(w, name, key[i].value);
	}
	if (m->key)
		gguf_write_u32(w, m->key, m->key_value);
	gguf_write_f32(w, "deepseek2.attention.layer_norm_rms_epsilon", 1e-5f);
	gguf_write_f32(w, "deepseek2.rope.freq_base", 10000);
	if (!m->yarn)
		return;
	gguf_write_string(w, "deepseek2.rope.scaling.type", "yarn");
	gguf_write_f32(w, "deepseek2.rope.scaling.factor", 4);
	gguf_write_u32(w, "deepseek2.rope.scaling.original_context_length", 64);
	gguf_write_f32(w, "deepseek2.rope.scaling.yarn_log_multiplier", 0.1f);
}

void latent_write_gguf(const struct latent_model *m, const char *path, enum dtype type)
{
	static const char *const names[] = { "token_embd.weight", "output_norm.weight", "output.weight" };
	struct gguf_writer w = { 0 };
	char name[80], folder[200];
	size_t n;

	gguf_writer_start(&w, 3, 32);
	put_keys(m, &w);
	for (int i = 0; i < 3; i++) {
		float *v = values(m, &outer[i]);
		put_gguf(m, &w, names[i], i == 0 ? DTYPE_F32 : type,
		         (const uint64_t[]){ HIDDEN, i == 1 ? 1 : LATENT_VOCAB, 1 }, i == 1 ? 1 : 2, v);
		free(v);
	}
	for (unsigned l = 0; l < LATENT_LAYERS + m->later; l++) {
		struct named t[16];
		for (unsigned i = 0, all = layer_tensors(m, l, t); i < all; i++) {
			float *v = values(m, &t[i].t);
			const uint64_t ne[3] = { t[i].t.cols, t[i].t.rows ? t[i].t.rows : 1, 1 };
			snprintf(name, sizeof name, "blk.%u.%s.weight", l, t[i].gguf ? t[i].gguf : "");
			if (t[i].gguf)
				put_gguf(m, &w, name, type, ne, t[i].t.rows ? 2 : 1, v);
			else
				put_by_head(m, &w, l, type, v);
			free(v);
		}
	}
	uint8_t *file = gguf_writer_finish(&w, &n);
	const char *slash = strrchr(path, '/');
	snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
	tiny_write(folder, slash + 1, file, n);
	free(file);
	gguf_writer_free(&w);
}

/* ---- the model in double precision, keys and values made for each head */

static double weight(const struct latent_model *m, const char *layer_name, unsigned layer, uint64_t i)
{
	char name[80];
	snprintf(name, sizeof name, "model.layers.%u.%s.weight", layer, layer_name);
	return (double)number(m, name, i);
}

/* out[rows] = W x */
static void times(const struct latent_model *m, const char *name, unsigned layer, unsigned rows, unsigned cols,
                  const double *x, double *out)
{
	char full[80];
	snprintf(full, sizeof full, "model.layers.%u.%s.weight", layer, name);
	uint32_t base = of_name(m, full);
	for (unsigned r = 0; r < rows; r++) {
		out[r] = 0;
		for (unsigned c = 0; c < cols; c++)
			out[r] += (double)number_of(base, (uint64_t)r * cols + c) * x[c];
	}
}

static void norm(const struct latent_model *m, const char *name, unsigned layer, unsigned n, double eps,
                 const double *x, double *out)
{
	double ss = 0;
	for (unsigned i = 0; i < n; i++)
		ss += x[i] * x[i];
	double r = 1 / sqrt(ss / n + eps);
	for (unsigned i = 0; i < n; i++)
		out[i] = x[i] * r * (1 + weight(m, name, layer, i));
}

/* Adjacent pairs of what rotates. */
static void rotate(const struct latent_model *m, double *x, int position)
{
	const double pi = 3.14159265358979323846;
	unsigned n = m->rotating;
	double low = floor(n * log(64 / (32 * 2 * pi)) / (2 * log(10000))),
	       high = ceil(n * log(64 / (1 * 2 * pi)) / (2 * log(10000)));

	low = low < 0 ? 0 : low;
	high = high > n - 1 ? n - 1 : high;
	for (unsigned i = 0; i < n / 2; i++) {
		double f = pow(10000, -2.0 * i / n), ramp = (i - low) / (high == low ? 0.001 : high - low);
		ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
		f = m->yarn ? f / 4 * ramp + f * (1 - ramp) : f;
		double c = cos(position * f), s = sin(position * f), a = x[2 * i], b = x[2 * i + 1];
		x[2 * i] = a * c - b * s;
		x[2 * i + 1] = b * c + a * s;
	}
}

/* All of one layer's keys, values and rotated parts so far. */
struct history {
	double key[MAX_TOKENS][MAX], rotates[MAX_TOKENS][256];
};

static void attend(const struct latent_model *m, const struct history *h, const double *q, int position, double *out)
{
	unsigned head = m->rest + m->rotating, each = m->rest + m->value;
	double by = m->yarn ? 0.1 * log(4) + 1 : 1, scale = by * by / sqrt(head);

	for (unsigned i = 0; i < m->heads; i++) {
		double s[MAX_TOKENS], max = -INFINITY, sum = 0;
		for (int p = 0; p <= position; p++) {
			s[p] = 0;
			for (unsigned d = 0; d < m->rest; d++)
				s[p] += q[i * head + d] * h->key[p][i * each + d];
			for (unsigned d = 0; d < m->rotating; d++)
				s[p] += q[i * head + m->rest + d] * h->rotates[p][d];
			s[p] *= scale;
			max = fmax(max, s[p]);
		}
		for (int p = 0; p <= position; p++)
			sum += s[p] = exp(s[p] - max);
		for (unsigned d = 0; d < m->value; d++) {
			out[i * m->value + d] = 0;
			for (int p = 0; p <= position; p++)
				out[i * m->value + d] += s[p] / sum * h->key[p][i * each + m->rest + d];
		}
	}
}

static void one_layer(const struct latent_model *m, unsigned layer, struct history *h, double *x, int position)
{
	double xn[HIDDEN], low[MAX], q[MAX], kv[MAX], latent[MAX], o[MAX], y[MAX], gate[FFN], up[FFN];
	unsigned head = m->rest + m->rotating;

	norm(m, "input_layernorm", layer, HIDDEN, 1e-5, x, xn);
	if (m->query_rank) {
		times(m, "self_attn.q_a_proj", layer, m->query_rank, HIDDEN, xn, low);
		norm(m, "self_attn.q_a_layernorm", layer, m->query_rank, 1e-6, low, latent);
		times(m, "self_attn.q_b_proj", layer, m->heads * head, m->query_rank, latent, q);
	} else {
		times(m, "self_attn.q_proj", layer, m->heads * head, HIDDEN, xn, q);
	}
	times(m, "self_attn.kv_a_proj_with_mqa", layer, m->rank + m->rotating, HIDDEN, xn, kv);
	norm(m, "self_attn.kv_a_layernorm", layer, m->rank, 1e-6, kv, latent);
	times(m, "self_attn.kv_b_proj", layer, m->heads * (m->rest + m->value), m->rank, latent, h->key[position]);
	rotate(m, kv + m->rank, position);
	memcpy(h->rotates[position], kv + m->rank, m->rotating * sizeof *kv);
	for (unsigned i = 0; i < m->heads; i++)
		rotate(m, q + i * head + m->rest, position);
	attend(m, h, q, position, o);
	times(m, "self_attn.o_proj", layer, HIDDEN, m->heads * m->value, o, y);
	for (int i = 0; i < HIDDEN; i++)
		x[i] += y[i];
	norm(m, "post_attention_layernorm", layer, HIDDEN, 1e-5, x, xn);
	times(m, "mlp.gate_proj", layer, FFN, HIDDEN, xn, gate);
	times(m, "mlp.up_proj", layer, FFN, HIDDEN, xn, up);
	for (int i = 0; i < FFN; i++)
		up[i] *= gate[i] / (1 + exp(-gate[i]));
	times(m, "mlp.down_proj", layer, HIDDEN, FFN, up, y);
	for (int i = 0; i < HIDDEN; i++)
		x[i] += y[i];
}

void latent_logits(const struct latent_model *m, const int *ids, int n, double out[LATENT_VOCAB])
{
	struct history *h = calloc(LATENT_LAYERS, sizeof *h);
	double x[HIDDEN], ss = 0;

	if (!h)
		abort();
	for (int p = 0; p < n; p++) {
		for (int i = 0; i < HIDDEN; i++)
			x[i] = (double)number(m, outer[0].name, (uint64_t)(ids[p] * HIDDEN + i));
		for (unsigned l = 0; l < LATENT_LAYERS; l++)
			one_layer(m, l, &h[l], x, p);
	}
	for (int i = 0; i < HIDDEN; i++)
		ss += x[i] * x[i];
	for (int v = 0; v < LATENT_VOCAB; v++) {
		out[v] = 0;
		for (int i = 0; i < HIDDEN; i++)
			out[v] += (double)number(m, outer[2].name, (uint64_t)(v * HIDDEN + i)) * x[i] /
			          sqrt(ss / HIDDEN + 1e-5) * (1 + (double)number(m, outer[1].name, (uint64_t)i));
	}
	free(h);
}

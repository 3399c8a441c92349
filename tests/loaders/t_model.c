/* tests/loaders/t_model.c - models opened from memory: every architecture and shape from both containers, every setting
 * of config.json, and every way a model can contradict itself. Paths and files are in t_model_files.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "loaders/model/model_load.h"
#include "tests/support/guarded.h"
#include "tests/loaders/model_to_gguf.h"
#include "tests/loaders/st_writer.h"
#include "tests/runtime/tiny_model.h"
#include "tests/loaders/model_check.h"

static struct opened open_gguf(const struct tiny_model *t, enum dtype type)
{
	struct opened o = { 0 };
	size_t n;

	o.weights = tiny_gguf(t, type, &n, &o.err);
	o.ok = o.weights && model_open_memory(&o.m, o.weights, n, NULL, 0, 0, &o.err);
	return o;
}

static float element(const struct model_tensor *t, const uint8_t *data, uint64_t row, uint64_t col)
{
	const uint8_t *p = data + row * t->row_bytes + col * dtype_table[t->type].bytes;
	uint32_t bits = 0;
	uint16_t h;
	float f;

	memcpy(&h, p, 2);
	if (t->type == DTYPE_F16)
		return half_to_float(h);
	if (t->type == DTYPE_F32)
		memcpy(&bits, p, 4);
	else
		bits = (uint32_t)h << 16;
	memcpy(&f, &bits, 4);
	return f;
}

/* Where row r (halves apart) is in a tensor that may hold its rotation pairs side by side. */
static uint64_t stored(const struct model_tensor *t, uint64_t r, uint32_t head_dim)
{
	uint64_t in = r % head_dim, half = head_dim / 2;

	return t->rope_pairs ? r - in + (in < half ? 2 * in : 2 * (in - half) + 1) : r;
}

static void same_tensor(const struct model *ma, const struct model_tensor *a, const struct model *mb,
                        const struct model_tensor *b)
{
	const uint32_t head_dim = ma->spec.head_dim;

	assert_int_equal(a->bytes != 0, b->bytes != 0);
	if (!a->bytes)
		return;
	assert_true(a->rows == b->rows && a->cols == b->cols);
	assert_true(a->row_bytes * a->rows == a->bytes && b->row_bytes * b->rows == b->bytes);
	uint8_t *p = model_tensor_bytes(ma, a), *q = model_tensor_bytes(mb, b);
	for (uint64_t r = 0; r < a->rows; r++)
		for (uint64_t c = 0; c < a->cols; c++) {
			bool vector = a->rows == 1;
			float x =
				element(a, p, vector ? 0 : stored(a, r, head_dim), vector ? stored(a, c, head_dim) : c);
			float y =
				element(b, q, vector ? 0 : stored(b, r, head_dim), vector ? stored(b, c, head_dim) : c);
			if (x != y)
				fail_msg("%s [%d][%d]: %g and %g", a->name, (int)r, (int)c, (double)x, (double)y);
		}
	free(p);
	free(q);
}

static void same_models(const struct model *ma, const struct model *mb)
{
	const struct model_spec *a = &ma->spec, *b = &mb->spec;

	assert_true(a->layers == b->layers && a->hidden == b->hidden && a->ffn == b->ffn && a->heads == b->heads &&
	            a->kv_heads == b->kv_heads);
	assert_true(a->head_dim == b->head_dim && a->vocab == b->vocab && a->context_train == b->context_train &&
	            a->sliding_window == b->sliding_window);
	assert_true(a->norm_eps == b->norm_eps && a->tied == b->tied && a->rope.dims == b->rope.dims &&
	            a->rope.theta == b->rope.theta);
	same_tensor(ma, &a->embed, mb, &b->embed);
	same_tensor(ma, &a->final_norm, mb, &b->final_norm);
	same_tensor(ma, &a->lm_head, mb, &b->lm_head);
	for (uint32_t i = 0; i < a->layers; i++)
		for (int k = 0; k < TENSOR_SLOTS; k++)
			same_tensor(ma, (const struct model_tensor *)&a->layer[i] + k, mb,
			            (const struct model_tensor *)&b->layer[i] + k);
}

static void check_layer(const struct tiny_model *t, const struct model_layer *l)
{
	bool qwen2 = !strcmp(t->arch, "qwen2"), qwen3 = !strcmp(t->arch, "qwen3");

	assert_true(l->q.rows == t->heads * t->head_dim && l->q.cols == t->hidden &&
	            l->k.rows == t->kv_heads * t->head_dim && l->v.rows == l->k.rows);
	assert_true(l->o.rows == t->hidden && l->o.cols == t->heads * t->head_dim && l->gate.rows == t->ffn &&
	            l->up.rows == t->ffn && l->down.cols == t->ffn);
	assert_true(l->attn_norm.rows == 1 && l->attn_norm.cols == t->hidden);
	assert_int_equal(l->q_bias.bytes != 0, t->attention_bias || qwen2);
	assert_int_equal(l->o_bias.bytes != 0, t->attention_bias && !qwen2);
	assert_int_equal(l->down_bias.bytes != 0, t->mlp_bias);
	assert_int_equal(l->q_norm.bytes != 0, qwen3);
	assert_int_equal(l->k_norm.bytes != 0, qwen3);
}

static const struct tiny_model shapes[] = {
	{ "llama", 2, 288, 768, 6, 6, 48, 997, DTYPE_F32, .tied = true },
	{ "llama", 1, 200, 333, 5, 1, 40, 31, DTYPE_BF16, .attention_bias = true, .mlp_bias = true },
	{ "llama", 3, 160, 96, 4, 2, 80, 33, DTYPE_F16, .tied = false },
	{ "mistral", 2, 64, 172, 8, 2, 8, 65, DTYPE_BF16, .extra = ",\"sliding_window\": 16" },
	{ "mistral", 1, 64, 64, 2, 2, 16, 10, DTYPE_F16, .extra = ",\"sliding_window\": null, \"rope_theta\": 1000000",
	  .align = 1 },
	{ "qwen2", 2, 56, 128, 7, 1, 8, 77, DTYPE_BF16, .tied = true,
	  .extra = ",\"use_sliding_window\": false, \"sliding_window\": 32" },
	{ "qwen3", 2, 64, 96, 4, 2, 32, 50, DTYPE_F32,
	  .extra = ",\"rope_parameters\": {\"rope_theta\": 1e6, \"rope_type\": \"default\"}" },
	{ "qwen3", 1, 32, 96, 2, 1, 128, 50, DTYPE_BF16, .tied = true, .attention_bias = true },
	{ "llama", 1, 4, 6, 2, 1, 2, 5, DTYPE_F32, .tied = true },
};

static void test_both_containers_agree(void **state)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const struct tiny_model *t = &shapes[i];
		struct opened hf = open_hf(t), f32 = open_gguf(t, DTYPE_F32), f16 = open_gguf(t, DTYPE_F16),
			      bf16 = open_gguf(t, DTYPE_BF16);
		if (!hf.ok || !f32.ok || !f16.ok || !bf16.ok)
			fail_msg("%zu: %s%s%s%s", i, hf.err.text, f32.err.text, f16.err.text, bf16.err.text);
		assert_int_equal(hf.m.spec.tied, t->tied);
		for (uint32_t k = 0; k < t->layers; k++)
			check_layer(t, &hf.m.spec.layer[k]);
		bool pairs = strcmp(t->arch, "llama") == 0 || strcmp(t->arch, "mistral") == 0;
		assert_int_equal(f32.m.spec.layer[0].q.rope_pairs, pairs);
		assert_int_equal(f32.m.spec.layer[0].k_bias.rope_pairs, pairs && t->attention_bias);
		assert_false(f32.m.spec.layer[0].v.rope_pairs || hf.m.spec.layer[0].q.rope_pairs);
		assert_int_equal(hf.m.spec.lm_head.offset == hf.m.spec.embed.offset, t->tied);
		same_models(&hf.m, &f32.m);
		same_models(&hf.m, &f16.m);
		same_models(&hf.m, &bf16.m);
		close_it(&hf);
		close_it(&f32);
		close_it(&f16);
		close_it(&bf16);
	}
}

static void test_q8_0(void **state)
{
	struct opened o = open_gguf(&shapes[0], DTYPE_Q8_0);
	char line[100];

	assert_true(o.ok);
	assert_int_equal(o.m.spec.layer[1].down.type, DTYPE_Q8_0);
	assert_int_equal(o.m.spec.layer[1].down.row_bytes, 768 / 32 * 34);
	assert_int_equal(o.m.spec.layer[1].ffn_norm.type, DTYPE_F32);
	model_describe(&o.m, line, sizeof line);
	assert_string_equal(line, "llama 2 layers, hidden 288, Q8_0");
	close_it(&o);
}

static void test_missing_tensors(void **state)
{
	static const struct {
		const char *arch, *tensor;
	} gone[] = {
		{ "llama", "model.embed_tokens.weight" },
		{ "llama", "model.norm.weight" },
		{ "llama", "model.layers.1.mlp.down_proj.weight" },
		{ "llama", "model.layers.0.input_layernorm.weight" },
		{ "qwen2", "model.layers.0.self_attn.k_proj.bias" },
		{ "qwen3", "model.layers.1.self_attn.q_norm.weight" },
		{ "llama", "lm_head.weight" },
	};

	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
		struct tiny_model t = { gone[i].arch, 2, 16, 24, 4, 2, 4, 9, DTYPE_F32, .skip = gone[i].tensor };
		struct opened o = open_hf(&t);
		char want[120];
		snprintf(want, sizeof want, "the tensor %s is missing", gone[i].tensor);
		if (o.ok || !strstr(o.err.text, want))
			fail_msg("%s: %s", gone[i].tensor, o.ok ? "opened" : o.err.text);
		close_it(&o);
	}
}

/* What a file holds beside the tensors of its kind of model. */
static void test_tensors_left_over(void **state)
{
	static const struct {
		const char *arch, *tensor;
		bool harmless;
	} more[] = {
		{ "llama", "model.layers.0.self_attn.rotary_emb.inv_freq", true },
		{ "mistral", "model.layers.31.self_attn.rotary_emb.inv_freq", true },
		{ "llama", "model.rotary_emb.inv_freq", true },
		{ "llama", "model.layers.0.self_attn.q_proj.weight_scale", false },
		{ "llama", "model.layers.0.self_attn.q_proj.lora_A.weight", false },
		{ "llama", "lm_head.bias", false },
		{ "llama", "model.layers.0.self_attn.q_norm.weight", false },
		{ "llama", "model.layers.2.input_layernorm.weight", false },
		{ "llama", "model.layers.0.mlp.gate.weight", false },
		{ "mistral", "model.layers.0.self_attn.q_proj.bias", false },
		{ "qwen2", "model.layers.0.self_attn.o_proj.bias", false },
		{ "qwen3", "model.layers.0.self_attn.sinks", false },
		{ "llama", "model.layers.x.self_attn.rotary_emb.inv_freq", false },
		{ "llama", "model.layers.0.self_attn.rotary_emb.inv_freq2", false },
	};
	char want[160];

	for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
		struct tiny_model t = { more[i].arch, 2, 16, 24, 4, 2, 4, 9, DTYPE_F32, .add = more[i].tensor };
		struct opened o = open_hf(&t);
		snprintf(want, sizeof want, "the tensor %s is none that jitrun computes with in a %s model",
		         more[i].tensor, more[i].arch);
		if (o.ok != more[i].harmless || (!o.ok && !strstr(o.err.text, want)))
			fail_msg("%s: %s", more[i].tensor, o.ok ? "opened" : o.err.text);
		close_it(&o);
	}
}

/* An output matrix that is said to be the embedding, and is in the file all the same. */
static void test_head_beside_tied_embedding(void **state)
{
	for (unsigned head = HEAD_AS_TIED; head <= HEAD_OTHER; head++) {
		struct tiny_model t = { "llama", 2, 16, 24, 4, 2, 4, 9, DTYPE_BF16, .tied = true, .head = head };
		struct opened o = open_hf(&t);
		assert_int_equal(o.ok, head != HEAD_OTHER);
		if (o.ok)
			assert_true(o.m.spec.tied && o.m.spec.lm_head.offset == o.m.spec.embed.offset);
		else
			assert_non_null(strstr(o.err.text,
			                       "the tensor lm_head.weight differs from model.embed_tokens.weight, "
			                       "but tie_word_embeddings says that they are the same"));
		close_it(&o);
	}
}

/* Fields where another value can make another sound file: free quantities, and names or forms that only hide a key not
 * needed, or describe a tensor that still fits (F16 instead of F32). The file's structure and the sizes are not among
 * them. */
static bool may_vary(const char *what)
{
	static const char *const list[] = {
		"context_length", "freq_base",     "factor",  "beta_fast", "beta_slow", "epsilon",       "key length",
		"value type",     "string length", "version", "rank",      "dimension", "tensor offset", "tensor type"
	};

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		size_t n = strlen(what), m = strlen(list[i]);
		if (n >= m && strcmp(what + n - m, list[i]) == 0)
			return true;
	}
	return false;
}

static void test_every_field_of_gguf_falsified(void **state)
{
	static const uint64_t bad[] = { 0, 1, 3, 1ull << 31, UINT32_MAX, 1ull << 63, (1ull << 63) - 1, UINT64_MAX };
	const struct tiny_model t = {
		"qwen3",
		1,
		4,
		6,
		2,
		1,
		2,
		5,
		DTYPE_F32,
		.tied = true,
		.extra = ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4}"
	};
	size_t n_weights, n, refused = 0, tried = 0;
	uint8_t *weights = tiny_safetensors(&t, &n_weights);
	char *config = tiny_config(&t);
	struct gguf_writer w;
	struct model m;

	assert_true(model_open_memory(&m, weights, n_weights, config, strlen(config), 0, NULL) &&
	            model_to_gguf(&w, &m, DTYPE_F32, NULL));
	model_close(&m);
	uint8_t *p = gguf_writer_finish(&w, &n);
	struct guarded guard = guarded_open(n);
	for (size_t i = 0; i < w.n_fields; i++)
		for (size_t k = 0; k < sizeof bad / sizeof *bad; k++, tried++) {
			uint8_t *q = (uint8_t *)(uintptr_t)guarded_copy(&guard, p, n);
			struct error err = { 0 };
			bool same = memcmp(q + w.field[i].at, &bad[k], w.field[i].bytes) == 0;
			memcpy(q + w.field[i].at, &bad[k], w.field[i].bytes);
			const clock_t start = clock();
			bool ok = model_open_memory(&m, q, n, NULL, 0, 0, &err);
			if (clock() - start > 2 * CLOCKS_PER_SEC)
				fail_msg("%s = %llx kept it busy for over 2 s", w.field[i].what,
				         (unsigned long long)bad[k]);
			assert_int_equal(ok, err.code == ERROR_NONE);
			if (ok && !same && !may_vary(w.field[i].what))
				fail_msg("%s = %llx was accepted", w.field[i].what, (unsigned long long)bad[k]);
			refused += !ok;
			if (ok)
				model_close(&m);
		}
	assert_true(refused > tried * 3 / 4);
	guarded_close(&guard);
	gguf_writer_free(&w);
	free(p);
	free(config);
	free(weights);
}

static void test_truncation_at_every_byte(void **state)
{
	char *config = tiny_config(&tiny_min);
	size_t n[2];
	uint8_t *p[2] = { tiny_safetensors(&tiny_min, &n[0]), tiny_gguf(&tiny_min, DTYPE_BF16, &n[1], NULL) };

	for (int form = 0; form < 2; form++) {
		struct guarded guard = guarded_open(n[form]);
		size_t heads = 0;
		for (size_t cut = 0; cut <= n[form]; cut++) {
			const uint8_t *q = guarded_copy(&guard, p[form], cut);
			struct model m;
			assert_int_equal(model_open_memory(&m, q, cut, form ? NULL : config, strlen(config), 0, NULL),
			                 cut == n[form]);
			if (m.file)
				model_close(&m);
			if (model_open_memory(&m, q, cut, form ? NULL : config, strlen(config), MODEL_HEADER_ONLY,
			                      NULL)) {
				const struct model_tensor *t = &m.spec.layer[0].down;
				uint8_t byte;
				assert_true(!model_read(&m, t, 0, 1, &byte, NULL) && t->rows == 4 && t->cols == 6 &&
				            t->bytes == t->rows * t->row_bytes && m.spec.layer[0].q_bias.bytes == 0);
				heads++;
				model_close(&m);
			}
		}
		assert_true(heads > 100 && heads < n[form]);
		guarded_close(&guard);
		free(p[form]);
	}
	free(config);
}

/* Channels and taps of queries, keys and values, 0: no such tensor; type: of the keys' tensor. */
struct taps_case {
	uint64_t channels[3], taps;
	enum dtype type;
	const char *says; /* NULL: it opens */
};

/* A layer with the delta rule before one with attention: hidden size 32, two heads of 16 and of 32. */
static uint8_t *olmo_hybrid(const struct taps_case *c, size_t *n)
{
	static const struct {
		const char *name;
		uint64_t rows, cols; /* rows 0: a vector */
	} list[] = {
		{ "model.embed_tokens.weight", 5, 32 },
		{ "model.norm.weight", 0, 32 },
		{ "lm_head.weight", 5, 32 },
		{ "model.layers.0.attention_layer_norm.weight", 0, 32 },
		{ "model.layers.0.feedforward_layer_norm.weight", 0, 32 },
		{ "model.layers.0.linear_attn.q_proj.weight", 32, 32 },
		{ "model.layers.0.linear_attn.k_proj.weight", 32, 32 },
		{ "model.layers.0.linear_attn.v_proj.weight", 64, 32 },
		{ "model.layers.0.linear_attn.a_proj.weight", 2, 32 },
		{ "model.layers.0.linear_attn.b_proj.weight", 2, 32 },
		{ "model.layers.0.linear_attn.g_proj.weight", 64, 32 },
		{ "model.layers.0.linear_attn.o_proj.weight", 32, 64 },
		{ "model.layers.0.linear_attn.A_log", 0, 2 },
		{ "model.layers.0.linear_attn.dt_bias", 0, 2 },
		{ "model.layers.0.linear_attn.o_norm.weight", 0, 32 },
		{ "model.layers.1.self_attn.q_proj.weight", 32, 32 },
		{ "model.layers.1.self_attn.k_proj.weight", 32, 32 },
		{ "model.layers.1.self_attn.v_proj.weight", 32, 32 },
		{ "model.layers.1.self_attn.o_proj.weight", 32, 32 },
		{ "model.layers.1.self_attn.q_norm.weight", 0, 32 },
		{ "model.layers.1.self_attn.k_norm.weight", 0, 32 },
		{ "model.layers.1.post_attention_layernorm.weight", 0, 32 },
		{ "model.layers.1.post_feedforward_layernorm.weight", 0, 32 },
		{ "model.layers.0.mlp.gate_proj.weight", 32, 32 },
		{ "model.layers.0.mlp.up_proj.weight", 32, 32 },
		{ "model.layers.0.mlp.down_proj.weight", 32, 32 },
		{ "model.layers.1.mlp.gate_proj.weight", 32, 32 },
		{ "model.layers.1.mlp.up_proj.weight", 32, 32 },
		{ "model.layers.1.mlp.down_proj.weight", 32, 32 }
	};
	struct st_writer w;
	char name[80];
	st_writer_start(&w);
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		const uint64_t rows = list[i].rows, cols = list[i].cols;
		st_write_tensor(&w, list[i].name, DTYPE_F32, rows ? 2 : 1, rows ? (uint64_t[]){ rows, cols } : &cols,
		                NULL, (rows ? rows : 1) * cols * 4);
	}
	for (int i = 0; i < 3; i++) {
		const enum dtype type = i == 1 ? c->type : DTYPE_F32;
		snprintf(name, sizeof name, "model.layers.0.linear_attn.%c_conv1d.weight", "qkv"[i]);
		if (c->channels[i])
			st_write_tensor(&w, name, type, 3, (uint64_t[]){ c->channels[i], 1, c->taps }, NULL,
			                c->channels[i] * c->taps * dtype_table[type].bytes);
	}
	return st_writer_finish(&w, 8, n);
}

/* Where one ends and the next begins is not asked: the sum of their channels is. */
static void test_taps_apart(void **state)
{
	static const char config[] =
		"{\"model_type\": \"olmo_hybrid\", \"num_hidden_layers\": 2, \"hidden_size\": 32, "
		"\"intermediate_size\": 32, \"vocab_size\": 5, \"num_attention_heads\": 2, "
		"\"linear_key_head_dim\": 16, \"linear_value_head_dim\": 32, \"layer_types\": "
		"[\"linear_attention\", \"full_attention\"]}";
	static const struct taps_case cases[] = {
		{ { 32, 32, 64 }, 4, DTYPE_F32, NULL },
		{ { 43, 43, 42 }, 4, DTYPE_F32, NULL },
		{ { 32, 0, 64 }, 4, DTYPE_F32, "the tensor model.layers.0.linear_attn.k_conv1d.weight is missing" },
		{ { 32, 32, 63 }, 4, DTYPE_F32, "have taps of 127 channels, expected 128" },
		{ { 32, 32, 64 }, 3, DTYPE_F32, "q_conv1d.weight has 3 taps of 32 channels, expected 4 of some" },
		{ { 32, 32, 64 }, 4, DTYPE_F16, "k_conv1d.weight has type F16, expected F32 as before it" }
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error err = { 0 };
		struct model m;
		size_t n;
		uint8_t *weights = olmo_hybrid(&cases[i], &n);
		const bool ok = model_open_memory(&m, weights, n, config, strlen(config), 0, &err);
		if (ok != !cases[i].says || (!ok && !strstr(err.text, cases[i].says)))
			fail_msg("case %zu: expected \"%s\", got \"%s\"", i, cases[i].says ? cases[i].says : "ok",
			         ok ? "ok" : err.text);
		if (ok) {
			float taps[128 * 4];
			assert_int_equal(m.spec.layer[0].taps.bytes, sizeof taps);
			assert_true(model_read(&m, &m.spec.layer[0].taps, 0, sizeof taps, taps, &err));
			for (size_t k = 0; k < sizeof taps / sizeof *taps; k++)
				assert_true(taps[k] == 0);
			model_close(&m);
		}
		free(weights);
	}
}

static void test_llama4_refused(void **state)
{
	static const char base[] = "{\"model_type\": \"llama4_text\", \"num_hidden_layers\": 4, %s}";
	static const struct {
		const char *field, *says;
	} cases[] = {
		{ "\"num_experts_per_tok\": 2", "a token goes to 2 experts whose inputs are scaled" },
		{ "\"interleave_moe_layer_step\": 0", "interleave_moe_layer_step is 0, expected 1" },
		{ "\"moe_layers\": [4]", "an element of moe_layers" },
		{ "\"floor_scale\": 1.5", "floor_scale is 1.5, expected an integer" },
		{ "\"attn_temperature_tuning\": \"x\"", "attn_temperature_tuning is a string" },
		{ "\"attention_chunk_size\": 0", "attention_chunk_size is 0, expected at least 1" },
		{ "\"layer_types\": [\"sliding_attention\", \"\", \"\", \"\"]", "chunked_attention" },
	};
	char config[300];
	size_t n;
	uint8_t *weights = tiny_safetensors(&tiny_min, &n);
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error err = { 0 };
		struct model m;
		snprintf(config, sizeof config, base, cases[i].field);
		if (model_open_memory(&m, weights, n, config, strlen(config), 0, &err) ||
		    !strstr(err.text, cases[i].says))
			fail_msg("%s: expected \"%s\", got \"%s\"", cases[i].field, cases[i].says, err.text);
	}
	free(weights);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_containers_agree),
		cmocka_unit_test(test_q8_0),
		cmocka_unit_test(test_missing_tensors),
		cmocka_unit_test(test_tensors_left_over),
		cmocka_unit_test(test_head_beside_tied_embedding),
		cmocka_unit_test(test_every_field_of_gguf_falsified),
		cmocka_unit_test(test_truncation_at_every_byte),
		cmocka_unit_test(test_taps_apart),
		cmocka_unit_test(test_llama4_refused),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += model_config_tests();
	return failed;
}

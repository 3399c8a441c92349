/* tests/loaders/t_model.c - models opened from memory: every architecture and shape from both containers, every setting
 * of config.json, and every way a model can contradict itself. Paths and files are in t_model_files.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/model_load.h"
#include "tests/support/guarded.h"
#include "tests/loaders/model_to_gguf.h"
#include "tests/runtime/tiny_model.h"

struct opened {
	struct model m;
	uint8_t *weights;
	char *config;
	bool ok;
	struct error err;
};

static struct opened open_hf(const struct tiny_model *t)
{
	struct opened o = { 0 };
	size_t n;

	o.weights = tiny_safetensors(t, &n);
	o.config = tiny_config(t);
	o.ok = model_open_memory(&o.m, o.weights, n, o.config, strlen(o.config), 0, &o.err);
	assert_int_equal(o.ok, o.err.code == ERROR_NONE);
	return o;
}

static struct opened open_gguf(const struct tiny_model *t, enum dtype type)
{
	struct opened o = { 0 };
	size_t n;

	o.weights = tiny_gguf(t, type, &n, &o.err);
	o.ok = o.weights && model_open_memory(&o.m, o.weights, n, NULL, 0, 0, &o.err);
	return o;
}

static void close_it(struct opened *o)
{
	if (o->ok)
		model_close(&o->m);
	free(o->weights);
	free(o->config);
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

/* Settings of config.json and what they must come to. error NULL: opens. */
struct setting {
	const char *arch, *extra, *error;
	enum rope_scaling scaling;
	double theta, factor, attention;
	uint32_t original, window;
};

static const struct setting settings[] = {
	{ "llama", "", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"rope_theta\": 500000", NULL, ROPE_NONE, 500000, 1, 1, 0, 0 },
	{ "llama", ",\"rope_theta\": 5e5, \"rope_scaling\": null, \"torch_dtype\": \"bfloat16\"", NULL, ROPE_NONE,
	  500000, 1, 1, 0, 0 },
	{ "llama",
	  ",\"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": \"default\"}, \"dtype\": \"bfloat16\"", NULL,
	  ROPE_NONE, 500000, 1, 1, 0, 0 },
	{ "llama", ",\"rope_theta\": 7, \"rope_parameters\": {\"rope_theta\": 20000}", NULL, ROPE_NONE, 20000, 1, 1, 0,
	  0 },
	{ "llama", ",\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}", NULL, ROPE_LINEAR, 10000, 4, 1, 512, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.5}", NULL, ROPE_LINEAR, 10000, 2.5, 1,
	  512, 0 },
	{ "llama",
	  ",\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, "
	  "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 256}",
	  NULL, ROPE_LLAMA3, 10000, 8, 1, 256, 0 },
	{ "qwen3",
	  ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"original_max_position_embeddings\": 128}",
	  NULL, ROPE_YARN, 10000, 4, 1.1386294361119891, 128, 0 },
	{ "qwen3", ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"attention_factor\": 1.5}", NULL,
	  ROPE_YARN, 10000, 4, 1.5, 512, 0 },
	{ "qwen3",
	  ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"mscale\": 2, \"mscale_all_dim\": 0.5}", NULL,
	  ROPE_YARN, 10000, 4, 1.2772588722239781 / 1.0693147180559945, 512, 0 },
	{ "qwen3", ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"mscale\": 2}", NULL, ROPE_YARN,
	  10000, 4, 1.1386294361119891, 512, 0 },
	{ "qwen3",
	  ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": null, \"original_max_position_embeddings\": 128}",
	  NULL, ROPE_YARN, 10000, 4, 1.1386294361119891, 128, 0 },
	{ "qwen3", ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, \"beta_fast\": 0}", "beta_fast is 0", 0,
	  0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 2}",
	  "\"dynamic\", expected default, linear, llama3 or yarn", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"longrope\", \"short_factor\": [1]}", "\"longrope\"", 0, 0, 0,
	  0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"linear\"}", "has no factor", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 0}", "scaling factor is 0", 0, 0, 0, 0,
	  0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": \"2\"}",
	  "factor is a string, expected a number", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8}", "llama3 has no low_freq_factor", 0,
	  0, 0, 0, 0, 0 },
	{ "llama",
	  ",\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": "
	  "4}",
	  "expected more than low_freq_factor", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": [1]", "rope_scaling is an array, expected an object", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 1}}", "differs between kinds of layers",
	  0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_theta\": 0", "theta) is 0", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_theta\": -1e4", "theta) is -10000", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_theta\": true", "rope_theta is true, expected a number", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_theta\": NaN", "rope_theta is NaN, expected a number", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_theta\": 1e999", "rope_theta is Infinity, expected a number", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_theta\": \"NaN\"", "rope_theta is a string, expected a number", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"unread\": NaN", "the field unread is NaN; it is not known", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"task_specific_params\": [1000000000000000019884624838656, NaN, -Infinity, 1e400, \"\\ud800\"]",
	  NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"vocab_size\": 123456789012345678901234567890", "vocab_size is 1.23456789e+29", 0, 0, 0, 0, 0,
	  0 },
	{ "llama", ",\"rope_scaling\": -Infinity", "rope_scaling is -Infinity, expected an object", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"model_type\": NaN", "model_type is NaN, expected a string", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"hidden_act\": \"\\ud800\"",
	  "hidden_act is a string with half a surrogate pair, expected a string", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"head_dim\": 3", "the head dimension is 3", 0, 0, 0, 0, 0, 0 }, /* twice: the last counts */
	{ "llama", ",\"partial_rotary_factor\": 0.5", "partial_rotary_factor is 0.5", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_parameters\": {\"partial_rotary_factor\": 0.25}", "partial_rotary_factor is 0.25", 0, 0, 0,
	  0, 0, 0 },
	{ "llama", ",\"quantization_config\": {\"bits\": 4}", "quantization_config", 0, 0, 0, 0, 0, 0 },
	{ "mistral", "", NULL, ROPE_NONE, 10000, 1, 1, 0, 4096 },
	{ "mistral", ",\"sliding_window\": null", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "mistral", ",\"sliding_window\": 7", NULL, ROPE_NONE, 10000, 1, 1, 0, 7 },
	{ "mistral", ",\"sliding_window\": 0", "sliding_window is 0", 0, 0, 0, 0, 0, 0 },
	{ "mistral", ",\"sliding_window\": -3", "sliding_window is -3", 0, 0, 0, 0, 0, 0 },
	{ "mistral", ",\"sliding_window\": 1.5", "sliding_window is 1.5, expected an integer", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"sliding_window\": 9", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "qwen2", ",\"sliding_window\": 9", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "qwen2", ",\"sliding_window\": 9, \"use_sliding_window\": true, \"max_window_layers\": 0", NULL, ROPE_NONE,
	  10000, 1, 1, 0, 9 },
	{ "qwen2", ",\"sliding_window\": 9, \"use_sliding_window\": true, \"max_window_layers\": 2", NULL, ROPE_NONE,
	  10000, 1, 1, 0, 0 },
	{ "qwen3",
	  ",\"sliding_window\": 9, \"use_sliding_window\": true, \"layer_types\": [\"full_attention\", "
	  "\"full_attention\"]",
	  NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "qwen3", ",\"layer_types\": [\"full_attention\"]", "expected an array of 2", 0, 0, 0, 0, 0, 0 },
	{ "qwen3", ",\"layer_types\": [\"full_attention\", 1]", "is an integer, expected a string", 0, 0, 0, 0, 0, 0 },
	{ "qwen3", ",\"layer_types\": [\"full_attention\", \"linear_attention\"]",
	  "\"linear_attention\", expected full_attention or sliding_attention", 0, 0, 0, 0, 0, 0 },
	{ "qwen3", ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"original_max_position_embeddings\": 0}",
	  "original_max_position_embeddings is 0", 0, 0, 0, 0, 0, 0 },
	{ "qwen3", ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 2, \"truncate\": 1}",
	  "truncate is an integer, expected true or false", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": 3}", "rope_type is an integer, expected a string", 0, 0, 0, 0, 0,
	  0 },
	{ "llama", ",\"_name_or_path\": []", "_name_or_path is an array, expected a string", 0, 0, 0, 0, 0, 0 },
	{ "gemma", "",
	  "model_type is \"gemma\", which needs what jitrun does not have: a scaled embedding and the activation GELU",
	  0, 0, 0, 0, 0, 0 },
	{ "qwen3_moe", "", "model_type is \"qwen3_moe\", which needs what jitrun does not have: mixture of experts", 0,
	  0, 0, 0, 0, 0 },
	{ "bert", "",
	  "model_type is \"bert\", which needs what jitrun does not have: a use for models that encode a text", 0, 0, 0,
	  0, 0, 0 },
	{ "t5", "", "model_type is \"t5\", which needs what jitrun does not have: an encoder beside the decoder", 0, 0,
	  0, 0, 0, 0 },
	{ "internlm2", "", "its GGUF files have them apart and run", 0, 0, 0, 0, 0, 0 },
	{ "", "", "model_type is \"\", expected llama, mistral, qwen2, qwen3, ernie4_5, xverse or seed_oss", 0, 0, 0, 0,
	  0, 0 },
	{ "qwen2 qwen3", "", "model_type is \"qwen2 qwen3\", expected llama", 0, 0, 0, 0, 0, 0 },
	{ "ernie4_5", ",\"rope_theta\": 500000, \"compression_ratio\": 1.0", NULL, ROPE_NONE, 500000, 1, 1, 0, 0 },
	{ "ernie4_5", ",\"compression_ratio\": 2", "the field compression_ratio is 2", 0, 0, 0, 0, 0, 0 },
	{ "xverse", ",\"max_tokenizer_truncation\": 6144", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	/* what the class is, and what it does with the layers */
	{ "llama", ",\"architectures\": [\"LlamaForCausalLM\"]", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"architectures\": []", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"architectures\": [\"LlamaForSequenceClassification\"]",
	  "names LlamaForSequenceClassification, which is no model that continues a text as LlamaForCausalLM does", 0,
	  0, 0, 0, 0, 0 },
	{ "llama", ",\"architectures\": [\"LlamaForCausalLM\", \"LlamaModel\"]", "names LlamaModel", 0, 0, 0, 0, 0, 0 },
	{ "qwen2", ",\"architectures\": [\"Qwen2ForRewardModel\"]", "names Qwen2ForRewardModel", 0, 0, 0, 0, 0, 0 },
	{ "qwen2", ",\"architectures\": [\"LlamaForCausalLM\"]", "names LlamaForCausalLM", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"architectures\": \"LlamaForCausalLM\"", "architectures is a string, expected an array", 0, 0, 0,
	  0, 0, 0 },
	{ "llama", ",\"architectures\": [1]", "an element of architectures is an integer, expected a string", 0, 0, 0,
	  0, 0, 0 },
	{ "qwen2", ",\"is_causal\": false", "the field is_causal is false", 0, 0, 0, 0, 0, 0 },
	{ "qwen2", ",\"is_causal\": true", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	/* fields that nothing reads: harmless by name, by value, or refused */
	{ "llama",
	  ",\"transformers_version\": \"4.51.0\", \"use_cache\": true, \"pretraining_tp\": 4, \"attention_dropout\": "
	  "0.1, \"id2label\": {\"0\": \"A\"}",
	  NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama",
	  ",\"is_llama_config\": true, \"rope_interleaved\": false, \"transformers.js_config\": {\"kv_cache_dtype\": "
	  "1}, \"_flash_attn_2_enabled\": true, \"activation\": \"swiglu\"",
	  NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"rope_interleaved\": true", "the field rope_interleaved is true", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"activation\": \"geglu\"", "activation is \"geglu\", expected swiglu", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"attention_chunk_size\": 128", "the field attention_chunk_size is 128; it is not known", 0, 0, 0,
	  0, 0, 0 },
	{ "llama",
	  ",\"attention_chunk_size\": null, \"use_mrope\": false, \"num_experts\": 0, \"layer_scales\": [], \"other\": "
	  "{}, \"kind\": \"\", \"share\": 0.0",
	  NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"num_local_experts\": 8", "the field num_local_experts is 8", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"logits_scaling\": 1", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"logits_scaling\": 0", "the field logits_scaling is 0", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"residual_multiplier\": \"1\"", "the field residual_multiplier is \"1\"", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"factor\": 8", "the field factor is 8", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"a\\u001b[2J\": [1, {\"b\": \"\\u001b\"}]", "the field a\\x1b[2J is [1,{\"b\":\"\\u001B\"}]", 0,
	  0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2, \"mrope_section\": [1, 1]}",
	  "the field rope_scaling.mrope_section is [1,1]", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_parameters\": {\"rope_type\": \"default\", \"mrope_section\": [1, 1]}",
	  "the field rope_parameters.mrope_section is [1,1]", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, \"llama_4_scaling_beta\": 0.1}",
	  "rope_parameters.llama_4_scaling_beta is 0.1", 0, 0, 0, 0, 0, 0 },
	{ "llama",
	  ",\"rope_parameters\": {\"rope_type\": \"default\"}, \"rope_scaling\": {\"rope_type\": \"linear\", "
	  "\"factor\": 2}",
	  "the field rope_scaling is", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, \"finetuned\": true}", NULL, ROPE_YARN,
	  10000, 4, 1.1386294361119891, 512, 0 },
	{ "llama", ",\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4}",
	  "has a quantization_config of method gptq, expected unquantised weights; quantised models are read from GGUF",
	  0, 0, 0, 0, 0, 0 },
	{ "qwen3", ",\"quantization\": {\"group_size\": 64, \"bits\": 4}",
	  "has a quantization, expected unquantised weights", 0, 0, 0, 0, 0, 0 },
};

static void test_settings(void **state)
{
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		const struct setting *s = &settings[i];
		struct tiny_model t = { s->arch, 2, 16, 24, 4, 2, 4, 9, DTYPE_F32, .tied = true, .extra = s->extra };
		struct opened o = open_hf(&t);
		if (o.ok != (s->error == NULL) || (s->error && !strstr(o.err.text, s->error)))
			fail_msg("%s%s: expected \"%s\", got \"%s\"", s->arch, s->extra, s->error ? s->error : "ok",
			         o.ok ? "ok" : o.err.text);
		if (o.ok) {
			const struct model_rope *r = &o.m.spec.rope;
			if (r->scaling != s->scaling || r->theta != s->theta || r->factor != s->factor ||
			    r->original_context != s->original || o.m.spec.sliding_window != s->window)
				fail_msg("%s%s: scaling %d, theta %g, factor %g, original %u, window %u", s->arch,
				         s->extra, r->scaling, r->theta, r->factor, r->original_context,
				         o.m.spec.sliding_window);
			if (r->attention_factor != s->attention)
				fail_msg("%s%s: attention factor %.17g", s->arch, s->extra, r->attention_factor);
			assert_null(o.m.spec.layer_is_sliding);
		}
		close_it(&o);
	}
}

static void test_window_in_some_layers(void **state)
{
	struct tiny_model t = { "qwen3", 3, 16, 24, 4, 2, 4, 9, DTYPE_F32, .tied = true };
	static const char *const extra[] = {
		",\"sliding_window\": 9, \"use_sliding_window\": true, \"max_window_layers\": 2",
		",\"sliding_window\": 9, \"use_sliding_window\": true, \"layer_types\": [\"full_attention\", "
		"\"full_attention\", \"sliding_attention\"]",
	};

	for (int i = 0; i < 2; i++) {
		t.extra = extra[i];
		struct opened o = open_hf(&t);
		assert_true(o.ok && o.m.spec.sliding_window == 9 && o.m.spec.layer_is_sliding);
		assert_true(!o.m.spec.layer_is_sliding[0] && !o.m.spec.layer_is_sliding[1] &&
		            o.m.spec.layer_is_sliding[2]);
		close_it(&o);
	}
}

/* The text of config.json with one member's value replaced. */
static void test_config_values(void **state)
{
	static const char *const base =
		"{\"model_type\": \"llama\", \"num_hidden_layers\": @0, \"hidden_size\": @1, "
		"\"intermediate_size\": @2, \"num_attention_heads\": @3, "
		"\"num_key_value_heads\": @4, \"vocab_size\": @5, \"rms_norm_eps\": @6, "
		"\"tie_word_embeddings\": @7, \"head_dim\": @8, \"hidden_act\": @9}";
	static const char *const good[] = { "1", "4", "6", "2", "1", "5", "1e-05", "true", "2", "\"silu\"" };
	static const struct {
		int at;
		const char *value, *error;
	} change[] = {
		{ 0, "1", NULL },
		{ 0, "1.0", NULL },
		{ 0, "1e0", NULL },
		{ 0, "0", "the number of layers is 0" },
		{ 0, "-1", "num_hidden_layers is -1" },
		{ 0, "2", "but there are only 11 tensors" },
		{ 0, "1025", "is 1025, expected 0 to 1024" },
		{ 0, "4294967297", "num_hidden_layers is 4294967297" },
		{ 0, "9223372036854775807", "num_hidden_layers is 9.2" },
		{ 0, "null", "num_hidden_layers is missing" },
		{ 0, "1.5", "expected an integer" },
		{ 0, "\"1\"", "is a string" },
		{ 0, "[1]", "is an array" },
		{ 0, "{}", "is an object" },
		{ 0, "true", "is true" },
		{ 1, "0", "the hidden size is 0" },
		{ 1, "5", "expected (5 x 5)" },
		{ 1, "8", "has shape" },
		{ 2, "7", "expected (7 x 4)" },
		{ 2, "16777217", "intermediate_size is 16777217" },
		{ 3, "0", "num_attention_heads is 0" },
		{ 3, "4", "has shape" },
		{ 3, "3", "has shape" },
		{ 4, "0", "key-value heads is 0" },
		{ 4, "null", "has shape" },
		{ 4, "2", "has shape" },
		{ 4, "3", "expected a multiple of the 3" },
		{ 5, "4", "model.embed_tokens.weight has shape (5 x 4), expected (4 x 4)" },
		{ 5, "0", "vocabulary size is 0" },
		{ 5, "2147483648", "vocab_size is 2147483648" },
		{ 6, "0", "rms_norm_eps is 0" },
		{ 6, "-1e-5", "rms_norm_eps is" },
		{ 6, "null", NULL },
		{ 6, "2", "rms_norm_eps is 2" },
		{ 6, "1", NULL },
		{ 6, "false", "is false" },
		{ 7, "false", "the tensor lm_head.weight is missing" },
		{ 7, "1", "is an integer, expected true or false" },
		{ 7, "null", "lm_head.weight is missing" },
		{ 8, "null", NULL },
		{ 8, "3", "expected an even number" },
		{ 8, "4", "has shape" },
		{ 8, "0", "head dimension is 0" },
		{ 8, "4098", "head_dim is 4098" },
		{ 9, "\"gelu\"", "hidden_act is \"gelu\", expected silu" },
		{ 9, "null", NULL },
		{ 9, "\"\\u001b[2J\"", "hidden_act is \"\\x1b[2J\"" },
	};
	size_t n;
	uint8_t *weights = tiny_safetensors(&tiny_least, &n);

	for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
		char config[1000], *out = config;
		for (const char *p = base; *p; p++)
			if (*p == '@') {
				int k = *++p - '0';
				out += sprintf(out, "%s", k == change[i].at ? change[i].value : good[k]);
			} else
				*out++ = *p;
		struct error err = { 0 };
		struct model m;
		bool ok = model_open_memory(&m, weights, n, config, (size_t)(out - config), 0, &err);
		if (ok != (change[i].error == NULL) || (!ok && !strstr(err.text, change[i].error)))
			fail_msg("%d = %s: expected \"%s\", got \"%s\"", change[i].at, change[i].value,
			         change[i].error ? change[i].error : "ok", ok ? "ok" : err.text);
		if (ok)
			model_close(&m);
		else
			assert_true(m.file == NULL && m.spec.layer == NULL);
	}
	free(weights);
}

static void test_config_forms(void **state)
{
	static const struct {
		const char *text, *error;
	} forms[] = {
		{ "[]", "its content is an array, expected an object" },
		{ "", "not valid JSON" },
		{ "{}", "model_type is missing" },
		{ "{\"model_type\": null}", "model_type is missing" },
		{ "{\"model_type\": 1}", "model_type is an integer" },
		{ "{\"model_type\": \"llama\"}", "num_hidden_layers is missing" },
		{ "{\"model_type\": \"llama\"", "not valid JSON in line 1" },
		{ "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 4, \"intermediate_size\": 6, "
		  "\"vocab_size\": 5, \"num_attention_heads\": 3}",
		  "hidden_size is 4, expected a multiple of num_attention_heads 3" },
		{ "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 4, \"intermediate_size\": 6, "
		  "\"vocab_size\": 5, \"num_attention_heads\": 2, "
		  "\"num_key_value_heads\": 1, \"tie_word_embeddings\": true}",
		  NULL },
	};
	size_t n;
	uint8_t *weights = tiny_safetensors(&tiny_least, &n);

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct error err = { 0 };
		struct model m;
		bool ok = model_open_memory(&m, weights, n, forms[i].text, strlen(forms[i].text), 0, &err);
		if (ok != (forms[i].error == NULL) || (!ok && !strstr(err.text, forms[i].error)))
			fail_msg("%s: expected \"%s\", got \"%s\"", forms[i].text,
			         forms[i].error ? forms[i].error : "ok", ok ? "ok" : err.text);
		if (!ok)
			continue;
		assert_true(m.spec.head_dim == 2 && m.spec.context_train == 2048 && m.spec.norm_eps == 1e-6f &&
		            m.spec.rope.theta == 10000);
		model_close(&m);
	}
	free(weights);
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
	for (int head = HEAD_AS_TIED; head <= HEAD_OTHER; head++) {
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

static void test_config_text_limits(void **state)
{
	size_t n, length = (1 << 20) + 1;
	uint8_t *weights = tiny_safetensors(&tiny_least, &n);
	char *config = malloc(length);
	struct error err = { 0 };
	struct model m;

	memset(config, '[', length);
	assert_false(model_open_memory(&m, weights, n, config, length, 0, &err));
	assert_non_null(strstr(err.text, "expected at most 1048576"));
	err.code = ERROR_NONE;
	assert_false(model_open_memory(&m, weights, n, config, length - 1, 0, &err));
	assert_non_null(strstr(err.text, "not valid JSON"));
	free(config);
	free(weights);
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
			bool ok = model_open_memory(&m, q, n, NULL, 0, 0, &err);
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
	char *config = tiny_config(&tiny_least);
	size_t n[2];
	uint8_t *p[2] = { tiny_safetensors(&tiny_least, &n[0]), tiny_gguf(&tiny_least, DTYPE_BF16, &n[1], NULL) };

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_containers_agree),
		cmocka_unit_test(test_q8_0),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_window_in_some_layers),
		cmocka_unit_test(test_config_values),
		cmocka_unit_test(test_config_forms),
		cmocka_unit_test(test_missing_tensors),
		cmocka_unit_test(test_tensors_left_over),
		cmocka_unit_test(test_head_beside_tied_embedding),
		cmocka_unit_test(test_config_text_limits),
		cmocka_unit_test(test_every_field_of_gguf_falsified),
		cmocka_unit_test(test_truncation_at_every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

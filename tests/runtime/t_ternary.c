/* tests/runtime/t_ternary.c - BitNet with weights of -1, 0 and 1 times a scale: packed safetensors and GGUF files of
 * TQ2_0 and TQ1_0 compute the same, bit for bit, and nearly what the weights as floats do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "quantise/quantise.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/runtime/remade.h"

enum { HIDDEN = 256, FFN = 512, HEADS = 4, KV_HEADS = 2, DIM = 64, VOCAB = 96, LAYERS = 2, MAX = FFN * HIDDEN };

static const struct remade_run run = { "cpu", 16 };

struct tensor {
	const char *hf, *gguf;
	uint64_t rows, cols; /* rows 0: a vector */
};
static const struct tensor tensors[] = {
	{ "input_layernorm", "attn_norm", 0, HIDDEN },
	{ "post_attention_layernorm", "ffn_norm", 0, HIDDEN },
	{ "self_attn.attn_sub_norm", "attn_sub_norm", 0, HIDDEN },
	{ "mlp.ffn_sub_norm", "ffn_sub_norm", 0, FFN },
	{ "self_attn.q_proj", "attn_q", HEADS *DIM, HIDDEN },
	{ "self_attn.k_proj", "attn_k", KV_HEADS *DIM, HIDDEN },
	{ "self_attn.v_proj", "attn_v", KV_HEADS *DIM, HIDDEN },
	{ "self_attn.o_proj", "attn_output", HIDDEN, HEADS *DIM },
	{ "mlp.gate_proj", "ffn_gate", FFN, HIDDEN },
	{ "mlp.up_proj", "ffn_up", FFN, HIDDEN },
	{ "mlp.down_proj", "ffn_down", HIDDEN, FFN },
};

static uint32_t draw(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % n;
}

/* Of a matrix: its numbers, and its scale, which BF16 and F16 hold. The same in every run. */
static float numbers_of(unsigned layer, size_t at, int8_t *out)
{
	uint32_t seed = layer * 100 + (uint32_t)at;

	for (uint64_t i = 0; i < tensors[at].rows * tensors[at].cols; i++)
		out[i] = (int8_t)(draw(&seed, 3) - 1);
	return (float)(17 + draw(&seed, 100)) / 1024;
}

static void vector_of(unsigned layer, size_t at, float *out)
{
	uint32_t seed = layer * 100 + (uint32_t)at;

	for (uint64_t i = 0; i < tensors[at].cols; i++)
		out[i] = 0.5f + (float)draw(&seed, 128) / 128;
}

static void embedding(float *out)
{
	uint32_t seed = 7;

	for (int i = 0; i < VOCAB * HIDDEN; i++)
		out[i] = (float)((int)draw(&seed, 257) - 128) / 128;
}

/* Four rows in a byte, each a quarter of the rows behind the one before it. */
static void pack(const int8_t *w, uint64_t rows, uint64_t cols, uint8_t *out)
{
	const uint64_t quarter = rows / 4;

	memset(out, 0, quarter * cols);
	for (uint64_t r = 0; r < rows; r++)
		for (uint64_t c = 0; c < cols; c++)
			out[r % quarter * cols + c] |= (uint8_t)((w[r * cols + c] + 1) << 2 * (r / quarter));
}

enum wrong { RIGHT, BITS_11, SCALE_OF_ITS_OWN, TWO_SCALES };

static void write_hf(const char *name, bool packed, enum wrong wrong, const char *more)
{
	static int8_t w[MAX];
	static float floats[MAX];
	static uint8_t bytes[MAX];
	char text[160], config[700];
	struct st_writer out;

	st_writer_start(&out);
	embedding(floats);
	st_write_tensor(&out, "model.embed_tokens.weight", DTYPE_F32, 2, (uint64_t[]){ VOCAB, HIDDEN }, floats,
	                VOCAB * HIDDEN * 4);
	vector_of(9, 0, floats);
	st_write_tensor(&out, "model.norm.weight", DTYPE_F32, 1, (uint64_t[]){ HIDDEN }, floats, HIDDEN * 4);
	for (unsigned layer = 0; layer < LAYERS; layer++)
		for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
			const struct tensor *t = &tensors[i];
			snprintf(text, sizeof text, "model.layers.%u.%s.weight", layer, t->hf);
			if (!t->rows) {
				vector_of(layer, i, floats);
				st_write_tensor(&out, text, DTYPE_F32, 1, &t->cols, floats, t->cols * 4);
				continue;
			}
			const float scale =
				wrong == SCALE_OF_ITS_OWN && layer && i == 8 ? 1e-6f : numbers_of(layer, i, w);
			if (!packed) {
				for (uint64_t k = 0; k < t->rows * t->cols; k++)
					floats[k] = (float)w[k] * scale;
				st_write_tensor(&out, text, DTYPE_F32, 2, &t->rows, floats, t->rows * t->cols * 4);
				continue;
			}
			pack(w, t->rows, t->cols, bytes);
			if (wrong == BITS_11 && layer && i == 8)
				bytes[5] |= 0x30;
			st_write_tensor(&out, text, DTYPE_U8, 2, (uint64_t[]){ t->rows / 4, t->cols }, bytes,
			                t->rows / 4 * t->cols);
			uint32_t bits[2];
			memcpy(bits, &scale, 4);
			bits[1] = bits[0] >> 16;
			snprintf(text, sizeof text, "model.layers.%u.%s.weight_scale", layer, t->hf);
			if (wrong == TWO_SCALES || wrong == SCALE_OF_ITS_OWN)
				st_write_tensor(&out, text, DTYPE_F32, 1, (uint64_t[]){ 1 + (wrong == TWO_SCALES) },
				                bits, 4u << (wrong == TWO_SCALES));
			else
				st_write_tensor(&out, text, DTYPE_BF16, 1, (uint64_t[]){ 1 }, &bits[1], 2);
		}
	snprintf(config, sizeof config,
	         "{\"architectures\": [\"BitNetForCausalLM\"], \"model_type\": \"bitnet\", \"hidden_act\": \"relu2\", "
	         "\"hidden_size\": %d, \"intermediate_size\": %d, \"num_attention_heads\": %d, "
	         "\"num_key_value_heads\": %d, \"num_hidden_layers\": %d, \"vocab_size\": %d, "
	         "\"rms_norm_eps\": 1e-5, \"rope_theta\": 10000.0, \"tie_word_embeddings\": true%s%s}",
	         HIDDEN, FFN, HEADS, KV_HEADS, LAYERS, VOCAB, packed ? ", \"quantization_config\": " : "",
	         packed ? more : "");
	json_t *c = json_loads(config, 0, NULL);
	assert_non_null(c);
	remade_model(name, &out, c);
	json_decref(c);
}

#define OFFLINE \
	"{\"quant_method\": \"bitnet\", \"linear_class\": \"autobitlinear\", \"quantization_mode\": \"offline\"}"

static void write_gguf(const char *name, enum dtype type, const char *act)
{
	static int8_t w[MAX];
	static float floats[MAX];
	static uint8_t blocks[MAX];
	struct gguf_writer out;
	char text[100];
	size_t n;

	gguf_writer_start(&out, 3, 32);
	gguf_write_string(&out, "general.architecture", "bitnet");
	gguf_write_u32(&out, "bitnet.block_count", LAYERS);
	gguf_write_u32(&out, "bitnet.context_length", 2048);
	gguf_write_u32(&out, "bitnet.embedding_length", HIDDEN);
	gguf_write_u32(&out, "bitnet.feed_forward_length", FFN);
	gguf_write_u32(&out, "bitnet.attention.head_count", HEADS);
	gguf_write_u32(&out, "bitnet.attention.head_count_kv", KV_HEADS);
	gguf_write_f32(&out, "bitnet.attention.layer_norm_rms_epsilon", 1e-5f);
	gguf_write_f32(&out, "bitnet.rope.freq_base", 10000.0f);
	if (act)
		gguf_write_string(&out, "bitnet.hidden_act", act);
	embedding(floats);
	gguf_write_tensor(&out, "token_embd.weight", DTYPE_F32, 2, (uint64_t[]){ HIDDEN, VOCAB }, floats,
	                  VOCAB * HIDDEN * 4);
	vector_of(9, 0, floats);
	gguf_write_tensor(&out, "output_norm.weight", DTYPE_F32, 1, (uint64_t[]){ HIDDEN }, floats, HIDDEN * 4);
	for (unsigned layer = 0; layer < LAYERS; layer++)
		for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
			const struct tensor *t = &tensors[i];
			const uint64_t row_bytes = t->cols / 256 * dtype_table[type].bytes;
			snprintf(text, sizeof text, "blk.%u.%s.weight", layer, t->gguf);
			if (!t->rows) {
				vector_of(layer, i, floats);
				gguf_write_tensor(&out, text, DTYPE_F32, 1, &t->cols, floats, t->cols * 4);
				continue;
			}
			const float scale = numbers_of(layer, i, w);
			for (uint64_t k = 0; k < t->rows * t->cols; k++)
				floats[k] = (float)w[k] * scale;
			for (uint64_t r = 0; r < t->rows; r++)
				quantise_row(type, floats + r * t->cols, NULL, t->cols, blocks + r * row_bytes);
			gguf_write_tensor(&out, text, type, 2, (uint64_t[]){ t->cols, t->rows }, blocks,
			                  t->rows * row_bytes);
		}
	uint8_t *p = gguf_writer_finish(&out, &n);
	gguf_writer_free(&out);
	remade_file(name, p, n);
	free(p);
}

static void test_the_same(void **state)
{
	char a[300], b[300];
	(void)state;

	write_hf("floats", false, RIGHT, "");
	write_hf("packed", true, RIGHT, OFFLINE);
	write_gguf("tq2.gguf", DTYPE_TQ2_0, "relu2");
	write_gguf("tq1.gguf", DTYPE_TQ1_0, "relu2");
	remade_compare(remade_path(a, "packed"), run, remade_path(b, "tq2.gguf"), run, 0);
	remade_compare(remade_path(a, "packed"), run, remade_path(b, "tq1.gguf"), run, 0);
	remade_compare(remade_path(a, "packed"), run, a, (struct remade_run){ "ref", 1 }, 0);
	remade_compare(remade_path(a, "packed"), run, a, (struct remade_run){ "sim:sm90", 7 }, 0);
	/* Beside floats only the activations are rounded, to int8. */
	remade_compare(remade_path(a, "packed"), run, remade_path(b, "floats"), run, 3e-2);
}

/* Files that do not say it mean SiLU. */
static void test_activation(void **state)
{
	char a[300], b[300];
	(void)state;

	write_gguf("none.gguf", DTYPE_TQ2_0, NULL);
	write_gguf("silu.gguf", DTYPE_TQ2_0, "silu");
	write_gguf("relu2.gguf", DTYPE_TQ2_0, "relu2");
	remade_compare(remade_path(a, "none.gguf"), run, remade_path(b, "silu.gguf"), run, 0);
	assert_true(remade_differ(remade_path(a, "none.gguf"), remade_path(b, "relu2.gguf")));
}

static void check_refused(const char *name, const char *expected)
{
	char path[300];
	jit_error err = { 0 };
	jit_model *m =
		jit_model_open(remade_path(path, name), &JIT_MODEL_OPTIONS(.device = "cpu", .cache_dir = ""), &err);

	if (m || !strstr(err.message, expected))
		fail_msg("expected \"%s\", got \"%s\"", expected, m ? "ok" : err.message);
}

static void test_refusals(void **state)
{
	(void)state;
	write_gguf("gelu.gguf", DTYPE_TQ2_0, "gelu");
	check_refused("gelu.gguf", "key bitnet.hidden_act is \"gelu\", expected silu or relu2");
	write_hf("bits", true, BITS_11, OFFLINE);
	check_refused("bits", "mlp.gate_proj.weight has the bits 11 in row 256, column 5, expected 00, 01 or 10");
	write_hf("scale", true, SCALE_OF_ITS_OWN, OFFLINE);
	check_refused("scale",
	              "mlp.gate_proj.weight has the scale 9.99999997e-07, expected one that F16 holds exactly");
	write_hf("scales", true, TWO_SCALES, OFFLINE);
	check_refused("scales", "self_attn.q_proj.weight_scale has 2 numbers, expected one");
	write_hf("class", true, RIGHT, "{\"quant_method\": \"bitnet\", \"linear_class\": \"bitlinear\"}");
	check_refused("class", "quantization_config.linear_class is \"bitlinear\", expected autobitlinear");
	write_hf("class", true, RIGHT, "{\"quant_method\": \"bitnet\"}");
	check_refused("class", "quantization_config.linear_class is missing, expected autobitlinear");
	write_hf("mode", true, RIGHT,
	         "{\"quant_method\": \"bitnet\", \"linear_class\": \"autobitlinear\", \"quantization_mode\": "
	         "\"online\"}");
	check_refused("mode", "quantization_config.quantization_mode is \"online\", expected offline");
	write_hf("norm", true, RIGHT,
	         "{\"quant_method\": \"bitnet\", \"linear_class\": \"autobitlinear\", \"use_rms_norm\": true}");
	check_refused("norm", "quantization_config.use_rms_norm is true, expected false");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_same), cmocka_unit_test(test_activation),
		                            cmocka_unit_test(test_refusals) };
	return cmocka_run_group_tests(tests, remade_start, remade_end);
}

/* tests/loaders/t_turned.c - experts as gpt-oss's safetensors hold them: every byte that the loader reads of them
 * against the place in the file where the format says that it is; and files that are not of that form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/model/model_load.h"
#include "tests/loaders/st_writer.h"

enum { EXPERTS = 3, HIDDEN = 96, FFN = 64, HEADS = 2, HEAD_DIM = 32, VOCAB = 40 };

static const char config[] =
	"{\"model_type\":\"gpt_oss\",\"num_hidden_layers\":1,\"hidden_size\":96,\"intermediate_size\":64,"
	"\"vocab_size\":40,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":32,\"rms_norm_eps\":1e-5,"
	"\"sliding_window\":8,\"layer_types\":[\"sliding_attention\"],\"attention_bias\":true,\"hidden_act\":\"silu\","
	"\"tie_word_embeddings\":false,\"num_local_experts\":3,\"num_experts_per_tok\":2,\"swiglu_limit\":%s,"
	"\"quantization_config\":{\"quant_method\":\"%s\"}}";

/* What is wrong with a file. */
enum mistake {
	NOTHING,
	NO_TENSOR,
	NO_SCALES,
	OTHER_TYPE,
	ROWS_FIRST,
	SMALL_EXPERTS,
	FLAT,
	DEEP,
	SMALL_BIASES,
	MISTAKES
};

struct image {
	enum dtype type; /* of the experts' weights */
	enum mistake mistake;
	uint8_t *file;
	size_t n;
	/* what is in it */
	uint8_t *gate_up, *down, *gate_up_scales, *down_scales, *gate_up_bias, *down_bias;
};

/* Its bytes, which stay the caller's. */
static uint8_t *put(struct st_writer *w, const char *name, enum dtype type, unsigned rank, const uint64_t *shape)
{
	static uint32_t state = 1;
	size_t n = dtype_table[type].bytes;

	for (unsigned d = 0; d < rank; d++)
		n *= shape[d];
	uint8_t *data = malloc(n);
	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
	st_write_tensor(w, name, type, rank, shape, data, n);
	return data;
}

static void put_plain(struct st_writer *w)
{
	static const struct {
		const char *name;
		uint64_t rows, cols; /* rows 0: a vector */
	} list[] = { { "model.embed_tokens.weight", VOCAB, HIDDEN },
		     { "lm_head.weight", VOCAB, HIDDEN },
		     { "model.norm.weight", 0, HIDDEN },
		     { "model.layers.0.input_layernorm.weight", 0, HIDDEN },
		     { "model.layers.0.post_attention_layernorm.weight", 0, HIDDEN },
		     { "model.layers.0.self_attn.q_proj.weight", HEADS * HEAD_DIM, HIDDEN },
		     { "model.layers.0.self_attn.k_proj.weight", HEAD_DIM, HIDDEN },
		     { "model.layers.0.self_attn.v_proj.weight", HEAD_DIM, HIDDEN },
		     { "model.layers.0.self_attn.o_proj.weight", HIDDEN, HEADS * HEAD_DIM },
		     { "model.layers.0.self_attn.q_proj.bias", 0, HEADS * HEAD_DIM },
		     { "model.layers.0.self_attn.k_proj.bias", 0, HEAD_DIM },
		     { "model.layers.0.self_attn.v_proj.bias", 0, HEAD_DIM },
		     { "model.layers.0.self_attn.o_proj.bias", 0, HIDDEN },
		     { "model.layers.0.self_attn.sinks", 0, HEADS },
		     { "model.layers.0.mlp.router.weight", EXPERTS, HIDDEN },
		     { "model.layers.0.mlp.router.bias", 0, EXPERTS } };

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		const uint64_t shape[] = { list[i].rows, list[i].cols };
		free(put(w, list[i].name, DTYPE_BF16, list[i].rows ? 2 : 1, list[i].rows ? shape : shape + 1));
	}
}

static uint8_t *put_experts(struct st_writer *w, const struct image *m, const char *name, uint64_t rows, uint64_t cols,
                            uint8_t **scales)
{
	uint64_t experts = m->mistake == SMALL_EXPERTS ? EXPERTS - 1 : EXPERTS;
	char full[100];

	snprintf(full, sizeof full, "model.layers.0.mlp.experts.%s%s", name, m->type == DTYPE_MXFP4 ? "_blocks" : "");
	if (m->type != DTYPE_MXFP4) {
		const uint64_t shape[] = { experts, cols, rows, 1, 1 }, other[] = { experts, rows, cols };
		if (m->mistake == FLAT)
			return put(w, full, m->type, 2, (const uint64_t[]){ experts * cols, rows });
		return put(w, full, m->mistake == OTHER_TYPE ? DTYPE_I32 : m->type, m->mistake == DEEP ? 5 : 3,
		           m->mistake == ROWS_FIRST ? other : shape);
	}
	const uint64_t shape[] = { experts, rows, cols / 32, 16, 1 }, rotated[] = { experts, cols / 32, rows, 16 };
	uint8_t *blocks = put(w, full, m->mistake == OTHER_TYPE ? DTYPE_I8 : DTYPE_U8,
	                      m->mistake == FLAT   ? 3
	                      : m->mistake == DEEP ? 5
	                                           : 4,
	                      m->mistake == ROWS_FIRST ? rotated : shape);
	memcpy(strstr(full, "_blocks"), "_scales", 7);
	if (m->mistake != NO_SCALES)
		*scales = put(w, full, DTYPE_U8, 3, shape);
	return blocks;
}

static void make(struct image *m)
{
	const uint64_t small = m->mistake == SMALL_BIASES, up[] = { EXPERTS, 2 * FFN - small },
		       down[] = { EXPERTS, HIDDEN };
	struct st_writer w;

	st_writer_start(&w);
	put_plain(&w);
	m->gate_up = put_experts(&w, m, "gate_up_proj", 2 * FFN, HIDDEN, &m->gate_up_scales);
	if (m->mistake != NO_TENSOR)
		m->down = put_experts(&w, m, "down_proj", HIDDEN, FFN, &m->down_scales);
	m->gate_up_bias = put(&w, "model.layers.0.mlp.experts.gate_up_proj_bias", DTYPE_F32, 2, up);
	m->down_bias = put(&w, "model.layers.0.mlp.experts.down_proj_bias", DTYPE_F32, 2, down);
	m->file = st_writer_finish(&w, 8, &m->n);
}

static void drop(struct image *m)
{
	uint8_t *all[] = { m->file,        m->gate_up,      m->down,     m->gate_up_scales,
		           m->down_scales, m->gate_up_bias, m->down_bias };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static bool open_image(struct model *out, const struct image *m, const char *limit, const char *method,
                       struct error *err)
{
	static char text[1000]; /* read as long as the model is open */

	snprintf(text, sizeof text, config, limit, method);
	return model_open_memory(out, m->file, m->n, text, strlen(text), MODEL_NO_TOKENIZER, err);
}

/* ---- what a matrix must be, by the format's words: rows of gate are the even ones, of up the odd ones */

/* 4 bits of the number in row r, column c. */
static unsigned quant(const uint8_t *blocks, uint64_t rows, uint64_t cols, uint64_t e, uint64_t r, uint64_t c)
{
	uint8_t byte = blocks[((e * rows + r) * (cols / 32) + c / 32) * 16 + c % 32 / 2];
	return c % 2 ? byte >> 4 : byte & 15;
}

/* One expert's rows as the type MXFP4 has them. */
static void want_mxfp4(uint8_t *out, const uint8_t *blocks, const uint8_t *scales, uint64_t rows, uint64_t cols,
                       uint64_t e, uint64_t first, uint64_t step)
{
	for (uint64_t r = first; r < rows; r += step)
		for (uint64_t b = 0; b < cols / 32; b++) {
			*out++ = scales[(e * rows + r) * (cols / 32) + b];
			for (unsigned i = 0; i < 16; i++)
				*out++ = (uint8_t)(quant(blocks, rows, cols, e, r, b * 32 + i) |
				                   quant(blocks, rows, cols, e, r, b * 32 + 16 + i) << 4);
		}
}

static void want_floats(uint8_t *out, const uint8_t *in, size_t element, uint64_t rows, uint64_t cols, uint64_t e,
                        uint64_t first, uint64_t step)
{
	for (uint64_t r = first; r < rows; r += step)
		for (uint64_t c = 0; c < cols; c++, out += element)
			memcpy(out, in + ((e * cols + c) * rows + r) * element, element);
}

/* All of a tensor, and pieces that begin and end anywhere. */
static void check_reads(const struct model *m, const struct model_tensor *t, const uint8_t *want, const char *what)
{
	struct error err = { 0 };
	uint8_t *got = malloc(t->bytes);

	for (unsigned i = 0; i < 60; i++) {
		size_t at = i == 0 ? 0 : i * 7919 % t->bytes, left = t->bytes - at,
		       n = i == 0       ? left
		           : i % 3 == 0 ? 1 + i % left
		                        : 1 + i * 104729 % left;
		memset(got, 0x5a, t->bytes);
		if (!model_read(m, t, at, n, got, &err))
			fail_msg("%s: %s", what, err.text);
		if (memcmp(got, want + at, n) != 0)
			fail_msg("%s: bytes %zu to %zu differ", what, at, at + n);
	}
	free(got);
}

static void check_matrix(const struct model *m, const struct model_tensor *t, const struct image *im, unsigned which)
{
	static const char *const names[] = { "gate", "up", "down" };
	const uint8_t *from = which == 2 ? im->down : im->gate_up,
		      *scales = which == 2 ? im->down_scales : im->gate_up_scales;
	uint64_t rows = which == 2 ? HIDDEN : 2 * FFN, cols = which == 2 ? FFN : HIDDEN, step = which == 2 ? 1 : 2;
	size_t each = t->bytes / EXPERTS;
	uint8_t *want = malloc(t->bytes);

	assert_true(t->rows == rows / step && t->cols == cols && t->type == im->type && t->experts == EXPERTS);
	for (uint64_t e = 0; e < EXPERTS; e++)
		if (im->type == DTYPE_MXFP4)
			want_mxfp4(want + e * each, from, scales, rows, cols, e, which % 2, step);
		else
			want_floats(want + e * each, from, dtype_table[im->type].bytes, rows, cols, e, which % 2, step);
	check_reads(m, t, want, names[which]);
	free(want);
}

static void check_bias(const struct model *m, const struct model_tensor *t, const struct image *im, unsigned which)
{
	uint64_t all = which == 2 ? HIDDEN : 2 * FFN, step = which == 2 ? 1 : 2;
	const uint8_t *from = which == 2 ? im->down_bias : im->gate_up_bias;
	uint8_t *want = malloc(t->bytes), *to = want;

	assert_int_equal(t->bytes, EXPERTS * all / step * 4);
	for (uint64_t e = 0; e < EXPERTS; e++)
		for (uint64_t i = which % 2; i < all; i += step, to += 4)
			memcpy(to, from + (e * all + i) * 4, 4);
	check_reads(m, t, want, "bias");
	free(want);
}

static void test_reads(void **state)
{
	static const enum dtype types[] = { DTYPE_MXFP4, DTYPE_BF16, DTYPE_F16, DTYPE_F32 };
	(void)state;

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct image im = { .type = types[i] };
		struct error err = { 0 };
		struct model m;
		make(&im);
		if (!open_image(&m, &im, "7.0", "mxfp4", &err))
			fail_msg("%s: %s", dtype_table[types[i]].name, err.text);
		const struct model_layer *l = m.spec.layer;
		const struct model_tensor *const matrix[] = { &l->expert_gate, &l->expert_up, &l->expert_down },
						 *const bias[] = { &l->expert_gate_bias, &l->expert_up_bias,
			                                           &l->expert_down_bias };
		for (unsigned k = 0; k < 3; k++) {
			check_matrix(&m, matrix[k], &im, k);
			check_bias(&m, bias[k], &im, k);
		}
		model_close(&m);
		drop(&im);
	}
}

static void check_refused(const struct image *im, const char *limit, const char *method, const char *part)
{
	struct error err = { 0 };
	struct model m;

	if (open_image(&m, im, limit, method, &err))
		fail_msg("mistake %d of %s is not noticed", (int)im->mistake, dtype_table[im->type].name);
	if (!strstr(err.text, part) || strlen(err.text) < 20)
		fail_msg("mistake %d of %s: \"%s\", expected \"%s\"", (int)im->mistake, dtype_table[im->type].name,
		         err.text, part);
}

static void test_mistakes(void **state)
{
	static const struct {
		enum dtype type;
		enum mistake mistake;
		const char *part;
	} cases[] = {
		{ DTYPE_BF16, NO_TENSOR, "the tensor model.layers.0.mlp.experts.down_proj_blocks is missing" },
		{ DTYPE_BF16, OTHER_TYPE, "gate_up_proj has type I32, expected F32, F16 or BF16" },
		{ DTYPE_BF16, ROWS_FIRST, "gate_up_proj has 3 dimensions (3 x 128 x 96), expected 3: (3 x 96 x 128)" },
		{ DTYPE_BF16, SMALL_EXPERTS,
		  "gate_up_proj has 3 dimensions (2 x 96 x 128), expected 3: (3 x 96 x 128)" },
		{ DTYPE_BF16, FLAT, "gate_up_proj has 2 dimensions (288 x 128), expected 3: (3 x 96 x 128)" },
		{ DTYPE_BF16, DEEP, "gate_up_proj has 5 dimensions" },
		{ DTYPE_BF16, SMALL_BIASES, "gate_up_proj_bias has 2 dimensions (3 x 127), expected 2: (3 x 128)" },
		{ DTYPE_MXFP4, NO_TENSOR, "down_proj_blocks is missing" },
		{ DTYPE_MXFP4, NO_SCALES, "the tensor model.layers.0.mlp.experts.gate_up_proj_scales is missing" },
		{ DTYPE_MXFP4, OTHER_TYPE, "gate_up_proj_blocks has type I8, expected U8" },
		{ DTYPE_MXFP4, ROWS_FIRST,
		  "gate_up_proj_blocks has 4 dimensions (3 x 3 x 128 x 16), expected 4: (3 x 128 x 3 x 16)" },
		{ DTYPE_MXFP4, SMALL_EXPERTS, "gate_up_proj_blocks has 4 dimensions (2 x 128 x 3 x 16), expected 4" },
		{ DTYPE_MXFP4, FLAT, "gate_up_proj_blocks has 3 dimensions (3 x 128 x 3), expected 4" },
		{ DTYPE_MXFP4, DEEP, "gate_up_proj_blocks has 5 dimensions" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct image im = { .type = cases[i].type, .mistake = cases[i].mistake };
		make(&im);
		check_refused(&im, "7.0", "mxfp4", cases[i].part);
		drop(&im);
	}
}

static void test_fields(void **state)
{
	struct image im = { .type = DTYPE_MXFP4 };
	(void)state;

	make(&im);
	check_refused(&im, "6.5", "mxfp4", "swiglu_limit is 6.5, which is not supported, expected 7");
	check_refused(&im, "7.0", "mxfp8", "has a quantization_config of method mxfp8, expected unquantised weights");
	drop(&im);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_reads), cmocka_unit_test(test_mistakes),
		                            cmocka_unit_test(test_fields) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

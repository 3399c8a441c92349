/* tests/runtime/t_safe_quants.c - safetensors as MLX, compressed-tensors, GPTQ, AWQ and the writers of FP8 quantise
 * them.
 *
 * Each matrix is quantised here to integers (or FP8 codes), numbers and zero points; its floats are made of these one
 * at a time, by the method's definition, and laid down as the method lays them. Every weight that is read must be that
 * float, and a model of the quantised weights must compute what one of the floats computes, bit for bit, where
 * activations are floats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "kernels-templates/templates.h"
#include "loaders/model/model_load.h"
#include "include/jitrun.h"
#include "tests/runtime/mlx_layout.h"
#include "tests/runtime/safe_quants.h"
#include "tests/support/shared.h"

static char dir[64];

/* ---- computing */

enum { TOKENS = 19, MAX_VOCAB = 400 };

static void logits_of(float out[MAX_VOCAB], const char *sub, bool f32, const char *device)
{
	int32_t ids[TOKENS];
	char path[96];
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();

	snprintf(path, sizeof path, "%s/%s", dir, sub);
	jit_model *m = jit_model_open(
		path, &JIT_MODEL_OPTIONS(.cache_dir = "", .f32_activations = f32, .device = device), &err);
	if (!m)
		fail_msg("%s", err.message);
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1), &err);
	assert_non_null(s);
	jit_model_get_info(m, &info, NULL);
	assert_true(info.vocab <= MAX_VOCAB);
	for (int i = 0; i < TOKENS; i++)
		ids[i] = i * 29 % (int)info.vocab;
	assert_int_equal(jit_session_feed(s, ids, TOKENS - 1, &err), JIT_OK);
	assert_int_equal(jit_session_feed(s, ids + TOKENS - 1, 1, &err), JIT_OK);
	const float *l = jit_session_logits(s, &err);
	assert_non_null(l);
	memset(out, 0, MAX_VOCAB * sizeof *out);
	memcpy(out, l, (size_t)info.vocab * sizeof *out);
	jit_session_close(s);
	jit_model_close(m);
}

static void check_logits(const char *what)
{
	static float quants[MAX_VOCAB], floats[MAX_VOCAB];
	double max = 0, away = 0;

	logits_of(quants, "quants", true, "cpu");
	logits_of(floats, "floats", true, "cpu");
	if (memcmp(quants, floats, sizeof floats) != 0)
		fail_msg("%s: logits differ from those of the floats", what);
	logits_of(quants, "quants", false, "cpu");
	for (int k = 0; k < MAX_VOCAB; k++) {
		max = fmax(max, fabs((double)floats[k]));
		away = fmax(away, fabs((double)floats[k] - (double)quants[k]));
	}
	/* Activations are int8 now, but where weights are FP8. Gemma 4's scores have no scale. */
	if (!(away < (strstr(what, "gemma4") ? 1 : 0.15) * max))
		fail_msg("%s: logits of up to %g are %g away", what, max, away);
	logits_of(floats, "quants", false, "ref");
	assert_memory_equal(quants, floats, sizeof floats);
}

/* ---- every weight */

static void open_one(struct model *m, const char *sub)
{
	struct error err = { 0 };
	char path[96];

	snprintf(path, sizeof path, "%s/%s", dir, sub);
	if (!model_open(m, path, 0, &err))
		fail_msg("%s", err.text);
}

/* A piece of the tensor's bytes, wherever it begins, is that of the whole. */
static void check_parts(const struct model *m, const struct model_tensor *t, const uint8_t *all)
{
	uint8_t *chunk = calloc(1, t->bytes);
	struct error err = { 0 };

	for (int i = 0; i < 6; i++) {
		size_t at = safe_quants_draw((uint32_t)t->bytes), n = safe_quants_draw((uint32_t)(t->bytes - at));
		assert_true(model_read(m, t, at, n, chunk, &err));
		assert_memory_equal(chunk, all + at, n);
	}
	free(chunk);
}

static void check_tensor(const struct model *m, const struct model_tensor *t, const struct model *m_floats,
                         const struct model_tensor *t_floats, const char *what)
{
	struct error err = { 0 };
	uint8_t *blocks = calloc(1, t->bytes);
	uint64_t n = t_floats->bytes / 4; /* the file's, where rows of another matrix lie between */
	float *want = calloc(1, n * 4), *got = calloc(1, n * 4);

	assert_non_null(t->quants);
	assert_int_equal(n / dtype_table[t->type].block * dtype_table[t->type].bytes, t->bytes);
	if (!model_read(m, t, 0, t->bytes, blocks, &err) ||
	    !model_read(m_floats, t_floats, 0, t_floats->bytes, want, &err))
		fail_msg("%s: %s", what, err.text);
	weight_to_f32(t->type, got, blocks, n);
	for (uint64_t i = 0; i < n; i++)
		if (memcmp(&got[i], &want[i], 4) != 0)
			fail_msg("%s: weight %u of %s is %a, expected %a", what, (unsigned)i, t->name, (double)got[i],
			         (double)want[i]);
	check_parts(m, t, blocks);
	free(blocks);
	free(want);
	free(got);
}

static void check_weights(const char *what)
{
	struct model quants, floats;

	open_one(&quants, "quants");
	open_one(&floats, "floats");
	for (uint32_t i = 0; i < quants.spec.layers; i++)
		for (int k = 0; k < MATRIX_SLOTS; k++) {
			const struct model_tensor *t = &quants.spec.layer[i].matrix[k];
			if (t->bytes && t->type != DTYPE_F32)
				check_tensor(&quants, t, &floats, &floats.spec.layer[i].matrix[k], what);
		}
	model_close(&quants);
	model_close(&floats);
}

#define COMPRESSED(format, type, bits, symmetric, strategy, more) \
	",\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"" format \
	"\", \"kv_cache_scheme\": null, \"config_groups\": {\"group_0\": {\"targets\": [\"Linear\"], " more \
	"\"weights\": {\"num_bits\": " #bits ", \"type\": \"" type "\", \"strategy\": \"" strategy \
	"\", \"symmetric\": " #symmetric ", \"block_structure\": [128, 128]}}}}"
#define PLAIN_FP8(block) \
	",\"quantization_config\": {\"quant_method\": \"fp8\", \"fmt\": \"e4m3\", \"activation_scheme\": " \
	"\"dynamic\", " \
	"\"weight_block_size\": " block "}"
#define ROUNDED "\"input_activations\": {\"num_bits\": 8, \"type\": \"float\", \"dynamic\": true}, "
#define GPTQ_OF(sym, more) \
	",\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32, \"desc_act\": " \
	"false, " \
	"\"sym\": " sym more "}"
#define GPTQ_BYTES(sym, more) \
	",\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 8, \"group_size\": 32, \"desc_act\": " \
	"false, \"sym\": " sym more "}"
#define MLX_FLOATS_OF(bits, group, mode) \
	",\"quantization\": {\"group_size\": " #group ", \"bits\": " #bits ", \"mode\": \"" mode "\"}"
#define AWQ_OF(version) \
	",\"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 32, \"version\": " \
	"\"" version "\", \"zero_point\": true}"
#define MLX_OF(bits, group) ",\"quantization\": {\"group_size\": " #group ", \"bits\": " #bits "}"

static const struct form forms[] = {
	{ MLX, 8, 64, 0, false, DTYPE_BF16, "scales", 0, MLX_OF(8, 64), RIGHT },
	{ MLX, 8, 32, 0, false, DTYPE_F16, "scales", 0, MLX_OF(8, 32), RIGHT },
	{ MLX, 6, 32, 0, false, DTYPE_F16, "scales", 0, MLX_OF(6, 32), RIGHT },
	{ MLX, 5, 32, 0, false, DTYPE_F16, "scales", 0, MLX_OF(5, 32), RIGHT },
	{ MLX, 5, 32, 0, false, DTYPE_BF16, "scales", 0, MLX_OF(5, 32), RIGHT },
	{ MLX, 3, 32, 0, false, DTYPE_BF16, "scales", 0, MLX_OF(3, 32), RIGHT },
	{ MLX, 2, 32, 0, false, DTYPE_F16, "scales", 0, MLX_OF(2, 32), RIGHT },
	{ PACKED, 4, 32, 0, true, DTYPE_BF16, "weight_scale", 0,
	  COMPRESSED("pack-quantized", "int", 4, false, "group", ""), RIGHT },
	{ PACKED, 8, 0, 0, false, DTYPE_F16, "weight_scale", 0,
	  COMPRESSED("pack-quantized", "int", 8, true, "channel", ""), RIGHT },
	{ BYTES, 8, 0, 0, false, DTYPE_BF16, "weight_scale", 0,
	  COMPRESSED("int-quantized", "int", 8, true, "channel", ROUNDED), RIGHT },
	{ FLOAT8, 8, 0, 0, false, DTYPE_BF16, "weight_scale", 0,
	  COMPRESSED("float-quantized", "float", 8, true, "channel", ROUNDED), RIGHT },
	{ FLOAT8, 8, 0, UINT64_MAX, false, DTYPE_F32, "weight_scale", 0,
	  COMPRESSED("float-quantized", "float", 8, true, "tensor", ""), RIGHT },
	{ FLOAT8, 8, 128, 128, false, DTYPE_BF16, "weight_scale", 0,
	  COMPRESSED("float-quantized", "float", 8, true, "block", ""), RIGHT },
	{ FLOAT8, 8, 128, 128, false, DTYPE_F32, "weight_scale_inv", 0, PLAIN_FP8("[128, 128]"), RIGHT },
	{ FLOAT8, 8, 0, UINT64_MAX, false, DTYPE_BF16, "weight_scale_inv", 0, PLAIN_FP8("null"), RIGHT },
	{ GPTQ, 4, 32, 0, false, DTYPE_F16, "", 1, GPTQ_OF("true", ""), RIGHT },
	{ GPTQ, 4, 32, 0, true, DTYPE_F16, "", 1, GPTQ_OF("false", ""), RIGHT },
	{ GPTQ, 4, 0, 0, true, DTYPE_BF16, "", 0, GPTQ_OF("false", ", \"checkpoint_format\": \"gptq_v2\""), RIGHT },
	{ AWQ, 4, 32, 0, true, DTYPE_F16, "", 0, AWQ_OF("gemm"), RIGHT },
	{ MLX_FLOATS, 4, 32, 0, false, DTYPE_U8, "scales", 0, MLX_FLOATS_OF(4, 32, "mxfp4"), RIGHT },
	{ MLX_FLOATS, 4, 16, 0, false, DTYPE_U8, "scales", 0, MLX_FLOATS_OF(4, 16, "nvfp4"), RIGHT },
	{ MLX_FLOATS, 8, 32, 0, false, DTYPE_U8, "scales", 0, MLX_FLOATS_OF(8, 32, "mxfp8"), RIGHT },
	{ MLX, 4, 32, 0, false, DTYPE_BF16, "scales", 0, MLX_OF(4, 32), RIGHT },
	{ GPTQ, 8, 32, 0, false, DTYPE_F16, "", 1, GPTQ_BYTES("true", ""), RIGHT },
	{ GPTQ, 8, 0, 0, false, DTYPE_BF16, "", 0, GPTQ_BYTES("true", ", \"checkpoint_format\": \"gptq_v2\""), RIGHT },
};
enum { FORMS = sizeof forms / sizeof *forms };

static void test_same_numbers(void **unused)
{
	for (int i = 0; i < FORMS; i++) {
		char what[40];
		snprintf(what, sizeof what, "form %d", i);
		safe_quants_write_tiny(dir, &forms[i]);
		check_weights(what);
		check_logits(what);
	}
}

/* Experts' matrices are tensors of their own, too. */
static void test_experts(void **unused)
{
	static const int some[] = { 0, 7, 13, 16, 18 };
	char path[1024];
	size_t n, n_config;

	if (!shared_path(path, "golden/qwen3moe-a/model.safetensors"))
		skip();
	uint8_t *p = file_bytes(path, &n);
	assert_non_null(shared_path(path, "golden/qwen3moe-a/config.json"));
	char *config = (char *)file_bytes(path, &n_config);
	config[n_config] = 0;
	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		struct form f = forms[some[i]];
		char what[40];
		snprintf(what, sizeof what, "experts, form %d", some[i]);
		f.group = f.group == 64 ? 32 : f.group;
		safe_quants_write(dir, &f, p, n, config);
		check_weights(what);
		check_logits(what);
	}
	free(config);
	free(p);
}

/* All experts' matrices in one tensor, as MLX has them; and all heads' of latent attention. */
static void test_stacked(void **unused)
{
	static const char *const models[] = { "qwen3moe-a",  "mixtral-a",    "granitemoe-a", "lfm2moe-a",
		                              "qwen35moe-a", "gemma4-moe-a", "deepseekv3-a", "glm4moelite-a" };
	static const int some[] = { 22, 19, 20, 21, 5 };
	unsigned n_models = 0;

	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
			struct original o;
			struct st_writer w;
			char what[80];
			size_t n;
			if ((k + i) % (test_quick() ? 3 : 1) != 0)
				continue;
			if (!original_open(&o, models[i]))
				skip();
			mlx_layout(&o, &w);
			uint8_t *p = st_writer_finish(&w, 8, &n);
			char *config = json_dumps(o.config, 0);
			original_close(&o);
			snprintf(what, sizeof what, "%s as MLX, form %d", models[i], some[k]);
			safe_quants_write(dir, &forms[some[k]], p, n, config);
			check_weights(what);
			check_logits(what);
			free(config);
			free(p);
			n_models++;
		}
	printf("# %u models\n", n_models);
	assert_true(n_models >= 10);
}

/* ---- refusals */

static void check_said(const char *part)
{
	char path[96];
	jit_error err = { 0 };

	snprintf(path, sizeof path, "%s/quants", dir);
	assert_null(jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err));
	if (!strstr(err.message, part))
		fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

static void check_refused(const struct form *f, const char *part)
{
	safe_quants_write_tiny(dir, f);
	check_said(part);
}

/* The heads' rows for keys would have to become columns, and blocks cannot. */
static void test_both_of_heads_refused(void **unused)
{
	char path[1024];
	size_t n, n_config;

	if (!shared_path(path, "golden/deepseekv3-a/model.safetensors"))
		skip();
	uint8_t *p = file_bytes(path, &n);
	assert_non_null(shared_path(path, "golden/deepseekv3-a/config.json"));
	char *config = (char *)file_bytes(path, &n_config);
	config[n_config] = 0;
	safe_quants_write(dir, &forms[22], p, n, config);
	check_said("self_attn.kv_b_proj.weight is quantised with both matrices of each head in it");
	free(config);
	free(p);
}

static void test_tensors_refused(void **unused)
{
	static const struct {
		int form;
		enum wrong wrong;
		const char *part;
	} cases[] = {
		{ 0, ODD_WORDS, "has 63 words in a row of 256 columns, expected 2, 3, 4, 5, 6 or 8 bits for each" },
		{ 7, NO_ZEROS,
		  "q_proj.weight_zero_point is missing, which model.layers.0.self_attn.q_proj.weight needs" },
		{ 10, NOT_A_NUMBER,
		  "has the byte 0xff in row 1, column 5, which is no number, expected numbers of E4M3" },
		{ 11, LARGE_SCALE, "has the scale 128, expected less than 128" },
		{ 12, MORE_BLOCKS, "has shape (2 x 2), expected (1 x 2)" },
		{ 13, MORE_BLOCKS, "has shape (2 x 2), expected (1 x 2)" },
		{ 15, ZERO_OF_7, "has the zero point 7, expected 8: config.json says that it is symmetric" },
		{ 16, ZERO_OF_15, "has a zero point stored as 15, which is 16 to some programs and 0 to others" },
		{ 16, OTHER_ORDER, "is of group 0 (g_idx, desc_act), expected " },
		{ 16, NO_ZEROS, "q_proj.qzeros is missing, which model.layers.0.self_attn.q_proj.weight needs" },
		{ 18, SHORT_ZEROS, "q_proj.qzeros has shape (8 x 15), expected (8 x 16)" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct form f = forms[cases[i].form];
		f.wrong = cases[i].wrong;
		check_refused(&f, cases[i].part);
	}
}

static void test_configs_refused(void **unused)
{
	static const struct {
		const char *config, *part;
	} cases[] = {
		{ ",\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32, "
		  "\"desc_act\": true}",
		  "quantization_config.desc_act is true, expected false, or a group_size of -1" },
		{ ",\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 3, \"group_size\": 32}",
		  "quantization_config.bits is 3, expected 4 or 8" },
		{ GPTQ_BYTES("false", ""), "quantization_config.sym is false, expected true with 8 bits" },
		{ ",\"quantization\": {\"group_size\": 32, \"bits\": 4, \"mode\": \"int3\"}",
		  "quantization.mode is \"int3\", expected affine, mxfp4, mxfp8 or nvfp4" },
		{ GPTQ_OF("true", ", \"checkpoint_format\": \"marlin\""),
		  "quantization_config.checkpoint_format is \"marlin\", expected gptq or gptq_v2" },
		{ AWQ_OF("gemv"), "quantization_config.version is \"gemv\", expected gemm" },
		{ ",\"quantization_config\": {\"quant_method\": \"fp8\", \"fmt\": \"e5m2\"}",
		  "quantization_config.fmt is \"e5m2\", expected e4m3" },
		{ PLAIN_FP8("[128, 100]"),
		  "weight_block_size of quantization_config is not a number of rows and a multiple" },
		{ COMPRESSED("float-quantized", "float", 4, true, "channel", ""),
		  "whose weights are not integers or FP8 of 8 bits, expected unquantised weights" },
		{ COMPRESSED("nvfp4-pack-quantized", "float", 4, true, "group", ""),
		  "whose format is not pack-quantized, int-quantized or float-quantized" },
		{ ",\"quantization_config\": {\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true}",
		  "has a quantization_config of method bitsandbytes, expected unquantised weights" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct form f = forms[16];
		f.config = cases[i].config;
		check_refused(&f, cases[i].part);
	}
}

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/jitrun-quants-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[100];

	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_numbers),
		cmocka_unit_test(test_experts),
		cmocka_unit_test(test_stacked),
		cmocka_unit_test(test_tensors_refused),
		cmocka_unit_test(test_both_of_heads_refused),
		cmocka_unit_test(test_configs_refused)
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

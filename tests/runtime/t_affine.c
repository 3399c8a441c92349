/* tests/runtime/t_affine.c - safetensors as MLX and compressed-tensors quantise them, against the same models with the
 * weights as floats: the floats are made here, one at a time. Where activations stay floats, too, every bit is the
 * same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "loaders/files/safetensors.h"
#include "include/jitrun.h"
#include "runtime/model/packed.h"
#include "tests/loaders/model_to_gguf.h"
#include "tests/loaders/st_writer.h"
#include "tests/runtime/tiny_model.h"

static char dir[64];

/* What differs between models. */
struct form {
	unsigned group;
	enum dtype numbers; /* of scales and biases */
	const char *arch;
	bool tied;
	const char *quantization; /* of config.json */
	bool symmetric;           /* compressed-tensors' */
	unsigned wrong;           /* which mistake of the writer's; 0: none */
};

enum { NO_SCALES = 1, SMALL_SCALES, OTHER_BIASES, FLOAT_SCALES, SMALL_ROWS };

static struct tiny_model shape_of(const struct form *f, const char *extra)
{
	return (struct tiny_model){
		.arch = f->arch,
		.layers = 2,
		.hidden = 256,
		.ffn = 384,
		.heads = 4,
		.kv_heads = 2,
		.head_dim = 64,
		.vocab = 96,
		.type = DTYPE_F32,
		.tied = f->tied,
		.extra = extra
	};
}

/* The number as the type holds it, cut to its upper bits. */
static uint16_t to_number(enum dtype type, float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return type == DTYPE_F16 ? float_to_half(f) : (uint16_t)(bits >> 16);
}

/* Numbers here are neither denormal nor infinite. */
static float of_number(enum dtype type, uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13, bits = (uint32_t)h << 16;

	if (type == DTYPE_F16 && rest)
		bits = sign | (rest + (112u << 23));
	float f;
	memcpy(&f, &bits, 4);
	return f;
}

struct quantised {
	uint32_t *words;
	uint16_t *scale, *bias;
	float *value;
};

static void quantise_group(const struct form *f, const float *w, uint64_t at, uint64_t group, struct quantised *q)
{
	float min = w[at], max = w[at];

	for (unsigned i = 1; i < f->group; i++) {
		min = w[at + i] < min ? w[at + i] : min;
		max = w[at + i] > max ? w[at + i] : max;
	}
	q->scale[group] = to_number(f->numbers, (max - min) / 15 + 0.01f);
	q->bias[group] = to_number(f->numbers, min);
	float scale = of_number(f->numbers, q->scale[group]);
	float bias = f->symmetric ? -8 * scale : of_number(f->numbers, q->bias[group]);
	for (unsigned i = 0; i < f->group; i++) {
		float n = rintf((w[at + i] - bias) / scale);
		uint32_t quant = n < 0 ? 0 : n > 15 ? 15 : (uint32_t)n;
		q->words[(at + i) / 8] |= quant << (at + i) % 8 * 4;
		q->value[at + i] = f->symmetric ? scale * (float)((int)quant - 8) : fmaf(scale, (float)quant, bias);
	}
}

static void write_quants(struct st_writer *w, const struct form *f, const char *name, uint64_t rows, uint64_t cols,
                         const struct quantised *q)
{
	uint64_t groups = cols / f->group, words = cols / 8, scales = f->wrong == SMALL_SCALES ? groups - 1 : groups,
		 small = f->wrong == SMALL_ROWS ? rows - 1 : rows;
	uint32_t *more = calloc(rows * cols, 4);
	char other[128];
	int stem = (int)(strlen(name) - strlen("weight"));

	assert_non_null(more);
	memcpy(more, q->words, rows * cols / 2);
	snprintf(other, sizeof other, "%s%s", name, f->symmetric ? "_packed" : "");
	st_write_tensor(w, other, f->symmetric ? DTYPE_I32 : DTYPE_U32, 2, (const uint64_t[]){ rows, words }, more,
	                rows * words * 4);
	free(more);
	snprintf(other, sizeof other, "%.*s%s", stem, name, f->symmetric ? "weight_scale" : "scales");
	if (f->wrong == FLOAT_SCALES)
		st_write_tensor(w, other, DTYPE_F32, 2, (const uint64_t[]){ rows, groups }, NULL, rows * groups * 4);
	else if (f->wrong != NO_SCALES)
		st_write_tensor(w, other, f->numbers, 2, (const uint64_t[]){ small, scales }, q->scale,
		                small * scales * 2);
	if (f->symmetric) {
		snprintf(other, sizeof other, "%s_shape", name);
		st_write_tensor(w, other, DTYPE_I64, 1, (const uint64_t[]){ 2 },
		                (const int64_t[]){ (int64_t)rows, (int64_t)cols }, 16);
		return;
	}
	snprintf(other, sizeof other, "%.*sbiases", stem, name);
	st_write_tensor(w, other, f->wrong == OTHER_BIASES ? DTYPE_F16 : f->numbers, 2,
	                (const uint64_t[]){ rows, scales }, q->bias, rows * scales * 2);
}

/* A matrix to the model of quants and, as floats, to the other one. */
static void write_matrix(struct st_writer *quants, struct st_writer *floats, const struct form *f, const char *name,
                         const uint64_t dim[2], const float *w)
{
	uint64_t n = dim[0] * dim[1];
	struct quantised q = { calloc(n / 8, 4), calloc(n / f->group, 2), calloc(n / f->group, 2), calloc(n, 4) };

	assert_true(q.words && q.scale && q.bias && q.value && dim[1] % f->group == 0);
	for (uint64_t g = 0; g < n / f->group; g++)
		quantise_group(f, w, g * f->group, g, &q);
	write_quants(quants, f, name, dim[0], dim[1], &q);
	st_write_tensor(floats, name, DTYPE_F32, 2, dim, q.value, n * 4);
	free(q.words);
	free(q.scale);
	free(q.bias);
	free(q.value);
}

static void write_one(const char *sub, struct st_writer *w, const struct form *f, const char *extra)
{
	const struct tiny_model t = shape_of(f, extra);
	char *config = tiny_config(&t), path[96];
	size_t n;
	uint8_t *p = st_writer_finish(w, 8, &n);

	snprintf(path, sizeof path, "mkdir -p %s/%s", dir, sub);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof path, "%s/%s", dir, sub);
	tiny_write(path, "config.json", config, strlen(config));
	tiny_write(path, "model.safetensors", p, n);
	free(config);
	free(p);
}

/* The two models lie in dir/quants and dir/floats. */
static void write_both(const struct form *f)
{
	const struct tiny_model t = shape_of(f, NULL);
	struct st_writer quants, floats;
	struct safetensors s;
	struct error err = { 0 };
	size_t n;
	uint8_t *p = tiny_safetensors(&t, &n);

	assert_true(safetensors_parse(&s, p, n, "made", false, &err));
	st_writer_start(&quants);
	st_writer_start(&floats);
	for (uint32_t i = 0; i < s.n_tensors; i++) {
		const struct safetensors_tensor *one = &s.tensor[i];
		char name[96];
		snprintf(name, sizeof name, "%.*s", (int)one->name.n, (const char *)one->name.p);
		if (one->rank == 2 && !(f->symmetric && !strstr(name, "layers."))) {
			float *w = malloc(one->bytes);
			assert_non_null(w);
			memcpy(w, p + one->offset, one->bytes);
			write_matrix(&quants, &floats, f, name, one->dim, w);
			free(w);
			continue;
		}
		st_write_tensor(&quants, name, one->type, one->rank, one->dim, p + one->offset, one->bytes);
		st_write_tensor(&floats, name, one->type, one->rank, one->dim, p + one->offset, one->bytes);
	}
	write_one("quants", &quants, f, f->quantization);
	write_one("floats", &floats, f, NULL);
	safetensors_free(&s);
	free(p);
}

enum { VOCAB = 96, TOKENS = 19 };

static void logits_kept(float out[VOCAB], const char *sub, bool f32, const char *device, const char *cache)
{
	int32_t ids[TOKENS];
	char path[96];
	jit_error err = { 0 };

	snprintf(path, sizeof path, "%s/%s", dir, sub);
	jit_model *m = jit_model_open(
		path,
		&JIT_MODEL_OPTIONS(.cache_dir = "", .f32_activations = f32, .device = device, .weight_cache = cache),
		&err);
	if (!m)
		fail_msg("%s", err.message);
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1), &err);
	assert_non_null(s);
	for (int i = 0; i < TOKENS; i++)
		ids[i] = i * 29 % VOCAB;
	assert_int_equal(jit_session_feed(s, ids, TOKENS - 1, &err), JIT_OK);
	assert_int_equal(jit_session_feed(s, ids + TOKENS - 1, 1, &err), JIT_OK);
	const float *l = jit_session_logits(s, &err);
	assert_non_null(l);
	memcpy(out, l, VOCAB * sizeof *out);
	jit_session_close(s);
	jit_model_close(m);
}

static void logits_of(float out[VOCAB], const char *sub, bool f32, const char *device)
{
	logits_kept(out, sub, f32, device, NULL);
}

#define QUANTIZATION(group) \
	",\"quantization\": {\"group_size\": " #group \
	", \"bits\": 4}, \"quantization_config\": {\"group_size\": " #group ", \"bits\": 4}"

#define PACKED(bits, symmetric, format) \
	",\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"" format \
	"\", \"kv_cache_scheme\": null, \"config_groups\": {\"group_0\": {\"input_activations\": null, " \
	"\"targets\": [\"Linear\"], \"weights\": {\"num_bits\": " #bits ", \"type\": \"int\", " \
	"\"strategy\": \"group\", \"symmetric\": " #symmetric "}}}}"

static const struct form forms[] = {
	{ 64, DTYPE_BF16, "llama", true, QUANTIZATION(64), false, 0 },
	{ 32, DTYPE_F16, "qwen3", false, QUANTIZATION(32), false, 0 },
	{ 128, DTYPE_BF16, "qwen2", false,
	  ",\"quantization\": {\"group_size\": 128, \"bits\": 4, \"mode\": \"affine\"}", false, 0 },
	{ 64, DTYPE_F16, "llama", false, QUANTIZATION(64), false, 0 },
	{ 128, DTYPE_BF16, "llama", true, PACKED(4, true, "pack-quantized"), true, 0 },
	{ 32, DTYPE_F16, "qwen3", false, PACKED(4, true, "pack-quantized"), true, 0 },
};

static void test_same_numbers(void **state)
{
	float quants[VOCAB], floats[VOCAB];
	(void)state;

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		double max = 0, away = 0;
		write_both(&forms[i]);
		logits_of(quants, "quants", true, "cpu");
		logits_of(floats, "floats", true, "cpu");
		assert_memory_equal(quants, floats, sizeof floats);
		logits_of(quants, "quants", false, "cpu");
		for (int k = 0; k < VOCAB; k++) {
			max = fmax(max, fabs((double)floats[k]));
			away = fmax(away, fabs((double)floats[k] - (double)quants[k]));
		}
		if (!(away > 0 && away < 0.15 * max)) /* activations are int8 now */
			fail_msg("logits of up to %g are %g away", max, away);
		logits_of(floats, "quants", false, "ref");
		assert_memory_equal(quants, floats, sizeof floats);
	}
}

/* Packed into one file, and kept packed between runs: where the numbers come from makes no difference. */
static void test_kept(void **state)
{
	const struct target *target = target_native(NULL);
	const struct packed_options o = { .target = &target, .n_targets = 1, .mode = 0644 };
	float want[VOCAB], got[VOCAB];
	struct model m;
	struct error err = { 0 };
	char path[96], out[96], cache[96];
	uint64_t bytes;
	(void)state;

	write_both(&forms[0]);
	logits_of(want, "quants", false, "cpu");
	snprintf(path, sizeof path, "%s/quants", dir);
	snprintf(out, sizeof out, "%s/model.jkm", dir);
	snprintf(cache, sizeof cache, "%s/cache", dir);
	assert_true(model_open(&m, path, MODEL_KEEP_SOURCES, &err));
	struct pool *pool = pool_open(1, &err);
	assert_non_null(pool);
	if (!packed_write(out, &m, &o, pool, &bytes, &err))
		fail_msg("%s", err.text);
	pool_close(pool);
	model_close(&m);
	logits_of(got, "model.jkm", false, "cpu");
	assert_memory_equal(got, want, sizeof want);
	for (int again = 0; again < 2; again++) {
		logits_kept(got, "quants", false, "cpu", cache);
		assert_memory_equal(got, want, sizeof want);
	}
}

static void check_refused(const struct form *f, const char *part)
{
	char path[96];
	jit_error err = { 0 };

	write_both(f);
	snprintf(path, sizeof path, "%s/quants", dir);
	assert_null(jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err));
	if (!strstr(err.message, part))
		fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

static void test_refused(void **state)
{
	static const struct {
		unsigned wrong;
		const char *part;
	} writers[] = {
		{ NO_SCALES, "embed_tokens.scales is missing, which model.embed_tokens.weight needs" },
		{ SMALL_SCALES, "has 3 scales for 256 columns, expected one for a multiple of 32" },
		{ OTHER_BIASES,
		  "the biases of tensor model.embed_tokens.weight differ from its scales in type or shape" },
		{ FLOAT_SCALES, "embed_tokens.scales has type F32, expected F16 or BF16" },
		{ SMALL_ROWS, "embed_tokens.scales has 95 rows, expected 96" },
	};
	static const struct {
		const char *quantization, *part;
	} configs[] = {
		{ NULL, "has shape (96 x 32), expected (96 x 256)" },
		{ ",\"quantization\": {\"group_size\": 64, \"bits\": 4, \"mode\": \"fp6\"}",
		  "quantization.mode is \"fp6\", expected affine" },
		{ ",\"quantization\": {\"bits\": 4}", "has a quantization, expected unquantised weights" },
		{ ",\"quantization_config\": {\"quant_method\": \"hqq\", \"group_size\": 64, \"bits\": 4}",
		  "has a quantization_config of method hqq, expected unquantised weights" },
		{ PACKED(3, true, "pack-quantized"),
		  "whose weights are not integers of 4 or 8 bits, expected unquantised" },
		{ PACKED(8, false, "pack-quantized"), "whose weights are not symmetric, and not integers of 4 bits" },
		{ PACKED(4, true, "marlin-24"),
		  "whose format is not pack-quantized, int-quantized or float-quantized" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
		struct form f = forms[0];
		f.wrong = writers[i].wrong;
		check_refused(&f, writers[i].part);
	}
	struct form packed = forms[4];
	packed.wrong = NO_SCALES;
	check_refused(&packed, "q_proj.weight_scale is missing, which model.layers.0.self_attn.q_proj.weight needs");
	for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
		struct form f = forms[0];
		f.quantization = configs[i].quantization;
		check_refused(&f, configs[i].part);
	}
}

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/jitrun-affine-XXXXXX");
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
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_same_numbers), cmocka_unit_test(test_kept),
		                            cmocka_unit_test(test_refused) };
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

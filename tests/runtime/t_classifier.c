/* tests/runtime/t_classifier.c - models that rank texts: their weights as floats, their scores held to a plain
 * computation from the last token's row, packed models, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loaders/model/model_floats.h"
#include "loaders/model/model_load.h"
#include "quantise/quantise.h"
#include "include/jitrun.h"
#include "tests/kernels/plain.h"
#include "tests/support/rank_model.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"

enum { HIDDEN = 256, CLASSES = 3, TOKENS = 9 };
static char path[] = "/tmp/t_classifier-XXXXXX";
static const int32_t ids[TOKENS] = { 5, 300, 17, 9, 41, 200, 3, 77, 12 };
static float dense[HIDDEN * HIDDEN], dense_bias[HIDDEN], out[CLASSES * HIDDEN], out_bias[CLASSES];

static uint32_t seed = 7;
static float next(float max)
{
	seed = seed * 1664525 + 1013904223;
	return (float)((int32_t)(seed >> 8) % 10000) / 10000 * max;
}

static int fill(void **state)
{
	(void)state;
	for (int i = 0; i < HIDDEN * HIDDEN; i++)
		dense[i] = next(0.1f);
	for (int i = 0; i < HIDDEN; i++)
		dense_bias[i] = next(1);
	for (int i = 0; i < CLASSES * HIDDEN; i++)
		out[i] = next(0.05f);
	for (int i = 0; i < CLASSES; i++)
		out_bias[i] = next(1);
	int fd = mkstemp(path);
	return fd < 0 || close(fd);
}

static int drop(void **state)
{
	(void)state;
	return unlink(path);
}

/* ---- floats */

static void test_floats(void **state)
{
	enum { N = 512 };
	unsigned known = 0;
	(void)state;

	for (int type = 0; type < DTYPE_COUNT; type++) {
		const struct dtype_facts *f = &dtype_table[type];
		const size_t n = (size_t)dtype_row_bytes((enum dtype)type, N);
		uint8_t *bytes = malloc(n);
		float got[N];
		if (!model_floats_known((enum dtype)type)) {
			free(bytes);
			continue;
		}
		known++;
		assert_non_null(bytes);
		for (size_t i = 0; i < n; i++)
			bytes[i] = (uint8_t)(seed = seed * 1664525 + 1013904223, seed >> 24);
		const struct plain_matrix m = { (enum dtype)type, 1, N, bytes };
		model_floats((enum dtype)type, bytes, N, got);
		for (uint32_t i = 0; i < N; i++) {
			float wanted = plain_weight(&m, 0, i);
			if (wanted == wanted && got[i] != wanted)
				fail_msg("%s: number %u is %.9g, expected %.9g", f->name, i, (double)got[i],
				         (double)wanted);
		}
		free(bytes);
	}
	assert_int_equal(known, 13);
}

/* ---- scores */

static jit_model *open_model(const char *file, jit_error *err)
{
	*err = (jit_error){ 0 };
	return jit_model_open(file, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1, .tune = JIT_TUNE_OFF), err);
}

/* One float with JIT_POOL_RANK, else HIDDEN. */
static int embed(const char *file, int pooling, size_t n_out, float *x, jit_error *err)
{
	jit_model *m = open_model(file, err);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1), err) : NULL;

	if (!s)
		fail_msg("%s: %s", file, err->message);
	int status = jit_session_embed(s, ids, TOKENS, &JIT_EMBEDDING_OPTIONS(.pooling = pooling), x, n_out, err);
	jit_session_close(s);
	jit_model_close(m);
	return status;
}

static float dense_held[HIDDEN * HIDDEN], out_held[CLASSES * HIDDEN];

/* A matrix in a type, and the numbers that it then holds. */
static void *in_type(enum dtype type, const float *x, uint64_t rows, float *held)
{
	const size_t row = (size_t)dtype_row_bytes(type, HIDDEN);
	uint8_t *bytes = malloc(rows * row);
	const struct plain_matrix m = { type, (uint32_t)rows, HIDDEN, bytes };

	assert_non_null(bytes);
	for (uint64_t r = 0; r < rows; r++)
		quantise_row(type, x + r * HIDDEN, NULL, HIDDEN, bytes + r * row);
	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t k = 0; k < HIDDEN; k++)
			held[r * HIDDEN + k] = plain_weight(&m, r, k);
	return bytes;
}

struct shape {
	enum dtype type;
	int classes;
	bool has_dense, has_dense_bias, has_bias;
};

/* By the definitions of the row, with libm. */
static double plain_score(const struct shape *s, const float *row)
{
	double x[HIDDEN], sum[CLASSES], all = 0;

	for (int i = 0; i < HIDDEN; i++) {
		double y = s->has_dense_bias ? (double)dense_bias[i] : 0;
		for (int k = 0; s->has_dense && k < HIDDEN; k++)
			y += (double)dense_held[i * HIDDEN + k] * (double)row[k];
		x[i] = s->has_dense ? tanh(y) : (double)row[i];
	}
	for (int c = 0; c < s->classes; c++) {
		sum[c] = s->has_bias ? (double)out_bias[c] : 0;
		for (int k = 0; k < HIDDEN; k++)
			sum[c] += (double)out_held[c * HIDDEN + k] * x[k];
		all += exp(sum[c]);
	}
	return s->classes == 1 ? sum[0] : exp(sum[0]) / all;
}

static void write_shape(const struct shape *s)
{
	static const char *const labels[] = { "yes", "no", "perhaps" };
	struct rank_model m = { .pooling = 4 };
	void *dense_bytes = in_type(s->type, dense, HIDDEN, dense_held),
	     *out_bytes = in_type(s->type, out, (uint64_t)s->classes, out_held);
	int n = 0;

	if (s->has_dense)
		m.tensor[n++] = (struct rank_tensor){ "cls.weight", s->type, 2, { HIDDEN, HIDDEN }, dense_bytes };
	if (s->has_dense_bias)
		m.tensor[n++] = (struct rank_tensor){ "cls.bias", DTYPE_F32, 1, { HIDDEN, 1 }, dense_bias };
	m.tensor[n++] = (struct rank_tensor){
		"cls.output.weight", s->type, s->classes == 1 ? 1 : 2, { HIDDEN, (uint64_t)s->classes }, out_bytes
	};
	if (s->has_bias)
		m.tensor[n++] =
			(struct rank_tensor){ "cls.output.bias", DTYPE_F32, 1, { (uint64_t)s->classes, 1 }, out_bias };
	memcpy(m.labels, labels, (size_t)s->classes * sizeof *labels);
	rank_model_write(path, &m);
	free(dense_bytes);
	free(out_bytes);
}

static void check_shape(const struct shape *s, const float *row)
{
	jit_error err;
	float score = -1;

	write_shape(s);
	if (embed(path, JIT_POOL_RANK, 1, &score, &err) != JIT_OK)
		fail_msg("%s", err.message);
	double wanted = plain_score(s, row);
	if (!(fabs((double)score - wanted) < 1e-6 * (fabs(wanted) + 1)))
		fail_msg("%s, %d classes, dense %d: %.9g, expected %.9g", dtype_table[s->type].name, s->classes,
		         s->has_dense, (double)score, wanted);
}

static void test_scores(void **state)
{
	static const struct shape shapes[] = {
		{ DTYPE_F32, 2, false, false, false }, { DTYPE_F32, 1, false, false, false },
		{ DTYPE_F32, 1, true, true, true },    { DTYPE_F16, 3, true, false, true },
		{ DTYPE_Q8_0, 2, false, false, true }, { DTYPE_Q4_K, 2, true, true, false },
		{ DTYPE_BF16, 2, false, false, false }
	};
	char source[1024];
	float row[HIDDEN];
	jit_error err;
	(void)state;

	assert_int_equal(embed(source_path(source, "models/tale-q8_0.gguf"), JIT_POOL_LAST, HIDDEN, row, &err), JIT_OK);
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		check_shape(&shapes[i], row);
}

/* ---- what holds of the model that the last check has written */

static void test_interface(void **state)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_error err;
	char source[1024];
	float x[2];
	(void)state;

	write_shape(&(struct shape){ DTYPE_F32, 2, true, true, true });
	jit_model *m = open_model(path, &err);
	assert_non_null(m);
	assert_int_equal(jit_model_get_info(m, &info, &err), JIT_OK);
	assert_int_equal(info.pooling, JIT_POOL_RANK);
	jit_model_close(m);
	assert_int_equal(embed(path, JIT_POOL_RANK, 2, x, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "n_out: 2 floats were given for a score; expected 1"));
	assert_int_equal(embed(source_path(source, "models/tale-q8_0.gguf"), JIT_POOL_RANK, 1, x, &err),
	                 JIT_ERROR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "has no classifier"));
}

/* What a packed model holds of it. */
static void test_sources(void **state)
{
	struct error err = { 0 };
	struct model m, again;
	size_t n;
	(void)state;

	assert_true(model_open(&m, path, MODEL_KEEP_SOURCES, &err));
	struct model_source *s = model_sources(&m, &n, &err);
	assert_non_null(s);
	assert_true(model_open_sources(&again, s, n, "packed", MODEL_HEADER_ONLY, &err));
	assert_int_equal(again.classifier.classes, 2);
	assert_memory_equal(again.classifier.dense, dense, sizeof dense);
	assert_memory_equal(again.classifier.dense_bias, dense_bias, sizeof dense_bias);
	assert_memory_equal(again.classifier.out, out, 2 * HIDDEN * sizeof *out);
	assert_memory_equal(again.classifier.out_bias, out_bias, 2 * sizeof *out_bias);
	model_close(&again);
	for (size_t i = 0; i < n; i++)
		s[i].n -= s[i].role == MODEL_SOURCE_CLASSIFIER ? 4 : 0;
	assert_false(model_open_sources(&again, s, n, "packed", MODEL_HEADER_ONLY, &err));
	assert_non_null(strstr(err.text, "bytes of a classifier, expected"));
	free(s);
	model_close(&m);
}

/* ---- refusals */

#define OUT2(cols, rows) \
	{ \
		"cls.output.weight", DTYPE_F32, 2, { cols, rows }, out \
	}

static void test_refusals(void **state)
{
	static float bad[2 * HIDDEN];
	static const struct {
		struct rank_model m;
		const char *says;
	} rows[] = {
		{ { .pooling = 4 }, "the tensor cls.output.weight is missing" },
		{ { .pooling = 3, .tensor = { OUT2(HIDDEN, 2) } }, "the tensor cls.output.weight is none that jitrun" },
		{ { .pooling = 4, .tensor = { OUT2(HIDDEN / 2, 2) } },
		  "cls.output.weight has shape (2 x 128), expected (2 x 256)" },
		{ { .pooling = 4,
		    .tensor = { OUT2(HIDDEN, 2), { "cls.output.bias", DTYPE_F32, 1, { 3, 1 }, out_bias } } },
		  "cls.output.bias has shape (1 x 3), expected (1 x 2)" },
		{ { .pooling = 4, .tensor = { OUT2(HIDDEN, 2), { "cls.weight", DTYPE_F32, 2, { HIDDEN, 2 }, dense } } },
		  "cls.weight has shape (2 x 256), expected (256 x 256)" },
		{ { .pooling = 4, .tensor = { OUT2(HIDDEN, 2), { "cls.bias", DTYPE_F32, 1, { HIDDEN, 1 }, dense } } },
		  "has the tensor cls.bias without cls.weight" },
		{ { .pooling = 4, .tensor = { { "cls.output.weight", DTYPE_I32, 2, { HIDDEN, 2 }, out } } },
		  "cls.output.weight has type I32, which is not supported for what ranks texts" },
		{ { .pooling = 4, .tensor = { OUT2(HIDDEN, 2) }, .labels = { "yes" } },
		  "has 1 labels, expected one for each of the 2 rows" },
		{ { .pooling = 4, .tensor = { { "cls.output.weight", DTYPE_F32, 2, { HIDDEN, 2 }, bad } } },
		  "number 300 of tensor cls.output.weight is not finite" },
	};
	jit_error err;
	(void)state;

	bad[300] = INFINITY;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		rank_model_write(path, &rows[i].m);
		jit_model *m = open_model(path, &err);
		if (m || !strstr(err.message, rows[i].says))
			fail_msg("expected \"%s\", got \"%s\"", rows[i].says, m ? "a model" : err.message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_floats),  cmocka_unit_test(test_scores),   cmocka_unit_test(test_interface),
		cmocka_unit_test(test_sources), cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, fill, drop);
}

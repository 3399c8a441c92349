/* tests/runtime/t_embeddings.c - jit_session_embed: rows of which the output matrix makes the logits, the same bits on
 * every device and for every cut, means and lengths as a plain loop has them, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/shared.h"

enum { HIDDEN = 96, VOCAB = 50, TOKENS = 45 };
static const struct tiny_model shape = {
	.arch = "llama",
	.layers = 2,
	.hidden = HIDDEN, /* no multiple of what a vector holds, nor of a segment */
	.ffn = 64,
	.heads = 2,
	.kv_heads = 1,
	.head_dim = 32,
	.vocab = VOCAB,
	.type = DTYPE_F32
};
static char folder[] = "/tmp/t_embeddings-XXXXXX", q8_0[64];
static int32_t ids[TOKENS];

static float *numbers(uint8_t *file, const char *name)
{
	char quoted[100];
	uint64_t header, begin;

	memcpy(&header, file, 8);
	snprintf(quoted, sizeof quoted, "\"%s\"", name);
	const char *at = memmem(file + 8, header, quoted, strlen(quoted));
	assert_non_null(at);
	assert_int_equal(sscanf(strstr(at, "\"data_offsets\""), "\"data_offsets\":[%lu", &begin), 1);
	return (float *)(void *)(file + 8 + header + begin);
}

struct way {
	const char *model, *device, *isa;
	int threads, batch;
	size_t cut; /* tokens of a call */
	int feed;   /* the first `cut` are fed, and have no rows */
};

static jit_model *open_model(const struct way *w)
{
	jit_error err = { 0 };
	jit_model *m = jit_model_open(w->model ? w->model : folder,
	                              &JIT_MODEL_OPTIONS(.device = w->device, .isa = w->isa, .cache_dir = "",
	                                                 .threads = 1, .tune = JIT_TUNE_OFF),
	                              &err);

	if (!m)
		fail_msg("%s", err.message);
	return m;
}

static jit_session *open_session(jit_model *m, int threads, int batch)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(
		m, &JIT_SESSION_OPTIONS(.context = TOKENS, .threads = threads ? threads : 1, .batch = batch), &err);

	if (!s)
		fail_msg("%s", err.message);
	return s;
}

static void embed(jit_session *s, size_t first, size_t n, int pooling, int normalise, float *out)
{
	jit_error err = { 0 };
	const jit_embedding_options o = JIT_EMBEDDING_OPTIONS(.pooling = pooling, .normalise = normalise);

	if (jit_session_embed(s, ids + first, n, &o, out, (pooling == JIT_POOL_NONE ? n : 1) * HIDDEN, &err) != JIT_OK)
		fail_msg("%s", err.message);
}

/* The rows of the first n tokens; 0 for those that were fed. */
static void rows(const struct way *w, size_t n, float *out)
{
	jit_model *m = open_model(w);
	jit_session *s = open_session(m, w->threads, w->batch);
	size_t cut = w->cut ? w->cut : n, done = w->feed ? cut : 0;

	memset(out, 0, n * HIDDEN * sizeof *out);
	if (done)
		assert_int_equal(jit_session_feed(s, ids, done, NULL), JIT_OK);
	for (size_t now; done < n; done += now) {
		now = n - done < cut ? n - done : cut;
		embed(s, done, now, JIT_POOL_NONE, 0, out + done * HIDDEN);
	}
	assert_int_equal(jit_session_length(s), n);
	jit_session_close(s);
	jit_model_close(m);
}

static float whole[TOKENS * HIDDEN], other[TOKENS * HIDDEN];

static void test_logits_are_made_of_rows(void **state)
{
	char path[128];
	size_t n;
	jit_model *m = open_model(&(struct way){ 0 });
	jit_session *s = open_session(m, 1, 0);
	(void)state;

	snprintf(path, sizeof path, "%s/model.safetensors", folder);
	uint8_t *file = file_bytes(path, &n);
	const float *head = numbers(file, "lm_head.weight");
	rows(&(struct way){ 0 }, TOKENS, whole);
	for (size_t t = 0; t < TOKENS; t++) {
		double max = 0;
		assert_int_equal(jit_session_feed(s, ids + t, 1, NULL), JIT_OK);
		const float *logits = jit_session_logits(s, NULL);
		assert_non_null(logits);
		for (size_t v = 0; v < VOCAB; v++) {
			double sum = 0;
			for (size_t i = 0; i < HIDDEN; i++)
				sum += (double)head[v * HIDDEN + i] * whole[t * HIDDEN + i];
			max = fabs(sum) > max ? fabs(sum) : max;
			if (!(fabs(sum - logits[v]) <= 1e-5 * (1 + fabs(sum))))
				fail_msg("token %zu, logit %zu: %.9g of its row, %.9g", t, v, sum, (double)logits[v]);
		}
		assert_true(max > 0.01);
	}
	free(file);
	jit_session_close(s);
	jit_model_close(m);
}

static void same(const struct way *w, size_t n)
{
	rows(w, n, other);
	for (size_t t = w->feed ? w->cut : 0; t < n; t++)
		if (memcmp(whole + t * HIDDEN, other + t * HIDDEN, HIDDEN * sizeof *other) != 0)
			fail_msg("%s on %s %s, %d threads, batch %d, cut %zu: token %zu has another row",
			         w->model ? "q8_0" : "f32", w->device ? w->device : "cpu", w->isa ? w->isa : "",
			         w->threads, w->batch, w->cut, t);
}

static void test_same_bits(void **state)
{
	const struct way ways[] = {
		{ .threads = 3, .cut = 1 },
		{ .threads = 2, .cut = 7 },
		{ .batch = 5 },
		{ .batch = 16, .threads = 2, .cut = 44 },
		{ .cut = 13, .feed = 1 },
		{ .isa = "avx2" },
		{ .device = "ref", .cut = 31 },
		{ .device = "sim:gfx1100", .cut = 9 },
		{ .device = "sim:gfx1200", .feed = 1, .cut = 10 }
	};
	(void)state;

	for (int quantised = 0; quantised < 2; quantised++) {
		rows(&(struct way){ .model = quantised ? q8_0 : NULL }, TOKENS, whole);
		for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
			struct way w = ways[i];
			bool slow = w.device && w.device[0] == 's';
			w.model = quantised ? q8_0 : NULL;
			same(&w, slow ? 12 : TOKENS);
		}
	}
}

/* What jitrun.h says that a mean and a length are. */
static void plain_mean(size_t first, size_t n, float *out)
{
	for (size_t i = 0; i < HIDDEN; i++) {
		double sum = 0;
		for (size_t t = first; t < first + n; t++)
			sum += (double)whole[t * HIDDEN + i];
		out[i] = (float)(sum / (double)n);
	}
}

static void plain_unit(float *row)
{
	double sum = 0;

	for (size_t i = 0; i < HIDDEN; i++)
		sum += (double)row[i] * row[i];
	for (size_t i = 0; i < HIDDEN; i++)
		row[i] = (float)(row[i] / sqrt(sum));
}

static void test_pooling(void **state)
{
	jit_model *m = open_model(&(struct way){ 0 });
	jit_session *s = open_session(m, 2, 16);
	float got[HIDDEN], want[HIDDEN];
	(void)state;

	rows(&(struct way){ 0 }, TOKENS, whole);
	for (size_t first = 0; first < TOKENS; first += 19)
		for (int normalise = 0; normalise < 2; normalise++)
			for (int pooling = JIT_POOL_LAST; pooling <= JIT_POOL_MEAN; pooling++) {
				const size_t n = TOKENS - first;
				assert_int_equal(jit_session_rewind(s, 0, NULL), JIT_OK);
				assert_int_equal(jit_session_feed(s, ids, first, NULL), JIT_OK);
				embed(s, first, n, pooling, normalise, got);
				memcpy(want, whole + (TOKENS - 1) * HIDDEN, sizeof want);
				if (pooling == JIT_POOL_MEAN)
					plain_mean(first, n, want);
				if (normalise)
					plain_unit(want);
				assert_memory_equal(got, want, sizeof want);
			}
	assert_int_equal(jit_session_rewind(s, 0, NULL), JIT_OK);
	embed(s, 0, TOKENS, JIT_POOL_NONE, 1, other);
	for (size_t t = 0; t < TOKENS; t++)
		plain_unit(whole + t * HIDDEN);
	assert_memory_equal(other, whole, sizeof whole);
	jit_session_close(s);
	jit_model_close(m);
}

/* A session goes on behind an embedding, and one behind a token that was chosen and not computed. */
static void test_among_other_calls(void **state)
{
	jit_model *m = open_model(&(struct way){ 0 });
	jit_session *s = open_session(m, 1, 0), *plain = open_session(m, 1, 0);
	jit_error err = { 0 };
	float row[2 * HIDDEN], want[2 * HIDDEN];
	int32_t id;
	(void)state;

	embed(s, 0, 10, JIT_POOL_LAST, 0, row);
	assert_null(jit_session_logits(s, &err));
	assert_string_equal(err.message, "there are no logits: feed at least one token first");
	assert_int_equal(jit_session_feed(s, ids + 10, 5, NULL), JIT_OK);
	assert_int_equal(jit_session_feed(plain, ids, 15, NULL), JIT_OK);
	assert_memory_equal(jit_session_logits(s, NULL), jit_session_logits(plain, NULL), VOCAB * sizeof(float));
	assert_int_equal(jit_session_next(s, &id, NULL), JIT_OK);
	embed(s, 15, 2, JIT_POOL_NONE, 0, row);
	assert_int_equal(jit_session_feed(plain, &id, 1, NULL), JIT_OK);
	embed(plain, 15, 2, JIT_POOL_NONE, 0, want);
	assert_memory_equal(row, want, sizeof want);
	jit_session_close(plain);
	jit_session_close(s);
	jit_model_close(m);
}

static void refused(jit_session *s, int status, size_t n, const jit_embedding_options *o, size_t n_out,
                    const char *says)
{
	static float out[2 * TOKENS * HIDDEN];
	const size_t length = jit_session_length(s);
	jit_error err = { 0 };

	assert_int_equal(jit_session_embed(s, ids, n, o, out, n_out, &err), status);
	if (!strstr(err.message, says))
		fail_msg("\"%s\" instead of \"%s\"", err.message, says);
	assert_int_equal(jit_session_length(s), length);
}

static void test_refused(void **state)
{
	const jit_embedding_options none = JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_NONE);
	jit_model *m = open_model(&(struct way){ 0 });
	jit_session *s = open_session(m, 1, 16);
	(void)state;

	refused(s, JIT_ERROR_ARGUMENT, 0, NULL, HIDDEN, "0 tokens");
	refused(s, JIT_ERROR_ARGUMENT, 3, NULL, HIDDEN - 1,
	        "n_out: 95 floats were given for an embedding; expected 1 times 96");
	refused(s, JIT_ERROR_ARGUMENT, 3, NULL, 3 * HIDDEN, "expected 1 times 96");
	refused(s, JIT_ERROR_ARGUMENT, 3, &none, HIDDEN, "expected 3 times 96");
	refused(s, JIT_ERROR_ARGUMENT, 3, &JIT_EMBEDDING_OPTIONS(.pooling = 7), HIDDEN,
	        "pooling: 7 is not 0, 1, 2, 3 or 4");
	ids[2] += VOCAB;
	refused(s, JIT_ERROR_ARGUMENT, 3, NULL, HIDDEN, "token 2 is ");
	refused(s, JIT_ERROR_UNSUPPORTED, 3, &JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_RANK), 1, "no classifier");
	ids[2] -= VOCAB;
	assert_int_equal(jit_session_feed(s, ids, 20, NULL), JIT_OK);
	refused(s, JIT_ERROR_CONTEXT, TOKENS - 19, NULL, HIDDEN, "the context of 45 tokens is full");
	jit_session_cancel(s);
	refused(s, JIT_ERROR_CANCELLED, 20, NULL, HIDDEN, "cancelled");
	assert_non_null(jit_session_logits(s, NULL));
	jit_session_close(s);
	jit_model_close(m);
}

/* The model with a number that is none where only one token's embedding is. */
static void test_not_finite(void **state)
{
	char bad[] = "/tmp/t_embeddings-XXXXXX", path[128];
	size_t n;
	(void)state;

	assert_non_null(mkdtemp(bad));
	tiny_write_hf(bad, &shape);
	snprintf(path, sizeof path, "%s/model.safetensors", bad);
	uint8_t *file = file_bytes(path, &n);
	numbers(file, "model.embed_tokens.weight")[(size_t)ids[3] * HIDDEN + 5] = INFINITY;
	tiny_write(bad, "model.safetensors", file, n);
	jit_model *m = open_model(&(struct way){ .model = bad });
	jit_session *s = open_session(m, 1, 16);
	char says[100];
	snprintf(says, sizeof says, "the hidden state of token 3 (id %d) is not finite", ids[3]);
	refused(s, JIT_ERROR_FORMAT, 8, NULL, HIDDEN, says);
	embed(s, 0, 3, JIT_POOL_LAST, 0, other);
	jit_session_close(s);
	jit_model_close(m);
	free(file);
	unlink(path);
	snprintf(path, sizeof path, "%s/config.json", bad);
	unlink(path);
	rmdir(bad);
}

static int make_models(void **state)
{
	struct error err = { 0 };
	size_t n;
	(void)state;

	if (!mkdtemp(folder))
		return -1;
	for (int i = 0; i < TOKENS; i++)
		ids[i] = (int32_t)(i * 17 % VOCAB);
	tiny_write_hf(folder, &shape);
	uint8_t *file = tiny_gguf(&shape, DTYPE_Q8_0, &n, &err);
	if (!file)
		fail_msg("%s", err.text);
	tiny_write(folder, "q8_0.gguf", file, n);
	snprintf(q8_0, sizeof q8_0, "%s/q8_0.gguf", folder);
	free(file);
	return 0;
}

static int remove_models(void **state)
{
	static const char *const names[] = { "config.json", "model.safetensors", "q8_0.gguf" };
	char path[128];
	(void)state;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_logits_are_made_of_rows),
		cmocka_unit_test(test_same_bits),
		cmocka_unit_test(test_pooling),
		cmocka_unit_test(test_among_other_calls),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_not_finite),
	};
	return cmocka_run_group_tests(tests, make_models, remove_models);
}

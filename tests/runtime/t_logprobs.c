/* tests/runtime/t_logprobs.c - jit_session_logprobs: the same bits as jit_session_score gives, the likeliest tokens as
 * a sort of all logits has them, and when there is none. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "runtime/session/logits.h"
#include "tests/support/shared.h"

enum { TOKENS = 24, TOP = 7 };

static jit_model *model;
static const int32_t prompt[] = { 0, 3177, 626, 260, 538 };

static int open_model(void **state)
{
	char path[1024];
	(void)state;

	model = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                       &JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF), NULL);
	return model ? 0 : -1;
}

static int close_model(void **state)
{
	(void)state;
	jit_model_close(model);
	return 0;
}

static jit_session *open_session(int speculate, int threads)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(
		model,
		&JIT_SESSION_OPTIONS(.context = 64, .threads = threads, .speculate = speculate,
	                             .sampling = &JIT_SAMPLING(.temperature = 1.2f, .top_k = 30, .seed = 5)),
		&err);

	if (!s)
		fail_msg("%s", err.message);
	assert_int_equal(jit_session_feed(s, prompt, 5, &err), JIT_OK);
	return s;
}

struct said {
	int32_t id;
	float chosen;
	jit_logprob top[TOP];
};

static void generate(int speculate, int threads, struct said out[TOKENS])
{
	jit_session *s = open_session(speculate, threads);

	memset(out, 0, TOKENS * sizeof *out);
	for (int i = 0; i < TOKENS; i++) {
		assert_int_equal(jit_session_next(s, &out[i].id, NULL), JIT_OK);
		assert_int_equal(jit_session_logprobs(s, &out[i].chosen, out[i].top, TOP, NULL), JIT_OK);
	}
	jit_session_close(s);
}

static void same_bits(void **state)
{
	struct said said[TOKENS], other[TOKENS];
	float score[TOKENS];
	int32_t ids[TOKENS];
	(void)state;

	generate(JIT_SPECULATE_OFF, 1, said);
	generate(4, 2, other);
	assert_memory_equal(said, other, sizeof said);
	for (int i = 0; i < TOKENS; i++)
		ids[i] = said[i].id;
	jit_session *s = open_session(JIT_SPECULATE_OFF, 1);
	assert_int_equal(jit_session_score(s, ids, TOKENS, score, NULL), JIT_OK);
	for (int i = 0; i < TOKENS; i++)
		assert_memory_equal(&score[i], &said[i].chosen, sizeof score[i]);
	jit_session_close(s);
}

static const float *by;

static int order(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return by[x] != by[y] ? (by[x] < by[y] ? 1 : -1) : x < y ? -1 : x > y;
}

/* Of any logits: what a sort and the C library's functions say. */
static void check_top(const float *logits, uint32_t n, size_t n_top)
{
	int32_t *id = malloc(n * sizeof *id);
	jit_logprob top[256];
	double sum = 0;
	float chosen;

	assert_non_null(id);
	for (uint32_t i = 0; i < n; i++)
		id[i] = (int32_t)i;
	by = logits;
	qsort(id, n, sizeof *id, order);
	for (uint32_t i = 0; i < n; i++)
		sum += exp((double)logits[i] - logits[id[0]]);
	logits_top(logits, n, id[n / 2], &chosen, top, n_top);
	assert_true(fabs((double)chosen - ((double)logits[id[n / 2]] - logits[id[0]] - log(sum))) < 1e-4);
	for (size_t i = 0; i < n_top; i++) {
		assert_int_equal(top[i].id, id[i]);
		assert_true(fabs((double)top[i].logprob - ((double)logits[id[i]] - logits[id[0]] - log(sum))) < 1e-4);
	}
	free(id);
}

static void top_is_sorted(void **state)
{
	float logits[300];
	uint64_t x = 9;
	(void)state;

	for (uint32_t n = 1; n <= 300; n += n < 9 ? 1 : 97)
		for (int distinct = 1; distinct < 1000; distinct *= 7) {
			for (uint32_t i = 0; i < n; i++) {
				x = x * 6364136223846793005u + 1442695040888963407u;
				logits[i] = (float)((int)(x >> 40) % distinct) / 8;
			}
			for (size_t top = 0; top <= n && top <= 256; top += top < 4 ? 1 : 63)
				check_top(logits, n, top);
		}
}

/* ---- behind the samplers */

enum { KEPT = 30 };

/* top_k and the temperature, by the C library: the probabilities of the first KEPT of these logits. */
static void expect_left(const float *logits, uint32_t n, double temperature, int32_t id[KEPT], double p[KEPT])
{
	int32_t *all = malloc(n * sizeof *all);
	double sum = 0;

	assert_non_null(all);
	for (uint32_t i = 0; i < n; i++)
		all[i] = (int32_t)i;
	by = logits;
	qsort(all, n, sizeof *all, order);
	for (int i = 0; i < KEPT; i++)
		sum += exp(((double)logits[all[i]] - logits[all[0]]) / temperature);
	for (int i = 0; i < KEPT; i++) {
		id[i] = all[i];
		p[i] = exp(((double)logits[all[i]] - logits[all[0]]) / temperature) / sum;
	}
	free(all);
}

static void check_left(const jit_sampling *how, double temperature, size_t requested)
{
	jit_session *s = open_session(JIT_SPECULATE_OFF, 1);
	jit_model_info info = JIT_MODEL_INFO();

	assert_int_equal(jit_model_get_info(model, &info, NULL), JIT_OK);
	uint32_t vocab = (uint32_t)info.vocab;
	float *logits = malloc(vocab * sizeof *logits);
	assert_non_null(logits);
	assert_int_equal(jit_session_set_sampling(s, how, NULL), JIT_OK);
	for (int round = 0; round < 6; round++) {
		int32_t want[KEPT], id;
		double p[KEPT];
		jit_logprob top[64];
		float chosen;
		size_t n = 99;
		memcpy(logits, jit_session_logits(s, NULL), vocab * sizeof *logits);
		expect_left(logits, vocab, temperature, want, p);
		assert_int_equal(jit_session_next(s, &id, NULL), JIT_OK);
		assert_int_equal(jit_session_sampled_logprobs(s, &chosen, top, requested, &n, NULL), JIT_OK);
		assert_int_equal(n, requested < KEPT ? requested : KEPT);
		bool there = false;
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(top[i].id, want[i]);
			assert_true(fabs(exp((double)top[i].logprob) - p[i]) < 1e-6);
		}
		for (int i = 0; i < KEPT; i++) {
			there |= want[i] == id;
			assert_true(want[i] != id || fabs(exp((double)chosen) - p[i]) < 1e-6);
		}
		assert_true(there);
	}
	free(logits);
	jit_session_close(s);
}

static void behind_the_samplers(void **state)
{
	(void)state;
	check_left(&JIT_SAMPLING(.temperature = 1.2f, .top_k = KEPT, .seed = 5), (double)1.2f, 64);
	check_left(&JIT_SAMPLING(.temperature = 1.2f, .top_k = KEPT, .seed = 6), (double)1.2f, 4);
	check_left(&JIT_SAMPLING(.temperature = 0.7f, .top_k = KEPT, .samplers = "top_k;temperature", .seed = 7),
	           (double)0.7f, 64);
}

static void the_likeliest_is_alone(void **state)
{
	(void)state;
	for (int chain = 0; chain < 2; chain++) {
		jit_session *s = open_session(JIT_SPECULATE_OFF, 1);
		jit_logprob top[3];
		float chosen = 1;
		int32_t id;
		size_t n;
		assert_int_equal(jit_session_set_sampling(
					 s, &JIT_SAMPLING(.temperature = 0, .samplers = chain ? "top_k" : NULL), NULL),
		                 JIT_OK);
		assert_int_equal(jit_session_next(s, &id, NULL), JIT_OK);
		assert_int_equal(jit_session_sampled_logprobs(s, &chosen, top, 3, &n, NULL), JIT_OK);
		assert_true(n == 1 && top[0].id == id && top[0].logprob == 0 && chosen == 0);
		assert_int_equal(jit_session_rewind(s, 5, NULL), JIT_OK);
		assert_int_equal(jit_session_sampled_logprobs(s, &chosen, top, 3, &n, NULL), JIT_ERROR_ARGUMENT);
		jit_session_close(s);
	}
}

static void when_there_is_none(void **state)
{
	jit_session *s = open_session(JIT_SPECULATE_OFF, 1);
	jit_logprob top[1];
	jit_error err = { 0 };
	int32_t id;
	float x;
	(void)state;

	assert_int_equal(jit_session_logprobs(s, &x, NULL, 0, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "no token was chosen last"));
	assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
	assert_int_equal(jit_session_logprobs(s, NULL, NULL, 0, &err), JIT_OK);
	assert_int_equal(jit_session_logprobs(s, NULL, top, 257, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "257 tokens were asked for; expected 0..256"));
	assert_int_equal(jit_session_rewind(s, 5, &err), JIT_OK);
	assert_int_equal(jit_session_logprobs(s, &x, NULL, 0, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
	assert_int_equal(jit_session_feed(s, prompt, 2, &err), JIT_OK);
	assert_int_equal(jit_session_logprobs(s, &x, NULL, 0, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_rewind(s, 3, &err), JIT_OK);
	assert_int_equal(jit_session_logprobs(s, &x, NULL, 0, &err), JIT_ERROR_ARGUMENT);
	jit_session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_bits), cmocka_unit_test(top_is_sorted), cmocka_unit_test(behind_the_samplers),
		cmocka_unit_test(the_likeliest_is_alone), cmocka_unit_test(when_there_is_none)
	};

	return cmocka_run_group_tests(tests, open_model, close_model);
}

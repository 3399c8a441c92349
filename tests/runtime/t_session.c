/* tests/runtime/t_session.c - the public interface on the shipped model: the same bits however a prompt is fed, on
 * however many threads, on either device, with a cold or a warm cache; and what it says when asked for the
 * impossible. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "tests/support/shared.h"

static char model_path[1024];
static const int32_t prompt[] = { 0,   3177, 626, 260, 538, 453, 310, 260, 701, 429, 346, 824, 2649, 13,
	                          271, 373,  398, 498, 913, 13,  271, 346, 443, 938, 13,  376, 373,  346,
	                          443, 938,  13,  271, 443, 417, 346, 537, 938, 15,  387, 701, 310 };
enum { N_PROMPT = sizeof prompt / sizeof *prompt, VOCAB = 4096, STEPS = 6 };

struct how {
	const char *device, *isa, *cache;
	int threads, chunk, batch, f32_activations, kv;
};

/* Feeds the prompt as `how` says, then takes STEPS greedy tokens; out gets the logits after every step. */
static void run(const struct how *h, float out[STEPS + 1][VOCAB])
{
	jit_error err = { 0 };
	jit_model_options mo =
		JIT_MODEL_OPTIONS(.device = h->device, .isa = h->isa, .cache_dir = h->cache ? h->cache : "",
	                          .f32_activations = h->f32_activations);
	jit_session_options so =
		JIT_SESSION_OPTIONS(.context = 128, .threads = h->threads, .batch = h->batch, .kv = h->kv);
	jit_model *m = jit_model_open(model_path, &mo, &err);
	if (!m)
		fail_msg("%s", err.message);
	jit_session *s = jit_session_open(m, &so, &err);
	if (!s)
		fail_msg("%s", err.message);
	for (int i = 0; i < N_PROMPT; i += h->chunk) {
		int n = N_PROMPT - i < h->chunk ? N_PROMPT - i : h->chunk;
		assert_int_equal(jit_session_feed(s, prompt + i, (size_t)n, &err), JIT_OK);
	}
	for (int i = 0; i <= STEPS; i++) {
		int32_t id;
		const float *l = jit_session_logits(s, &err);
		assert_non_null(l);
		memcpy(out[i], l, sizeof out[i]);
		assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
	}
	jit_session_close(s);
	jit_model_close(m);
}

static float want[STEPS + 1][VOCAB], got[STEPS + 1][VOCAB];

static void test_same_bits(void **state)
{
	static const struct how how[] = {
		{ .threads = 2, .chunk = N_PROMPT },
		{ .threads = 7, .chunk = N_PROMPT },
		{ .threads = 1, .chunk = 1 },
		{ .threads = 2, .chunk = 5 },
		{ .threads = 3, .chunk = N_PROMPT, .batch = 7 },
		{ .threads = 7, .chunk = 2 },
		{ .threads = 1, .chunk = 3 }
	};
	(void)state;
	run(&(struct how){ .threads = 1, .chunk = N_PROMPT }, want);
	for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
		run(&how[i], got);
		assert_memory_equal(got, want, sizeof want);
	}
}

static void test_same_bits_f32(void **state)
{
	(void)state;
	run(&(struct how){ .threads = 1, .chunk = N_PROMPT, .f32_activations = 1, .kv = JIT_KV_F32 }, want);
	run(&(struct how){ .threads = 2, .chunk = 3, .f32_activations = 1, .kv = JIT_KV_F32 }, got);
	assert_memory_equal(got, want, sizeof want);
	run(&(struct how){ .threads = 2, .chunk = 3 }, got);
	assert_true(memcmp(got, want, sizeof want) !=
	            0); /* int8 activations are other numbers: the comparison can fail */
}

static void test_same_bits_int8_cache(void **state)
{
	static const struct how how[] = { { .threads = 2, .chunk = 1 },
		                          { .threads = 2, .chunk = 5 },
		                          { .threads = 3, .chunk = N_PROMPT, .batch = 7 },
		                          { .isa = "avx2", .threads = 2, .chunk = 3 },
		                          { .device = "ref", .threads = 2, .chunk = N_PROMPT } };
	struct how h = { .threads = 1, .chunk = N_PROMPT, .kv = JIT_KV_Q8_0 };
	(void)state;
	run(&h, want);
	for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
		h = how[i];
		h.kv = JIT_KV_Q8_0;
		run(&h, got);
		assert_memory_equal(got, want, sizeof want);
	}
	run(&(struct how){ .threads = 1, .chunk = N_PROMPT }, got);
	assert_true(memcmp(got, want, sizeof want) != 0); /* and are other numbers than with f16 */
}

static void test_reference_device(void **state)
{
	(void)state;
	run(&(struct how){ .threads = 1, .chunk = N_PROMPT }, want);
	run(&(struct how){ .device = "ref", .threads = 2, .chunk = N_PROMPT }, got);
	assert_memory_equal(got, want, sizeof want);
	if (test_quick())
		return;
	run(&(struct how){ .device = "ref", .isa = "avx2", .threads = 2, .chunk = 5 }, got);
	assert_memory_equal(got, want, sizeof want);
	run(&(struct how){ .device = "ref", .isa = "avx512vnni", .threads = 2, .chunk = 5 },
	    got); /* interpreted: no CPU lacks it */
	assert_memory_equal(got, want, sizeof want);
	run(&(struct how){ .threads = 1, .chunk = N_PROMPT, .f32_activations = 1, .kv = JIT_KV_F32 }, want);
	run(&(struct how){ .device = "ref", .threads = 2, .chunk = 9, .f32_activations = 1, .kv = JIT_KV_F32 }, got);
	assert_memory_equal(got, want, sizeof want);
}

static const char *const isa[] = { "avx2", "avx2vnni", "avx512", "avx512vnni", "avx512bf16", "avx512amx" };

/* What every instruction set this CPU has computes is the same; one it lacks is refused in a sentence. */
static void test_every_isa(void **state)
{
	unsigned ran = 0;
	(void)state;
	for (int f32 = 0; f32 < 2; f32++) {
		run(&(struct how){ .isa = "avx2",
		                   .threads = 1,
		                   .chunk = N_PROMPT,
		                   .f32_activations = f32,
		                   .kv = f32 ? JIT_KV_F32 : JIT_KV_F16 },
		    want);
		for (size_t i = 1; i < sizeof isa / sizeof *isa; i++) {
			jit_error err = { 0 };
			jit_model *m =
				jit_model_open(model_path, &JIT_MODEL_OPTIONS(.isa = isa[i], .cache_dir = ""), &err);
			if (!m) {
				assert_non_null(strstr(err.message, isa[i]));
				assert_int_equal(err.code, JIT_ERROR_DEVICE);
				continue;
			}
			jit_model_close(m);
			run(&(struct how){ .isa = isa[i],
			                   .threads = 1,
			                   .chunk = N_PROMPT,
			                   .f32_activations = f32,
			                   .kv = f32 ? JIT_KV_F32 : JIT_KV_F16 },
			    got);
			assert_memory_equal(got, want, sizeof want);
			run(&(struct how){ .isa = isa[i],
			                   .threads = 3,
			                   .chunk = 5,
			                   .f32_activations = f32,
			                   .kv = f32 ? JIT_KV_F32 : JIT_KV_F16 },
			    got);
			assert_memory_equal(got, want, sizeof want);
			ran++;
		}
	}
	if (!ran)
		skip();
}

static void test_cold_and_warm_cache(void **state)
{
	char dir[] = "/tmp/jitrun-test-XXXXXX", command[64];
	(void)state;
	assert_non_null(mkdtemp(dir));
	run(&(struct how){ .threads = 1, .chunk = N_PROMPT }, want);
	run(&(struct how){ .threads = 2, .chunk = 5, .cache = dir }, got);
	assert_memory_equal(got, want, sizeof want);
	run(&(struct how){ .threads = 2, .chunk = 5, .cache = dir }, got);
	assert_memory_equal(got, want, sizeof want);
	jit_error err = { 0 };
	jit_model *m = jit_model_open(model_path, &JIT_MODEL_OPTIONS(.cache_dir = dir), &err);
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 128, .threads = 2), &err);
	jit_session_stats stats = JIT_SESSION_STATS();
	assert_int_equal(jit_session_feed(s, prompt, 5, &err), JIT_OK);
	jit_session_get_stats(s, &stats, NULL);
	assert_int_equal(stats.kernels_generated, 0);
	assert_true(stats.kernels_from_cache > 5);
	jit_session_close(s);
	jit_model_close(m);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

static void test_rewind_and_two_sessions(void **state)
{
	jit_error err = { 0 };
	int32_t a[20], b[20];
	(void)state;
	jit_model *m = jit_model_open(model_path, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err);
	jit_session_options so =
		JIT_SESSION_OPTIONS(.context = 100,
	                            .sampling = &JIT_SAMPLING(.temperature = 0.9f, .top_p = 0.95f, .seed = 42));
	jit_session *s = jit_session_open(m, &so, &err), *t = jit_session_open(m, &so, &err);
	assert_int_equal(jit_session_feed(s, prompt, 10, &err), JIT_OK);
	assert_int_equal(jit_session_feed(t, prompt, 10, &err), JIT_OK);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(jit_session_next(s, &a[i], &err), JIT_OK);
		assert_int_equal(jit_session_next(t, &b[i], &err), JIT_OK);
	}
	assert_memory_equal(a, b, sizeof a);
	assert_int_equal(jit_session_rewind(s, 9, &err), JIT_OK);
	assert_null(jit_session_logits(s, &err));
	err = (jit_error){ 0 };
	assert_int_equal(jit_session_feed(s, prompt + 9, 1, &err), JIT_OK);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(jit_session_next(s, &b[i], &err), JIT_OK);
		assert_int_equal(a[i], b[i]);
	}
	assert_int_equal(jit_session_rewind(s, 1000, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "1000"));
	jit_session_close(s);
	jit_session_close(t);
	jit_model_close(m);
}

static void test_refusals(void **state)
{
	jit_error err = { 0 };
	int32_t bad = VOCAB, id, many[200] = { 0 };
	(void)state;
	assert_null(jit_model_open("/nonexistent/model.gguf", NULL, &err));
	assert_int_equal(err.code, JIT_ERROR_IO);
	assert_non_null(strstr(err.message, "/nonexistent/model.gguf"));
	err = (jit_error){ 0 };
	assert_null(jit_model_open(model_path, &JIT_MODEL_OPTIONS(.device = "toaster"), &err));
	assert_non_null(strstr(err.message, "toaster"));
	err = (jit_error){ 0 };
	assert_null(jit_model_open(model_path, &JIT_MODEL_OPTIONS(.isa = "sse2"), &err));
	assert_non_null(strstr(
		err.message, "\"sse2\" is unknown; known: avx2, avx2vnni, avx512, avx512vnni, avx512bf16, avx512amx"));
	err = (jit_error){ 0 };
	jit_model *m = jit_model_open(model_path, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err);
	assert_non_null(m);
	assert_null(jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 2000000000), &err));
	assert_int_equal(err.code, JIT_ERROR_MEMORY);
	assert_non_null(strstr(err.message, "available"));
	err = (jit_error){ 0 };
	assert_null(jit_session_open(m, &JIT_SESSION_OPTIONS(.kv = 3), &err));
	assert_non_null(strstr(err.message, "kv: 3"));
	err = (jit_error){ 0 };
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 100), &err);
	assert_int_equal(jit_session_next(s, &id, &err), JIT_ERROR_ARGUMENT);
	err = (jit_error){ 0 };
	assert_int_equal(jit_session_feed(s, &bad, 1, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "4096"));
	err = (jit_error){ 0 };
	assert_int_equal(jit_session_feed(s, many, 200, &err), JIT_ERROR_CONTEXT);
	assert_int_equal(jit_session_length(s), 0);
	err = (jit_error){ 0 };
	assert_int_equal(jit_session_feed(s, many, 100, &err), JIT_OK);
	assert_int_equal(jit_session_next(s, &id, &err), JIT_OK); /* chosen from the last logits */
	assert_int_equal(jit_session_next(s, &id, &err), JIT_ERROR_CONTEXT);
	jit_session_close(s);
	jit_model_close(m);
}

/* Every position of a context is good for a token, however it was filled; behind the last one a token is chosen that
 * cannot be computed. */
/* A session that is told of when the model is opened is refused there when its memory is not to be had. */
static void test_told_beforehand(void **state)
{
	jit_session_options so = JIT_SESSION_OPTIONS(.context = INT_MAX - 4096);
	const jit_model_options mo = JIT_MODEL_OPTIONS(.cache_dir = "", .session = &so);
	jit_error err = { 0 };
	(void)state;

	assert_null(jit_model_open(model_path, &mo, &err));
	assert_int_equal(err.code, JIT_ERROR_MEMORY);
	assert_non_null(strstr(err.message, "a context of 2147479551 tokens needs"));
	so.context = -1;
	assert_null(jit_model_open(model_path, &mo, &err));
	assert_int_equal(err.code, JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "context: -1"));
	so.context = 64;
	jit_model *m = jit_model_open(model_path, &mo, &err);
	assert_non_null(m);
	jit_model_close(m);
}

static void test_last_position(void **state)
{
	enum { CONTEXT = 20, DRAWN = 8 };
	static const int speculate[] = { JIT_SPECULATE_OFF, 4, 16, JIT_SPECULATE_AUTO };
	int32_t chosen[CONTEXT + 1], id;
	float logprob[2];
	(void)state;
	jit_error err = { 0 };
	jit_model *m = jit_model_open(model_path, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 2), &err);
	jit_session *wide = jit_session_open(
		m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1, .speculate = JIT_SPECULATE_OFF), &err);
	for (int fed = CONTEXT - DRAWN; fed <= CONTEXT; fed += fed < CONTEXT - 2 ? 3 : 1) {
		/* what a session with room to spare chooses */
		assert_int_equal(jit_session_rewind(wide, 0, &err), JIT_OK);
		for (int i = 0; i < fed; i++)
			chosen[i] = prompt[i % 3]; /* repeats itself: there are guesses */
		assert_int_equal(jit_session_feed(wide, chosen, (size_t)fed, &err), JIT_OK);
		for (int i = fed; i <= CONTEXT; i++)
			assert_int_equal(jit_session_next(wide, &chosen[i], &err), JIT_OK);
		for (size_t k = 0; k < sizeof speculate / sizeof *speculate; k++) {
			jit_session *s = jit_session_open(
				m, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .speculate = speculate[k]),
				&err);
			assert_int_equal(jit_session_feed(s, chosen, (size_t)fed, &err), JIT_OK);
			for (int i = fed; i <= CONTEXT; i++) {
				assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
				assert_int_equal(id, chosen[i]);
			}
			assert_int_equal(jit_session_length(s), CONTEXT + 1);
			/* full: refused in every way, and nothing is lost */
			jit_error full = { 0 };
			assert_int_equal(jit_session_next(s, &id, &full), JIT_ERROR_CONTEXT);
			assert_non_null(strstr(full.message, "the context of 20 tokens is full"));
			assert_null(jit_session_logits(s, &full));
			assert_int_equal(jit_session_feed(s, prompt, 1, &full), JIT_ERROR_CONTEXT);
			assert_int_equal(jit_session_score(s, prompt, 1, logprob, &full), JIT_ERROR_CONTEXT);
			assert_int_equal(jit_session_length(s), CONTEXT + 1);
			/* back by the token that has no position: the same is chosen once more; back by more: room
			 * again */
			assert_int_equal(jit_session_rewind(s, CONTEXT, &err), JIT_OK);
			assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
			assert_int_equal(id, chosen[CONTEXT]);
			assert_int_equal(jit_session_rewind(s, CONTEXT - 2, &err), JIT_OK);
			assert_int_equal(jit_session_feed(s, chosen + CONTEXT - 2, 3, &full), JIT_ERROR_CONTEXT);
			assert_int_equal(jit_session_feed(s, chosen + CONTEXT - 2, 1, &err), JIT_OK);
			assert_int_equal(jit_session_score(s, chosen + CONTEXT - 1, 1, logprob, &err), JIT_OK);
			assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
			assert_int_equal(id, chosen[CONTEXT]);
			jit_session_close(s);
		}
	}
	jit_session_close(wide);
	jit_model_close(m);
}

int main(void)
{
	source_path(model_path, "models/tale-q8_0.gguf");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bits),
		cmocka_unit_test(test_same_bits_f32),
		cmocka_unit_test(test_same_bits_int8_cache),
		cmocka_unit_test(test_reference_device),
		cmocka_unit_test(test_every_isa),
		cmocka_unit_test(test_cold_and_warm_cache),
		cmocka_unit_test(test_rewind_and_two_sessions),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_told_beforehand),
		cmocka_unit_test(test_last_position)
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

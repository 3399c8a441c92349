/* tests/runtime/t_context.c - contexts in parts: sessions whose passes of one token cut what they attend to give the
 * bits of sessions that do not, in every family, on CPUs and simulated cards, from any position on; and passes go over
 * to parts by themselves, without making a kernel then.
 *
 * The kernels alone, with every number of parts, are t_attention's affair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/session/session.h"
#include "runtime/session/session_state.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/shared.h"

enum { STEPS = 4, CHUNK = 128 };

struct run {
	const char *device;
	int kv, threads;
	uint64_t from; /* in parts; UINT64_MAX: never */
	int prompt, context;
};

static bool in_parts(const jit_session *s) { return s->engine->plan[PLAN_LAST_LOGITS] != NULL; }

/* The logits behind the prompt and behind each of STEPS tokens more, malloc'ed. */
static float *logits_of(const char *path, const struct run *r, size_t *n)
{
	jit_error err = { 0 };
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = r->device, .cache_dir = ""), &err);
	jit_session *s =
		m ? jit_session_open(m,
	                             &JIT_SESSION_OPTIONS(.context = r->context, .kv = r->kv, .threads = r->threads,
	                                                  .speculate = JIT_SPECULATE_OFF),
	                             &err)
		  : NULL;
	jit_model_info info = JIT_MODEL_INFO();

	if (!s || jit_model_get_info(m, &info, &err) != JIT_OK)
		fail_msg("%s on %s: %s", path, r->device, err.message);
	*n = (size_t)info.vocab;
	int32_t *ids = malloc((size_t)r->prompt * sizeof *ids);
	float *all = malloc(*n * (STEPS + 1) * sizeof *all);
	session_part_context(s, r->from);
	for (int step = 0; step <= STEPS; step++) {
		int count = step ? 1 : r->prompt;
		for (int i = 0; i < count; i++)
			ids[i] = ((step * 7 + i) * 29 + i / 31 + 3) % info.vocab;
		if (jit_session_feed(s, ids, (size_t)count, &err) != JIT_OK)
			fail_msg("%s on %s: %s", path, r->device, err.message);
		memcpy(all + (size_t)step * *n, jit_session_logits(s, &err), *n * sizeof *all);
	}
	assert_true(in_parts(s) == (r->from < (uint64_t)(r->prompt + STEPS)));
	free(ids);
	jit_session_close(s);
	jit_model_close(m);
	return all;
}

/* All of them give what the first one does. */
static void check_runs(const char *path, const struct run *run, size_t runs)
{
	size_t n, other;
	float *want = logits_of(path, run, &n);

	for (size_t i = 1; i < runs; i++) {
		float *got = logits_of(path, &run[i], &other);
		assert_int_equal(n, other);
		for (size_t at = 0; at < n * (STEPS + 1); at++)
			if (memcmp(&got[at], &want[at], sizeof *got) != 0)
				fail_msg("%s on %s, in parts from %llu on: logit %zu of step %zu is %a, expected %a",
				         path, run[i].device, (unsigned long long)run[i].from, at % n, at / n,
				         (double)got[at], (double)want[at]);
		free(got);
	}
	free(want);
}

/* ---- every family */

static const char *const families[] = {
	"qwen3-gqa2-bf16", "gptoss-a",         "gemma2-a",     "gemma3-a",     "gemma4-e-a", "gemma4-k-a",
	"llama-mha-f32",   "mistral-gqa4-f16", "phi3-a",       "cohere2-a",    "qwen3moe-a", "qwen35-a",
	"lfm2-a",          "granitehybrid-a",  "nemotronh-a",  "deepseekv2-a", "llama-a",    "olmo2-a",
	"exaone4-a",       "glm4-a",           "ministral3-a", "smollm3-a"
};
enum { FAMILIES = sizeof families / sizeof *families, FAMILY_PROMPT = 19 };

static bool find(char path[1024], size_t i)
{
	char relative[60];

	snprintf(relative, sizeof relative, "golden/%s", families[i]);
	return shared_path(path, relative);
}

static void test_families(void **state)
{
	static const int kv[] = { JIT_KV_F16, JIT_KV_Q8_0, JIT_KV_F32 };
	static const char *const cards[] = { "sim:sm90", "sim:gfx1100", "ref", "sim:gfx1201" };
	char path[1024];
	(void)state;

	for (size_t i = 0; i < FAMILIES; i++) {
		const struct run run[] = {
			{ "cpu", kv[i % 3], 1, UINT64_MAX, FAMILY_PROMPT, 96 },
			{ "cpu", kv[i % 3], 2, 0, FAMILY_PROMPT, 96 },
			{ "cpu", kv[i % 3], 3, FAMILY_PROMPT + 2, FAMILY_PROMPT, 96 },
			{ cards[i % 4], kv[i % 3], 1, FAMILY_PROMPT, FAMILY_PROMPT, 96 },
		};
		bool card = test_full() || i % (test_quick() ? 6 : 2) == 0;
		if (find(path, i) && test_mine_of_halves((unsigned)i))
			check_runs(path, run, card ? 4 : 3);
	}
}

/* ---- contexts of several chunks */

static char dir[] = "/tmp/t_context-XXXXXX";

/* The second layer has a window that is longer than what is cut all the same. */
static void write_model(uint32_t window)
{
	char extra[300];

	snprintf(extra, sizeof extra,
	         ", \"sliding_window\": %u, \"use_sliding_window\": true, \"layer_types\": [\"full_attention\", "
	         "\"sliding_attention\"]",
	         window);
	tiny_write_hf(dir, &(struct tiny_model){
				   .arch = "qwen3",
				   .layers = 2,
				   .hidden = 32,
				   .ffn = 32,
				   .heads = 4,
				   .kv_heads = 2,
				   .head_dim = 32,
				   .vocab = 96,
				   .type = DTYPE_F32,
				   .tied = true,
				   .extra = extra });
}

static void test_depth(void **state)
{
	static const int kv[] = { JIT_KV_F16, JIT_KV_Q8_0 };
	(void)state;

	write_model(1030);
	for (unsigned i = 0; i < 2; i++) {
		const struct run run[] = { { "cpu", kv[i], 1, UINT64_MAX, 9 * CHUNK - 2, 1300 },
			                   { "cpu", kv[i], 2, 0, 9 * CHUNK - 2, 1300 },
			                   { "cpu", kv[i], 4, 9 * CHUNK, 9 * CHUNK - 2, 1300 } };
		check_runs(dir, run, 3);
	}
	const int prompt = test_quick() ? CHUNK + 3 : 3 * CHUNK - 2;
	const struct run cards[] = { { "cpu", JIT_KV_F16, 1, UINT64_MAX, prompt, 512 },
		                     { "sim:sm90", JIT_KV_F16, 1, (uint64_t)prompt, prompt, 512 },
		                     { "sim:gfx1100", JIT_KV_F16, 1, (uint64_t)prompt, prompt, 512 },
		                     { "sim:gfx1030", JIT_KV_F16, 1, (uint64_t)prompt + 1, prompt, 512 } };
	check_runs(dir, cards, test_quick() ? 3 : 4);
}

/* ---- by themselves */

/* Sessions of so many threads, decoding across the position where parts begin. */
static void cross(int threads, bool expected)
{
	jit_error err = { 0 };
	jit_model *m = jit_model_open(dir, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err);
	assert_non_null(m);
	jit_session *s = jit_session_open(
		m, &JIT_SESSION_OPTIONS(.context = 1024, .threads = threads, .speculate = JIT_SPECULATE_OFF), &err);
	jit_session_stats stats = JIT_SESSION_STATS();
	int32_t ids[PLAN_PARTS_FROM - 3] = { 0 }, id;

	assert_non_null(s);
	assert_int_equal(jit_session_feed(s, ids, sizeof ids / sizeof *ids, &err), JIT_OK);
	session_rest(s);
	for (int i = 0; i < 6; i++)
		assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
	assert_true(in_parts(s) == expected);
	jit_session_get_stats(s, &stats, NULL);
	assert_int_equal(stats.kernel_stalls, 0);
	jit_session_close(s);
	jit_model_close(m);
}

static void test_by_themselves(void **state)
{
	(void)state;
	write_model(4096);
	cross(1, false);
	cross(2, false);
	cross(3, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_by_themselves),
	};
	char command[80];

	if (!mkdtemp(dir))
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command) ? 1 : failed;
}

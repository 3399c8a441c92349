/* tests/runtime/t_ptx_models.c - small models on simulated NVIDIA cards, one and several together, or, with
 * JITRUN_TEST_CUDA, on this machine's first one: the same logits as the CPU's, bit for bit, by a launch for each
 * operation and by one launch for a token. JITRUN_TEST_CUDA=cuda:0,1 names others. What differs is told, and the rest
 * is done all the same.
 *
 * What the logits must be close to is t_golden's affair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/cuda_simulated.h"
#include "include/jitrun.h"
#include "include/jitrun_cards.h"
#include "tests/support/shared.h"

static const char *const models[] = {
	"llama-a/model-q8_0.gguf",
	"qwen3-gqa2-bf16",
	"qwen35-a",
	"gemma3-a",
	"qwen3moe-a",
	"llama-mha-f32",
	"gemma4-e-a",
	"lfm2-a",
	"phi3-a",
	"mixtral-a",
	"llama-a",
	"qwen2moe-a",
	"olmoe-a",
	"granitemoe-a",
	"glm4moe-a",
	"smollm3-a",
	"granite-a",
	"olmo2-a",
	"olmo3-a",
	"exaone4-a",
	"glm4-a",
	"arcee-a",
	"hunyuan-a",
	"ministral3-a",
	"gemma2-a",
	"cohere2-a",
	"gemma4-k-a",
	"llama-gqa4-bf16",
	"mistral-gqa4-f16",
	"ernie45-a",
	"seedoss-a",
	"deepseekv2-a",
	"deepseekv3-a",
	"glm4moelite-a",
	"gptoss-a",
	"mistral4-a",
	"gemma4-moe-a",
	"qwen35moe-a",
	"lfm2moe-a",
	"granitehybrid-a",
	"nemotronh-a",
	"qwen3next-a",
	"gptoss-a-mxfp4"
};
/* In the simulator the first one's prompt fills two tiles of matrix products of 32 columns, a narrower one, and has a
 * rest. On a card all prompts fill four of 64 columns as well. */
enum { MODELS = sizeof models / sizeof *models, TOKENS = 19, LONG = 85, ON_CARD = 299, STEPS = 3, SEVERAL = 17 };

/* A token's passes were one launch each. */
static bool was_one_launch(const jit_session *s, jit_error *err)
{
	jit_card_stats c = JIT_CARD_STATS();

	if (jit_session_get_card_stats(s, &c, err) != JIT_OK)
		return false;
	if (!c.commands)
		snprintf(err->message, sizeof err->message, "a token took more than one launch");
	return c.commands > 0;
}

/* The logits behind the prompt and behind each of STEPS passes more, of a token or, the second, of a few, malloc'ed;
 * NULL: err. launch: JITRUN_CUDA_LAUNCH. */
static float *logits_of(const char *path, const char *device, const char *launch, int kv, int tokens, size_t *n,
                        jit_error *err)
{
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = device, .cache_dir = "");
	jit_session_options so = JIT_SESSION_OPTIONS(.context = ON_CARD + STEPS + SEVERAL, .kv = kv);
	jit_model_info info = JIT_MODEL_INFO();
	setenv("JITRUN_CUDA_LAUNCH", launch, 1);
	jit_model *m = jit_model_open(path, &mo, err);
	jit_session *s = m ? jit_session_open(m, &so, err) : NULL;
	float *all = NULL;
	bool ok = s && jit_model_get_info(m, &info, err) == JIT_OK;

	*n = (size_t)info.vocab;
	if (ok)
		all = malloc(*n * (STEPS + 1) * sizeof *all);
	for (int step = 0; ok && step <= STEPS; step++) {
		int32_t ids[ON_CARD];
		int count = step == 2 ? 2 + tokens % (SEVERAL - 1) : step ? 1 : tokens;
		for (int i = 0; i < count; i++)
			ids[i] = ((step * 7 + i) * 29 + 3) % (int)*n;
		const float *logits =
			jit_session_feed(s, ids, (size_t)count, err) == JIT_OK ? jit_session_logits(s, err) : NULL;
		ok = logits != NULL;
		if (ok)
			memcpy(all + (size_t)step * *n, logits, *n * sizeof *all);
	}
	ok = ok && (strcmp(launch, "one") != 0 || was_one_launch(s, err));
	if (s)
		jit_session_close(s);
	if (m)
		jit_model_close(m);
	if (ok)
		return all;
	free(all);
	return NULL;
}

/* False: they differ, and that was told. */
static bool same(const char *name, const char *path, const char *device, const char *launch, int kv, int tokens)
{
	jit_error err = { 0 };
	size_t n, m, at = 0;
	float *want = logits_of(path, "cpu", "", kv, tokens, &n, &err),
	      *got = want ? logits_of(path, device, launch, kv, tokens, &m, &err) : NULL;
	bool equal = got && memcmp(want, got, n * (STEPS + 1) * sizeof *got) == 0;

	while (got && !equal && memcmp(&want[at], &got[at], sizeof *got) == 0)
		at++;
	if (!got)
		printf("# %s on %s, %s: %s\n", name, device, launch, err.message);
	else if (!equal)
		printf("# %s on %s, %s: step %zu, logit %zu is %a, the CPU says %a\n", name, device, launch, at / n,
		       at % n, (double)got[at], (double)want[at]);
	fflush(stdout);
	free(want);
	free(got);
	return equal;
}

/* The second with a short prompt, as the launches of prompts are the same; so have several cards. Blocks take turns in
 * another order each time, and there are 1 to 5 of them. */
static unsigned failures(const char *name, const char *path, unsigned n, int tokens)
{
	static const int kv[] = { JIT_KV_F16, JIT_KV_Q8_0, JIT_KV_F32 };
	static const uint32_t units[] = { 2, 3, 1, 5 };
	static const char *const several[] = { "sim:sm90x2", "sim:sm90x4", "sim:sm90x2", "sim:sm90x8" };
	const char *real = test_real_card(), *device = real ? real : n % 2 ? "sim:sm80" : "sim:sm90";
	const int small = 2 + (int)n * 5 % 16;
	unsigned failed = !same(name, path, device, "graph", kv[n % 3], tokens);

	cuda_simulation.units = units[n % 4];
	cuda_simulation.seed += 1000003 * n;
	failed += !same(name, path, real ? real : "sim:sm90", "one", kv[(n + 1) % 3], real ? tokens : small);
	if (!real)
		failed += !same(name, path, several[n % 4], n / 2 % 2 ? "graph" : "one", kv[n % 3], small);
	cuda_simulation.units = units[0];
	return failed;
}

static void test_models(void **state)
{
	const bool real = test_real_card() != NULL;
	unsigned step = real || test_full()  ? 1
	                : test_small_share() ? 27
	                : test_quick()       ? 9
	                                     : 2,
		 n = 0, failed = 0, missing = 0;

	for (unsigned i = 0; i < MODELS; i += step, n++) {
		char path[1024], relative[80];
		snprintf(relative, sizeof relative, "golden/%s", models[i]);
		if (shared_path(path, relative))
			failed += failures(models[i], path, n, real ? ON_CARD : i ? TOKENS : LONG);
		else
			missing++;
	}
	printf("# %u models, %u failed, %u more are not there\n", n - missing, failed, missing);
	if (missing == n)
		skip();
	assert_int_equal(failed, 0);
}

/* Several cards leave results in memory of their own, which goes to the host when the pass is over: also what another
 * op makes of the logits, where they lie. */
static void test_scaled(void **state)
{
	static const char *const scaled[] = { "gemma2-a", "granite-a", "cohere2-a" };
	unsigned failed = 0, n = 0;

	for (unsigned i = 0; !test_real_card() && i < (test_quick() ? 1 : sizeof scaled / sizeof *scaled); i++) {
		char path[1024], relative[80];
		snprintf(relative, sizeof relative, "golden/%s", scaled[i]);
		if (!shared_path(path, relative))
			continue;
		failed += !same(scaled[i], path, i % 2 ? "sim:sm90x4" : "sim:sm90x2", i % 2 ? "one" : "graph",
		                JIT_KV_F16, 3);
		n++;
	}
	if (!n)
		skip();
	assert_int_equal(failed, 0);
}

/* Passes of so many tokens are one launch each when there were some of them, with the bits that they had as a graph. */
static void check_several(int tokens)
{
	enum { PASSES = 200, MAX = 16 };
	jit_model_options on[2] = {
		JIT_MODEL_OPTIONS(.device = "cpu", .cache_dir = ""),
		JIT_MODEL_OPTIONS(.device = test_real_card() ? test_real_card() : "sim:sm90", .cache_dir = "")
	};
	jit_session_options so = JIT_SESSION_OPTIONS(.context = tokens * PASSES + 2);
	jit_model_info info = JIT_MODEL_INFO();
	jit_card_stats c = JIT_CARD_STATS();
	jit_error err = { 0 };
	jit_session *s[2] = { NULL };
	jit_model *m[2] = { NULL };
	char path[1024];
	int passes = 0;

	if (!shared_path(path, "golden/llama-a/model-q8_0.gguf"))
		skip();
	setenv("JITRUN_CUDA_LAUNCH", "beside", 1);
	for (int i = 0; i < 2; i++)
		if (!(m[i] = jit_model_open(path, &on[i], &err)) || !(s[i] = jit_session_open(m[i], &so, &err)))
			fail_msg("%s", err.message);
	jit_model_get_info(m[0], &info, &err);
	for (; passes < PASSES && !c.commands; passes++) {
		int32_t ids[MAX];
		const float *logits[2];
		for (int i = 0; i < tokens; i++)
			ids[i] = passes * (7 * i + 1) % (int)info.vocab;
		for (int i = 0; i < 2; i++)
			if (jit_session_feed(s[i], ids, (size_t)tokens, &err) != JIT_OK ||
			    !(logits[i] = jit_session_logits(s[i], &err)))
				fail_msg("pass %d: %s", passes, err.message);
		assert_memory_equal(logits[0], logits[1], (size_t)info.vocab * sizeof **logits);
		assert_int_equal(jit_session_get_card_stats(s[1], &c, &err), JIT_OK);
		usleep(passes > 10 ? 20000 : 0);
	}
	printf("# of %d tokens, pass %d was the first in one launch\n", tokens, passes);
	assert_true(c.commands > 0 && passes > 4);
	for (int i = 0; i < 2; i++) {
		jit_session_close(s[i]);
		jit_model_close(m[i]);
	}
}

static void test_several(void **state)
{
	static const int tokens[] = { 2, 8, 3, 5, 7 };
	(void)state;

	for (unsigned i = 0; i < (test_small_share() ? 1u : test_quick() ? 2 : sizeof tokens / sizeof *tokens); i++)
		check_several(tokens[i]);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_models), cmocka_unit_test(test_scaled),
		                            cmocka_unit_test(test_several) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

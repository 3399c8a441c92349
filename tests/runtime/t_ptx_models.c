/* tests/runtime/t_ptx_models.c - small models on a simulated NVIDIA card or, with JITRUN_TEST_CUDA, on this machine's
 * first one: the same logits as the CPU's, bit for bit. What differs is told, and the rest is done all the same.
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

#include "runtime/jitrun.h"
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
/* The first one's prompt fills two wide tiles of matrix products, a narrow one, and has a rest. */
enum { MODELS = sizeof models / sizeof *models, TOKENS = 19, LONG = 85, STEPS = 3 };

/* The logits behind the prompt and behind each of STEPS tokens more, malloc'ed; NULL: err. */
static float *logits_of(const char *path, const char *device, int kv, int tokens, size_t *n, jit_error *err)
{
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = device, .cache_dir = "");
	jit_session_options so = JIT_SESSION_OPTIONS(.context = 96, .kv = kv);
	jit_model_info info = JIT_MODEL_INFO();
	jit_model *m = jit_model_open(path, &mo, err);
	jit_session *s = m ? jit_session_open(m, &so, err) : NULL;
	float *all = NULL;
	bool ok = s && jit_model_get_info(m, &info, err) == JIT_OK;

	*n = (size_t)info.vocab;
	if (ok)
		all = malloc(*n * (STEPS + 1) * sizeof *all);
	for (int step = 0; ok && step <= STEPS; step++) {
		int32_t ids[LONG];
		int count = step ? 1 : tokens;
		for (int i = 0; i < count; i++)
			ids[i] = ((step * 7 + i) * 29 + 3) % (int)*n;
		const float *logits =
			jit_session_feed(s, ids, (size_t)count, err) == JIT_OK ? jit_session_logits(s, err) : NULL;
		ok = logits != NULL;
		if (ok)
			memcpy(all + (size_t)step * *n, logits, *n * sizeof *all);
	}
	if (s)
		jit_session_close(s);
	if (m)
		jit_model_close(m);
	if (ok)
		return all;
	free(all);
	return NULL;
}

/* False: they differ, and that was told. A model that is not there is counted. */
static bool same(const char *name, const char *device, int kv, int tokens, unsigned *missing)
{
	char path[1024], relative[80];
	jit_error err = { 0 };
	size_t n, m;

	snprintf(relative, sizeof relative, "golden/%s", name);
	if (!shared_path(path, relative)) {
		*missing += 1;
		return true;
	}
	float *want = logits_of(path, "cpu", kv, tokens, &n, &err),
	      *got = want ? logits_of(path, device, kv, tokens, &m, &err) : NULL;
	bool equal = got && memcmp(want, got, n * (STEPS + 1) * sizeof *got) == 0;
	size_t at = 0;
	while (got && !equal && memcmp(&want[at], &got[at], sizeof *got) == 0)
		at++;
	if (!got)
		printf("# %s on %s: %s\n", name, device, err.message);
	else if (!equal)
		printf("# %s on %s: step %zu, logit %zu is %a, the CPU says %a\n", name, device, at / n, at % n,
		       (double)got[at], (double)want[at]);
	fflush(stdout);
	free(want);
	free(got);
	return equal;
}

static void test_models(void **state)
{
	static const int kv[] = { JIT_KV_F16, JIT_KV_Q8_0, JIT_KV_F32 };
	const bool real = getenv("JITRUN_TEST_CUDA") != NULL;
	unsigned step = real || test_full() ? 1 : test_quick() ? 9 : 2, n = 0, failed = 0, missing = 0;

	for (unsigned i = 0; i < MODELS; i += step, n++)
		failed += !same(models[i],
		                real    ? "cuda"
		                : n % 2 ? "sim:sm80"
		                        : "sim:sm90",
		                kv[n % 3], i ? TOKENS : LONG, &missing);
	printf("# %u models, %u failed, %u more are not there\n", n - missing, failed, missing);
	if (missing == n)
		skip();
	assert_int_equal(failed, 0);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_models) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

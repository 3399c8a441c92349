/* tests/runtime/t_families.c - one small model of each family: the same logits, bit for bit, on every device and
 * instruction set, for every cut of the prompt, and when the text is taken back and computed again.
 *
 * What the logits must be close to is t_golden's affair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jit/target.h"
#include "include/jitrun.h"
#include "tests/support/shared.h"

static const char *const families[] = {
	"qwen3moe-a",
	"mixtral-a",
	"qwen2moe-a",
	"olmoe-a",
	"granitemoe-a",
	"glm4moe-a",
	"phi3-a",
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
	"gemma3-a",
	"cohere2-a",
	"llama-a",
	"qwen3-gqa2-bf16",
	"lfm2-a",
	"qwen35-a",
	"gemma4-e-a",
	"gemma4-k-a",
	"lfm2moe-a",
	"qwen35moe-a",
	"qwen3next-a",
	"glm4moelite-a",
	"deepseekv2-a",
	"deepseekv3-a",
	"gemma4-moe-a",
	"gptoss-a",
	"gptoss-a-mxfp4",
	"mistral4-a",
	"granitehybrid-a",
	"nemotronh-a",
	"ernie45-a",
	"seedoss-a",
	"llama-mha-f32",
	"mistral-gqa4-f16",
#define NEXT "golden-next/"
	NEXT "cwm-a",
	NEXT "helium-a",
	NEXT "dots1-a",
	NEXT "solaropen-a",
	NEXT "minimaxm2-a",
	NEXT "exaonemoe-a",
	NEXT "hunyuanmoe-a",
	NEXT "hyv3-a",
	NEXT "starcoder2-a",
	NEXT "stablelm-a",
	NEXT "nemotron-a",
	NEXT "olmo-a",
	NEXT "phi-a",
	NEXT "gptj-a",
	NEXT "gptneox-a",
	NEXT "falcon-a",
	NEXT "gptbigcode-a",
	NEXT "opt-a",
	NEXT "flexolmo-a",
	NEXT "granitewin-a",
	NEXT "afmoe-a",
	NEXT "laguna-a",
	NEXT "youtu-a",
	NEXT "minicpm3-a",
	NEXT "gpt2-a",
	NEXT "bloom-a",
	NEXT "mpt-a",
	NEXT "ernie45moe-a",
	NEXT "bitnet-a",
	NEXT "bamba-a",
	NEXT "cohere2moe-a",
	NEXT "cohereqk-a",
	NEXT "phimoe-a",
	NEXT "apertus-a",
	NEXT "falconh1-a",
	NEXT "mamba2-a",
	NEXT "mamba-a",
	NEXT "jamba-a",
	NEXT "olmohybrid-a",
	NEXT "llama4-a"
};
enum { FAMILIES = sizeof families / sizeof *families, TOKENS = 41 };

struct run {
	const char *device, *isa;
	int batch, threads, tokens;
};

/* The logits behind so many tokens, malloc'ed. */
static float *logits_of(const char *path, const struct run *r, size_t *n)
{
	jit_error err = { 0 };
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = r->device, .isa = r->isa, .cache_dir = "");
	jit_session_options so =
		JIT_SESSION_OPTIONS(.context = 96, .kv = JIT_KV_F32, .batch = r->batch, .threads = r->threads);
	int32_t ids[TOKENS];

	jit_model *m = jit_model_open(path, &mo, &err);
	if (!m)
		fail_msg("%s on %s: %s", path, r->device, err.message);
	jit_model_info info = JIT_MODEL_INFO();
	assert_int_equal(jit_model_get_info(m, &info, &err), JIT_OK);
	*n = (size_t)info.vocab;
	for (int i = 0; i < TOKENS; i++)
		ids[i] = (i * 29 + 3) % (int)*n;
	jit_session *s = jit_session_open(m, &so, &err);
	if (!s)
		fail_msg("%s on %s: %s", path, r->device, err.message);
	if (jit_session_feed(s, ids, (size_t)r->tokens, &err) != JIT_OK)
		fail_msg("%s on %s: %s", path, r->device, err.message);
	if (r->tokens > 20) { /* taken back across windows' borders, and computed again */
		assert_int_equal(jit_session_rewind(s, 12, &err), JIT_OK);
		assert_int_equal(jit_session_feed(s, ids + 12, (size_t)r->tokens - 12, &err), JIT_OK);
	}
	const float *logits = jit_session_logits(s, &err);
	assert_non_null(logits);
	float *out = malloc(*n * sizeof *out);
	memcpy(out, logits, *n * sizeof *out);
	jit_session_close(s);
	jit_model_close(m);
	return out;
}

static void check_runs(const char *path, const struct run *runs, size_t n_runs)
{
	size_t n, n_one;
	float *want = logits_of(path, &runs[0], &n);

	for (size_t i = 1; i < n_runs; i++) {
		float *got = logits_of(path, &runs[i], &n_one);
		if (n != n_one || memcmp(got, want, n * sizeof *want) != 0)
			fail_msg("%s: %s %s, %d tokens a pass, differs from %s", path, runs[i].device,
			         runs[i].isa ? runs[i].isa : "", runs[i].batch, runs[0].device);
		free(got);
	}
	free(want);
}

static bool find(char path[1024], size_t i)
{
	char relative[60];

	snprintf(relative, sizeof relative, strchr(families[i], 0x2f) ? "%s" : "golden/%s", families[i]);
	return shared_path(path, relative);
}

/* Every instruction set that this processor has, and every cut. */
static void test_cpu(void **state)
{
	struct run runs[32] = { { "cpu", NULL, 0, 0, TOKENS },
		                { "cpu", NULL, 1, 1, TOKENS },
		                { "cpu", NULL, 7, 2, TOKENS },
		                { "cpu", NULL, 16, 3, TOKENS },
		                { "cpu", NULL, 33, 2, TOKENS } };
	size_t n = 5;
	char path[1024];

	struct target_cpu cpu = target_this_cpu();
	for (int t = TARGET_AVX2; t <= TARGET_AVX512_AMX; t++)
		if (target_runs(&cpu, &target_table[t], NULL))
			runs[n++] = (struct run){ "cpu", target_table[t].name, 0, 0, TOKENS };
	for (unsigned i = 0; i < FAMILIES; i++)
		if (test_mine_of_halves(i) && find(path, i))
			check_runs(path, runs, n);
}

static void test_interpreted(void **state)
{
	static const struct run runs[] = { { "cpu", NULL, 0, 0, 18 }, { "ref", NULL, 0, 0, 18 } };
	char path[1024];

	for (unsigned i = 0; i < FAMILIES; i++)
		if (test_mine_of_halves(i) && find(path, i))
			check_runs(path, runs, 2);
}

/* Each card with two families of three; in a quick run each family of four on one card. */
static void test_cards(void **state)
{
	static const char *const card[] = { "sim:gfx1030", "sim:gfx1100", "sim:gfx1200" };
	struct run runs[4] = { { "cpu", NULL, 0, 0, 19 } };
	const size_t max = test_full() ? 3 : test_quick() ? 1 : 2;
	char path[1024];

	for (size_t i = 0; i < FAMILIES; i++) {
		for (size_t k = 0; k < max; k++)
			runs[1 + k] = (struct run){ card[(i + k) % 3], NULL, 0, 0, 19 };
		if (find(path, i) && (!test_quick() || i % 4 == 0))
			check_runs(path, runs, 1 + max);
	}
}

/* Behind a text that repeats itself: so many ids that the model chooses, and the logits then, malloc'ed. */
enum { CHOSEN = 24 };
static float *chosen_by(const char *path, int speculate, int32_t ids[CHOSEN], size_t *n, uint64_t *drafts)
{
	jit_error err = { 0 };
	jit_model_options mo = JIT_MODEL_OPTIONS(.cache_dir = "");
	jit_session_options so = JIT_SESSION_OPTIONS(.context = 96, .speculate = speculate, .threads = 2);
	jit_session_stats stats = JIT_SESSION_STATS();
	jit_model_info info = JIT_MODEL_INFO();
	int32_t text[TOKENS];

	jit_model *m = jit_model_open(path, &mo, &err);
	jit_session *s = m ? jit_session_open(m, &so, &err) : NULL;
	if (!s)
		fail_msg("%s: %s", path, err.message);
	assert_int_equal(jit_model_get_info(m, &info, &err), JIT_OK);
	for (int i = 0; i < TOKENS; i++)
		text[i] = (i % 5 * 29 + 3) % (int)info.vocab;
	assert_int_equal(jit_session_feed(s, text, TOKENS, &err), JIT_OK);
	for (int i = 0; i < CHOSEN; i++)
		assert_int_equal(jit_session_next(s, &ids[i], &err), JIT_OK);
	const float *logits = jit_session_logits(s, &err);
	assert_non_null(logits);
	assert_int_equal(jit_session_get_stats(s, &stats, &err), JIT_OK);
	*drafts += stats.drafted;
	*n = (size_t)info.vocab;
	float *out = malloc(*n * sizeof *out);
	memcpy(out, logits, *n * sizeof *out);
	jit_session_close(s);
	jit_model_close(m);
	return out;
}

static void test_speculation(void **state)
{
	uint64_t drafts = 0, none = 0;
	char path[1024];

	for (size_t i = 0; i < FAMILIES; i++) {
		int32_t plain[CHOSEN], ids[CHOSEN];
		size_t n;
		if (!test_mine_of_halves((unsigned)i) || !find(path, i))
			continue;
		float *want = chosen_by(path, JIT_SPECULATE_OFF, plain, &n, &none),
		      *got = chosen_by(path, 8, ids, &n, &drafts);
		if (memcmp(ids, plain, sizeof ids) != 0 || memcmp(got, want, n * sizeof *want) != 0)
			fail_msg("%s: with draft tokens another text or other logits", path);
		free(want);
		free(got);
	}
	printf("# %llu draft tokens\n", (unsigned long long)drafts);
	assert_true(none == 0 && (drafts > 0 || !find(path, 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cpu), cmocka_unit_test(test_interpreted),
		                            cmocka_unit_test(test_cards), cmocka_unit_test(test_speculation) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/runtime/t_mma_models.c - whole models whose prompts go through matrix products: in the EXACT class the CPU's
 * bits, in the BOUNDED one logits close to them, the same on every card that adds up alike, and the same tokens. And
 * those whose products are of pairs, whose logits do not depend on how a prompt is cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jit/target.h"
#include "include/jitrun.h"
#include "tests/support/shared.h"

enum { MAX = 40, STEPS = 4 };

struct how {
	const char *device, *isa;
	int bounded, prompt, batch;
};
struct run {
	size_t vocab;
	float *logits;
	int32_t chosen[STEPS];
}; /* logits: after the prompt */

static struct run run(const char *path, const struct how *h)
{
	jit_error err = { 0 };
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = h->device, .isa = h->isa, .cache_dir = "", .threads = 1,
	                                         .bounded_numerics = h->bounded);
	jit_session_options so =
		JIT_SESSION_OPTIONS(.context = 64, .threads = 1, .batch = h->batch, .speculate = JIT_SPECULATE_OFF);
	jit_model_info info = JIT_MODEL_INFO();
	int32_t prompt[MAX];
	struct run r;

	jit_model *m = jit_model_open(path, &mo, &err);
	jit_session *s = m ? jit_session_open(m, &so, &err) : NULL;
	if (!s)
		fail_msg("%s: %s", path, err.message);
	jit_model_get_info(m, &info, NULL);
	r.vocab = (size_t)info.vocab;
	for (int i = 0; i < h->prompt; i++)
		prompt[i] = (int32_t)((unsigned)(i * 37 + 11) % (unsigned)info.vocab);
	if (jit_session_feed(s, prompt, (size_t)h->prompt, &err) != JIT_OK)
		fail_msg("%s on %s: %s", path, h->device, err.message);
	r.logits = malloc(r.vocab * sizeof *r.logits);
	assert_non_null(r.logits);
	memcpy(r.logits, jit_session_logits(s, &err), r.vocab * sizeof *r.logits);
	for (int i = 0; i < STEPS; i++)
		assert_int_equal(jit_session_next(s, &r.chosen[i], &err), JIT_OK);
	jit_session_close(s);
	jit_model_close(m);
	return r;
}

static void same(const char *path, const struct how *h, const struct run *want, const struct run *got)
{
	if (memcmp(want->logits, got->logits, want->vocab * sizeof *want->logits) != 0 ||
	    memcmp(want->chosen, got->chosen, sizeof want->chosen) != 0)
		fail_msg("%s on %s, %d tokens in passes of %d: other logits or tokens", path, h->device, h->prompt,
		         h->batch);
}

/* Prompts of every shape: tiles of 32 and of 16 tokens, with and without a rest. */
static void test_exact(void **unused)
{
	static const struct how hows[] = {
		{ "sim:gfx1100", NULL, 0, 16, 64 }, { "sim:gfx1201", NULL, 0, 17, 64 },
		{ "sim:gfx1150", NULL, 0, 32, 64 }, { "sim:gfx1200", NULL, 0, 40, 64 },
		{ "sim:gfx1101", NULL, 0, 39, 18 }, { "ref", "gfx1100", 0, 31, 64 },
		{ "sim:gfx1100", NULL, 1, 33, 64 }, { "sim:gfx1030", NULL, 1, 16, 64 },
	};
	char path[1024];

	source_path(path, "models/tale-q8_0.gguf");
	for (unsigned i = 0; i < (test_small_share() ? 1u : test_quick() ? 3 : sizeof hows / sizeof *hows); i++) {
		struct run want = run(path, &(struct how){ .device = "cpu", .prompt = hows[i].prompt, .batch = 64 }),
			   got = run(path, &hows[i]);
		same(path, &hows[i], &want, &got);
		free(want.logits);
		free(got.logits);
	}
}

/* How far apart logits are, in parts of their spread. */
static double distance(const struct run *a, const struct run *b)
{
	double max = 0, low = (double)a->logits[0], high = low;

	for (size_t i = 0; i < a->vocab; i++) {
		double x = (double)a->logits[i], d = fabs(x - (double)b->logits[i]);
		max = d > max ? d : max;
		low = x < low ? x : low;
		high = x > high ? x : high;
	}
	return max / (high - low);
}

static void check_bounded(const char *path, double close)
{
	static const char *const cards[] = { "sim:gfx1100", "sim:gfx1151", "sim:gfx1200" };
	struct how cpu = { .device = "cpu", .isa = "avx2", .bounded = 1, .prompt = MAX, .batch = 64 },
		   ref = { "ref", "gfx1100", 1, MAX, 64 }, plain = ref;

	plain.bounded = 0;
	struct run exact = run(path, &(struct how){ .device = "cpu", .prompt = MAX, .batch = 64 }),
		   on_cpu = run(path, &cpu), unasked = run(path, &plain), bounded = run(path, &ref);
	same(path, &cpu, &exact, &on_cpu);    /* such CPUs have nothing but EXACT */
	same(path, &plain, &exact, &unasked); /* never silently */
	double far = distance(&exact, &bounded);
	if (far == 0 || !(far <= close))
		fail_msg("%s: logits of the bounded class are %g of their spread away, expected more than nothing and "
		         "at most %g",
		         path, far, close);
	assert_memory_equal(exact.chosen, bounded.chosen, sizeof exact.chosen);
	for (unsigned i = 0; i < (test_small_share() ? 1 : sizeof cards / sizeof *cards); i++) {
		struct how h = { cards[i], NULL, 1, MAX, 64 };
		struct run got = run(path, &h);
		same(path, &h, &bounded, &got);
		free(got.logits);
	}
	free(exact.logits);
	free(on_cpu.logits);
	free(unasked.logits);
	free(bounded.logits);
}

/* The logits of all tokens, by which guesses are judged, are EXACT in either class. */
static void check_scores(const char *path)
{
	float logprob[2][MAX];
	int32_t ids[MAX];

	for (int bounded = 0; bounded < 2; bounded++) {
		jit_error err = { 0 };
		jit_model *m = jit_model_open(path,
		                              &JIT_MODEL_OPTIONS(.device = "ref", .isa = "gfx1100", .cache_dir = "",
		                                                 .threads = 1, .bounded_numerics = bounded),
		                              &err);
		jit_session *s =
			m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1), &err) : NULL;
		if (!s)
			fail_msg("%s: %s", path, err.message);
		for (int i = 0; i < MAX; i++)
			ids[i] = i * 3 + 5;
		assert_int_equal(jit_session_score(s, ids, MAX, logprob[bounded], &err), JIT_OK);
		jit_session_close(s);
		jit_model_close(m);
	}
	assert_memory_equal(logprob[0] + 1, logprob[1] + 1, sizeof logprob[0] - sizeof logprob[0][0]);
}

static bool has_dot2(void)
{
	const struct target_cpu here = target_this_cpu();

	return target_runs(&here, target_find("avx512bf16"), NULL);
}

/* Passes of 16 tokens and more, of a few, and of one; what chooses a token has passes of one as well. With
 * pairs of BF16 on any CPU, whether they are faster there or not. */
static void check_dot2(const char *path, double close)
{
	enum { PAIRS = JIT_NUMERICS_ALWAYS_BOUNDED };
	static const struct how hows[] = {
		{ "ref", "avx512bf16", PAIRS, MAX, 7 },  { "ref", "avx512amx", PAIRS, MAX, 1 },
		{ "cpu", "avx512bf16", PAIRS, MAX, 64 }, { "cpu", "avx512bf16", PAIRS, MAX, 7 },
		{ "cpu", "avx512bf16", PAIRS, MAX, 2 },  { "cpu", "avx512bf16", PAIRS, MAX, 1 }
	};
	const struct how ref = { "ref", "avx512bf16", PAIRS, MAX, 64 };
	struct run exact = run(path, &(struct how){ .device = "cpu", .prompt = MAX, .batch = 64 }),
		   pairs = run(path, &ref);
	const double far = distance(&exact, &pairs);

	if (far == 0 || !(far <= close))
		fail_msg("%s: logits of pairs are %g of their spread away, expected more than nothing and at most %g",
		         path, far, close);
	assert_memory_equal(exact.chosen, pairs.chosen, sizeof exact.chosen);
	for (unsigned i = 0; i < sizeof hows / sizeof *hows; i++) {
		if (strcmp(hows[i].device, "cpu") == 0 && !has_dot2())
			continue;
		struct run got = run(path, &hows[i]);
		same(path, &hows[i], &pairs, &got);
		free(got.logits);
	}
	free(exact.logits);
	free(pairs.logits);
}

static void test_dot2(void **unused)
{
	static const char *const models[] = { "golden/llama-gqa4-bf16", "golden/qwen3-gqa2-bf16" };
	char path[1024];

	if (!has_dot2())
		printf("# skipped in part: this CPU has no AVX512_BF16\n");
	for (unsigned i = 0; i < (test_small_share() ? 1 : sizeof models / sizeof *models); i++)
		if (shared_path(path, models[i]))
			check_dot2(path, 0.02);
}

static void test_bounded(void **unused)
{
	static const struct {
		const char *model;
		double close;
	} models[] = { { "golden/llama-gqa4-bf16", 0.02 },
		       { "golden/qwen3-gqa2-bf16", 0.02 },
		       { "golden/mistral-gqa4-f16", 0.002 } };
	char path[1024];

	for (unsigned i = 0; i < (test_quick() ? 1 : sizeof models / sizeof *models); i++)
		if (shared_path(path, models[i].model)) {
			check_bounded(path, models[i].close);
			check_scores(path);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_exact), cmocka_unit_test(test_bounded),
		                            cmocka_unit_test(test_dot2) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

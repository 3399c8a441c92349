/* tests/runtime/t_wave_models.c - whole models interpreted as groups of waves, or a CPU with tiles, would run them: the
 * CPU's bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "tests/support/shared.h"

enum { PROMPT = 37, STEPS = 2 };

struct how {
	const char *device, *isa;
	int f32_activations, kv;
};

/* The logits after a prompt, fed as one piece and then another, and after each of some steps; malloc'ed. */
static float *run(const char *path, const struct how *h, size_t *n)
{
	jit_error err = { 0 };
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = h->device, .isa = h->isa, .cache_dir = "",
	                                         .f32_activations = h->f32_activations);
	jit_session_options so = JIT_SESSION_OPTIONS(.context = 256, .threads = 2, .batch = 21, .kv = h->kv);
	int32_t prompt[PROMPT];

	jit_model *m = jit_model_open(path, &mo, &err);
	if (!m)
		fail_msg("%s: %s", path, err.message);
	jit_session *s = jit_session_open(m, &so, &err);
	if (!s)
		fail_msg("%s: %s", path, err.message);
	jit_model_info info = JIT_MODEL_INFO();
	jit_model_get_info(m, &info, NULL);
	size_t vocab = (size_t)info.vocab;
	float *out = malloc((STEPS + 1) * vocab * sizeof *out);
	assert_non_null(out);
	for (int i = 0; i < PROMPT; i++)
		prompt[i] = (int32_t)((unsigned)i * 7919u % vocab);
	assert_int_equal(jit_session_feed(s, prompt, PROMPT, &err), JIT_OK);
	for (int i = 0; i <= STEPS; i++) {
		int32_t id;
		const float *l = jit_session_logits(s, &err);
		assert_non_null(l);
		memcpy(out + (size_t)i * vocab, l, vocab * sizeof *out);
		assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
	}
	*n = (STEPS + 1) * vocab;
	jit_session_close(s);
	jit_model_close(m);
	return out;
}

static void check(const char *relative, const struct how *h)
{
	char path[1024];
	size_t n, m;

	if (!shared_path(path, relative))
		return;
	float *want = run(path, &(struct how){ .f32_activations = h->f32_activations, .kv = h->kv }, &n),
	      *got = run(path, h, &m);
	assert_int_equal(n, m);
	if (memcmp(got, want, n * sizeof *got) != 0)
		fail_msg("%s on %s differs from the CPU", relative, h->isa);
	free(want);
	free(got);
}

static void test_floats(void **unused)
{
	static const char *const model[] = { "golden/llama-gqa4-bf16", "golden/qwen3-gqa2-bf16", "golden/llama-mha-f32",
		                             "golden/mistral-gqa4-f16" };

	for (unsigned i = 0; i < (test_small_share() ? 2 : sizeof model / sizeof model[0]); i++)
		check(model[i],
		      &(struct how){
			      .device = "ref", .isa = i % 2 ? "gfx1030" : "gfx1201", .kv = i % 2 ? JIT_KV_Q8_0 : 0 });
}

static void test_quantised(void **unused)
{
	static const char *const model[] = {
		"models/tale-qwen3/tale-qwen3-q4_k_m.gguf", "models/tale-qwen3/tale-qwen3-q8_0.gguf",
		"models/tale-qwen3/tale-qwen3-q6_k.gguf", "models/tale-qwen3/tale-qwen3-q4_0.gguf"
	};

	for (unsigned i = 0; i < (test_quick() ? 1 : sizeof model / sizeof model[0]); i++)
		check(model[i],
		      &(struct how){
			      .device = "ref", .isa = i % 2 ? "gfx1100" : "gfx1030", .f32_activations = i == 3 });
}

/* Formats multiplied by tiles, and beside them, of the same inputs, some that are not. */
static void test_tiles(void **unused)
{
	static const char *const model[] = { "models/tale-qwen3/tale-qwen3-q4_k_m.gguf",
		                             "models/tale-llama/tale-llama-q8_0.gguf",
		                             "models/tale-llama/tale-llama-iq4_xs.gguf" };

	for (unsigned i = 0; i < (test_quick() ? 1 : sizeof model / sizeof model[0]); i++)
		check(model[i], &(struct how){ .device = "ref", .isa = "avx512amx" });
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_floats), cmocka_unit_test(test_quantised),
		                            cmocka_unit_test(test_tiles) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

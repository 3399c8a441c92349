/* tests/runtime/t_stages.c - how many stages a token has: where a card's groups meet, which takes it longer than much
 * of what stands between. Counted in the plans of models as large as real ones, from their headers alone; what a CPU
 * does stays as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "programs/synth/synth.h"
#include "loaders/model/model_load.h"
#include "runtime/plan/plan.h"

static const struct {
	const char *shape, *weights, *target;
	bool f32_activations;
	uint32_t tokens, stages;
} counts[] = {
	/* embedding, 28 or 16 times so many, logits */
	{ "qwen3-0.6b", "bf16", "avx2", false, 1, 1 + 28 * 8 + 2 },
	{ "qwen3-0.6b", "q8_0", "avx512amx", false, 1, 1 + 28 * 9 + 2 },
	{ "qwen3-0.6b", "bf16", "gfx1101", false, 1, 1 + 28 * 5 + 1 },
	{ "qwen3-0.6b", "bf16", "sm90", false, 1, 1 + 28 * 5 + 1 },
	{ "qwen3-0.6b", "bf16", "sm90", false, 4, 1 + 28 * 6 + 1 },
	{ "qwen3-0.6b", "bf16", "sm90", false, 5, 1 + 28 * 6 + 1 },
	{ "qwen3-0.6b", "q8_0", "gfx1030", false, 1, 1 + 28 * 5 + 1 },
	{ "qwen3-0.6b", "q4_k_m", "sm80", false, 2, 1 + 28 * 7 + 1 },
	{ "qwen3-0.6b", "q4_k_m", "sm80", false, 4, 1 + 28 * 7 + 1 },
	{ "qwen3-0.6b", "q4_k_m", "sm80", false, 5, 1 + 28 * 9 + 1 }, /* one row of logits */
	{ "qwen3-0.6b", "q4_k_m", "gfx1101", false, 3, 1 + 28 * 9 + 1 },
	{ "llama-3.2-1b", "q4_k_m", "gfx1201", false, 1, 1 + 16 * 5 + 1 },
	{ "llama-3.2-1b", "q4_k_m", "gfx1201", true, 1, 1 + 16 * 5 + 1 },
	/* too wide for int8: another stage takes less */
	{ "mistral-7b", "q8_0", "sm90", false, 1, 1 + 32 * 7 + 2 },
	{ "mistral-7b", "bf16", "sm90", false, 1, 1 + 32 * 5 + 1 },
};

static uint32_t stages_of(const struct plan *p)
{
	uint32_t n = 1; /* behind the last op everyone meets anyway */

	for (size_t i = 0; i + 1 < p->n_ops; i++)
		n += p->op[i].barrier;
	return n;
}

static void check(unsigned i)
{
	const struct plan_options o = { .target = target_find(counts[i].target),
		                        .f32_activations = counts[i].f32_activations };
	struct error err = { 0 };
	struct model file;
	struct weights w;
	struct plan p;
	size_t n;
	uint8_t *header = synth_header(&n, shape_find(counts[i].shape), mixture_find(counts[i].weights), &err);

	if (!header || !model_open_memory(&file, header, n, NULL, 0, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err) ||
	    !weights_describe(&w, &file.spec, &err) ||
	    !plan_outline(&p, &file.spec, &w, DTYPE_F16, counts[i].tokens, PLAN_LAST_LOGITS, &o, &err))
		fail_msg("%s: %s", counts[i].shape, err.text);
	if (stages_of(&p) != counts[i].stages)
		fail_msg("%s %s, %u tokens on %s: %u stages, expected %u", counts[i].shape, counts[i].weights,
		         counts[i].tokens, counts[i].target, stages_of(&p), counts[i].stages);
	plan_free(&p);
	weights_close(&w);
	model_close(&file);
	free(header);
}

static void test_stages(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++)
		check(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_stages) };
	return cmocka_run_group_tests_name("stages", tests, NULL, NULL);
}

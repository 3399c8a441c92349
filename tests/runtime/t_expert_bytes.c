/* tests/runtime/t_expert_bytes.c - what a token of a mixture of experts reads: the router, the experts that it goes to
 * and the dense matrices, once each, and no more; of several tokens, each expert once at the most. Models come from
 * headers alone, so that they may be as large as published ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "loaders/model/model_load.h"
#include "programs/common/shapes.h"
#include "programs/synth/synth.h"
#include "include/jitrun.h"
#include "runtime/plan/plan.h"
#include "tests/support/widths.h"

/* Packed bytes of a matrix, or of so many experts'. */
static uint64_t packed(const struct model_tensor *t, enum weight_layout layout, uint64_t experts)
{
	uint64_t blocks = (t->rows + 31) / 32;
	return t->bytes ? blocks * weight_block_bytes(t->type, layout, t->cols) * (t->experts ? experts : 1) : 0;
}

static uint64_t needed(const struct model_spec *s, enum weight_layout layout, uint64_t experts)
{
	uint64_t sum = packed(s->tied ? &s->embed : &s->lm_head, layout, 0);

	for (uint32_t i = 0; i < s->layers; i++)
		for (int k = 0; k < MATRIX_SLOTS; k++)
			sum += packed(&s->layer[i].matrix[k], layout, experts);
	return sum;
}

static uint64_t reads(const struct model_spec *s, const struct weights *w, const struct target *target, uint32_t tokens)
{
	const struct plan_options opt = { .target = target };
	struct error err = { 0 };
	uint64_t sum = 0;
	struct plan p;

	if (!plan_outline(&p, s, w, DTYPE_F16, tokens, PLAN_LAST_LOGITS, &opt, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < p.n_ops; i++) {
		const struct plan_op *l = &p.op[i];
		sum += template_reads(&p.kernel[l->kernel].key, (uint64_t)(l->end - l->begin), 0, tokens).weights;
	}
	plan_free(&p);
	return sum;
}

static void check(const char *shape, const char *mixture, enum target_id id)
{
	const struct target *target = &target_table[id];
	const enum weight_layout layout = weight_layout_of(target);
	struct error err = { 0 };
	struct weights w;
	struct model m;
	size_t n;

	uint8_t *header = synth_header(&n, shape_find(shape), mixture_find(mixture), &err);
	if (!header || !model_open_memory(&m, header, n, NULL, 0, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err) ||
	    !weights_describe(&w, &m.spec, &err))
		fail_msg("%s: %s", shape, err.text);
	uint64_t one = needed(&m.spec, layout, m.spec.experts_used), all = needed(&m.spec, layout, m.spec.experts);
	uint64_t found = reads(&m.spec, &w, target, 1);
	assert_true(one < all / 2);
	if (found < one || (double)found > 1.05 * (double)one)
		fail_msg("%s %s, %s: a token reads %llu bytes of weights, expected %llu", shape, mixture, target->name,
		         (unsigned long long)found, (unsigned long long)one);
	for (uint32_t tokens = 2; tokens <= 512; tokens *= 4) {
		uint64_t slots = (uint64_t)tokens * m.spec.experts_used,
			 max = needed(&m.spec, layout, slots < m.spec.experts ? slots : m.spec.experts);
		found = reads(&m.spec, &w, target, tokens);
		/* The embedding's rows; dense matrices may be cut into two sorts of tiles. */
		if (tokens <= widths_plain(target) && (double)found > 1.05 * (double)max)
			fail_msg("%s %s, %s: %u tokens read %llu bytes of weights, expected %llu", shape, mixture,
			         target->name, tokens, (unsigned long long)found, (unsigned long long)max);
		assert_true(found < 3 * all);
	}
	weights_close(&w);
	model_close(&m);
	free(header);
}

static void test_bytes(void **state)
{
	static const char *const mixtures[] = { "q4_k_m", "q8_0", "bf16", "mxfp4" }, *const shapes[] = {
		"qwen3-30b-a3b", "gpt-oss-20b", "glm-4.7-flash", "qwen35-35b-a3b"
	};

	(void)state;
	for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++)
		for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
			check(shapes[k], mixtures[i], TARGET_AVX2);
			check(shapes[k], mixtures[i], TARGET_AVX512_AMX);
		}
	check("qwen3-30b-a3b", "q4_k_m", TARGET_GFX1100);
	check("glm-4.7-flash", "q4_k_m", TARGET_GFX1100);
	check("tiny-moe", "q8_0", TARGET_AVX512);
}

/* A few layers of these shapes with made-up weights: a text has finite logits. */
static void test_made_up(void **state)
{
	static const char *const shapes[] = { "qwen3-30b-a3b", "glm-4.7-flash", "tiny-moe" };
	const int32_t ids[] = { 1, 2, 3, 4, 5, 6, 7 };
	char path[4096];

	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct model_shape small = *shape_find(shapes[i]);
		struct error err = { 0 };
		jit_error wrong = { 0 };
		small.layers = 2;
		small.vocab = small.ffn = 512;
		small.experts = 8;
		int fd = synth_temporary(path, sizeof path, &err);
		if (fd < 0 || !synth_write(fd, "the temporary file", &small, mixture_find("q4_k_m"), NULL, NULL, &err))
			fail_msg("%s: %s", shapes[i], err.text);
		jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = ""), &wrong);
		jit_session *session = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64), &wrong) : NULL;
		if (!session || jit_session_feed(session, ids, sizeof ids / sizeof *ids, &wrong) != JIT_OK)
			fail_msg("%s: %s", shapes[i], wrong.message);
		const float *logits = jit_session_logits(session, &wrong);
		for (uint32_t v = 0; v < small.vocab; v++)
			assert_true(isfinite(logits[v]));
		jit_session_close(session);
		jit_model_close(m);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bytes), cmocka_unit_test(test_made_up) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/runtime/t_card_bytes.c - how many bytes a token moves on a card: weights and the KV cache no more often than
 * once, by loads of 128 bits. What else is loaded is the stream, which each group reads for its own norm: a number a
 * lane.
 *
 * Layers as large as real models', counted in the simulator; the vocabulary is cut, and the widest matrices are when
 * tests are to be short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "programs/synth/synth.h"
#include "kernels-templates/templates.h"
#include "include/jitrun.h"
#include "runtime/device/simulated/simulator.h"
#include "runtime/session/session.h"
#include "tests/support/shared.h"

struct tally {
	uint64_t position;
	struct template_reads min;
	struct sim_counters sum;
};

static void watch(void *user, const struct plan *p, const struct sim_kernel *kernel, size_t first, size_t end,
                  const struct sim_counters *c)
{
	struct tally *t = user;
	(void)kernel;
	(void)c;

	for (size_t i = first; i < end; i++) {
		const struct plan_op *l = &p->op[i];
		struct template_reads r =
			template_reads(&p->kernel[l->kernel].key, (uint64_t)(l->end - l->begin), t->position, 1);
		t->min.weights += r.weights;
		t->min.cache += r.cache;
	}
}

/* One token behind `position` others. */
static void run_token(const char *path, const char *target, struct tally *t)
{
	const struct simulator_options sim = { .watch = watch, .user = t, .units = 60, .workgroups = 60 };
	const int32_t id = 3;
	char device[32];
	jit_error err = { 0 };

	snprintf(device, sizeof device, "sim:%s", target);
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = ""), &err);
	jit_session *s = m ? jit_session_open(m,
	                                      &JIT_SESSION_OPTIONS(.context = (int)t->position + 2, .batch = 1,
	                                                           .speculate = JIT_SPECULATE_OFF),
	                                      &err)
	                   : NULL;
	if (!s || !session_skip(s, t->position) || !simulator_set(session_stream(s), &sim) ||
	    jit_session_feed(s, &id, 1, &err) != JIT_OK)
		fail_msg("%s on %s: %s", path, target, err.message);
	t->sum = simulator_count(session_stream(s))->sim;
	jit_session_close(s);
	jit_model_close(m);
}

static void check(const char *path, const char *name, const char *target, uint64_t position)
{
	struct tally t = { .position = position };

	run_token(path, target, &t);
	const struct sim_tally *w = &t.sum.tally[SIMULATOR_WEIGHTS], *kv = &t.sum.tally[SIMULATOR_CACHE];
	double weights = (double)(w->load_bytes + w->scalar_bytes), cache = (double)(kv->load_bytes + kv->scalar_bytes),
	       min = (double)(t.min.weights + t.min.cache);
	double wide = (double)(w->load128_bytes + kv->load128_bytes) / (double)(w->load_bytes + kv->load_bytes),
	       all = (double)t.sum.load128_bytes / (double)t.sum.load_bytes;
	printf("# %s on %s at %llu: weights %.4f times, cache %.4f times, together %.4f times the least; by 128 bits "
	       "%.2f %%, of all vector loads %.2f %%\n",
	       name, target, (unsigned long long)position, weights / (double)t.min.weights, cache / (double)t.min.cache,
	       (weights + cache) / min, 100 * wide, 100 * all);
	assert_true(weights >= (double)t.min.weights && cache >= (double)t.min.cache);
	assert_true((weights + cache) <= 1.02 * min);
	assert_true(wide >= 0.99);
	assert_true(all >= 0.7);
}

static void check_shape(const char *shape, const char *weights, uint32_t short_ffn, uint32_t depth)
{
	static const char *const targets[] = { "gfx1101", "gfx1030", "gfx1201" };
	struct model_shape small = *shape_find(shape);
	struct error err = { 0 };
	char path[4096];

	small.layers = 1;
	small.vocab = 512;
	if (test_quick())
		small.ffn = short_ffn;
	int fd = synth_temporary(path, sizeof path, &err);
	if (fd < 0 || !synth_write(fd, "the temporary file", &small, mixture_find(weights), NULL, NULL, &err))
		fail_msg("%s", err.text);
	for (int i = 0; i < (test_quick() ? 1 : 3); i++) {
		check(path, shape, targets[i], 0);
		check(path, shape, targets[i], depth);
	}
	close(fd);
}

static void test_bf16(void **state)
{
	(void)state;
	check_shape("qwen3-0.6b", "bf16", 1024, 2047);
}
static void test_q8_0(void **state)
{
	(void)state;
	check_shape("mistral-7b", "q8_0", 2048, 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bf16), cmocka_unit_test(test_q8_0) };
	return cmocka_run_group_tests_name("card_bytes", tests, NULL, NULL);
}

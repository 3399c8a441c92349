/* tests/runtime/dataflow_tiles_tests.c - dataflow passes, with products in two tiles of up to 8 tokens, run by
 * the interpreter: logits, and what is chosen by the greatest of them, are the CPU's.
 *
 * Products are cut so where their inputs do not fit a block's shared memory. Small models have it so on a card that has
 * less of that: passes are planned for a row of the table of targets of their own. Kernels know no such thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/batch/batch.h"
#include "include/jitrun_batch.h"
#include "tests/runtime/dataflow_tiles.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/shared.h"

enum { HALF = 8, SEQUENCES = 16, STEPS = 3, VOCAB = 96, LAYERS = 1 };
enum { SHARED = 52 << 10 }; /* 8 columns of 512 fit, 16 of 256 do not */

static char folder[] = "/tmp/t_dataflow-XXXXXX", path[64];

static int write_model(void **state)
{
	const struct tiny_model shape = {
		.arch = "llama",
		.layers = LAYERS,
		.hidden = 256,
		.ffn = 512,
		.heads = 4,
		.kv_heads = 2,
		.head_dim = 64,
		.vocab = VOCAB,
		.type = DTYPE_F32
	};
	struct error err = { 0 };
	size_t n;
	uint8_t *file = tiny_gguf(&shape, DTYPE_Q8_0, &n, &err);
	(void)state;

	if (!file)
		fail_msg("%s", err.text);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/m.gguf", folder);
	tiny_write(folder, "m.gguf", file, n);
	free(file);
	return 0;
}

static int remove_model(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

struct steps {
	float logits[STEPS][SEQUENCES][VOCAB];
	int32_t chosen[STEPS][SEQUENCES];
	unsigned second_tiles; /* of passes over all sequences */
};

static void must(int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s", err->message);
}

/* Products that a plan has a tile of half an operand's columns and one of the rest for. */
static unsigned second_tiles(const struct plan *p, uint32_t tokens)
{
	unsigned n = 0;

	for (size_t i = 1; p->dataflow_bytes && i < p->n_ops; i++) {
		const struct plan_op *op = &p->op[i];
		const struct key *k = &p->kernel[op->kernel].key;
		n += k->kind == KEY_MATMUL && k->flags & KEY_MMA && k->tile_n == tokens - HALF &&
		     p->kernel[op[-1].kernel].key.tile_n == HALF && op[-1].arg[MATMUL_W] == op->arg[MATMUL_W];
	}
	return n;
}

/* n sequences that go on by the greatest logit, a token of each in a pass. target: what passes are planned for; NULL:
 * the device's. */
static void run(const char *device, const char *isa, const struct target *target, uint32_t n, struct steps *out)
{
	jit_error err = { 0 };
	jit_model *m = jit_model_open(
		path, &JIT_MODEL_OPTIONS(.device = device, .isa = isa, .cache_dir = "", .threads = 1), &err);
	jit_session *session[SEQUENCES], *ready[SEQUENCES];
	size_t done;

	if (!m)
		fail_msg("%s: %s", device, err.message);
	if (target)
		m->target = target;
	jit_batch *b = jit_batch_open(m,
	                              &JIT_BATCH_OPTIONS(.context = 64, .threads = 1, .tokens = SEQUENCES,
	                                                 .speculate = JIT_SPECULATE_OFF, .kv_bytes = 16 << 20),
	                              &err);
	if (!b)
		fail_msg("%s: %s", device, err.message);
	for (uint32_t i = 0; i < n; i++) {
		const int32_t first = (int32_t)(i * 29 + 3) % VOCAB;
		session[i] = jit_batch_session(b, NULL, &err);
		assert_non_null(session[i]);
		must(jit_session_submit(session[i], &first, 1, NULL, &err), &err);
	}
	memset(out, 0, sizeof *out);
	for (int step = 0; step < STEPS; step++) {
		must(jit_batch_step(b, ready, SEQUENCES, &done, &err), &err);
		assert_int_equal(done, n);
		for (uint32_t i = 0; i < n; i++) {
			const float *logits = jit_session_logits(session[i], &err);
			assert_non_null(logits);
			memcpy(out->logits[step][i], logits, sizeof out->logits[step][i]);
			must(jit_session_next(session[i], &out->chosen[step][i], &err), &err);
		}
	}
	for (unsigned i = 0; b->engine.joint && i < ENGINE_JOINT_MAX; i++)
		if (b->engine.joint[i].plan && b->engine.joint[i].spans == n)
			out->second_tiles += second_tiles(b->engine.joint[i].plan, n);
	for (uint32_t i = 0; i < n; i++)
		jit_session_close(session[i]);
	jit_batch_close(b);
	jit_model_close(m);
}

/* All products of a layer, and that of the logits, are in two tiles. */
static void test_passes(void **state)
{
	struct target target = target_table[TARGET_SM90];
	(void)state;

	target.block_bytes = SHARED;
	for (uint32_t n = HALF + 1; n <= SEQUENCES; n += test_quick() ? 7 : 1) {
		static struct steps cpu, ref;
		run("cpu", NULL, NULL, n, &cpu);
		run("ref", "sm90", &target, n, &ref);
		assert_int_equal(cpu.second_tiles, 0);
		assert_int_equal(ref.second_tiles, LAYERS * 6 + 1);
		for (int step = 0; step < STEPS; step++)
			for (uint32_t i = 0; i < n; i++)
				if (memcmp(cpu.logits[step][i], ref.logits[step][i], sizeof cpu.logits[step][i]) != 0 ||
				    cpu.chosen[step][i] != ref.chosen[step][i])
					fail_msg("%u sequences, step %d: number %u differs", n, step, i);
	}
}

int dataflow_tiles_tests(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_passes) };

	return cmocka_run_group_tests(tests, write_model, remove_model);
}

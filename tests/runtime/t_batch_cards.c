/* tests/runtime/t_batch_cards.c - batches on cards: a pass over several sessions is one launch however many kinds of
 * passes came before it, and the logits are the CPU's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/engine.h"
#include "runtime/jitrun_batch.h"
#include "runtime/jitrun_cards.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/shared.h"

enum { WIDEST = 8, KINDS = WIDEST * WIDEST, CONTEXT = 640, VOCAB = 96, PAIR = 2 };
_Static_assert((int)KINDS > (int)ENGINE_JOINT_MOST, "more kinds of passes than there are places for plans");

static char folder[] = "/tmp/t_batch_cards-XXXXXX";

static int write_model(void **state)
{
	const struct tiny_model t = {
		.arch = "llama",
		.layers = 1,
		.hidden = 64,
		.ffn = 64,
		.heads = 2,
		.kv_heads = 1,
		.head_dim = 32,
		.vocab = VOCAB,
		.type = DTYPE_BF16
	};

	assert_non_null(mkdtemp(folder));
	tiny_write_hf(folder, &t);
	return 0;
}

static int remove_model(void **state)
{
	char path[128];
	static const char *const names[] = { "config.json", "model.safetensors" };

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

static void must(int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s", err->message);
}

struct pair {
	jit_model *model;
	jit_batch *batch;
	jit_session *session[PAIR];
	int32_t next;
};

static struct pair open_pair(const char *device)
{
	jit_error err = { 0 };
	struct pair p = { .model = jit_model_open(
				  folder, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .threads = 1), &err) };

	if (!p.model)
		fail_msg("%s: %s", device, err.message);
	p.batch = jit_batch_open(p.model,
	                         &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .tokens = 32,
	                                            .speculate = JIT_SPECULATE_OFF, .kv_bytes = 64 << 20),
	                         &err);
	if (!p.batch)
		fail_msg("%s: %s", device, err.message);
	for (int i = 0; i < PAIR; i++)
		assert_non_null(p.session[i] = jit_batch_session(p.batch, NULL, &err));
	return p;
}

static void close_pair(struct pair *p)
{
	for (int i = 0; i < PAIR; i++)
		jit_session_close(p->session[i]);
	jit_batch_close(p->batch);
	jit_model_close(p->model);
}

static uint64_t launches(const struct pair *p)
{
	jit_card_stats stats = JIT_CARD_STATS();
	jit_error err = { 0 };

	must(jit_session_get_card_stats(p->session[0], &stats, &err), &err);
	return stats.launches;
}

/* So many tokens for each session, computed in one step. */
static void compute(struct pair *p, const uint32_t tokens[PAIR])
{
	jit_session *ready[PAIR];
	jit_error err = { 0 };
	size_t n;

	for (int i = 0; i < PAIR; i++) {
		int32_t ids[WIDEST];
		for (uint32_t k = 0; k < tokens[i]; k++)
			ids[k] = p->next = (p->next * 5 + 7) % VOCAB;
		must(jit_session_submit(p->session[i], ids, tokens[i], NULL, &err), &err);
	}
	must(jit_batch_step(p->batch, ready, PAIR, &n, &err), &err);
	assert_int_equal(n, PAIR);
}

static void check_logits(const struct pair *p, const struct pair *cpu)
{
	jit_error err = { 0 };

	for (int i = 0; i < PAIR; i++)
		assert_memory_equal(jit_session_logits(p->session[i], &err), jit_session_logits(cpu->session[i], &err),
		                    VOCAB * sizeof(float));
}

/* More kinds of passes than plans are kept of; the first ones come again at the end. */
static void check_kinds(const char *device)
{
	struct pair p = open_pair(device), cpu = open_pair("cpu");

	for (uint32_t i = 0; i < KINDS + 2; i++) {
		uint32_t kind = i % KINDS, tokens[PAIR] = { 1 + kind % WIDEST, 1 + kind / WIDEST };
		uint64_t before = launches(&p);
		compute(&p, tokens);
		if (launches(&p) - before != 1)
			fail_msg("%s: pass %u of %u and %u tokens took %llu launches", device, i, tokens[0], tokens[1],
			         (unsigned long long)(launches(&p) - before));
		compute(&cpu, tokens);
		check_logits(&p, &cpu);
	}
	close_pair(&cpu);
	close_pair(&p);
}

static void a_pass_is_one_launch(void **state) { check_kinds("sim:gfx1100"); }

static void so_it_is_where_the_host_reaches_no_memory(void **state)
{
	check_kinds("sim:sm90");
	check_kinds("sim:sm90x2");
	setenv("JITRUN_SIM_HIDE", "1", 1);
	check_kinds("sim:gfx1201");
	unsetenv("JITRUN_SIM_HIDE");
}

/* Twelve sessions of a page each: nobody said how much memory they may take, and a card has room for all. */
static void many_sessions_have_room(void **state)
{
	enum { MANY = 12 };
	jit_error err = { 0 };
	jit_batch_stats st = JIT_BATCH_STATS();
	jit_session *all[MANY], *ready[MANY];
	const int32_t ids[] = { 1, 2 };
	size_t n, done = 0;
	jit_model *m =
		jit_model_open(folder, &JIT_MODEL_OPTIONS(.device = "sim:sm90", .cache_dir = "", .threads = 1), &err);
	jit_batch *b = m ? jit_batch_open(m, &JIT_BATCH_OPTIONS(.context = 64), &err) : NULL;

	for (int i = 0; i < MANY; i++) {
		if (!b || !(all[i] = jit_batch_session(b, NULL, &err)))
			fail_msg("%s", err.message);
		must(jit_session_submit(all[i], ids, 2, NULL, &err), &err);
	}
	while (done < MANY) {
		must(jit_batch_step(b, ready, MANY, &n, &err), &err);
		done += n;
	}
	must(jit_batch_get_stats(b, &st, &err), &err);
	assert_int_equal(st.set_back, 0);
	assert_int_equal(st.pages_used, MANY);
	assert_true(st.pages > 100);
	for (int i = 0; i < MANY; i++)
		jit_session_close(all[i]);
	jit_batch_close(b);
	jit_model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_pass_is_one_launch),
		                            cmocka_unit_test(so_it_is_where_the_host_reaches_no_memory),
		                            cmocka_unit_test(many_sessions_have_room) };

	return cmocka_run_group_tests(tests, write_model, remove_model);
}

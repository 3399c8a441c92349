/* tests/runtime/t_batch_cards.c - batches on cards: a pass over several sessions is one launch however many kinds of
 * passes came before it, and the logits are the CPU's. In a graph, what sessions have alike is one launch of them all.
 *
 * Linked with --wrap for the simulated driver, whose launches are looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/device/cuda/cuda.h"
#include "runtime/engine/engine.h"
#include "include/jitrun_batch.h"
#include "include/jitrun_cards.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/shared.h"

enum { WIDEST = 8, KINDS = WIDEST * WIDEST, CONTEXT = 640, VOCAB = 96, SESSIONS_MAX = 7 };
_Static_assert((int)KINDS > (int)ENGINE_JOINT_MAX, "more kinds of passes than there are places for plans");

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

struct sessions {
	jit_model *model;
	jit_batch *batch;
	jit_session *session[SESSIONS_MAX];
	int n;
	int32_t next;
};

static struct sessions open_sessions(const char *device, int n)
{
	jit_error err = { 0 };
	struct sessions p = {
		.n = n,
		.model = jit_model_open(folder, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .threads = 1),
		                        &err)
	};

	if (!p.model)
		fail_msg("%s: %s", device, err.message);
	p.batch = jit_batch_open(p.model,
	                         &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .tokens = 32,
	                                            .speculate = JIT_SPECULATE_OFF, .kv_bytes = 64 << 20),
	                         &err);
	if (!p.batch)
		fail_msg("%s: %s", device, err.message);
	for (int i = 0; i < n; i++)
		assert_non_null(p.session[i] = jit_batch_session(p.batch, NULL, &err));
	return p;
}

static void close_sessions(struct sessions *p)
{
	for (int i = 0; i < p->n; i++)
		jit_session_close(p->session[i]);
	jit_batch_close(p->batch);
	jit_model_close(p->model);
}

static uint64_t launches(const struct sessions *p)
{
	jit_card_stats stats = JIT_CARD_STATS();
	jit_error err = { 0 };

	must(jit_session_get_card_stats(p->session[0], &stats, &err), &err);
	return stats.launches;
}

/* So many tokens for each session, computed in one step. */
static void compute(struct sessions *p, const uint32_t *tokens)
{
	jit_session *ready[SESSIONS_MAX];
	jit_error err = { 0 };
	size_t n;

	for (int i = 0; i < p->n; i++) {
		int32_t ids[WIDEST];
		for (uint32_t k = 0; k < tokens[i]; k++)
			ids[k] = p->next = (p->next * 5 + 7) % VOCAB;
		must(jit_session_submit(p->session[i], ids, tokens[i], NULL, &err), &err);
	}
	must(jit_batch_step(p->batch, ready, SESSIONS_MAX, &n, &err), &err);
	assert_int_equal(n, p->n);
}

static void check_logits(const struct sessions *p, const struct sessions *cpu)
{
	jit_error err = { 0 };

	for (int i = 0; i < p->n; i++)
		assert_memory_equal(jit_session_logits(p->session[i], &err), jit_session_logits(cpu->session[i], &err),
		                    VOCAB * sizeof(float));
}

/* More kinds of passes than plans are kept of; the first ones come again at the end. */
static void check_kinds(const char *device)
{
	struct sessions p = open_sessions(device, 2), cpu = open_sessions("cpu", 2);

	for (uint32_t i = 0; i < KINDS + 2; i++) {
		uint32_t kind = i % KINDS, tokens[] = { 1 + kind % WIDEST, 1 + kind / WIDEST };
		uint64_t before = launches(&p);
		compute(&p, tokens);
		if (launches(&p) - before != 1)
			fail_msg("%s: pass %u of %u and %u tokens took %llu launches", device, i, tokens[0], tokens[1],
			         (unsigned long long)(launches(&p) - before));
		compute(&cpu, tokens);
		check_logits(&p, &cpu);
	}
	close_sessions(&cpu);
	close_sessions(&p);
}

static void a_pass_is_one_launch(void **state) { check_kinds("sim:gfx1100"); }

static void so_it_is_where_the_host_reaches_no_memory(void **state)
{
	check_kinds("sim:sm90");
	if (test_small_share())
		return;
	check_kinds("sim:sm90x2");
	setenv("JITRUN_SIM_HIDE", "1", 1);
	check_kinds("sim:gfx1201");
	unsetenv("JITRUN_SIM_HIDE");
}

/* ---- what the simulated driver is given */

static unsigned launched[16]; /* by how many ops are the launch */

const struct cuda_api *__wrap_cuda_simulated(void);
const struct cuda_api *__real_cuda_simulated(void);

static int note_launch(const struct cuda_launch_config *c, void *function, void **params, void **extra)
{
	assert_true(c->grid[2] < sizeof launched / sizeof *launched);
	launched[c->grid[2]]++;
	return __real_cuda_simulated()->launch(c, function, params, extra);
}

const struct cuda_api *__wrap_cuda_simulated(void)
{
	static struct cuda_api api;

	api = *__real_cuda_simulated();
	api.launch = note_launch;
	return &api;
}

/* A pass; launched: how many launches are of so many ops as the place says. */
struct pass {
	uint32_t tokens[SESSIONS_MAX];
	int n;
	unsigned launched[SESSIONS_MAX + 1];
};

static void check_alike(const char *device, const struct pass *pass, bool counts)
{
	struct sessions p = open_sessions(device, pass->n), cpu = open_sessions("cpu", pass->n);

	memset(launched, 0, sizeof launched);
	compute(&p, pass->tokens);
	for (unsigned ops = 3; ops <= SESSIONS_MAX; ops++)
		if (counts && launched[ops] != pass->launched[ops])
			fail_msg("%s: %u launches of %u ops", device, launched[ops], ops);
	compute(&cpu, pass->tokens);
	check_logits(&p, &cpu);
	compute(&p, pass->tokens);
	compute(&cpu, pass->tokens);
	check_logits(&p, &cpu);
	close_sessions(&cpu);
	close_sessions(&p);
}

/* Keys are stored and attended to by a launch for all sessions with as many tokens, which are neighbours in a pass. The
 * norm in front of the logits is an op for rows that lie together: each last row but one where sessions have several
 * tokens. */
static void what_is_alike_is_one_launch(void **state)
{
	static const struct pass pass[] = { { { 1, 1, 1, 1, 1 }, 5, { [5] = 2 } },
		                            { { 1, 1, 1, 1, 1, 1, 1 }, 7, { [7] = 2 } },
		                            { { 1, 1, 1, 2, 2, 2, 2 }, 7, { [4] = 2, [3] = 2 + 1 } },
		                            { { 3, 3, 3, 1, 3, 3, 3 }, 7, { [6] = 2, [5] = 1 } } };

	setenv("JITRUN_CUDA_LAUNCH", "graph", 1);
	for (size_t i = 0; i < sizeof pass / sizeof *pass; i++) {
		check_alike("sim:sm90", &pass[i], true);
		check_alike("sim:sm90x2", &pass[i], false); /* either card has launches */
		if (!test_small_share())
			check_alike("sim:sm80", &pass[i], true);
	}
	unsetenv("JITRUN_CUDA_LAUNCH");
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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pass_is_one_launch), cmocka_unit_test(so_it_is_where_the_host_reaches_no_memory),
		cmocka_unit_test(what_is_alike_is_one_launch), cmocka_unit_test(many_sessions_have_room)
	};

	return cmocka_run_group_tests(tests, write_model, remove_model);
}

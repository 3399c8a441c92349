/* tests/server/t_turns_of_clients.c - one client that asks for many answers, and others beside it: how many passes go
 * by before another's first token comes, whose answers wait meanwhile, and that all keep their bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/engine/batcher.h"
#include "server/http/lanes.h"
#include "tests/support/shared.h"

enum { SLOTS = 4, TOKENS = 60, MANY = 32, SOON = 12 /* passes */ };

static struct served served;

static int open_model(void **state)
{
	char path[1024];
	(void)state;

	served.model = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 2), NULL);
	served.info = JIT_MODEL_INFO();
	served.sampling = JIT_SAMPLING(.temperature = 0.8f);
	return !served.model || jit_model_get_info(served.model, &served.info, NULL) != JIT_OK;
}

static int close_model(void **state)
{
	(void)state;
	jit_model_close(served.model);
	return 0;
}

static struct batcher *open_batcher(unsigned of_client, uint64_t kv_bytes)
{
	jit_error err = { 0 };
	struct batcher_options o = { .model = served.model, .parallel = SLOTS, .queue = 200, .of_client = of_client };

	o.batch = JIT_BATCH_OPTIONS(.threads = 2, .context = 128, .speculate = JIT_SPECULATE_OFF, .kv_bytes = kv_bytes);
	struct batcher *e = batcher_open(&o, &err);
	if (!e)
		fail_msg("%s", err.message);
	return e;
}

/* ---- clients */

struct asker {
	struct batcher *batcher;
	struct task *task;
	struct answer_stream *stream;
	uint64_t taken;         /* passes when it asked */
	_Atomic uint64_t first; /* passes when its first token was there; 0: it was not */
	unsigned ended;
	int32_t ids[MANY][TOKENS];
	unsigned n[MANY];
};

static uint64_t passes(struct batcher *e)
{
	struct batcher_numbers n;

	batcher_get_numbers(e, &n);
	return n.batch.passes;
}

static void nothing(void *user) { (void)user; }

/* In the batcher's thread: the passes that are over by then are those before the token's. */
static void note(void *user)
{
	struct asker *a = user;

	atomic_store(&a->first, passes(a->batcher) + 1);
}

static struct asker *ask(struct batcher *e, uint64_t key, uint64_t line, unsigned choices, int tokens)
{
	static const int32_t prompt[] = { 5, 9, 17 };
	struct asker *a = calloc(1, sizeof *a);
	struct refusal r = { 0 };

	assert_non_null(a);
	a->batcher = e;
	a->task = task_open(&served);
	a->stream = stream_open(choices, SIZE_MAX, false);
	assert_true(a->task && a->stream);
	a->task->client = (struct client){ key, line };
	stream_hold(a->stream);
	a->task->stream = a->stream;
	a->task->ids = malloc(sizeof prompt);
	assert_non_null(a->task->ids);
	memcpy(a->task->ids, prompt, sizeof prompt);
	a->task->n_ids = 3;
	a->task->max = tokens;
	a->task->ignore_end = true;
	a->task->choices = choices;
	a->task->sampling.seed = 1;
	a->taken = passes(e);
	if (!batcher_take(e, a->task, &r))
		fail_msg("%d: %s", r.status, r.message);
	return a;
}

static void read_some(struct asker *a)
{
	struct answer_event r;
	const jit_logprob *top;
	const char *text;

	while (stream_take(a->stream, &r, &top, &text)) {
		if (r.kind == EVENT_FAILED)
			fail_msg("failed: %.*s", (int)r.n_text, text);
		if (r.kind == EVENT_TOKEN && r.id >= 0)
			a->ids[r.choice][a->n[r.choice]++] = r.id;
		a->ended += r.kind == EVENT_ENDED;
	}
}

static void moment(void)
{
	const struct timespec t = { .tv_nsec = 200000 };

	nanosleep(&t, NULL);
}

/* Until answers that are complete no longer count. */
static void wait_until_idle(struct batcher *e)
{
	struct batcher_numbers n;

	do {
		moment();
		batcher_get_numbers(e, &n);
	} while (n.running + n.waiting);
}

/* Until so many of its choices have a token. */
static void wait_for(struct asker *a, unsigned choices)
{
	for (unsigned begun = 0; begun < choices;) {
		read_some(a);
		begun = 0;
		for (unsigned i = 0; i < MANY; i++)
			begun += a->n[i] > 0;
		moment();
	}
}

/* The number of passes between the question and its first token. */
static uint64_t passes_to_first(struct asker *a)
{
	/* the first record says that it was begun */
	while (!stream_wait(a->stream, nothing, note, a) && a->n[0] == 0)
		read_some(a);
	for (;;) {
		read_some(a);
		if (a->n[0])
			break;
		if (stream_wait(a->stream, nothing, note, a))
			moment();
	}
	uint64_t first = atomic_load(&a->first);
	return first > a->taken ? first - a->taken : 0;
}

static void finish(struct asker *a)
{
	while (!stream_is_over(a->stream)) {
		read_some(a);
		moment();
	}
	read_some(a);
	task_release(a->task);
	stream_leave(a->stream);
	stream_release(a->stream);
}

static void forget(struct asker *a) { free(a); }

/* ---- what they get */

static struct asker *alone;

static void check_same(const struct asker *a, unsigned choices)
{
	for (unsigned i = 0; i < choices; i++) {
		assert_int_equal(a->n[i], TOKENS);
		assert_memory_equal(a->ids[i], alone->ids[i], sizeof a->ids[i]);
	}
}

static void test_alone(void **state)
{
	struct batcher *e = open_batcher(200, 0);
	(void)state;

	alone = ask(e, 0, 1, MANY, TOKENS);
	finish(alone);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(alone->n[i], TOKENS);
	batcher_close(e);
}

/* All places are taken by one who goes on for MANY * TOKENS / PLACES passes; another one comes, and another. */
static void check_order(uint64_t many_key, uint64_t key, uint64_t line, uint64_t kv_bytes)
{
	struct batcher *e = open_batcher(200, kv_bytes);
	struct asker *many = ask(e, many_key, 1, MANY, TOKENS);

	wait_for(many, SLOTS);
	for (int i = 0; i < 3; i++) {
		struct asker *one = ask(e, key, line + (uint64_t)i, 1, TOKENS);
		uint64_t n = passes_to_first(one);
		if (n > SOON)
			fail_msg("the other's first token came after %llu passes", (unsigned long long)n);
		finish(one);
		assert_memory_equal(one->ids[0], alone->ids[0], sizeof one->ids[0]);
		forget(one);
		read_some(many);
		assert_true(many->ended < MANY);
	}
	finish(many);
	check_same(many, MANY);
	forget(many);
	batcher_close(e);
}

static void test_connections(void **state)
{
	(void)state;
	check_order(0, 0, 2, 0);
}

/* One key on many connections is one client. */
static void test_keys(void **state)
{
	struct batcher *e = open_batcher(200, 0);
	struct asker *many[8];
	(void)state;

	check_order(1, 2, 1, 0);
	for (unsigned i = 0; i < 8; i++)
		many[i] = ask(e, 7, 100 + i, 4, TOKENS);
	wait_for(many[0], 1);
	struct asker *one = ask(e, 8, 1, 1, TOKENS);
	uint64_t n = passes_to_first(one);
	assert_true(n <= SOON);
	finish(one);
	forget(one);
	for (unsigned i = 0; i < 8; i++) {
		finish(many[i]);
		check_same(many[i], 4);
		forget(many[i]);
	}
	batcher_close(e);
}

/* Where the cache has room for few, those that wait give theirs up, and are computed again. */
static void test_little_memory(void **state)
{
	(void)state;
	check_order(0, 0, 2, 4 << 20);
}

/* Two who want all get as much each. */
static void test_shares(void **state)
{
	struct batcher *e = open_batcher(200, 0);
	struct asker *a = ask(e, 0, 1, 16, TOKENS);
	(void)state;

	wait_for(a, SLOTS);
	struct asker *b = ask(e, 0, 2, 16, TOKENS);
	while (b->ended < 16) {
		read_some(a);
		read_some(b);
		if (a->ended < 16 && b->ended > 4 && (b->ended + 8 < a->ended || a->ended + 8 < b->ended))
			fail_msg("of one %u answers are complete, of the other %u", a->ended, b->ended);
		moment();
	}
	finish(a);
	finish(b);
	check_same(a, 16);
	check_same(b, 16);
	forget(a);
	forget(b);
	batcher_close(e);
}

static void test_max_of_client(void **state)
{
	struct batcher *e = open_batcher(20, 0);
	struct asker *a = ask(e, 0, 1, 16, TOKENS);
	struct task *t = task_open(&served);
	struct refusal r = { 0 };
	(void)state;

	t->client.line = 1;
	t->choices = 8;
	assert_false(batcher_take(e, t, &r));
	assert_int_equal(r.status, 429);
	assert_non_null(strstr(r.message, "20 may (--max-answers-per-client)"));
	task_release(t);
	struct asker *b = ask(e, 0, 2, 16, 4);
	finish(b);
	finish(a);
	wait_until_idle(e);
	struct asker *again = ask(e, 0, 1, 20, 4);
	finish(again);
	forget(a);
	forget(b);
	forget(again);
	forget(alone);
	batcher_close(e);
}

/* ---- threads that read requests */

struct job {
	struct lane_work work;
	sem_t *done, *other; /* other: what this one waits for; NULL: nothing */
	bool waited;
};

static void run_job(struct lane_work *w)
{
	struct job *p = (struct job *)w;
	struct timespec until;

	timespec_get(&until, TIME_UTC);
	until.tv_sec += 20;
	p->waited = !p->other || sem_timedwait(p->other, &until) == 0;
	sem_post(p->done);
}

/* Of two jobs that come at once, while one thread is free, the first does not end before the second. */
static void test_lanes(void **state)
{
	struct error err = { 0 };
	struct lanes *all = lanes_open(&err);
	sem_t done[3];
	struct job job[3];
	(void)state;

	assert_non_null(all);
	for (int lane = 0; lane < LANES; lane++) {
		for (int i = 0; i < 3; i++) {
			assert_int_equal(sem_init(&done[i], 0, 0), 0);
			job[i] = (struct job){ .work = { .run = run_job, .key = 7 }, .done = &done[i] };
		}
		job[1].other = &done[2];
		lanes_put(all, (enum lane)lane, &job[0].work);
		assert_int_equal(sem_wait(&done[0]), 0);
		for (int i = 0; i < 50; i++)
			moment(); /* its thread is free again */
		lanes_put(all, (enum lane)lane, &job[1].work);
		lanes_put(all, (enum lane)lane, &job[2].work);
		assert_int_equal(sem_wait(&done[1]), 0);
		assert_true(job[1].waited);
	}
	lanes_finish(all);
	job[0].done = &done[0];
	lanes_put(all, LANE_QUICK, &job[0].work);
	assert_int_equal(sem_trywait(&done[0]), 0); /* done by this thread */
	lanes_close(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),  cmocka_unit_test(test_connections),
		cmocka_unit_test(test_keys),   cmocka_unit_test(test_little_memory),
		cmocka_unit_test(test_shares), cmocka_unit_test(test_max_of_client),
		cmocka_unit_test(test_lanes),
	};

	return cmocka_run_group_tests(tests, open_model, close_model);
}

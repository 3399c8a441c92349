/* tests/runtime/t_cancel.c - what is cancelled, at whatever moment, leaves sessions that go on as if nobody had: the
 * same tokens and the same bits. Models that are cancelled while they load are not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "tests/support/shared.h"

enum { VOCAB = 4096, PROMPT = 96, STEPS = 24, ALL = PROMPT + STEPS };

static char model_path[1024];
static int32_t ids[ALL];
static float trace[ALL][VOCAB]; /* the logits after each of the ids, from a session that nobody cancelled */

static uint32_t random_below(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(*seed >> 8) * n >> 24);
}

static void pause_us(uint32_t us)
{
	nanosleep(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000 }, NULL);
}

static uint64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static jit_model *open_model(const char *device)
{
	jit_error err = { 0 };
	jit_model *m = jit_model_open(model_path, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = ""), &err);

	if (!m)
		fail_msg("%s", err.message);
	return m;
}

static jit_session *open_session(jit_model *m, const jit_session_options *o)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(m, o, &err);

	if (!s)
		fail_msg("%s", err.message);
	return s;
}

/* A text that repeats itself, so that there are draft tokens. */
static void make_trace(void)
{
	jit_model *m = open_model("cpu");
	jit_session *s = open_session(m, &JIT_SESSION_OPTIONS(.context = 256, .threads = 1, .speculate = -1));
	uint32_t seed = 7;

	for (int i = 0; i < PROMPT; i++)
		ids[i] = i < 40 ? (int32_t)(3 + random_below(&seed, VOCAB - 3)) : ids[i - 40];
	for (int i = 0; i < ALL; i++) {
		int32_t id = ids[i];
		if (i < PROMPT)
			assert_int_equal(jit_session_feed(s, &id, 1, NULL), JIT_OK);
		else
			assert_int_equal(jit_session_next(s, &ids[i], NULL), JIT_OK);
		memcpy(trace[i], jit_session_logits(s, NULL), sizeof trace[i]);
	}
	jit_session_close(s);
	jit_model_close(m);
}

/* ---- somebody who cancels, now and then */

struct canceller {
	jit_session *session;
	jit_cancel *shared; /* NULL: asks the session alone */
	uint32_t max_us, seed;
	_Atomic int stop;
	pthread_t thread;
};

static void *cancel_main(void *user)
{
	struct canceller *c = user;

	while (!atomic_load(&c->stop)) {
		pause_us(random_below(&c->seed, c->max_us));
		if (c->shared && random_below(&c->seed, 2))
			jit_cancel_set(c->shared, 1);
		else
			jit_session_cancel(c->session);
	}
	return NULL;
}

static void check_logits(jit_session *s, jit_cancel *shared, unsigned *cancelled)
{
	size_t n = jit_session_length(s);
	const float *l;
	jit_error err;

	while (!(l = jit_session_logits(s, &err))) {
		assert_int_equal(err.code, JIT_ERROR_CANCELLED);
		assert_int_equal(jit_session_length(s), n);
		jit_cancel_set(shared, 0);
		++*cancelled;
	}
	if (memcmp(l, trace[n - 1], sizeof trace[0]) != 0)
		fail_msg("the logits after token %zu differ", n);
}

/* The whole text, however often it is cancelled. Returns how often it was. */
static unsigned go_through(jit_session *s, jit_cancel *shared, uint32_t *seed)
{
	unsigned cancelled = 0;
	jit_error err;

	while (jit_session_length(s) < PROMPT) {
		size_t at = jit_session_length(s), n = 1 + random_below(seed, (uint32_t)(PROMPT - at));
		int status = random_below(seed, 4) ? jit_session_feed(s, ids + at, n, &err)
		                                   : jit_session_score(s, ids + at, n, NULL, &err);
		if (status == JIT_OK)
			assert_int_equal(jit_session_length(s), at + n);
		else
			assert_int_equal(status, JIT_ERROR_CANCELLED);
		assert_in_range(jit_session_length(s), at, at + n);
		cancelled += status != JIT_OK;
		jit_cancel_set(shared, 0);
		if (jit_session_length(s) && random_below(seed, 2))
			check_logits(s, shared, &cancelled);
	}
	while (jit_session_length(s) < ALL) {
		size_t at = jit_session_length(s);
		int32_t id = -1;
		int status = jit_session_next(s, &id, &err);
		if (status != JIT_OK)
			assert_int_equal(status, JIT_ERROR_CANCELLED);
		else
			assert_int_equal(id, ids[at]);
		assert_int_equal(jit_session_length(s), at + (status == JIT_OK));
		cancelled += status != JIT_OK;
		jit_cancel_set(shared, 0);
	}
	check_logits(s, shared, &cancelled);
	assert_memory_equal(jit_session_ids(s), ids, sizeof ids);
	return cancelled;
}

struct way {
	const char *device;
	int threads, batch, speculate;
	unsigned rounds, quick;
};

static void test_random_moments(void **state)
{
	static const struct way ways[] = {
		{ .device = "cpu", .threads = 1, .batch = 7, .rounds = 60, .quick = 6 },
		{ .device = "cpu", .threads = 2, .batch = 0, .rounds = 60, .quick = 6 },
		{ .device = "cpu", .threads = 3, .batch = 16, .speculate = 8, .rounds = 60, .quick = 6 },
		{ .device = "ref", .threads = 2, .batch = 32, .rounds = 1, .quick = 1 },
	};
	uint32_t seed = 1;

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		const struct way *w = &ways[i];
		jit_cancel *shared = jit_cancel_open(NULL);
		jit_model *m = open_model(w->device);
		jit_session *s =
			open_session(m, &JIT_SESSION_OPTIONS(.context = 256, .threads = w->threads, .batch = w->batch,
		                                             .speculate = w->speculate, .cancel = shared));
		uint64_t start = now_us();
		assert_int_equal(go_through(s, shared, &seed), 0);
		uint32_t whole = (uint32_t)(now_us() - start);
		assert_int_equal(jit_session_rewind(s, 0, NULL), JIT_OK);
		struct canceller c = { .session = s, .shared = shared, .max_us = whole / 5 + 100, .seed = seed };
		unsigned cancelled = 0;
		assert_int_equal(pthread_create(&c.thread, NULL, cancel_main, &c), 0);
		for (unsigned r = 0; r < (test_quick() ? w->quick : w->rounds); r++) {
			cancelled += go_through(s, shared, &seed);
			assert_int_equal(jit_session_rewind(s, 0, NULL), JIT_OK);
		}
		atomic_store(&c.stop, 1);
		pthread_join(c.thread, NULL);
		printf("# %s, %d threads: cancelled %u times\n", w->device, w->threads, cancelled);
		assert_true(cancelled > 0);
		jit_session_close(s);
		jit_model_close(m);
		jit_cancel_close(shared);
	}
}

/* ---- known moments */

static void test_requested_before(void **state)
{
	static const char *const devices[] = { "cpu", "ref", "sim:gfx1100" };
	jit_error err;

	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
		jit_model *m = open_model(devices[i]);
		jit_session *s = open_session(m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 2, .speculate = -1));
		jit_session_cancel(s);
		jit_session_cancel(s);
		assert_int_equal(jit_session_feed(s, ids, 3, &err), JIT_ERROR_CANCELLED);
		assert_string_equal(err.message, "cancelled, as the caller asked");
		assert_int_equal(jit_session_length(s), 0);
		assert_null(jit_session_logits(s, &err)); /* as before: nothing was fed */
		assert_int_equal(err.code, JIT_ERROR_ARGUMENT);
		assert_int_equal(jit_session_feed(s, ids, 2, &err), JIT_OK); /* the request was answered */
		jit_session_cancel(s);
		assert_int_equal(jit_session_feed(s, ids + 2, 1, &err), JIT_ERROR_CANCELLED);
		assert_int_equal(jit_session_length(s), 2);
		assert_memory_equal(jit_session_logits(s, &err), trace[1], sizeof trace[1]);
		jit_session_close(s);
		jit_model_close(m);
	}
}

/* The caller's own request stays until it is taken back, for every session it was given to. */
static void test_shared(void **state)
{
	jit_cancel *c = jit_cancel_open(NULL);
	jit_model *m = open_model("cpu");
	const jit_session_options o = JIT_SESSION_OPTIONS(.context = 64, .threads = 1, .cancel = c);
	jit_session *s[2] = { open_session(m, &o), open_session(m, &o) };
	jit_error err;

	jit_cancel_set(c, 1);
	assert_int_equal(jit_cancel_get(c), 1);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 2; i++)
			assert_int_equal(jit_session_feed(s[i], ids, 4, &err), JIT_ERROR_CANCELLED);
	assert_null(jit_session_open(m, &o, &err));
	assert_int_equal(err.code, JIT_ERROR_CANCELLED);
	jit_cancel_set(c, 0);
	assert_int_equal(jit_cancel_get(c), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(jit_session_feed(s[i], ids, 4, &err), JIT_OK);
		jit_session_close(s[i]);
	}
	jit_model_close(m);
	jit_cancel_close(c);
}

static void *cancel_later(void *user)
{
	struct canceller *c = user;

	pause_us(c->max_us);
	jit_session_cancel(c->session);
	return NULL;
}

/* A prompt that is one long pass stops inside of it, and does not take a quarter of its time for that. */
static void test_inside_a_pass(void **state)
{
	jit_model *m = open_model("ref");
	jit_session *s = open_session(m, &JIT_SESSION_OPTIONS(.context = 128, .threads = 2, .batch = PROMPT));
	bool soon = false;

	uint64_t start = now_us();
	assert_int_equal(jit_session_feed(s, ids, PROMPT, NULL), JIT_OK);
	uint64_t whole = now_us() - start;
	for (int i = 0; i < 5 && !soon; i++) { /* others use the machine, too */
		struct canceller c = { .session = s, .max_us = (uint32_t)(whole / 4) };
		assert_int_equal(jit_session_rewind(s, 0, NULL), JIT_OK);
		assert_int_equal(pthread_create(&c.thread, NULL, cancel_later, &c), 0);
		start = now_us();
		int status = jit_session_feed(s, ids, PROMPT, NULL);
		soon = status == JIT_ERROR_CANCELLED && now_us() - start < whole / 2;
		pthread_join(c.thread, NULL);
		assert_int_equal(jit_session_length(s), status == JIT_OK ? PROMPT : 0);
	}
	assert_true(soon);
	jit_session_close(s);
	jit_model_close(m);
}

/* ---- loading */

static int cancel_at_half(void *user, uint64_t done, uint64_t total)
{
	if (done >= total / 2)
		jit_cancel_set(user, 1);
	return 0;
}

static int cancel_at_end(void *user, uint64_t done, uint64_t total)
{
	if (done == total)
		jit_cancel_set(user, 1);
	return 0;
}

static void *cancel_shared_later(void *user)
{
	struct canceller *c = user;

	pause_us(c->max_us);
	jit_cancel_set(c->shared, 1);
	return NULL;
}

static void test_loading(void **state)
{
	jit_cancel *c = jit_cancel_open(NULL);
	jit_model_options o = JIT_MODEL_OPTIONS(.cache_dir = "", .cancel = c, .threads = 2);
	uint32_t seed = 3, opened = 0;
	jit_error err;

	jit_cancel_set(c, 1);
	assert_null(jit_model_open(model_path, &o, &err));
	assert_int_equal(err.code, JIT_ERROR_CANCELLED);
	jit_cancel_set(c, 0);
	o.progress_user = c;
	for (int i = 0; i < 2; i++) {
		o.progress = i ? cancel_at_end : cancel_at_half;
		assert_null(jit_model_open(model_path, &o, &err));
		assert_int_equal(err.code, JIT_ERROR_CANCELLED);
		jit_cancel_set(c, 0);
	}
	o.progress = NULL;
	for (int i = 0; i < (test_quick() ? 10 : 100); i++) {
		struct canceller later = { .shared = c, .max_us = random_below(&seed, 12000) };
		jit_cancel_set(c, 0);
		assert_int_equal(pthread_create(&later.thread, NULL, cancel_shared_later, &later), 0);
		jit_model *m = jit_model_open(model_path, &o, &err);
		if (!m)
			assert_int_equal(err.code, JIT_ERROR_CANCELLED);
		opened += m != NULL;
		jit_model_close(m);
		pthread_join(later.thread, NULL);
	}
	printf("# %u models were opened before anybody cancelled\n", opened);
	jit_cancel_close(c);
}

static int give_up(void *user, uint64_t done, uint64_t total)
{
	assert_true(done <= total);
	++*(unsigned *)user;
	return 1;
}

/* Whichever of the workers has the last slice: a function that says so ends the opening. Packed models alike. */
static void test_giving_up(void **state)
{
	char dir[] = "/tmp/jitrun-cancel-XXXXXX", command[64];
	unsigned told = 0;
	jit_model_options o = JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 4);
	jit_error err;

	assert_non_null(mkdtemp(dir));
	o.weight_cache = dir;
	jit_model_close(jit_model_open(model_path, &o, &err));
	o.copy_weights = 1;
	o.progress = give_up;
	o.progress_user = &told;
	for (int packed = 0; packed < 2; packed++) {
		o.weight_cache = packed ? dir : NULL;
		for (int i = 0; i < 100; i++) {
			told = 0;
			assert_null(jit_model_open(model_path, &o, &err));
			assert_int_equal(err.code, JIT_ERROR_ARGUMENT);
			assert_int_not_equal(told, 0);
		}
	}
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requested_before), cmocka_unit_test(test_shared),
		cmocka_unit_test(test_inside_a_pass),    cmocka_unit_test(test_random_moments),
		cmocka_unit_test(test_loading),          cmocka_unit_test(test_giving_up),
	};

	source_path(model_path, "models/tale-q8_0.gguf");
	make_trace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

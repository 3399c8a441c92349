/* tests/server/t_loader.c - a model that is asked to leave while it is being opened, by an opener of this test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/engine/loader.h"
#include "server/engine/model_events.h"
#include "tests/support/sanitized.h"

static struct served one = { .path = "one", .name = "one", .file = "one" };
static struct models models = { .list = &one, .n = 1 };
static atomic_bool opening;

static bool open_for_ever(struct served *m, jit_error *err)
{
	atomic_store(&opening, true);
	while (loader_progress(models.loader, m, 1, 2))
		usleep(1000);
	err->code = JIT_ERROR_ARGUMENT;
	return false;
}

static uint64_t no_bytes(const struct served *m)
{
	(void)m;
	return 0;
}

static void test_gives_up(void **state)
{
	const struct loader_options o = {
		.open = open_for_ever, .estimate = no_bytes, .limit = UINT64_MAX, .keep = -1
	};
	struct lease lease = { 0 };
	struct refusal r = { 0 };
	struct error err = { 0 };
	(void)state;

	assert_non_null(models.loader = loader_open(&models, &o, &err));
	assert_true(loader_start(models.loader, &err));
	assert_false(loader_unload(models.loader, &one, true));
	assert_false(lease_take(&lease, models.loader, &one));
	assert_true(lease_await(&lease, &r));
	while (!atomic_load(&opening))
		usleep(1000);
	assert_false(loader_unload(models.loader, &one, false)); /* its answers are waited for */
	assert_true(loader_unload(models.loader, &one, true));
	enum lease_state is = LEASE_AWAITED;
	for (int i = 0; i < 10000 && is == LEASE_AWAITED; i++, usleep(1000))
		is = lease_settle(&lease);
	assert_int_equal(is, LEASE_FAILED);
	assert_int_equal(lease.refusal.status, 503);
	lease_end(&lease);
	loader_close(models.loader);
}

/* The same when the opener looks no more: nothing of the model stays, and it can be opened again. */
static atomic_uint opened, closed;

static bool open_and_leave(struct served *m, jit_error *err)
{
	(void)err;
	m->bytes = 7;
	atomic_fetch_add(&opened, 1);
	assert_true(loader_progress(models.loader, m, 2, 2));
	assert_true(loader_unload(models.loader, m, true));
	assert_false(loader_unload(models.loader, m, true)); /* it was asked already */
	return true;
}

static void close_it(struct served *m)
{
	(void)m;
	atomic_fetch_add(&closed, 1);
}

static void test_gives_up_late(void **state)
{
	const struct loader_options o = {
		.open = open_and_leave, .close = close_it, .estimate = no_bytes, .limit = UINT64_MAX, .keep = -1
	};
	struct error err = { 0 };
	(void)state;

	assert_non_null(models.loader = loader_open(&models, &o, &err));
	assert_true(loader_start(models.loader, &err));
	for (unsigned round = 1; round <= 2; round++) {
		struct lease lease = { 0 };
		struct refusal r = { 0 };
		struct model_status s;
		assert_false(lease_take(&lease, models.loader, &one));
		assert_true(lease_await(&lease, &r));
		enum lease_state is = LEASE_AWAITED;
		for (int i = 0; i < 10000 && is == LEASE_AWAITED; i++, usleep(1000))
			is = lease_settle(&lease);
		assert_int_equal(is, LEASE_FAILED);
		assert_int_equal(lease.refusal.status, 503);
		lease_end(&lease);
		loader_status(models.loader, &one, &s);
		assert_int_equal(s.state, MODEL_AWAY);
		assert_false(s.failed);
		assert_int_equal(s.bytes, 0);
		assert_int_equal(atomic_load(&opened), round);
		assert_int_equal(atomic_load(&closed), round);
	}
	assert_true(loader_forget(models.loader, &one));
	loader_close(models.loader);
}

/* ---- events */

static unsigned calls, fails_at; /* 0: none */

static void *allocate(size_t n) { return ++calls == fails_at ? NULL : malloc(n); }

static void tell(bool with_data)
{
	if (with_data)
		model_events_tell_data("a", "b", json_pack("{s:s, s:{s:[i, f]}}", "status", "c", "d", "e", 1, 0.5));
	else
		model_events_tell("a", "b");
}

static const char *expected(bool with_data)
{
	return with_data
	               ? "data: {\"model\":\"a\",\"event\":\"b\",\"data\":{\"status\":\"c\",\"d\":{\"e\":[1,0.5]}}}\n\n"
	               : "data: {\"model\":\"a\",\"event\":\"b\"}\n\n";
}

/* Who listens has it whole, or is dropped. Whether it has it. */
static bool hears(struct answer_stream *s, const char *words)
{
	const jit_logprob *top;
	struct answer_event r;
	const char *text;

	if (!stream_take(s, &r, &top, &text)) {
		assert_true(stream_is_dropped(s) && stream_is_cancelled(s));
		return false;
	}
	assert_int_equal(r.n_text, strlen(words));
	assert_memory_equal(text, words, r.n_text);
	assert_false(stream_is_dropped(s));
	return true;
}

/* Each allocation of an event in turn. */
static void test_no_memory(void **state)
{
	unsigned lost = 0;
	(void)state;

	json_set_alloc_funcs(allocate, free);
	for (int with_data = 0; with_data < 2; with_data++) {
		bool failed = true;
		for (unsigned at = 1; failed; at++) {
			struct answer_stream *one_of = model_events_listen(4096), *other = model_events_listen(4096);
			assert_non_null(one_of);
			assert_non_null(other);
			calls = 0;
			fails_at = at;
			tell(with_data);
			failed = calls >= at;
			fails_at = 0;
			const bool heard = hears(one_of, expected(with_data));
			assert_int_equal(hears(other, expected(with_data)), heard);
			assert_true(heard || failed);
			lost += !heard;
			model_events_leave(one_of);
			model_events_leave(other);
			stream_release(one_of);
			stream_release(other);
			assert_true(at < 1000);
		}
	}
	json_set_alloc_funcs(malloc, free);
	assert_true(lost > 4);
}

/* One who does not read is dropped, and others are not; one whose client leaves is woken; nobody listens at the end. */
static void *woken;

static void sleep_now(void *user) { (void)user; }

static void wake(void *user) { woken = user; }

static void test_streams(void **state)
{
	struct answer_stream *deaf = model_events_listen(4096), *good = model_events_listen(4096);
	(void)state;

	for (int i = 0; i < 100; i++) {
		tell(true);
		assert_true(hears(good, expected(true)));
	}
	assert_true(stream_is_dropped(deaf));
	assert_true(stream_wait(good, sleep_now, wake, good));
	assert_null(woken);
	stream_cancel(good);
	assert_ptr_equal(woken, good);
	assert_false(stream_wait(good, sleep_now, wake, good));
	model_events_leave(deaf);
	model_events_leave(good);
	stream_release(deaf);
	stream_release(good);
	assert_false(model_events_heard());
	struct answer_stream *last = model_events_listen(4096);
	assert_true(model_events_heard());
	model_events_end();
	struct answer_event r;
	const jit_logprob *top;
	const char *text;
	assert_true(stream_take(last, &r, &top, &text) && r.kind == EVENT_ENDED);
	assert_true(stream_is_over(last));
	assert_null(model_events_listen(4096));
	model_events_leave(last);
	stream_release(last);
}

/* One who has always one event to read: what was read takes no memory. */
static void test_lagging(void **state)
{
	enum { EVENTS = 50000, ROOM_KIB = 16 << 10 };
	static char said[1000];
	const struct answer_event r = { .kind = EVENT_TOKEN, .id = -1, .n_text = sizeof said };
	struct answer_stream *s = stream_open(1, 1 << 20, false);
	struct rusage before, after;
	struct answer_event got;
	const jit_logprob *top;
	const char *text;
	(void)state;

	assert_non_null(s);
	getrusage(RUSAGE_SELF, &before);
	assert_true(stream_put(s, &r, NULL, said));
	for (int i = 1; i <= EVENTS; i++) {
		memset(said, 'a' + i % 26, sizeof said);
		assert_true(stream_put(s, &r, NULL, said));
		assert_true(stream_take(s, &got, &top, &text) && got.n_text == sizeof said);
		assert_int_equal(text[0], i == 1 ? 0 : 'a' + (i - 1) % 26);
		assert_int_equal(text[0], text[sizeof said - 1]);
	}
	getrusage(RUSAGE_SELF, &after);
	if (!SANITIZED)
		assert_true(after.ru_maxrss < before.ru_maxrss + ROOM_KIB);
	stream_release(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_gives_up), cmocka_unit_test(test_gives_up_late),
		                            cmocka_unit_test(test_no_memory), cmocka_unit_test(test_streams),
		                            cmocka_unit_test(test_lagging) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

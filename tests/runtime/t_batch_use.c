/* tests/runtime/t_batch_use.c - a batch as programs use it: who is ready when, what is refused and in which words, and
 * the functions of sessions on sessions of a batch. That results are those of sessions alone, t_batch.c says. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "include/jitrun_grammar.h"
#include "tests/runtime/tale_model.h"
#include "tests/support/shared.h"

enum { CONTEXT = 600, LONG = 480, TOKENS = 48 };

static jit_batch *open_batch(int speculate, uint64_t kv_bytes)
{
	jit_error err = { 0 };
	jit_batch *b = jit_batch_open(model,
	                              &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 2, .tokens = TOKENS,
	                                                 .speculate = speculate, .kv_bytes = kv_bytes),
	                              &err);

	if (!b)
		fail_msg("%s", err.message);
	return b;
}

static jit_session *open_session(jit_batch *b)
{
	jit_error err = { 0 };
	jit_session *s = jit_batch_session(b, NULL, &err);

	assert_non_null(s);
	return s;
}

static void submit(jit_session *s, size_t n, int32_t first)
{
	int32_t ids[CONTEXT];
	jit_error err = { 0 };

	for (size_t i = 0; i < n; i++)
		ids[i] = (int32_t)((first + (int32_t)i * 7) % vocab);
	must(jit_session_submit(s, ids, n, NULL, &err), &err);
}

/* One step; whether the session became ready in it. */
static bool step(jit_batch *b, const jit_session *s)
{
	jit_session *ready[8];
	jit_error err = { 0 };
	size_t n;
	bool found = false;

	must(jit_batch_step(b, ready, 8, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		found |= ready[i] == s;
	return found;
}

static void steps_until(jit_batch *b, const jit_session *s)
{
	for (int i = 0; !step(b, s); i++)
		assert_true(i < 1000);
}

static void expect(int status, int expected, const jit_error *err, const char *says)
{
	assert_int_equal(status, expected);
	if (!strstr(err->message, says))
		fail_msg("\"%s\" does not say \"%s\"", err->message, says);
}

/* However long a prompt is, a session that decodes has its token with each pass. */
static void a_prompt_lets_others_go_on(void **state)
{
	jit_batch *b = open_batch(JIT_SPECULATE_OFF, 0);
	jit_session *writer = open_session(b), *reader = open_session(b);
	jit_batch_stats stats = JIT_BATCH_STATS();
	jit_error err = { 0 };
	int32_t id;

	submit(writer, 5, 3);
	steps_until(b, writer);
	must(jit_session_next(writer, &id, &err), &err);
	submit(reader, LONG, 11);
	bool done = false;
	unsigned passes = 0;
	for (; !done; passes++) {
		jit_session *ready[2];
		size_t n;
		must(jit_batch_step(b, ready, 2, &n, &err), &err);
		assert_true(n >= 1 && (ready[0] == writer || (n == 2 && ready[1] == writer)));
		must(jit_session_next(writer, &id, &err), &err);
		done = n == 2;
	}
	assert_true(passes >= LONG / TOKENS);
	must(jit_batch_get_stats(b, &stats, &err), &err);
	assert_int_equal(stats.prompt_tokens + stats.decode_tokens, stats.tokens);
	assert_true(stats.prompt_tokens >= LONG && stats.decode_tokens >= passes);
	jit_session_close(writer);
	jit_session_close(reader);
	jit_batch_close(b);
}

static void what_cannot_be_is_refused(void **state)
{
	int32_t ids[CONTEXT + 1] = { 0 }, id;
	jit_error err = { 0 };
	jit_batch *b = open_batch(0, 0);
	jit_session *s = open_session(b);
	jit_session *alone = jit_session_open(model, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1), &err);

	expect(jit_session_submit(alone, ids, 1, NULL, &err), JIT_ERROR_ARGUMENT, &err, "of no batch");
	expect(jit_session_submit(s, ids, CONTEXT + 1, NULL, &err), JIT_ERROR_CONTEXT, &err, "600");
	ids[3] = vocab;
	expect(jit_session_submit(s, ids, 4, NULL, &err), JIT_ERROR_ARGUMENT, &err, "token 3");
	expect(jit_session_next(s, &id, &err), JIT_ERROR_ARGUMENT, &err, "no logits");
	submit(s, 3, 1);
	expect(jit_session_next(s, &id, &err), JIT_ERROR_ARGUMENT, &err, "3 tokens of this session are not computed");
	assert_null(jit_session_logits(s, &err));
	assert_int_equal(jit_batch_pending(b), 1);
	steps_until(b, s);
	assert_int_equal(jit_batch_pending(b), 0);
	must(jit_session_next(s, &id, &err), &err);
	submit(s, CONTEXT - 4, 1);
	steps_until(b, s);
	must(jit_session_next(s, &id, &err), &err);
	steps_until(b, s);
	expect(jit_session_next(s, &id, &err), JIT_ERROR_CONTEXT, &err, "is full");
	jit_session_close(s);
	jit_session_close(alone);
	jit_batch_close(b);
	b = jit_batch_open(model, &JIT_BATCH_OPTIONS(.kv_bytes = 1000), &err);
	assert_null(b);
	expect(err.code, JIT_ERROR_MEMORY, &err, "kv_bytes: 1000 are less than");
	assert_null(jit_batch_open(model, &JIT_BATCH_OPTIONS(.speculate = 5), &err));
	expect(err.code, JIT_ERROR_ARGUMENT, &err, "speculate: 5");
	assert_null(jit_batch_open(model, &JIT_BATCH_OPTIONS(.max_pass_ms = -1), &err));
	expect(err.code, JIT_ERROR_ARGUMENT, &err, "max_pass_ms: -1");
}

/* As many pages as one session's text may have: a longer one is refused, and of two one waits. */
static void memory_is_shared(void **state)
{
	jit_batch *b = open_batch(JIT_SPECULATE_OFF, 0);
	jit_batch_stats stats = JIT_BATCH_STATS();
	jit_error err = { 0 };
	int32_t ids[CONTEXT] = { 0 };

	must(jit_batch_get_stats(b, &stats, &err), &err);
	uint64_t page = stats.kv_bytes / stats.pages;
	jit_batch_close(b);
	b = open_batch(JIT_SPECULATE_OFF, page * 2);
	jit_session *first = open_session(b), *second = open_session(b);
	expect(jit_session_submit(first, ids, 300, NULL, &err), JIT_ERROR_MEMORY, &err, "300 tokens take");
	submit(first, 200, 5);
	submit(second, 200, 6);
	steps_until(b, first);
	assert_int_equal(jit_batch_pending(b), 1);
	steps_until(b, second);
	must(jit_batch_get_stats(b, &stats, &err), &err);
	assert_true(stats.set_back == 1 && stats.pages == 2 && stats.pages_used == 2);
	/* The first one was ready, and has made room since: it is computed again by who asks. */
	assert_non_null(jit_session_logits(first, &err));
	jit_session_close(first);
	jit_session_close(second);
	must(jit_batch_get_stats(b, &stats, &err), &err);
	assert_true(stats.pages_kept == stats.pages_used && stats.pages_kept > 0);
	jit_batch_close(b);
}

/* A conversation that goes on in another session computes what is new. */
static void beginnings_are_taken_over(void **state)
{
	jit_batch *b = open_batch(JIT_SPECULATE_OFF, 0);
	jit_session *s = open_session(b), *living, *next;
	jit_error err = { 0 };
	int32_t ids[300];
	size_t reused;

	for (int i = 0; i < 300; i++)
		ids[i] = i % vocab;
	must(jit_session_submit(s, ids, 200, &reused, &err), &err);
	assert_int_equal(reused, 0);
	steps_until(b, s);
	living = open_session(b);
	must(jit_session_submit(living, ids, 200, &reused, &err), &err);
	assert_int_equal(reused, 199);
	jit_session_close(s);
	next = open_session(b);
	ids[150]++;
	must(jit_session_submit(next, ids, 300, &reused, &err), &err);
	assert_int_equal(reused, 150);
	steps_until(b, next);
	jit_session_close(next);
	jit_session_close(living);
	jit_batch_close(b);
}

/* Each of these computes by itself, while another session waits for its next token. */
static void sessions_can_do_what_others_can(void **state)
{
	static const char schema[] = "{\"type\":\"integer\"}";
	jit_batch *b = open_batch(8, 0);
	jit_session *s = open_session(b), *other = open_session(b);
	jit_model_info info = JIT_MODEL_INFO();
	jit_error err = { 0 };
	int32_t ids[3] = { 5, 6, 7 }, id;
	float logprob[3], *row;

	must(jit_model_get_info(model, &info, &err), &err);
	row = malloc((size_t)info.hidden * sizeof *row);
	submit(other, 20, 9);
	steps_until(b, other);
	float *logits = malloc((size_t)vocab * sizeof *logits);
	memcpy(logits, jit_session_logits(other, &err), (size_t)vocab * sizeof *logits);
	/* Others have computed the same: this session does it again, and gives what they have. */
	must(jit_session_feed(s, jit_session_ids(other), 20, &err), &err);
	assert_memory_equal(logits, jit_session_logits(s, &err), (size_t)vocab * sizeof *logits);
	must(jit_session_score(s, ids, 3, logprob, &err), &err);
	must(jit_session_embed(s, ids, 3, NULL, row, (size_t)info.hidden, &err), &err);
	assert_memory_equal(logits, jit_session_logits(other, &err), (size_t)vocab * sizeof *logits);
	must(jit_session_rewind(s, 0, &err), &err);
	must(jit_session_feed_text(s, "Once upon a time", 16, 0, &err), &err);
	must(jit_session_set_grammar(s, JIT_GRAMMAR_JSON_SCHEMA, schema, sizeof schema - 1, &err), &err);
	for (int i = 0; i < 6 && jit_session_grammar_complete(s) != 1; i++) {
		must(jit_session_next(s, &id, &err), &err);
		steps_until(b, s);
	}
	assert_int_equal(jit_session_grammar_complete(s), 1);
	free(logits);
	free(row);
	jit_session_close(s);
	jit_session_close(other);
	jit_batch_close(b);
}

/* Into a batch and out of it. */
static void sessions_are_saved_and_forked(void **state)
{
	char path[] = "/tmp/t_batch_use-XXXXXX";
	jit_batch *b = open_batch(JIT_SPECULATE_OFF, 0);
	jit_session *s = open_session(b), *back = open_session(b), *none = open_session(b);
	jit_error err = { 0 };
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	submit(s, 200, 4);
	steps_until(b, s);
	must(jit_session_save(s, path, &err), &err);
	must(jit_session_restore(back, path, &err), &err);
	steps_until(b, back);
	jit_session *fork = jit_session_fork(s, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1), &err);
	jit_session *empty = jit_session_fork(none, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1), &err);
	assert_true(fork && empty);
	const float *logits = jit_session_logits(fork, &err);
	assert_memory_equal(jit_session_logits(back, &err), logits, (size_t)vocab * sizeof *logits);
	assert_memory_equal(jit_session_logits(s, &err), logits, (size_t)vocab * sizeof *logits);
	jit_session_close(empty);
	jit_session_close(fork);
	jit_session_close(none);
	jit_session_close(back);
	jit_session_close(s);
	jit_batch_close(b);
	unlink(path);
}

static unsigned threads_here(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* All sessions have the batch's threads: two, of which one calls, and one that makes kernels. */
static void sessions_have_no_threads(void **state)
{
	enum { MANY = 64 };
	unsigned before = threads_here();
	jit_batch *b = open_batch(0, 0);
	jit_session *s[MANY];

	for (int i = 0; i < MANY; i++)
		submit(s[i] = open_session(b), 2 + (size_t)i % 5, i);
	while (jit_batch_pending(b)) {
		step(b, NULL);
		assert_in_range(threads_here() - before, 1, 2);
	}
	for (int i = 0; i < MANY; i++)
		jit_session_close(s[i]);
	jit_batch_close(b);
}

/* A text that repeats itself: passes with draft tokens give several tokens each. */
static void draft_tokens_save_passes(void **state)
{
	jit_batch *b = open_batch(8, 0);
	jit_session *s[2] = { open_session(b), open_session(b) };
	jit_session_stats stats = JIT_SESSION_STATS();
	jit_batch_stats passes = JIT_BATCH_STATS();
	jit_error err = { 0 };
	int32_t ids[120], id;
	unsigned chosen = 0;

	for (int i = 0; i < 120; i++)
		ids[i] = 40 + i % 6;
	for (int i = 0; i < 2; i++)
		must(jit_session_submit(s[i], ids, 120, NULL, &err), &err);
	for (; chosen < 100; chosen++) {
		jit_session *ready;
		size_t n = 0;
		while (n == 0)
			must(jit_batch_step(b, &ready, 1, &n, &err), &err);
		must(jit_session_next(ready, &id, &err), &err);
	}
	must(jit_session_get_stats(s[0], &stats, &err), &err);
	must(jit_batch_get_stats(b, &passes, &err), &err);
	assert_true(stats.drafted > 0 && stats.accepted > 0);
	assert_true(passes.passes < chosen);
	jit_session_close(s[0]);
	jit_session_close(s[1]);
	jit_batch_close(b);
}

/* What is forgotten is computed anew, and nothing else is. */
static void beginnings_are_forgotten(void **state)
{
	jit_batch *b = open_batch(JIT_SPECULATE_OFF, 0);
	static const struct {
		int32_t first;
		size_t forgets, reused;
	} rows[] = { { 3, 0, 39 }, { 4, 0, 39 }, { 3, 1, 0 }, { 4, 1, 0 } };
	jit_error err = { 0 };
	int32_t ids[2][40];

	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 40; k++)
			ids[i][k] = 3 + i + k;
		jit_session *s = open_session(b);
		must(jit_session_submit(s, ids[i], 40, NULL, &err), &err);
		steps_until(b, s);
		jit_session_close(s);
	}
	for (int i = 0; i < 4; i++) {
		size_t reused = 99;
		jit_session *s = open_session(b);
		const int32_t *text = ids[rows[i].first - 3];
		if (rows[i].forgets)
			assert_int_equal(jit_batch_forget(b, text, i == 2 ? 40 : 20), 1);
		must(jit_session_submit(s, text, 40, &reused, &err), &err);
		assert_int_equal(reused, rows[i].reused);
		steps_until(b, s);
		jit_session_close(s);
	}
	assert_int_equal(jit_batch_forget(b, NULL, 0), 2);
	assert_int_equal(jit_batch_forget(b, NULL, 0), 0);
	jit_batch_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prompt_lets_others_go_on), cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(memory_is_shared),           cmocka_unit_test(beginnings_are_taken_over),
		cmocka_unit_test(beginnings_are_forgotten),   cmocka_unit_test(sessions_can_do_what_others_can),
		cmocka_unit_test(draft_tokens_save_passes),   cmocka_unit_test(sessions_are_saved_and_forked),
		cmocka_unit_test(sessions_have_no_threads)
	};

	return cmocka_run_group_tests(tests, open_model, close_model);
}

/* tests/runtime/adapters_from.c - adapters that count from a token on (aLoRA): part of t_adapters.
 *
 * What is wanted is computed by two sessions that say it the long way: the first tokens by one without adapters, and
 * all others, on its keys and values, by a fork with the adapter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "runtime/session/session.h"
#include "runtime/session/session_limits.h"
#include "tests/runtime/adapter_sessions.h"
#include "tests/support/lora_folder.h"
#include "tests/support/shared.h"

enum { PROMPT = 37, FROM = 19, VOCAB = 4096, STEPS = 3, MARK = 3 };

static const int32_t mark[MARK] = { 900, 17, 2050 };

struct invoked {
	jit_model *m;
	jit_adapter *a, *always;
	int32_t ids[PROMPT];
};

static jit_adapter *make_adapter(jit_model *m, const char *config, uint64_t seed)
{
	char folder[] = "/tmp/t_adapters-XXXXXX", line[100];

	assert_non_null(mkdtemp(folder));
	lora_folder(folder, &(struct lora_written){ lora_tale, LORA_TALE, 8, 0.08f, seed, config, NULL });
	jit_adapter *a = open_adapter(m, folder);
	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	assert_int_equal(system(line), 0);
	return a;
}

static void open_invoked(struct invoked *v)
{
	char path[1024];

	v->m = open_model(source_path(path, "models/tale-q8_0.gguf"), "cpu", false);
	v->a = make_adapter(v->m, ", \"alora_invocation_tokens\": [900, 17, 2050]", 5);
	v->always = make_adapter(v->m, "", 6);
	for (int i = 0; i < PROMPT; i++)
		v->ids[i] = (i * 131 + 7) % VOCAB;
	memcpy(v->ids + 4, mark, sizeof mark);
	memcpy(v->ids + FROM, mark, sizeof mark);
}

static void close_invoked(struct invoked *v)
{
	jit_adapter_close(v->a);
	jit_adapter_close(v->always);
	jit_model_close(v->m);
}

/* Where the invocation tokens are for the last time. */
static void test_setups(void **unused)
{
	struct invoked v;
	jit_adapter_info info = JIT_ADAPTER_INFO();

	open_invoked(&v);
	assert_int_equal(jit_adapter_begins(v.a, v.ids, PROMPT), FROM);
	assert_int_equal(jit_adapter_begins(v.a, v.ids, FROM + MARK), FROM);
	assert_int_equal(jit_adapter_begins(v.a, v.ids, FROM + MARK - 1), 4);
	assert_int_equal(jit_adapter_begins(v.a, v.ids + 5, FROM + MARK - 6), FROM + MARK - 6);
	assert_int_equal(jit_adapter_begins(v.a, v.ids + FROM, PROMPT - FROM), 0);
	assert_int_equal(jit_adapter_begins(v.a, v.ids, 2), 2);
	assert_int_equal(jit_adapter_begins(v.always, v.ids, PROMPT), 0);
	assert_int_equal(jit_adapter_get_info(v.a, &info, NULL), JIT_OK);
	assert_int_equal(info.invocation, MARK);
	assert_int_equal(jit_adapter_get_info(v.always, &info, NULL), JIT_OK);
	assert_int_equal(info.invocation, 0);
	close_invoked(&v);
}

/* ---- bits */

struct told {
	float logits[STEPS + 1][VOCAB];
};

static void tell(jit_session *s, struct told *out)
{
	jit_error err = { 0 };
	int32_t id;

	for (unsigned i = 0;; i++) {
		const float *logits = jit_session_logits(s, &err);
		if (!logits)
			fail_msg("%s", err.message);
		memcpy(out->logits[i], logits, sizeof out->logits[i]);
		if (i == STEPS)
			return;
		assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
	}
}

static void set_from(jit_session *s, jit_adapter *a, float scale, size_t from)
{
	jit_error err = { 0 };

	if (jit_session_set_adapters_from(s, &a, &scale, 1, from, &err) != JIT_OK)
		fail_msg("%s", err.message);
}

/* The long way; from = SIZE_MAX: without adapters. */
static struct told *wanted(const struct invoked *v, jit_adapter *a, float scale, size_t from)
{
	const struct way way = { .threads = 2 };
	const size_t before = from < PROMPT ? from : PROMPT;
	struct told *out = malloc(sizeof *out);
	jit_session *s = open_session(v->m, &way), *fork = s;
	jit_error err = { 0 };

	assert_non_null(out);
	if (before)
		feed(s, v->ids, before);
	if (before < PROMPT) {
		fork = jit_session_fork(s, &JIT_SESSION_OPTIONS(.context = 512, .speculate = JIT_SPECULATE_OFF), &err);
		assert_non_null(fork);
		set_from(fork, a, scale, before);
		if (jit_session_feed(fork, v->ids + before, PROMPT - before, &err) != JIT_OK)
			fail_msg("%s", err.message);
	} else if (from == PROMPT)
		set_from(s, a, scale, from); /* what is chosen is computed with it */
	tell(fork, out);
	if (fork != s)
		jit_session_close(fork);
	jit_session_close(s);
	return out;
}

static void compare(const struct told *got, const struct told *want, const char *what, size_t from)
{
	if (memcmp(got, want, sizeof *got) != 0)
		fail_msg("%s: from token %zu on: other bits", what, from);
}

/* Passes are cut where an adapter begins, whatever their width. */
static void test_from(void **unused)
{
	static const struct way ways[] = { { 1, 1, 0 }, { 2, 7, 0 }, { 3, 64, 0 } };
	static const size_t from[] = { 0, FROM, PROMPT, PROMPT - 1, 1 };
	struct told got;
	struct invoked v;

	open_invoked(&v);
	struct told *bare = wanted(&v, NULL, 1, SIZE_MAX), *whole = NULL;
	for (size_t f = 0; f < (test_quick() ? 3 : sizeof from / sizeof *from); f++) {
		struct told *want = wanted(&v, v.a, 0.75f, from[f]);
		for (size_t i = test_quick() ? 1 : 0; i < (test_quick() ? 2 : sizeof ways / sizeof *ways); i++) {
			jit_session *s = open_session(v.m, &ways[i]);
			set_from(s, v.a, 0.75f, from[f]);
			feed(s, v.ids, PROMPT);
			tell(s, &got);
			compare(&got, want, "alone", from[f]);
			jit_session_close(s);
		}
		if ((memcmp(want->logits[0], bare->logits[0], sizeof want->logits[0]) == 0) != (from[f] == PROMPT))
			fail_msg("the adapter does %s", from[f] == PROMPT ? "something" : "nothing");
		if (!whole)
			whole = want;
		else
			free(want);
	}
	jit_session *s = open_session(v.m, &ways[1]);
	use(s, &v.always, (const float[]){ 0.5f }, 1);
	feed(s, v.ids, PROMPT);
	tell(s, &got);
	struct told *always = wanted(&v, v.always, 0.5f, 0);
	compare(&got, always, "an adapter that always counts", 0);
	jit_session_close(s);
	free(always);
	free(whole);
	free(bare);
	close_invoked(&v);
}

/* Probabilities of known tokens and hidden states, in passes that would go past the place. */
static void test_scores(void **unused)
{
	static const struct way ways[] = { { 2, 64, 0 }, { 1, 5, 0 } };
	float score[2][PROMPT], row[2][256];
	const jit_embedding_options o = JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_MEAN);
	jit_error err = { 0 };
	struct invoked v;

	open_invoked(&v);
	for (int i = 0; i < 2; i++) {
		jit_session *s = open_session(v.m, &ways[i]);
		set_from(s, v.a, 1, FROM);
		assert_int_equal(jit_session_score(s, v.ids, PROMPT, score[i], &err), JIT_OK);
		assert_int_equal(jit_session_rewind(s, 0, &err), JIT_OK);
		assert_int_equal(jit_session_embed(s, v.ids, PROMPT, &o, row[i], 256, &err), JIT_OK);
		jit_session_close(s);
	}
	assert_memory_equal(score[0], score[1], sizeof score[0]);
	assert_memory_equal(row[0], row[1], sizeof row[0]);
	jit_session *s = open_session(v.m, &ways[0]);
	assert_int_equal(jit_session_score(s, v.ids, PROMPT, score[1], &err), JIT_OK);
	assert_memory_equal(score[0], score[1], FROM * sizeof(float)); /* as without it, up to there */
	assert_memory_not_equal(score[0] + FROM + 1, score[1] + FROM + 1, (PROMPT - FROM - 1) * sizeof(float));
	jit_session_close(s);
	close_invoked(&v);
}

/* ---- batches */

enum { MEMBERS = 5 };

static void step_all(jit_batch *b, jit_session **s, struct told *got)
{
	unsigned steps[MEMBERS] = { 0 };
	jit_session *ready[MEMBERS];
	jit_error err = { 0 };
	size_t n;
	int32_t id;

	while (jit_batch_pending(b)) {
		if (jit_batch_step(b, ready, MEMBERS, &n, &err) != JIT_OK)
			fail_msg("%s", err.message);
		for (size_t i = 0; i < n; i++) {
			unsigned which = 0;
			while (s[which] != ready[i])
				which++;
			memcpy(got[which].logits[steps[which]], jit_session_logits(ready[i], &err),
			       sizeof got->logits[0]);
			if (steps[which]++ < STEPS)
				assert_int_equal(jit_session_next(ready[i], &id, &err), JIT_OK);
		}
	}
}

/* The same text in one batch, with an adapter from different places on. */
static void test_batch(void **unused)
{
	static const size_t from[MEMBERS] = { SIZE_MAX, 0, FROM, 2, PROMPT - 1 };
	struct told *got = calloc(MEMBERS, sizeof *got);
	jit_session *s[MEMBERS];
	struct invoked v;

	open_invoked(&v);
	for (int tokens = 16; tokens <= (test_quick() ? 16 : 64); tokens += 48) {
		const jit_batch_options o = JIT_BATCH_OPTIONS(.threads = 2, .tokens = tokens, .context = 256,
		                                              .speculate = JIT_SPECULATE_OFF);
		jit_batch *b = jit_batch_open(v.m, &o, NULL);
		assert_non_null(b);
		for (int i = 0; i < MEMBERS; i++) {
			assert_non_null(s[i] = jit_batch_session(b, NULL, NULL));
			if (from[i] != SIZE_MAX)
				set_from(s[i], v.a, 1, from[i]);
			assert_int_equal(jit_session_submit(s[i], v.ids, PROMPT, NULL, NULL), JIT_OK);
		}
		step_all(b, s, got);
		for (int i = 0; i < MEMBERS; i++) {
			struct told *want = wanted(&v, v.a, 1, from[i]);
			compare(&got[i], want, "in a batch", from[i]);
			free(want);
			jit_session_close(s[i]);
		}
		jit_batch_close(b);
	}
	close_invoked(&v);
	free(got);
}

/* What stands before the adapter is everybody's, and what it counts for its own. */
static void test_shared(void **unused)
{
	enum { LONG = 300, AT = 200 };
	const jit_batch_options o =
		JIT_BATCH_OPTIONS(.threads = 2, .tokens = 64, .context = 512, .speculate = JIT_SPECULATE_OFF);
	static const struct {
		bool adapts;
		size_t from, min, max;
	} rounds[] = { { false, 0, 0, 0 },           { true, AT, 64, AT }, { true, AT, AT + 1, LONG },
		       { true, AT + 1, 64, AT + 1 }, { true, 0, 0, 0 },    { false, 0, AT + 1, LONG },
		       { true, LONG, AT + 1, LONG } };
	int32_t ids[LONG];
	size_t reused, n;
	jit_session *ready[1];
	struct invoked v;

	open_invoked(&v);
	jit_batch *b = jit_batch_open(v.m, &o, NULL);
	for (int i = 0; i < LONG; i++)
		ids[i] = i * 37 % VOCAB;
	for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
		jit_session *s = jit_batch_session(b, NULL, NULL);
		if (rounds[i].adapts)
			set_from(s, v.a, 1, rounds[i].from);
		assert_int_equal(jit_session_submit(s, ids, LONG, &reused, NULL), JIT_OK);
		if (reused < rounds[i].min || reused > rounds[i].max)
			fail_msg("turn %zu: %zu tokens were taken over, expected %zu to %zu", i, reused, rounds[i].min,
			         rounds[i].max);
		while (jit_batch_pending(b))
			assert_int_equal(jit_batch_step(b, ready, 1, &n, NULL), JIT_OK);
		jit_session_close(s);
	}
	jit_batch_close(b);
	close_invoked(&v);
}

/* ---- a text that becomes shorter, and what is refused */

/* Behind a cut the adapter begins where its token has come to. */
static void test_cuts(void **unused)
{
	static const struct {
		size_t keep, n, from;
	} rows[] = { { 2, 5, FROM - 5 }, { FROM - 2, 6, FROM - 2 }, { FROM + 3, 4, FROM }, { 0, FROM, 0 } };
	const struct way way = { .threads = 2, .batch = 16 };
	struct told got;
	struct invoked v;

	open_invoked(&v);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		jit_session *s = open_session(v.m, &way), *plain = open_session(v.m, &way);
		struct told *want = malloc(sizeof *want);
		set_from(s, v.a, 1, FROM);
		feed(s, v.ids, PROMPT);
		assert_int_equal(session_shift(s, rows[i].keep, rows[i].n, NULL), JIT_OK);
		tell(s, &got);
		set_from(plain, v.a, 1, rows[i].from);
		if (rows[i].keep)
			feed(plain, v.ids, rows[i].keep);
		assert_int_equal(jit_session_feed(plain, v.ids + rows[i].keep + rows[i].n,
		                                  PROMPT - rows[i].keep - rows[i].n, NULL),
		                 JIT_OK);
		tell(plain, want);
		compare(&got, want, "behind a cut", rows[i].from);
		free(want);
		jit_session_close(s);
		jit_session_close(plain);
	}
	close_invoked(&v);
}

static void test_refused_setups(void **unused)
{
	const struct way way = { .threads = 1 };
	jit_error err = { 0 };
	struct invoked v;

	open_invoked(&v);
	jit_session *s = open_session(v.m, &way);
	assert_int_equal(jit_session_set_adapters(s, &v.a, NULL, 1, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "counts from its invocation tokens on alone"));
	feed(s, v.ids, 10);
	assert_int_equal(jit_session_set_adapters_from(s, &v.a, NULL, 1, 9, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "rewind it to 9 first"));
	set_from(s, v.a, 1, 10);
	set_from(s, v.a, 1, 12);
	assert_int_equal(jit_session_feed(s, v.ids + 10, 5, &err), JIT_OK);
	assert_int_equal(jit_session_set_adapters(s, NULL, NULL, 0, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "rewind it to 12 first"));
	assert_int_equal(jit_session_rewind(s, 12, &err), JIT_OK);
	assert_int_equal(jit_session_set_adapters(s, NULL, NULL, 0, &err), JIT_OK);
	jit_session_close(s);
	close_invoked(&v);
}

int run_from(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_setups),        cmocka_unit_test(test_from),   cmocka_unit_test(test_scores),
		cmocka_unit_test(test_batch),         cmocka_unit_test(test_shared), cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_refused_setups)
	};

	return cmocka_run_group_tests_name("from a token on", tests, NULL, NULL);
}

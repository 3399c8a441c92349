/* tests/runtime/t_batch_memory.c - memory runs out at each moment of a batch: every allocation in turn fails, once.
 * Whatever was asked then fails with a status, or is done; what is computed has the very bits that it has otherwise.
 *
 * Who asks goes on: asks once more, or closes the session whose tokens were lost. The program is linked with --wrap. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "include/jitrun_grammar.h"
#include "tests/runtime/batch_sound.h"
#include "tests/support/shared.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
int __real_posix_memalign(void **p, size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
int __wrap_posix_memalign(void **p, size_t align, size_t n);

/* The number of the allocation that fails, from 1; 0: none does. Threads of the batch count, too. */
static atomic_ulong requested, fails;

static bool refuses(void) { return atomic_fetch_add(&requested, 1) + 1 == atomic_load(&fails); }
void *__wrap_malloc(size_t n) { return refuses() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return refuses() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return refuses() ? NULL : __real_realloc(p, n); }
int __wrap_posix_memalign(void **p, size_t align, size_t n)
{
	return refuses() ? 12 /* ENOMEM */ : __real_posix_memalign(p, align, n);
}

enum { CONTEXT = 400, SESSIONS = 5, CHOSEN = 5, ANSWERS = 2 * (CHOSEN + 1), STEPS_MAX = 4000 };

static jit_model *model;
static size_t vocab;
static bool grammars;
static const char *name;
static bool cold;  /* each story opens the model anew, so that its kernels are made while calls fail */
static bool keeps; /* a session that lost tokens goes on: it is given them once more */
static char model_path[1024];

struct party {
	jit_session *session;
	unsigned answers, reads;
	size_t begins;    /* its tokens before those that were submitted last */
	bool lost, waits; /* it failed for good; its tokens are yet to be submitted */
};
struct story {
	struct party party[SESSIONS];
	int32_t chosen[SESSIONS][ANSWERS];
	float *logits[SESSIONS]; /* [ANSWERS][vocab] */
	unsigned errors;
	jit_batch_stats stats;
};

static struct story without, with;

/* ---- what is asked */

/* All but one begin alike, over more than a page. */
static size_t write_prompt(int32_t *ids, unsigned number, unsigned read)
{
	static const size_t lengths[SESSIONS] = { 200, 150, 40, 9, 270 };
	const size_t n = read ? 20 + 3 * number : lengths[number];

	for (size_t i = 0; i < n; i++)
		ids[i] = (int32_t)((i * 7 + i % 5 + (number == 3 || i >= 140 ? 31 * number : 0) + 3 * read) % vocab);
	return n;
}

static void begin_grammar(struct story *t, unsigned number)
{
	static const char schema[] = "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}";
	jit_session *s = t->party[number].session;

	if (grammars && number % 2 &&
	    jit_session_set_grammar(s, JIT_GRAMMAR_JSON_SCHEMA, schema, sizeof schema - 1, NULL) != JIT_OK) {
		t->errors++;
		if (jit_session_set_grammar(s, JIT_GRAMMAR_JSON_SCHEMA, schema, sizeof schema - 1, NULL) != JIT_OK)
			fail_msg("%s: a grammar is refused twice", name);
	}
}

static void lose(struct story *t, unsigned number)
{
	jit_session_close(t->party[number].session);
	t->party[number].session = NULL;
	t->party[number].lost = true;
	t->errors++;
}

static void submit(struct story *t, unsigned number)
{
	struct party *p = &t->party[number];
	int32_t ids[CONTEXT];
	const size_t length = jit_session_length(p->session), n = write_prompt(ids, number, p->reads);

	p->waits = jit_session_submit(p->session, ids, n, NULL, NULL) != JIT_OK;
	t->errors += p->waits;
	if (p->waits && jit_session_length(p->session) != length)
		fail_msg("%s, allocation %lu: session %u has %zu tokens after a submit that failed, %zu before", name,
		         (unsigned long)fails, number, jit_session_length(p->session), length);
	p->begins = length;
	p->reads += !p->waits;
}

/* Its tokens were not computed. A prompt was taken back whole, and is submitted again; a chosen token is there, and is
 * taken back by hand. */
static void go_on(struct story *t, unsigned number)
{
	struct party *p = &t->party[number];
	const size_t n = jit_session_length(p->session);

	t->errors++;
	if (n == p->begins) {
		p->reads--;
		p->waits = true;
		return;
	}
	const int32_t last = jit_session_ids(p->session)[n - 1];
	if (n < p->begins || jit_session_rewind(p->session, n - 1, NULL) != JIT_OK)
		fail_msg("%s, allocation %lu: session %u has %zu tokens", name, (unsigned long)fails, number, n);
	if (jit_session_submit(p->session, &last, 1, NULL, NULL) != JIT_OK &&
	    jit_session_submit(p->session, &last, 1, NULL, NULL) != JIT_OK)
		fail_msg("%s, allocation %lu: a token is refused twice", name, (unsigned long)fails);
}

/* The logits of a session are there, or it is lost. */
static void answer(struct story *t, unsigned number)
{
	struct party *p = &t->party[number];
	jit_error err = { 0 };
	const float *logits = jit_session_logits(p->session, &err);
	int32_t id;

	if (!logits) {
		if (err.code != JIT_ERROR_MEMORY)
			fail_msg("%s, allocation %lu: %d, %s", name, (unsigned long)fails, err.code, err.message);
		if (keeps)
			go_on(t, number);
		else
			lose(t, number);
		return;
	}
	memcpy(t->logits[number] + p->answers * vocab, logits, vocab * sizeof *logits);
	if (p->answers % (CHOSEN + 1) == 0)
		begin_grammar(t, number);
	if (p->answers % (CHOSEN + 1) < CHOSEN) {
		if (jit_session_next(p->session, &id, &err) != JIT_OK) {
			t->errors++;
			if (jit_session_next(p->session, &id, &err) != JIT_OK)
				fail_msg("%s, allocation %lu: %s", name, (unsigned long)fails, err.message);
		}
		t->chosen[number][p->answers++] = id;
		return;
	}
	p->answers++;
	jit_session_set_grammar(p->session, JIT_GRAMMAR_NONE, NULL, 0, NULL);
	if (p->reads < 2) {
		submit(t, number);
	} else {
		jit_session_close(p->session);
		p->session = NULL;
	}
}

static void come(struct story *t, jit_batch *b, unsigned number)
{
	const jit_sampling p = JIT_SAMPLING(.temperature = number == 2 ? 0.9f : 0, .top_k = 30, .seed = number);

	t->party[number].session = jit_batch_session(b, &p, NULL);
	if (!t->party[number].session) {
		t->errors++;
		t->party[number].session = jit_batch_session(b, &p, NULL);
	}
	assert_non_null(t->party[number].session);
	t->party[number].waits = true;
}

/* ---- a story */

static bool step(struct story *t, jit_batch *b)
{
	jit_session *ready[SESSIONS];
	jit_error err = { 0 };
	struct error unsound = { 0 };
	size_t n;
	bool here = false;

	for (unsigned i = 0; i < SESSIONS; i++)
		if (t->party[i].session && t->party[i].waits)
			submit(t, i);
	if (jit_batch_step(b, ready, SESSIONS, &n, &err) != JIT_OK) {
		if (err.code != JIT_ERROR_MEMORY)
			fail_msg("%s, allocation %lu: %d, %s", name, (unsigned long)fails, err.code, err.message);
		t->errors++;
	}
	if (!batch_memory_sound(b, &unsound))
		fail_msg("%s, allocation %lu: %s", name, (unsigned long)fails, unsound.text);
	for (unsigned i = 0; i < SESSIONS; i++)
		for (size_t k = 0; k < n; k++)
			if (t->party[i].session && t->party[i].session == ready[k])
				answer(t, i);
	for (unsigned i = 0; i < SESSIONS; i++)
		here = here || t->party[i].session;
	return here;
}

static void open_model(void)
{
	jit_error err = { 0 };

	model = jit_model_open(model_path, &JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF), &err);
	if (!model)
		fail_msg("%s: %s", model_path, err.message);
}

static void tell_of(struct story *t, uint64_t kv_bytes, unsigned long fail);

static void tell(struct story *t, uint64_t kv_bytes, unsigned long fail)
{
	fails = 0;
	if (cold)
		open_model();
	tell_of(t, kv_bytes, fail);
	fails = 0;
	if (cold)
		jit_model_close(model);
}

/* Some are there from the beginning; the last ones come when others go on, and take over what these have computed.
 * kv_bytes: with room for not all of them, so that some are set back. */
static void tell_of(struct story *t, uint64_t kv_bytes, unsigned long fail)
{
	jit_error err = { 0 };
	const jit_batch_options o =
		JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .tokens = 48, .speculate = 8, .kv_bytes = kv_bytes);
	unsigned steps = 0, come_by = 0;

	memset(t->party, 0, sizeof t->party);
	memset(t->chosen, 0, sizeof t->chosen);
	t->errors = 0;
	requested = 0;
	fails = fail;
	jit_batch *b = jit_batch_open(model, &o, &err);
	if (!b) {
		t->errors++;
		if (err.code != JIT_ERROR_MEMORY)
			fail_msg("%s, allocation %lu: %s", name, fail, err.message);
		for (unsigned i = 0; i < SESSIONS; i++)
			t->party[i].lost = true;
		fails = 0;
		return;
	}
	while (come_by < 3)
		come(t, b, come_by++);
	while (step(t, b) || come_by < SESSIONS) {
		if (++steps % 4 == 0 && come_by < SESSIONS)
			come(t, b, come_by++);
		if (steps > STEPS_MAX)
			fail_msg("%s, allocation %lu: no end", name, fail);
	}
	t->stats = JIT_BATCH_STATS();
	assert_int_equal(jit_batch_get_stats(b, &t->stats, &err), JIT_OK);
	jit_batch_close(b);
	fails = 0;
}

static void compare(unsigned long fail)
{
	for (unsigned i = 0; i < SESSIONS; i++) {
		const struct party *p = &with.party[i];
		if (!p->lost && p->answers != ANSWERS)
			fail_msg("%s, allocation %lu: session %u has %u answers of %d", name, fail, i, p->answers,
			         ANSWERS);
		for (unsigned a = 0; a < p->answers; a++) {
			if (memcmp(with.logits[i] + a * vocab, without.logits[i] + a * vocab, vocab * sizeof(float)) !=
			    0)
				fail_msg("%s, allocation %lu of %lu, %u errors: session %u has other logits at answer "
				         "%u",
				         name, fail, (unsigned long)requested, with.errors, i, a);
			assert_int_equal(with.chosen[i][a], without.chosen[i][a]);
		}
	}
}

/* Every allocation of a story, or every so many of the first ones. */
static void check_first(uint64_t kv_bytes, unsigned of, unsigned long max)
{
	unsigned long all, tries = 0, silent = 0;

	tell(&without, kv_bytes, 0);
	assert_int_equal(without.errors, 0);
	all = requested;
	for (unsigned long fail = 1; fail <= all && fail <= max; fail += of) {
		if (!test_in_part(fail / of))
			continue;
		tries++;
		tell(&with, kv_bytes, fail);
		compare(fail);
		silent += with.errors == 0;
	}
	printf("# %s%s%s: %lu allocations of %lu failed, %lu of them unnoticed; %llu tokens are taken over, %llu times "
	       "a "
	       "session is set back\n",
	       name, cold ? ", with its kernels" : "", keeps ? ", sessions go on" : "", tries, all, silent,
	       (unsigned long long)without.stats.reused_tokens, (unsigned long long)without.stats.set_back);
}

static void check_story(uint64_t kv_bytes, unsigned of) { check_first(kv_bytes, of, ULONG_MAX); }

/* With room for all, and for a part of it. */
static void check_model(const char *which, bool of_the_tree, unsigned of)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();

	if (!(of_the_tree ? source_path(model_path, which) : shared_path(model_path, which)))
		return;
	name = which;
	grammars = of_the_tree;
	cold = keeps = false;
	open_model();
	assert_int_equal(jit_model_get_info(model, &info, &err), JIT_OK);
	vocab = (size_t)info.vocab;
	for (unsigned i = 0; i < SESSIONS; i++) {
		without.logits[i] = malloc(ANSWERS * vocab * sizeof(float));
		with.logits[i] = malloc(ANSWERS * vocab * sizeof(float));
		assert_true(without.logits[i] && with.logits[i]);
	}
	tell(&without, 64 << 20, 0); /* makes the kernels */
	const uint64_t used = without.stats.pages_used * (without.stats.kv_bytes / without.stats.pages);
	check_story(64 << 20, of);
	check_story(used / 2, of);
	keeps = true;
	if (test_quick()) /* among them one that fails when a session is computed anew, which was set back */
		check_first(used / 2, 10, 400);
	else
		check_story(used / 2, of);
	for (unsigned i = 0; i < SESSIONS; i++) {
		free(without.logits[i]);
		free(with.logits[i]);
	}
	jit_model_close(model);
}

/* The library generates code while calls fail, in the steps that need it and ahead of them. */
static void check_cold(const char *which, bool of_the_tree, unsigned of)
{
	jit_model_info info = JIT_MODEL_INFO();

	if (!(of_the_tree ? source_path(model_path, which) : shared_path(model_path, which)))
		return;
	name = which;
	grammars = of_the_tree;
	cold = keeps = false;
	open_model();
	assert_int_equal(jit_model_get_info(model, &info, NULL), JIT_OK);
	jit_model_close(model);
	vocab = (size_t)info.vocab;
	for (unsigned i = 0; i < SESSIONS; i++) {
		without.logits[i] = malloc(ANSWERS * vocab * sizeof(float));
		with.logits[i] = malloc(ANSWERS * vocab * sizeof(float));
		assert_true(without.logits[i] && with.logits[i]);
	}
	cold = true;
	check_story(64 << 20, of);
	keeps = true;
	check_story(4 << 20, of);
	for (unsigned i = 0; i < SESSIONS; i++) {
		free(without.logits[i]);
		free(with.logits[i]);
	}
	cold = keeps = false;
}

static void each_allocation_may_fail(void **state)
{
	(void)state;
	check_model("models/tale-q8_0.gguf", true, test_quick() ? (SANITIZED ? 41 : 23) : 1);
}

/* Windows, states of convolutions and of the delta rule, whose beginnings are copied. */
static void so_it_may_with_other_layers(void **state)
{
	static const char *const models[] = { "golden/gemma3-a", "golden/lfm2-a", "golden/qwen35-a" };
	(void)state;

	for (unsigned i = 0; i < 3; i++)
		check_model(models[i], false, test_full() ? 1 : test_quick() ? (SANITIZED ? 31 : 17) : 3);
}

static void so_it_may_while_kernels_are_made(void **state)
{
	(void)state;
	check_cold("models/tale-q8_0.gguf", true, test_full() ? 1 : test_quick() ? 3001 : 101);
	check_cold("golden/qwen35-a", false, test_full() ? 1 : test_quick() ? 3001 : 101);
}

/* A submit that fails leaves the session as it was: its logits, and its grammar, which takes the tokens once. */
static void a_failed_submit_changes_nothing(void **state)
{
	static const char begin[] = "Once upon a time", rest[] = " there was a king",
			  rule[] = " *there was a king( and)?";
	char path[1024];
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	int32_t *ids, *more, many[200];
	size_t n, n_more, told;
	unsigned failed = 0;
	(void)state;

	model = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                       &JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF), &err);
	assert_non_null(model);
	assert_int_equal(jit_model_get_info(model, &info, &err), JIT_OK);
	assert_int_equal(jit_model_tokenize(model, begin, sizeof begin - 1, 0, 0, &ids, &n, &err), JIT_OK);
	assert_int_equal(jit_model_tokenize(model, rest, sizeof rest - 1, 0, 0, &more, &n_more, &err), JIT_OK);
	for (size_t i = 0; i < 127; i++) /* so that the next tokens need another page */
		many[i] = ids[i % n];
	const size_t bytes = (size_t)info.vocab * sizeof(float);
	float *before = malloc(bytes);
	assert_non_null(before);
	for (unsigned long fail = 1; fail < 40; fail++) {
		jit_batch *b = jit_batch_open(
			model, &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .speculate = -1), &err);
		jit_session *s = jit_batch_session(b, NULL, &err), *ready[1];
		assert_int_equal(jit_session_submit(s, many, 127, NULL, &err), JIT_OK);
		for (told = 0; !told;)
			assert_int_equal(jit_batch_step(b, ready, 1, &told, &err), JIT_OK);
		assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_REGEX, rule, sizeof rule - 1, &err), JIT_OK);
		memcpy(before, jit_session_logits(s, &err), bytes);
		requested = 0;
		fails = fail;
		int status = jit_session_submit(s, more, n_more, NULL, &err);
		fails = 0;
		if (status != JIT_OK) {
			failed++;
			assert_int_equal(jit_session_length(s), 127);
			assert_int_equal(jit_batch_pending(b), 0);
			assert_non_null(jit_session_logits(s, &err));
			assert_memory_equal(jit_session_logits(s, &err), before, bytes);
			assert_int_equal(jit_session_grammar_complete(s), 0);
			assert_int_equal(jit_session_submit(s, more, n_more, NULL, &err), JIT_OK);
		}
		assert_int_equal(jit_session_grammar_complete(s), 1);
		jit_session_close(s);
		jit_batch_close(b);
	}
	printf("# %u submits failed\n", failed);
	assert_true(failed > 0);
	free(before);
	free(ids);
	free(more);
	jit_model_close(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_may_fail), cmocka_unit_test(a_failed_submit_changes_nothing),
		cmocka_unit_test(so_it_may_with_other_layers), cmocka_unit_test(so_it_may_while_kernels_are_made)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

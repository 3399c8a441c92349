/* tests/vision/paced_tests.c - how wide a batch's passes over pictures are, on a clock of the test's own: others have a
 * token between two passes, which take no longer than max_pass_ms, unless a picture's tokens see each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "include/jitrun_batch.h"
#include "runtime/batch/batch.h"
#include "tests/support/seeing_folder.h"
#include "tests/vision/tower_tests.h"
#include "vision/seer.h"

/* A token takes 10 ms; before that is known, passes may have FIRST tokens. */
enum { MAX_MS = 200, FIT = 20, FIRST = 32, KNOWN = 8, PASSES = 1000 };

static struct {
	double now;
	uint32_t tokens[PASSES]; /* of each pass */
	unsigned passes;
	bool (*run)(struct stream *s, struct plan *p, struct pool *pool, struct error *err);
} told;

static double tell(void) { return told.now; }

static bool run(struct stream *s, struct plan *p, struct pool *pool, struct error *err)
{
	assert_true(told.passes < PASSES);
	told.tokens[told.passes++] = p->tokens;
	told.now += 0.01 * p->tokens;
	return told.run(s, p, pool, err);
}

static jit_batch *open_batch(const struct seeing *s)
{
	jit_error err = { 0 };
	jit_batch *b = jit_batch_open(s->model,
	                              &JIT_BATCH_OPTIONS(.context = 1024, .threads = 2, .kv = JIT_KV_F32, .tokens = 512,
	                                                 .speculate = JIT_SPECULATE_OFF, .max_pass_ms = MAX_MS),
	                              &err);

	if (!b)
		fail_msg("%s", err.message);
	told.run = b->engine.stream->run;
	told.passes = 0;
	b->engine.stream->run = run;
	b->now = tell;
	return b;
}

static jit_session *member(jit_batch *b)
{
	jit_session *s = jit_batch_session(b, NULL, NULL);

	assert_non_null(s);
	return s;
}

/* One writes; the other has a long text and two pictures. The one says something between any two passes of the other.
 * Returns how many passes were wider than they may be. */
static unsigned see(const struct seeing *s, const jit_prompt *p, jit_session *alone)
{
	static const int32_t some[] = { 70, 71, 72 };
	jit_error err = { 0 };
	jit_batch *b = open_batch(s);
	jit_session *writer = member(b), *x = member(b), *ready[4];
	unsigned wide = 0, silent = 0;
	uint64_t computed = 0, passes = 0;
	jit_batch_stats stats = JIT_BATCH_STATS();
	size_t n = 0;
	int32_t id;

	assert_int_equal(jit_session_submit(writer, some, 3, NULL, &err), JIT_OK);
	assert_int_equal(jit_session_feed_prompt(x, p, NULL, &err), JIT_OK);
	for (bool done = false; !done;) {
		if (jit_batch_step(b, ready, 4, &n, &err) != JIT_OK)
			fail_msg("%s", err.message);
		silent++;
		for (size_t i = 0; i < n; i++) {
			done = done || ready[i] == x;
			if (ready[i] != writer)
				continue;
			silent = 0;
			assert_int_equal(jit_session_next(writer, &id, &err), JIT_OK);
		}
		assert_true(silent < 2 || told.passes < 3);
	}
	for (unsigned i = 0; i < told.passes; i++) {
		wide += told.tokens[i] > (i < KNOWN ? FIRST : FIT);
		computed += told.tokens[i];
	}
	passes = told.passes;
	assert_int_equal(jit_batch_get_stats(b, &stats, &err), JIT_OK);
	assert_int_equal(stats.passes, passes);
	assert_int_equal(stats.tokens, computed);
	seeing_same(s, x, alone);
	jit_session_close(x);
	jit_session_close(writer);
	jit_batch_close(b);
	return wide;
}

/* token: an image token's text; mark: what the template writes for a picture; whole: its tokens see each other, as
 * those of Gemma 3 do. */
static void check(const char *name, const char *token, const char *mark, bool whole)
{
	static char messages[1024];
	struct seeing s;
	jit_error err = { 0 };

	if (!seeing_open(&s, name, token, SEEING_TEMPLATE("<image>")))
		return;
	s.model->file.spec.pictures_whole |= whole;
	jit_image *image[] = { seeing_image(&s, 0), seeing_image(&s, 1) };
	snprintf(messages, sizeof messages,
	         "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"%0300d\"},{\"type\":\"image\"},"
	         "{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"%040d\"}]}]",
	         1, 2);
	char tmpl[600];
	snprintf(tmpl, sizeof tmpl,
	         "{%% for m in messages %%}{%% for p in m.content %%}{%% if p.type == 'image' %%}{{ '%s' }}{%% else "
	         "%%}{{ p.text }}{%% endif %%}{%% endfor %%}{%% endfor %%}",
	         mark);
	jit_prompt *p = seeing_chat(&s, messages, tmpl, image, 2);
	jit_session *alone = seeing_session(&s);
	assert_int_equal(jit_session_feed_prompt(alone, p, NULL, &err), JIT_OK);
	const unsigned wide = see(&s, p, alone);
	const unsigned greater = (seeing_info(image[0]).tokens > FIT) + (seeing_info(image[1]).tokens > FIT);
	assert_true(greater || !whole);
	if (wide != (whole ? greater : 0))
		fail_msg("%s: %u passes are wider than they may be", name, wide);
	jit_session_close(alone);
	jit_prompt_close(p);
	jit_image_close(image[0]);
	jit_image_close(image[1]);
	seeing_close(&s);
}

void test_image_pace(void **state)
{
	(void)state;
	check("see-llava-a", "<image>", "<image>", false);
	check("see-qwen3vl-a", "<|image_pad|>", "<|image_pad|>", false);
	check("see-gemma3-a", "<image_soft_token>", "<start_of_image>", false); /* its pictures have 16 tokens */
	check("see-qwen3vl-a", "<|image_pad|>", "<|image_pad|>", true);
}

/* Features that are no numbers: the sentence says behind which token, however wide the pass was, and the session goes
 * on.
 */
static void check_not_finite(const struct seeing *s, bool in_batch)
{
	static const char messages[] = "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},"
				       "{\"type\":\"text\",\"text\":\"and\"}]}]";
	jit_error err = { 0 };
	jit_image *bad = seeing_image(s, 0), *good = seeing_image(s, 1);
	jit_batch *b = in_batch ? open_batch(s) : NULL;
	jit_session *x = b ? member(b) : seeing_session(s), *ready[1];
	size_t n = 0;

	assert_int_equal(jit_image_encode(bad, &err), JIT_OK);
	assert_true(seeing_info(bad).tokens > SESSION_ALL_LOGITS);
	bad->part[0]->values[0] = NAN;
	jit_prompt *p = seeing_chat(s, messages, NULL, &bad, 1), *q = seeing_chat(s, messages, NULL, &good, 1);
	int status = jit_session_feed_prompt(x, p, NULL, &err);
	if (b) {
		assert_int_equal(status, JIT_OK);
		for (int i = 0; !n && i < PASSES; i++)
			assert_int_equal(jit_batch_step(b, ready, 1, &n, &err), JIT_OK);
		int32_t id;
		status = jit_session_next(x, &id, &err);
	}
	assert_int_equal(status, JIT_ERROR_FORMAT);
	assert_non_null(strstr(err.message, "are not finite"));
	assert_int_equal(jit_session_feed_prompt(x, q, NULL, &err), JIT_OK);
	for (n = 0; b && !n;)
		assert_int_equal(jit_batch_step(b, ready, 1, &n, &err), JIT_OK);
	jit_session *alone = seeing_session(s);
	assert_int_equal(jit_session_feed_prompt(alone, q, NULL, &err), JIT_OK);
	seeing_same(s, x, alone);
	jit_session_close(alone);
	jit_session_close(x);
	jit_batch_close(b);
	jit_prompt_close(p);
	jit_prompt_close(q);
	jit_image_close(bad);
	jit_image_close(good);
}

void test_image_not_finite(void **state)
{
	struct seeing s;
	(void)state;

	if (!seeing_open(&s, "see-llava-a", "<image>", SEEING_TEMPLATE("<image>")))
		skip();
	for (int whole = 0; whole < 2; whole++)
		for (int in_batch = 0; in_batch < 2; in_batch++) {
			s.model->file.spec.pictures_whole = whole;
			check_not_finite(&s, in_batch);
		}
	seeing_close(&s);
}

/* tests/runtime/t_turns.c - conversations whose next turn leaves out what the model said before its answer, and
 * conversations that begin alike: what a batch still has of them where layers keep windows or states, and that it costs
 * no bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "tests/support/shared.h"

/* CUT: tokens of a prompt's end that are not said again; ANSWER: much more than a window and a pass. */
enum { CONTEXT = 1400, TOKENS = 64, SHARED = 300, PROMPT = 420, CUT = 3, ANSWER = 500, NEW = 40, ANSWER_BEGINS = 16 };

static jit_model *model;
static int vocab;
static const char *name;

static void must(int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s: %s", name, err->message);
}

/* Tokens of a text of its own: it differs from all others from the first token on. */
static void write_ids(int32_t *ids, size_t n, uint32_t text)
{
	uint32_t x = text * 2654435761u + 12345;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		ids[i] = 10 + (int32_t)(i ? (x >> 16) % (unsigned)(vocab - 10) : text % (unsigned)(vocab - 10));
	}
}

static jit_batch *open_batch(uint64_t kv_bytes)
{
	jit_error err = { 0 };
	jit_batch *b = jit_batch_open(
		model,
		&JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .tokens = TOKENS, .kv = JIT_KV_F16,
	                           .max_pass_ms = 60000, .speculate = JIT_SPECULATE_OFF, .kv_bytes = kv_bytes),
		&err);

	if (!b)
		fail_msg("%s: %s", name, err.message);
	return b;
}

static const float *alone(const int32_t *ids, size_t n, jit_session **s)
{
	jit_error err = { 0 };

	*s = jit_session_open(model, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .kv = JIT_KV_F16), &err);
	assert_non_null(*s);
	must(jit_session_feed(*s, ids, n, &err), &err);
	const float *logits = jit_session_logits(*s, &err);
	assert_non_null(logits);
	return logits;
}

/* One turn: its prompt, whose logits must be those of a session alone, and an answer. How many tokens of the prompt
 * were there already. */
static size_t say(jit_batch *b, const int32_t *ids, size_t n, size_t answer, int32_t *said)
{
	jit_error err = { 0 };
	jit_session *s = jit_batch_session(b, NULL, &err), *ready, *other;
	size_t reused, n_ready = 0;

	assert_non_null(s);
	must(jit_session_submit(s, ids, n, &reused, &err), &err);
	for (size_t i = 0; i <= answer; i++) {
		do
			must(jit_batch_step(b, &ready, 1, &n_ready, &err), &err);
		while (n_ready == 0);
		if (i == 0) {
			const float *got = jit_session_logits(s, &err), *expected = alone(ids, n, &other);
			assert_non_null(got);
			assert_memory_equal(got, expected, (size_t)vocab * sizeof *got);
			jit_session_close(other);
		}
		int32_t id = 10 + (int32_t)((i * 31 + n) % (size_t)(vocab - 10));
		if (i < answer) {
			must(jit_session_submit(s, &id, 1, NULL, &err), &err);
			if (said)
				said[i] = id;
		}
	}
	jit_session_close(s);
	return reused;
}

/* A prompt, a long answer, and the prompt again without its end and the answer. */
static void check_left_out(void)
{
	jit_batch *b = open_batch(0);
	int32_t ids[CONTEXT];

	write_ids(ids, PROMPT, 1);
	assert_int_equal(say(b, ids, PROMPT, ANSWER, NULL), 0);
	for (uint32_t round = 0; round < 2; round++) {
		size_t before = round ? PROMPT - CUT + NEW : PROMPT, n = before - CUT;
		write_ids(ids + n, NEW, 2 + round);
		size_t reused = say(b, ids, n + NEW, round ? 10 : ANSWER, NULL);
		if (reused + ANSWER_BEGINS < before || reused > n)
			fail_msg("%s, turn %u: %zu tokens of %zu were there", name, round + 2, reused, n);
	}
	jit_batch_close(b);
}

/* Conversations that begin with the same instructions: each of them goes on with all of its own. */
static void check_alike(void)
{
	jit_batch *b = open_batch(0);
	int32_t first[CONTEXT], ids[CONTEXT];
	size_t reused = 0;

	write_ids(first, SHARED, 3);
	memcpy(ids, first, sizeof first);
	write_ids(first + SHARED, NEW, 4);
	assert_int_equal(say(b, first, SHARED + NEW, 20, first + SHARED + NEW), 0);
	for (uint32_t i = 0; i < 3; i++) {
		write_ids(ids + SHARED, 2 * NEW, 5 + i);
		reused = say(b, ids, SHARED + 2 * NEW, ANSWER, NULL);
		assert_true(reused <= SHARED);
	}
	assert_int_equal(reused, SHARED);
	/* the last token was chosen and is not computed */
	write_ids(first + SHARED + NEW + 20, NEW, 9);
	reused = say(b, first, SHARED + NEW + 20 + NEW, 0, NULL);
	assert_in_range(reused, SHARED + NEW + 19, SHARED + NEW + 20);
	jit_batch_close(b);
}

/* Where there is room for one text, its bits stay what they are. */
static void check_little_room(void)
{
	jit_batch *b = open_batch(0);
	jit_batch_stats stats = JIT_BATCH_STATS();
	jit_error err = { 0 };
	int32_t ids[CONTEXT];

	write_ids(ids, PROMPT, 1);
	say(b, ids, PROMPT, ANSWER, NULL);
	must(jit_batch_get_stats(b, &stats, &err), &err);
	uint64_t unit = stats.kv_bytes / stats.pages, bytes = (stats.pages_used + stats.pages_used / 4 + 1) * unit;
	jit_batch_close(b);
	b = open_batch(bytes);
	for (uint32_t round = 0; round < 3; round++) {
		say(b, ids, PROMPT, round < 2 ? ANSWER : 0, NULL);
		write_ids(ids + PROMPT - CUT, CUT, 7 + round);
	}
	jit_batch_close(b);
}

static void test_alternating(void **state)
{
	/* Windows; windows and sinks; states of the delta rule; of convolutions; of the selective scan; none. */
	static const char *const models[] = { "gemma3-a", "gptoss-a", "qwen35-a", "lfm2-a", "nemotronh-a", "llama-a" };
	char path[1024], relative[100];
	jit_model_info info = JIT_MODEL_INFO();
	jit_error err = { 0 };
	unsigned tried = 0;
	(void)state;

	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		snprintf(relative, sizeof relative, "golden/%s", name = models[i]);
		if ((test_quick() && (i == 0 || i > 2)) || !shared_path(path, relative))
			continue;
		model = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF), &err);
		if (!model)
			fail_msg("%s: %s", path, err.message);
		must(jit_model_get_info(model, &info, &err), &err);
		vocab = info.vocab;
		check_left_out();
		check_alike();
		check_little_room();
		jit_model_close(model);
		tried++;
	}
	if (!tried)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_alternating) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/runtime/t_finite.c - logits that are not finite: a session names the first token that has them, gives none of
 * them and no token from them, and is good for other tokens afterwards. The weights of small models are made so that
 * they hold such numbers, or lead to them from some point of a text on. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "runtime/session/logits.h"
#include "runtime/session/session.h"
#include "tests/support/shared.h"
#include "tests/runtime/tiny_model.h"

enum { VOCAB = 11, HIDDEN = 4, PROMPT = 40 };
static const struct tiny_model shape = {
	.arch = "llama",
	.layers = 1,
	.hidden = HIDDEN,
	.ffn = 6,
	.heads = 2,
	.kv_heads = 1,
	.head_dim = 2,
	.vocab = VOCAB,
	.type = DTYPE_F32
};
static char dir[] = "/tmp/t_finite-XXXXXX";

/* A tensor's numbers inside a safetensors file of F32. */
static float *numbers(uint8_t *file, const char *name)
{
	char quoted[100];
	uint64_t header, begin;

	memcpy(&header, file, 8);
	snprintf(quoted, sizeof quoted, "\"%s\"", name);
	const char *at = memmem(file + 8, header, quoted, strlen(quoted));
	assert_non_null(at);
	assert_int_equal(sscanf(strstr(at, "\"data_offsets\""), "\"data_offsets\":[%lu", &begin), 1);
	return (float *)(void *)(file + 8 + header + begin);
}

static jit_model *open_changed(void (*change)(uint8_t *file), const char *device)
{
	jit_error err = { 0 };
	size_t n;
	uint8_t *file = tiny_safetensors(&shape, &n);
	char *config = tiny_config(&shape);

	change(file);
	tiny_write(dir, "model.safetensors", file, n);
	tiny_write(dir, "config.json", config, strlen(config));
	free(file);
	free(config);
	jit_model *m = jit_model_open(
		dir, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .threads = 1, .tune = JIT_TUNE_OFF), &err);
	if (!m)
		fail_msg("%s", err.message);
	return m;
}

static jit_session *open_session(jit_model *m, int speculate)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(m,
	                                  &JIT_SESSION_OPTIONS(.context = 200, .threads = 1, .kv = JIT_KV_F32,
	                                                       .speculate = speculate, .batch = 16),
	                                  &err);

	if (!s)
		fail_msg("%s", err.message);
	return s;
}

static float bad_value;
enum { BAD = 7 };
/* One token's embedding holds the value: from it on, nothing that looks back is finite. */
static void spoil_embedding(uint8_t *file) { numbers(file, "model.embed_tokens.weight")[BAD * HIDDEN + 2] = bad_value; }
/* The logit of one token is not finite, whatever the text; keys and values are. */
static void spoil_output(uint8_t *file) { numbers(file, "lm_head.weight")[3 * HIDDEN + 1] = bad_value; }
static void spoil_nothing(uint8_t *file) { (void)file; }

/* Tokens without the bad one. */
static void fill(int32_t ids[PROMPT])
{
	for (int i = 0; i < PROMPT; i++)
		ids[i] = (i * i + 3 * i) % BAD;
}

static void expect_refusal(int status, const jit_error *err, size_t position, int id)
{
	char says[100];

	snprintf(says, sizeof says, "the logits after token %zu (id %d) are not finite", position, id);
	if (status != JIT_ERROR_FORMAT || err->code != status || !strstr(err->message, says))
		fail_msg("status %d, \"%s\"; expected \"%s\"", status, err->message, says);
}

/* Every place of a prompt, for feeds and for scores: the message names it, and the session is as it was before. */
static void test_prompts(void **state)
{
	static const char *const devices[] = { "cpu", "ref" };
	static const float values[] = { NAN, INFINITY, -INFINITY };
	int32_t ids[PROMPT], id, want;
	float logprob[PROMPT], logits[VOCAB], clean[VOCAB];
	(void)state;

	for (int v = 0; v < 6; v++) {
		bad_value = values[v % 3];
		jit_model *m = open_changed(spoil_embedding, devices[v / 3]);
		jit_session *s = open_session(m, JIT_SPECULATE_OFF), *other = open_session(m, JIT_SPECULATE_OFF);
		jit_error err = { 0 };
		fill(ids);
		assert_int_equal(jit_session_feed(other, ids, PROMPT, &err), JIT_OK);
		memcpy(clean, jit_session_logits(other, &err), sizeof clean);
		for (int at = 0; at < PROMPT; at += test_quick() || v ? 13 : 1) {
			assert_int_equal(jit_session_rewind(s, 0, &err), JIT_OK);
			if (at > 3) {
				fill(ids);
				assert_int_equal(jit_session_feed(s, ids, 3, &err), JIT_OK);
				memcpy(logits, jit_session_logits(s, &err), sizeof logits);
			}
			ids[at] = BAD;
			size_t from = at > 3 ? 3 : 0;
			jit_error e = { 0 };
			expect_refusal(jit_session_feed(s, ids + from, PROMPT - from, &e), &e, (size_t)at, BAD);
			assert_int_equal(jit_session_length(s), from);
			e = (jit_error){ 0 };
			expect_refusal(jit_session_score(s, ids + from, PROMPT - from, logprob, &e), &e, (size_t)at,
			               BAD);
			assert_int_equal(jit_session_length(s), from);
			e = (jit_error){ 0 };
			if (from) /* what was there before is there again */
				assert_memory_equal(jit_session_logits(s, &e), logits, sizeof logits);
			else
				assert_int_equal(jit_session_next(s, &id, &e), JIT_ERROR_ARGUMENT);
			/* what the cache holds of the refused tokens takes no part */
			fill(ids);
			assert_int_equal(jit_session_feed(s, ids + from, PROMPT - from, &err), JIT_OK);
			assert_memory_equal(jit_session_logits(s, &err), clean, sizeof clean);
			assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
			assert_int_equal(jit_session_rewind(other, PROMPT, &err), JIT_OK);
			assert_int_equal(jit_session_next(other, &want, &err), JIT_OK);
			assert_int_equal(id, want);
		}
		jit_session_close(s);
		jit_session_close(other);
		jit_model_close(m);
	}
}

/* No token, no logits, and the same sentence each time one is asked for. */
static void test_output(void **state)
{
	static const float values[] = { NAN, INFINITY, -INFINITY };
	static const char *const names[] = { "that of id 3 is nan", "that of id 3 is ", "that of id 3 is " };
	const int32_t ids[] = { 1, 2, 3 };
	(void)state;

	for (int v = 0; v < 3; v++) {
		bad_value = values[v];
		jit_model *m = open_changed(spoil_output, "cpu");
		for (int speculate = JIT_SPECULATE_OFF; speculate <= 4; speculate += 5) {
			jit_session *s = open_session(m, speculate);
			jit_error err = { 0 };
			float logprob[3];
			expect_refusal(jit_session_feed(s, ids, 3, &err), &err, 0, 1);
			assert_non_null(strstr(err.message, names[v]));
			err = (jit_error){ 0 };
			expect_refusal(jit_session_score(s, ids, 3, logprob, &err), &err, 0, 1);
			assert_null(jit_session_logits(s, NULL));
			jit_session_close(s);
		}
		jit_model_close(m);
	}
}

/* Attention that looks at all tokens alike, and a hidden number that is too large once more than a fifth of the tokens
 * so far are of one kind. */
enum { HEAVY = 9, LIGHT = 1 };
static void overflow_later(uint8_t *file)
{
	float *e = numbers(file, "model.embed_tokens.weight"),
	      *norm = numbers(file, "model.layers.0.input_layernorm.weight"),
	      *v = numbers(file, "model.layers.0.self_attn.v_proj.weight"),
	      *o = numbers(file, "model.layers.0.self_attn.o_proj.weight");

	memset(numbers(file, "model.layers.0.self_attn.q_proj.weight"), 0, 4 * HIDDEN * sizeof(float));
	memset(v, 0, 2 * HIDDEN * sizeof *v);
	memset(o, 0, 4 * HIDDEN * sizeof *o);
	for (int i = 0; i < VOCAB; i++)
		e[i * HIDDEN + 3] = i == HEAVY;
	for (int i = 0; i < HIDDEN; i++) {
		norm[i] = 1;
		e[HEAVY * HIDDEN + i] = i == 3;
	}
	v[3] = 5e18f; /* of HEAVY: 1e19 */
	o[0] = (float)(3.402e38 / 1e19 / 0.2);
}

/* HEAVY comes often enough, in a pattern that guesses follow. */
static int32_t pattern(size_t i) { return i < 24 ? (int32_t)(i % 7) + 1 : i % 3 ? (int32_t)(i % 3) : HEAVY; }

static size_t first_heavy(void)
{
	for (size_t i = 0, heavy = 0;; i++)
		if ((double)(heavy += pattern(i) == HEAVY) / (double)(i + 1) > 0.2)
			return i;
}

/* Tokens are chosen as the pattern has them, or otherwise from `leave` on; the error comes at the same token whether
 * tokens were guessed or not. */
static size_t run_until_error(jit_model *m, int speculate, size_t leave, jit_error *err, float last[VOCAB],
                              uint64_t *accepted)
{
	enum { MAX = 160, FED = 30 };
	int32_t ids[MAX], id;
	jit_session *s = open_session(m, speculate);
	jit_session_stats stats = JIT_SESSION_STATS();
	int status;

	for (size_t i = 0; i < MAX; i++)
		ids[i] = i < leave ? pattern(i) : LIGHT;
	session_force(s, ids, MAX);
	assert_int_equal(jit_session_feed(s, ids, FED, err), JIT_OK);
	while ((status = jit_session_next(s, &id, err)) == JIT_OK && jit_session_length(s) < MAX)
		memcpy(last, jit_session_logits(s, NULL) ? jit_session_logits(s, NULL) : last, VOCAB * sizeof *last);
	size_t length = jit_session_length(s);
	if (status != JIT_OK) {
		jit_error again = { 0 };
		expect_refusal(status, err, length - 1, ids[length - 1]);
		assert_int_equal(jit_session_next(s, &id, &again), status); /* asked again, it says the same */
		assert_string_equal(again.message, err->message);
	}
	jit_session_get_stats(s, &stats, NULL);
	*accepted = stats.accepted;
	jit_session_close(s);
	return length;
}

static void test_guesses(void **state)
{
	size_t at = first_heavy();
	uint64_t accepted;
	(void)state;
	assert_true(at > 40 && at < 120);
	jit_model *m = open_changed(overflow_later, "cpu");
	for (size_t leave = at - 2; leave <= at + 1; leave++) {
		float want[VOCAB] = { 0 };
		jit_error err = { 0 };
		size_t length = run_until_error(m, JIT_SPECULATE_OFF, leave, &err, want, &accepted);
		assert_int_equal(length, leave > at ? at + 1 : 160);
		for (int k = 4; k <= 16; k *= 2) {
			float got[VOCAB] = { 0 };
			jit_error e = { 0 };
			assert_int_equal(run_until_error(m, k, leave, &e, got, &accepted), length);
			assert_string_equal(e.message, err.message);
			assert_memory_equal(got, want, sizeof want);
			assert_true(accepted > 10);
		}
	}
	jit_model_close(m);
}

/* One bad number anywhere in rows of every length. */
static void test_scan(void **state)
{
	static const float values[] = { NAN, INFINITY, -INFINITY };
	enum { MAX = 2200 };
	static float row[MAX];
	(void)state;

	for (uint32_t n = 1; n <= MAX; n = n < 70 || n % 1024 > 1020 || n % 1024 < 4 ? n + 1 : n + 37) {
		for (uint32_t i = 0; i < n; i++)
			row[i] = i % 2 ? 3.4e38f : i % 3 ? -1e-45f : -3.4e38f;
		assert_int_equal(logits_first_bad(row, n), n);
		for (uint32_t i = 0; i < n; i++) {
			float kept = row[i];
			row[i] = values[i % 3];
			assert_int_equal(logits_first_bad(row, n), i);
			assert_int_equal(logits_first_bad(row, i), i);
			row[i] = kept;
		}
	}
}

/* Against long doubles of the C library, over rows of every shape. */
static void test_log_probability(void **state)
{
	enum { MAX = 3000 };
	static float row[MAX];
	uint32_t r = 7;
	(void)state;

	for (uint32_t n = 1; n <= MAX; n = n < 40 ? n + 1 : n * 5 / 3)
		for (int kind = 0; kind < 6; kind++) {
			static const float width[] = { 0, 1e-3f, 1, 30, 1000, 3e38f };
			long double sum = 0, max = -INFINITY;
			for (uint32_t i = 0; i < n; i++) {
				r = r * 1664525u + 1013904223u;
				row[i] = ((float)(r >> 8) / 0x1p23f - 1) * width[kind];
				max = row[i] > max ? (long double)row[i] : max;
			}
			for (uint32_t i = 0; i < n; i++)
				sum += expl((long double)row[i] - max);
			for (uint32_t i = 0; i < n; i += 1 + n / 7) {
				long double want = (long double)row[i] - max - logl(sum),
					    tolerance = fabsl(want) * 0x1p-24L + 0x1p-50L;
				float got = logits_log_probability(row, n, (int32_t)i);
				if (want < -3.4e38L ? got > -3.4e38f : fabsl((long double)got - want) > tolerance)
					fail_msg("row of %u, kind %d, entry %u: %.9g, expected %.9Lg", n, kind, i,
					         (double)got, want);
			}
		}
}

static int leave(void **state)
{
	char path[100];
	(void)state;
	snprintf(path, sizeof path, "%s/config.json", dir);
	unlink(path);
	snprintf(path, sizeof path, "%s/model.safetensors", dir);
	unlink(path);
	return rmdir(dir);
}

/* A session of a batch is told, each time it is asked, and is what it was before the tokens; its neighbour has what it
 * has alone. */
static void test_batches(void **state)
{
	jit_error err = { 0 };
	int32_t ids[PROMPT], id;
	size_t n, told = 0;
	(void)state;

	bad_value = NAN;
	jit_model *m = open_changed(spoil_embedding, "cpu");
	jit_batch *b = jit_batch_open(
		m, &JIT_BATCH_OPTIONS(.context = 200, .threads = 1, .tokens = 16, .kv = JIT_KV_F32), &err);
	jit_session *alone = open_session(m, JIT_SPECULATE_OFF), *bad = jit_batch_session(b, NULL, &err),
		    *good = jit_batch_session(b, NULL, &err), *ready[2];
	fill(ids);
	assert_int_equal(jit_session_feed(alone, ids, PROMPT, &err), JIT_OK);
	assert_int_equal(jit_session_submit(good, ids, PROMPT, NULL, &err), JIT_OK);
	ids[17] = BAD;
	assert_int_equal(jit_session_submit(bad, ids, PROMPT, NULL, &err), JIT_OK);
	for (; told < 2; told += n)
		assert_int_equal(jit_batch_step(b, ready, 2, &n, &err), JIT_OK);
	for (int i = 0; i < 2; i++) {
		err = (jit_error){ 0 };
		expect_refusal(jit_session_next(bad, &id, &err), &err, 17, BAD);
	}
	assert_int_equal(jit_session_length(bad), 0);
	assert_memory_equal(jit_session_logits(good, &err), jit_session_logits(alone, &err), VOCAB * sizeof(float));
	fill(ids);
	assert_int_equal(jit_session_submit(bad, ids, PROMPT, NULL, &err), JIT_OK);
	for (n = 0; n == 0;)
		assert_int_equal(jit_batch_step(b, ready, 2, &n, &err), JIT_OK);
	assert_memory_equal(jit_session_logits(bad, &err), jit_session_logits(alone, &err), VOCAB * sizeof(float));
	jit_session_close(alone);
	jit_session_close(good);
	jit_session_close(bad);
	jit_batch_close(b);
	jit_model_close(m);
}

/* The models are good for something when nothing is spoilt. */
static void test_sound(void **state)
{
	jit_error err = { 0 };
	int32_t ids[PROMPT], id;
	(void)state;
	jit_model *m = open_changed(spoil_nothing, "cpu");
	jit_session *s = open_session(m, JIT_SPECULATE_OFF);
	fill(ids);
	ids[5] = BAD;
	assert_int_equal(jit_session_feed(s, ids, PROMPT, &err), JIT_OK);
	assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
	jit_session_close(s);
	jit_model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound),   cmocka_unit_test(test_prompts), cmocka_unit_test(test_output),
		cmocka_unit_test(test_guesses), cmocka_unit_test(test_scan),    cmocka_unit_test(test_log_probability),
		cmocka_unit_test(test_batches)
	};

	if (!mkdtemp(dir))
		return 1;
	return cmocka_run_group_tests(tests, NULL, leave);
}

/* tests/runtime/t_rules.c - what generation_config.json forbids behind some text: rows of tokens that come once, rows
 * that never come, tokens that do not begin an answer; and the texts that end one. In sessions, in batches, with draft
 * tokens, and with a grammar.
 *
 * The witness is a plain loop over the whole text for every token of the vocabulary. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "include/jitrun_grammar.h"
#include "include/jitrun_tokens.h"
#include "runtime/model/model.h"
#include "tests/runtime/tiny_model.h"

/* Tokens 0 to 23 spell the letters a to x, 24 ends a text. */
enum { LETTERS = 24, END = LETTERS, VOCAB = LETTERS + 1, MAX = 200, CHOICES = 30 };
static char dir[] = "/tmp/t_rules-XXXXXX";
static const struct tiny_model shape = {
	.arch = "llama",
	.layers = 1,
	.hidden = 32,
	.ffn = 32,
	.heads = 1,
	.kv_heads = 1,
	.head_dim = 32,
	.vocab = VOCAB,
	.type = DTYPE_F32
};

struct rules_case {
	const char *json;
	int no_repeat;
	int word[4][5]; /* a length, and so many tokens */
	bool has_first, first[VOCAB];
};

/* ---- the witness */

static bool forbidden(const struct rules_case *a, const int32_t *text, int n, bool begins, int32_t id)
{
	if (begins && a->first[id])
		return true;
	/* the row that would end with it, anywhere before */
	for (int from = 0; a->no_repeat && from + a->no_repeat <= n; from++) {
		int same = text[from + a->no_repeat - 1] == id;
		for (int k = 0; k + 1 < a->no_repeat; k++)
			same += text[from + k] == text[n - a->no_repeat + 1 + k];
		if (same == a->no_repeat)
			return true;
	}
	for (int w = 0; w < 4; w++) {
		const int length = a->word[w][0];
		int same = length && length <= n && a->word[w][length] == id;
		for (int k = 1; k < length && same; k++)
			same += a->word[w][k] == text[n - length + k];
		if (length && same == length)
			return true;
	}
	return false;
}

/* ---- ways to choose */

enum way { ALONE, DRAFTS_4, DRAFTS_16, BATCH, WAYS };
struct run {
	enum way way;
	jit_session *s, *other; /* other: computed along in a batch */
	jit_batch *b;
};

static void open_run(struct run *r, jit_model *m, enum way way, float temperature)
{
	const jit_logit_bias no_end = { END, -INFINITY };
	const jit_sampling p =
		JIT_SAMPLING(.temperature = temperature, .seed = 7, .logit_bias = &no_end, .n_logit_bias = 1);
	jit_error err = { 0 };

	*r = (struct run){ .way = way };
	if (way == BATCH) {
		r->b = jit_batch_open(m, &JIT_BATCH_OPTIONS(.threads = 1, .context = MAX), &err);
		r->s = r->b ? jit_batch_session(r->b, &p, &err) : NULL;
		r->other = r->b ? jit_batch_session(r->b, &p, &err) : NULL;
	} else {
		r->s = jit_session_open(m,
		                        &JIT_SESSION_OPTIONS(.context = MAX, .threads = 1, .sampling = &p,
		                                             .speculate = way == ALONE      ? JIT_SPECULATE_OFF
		                                                          : way == DRAFTS_4 ? 4
		                                                                            : 16),
		                        &err);
	}
	if (!r->s)
		fail_msg("%s", err.message);
}

static uint64_t drafted; /* by all runs */

static void close_run(struct run *r)
{
	jit_session_stats stats = JIT_SESSION_STATS();

	assert_int_equal(jit_session_get_stats(r->s, &stats, NULL), JIT_OK);
	drafted += stats.drafted;
	jit_session_close(r->s);
	jit_session_close(r->other);
	jit_batch_close(r->b);
}

static void append(struct run *r, const int32_t *ids, size_t n)
{
	jit_error err = { 0 };

	if (r->b && jit_session_length(r->other) == 0)
		assert_int_equal(jit_session_submit(r->other, ids, n, NULL, &err), JIT_OK);
	const int status = r->b ? jit_session_submit(r->s, ids, n, NULL, &err) : jit_session_feed(r->s, ids, n, &err);
	if (status != JIT_OK)
		fail_msg("%s", err.message);
}

static void compute(struct run *r)
{
	jit_error err = { 0 };
	int32_t id;

	for (bool due = r->b; due;) {
		jit_session *ready[2];
		size_t n;
		if (jit_batch_pending(r->b) == 0)
			break;
		assert_int_equal(jit_batch_step(r->b, ready, 2, &n, &err), JIT_OK);
		for (size_t i = 0; i < n; i++) {
			due &= ready[i] != r->s;
			if (ready[i] == r->other && jit_session_length(r->other) < MAX)
				jit_session_next(r->other, &id, &err); /* or nothing is left to choose */
		}
	}
}

/* ---- one run, token by token */

/* What the grammar "([a-l][m-x])*" leaves of a text with so many letters. */
static bool in_grammar(int n, int32_t id) { return id < LETTERS && (n % 2 == 0 ? id < 12 : id >= 12); }

static int32_t choose_one(struct run *r, const struct rules_case *a, bool begins, bool greedy, int of_grammar)
{
	const int n = (int)jit_session_length(r->s);
	jit_error err = { 0 };
	int32_t id, best = -1;

	compute(r);
	const float *given = jit_session_logits(r->s, &err);
	float logits[VOCAB];
	assert_non_null(given);
	memcpy(logits, given, sizeof logits);
	for (int32_t i = 0; i < LETTERS; i++) {
		if (forbidden(a, jit_session_ids(r->s), n, begins, i) ||
		    (of_grammar >= 0 && !in_grammar(of_grammar, i)))
			logits[i] = -INFINITY;
		else if (best < 0 || logits[i] > logits[best])
			best = i;
	}
	const int status = jit_session_next(r->s, &id, &err);
	if (best < 0) {
		assert_int_equal(status, JIT_ERROR_ARGUMENT);
		assert_non_null(strstr(err.message, "no token may follow"));
		return -1;
	}
	if (status != JIT_OK)
		fail_msg("%s", err.message);
	if (id == END || logits[id] == -INFINITY || (greedy && id != best))
		fail_msg("%s: token %d behind %d, way %d, expected %d", a->json, id, n, r->way, best);
	return id;
}

static int choose(struct run *r, const struct rules_case *a, bool greedy, bool grammar, int from, int to)
{
	for (int i = from; i < to; i++)
		if (choose_one(r, a, i == from, greedy, grammar ? i : -1) < 0)
			return i;
	return to;
}

/* A prompt, an answer, more of the prompt, another answer; and the half of that once more. Gives the text. */
static int whole_run(jit_model *m, const struct rules_case *a, enum way way, float temperature, bool grammar,
                     int32_t text[MAX])
{
	static const int32_t prompt[] = { 1, 14, 1, 14, 3, 20, 1 }, more[] = { 2, 15 };
	const bool greedy = !(temperature > 0);
	jit_error err = { 0 };
	struct run r;

	open_run(&r, m, way, temperature);
	append(&r, prompt, 7);
	choose(&r, a, greedy, false, 0, CHOICES);
	append(&r, more, 2);
	if (grammar)
		assert_int_equal(jit_session_set_grammar(r.s, JIT_GRAMMAR_REGEX, "([a-l][m-x])*", 13, &err), JIT_OK);
	const size_t begin = jit_session_length(r.s);
	const int made = choose(&r, a, greedy, grammar, 0, CHOICES);
	memcpy(text, jit_session_ids(r.s), (begin + (size_t)made) * sizeof *text);
	/* from the middle, or the beginning, once more: what is fed begins another answer */
	for (int half = made / 2; half >= (grammar ? 1 : 0); half -= made / 2 ? made / 2 : 1) {
		const size_t at = begin + (size_t)half;
		assert_int_equal(jit_session_rewind(r.s, at - 1, &err), JIT_OK);
		append(&r, &text[at - 1], 1);
		const int again = choose(&r, a, greedy, grammar, half, made);
		if (!a->has_first || half == 0) {
			assert_int_equal(again, made);
			assert_memory_equal(jit_session_ids(r.s), text, (begin + (size_t)made) * sizeof *text);
		}
	}
	close_run(&r);
	return (int)begin + made;
}

static jit_model *open_with(const char *generation_config, jit_error *err)
{
	*err = (jit_error){ 0 };
	tiny_write(dir, "generation_config.json", generation_config, strlen(generation_config));
	return jit_model_open(dir, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1), err);
}

static const struct rules_case rules[] = {
	{ .json = "{\"no_repeat_ngram_size\": 0}" },
	{ .json = "{\"no_repeat_ngram_size\": 1}", .no_repeat = 1 }, /* each token once: soon none is left */
	{ .json = "{\"no_repeat_ngram_size\": 2}", .no_repeat = 2 },
	{ .json = "{\"no_repeat_ngram_size\": 4}", .no_repeat = 4 },
	{ .json = "{\"no_repeat_ngram_size\": 1000}", .no_repeat = 1000 },
	{ .json = "{\"bad_words_ids\": [[1, 14], [3, 3, 3], [99, 1], [2, -4, 1]]}",
	  .word = { { 2, 1, 14 }, { 3, 3, 3, 3 } } },
	{ .json = "{\"begin_suppress_tokens\": [0,1,2,3,4,5,6,7,8,9,13,14,15,16,17,18,19,20,21,22,24,77,-1]}",
	  .has_first = true,
	  .first = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1 } },
	{ .json = "{\"no_repeat_ngram_size\": 3.0, \"bad_words_ids\": [[7, 20], [20, 7], [9, 14, 9], [4, 4]], "
	          "\"begin_suppress_tokens\": [5, 6]}",
	  .no_repeat = 3,
	  .word = { { 2, 7, 20 }, { 2, 20, 7 }, { 3, 9, 14, 9 }, { 2, 4, 4 } },
	  .has_first = true,
	  .first = { [5] = true, [6] = true } },
};

static void rules_are_kept(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		jit_error err;
		jit_model *m = open_with(rules[i].json, &err);
		if (!m)
			fail_msg("%s: %s", rules[i].json, err.message);
		assert_null(m->file.sampling.not_done);
		for (int kind = 0; kind < 4; kind++) {
			int32_t text[WAYS][MAX];
			int n[WAYS];
			for (enum way way = 0; way < WAYS; way++) {
				n[way] = whole_run(m, &rules[i], way, kind & 1 ? 1.3f : 0, kind & 2, text[way]);
				assert_int_equal(n[way], n[ALONE]);
				assert_memory_equal(text[way], text[ALONE], (size_t)n[way] * sizeof **text);
			}
		}
		jit_model_close(m);
	}
	assert_true(drafted > 100);
}

/* A copy of a session goes on as the session does: it stands within an answer. */
static void forks_go_on(void **state)
{
	const struct rules_case *a = &rules[6];
	const int32_t prompt[] = { 1, 2, 3 };
	jit_error err;
	jit_model *m = open_with(a->json, &err);
	(void)state;

	for (int chosen = 0; chosen < 3; chosen++) {
		struct run r, fork = { 0 };
		open_run(&r, m, ALONE, 0);
		append(&r, prompt, 3);
		choose(&r, a, true, false, 0, chosen);
		fork.s = jit_session_fork(
			r.s,
			&JIT_SESSION_OPTIONS(.context = MAX, .threads = 1,
		                             .sampling =
		                                     &JIT_SAMPLING(.logit_bias = &(jit_logit_bias){ END, -INFINITY },
		                                                   .n_logit_bias = 1)),
			&err);
		assert_non_null(fork.s);
		for (int i = chosen; i < 8; i++)
			assert_int_equal(choose_one(&r, a, i == 0, true, -1), choose_one(&fork, a, i == 0, true, -1));
		close_run(&fork);
		close_run(&r);
	}
	jit_model_close(m);
}

/* ---- texts that end an answer */

static void append_text(jit_session *s, int32_t id, char *out)
{
	size_t n;
	const char *text = jit_session_text(s, id, &n, NULL);

	assert_non_null(text);
	strncat(out, text, n);
}

static void check_stop(jit_model *m, const char *const *texts, size_t n, const char *want, int found)
{
	static const int32_t said[] = { 0, 1, 2, 3, 4, 5 }; /* abcdef */
	struct run r;
	jit_error err = { 0 };

	for (enum way way = 0; way < WAYS; way += BATCH) {
		char out[16] = "";
		open_run(&r, m, way, 0);
		if (texts || n)
			assert_int_equal(jit_session_set_stop(r.s, texts, n, &err), JIT_OK);
		for (size_t i = 0; i < 6; i++)
			append_text(r.s, said[i], out);
		append_text(r.s, -1, out);
		assert_string_equal(out, want);
		assert_int_equal(jit_session_stopped(r.s), found);
		assert_int_equal(jit_session_set_stop(r.s, NULL, 0, &err), JIT_OK); /* the model's again */
		assert_int_equal(jit_session_stopped(r.s), -1);
		out[0] = 0;
		for (size_t i = 0; i < 6; i++)
			append_text(r.s, said[i], out);
		append_text(r.s, -1, out);
		assert_string_equal(out, jit_model_stop(m, 0) ? "ab" : "abcdef");
		close_run(&r);
	}
}

static void stop_strings_end_answers(void **state)
{
	static const char *const own[] = { "ef" };
	jit_error err;
	(void)state;

	jit_model *m = open_with("{\"stop_strings\": [\"zz\", \"cd\"]}", &err);
	assert_non_null(m);
	assert_null(m->file.sampling.not_done);
	assert_string_equal(jit_model_stop(m, 0), "zz");
	assert_string_equal(jit_model_stop(m, 1), "cd");
	assert_null(jit_model_stop(m, 2));
	check_stop(m, NULL, 0, "ab", 1);
	check_stop(m, own, 1, "abcd", 0); /* a caller's texts take their place */
	jit_model_close(m);
	m = open_with("{\"stop_strings\": \"cd\"}", &err);
	check_stop(m, NULL, 0, "ab", 0);
	jit_model_close(m);
	m = open_with("{\"stop_strings\": []}", &err);
	assert_null(jit_model_stop(m, 0));
	check_stop(m, NULL, 0, "abcdef", -1);
	check_stop(m, own, 1, "abcd", 0);
	jit_model_close(m);
	/* a control token has no text, and ends the answer itself */
	m = open_with("{\"stop_strings\": [\"<stop>\"]}", &err);
	assert_null(jit_model_stop(m, 0));
	assert_int_equal(jit_model_is_end(m, END), 1);
	jit_model_close(m);
}

static void wrong_values_are_refused(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"begin_suppress_tokens\": 5}", "begin_suppress_tokens" },
		{ "{\"begin_suppress_tokens\": [1, \"a\"]}", "begin_suppress_tokens" },
		{ "{\"no_repeat_ngram_size\": -1}", "no_repeat_ngram_size" },
		{ "{\"no_repeat_ngram_size\": 1.5}", "no_repeat_ngram_size" },
		{ "{\"no_repeat_ngram_size\": \"3\"}", "no_repeat_ngram_size" },
		{ "{\"bad_words_ids\": [[1, 2], [1, \"2\"]]}", "bad_words_ids" },
		{ "{\"bad_words_ids\": [[1, 2.5]]}", "bad_words_ids" },
		{ "{\"stop_strings\": 5}", "stop_strings" },
		{ "{\"stop_strings\": [\"a\", \"\"]}", "stop_strings" },
		{ "{\"stop_strings\": [\"a\", null]}", "stop_strings" },
	};
	jit_error err;
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_null(open_with(rows[i][0], &err));
		if (!strstr(err.message, rows[i][1]) || !strstr(err.message, "expected"))
			fail_msg("%s: %s", rows[i][0], err.message);
	}
}

static int leave(void **state)
{
	char command[100];
	(void)state;

	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

static void write_tokenizer(void)
{
	char json[1000] = "{\"added_tokens\":[{\"id\":24,\"content\":\"<stop>\",\"special\":true}],"
			  "\"model\":{\"type\":\"BPE\",\"vocab\":{";

	for (int i = 0; i < LETTERS; i++)
		sprintf(json + strlen(json), "%s\"%c\":%d", i ? "," : "", 'a' + i, i);
	strcat(json, "},\"merges\":[]}}");
	tiny_write(dir, "tokenizer.json", json, strlen(json));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(rules_are_kept), cmocka_unit_test(forks_go_on),
		                            cmocka_unit_test(stop_strings_end_answers),
		                            cmocka_unit_test(wrong_values_are_refused) };

	if (!mkdtemp(dir))
		return 1;
	tiny_write_hf(dir, &shape);
	write_tokenizer();
	return cmocka_run_group_tests(tests, NULL, leave);
}

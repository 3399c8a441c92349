/* tests/runtime/t_session_grammar.c - sessions whose choices keep to a grammar: texts are right whatever the sampling,
 * drafts and rewinds change nothing, logits stay as they are, and refusals leave the session alone. */
#include <jansson.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_grammar.h"
#include "runtime/session/session.h"
#include "runtime/session/session_share.h"
#include "tests/support/shared.h"

enum { MAX = 480 };

static const char schema[] =
	"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":8},"
	"\"age\":{\"type\":\"integer\",\"minimum\":3,\"maximum\":120},\"list\":{\"type\":\"array\","
	"\"items\":{\"enum\":[\"cat\",\"dog\"]},\"minItems\":1,\"maxItems\":2}},\"required\":"
	"[\"name\",\"age\",\"list\"],\"additionalProperties\":false}";
static jit_model *model;

static int open_model(void **state)
{
	char path[1024];
	jit_error err = { 0 };

	model = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                       &JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF), &err);
	assert_non_null(model);
	return 0;
}

static int close_model(void **state)
{
	jit_model_close(model);
	return 0;
}

static jit_session *open_session(uint64_t seed, int speculate)
{
	jit_error err = { 0 };
	const jit_sampling sampling = JIT_SAMPLING(.temperature = 1.2f, .seed = seed);
	jit_session *s = jit_session_open(
		model,
		&JIT_SESSION_OPTIONS(.context = 600, .threads = 1, .sampling = &sampling, .speculate = speculate),
		&err);

	if (!s)
		fail_msg("%s", err.message);
	assert_int_equal(jit_session_feed_text(s, "Once upon a time", 16, 0, &err), JIT_OK);
	return s;
}

/* Its text behind the prompt. */
static char *write_text(jit_session *s, size_t *n_ids)
{
	jit_error err = { 0 };
	char *text = calloc(MAX * 64, 1);
	size_t n = 0, length;
	int32_t id;

	assert_non_null(text);
	for (*n_ids = 0; *n_ids < MAX; ++*n_ids) {
		if (jit_session_next(s, &id, &err) != JIT_OK)
			fail_msg("%s, behind %s", err.message, text);
		if (jit_model_is_end(model, id))
			break;
		const char *piece = jit_session_text(s, id, &length, &err);
		memcpy(text + n, piece, length);
		n += length;
	}
	return text;
}

static void check_text(const char *text, uint64_t seed)
{
	json_error_t e;
	json_t *root = json_loads(text, 0, &e);
	size_t i;
	json_t *item;

	if (!root)
		fail_msg("seed %lu: %s: %s", (unsigned long)seed, e.text, text);
	assert_int_equal(json_object_size(root), 3);
	assert_in_range(json_integer_value(json_object_get(root, "age")), 3, 120);
	assert_true(json_is_string(json_object_get(root, "name")));
	assert_in_range(json_array_size(json_object_get(root, "list")), 1, 2);
	json_array_foreach(json_object_get(root, "list"), i, item)
	{
		assert_true(strcmp(json_string_value(item), "cat") == 0 || strcmp(json_string_value(item), "dog") == 0);
	}
	json_decref(root);
}

/* The model knows nothing of JSON: all that is right comes from the grammar. With draft tokens and without, the same.
 */
static void test_right(void **state)
{
	for (uint64_t seed = 1; seed <= (test_quick() ? 4 : 12); seed++) {
		char *text[2];
		size_t n[2];
		for (int k = 0; k < 2; k++) {
			jit_error err = { 0 };
			jit_session *s = open_session(seed, k ? 4 : JIT_SPECULATE_OFF);
			assert_int_equal(jit_session_grammar_complete(s), -1);
			if (jit_session_set_grammar(s, JIT_GRAMMAR_JSON_SCHEMA, schema, sizeof schema - 1, &err) !=
			    JIT_OK)
				fail_msg("%s", err.message);
			assert_int_equal(jit_session_grammar_complete(s), 0);
			text[k] = write_text(s, &n[k]);
			assert_true(n[k] < MAX);
			assert_int_equal(jit_session_grammar_complete(s), 1);
			jit_session_close(s);
		}
		check_text(text[0], seed);
		assert_string_equal(text[0], text[1]);
		free(text[0]);
		free(text[1]);
	}
}

static void test_rewind(void **state)
{
	jit_error err = { 0 };
	size_t n, again;
	jit_session *s = open_session(5, JIT_SPECULATE_OFF);
	size_t prompt = jit_session_length(s);

	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_JSON_SCHEMA, schema, sizeof schema - 1, &err), JIT_OK);
	char *text = write_text(s, &n);
	int32_t *ids = malloc((n + 1) * sizeof *ids);
	memcpy(ids, jit_session_ids(s) + prompt, n * sizeof *ids);
	for (size_t back = 0; back + 1 < n; back += n / 6 + 1) {
		assert_int_equal(jit_session_rewind(s, prompt + back, &err), JIT_OK);
		assert_int_equal(jit_session_feed(s, ids + back, 1, &err), JIT_OK); /* part of the text, too */
		free(write_text(s, &again));
		assert_int_equal(again, n - back - 1);
		assert_memory_equal(jit_session_ids(s) + prompt, ids, n * sizeof *ids);
	}
	/* What the text does not allow is not fed, and nothing has changed. */
	assert_int_equal(jit_session_rewind(s, prompt, &err), JIT_OK);
	assert_int_equal(jit_session_feed_text(s, "[1]", 3, 0, &err), JIT_ERROR_ARGUMENT);
	assert_string_equal(err.message, "the grammar does not allow this token here");
	assert_int_equal(jit_session_length(s), prompt);
	assert_int_equal(jit_session_feed(s, ids, n, &err), JIT_OK);
	assert_int_equal(jit_session_grammar_complete(s), 1);
	free(ids);
	free(text);
	jit_session_close(s);
}

/* The logits are the model's own, and without a grammar the session is as it was. */
static void test_logits(void **state)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	jit_session *a = open_session(7, JIT_SPECULATE_OFF), *b = open_session(7, JIT_SPECULATE_OFF);
	int32_t x, y;

	assert_int_equal(jit_model_get_info(model, &info, &err), JIT_OK);
	assert_int_equal(jit_session_set_grammar(a, JIT_GRAMMAR_REGEX, "[0-9]+", 6, &err), JIT_OK);
	assert_memory_equal(jit_session_logits(a, &err), jit_session_logits(b, &err),
	                    (size_t)info.vocab * sizeof(float));
	assert_int_equal(jit_session_next(a, &x, &err), JIT_OK);
	assert_int_equal(jit_session_set_grammar(a, JIT_GRAMMAR_NONE, NULL, 0, &err), JIT_OK);
	/* As if it had never been there. */
	size_t n = jit_session_length(b);
	int32_t last = jit_session_ids(b)[n - 1];
	assert_int_equal(jit_session_rewind(a, n - 1, &err), JIT_OK);
	assert_int_equal(jit_session_feed(a, &last, 1, &err), JIT_OK);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(jit_session_next(a, &x, &err), JIT_OK);
		assert_int_equal(jit_session_next(b, &y, &err), JIT_OK);
		assert_int_equal(x, y);
	}
	jit_session_close(a);
	jit_session_close(b);
}

static void test_expression(void **state)
{
	jit_error err = { 0 };
	size_t n;
	jit_session *s = open_session(2, JIT_SPECULATE_OFF);

	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_REGEX, "(yes|no)[.!]", 12, &err), JIT_OK);
	char *text = write_text(s, &n);
	assert_true(strcmp(text, "yes.") == 0 || strcmp(text, "yes!") == 0 || strcmp(text, "no.") == 0 ||
	            strcmp(text, "no!") == 0);
	free(text);
	jit_session_close(s);
}

static void test_rules(void **state)
{
	static const char rules[] =
		"root ::= pair (\", \" pair){1,2}\npair ::= [a-c] \"=\" (\"(\" pair \")\" | [0-9])\n";
	jit_error err = { 0 };
	size_t n, at = 0, pairs = 0, open;
	jit_session *s = open_session(2, JIT_SPECULATE_AUTO);

	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_GBNF, rules, sizeof rules - 1, &err), JIT_OK);
	char *text = write_text(s, &n);
	for (;; at += 2, pairs++) {
		for (open = 0; text[at] >= 'a' && text[at] <= 'c' && text[at + 1] == '=' && text[at + 2] == '(';
		     at += 3)
			open++;
		assert_true(text[at] >= 'a' && text[at] <= 'c' && text[at + 1] == '=');
		assert_in_range(text[at + 2], '0', '9');
		for (at += 3; open; open--)
			assert_int_equal(text[at++], ')');
		if (strncmp(text + at, ", ", 2) != 0)
			break;
	}
	assert_int_equal(strlen(text), at);
	assert_in_range(pairs + 1, 2, 3);
	free(text);
	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_GBNF, "root ::= x", 10, &err), JIT_ERROR_ARGUMENT);
	assert_string_equal(err.message, "the grammar, line 1, column 10: the rule x is used but not defined");
	jit_session_close(s);
}

/* Of rules that can begin with themselves. */
static void test_lark(void **state)
{
	static const char lark[] = "start: list\nlist: item | list \",\" item\nitem: /[a-c]{2}/\n";
	jit_error err = { 0 };
	size_t n;
	jit_session *s = open_session(3, JIT_SPECULATE_AUTO);

	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_LARK, lark, sizeof lark - 1, &err), JIT_OK);
	char *text = write_text(s, &n);
	for (size_t i = 0; text[i]; i++)
		assert_non_null(strchr(i % 3 == 2 ? "," : "abc", text[i]));
	assert_true(n == MAX || strlen(text) % 3 == 2);
	free(text);
	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_LARK, "start: a", 8, &err), JIT_ERROR_ARGUMENT);
	assert_string_equal(err.message, "the grammar, line 1, column 8: this name is used but not defined");
	jit_session_close(s);
}

/* Three tokens that are not the control token, then it, twice: with draft tokens and without, the same. */
static void test_tokens(void **state)
{
	static const char rules[] = "root ::= (!<|begin_of_text|>{3} <|begin_of_text|>){2} \"ab\"",
			  mark[] = "<|begin_of_text|>";
	jit_error err = { 0 };
	int32_t *mark_id, ids[20], id;
	size_t n_mark;
	(void)state;

	assert_int_equal(jit_model_tokenize(model, mark, sizeof mark - 1, 0, 1, &mark_id, &n_mark, &err), JIT_OK);
	assert_int_equal(n_mark, 1);
	for (uint64_t seed = 1; seed <= 4; seed++)
		for (int k = 0; k < 2; k++) {
			jit_session *s = open_session(seed, k ? 4 : JIT_SPECULATE_OFF);
			assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_GBNF, rules, sizeof rules - 1, &err),
			                 JIT_OK);
			char text[200] = "";
			for (size_t n = 0, length; n < 20; n++) {
				assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
				if (jit_model_is_end(model, id))
					break;
				assert_true((id == *mark_id) == (n == 3 || n == 7));
				assert_true(k == 0 || n >= 8 || ids[n] == id);
				ids[n] = id;
				const char *piece = jit_session_text(s, id, &length, &err);
				strncat(text, piece, length);
			}
			assert_true(strlen(text) >= 8 && strcmp(text + strlen(text) - 2, "ab") == 0);
			assert_int_equal(jit_session_grammar_complete(s), 1);
			jit_session_close(s);
		}
	free(mark_id);
}

/* Control tokens that are part of a call's marks have their text there, and nowhere else. */
static void test_marks(void **state)
{
	static const char call[] = "{\"values\":\"json\",\"behind_name\":\"<|begin_of_text|>\",\"schema\":{}}",
			  mark[] = "<|begin_of_text|>";
	jit_error err = { 0 };
	int32_t *id, *name;
	size_t n, n_name;
	(void)state;

	assert_int_equal(jit_model_tokenize(model, mark, sizeof mark - 1, 0, 1, &id, &n, &err), JIT_OK);
	assert_int_equal(n, 1);
	assert_int_equal(jit_model_tokenize(model, "f", 1, 0, 0, &name, &n_name, &err), JIT_OK);
	for (int round = 0; round < 3; round++) { /* the first one makes the table of tokens */
		jit_session *s = open_session(2, JIT_SPECULATE_OFF);
		assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_CALL, call, sizeof call - 1, &err), JIT_OK);
		assert_int_equal(jit_session_feed(s, id, 1, &err), JIT_ERROR_ARGUMENT);
		assert_int_equal(jit_session_feed(s, name, n_name, &err), JIT_OK);
		assert_int_equal(jit_session_feed(s, id, 1, &err), JIT_OK);
		assert_int_equal(jit_session_feed(s, id, 1, &err), JIT_ERROR_ARGUMENT);
		assert_int_equal(jit_session_feed_text(s, "{\"a\":[\"", 7, 0, &err), JIT_OK);
		assert_int_equal(jit_session_feed_text(s, "x\"]}", 4, 0, &err), JIT_OK);
		assert_int_equal(jit_session_grammar_complete(s), 1);
		jit_session_close(s);
	}
	free(id);
	free(name);
}

static void test_refusals(void **state)
{
	jit_error err = { 0 };
	int32_t id;
	jit_session *s = open_session(2, JIT_SPECULATE_OFF);

	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_JSON_SCHEMA | JIT_GRAMMAR_ADDITIONAL, "{}", 2, &err),
	                 JIT_OK);
	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_REGEX, "[0-9]", 5, &err), JIT_OK);
	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_JSON_SCHEMA, "{\"format\":\"regex\"}", 18, &err),
	                 JIT_ERROR_UNSUPPORTED);
	assert_string_equal(err.message, "the schema at #/format: this format is not supported");
	assert_int_equal(jit_session_set_grammar(s, 17, "{}", 2, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_CALL, "{}", 2, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_CALL, "7", 1, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_REGEX, NULL, 0, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_REGEX | JIT_GRAMMAR_ADDITIONAL, "[0-9]", 5, &err),
	                 JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_REGEX, "[^\\s\\S]", 7, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_next(s, &id, &err), JIT_OK); /* by the first grammar still */
	assert_int_equal(jit_session_grammar_complete(s), 1);
	jit_session_close(s);
}

/* The text that comes with a schema which leaves no choice but of spelling, as a model that knows it writes it: what
 * must come is computed together. Passes, of tokens; out: the logits behind it all. */
static size_t passes_for(int speculate, const int32_t *ids, size_t n, float *logits, size_t vocab)
{
	static const char names[] =
		"{\"type\":\"object\",\"properties\":{\"country of origin\":{\"const\":\"Great "
		"Britain\"},\"favourite animal\":{\"const\":\"little elephants\"}},\"required\":"
		"[\"country of origin\",\"favourite animal\"],\"additionalProperties\":false}";
	jit_error err = { 0 };
	jit_session_stats stats = JIT_SESSION_STATS();
	jit_session *s = open_session(1, speculate);
	size_t prompt = jit_session_length(s);
	int32_t *all = malloc((prompt + n) * sizeof *all), id;

	assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_JSON_SCHEMA, names, sizeof names - 1, &err), JIT_OK);
	memcpy(all, jit_session_ids(s), prompt * sizeof *all);
	memcpy(all + prompt, ids, n * sizeof *all);
	session_force(s, all, prompt + n);
	for (size_t i = 0; i < n; i++) {
		if (jit_session_next(s, &id, &err) != JIT_OK)
			fail_msg("token %zu: %s", i, err.message);
		assert_int_equal(id, ids[i]);
	}
	assert_int_equal(jit_session_grammar_complete(s), 1);
	memcpy(logits, jit_session_logits(s, &err), vocab * sizeof *logits);
	assert_int_equal(jit_session_get_stats(s, &stats, &err), JIT_OK);
	jit_session_close(s);
	free(all);
	return stats.decode_passes;
}

static void test_forced(void **state)
{
	static const char text[] =
		"{\"country of origin\":\"Great Britain\",\"favourite animal\":\"little elephants\"}";
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	int32_t *ids;
	size_t n;

	assert_int_equal(jit_model_get_info(model, &info, &err), JIT_OK);
	assert_int_equal(jit_model_tokenize(model, text, sizeof text - 1, 0, 0, &ids, &n, &err), JIT_OK);
	size_t vocab = (size_t)info.vocab;
	float *plain = malloc(vocab * sizeof *plain), *drafted = malloc(vocab * sizeof *drafted);
	assert_int_equal(passes_for(JIT_SPECULATE_OFF, ids, n, plain, vocab), n);
	for (int width = 4; width <= 16; width *= 2) {
		size_t passes = passes_for(width, ids, n, drafted, vocab);
		if (passes * 3 > n * 2)
			fail_msg("%zu passes of %d for %zu tokens", passes, width, n);
		assert_memory_equal(plain, drafted, vocab * sizeof *plain);
	}
	free(plain);
	free(drafted);
	free(ids);
}

/* ---- masks that another thread finds */

struct finder {
	struct session_grammar *grammar;
	bool gone;
};
static bool is_gone(void *user) { return ((const struct finder *)user)->gone; }
static void *find(void *user)
{
	struct finder *f = user;
	session_grammar_find(f->grammar, is_gone, f);
	return NULL;
}

/* As a server does it, but for some of the tokens. */
static void lend(jit_session *s, bool gone)
{
	struct finder f = { .gone = gone };
	pthread_t thread;
	f.grammar = session_grammar_lend(s);
	assert_int_equal(pthread_create(&thread, NULL, find, &f), 0);
	pthread_join(thread, NULL);
	session_grammar_give(s, f.grammar);
	assert_true(gone || !session_grammar_is_due(s));
}

static const struct {
	int kind;
	const char *text;
} lent[] = { { JIT_GRAMMAR_JSON_SCHEMA, schema }, { JIT_GRAMMAR_REGEX, "[a-z ,.]*(cat|dog)[a-z ,]{3,60}" } };

/* The same tokens as in a session that does all by itself, and where the other thread gave up, as in one that waited.
 */
static void test_lent(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		const int kind = lent[i % 2].kind;
		const char *text = lent[i % 2].text;
		unsigned due = 0, cancelled = 0;
		jit_session *s[2];
		jit_error err = { 0 };
		for (int k = 0; k < 2; k++) {
			s[k] = open_session(i + 1, i & 2 ? JIT_SPECULATE_AUTO : JIT_SPECULATE_OFF);
			assert_int_equal(jit_session_set_grammar(s[k], kind, text, strlen(text), &err), JIT_OK);
		}
		session_grammar_defer(s[1]);
		for (unsigned n = 0; n < 120; n++) {
			int32_t id[2];
			const bool is_due = session_grammar_is_due(s[1]);
			due += is_due;
			if (is_due && n % 5 == 3) {
				lend(s[1], true);
				cancelled += jit_session_next(s[1], &id[1], &err) == JIT_ERROR_CANCELLED;
				err = (jit_error){ 0 };
				if (jit_session_length(s[1]) > jit_session_length(s[0]))
					assert_int_equal(jit_session_rewind(s[1], jit_session_length(s[0]), &err),
					                 JIT_OK);
			}
			if (session_grammar_is_due(s[1]) && n % 7 != 2)
				lend(s[1], false);
			const int status = jit_session_next(s[0], &id[0], &err);
			assert_int_equal(jit_session_next(s[1], &id[1], &err), status);
			if (status != JIT_OK || jit_model_is_end(model, id[0]))
				break;
			assert_int_equal(id[0], id[1]);
			if (n % 40 == 39)
				for (int k = 0; k < 2; k++)
					assert_int_equal(jit_session_rewind(s[k], jit_session_length(s[k]) - 9, &err),
					                 JIT_OK);
		}
		assert_true(due > 10 && session_grammar_cost(s[1]) > 0);
		printf("# %u masks were due, %u were given up\n", due, cancelled);
		for (int k = 0; k < 2; k++)
			jit_session_close(s[k]);
	}
}

/* Many together may keep no more than one. */
static void test_shared(void **state)
{
	static char text[1 << 20] = "{\"type\":\"object\",\"properties\":{";
	size_t n = strlen(text);
	(void)state;

	for (unsigned i = 0; i < 12000; i++)
		n += (size_t)sprintf(text + n, "\"p%05u\":{\"minimum\":%u}%s", i, i, i < 11999 ? "," : "}}");
	for (unsigned shares = 0; shares <= 128; shares += 64) {
		struct error err = { 0 };
		session_grammar_share(shares);
		struct session_grammar *g = session_grammar_open(model, JIT_GRAMMAR_JSON_SCHEMA, text, n,
		                                                 &(uint64_t){ SESSION_GRAMMAR_STEPS }, &err);
		session_grammar_share(0);
		assert_true(shares ? !g && err.code == ERROR_UNSUPPORTED : g != NULL);
		session_grammar_close(g);
	}
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),      cmocka_unit_test(test_rewind), cmocka_unit_test(test_logits),
		cmocka_unit_test(test_expression), cmocka_unit_test(test_lark),   cmocka_unit_test(test_rules),
		cmocka_unit_test(test_forced),     cmocka_unit_test(test_tokens), cmocka_unit_test(test_marks),
		cmocka_unit_test(test_refusals),   cmocka_unit_test(test_lent),   cmocka_unit_test(test_shared)
	};

	return cmocka_run_group_tests(tests, open_model, close_model);
}

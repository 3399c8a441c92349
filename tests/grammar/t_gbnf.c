/* tests/grammar/t_gbnf.c - grammars of rules, held to what llama.cpp allows in 26 of them, state by state, and to what
 * it takes for a grammar.
 *
 * Two things are otherwise on purpose: an answer is UTF-8 here, and `[^x]` takes the first byte of every character that
 * is not x, also where x begins with the same one. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "grammar/grammar.h"
#include "grammar/machine/machine.h"
#include "tests/support/shared.h"

enum { TOKENS = 512, TEXT_MAX = 1 << 12 };
static struct {
	char bytes[TOKENS][32];
	size_t n[TOKENS];
	json_t *all;
	struct vocabulary *v;
} there;

static bool is_end(size_t id) { return id == 2; }

static const char *piece(void *user, uint32_t id, size_t *n)
{
	*n = is_end(id) ? 0 : there.n[id];
	return there.bytes[id];
}

/* What rules can say of tokens. */
static uint32_t named(void *user, const char *text, size_t n)
{
	for (uint32_t id = 0; id < TOKENS; id++)
		if (there.n[id] == n && memcmp(there.bytes[id], text, n) == 0)
			return id;
	return UINT32_MAX;
}

static bool takes(void *user, uint32_t id)
{
	size_t at = 0;
	uint32_t code;

	for (unsigned length; at < there.n[id]; at += length)
		if (!(length = text_char(there.bytes[id] + at, there.n[id] - at, &code)) || code == 0)
			return false;
	return !is_end(id);
}

static const struct machine_tokens all_tokens = { NULL, TOKENS, named, takes };

static size_t from_hex(const char *text, uint8_t *out, size_t room)
{
	size_t n = strlen(text) / 2;
	unsigned byte;

	assert_true(n <= room);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
		out[i] = (uint8_t)byte;
	}
	return n;
}

static bool load(void)
{
	char path[1024], command[1200];
	struct error err = { 0 };

	if (there.all)
		return true;
	if (!shared_path(path, "data/samplers/grammar.json.gz"))
		return false;
	snprintf(command, sizeof command, "gzip -dc '%s'", path);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	there.all = json_loadf(f, 0, NULL);
	pclose(f);
	assert_non_null(there.all);
	const json_t *pieces = json_object_get(there.all, "pieces");
	assert_int_equal(json_array_size(pieces), TOKENS);
	for (size_t id = 0; id < TOKENS; id++)
		there.n[id] = from_hex(json_string_value(json_array_get(pieces, id)), (uint8_t *)there.bytes[id],
		                       sizeof there.bytes[id]);
	there.v = vocabulary_open(TOKENS, piece, NULL, &err);
	assert_non_null(there.v);
	return true;
}

/* Whether some text of UTF-8 begins so. */
static bool begins_text(const uint8_t *text, size_t n)
{
	static const uint8_t more[] = { 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf };
	uint32_t code;
	unsigned length;

	for (; n && (length = text_char(text, n, &code)); n -= length)
		text += length;
	if (n == 0 || n > 3)
		return n == 0;
	for (unsigned k = 0; k < 6 * 6 * 6; k++) {
		uint8_t whole[6] = { 0 };
		memcpy(whole, text, n);
		whole[n] = more[k % 6];
		whole[n + 1] = more[k / 6 % 6];
		whole[n + 2] = more[k / 36];
		if (text_char(whole, n + 3, &code) > n)
			return true;
	}
	return false;
}

struct walk {
	const char *grammar;
	uint8_t text[TEXT_MAX];
	size_t n;
};

/* What llama.cpp allows, as it is here. */
static bool expected(struct walk *w, const uint8_t *bits, size_t id)
{
	bool allowed = bits[id / 8] >> id % 8 & 1;

	memcpy(w->text + w->n, there.bytes[id], there.n[id]);
	if (!begins_text(w->text, w->n + there.n[id]))
		return false;
	if (strcmp(w->grammar, "root ::= [^\u00e9]+ \"!\"") == 0 && there.n[id] == 1 &&
	    (uint8_t)there.bytes[id][0] == 0xc3) /* of all but é: è and others begin like it */
		return w->n == 0 || begins_text(w->text, w->n + 1);
	return allowed;
}

static void compare(struct grammar *g, struct walk *w, const char *hex)
{
	uint8_t bits[TOKENS / 8];
	struct error err = { 0 };
	bool ends = false;
	const uint32_t *here = grammar_allowed(g, &ends, &err);

	if (!here)
		fail_msg("%s: %s", w->grammar, err.text);
	assert_int_equal(from_hex(hex, bits, sizeof bits), sizeof bits);
	for (size_t id = 0; id < TOKENS; id++) {
		bool want = is_end(id) ? bits[id / 8] >> id % 8 & 1 : expected(w, bits, id);
		bool have = is_end(id) ? ends : here[id / 32] >> id % 32 & 1;
		if (have != want)
			fail_msg("%s, behind \"%.*s\": token %zu is %s", w->grammar, (int)w->n, (char *)w->text, id,
			         have ? "allowed" : "forbidden");
	}
}

/* As far as its text is UTF-8; returns how many states there were. */
static unsigned follow(struct grammar *g, const char *grammar, const json_t *walk)
{
	const json_t *tokens = json_object_get(walk, "tokens"), *allowed = json_object_get(walk, "allowed");
	struct walk w = { .grammar = grammar };
	struct error err = { 0 };

	grammar_rewind(g, 0);
	for (size_t i = 0;; i++) {
		compare(g, &w, json_string_value(json_array_get(allowed, i)));
		if (i == json_array_size(tokens))
			return (unsigned)i + 1;
		size_t id = (size_t)json_integer_value(json_array_get(tokens, i));
		if (is_end(id))
			continue;
		memcpy(w.text + w.n, there.bytes[id], there.n[id]);
		w.n += there.n[id];
		struct grammar_token token = { (uint32_t)id, there.bytes[id], there.n[id] };
		assert_true(w.n < TEXT_MAX - 40);
		if (!begins_text(w.text, w.n))
			return (unsigned)i + 1;
		if (!grammar_take(g, &token, &err))
			fail_msg("%s: token %zu: %s", grammar, id, err.text);
	}
}

static void test_states(void **state)
{
	unsigned compared = 0, all = 0;
	const json_t *one, *walk;
	size_t i, k;
	(void)state;

	if (!load())
		skip();
	json_array_foreach(json_object_get(there.all, "grammars"), i, one)
	{
		const char *text = json_string_value(json_object_get(one, "grammar"));
		const json_t *walks = json_object_get(one, "walks");
		struct error err = { 0 };
		struct grammar *g = grammar_open(there.v, GRAMMAR_GBNF, text, strlen(text), &all_tokens, &err);
		json_array_foreach(walks, k, walk) all += (unsigned)json_array_size(json_object_get(walk, "allowed"));
		if (!g)
			fail_msg("%s: %s", text, err.text);
		json_array_foreach(walks, k, walk) compared += follow(g, text, walk);
		grammar_close(g);
	}
	printf("# %u states of %u are alike\n", compared, all);
	assert_int_equal(all, 1728);
	assert_int_equal(compared, 1671);
}

/* Refused here, and taken there: no text at all is right, or nothing is asked for. */
static bool is_house_refusal(const char *text) { return !*text || strcmp(text, "root ::= [z-a]") == 0; }
/* The other way round: rules that can begin with themselves. */
static bool is_house_grammar(const char *text)
{
	return strcmp(text, "root ::= a | b\na ::= b \"x\"\nb ::= a?") == 0 ||
	       strcmp(text, "root ::= a\na ::= \"\" a | \"x\"") == 0;
}

static void test_syntax(void **state)
{
	unsigned taken = 0, refused = 0;
	const json_t *one;
	size_t i;
	(void)state;

	if (!load())
		skip();
	json_array_foreach(json_object_get(there.all, "parse"), i, one)
	{
		const char *text = json_string_value(json_object_get(one, "grammar"));
		bool right = strcmp(json_string_value(json_object_get(one, "result")), "accepted") == 0;
		struct error err = { 0 };
		struct grammar *g = grammar_open(there.v, GRAMMAR_GBNF, text, strlen(text), &all_tokens, &err);
		if ((g != NULL) != ((right && !is_house_refusal(text)) || is_house_grammar(text)))
			fail_msg("%s: %s", text, g ? "taken" : err.text);
		if (g && right) {
			struct walk w = { .grammar = text };
			compare(g, &w, json_string_value(json_object_get(one, "allowed")));
		}
		grammar_close(g);
		taken += g != NULL;
		refused += g == NULL;
	}
	printf("# %u grammars taken, %u refused\n", taken, refused);
	assert_int_equal(taken, 16);
	assert_int_equal(refused, 19);
}

static void test_refusals(void **state)
{
	static const char *const rows[][2] = {
		{ "root ::= \"a", "the grammar, line 1, column 12: a literal without end" },
		{ "root ::= [a-\n", "the grammar, line 2, column 1: a set of characters without end" },
		{ "# one\nroot ::= \"\u00e9\" \"\\q\"",
		  "the grammar, line 2, column 16: an escape that there is not: known are "
		  "\\x \\u \\U \\t \\r \\n \\\\ \\\" \\[ \\]" },
		{ "root ::= \"\\ud800\"", "the grammar, line 1, column 17: an escape that is no character of Unicode" },
		{ "root ::= \"\\x4\"", "the grammar, line 1, column 14: an escape with too few hexadecimal digits" },
		{ "root ::= \"\xff\"", "the grammar, line 1, column 11: a byte that is not UTF-8" },
		{ "root ::= \"\\x00\"", "the grammar, line 1, column 15: the character 0, which no answer can have" },
		{ "root ::= \"x\"\nword ::= item\nitem ::= other-one",
		  "the grammar, line 3, column 10: the rule other-one is used but not defined" },
		{ "word ::= \"x\"",
		  "the grammar, line 1, column 13: there is no rule named root, with which a text begins" },
		{ "root = \"a\"", "the grammar, line 1, column 6: expected ::= behind the name of a rule" },
		{ "root ::= \"a\"{3,1}", "the grammar, line 1, column 18: a repetition whose most is below its least" },
		{ "root ::= \"a\"{2001}", "the grammar, line 1, column 18: more than 2000 repetitions" },
		{ "root ::= \"a\"{,3}", "the grammar, line 1, column 14: expected a number of repetitions" },
		{ "root ::= \"\"*", "the grammar, line 1, column 12: a repetition of nothing" },
		{ "root ::= (\"a\"", "the grammar, line 1, column 14: expected ) or another part of a group" },
		{ "root ::= \"a\")",
		  "the grammar, line 1, column 13: expected another part of the rule or the end of the line" },
		{ "root ::= \"a\" <think>",
		  "the grammar, line 1, column 14: a test of one whole token, and none are known" },
		{ "root ::= x\nx ::= ([a-z]{2000}){2000}",
		  "the grammar, line 2, column 1: with this rule the grammar is too "
		  "large, or there is no memory for it" },
		{ "root ::= \"a\" root", "the grammar is one that no text is right by" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = { 0 };
		struct machine *m = machine_of_gbnf(rows[i][0], strlen(rows[i][0]), NULL, &err);
		assert_null(m);
		assert_string_equal(err.text, rows[i][1]);
	}
}

static bool reads(struct machine *m, const char *text)
{
	uint32_t at = m->start;

	for (; *text && at != MACHINE_DEAD; text++)
		at = machine_step(m, at, (uint8_t)*text);
	return machine_ends(m, at);
}

/* A stack that would grow for ever, and ways that double with each byte: bounded, and refused without harm. */
static void test_bounds(void **state)
{
	static const char right[] = "root ::= \"x\" root | \"y\"",
			  twice[] = "root ::= \"x\" (root \"a\" | root \"b\")?",
			  dead[] = "root ::= \"a\" never | \"b\"\nnever ::= \"c\" never";
	struct error err = { 0 };
	(void)state;

	struct machine *m = machine_of_gbnf(right, strlen(right), NULL, &err);
	assert_non_null(m);
	uint32_t once = machine_step(m, m->start, 'x');
	assert_int_equal(machine_step(m, once, 'x'), once); /* nothing is left on the stack */
	assert_true(reads(m, "xxxy"));
	machine_close(m);
	m = machine_of_gbnf(twice, strlen(twice), NULL, &err);
	assert_non_null(m);
	assert_true(reads(m, "xxxaa") && reads(m, "xxxba") && !reads(m, "xxxaaa"));
	uint32_t at = m->start;
	for (int i = 0; i < 100 && at != MACHINE_DEAD; i++)
		at = machine_step(m, at, 'x');
	assert_true(m->failed && at == MACHINE_DEAD);
	machine_close(m);
	m = machine_of_gbnf(dead, strlen(dead), NULL, &err); /* what cannot be ended is not begun */
	assert_non_null(m);
	assert_int_equal(machine_step(m, m->start, 'a'), MACHINE_DEAD);
	assert_true(reads(m, "b"));
	machine_close(m);
}

static bool allows(struct grammar *g, uint32_t id)
{
	struct error err = { 0 };
	bool ends;
	const uint32_t *bits = grammar_allowed(g, &ends, &err);

	assert_non_null(bits);
	return bits[id / 32] >> id % 32 & 1;
}

/* A token that is right by its text and as a whole goes on in both ways. */
static void test_tokens(void **state)
{
	static const char both[] = "root ::= \" ha\" \"a\" | <[300]> \"b\" | !<[300]> \"c\"",
			  alone[] = "root ::= <[300]> <s>+";
	static const char *const wrong[][2] = {
		{ "root ::= <nosuch>", "the grammar, line 1, column 10: the model has no such token" },
		{ "root ::= <[512]>", "the grammar, line 1, column 10: the model has no such token" },
		{ "root ::= <[99999999999999999999]>", "the grammar, line 1, column 10: the model has no such token" },
		{ "root ::= <[2]>",
		  "the grammar, line 1, column 10: a token that ends answers, or whose text is no whole characters" },
		{ "root ::= <[200]>",
		  "the grammar, line 1, column 10: a token that ends answers, or whose text is no whole characters" },
		{ "root ::= !\"a\"", "the grammar, line 1, column 11: expected < behind !" },
		{ "root ::= <[]>", "the grammar, line 1, column 12: expected the number of a token" },
		{ "root ::= <[7>", "the grammar, line 1, column 13: expected ]> behind the number of a token" },
		{ "root ::= <think", "the grammar, line 1, column 11: the text of a token without >" },
	};
	const uint32_t a = named(NULL, "a", 1), b = named(NULL, "b", 1), c = named(NULL, "c", 1),
		       s = named(NULL, "<s>", 3);
	const struct grammar_token ha = { 300, " ha", 3 }, nothing = { s, "", 0 };
	const struct grammar_token then[] = { ha, { b, "b", 1 } }, mixed[] = { ha, { c, "c", 1 } };
	struct error err = { 0 };
	char out[8];
	(void)state;

	if (!load())
		skip();
	struct grammar *g = grammar_open(there.v, GRAMMAR_GBNF, both, strlen(both), &all_tokens, &err);
	assert_non_null(g);
	assert_true(grammar_is_of_tokens(g));
	assert_int_equal(grammar_fitting(g, then, 2), 2);
	assert_int_equal(grammar_fitting(g, mixed, 2), 1);
	assert_true(allows(g, 300) && allows(g, a) && !allows(g, 2) && !allows(g, 200));
	assert_true(grammar_take(g, &ha, &err));
	assert_true(allows(g, a) && allows(g, b) && !allows(g, c));
	grammar_rewind(g, 0);
	assert_true(grammar_take(g, &then[1], &err));
	assert_true(!allows(g, a) && !allows(g, b) && allows(g, c));
	grammar_close(g);
	g = grammar_open(there.v, GRAMMAR_GBNF, alone, strlen(alone), &all_tokens, &err);
	assert_non_null(g);
	assert_int_equal(grammar_forced(g, out, sizeof out), 0);
	assert_true(allows(g, 300) && !allows(g, s));
	assert_true(grammar_take(g, &ha, &err) && !grammar_take(g, &ha, &err));
	assert_true(grammar_take(g, &nothing, &err) && grammar_take(g, &nothing, &err)); /* its text is not told */
	assert_int_equal(grammar_taken(g), 3);
	grammar_close(g);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct error why = { 0 };
		assert_null(grammar_open(there.v, GRAMMAR_GBNF, wrong[i][0], strlen(wrong[i][0]), &all_tokens, &why));
		assert_string_equal(why.text, wrong[i][1]);
	}
}

static int clear(void **state)
{
	(void)state;
	json_decref(there.all);
	vocabulary_close(there.v);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_states), cmocka_unit_test(test_syntax),
		                            cmocka_unit_test(test_refusals), cmocka_unit_test(test_bounds),
		                            cmocka_unit_test(test_tokens) };

	return cmocka_run_group_tests(tests, NULL, clear);
}

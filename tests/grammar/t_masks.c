/* tests/grammar/t_masks.c - masks of tokens, held to the machine itself: a token is allowed where its bytes, one by
 * one, lead somewhere. And the automatons of expressions, held to PCRE2. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "grammar/grammar.h"
#include "grammar/schema/json_parts.h"
#include "grammar/mask.h"
#include "grammar/regex/regex.h"
#include "tests/support/shared.h"

static uint64_t seed = 1;
static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)(seed >> 33) % n;
}

/* ---- masks */

enum { TOKENS = 3000, LONGEST = 12, LARGE = 8 << 20, FRAMES_MAX = 320 };
static char token[TOKENS][LONGEST + 1];
static size_t token_bytes[TOKENS];

/* All bytes, and texts of pieces that JSON is full of; some twice, some empty, some with halves of characters. */
static void make_tokens(void)
{
	static const char *const parts[] = {
		"\"",       "{",        "}",        "[",        "]",        ":",        ",",        " ",
		"\n",       "a",        "b",        "name",     "x1",       "0",        "12",       "-",
		".",        "e",        "true",     "null",     "\\",       "\\u00",    "é",        "日",
		"\xe6\x97", "\xa5",     "ab",       "\":",      "\",\"",    "\xf0\x9f", "\x98\x80", "\xe0\x80",
		"\xe0\xa0", "\xed\xa0", "\xed\x9f", "\xf4\x90", "\xf4\x8f", "\xf0\x80", "\xc1",     "\xc3"
	};
	for (int i = 0; i < TOKENS; i++) {
		token_bytes[i] = 0;
		if (i < 256) {
			token[i][0] = (char)i;
			token_bytes[i] = 1;
			continue;
		}
		if (i == 256) { /* easy characters behind what begins an escape */
			token_bytes[i] = (size_t)snprintf(token[i], sizeof token[i], "cA\\u00ctrue");
			continue;
		}
		for (uint32_t k = draw(5); k; k--) {
			const char *p = parts[draw(sizeof parts / sizeof *parts)];
			if (token_bytes[i] + strlen(p) > LONGEST)
				break;
			memcpy(token[i] + token_bytes[i], p, strlen(p));
			token_bytes[i] += strlen(p);
		}
	}
}

static const char *piece(void *user, uint32_t id, size_t *n)
{
	*n = token_bytes[id];
	return token[id];
}

static uint32_t walk(struct machine *m, uint32_t state, uint32_t id)
{
	for (size_t i = 0; i < token_bytes[id] && state != MACHINE_DEAD; i++)
		state = machine_step(m, state, (uint8_t)token[id][i]);
	return token_bytes[id] ? state : MACHINE_DEAD;
}

static const char *const sources[] = {
	"{}",
	"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":9},\"a\":{\"type\":"
	"\"integer\","
	"\"maximum\":120},\"x1\":{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"ab\",\"\u65e5\",12,null]},"
	"\"maxItems\":3}},"
	"\"required\":[\"name\"],\"additionalProperties\":false}",
	"{\"anyOf\":[{\"type\":\"string\",\"pattern\":\"^(ab|x1)+\"},{\"type\":\"array\",\"contains\":{\"const\":true}}"
	","
	"{\"type\":\"object\",\"patternProperties\":{\"^x\":{\"type\":\"number\"}},\"minProperties\":1}]}",
	"{\"type\":\"object\",\"propertyNames\":{\"maxLength\":4},\"additionalProperties\":{\"type\":\"string\"}}",
	/* Of these many characters of a kind can follow for a while, or for ever. */
	"{\"type\":\"string\",\"pattern\":\"^[\\\\w-]{3,9}$\"}",
	"{\"type\":\"string\",\"pattern\":\"b$\"}",
	"{\"type\":\"string\",\"pattern\":\"^\\\\S{2,5}x1[^0-9]*$\"}",
	"{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"string\",\"pattern\":\"^a[a-z0-9]*\",\"maxLength\":6},"
	"{\"type\":\"string\",\"pattern\":\"^.{3,4}$\"},{\"type\":\"string\",\"format\":\"uuid\"}]}}",
	"{\"type\":\"object\",\"patternProperties\":{\"^x[a-z]{0,3}$\":{\"type\":\"null\"},\"[0-9]\":true},"
	"\"additionalProperties\":false}",
	"{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^(name|\\\\p{L}{1,4})\"},\"minProperties\":2}",
	/* All rules of a string together, and items that differ. */
	"{\"type\":\"string\",\"pattern\":\"^((?!ab)(?!x1).)*$\",\"maxLength\":12}",
	"{\"type\":\"string\",\"pattern\":\"^[\\\\+\\\\w-]{5,9}$\",\"minLength\":6,\"maxLength\":8}",
	"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[\"a\",\"ab\",\"x1\",12,null]}}",
	"{\"type\":\"array\",\"uniqueItems\":true,\"maxItems\":5,\"items\":{\"type\":\"string\",\"pattern\":\"^[ab]{0,"
	"2}$\"}}",
	/* What tokens tell of items and names differs although they lead to the same place: free items, escaped names.
	 */
	"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"string\"}}",
	"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":[\"integer\",\"null\"]}}",
	"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"object\",\"minProperties\":2,"
	"\"additionalProperties\":{\"type\":\"null\"}}}",
	"{\"type\":\"object\",\"patternProperties\":{\"^.$\":{\"type\":\"null\"},\"^[a-b]{1,2}$\":{\"type\":"
	"\"string\",\"maxLength\":2}},\"properties\":{\"ab\":{\"type\":\"integer\"},\"b\":true},"
	"\"minProperties\":3}",
	"{\"type\":\"object\",\"patternProperties\":{\"^[ab1]{1,2}$\":{\"type\":\"null\"}},\"minProperties\":3,"
	"\"additionalProperties\":false}",
	"{\"type\":\"object\",\"minProperties\":3,\"additionalProperties\":{\"type\":\"null\"}}",
	"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"null\"},\"ab\":{\"const\":1},\"x1\":false},"
	"\"required\":[\"ab\"],\"maxProperties\":3}",
	"{\"type\":\"object\",\"properties\":{\"name\":true,\"ab1\":{\"const\":1}},\"minProperties\":1}",
	"/(a|b)+[a-z0-9]{2,12}|\\u65e5.{0,30}",
	"/[^\"]{1,20}\"x*",
	"root ::= value\nvalue ::= object | array | string | [0-9]+ | \"true\"\nobject ::= \"{\" ws (string \":\" ws "
	"value "
	"(\",\" ws string \":\" ws value)*)? \"}\"\narray ::= \"[\" ws (value (\",\" ws value)*)? \"]\" ws\nstring ::= "
	"\"\\\"\" "
	"([^\"\\\\\\x00-\\x1f] | \"\\\\\" [^\\x00-\\x1f])* \"\\\"\" ws\nws ::= | \" \" | \"\\n\" [ \\t]{0,3}",
	/* Two stacks below, and behind both the same rule. */
	"root ::= (x [,:] | y [}\\]])+\nx ::= (\"a\" | \"1\") w\ny ::= (\"b\" | \"e\") w\nw ::= [ 0-2]*",
	"start: start \",\" v | v\nv: v \"[\" start \"]\" | NAME | /\\d+/ | \"(\" start \")\" | e v \":\"\ne: (\"-\" "
	"e)?\n"
	"NAME: /\".*?\"/ | /[a-z_]\\w*/\n%ignore \" \"\n%ignore \"\\n\"",
	"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"x-lark\":\"start: start \\\",\\\" a | "
	"a\\n"
	"a: /[abx1]{1,2}/ | \\\"[\\\" start \\\"]\\\"\"}},\"required\":[\"name\"]}",
	"root ::= (\"ab\" | \"a\"){1,3} rest{2,}\nrest ::= [^a] | \"\u65e5\" \"x\"? | \"(\" rest+ \")\"",
};

static struct machine *machine_from(const char *source)
{
	struct error err = { 0 };
	struct machine *m = *source == 's'   ? machine_of_lark(source, strlen(source), &err)
	                    : *source == 'r' ? machine_of_gbnf(source, strlen(source), NULL, &err)
	                    : *source == '/' ? machine_of_regex(source + 1, strlen(source + 1), &err)
	                                     : machine_of_schema(source, strlen(source), true, &err);

	if (!m)
		fail_msg("%s", err.text);
	return m;
}

/* A mask is what the machine says of every token; how many are allowed, and which. */
static uint32_t hold(struct machine *m, uint32_t at, const uint32_t *bits, uint32_t may[TOKENS], const char *source,
                     const char *made, size_t n_made)
{
	uint32_t n = 0;

	for (uint32_t id = 0; id < TOKENS; id++) {
		const bool allowed = bits[id / 32] >> id % 32 & 1;
		if (allowed != (walk(m, at, id) != MACHINE_DEAD))
			fail_msg("%s: behind %.*s %s is %s", source, (int)n_made, made, token[id],
			         allowed ? "allowed and leads nowhere" : "forbidden and fits");
		if (allowed)
			may[n++] = id;
	}
	return n;
}

/* Random texts out of what masks allow: at each token the mask is what the machine says of every token, so nothing is
 * dead before its time, and nothing wrong is ever allowed. */
static void test_masks(void **state)
{
	struct error err = { 0 };
	make_tokens();
	struct vocabulary *v = vocabulary_open(TOKENS, piece, NULL, &err);
	uint32_t bits[TOKENS / 32 + 1], may[TOKENS];
	unsigned ended = 0, stuck = 0, masks = 0;
	char made[25 * LONGEST];

	assert_non_null(v);
	for (size_t k = 0; k < sizeof sources / sizeof *sources; k++) {
		struct machine *m = machine_from(sources[k]);
		struct masks *s = masks_open(v, m);
		for (unsigned text = 0; text < (test_quick() ? 6 : 40); text++) {
			if (machine_bytes(m) > LARGE) { /* as grammar.c does */
				masks_close(s);
				machine_close(m);
				m = machine_from(sources[k]);
				s = masks_open(v, m);
			}
			uint32_t at = m->start, n = 1;
			size_t n_made = 0;
			for (unsigned i = 0; i < 25 && n; i++) {
				n = 0;
				if (!masks_of(s, at, bits))
					fail_msg("grammar %zu, text %u behind %.*s: no mask", k, text, (int)n_made,
					         made);
				masks++;
				n = hold(m, at, bits, may, sources[k], made, n_made);
				if (!n && !machine_ends(m, at)) {
					stuck++;
					printf("# stuck: grammar %zu behind %.*s\n", k, (int)n_made, made);
				}
				if (n) {
					uint32_t id = may[draw(n)];
					at = walk(m, at, id);
					memcpy(made + n_made, token[id], token_bytes[id]);
					n_made += token_bytes[id];
				}
				ended += machine_ends(m, at);
			}
		}
		assert_false(m->failed);
		masks_close(s);
		machine_close(m);
	}
	vocabulary_close(v);
	printf("# %u masks; %u texts that could end\n", masks, ended);
	assert_int_equal(stuck, 0);
	assert_true(ended > (test_quick() ? 10 : 50));
}

/* Frames are looked at, and there must not be one for each text: they are as many for a name that was begun as for
 * another, whether names are counted or not, and for an item. */
static const struct common {
	const char *schema, *text;
} in_common[] = {
	{ "{\"type\":\"object\",\"minProperties\":1}", "{\"" },
	{ "{\"type\":\"object\",\"minProperties\":2}", "{\"a\":1,\"bcd" },
	{ "{\"type\":\"object\",\"maxProperties\":9,\"additionalProperties\":{\"type\":\"null\"}}",
	  "{\"abcdef\":null,\"ab12\":null,\"b\":null,\"abcd" },
	{ "{\"type\":\"object\",\"patternProperties\":{\"^a\":{\"type\":\"null\"}},\"additionalProperties\":false,"
	  "\"minProperties\":2}",
	  "{\"abcdef\":null,\"a12\":null,\"abcd" },
	{ "{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^[a-z]+$\"},\"minProperties\":3,"
	  "\"additionalProperties\":{\"type\":\"null\"}}",
	  "{\"abcdef\":null,\"ab\":null,\"abcd" },
	{ "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"maxProperties\":2,\"propertyNames\":{"
	  "\"maxLength\":9},\"additionalProperties\":{\"type\":\"null\"}}}",
	  "[{\"abcdef\":null},{\"ab\":null,\"abcd" },
	/* Items, and numbers of which nothing but that they are whole is asked. */
	{ "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"string\"}}",
	  "[\"ab\",\"a\",\"x1\",\"b\",\"ba\",\"xy\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\",\"k\",\"l\",\"m\","
	  "\"" },
	{ "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":[\"number\",\"null\"]}}",
	  "[12,1.5,null,0,1,120,15,7,8,9,23,45,67,89,90,91,92,93,94,95,96,97,98,99,2" },
	{ "{\"type\":\"array\",\"items\":{\"type\":[\"integer\",\"null\"]}}",
	  "[12,-120,null,1230,112,5,6,7,89,98,987,876,765,654,543,432,321,210,109,-9,-98,-87,-76,-6543,1" },
};

static void test_frames_in_common(void **state)
{
	uint32_t bits[TOKENS / 32 + 1];
	struct error err = { 0 };
	(void)state;

	make_tokens();
	struct vocabulary *v = vocabulary_open(TOKENS, piece, NULL, &err);
	assert_non_null(v);
	for (size_t i = 0; i < sizeof in_common / sizeof *in_common; i++) {
		const struct common *c = &in_common[i];
		struct machine *m = machine_to_write_schema(c->schema, strlen(c->schema), WRITE_ADDITIONAL, &err);
		assert_non_null(m);
		struct masks *s = masks_open(v, m);
		uint32_t at = m->start;
		for (const char *p = c->text; *p; p++) {
			assert_true(masks_of(s, at, bits));
			at = machine_step(m, at, (uint8_t)*p);
		}
		assert_true(masks_of(s, at, bits));
		const size_t frames = ((const struct json_machine *)m)->frames.n;
		if (frames > FRAMES_MAX)
			fail_msg("%s: %zu frames behind %s, expected at most %d", c->schema, frames, c->text,
			         FRAMES_MAX);
		masks_close(s);
		machine_close(m);
	}
	vocabulary_close(v);
}

/* Inside of an escape a name takes what belongs to it alone. */
static void test_escaped_names(void **state)
{
	static const char schema[] =
		"{\"type\":\"object\",\"patternProperties\":{\"^.$\":{\"type\":\"null\"},\"^[a-b]{1,2}$\":{\"type\":"
		"\"string\"}}}",
			  text[] = "{\"\\u00e9\":null,\"x\\ud83d\\ude00a\\t";
	uint32_t bits[TOKENS / 32 + 1], may[TOKENS];
	struct error err = { 0 };
	(void)state;

	make_tokens();
	struct vocabulary *v = vocabulary_open(TOKENS, piece, NULL, &err);
	assert_non_null(v);
	struct machine *m = machine_from(schema);
	struct masks *s = masks_open(v, m);
	uint32_t at = m->start;
	for (size_t i = 0; i < sizeof text; at = machine_step(m, at, (uint8_t)text[i++])) {
		assert_true(masks_of(s, at, bits));
		assert_true(hold(m, at, bits, may, schema, text, i) > 0);
	}
	masks_close(s);
	machine_close(m);
	vocabulary_close(v);
}

/* ---- a text, token by token */

static void test_rewind(void **state)
{
	struct error err = { 0 };
	make_tokens();
	struct vocabulary *v = vocabulary_open(TOKENS, piece, NULL, &err);
	struct grammar *g = grammar_open(v, GRAMMAR_SCHEMA, sources[1], strlen(sources[1]), NULL, &err);
	bool ends;

	assert_non_null(g);
	assert_true(grammar_take(g, &(struct grammar_token){ 0, "{\"na", 4 }, &err));
	assert_true(grammar_take(g, &(struct grammar_token){ 0, "me\":\"x\"", 7 }, &err));
	assert_non_null(grammar_allowed(g, &ends, &err));
	assert_false(ends);
	assert_true(grammar_take(g, &(struct grammar_token){ 0, "}", 1 }, &err));
	assert_non_null(grammar_allowed(g, &ends, &err));
	assert_true(ends);
	assert_int_equal(grammar_taken(g), 3);
	assert_false(grammar_take(g, &(struct grammar_token){ 0, "}", 1 }, &err));
	assert_int_equal(err.code, ERROR_ARGUMENT);
	err = (struct error){ 0 };
	grammar_rewind(g, 1);
	assert_true(grammar_take(g, &(struct grammar_token){ 0, "me\":\"", 5 }, &err));
	assert_false(grammar_take(g, &(struct grammar_token){ 0, "0123456789", 10 }, &err));
	err = (struct error){ 0 };
	assert_true(grammar_take(g, &(struct grammar_token){ 0, "012345678", 9 }, &err));
	grammar_rewind(g, 0);
	assert_false(grammar_take(g, &(struct grammar_token){ 0, "[", 1 }, &err));
	grammar_close(g);
	vocabulary_close(v);
}

/* ---- expressions */

static const char *const patterns[] = {
	"a",
	"^a$",
	"ab|c",
	"^(ab|c)*d$",
	"[a-c]+x?",
	"^[^ab]{2,4}$",
	"\\d{2}-\\d+",
	"^\\w+\\s\\w+$",
	"(a|b|)(c|d)",
	"^(?:a{0,3}b){2}$",
	"é+",
	"^[à-ÿ]*$",
	"[\\u0041-\\u0043]",
	"^.{3}$",
	"a.c",
	"^$",
	"^a|b$",
	"\\.",
	"[.-]",
	"^\\p{L}+$",
	"^\\p{Lu}",
	"\\P{L}",
	"x*?y+?",
	"^[\\w.-]+@\\w+$",
	"(((a)))",
	"[\\d\\s]",
	"^\\S*$",
	"a{2}",
	"^a{2,}$",
	"\\x41|B",
	"日本?",
	"^(?!a)",
	"^(?=.*b)[a-c]+$",
	"^((?!ab)(?!x).)*$",
	"^(?!a$|b)\\w+$",
	"a(?=b)",
	"a(?!b)",
	"^(?=.{2,4}$)(?=.*\\d)(a|b|\\d)*$",
	"^(?!.*(aa|\\d\\d)).+$",
	"(?=a)(?!ab)",
	"^(?:(?=a.*c|b)[ab])+",
	"(?!)a|b(?=$)",
	"^(?=(a|b)*$)(?!b*$).{2}",
	"^(?!(?:ab|x|A)$)[^@]+$",
	"^(?=[^a]*(?!b)c)",
};

static void random_text(char *out, size_t *n)
{
	static const char *const parts[] = { "a", "b", "c", "d", "x",  "y",  "A",          "1", "23", "-",  ".",
		                             "@", " ", "é", "À", "日", "本", "\U0001f600", "_", "\t", "ab", "aa" };

	*n = 0;
	for (uint32_t k = draw(7); k; k--) {
		const char *p = parts[draw(sizeof parts / sizeof *parts)];
		memcpy(out + *n, p, strlen(p));
		*n += strlen(p);
	}
}

static bool automaton_has(struct automaton *a, const char *text, size_t n)
{
	uint32_t at = AUTOMATON_START;

	for (size_t i = 0; i < n; i++)
		at = automaton_step(a, at, (uint8_t)text[i]);
	return automaton_accepts(a, at);
}

/* PCRE2's $ is held to the very end, and its \s to Unicode's spaces, as ECMA-262 has them. */
static void test_expressions(void **state)
{
	unsigned compared = 0, matched = 0;
	char text[64];
	size_t n;

	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
		struct error err = { 0 };
		int code;
		PCRE2_SIZE at;
		pcre2_code *re = pcre2_compile((PCRE2_SPTR)patterns[i], strlen(patterns[i]),
		                               PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX | PCRE2_EXTRA_ALT_BSUX,
		                               &code, &at, NULL);
		struct automaton *a = regex_automaton(patterns[i], strlen(patterns[i]), true, &err);
		if (!a)
			fail_msg("%s", err.text);
		if (!re) { /* an escape that PCRE2 writes otherwise */
			automaton_close(a);
			continue;
		}
		pcre2_match_data *md = pcre2_match_data_create_from_pattern(re, NULL);
		for (unsigned k = 0; k < (test_quick() ? 300 : 2000); k++) {
			random_text(text, &n);
			bool has = pcre2_match(re, (PCRE2_SPTR)text, n, 0, 0, md, NULL) >= 0;
			if (has != automaton_has(a, text, n))
				fail_msg("%s and \"%.*s\": PCRE2 says %d", patterns[i], (int)n, text, has);
			compared++;
			matched += has;
		}
		pcre2_match_data_free(md);
		pcre2_code_free(re);
		automaton_close(a);
	}
	printf("# %u texts, %u of them matched\n", compared, matched);
	assert_true(matched > compared / 20);
}

/* Every character of Unicode, in ranges with all kinds of borders. */
static void test_characters(void **state)
{
	static const struct character_range ranges[] = {
		{ 0x7f, 0x80 },     { 0x7ff, 0x800 },       { 0xffff, 0x10000 }, { 0x3ff, 0x1234 },
		{ 0xd000, 0xe001 }, { 0x10ffff, 0x10ffff }, { 0xfff, 0x10fff },  { 0, CODE_POINT_MAX },
		{ 0x40, 0x7f },     { 0x12345, 0x54321 },   { 0xffc0, 0x1003f }
	};

	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		struct expression x = { 0 };
		struct error err = { 0 };
		struct automaton *a = automaton_open(&x, expression_set(&x, &ranges[i], 1), false, &err);
		assert_non_null(a);
		for (uint32_t code = 0; code <= CODE_POINT_MAX; code += code % 64 < 62 && code > 0x11000 ? 31 : 1) {
			char text[4];
			size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
			uint32_t c = code;
			for (size_t k = n; k-- > 1; c >>= 6)
				text[k] = (char)(0x80 | (c & 0x3f));
			text[0] = (char)(n == 1 ? code : (0xff00 >> n & 0xff) | c);
			bool in = code >= ranges[i].low && code <= ranges[i].high && (code < 0xd800 || code > 0xdfff);
			if (automaton_has(a, text, n) != in)
				fail_msg("range %zu, character %x", i, code);
		}
		automaton_close(a);
		expression_clear(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_masks),         cmocka_unit_test(test_frames_in_common),
		cmocka_unit_test(test_escaped_names), cmocka_unit_test(test_rewind),
		cmocka_unit_test(test_expressions),   cmocka_unit_test(test_characters)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

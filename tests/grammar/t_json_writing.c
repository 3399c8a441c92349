/* tests/grammar/t_json_writing.c - what a model writes by a JSON Schema, whatever it chooses: random tokens of a
 * vocabulary of the usual size, until the text ends. It always can, is right by a judge that knows nothing of grammar/,
 * and is spelled as grammar/json_spelling.h says. `t_json_writing SCHEMA N` lets one schema be written N times. */
#include <jansson.h>
#include <math.h>
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
#include "tests/grammar/large_vocabulary.h"
#include "tests/grammar/plain_judge.h"
#include "tests/grammar/spell.h"
#include "tests/support/shared.h"

enum { TEXT_MOST = 20000, TOKENS_MOST = 1500 };

static uint64_t seed = 88172645463325252u;
static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 11) % below);
}

/* ---- how it is spelled */

static const char *number_fault(const char *p, size_t n)
{
	char text[100], *end;
	size_t digits, zeros = 0;

	snprintf(text, sizeof text, "%.*s", (int)n, p);
	const double value = fabs(strtod(text, &end));
	const char *point = strchr(text, '.'), *power = strchr(text, 'e');
	if (*end || n > 40 || strpbrk(text, "E+"))
		return "is no number, or a long one";
	for (const char *q = point ? point + 1 : text + n; q < (power ? power : text + n); q++)
		zeros = *q == '0' ? zeros + 1 : 0;
	digits = strspn(text + (*text == '-'), "0123456789");
	if (*text == '-' && value == 0)
		return "is -0";
	if (power && (value < 1e21 && value >= 1e-6))
		return "needs no exponent";
	if (digits > 21 || zeros > 6 || (power && zeros))
		return "has too many digits";
	return NULL;
}

static const char *space_fault(const char *text, const char *p, size_t n)
{
	const char before = p > text ? p[-1] : 0, after = p[n];
	const bool line = *p == '\n' && strspn(p + 1, " \t") == n - 1 && n <= 41;

	if (!before)
		return n == 1 || line ? NULL : "begins with white space";
	if (!after)
		return n == 1 ? NULL : "ends with white space";
	if (n == 1 && *p == ' ' && (before == ':' || before == ','))
		return NULL;
	if (line && (strchr("{[,", before) || strchr("}]", after)))
		return NULL;
	return "has white space where none belongs";
}

/* Behind the opening quote; *end: behind the closing one. */
static const char *text_fault(const char *p, const char **end)
{
	for (; *p && *p != '"'; p++) {
		if (*p != '\\')
			continue;
		p++;
		if (*p == 'u' && (strncmp(p, "u00", 3) != 0 || !strchr("01", p[3]) ||
		                  !strchr("0123456789abcdef", p[4]) || (p[3] == '0' && strchr("89acd", p[4]))))
			return "has an escape that is not needed";
		if (*p != 'u' && !strchr("\"\\bfnrt", *p))
			return "has an escape that is not needed";
		p += *p == 'u' ? 4 : 0;
	}
	*end = p + (*p == '"');
	return *p ? NULL : "has no end";
}

static const char *fault_of(const char *text)
{
	const char *p = text, *fault = NULL;

	while (*p && !fault) {
		const size_t spaces = strspn(p, " \t\r\n"), number = *p == 'e' ? 0 : strspn(p, "-+.eE0123456789");
		if (spaces)
			fault = space_fault(text, p, spaces);
		else if (number)
			fault = number_fault(p, number);
		if (*p == '"')
			fault = text_fault(p + 1, &p);
		else
			p += spaces ? spaces : number ? number : 1;
	}
	return fault;
}

/* ---- walking */

enum end { ENDED, STUCK, LONG, LIMITED };

/* The id-th or the next that is allowed; LARGE_TOKENS: there is none. */
static uint32_t allowed_from(const uint32_t *bits, uint32_t id)
{
	for (uint32_t i = 0; i < LARGE_TOKENS; i++, id = id + 1 == LARGE_TOKENS ? 0 : id + 1) {
		if (bits[id / 32] >> id % 32 & 1)
			return id;
		if (id % 32 == 0 && bits[id / 32] == 0 && id + 32 < LARGE_TOKENS) {
			id += 31;
			i += 31;
		}
	}
	return LARGE_TOKENS;
}

/* Bytes are the first tokens. */
static uint32_t closer(const uint32_t *bits)
{
	static const char *const orders[] = { "\"]}", "}]\"", "]\"}", "01234567", "e-9", "tfn\"[{", ",\":", "abxy" };

	for (const char *p = orders[draw(8)]; *p; p++)
		if (bits[(uint8_t)*p / 32] >> (uint8_t)*p % 32 & 1)
			return (uint8_t)*p;
	return allowed_from(bits, draw(4) ? draw(256) : draw(LARGE_TOKENS));
}

static enum end walk(struct grammar *g, char text[TEXT_MOST], struct error *err)
{
	const unsigned close_at = draw(3) ? draw(12) : draw(60);
	size_t n = 0;

	grammar_rewind(g, 0);
	text[0] = 0;
	for (unsigned i = 0; i < TOKENS_MOST && n + 100 < TEXT_MOST; i++) {
		bool ends;
		const uint32_t *bits = grammar_allowed(g, &ends, err);
		if (!bits)
			return LIMITED;
		if (ends && (i >= close_at || draw(4) == 0))
			return ENDED;
		const uint32_t id = i < close_at ? allowed_from(bits, draw(LARGE_TOKENS)) : closer(bits);
		if (id == LARGE_TOKENS)
			return ends ? ENDED : STUCK;
		struct grammar_token t = { .id = id };
		t.text = large_token(id, &t.n);
		if (!grammar_take(g, &t, err))
			fail_msg("a token that is allowed is not taken: %s", err->text);
		memcpy(text + n, t.text, t.n);
		n += t.n;
		text[n] = 0;
	}
	return LONG;
}

static json_t *read_value(const char *text)
{
	json_t *v = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	return v ? v : json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

struct counts {
	unsigned ended, stuck, longer, limited, refused, wrong;
};

static void check(const json_t *schema, const char *source, const char *text, struct counts *c)
{
	json_t *v = read_value(text);
	const char *fault = fault_of(text);

	c->ended++;
	if (!v || !judge_value(schema, schema, v) || fault) {
		c->wrong++;
		printf("# by %s: %s %s\n", source, text, !v ? "is no JSON" : fault ? fault : "is wrong");
	}
	json_decref(v);
}

static void walk_schema(const char *source, unsigned texts, struct counts *c)
{
	static char text[TEXT_MOST];
	struct error err = { 0 };
	json_t *schema = json_loads(source, JSON_DECODE_ANY, NULL);
	assert_non_null(schema);
	struct grammar *g = grammar_open(large_vocabulary(), GRAMMAR_SCHEMA, source, strlen(source), NULL, &err);

	c->refused += g == NULL;
	for (unsigned i = 0; g && i < texts; i++) {
		switch (walk(g, text, &err)) {
		case ENDED: check(schema, source, text, c); break;
		case STUCK:
			printf("# by %s: stuck behind %s\n", source, text);
			c->stuck++;
			break;
		case LONG: c->longer++; break;
		case LIMITED:
			c->limited++;
			i = texts;
			break;
		}
		err = (struct error){ 0 };
	}
	grammar_close(g);
	json_decref(schema);
}

/* ---- by hand */

static const char *const schemas[] = {
	"{}",
	"{\"type\":\"object\"}",
	"{\"type\":\"integer\"}",
	"{\"type\":\"number\"}",
	"{\"type\":\"integer\",\"minimum\":0,\"maximum\":100}",
	"{\"type\":\"integer\",\"minimum\":-5,\"maximum\":105}",
	"{\"type\":\"integer\",\"exclusiveMinimum\":-10,\"exclusiveMaximum\":-7}",
	"{\"type\":\"integer\",\"minimum\":1000000007}",
	"{\"type\":\"integer\",\"minimum\":98,\"maximum\":1003,\"multipleOf\":7}",
	"{\"type\":\"integer\",\"multipleOf\":65537}",
	"{\"type\":\"number\",\"minimum\":0,\"maximum\":1}",
	"{\"type\":\"number\",\"exclusiveMinimum\":0.1,\"exclusiveMaximum\":0.100001}",
	"{\"type\":\"number\",\"exclusiveMinimum\":10,\"exclusiveMaximum\":11}",
	"{\"type\":\"number\",\"multipleOf\":0.01,\"minimum\":3.999,\"maximum\":4.02}",
	"{\"type\":\"number\",\"minimum\":1e308}",
	"{\"type\":\"number\",\"maximum\":-1e308}",
	"{\"type\":\"integer\",\"minimum\":1e308}",
	"{\"type\":\"number\",\"exclusiveMinimum\":0,\"maximum\":1e-300}",
	"{\"minimum\":1e25,\"maximum\":2e25,\"type\":\"number\"}",
	"{\"const\":7}",
	"{\"const\":-0.0}",
	"{\"enum\":[1,2,3,0.5,1e300,1e-7,123456789012345]}",
	"{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"number\",\"minimum\":0.5,\"maximum\":0.75}]}",
	"{\"type\":\"number\",\"not\":{\"type\":\"integer\"}}",
	"{\"type\":\"number\",\"oneOf\":[{\"multipleOf\":3},{\"multipleOf\":5}]}",
	"{\"type\":\"number\",\"minimum\":1,\"anyOf\":[{\"multipleOf\":3},{\"multipleOf\":5}]}",
	"{\"type\":\"integer\",\"not\":{\"minimum\":3,\"maximum\":1000},\"minimum\":0}",
	"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"integer\",\"minimum\":9,\"maximum\":13},"
	"\"minItems\":4}",
	"{\"type\":\"string\",\"pattern\":\"^[\\\\\\\\/\\\"a\\u0001]{3}$\"}",
	"{\"enum\":[\"C:\\\\x/\\\"\\n\\u0007\\u001b\\u00e9\",\"x_e\"]}",
	"{\"type\":\"object\",\"properties\":{\"a_b\":{\"type\":\"integer\"},\"\\u00e9\\\\\":{\"type\":\"boolean\"}},"
	"\"required\":[\"a_b\",\"\\u00e9\\\\\"],\"additionalProperties\":false}",
	"{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}}",
	"{\"type\":\"array\",\"minItems\":2,\"items\":{\"type\":\"object\",\"required\":[\"e\"]}}",
};

/* What asks for something in the end, so that not all that begins well ends. */
static const char *const ends[] = {
	"{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"b\",\"c\"]},\"contains\":{\"const\":\"b\"},\"maxItems\":2}",
	"{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"contains\":{\"const\":true},\"maxItems\":2}",
	"{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"b\",\"c\"]},\"contains\":{\"const\":\"b\"},\"minContains\":2,"
	"\"maxItems\":3}",
	"{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9},\"contains\":{\"minimum\":7},"
	"\"maxItems\":3}",
	"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"contains\":{\"const\":7},\"minContains\":2,"
	"\"maxContains\":3,"
	"\"minItems\":4,\"maxItems\":5}",
	"{\"type\":\"array\",\"contains\":{\"type\":\"null\"},\"minContains\":0,\"maxContains\":1,\"minItems\":3,"
	"\"maxItems\":4,"
	"\"items\":{\"type\":[\"null\",\"boolean\"]}}",
	"{\"type\":\"array\",\"allOf\":[{\"contains\":{\"const\":1}},{\"contains\":{\"const\":2}},{\"contains\":{"
	"\"const\":3}}],"
	"\"maxItems\":3}",
	"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"boolean\"},{\"enum\":[1,\"x\"]}],\"items\":false,"
	"\"contains\":{\"const\":\"x\"}}",
	"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,2,3,4]},\"contains\":{\"maximum\":1},"
	"\"minItems\":2,"
	"\"maxItems\":3}",
	"{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^[ab]{1,3}$\"},\"contains\":{\"pattern\":\"b$"
	"\"},"
	"\"minContains\":2,\"maxItems\":2}",
	/* Few names. */
	"{\"type\":\"object\",\"patternProperties\":{\"^[a-c]$\":{\"type\":\"integer\"}},\"additionalProperties\":"
	"false,"
	"\"minProperties\":2}",
	"{\"type\":\"object\",\"patternProperties\":{\"^x$\":{\"type\":\"integer\"}},\"additionalProperties\":false,"
	"\"maxProperties\":3}",
	"{\"type\":\"object\",\"patternProperties\":{\"^x\":{\"type\":\"integer\"}},\"additionalProperties\":false,"
	"\"minProperties\":2}",
	"{\"type\":\"object\",\"patternProperties\":{\"^[0-9]{2}$\":{\"type\":\"integer\"}},\"additionalProperties\":"
	"false,"
	"\"minProperties\":3}",
	"{\"type\":\"object\",\"propertyNames\":{\"enum\":[\"a\",\"b\"]},\"minProperties\":2}",
	"{\"anyOf\":[{\"type\":\"object\",\"required\":[\"b\"],\"maxProperties\":2,\"propertyNames\":{\"pattern\":\"^"
	"a\"}},"
	"{\"type\":\"object\",\"required\":[\"a\\\"\"],\"maxProperties\":1,\"propertyNames\":{\"pattern\":\"^a\"}}]}",
	"{\"type\":\"object\",\"properties\":{\"q\":{}},\"patternProperties\":{\"^[ab]$\":{}},\"additionalProperties\":"
	"false,"
	"\"minProperties\":3}",
	"{\"anyOf\":[{\"type\":\"array\",\"contains\":{\"const\":1},\"maxItems\":1},{\"type\":\"array\",\"contains\":{"
	"\"const\":2},"
	"\"maxItems\":2}]}",
};

static void test_ends(void **state)
{
	struct counts c = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		walk_schema(ends[i], test_quick() ? 15 : 40, &c);
	printf("# %u texts ended, %u did not\n", c.ended, c.longer);
	assert_int_equal(c.refused + c.stuck + c.wrong + c.limited, 0);
	assert_true(c.longer * 10 <= c.ended);
}

static void test_by_hand(void **state)
{
	struct counts c = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++)
		walk_schema(schemas[i], test_quick() ? 15 : 40, &c);
	printf("# %u texts ended, %u did not\n", c.ended, c.longer);
	assert_int_equal(c.refused + c.stuck + c.wrong + c.limited, 0);
	assert_true(c.longer * 20 <= c.ended);
}

/* ---- published schemas */

/* Whole numbers with a point, which integers must not have, and escaped slashes in what is one text. */
static bool is_otherwise(const char *text)
{
	for (const char *p = text; (p = strstr(p, ".0")); p += 2)
		if (!strchr("0123456789", p[2]))
			return true;
	return strstr(text, "\\/") != NULL;
}

static void try_instances(struct machine *m, const json_t *tests, const char *name, unsigned *taken, unsigned *missed)
{
	static const size_t styles[] = { JSON_COMPACT, 0, JSON_INDENT(2), JSON_INDENT(4) };
	json_t *test;
	size_t i;

	json_array_foreach(tests, i, test)
	{
		for (size_t k = 0; k < sizeof styles / sizeof *styles; k++) {
			char *text = spell(json_object_get(test, "data"), styles[k]);
			uint32_t at = m->start;
			for (const char *p = text; text && *p && at != MACHINE_DEAD; p++)
				at = machine_step(m, at, (uint8_t)*p);
			const bool valid = json_is_true(json_object_get(test, "valid"));
			const bool takes = text && at != MACHINE_DEAD && machine_ends(m, at);
			assert_false(takes && !valid);
			if (valid && text && !fault_of(text) && !is_otherwise(text)) {
				*missed += !takes;
				*taken += takes;
				if (!takes)
					printf("# %s: not taken: %.300s\n", name, text);
			}
			free(text);
		}
	}
}

/* What people wrote, as programs lay it out, can be written so. */
static void test_published(void **state)
{
	char path[1024], command[1100];
	unsigned taken = 0, missed = 0;
	char *line = NULL;
	size_t room = 0;

	if (!shared_path(path, "data/json-schema/maskbench-1500.jsonl.gz"))
		skip();
	snprintf(command, sizeof command, "gzip -dc '%s'", path);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	for (unsigned i = 0; getline(&line, &room, f) > 0; i++) {
		struct error err = { 0 };
		json_t *one = i % (test_full() ? 1 : 10) ? NULL : json_loads(line, 0, NULL);
		char *schema = one ? spell(json_object_get(one, "schema"), 0) : NULL;
		struct machine *m = schema ? machine_to_write_schema(schema, strlen(schema), &err) : NULL;
		if (m)
			try_instances(m, json_object_get(one, "tests"), json_string_value(json_object_get(one, "id")),
			              &taken, &missed);
		machine_close(m);
		free(schema);
		json_decref(one);
	}
	free(line);
	pclose(f);
	printf("# %u texts can be written, %u not\n", taken, missed);
	assert_int_equal(missed, 0);
	assert_true(taken > 300);
}

/* Where the schema asks for it, there is no white space at all. */
static void test_compact(void **state)
{
	static const char source[] = "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":1,"
				     "\"x-guidance\":{\"whitespace_flexible\":false}}";
	static const char *const spaced[] = { " [1]", "[ 1]", "[1 ]", "[1, 2]", "[\n1]", "[1]\n" };
	struct error err = { 0 };
	struct machine *m = machine_to_write_schema(source, strlen(source), &err);
	(void)state;

	assert_non_null(m);
	for (size_t i = 0; i < 1 + sizeof spaced / sizeof *spaced; i++) {
		uint32_t at = m->start;
		for (const char *p = i ? spaced[i - 1] : "[1,-20]"; *p; p++)
			at = machine_step(m, at, (uint8_t)*p);
		assert_int_equal(at != MACHINE_DEAD && machine_ends(m, at), i == 0);
	}
	machine_close(m);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_by_hand), cmocka_unit_test(test_ends),
		                            cmocka_unit_test(test_compact), cmocka_unit_test(test_published) };

	if (argc == 3) { /* one schema, so many texts */
		struct counts c = { 0 };
		walk_schema(argv[1], (unsigned)atoi(argv[2]), &c);
		printf("ended %u stuck %u longer %u limited %u refused %u wrong %u\n", c.ended, c.stuck, c.longer,
		       c.limited, c.refused, c.wrong);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

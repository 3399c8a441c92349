/* tests/grammar/t_json_writing.c - what a model writes by a JSON Schema, whatever it chooses: random tokens of a
 * vocabulary of the usual size, until the text ends. It always can, is right by a judge that knows nothing of grammar/,
 * and is spelled as grammar/schema/json_spelling.h says. `t_json_writing SCHEMA N` lets one schema be written N times,
 * `t_json_writing SEED` draws other texts. */
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
#include "tests/grammar/spell.h"
#include "tests/grammar/writing.h"
#include "tests/support/shared.h"

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
	"{\"type\":\"object\",\"patternProperties\":{\"^[0-9]{3}$\":{\"type\":\"integer\"}},\"additionalProperties\":"
	"false,"
	"\"minProperties\":2}",
	"{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^[a-z]+$\"},\"additionalProperties\":{\"type\":"
	"\"boolean\"},\"minProperties\":3}",
	"{\"anyOf\":[{\"type\":\"object\",\"required\":[\"b\"],\"maxProperties\":2,\"propertyNames\":{\"pattern\":\"^"
	"a\"}},"
	"{\"type\":\"object\",\"required\":[\"a\\\"\"],\"maxProperties\":1,\"propertyNames\":{\"pattern\":\"^a\"}}]}",
	"{\"type\":\"object\",\"properties\":{\"q\":{}},\"patternProperties\":{\"^[ab]$\":{}},\"additionalProperties\":"
	"false,"
	"\"minProperties\":3}",
	/* A pattern that fits and leaves no value; what fails by its items alone. */
	"{\"type\":\"object\",\"patternProperties\":{\"^[a-c]\":{\"type\":\"object\",\"required\":[\"aab\"],"
	"\"additionalProperties\":false}},\"minProperties\":3,\"propertyNames\":{\"pattern\":\"^[a-z]{1,2}$\"}}",
	"{\"if\":{\"anyOf\":[{\"type\":\"array\",\"prefixItems\":[{\"type\":\"string\"}]}]},\"then\":{\"enum\":[[1]]},"
	"\"else\":{"
	"\"type\":\"object\",\"maxProperties\":1}}",
	"{\"type\":\"object\",\"patternProperties\":{\"^a\":{\"type\":\"null\"},\"^ab\":{\"type\":\"boolean\"}},"
	"\"additionalProperties\":false,\"minProperties\":1,\"maxProperties\":2}",
	"{\"type\":\"object\",\"properties\":{\"abc\":{},\"x\":{}},\"propertyNames\":{\"maxLength\":2},"
	"\"minProperties\":1}",
	"{\"anyOf\":[{\"type\":\"array\",\"contains\":{\"const\":1},\"maxItems\":1},{\"type\":\"array\",\"contains\":{"
	"\"const\":2},"
	"\"maxItems\":2}]}",
};

static void test_ends(void **state)
{
	struct counts c = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		writing_try(ends[i], 0, test_quick() ? (SANITIZED ? 4 : 8) : 40, &c);
	printf("# %u texts ended, %u did not\n", c.ended, c.longer);
	assert_int_equal(c.refused + c.stuck + c.wrong + c.limited, 0);
	assert_true(c.longer * 10 <= c.ended);
}

/* What is free has no end by itself, and costs no more the longer it is. */
static void test_free_arrays(void **state)
{
	static const char *const free_ones[] = {
		"{\"type\":\"array\",\"contains\":{\"const\":1}}",
		"{\"type\":\"array\",\"contains\":{\"type\":\"null\"},\"maxContains\":9}"
	};
	struct counts c = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof free_ones / sizeof *free_ones; i++)
		writing_try(free_ones[i], 0, test_quick() ? 2 : 6, &c);
	printf("# a mask %llu steps\n", (unsigned long long)c.steps);
	assert_int_equal(c.refused + c.stuck + c.wrong + c.limited, 0);
	assert_true(c.steps < 2000000);
}

static void test_by_hand(void **state)
{
	struct counts c = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++)
		writing_try(schemas[i], 0, test_quick() ? (SANITIZED ? 4 : 8) : 40, &c);
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
			if (valid && text && !writing_fault(text) && !is_otherwise(text)) {
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
		struct machine *m = schema ? machine_to_write_schema(schema, strlen(schema),
		                                                     WRITE_ADDITIONAL | WRITE_IN_ANY_ORDER, &err)
		                           : NULL;
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

/* ---- as people write */

static const struct habit {
	const char *schema;
	const char *yes[5], *no[6]; /* what is refused goes wrong at its last byte, or does not end */
} habits[] = {
	{ "{\"type\":\"object\",\"properties\":{\"z\":{},\"a\":{},\"m\":{}},\"required\":[\"m\"]}",
	  { "{\"z\":1,\"a\":2,\"m\":3}", "{\"m\":3}", "{\"a\":2, \"m\": 3}", "{\n  \"z\": 1,\n  \"m\": 3\n}",
	    "{\n\t\"m\":[\n\t\t1\n\t]\n}" },
	  { "{\"m\":3,", "{\"a\":2,\"z", "{\"z\":1}", "{\"z\":1,\"b", "{\n\n", "{\"m\" " } },
	{ "{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"object\",\"properties\":{\"y\":{},\"x\":{}}}},"
	  "\"patternProperties\":{"
	  "\"^a\":{}},\"additionalProperties\":{\"type\":\"null\"}}",
	  { "{\"b\":{\"y\":1,\"x\":2},\"a1\":1,\"c\":null,\"a2\":1}", "{\"a\":1}", "{}", "{\"b\": {\"x\": 1}}", NULL },
	  { "{\"a\":1,\"b\"", "{\"b\":{\"x\":1,", "{\"b\":{\"w", "{ ", "{\"b\":{}, \n", "{\"b\":\n" } },
	/* As the text has them: what is applied before, and behind. */
	{ "{\"allOf\":[{\"$ref\":\"#/$defs/"
	  "t\"}],\"properties\":{\"own\":{}},\"$defs\":{\"t\":{\"type\":\"object\",\"properties\":{\"k\":{},"
	  "\"c\":{}},\"required\":[\"k\"]}}}",
	  { "{\"k\":1,\"c\":1,\"own\":1}", "{\"k\":1,\"own\":1}", "{\"k\":1}", NULL, NULL },
	  { "{\"c", "{\"o", "{\"k\":1,\"own\":1,", "{\"k\":1,\"x", NULL, NULL } },
	{ "{\"properties\":{\"own\":{}},\"type\":\"object\",\"anyOf\":[{\"properties\":{\"p\":{}},\"required\":[\"p\"]}"
	  ",{\"properties\":{"
	  "\"q\":{}},\"required\":[\"q\"]}]}",
	  { "{\"own\":1,\"p\":1}", "{\"q\":1}", NULL, NULL, NULL },
	  { "{\"p\":1,", "{\"own\":1}", "{\"x", NULL, NULL, NULL } },
	/* Needed when its turn is over. */
	{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"},\"k\":{\"enum\":[\"x\",\"y\"]}},\"required\":"
	  "[\"k\"],"
	  "\"dependentRequired\":{\"k\":[\"a\"]}}",
	  { "{\"a\":null,\"k\":\"x\"}", "{\"k\":\"y\",\"a\":null}", NULL, NULL, NULL },
	  { "{\"k\":\"x\"}", NULL, NULL, NULL, NULL, NULL } },
	{ "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"minProperties\":2}",
	  { "{\"a\":1,\"b\":1}", "{\"b\":1,\"c\":1}", "{\"a\":1,\"c\":1}", NULL, NULL },
	  { "{\"c", "{\"b\":1,\"a", "{\"b\":1}", NULL, NULL, NULL } },
	/* Objects that say nothing of other members. */
	{ "{\"type\":\"object\",\"properties\":{}}",
	  { "{}", NULL, NULL, NULL, NULL },
	  { "{\"", "{\n", NULL, NULL, NULL, NULL } },
	{ "{\"type\":\"object\"}",
	  { "{}", "{\"a\":1}", NULL, NULL, NULL },
	  { "{\"a\":1,\"a\"", NULL, NULL, NULL, NULL, NULL } },
	{ "{\"type\":\"object\",\"properties\":{\"a\":{}},\"required\":[\"r\"]}",
	  { "{\"a\":1,\"r\":2}", "{\"r\":2}", NULL, NULL, NULL },
	  { "{\"r\":2,", "{\"b", NULL, NULL, NULL, NULL } },
	{ "{\"oneOf\":[{\"$ref\":\"#/$defs/c\"},{\"$ref\":\"#/$defs/"
	  "d\"}],\"$defs\":{\"c\":{\"type\":\"object\",\"properties\":{\"kind\":{"
	  "\"const\":\"c\"},\"m\":{}},\"required\":[\"kind\"]},\"d\":{\"type\":\"object\",\"properties\":{\"kind\":{"
	  "\"const\":\"d\"},"
	  "\"b\":{}},\"required\":[\"kind\"]}}}",
	  { "{\"kind\":\"c\",\"m\":1}", "{\"kind\":\"d\",\"b\":1}", "{\"kind\":\"d\"}", NULL, NULL },
	  { "{\"kind\":\"c\",\"b", "{\"kind\":\"d\",\"m", "{\"x", NULL, NULL, NULL } },
	/* By the letter both are right, so none is: a closed one must not make it one. */
	{ "{\"type\":\"object\",\"oneOf\":[{\"properties\":{\"a\":{\"type\":\"null\"}}},{\"properties\":{\"b\":{"
	  "\"type\":\"null\"}},\"required\":["
	  "\"b\"]}]}",
	  { "{\"a\":null}", "{}", NULL, NULL, NULL },
	  { "{\"b\":null}", NULL, NULL, NULL, NULL, NULL } },
	{ "{\"type\":\"object\",\"properties\":{\"a\":{}},\"not\":{\"properties\":{\"a\":{\"type\":\"null\"}}}}",
	  { "{\"a\":1}", NULL, NULL, NULL, NULL },
	  { "{\"a\":null}", "{}", "{\"b", NULL, NULL, NULL } },
	{ "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}",
	  { "[1, 2]", "[\n   1,\n   2\n]", "[]", "[1,2]", NULL },
	  { "[ ", "[1,  ", "[1 ", "[\n     ", "[\n  1,\n   ", "[1,\n" } },
};

static bool takes(struct machine *m, const char *text, size_t n)
{
	uint32_t at = m->start;

	for (size_t i = 0; i < n && at != MACHINE_DEAD; i++)
		at = machine_step(m, at, (uint8_t)text[i]);
	return at != MACHINE_DEAD && (text[n] || machine_ends(m, at));
}

static void test_habits(void **state)
{
	(void)state;

	for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
		const struct habit *h = &habits[i];
		struct error err = { 0 };
		struct machine *m = machine_to_write_schema(h->schema, strlen(h->schema), 0, &err);
		if (!m)
			fail_msg("%s: %s", h->schema, err.text);
		for (unsigned k = 0; k < 5 && h->yes[k]; k++)
			if (!takes(m, h->yes[k], strlen(h->yes[k])))
				fail_msg("%s does not take %s", h->schema, h->yes[k]);
		for (unsigned k = 0; k < 6 && h->no[k]; k++) {
			const size_t n = strlen(h->no[k]);
			if (takes(m, h->no[k], n) || !takes(m, h->no[k], n - 1))
				fail_msg("%s: %s is %s", h->schema, h->no[k],
				         takes(m, h->no[k], n) ? "taken" : "refused early");
		}
		machine_close(m);
	}
}

/* By the letter there are other members. */
static void test_additional(void **state)
{
	static const char schema[] = "{\"type\":\"object\",\"properties\":{\"a\":{}}}", text[] = "{\"a\":1,\"b\":2}";
	(void)state;

	for (unsigned how = 0; how <= WRITE_ADDITIONAL; how += WRITE_ADDITIONAL) {
		struct error err = { 0 };
		struct machine *m = machine_to_write_schema(schema, sizeof schema - 1, how, &err);
		assert_non_null(m);
		assert_int_equal(takes(m, text, sizeof text - 1), how == WRITE_ADDITIONAL);
		machine_close(m);
	}
}

/* A small model of no sense has few bytes of white space, however it chooses: of what is nearly nothing but lines, two
 * thirds. */
static void test_white_space(void **state)
{
	static const char schema[] =
		"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"null\"}},"
		"\"b\":{\"type\":\"object\",\"properties\":{\"c\":{\"type\":\"null\"}}}},\"required\":[\"a\",\"b\"]}";
	struct error err = { 0 };
	struct grammar *g = grammar_open(large_vocabulary(), GRAMMAR_SCHEMA, schema, sizeof schema - 1, NULL, &err);
	uint64_t drawn = 7;
	unsigned bytes = 0, spaces = 0;
	(void)state;

	assert_non_null(g);
	for (unsigned round = 0; round < 40; round++) {
		bool over = false;
		grammar_rewind(g, 0);
		for (unsigned i = 0; i < 60 && !over; i++) {
			const uint32_t *bits = grammar_allowed(g, &over, &err);
			uint32_t id;
			do { /* the first bytes that come, white space above all */
				drawn = drawn * 6364136223846793005u + 1442695040888963407u;
				id = (uint32_t)(drawn >> 33) % LARGE_TOKENS;
				id = (drawn >> 20) % 2 ? (uint32_t) " \n\t"[id % 3] : (drawn >> 20) % 4 ? id % 128 : id;
			} while (!over && !(bits[id / 32] >> id % 32 & 1) && (drawn >> 40) % 50000);
			if (over || !(bits[id / 32] >> id % 32 & 1))
				break;
			struct grammar_token t = { .id = id };
			t.text = large_token(id, &t.n);
			assert_true(grammar_take(g, &t, &err));
			bytes += (unsigned)t.n;
			for (size_t k = 0; k < t.n; k++)
				spaces += strchr(" \n\t", t.text[k]) != NULL;
		}
	}
	grammar_close(g);
	printf("# %u bytes, %u of them white space\n", bytes, spaces);
	assert_true(spaces * 3 <= bytes * 2);
}

/* Where the schema asks for it, there is no white space at all. */
static void test_compact(void **state)
{
	static const char source[] = "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":1,"
				     "\"x-guidance\":{\"whitespace_flexible\":false}}";
	static const char *const spaced[] = { " [1]", "[ 1]", "[1 ]", "[1, 2]", "[\n1]", "[1]\n" };
	struct error err = { 0 };
	struct machine *m =
		machine_to_write_schema(source, strlen(source), WRITE_ADDITIONAL | WRITE_IN_ANY_ORDER, &err);
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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),     cmocka_unit_test(test_ends),     cmocka_unit_test(test_free_arrays),
		cmocka_unit_test(test_compact),     cmocka_unit_test(test_habits),   cmocka_unit_test(test_additional),
		cmocka_unit_test(test_white_space), cmocka_unit_test(test_published)
	};

	if (argc == 3) { /* one schema, so many texts */
		writing_prints = true;
		struct counts c = { 0 };
		writing_try(argv[1], 0, (unsigned)atoi(argv[2]), &c);
		printf("ended %u stuck %u longer %u limited %u refused %u wrong %u\n", c.ended, c.stuck, c.longer,
		       c.limited, c.refused, c.wrong);
		return 0;
	}
	if (argc == 2)
		writing_seed ^= strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15u;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/grammar/t_json_schema.c - the machine of a JSON Schema, held to the standard's own test suite and to schemas
 * that people wrote: each valid instance is taken to its end, compact, indented and with escapes; each invalid one is
 * refused at a byte or at its end, or its schema is refused. */
#include <dirent.h>
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

#include "grammar/machine/machine.h"
#include "base/json_read.h"
#include "tests/grammar/spell.h"
#include "tests/support/shared.h"

#define DATA "data/json-schema/"
#define SUITE DATA "JSON-Schema-Test-Suite/tests/"

struct counts {
	unsigned schemas, refused, valid, invalid, missed, wrong;
};

static bool takes(struct machine *m, const char *text)
{
	uint32_t state = m->start;

	for (; *text && state != MACHINE_DEAD; text++)
		state = machine_step(m, state, (uint8_t)*text);
	assert_false(m->failed);
	return state != MACHINE_DEAD && machine_ends(m, state);
}

static void try_instance(struct machine *m, const json_t *test, const char *name, struct counts *c)
{
	static const size_t styles[] = { JSON_COMPACT, JSON_INDENT(2), JSON_COMPACT | JSON_ENSURE_ASCII, 0 };
	bool valid = json_is_true(json_object_get(test, "valid"));
	const char *what = json_string_value(json_object_get(test, "description"));

	for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
		char *text = spell(json_object_get(test, "data"), styles[i]);
		if (!text) /* half of a surrogate pair */
			continue;
		bool taken = takes(m, text);
		c->valid += valid;
		c->invalid += !valid;
		if (taken != valid) {
			printf("# %s, %s: %s %s\n", name, what, valid ? "not taken:" : "taken:", text);
			c->missed += valid;
			c->wrong += !valid;
		}
		free(text);
	}
}

static void try_schema(const json_t *group, const char *name, bool formats, struct counts *c)
{
	struct error err = { 0 };
	char *text = spell(json_object_get(group, "schema"), 0);
	struct machine *m = text ? machine_of_schema(text, strlen(text), formats, &err) : NULL;
	size_t i;
	json_t *test;

	c->schemas++;
	c->refused += m == NULL;
	if (!m)
		assert_true(err.code != ERROR_NONE && err.code != ERROR_MEMORY);
	json_array_foreach(json_object_get(group, "tests"), i, test)
	{
		if (m)
			try_instance(m, test, name, c);
	}
	machine_close(m);
	free(text);
}

static void try_file(const char *path, const char *name, bool old, struct counts *c)
{
	struct error err = { 0 };
	size_t i, n;
	uint8_t *text = file_bytes(path, &n);
	json_t *root = json_read(text, n, 1 << 24, path, &err), *group;

	free(text);
	assert_non_null(root);
	json_array_foreach(root, i, group)
	{
		json_t *schema = json_object_get(group, "schema");
		if (old && json_is_object(schema) && !json_object_get(schema, "$schema"))
			json_object_set_new(schema, "$schema", json_string("http://json-schema.org/draft-07/schema#"));
		try_schema(group, name, false, c);
	}
	json_decref(root);
}

static void try_folder(const char *relative, bool old, struct counts *c)
{
	char path[1024], file[2048];
	DIR *d = shared_path(path, relative) ? opendir(path) : NULL;

	if (!d)
		skip();
	for (struct dirent *e; (e = readdir(d));) {
		/* vocabulary.json: what a "$schema" of one's own leaves out is held all the same. */
		if (!strstr(e->d_name, ".json") || strcmp(e->d_name, "vocabulary.json") == 0)
			continue;
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		try_file(file, e->d_name, old, c);
	}
	closedir(d);
}

/* How many are refused is known; fewer is better, and then this number becomes smaller. */
static void test_2020(void **state)
{
	struct counts c = { 0 };

	try_folder(SUITE "draft2020-12", false, &c);
	printf("# %u schemas, %u refused; %u valid and %u invalid instances\n", c.schemas, c.refused, c.valid,
	       c.invalid);
	assert_int_equal(c.missed, 0);
	assert_int_equal(c.wrong, 0);
	assert_in_range(c.refused, 0, 79);
	assert_true(c.schemas > 350);
}

static void test_draft_7(void **state)
{
	struct counts c = { 0 };

	try_folder(SUITE "draft7", true, &c);
	printf("# %u schemas, %u refused; %u valid and %u invalid instances\n", c.schemas, c.refused, c.valid,
	       c.invalid);
	assert_int_equal(c.missed, 0);
	assert_int_equal(c.wrong, 0);
	assert_in_range(c.refused, 0, 23);
	assert_true(c.schemas > 250);
}

/* Published schemas, a tenth of them in a quick run. */
static void test_published(void **state)
{
	char path[1024], command[1100];
	struct counts c = { 0 };
	char *line = NULL;
	size_t room = 0;

	if (!shared_path(path, DATA "maskbench-1500.jsonl.gz"))
		skip();
	snprintf(command, sizeof command, "gzip -dc '%s'", path);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	for (unsigned i = 0; getline(&line, &room, f) > 0; i++) {
		json_t *one = !test_full() && i % 10 ? NULL : json_loads(line, 0, NULL);
		if (one)
			try_schema(one, json_string_value(json_object_get(one, "id")), true, &c);
		json_decref(one);
	}
	free(line);
	pclose(f);
	printf("# %u schemas, %u refused; %u valid and %u invalid instances\n", c.schemas, c.refused, c.valid,
	       c.invalid);
	assert_int_equal(c.missed, 0);
	assert_int_equal(c.wrong, 0);
	assert_true(c.refused * 50 <= c.schemas);
}

static const struct {
	const char *schema, *yes[4], *no[4];
} cases[] = {
	/* Beginnings that nothing right can follow are refused at once, not at the end. */
	{ "{\"type\":\"integer\",\"minimum\":15,\"maximum\":18}", { "15", "18" }, { "2", "19", "150" } },
	{ "{\"maximum\":3}", { "3", "-5.5", "0.1" }, { "5", "31", "3.1" } },
	{ "{\"type\":\"number\",\"exclusiveMinimum\":0}", { "1e-07", "0.5" }, { "-", "0" } },
	{ "{\"type\":\"integer\"}", { "10", "1.0", "-0" }, { "1.5", "01", "1e-1" } },
	{ "{\"enum\":[\"ab\",\"ac\",7,null]}", { "\"ab\"", "7", "null", "7.0" }, { "\"b", "8", "t" } },
	{ "{\"properties\":{\"a\":{\"type\":\"string\"}},\"additionalProperties\":false}",
	  { "{}", "{\"a\":\"\"}", "{\"\\u0061\":\"\"}" },
	  { "{\"b", "{\"a\":1", "{\"a\":\"\"," } },
	{ "{\"type\":\"object\",\"required\":[\"x\"],\"maxProperties\":1}",
	  { "{\"x\":1}" },
	  { "{}", "{\"y", "{\"x\":1," } },
	/* Of two kinds of objects one needs a member that it cannot have. */
	{ "{\"anyOf\":[{\"properties\":{\"n\":{\"const\":\"put\"},\"a\":{\"const\":7}},\"required\":[\"n\",\"a\"]},"
	  "{\"properties\":{\"n\":{\"const\":\"take\"},\"a\":false},\"required\":[\"n\",\"a\"]}],"
	  "\"type\":\"object\"}",
	  { "{\"n\":\"put\",\"a\":7}", "{\"a\":7,\"n\":\"put\"}" },
	  { "{\"n\":\"t", "{\"a\":7,\"n\":\"t", "{\"n\":\"put\"}" } },
	{ "{\"oneOf\":[{\"required\":[\"x\"],\"properties\":{\"x\":{\"items\":{\"type\":\"string\",\"enum\":[1]},"
	  "\"minItems\":1,"
	  "\"type\":\"array\"}}},{\"required\":[\"y\"],\"additionalProperties\":false,\"properties\":{\"y\":true}}],"
	  "\"type\":\"object\"}",
	  { "{\"y\":1}" },
	  { "{\"x", "{}", "{\"y\":1," } },
	/* Just enough values that differ, and a pattern of names that only some members have. */
	{ "{\"type\":\"array\",\"items\":{\"enum\":[1,2,1]},\"uniqueItems\":true,\"minItems\":2}",
	  { "[2,1]" },
	  { "[1,1", "[1]" } },
	{ "{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"minimum\":3,\"maximum\":5},\"uniqueItems\":true,"
	  "\"minItems\":3}",
	  { "[3,5,4]" },
	  { "[3,3", "[3,4]" } },
	{ "{\"type\":\"object\",\"patternProperties\":{\"^x\":false,\"y$\":true},\"additionalProperties\":false}",
	  { "{}", "{\"ay\":1}" },
	  { "{\"x", "{\"a\"" } },
	{ "{\"type\":\"object\",\"minProperties\":2}", { "{\"a\":1,\"b\":1}" }, { "{\"a\":1,\"a\"", "{\"a\":1}" } },
	{ "{\"type\":\"string\",\"pattern\":\"^a+$\",\"maxLength\":3}", { "\"aaa\"" }, { "\"b", "\"aaaa" } },
	/* Counts beyond any integer type. */
	{ "{\"type\":\"string\",\"maxLength\":18446744073709551616}", { "\"aaa\"" }, { "1" } },
	{ "{\"type\":\"array\",\"minItems\":1,\"maxItems\":1e300}", { "[1,2]" }, { "[]" } },
	{ "{\"type\":\"string\",\"minLength\":2}",
	  { "\"\\ud83d\\ude00x\"", "\"öö\"" },
	  { "\"\\ud83d\\ude00\"", "\"\\ud83d\"" } },
	{ "{\"anyOf\":[{\"properties\":{\"k\":{\"const\":\"a\"},\"v\":{\"type\":\"string\"}},\"required\":[\"k\"]},"
	  "{\"properties\":{\"k\":{\"const\":\"b\"},\"v\":{\"type\":\"number\"}},\"required\":[\"k\"]}],"
	  "\"type\":\"object\"}",
	  { "{\"k\":\"a\",\"v\":\"\"}", "{\"v\":1,\"k\":\"b\"}" },
	  { "{\"k\":\"c", "{\"k\":\"a\",\"v\":1", "{\"v\":1,\"k\":\"a" } },
	{ "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"type\":[\"object\",\"null\"],\"properties\":{\"next\":"
	  "{\"$ref\":\"#/$defs/n\"}}}}}",
	  { "null", "{\"next\":{\"next\":null}}" },
	  { "{\"next\":1", "[" } },
	{ "{\"type\":\"array\",\"contains\":{\"const\":1},\"maxItems\":2}",
	  { "[1]", "[2,1]" },
	  { "[]", "[2,2", "[1,1," } },
	{ "{\"not\":{\"type\":\"string\"}}", { "1", "[]" }, { "\"" } },
	/* What is impossible inside is not begun, and what refers to itself is, where that comes to an end. */
	{ "{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"pattern\":\"(?=a)b\",\"type\":\"string\"}},\"b\":{"
	  "\"type\":\"array\",\"minItems\":1,\"items\":{\"const\":1,\"type\":\"null\"}}},\"type\":\"object\","
	  "\"additionalProperties\":false}",
	  { "{\"a\":[]}", "{}" },
	  { "{\"a\":[\"", "{\"b" } },
	{ "{\"$ref\":\"#/$defs/"
	  "t\",\"$defs\":{\"t\":{\"type\":\"object\",\"required\":[\"kids\"],\"properties\":{\"kids\":"
	  "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/t\"}}}}}}",
	  { "{\"kids\":[{\"kids\":[]}]}" },
	  { "{}", "{\"kids\":[1" } },
	{ "{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{\"anyOf\":[{\"$ref\":\"#\"},{\"required\":["
	  "\"b\"],"
	  "\"type\":\"object\",\"properties\":{\"b\":{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}}}]}}}",
	  { "{\"a\":{\"b\":null}}", "{\"a\":{\"a\":{\"b\":{\"a\":{\"b\":null}}}}}" },
	  { "{}", "{\"a\":{\"b\":1" } },
	/* One of both members, and a second one is not begun. */
	{ "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"additionalProperties\":false,\"oneOf\":[{"
	  "\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
	  { "{\"a\":1}", "{\"b\":1}" },
	  { "{}", "{\"a\":1,", "{\"b\":1," } },
	/* A name is begun only where it can have a value. */
	{ "{\"allOf\":[{\"enum\":[{\"bar\":1}]},{\"not\":{\"properties\":{\"foo\":{}},\"required\":[\"foo\"]}}]}",
	  { "{\"bar\":1}" },
	  { "{\"f", "{\"\\u0066", "{\"bar\":1," } },
	{ "{\"oneOf\":[{\"properties\":{\"k\":{\"const\":1},\"a\":{}}},{\"properties\":{\"k\":{\"const\":2},\"bc\":{}}}"
	  "],"
	  "\"type\":\"object\",\"required\":[\"k\"],\"additionalProperties\":false,\"properties\":{\"k\":{},\"a\":{"
	  "\"type\":\"array\",\"items\":false},\"bc\":{\"allOf\":[{\"type\":\"string\"},{\"enum\":[1]}]}}}",
	  { "{\"k\":1}", "{\"k\":2,\"a\":[]}" },
	  { "{\"b", "{\"k\":1,\"b" } },
	{ "{\"type\":\"string\",\"format\":\"date\"}", { "\"2024-02-29\"" }, { "\"2023-02-29", "\"2024-13" } },
	{ "{\"type\":\"number\",\"multipleOf\":0.01}", { "4.07", "1e2" }, { "4.075" } },
	/* What a pattern does not allow from the beginning on is not begun, long before the end. */
	{ "{\"type\":\"string\",\"pattern\":\"^ab$\"}", { "\"ab\"" }, { "\"x", "\"aba" } },
	{ "{\"type\":\"string\",\"pattern\":\"^[a-z]+$|^b.\"}", { "\"b!\"", "\"abc\"" }, { "\"1", "\"a1" } },
	{ "{\"type\":\"object\",\"patternProperties\":{\"^x-\":true},\"additionalProperties\":false}",
	  { "{}", "{\"x-a\":1}" },
	  { "{\"a", "{\"xx" } },
	/* What can be ended by each of two rules, and not by both, is not begun. */
	{ "{\"type\":\"string\",\"pattern\":\"^[a-c]+x$\",\"maxLength\":3}",
	  { "\"abx\"" },
	  { "\"abc", "\"\\u0061b\\u006" } },
	{ "{\"type\":\"string\",\"pattern\":\"^a*(bb|c)$\",\"minLength\":3}",
	  { "\"abb\"", "\"aac\"" },
	  { "\"b", "\"ac" } },
	{ "{\"allOf\":[{\"type\":\"string\",\"pattern\":\"^a\"},{\"pattern\":\"^.b$\"}]}", { "\"ab\"" }, { "\"aa" } },
	{ "{\"type\":\"string\",\"pattern\":\"^[a-z\\u00e9\\u65e5]*$\",\"not\":{\"pattern\":\"x\"}}",
	  { "\"ab\\u00e9\"" },
	  { "\"abx", "\"\\u0078", "\"\\u65e6" } },
	{ "{\"type\":\"string\",\"not\":{\"maxLength\":3},\"pattern\":\"^[ab]{2}(c|dd)?$\"}",
	  { "\"abdd\"" },
	  { "\"abc" } },
	/* Fractions alone are right, also where no more digits than these can follow. */
	{ "{\"type\":\"number\",\"anyOf\":[{\"multipleOf\":0.25},{\"multipleOf\":0.04}],\"not\":{\"multipleOf\":0.5}}",
	  { "0.25", "-0.25", "1.04",
	    "1111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111.25" },
	  { "0.5", "1" } },
	{ "{\"type\":\"integer\",\"multipleOf\":7,\"minimum\":15,\"maximum\":30}", { "21", "28" }, { "1", "22", "3" } },
	{ "{\"type\":\"integer\",\"multipleOf\":12345,\"not\":{\"multipleOf\":2}}",
	  { "12345", "37035" },
	  { "24690,", "0" } },
	{ "{\"type\":\"integer\",\"minimum\":1,\"maximum\":5}", { "1", "5.0", "5e0" }, { "1.5", "1e1" } },
	/* Looking ahead. */
	{ "{\"type\":\"string\",\"pattern\":\"^((?!mode)(?!Mode).)*$\"}",
	  { "\"mod\"", "\"mom\"" },
	  { "\"a mode", "\"Mod\\u0065" } },
	{ "{\"type\":\"string\",\"pattern\":\"^(?=.*[0-9])(?!ab)[a-c0-9]{3,4}$\"}",
	  { "\"aa1\"", "\"1aca\"" },
	  { "\"ab", "\"aaaa", "\"aaa\"" } },
	/* Items that differ, however they are written. */
	{ "{\"type\":\"array\",\"uniqueItems\":true}",
	  { "[1,2,\"1\",[1],{\"a\":1},{\"a\":2},true,null,[]]", "[\"a\", \"aa\" ,\"\"]", "[-0.5,0.5,5e2]" },
	  { "[1,1]", "[1.50,1,15e-1]", "[{\"a\":1,\"b\":[2]},{\"b\":[2.0],\"a\":10e-1}", "[\"ab\", \"\\u0061b\"" } },
	{ "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[\"a\",\"ab\",\"b\",3,true]}}",
	  { "[\"a\",\"ab\",3]", "[\"ab\",\"a\",\"b\",true,3]" },
	  { "[\"a\",\"ab\",\"a", "[3,3", "[true,t", "[true,\"a\",3.0,\"b\",\"ab\"," } },
	{ "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":3}}",
	  { "[1,2]", "[3,1,2]" },
	  { "[1,2,1", "[1,2,3,", "[2,2" } },
	{ "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"string\",\"format\":\"date\"}}",
	  { "[\"2024-01-01\",\"2024-01-02\"]" },
	  { "[\"2024-01-31\",\"2024-01-30\",\"2024-01-3" } },
	{ "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"array\",\"uniqueItems\":true}}",
	  { "[[1,2],[2,1],[]]" },
	  { "[[1,1]", "[[1,2],[1,2]", "[[],[[1],[2]],[[1], [2]]" } },
	{ "{\"type\":\"array\",\"not\":{\"uniqueItems\":true}}", { "[1,1]", "[1,2,1,3]" }, { "[]", "[1]", "[1,2]" } },
	{ "{\"anyOf\":[{\"type\":\"array\",\"uniqueItems\":true},{\"type\":\"array\",\"maxItems\":2}]}",
	  { "[1,1]", "[1,2,3]" },
	  { "[1,2,1]", "[1,1," } },
	{ "{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"array\",\"uniqueItems\":true,\"maxItems\":3}}}",
	  { "{\"s\":[{\"x\":[{\"s\":[1,1]}]}],\"t\":[1,1]}" },
	  { "{\"s\":[{\"x\":1,\"x\":2},{\"x\":2}" } },
};

static void test_by_hand(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error err = { 0 };
		struct machine *m = machine_of_schema(cases[i].schema, strlen(cases[i].schema), true, &err);
		if (!m)
			fail_msg("%s: %s", cases[i].schema, err.text);
		for (unsigned k = 0; k < 4; k++) {
			if (cases[i].yes[k] && !takes(m, cases[i].yes[k]))
				fail_msg("%s does not take %s", cases[i].schema, cases[i].yes[k]);
			if (cases[i].no[k] && takes(m, cases[i].no[k]))
				fail_msg("%s takes %s", cases[i].schema, cases[i].no[k]);
		}
		machine_close(m);
	}
}

/* What is begun must be refused where it goes wrong: at the last byte of each text. */
static void test_refused_at_once(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error err = { 0 };
		struct machine *m = machine_of_schema(cases[i].schema, strlen(cases[i].schema), true, &err);
		for (unsigned k = 0; k < 4 && cases[i].no[k]; k++) {
			const char *text = cases[i].no[k];
			uint32_t at = m->start;
			for (size_t b = 0; text[b]; b++) {
				if (at == MACHINE_DEAD)
					fail_msg("%s is refused before its last byte", text);
				at = machine_step(m, at, (uint8_t)text[b]);
			}
			/* A number that only its end shows to be wrong may end otherwise. */
			bool number = strchr("0123456789-", text[strlen(text) - 1]) != NULL;
			if (at != MACHINE_DEAD && (!number || machine_ends(m, at)))
				fail_msg("%s goes on after %s", cases[i].schema, text);
		}
		machine_close(m);
	}
}

static const struct {
	const char *schema, *why;
} refusals[] = {
	{ "{\"type\":\"arr\"}", "the schema at #/type: a type that is not one of JSON's" },
	{ "{\"properties\":{\"a b\":{\"uniqueItems\":1}}}",
	  "the schema at #/properties/a b/uniqueItems: true or false was expected" },
	{ "{\"items\":{\"pattern\":\"a(?<=b)\"}}", "looking behind, which is not supported, at byte 5" },
	{ "{\"$ref\":\"http://elsewhere/x\"}", "a reference to another document, which is not read" },
	{ "{\"$ref\":\"#/nowhere\"}", "a reference to what is not there" },
	{ "false", "no value satisfies the schema" },
	{ "{\"type\":\"string\",\"const\":1}", "no value satisfies the schema: see #/const" },
	/* What cannot be is said before anything is written, and where. */
	{ "{\"type\":\"array\",\"items\":{\"enum\":[1,2,1]},\"uniqueItems\":true,\"minItems\":3}",
	  "no value satisfies the schema: see #/items/enum" },
	{ "{\"type\":\"object\",\"patternProperties\":{\"^x\":false},\"additionalProperties\":false,\"minProperties\":"
	  "1}",
	  "no value satisfies the schema: see #/additionalProperties" },
	{ "{\"type\":\"array\",\"items\":{\"type\":[\"boolean\",\"null\"]},\"uniqueItems\":true,\"minItems\":4}",
	  "no value satisfies the schema: see #/items/type" },
	{ "{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"minimum\":3,\"maximum\":5},\"uniqueItems\":true,"
	  "\"minItems\":4}",
	  "no value satisfies the schema: see #/items/" },
	{ "{\"type\":\"object\",\"patternProperties\":{\"^x\":{\"type\":\"string\",\"const\":1}},"
	  "\"additionalProperties\":false,"
	  "\"minProperties\":1}",
	  "no value satisfies the schema: see #/" },
	{ "{\"type\":\"string\",\"pattern\":\"(?=a)b\"}", "no value satisfies the schema: see #/pattern" },
	{ "{\"type\":\"string\",\"pattern\":\"[^\\\\s\\\\S]\"}", "no value satisfies the schema: see #/pattern" },
	{ "{\"type\":\"object\",\"properties\":{\"a/b\":{\"type\":\"string\",\"minLength\":5,\"maxLength\":2}},"
	  "\"required\":[\"a/b\"]}",
	  "no value satisfies the schema: see #/properties/a~1b/minLength" },
	{ "{\"type\":\"array\",\"minItems\":2,\"prefixItems\":[{},{\"enum\":[1,\"a\"],\"type\":\"null\"}]}",
	  "no value satisfies the schema: see #/minItems" },
	{ "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"b\":{},\"a\":{\"const\":\"xyz\",\"maxLength\":2}}}",
	  "no value satisfies the schema: see #/$defs/a/const" },
	{ "{\"type\":\"object\",\"required\":[\"next\"],\"properties\":{\"next\":{\"$ref\":\"#\"}}}",
	  "no value satisfies the schema: see #/properties/next/$ref" },
	{ "{\"type\":\"object\",\"required\":[\"b\"],\"propertyNames\":{\"pattern\":\"^a\"}}",
	  "no value satisfies the schema: see #/propertyNames/pattern" },
	{ "{\"type\":\"object\",\"required\":[\"ab\",\"abc\"],\"propertyNames\":{\"maxLength\":2}}",
	  "no value satisfies the schema: see #/propertyNames/maxLength" },
	{ "{\"type\":\"array\",\"contains\":{\"type\":\"string\",\"const\":1}}",
	  "no value satisfies the schema: see #/contains" },
	{ "{\"anyOf\":[{\"type\":\"array\",\"minItems\":1,\"items\":false},{\"type\":\"integer\",\"minimum\":3,"
	  "\"maximum\":2}]}",
	  "no value satisfies the schema: see #/anyOf/0/minItems" },
	{ "[]", "a schema was expected: an object, true or false" },
	{ "{\"minLength\":4294967296.5}", "a count was expected: 0 or more, without a fraction" },
	{ "{\"minLength\":-1}", "a count was expected: 0 or more, without a fraction" },
	{ "{", "the schema" },
	{ "", "the schema" },
};

static void test_refusals(void **state)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		struct error err = { 0 };
		if (machine_of_schema(refusals[i].schema, strlen(refusals[i].schema), true, &err))
			fail_msg("%s is not refused", refusals[i].schema);
		if (!strstr(err.text, refusals[i].why))
			fail_msg("%s: \"%s\", expected \"%s\"", refusals[i].schema, err.text, refusals[i].why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_by_hand),  cmocka_unit_test(test_refused_at_once),
		                            cmocka_unit_test(test_refusals), cmocka_unit_test(test_2020),
		                            cmocka_unit_test(test_draft_7),  cmocka_unit_test(test_published) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

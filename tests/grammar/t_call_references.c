/* tests/grammar/t_call_references.c - schemas that are put into others: what they refer to is still what it was. The
 * standard's own test suite judges: each of its schemas says the same of an instance alone, as the arguments of one
 * function among several, and as the arguments of a call in C. */
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

#include "answers/call_arguments.h"
#include "grammar/call/call.h"
#include "grammar/machine/machine.h"
#include "base/json_read.h"
#include "tests/grammar/spell.h"
#include "tests/support/shared.h"

#define SUITE "data/json-schema/JSON-Schema-Test-Suite/tests/"

static bool takes(struct machine *m, const char *text)
{
	uint32_t state = m->start;

	for (; *text && state != MACHINE_DEAD; text++)
		state = machine_step(m, state, (uint8_t)*text);
	return state != MACHINE_DEAD && machine_ends(m, state);
}

static struct machine *machine_of(json_t *schema, bool writes)
{
	struct error err = { 0 };
	char *text = spell(schema, 0);
	struct machine *m =
		!text    ? NULL
		: writes ? machine_to_write_schema(text, strlen(text), WRITE_ADDITIONAL | WRITE_IN_ANY_ORDER, &err)
			 : machine_of_schema(text, strlen(text), true, &err);

	free(text);
	json_decref(schema);
	return m;
}

/* {"name": NAME, "arguments": SCHEMA}; how: of CALL_DOCUMENT, NULL: not at all. */
static json_t *call_of(const char *name, json_t *schema, const char *how)
{
	json_t *own = json_is_object(schema) ? json_copy(schema) : json_incref(schema);

	if (how && json_is_object(own))
		json_object_set_new(own, CALL_DOCUMENT, json_string(how));
	return json_pack("{s:s, s:{s:{s:s}, s:o}, s:[s, s], s:b}", "type", "object", "properties", "name", "const",
	                 name, "arguments", own, "required", "name", "arguments", "additionalProperties", 0);
}

/* A call in C whose arguments are one JSON object; no more of it than a schema of the whole. */
static struct machine *machine_in_c(json_t *any)
{
	struct error err = { 0 };
	json_t *o = json_pack("{s:o, s:s}", "schema", any, "begun", "{");
	char *text = json_dumps(o, 0);
	struct machine *m =
		text ? machine_of_call(text, strlen(text), WRITE_ADDITIONAL | WRITE_IN_ANY_ORDER, &err) : NULL;

	free(text);
	json_decref(o);
	return m;
}

struct counts {
	unsigned schemas, compared, differ, refused;
};

/* Of two schemas, each the arguments of a function. */
static void compare(const json_t *group, json_t *other, struct counts *c)
{
	json_t *schema = json_object_get(group, "schema"), *test;
	struct machine *alone = machine_of(json_incref(schema), false), *rest = machine_of(json_incref(other), false);
	struct machine *written = machine_of(json_incref(schema), true); /* as calls in C are */
	struct machine *served =
		machine_of(json_pack("{s:[o, o]}", "anyOf", call_of("g", other, "own"), call_of("f", schema, "own")),
	                   false);
	struct machine *in_c =
		machine_in_c(json_pack("{s:[o, o]}", "anyOf", call_of("g", other, NULL), call_of("f", schema, NULL)));
	size_t i;

	if (alone && rest) {
		c->schemas++;
		c->refused += !served || !in_c;
		if (!served || !in_c)
			printf("# %s: refused inside (%d, %d)\n",
			       json_string_value(json_object_get(group, "description")), !served, !in_c);
	}
	json_array_foreach(json_object_get(group, "tests"), i, test)
	{
		char *text = spell(json_object_get(test, "data"), JSON_COMPACT);
		char *call = text ? malloc(strlen(text) + 40) : NULL;
		if (call && alone && rest && written && served && in_c) {
			sprintf(call, "{\"name\":\"f\",\"arguments\":%s}", text);
			bool right = takes(alone, text), one = takes(served, call), two = takes(in_c, call + 1);
			bool spelled = takes(written, text);
			if (one != right || two != spelled)
				printf("# %s: %s: alone %d, served %d, in C %d\n",
				       json_string_value(json_object_get(group, "description")), text, right, one, two);
			c->compared++;
			c->differ += one != right || two != spelled;
		}
		free(call);
		free(text);
	}
	machine_close(alone);
	machine_close(rest);
	machine_close(written);
	machine_close(served);
	machine_close(in_c);
}

static void try_folder(const char *relative, bool old, struct counts *c)
{
	char path[1024], file[2048];
	DIR *d = shared_path(path, relative) ? opendir(path) : NULL;
	if (!d)
		skip();
	json_t *other = json_loads("{\"$id\":\"http://localhost:1234/root\",\"$ref\":\"#/$defs/item\",\"$defs\":{"
	                           "\"item\":{\"$anchor\":\"foo\",\"type\":\"null\"}},\"definitions\":{}}",
	                           0, NULL);

	for (struct dirent *e; (e = readdir(d));) {
		struct error err = { 0 };
		size_t i, n;
		json_t *group;
		if (!strstr(e->d_name, ".json"))
			continue;
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		uint8_t *text = file_bytes(file, &n);
		json_t *root = json_read(text, n, 1 << 24, file, &err);
		free(text);
		json_array_foreach(root, i, group)
		{
			json_t *schema = json_object_get(group, "schema");
			if (old && json_is_object(schema) && !json_object_get(schema, "$schema"))
				json_object_set_new(schema, "$schema",
				                    json_string("http://json-schema.org/draft-07/schema#"));
			compare(group, other, c);
			if (i % 3 == 0) { /* the next one has another neighbour, with ids of its own */
				json_decref(other);
				other = json_incref(schema);
			}
		}
		json_decref(root);
	}
	json_decref(other);
	closedir(d);
}

static void test_suite(void **state)
{
	struct counts c = { 0 };
	(void)state;

	try_folder(SUITE "draft2020-12", false, &c);
	try_folder(SUITE "draft7", true, &c);
	printf("# %u schemas, %u of them refused inside; %u instances, %u judged differently\n", c.schemas, c.refused,
	       c.compared, c.differ);
	assert_true(c.schemas > 400 && c.compared > 1200);
	assert_int_equal(c.differ, 0);
	assert_int_equal(c.refused, 0);
}

static const struct {
	const char *schema, *yes[4], *no[4];
} calls[] = {
	/* In C the parameters are a document of their own; what they lack is looked for around them. */
	{ "{\"properties\":{\"name\":{\"const\":\"f\"},\"arguments\":{\"type\":\"object\",\"$defs\":{\"Item\":{"
	  "\"type\":"
	  "\"boolean\"}},\"properties\":{\"x\":{\"$ref\":\"#/$defs/Item\"},\"y\":{\"$ref\":\"#/$defs/Other\"}}}},"
	  "\"$defs\":{\"Item\":{\"type\":\"null\"},\"Other\":{\"type\":\"null\"}},\"required\":[\"name\"],\"type\":"
	  "\"object\"}",
	  { "\"name\":\"f\",\"arguments\":{\"x\":true,\"y\":null}}" },
	  { "\"name\":\"f\",\"arguments\":{\"x\":null", "\"name\":\"f\",\"arguments\":{\"y\":1" } },
	{ "{\"properties\":{\"name\":{\"const\":\"f\"},\"arguments\":{\"type\":\"object\",\"properties\":{\"k\":{"
	  "\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}},\"additionalProperties\":false}},\"type\":\"object\"}",
	  { "\"name\":\"f\",\"arguments\":{\"k\":[{\"k\":[{}]}]}}" },
	  { "\"arguments\":{\"k\":[{\"a", "\"arguments\":{\"k\":[{\"k\":[1" } },
	/* Properties of these names, and of the keyword's, are properties. */
	{ "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"parameters\":{\"type\":\"object\","
	  "\"properties\":{\"$ref\":{\"type\":\"null\"},\"" CALL_DOCUMENT
	  "\":{\"type\":\"null\"},\"again\":{\"$ref\":\"#/properties/$ref\"}},\"additionalProperties\":false}}}}",
	  { "{\"parameters\":{\"$ref\":null,\"" CALL_DOCUMENT "\":null,\"again\":null}}]" },
	  { "{\"parameters\":{\"again\":1", "{\"parameters\":{\"" CALL_DOCUMENT "\":1" } },
};

static bool begins(struct machine *m, const char *text)
{
	uint32_t state = m->start;

	for (; *text && state != MACHINE_DEAD; text++)
		state = machine_step(m, state, (uint8_t)*text);
	return state != MACHINE_DEAD;
}

static void test_calls_in_c(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		struct error err = { 0 };
		char text[2000];
		snprintf(text, sizeof text, "{\"begun\":\"%s\",\"schema\":%s}", i < 2 ? "{" : "[", calls[i].schema);
		struct machine *m = machine_of_call(text, strlen(text), WRITE_ADDITIONAL | WRITE_IN_ANY_ORDER, &err);
		if (!m)
			fail_msg("%zu: %s", i, err.text);
		for (size_t k = 0; k < 4 && calls[i].yes[k]; k++)
			if (!takes(m, calls[i].yes[k]))
				fail_msg("%zu: not taken: %s", i, calls[i].yes[k]);
		for (size_t k = 0; k < 4 && calls[i].no[k]; k++)
			if (begins(m, calls[i].no[k]))
				fail_msg("%zu: taken: %s", i, calls[i].no[k]);
		machine_close(m);
	}
}

/* A schema that is "own" does not see what is around it. */
static void test_alone(void **state)
{
	struct error err = { 0 };
	static const char text[] =
		"{\"properties\":{\"a\":{\"" CALL_DOCUMENT "\":\"own\",\"$ref\":\"#/$defs/x\"}},\"$defs\":{\"x\":{}}}";
	struct machine *m = machine_of_schema(text, strlen(text), true, &err);
	(void)state;

	assert_null(m);
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "a reference to what is not there"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suite),
		cmocka_unit_test(test_calls_in_c),
		cmocka_unit_test(test_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

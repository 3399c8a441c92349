/* tests/programs/t_json.c - what --json and --json-stream print is what docs/jitrun.schema.json says: every line of
 * many runs fits, no line fits any more once a member is gone, has another type or is new, and the lines of a run agree
 * with each other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/programs/json_schema.h"
#include "tests/support/shared.h"

static json_t *schema;
static char model[1024];

static int read_schema(void **state)
{
	char path[1024];
	json_error_t why;
	(void)state;

	source_path(model, "models/tale-q8_0.gguf");
	schema = json_load_file(source_path(path, "docs/jitrun.schema.json"), JSON_REJECT_DUPLICATES, &why);
	if (!schema)
		print_error("%s: %s\n", path, why.text);
	return schema ? 0 : -1;
}

static int drop_schema(void **state)
{
	(void)state;
	json_decref(schema);
	return 0;
}

/* The lines of a run, as an array. */
static json_t *run(const char *options)
{
	char command[4096];
	json_t *lines = json_array();
	char *line = NULL;
	size_t room = 0;

	snprintf(command, sizeof command, "./jitrun '%s' --no-cache -q -t 1 --tune off %s < /dev/null", model, options);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	while (getline(&line, &room, f) > 0) {
		json_error_t why;
		json_t *v = json_loads(line, JSON_REJECT_DUPLICATES, &why);
		if (!v)
			fail_msg("%s: %s: %s", options, why.text, line);
		json_array_append_new(lines, v);
	}
	free(line);
	assert_int_equal(pclose(f), 0);
	return lines;
}

/* ---- no other line fits */

static unsigned changes;

static void must_fail(json_t *line, const char *what, const char *name)
{
	char why[200];

	changes++;
	if (json_schema_check(schema, line, why)) {
		char *text = json_dumps(line, JSON_COMPACT);
		fail_msg("%s %s: the schema takes %s", what, name, text);
	}
}

static bool is_optional(const char *name)
{
	static const char *const names[] = { "top", "logprobs", "report", "reasoning" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static void change_members(json_t *line, json_t *object);

static void change_member(json_t *line, json_t *object, const char *name, json_t *value)
{
	json_t *other = json_is_string(value) ? json_integer(7) : json_string("seven");

	json_incref(value);
	json_object_set_new(object, name, other);
	must_fail(line, "another type of", name);
	if (json_is_integer(value)) {
		json_object_set_new(object, name, json_integer(-7));
		if (strcmp(name, "logprob") != 0)
			must_fail(line, "a negative", name);
	}
	if (!is_optional(name)) {
		json_object_del(object, name);
		must_fail(line, "without", name);
	}
	json_object_set_new(object, name, value);
	if (strcmp(name, "report") == 0)
		return;
	change_members(line, value);
	if (json_is_array(value))
		change_members(line, json_array_get(value, 0));
}

static void change_members(json_t *line, json_t *object)
{
	const char *name;
	json_t *value;
	json_t *names = json_array();
	size_t i;

	json_object_foreach(object, name, value) { json_array_append_new(names, json_string(name)); }
	if (json_is_object(object)) {
		json_object_set_new(object, "new", json_integer(1));
		must_fail(line, "with a member", "new");
		json_object_del(object, "new");
	}
	json_array_foreach(names, i, value)
	{
		name = json_string_value(value);
		change_member(line, object, name, json_object_get(object, name));
	}
	json_decref(names);
}

/* ---- every line fits */

static void check_lines(const char *options, json_t *lines, bool mutate)
{
	char why[200];
	json_t *line;
	size_t i;

	json_array_foreach(lines, i, line)
	{
		if (!json_schema_check(schema, line, why))
			fail_msg("%s: line %zu: %s: %s", options, i, why, json_dumps(line, JSON_COMPACT));
		if (mutate && (i < 2 || i + 2 >= json_array_size(lines)))
			change_members(line, line);
	}
}

static const char *member(const json_t *line, const char *name)
{
	const char *text = json_string_value(json_object_get(line, name));

	return text ? text : "";
}

/* The tokens and texts of the lines are those of the last one. */
static void check_stream(const char *options, const json_t *lines)
{
	size_t n = json_array_size(lines), tokens = 0;
	const json_t *last = json_array_get(lines, n - 1), *ids = json_object_get(last, "ids");
	char text[8192] = "";

	assert_string_equal(member(last, "type"), "run");
	for (size_t i = 0; i + 1 < n; i++) {
		const json_t *line = json_array_get(lines, i);
		strcat(text, member(line, "text"));
		if (strcmp(member(line, "type"), "token") == 0)
			assert_true(json_equal(json_object_get(line, "id"), json_array_get(ids, tokens++)));
	}
	assert_int_equal(tokens, json_array_size(ids));
	if (strcmp(text, member(last, "text")) != 0)
		fail_msg("%s: \"%s\" and \"%s\"", options, text, member(last, "text"));
}

static void lines_fit(void **state)
{
	static const char *const runs[] = {
		"--json -p 'Once upon a time' -n 5",         "--json -p Once -n 4 --temp 0 --logprobs 3",
		"--json -p Once -n 3 --logprobs 0 --report", "--json -p Once -n 0 --seed 3",
		"--json -p Once -n 40 --temp 0 -r king",     "--json -p Once -n 40 -c 12 --ignore-eos",
		"--json --perplexity t_json.txt -c 16",
	};
	FILE *f = fopen("t_json.txt", "w");
	(void)state;

	assert_non_null(f);
	fputs("The king had a daughter, and she was the fairest of them all. Then the sun went down.", f);
	fclose(f);
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		json_t *lines = run(runs[i]);
		assert_int_equal(json_array_size(lines), 1);
		check_lines(runs[i], lines, true);
		json_decref(lines);
	}
	unlink("t_json.txt");
	assert_true(changes > 400);
}

static void streams_fit(void **state)
{
	static const char *const runs[] = {
		"--json-stream -p 'Once upon a time' -n 12 --seed 1",
		"--json-stream -p Once -n 30 --logprobs 4 --temp 3 --top-k 0 --top-p 1 --min-p 0 --seed 7 --ignore-eos",
		"--json-stream -p 'Once upon a time' -n 40 --temp 0 -r 'king and a' -r 'the end and'",
		"--json-stream -p 'Once upon a time' -n 3 --temp 0 -r ' was a king and'",
		"--json-stream -p Once -n 0",
		"--json-stream -p 'Once <think>' -n 5",
	};
	(void)state;

	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		json_t *lines = run(runs[i]);
		check_lines(runs[i], lines, i < 4);
		check_stream(runs[i], lines);
		if (i == 3) /* "was" could have been the beginning of the text that ends it */
			assert_string_equal(member(json_array_get(lines, 3), "type"), "rest");
		json_decref(lines);
	}
}

/* The choice of --temp 0 is the likeliest; top is in order; a run with --json has what the stream had. */
static void logprobs_agree(void **state)
{
	json_t *stream = run("--json-stream -p 'Once upon a time' -n 6 --temp 0 --logprobs 5"),
	       *whole = run("--json -p 'Once upon a time' -n 6 --temp 0 --logprobs 5 -t 2 --isa avx2"),
	       *list = json_object_get(json_array_get(whole, 0), "logprobs");
	(void)state;

	assert_int_equal(json_array_size(list), 6);
	for (size_t i = 0; i < 6; i++) {
		json_t *line = json_array_get(stream, i), *top = json_object_get(line, "top");
		double before = 0, sum = 0;
		assert_true(json_equal(json_object_get(json_array_get(top, 0), "id"), json_object_get(line, "id")));
		assert_true(json_equal(json_object_get(json_array_get(top, 0), "logprob"),
		                       json_object_get(line, "logprob")));
		assert_int_equal(json_array_size(top), 5);
		for (size_t k = 0; k < 5; k++) {
			double x = json_number_value(json_object_get(json_array_get(top, k), "logprob"));
			assert_true(x <= before);
			before = x;
			sum += exp(x);
		}
		assert_true(sum <= 1 + 1e-6);
		json_object_del(line, "type");
		json_object_del(line, "text");
		assert_true(json_equal(line, json_array_get(list, i)));
	}
	json_decref(stream);
	json_decref(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(lines_fit), cmocka_unit_test(streams_fit),
		                            cmocka_unit_test(logprobs_agree) };

	return cmocka_run_group_tests(tests, read_schema, drop_schema);
}

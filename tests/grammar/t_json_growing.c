/* tests/grammar/t_json_growing.c - texts that grow byte by byte out of what a JSON Schema allows, whatever comes: what
 * is begun can nearly always be ended. */
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
#include "tests/grammar/spell.h"
#include "tests/support/shared.h"

#define DATA "data/json-schema/"

/* Whether a text got stuck: neither may it end, nor can it go on. */
static bool grows(struct machine *m, uint64_t *random)
{
	enum { LONGEST = 1200 };
	uint32_t at = m->start;

	for (unsigned i = 0; i < LONGEST; i++) {
		uint8_t may[256];
		unsigned n = 0, ends = 0;
		for (unsigned b = 0; b < 256; b++)
			if (machine_step(m, at, (uint8_t)b) != MACHINE_DEAD)
				may[n++] = (uint8_t)b;
		if (m->failed || (!n && machine_ends(m, at)))
			return true;
		if (!n)
			return false;
		*random = *random * 6364136223846793005u + 1442695040888963407u;
		unsigned drawn = (unsigned)(*random >> 33);
		for (unsigned k = 0; drawn % 3 == 0 && k < n; k++) /* it comes to an end, at times */
			if (memchr("\"]},", may[k], 4))
				ends = k;
		at = machine_step(m, at, may[ends ? ends : drawn / 3 % n]);
	}
	return true;
}

/* What is begun can be ended, nearly always: docs/grammars.md says what is not looked at. Seven of the 1 494 schemas
 * have texts that cannot, all written by hand as hard cases; one of them is in the quick sample. */
static void test_growing(void **state)
{
	char path[1024], command[1100];
	unsigned texts = 0, stuck = 0;
	uint64_t random = 7;
	char *line = NULL;
	size_t room = 0;

	if (!shared_path(path, DATA "maskbench-1500.jsonl.gz"))
		skip();
	snprintf(command, sizeof command, "gzip -dc '%s'", path);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	for (unsigned i = 0; getline(&line, &room, f) > 0; i++) {
		struct error err = { 0 };
		json_t *one = i % (test_full() ? 1 : test_quick() ? 40 : 20) ? NULL : json_loads(line, 0, NULL);
		char *text = one ? spell(json_object_get(one, "schema"), 0) : NULL;
		struct machine *m = text ? machine_of_schema(text, strlen(text), true, &err) : NULL;
		for (unsigned k = 0; m && k < 10 && !m->failed; k++, texts++)
			stuck += !grows(m, &random);
		machine_close(m);
		free(text);
		json_decref(one);
	}
	free(line);
	pclose(f);
	printf("# %u of %u texts that grow got stuck\n", stuck, texts);
	assert_true(texts > 200);
	assert_true(stuck * (test_full() ? 250 : 30) <= texts);
}

/* Each of these once was begun with what nothing could end. */
static void test_ended(void **state)
{
	static const char *const schemas[] = {
		/* No exponent saves a fraction where the whole part has more than a digit. */
		"{\"type\":\"number\",\"minimum\":1,\"anyOf\":[{\"multipleOf\":3},{\"multipleOf\":5}]}",
	};
	uint64_t random = 7;
	(void)state;

	for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
		struct error err = { 0 };
		struct machine *m = machine_of_schema(schemas[i], strlen(schemas[i]), true, &err);
		assert_non_null(m);
		for (unsigned k = 0; k < (test_quick() ? 20 : 100) && !m->failed; k++)
			if (!grows(m, &random))
				fail_msg("a text of %s got stuck", schemas[i]);
		assert_false(m->failed);
		machine_close(m);
	}
}

static uint32_t walk(struct machine *m, const char *text)
{
	uint32_t at = m->start;

	for (; *text && at != MACHINE_DEAD; text++)
		at = machine_step(m, at, (uint8_t)*text);
	return at;
}

/* An object with so many names has all of them, or the schema is refused for its size; looking at the names reads
 * nothing beside what is kept of them. */
static void test_many_names(void **state)
{
	static const unsigned counts[] = { 20000, 33000, 66000, 130000 };
	unsigned opened = 0;
	(void)state;

	for (size_t i = 0; i < 2 * sizeof counts / sizeof *counts; i++) {
		const unsigned n = counts[i / 2];
		struct error err = { 0 };
		char *schema = malloc(100 + (size_t)n * 16), *end = schema, text[40];
		assert_non_null(schema);
		end += sprintf(end, "{\"type\":\"object\",\"properties\":{");
		for (unsigned k = 0; k < n; k++)
			end += sprintf(end, "%s\"p%u\":{}", k ? "," : "", k);
		sprintf(end, "}}");
		struct machine *m = i & 1 ? machine_to_write_schema(schema, strlen(schema), 0, &err)
		                          : machine_of_schema(schema, strlen(schema), true, &err);
		sprintf(text, "{\"p%u\":1}", n - 1);
		if (!m)
			assert_int_equal(err.code, ERROR_UNSUPPORTED);
		else if (!machine_ends(m, walk(m, text)) && !m->failed)
			fail_msg("%u names: %s is not allowed", n, text);
		opened += m && !m->failed;
		if (m)
			machine_close(m);
		free(schema);
	}
	assert_true(opened >= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_growing), cmocka_unit_test(test_ended),
		                            cmocka_unit_test(test_many_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

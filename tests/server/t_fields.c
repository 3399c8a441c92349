/* tests/server/t_fields.c - every field of every endpoint that is done: it shows in the answer.
 *
 * The fields are those of server/request/request_fields.def, by which the server itself goes. One that is done and has
 * no case in field_cases.def is a failure. docs/request-fields.md is the same table; `t_fields --print` writes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/field_kinds.h"

#define USER FIELDS_USER
#define BEGUN "{\"role\":\"assistant\",\"content\":\"The king\"}"
#define SCHEMA "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}"
#define FLAT "{\"type\":\"function\",\"name\":\"get\",\"parameters\":" SCHEMA "}"
#define FLAT_MESSAGES "{\"name\":\"get\",\"input_schema\":" SCHEMA "}"
#define TOOL "{\"type\":\"function\",\"function\":{\"name\":\"get\",\"parameters\":" SCHEMA "}}"
#define ONE_CALL "<tool_call>{\\\\\\\"name\\\\\\\": \\\\\\\"get\\\\\\\", \\\\\\\"arguments\\\\\\\": {}}</tool_call>"
#define TWO_CALLS "\"grammar\":\"root ::= \\\"" ONE_CALL ONE_CALL "\\\"\""
#define FUNCTION "{\"name\":\"get\",\"parameters\":" SCHEMA "}"
#define THINKS "\"temperature\":0,\"prompt\":\"A tale<think>\""
#define THOUGHT "{\"role\":\"assistant\",\"content\":\"<think>\"}"
#define TALK_THINKS "\"temperature\":0,\"messages\":[" USER "," THOUGHT "]"
#define ITEMS_THINK "\"temperature\":0,\"input\":[" USER "," THOUGHT "]"
#define HOT "\"temperature\":1.5,\"top_k\":0,\"top_p\":1,\"min_p\":0"
#define LONG "\"temperature\":0,\"max_tokens\":90,\"max_output_tokens\":90"
#define LOOP LONG ",\"ignore_eos\":true,\"grammar\":\"root ::= (\\\"a \\\" | \\\"be \\\" | \\\"he \\\")+\""

#define OPTIONS_HOT "\"temperature\":1.5,\"top_k\":0,\"top_p\":1,\"min_p\":0"
#define OPTIONS_LONG "\"temperature\":0,\"num_predict\":90"

enum expectation { DIFFERS, SHOWS, SAME, REFUSES };
static const struct field_case {
	enum expectation expectation;
	unsigned kinds;
	const char *name, *with, *value, *text;
} cases[] = {
#define DIFFERS(kinds, name, with, value) { DIFFERS, kinds, name, with, value, NULL },
#define SHOWS(kinds, name, with, value, text) { SHOWS, kinds, name, with, value, text },
#define SAME(kinds, name, with, value, text) { SAME, kinds, name, with, value, text },
#define REFUSES(kinds, name, with, value) { REFUSES, kinds, name, with, value, NULL },
#include "tests/server/field_cases.def"
#include "tests/server/field_cases_ollama.def"
#undef DIFFERS
#undef SHOWS
#undef SAME
#undef REFUSES
};
enum { CASES = sizeof cases / sizeof *cases };

static void check_differs(const struct kind *k, const struct field_case *c, const char *what)
{
	struct answer without = fields_ask(&fields_server, k, c->with, NULL, ""),
		      with = fields_ask(&fields_server, k, c->with, c->name, c->value);
	json_t *a = fields_told(&without, what), *b = fields_told(&with, what);

	if (json_equal(a, b))
		COMPLAIN("%s: nothing differs", what);
	json_decref(a);
	json_decref(b);
}

static void check_same(const struct kind *k, const struct field_case *c, const char *what)
{
	char both[1000];
	struct answer with = fields_ask(&fields_server, k, c->with, c->name, c->value);

	snprintf(both, sizeof both, "%s%s%s", c->with, *c->with ? "," : "", c->text);
	struct answer other = fields_ask(&fields_server, k, both, NULL, "");
	json_t *a = fields_told(&with, what), *b = fields_told(&other, what);
	if (!json_equal(a, b))
		COMPLAIN("%s: the answers differ", what);
	json_decref(a);
	json_decref(b);
}

static void check_shows(const struct kind *k, const struct field_case *c, const char *what)
{
	struct answer without = fields_ask(&fields_server, k, c->with, NULL, ""),
		      with = fields_ask(&fields_server, k, c->with, c->name, c->value);

	if (with.status != 200 || !strstr(with.body, c->text))
		COMPLAIN("%s: status %d, %.600s", what, with.status, with.body);
	if (without.status != 200 || strstr(without.body, c->text))
		COMPLAIN("%s, without: status %d, %.600s", what, without.status, without.body);
	answer_free(&with);
	answer_free(&without);
}

/* ---- what is done */

static void run_case(const struct kind *k, const struct field_case *c)
{
	char what[200];

	snprintf(what, sizeof what, "%s %s: %.100s", k->path, c->name, c->value);
	if (c->expectation == DIFFERS)
		check_differs(k, c, what);
	else if (c->expectation == SAME)
		check_same(k, c, what);
	else if (c->expectation == SHOWS)
		check_shows(k, c, what);
	else {
		struct answer a = fields_ask(&fields_two, k, c->with, c->name, c->value);
		fields_check_refused(&a, c->name, what);
	}
}

static void test_done(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++)
		for (size_t k = 0; k < KINDS; k++)
			if (cases[i].kinds & kinds[k].kind)
				run_case(&kinds[k], &cases[i]);
	fields_must_be_right();
}

/* ollama's endpoints have fields of others beside their own: what is done with them there shows, too. */
static void test_done_beside(void **state)
{
	static const struct {
		unsigned kind, beside;
	} rows[] = { { OLLAMA_CHAT, CHAT }, { OLLAMA_TEXT, TEXT } };
	size_t count = 0;
	char with[2000];
	(void)state;

	for (size_t i = 0; i < CASES; i++)
		for (size_t r = 0; r < 2; r++) {
			struct field_case c = cases[i];
			const struct request_field *f = request_field_of(rows[r].kind, cases[i].name);
			if (!(cases[i].kinds & rows[r].beside) || (f->kinds & rows[r].kind) ||
			    (test_quick() && count++ % 3))
				continue;
			/* As completions have a prompt. */
			snprintf(with, sizeof with, "\"raw\":%s%s%s", r ? "true" : "null", *c.with ? "," : "", c.with);
			c.with = with;
			for (size_t k = 0; k < KINDS; k++)
				if (kinds[k].kind == rows[r].kind)
					run_case(&kinds[k], &c);
		}
	fields_must_be_right();
}

/* NULL: none. */
static const struct field_case *case_of(const struct request_field *f, const struct kind *k)
{
	for (size_t i = 0; i < CASES; i++)
		if ((cases[i].kinds & k->kind) && strcmp(cases[i].name, f->name) == 0)
			return &cases[i];
	return NULL;
}

/* A slot is asked for where it can be seen; elsewhere only that it is read. */
static void test_no_field_without_case(void **state)
{
	unsigned missing = 0;
	(void)state;

	for (size_t i = 0; i < n_request_fields; i++)
		for (size_t k = 0; k < KINDS; k++)
			if ((request_fields[i].kinds & kinds[k].kind) && request_fields[i].meaning == FIELD_DONE &&
			    !case_of(&request_fields[i], &kinds[k])) {
				printf("no case: %s %s\n", kinds[k].path, request_fields[i].name);
				missing++;
			}
	for (size_t i = 0; i < CASES; i++)
		for (size_t k = 0; k < KINDS; k++) {
			const struct request_field *f = request_field_of(kinds[k].kind, cases[i].name);
			if ((cases[i].kinds & kinds[k].kind) && (!f || f->meaning != FIELD_DONE)) {
				printf("no field: %s %s\n", kinds[k].path, cases[i].name);
				missing++;
			}
		}
	assert_int_equal(missing, 0);
}

/* Whatever is read is refused where its value is of another kind. */
static void test_wrong_kinds(void **state)
{
	static const char *const values[] = { "{\"no\":[\"such\"]}", "[[{}]]", "\"\\u0001 no such\"", "-12345678901" };
	(void)state;

	for (size_t i = 0; i < n_request_fields; i++)
		for (size_t k = 0; k < KINDS; k++) {
			const struct request_field *f = &request_fields[i];
			unsigned refused = 0;
			if (f->meaning != FIELD_DONE || !(f->kinds & kinds[k].kind))
				continue;
			for (size_t w = 0; w < sizeof values / sizeof *values; w++) {
				struct answer a = fields_ask(&fields_server, &kinds[k], case_of(f, &kinds[k])->with,
				                             f->name, values[w]);
				if (a.status == 400)
					refused++;
				answer_free(&a);
			}
			if (!refused)
				COMPLAIN("%s %s is not read", kinds[k].path, f->name);
		}
	fields_must_be_right();
}

/* ---- the page */

static void print_page(FILE *out)
{
	static const char *const title[] = { "Done", "Refused", "Passed over" };
	static const char *const about[] = {
		"What is wrong with a value is one sentence, with status 400.",
		"Status 400, and the sentence says why. `null` asks for nothing, and so does the value in the third "
		"column.",
		"They cannot change an answer, or say what is done anyway. A field of any other name is passed over, "
		"too,\nunless its name begins as those do that bind an answer elsewhere (`guided_`, `allowed_`, `min_` "
		"and "
		"so on), or\nhas the letters of a field that is done (`maxTokens`): that one is refused, but for 0, "
		"false and empty values."
	};

	fprintf(out,
	        "# Fields of requests\n\nWhat becomes of each field, by endpoint: the table that jitserve itself goes "
	        "by\n(`server/request/request_fields.def`). `tests/server/t_fields.c` tries each of them and prints "
	        "this "
	        "page.\nEndpoints that count tokens or show a prompt take what their family takes. What fields mean "
	        "is in\n[serving.md](serving.md).\n");
	for (int m = FIELD_DONE; m <= FIELD_PASSED; m++) {
		fprintf(out, "\n## %s\n\n%s\n\n", title[m], about[m]);
		fprintf(out, m == FIELD_REFUSED
		                     ? "| field | endpoints | asks for nothing | |\n| --- | --- | --- | --- |\n"
		                     : "| field | endpoints | |\n| --- | --- | --- |\n");
		for (size_t i = 0; i < n_request_fields; i++) {
			const struct request_field *f = &request_fields[i];
			const char *comma = "";
			if ((int)f->meaning != m)
				continue;
			fprintf(out, "| `%s` | ", f->name);
			if ((f->kinds & GENERATE) == GENERATE)
				fprintf(out, "all that generate"), comma = ", ";
			for (size_t k = 0; k < KINDS; k++)
				if ((f->kinds & kinds[k].kind) &&
				    !((f->kinds & GENERATE) == GENERATE && (kinds[k].kind & GENERATE)))
					fprintf(out, "%s%s", comma, kinds[k].name), comma = ", ";
			if (m == FIELD_REFUSED)
				fprintf(out, " | `%s`", fields_harmless(f->harmless));
			fprintf(out, " | %s |\n", f->what);
		}
	}
}

static void test_page(void **state)
{
	char path[1024], *made = NULL, *kept = calloc(1, 1 << 18);
	size_t n = 0;
	(void)state;

	FILE *out = open_memstream(&made, &n), *in = fopen(source_path(path, "docs/request-fields.md"), "r");
	assert_true(out && in && kept);
	print_page(out);
	fclose(out);
	assert_true(fread(kept, 1, (1 << 18) - 1, in) > 0);
	fclose(in);
	if (strcmp(made, kept) != 0)
		fail_msg("docs/request-fields.md is another: t_fields --print writes it");
	free(made);
	free(kept);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_field_without_case),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_done),
		cmocka_unit_test(test_done_beside),
		cmocka_unit_test(test_wrong_kinds),
	};

	if (argc == 2 && strcmp(argv[1], "--print") == 0) {
		print_page(stdout);
		return 0;
	}

	return cmocka_run_group_tests(tests, fields_start, fields_stop);
}

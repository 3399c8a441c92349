/* tests/chat/t_chat_templates.c - published chat templates against the texts that Jinja2 makes of them: the shared
 * data's golden files. Every text must be the same to the byte, and every refusal a refusal, in Jinja2's words. Skips,
 * saying so, what is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/text.h"
#include "tests/chat/golden.h"

/* Spans are one after the other, and each begins and ends with a character. */
static void check_spans(const struct chat_text *t)
{
	size_t at = 0;
	uint32_t c;

	for (size_t i = 0; i < t->n_spans; i++) {
		assert_int_equal(t->span[i].begin, at);
		assert_true(t->span[i].end > at && t->span[i].end <= t->n);
		assert_true(i == 0 || t->span[i].user != t->span[i - 1].user);
		assert_true(text_char(t->p + at, t->n - at, &c) > 0);
		at = t->span[i].end;
	}
	assert_int_equal(at, t->n);
}

static unsigned wrong;

/* expected NULL: a refusal, whose words are in `says` when they are known. */
static void compare(const struct chat_template *t, const struct variables *vars, const char *name,
                    const char *conversation, const json_t *expected, const char *says, bool by_template)
{
	const struct chat_request request = { vars->v, vars->n, &golden_time, false };
	struct error err = { 0 };
	struct chat_text out;
	bool refused;

	bool ok = chat_render(t, &request, &out, &refused, &err);
	if (ok)
		check_spans(&out);
	if (!expected) {
		if (ok || !strstr(err.text, says) || refused != by_template) {
			print_error("%s, %s: expected the refusal \"%s\", found \"%s\"\n", name, conversation, says,
			            ok ? "a text" : err.text);
			wrong++;
		}
	} else if (!ok) {
		print_error("%s, %s: %s\n", name, conversation, err.text);
		wrong++;
	} else if (out.n != json_string_length(expected) || memcmp(out.p, json_string_value(expected), out.n) != 0) {
		size_t i = 0;
		while (i < out.n && out.p[i] == json_string_value(expected)[i])
			i++;
		print_error("%s, %s: byte %zu is \"%.60s\", expected \"%.60s\"\n", name, conversation, i, out.p + i,
		            json_string_value(expected) + i);
		wrong++;
	}
	chat_text_free(&out);
}

/* ---- the golden files */

static void test_first(void **state)
{
	json_t *root = golden_load(CHAT_DATA "jinja_golden.json"), *c;
	unsigned n = 0, absent = 0;
	size_t i;
	(void)state;

	wrong = 0;
	json_array_foreach(json_object_get(root, "cases"), i, c)
	{
		const char *name = json_string_value(json_object_get(c, "template")),
			   *error = json_string_value(json_object_get(c, "error"));
		struct chat_template *t = golden_template(name);
		if (!t) {
			/* One kind of template need not be in the data. */
			wrong += strncmp(name, "mistral-common/", 15) != 0;
			absent++;
			continue;
		}
		struct variables vars = { .n = 0 };
		variable_add(&vars, "messages", json_object_get(c, "messages"), CHAT_MESSAGES);
		variable_add(&vars, "tools", json_object_get(c, "tools"), CHAT_USER);
		variable_add(&vars, "bos_token", json_object_get(c, "bos_token"), CHAT_MODEL);
		variable_add(&vars, "eos_token", json_object_get(c, "eos_token"), CHAT_MODEL);
		variable_add(&vars, "add_generation_prompt", json_object_get(c, "add_generation_prompt"), CHAT_MODEL);
		variable_add(&vars, "enable_thinking", json_object_get(c, "enable_thinking"), CHAT_MODEL);
		compare(t, &vars, name, json_string_value(json_object_get(c, "case")), json_object_get(c, "expected"),
		        error ? strchr(error, ':') + 2 : "", error != NULL);
		variables_free(&vars);
		chat_template_free(t);
		n++;
	}
	if (root)
		printf("# %u texts and refusals compared, %u without their template\n", n, absent);
	json_decref(root);
	assert_true(!root || n > 0);
	assert_int_equal(wrong, 0);
}

static void run_conversation(const struct chat_template *t, json_t *row, const char *conversation, json_t *c,
                             json_t *want)
{
	const char *name = json_string_value(json_object_get(row, "template")),
		   *kind = json_string_value(json_object_get(want, "error"));
	struct variables vars;

	variables_of(&vars, row, json_object_get(c, "messages"), json_object_get(c, "tools"),
	             json_is_true(json_object_get(c, "agp")));
	variable_add_all(&vars, json_object_get(c, "kwargs"));
	compare(t, &vars, name, conversation, json_object_get(want, "expected"),
	        kind ? json_string_value(json_object_get(want, "message")) : "",
	        kind && !strcmp(kind, "TemplateError"));
	variables_free(&vars);
}

static void test_second(void **state)
{
	json_t *root = golden_load(CHAT_DATA "jinja_golden2.json.gz"), *row, *want;
	const char *conversation;
	unsigned n = 0;
	size_t i;
	(void)state;

	wrong = 0;
	json_array_foreach(json_object_get(root, "templates"), i, row)
	{
		struct chat_template *t = golden_template(json_string_value(json_object_get(row, "template")));
		if (!t) {
			wrong++;
			continue;
		}
		json_object_foreach(json_object_get(row, "cases"), conversation, want)
		{
			run_conversation(t, row, conversation,
			                 json_object_get(json_object_get(root, "conversations"), conversation), want);
			n++;
		}
		chat_template_free(t);
	}
	if (root)
		printf("# %u texts and refusals compared\n", n);
	json_decref(root);
	assert_true(!root || n > 0);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_first), cmocka_unit_test(test_second) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

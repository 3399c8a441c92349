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
#include "chat/chat.h"
#include "tests/support/shared.h"

#define DATA "data/chat-templates/"

static const struct tm golden_time = {
	.tm_year = 126, .tm_mon = 0, .tm_mday = 2, .tm_hour = 3, .tm_min = 4, .tm_sec = 5, .tm_wday = 5, .tm_yday = 1
};

static char *slurp(FILE *f, size_t *n)
{
	size_t capacity = 1 << 20;
	char *p = malloc(capacity);

	assert_non_null(p);
	*n = 0;
	for (size_t got; (got = fread(p + *n, 1, capacity - *n, f)) > 0;) {
		*n += got;
		if (*n == capacity)
			assert_non_null(p = realloc(p, capacity *= 2));
	}
	return p;
}

/* NULL: it is not there, or there is no gzip for it. */
static json_t *load(const char *relative)
{
	char path[1024], command[1200];
	bool packed = strcmp(relative + strlen(relative) - 3, ".gz") == 0;
	size_t n;

	if (!shared_path(path, relative))
		return NULL;
	snprintf(command, sizeof command, "gzip -dc '%s'", path);
	FILE *f = packed ? popen(command, "r") : fopen(path, "rb");
	assert_non_null(f);
	char *text = slurp(f, &n);
	json_t *root = json_loadb(text, n, JSON_ALLOW_NUL, NULL);
	free(text);
	if ((packed ? pclose(f) : fclose(f)) != 0 && !root) {
		printf("# skipped: %s cannot be unpacked\n", relative);
		return NULL;
	}
	assert_non_null(root);
	return root;
}

static struct chat_template *load_template(const char *name)
{
	char path[1024], relative[600];
	struct error err = { 0 };
	size_t n;

	snprintf(relative, sizeof relative, DATA "%s", name);
	if (!shared_path(path, relative))
		return NULL;
	char *text = (char *)file_bytes(path, &n);
	struct chat_template *t = chat_template_parse(text, n, name, &err);
	free(text);
	if (!t)
		fail_msg("%s", err.text);
	return t;
}

/* ---- one rendering */

enum { MOST_VARIABLES = 32 };
struct variables {
	struct chat_variable v[MOST_VARIABLES];
	size_t n;
};

static void add(struct variables *vars, const char *name, const json_t *value, enum chat_source source)
{
	assert_true(vars->n < MOST_VARIABLES);
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	vars->v[vars->n++] = (struct chat_variable){ name, text, text ? strlen(text) : 0, source };
}

static void add_all(struct variables *vars, json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value) add(vars, name, value, CHAT_MODEL);
}

static void forget(struct variables *vars)
{
	for (size_t i = 0; i < vars->n; i++)
		free((char *)vars->v[i].json);
	vars->n = 0;
}

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
	const struct chat_request request = { vars->v, vars->n, &golden_time };
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
	json_t *root = load(DATA "jinja_golden.json"), *c;
	unsigned n = 0, absent = 0;
	size_t i;
	(void)state;

	wrong = 0;
	json_array_foreach(json_object_get(root, "cases"), i, c)
	{
		const char *name = json_string_value(json_object_get(c, "template")),
			   *error = json_string_value(json_object_get(c, "error"));
		if (strncmp(name, "mistral-common/", 15) == 0) { /* these templates are not in the data */
			absent++;
			continue;
		}
		struct chat_template *t = load_template(name);
		if (!t)
			continue;
		struct variables vars = { .n = 0 };
		add(&vars, "messages", json_object_get(c, "messages"), CHAT_MESSAGES);
		add(&vars, "tools", json_object_get(c, "tools"), CHAT_USER);
		add(&vars, "bos_token", json_object_get(c, "bos_token"), CHAT_MODEL);
		add(&vars, "eos_token", json_object_get(c, "eos_token"), CHAT_MODEL);
		add(&vars, "add_generation_prompt", json_object_get(c, "add_generation_prompt"), CHAT_MODEL);
		add(&vars, "enable_thinking", json_object_get(c, "enable_thinking"), CHAT_MODEL);
		compare(t, &vars, name, json_string_value(json_object_get(c, "case")), json_object_get(c, "expected"),
		        error ? strchr(error, ':') + 2 : "", error != NULL);
		forget(&vars);
		chat_template_free(t);
		n++;
	}
	if (root)
		printf("# %u texts and refusals compared, %u without their template\n", n, absent);
	json_decref(root);
	assert_int_equal(wrong, 0);
}

static void run_conversation(const struct chat_template *t, json_t *row, const char *conversation, json_t *c,
                             json_t *want)
{
	const char *name = json_string_value(json_object_get(row, "template")),
		   *kind = json_string_value(json_object_get(want, "error"));
	json_t *none = json_null(), *tools = json_object_get(c, "tools");
	struct variables vars = { .n = 0 };

	add(&vars, "messages", json_object_get(c, "messages"), CHAT_MESSAGES);
	add(&vars, "tools", tools ? tools : none, CHAT_USER);
	add(&vars, "documents", none, CHAT_USER);
	add(&vars, "add_generation_prompt", json_object_get(c, "agp"), CHAT_MODEL);
	add_all(&vars, json_object_get(row, "special_tokens"));
	add_all(&vars, json_object_get(c, "kwargs"));
	compare(t, &vars, name, conversation, json_object_get(want, "expected"),
	        kind ? json_string_value(json_object_get(want, "message")) : "",
	        kind && !strcmp(kind, "TemplateError"));
	forget(&vars);
}

static void test_second(void **state)
{
	json_t *root = load(DATA "jinja_golden2.json.gz"), *row, *want;
	const char *conversation;
	unsigned n = 0;
	size_t i;
	(void)state;

	wrong = 0;
	json_array_foreach(json_object_get(root, "templates"), i, row)
	{
		struct chat_template *t = load_template(json_string_value(json_object_get(row, "template")));
		if (!t)
			continue;
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
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_first), cmocka_unit_test(test_second) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

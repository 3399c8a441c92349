/* tests/server/t_recorded.c - requests that packages of npm sent, byte by byte (clients/recorded/README): all are
 * answered, whole or as the events that the package reads, and images are refused by a sentence that names them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/support/shared.h"

static const char template[] =
	"{% for t in tools %}{{ t | tojson }}{% endfor %}{% if enable_thinking %}<think>{% endif %}"
	"{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls %}{{ c.function.name }}"
	"{{ c.function.arguments | tojson }}{% endfor %}\n{% endfor %}{% if add_generation_prompt %}assistant: {% "
	"endif %}";
static char template_path[64];
static struct child server;
static unsigned wrong;

static int start(void **state)
{
	(void)state;
	snprintf(template_path, sizeof template_path, "t_recorded.%d.jinja", (int)getpid());
	FILE *f = fopen(template_path, "w");
	if (!f || fputs(template, f) < 0 || fclose(f))
		return 1;
	server = child_start((const char *[]){ "--no-cache", "--alias", "tale", "--template", template_path, NULL });
	return 0;
}

static int stop(void **state)
{
	(void)state;
	unlink(template_path);
	return child_stop(&server);
}

static struct answer send_recorded(const json_t *o)
{
	const char *body = json_string_value(json_object_get(o, "body"));
	char *head = NULL;
	size_t n = 0, i;
	json_t *field;

	FILE *f = open_memstream(&head, &n);
	assert_true(f && body);
	fprintf(f, "%s %s HTTP/1.1\r\nHost: localhost\r\n", json_string_value(json_object_get(o, "method")),
	        json_string_value(json_object_get(o, "path")));
	json_array_foreach(json_object_get(o, "fields"), i, field) fprintf(f, "%s\r\n", json_string_value(field));
	if (*body)
		fprintf(f, "Content-Length: %zu\r\n", strlen(body));
	fprintf(f, "\r\n%s", body);
	fclose(f);
	const int fd = client_connect(&server, false);
	client_send(fd, head, n);
	struct answer a = client_read(fd, 120);
	close(fd);
	free(head);
	return a;
}

/* What the events of a stream end with, by the API that the path is of. */
static const char *end_of(const char *path)
{
	return strncmp(path, "/api/", 5) == 0           ? "\"done\":true"
	       : strncmp(path, "/v1/messages", 12) == 0 ? "event: message_stop"
	       : strcmp(path, "/v1/responses") == 0     ? "event: response.completed\n"
	                                                : "data: [DONE]";
}

static bool is_answered(const struct answer *a, const json_t *o)
{
	const char *path = json_string_value(json_object_get(o, "path"));
	json_t *body = json_loads(json_string_value(json_object_get(o, "body")), 0, NULL);
	json_t *stream = json_object_get(body, "stream");
	const bool events = json_is_true(stream);
	json_t *whole = a->body && !events ? json_loads(a->body, 0, NULL) : NULL;
	bool ok = a->status == 200 && !json_is_object(json_object_get(whole, "error"));

	if (events) /* an answer may be as long as it was let be, too */
		ok = ok && (strstr(a->body, end_of(path)) || strstr(a->body, "event: response.incomplete"));
	else
		ok = ok && json_is_object(whole);
	json_decref(whole);
	json_decref(body);
	return ok;
}

static bool is_refused(const struct answer *a)
{
	json_t *o = a->body ? json_loads(a->body, 0, NULL) : NULL, *e = json_object_get(o, "error");
	const char *text = json_is_string(e) ? json_string_value(e) : json_string_value(json_object_get(e, "message"));
	const bool ok = a->status == 400 && text && strstr(text, "cannot see");

	json_decref(o);
	return ok;
}

static void replay(const char *file, unsigned min)
{
	char path[200], *text, *next;
	unsigned count = 0;

	snprintf(path, sizeof path, "tests/server/clients/recorded/%s.jsonl", file);
	FILE *f = source_open(path);
	text = calloc(1, 1 << 20);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	for (char *line = text; *line; line = next, count++) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = 0;
		json_t *o = json_loads(line, 0, NULL);
		assert_non_null(o);
		const char *name = json_string_value(json_object_get(o, "name"));
		struct answer a = send_recorded(o);
		if (strncmp(name, "refused", 7) == 0 ? !is_refused(&a) : !is_answered(&a, o)) {
			printf("        %s: %s: status %d, %.400s\n", file, name, a.status, a.body);
			wrong++;
		}
		answer_free(&a);
		json_decref(o);
	}
	free(text);
	assert_true(count >= min);
	const unsigned n = wrong;
	wrong = 0;
	assert_int_equal(n, 0);
}

static void test_openai(void **state)
{
	(void)state;
	replay("openai", 20);
}
static void test_anthropic(void **state)
{
	(void)state;
	replay("anthropic", 12);
}
static void test_ollama(void **state)
{
	(void)state;
	replay("ollama", 15);
}
static void test_ai(void **state)
{
	(void)state;
	replay("ai", 9);
}
static void test_langchain(void **state)
{
	(void)state;
	replay("langchain", 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_openai), cmocka_unit_test(test_anthropic), cmocka_unit_test(test_ollama),
		cmocka_unit_test(test_ai),     cmocka_unit_test(test_langchain),
	};

	return cmocka_run_group_tests(tests, start, stop);
}

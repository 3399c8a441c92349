/* tests/server/odd_lengths.c - arrays, objects and texts of a request that are very long: what they cost grows as they
 * do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/odd_bodies.h"
#include "tests/server/odd_server.h"

/* Processor seconds that the server took until now. */
static double processor_seconds(void)
{
	char path[64], text[1000];
	unsigned long user = 0, system = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)odd_server.pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	const char *at = strrchr(text, ')');
	assert_non_null(at);
	assert_int_equal(sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system), 2);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* "one" as often as so many bytes hold it, with "between" between; numbered: each with its number in the place of #. */
static char *repeat(const char *begin, const char *one, const char *between, const char *end, size_t bytes)
{
	const size_t step = strlen(one) + strlen(between) + 8, n = bytes / step + 1;
	char *p = malloc(strlen(begin) + n * step + strlen(end) + 1), *at = p;

	assert_non_null(p);
	at += sprintf(at, "%s", begin);
	for (size_t i = 0; i < n; i++) {
		const char *number = strchr(one, '#');
		at += sprintf(at, "%s", i ? between : "");
		at += number ? sprintf(at, "%.*s%zu%s", (int)(number - one), one, i, number + 1)
		             : sprintf(at, "%s", one);
	}
	sprintf(at, "%s", end);
	return p;
}

static void try_long(const struct whole_request *w, const struct odd_cut *c, const char *name, char *value, double max)
{
	const size_t n = strlen(c->before) + strlen(value) + strlen(c->after);
	char *body = malloc(n + 1), what[400];

	assert_non_null(body);
	sprintf(body, "%s%s%s", c->before, value, c->after);
	snprintf(what, sizeof what, "%s %s: %s for %zu bytes", w->path, c->node.path, name, n);
	const double before = processor_seconds();
	struct answer a = odd_ask(w->method, w->path, ODD_JSON, body, n);
	const double took = processor_seconds() - before;
	if (took > max) {
		printf("        %.1f processor seconds\n", took);
		odd_complain(what, &a, "too long");
	}
	odd_judge(what, &a, NULL, body, n);
	free(body);
	free(value);
	odd_maybe_check();
}

/* Histories that are many messages, calls and results: what goes through them several times must not for each go
 * through all. Those of a group are answered, refused or not, within a second or so. */
static void ask_history(const char *path, const char *before, const char *one, size_t n, const char *between,
                        const char *other, size_t m)
{
	const size_t room = strlen(before) + n * (strlen(one) + 1) + strlen(between) + m * (strlen(other) + 1) + 10;
	char *body = malloc(room), *at = body, what[200];

	assert_non_null(body);
	at += sprintf(at, "%s", before);
	for (size_t i = 0; i < n; i++)
		at += sprintf(at, "%s%s", i ? "," : "", one);
	at += sprintf(at, "%s", between);
	for (size_t i = 0; i < m; i++)
		at += sprintf(at, ",%s", other);
	sprintf(at, "]}");
	snprintf(what, sizeof what, "%s with %zu of %.60s and %zu of %.60s", path, n, one, m, other);
	const double start = processor_seconds();
	struct answer a = odd_ask("POST", path, ODD_JSON, body, strlen(body));
	if (processor_seconds() - start > 3 * (SANITIZED ? 8 : 1))
		odd_complain(what, &a, "too long");
	if (n + m > 10000 && (a.status != 400 || !strstr(a.body, "more than 10000 messages and calls")))
		odd_complain(what, &a, "too many");
	odd_judge(what, &a, NULL, body, strlen(body));
	free(body);
}

/* A template that refuses a long conversation is not asked anew for each way to repair one. */
static void ask_unrepaired(void)
{
	static const char before[] = "{\"messages\":[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[",
			  after[] = "]},{\"role\":\"user\",\"content\":\"a\"}]}";
	char *members = repeat("{", "\"#\":{}", ",", "}", 3000000);
	char *body = malloc(strlen(before) + strlen(members) + strlen(after) + 1);

	assert_non_null(body);
	sprintf(body, "%s%s%s", before, members, after);
	const double start = processor_seconds();
	struct answer a = odd_ask("POST", "/apply-template", ODD_JSON, body, strlen(body));
	const double took = processor_seconds() - start;
	printf("        a call of %zu bytes without a name: %.1f processor seconds\n", strlen(body), took);
	if (took > 3 * (SANITIZED ? 8 : 1))
		odd_complain("/apply-template, a call without a name", &a, "too long");
	odd_judge("a call without a name", &a, NULL, body, strlen(body));
	free(body);
	free(members);
}

void odd_histories(void **state)
{
#define CALLS "{\"messages\":[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":["
#define CALL "{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"
#define RESULT "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"x\"}"
#define SAID "{\"role\":\"user\",\"content\":\"a\"}"
#define FUNCTION "{\"role\":\"function\",\"name\":\"f\",\"content\":\"x\"}"
#define OWN "{\"function\":{\"name\":\"f\",\"arguments\":{}}}"
#define CHATS "/v1/chat/completions"
	(void)state;

	ask_history(CHATS, CALLS, CALL, 4000, "]}", RESULT, 4000);
	ask_history(CHATS, CALLS, CALL, 100000, "]}", RESULT, 0);
	ask_history(CHATS, "{\"messages\":[", SAID, 9000, "", RESULT, 900);
	ask_history(CHATS, "{\"messages\":[", SAID, 100000, "", SAID, 0);
	ask_history(CHATS, "{\"functions\":[{\"name\":\"f\"}],\"messages\":[", FUNCTION, 100000, "", SAID, 1);
	ask_history("/api/chat", CALLS, OWN, 4000, "]}", RESULT, 4000);
	ask_history("/api/chat", CALLS, OWN, 50000, "]}", RESULT, 50000);
	if (!test_quick())
		ask_unrepaired();
	odd_must_be_right();
}

/* All that it takes is linear: a body of 16 MiB would else hold a thread for hours. */
void odd_lengths(void **state)
{
	static const struct odd_strides strides = { 131, 17, 5, 1 };
	static const char *const elements[] = { "0", "{}", "\"\"", "[]", "null", "\"#\"", "{\"#\":0}" };
	static const char *const texts[] = { "a", " ", "{{", "<", "\\n", "[", "(", "<tool_call>", "a|" };
	static const char *const members[] = { "\"#\":0", "\"#\":{}", "\"#\":\"\"" };
	const size_t bytes = test_full() ? 2000000 : 200000;
	const double max = (test_full() ? 6 : 1.5) * (SANITIZED ? 8 : 1);
	size_t number = 0;
	(void)state;

	for (size_t i = 0; i < n_whole_requests; i++) {
		const struct whole_request *w = &whole_requests[i];
		for (size_t node = 0, nodes = odd_nodes(w->body); node < nodes; node++) {
			struct odd_cut c;
			odd_cut(&c, w->body, node);
			json_t *v = json_loads(c.value, JSON_DECODE_ANY, NULL), *own = json_array_get(v, 0);
			char *one = own ? json_dumps(own, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
			for (size_t k = 0; json_is_array(v) && k < sizeof elements / sizeof *elements; k++)
				if (odd_is_mine(&strides, number++))
					try_long(w, &c, elements[k], repeat("[", elements[k], ",", "]", bytes), max);
			if (one && odd_is_mine(&strides, number++))
				try_long(w, &c, one, repeat("[", one, ",", "]", bytes), max);
			for (size_t k = 0; json_is_object(v) && k < sizeof members / sizeof *members; k++)
				if (odd_is_mine(&strides, number++))
					try_long(w, &c, members[k], repeat("{", members[k], ",", "}", bytes), max);
			for (size_t k = 0; json_is_string(v) && k < sizeof texts / sizeof *texts; k++)
				if (odd_is_mine(&strides, number++))
					try_long(w, &c, texts[k], repeat("\"", texts[k], "", "\"", bytes), max);
			free(one);
			json_decref(v);
			odd_cut_free(&c);
		}
	}
	odd_must_be_right();
}

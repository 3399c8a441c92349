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

static void try_long(const struct whole_request *w, const struct odd_cut *c, const char *name, char *value, double most)
{
	const size_t n = strlen(c->before) + strlen(value) + strlen(c->after);
	char *body = malloc(n + 1), what[400];

	assert_non_null(body);
	sprintf(body, "%s%s%s", c->before, value, c->after);
	snprintf(what, sizeof what, "%s %s: %s for %zu bytes", w->path, c->node.path, name, n);
	const double before = processor_seconds();
	struct answer a = odd_ask(w->method, w->path, ODD_JSON, body, n);
	const double took = processor_seconds() - before;
	if (took > most) {
		printf("        %.1f processor seconds\n", took);
		odd_complain(what, &a, "too long");
	}
	odd_judge(what, &a, NULL, body, n);
	free(body);
	free(value);
	odd_maybe_check();
}

/* All that it takes is linear: a body of 16 MiB would else hold a thread for hours. */
void odd_lengths(void **state)
{
	static const struct odd_strides strides = { 131, 17, 5, 1 };
	static const char *const elements[] = { "0", "{}", "\"\"", "[]", "null", "\"#\"", "{\"#\":0}" };
	static const char *const texts[] = { "a", " ", "{{", "<", "\\n", "[", "(", "<tool_call>", "a|" };
	static const char *const members[] = { "\"#\":0", "\"#\":{}", "\"#\":\"\"" };
	const size_t bytes = test_full() ? 2000000 : 200000;
	const double most = (test_full() ? 6 : 1.5) * (SANITIZED ? 8 : 1);
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
					try_long(w, &c, elements[k], repeat("[", elements[k], ",", "]", bytes), most);
			if (one && odd_is_mine(&strides, number++))
				try_long(w, &c, one, repeat("[", one, ",", "]", bytes), most);
			for (size_t k = 0; json_is_object(v) && k < sizeof members / sizeof *members; k++)
				if (odd_is_mine(&strides, number++))
					try_long(w, &c, members[k], repeat("{", members[k], ",", "}", bytes), most);
			for (size_t k = 0; json_is_string(v) && k < sizeof texts / sizeof *texts; k++)
				if (odd_is_mine(&strides, number++))
					try_long(w, &c, texts[k], repeat("\"", texts[k], "", "\"", bytes), most);
			free(one);
			json_decref(v);
			odd_cut_free(&c);
		}
	}
	odd_must_be_right();
}

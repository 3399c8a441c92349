/* tests/server/t_odd_requests.c - one server and thousands of requests that nobody would send: any value at any place
 * of a request, any bytes, any method, query and content type.
 *
 * Each ends in an answer or in one sentence that has the field's name in it, and none changes what the server answers
 * to others: now and then a request is repeated, whose answer must be the same. JITRUN_TEST_FULL=1 sends over 25 000.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/request/request_fields.h"
#include "tests/server/odd_bodies.h"
#include "tests/server/odd_server.h"

/* ---- all are right as they are */

static void test_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_whole_requests; i++) {
		const struct whole_request *w = &whole_requests[i];
		struct answer a = odd_ask(w->method, w->path, ODD_JSON, w->body, strlen(w->body));
		if (a.status != 200)
			odd_complain(w->path, &a, "a whole request");
		answer_free(&a);
	}
	odd_must_be_right();
}

/* ---- any value at any place */

struct text {
	char *p;
	size_t n;
};

static void add(struct text *t, const char *p, size_t n)
{
	t->p = realloc(t->p, t->n + n + 1);
	assert_non_null(t->p);
	memcpy(t->p + t->n, p, n);
	t->n += n;
	t->p[t->n] = 0;
}

static void add_text(struct text *t, const char *p) { add(t, p, strlen(p)); }

enum { TWICE, GONE, IN_ARRAY, IN_OBJECT, OFTEN, BEHIND, WAYS };
static const char *const ways[] = { "twice", "gone", "in an array", "in an object", "often", "behind a value" };

/* The body with an odd value in the node's place, or with what was there in another way. */
static struct text vary(const struct odd_cut *c, const struct odd_value *values, size_t n_values, size_t v)
{
	const size_t way = v < n_values ? WAYS : v - n_values;
	struct text t = { 0 };

	add(&t, c->before, way == GONE && c->key ? (size_t)(c->key - c->before) : strlen(c->before));
	if (way == WAYS) {
		add(&t, values[v].p, values[v].n);
	} else if (way == TWICE && c->key) { /* the last one counts */
		add_text(&t, "{\"odd\":[7]},");
		add_text(&t, c->key);
		add_text(&t, c->value);
	} else if (way == GONE) {
		add_text(&t, c->key ? "\"x_gone\":" : "");
		add_text(&t, c->key ? c->value : "null");
	} else if (way == BEHIND && c->key) {
		add_text(&t, c->value);
		add_text(&t, ",");
		add_text(&t, c->key);
		add_text(&t, "[[{\"odd\":7}]]");
	} else {
		add_text(&t, way == IN_ARRAY ? "[" : way == IN_OBJECT ? "{\"x\":" : "");
		for (int i = 0; i < (way == OFTEN && !c->key ? 200 : 1); i++) {
			add_text(&t, i ? "," : "");
			add_text(&t, c->value);
		}
		add_text(&t, way == IN_ARRAY ? "]" : way == IN_OBJECT ? "}" : "");
	}
	add_text(&t, c->after);
	return t;
}

static void test_nodes(void **state)
{
	static const struct odd_strides strides = { 997, 97, 13, 5 };
	size_t n_values, number = 0;
	const struct odd_value *values = odd_values(&n_values);
	char what[500];
	(void)state;

	for (size_t i = 0; i < n_whole_requests; i++) {
		const struct whole_request *w = &whole_requests[i];
		for (size_t node = 0, nodes = odd_nodes(w->body); node < nodes; node++) {
			struct odd_cut c = { 0 };
			for (size_t v = 0; v < n_values + WAYS; v++) {
				if (!odd_is_mine(&strides, number++))
					continue;
				if (!c.before)
					odd_cut(&c, w->body, node);
				struct text t = vary(&c, values, n_values, v);
				snprintf(what, sizeof what, "%s %s: %.100s", w->path, c.node.path,
				         v < n_values ? values[v].name : ways[v - n_values]);
				struct answer a = odd_ask(w->method, w->path, ODD_JSON, t.p, t.n);
				odd_judge(what, &a, c.node.path, t.p, t.n);
				free(t.p);
				odd_maybe_check();
			}
			odd_cut_free(&c);
		}
	}
	odd_must_be_right();
}

/* ---- any value of any field that any endpoint knows */

static bool is_first_of_name(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(request_fields[k].name, request_fields[i].name) == 0)
			return false;
	return true;
}

static void test_fields(void **state)
{
	static const struct odd_strides strides = { 9973, 997, 499, 61 };
	size_t n_values, number = 0;
	const struct odd_value *values = odd_values(&n_values);
	char what[500];
	(void)state;

	for (size_t i = 0; i < n_request_fields; i++)
		for (size_t k = 0; is_first_of_name(i) && k < n_whole_requests; k++)
			for (size_t v = 0; v < n_values; v++) {
				const struct whole_request *w = &whole_requests[k];
				const char *name = request_fields[i].name;
				struct text t = { 0 };
				if (!odd_is_mine(&strides, number++))
					continue;
				add(&t, w->body, strlen(w->body) - 1);
				add_text(&t, ",\"");
				add_text(&t, name);
				add_text(&t, "\":");
				add(&t, values[v].p, values[v].n);
				add_text(&t, "}");
				snprintf(what, sizeof what, "%s and %s: %.100s", w->path, name, values[v].name);
				struct answer a = odd_ask(w->method, w->path, ODD_JSON, t.p, t.n);
				odd_judge(what, &a, name, t.p, t.n);
				free(t.p);
				odd_maybe_check();
			}
	odd_must_be_right();
}

/* ---- any bytes */

static uint64_t state_of_draws;

static unsigned draw(unsigned below)
{
	state_of_draws = state_of_draws * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state_of_draws >> 33) % below;
}

/* A body with some bytes changed, gone, or from somewhere else. */
static struct text spoil(const char *body)
{
	static const char bytes[] = "{}[]\",:\\ 0-9e.\n\0\xff\xc0nt";
	struct text t = { 0 };

	add_text(&t, body);
	for (unsigned i = draw(4) + 1; i; i--) {
		const size_t at = draw((unsigned)t.n), n = draw(9) + 1;
		const unsigned how = draw(4);
		if (how == 0)
			t.p[at] = bytes[draw(sizeof bytes - 1)];
		else if (how == 1)
			t.p[at] = (char)draw(256);
		else if (how == 2 && at + n < t.n) {
			memmove(t.p + at, t.p + at + n, t.n - at - n);
			t.n -= n;
		} else if (at + n < t.n)
			memmove(t.p + draw((unsigned)(t.n - n)), t.p + at, n);
	}
	return t;
}

static void test_bytes(void **state)
{
	const unsigned rounds = test_full() ? 200 : test_quick() ? 1 : 10;
	char what[400];
	(void)state;

	for (unsigned round = 0; round < rounds; round++) {
		state_of_draws = round + 1;
		for (size_t i = 0; i < n_whole_requests && test_in_part(round); i++) {
			const struct whole_request *w = &whole_requests[i];
			struct text t = spoil(w->body);
			struct answer a = odd_ask(w->method, w->path, ODD_JSON, t.p, t.n);
			snprintf(what, sizeof what, "%s with %.300s", w->path, t.p);
			odd_judge(what, &a, NULL, t.p, t.n);
			/* What is cut is refused: no body is whole before its end. */
			t.n = draw((unsigned)strlen(w->body));
			a = odd_ask(w->method, w->path, ODD_JSON, w->body, t.n);
			snprintf(what, sizeof what, "%s with its first %zu bytes", w->path, t.n);
			if (a.status == 200)
				odd_complain(what, &a, "a cut body");
			odd_judge(what, &a, NULL, w->body, t.n);
			free(t.p);
			odd_maybe_check();
		}
	}
	odd_must_be_right();
}

/* ---- what is left behind */

/* Connections are given up, and memory goes back. */
static void test_as_before(void **state)
{
	char path[64], text[4096];
	long resident = 0;
	(void)state;

	odd_check_as_ever();
	odd_hang_up();
	for (int tries = 0; tries < 100 && child_fds(&odd_server) > odd_fds + 8; tries++)
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	assert_in_range(child_fds(&odd_server), 1, odd_fds + 8);
	snprintf(path, sizeof path, "/proc/%d/status", (int)odd_server.pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	const char *found = strstr(text, "VmRSS:");
	if (found)
		resident = atol(found + 6);
	printf("        it has %ld MiB\n", resident / 1024);
#if !SANITIZED
	assert_in_range(resident, 1, 600 * 1024);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),    cmocka_unit_test(test_nodes),     cmocka_unit_test(test_fields),
		cmocka_unit_test(test_bytes),    cmocka_unit_test(odd_heads),      cmocka_unit_test(odd_lengths),
		cmocka_unit_test(odd_histories), cmocka_unit_test(test_as_before),
	};

	return cmocka_run_group_tests(tests, odd_start, odd_stop);
}

/* tests/server/t_bombs.c - clients whose grammars ask for any amount of work: each has an answer, or a sentence and
 * status 400. Meanwhile others have the answers that they always have, the server is alive, and none of the threads
 * that serve all has any part of that work; SIGTERM ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/grammar/bombs.h"
#include "tests/support/sanitized.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

#define HONEST "{\"prompt\":\"Once upon a time\",\"max_tokens\":40,\"seed\":5,\"temperature\":0.8}"

static struct child server;

/* NULL: there was none. */
static char *honest_text(void)
{
	struct answer a = client_ask(&server, "/v1/completions", NULL, HONEST);
	json_t *o = a.status == 200 ? json_loads(a.body, 0, NULL) : NULL;
	const char *text = json_string_value(json_object_get(json_array_get(json_object_get(o, "choices"), 0), "text"));
	char *copy = text ? strdup(text) : NULL;

	if (!copy)
		printf("# status %d after %.1f s: %.200s\n", a.status, a.seconds, a.body ? a.body : "");
	json_decref(o);
	answer_free(&a);
	return copy;
}

/* ---- the threads that the server begins with: the one that computes for all, and those that read and write */

enum { THREADS_MAX = 64 };
struct threads {
	unsigned n, id[THREADS_MAX];
	unsigned long ticks[THREADS_MAX],
		max; /* of the processor: so far, and the largest difference from one look to the next */
};

static unsigned long ticks_of(unsigned id)
{
	char path[80], line[600] = "";
	unsigned long user = 0, system = 0;

	snprintf(path, sizeof path, "/proc/%d/task/%u/stat", (int)server.pid, id);
	FILE *f = fopen(path, "r");
	const char *behind = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
	if (behind)
		sscanf(behind, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
	if (f)
		fclose(f);
	return user + system;
}

static struct threads find_threads(void)
{
	struct threads t = { .n = 0 };
	char path[80];
	const struct dirent *e;

	snprintf(path, sizeof path, "/proc/%d/task", (int)server.pid);
	DIR *d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d)) && t.n < THREADS_MAX)
		if (e->d_name[0] != '.')
			t.id[t.n++] = (unsigned)strtoul(e->d_name, NULL, 10);
	closedir(d);
	assert_true(t.n > 2);
	return t;
}

static void look_at(struct threads *t)
{
	for (unsigned i = 0; i < t->n; i++) {
		const unsigned long ticks = ticks_of(t->id[i]), more = ticks - t->ticks[i];
		if (t->ticks[i] && ticks && more > t->max)
			t->max = more;
		t->ticks[i] = ticks;
	}
}

/* Another client, all the time; it breathes between its requests, which else take most of the processor's time. */
struct other {
	const char *expected;
	atomic_bool ends;
	unsigned requests, wrong;
	struct threads threads;
};

static void *ask_always(void *user)
{
	struct other *o = user;

	while (!o->ends) {
		struct answer alive = client_ask(&server, "/livez", NULL, NULL);
		char *text = honest_text();
		o->wrong += alive.status != 200 || !text || strcmp(text, o->expected) != 0;
		o->requests++;
		look_at(&o->threads);
		answer_free(&alive);
		free(text);
		usleep(100000);
	}
	return NULL;
}

/* The bomb as a form of the answer, or as the parameters of a call that must be made. */
static char *body_of(const struct bomb *b, bool call)
{
	json_t *schema = b->kind == GRAMMAR_SCHEMA ? json_loads(b->text, JSON_DECODE_ANY, NULL) : NULL, *o;

	if (b->kind == GRAMMAR_REGEX)
		schema = json_pack("{s:s, s:s}", "type", "string", "pattern", b->text);
	if (b->kind == GRAMMAR_GBNF)
		o = json_pack("{s:s, s:i, s:i, s:s}", "prompt", "x", "max_tokens", 12, "seed", 3, "grammar", b->text);
	else if (call)
		o = json_pack("{s:[{s:s, s:s}], s:i, s:s, s:[{s:s, s:{s:s, s:{s:s, s:{s:O}}}}]}", "messages", "role",
		              "user", "content", "x", "max_tokens", 12, "tool_choice", "required", "tools", "type",
		              "function", "function", "name", "f", "parameters", "type", "object", "properties", "x",
		              schema ? schema : json_true());
	else
		o = json_pack("{s:s, s:i, s:i, s:O}", "prompt", "x", "max_tokens", 12, "seed", 3, "json_schema",
		              schema ? schema : json_true());
	char *text = json_dumps(o, 0);
	json_decref(schema);
	json_decref(o);
	return text;
}

static void check(const struct bomb *b, bool call)
{
	char *body = body_of(b, call);
	struct answer a = client_ask(&server, call ? "/v1/chat/completions" : "/v1/completions", NULL, body);
	const bool said = a.status == 200 || (a.status == 400 && strstr(a.body, "\"message\":"));

	if (a.status == 400 && strstr(a.body, "more work"))
		assert_null(strstr(a.body, "\"param\":null"));
	printf("# %-24s %d in %.1f s: %.160s\n", b->name, a.status, a.seconds, a.status == 200 ? "" : a.body);
	if (!said)
		fail_msg("%s: status %d: %.300s", b->name, a.status, a.body ? a.body : "");
	answer_free(&a);
	free(body);
}

static void test_bombs(void **state)
{
	static struct other o; /* its thread goes on where an assertion fails */
	pthread_t other;
	(void)state;

	server = child_start((const char *const[]){ "--parallel", "4", "--max-body", "8", NULL });
	o.threads = find_threads();
	char *expected = honest_text();
	assert_non_null(expected);
	o.expected = expected;
	assert_int_equal(pthread_create(&other, NULL, ask_always, &o), 0);
	for (size_t i = 0;; i++) {
		struct bomb b = bomb_make(i);
		if (!b.name)
			break;
		check(&b, false);
		if (b.kind == GRAMMAR_SCHEMA && (!test_quick() || i % 4 == 0))
			check(&b, true);
		free(b.text);
	}
	o.ends = true;
	pthread_join(other, NULL);
	printf("# another client asked %u times, and a thread took at most %lu ms meanwhile\n", o.requests,
	       1000 * o.threads.max / (unsigned long)sysconf(_SC_CLK_TCK));
	assert_int_equal(o.wrong, 0);
	assert_true(o.requests > 0);
	assert_true(1000 * o.threads.max / (unsigned long)sysconf(_SC_CLK_TCK) < (SANITIZED ? 2000 : 250));
	free(expected);
	assert_int_equal(child_stop(&server), 0);
}

/* Who does not wait for the answer is not waited for, and SIGTERM is heard while such grammars are read. */
static void test_ended(void **state)
{
	(void)state;

	server = child_start((const char *const[]){ "--parallel", "4", "--max-body", "8", NULL });
	for (size_t i = 0; i < 6; i++) {
		struct bomb b = bomb_make(i);
		char *body = body_of(&b, false), head[200];
		const int fd = client_connect(&server, false);
		snprintf(head, sizeof head,
		         "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
		         "Content-Length: %zu\r\n\r\n",
		         strlen(body));
		client_send(fd, head, strlen(head));
		client_send(fd, body, strlen(body));
		if (i % 2)
			close(fd);
		free(body);
		free(b.text);
	}
	char *text = honest_text();
	assert_non_null(text);
	free(text);
	assert_int_equal(child_stop(&server), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bombs), cmocka_unit_test(test_ended) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

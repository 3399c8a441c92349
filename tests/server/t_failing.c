/* tests/server/t_failing.c - a server while calls of it fail: an allocation of a request, descriptors that run out. The
 * client whose request it is has an error, or its whole answer, or no connection; never half an answer as if it were
 * whole. Others have their answers, and afterwards the server is as before.
 *
 * JITRUN_TEST_FULL: each allocation in turn; else some, evenly spread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/faults/control.h"
#include "tests/server/client.h"
#include "tests/support/sanitized.h"
#include "tests/support/shared.h"

static struct faults_control *control;
static char library[4096], page_text[16];

static void preload(void)
{
	setenv("LD_PRELOAD", library, 1);
	setenv(FAULTS_FD, page_text, 1);
}

static bool make_page(void)
{
	char here[3000];
	int fd = memfd_create("faults", 0);

	if (fd < 0 || ftruncate(fd, sizeof *control) || !getcwd(here, sizeof here))
		return false;
	snprintf(library, sizeof library, "%s/tests/faults/.libs/preload.so", here);
	snprintf(page_text, sizeof page_text, "%d", fd);
	control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return control != MAP_FAILED && access(library, R_OK) == 0;
}

#define SCHEMA \
	"{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\",\"minLength\":6,\"maxLength\":20}}," \
	"\"required\":[\"x\"],\"additionalProperties\":false}"
#define GET "\"name\":\"get\""
#define TOOL "\"tools\":[{\"type\":\"function\",\"function\":{" GET ",\"parameters\":" SCHEMA "}}]"
#define ASK "\"messages\":[{\"role\":\"user\",\"content\":\"A tale of a king.\"}],\"seed\":1,\"max_tokens\":"
#define USER ASK "12"
#define LONG ASK "80"

static const struct requests {
	const char *path, *body;
	bool events;
} requests[] = {
	{ "/v1/chat/completions", "{" USER ",\"logprobs\":true,\"top_logprobs\":2}", false },
	{ "/v1/chat/completions",
	  "{" USER ",\"stream\":true,\"stop\":[\"xyz\"],\"stream_options\":{\"include_usage\":true}}", true },
	{ "/v1/chat/completions", "{" USER "," TOOL ",\"tool_choice\":\"required\"}", false },
	/* Calls while they are generated: whole ones, and one that is cut off in its arguments. */
	{ "/v1/chat/completions", "{" LONG "," TOOL ",\"tool_choice\":\"required\",\"stream\":true}", true },
	{ "/v1/chat/completions", "{" USER "," TOOL ",\"tool_choice\":\"required\",\"stream\":true}", true },
	{ "/v1/messages",
	  "{" LONG ",\"tools\":[{" GET ",\"input_schema\":" SCHEMA "}],\"tool_choice\":{\"type\":\"any\"},"
	  "\"stream\":true}",
	  true },
	{ "/v1/responses",
	  "{\"input\":\"A tale of a king.\",\"max_output_tokens\":80,\"seed\":1,\"tools\":[{\"type\":\"function\"," GET
	  ",\"parameters\":" SCHEMA "}],\"tool_choice\":\"required\",\"stream\":true}",
	  true },
	{ "/v1/completions", "{\"prompt\":[\"Once\",\"The king\"],\"n\":2,\"max_tokens\":5,\"seed\":3}", false },
	{ "/completion", "{\"prompt\":\"Once\",\"n_predict\":5,\"n_probs\":2,\"seed\":3,\"stream\":true}", true },
	{ "/v1/messages", "{" USER ",\"stream\":true}", true },
	{ "/v1/responses", "{\"input\":\"A tale.\",\"max_output_tokens\":6,\"seed\":3}", false },
	{ "/v1/embeddings", "{\"input\":[\"a\",\"b\"]}", false },
	{ "/tokenize", "{\"content\":\"Once upon a time\",\"with_pieces\":true}", false },
	{ "/apply-template", "{" USER "," TOOL "}", false },
	{ "/v1/models", NULL, false },
	{ "/props", NULL, false },
	{ "/metrics", NULL, false },
};
enum { REQUESTS = sizeof requests / sizeof *requests };

/* What is another one each time: names, times, and the memory that the other request's KV cache takes. */
static void take_out(json_t *o)
{
	static const char *const names[] = { "id",           "created", "created_at", "timings", "item_id",
		                             "completed_at", "id_slot", "call_id",    "bytes",   "kv_bytes" };
	json_t *v;
	const char *name;
	size_t i;

	for (i = 0; json_is_object(o) && i < sizeof names / sizeof *names; i++)
		json_object_del(o, names[i]);
	json_object_foreach(o, name, v)
	{
		if (strcmp(name, "cached_tokens") == 0 || strcmp(name, "cache_read_input_tokens") == 0 ||
		    strcmp(name, "input_tokens") == 0)
			json_integer_set(v, 0);
		take_out(v);
	}
	json_array_foreach(o, i, v) take_out(v);
}

static void append(char **text, const char *p, size_t n)
{
	json_t *o = json_loadb(p, n, 0, NULL);
	char *said = NULL;
	size_t before = strlen(*text);

	if (o) {
		take_out(o);
		said = json_dumps(o, JSON_SORT_KEYS);
	}
	*text = realloc(*text, before + n + (said ? strlen(said) : 0) + 2);
	sprintf(*text + before, "%s\n", said ? said : "[DONE]");
	free(said);
	json_decref(o);
}

/* The answer without what differs; metrics: nothing but that they are there. */
static char *essence(const struct requests *q, const struct answer *a)
{
	char *text = calloc(1, 1);

	if (strcmp(q->path, "/metrics") == 0)
		return text;
	if (!q->events)
		append(&text, a->body, a->n_body);
	for (const char *at = a->body; q->events && (at = strstr(at, "data: ")); at++)
		append(&text, at + 6, strcspn(at + 6, "\n"));
	return text;
}

/* NULL: it is right. error: it is one, which is right, too. */
static const char *judge(const struct requests *q, const struct answer *a, const char *expected, bool *error)
{
	*error = true;
	if (a->status == 0)
		return a->closed ? NULL : "no answer, and the connection is open";
	if (a->status >= 400) {
		json_t *o = json_loadb(a->body, a->n_body, 0, NULL);
		bool tells = json_string_length(json_object_get(json_object_get(o, "error"), "message")) > 0;
		json_decref(o);
		return tells || a->n_body == 0 ? NULL : "an error without a sentence";
	}
	char *text = essence(q, a);
	bool same = strcmp(text, expected) == 0;
	bool told = q->events && strstr(a->body, "\"error\":{");
	free(text);
	*error = !same;
	if (same || told)
		return NULL;
	/* What ends before its end is seen to: no last chunk, and no [DONE]. */
	return q->events && a->closed && !strstr(a->body, "[DONE]") ? NULL : "half an answer as if it were whole";
}

struct neighbour {
	pthread_t thread;
	const struct child *server;
	struct answer answer;
};

static const struct requests beside = { "/v1/completions",
	                                "{\"prompt\":\"In the forest\",\"max_tokens\":12,\"seed\":8}", false };

static void *ask_beside(void *user)
{
	struct neighbour *n = user;

	n->answer = client_ask(n->server, beside.path, NULL, beside.body);
	return NULL;
}

static unsigned failed, errors, runs, shared;

/* One fault, which hits one of the two requests at most. */
static void try_at(const struct child *c, const struct requests *q, const char *expected, const char *expected_beside,
                   unsigned at)
{
	struct neighbour n = { .server = c };
	bool error, other;

	control->at = at;
	atomic_store(&control->count, 0);
	atomic_store(&control->begun, true);
	pthread_create(&n.thread, NULL, ask_beside, &n);
	struct answer a = client_ask(c, q->path, NULL, q->body);
	pthread_join(n.thread, NULL);
	atomic_store(&control->begun, false);
	const char *wrong = judge(q, &a, expected, &error);
	const char *wrong_beside = judge(&beside, &n.answer, expected_beside, &other);
	runs++;
	errors += error + other;
	shared += error && other;
	if (wrong || wrong_beside) {
		failed++;
		print_error("%s %s\n  allocation %u fails: %s (status %d: %.300s; beside it %d: %.300s)\n", q->path,
		            q->body ? q->body : "", at, wrong ? wrong : wrong_beside, a.status, a.body ? a.body : "",
		            n.answer.status, n.answer.body ? n.answer.body : "");
	}
	answer_free(&a);
	answer_free(&n.answer);
}

static char *ask_whole(const struct child *c, const struct requests *q)
{
	struct answer a = client_ask(c, q->path, NULL, q->body);

	if (a.status != 200)
		fail_msg("%s: status %d: %s", q->path, a.status, a.body);
	char *text = essence(q, &a);
	answer_free(&a);
	return text;
}

static void sweep(const struct child *c, const struct requests *q, const char *expected_beside, unsigned tries)
{
	char *expected = ask_whole(c, q);

	control->at = 0;
	atomic_store(&control->count, 0);
	atomic_store(&control->begun, true);
	char *again = ask_whole(c, q), *both = ask_whole(c, &beside);
	atomic_store(&control->begun, false);
	unsigned n = atomic_load(&control->count);
	assert_string_equal(again, expected);
	tries = tries < n ? tries : n;
	for (unsigned i = 0; i < tries; i++)
		try_at(c, q, expected, expected_beside, 1 + (unsigned)((uint64_t)i * n / tries));
	free(both);
	free(again);
	/* And now it is as before. */
	again = ask_whole(c, q);
	assert_string_equal(again, expected);
	free(again);
	free(expected);
}

static void test_allocations(void **state)
{
	static const char *const arguments[] = { "--no-cache", "--no-replay", "--speculate", "off", NULL };
	(void)state;

#if SANITIZED
	print_message("# skipped: a sanitizer's own calls would fail\n");
	skip();
#endif
	if (!make_page()) {
		print_message("# skipped: %s is not there\n", library);
		skip();
	}
	struct child c = child_start_prepared(arguments, preload);
	char *expected = ask_whole(&c, &beside);
	int fds = child_fds(&c);
	for (unsigned i = 0; i < REQUESTS; i++)
		sweep(&c, &requests[i], expected, test_full() ? UINT32_MAX : test_quick() ? 12 : 40);
	free(expected);
	print_message("%u runs with a fault, %u errors\n", runs, errors);
	assert_int_equal(failed, 0);
	assert_true(errors > 0);
	assert_int_equal(shared, 0);
	assert_true(child_fds(&c) <= fds + 8);
	assert_int_equal(child_stop(&c), 0);
}

/* ---- those who hear what happens to models */

struct listener {
	int fd;
	unsigned before; /* how often the model had been opened */
	char said[1 << 16];
	size_t n;
};

/* How often the model was opened. */
static unsigned count_loads(const struct child *c)
{
	static const char name[] = "\njitserve_model_loads_total{model=\"tale\"} ";
	struct answer a = client_ask(c, "/metrics", NULL, NULL);
	const char *at = a.body ? strstr(a.body, name) : NULL;

	if (!at)
		fail_msg("no %s in: %s", name, a.body);
	const unsigned n = (unsigned)atoi(at + strlen(name));
	answer_free(&a);
	return n;
}

/* Something more; false: the connection has ended. */
static bool hear(struct listener *l)
{
	const ssize_t n = recv(l->fd, l->said + l->n, sizeof l->said - l->n - 1, 0);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		fail_msg("nothing more is heard behind: %s", l->said);
	l->n += n > 0 ? (size_t)n : 0;
	l->said[l->n] = 0;
	return n > 0;
}

/* False: it has no stream. */
static bool listen_to(struct listener *l, const struct child *c, unsigned before)
{
	static const char get[] = "GET /models/sse HTTP/1.1\r\nHost: localhost\r\n\r\n";
	static const struct timeval patience = { .tv_sec = 20 };

	*l = (struct listener){ .before = before };
	l->fd = client_connect(c, false);
	setsockopt(l->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	client_send(l->fd, get, strlen(get));
	while (!strstr(l->said, ": events of models\n\n"))
		if (strstr(l->said, "HTTP/1.1 5") || !hear(l))
			return false;
	return true;
}

/* Whether it hears of each time that the model was opened. False: its connection has ended before. */
static bool hears_all(struct listener *l, const struct child *c)
{
	const unsigned loads = count_loads(c) - l->before;
	unsigned n;

	for (;;) {
		n = 0;
		for (const char *at = l->said; (at = strstr(at, "\"status\":\"loaded\"")); at++)
			n++;
		if (n >= loads)
			break;
		if (!hear(l))
			return false;
	}
	assert_int_equal(n, loads);
	return true;
}

/* The model leaves and comes back; whether that was done. */
static bool cycle(const struct child *c)
{
	static const char *const paths[] = { "/models/unload", "/models/load" };
	bool ok = true;

	for (size_t i = 0; i < 2; i++) {
		struct answer a = client_ask(c, paths[i], NULL, "{\"model\":\"tale\"}");
		ok = ok && a.status == 200;
		answer_free(&a);
	}
	return ok;
}

/* An allocation fails while one begins to listen, and the model leaves and comes back. Afterwards it does so once more.
 * Returns how many streams were lost. */
static unsigned fail_one(const struct child *c, struct listener *old, unsigned at, unsigned *undone)
{
	static struct listener late;
	const unsigned before = count_loads(c);
	unsigned lost = 0;

	control->at = at;
	atomic_store(&control->count, 0);
	atomic_store(&control->begun, true);
	const bool listens = listen_to(&late, c, before);
	*undone += !cycle(c);
	atomic_store(&control->begun, false);
	struct answer a = client_ask(c, "/models/load", NULL, "{\"model\":\"tale\"}");
	assert_true(a.status == 200 || a.status == 400);
	answer_free(&a);
	assert_true(cycle(c));
	lost += !listens || !hears_all(&late, c);
	close(late.fd);
	if (hears_all(old, c))
		return lost;
	return lost + 1;
}

/* Whatever fails, each hears all that happens, or its connection ends so that it knows that it does not. */
static void test_events(void **state)
{
	static const char *const arguments[] = { "--no-cache", "--no-replay", "--alias", "tale", NULL };
	static struct listener old;
	unsigned lost = 0, undone = 0;
	(void)state;

	if (SANITIZED || !make_page()) {
		print_message("# skipped: allocations cannot be failed here\n");
		skip();
	}
	struct child c = child_start_prepared(arguments, preload);
	unsigned before = count_loads(&c);
	control->at = 0;
	atomic_store(&control->count, 0);
	atomic_store(&control->begun, true);
	assert_true(listen_to(&old, &c, before) && cycle(&c) && hears_all(&old, &c));
	atomic_store(&control->begun, false);
	/* Most are those of kernels, which are made behind all that is told here: early ones are tried more often. */
	const unsigned n = atomic_load(&control->count), step = test_full() ? 32 : test_quick() ? 4 : 10;
	unsigned tries = 0;
	for (unsigned at = 1; at <= n; at += 1 + at / step, tries++) {
		close(old.fd);
		before = count_loads(&c);
		assert_true(listen_to(&old, &c, before));
		lost += fail_one(&c, &old, at, &undone);
	}
	print_message("%u allocations: %u failed, %u requests undone, %u streams lost\n", n, tries, undone, lost);
	assert_true(undone + lost > 0); /* threads decide which of the two an allocation belongs to */
	close(old.fd);
	assert_int_equal(child_stop(&c), 0);
}

/* ---- descriptors */

enum { FDS = 48 };

static void limit_descriptors(void)
{
	const struct rlimit small = { FDS, FDS };

	setrlimit(RLIMIT_NOFILE, &small);
}

/* More clients than descriptors: those that are served stay served, and others are, once there is room. */
static void test_descriptors(void **state)
{
	static const char *const arguments[] = { "--no-cache", "--no-replay", NULL };
	struct child c = child_start_prepared(arguments, limit_descriptors);
	char *expected = ask_whole(&c, &beside);
	int idle[FDS * 2];
	(void)state;

	char head[200];
	int n_head = snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
	                      beside.path, strlen(beside.body));
	int early = client_connect(&c, false);
	client_send(early, head, (size_t)n_head);
	for (int i = 0; i < FDS * 2; i++)
		idle[i] = client_connect(&c, false);
	client_send(early, beside.body, strlen(beside.body));
	struct answer a = client_read(early, 20);
	bool error;
	const char *wrong = judge(&beside, &a, expected, &error);
	if (wrong || error)
		fail_msg("while there are no descriptors: status %d: %s", a.status, a.body ? a.body : "");
	answer_free(&a);
	close(early);
	for (int i = 0; i < FDS * 2; i++)
		close(idle[i]);
	for (int round = 0; round < 5; round++) {
		char *text = ask_whole(&c, &beside);
		assert_string_equal(text, expected);
		free(text);
	}
	free(expected);
	assert_int_equal(child_stop(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allocations),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/server/t_load.c - clients that leave, that do not read, that are too many: each is noticed and counted, and the
 * others get what they would have got.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/support/shared.h"

#define LONG "{\"prompt\":\"The\",\"max_tokens\":1000,\"ignore_eos\":true,\"temperature\":0,\"stream\":%s,\"n\":%d}"
static const char shortly[] = "{\"prompt\":\"The king\",\"max_tokens\":12,\"temperature\":0}";

/* A number of /metrics. */
static double number(const struct child *c, const char *name)
{
	char line[200];
	struct answer a = client_ask(c, "/metrics", NULL, NULL);

	snprintf(line, sizeof line, "\n%s{model=\"tale-q8_0\"} ", name);
	const char *at = strstr(a.body, line);
	if (!at)
		fail_msg("%s is not in %s", name, a.body);
	double value = atof(at + strlen(line));
	answer_free(&a);
	return value;
}

/* Waits until a number is what it should become. */
static void expect(const struct child *c, const char *name, double value)
{
	for (int i = 0; i < 400 && number(c, name) < value; i++)
		usleep(25000);
	assert_true(number(c, name) >= value);
}

static void expect_none(const struct child *c, const char *name)
{
	for (int i = 0; i < 400 && number(c, name) > 0; i++)
		usleep(25000);
	assert_true(number(c, name) <= 0);
}

/* An answer on a connection of its own, asked for and not read. */
static int begin(const struct child *c, const char *body, bool little)
{
	char text[1000];
	int fd = client_connect(c, little);

	snprintf(text, sizeof text, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
	         strlen(body), body);
	client_send(fd, text, strlen(text));
	return fd;
}

static char *text_alone(const struct child *c)
{
	json_t *o = client_json(c, "/v1/completions", shortly, 200);
	char *text =
		strdup(json_string_value(json_object_get(json_array_get(json_object_get(o, "choices"), 0), "text")));

	json_decref(o);
	return text;
}

/* Clients that close, that close their half alone, and that reset the connection, while they wait for a whole answer
 * and while they read a stream; a neighbour's text stays what it is. */
static void test_clients_leave(void **state)
{
	static const char *const arguments[] = { "--parallel", "8", "--no-cache", NULL };
	struct child c = child_start(arguments);
	char *before = text_alone(&c), body[300];
	int fds = child_fds(&c);
	(void)state;

	for (int i = 0; i < 6; i++) {
		const struct linger reset = { .l_onoff = 1 };
		snprintf(body, sizeof body, LONG, i % 2 ? "true" : "false", 1);
		int fd = begin(&c, body, false);
		expect(&c, "jitserve_answers_started_total", 2 + 2 * i);
		if (i >= 4)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		if (i / 2 == 1)
			shutdown(fd, SHUT_WR);
		else
			close(fd);
		char *text = text_alone(&c);
		assert_string_equal(text, before);
		free(text);
		expect(&c, "jitserve_answers_cancelled_total", 1 + i);
		if (i / 2 == 1)
			close(fd);
	}
	expect_none(&c, "llamacpp:requests_processing");
	/* 6 answers of 1000 tokens were not computed to their ends */
	assert_true(number(&c, "llamacpp:tokens_predicted_total") < 6 * 900);
	for (int i = 0; i < 100 && child_fds(&c) > fds; i++)
		usleep(20000);
	assert_true(child_fds(&c) <= fds);
	free(before);
	assert_int_equal(child_stop(&c), 0);
}

/* One that leaves while its prompt is computed: the rest of the prompt is not. */
static void test_leaves_in_prompt(void **state)
{
	enum { PROMPT = 4000 };
	static const char *const arguments[] = { "--no-cache", "--batch", "32", "--context", "4096", NULL };
	struct child c = child_start(arguments);
	char *body = malloc(PROMPT * 5 + 100), *at = body;
	int fd = client_connect(&c, false);
	(void)state;

	assert_non_null(body);
	at += sprintf(at, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{\"prompt\":[",
	              PROMPT * 4 + 12);
	for (int i = 0; i < PROMPT; i++)
		at += sprintf(at, "%s%d", i ? "," : "", 300 + i * 7 % 600);
	strcpy(at, "]}");
	client_send(fd, body, strlen(body));
	expect(&c, "jitserve_passes_total", 2);
	close(fd);
	expect(&c, "jitserve_answers_cancelled_total", 1);
	double computed = number(&c, "jitserve_pass_tokens_total");
	if (computed >= PROMPT / 2)
		fail_msg("%.0f tokens of %d were computed for nobody", computed, PROMPT);
	free(body);
	assert_int_equal(child_stop(&c), 0);
}

/* More connections of one address than it may have: those that are there stay, and others are ended at once. */
static void test_connections(void **state)
{
	enum { MAX = 6 };
	static const char *const arguments[] = { "--max-connections-per-address", "6", "--no-cache", NULL };
	static const char request[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct child c = child_start(arguments);
	int fd[MAX + 1];
	(void)state;

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i <= MAX; i++) {
			fd[i] = client_connect(&c, false);
			client_send(fd[i], request, sizeof request - 1);
			struct answer a = client_read(fd[i], 20);
			assert_int_equal(a.status, i < MAX ? 200 : 0);
			assert_true(i < MAX || a.closed);
			answer_free(&a);
		}
		for (int i = 0; i <= MAX; i++)
			close(fd[i]);
		for (int i = 0; i < 500 && child_fds(&c) > 30; i++)
			usleep(20000);
		usleep(200000);
	}
	assert_int_equal(child_stop(&c), 0);
}

/* More connections than there may be in all: the next one waits until another ends. */
static void test_all_connections(void **state)
{
	enum { MAX = 6 };
	static const char *const arguments[] = { "--max-connections", "6", "--no-cache", NULL };
	static const char request[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct child c = child_start(arguments);
	int fd[MAX + 1];
	(void)state;

	for (int i = 0; i <= MAX; i++) {
		fd[i] = client_connect(&c, false);
		client_send(fd[i], request, sizeof request - 1);
		struct pollfd answered = { fd[i], POLLIN, 0 };
		assert_int_equal(poll(&answered, 1, i < MAX ? 20000 : 500), i < MAX);
		if (i == MAX)
			close(fd[0]);
		struct answer a = client_read(fd[i], 20);
		assert_int_equal(a.status, 200);
		answer_free(&a);
	}
	for (int i = 1; i <= MAX; i++)
		close(fd[i]);
	for (int i = 0; i < 500 && child_fds(&c) > 30; i++)
		usleep(20000);
	usleep(200000);
	assert_int_equal(child_stop(&c), 0);
}

/* One that reads nothing is dropped when so much is unread, and no other waits for it. */
static void test_slow_reader(void **state)
{
	static const char *const arguments[] = { "--parallel", "16", "--max-unread", "4", "--no-cache", NULL };
	struct child c = child_start(arguments);
	char body[300];
	(void)state;

	snprintf(body, sizeof body, LONG, "true", 12);
	int slow = begin(&c, body, true);
	char *text = text_alone(&c);
	expect(&c, "jitserve_answers_dropped_total", 12);
	char *again = text_alone(&c);
	assert_string_equal(text, again);
	expect_none(&c, "llamacpp:requests_processing");
	struct answer a = client_read(slow, 20);
	assert_true(a.closed);
	assert_null(strstr(a.body, "[DONE]"));
	answer_free(&a);
	close(slow);
	free(text);
	free(again);
	assert_int_equal(child_stop(&c), 0);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reads a stream until the answer on another connection begins; the longest time in which nothing of it came. */
static double longest_wait(int stream, int other, int *tokens)
{
	struct pollfd both[] = { { stream, POLLIN, 0 }, { other, POLLIN, 0 } };
	double last = now(), longest = 0;
	char some[4001];

	while (poll(both, 2, 60000) > 0 && !both[1].revents) {
		if (!both[0].revents)
			continue;
		ssize_t n = read(stream, some, sizeof some - 1);
		assert_true(n > 0);
		some[n] = 0;
		for (const char *event = some; (event = strstr(event, "data:")); event++)
			++*tokens;
		double at = now();
		longest = at - last > longest ? at - last : longest;
		last = at;
	}
	return now() - last > longest ? now() - last : longest;
}

/* Texts to embed, of so many bytes: who is answered beside them has a token between two of their parts. */
static void embed_beside(int texts, size_t max)
{
	static const char *const arguments[] = { "--parallel",    "32", "--no-cache", "--context", "2048",
		                                 "--max-pass-ms", "5",  NULL };
	struct child c = child_start(arguments);
	char body[300], *text = calloc(1, max), *request = calloc((size_t)texts + 1, max);

	for (size_t n = 0; n + 8 < max; n += 7)
		memcpy(text + n, "a king ", 8);
	snprintf(body, sizeof body, LONG, "true", 1);
	int stream = begin(&c, body, false), other = client_connect(&c, false);
	assert_true(read(stream, body, 1) == 1);
	sprintf(request, "POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n{\"input\":[",
	        (size_t)texts * (strlen(text) + 3) + strlen("{\"input\":[]}") - 1);
	for (int i = 0; i < texts; i++)
		sprintf(request + strlen(request), "%s\"%s\"", i ? "," : "", text);
	strcat(request, "]}");
	double start = now();
	client_send(other, request, strlen(request));
	int tokens = 0;
	double waited = longest_wait(stream, other, &tokens), all = now() - start;
	if (waited > all / 3 && tokens < 4 * texts + 4) /* a busy machine makes all wait, but none of them less often */
		fail_msg("%.3f s without a token, of %.3f s for %d texts; %d tokens", waited, all, texts, tokens);
	printf("# %d texts in %.3f s: %d tokens, at most %.3f s without one\n", texts, all, tokens, waited);
	struct answer a = client_read(other, 20);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	close(other);
	close(stream);
	free(text);
	free(request);
	assert_int_equal(child_stop(&c), 0);
}

/* Many texts, and one that is long. */
static void test_embeddings_wait(void **state)
{
	(void)state;
	embed_beside(24, 3000);
	embed_beside(1, 6800);
}

/* One is computed, one waits, the third is refused; the one that waits is answered, or leaves. */
static void test_queue(void **state)
{
	static const char *const arguments[] = { "--parallel", "1", "--queue", "1", "--no-cache", NULL };
	struct child c = child_start(arguments);
	char body[300];
	(void)state;

	snprintf(body, sizeof body, LONG, "true", 1);
	int running = begin(&c, body, false);
	expect(&c, "llamacpp:requests_processing", 1);
	int waiting = begin(&c, body, false);
	expect(&c, "llamacpp:requests_deferred", 1);
	struct answer a = client_ask(&c, "/v1/completions", NULL, shortly);
	assert_int_equal(a.status, 429);
	assert_non_null(answer_field(&a, "Retry-After"));
	answer_free(&a);
	close(waiting);
	close(running);
	expect(&c, "jitserve_answers_cancelled_total", 2);
	char *text = text_alone(&c);
	free(text);
	assert_int_equal(child_stop(&c), 0);
}

/* A stream that waits for others is kept alive by comments. */
static void test_signs_of_life(void **state)
{
	static const char *const arguments[] = { "--parallel", "1", "--sse-ping-interval", "1", "--no-cache", NULL };
	struct child c = child_start(arguments);
	char body[300], got[4000] = "";
	size_t n = 0;
	(void)state;

	/* whole: an unread stream would be dropped */
	snprintf(body, sizeof body, LONG, "false", 100);
	int running = begin(&c, body, false);
	expect(&c, "llamacpp:requests_processing", 1);
	snprintf(body, sizeof body, LONG, "true", 1);
	int waiting = begin(&c, body, false);
	while (!strstr(got, "\n: alive\n") && n < sizeof got - 1) {
		ssize_t more = read(waiting, got + n, sizeof got - 1 - n);
		assert_true(more > 0);
		n += (size_t)more;
		got[n] = 0;
	}
	assert_null(strstr(got, "data:"));
	/* proxies are to pass on what there is */
	assert_non_null(strstr(got, "\r\nX-Accel-Buffering: no\r\n"));
	assert_non_null(strstr(got, "\r\nCache-Control: no-cache\r\n"));
	close(waiting);
	close(running);
	expect(&c, "jitserve_answers_cancelled_total", 50);
	assert_int_equal(child_stop(&c), 0);
}

/* It is alive, not ready, and takes nothing new. */
static void expect_refused_meanwhile(const struct child *c)
{
	static const struct {
		const char *path, *body;
		int status;
	} rows[] = { { "/livez", NULL, 200 }, { "/readyz", NULL, 503 }, { "/v1/completions", shortly, 503 } };

	for (int i = 0; i < 3; i++) {
		struct answer a = client_ask(c, rows[i].path, NULL, rows[i].body);
		for (int k = 0; i == 1 && a.status == 200 && k < 100; k++) { /* the signal is on its way */
			answer_free(&a);
			usleep(10000);
			a = client_ask(c, rows[i].path, NULL, rows[i].body);
		}
		assert_int_equal(a.status, rows[i].status);
		assert_true(a.status == 200 || (answer_field(&a, "Retry-After") && strstr(a.body, "is stopping")));
		answer_free(&a);
	}
}

/* Asked to stop, the server lets an answer end within --stop-timeout, and breaks it off then. */
static void test_stop(void **state)
{
	static const char *const timeouts[] = { "60", "0" };
	(void)state;

	for (int i = 0; i < 2; i++) {
		const char *const arguments[] = { "--stop-timeout", timeouts[i], "--no-cache", NULL };
		struct child c = child_start(arguments);
		char body[300];
		snprintf(body, sizeof body, LONG, "false", 1);
		int fd = begin(&c, body, false);
		expect(&c, "llamacpp:requests_processing", 1);
		assert_int_equal(kill(c.pid, SIGTERM), 0);
		if (i == 0)
			expect_refused_meanwhile(&c);
		struct answer a = client_read(fd, 60);
		assert_int_equal(a.status, i ? 503 : 200);
		answer_free(&a);
		close(fd);
		assert_int_equal(child_wait(&c), 0);
	}
}

/* Asked to stop, the server does not wait for requests whose clients never send the rest. */
static void test_stop_arriving(void **state)
{
	static const char *const heads[] = {
		"POST /v1/comp",
		"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n",
		"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"prompt\":",
		"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"p",
	};
	struct child c = child_start((const char *[]){ "--stop-timeout", "60", "--no-cache", NULL });
	int fd[sizeof heads / sizeof *heads];
	(void)state;

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		fd[i] = client_connect(&c, false);
		client_send(fd[i], heads[i], strlen(heads[i]));
	}
	/* Three of them, and the one that asks. */
	bool there = false;
	for (int i = 0; i < 400 && !there; i++) {
		struct answer a = client_ask(&c, "/metrics", NULL, NULL);
		there = strstr(a.body, "\njitserve_requests_open 4\n") != NULL;
		answer_free(&a);
		usleep(25000);
	}
	assert_true(there);
	const double stopped = now();
	assert_int_equal(child_stop(&c), 0);
	assert_true(now() - stopped < 30);
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
		close(fd[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clients_leave),   cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_queue),           cmocka_unit_test(test_stop),
		cmocka_unit_test(test_stop_arriving),   cmocka_unit_test(test_signs_of_life),
		cmocka_unit_test(test_embeddings_wait), cmocka_unit_test(test_leaves_in_prompt),
		cmocka_unit_test(test_connections),     cmocka_unit_test(test_all_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/server/t_guards.c - requests that are malformed, that mean two things, that never come to an end, or that come
 * from where they should not: over raw sockets, against the program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/server/hostile.h"
#include "tests/support/shared.h"

static struct child server;

static int start(void **state)
{
	static const char *const arguments[] = { "--read-timeout", "2", "--max-body", "1", NULL };
	(void)state;

	server = child_start(arguments);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	return child_stop(&server);
}

/* Whether the server still answers others. */
static void check_alive(void)
{
	struct answer a = client_ask(&server, "/health", NULL, NULL);

	assert_int_equal(a.status, 200);
	answer_free(&a);
}

#define HEAD "POST /v1/completions HTTP/1.1\r\n"
#define HOST "Host: localhost\r\n"

static const char whole[] = "GET /livez HTTP/1.1\r\n" HOST "\r\n";

/* One answer of as many as come on a connection; what came behind it stays in *got, of which *n bytes are there. */
static struct answer next_answer(int fd, char *got, size_t *n, size_t max)
{
	struct answer a = { 0 };

	while (!answer_parse(&a, got, *n, a.closed)) {
		ssize_t more = *n < max ? read(fd, got + *n, max - *n) : -1;
		if (more <= 0)
			return (struct answer){ .closed = true };
		*n += (size_t)more;
		got[*n] = 0;
	}
	const char *body = strstr(got, "\r\n\r\n");
	size_t used = (size_t)(body + 4 - got) + a.n_body;
	memmove(got, got + used, *n - used + 1);
	*n -= used;
	return a;
}

/* The row's bytes behind a whole request and before another one, cut in two at `cut`: the first is answered, and the
 * last is, only if the row is no hostile one. */
static void check_row(const struct hostile *r, size_t cut)
{
	int fd = client_connect(&server, false);
	static char got[1 << 17];
	size_t n = 0;

	got[0] = 0;
	client_send(fd, whole, sizeof whole - 1);
	client_send(fd, r->text, cut);
	if (cut)
		usleep(300);
	client_send(fd, r->text + cut, r->n - cut);
	client_send(fd, whole, sizeof whole - 1);
	struct answer first = next_answer(fd, got, &n, sizeof got - 1);
	assert_int_equal(first.status, 200);
	struct answer a = next_answer(fd, got, &n, sizeof got - 1);
	if (a.status != r->status && a.status != r->or_status)
		fail_msg("%s, cut at %zu: status %d, expected %d: %s", r->name, cut, a.status, r->status,
		         a.body ? a.body : "");
	const char *how = a.head ? answer_field(&a, "Connection") : NULL;
	bool closes = how && strcasecmp(how, "close") == 0;
	assert_true(closes || a.status == 200);
	struct answer last = closes ? (struct answer){ 0 } : next_answer(fd, got, &n, sizeof got - 1);
	assert_int_equal(last.status, closes ? 0 : 200);
	/* nothing behind such a request is answered */
	assert_true(!closes || (read(fd, got, sizeof got) <= 0 && n == 0));
	answer_free(&first);
	answer_free(&a);
	answer_free(&last);
	close(fd);
}

static void test_rows(void **state)
{
	(void)state;
	for (const struct hostile *r = hostile_requests; r->name; r++) {
		size_t by = test_full() ? 1 : test_quick() ? r->n / 3 + 1 : 7;
		for (size_t cut = 0; cut < r->n; cut += by)
			check_row(r, cut);
	}
	check_alive();
}

/* What follows a request that was refused is not taken for another one. */
static void test_nothing_is_smuggled(void **state)
{
	static const char text[] = HEAD HOST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
					     "0\r\n\r\nGET /health HTTP/1.1\r\n" HOST "\r\n";
	int fd = client_connect(&server, false);
	(void)state;

	client_send(fd, text, sizeof text - 1);
	struct answer first = client_read(fd, 10), second = client_read(fd, 10);
	assert_int_equal(first.status, 400);
	assert_int_equal(second.status, 0);
	assert_true(second.closed);
	close(fd);
	answer_free(&first);
	answer_free(&second);
}

/* An answer to HEAD has no body, also where its head is refused before it is a request. */
static void test_head(void **state)
{
	static const char *const texts[] = { "HEAD * HTTP/1.1\r\n" HOST "\r\n",
		                             "HEAD /health HTTP/1.1\r\nA B: c\r\n\r\n", "HEAD /health HTTP/9.1\r\n\r\n",
		                             "HEAD /none HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n" };
	(void)state;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		int fd = client_connect(&server, false);
		char got[4096];
		size_t n = 0;
		ssize_t more;
		client_send(fd, texts[i], strlen(texts[i]));
		while (n < sizeof got - 1 && (more = read(fd, got + n, sizeof got - 1 - n)) > 0)
			n += (size_t)more;
		got[n] = 0;
		const char *end = strstr(got, "\r\n\r\n");
		if (!end || end[4] || (strncmp(got, "HTTP/1.1 4", 10) != 0 && strncmp(got, "HTTP/1.1 5", 10) != 0))
			fail_msg("%s: %s", texts[i], got);
		close(fd);
	}
}

/* Many requests on one connection, one sent before the other is answered. */
static void test_keep_alive(void **state)
{
	static const char text[] = "GET /health HTTP/1.1\r\n" HOST "\r\nGET /livez HTTP/1.1\r\n" HOST "\r\n";
	int fd = client_connect(&server, false);
	(void)state;

	client_send(fd, text, sizeof text - 1);
	usleep(100000);
	char got[4096];
	size_t n = 0;
	for (int i = 0; i < 50 && n < sizeof got - 1; i++) {
		ssize_t more = read(fd, got + n, sizeof got - 1 - n);
		if (more <= 0)
			break;
		n += (size_t)more;
		got[n] = 0;
		const char *one = strstr(got, "HTTP/1.1 200");
		const char *two = one ? strstr(one + 1, "HTTP/1.1 200") : NULL;
		if (two && strstr(two, "\"ok\"}"))
			break;
	}
	assert_non_null(strstr(strstr(got, "HTTP/1.1 200") + 1, "HTTP/1.1 200"));
	close(fd);
}

static void check_big(const char *before, const char *part, size_t times, const char *behind)
{
	int fd = client_connect(&server, false);

	client_send(fd, before, strlen(before));
	for (size_t i = 0; i < times; i++)
		client_send(fd, part, strlen(part));
	client_send(fd, behind, strlen(behind));
	struct answer a = client_read(fd, 10);
	/* A system that saw more bytes come than it gave to the server may cut off the answer. */
	if (a.status != 431 && a.status != 414 && a.status != 413 && a.status != 400 && !(a.status == 0 && a.closed))
		fail_msg("%.40s: status %d", part, a.status);
	close(fd);
	answer_free(&a);
}

static void test_too_much(void **state)
{
	static char line[1025];
	(void)state;

	memset(line, 'a', sizeof line - 1);
	check_big("GET /health HTTP/1.1\r\n" HOST "X-Y: ", line, 1024, "\r\n\r\n");
	check_big("GET /health HTTP/1.1\r\n" HOST, "X-Y: a\r\n", 10000, "\r\n");
	check_big("GET /health HTTP/1.1\r\n" HOST, "X-Y: a\r\n", 101, "\r\n");
	check_big("GET /", line, 1024, " HTTP/1.1\r\n" HOST "\r\n");
	char chunk[1100];
	snprintf(chunk, sizeof chunk, "400\r\n%s\r\n", line);
	check_big("POST /v1/chat/completions HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", chunk, 1500,
	          "0\r\n\r\n");
	check_alive();
}

/* Half a request and silence, and one that drips: both end soon after --read-timeout. */
static void test_never_whole(void **state)
{
	int silent = client_connect(&server, false), dripping = client_connect(&server, false);
	(void)state;

	client_send(silent, "GET /health HTTP/1.1\r\nHost: lo", 30);
	client_send(dripping, "GET /health HTTP/1.1\r\nX-Y: ", 27);
	for (int i = 0; i < 12; i++) {
		client_send(dripping, "a", 1);
		usleep(250000);
	}
	struct answer a = client_read(silent, 3), b = client_read(dripping, 2);
	assert_true(a.closed);
	assert_true(b.closed);
	assert_int_not_equal(a.status, 200);
	assert_int_not_equal(b.status, 200);
	close(silent);
	close(dripping);
	answer_free(&a);
	answer_free(&b);
	check_alive();
}

static void test_models(void **state)
{
	static const char *const paths[] = { "/v1/models", "/models" };
	(void)state;

	for (int i = 0; i < 2; i++) {
		json_t *o = client_json(&server, paths[i], NULL, 200);
		json_t *one = json_array_get(json_object_get(o, "data"), 0);
		assert_string_equal(json_string_value(json_object_get(one, "id")), "tale-q8_0");
		assert_true(json_is_integer(json_object_get(one, "created")));
		assert_int_equal(json_array_size(json_object_get(o, "models")), 1);
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),        cmocka_unit_test(test_nothing_is_smuggled),
		cmocka_unit_test(test_head),        cmocka_unit_test(test_keep_alive),
		cmocka_unit_test(test_too_much),    cmocka_unit_test(test_models),
		cmocka_unit_test(test_never_whole),
	};

	return cmocka_run_group_tests(tests, start, stop);
}

/* tests/server/t_origin.c - names in Host and Origin: which are ours, which only look so, and what a browser's
 * preflight is told about header fields.
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

#include "server/http/authority.h"
#include "server/http/origin.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

static const char *const ours[] = { "localhost",  "localhost:8080", "LocalHost:8080",
	                            "localhost:", "127.0.0.1",      "127.0.0.1:65535",
	                            "[::1]",      "[::1]:8080",     "[0:0:0:0:0:0:0:1]:1" };

static const char *const others[] = {
	"",
	"localhost.evil.com",
	"localhost.",
	"localhost.:8080",
	"127.0.0.1.evil",
	"127.0.0.1.",
	"127.0.0.1.nip.io",
	"evil.example",
	"evil.example:8080",
	"evil-localhost",
	"xlocalhost",
	"localhostx",
	"localhost:8080@evil.example",
	"localhost@evil.example",
	"evil.example@localhost",
	"user:word@localhost",
	"localhost:80x",
	"localhost:x",
	"localhost:+80",
	"localhost:-1",
	"localhost:65536",
	"localhost:99999999999",
	"localhost:80:80",
	"localhost/",
	"localhost#",
	"localhost?",
	"localhost\\",
	"localhost evil.example",
	"localhost,evil.example",
	"localhost;",
	"localhost%00",
	"localhost%2eevil.example",
	"0",
	"0:8080",
	"0.0.0.0",
	"0.0.0.0:8080",
	"127.1",
	"127.0.1",
	"2130706433",
	"0x7f000001",
	"0177.0.0.1",
	"127.0.0.01",
	"127.0.0.1:8080.evil",
	"::1",
	"[::1",
	"::1]",
	"[::1].evil.example",
	"[::1]evil.example:80",
	"[::1]x",
	"[::1]:80x",
	"[[::1]]",
	"[]",
	"[]:80",
	"[::]",
	"[::]:8080",
	"[::2]",
	"[::1%lo]",
	"[::1%25lo]",
	"[::ffff:127.0.0.1]",
	"[::ffff:7f00:1]",
	"[localhost]",
	"[127.0.0.1]",
	"[v1.x]",
	"\xef\xbd\x8cocalhost",
	"localhost\xe3\x80\x82"
};

static void test_hosts(void **state)
{
	const struct origin_rules loopback = { .loopback = true, .bound = "127.0.0.1" };
	(void)state;

	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
		struct refusal r = { 0 };
		if (!origin_takes_host(&loopback, ours[i], &r))
			fail_msg("%s is refused: %s", ours[i], r.message);
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		struct refusal r = { 0 };
		if (origin_takes_host(&loopback, others[i], &r) || r.status != 403)
			fail_msg("%s is taken for ours", others[i]);
	}
}

/* Each prefix and each change of one byte of a name of ours is refused, or is a name of ours in other letters. */
static void test_near_names(void **state)
{
	const struct origin_rules loopback = { .loopback = true };
	(void)state;

	for (int c = 1; c < 256; c++)
		for (size_t at = 0; at <= 9; at++) {
			char name[12] = "localhost";
			struct refusal r = { 0 };
			name[at] = (char)c;
			bool same = at < 9 ? (c | 32) == "localhost"[at] && c >= 'A' : c == ':';
			if (origin_takes_host(&loopback, name, &r) != same)
				fail_msg("byte %d is %d: \"%s\"", (int)at, c, name);
		}
}

static void test_given_names(void **state)
{
	static const char *const names[] = { "models.example", "[2001:db8::1]", "2001:db8::2" };
	const struct origin_rules given = { .bound = "0.0.0.0", .host = names, .n_hosts = 3 };
	static const struct {
		const char *host;
		bool taken;
	} rows[] = { { "models.example", true },     { "MODELS.example:8080", true },
		     { "[2001:db8:0::1]:80", true }, { "[2001:db8::2]", true },
		     { "localhost", true },          { "2001:db8::2", false },
		     { "[2001:db8::3]", false },     { "models.example.evil", false },
		     { "0.0.0.0", false },           { "evil.models.example", false } };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct refusal r = { 0 };
		if (origin_takes_host(&given, rows[i].host, &r) != rows[i].taken)
			fail_msg("%s", rows[i].host);
	}
}

/* Schemes and names are the same in all letters: in pages that are given, and in those that ask. */
static void test_letters(void **state)
{
	static const char *const page[] = { "HTTPS://Models.example:8443", "http://other.example" };
	const struct origin_rules given = { .page = page, .n_pages = 2 }, none = { 0 };
	static const char *const taken[] = { "https://models.example:8443", "HTTPS://MODELS.EXAMPLE:8443",
		                             "Http://Other.Example" };
	static const char *const refused[] = { "http://models.example:8443", "https://models.example",
		                               "https://other.example", "HTTP://OTHER.EXAMPLE:80" };
	static const char *const own[] = { "HTTP://LOCALHOST:3000", "hTTpS://LocalHost", "HTTPS://127.0.0.1:1" };
	static const char *const local[] = { "localhost" };
	const struct origin_rules locals = { .page = local, .n_pages = 1 };
	struct refusal r = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		assert_ptr_equal(origin_allowed(&given, taken[i]), taken[i]);
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		assert_null(origin_allowed(&given, refused[i]));
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		assert_ptr_equal(origin_allowed(&locals, own[i]), own[i]);
	/* a page of this server itself */
	assert_true(origin_takes_page(&none, "models.example:80", "HTTP://MODELS.example:80", &r));
	assert_true(origin_takes_page(&none, "MODELS.EXAMPLE", "https://models.example", &r));
	assert_false(origin_takes_page(&none, "models.example", "https://models.exampl", &r));
	assert_int_equal(r.status, 403);
}

/* Nothing but "http://" or "https://" and a name of ours is a page of this machine, or of this server. */
static void test_origins(void **state)
{
	static const char *const page[] = { "localhost" };
	const struct origin_rules local = { .page = page, .n_pages = 1 }, none = { 0 };
	static const char *const never[] = {
		"null",
		"",
		"localhost",
		"file://",
		"file:///",
		"evil://localhost",
		"ftp://[::1]",
		"xhttp://localhost",
		"http:/localhost",
		"http:localhost",
		"http://localhost/",
		"http://localhost:80/"
	};
	char origin[200];
	(void)state;

	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		for (int tls = 0; tls < 2; tls++) {
			struct refusal r = { 0 };
			snprintf(origin, sizeof origin, "http%s://%s", tls ? "s" : "", ours[i]);
			assert_true(origin_takes_page(&local, "localhost", origin, &r));
			assert_true(origin_takes_page(&none, ours[i], origin, &r));
			assert_ptr_equal(origin_allowed(&local, origin), origin);
			assert_null(origin_allowed(&none, origin));
		}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		struct refusal r = { 0 };
		snprintf(origin, sizeof origin, "http://%s", others[i]);
		if (origin_takes_page(&local, "localhost", origin, &r) || r.status != 403)
			fail_msg("%s is taken for a page of this machine", origin);
	}
	for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
		struct refusal r = { 0 };
		if (origin_takes_page(&local, "localhost", never[i], &r))
			fail_msg("%s is taken for a page of this machine", never[i]);
	}
}

/* ---- preflights */

static const char *given(const struct child *c, const char *requested, struct answer *a)
{
	char text[8192];
	int n = snprintf(text, sizeof text,
	                 "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\n"
	                 "Access-Control-Request-Method: POST\r\n%s%s%s\r\n",
	                 requested ? "Access-Control-Request-Headers: " : "", requested ? requested : "",
	                 requested ? "\r\n" : "");
	int fd = client_connect(c, false);

	client_send(fd, text, (size_t)n);
	*a = client_read(fd, 10);
	close(fd);
	assert_int_equal(a->status, 200);
	assert_string_equal(answer_field(a, "Access-Control-Allow-Origin"), "http://localhost:3000");
	assert_non_null(strstr(answer_field(a, "Vary"), "Access-Control-Request-Headers"));
	return answer_field(a, "Access-Control-Allow-Headers");
}

/* What the clients of OpenAI and Anthropic ask for, and what no client asks for. */
static void test_preflight(void **state)
{
	static const char *const arguments[] = { "--cors-origin", "localhost", NULL };
	static const char usual[] = "Authorization, Content-Type, X-Api-Key, Anthropic-Version, Anthropic-Beta";
	static const char *const requested[] = {
		"authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,"
		"x-stainless-package-version,x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version,"
		"x-stainless-timeout",
		"anthropic-beta, anthropic-dangerous-direct-browser-access, anthropic-version, content-type, x-api-key",
		"x-anything-at-all",
		"a,b,c",
	};
	static const char *const wrong[] = { "",    ",",   "a,,b",  "a,",   "a b",     "a: b",
		                             "a;b", "*/*", "\"a\"", "a(b)", "\xc3\xa4" };
	struct child c = child_start(arguments);
	struct answer a;
	(void)state;

	for (size_t i = 0; i < sizeof requested / sizeof *requested; i++) {
		assert_string_equal(given(&c, requested[i], &a), requested[i]);
		answer_free(&a);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_string_equal(given(&c, wrong[i], &a), usual);
		answer_free(&a);
	}
	assert_string_equal(given(&c, NULL, &a), usual);
	answer_free(&a);
	char many[5000];
	memset(many, 'a', sizeof many - 1);
	many[sizeof many - 1] = 0;
	assert_string_equal(given(&c, many, &a), usual);
	answer_free(&a);
	a = client_ask(&c, "/v1/models", "Origin: http://localhost:3000\r\n", NULL);
	assert_non_null(strstr(answer_field(&a, "Access-Control-Expose-Headers"), "Retry-After"));
	answer_free(&a);
	assert_int_equal(child_stop(&c), 0);
}

/* No body is unpacked, and nobody is told that it is no JSON. */
static void test_encoded_bodies(void **state)
{
	static const struct {
		const char *fields;
		int status;
	} rows[] = { { "Content-Encoding: gzip\r\n", 415 },
		     { "content-encoding: GZIP\r\n", 415 },
		     { "Content-Encoding: br\r\n", 415 },
		     { "Content-Encoding: gzip, identity\r\n", 415 },
		     { "Content-Encoding: identity\r\nContent-Encoding: deflate\r\n", 415 },
		     { "Content-Encoding: identity\r\n", 200 },
		     { "Content-Encoding: Identity\r\n", 200 },
		     { "Content-Encoding:\r\n", 200 } };
	struct child c = child_start(NULL);
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct answer a = client_ask(&c, "/tokenize", rows[i].fields, "{\"content\":\"a\"}");
		if (a.status != rows[i].status)
			fail_msg("%s: %d %s", rows[i].fields, a.status, a.body);
		if (a.status == 415)
			assert_string_equal(answer_field(&a, "Accept-Encoding"), "identity");
		answer_free(&a);
	}
	assert_int_equal(child_stop(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts),          cmocka_unit_test(test_near_names),
		cmocka_unit_test(test_given_names),    cmocka_unit_test(test_letters),
		cmocka_unit_test(test_origins),        cmocka_unit_test(test_preflight),
		cmocka_unit_test(test_encoded_bodies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

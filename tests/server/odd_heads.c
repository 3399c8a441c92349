/* tests/server/odd_heads.c - any method, path, query and content type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/odd_server.h"

/* With the path's own body, or none. Streams of a HEAD request and of what has no body end with the head. */
static void ask_head(const char *method, const char *path, const char *fields, const char *body)
{
	char what[600];
	struct answer a;

	snprintf(what, sizeof what, "%s %s with %s", method, path, *fields ? fields : "no field");
	if (strcmp(method, "HEAD") == 0) { /* whose length is that of a body that does not come */
		char head[1200];
		int fd = client_connect(&odd_server, false);
		snprintf(head, sizeof head, "HEAD %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", path,
		         fields);
		client_send(fd, head, strlen(head));
		a = client_read(fd, ODD_SECONDS);
		close(fd);
		odd_sent++;
		if (a.n_body || a.status == 0 || a.status >= 500)
			odd_complain(what, &a, "HEAD");
		answer_free(&a);
		return;
	}
	a = odd_ask(method, path, fields, body, strlen(body));
	odd_judge(what, &a, NULL, body, strlen(body));
}

static const char *const methods[] = { "GET",   "HEAD",    "POST",  "PUT",   "DELETE",
	                               "PATCH", "OPTIONS", "TRACE", "QUERY", "PROPFIND" };
static const char *const heads[] = {
	"",
	ODD_JSON,
	"Content-Type:\r\n",
	"Content-Type: text/plain\r\n",
	"Content-Type: application/x-www-form-urlencoded\r\n",
	"Content-Type: multipart/form-data; boundary=x\r\n",
	"Content-Type: application/json; charset=utf-16\r\n",
	"Content-Type: application/json;;;=\r\n",
	"Content-Type: APPLICATION/JSON ; x=\"y\"\r\n",
	"Content-Type: application/json\r\nContent-Type: text/html\r\n",
	"Content-Encoding: br\r\n" ODD_JSON,
	"Accept: text/html;q=0, */*;q=1e9\r\n" ODD_JSON,
	"Accept-Encoding: gzip, zstd;q=2\r\n" ODD_JSON,
	"Authorization: Bearer\r\n" ODD_JSON,
	"Authorization: Basic Og==\r\n" ODD_JSON,
	"X-Api-Key: \r\n" ODD_JSON,
	"anthropic-version: none\r\nanthropic-beta: a,b,,\r\n" ODD_JSON,
	"Range: bytes=5-1,-0\r\n" ODD_JSON,
	"If-None-Match: *\r\nIf-Modified-Since: x\r\n" ODD_JSON,
	"Upgrade: h2c, websocket\r\nConnection: Upgrade\r\n" ODD_JSON,
	"X-Stainless-Retry-Count: 99999999999999999999\r\n" ODD_JSON,
	"Cookie: a=b; =; ;\r\n" ODD_JSON,
	"Priority: u=9\r\n" ODD_JSON,
};
/* What stands behind a path, or at the place of a name in it. */
static const char *const behind[] = {
	"",
	"?",
	"?model=nobody",
	"?model=",
	"?model=%FF%FE",
	"?model=%2e%2e%2f",
	"?action=save&action=erase",
	"?action=none",
	"?model=tale-rerank&model=x",
	"?&&==&a",
	"?a=%E4%B8%AD&b=%25n",
	"?verbose=true&stream=9999999999999999999999",
	"/",
	"//",
	"/..",
	"/%2e%2e/",
	"/tale-rerank",
	"/tale-rerank/",
	"/resp_none",
	"/resp_none/input_items?limit=-1&order=x&after=y",
	"/resp_none/cancel",
	"/-1?action=erase",
	"/0?action=",
	"/0?action=erase",
	"/18446744073709551616?action=save",
	"/0x0?action=save",
	"/sha256:0",
	"/sha256-..%2f..%2fx",
	"/sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
};
static const char *const paths[] = {
	"",
	"/health",
	"/readyz",
	"/livez",
	"/models",
	"/v1/models",
	"/models/load",
	"/models/unload",
	"/props",
	"/slots",
	"/metrics",
	"/api/version",
	"/api/tags",
	"/api/ps",
	"/api/pull",
	"/api/push",
	"/api/blobs",
	"/api/show",
	"/api/create",
	"/api/copy",
	"/api/delete",
	"/v1/responses",
	"/responses",
	"/v1/messages",
	"/v1/chat/completions",
	"/v1/completions",
	"/completions",
	"/completion",
	"/infill",
	"/v1/embeddings",
	"/embedding",
	"/v1/score",
	"/reranking",
	"/tokenize",
	"/detokenize",
	"/apply-template",
	"/api/chat",
	"/api/generate",
	"/api/embed",
	"/nothing",
	"/v1",
	"/v1/v1/models",
	"*",
	"/api",
	"/v2/models",
};
#define COUNT(a) (sizeof(a) / sizeof *(a))

void odd_heads(void **state)
{
	static const char *const bodies[] = { "", "{}", "[]", "{\"model\":\"nobody\"}", "a=b" };
	static const struct odd_strides strides = { 2003, 211, 31, 31 };
	size_t number = 0;
	char path[300];
	(void)state;

	for (size_t p = 0; p < COUNT(paths); p++)
		for (size_t b = 0; b < COUNT(behind); b++)
			for (size_t m = 0; m < COUNT(methods); m++)
				for (size_t h = 0; h < COUNT(heads); h++) {
					if (!odd_is_mine(&strides, number++))
						continue;
					snprintf(path, sizeof path, "%s%s%s", paths[p], *paths[p] ? "" : "/",
					         behind[b]);
					ask_head(methods[m], path, heads[h], bodies[number % COUNT(bodies)]);
					odd_maybe_check();
				}
	odd_must_be_right();
}

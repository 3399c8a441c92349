/* pull/print.c - see print.h. */
#include "pull/print.h"

#include <errno.h>
#include <string.h>

#include "pull/http.h"

enum { REDIRECTS = 5 };

struct printing {
	FILE *to;
	uint64_t left;
	bool too_long, failed;
};

static bool take(void *user, const struct http_answer *a, const void *bytes, size_t n)
{
	struct printing *p = user;

	p->too_long = n > p->left || (a->length != HTTP_UNKNOWN && a->length > p->left);
	if (p->too_long)
		return false;
	p->failed = fwrite(bytes, 1, n, p->to) != n;
	p->left -= n;
	return !p->failed;
}

/* What came of one address; *url is where it leads next, or unchanged. */
static bool judge(const struct printing *p, enum http_end end, const struct http_answer *a, const char *host,
                  struct error *err)
{
	if (p->failed)
		return error_set(err, ERROR_IO, "what %s sends cannot be written: %s", host, strerror(errno));
	if (p->too_long)
		return error_set(err, ERROR_UNSUPPORTED, "%s sends more bytes than are allowed", host);
	if (end == HTTP_STOPPED)
		return error_set(err, ERROR_CANCELLED, "interrupted");
	if (end != HTTP_ANSWERED)
		return false;
	return a->status == 200 || *a->redirect ||
	       error_set(err, ERROR_IO, "%s answers with status %ld", host, a->status);
}

bool pull_print(const char *url, uint64_t max, FILE *to, const char *agent, const volatile sig_atomic_t *interrupted,
                struct error *err)
{
	struct http *h = http_open(agent, interrupted, err);
	struct printing p = { .to = to, .left = max };
	struct http_answer a = { 0 };
	char at[HTTP_URL_MAX], host[200];
	bool ok = h != NULL, done = false;

	if (strlen(url) >= sizeof at)
		ok = error_set(err, ERROR_ARGUMENT, "the address is longer than %d bytes", HTTP_URL_MAX - 1);
	else
		strcpy(at, url);
	for (int i = 0; ok && !done; i++) {
		const struct http_request q = { .url = at, .body = take, .user = &p };
		http_host(at, host, sizeof host);
		const enum http_end end = http_ask(h, &q, &a, err);
		ok = judge(&p, end, &a, host, err);
		done = ok && a.status == 200;
		if (!ok || done)
			break;
		if (i == REDIRECTS)
			ok = error_set(err, ERROR_IO, "%s leads to other addresses more than %d times", host,
			               REDIRECTS);
		else if (!http_same_origin(at, a.redirect))
			ok = error_set(err, ERROR_UNSUPPORTED, "%s leads to another host, which is not followed", host);
		else
			strcpy(at, a.redirect);
	}
	http_close(h);
	return ok && (fflush(to) == 0 ||
	              error_set(err, ERROR_IO, "what %s sends cannot be written: %s", host, strerror(errno)));
}

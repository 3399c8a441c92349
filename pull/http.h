/* pull/http.h - one request over HTTP or HTTPS, by libcurl.
 *
 * Owns: the connection, its limits, and what is read of an answer's head. Redirects are answers like others: the code
 * that follows them decides what the next server is told. Proxies are taken from the environment, as libcurl does.
 */
#ifndef PULL_HTTP_H
#define PULL_HTTP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { HTTP_URL_MAX = 8192 };
#define HTTP_UNKNOWN UINT64_MAX

struct http_answer {
	long status;
	char etag[300], linked_etag[300]; /* without quotes and W/ */
	bool weak;                        /* etag is */
	char commit[80], error_code[80];
	char redirect[HTTP_URL_MAX];  /* where it leads, in full; "" */
	uint64_t length, linked_size; /* HTTP_UNKNOWN: it does not say */
	uint64_t range_from, range_total;
	long retry_after; /* seconds; -1: it does not say */
	size_t head;      /* bytes of it */
};

struct http_request {
	const char *url, *bearer; /* bearer NULL: nobody is told who asks */
	bool head;
	uint64_t from;        /* 0: all of it */
	const char *if_range; /* NULL: whatever it is by now */
	/* Is given the body of an answer with status 200 or 206. False: that is enough. */
	bool (*body)(void *user, const struct http_answer *a, const void *bytes, size_t n);
	void *user;
};

enum http_end {
	HTTP_ANSWERED, /* whole */
	HTTP_BROKEN,   /* no answer, or part of one; err says why. It may help to ask again */
	HTTP_REFUSED,  /* err says why, and asking again does not help */
	HTTP_STOPPED   /* the user interrupted, or body() did not want any more */
};

struct http;
struct http *http_open(const char *agent, const volatile sig_atomic_t *interrupted, struct error *err);
void http_close(struct http *h);
enum http_end http_ask(struct http *h, const struct http_request *q, struct http_answer *a, struct error *err);

/* Whether both have the same scheme, host and port. */
bool http_same_origin(const char *a, const char *b);
bool http_is_secure(const char *url);   /* https */
bool http_is_loopback(const char *url); /* of this machine */
/* Writes the host and port of an address for a sentence. */
void http_host(const char *url, char *out, size_t size);

#endif

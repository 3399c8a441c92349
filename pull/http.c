#include "pull/http.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_MAX = 1 << 18, UNREAD_MAX = 1 << 16, CONNECT_SECONDS = 20, SILENT_SECONDS = 30 };

struct http {
	CURL *curl;
	const volatile sig_atomic_t *interrupted;
	const char *trust_name; /* the variable that names the certificates, or NULL */
	char trouble[CURL_ERROR_SIZE];
};

/* What the callbacks of one request know. */
struct asking {
	struct http *http;
	const struct http_request *request;
	struct http_answer *answer;
	size_t unread;
	bool enough;
};

/* Whose certificates are believed. Programs that are linked statically run on systems other than those their libcurl
 * was built for, so where its own file is not there, that of the system is looked for. */
static void set_trusted(struct http *h)
{
	static const char *const names[] = { "CURL_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE" };
	CURL *c = h->curl;
	const char *file = NULL;

	for (size_t i = 0; i < sizeof names / sizeof names[0] && (!file || !*file); i++)
		file = getenv(h->trust_name = names[i]);
	if (file && *file) {
		curl_easy_setopt(c, CURLOPT_CAINFO, file);
		curl_easy_setopt(c, CURLOPT_PROXY_CAINFO, file);
		return;
	}
	h->trust_name = NULL;
#if LIBCURL_VERSION_NUM >= 0x075400
	static const char *const files[] = { "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
		                             "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };

	if (curl_easy_getinfo(c, CURLINFO_CAINFO, &file) != CURLE_OK || !file || access(file, R_OK) == 0)
		return;
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		if (access(files[i], R_OK) == 0) {
			curl_easy_setopt(c, CURLOPT_CAINFO, files[i]);
			curl_easy_setopt(c, CURLOPT_PROXY_CAINFO, files[i]);
			return;
		}
#endif
}

struct http *http_open(const char *agent, const volatile sig_atomic_t *interrupted, struct error *err)
{
	struct http *h = calloc(1, sizeof *h);

	if (h && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK && (h->curl = curl_easy_init())) {
		h->interrupted = interrupted;
		curl_easy_setopt(h->curl, CURLOPT_USERAGENT, agent);
		set_trusted(h);
		return h;
	}
	free(h);
	error_set(err, ERROR_MEMORY, "libcurl cannot be used: no memory");
	return NULL;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	curl_easy_cleanup(h->curl);
	curl_global_cleanup();
	free(h);
}

/* ---- the head */

static const char *field(const char *line, size_t n, const char *name)
{
	size_t m = strlen(name);

	if (n <= m || strncasecmp(line, name, m) != 0 || line[m] != ':')
		return NULL;
	const char *at = line + m + 1;
	while (at < line + n && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

static void copy_value(char *out, size_t size, const char *at, const char *end)
{
	while (end > at && strchr(" \t\r\n", end[-1]))
		end--;
	size_t n = (size_t)(end - at) < size ? (size_t)(end - at) : 0; /* one that is too long is none */
	memcpy(out, at, n);
	out[n] = 0;
}

/* W/"abc" is abc. */
static bool copy_etag(char *out, size_t size, const char *at, const char *end)
{
	bool weak = end - at > 2 && at[0] == 'W' && at[1] == '/';

	copy_value(out, size, at + (weak ? 2 : 0), end);
	size_t n = strlen(out);
	if (n >= 2 && out[0] == '"' && out[n - 1] == '"') {
		memmove(out, out + 1, n - 2);
		out[n - 2] = 0;
	}
	return weak;
}

static uint64_t number(const char *at)
{
	char *end;
	unsigned long long v = *at >= '0' && *at <= '9' ? strtoull(at, &end, 10) : HTTP_UNKNOWN;

	return v >= UINT64_C(1) << 62 ? HTTP_UNKNOWN : v;
}

static void read_range(struct http_answer *a, const char *value)
{
	unsigned long long from, to, total;

	if (sscanf(value, "bytes %20llu-%20llu/%20llu", &from, &to, &total) == 3 && from <= to && to < total) {
		a->range_from = from;
		a->range_total = total;
	}
}

static void read_field(struct http_answer *a, const char *line, size_t n)
{
	const char *end = line + n, *at;
	char value[200];

	if ((at = field(line, n, "ETag")))
		a->weak = copy_etag(a->etag, sizeof a->etag, at, end);
	else if ((at = field(line, n, "X-Linked-ETag")))
		copy_etag(a->linked_etag, sizeof a->linked_etag, at, end);
	else if ((at = field(line, n, "X-Repo-Commit")))
		copy_value(a->commit, sizeof a->commit, at, end);
	else if ((at = field(line, n, "X-Error-Code")))
		copy_value(a->error_code, sizeof a->error_code, at, end);
	else if ((at = field(line, n, "X-Linked-Size"))) {
		copy_value(value, sizeof value, at, end);
		a->linked_size = number(value);
	} else if ((at = field(line, n, "Content-Length"))) {
		copy_value(value, sizeof value, at, end);
		a->length = number(value);
	} else if ((at = field(line, n, "Content-Range"))) {
		copy_value(value, sizeof value, at, end);
		read_range(a, value);
	}
}

static void forget(struct http_answer *a)
{
	size_t head = a->head;

	*a = (struct http_answer){ .length = HTTP_UNKNOWN,
		                   .linked_size = HTTP_UNKNOWN,
		                   .range_from = HTTP_UNKNOWN,
		                   .range_total = HTTP_UNKNOWN,
		                   .retry_after = -1,
		                   .head = head };
}

static size_t on_head(char *line, size_t size, size_t n, void *user)
{
	struct asking *q = user;
	struct http_answer *a = q->answer;

	a->head += size * n;
	if (a->head > HEAD_MAX)
		return 0;
	if (size * n > 5 && strncmp(line, "HTTP/", 5) == 0)
		forget(a); /* an earlier head was a proxy's, or an interim answer */
	else
		read_field(a, line, size * n);
	return size * n;
}

/* ---- the body */

static size_t on_body(char *bytes, size_t size, size_t n, void *user)
{
	struct asking *q = user;

	n *= size;
	curl_easy_getinfo(q->http->curl, CURLINFO_RESPONSE_CODE, &q->answer->status);
	if (q->request->body && (q->answer->status == 200 || q->answer->status == 206)) {
		q->enough = !q->request->body(q->request->user, q->answer, bytes, n);
		return q->enough ? 0 : n;
	}
	q->unread += n; /* what else it says is not read, and not waited for */
	q->enough = q->unread > UNREAD_MAX;
	return q->enough ? 0 : n;
}

static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct asking *q = user;

	return q->http->interrupted && *q->http->interrupted;
}

static void set_up(struct asking *q, struct curl_slist **fields)
{
	CURL *c = q->http->curl;
	char text[400];

	curl_easy_setopt(c, CURLOPT_URL, q->request->url);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, q->http->trouble);
	curl_easy_setopt(c, CURLOPT_NOBODY, q->request->head ? 1L : 0L);
	if (!q->request->head)
		curl_easy_setopt(c, CURLOPT_HTTPGET, 1L);
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)SILENT_SECONDS);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, q);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_head);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, q);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, q);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	if (q->request->from) {
		snprintf(text, sizeof text, "Range: bytes=%llu-", (unsigned long long)q->request->from);
		*fields = curl_slist_append(*fields, text);
		if (q->request->if_range) {
			snprintf(text, sizeof text, "If-Range: \"%s\"", q->request->if_range);
			*fields = curl_slist_append(*fields, text);
		}
	}
	if (q->request->bearer) {
		snprintf(text, sizeof text, "Authorization: Bearer %s", q->request->bearer);
		*fields = curl_slist_append(*fields, text);
	}
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, *fields);
}

static bool may_help_to_ask_again(CURLcode code)
{
	switch (code) {
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_OUT_OF_MEMORY:
	case CURLE_WRITE_ERROR:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_FUNCTION_ARGUMENT: return false;
	default: return true;
	}
}

static void read_end(struct http *h, struct http_answer *a)
{
	const char *redirect = NULL;
	curl_off_t wait = 0;

	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &a->status);
	if (curl_easy_getinfo(h->curl, CURLINFO_REDIRECT_URL, &redirect) == CURLE_OK && redirect &&
	    strlen(redirect) < sizeof a->redirect)
		snprintf(a->redirect, sizeof a->redirect, "%s", redirect);
	if (curl_easy_getinfo(h->curl, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
		a->retry_after = wait < 1000000 ? (long)wait : 1000000;
}

enum http_end http_ask(struct http *h, const struct http_request *q, struct http_answer *a, struct error *err)
{
	struct asking asking = { .http = h, .request = q, .answer = a };
	struct curl_slist *fields = NULL;
	char host[200], quoted[300];

	a->head = 0;
	forget(a);
	h->trouble[0] = 0;
	set_up(&asking, &fields);
	CURLcode code = curl_easy_perform(h->curl);
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(fields);
	read_end(h, a);
	if (code == CURLE_OK || (asking.enough && a->status != 200 && a->status != 206))
		return HTTP_ANSWERED;
	if (asking.enough || code == CURLE_ABORTED_BY_CALLBACK)
		return HTTP_STOPPED;
	const char *why = *h->trouble ? h->trouble : curl_easy_strerror(code);
	http_host(q->url, host, sizeof host);
	if (a->head > HEAD_MAX)
		why = "its answer begins with too much";
	if (code == CURLE_SSL_CACERT_BADFILE && h->trust_name)
		error_set(err, ERROR_IO, "%s: the certificates that %s names cannot be read", host, h->trust_name);
	else
		error_set(err, ERROR_IO, "%s: %s", host, error_quote(quoted, sizeof quoted, why, strlen(why)));
	return a->head <= HEAD_MAX && may_help_to_ask_again(code) ? HTTP_BROKEN : HTTP_REFUSED;
}

/* ---- addresses */

struct origin {
	char *scheme, *host, *port;
};

static bool origin_of(const char *url, struct origin *o)
{
	CURLU *u = curl_url();
	bool ok = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK;

	*o = (struct origin){ 0 };
	ok = ok && curl_url_get(u, CURLUPART_SCHEME, &o->scheme, 0) == CURLUE_OK &&
	     curl_url_get(u, CURLUPART_HOST, &o->host, 0) == CURLUE_OK &&
	     curl_url_get(u, CURLUPART_PORT, &o->port, CURLU_DEFAULT_PORT) == CURLUE_OK;
	curl_url_cleanup(u);
	return ok;
}

static void origin_free(struct origin *o)
{
	curl_free(o->scheme);
	curl_free(o->host);
	curl_free(o->port);
}

bool http_same_origin(const char *a, const char *b)
{
	struct origin x, y;
	bool ok = origin_of(a, &x), other = origin_of(b, &y);
	bool same = ok && other && strcasecmp(x.scheme, y.scheme) == 0 && strcasecmp(x.host, y.host) == 0 &&
	            strcmp(x.port, y.port) == 0;

	origin_free(&x);
	origin_free(&y);
	return same;
}

bool http_is_secure(const char *url) { return strncasecmp(url, "https://", 8) == 0; }

bool http_is_loopback(const char *url)
{
	struct origin o;
	bool yes = origin_of(url, &o) && (strcmp(o.host, "127.0.0.1") == 0 || strcmp(o.host, "[::1]") == 0 ||
	                                  strcasecmp(o.host, "localhost") == 0);

	origin_free(&o);
	return yes;
}

void http_host(const char *url, char *out, size_t size)
{
	const char *at = strstr(url, "://");

	at = at ? at + 3 : url;
	size_t n = strcspn(at, "/?#");
	for (size_t i = 0; i < n; i++)
		if (at[i] == '@') { /* a password may stand before it */
			at += i + 1;
			n -= i + 1;
			i = 0;
		}
	error_quote(out, (unsigned)size, at, n);
}

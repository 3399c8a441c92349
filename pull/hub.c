#include "pull/hub.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "loaders/files/file.h"
#include "base/json_read.h"

enum { REDIRECTS_MAX = 10, WAIT_MAX_SECONDS = 600, NEAR_MAX = 5 };

/* ---- who asks */

static bool is_token(const char *t)
{
	for (const char *at = t; *at; at++)
		if (*at <= ' ' || *at > '~')
			return false;
	return *t && strlen(t) <= HUB_TOKEN_MAX;
}

/* Of a variable, or of a file's first line. */
static bool take_token(struct hub *hub, const char *text, size_t n, const char *from, struct error *err)
{
	char token[HUB_TOKEN_MAX + 2] = "";

	while (n && strchr(" \t\r\n", text[n - 1]))
		n--;
	while (n && strchr(" \t\r\n", *text)) {
		text++;
		n--;
	}
	snprintf(token, sizeof token, "%.*s", (int)(n < sizeof token ? n : sizeof token - 1), text);
	if (!n)
		return true;
	if (!is_token(token))
		return error_set(err, ERROR_ARGUMENT, "%.200s holds no token: letters, digits and signs without blanks",
		                 from);
	memcpy(hub->token, token, sizeof hub->token);
	return true;
}

static bool read_token_file(struct hub *hub, const char *path, bool named, struct error *err)
{
	struct file file = { 0 };
	struct error why = { 0 };
	bool ok = file_open(&file, path, &why) && file_text(&file, 4096, &why);

	if (ok)
		ok = take_token(hub, (const char *)file.base, file.size, path, err);
	else
		ok = !named || error_set(err, ERROR_IO, "%s", why.text);
	file_close(&file);
	return ok;
}

static bool is_on(const char *variable)
{
	static const char *const on[] = { "1", "ON", "YES", "TRUE" };
	const char *value = getenv(variable);

	for (size_t i = 0; value && i < sizeof on / sizeof *on; i++)
		if (strcasecmp(value, on[i]) == 0)
			return true;
	return false;
}

static bool find_token(struct hub *hub, struct error *err)
{
	static const char *const variables[] = { "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN" };
	static const struct {
		const char *variable, *behind;
	} files[] = { { "HF_TOKEN_PATH", "" },
		      { "HF_HOME", "/token" },
		      { "XDG_CACHE_HOME", "/huggingface/token" },
		      { "HOME", "/.cache/huggingface/token" } };
	char path[4096];

	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		const char *value = getenv(variables[i]);
		if (value && *value)
			return take_token(hub, value, strlen(value), variables[i], err);
	}
	if (is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN"))
		return true;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		const char *value = getenv(files[i].variable);
		if (!value || !*value)
			continue;
		snprintf(path, sizeof path, "%s%s", value, files[i].behind);
		return read_token_file(hub, path, i == 0, err);
	}
	return true;
}

static bool find_endpoint(struct hub *hub, struct error *err)
{
	const char *value = getenv("HF_ENDPOINT");
	char quoted[300];
	size_t n;

	value = value && *value ? value : "https://huggingface.co";
	n = strlen(value);
	while (n && value[n - 1] == '/')
		n--;
	if (n >= sizeof hub->endpoint ||
	    (strncasecmp(value, "http://", 7) != 0 && strncasecmp(value, "https://", 8) != 0) ||
	    !http_same_origin(value, value))
		return error_set(err, ERROR_ARGUMENT, "HF_ENDPOINT is \"%s\", and no address of a server",
		                 error_quote(quoted, sizeof quoted, value, strlen(value)));
	snprintf(hub->endpoint, sizeof hub->endpoint, "%.*s", (int)n, value);
	return true;
}

bool hub_open(struct hub *hub, const char *agent, struct error *err)
{
	if (!(hub->http = http_open(agent, hub->interrupted, err)) || !find_endpoint(hub, err) || !find_token(hub, err))
		return false;
	if (*hub->token && !http_is_secure(hub->endpoint) && !http_is_loopback(hub->endpoint)) {
		hub->token[0] = 0;
		hub->say(hub->user, "the token is not sent, as HF_ENDPOINT does not begin with https://");
	}
	return true;
}

void hub_close(struct hub *hub) { http_close(hub->http); }

/* ---- requests */

/* Appends a path, as addresses have it; slashes stay if they are kept. False: there is no room. */
static bool add_path(char *url, size_t size, const char *path, bool slashes)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	size_t n = strlen(url);

	for (; *path && n + 4 < size; path++) {
		if (strchr(plain, *path) || (slashes && *path == '/'))
			url[n++] = *path;
		else
			n += (size_t)snprintf(url + n, 4, "%%%02X", (unsigned)(uint8_t)*path);
	}
	url[n] = 0;
	return !*path;
}

static bool stopped(const struct hub *hub, struct error *err)
{
	if (!*hub->interrupted)
		return false;
	error_set(err, ERROR_CANCELLED, "interrupted");
	return true;
}

/* A redirect is followed, and none but the hub is told the token. *a keeps what the first answer said of the file. */
static enum http_end ask(struct hub *hub, const char *url, const struct http_request *how, bool follow_away,
                         struct http_answer *a, struct error *err)
{
	struct http_request q = *how;
	struct http_answer first;
	char at[HTTP_URL_MAX], host[200];
	enum http_end end;

	snprintf(at, sizeof at, "%s", url);
	for (int i = 0;; i++) {
		q.url = at;
		q.bearer = *hub->token && http_same_origin(at, hub->endpoint) ? hub->token : NULL;
		end = http_ask(hub->http, &q, a, err);
		if (i == 0)
			first = *a;
		else if (end == HTTP_ANSWERED || end == HTTP_STOPPED) {
			memcpy(a->linked_etag, first.linked_etag, sizeof a->linked_etag);
			memcpy(a->commit, first.commit, sizeof a->commit);
			a->linked_size = first.linked_size;
		}
		if (end != HTTP_ANSWERED || a->status < 300 || a->status > 399 || !*a->redirect ||
		    (!follow_away && *a->linked_etag && !http_same_origin(a->redirect, hub->endpoint)))
			return end;
		http_host(a->redirect, host, sizeof host);
		if (http_is_secure(at) && !http_is_secure(a->redirect)) {
			error_set(err, ERROR_FORMAT, "the hub redirects to %s without encryption, which is refused",
			          host);
			return HTTP_REFUSED;
		}
		if (i == REDIRECTS_MAX) {
			error_set(err, ERROR_FORMAT, "the hub redirects more than %d times, last to %s", REDIRECTS_MAX,
			          host);
			return HTTP_REFUSED;
		}
		memcpy(at, a->redirect, sizeof at);
	}
}

bool hub_is_passing(long status) { return status == 408 || status == 429 || (status >= 500 && status != 501); }

static bool sleep_ms(const struct hub *hub, long ms, struct error *err)
{
	for (; ms > 0 && !*hub->interrupted; ms -= 100)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 * (ms < 100 ? ms : 100) }, NULL);
	return !stopped(hub, err);
}

bool hub_wait(struct hub *hub, int tried, const struct http_answer *a, struct error *err)
{
	long ms = hub->wait_ms << (tried < 6 ? tried - 1 : 5);
	char sentence[800];
	struct error why = *err;

	if (tried >= hub->tries || stopped(hub, err))
		return false;
	if (a->retry_after > WAIT_MAX_SECONDS) {
		*err = (struct error){ 0 };
		return error_set(err, ERROR_IO, "the hub asks to wait %ld s, which is too long: try later",
		                 a->retry_after);
	}
	if (a->retry_after > 0)
		ms = 1000 * a->retry_after;
	snprintf(sentence, sizeof sentence, "%s; trying again in %.1f s", why.text, (double)ms / 1000);
	hub->say(hub->user, sentence);
	*err = (struct error){ 0 };
	return sleep_ms(hub, ms, err);
}

/* Until there is an answer that stays. */
static bool ask_on(struct hub *hub, const char *url, const struct http_request *how, bool follow_away,
                   const struct reference *r, const char *file, struct http_answer *a, struct error *err)
{
	for (int tried = 1;; tried++) {
		enum http_end end = ask(hub, url, how, follow_away, a, err);
		if (end == HTTP_STOPPED) {
			stopped(hub, err);
			return false;
		}
		if (end == HTTP_REFUSED)
			return false;
		if (end == HTTP_ANSWERED && !hub_is_passing(a->status))
			return true;
		if (end == HTTP_ANSWERED)
			hub_refused(hub, r, file, a, err);
		if (!hub_wait(hub, tried, a, err))
			return false;
	}
}

/* ---- the listing */

struct text {
	char *bytes;
	size_t n, room;
	bool too_long, no_memory;
	long status;
};

static bool keep(void *user, const struct http_answer *a, const void *bytes, size_t n)
{
	struct text *t = user;

	t->too_long = n > LISTING_BYTES_MAX - t->n;
	t->no_memory = !t->too_long && !array_grow((void **)&t->bytes, &t->room, t->n + n + 1, 1);
	if (t->too_long || t->no_memory)
		return false;
	memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
	return true;
}

/* What the server says at an address, whole. False: err, or an answer of another status than 200. */
static bool get_text(struct hub *hub, const char *url, const struct reference *r, struct text *t, struct http_answer *a,
                     struct error *err)
{
	struct http_request how = { .body = keep, .user = t };

	for (int tried = 1;; tried++) {
		t->n = 0;
		enum http_end end = ask(hub, url, &how, true, a, err);
		if (end == HTTP_STOPPED && t->too_long)
			return error_set(err, ERROR_FORMAT,
			                 "the hub's list of files is longer than %d MiB, which is refused",
			                 LISTING_BYTES_MAX >> 20);
		if (end == HTTP_STOPPED)
			return t->no_memory ? error_set(err, ERROR_MEMORY, "no memory for the hub's list of files")
			                    : (stopped(hub, err), false);
		if (end == HTTP_REFUSED)
			return false;
		if (end == HTTP_ANSWERED && !hub_is_passing(a->status))
			return a->status == 200;
		if (end == HTTP_ANSWERED)
			hub_refused(hub, r, NULL, a, err);
		if (!hub_wait(hub, tried, a, err))
			return false;
	}
}

bool hub_list(struct hub *hub, const struct reference *r, struct listing *l, struct error *err)
{
	char url[HTTP_URL_MAX];
	struct text t = { 0 };
	struct http_answer a;

	snprintf(url, sizeof url, "%s/api/models/%s/%s/revision/", hub->endpoint, r->owner, r->name);
	add_path(url, sizeof url - 16, r->revision, false);
	strcat(url, "?blobs=true");
	bool ok = get_text(hub, url, r, &t, &a, err);
	if (!ok && err->code == ERROR_NONE)
		hub_refused(hub, r, NULL, &a, err);
	ok = ok && listing_read(l, t.bytes, t.n, err);
	if (ok && !*l->commit && is_commit(r->revision))
		memcpy(l->commit, r->revision, sizeof l->commit);
	free(t.bytes);
	return ok;
}

/* ---- files */

static void file_url(const struct hub *hub, const struct reference *r, const char *commit, const char *file,
                     char url[HTTP_URL_MAX])
{
	snprintf(url, HTTP_URL_MAX, "%s/%s/%s/resolve/", hub->endpoint, r->owner, r->name);
	add_path(url, HTTP_URL_MAX - 2, *commit ? commit : r->revision, false);
	strcat(url, "/");
	add_path(url, HTTP_URL_MAX, file, true);
}

static const char *etag_of(const struct http_answer *a) { return *a->linked_etag ? a->linked_etag : a->etag; }

bool hub_look_up(struct hub *hub, const struct reference *r, struct listing_file *f, char commit[41], struct error *err)
{
	const struct http_request how = { .head = true };
	char url[HTTP_URL_MAX];
	struct http_answer a;

	file_url(hub, r, commit, f->path, url);
	if (!ask_on(hub, url, &how, false, r, f->path, &a, err))
		return false;
	if (a.status != 200 && (a.status < 300 || a.status > 399 || !*a.linked_etag))
		return hub_refused(hub, r, f->path, &a, err);
	const char *etag = etag_of(&a);
	if (!etag_is_safe(etag) || strlen(etag) > ETAG_MAX)
		return error_set(err, ERROR_FORMAT, "the hub names no version of \"%.200s\" (ETag)", f->path);
	uint64_t size = *a.linked_etag && a.linked_size != HTTP_UNKNOWN ? a.linked_size : a.length;
	if (size == HTTP_UNKNOWN || size > PULL_SIZE_MAX)
		return error_set(err, ERROR_FORMAT, "the hub says no size that a file can have for \"%.200s\"",
		                 f->path);
	if (f->has_size && f->size != size)
		return error_set(err, ERROR_FORMAT,
		                 "\"%.200s\" has %llu bytes in the hub's list and %llu by its header", f->path,
		                 (unsigned long long)f->size, (unsigned long long)size);
	if (!*f->etag)
		snprintf(f->etag, sizeof f->etag, "%s", etag);
	f->size = size;
	f->has_size = true;
	if (!*commit && is_commit(a.commit))
		memcpy(commit, a.commit, 41);
	return true;
}

enum http_end hub_get(struct hub *hub, const struct reference *r, const char *commit, const struct listing_file *f,
                      const struct http_request *how, struct http_answer *a, struct error *err)
{
	char url[HTTP_URL_MAX];

	file_url(hub, r, commit, f->path, url);
	return ask(hub, url, how, true, a, err);
}

/* ---- refusals */

/* Repositories whose name holds the one that was asked for: "A/x, B/x". */
static void find_near(struct hub *hub, const struct reference *r, char *out, size_t size)
{
	char url[HTTP_URL_MAX];
	struct text t = { 0 };
	struct http_answer a;
	struct error ignored = { 0 };
	struct reference near;
	int tries = hub->tries;
	size_t n = 0, i;
	json_t *one;

	out[0] = 0;
	snprintf(url, sizeof url, "%s/api/models?limit=%d&search=", hub->endpoint, NEAR_MAX);
	add_path(url, sizeof url, r->name, false);
	hub->tries = 1;
	bool ok = get_text(hub, url, r, &t, &a, &ignored);
	hub->tries = tries;
	json_t *root = ok ? json_read(t.bytes, t.n, LISTING_BYTES_MAX, "the hub's answer", &ignored) : NULL;
	json_array_foreach(root, i, one)
	{
		const char *id = json_string_value(json_object_get(one, "id"));
		id = id ? id : json_string_value(json_object_get(one, "modelId"));
		struct error no = { 0 };
		if (i < NEAR_MAX && id && reference_read(&near, id, NULL, &no) && n + strlen(id) + 3 < size)
			n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", id);
	}
	json_decref(root);
	free(t.bytes);
}

static bool not_found(struct hub *hub, const struct reference *r, const char *file, const struct http_answer *a,
                      struct error *err)
{
	char near[200] = "";

	if (file || strcmp(a->error_code, "EntryNotFound") == 0)
		return error_set(err, ERROR_ARGUMENT, "%s/%s has no file \"%.200s\" (status %ld)", r->owner, r->name,
		                 file ? file : r->file, a->status);
	if (strcmp(a->error_code, "RevisionNotFound") == 0)
		return error_set(err, ERROR_ARGUMENT, "%s/%s has no revision \"%.100s\"", r->owner, r->name,
		                 r->revision);
	find_near(hub, r, near, sizeof near);
	return error_set(err, ERROR_ARGUMENT, "the hub has no model %s/%s%s%s%s%s", r->owner, r->name,
	                 strcmp(r->revision, "main") != 0 ? ", or none of that revision" : "",
	                 *hub->token ? "" : ", or it is private and needs HF_TOKEN", *near ? "; there are: " : "",
	                 near);
}

bool hub_refused(struct hub *hub, const struct reference *r, const char *file, const struct http_answer *a,
                 struct error *err)
{
	bool gated = strcmp(a->error_code, "GatedRepo") == 0;

	if (strcmp(a->error_code, "RepoNotFound") == 0 || a->status == 404)
		return not_found(hub, r, file, a, err);
	if ((a->status == 401 || a->status == 403) && !*hub->token)
		return error_set(err, ERROR_ARGUMENT,
		                 "%s/%s is not given without a token (status %ld): %s, make a token at "
		                 "https://huggingface.co/settings/tokens, and set HF_TOKEN to it",
		                 r->owner, r->name, a->status,
		                 gated ? "accept its terms on its page"
		                       : "if it is gated, accept its terms on its page");
	if (a->status == 401)
		return error_set(err, ERROR_ARGUMENT,
		                 "the hub does not take the token (status 401); see that HF_TOKEN is right");
	if (a->status == 403)
		return error_set(
			err, ERROR_ARGUMENT,
			"the token may not read %s/%s (status 403): accept its terms at %s/%s/%s, and see that "
			"the token may read gated models",
			r->owner, r->name, hub->endpoint, r->owner, r->name);
	if (a->status == 429)
		return error_set(err, ERROR_IO, "the hub is asked too often (status 429)%s",
		                 *hub->token ? "" : "; it answers more often to those who set HF_TOKEN");
	if (a->status == 507 || a->status >= 500)
		return error_set(err, ERROR_IO, "the hub fails (status %ld)", a->status);
	return error_set(err, ERROR_IO, "the hub answers with status %ld, which is not expected here", a->status);
}

/* server/request/refusal.c - why a request is not answered as it asks. */
#include "server/request/refusal.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_write.h"

bool refuse(struct refusal *r, int status, const char *param, const char *format, ...)
{
	char text[sizeof r->message];
	va_list args;

	if (r->status)
		return false;
	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (n < 0)
		n = 0;
	error_quote(r->message, sizeof r->message, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
	error_quote(r->param, sizeof r->param, param ? param : "", param ? strlen(param) : 0);
	r->status = status;
	return false;
}

bool refusal_of_tokens(struct refusal *r, size_t tokens, int context, const char *more)
{
	r->more = more;
	r->type = "exceed_context_size_error";
	r->tokens = tokens;
	r->context = context;
	return false;
}

bool refuse_tokens(struct refusal *r, size_t tokens, int context, const char *more)
{
	refuse(r, 400, NULL,
	       "The prompt of %zu tokens exceeds the available context size of %d tokens; send less, or raise %s.",
	       tokens, context, more);
	return refusal_of_tokens(r, tokens, context, more);
}

bool refuse_within(struct refusal *r, const char *outer)
{
	struct refusal inner = *r;

	r->status = 0;
	if (strncmp(inner.message, inner.param, strlen(inner.param)) != 0 || !inner.param[0])
		return refuse(r, inner.status, outer, "%s: %s", outer, inner.message);
	refuse(r, inner.status, NULL, "%s.%s", outer, inner.message);
	const int n = snprintf(r->param, sizeof r->param, "%.38s.", outer);
	snprintf(r->param + n, sizeof r->param - (size_t)n, "%.40s", inner.param);
	return false;
}

static void rename_in(char *text, size_t size, const char *from, const char *to)
{
	const size_t n = strlen(from);
	char whole[sizeof((struct refusal *)0)->message];

	if (strncmp(text, from, n) != 0 || !strchr(" .[:", text[n]))
		return;
	snprintf(whole, sizeof whole, "%s%.*s", to, (int)(sizeof whole - 100), text + n);
	snprintf(text, size, "%.*s", (int)size - 1, whole);
}

void refusal_rename(struct refusal *r, const char *from, const char *to)
{
	rename_in(r->message, sizeof r->message, from, to);
	rename_in(r->param, sizeof r->param, from, to);
}

bool refuse_error(struct refusal *r, const char *param, const jit_error *err)
{
	return refuse(r, err->code == JIT_ERROR_MEMORY ? 503 : 400, param, "%s", err->message);
}

/* Takes n bytes out. */
static void take_out(char *at, size_t n) { memmove(at, at + n, strlen(at + n) + 1); }

void refusal_hide_paths(char *text, const char *of)
{
	const char *last = of ? strrchr(of, '/') : NULL;
	const size_t folder = last ? (size_t)(last + 1 - of) : 0;

	for (char *at = text; folder && strlen(at) >= folder;)
		if (strncmp(at, of, folder) == 0)
			take_out(at, folder);
		else
			at++;
	/* A path begins behind a space or a mark, and ends before one. */
	for (char *at = text; *at; at++) {
		if (*at != '/' || (at > text && !strchr(" \"'(,=", at[-1])))
			continue;
		const size_t n = strcspn(at, " \"'(),:;");
		size_t end = n;
		while (end > 1 && at[end - 1] == '/')
			end--;
		const char *name = memrchr(at, '/', end);
		if (name)
			take_out(at, (size_t)(name + 1 - at));
	}
}

static const char *type_of(const struct refusal *r)
{
	if (r->type)
		return r->type;
	switch (r->status) {
	case 401: return "authentication_error";
	case 403: return "permission_error";
	case 404: return "not_found_error";
	case 429: return "rate_limit_error";
	case 501: return "not_supported_error";
	case 503: return "unavailable_error";
	}
	return r->status < 500 ? "invalid_request_error" : "server_error";
}

char *refusal_json(const struct refusal *r)
{
	json_t *e = json_object(), *o = json_object();

	json_put(e, "code", r->code ? json_string(r->code) : json_integer(r->status));
	json_put(e, "message", json_string(r->message));
	json_put(e, "type", json_string(type_of(r)));
	json_put(e, "param", r->param[0] ? json_string(r->param) : json_null());
	if (r->tokens) {
		json_put(e, "n_prompt_tokens", json_integer((json_int_t)r->tokens));
		json_put(e, "n_ctx", json_integer(r->context));
	}
	json_put(o, "error", e);
	return json_write(o);
}

static const char *anthropic_type(int status)
{
	switch (status) {
	case 401: return "authentication_error";
	case 403: return "permission_error";
	case 404: return "not_found_error";
	case 413: return "request_too_large";
	case 429: return "rate_limit_error";
	case 503: return "overloaded_error";
	}
	return status < 500 ? "invalid_request_error" : "api_error";
}

unsigned refusal_status_anthropic(const struct refusal *r) { return r->status == 503 ? 529 : (unsigned)r->status; }

/* Agents shorten their conversation when they read the sentence that Anthropic's servers have for it. */
char *refusal_json_anthropic(const struct refusal *r, const char *id)
{
	json_t *e = json_object(), *o = json_object();
	char too_long[120];

	snprintf(too_long, sizeof too_long, "prompt is too long: %zu tokens > %d maximum; send less, or raise %s",
	         r->tokens, r->context, r->more ? r->more : "--context");
	json_put(e, "type", json_string(anthropic_type(r->status)));
	json_put(e, "message", json_string(r->tokens > (size_t)r->context ? too_long : r->message));
	if (r->param[0])
		json_put(e, "param", json_string(r->param));
	json_put(o, "type", json_string("error"));
	json_put(o, "error", e);
	json_put(o, "request_id", json_string(id));
	return json_write(o);
}

char *refusal_json_ollama(const struct refusal *r)
{
	json_t *o = json_object();
	char text[sizeof r->param + sizeof r->message + 2];
	const bool named = !r->param[0] || strstr(r->message, r->param);

	snprintf(text, sizeof text, "%s%s%s", named ? "" : r->param, named ? "" : ": ", r->message);
	json_put(o, "error", json_string(text));
	return json_write(o);
}

/* server/guards.c - which heads of requests are refused before anything of them is used. */
#include "server/guards.h"

#include <string.h>
#include <strings.h>

static bool is_token(const char *p, size_t n)
{
	static const char also[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < n; i++) {
		char c = p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (!letter && (c == 0 || !strchr(also, c)))
			return false;
	}
	return n > 0;
}

static bool has_control(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)p[i] < 0x20 && p[i] != '\t') || p[i] == 0x7f)
			return true;
	return false;
}

static bool is_named(const char *name, size_t n, const char *wanted)
{
	return n == strlen(wanted) && strncasecmp(name, wanted, n) == 0;
}

/* Nineteen digits always fit into 64 bits. */
static bool is_length(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] < '0' || p[i] > '9')
			return false;
	return n >= 1 && n <= 19;
}

bool guard_field(struct guard *g, const char *name, size_t n_name, const char *value, size_t n_value)
{
	struct refusal *r = &g->refusal;

	if (++g->fields > GUARD_MOST_FIELDS)
		return refuse(r, 431, NULL, "The request has more than %d header fields.", GUARD_MOST_FIELDS);
	if (!is_token(name, n_name))
		return refuse(r, 400, NULL, "The name of a header field has a character that has no place there.");
	if (has_control(value, n_value))
		return refuse(r, 400, NULL, "The header field %.*s has a control character.", (int)n_name, name);
	if (is_named(name, n_name, "content-length")) {
		g->lengths++;
		if (!is_length(value, n_value))
			return refuse(r, 400, NULL, "The header field Content-Length is not one number of digits.");
	}
	if (is_named(name, n_name, "transfer-encoding")) {
		g->codings++;
		if (!is_named(value, n_value, "chunked"))
			return refuse(r, 400, NULL, "The header field Transfer-Encoding is not \"chunked\" alone.");
	}
	g->hosts += is_named(name, n_name, "host");
	return r->status == 0;
}

bool guard_end(struct guard *g, const char *version)
{
	struct refusal *r = &g->refusal;
	bool is_1_1 = strcmp(version, "HTTP/1.1") == 0;

	if (!is_1_1 && strcmp(version, "HTTP/1.0") != 0)
		return refuse(r, 505, NULL, "The request is of %s; expected HTTP/1.1.", version);
	if (g->lengths > 1)
		return refuse(r, 400, NULL, "The request has %u header fields Content-Length.", g->lengths);
	if (g->codings > 1 || (g->codings && !is_1_1))
		return refuse(r, 400, NULL, "The header field Transfer-Encoding stands where it has no place.");
	if (g->codings && g->lengths)
		return refuse(r, 400, NULL, "The request has both Content-Length and Transfer-Encoding.");
	if (g->hosts > 1 || (g->hosts == 0 && is_1_1))
		return refuse(r, 400, NULL, "The request has %u header fields Host; expected one.", g->hosts);
	return r->status == 0;
}

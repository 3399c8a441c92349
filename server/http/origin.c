/* server/http/origin.c - which pages of a browser may ask, and by which names this server may be called. */
#include "server/http/origin.h"

#include <string.h>
#include <strings.h>

#include "server/http/authority.h"

const char origin_exposed[] = "X-Jitrun-Replay, Retry-After, X-Request-Id, request-id";

static bool is_this_machine(const struct authority *a)
{
	static const char *const own[] = { "localhost", "127.0.0.1", "::1" };

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (authority_is(a, own[i]))
			return true;
	return false;
}

/* Addresses that stand for all of a machine's name none of its own: browsers let any page reach 0.0.0.0. */
static bool is_bound(const struct authority *a, const char *bound)
{
	return bound && authority_is(a, bound) && !authority_is(a, "0.0.0.0") && !authority_is(a, "::");
}

bool origin_takes_host(const struct origin_rules *o, const char *host, struct refusal *r)
{
	struct authority a;

	if (!host || (!o->loopback && o->n_hosts == 0))
		return true;
	if (authority_read(&a, host, strlen(host))) {
		if (is_this_machine(&a) || is_bound(&a, o->bound))
			return true;
		for (size_t i = 0; i < o->n_hosts; i++)
			if (authority_is(&a, o->host[i]))
				return true;
	}
	return refuse(
		r, 403, NULL,
		"The header field Host is \"%.200s\", which is no name of this server; --allow-host gives it one.",
		host);
}

/* What stands behind the scheme of a web page's origin; NULL: it is of no web page. */
static const char *behind_scheme(const char *origin)
{
	if (strncasecmp(origin, "http://", 7) == 0)
		return origin + 7;
	return strncasecmp(origin, "https://", 8) == 0 ? origin + 8 : NULL;
}

/* A page of this machine, whatever port it comes from. */
static bool is_local_page(const char *origin)
{
	const char *host = behind_scheme(origin);
	struct authority a;

	return host && authority_read(&a, host, strlen(host)) && is_this_machine(&a);
}

const char *origin_allowed(const struct origin_rules *o, const char *origin)
{
	for (size_t i = 0; origin && i < o->n_pages; i++) {
		const char *page = o->page[i];
		bool local = strcmp(page, "localhost") == 0;
		if (strcmp(page, "*") == 0 || (local ? is_local_page(origin) : strcasecmp(page, origin) == 0))
			return origin;
	}
	return NULL;
}

bool origin_takes_page(const struct origin_rules *o, const char *host, const char *origin, struct refusal *r)
{
	if (!origin || origin_allowed(o, origin))
		return true;
	const char *behind = behind_scheme(origin);
	if (behind && host && strcasecmp(behind, host) == 0)
		return true;
	return refuse(r, 403, NULL, "Pages of \"%.200s\" may not ask this server; --cors-origin lets them.", origin);
}

/* Names of header fields with commas between, and nothing that could end the line that they are given back in. */
static bool is_list_of_names(const char *list)
{
	static const char usual[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";
	enum { MAX = 4096 };

	if (strlen(list) > MAX)
		return false;
	for (;;) {
		list += strspn(list, " ");
		size_t n = strspn(list, usual);
		list += n + strspn(list + n, " ");
		if (n == 0 || (*list && *list != ','))
			return false;
		if (!*list++)
			return true;
	}
}

const char *origin_allowed_fields(const char *requested)
{
	return requested && is_list_of_names(requested)
	               ? requested
	               : "Authorization, Content-Type, X-Api-Key, Anthropic-Version, Anthropic-Beta";
}

/* server/origin.c - which pages of a browser may ask, and by which names this server may be called. */
#include "server/origin.h"

#include <string.h>
#include <strings.h>

/* The length of the name in "name:port", "[::1]:port". */
static size_t name_length(const char *host)
{
	const char *end = host[0] == '[' ? strchr(host, ']') : NULL;

	return end ? (size_t)(end - host) + 1 : strcspn(host, ":");
}

static bool is_name(const char *host, size_t n, const char *name)
{
	if (n == strlen(name) && strncasecmp(host, name, n) == 0)
		return true;
	return n >= 2 && host[0] == '[' && n - 2 == strlen(name) && strncasecmp(host + 1, name, n - 2) == 0;
}

static bool is_this_machine(const char *host, size_t n)
{
	static const char *const own[] = { "localhost", "127.0.0.1", "::1" };

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (is_name(host, n, own[i]))
			return true;
	return false;
}

bool origin_takes_host(const struct origin_rules *o, const char *host, struct refusal *r)
{
	if (!host || (!o->loopback && o->n_hosts == 0))
		return true;
	size_t n = name_length(host);
	if (is_this_machine(host, n))
		return true;
	if (o->bound && is_name(host, n, o->bound))
		return true;
	for (size_t i = 0; i < o->n_hosts; i++)
		if (is_name(host, n, o->host[i]))
			return true;
	return refuse(
		r, 403, NULL,
		"The header field Host is \"%.200s\", which is no name of this server; --allow-host gives it one.",
		host);
}

/* A page of this machine, whatever port it comes from. */
static bool is_local_page(const char *origin)
{
	const char *host = strstr(origin, "://");

	if (!host || (strncasecmp(origin, "http:", 5) != 0 && strncasecmp(origin, "https:", 6) != 0))
		return false;
	host += 3;
	size_t n = name_length(host);
	size_t digits = host[n] == ':' ? strspn(host + n + 1, "0123456789") : 0;
	return is_this_machine(host, n) && host[n + (host[n] == ':') + digits] == 0;
}

const char *origin_allowed(const struct origin_rules *o, const char *origin)
{
	for (size_t i = 0; origin && i < o->n_pages; i++) {
		const char *page = o->page[i];
		if (strcmp(page, "*") == 0 || strcasecmp(page, origin) == 0 ||
		    (strcmp(page, "localhost") == 0 && is_local_page(origin)))
			return origin;
	}
	return NULL;
}

bool origin_takes_page(const struct origin_rules *o, const char *host, const char *origin, struct refusal *r)
{
	if (!origin || origin_allowed(o, origin))
		return true;
	const char *behind = strstr(origin, "://");
	if (behind && host && strcasecmp(behind + 3, host) == 0)
		return true;
	return refuse(r, 403, NULL, "Pages of \"%.200s\" may not ask this server; --cors-origin lets them.", origin);
}

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

bool origin_takes_host(const struct origin_rules *o, const char *host, struct refusal *r)
{
	static const char *const own[] = { "localhost", "127.0.0.1", "::1" };

	if (!host || (!o->loopback && o->n_hosts == 0))
		return true;
	size_t n = name_length(host);
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (is_name(host, n, own[i]))
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

const char *origin_allowed(const struct origin_rules *o, const char *origin)
{
	for (size_t i = 0; origin && i < o->n_pages; i++)
		if (strcmp(o->page[i], "*") == 0 || strcasecmp(o->page[i], origin) == 0)
			return o->page[i];
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

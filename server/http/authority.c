/* server/http/authority.c - the name of a server and its port, as they stand in Host, in an origin and in a whole
 * URL. */
#include "server/http/authority.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

enum { NAME_LENGTH_MAX = 253 };

/* Of bytes that are not 0-terminated. */
static bool read_ipv6(struct in6_addr *out, const char *text, size_t n)
{
	char copy[INET6_ADDRSTRLEN];

	if (n >= sizeof copy)
		return false;
	memcpy(copy, text, n);
	copy[n] = 0;
	return strlen(copy) == n && inet_pton(AF_INET6, copy, out) == 1;
}

static bool is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._", c) != NULL);
}

/* How many bytes the host takes, with its brackets; 0: it is none. */
static size_t read_host(struct authority *a, const char *text, size_t n)
{
	struct in6_addr ignored;
	size_t i = 0;

	a->bracketed = n > 0 && text[0] == '[';
	if (a->bracketed) {
		const char *end = memchr(text, ']', n);
		a->host = text + 1;
		a->n_host = end ? (size_t)(end - a->host) : 0;
		return end && read_ipv6(&ignored, a->host, a->n_host) ? a->n_host + 2 : 0;
	}
	while (i < n && is_of_name(text[i]))
		i++;
	a->host = text;
	a->n_host = i;
	return i <= NAME_LENGTH_MAX ? i : 0;
}

bool authority_read(struct authority *a, const char *text, size_t n)
{
	size_t i = read_host(a, text, n);

	a->port = -1;
	if (i == 0 || i == n)
		return i > 0;
	if (text[i] != ':' || n - i > 6)
		return false;
	if (++i < n)
		a->port = 0;
	for (; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		a->port = 10 * a->port + text[i] - '0';
	}
	return a->port <= 65535;
}

bool authority_is(const struct authority *a, const char *name)
{
	struct in6_addr ours, theirs;
	size_t n = strlen(name);

	if (n >= 2 && name[0] == '[' && name[n - 1] == ']') {
		name++;
		n -= 2;
	}
	if (!a->bracketed)
		return a->n_host == n && strncasecmp(a->host, name, n) == 0;
	return read_ipv6(&ours, name, n) && read_ipv6(&theirs, a->host, a->n_host) &&
	       memcmp(&ours, &theirs, sizeof ours) == 0;
}

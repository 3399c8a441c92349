/* server/control/fetch_name.c - the several ways in which people name a model of the hub. */
#include <string.h>
#include <strings.h>

#include "server/control/fetch.h"

enum { NAME_LENGTH_MAX = 1024 };

/* OWNER/NAME[:TAG], without what people put around it; *n: of its bytes. */
static const char *bare_name(const char *name, size_t *n)
{
	static const char *const front[] = { "https://", "http://", "www.", "huggingface.co/", "hf.co/" },
				 *const behind[] = { "/", ":latest" };

	for (size_t i = 0; i < sizeof front / sizeof *front; i++)
		if (strncasecmp(name, front[i], strlen(front[i])) == 0)
			name += strlen(front[i]);
	*n = strlen(name);
	for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
		const size_t length = strlen(behind[i]);
		if (*n > length && strncasecmp(name + *n - length, behind[i], length) == 0)
			*n -= length;
	}
	return name;
}

bool fetch_is_same(const char *a, const char *b)
{
	size_t n_a, n_b;
	const char *bare_a = bare_name(a, &n_a), *bare_b = bare_name(b, &n_b);

	return n_a == n_b && strncasecmp(bare_a, bare_b, n_a) == 0;
}

/* Whether it can lead out of a folder, or break a line. */
static bool misleads(const char *name)
{
	for (const char *at = name;; at++) {
		const size_t n = strcspn(at, "/");
		if ((n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
			return true;
		at += n;
		if (!*at)
			break;
	}
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f || *c == '\\')
			return true;
	return strlen(name) > NAME_LENGTH_MAX;
}

/* OWNER/NAME, also behind hf.co: names of ollama's own registry have no owner. */
bool fetch_is_of_hub(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash && slash > name && slash[1] && name[0] != '-' && !misleads(name);
}

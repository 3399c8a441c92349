/* server/fetch_name.c - the several ways in which people name a model of the hub. */
#include <string.h>
#include <strings.h>

#include "server/fetch.h"

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

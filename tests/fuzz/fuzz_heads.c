/* tests/fuzz/fuzz_heads.c - what a client sends, as requests.
 *
 * However the bytes are cut, the same is handed to the HTTP library. What is handed on has one meaning: it is read
 * again here, by lines and without the server's own parser; and read by that once more, it comes out as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "server/http/framing.h"
#include "tests/fuzz/fuzz.h"
#include "tests/server/hostile.h"

static void must(bool what)
{
	if (!what)
		abort();
}

/* What is handed on, without how bodies are cut into chunks. */
static struct bytes flat;

static struct bytes read_in_cuts(const uint8_t *p, size_t n, size_t by)
{
	struct framing f = { 0 };
	struct bytes out = { 0 };

	for (size_t at = 0; at < n; at += by)
		framing_take(&f, (const char *)p + at, n - at < by ? n - at : by, &out);
	framing_free(&f);
	return out;
}

/* A line that is handed on, without its end; at moves behind it. NULL: it is not whole. */
static const char *next_line(const struct bytes *b, size_t *at, size_t *n)
{
	const char *from = b->p + *at, *end = memchr(from, '\n', b->n - *at);

	if (!end)
		return NULL;
	must(end > from && end[-1] == '\r');
	*n = (size_t)(end - 1 - from);
	must(!memchr(from, '\r', *n) && !memchr(from, 0, *n));
	*at += *n + 2;
	return from;
}

static bool begins(const char *line, size_t n, const char *with, const char **rest)
{
	*rest = line + strlen(with);
	return n >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

/* Whether there is more behind a body of so many bytes. */
static bool skip(const struct bytes *b, size_t *at, unsigned long long n)
{
	size_t have = b->n - *at < n ? b->n - *at : (size_t)n;

	bytes_add(&flat, b->p + *at, have);
	*at += have;
	return have == n;
}

static bool skip_chunks(const struct bytes *b, size_t *at)
{
	for (;;) {
		size_t n;
		const char *line = next_line(b, at, &n);
		if (!line)
			return false;
		must(n > 0 && strspn(line, "0123456789abcdef") == n);
		unsigned long long size = strtoull(line, NULL, 16);
		if (size == 0)
			break;
		must(skip(b, at, size) && b->n - *at >= 2 && memcmp(b->p + *at, "\r\n", 2) == 0);
		*at += 2;
	}
	size_t n;
	const char *line = next_line(b, at, &n), *rest;
	must(line != NULL);
	bytes_add(&flat, line, n);
	if (n) {
		must(begins(line, n, GUARD_REFUSAL ": ", &rest) && next_line(b, at, &n) && n == 0);
		must(*at == b->n);
	}
	return true;
}

/* A request that is handed on. False: it is the last one. */
static bool check_request(const struct bytes *b, size_t *at, bool *told)
{
	unsigned hosts = 0, lengths = 0, chunks = 0, refusals = 0;
	unsigned long long length = 0;
	size_t n;
	const char *line = next_line(b, at, &n), *rest;

	must(line && n > 9);
	must(memcmp(line + n - 9, " HTTP/1.1", 9) == 0 || memcmp(line + n - 9, " HTTP/1.0", 9) == 0);
	must(memchr(line, ' ', n - 9) && !memchr(line, '\t', n));
	bytes_add(&flat, line, n);
	while ((line = next_line(b, at, &n)) && n) {
		bytes_add(&flat, line, n);
		must(memchr(line, ':', n) && line[0] != ' ' && line[0] != '\t');
		hosts += begins(line, n, "Host: ", &rest);
		chunks += n == 26 && begins(line, n, "Transfer-Encoding: chunked", &rest);
		refusals += begins(line, n, GUARD_REFUSAL ": ", &rest);
		*told = *told || line[0] == '@';
		if (begins(line, n, "Content-Length: ", &rest)) {
			lengths++;
			length = strtoull(rest, NULL, 10);
		}
	}
	must(line && hosts <= 1 && lengths + chunks <= 1 && refusals <= 1);
	if (refusals)
		must(*at == b->n);
	return !refusals && (chunks ? skip_chunks(b, at) : skip(b, at, length)) && *at < b->n;
}

/* All requests that are handed on. told: some field is the server's own. */
static struct bytes check_requests(const struct bytes *b, bool *told)
{
	struct bytes seen;

	for (size_t at = 0; at < b->n && check_request(b, &at, told);)
		;
	seen = flat;
	flat = (struct bytes){ 0 };
	return seen;
}

void fuzz_heads(const uint8_t *p, size_t n)
{
	bool told = false, ignored = false;
	struct bytes whole = read_in_cuts(p, n, n ? n : 1), seen = check_requests(&whole, &told);

	for (size_t by = 1; by < 40 && by < n; by += 1 + by / 3) {
		struct bytes cut = read_in_cuts(p, n, by), same = check_requests(&cut, &ignored);
		must(same.n == seen.n && (same.n == 0 || memcmp(same.p, seen.p, same.n) == 0));
		bytes_free(&same);
		bytes_free(&cut);
	}
	if (!told && whole.n && !memchr(whole.p, '%', whole.n) && !memmem(whole.p, whole.n, "@", 1)) {
		struct bytes again = read_in_cuts((const uint8_t *)whole.p, whole.n, whole.n);
		must(again.n == whole.n && memcmp(again.p, whole.p, again.n) == 0);
		bytes_free(&again);
	}
	bytes_free(&seen);
	bytes_free(&whole);
}

void fuzz_heads_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	for (const struct hostile *r = hostile_requests; r->name; r++)
		take(user, (const uint8_t *)r->text, r->n);
}

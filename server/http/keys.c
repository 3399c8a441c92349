/* server/http/keys.c - who may ask: keys from a file, one a line. */
#include "server/http/keys.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "server/request/text_file.h"

/* Padded with zeros, which no key has. */
struct key {
	unsigned char byte[KEY_MAX_BYTES];
};

struct keys {
	struct key *key;
	size_t n, capacity;
};

static bool add(struct keys *k, const char *text, size_t n, const char *label, size_t line, struct error *err)
{
	if (n > KEY_MAX_BYTES)
		return error_set(err, ERROR_FORMAT, "%s: line %zu is a key of %zu bytes, expected at most %d", label,
		                 line, n, KEY_MAX_BYTES);
	for (size_t i = 0; i < n; i++)
		if (text[i] <= 0x20 || text[i] > 0x7e)
			return error_set(err, ERROR_FORMAT,
			                 "%s: line %zu has a character that keys cannot have; expected printable "
			                 "ASCII without spaces",
			                 label, line);
	if (k->n == KEYS_MAX)
		return error_set(err, ERROR_FORMAT, "%s: has more than %d keys", label, KEYS_MAX);
	if (!array_grow((void **)&k->key, &k->capacity, k->n + 1, sizeof *k->key))
		return error_set(err, ERROR_MEMORY, "no memory for the keys of %s", label);
	memset(&k->key[k->n], 0, sizeof *k->key);
	memcpy(k->key[k->n++].byte, text, n);
	return true;
}

static bool parse(struct keys *k, const char *text, size_t n, const char *label, struct error *err)
{
	size_t line = 1, before = k->n;
	bool ok = true;

	for (size_t at = 0; ok && at < n; line++) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t length = end ? (size_t)(end - (text + at)) : n - at;
		size_t next = at + length + 1;
		if (length && text[at + length - 1] == '\r')
			length--;
		ok = length == 0 || text[at] == '#' || add(k, text + at, length, label, line, err);
		at = next;
	}
	return ok && (k->n > before || error_set(err, ERROR_FORMAT, "%s: has no key, expected one a line", label));
}

static struct keys *end(struct keys *k, bool ok, const char *label, struct error *err)
{
	if (ok)
		return k;
	error_set(err, ERROR_MEMORY, "no memory for the keys of %s", label);
	keys_free(k);
	return NULL;
}

struct keys *keys_parse(const char *text, size_t n, const char *label, struct error *err)
{
	struct keys *k = calloc(1, sizeof *k);

	return end(k, k && parse(k, text, n, label, err), label, err);
}

struct keys *keys_read(const char *path, struct error *err) { return keys_gather(NULL, 0, path, err); }

/* A key that is empty would let in clients that send none. */
static bool take_text(struct keys *k, const char *text, struct error *err)
{
	bool ok = true;

	for (bool more = true; ok && more; text++) {
		size_t length = strcspn(text, ",");
		ok = length ? add(k, text, length, "--api-key", 1, err)
		            : error_set(err, ERROR_ARGUMENT, "--api-key has an empty key");
		text += length;
		more = *text;
	}
	return ok;
}

struct keys *keys_gather(const char *const *text, size_t n, const char *path, struct error *err)
{
	const char *label = path ? path : "--api-key";
	struct keys *k = calloc(1, sizeof *k);
	size_t size = 0;
	bool ok = k != NULL;

	for (size_t i = 0; ok && i < n; i++)
		ok = take_text(k, text[i], err);
	char *file = ok && path ? text_file_read(path, KEYS_MAX_FILE, &size, err) : NULL;
	ok = ok && (!path || (file && parse(k, file, size, path, err)));
	free(file);
	return end(k, ok, label, err);
}

void keys_free(struct keys *k)
{
	if (k)
		free(k->key);
	free(k);
}

size_t keys_count(const struct keys *k) { return k ? k->n : 0; }

unsigned keys_number(const struct keys *k, const char *key, size_t n)
{
	struct key given = { { 0 } };
	unsigned found = 0;

	if (n == 0 || n > KEY_MAX_BYTES)
		return 0;
	memcpy(given.byte, key, n);
	for (size_t i = 0; i < k->n; i++) {
		volatile unsigned differ = 0;
		for (size_t b = 0; b < KEY_MAX_BYTES; b++)
			differ |= (unsigned)(given.byte[b] ^ k->key[i].byte[b]);
		found |= (unsigned)(i + 1) * (differ == 0 && found == 0);
	}
	return found;
}

bool keys_has(const struct keys *k, const char *key, size_t n) { return keys_number(k, key, n) != 0; }

const char *keys_bearer(const char *authorization)
{
	if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
		return NULL;
	authorization += 7;
	return authorization + strspn(authorization, " ");
}

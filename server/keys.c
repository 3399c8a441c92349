/* server/keys.c - who may ask: keys from a file, one a line. */
#include "server/keys.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "server/text_file.h"

/* Padded with zeros, which no key has. */
struct key {
	unsigned char byte[KEY_MOST_BYTES];
};

struct keys {
	struct key *key;
	size_t n, capacity;
};

static bool add(struct keys *k, const char *text, size_t n, const char *label, size_t line, struct error *err)
{
	if (n > KEY_MOST_BYTES)
		return error_set(err, ERROR_FORMAT, "%s: line %zu is a key of %zu bytes, expected at most %d", label,
		                 line, n, KEY_MOST_BYTES);
	for (size_t i = 0; i < n; i++)
		if (text[i] <= 0x20 || text[i] > 0x7e)
			return error_set(err, ERROR_FORMAT,
			                 "%s: line %zu has a character that keys cannot have; expected printable "
			                 "ASCII without spaces",
			                 label, line);
	if (k->n == KEYS_MOST)
		return error_set(err, ERROR_FORMAT, "%s: has more than %d keys", label, KEYS_MOST);
	if (!array_grow((void **)&k->key, &k->capacity, k->n + 1, sizeof *k->key))
		return error_set(err, ERROR_MEMORY, "no memory for the keys of %s", label);
	memset(&k->key[k->n], 0, sizeof *k->key);
	memcpy(k->key[k->n++].byte, text, n);
	return true;
}

struct keys *keys_parse(const char *text, size_t n, const char *label, struct error *err)
{
	struct keys *k = calloc(1, sizeof *k);
	size_t line = 1;
	bool ok = k != NULL;

	for (size_t at = 0; ok && at < n; line++) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t length = end ? (size_t)(end - (text + at)) : n - at;
		size_t next = at + length + 1;
		if (length && text[at + length - 1] == '\r')
			length--;
		ok = length == 0 || text[at] == '#' || add(k, text + at, length, label, line, err);
		at = next;
	}
	if (ok && k->n == 0)
		ok = error_set(err, ERROR_FORMAT, "%s: has no key, expected one a line", label);
	if (!ok) {
		error_set(err, ERROR_MEMORY, "no memory for the keys of %s", label);
		keys_free(k);
	}
	return ok ? k : NULL;
}

struct keys *keys_read(const char *path, struct error *err)
{
	size_t n = 0;
	char *text = text_file_read(path, KEYS_MOST_FILE, &n, err);
	struct keys *k = text ? keys_parse(text, n, path, err) : NULL;

	free(text);
	return k;
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
	struct key asked = { { 0 } };
	unsigned found = 0;

	if (n == 0 || n > KEY_MOST_BYTES)
		return 0;
	memcpy(asked.byte, key, n);
	for (size_t i = 0; i < k->n; i++) {
		volatile unsigned differ = 0;
		for (size_t b = 0; b < KEY_MOST_BYTES; b++)
			differ |= (unsigned)(asked.byte[b] ^ k->key[i].byte[b]);
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

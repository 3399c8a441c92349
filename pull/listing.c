#include "pull/listing.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_read.h"
#include "pull/reference.h"

bool etag_is_safe(const char *etag)
{
	static const char taken[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
	size_t n = strlen(etag);

	return n && n <= ETAG_MAX && strspn(etag, taken) == n && *etag != '.';
}

struct listing_file *listing_add(struct listing *l, const char *path, struct error *err)
{
	const char *why = path_trouble(path);
	char quoted[200];

	if (why) {
		error_set(err, ERROR_FORMAT, "the hub lists a file \"%s\", which is refused: %s",
		          error_quote(quoted, sizeof quoted, path, strlen(path)), why);
		return NULL;
	}
	if (l->n == LISTING_FILES_MAX) {
		error_set(err, ERROR_FORMAT, "the hub lists more than %d files", LISTING_FILES_MAX);
		return NULL;
	}
	char *copy = strdup(path);
	if (!copy || !array_grow((void **)&l->file, &l->room, l->n + 1, sizeof *l->file)) {
		free(copy);
		error_set(err, ERROR_MEMORY, "no memory for a list of %zu files", l->n + 1);
		return NULL;
	}
	l->file[l->n] = (struct listing_file){ .path = copy };
	return &l->file[l->n++];
}

static bool read_size(struct listing_file *f, const json_t *size, struct error *err)
{
	char quoted[200];

	if (!size || json_is_null(size))
		return true;
	double value = json_is_integer(size) ? (double)json_integer_value(size) : -1;
	if (!(value >= 0 && value <= (double)PULL_SIZE_MAX))
		return error_set(err, ERROR_FORMAT, "the hub says no size that a file can have for \"%s\"",
		                 error_quote(quoted, sizeof quoted, f->path, strlen(f->path)));
	f->size = (uint64_t)json_integer_value(size);
	f->has_size = true;
	return true;
}

static bool read_hash(struct listing_file *f, const json_t *hash, size_t digits, struct error *err)
{
	const char *text = json_string_value(hash);
	char quoted[200];

	if (!hash || json_is_null(hash))
		return true;
	if (!text || !is_hex(text, digits))
		return error_set(err, ERROR_FORMAT, "the hub says no hash of %zu digits for \"%s\"", digits,
		                 error_quote(quoted, sizeof quoted, f->path, strlen(f->path)));
	memcpy(f->etag, text, digits + 1);
	return true;
}

static bool read_file(struct listing *l, const json_t *one, struct error *err)
{
	const json_t *name = json_object_get(one, "rfilename"), *lfs = json_object_get(one, "lfs");

	if (!json_is_string(name) || strlen(json_string_value(name)) != json_string_length(name))
		return error_set(err, ERROR_FORMAT, "the hub lists a file without a name");
	struct listing_file *f = listing_add(l, json_string_value(name), err);
	if (!f)
		return false;
	if (!json_is_object(lfs))
		return read_size(f, json_object_get(one, "size"), err) &&
		       read_hash(f, json_object_get(one, "blobId"), 40, err);
	const json_t *size = json_object_get(lfs, "size"), *hash = json_object_get(lfs, "sha256");
	return read_size(f, size ? size : json_object_get(one, "size"), err) &&
	       read_hash(f, hash ? hash : json_object_get(lfs, "oid"), HASH_HEX, err);
}

static bool read_commit(struct listing *l, const json_t *root, struct error *err)
{
	const json_t *sha = json_object_get(root, "sha");
	const char *text = json_string_value(sha);

	if (!sha || json_is_null(sha))
		return true;
	if (!text || !is_commit(text))
		return error_set(err, ERROR_FORMAT, "the hub names a commit that is none of 40 hexadecimal digits");
	memcpy(l->commit, text, sizeof l->commit);
	return true;
}

bool listing_read(struct listing *l, const void *bytes, size_t n, struct error *err)
{
	json_t *root = json_read(bytes, n, LISTING_BYTES_MAX, "the hub's answer", err);
	const json_t *siblings = json_object_get(root, "siblings"), *one;
	size_t i;

	if (!root)
		return false;
	bool ok = read_commit(l, root, err);
	if (ok && !json_is_array(siblings))
		ok = error_set(err, ERROR_FORMAT, "the hub's answer has no list \"siblings\" of files");
	json_array_foreach(siblings, i, one) ok = ok && read_file(l, one, err);
	json_decref(root);
	return ok;
}

void listing_free(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->file[i].path);
	free(l->file);
	*l = (struct listing){ 0 };
}

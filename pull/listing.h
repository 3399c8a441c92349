/* pull/listing.h - the files that the hub says a model has.
 *
 * Owns: the decoder of the hub's answer. The hub, a mirror of it or a proxy between may say anything: what is not
 * understood is left out, and what would lead out of the cache or is absurd ends in one sentence.
 */
#ifndef PULL_LISTING_H
#define PULL_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { LISTING_FILES_MAX = 100000, LISTING_BYTES_MAX = 1 << 25, HASH_HEX = 64, ETAG_MAX = 128 };
#define PULL_SIZE_MAX (UINT64_C(1) << 44) /* 16 TiB: of one file, and of all that are chosen */

struct listing_file {
	char *path;
	uint64_t size;
	bool has_size, chosen;
	/* The name of its blob: 64 hexadecimal digits of a SHA-256, 40 of a git blob's SHA-1, or what else the server
	 * has for it; "": not known yet. */
	char etag[ETAG_MAX + 1];
};

struct listing {
	struct listing_file *file;
	size_t n, room;
	char commit[41]; /* "": it does not say */
};

/* The answer to /api/models/OWNER/NAME/revision/REVISION. All zero before; listing_free is due in any case. */
bool listing_read(struct listing *l, const void *bytes, size_t n, struct error *err);
/* A file of that name, of which nothing else is known. NULL: err. */
struct listing_file *listing_add(struct listing *l, const char *path, struct error *err);
void listing_free(struct listing *l);
/* Whether an ETag can name a blob. */
bool etag_is_safe(const char *etag);

#endif

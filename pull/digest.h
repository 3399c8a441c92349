/* pull/digest.h - whether a file's bytes are those that the hub has.
 *
 * Owns: the two hashes by which it names them: SHA-256 of large files, and SHA-1 of git blobs.
 */
#ifndef PULL_DIGEST_H
#define PULL_DIGEST_H

#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdint.h>

struct digest {
	enum { DIGEST_NONE, DIGEST_SHA256, DIGEST_GIT } kind;
	union {
		struct sha256_ctx sha256;
		struct sha1_ctx sha1;
	};
};

/* By the form of what names it: 64 digits, 40, or something that says nothing of the bytes. */
void digest_begin(struct digest *d, const char *etag, uint64_t size);
void digest_add(struct digest *d, const void *bytes, size_t n);
/* out: in hexadecimal digits; "" where there is nothing to compare. */
void digest_end(struct digest *d, char out[65]);

#endif

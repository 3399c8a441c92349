#include "pull/digest.h"

#include <stdio.h>
#include <string.h>

#include "pull/reference.h"

void digest_begin(struct digest *d, const char *etag, uint64_t size)
{
	char head[40];

	d->kind = is_hex(etag, 64) ? DIGEST_SHA256 : is_hex(etag, 40) ? DIGEST_GIT : DIGEST_NONE;
	if (d->kind == DIGEST_SHA256)
		sha256_init(&d->sha256);
	if (d->kind != DIGEST_GIT)
		return;
	sha1_init(&d->sha1);
	int n = snprintf(head, sizeof head, "blob %llu", (unsigned long long)size);
	sha1_update(&d->sha1, (size_t)n + 1, (const uint8_t *)head);
}

void digest_add(struct digest *d, const void *bytes, size_t n)
{
	if (d->kind == DIGEST_SHA256)
		sha256_update(&d->sha256, n, bytes);
	else if (d->kind == DIGEST_GIT)
		sha1_update(&d->sha1, n, bytes);
}

void digest_end(struct digest *d, char out[65])
{
	uint8_t bytes[SHA256_DIGEST_SIZE];
	size_t n = d->kind == DIGEST_SHA256 ? SHA256_DIGEST_SIZE : d->kind == DIGEST_GIT ? SHA1_DIGEST_SIZE : 0;

	if (d->kind == DIGEST_SHA256)
		sha256_digest(&d->sha256, n, bytes);
	else if (d->kind == DIGEST_GIT)
		sha1_digest(&d->sha1, n, bytes);
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	out[2 * n] = 0;
}

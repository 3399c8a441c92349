/* server/engine/sight.h - what a served model sees: its image encoder, the pictures of requests, and those that were
 * encoded before.
 *
 * Owns: the thread that encodes, so that the one that computes answers goes on meanwhile, and has the cores first;
 * limits on what requests may send; features that are kept for the next turn of a conversation, by the SHA-256 of a
 * picture's pixels.
 */
#ifndef SERVER_SIGHT_H
#define SERVER_SIGHT_H

#include <jansson.h>

#include "server/engine/task.h"
#include "vision/prompt.h"

struct batcher;

struct sight_options {
	jit_image_encoder *encoder; /* both are taken over */
	jit_compute *compute;
	size_t images;        /* of a request, at most */
	uint64_t pixels;      /* of a picture, at most; of all of a request, twice as many */
	uint64_t cache_bytes; /* of features that are kept */
	unsigned queue;       /* requests that may wait for their pictures */
	const char *folder;   /* whose files requests may name; NULL: none */
	/* Told once, from a thread of its own, that the encoder's device computes no more; NULL: nobody wants to
	 * know. */
	void (*device_failed)(void *user, const char *why);
	void *user;
	const char *hosts, *fetcher; /* whose pictures they may name, and the program that fetches these; NULL: none */
	bool (*encode)(jit_image *image, struct error *err); /* NULL: image_encode(); another one is for tests */
};
struct sight_numbers {
	uint64_t encoded, reused;           /* pictures; reused: their features were there */
	double seconds;                     /* spent encoding */
	uint64_t kept, kept_bytes, waiting; /* now: pictures whose features are kept, these, and requests */
};

struct sight;
/* NULL: no memory, and encoder and compute are closed. */
struct sight *sight_open(const struct sight_options *o);
/* Tasks go to this batcher from now on. False: no memory. */
bool sight_start(struct sight *s, struct batcher *b);
void sight_close(struct sight *s); /* s may be NULL */
const struct sight_options *sight_told(const struct sight *s);
void sight_get_numbers(struct sight *s, struct sight_numbers *out); /* s NULL: 0 of all */
/* What one that is closed has counted, to what another has. */
void sight_numbers_add(struct sight_numbers *to, const struct sight_numbers *past);

/* A file of a picture, which messages call name: with its features, where they are kept. To be given back by
 * image_release() when sight_forget() was told its pixels. NULL: refused. */
jit_image *sight_read(struct sight *s, const void *bytes, size_t n, const char *name, struct refusal *r);
/* Pixels of pictures that are not encoded are counted, so that they do not fill the memory. False: refused. */
bool sight_count(struct sight *s, uint64_t pixels, struct refusal *r);
void sight_forget(struct sight *s, uint64_t pixels);

/* Hands the task to the batcher once its pictures are encoded; as batcher_take(). */
bool sight_take(struct sight *s, struct task *t, struct refusal *r);

#endif

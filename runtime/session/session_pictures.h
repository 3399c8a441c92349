/* runtime/session/session_pictures.h - pictures in a session: tokens whose embeddings are features of an image encoder.
 *
 * Owns: which tokens these are, and their features, which are needed as long as the tokens may be computed again; where
 * tokens stand for rotary embeddings of three parts; and keys, by which texts with pictures are told apart. A pass
 * over a picture's tokens has no others, so that passes of texts stay as they are.
 */
#ifndef RUNTIME_SESSION_PICTURES_H
#define RUNTIME_SESSION_PICTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "include/jitrun.h"

struct plan_buffers;

/* What an image encoder made of a picture, or of its tiles. Never changed; sessions hold it. */
struct image_features {
	_Atomic uint32_t holders;
	float *values;   /* [levels][tokens][width]; owned */
	uint64_t tokens; /* of all tiles */
	uint32_t width, levels;
	uint32_t rows, columns; /* of a tile's tokens */
	uint64_t key;           /* of the pixels */
};
/* Takes over values, malloc'ed. NULL: err, and values is freed. */
struct image_features *picture_open(const struct image_features *like, struct error *err);
struct image_features *picture_hold(const struct image_features *p);
void picture_release(struct image_features *p); /* p may be NULL */

/* Tokens first .. first + n - 1 of the session are features at .. at + n - 1 of a picture. */
struct session_picture {
	size_t first;
	uint32_t n, at;
	struct image_features *of;
};
struct session_pictures {
	struct session_picture *list; /* in the order of their tokens */
	size_t n, room;
	int32_t *keys; /* room for the context's, once it is needed */
};

void session_pictures_close(jit_session *s);
/* The first n tokens stay. */
void session_pictures_rewind(jit_session *s, size_t n);
/* n, or where the picture begins within which that is. */
size_t session_pictures_whole(const jit_session *s, size_t n);
/* n, or where the picture ends within which that is. */
size_t session_pictures_end(const jit_session *s, size_t n);
bool session_pictures_copy(jit_session *to, const jit_session *from, struct error *err);
/* Those of the first n tokens, held, into a list that is malloc'ed. False: no memory. */
bool session_pictures_take(const jit_session *s, size_t n, struct session_picture **list, size_t *count);
/* One of a saved session, behind those that are there; the session holds it. False: the session cannot have it. */
bool session_pictures_put(jit_session *s, const struct session_picture *p, struct error *err);
/* Whether a token that is not computed yet, from that position on, is one of a picture. */
bool session_pictures_due(const jit_session *s, size_t from);

/* The token is one of a picture. */
bool session_shows(const jit_session *s, size_t position);
/* How many tokens a pass from that position on may have: at most `max`, or a picture whose tokens see each other. */
uint32_t session_pass_tokens(const jit_session *s, size_t position, uint32_t max);
/* Fills in what a pass over n such tokens reads, as number `slot` and so on of its tokens: angles, and features. */
void session_fill_angles(const jit_session *s, const struct plan_buffers *to, uint32_t slot, uint64_t position,
                         uint32_t n);
void session_fill_shown(const jit_session *s, const struct plan_buffers *to, uint64_t position, uint32_t n);

/* Memory for keys of all tokens. */
bool session_keys_room(jit_session *s, struct error *err);

/* Whether it is of a batch. */
bool session_is_member(const jit_session *s);

/* The key of a feature of a part. */
int32_t session_picture_key(uint64_t key, uint64_t feature);
/* Puts the keys of pictures into a text's ids. */
void session_pictures_name(const struct session_picture *p, size_t n, int32_t *ids);
/* As the ids, but what stands for pictures is their keys, and the token from which on adapters count has one with
 * theirs: texts that have the same ones are the same. */
const int32_t *session_keys(const jit_session *s);

/* Features first .. first + n - 1 of a picture as tokens, for each of which `id` stands among the session's ids. They
 * are computed at once; of a session of a batch, by jit_batch_step(). */
int session_feed_image(jit_session *s, const struct image_features *image, size_t first, size_t n, int32_t id,
                       jit_error *err);
/* Of a session of a batch: n tokens together with what is shown among them, first: counted from the first of these. So
 * others' memory of the same beginning is found, pictures included. */
int session_submit_pictures(jit_session *s, const int32_t *ids, size_t n, const struct session_picture *p,
                            size_t pictures, size_t *reused, jit_error *err);
/* The same of any session; those of a batch compute it later, others at once. */
int session_append_pictures(jit_session *s, const int32_t *ids, size_t n, const struct session_picture *p,
                            size_t pictures, jit_error *err);

#endif

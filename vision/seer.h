/* vision/seer.h - a model's image encoder together with its image processor, and pictures that it looks at: what is
 * behind the handles of jitrun_images.h.
 *
 * Owns: the way from a picture's file to what stands for it in a prompt, which needs no weights, and from there to its
 * features, which are made once, by one thread at a time.
 */
#ifndef VISION_SEER_H
#define VISION_SEER_H

#include <pthread.h>
#include <stdatomic.h>

#include "include/jitrun_images.h"
#include "pictures/processor.h"
#include "vision/images.h"

struct jit_image_encoder {
	jit_model *model;
	struct tower *tower;
	struct image_processor processor;
	int32_t image_token;  /* -1: not known, as the model has no tokenizer */
	pthread_mutex_t lock; /* of the tower, and of features of pictures */
};

/* path: the model's, a folder or a file of safetensors in one, or of GGUF with an mmproj file beside it. Sessions of m
 * that are opened from now on take pictures. m and compute are borrowed. NULL: err. */
struct jit_image_encoder *seer_open(const char *path, jit_model *m, jit_compute *compute, struct error *err);
/* The same with llama.cpp's file of an image encoder. */
struct jit_image_encoder *seer_open_pair(const char *mmproj, jit_model *m, jit_compute *compute, struct error *err);
/* pair.c: the one beside a model's path: the .gguf file in its folder whose name has mmproj. malloc'ed; NULL with err
 * unset: there is none. */
char *seer_find_pair(const char *path, struct error *err);
/* pair.c: whether a model's files may have an image encoder, without opening them. */
bool seer_may_see(const char *path);
void seer_close(struct jit_image_encoder *s); /* s may be NULL */

enum { IMAGE_DIGEST = 32 };
struct jit_image {
	_Atomic uint32_t holders;
	struct jit_image_encoder *seer;
	struct processed_image image; /* what stands for it in a prompt; without its numbers */
	struct picture pixels;        /* until it is encoded */
	uint8_t digest[IMAGE_DIGEST]; /* SHA-256 of sizes and pixels */
	uint64_t key;                 /* of that; those of its parts follow */
	struct image_features **part; /* of each part; NULL: it is not encoded. Under the lock until it is there */
	atomic_bool encoded;
};

/* bytes: of a file, which messages call name. limits may be NULL. Nothing is encoded yet. NULL: err. */
struct jit_image *seer_read(struct jit_image_encoder *s, const void *bytes, size_t n, const char *name,
                            const struct picture_limits *limits, struct error *err);
struct jit_image *image_hold(const struct jit_image *p);
void image_release(struct jit_image *p); /* p may be NULL */
/* Makes its features unless they are there. From any thread. */
bool image_encode(struct jit_image *p, struct error *err);
/* Bytes that its features take, or will. */
uint64_t image_bytes(const struct jit_image *p);

#endif

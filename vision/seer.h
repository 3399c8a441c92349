/* vision/seer.h - pictures in prompts: files of pictures become features and the tokens that stand for them.
 *
 * Owns: a model's image encoder together with its image processor (pictures/processor.h), and prompts in which tokens
 * and features take turns.
 */
#ifndef VISION_SEER_H
#define VISION_SEER_H

#include "pictures/processor.h"
#include "vision/images.h"

struct seer;

/* path: the model's, a folder or a file of safetensors in one, or of GGUF with an mmproj file beside it. Sessions of m
 * that are opened from now on take pictures. m and compute are borrowed. NULL: err. */
struct seer *seer_open(const char *path, jit_model *m, jit_compute *compute, struct error *err);
/* The same with llama.cpp's file of an image encoder. */
struct seer *seer_open_pair(const char *mmproj, jit_model *m, jit_compute *compute, struct error *err);
/* pair.c: the one beside a model's path: the .gguf file in its folder whose name has mmproj. malloc'ed; NULL with err
 * unset: there is none. */
char *seer_find_pair(const char *path, struct error *err);
void seer_close(struct seer *s); /* s may be NULL */

/* A picture: what stands for it in a prompt, and the features of its parts. */
struct seen {
	struct processed_image image; /* without its numbers */
	struct jit_image **part;
};
/* bytes: of a file, which messages call name. False: err, and nothing is to be freed. */
bool seer_look(struct seer *s, const void *bytes, size_t n, const char *name, struct seen *out, struct error *err);
void seen_free(struct seen *p);

/* Tokens first .. first + n - 1 of a prompt are features at .. of a part. */
struct seen_run {
	size_t first, n, at;
	const struct jit_image *of;
};
struct seen_prompt {
	int32_t *ids; /* n of them; the image token where features are */
	size_t n;
	struct seen_run *run;
	size_t runs;
};
/* The pictures take the places of the processor's placeholders in the text, in their order; without any, they stand in
 * front. special: control tokens of the text count as such. They live as long as the prompt. */
bool seer_prompt(const struct seer *s, const char *text, size_t n, bool special, const struct seen *picture,
                 size_t pictures, struct seen_prompt *out, struct error *err);
/* The same of tokens, among which are as many image tokens as the pictures have features. */
bool seer_prompt_of_ids(const struct seer *s, const int32_t *ids, size_t n, const struct seen *picture, size_t pictures,
                        struct seen_prompt *out, struct error *err);
void seen_prompt_free(struct seen_prompt *p);
/* Feeds all of it. */
int seen_prompt_feed(jit_session *s, const struct seen_prompt *p, jit_error *err);

#endif

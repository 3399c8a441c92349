/* tests/vision/tower_tests.h - what the files of t_tower share. */
#ifndef TESTS_TOWER_TESTS_H
#define TESTS_TOWER_TESTS_H

#include "include/jitrun_images.h"
#include "include/jitrun_kernel.h"
#include "loaders/files/safetensors.h"
#include "vision/tower.h"

/* The reference's folders, each with as many pictures. */
enum { PICTURES = 3, TOWER_MODELS = 9 };
extern const char *const tower_models[TOWER_MODELS];

/* reference.c */
struct reference {
	uint8_t *bytes;
	struct safetensors index;
};
bool reference_open(struct reference *r, const char *model); /* false: it is not there, as was said */
void reference_open_file(struct reference *r, const char *path);
void reference_close(struct reference *r);
struct tower_pixels reference_pixels(const struct reference *r, unsigned picture);
/* Of a tensor, whose name has the picture's number behind it, the floats and the first dimension. */
const float *reference_floats(const struct reference *r, const char *name, unsigned picture);
uint64_t reference_rows(const struct reference *r, const char *name, unsigned picture);

jit_compute *compute_open(const char *device, const char *isa, int threads);
struct tower_features tower_encoded(struct tower *t, const struct tower_pixels *p);
/* The greatest difference beside the greatest number of y. */
double tower_difference(const float *x, const float *y, uint64_t n);

/* own_tower.c: a tower of Qwen 2 VL with weights of its own beside plain loops; files that are refused. */
void test_own_tower(void **state);
void test_refused(void **state);

/* see_tests.c: language models that see */
void test_see(void **state);
void test_see_gguf(void **state);
void test_see_bits(void **state);
void test_see_kept(void **state);
void test_see_refused(void **state);
void test_see_files(void **state);

/* pair_tests.c: image encoders of mmproj files */
void test_pairs(void **state);
void test_pair_keys(void **state);
void test_pair_found(void **state);
void test_pair_damaged(void **state);

/* image_api_tests.c: jitrun_images.h, and what it shares: a reference model whose tokens are bytes, with its encoder */
struct seeing {
	char folder[40];
	const char *name;
	jit_compute *compute;
	jit_model *model;
	jit_image_encoder *encoder;
};
bool seeing_open(struct seeing *s, const char *name, const char *mark, const char *tmpl);
void seeing_close(struct seeing *s);
jit_image *seeing_image(const struct seeing *s, unsigned number);
jit_image_info seeing_info(const jit_image *image);
jit_session *seeing_session(const struct seeing *s);
uint32_t seeing_vocab(const struct seeing *s);
void seeing_same(const struct seeing *s, jit_session *x, jit_session *y); /* logits */
jit_prompt *seeing_chat(const struct seeing *s, const char *messages, const char *tmpl, jit_image *const *images,
                        size_t n);
extern const char seeing_two[]; /* messages with two pictures */
void test_images(void **state);
void test_image_fields(void **state);
void test_image_chats(void **state);
void test_image_sessions(void **state);
void test_image_pace(void **state);       /* paced_tests.c */
void test_image_not_finite(void **state); /* there, too */
void test_see_gemma4(void **state);       /* gemma4_tests.c */

/* saved_tests.c: sessions with pictures in files, drafts, and texts that are cut */
void test_image_saved(void **state);
void test_image_damaged(void **state);
void test_image_cut(void **state);
void test_image_drafts(void **state);

#endif

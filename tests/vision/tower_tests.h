/* tests/vision/tower_tests.h - what the files of t_tower share. */
#ifndef TESTS_TOWER_TESTS_H
#define TESTS_TOWER_TESTS_H

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

/* image_api_tests.c: jitrun_images.h */
void test_images(void **state);
void test_image_fields(void **state);
void test_image_chats(void **state);
void test_image_sessions(void **state);
void test_see_gemma4(void **state); /* gemma4_tests.c */

#endif

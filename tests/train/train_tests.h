/* tests/train/train_tests.h - what the files of t_train share. */
#ifndef TESTS_TRAIN_TESTS_H
#define TESTS_TRAIN_TESTS_H

#include <stdbool.h>

#include "include/jitrun_train.h"

/* Fails the test when it does not open. */
jit_train *train_open(const char *model, jit_train_options o);
void train_feed(jit_train *t, const int32_t *ids, const uint8_t *counts, size_t n);
jit_train_report train_step(jit_train *t);
/* Whether all that is trained is the same, bit by bit. */
bool train_same(const jit_train *a, const jit_train *b);

/* train_files.c: a path in a folder of the test's own, which train_remove_folder() takes away; saving, and a model with
 * one step behind it. */
const char *train_in_folder(char out[1024], const char *name);
void train_remove_folder(void);
void train_save_as(const jit_train *t, const char *path, int format);
jit_train *train_step_of(const char *model, jit_train_options o);

/* train_bits.c */
void test_setups(void **state);
void test_packed(void **state);
void test_refusals(void **state);
void test_state(void **state);
/* train_files.c */
void test_frozen(void **state);
void test_chunks(void **state);
void test_differences(void **state);
void test_saved(void **state);
void test_formats(void **state);
void test_served(void **state);
/* train_gguf.c */
void test_gguf_order(void **state);
void test_gguf_fused(void **state);
/* train_whole.c */
void test_whole_model(void **state);
void test_unchanged(void **state);
void test_gpt2(void **state);
void test_new(void **state);
/* train_data.c */
void test_texts(void **state);
void test_conversations(void **state);
void test_order(void **state);

#endif

/* tests/pictures/processor_tests.h - the parts of t_processor. */
#ifndef TESTS_PROCESSOR_TESTS_H
#define TESTS_PROCESSOR_TESTS_H

#include "pictures/processor.h"

/* The processor that texts of preprocessor_config.json, config.json and processor_config.json say; NULL: not there. */
bool read_texts(struct image_processor *p, const char *image, const char *config, const char *processor,
                struct error *err);

void test_defaults(void **state);
void test_fields(void **state);
void test_refused_fields(void **state);
void test_gguf(void **state);
void test_refused_gguf(void **state);
void test_gguf_beside_folders(void **state);
void test_all_sizes(void **state);
void test_known_sizes(void **state);
void test_refused_sizes(void **state);
void test_segments(void **state);
void test_crops(void **state);
void test_steps_left_out(void **state);

#endif

/* tests/loaders/model_files.h - a directory for models, and what opening one says. */
#ifndef TESTS_LOADERS_MODEL_FILES_H
#define TESTS_LOADERS_MODEL_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "loaders/model/model_load.h"

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

extern char model_dir[300]; /* fresh for each test */
;
int make_dir(void **state);
int remove_dir(void **state);
const char *in_dir(const char *name);
/* part NULL: must open */
void expect_open(const char *path, unsigned flags, const char *part);
void write_gguf(const char *name);

/* The tests of the other files of the program: the number that failed. */
int model_parts_tests(void);

#endif

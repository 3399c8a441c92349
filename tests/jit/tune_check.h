/* tests/jit/tune_check.h - tuning files for the tests of tuning. */
#ifndef TESTS_JIT_TUNE_CHECK_H
#define TESTS_JIT_TUNE_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "jit/store/tune.h"
#include "kernels-templates/templates.h"
#include "include/jitrun.h"

enum { TOKENS = 40 };
struct told {
	int32_t ids[TOKENS];
	float logits[4096];
};

struct key example_key(uint32_t rows, uint32_t schedule);
char *new_dir(char out[64]);
/* The one file in a directory that is no entry of the cache. */
char *file_in(const char *dir, char out[512]);
void remove_dir(const char *dir);
size_t read_all(const char *path, char *out, size_t capacity);
void write_all(const char *path, const char *bytes, size_t n);
struct tune *open_tuning(const char *dir);
void decode(const char *dir, int mode, struct told *out);

/* The tests of the other files of the program: the number that failed. */
int tune_order_tests(void);

#endif

/* tests/support/call_model.h - the small trained model with the mark that opens a call as a token; behind cmocka.h.
 *
 * The text of one token is replaced in its file by the mark, which has the same length.
 */
#ifndef TESTS_SUPPORT_CALL_MODEL_H
#define TESTS_SUPPORT_CALL_MODEL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/shared.h"

enum { CALL_OPENS = 4085 };

/* Writes it there. */
static inline void call_model(const char *path)
{
	static const char before[] = "\xc4\xa0travelled", mark[] = "<tool_call>";
	char from[1024];
	FILE *in = fopen(source_path(from, "models/tale-q8_0.gguf"), "rb"), *out = fopen(path, "wb");

	assert_true(in && out && fseek(in, 0, SEEK_END) == 0);
	const size_t n = (size_t)ftell(in);
	char *bytes = malloc(n);
	rewind(in);
	assert_true(bytes && fread(bytes, 1, n, in) == n);
	char *at = memmem(bytes, n, before, sizeof before - 1);
	assert_non_null(at);
	memcpy(at, mark, sizeof mark - 1);
	assert_true(fwrite(bytes, 1, n, out) == n);
	free(bytes);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

#endif

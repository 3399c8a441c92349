/* tests/support/fim_model.h - the small trained model with tokens for filling in text; behind cmocka.h.
 *
 * Metadata are put behind the head of its file, so many bytes that all behind them stays aligned.
 */
#ifndef TESTS_SUPPORT_FIM_MODEL_H
#define TESTS_SUPPORT_FIM_MODEL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/shared.h"

enum { FIM_PREFIX = 3001, FIM_SUFFIX = 3002, FIM_MIDDLE = 3003, FIM_ALIGNED = 32 };

static inline size_t fim_put(unsigned char *to, size_t at, const void *from, size_t n)
{
	memcpy(to + at, from, n);
	return at + n;
}

static inline size_t fim_key(unsigned char *to, size_t at, const char *key, uint32_t type)
{
	at = fim_put(to, at, &(uint64_t){ strlen(key) }, 8);
	at = fim_put(to, at, key, strlen(key));
	return fim_put(to, at, &type, 4);
}

/* Writes it there. */
/* basename: of the family; NULL: none. */
static inline void fim_model_of(const char *path, const char *basename)
{
	static const char *const keys[] = { "tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.fim_suf_token_id",
		                            "tokenizer.ggml.fim_mid_token_id" };
	enum { HEAD = 24, COUNT = 16, UINT32 = 4, STRING = 8 };
	unsigned char more[512] = { 0 }, head[HEAD];
	char from[1024], part[1 << 16];
	size_t n = 0, got;
	FILE *in = fopen(source_path(from, "models/tale-q8_0.gguf"), "rb"), *out = fopen(path, "wb");

	assert_true(in && out && fread(head, 1, HEAD, in) == HEAD);
	for (uint32_t i = 0; i < 3; i++) {
		n = fim_key(more, n, keys[i], UINT32);
		n = fim_put(more, n, &(uint32_t){ FIM_PREFIX + i }, 4);
	}
	if (basename) {
		const uint64_t length = strlen(basename);
		n = fim_key(more, n, "general.basename", STRING);
		n = fim_put(more, n, &length, 8);
		n = fim_put(more, n, basename, length);
	}
	n = fim_key(more, n, "general.filler", STRING);
	const uint64_t filler = (FIM_ALIGNED - (n + 8) % FIM_ALIGNED) % FIM_ALIGNED;
	n = fim_put(more, n, &filler, 8) + filler;
	for (uint64_t i = n - filler; i < n; i++)
		more[i] = '.';
	uint64_t count;
	memcpy(&count, head + COUNT, 8);
	count += 4 + (basename != NULL);
	memcpy(head + COUNT, &count, 8);
	assert_true(fwrite(head, 1, HEAD, out) == HEAD && fwrite(more, 1, n, out) == n);
	while ((got = fread(part, 1, sizeof part, in)) > 0)
		assert_true(fwrite(part, 1, got, out) == got);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

static inline void fim_model(const char *path) { fim_model_of(path, NULL); }

#endif

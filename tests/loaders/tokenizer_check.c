/* tests/loaders/tokenizer_check.c - see tokenizer_check.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/tokenizer/tokenizer_internal.h"
#include "tests/support/shared.h"
#include "tests/loaders/tokenizer_check.h"

void check_ids(const struct tokenizer *t, const char *text, size_t n, unsigned flags, const int32_t *want,
               size_t n_want)
{
	struct error err = { 0 };
	int32_t *ids;
	size_t got;

	if (!tokenizer_encode(t, text, n, flags, &ids, &got, &err))
		fail_msg("\"%s\": %s", text, err.text);
	if (got != n_want || (got && memcmp(ids, want, got * sizeof *ids))) {
		for (size_t i = 0; i < got; i++)
			print_message("%d ", ids[i]);
		fail_msg("\"%s\": %zu ids, expected %zu", text, got, n_want);
	}
	free(ids);
}

void check_text(const struct tokenizer *t, const int32_t *ids, size_t n, bool special, const char *want)
{
	struct error err = { 0 };
	size_t got;
	char *text = tokenizer_decode(t, ids, n, special, &got, &err);

	assert_non_null(text);
	assert_string_equal(text, want);
	assert_int_equal(got, strlen(want));
	free(text);
}

struct tokenizer *from_json(const char *json, const char *config, struct error *err)
{
	memset(err, 0, sizeof *err);
	return tokenizer_from_json((struct tokenizer_text){ json, strlen(json), "small.json" },
	                           (struct tokenizer_text){ config, config ? strlen(config) : 0, "small_config.json" },
	                           0, err);
}

struct tokenizer *must_json(const char *json, const char *config)
{
	struct error err;
	struct tokenizer *t = from_json(json, config, &err);

	if (!t)
		fail_msg("%s", err.text);
	return t;
}

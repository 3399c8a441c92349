/* tests/support/ordered.h - for tests of what visits kernels: that it does so in the order of the keys' texts. */
#ifndef TESTS_ORDERED_H
#define TESTS_ORDERED_H

#include <string.h>

#include "jit/key.h"

struct ordered {
	size_t n;
	char last[KEY_TEXT_MAX];
};

/* The next key; fails the test when it does not come after the one before. */
static inline void ordered_next(struct ordered *o, const struct key *key)
{
	char text[KEY_TEXT_MAX];

	key_text(key, text, sizeof text);
	assert_true(strcmp(o->last, text) < 0);
	strcpy(o->last, text);
	o->n++;
}

#endif

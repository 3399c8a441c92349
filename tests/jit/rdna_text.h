/* tests/jit/rdna_text.h - RDNA machine programs as texts; what goes wrong fails the test. Behind cmocka.h. */
#ifndef TESTS_RDNA_TEXT_H
#define TESTS_RDNA_TEXT_H

#include <stdio.h>
#include <stdlib.h>

#include "jit/rdna/lir.h"

/* The caller frees it. */
static inline char *rdna_text(const struct rdna_lir *l)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	assert_non_null(f);
	rdna_lir_print(l, f);
	assert_int_equal(fclose(f), 0);
	return text;
}

static inline void rdna_text_is(const struct rdna_lir *l, const char *want)
{
	char *text = rdna_text(l);
	assert_string_equal(text, want);
	free(text);
}

static inline void rdna_text_read(struct rdna_lir *l, enum rdna_gen gen, const char *text)
{
	struct error err = { 0 };
	rdna_lir_init(l, gen);
	if (!rdna_lir_parse(l, text, &err))
		fail_msg("%s", err.text);
}

#endif

/* tests/grammar/spell.h - how tests write a value as a JSON text. */
#ifndef TESTS_GRAMMAR_SPELL_H
#define TESTS_GRAMMAR_SPELL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>

/* Numbers as short as they can be: 15 digits, unless the value is another one then. The caller frees it. */
static inline char *spell(const json_t *value, size_t style)
{
	char *text = json_dumps(value, style | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	json_t *again = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
	bool same = json_equal(again, value) || !text;

	json_decref(again);
	if (same)
		return text;
	free(text);
	return json_dumps(value, style | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
}

#endif

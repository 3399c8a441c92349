/* tests/answers/call_writers.h - calls at random, and each form of writing them.
 *
 * Owns: writers that share nothing with the readers of the server, so that what is read can be held against what was
 * meant.
 */
#ifndef TESTS_CALL_WRITERS_H
#define TESTS_CALL_WRITERS_H

#include <jansson.h>
#include <stdint.h>

#include "answers/tool_forms.h"
#include "base/bytes.h"

uint32_t draw(uint32_t below);
/* A piece of text that readers may stumble over. */
const char *call_bit(void);
/* An object that the form can write. */
json_t *call_any_arguments(enum tools_form form);
/* What stands between the marks of a call, in one of the ways in which it may be written. */
void call_write(struct bytes *b, enum tools_form form, const char *name, const json_t *arguments);

#endif

/* base/json_read.h - the JSON files beside a model's weights, read as Python's json module reads them.
 *
 * Owns: the one way from such a text to a jansson tree. The files were written by Python programs, and published ones
 * hold what the standard does not have: integers of any size (they become reals), NaN, Infinity, numbers beyond every
 * double, halves of surrogate pairs, and a member twice (the last counts). Taking them here leaves it to the reader of
 * a field to refuse what is out of its range, by the field's name; a field that nobody reads does no harm.
 *
 * Never: recurses deeper than JSON_MAX_DEPTH, builds more values than JSON_MAX_VALUES, reads past the end.
 */
#ifndef LOADERS_JSON_READ_H
#define LOADERS_JSON_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { JSON_MAX_VALUES = 1 << 23 };

/* Bytes a file may have, asked before any of them is read; published tokenizers have up to a fifth of it. */
enum { JSON_MAX_CONFIG = 1 << 20, JSON_MAX_INDEX = 1 << 25, JSON_MAX_TOKENIZER = 1 << 27 };

/* The tree of n bytes, at most `max`; NULL with err set. label names the file. Any value may be the root. Strings are
 * valid UTF-8 but for halves of surrogate pairs (json_is_text). A member's name that holds a NUL is refused. */
json_t *json_read(const void *text, uint64_t n, uint64_t max, const char *label, struct error *err);

/* The same, but integers beyond 64 bits keep their digits below the members of a JSON Schema that compare values
 * (const, enum, minimum and the other bounds). Only json_digits() and json_spell() know such a value for what it is. */
json_t *json_read_digits(const void *text, uint64_t n, uint64_t max, const char *label, struct error *err);
/* The same, of values that take at most so many bytes of memory, about: more are ERROR_UNSUPPORTED. */
json_t *json_read_within(const void *text, uint64_t n, uint64_t memory, const char *label, struct error *err);
/* The digits of such an integer, with its sign, else NULL. It is no text, and no number to jansson. */
const char *json_digits(const json_t *v);

/* "NaN", "Infinity" or "-Infinity" for a value that jansson's reals cannot hold, else NULL. Such a value is neither a
 * number nor a boolean to jansson; json_is_text and json_kind know it too. */
const char *json_not_finite(const json_t *v);
/* The tree of n bytes, which can be written as JSON again: no NaN and no infinity in it, and no half of a surrogate
 * pair. NULL: the text is another one, or there is no memory. */
json_t *json_read_plain(const void *text, uint64_t n);
/* A string that is valid UTF-8: no half of a surrogate pair in it. The second is for a member's name. */
bool json_is_text(const json_t *v);
bool json_name_is_text(const char *name);
/* What a value is, for messages: "an object", ..., "NaN". */
const char *json_kind(const json_t *v);

#endif

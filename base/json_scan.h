/* base/json_scan.h - reads JSON in place, value by value, without building a tree.
 *
 * Owns: the strict JSON grammar (RFC 8259: valid UTF-8, no trailing commas, no lone surrogates) over a span of memory.
 * For the safetensors header, whose size a hostile file chooses freely: a tree of such a text can take forty times its
 * size; this takes nothing. The JSON files beside the weights are read into a tree on top of it (base/json_read.h),
 * with Python's leniency.
 *
 * Never: allocates, recurses deeper than JSON_MAX_DEPTH, reads past the end.
 * Errors are sticky: after the first one every call returns false, and `problem` and `at` say what and where.
 */
#ifndef LOADERS_JSON_SCAN_H
#define LOADERS_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_MAX_DEPTH = 64 };

struct json_scan {
	const char *p;
	uint64_t at, end;
	const char *problem;  /* NULL: none so far */
	bool lone_surrogates; /* an escape may be half a surrogate pair, as Python takes it; unescaped it is no valid
	                         UTF-8 */
};

/* The inside of a string literal, as written. */
struct json_scan_text {
	const char *p;
	uint64_t n;
	bool escaped; /* holds a backslash */
};

struct json_scan json_scan_of(const void *p, uint64_t n);
bool json_scan_fail(struct json_scan *s, const char *problem);

/* The next byte that is no white space, unread; 0 at the end or after an error. */
char json_scan_peek(struct json_scan *s);
/* Takes this one punctuation character. */
bool json_scan_take(struct json_scan *s, char c);
/* After an element of an object or array: true and takes the comma when another follows, false and takes `close` when
 * not. */
bool json_scan_more(struct json_scan *s, char close);
/* Opens an object or array; true when it is not empty, false (and the end taken) when it is. Ask s->problem too. */
bool json_scan_open(struct json_scan *s, char open, char close);

bool json_scan_string(struct json_scan *s, struct json_scan_text *out);
/* A string and the colon after it. */
bool json_scan_member(struct json_scan *s, struct json_scan_text *out);
/* A non-negative integer without fraction or exponent that fits 64 bits. */
bool json_scan_u64(struct json_scan *s, uint64_t *out);
/* Any number of the grammar; its characters in *out. */
bool json_scan_number(struct json_scan *s, struct json_scan_text *out);
/* Exactly these letters. */
bool json_scan_word(struct json_scan *s, const char *word);
/* Any value, checked and passed over. */
bool json_scan_skip(struct json_scan *s);
/* Nothing but white space may be left. */
bool json_scan_finish(struct json_scan *s);

/* Writes the text's bytes, at most t->n of them; returns how many. */
uint64_t json_scan_unescape(const struct json_scan_text *t, char *out);
bool json_scan_is(const struct json_scan_text *t, const char *word);

#endif

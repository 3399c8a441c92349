/* server/request/fields.h - the fields of a request's JSON.
 *
 * Owns: how a value that is missing, null, of another kind or out of range is told. A field that is not there leaves
 * what the caller had.
 */
#ifndef SERVER_FIELDS_H
#define SERVER_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/request/refusal.h"

/* What one request may take: the values of its body, in bytes of memory, and their number beside one another; a text
 * that becomes tokens, in bytes. */
enum { BODY_MEMORY = 192 << 20, BODY_MEMBERS = 1000, TEXT_BYTES = 4 << 20 };

/* n bytes of a body as an object, or as JSON of any kind, to be given back. NULL: refused. */
json_t *fields_json(const void *p, size_t n, struct refusal *r);
json_t *fields_read(const void *p, size_t n, struct refusal *r);

/* Whether no text in it holds half of a surrogate pair, and no number is NaN but for fields of a body. name: of the
 * field that it is; NULL: it is a body. False: refused. */
bool fields_are_whole(const json_t *o, const char *name, struct refusal *r);

/* Whether n bytes of a field's text are few enough to become tokens. False: refused. */
bool field_fits(const char *name, size_t n, struct refusal *r);

/* False: refused. */
bool field_number(const json_t *o, const char *name, double low, double high, double *out, struct refusal *r);
bool field_integer(const json_t *o, const char *name, int64_t low, int64_t high, int64_t *out, struct refusal *r);
bool field_flag(const json_t *o, const char *name, bool *out, struct refusal *r);
/* Lives as long as o; no NUL in it. */
bool field_text(const json_t *o, const char *name, const char **out, struct refusal *r);
/* NULL where it is missing or null. */
json_t *field_value(const json_t *o, const char *name);
json_t *field_object(const json_t *o, const char *name, struct refusal *r);
json_t *field_array(const json_t *o, const char *name, struct refusal *r);

#endif

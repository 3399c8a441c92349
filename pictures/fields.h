/* pictures/fields.h - fields of the JSON files beside a model that say how pictures are processed.
 *
 * Owns: reading one field at a time. null is a field that is not there, as in transformers. A value of another kind or
 * out of range sets the error, with the file, the field and the value; what follows then reads nothing.
 */
#ifndef PICTURES_FIELDS_H
#define PICTURES_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct fields {
	const json_t *o;  /* an object, or NULL: no field is there */
	const char *file; /* for messages */
	const char *in;   /* "size.", ... or "" */
	bool *ok;         /* cleared by the first error */
	struct error *err;
};

/* The field unless it is null or an error was set. */
const json_t *field(const struct fields *f, const char *name);
/* The fields of a member that is an object. */
struct fields fields_object(const struct fields *f, const char *name, const char *in);
/* Each leaves *out where the field is not there, and gives back whether it is. */
bool field_bool(const struct fields *f, const char *name, bool *out);
bool field_count(const struct fields *f, const char *name, uint64_t min, uint64_t max, uint64_t *out);
bool field_u32(const struct fields *f, const char *name, uint32_t min, uint32_t max, uint32_t *out);
bool field_real(const struct fields *f, const char *name, double min, double max, double *out);
/* One number for all three, or an array of one or three. */
bool field_three(const struct fields *f, const char *name, double min, double max, double out[3]);
/* One number for both, an array [height, width], or an object with height and width. */
bool field_side(const struct fields *f, const char *name, uint32_t max, uint32_t *height, uint32_t *width);
/* A text of fewer than cap bytes. */
bool fields_text(const struct fields *f, const char *name, char *out, size_t cap);
/* "FILE: FIELD is VALUE; EXPECTED"; false always. */
bool field_refuse(const struct fields *f, const char *name, const json_t *v, const char *expected);

#endif

/* answers/call_arguments.h - the arguments of a call, by its schema, while they are read one after another.
 *
 * Owns: where a schema's machine stands between them, so that who reads a form which does not tell texts from other
 * values can ask which is meant.
 */
#ifndef ANSWERS_CALL_ARGUMENTS_H
#define ANSWERS_CALL_ARGUMENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "grammar/schema/schema.h"

/* What makes a schema that is put into another one a document of its own. */
#define CALL_DOCUMENT SCHEMA_DOCUMENT

struct call_arguments;

/* parameters: JSON text of the schema of {...}, all of the arguments. NULL: the schema cannot be used, or with *lost
 * memory is short. */
struct call_arguments *call_arguments_open(const char *parameters, bool *lost);
/* The same where the parameters hold something that is not supported: of one argument alone, by its key, as far as what
 * it refers to is in the parameters' definitions. NULL: there is no such argument, too. */
struct call_arguments *call_arguments_of_key(const json_t *parameters, const char *key, bool *lost);
void call_arguments_close(struct call_arguments *a);
/* Memory has run out: what is said of values since is nothing that the schema says. */
bool call_arguments_lost(const struct call_arguments *a);
/* The next argument's key, a JSON text. False: the schema allows no such argument here, and from now on says nothing.
 */
bool call_arguments_key(struct call_arguments *a, const char *key);
/* Whether its value can be nothing but a text. */
bool call_arguments_wants_text(struct call_arguments *a);
/* Whether it can be one. */
bool call_arguments_takes_text(struct call_arguments *a);
/* A value is tried, in parts of its JSON text: nothing else comes of it. False: no right value begins so. Whether the
 * whole of it is right, and the arguments can go on or end behind it. */
void call_arguments_try(struct call_arguments *a);
bool call_arguments_try_bytes(struct call_arguments *a, const char *value, size_t n);
bool call_arguments_try_ends(struct call_arguments *a);
/* The value, a JSON text, or the next part of it. */
void call_arguments_value(struct call_arguments *a, const char *value, size_t n);

#endif

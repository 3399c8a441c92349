/* base/json_write.h - JSON that is written.
 *
 * Owns: what happens when memory runs out while an answer is made, and texts of models that are no UTF-8. A thread
 * makes one answer at a time: when a member could not be set, json_write gives NULL.
 */
#ifndef LOADERS_JSON_WRITE_H
#define LOADERS_JSON_WRITE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Both take value over; NULL, as a failed json_object() gives, counts as a member that could not be set. */
void json_put(json_t *object, const char *name, json_t *value);
void json_add(json_t *array, json_t *value);
/* A string; bytes that are no UTF-8 become U+FFFD, one each. */
json_t *json_text(const char *bytes, size_t n);
/* An array of their numbers, from 0 to 255. */
json_t *json_bytes(const char *bytes, size_t n);
json_t *json_number(double value); /* null when it is not finite */
json_t *json_ids(const int32_t *ids, size_t n);
/* A copy with all that is in o: the library's leaves out what there is no memory for. deep: of what is inside, too.
 * NULL: no memory. */
json_t *json_copied(const json_t *o, bool deep);
/* Whether something was lost since the last json_write, on this thread; from now on nothing was. */
bool json_lacks(void);
/* As the library's flags say, malloc'ed, and numbers of json_read_digits() by their digits. NULL: no memory. */
char *json_spell(const json_t *o, size_t flags);
/* Compact, members in the order in which they were put, malloc'ed; o is given back. NULL: no memory. */
char *json_write(json_t *o);

#endif

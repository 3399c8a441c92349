/* tests/programs/json_schema.h - checks JSON against a JSON Schema, of which it knows what docs/jitrun.schema.json
 * uses: type, const, enum, minimum, maximum, properties, required, additionalProperties, items and oneOf. */
#ifndef TESTS_JSON_SCHEMA_H
#define TESTS_JSON_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* False: why, of which value below v as well. A keyword that is not known is a failure. */
bool json_schema_check(const json_t *schema, json_t *v, char why[200]);

#endif

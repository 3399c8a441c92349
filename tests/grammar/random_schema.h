/* tests/grammar/random_schema.h - JSON Schemas drawn at random, of the keywords that plain_judge.h knows. */
#ifndef TESTS_GRAMMAR_RANDOM_SCHEMA_H
#define TESTS_GRAMMAR_RANDOM_SCHEMA_H

#include <jansson.h>
#include <stdint.h>

/* Of its own for each seed, up to so many schemas in each other. */
json_t *random_schema(uint64_t seed, unsigned depth);

#endif

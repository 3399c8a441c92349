/* tests/grammar/plain_judge.h - whether a JSON value is right by a JSON Schema, after the standard's words alone: no
 * code and no idea is shared with grammar/. Done are the keywords that tests draw schemas of; another one ends the
 * test. */
#ifndef TESTS_GRAMMAR_PLAIN_JUDGE_H
#define TESTS_GRAMMAR_PLAIN_JUDGE_H

#include <jansson.h>
#include <stdbool.h>

bool judge_value(const json_t *root, const json_t *schema, const json_t *value);

#endif

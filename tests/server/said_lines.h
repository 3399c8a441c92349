/* tests/server/said_lines.h - for the tests of ollama's API: requests, and what stands where in their answers.
 *
 * Behind cmocka.h. What is not there fails the test.
 */
#ifndef TESTS_SERVER_SAID_LINES_H
#define TESTS_SERVER_SAID_LINES_H

#include <jansson.h>

#include "tests/server/client.h"
#include "tests/support/shared.h"

/* The value at "a.0.b"; NULL: there is none. */
const json_t *at(const json_t *o, const char *path);
const char *text_at(const json_t *o, const char *path);
double number_at(const json_t *o, const char *path);
/* All lines of a stream, each an object, as an array. */
json_t *ask_lines(const struct child *c, const char *path, const char *body);
/* The texts at the path, of all lines together; free() it. */
char *joined(const json_t *lines, const char *path);
/* An object of members, and of more where there are any; free() it. */
char *body_of(const char *members, const char *more);
/* An answer with status 200 to such a body. */
json_t *ask(const struct child *c, const char *path, const char *members, const char *more);

#endif

/* server/ollama_template.h - templates that a request of ollama's API brings along, in the language of Go's templates.
 */
#ifndef SERVER_OLLAMA_TEMPLATE_H
#define SERVER_OLLAMA_TEMPLATE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "server/refusal.h"

struct ollama_values {
	const char *system, *prompt, *suffix; /* NULL: empty */
};
/* The prompt is appended to text, and to plain for each of its bytes whether it is of a value: such bytes never become
 * control tokens. False: refused. */
bool ollama_expand(const char *given, const struct ollama_values *values, struct bytes *text, struct bytes *plain,
                   struct refusal *r);

#endif

/* programs/common/prompt.h - where jitrun gets its prompt from: a file, standard input, or a list of token ids. Of the
 * library it uses jitrun.h alone.
 *
 * Owns: how much is read, so that an endless file ends, and the syntax of a list of ids.
 */
#ifndef RUNTIME_PROMPT_H
#define RUNTIME_PROMPT_H

#include <stdbool.h>

#include "include/jitrun.h"

struct prompt {
	char *text;
	size_t n;
	int32_t *ids;
	size_t n_ids;
}; /* text or ids; malloc'ed */

/* Most bytes that are read for a context of so many positions (0: the session's own choice): more than any text has
 * that fits. */
size_t prompt_max(long context);
/* Most bytes of a text that is read window by window. */
size_t prompt_max_of_windows(void);

/* path "-": standard input. False: err. */
bool prompt_read(struct prompt *p, const char *path, size_t max, jit_error *err);
/* Numbers of digits alone, one comma between two of them. False: err. */
bool prompt_parse_ids(struct prompt *p, const char *list, jit_error *err);
/* Whether its tokens find room; the last one's successor needs none. */
bool prompt_fits(const struct prompt *p, int context, jit_error *err);
void prompt_free(struct prompt *p);

#endif

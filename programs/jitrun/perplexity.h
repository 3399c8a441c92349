/* programs/jitrun/perplexity.h - the perplexity of a text: exp of the mean of -ln p(token).
 *
 * The text is tokenized with the model's special tokens and cut into windows of `window` tokens; what is left over is
 * not counted. Each window starts a session of its own, its first token replaced by the one the model puts before a
 * text, if there is one. Only tokens of the second half are scored (numbers window/2 + 1 and on), so that each is
 * expected from at least half a window. That is how llama.cpp's llama-perplexity counts.
 */
#ifndef RUNTIME_PERPLEXITY_H
#define RUNTIME_PERPLEXITY_H

#include <signal.h>
#include <stdbool.h>

#include "programs/common/progress.h"
#include "include/jitrun.h"

struct perplexity {
	double perplexity;
	size_t tokens, windows, scored;
};

/* special: names of control tokens in the text become these. The session must have room for a window. Stops early,
 * after a whole window, when *stop becomes non-zero. bar, which has begun, shows how far it is; or
 * NULL. Returns a jit_status.
 */
int perplexity_measure(const jit_model *m, jit_session *s, const char *text, size_t n_text, bool special, size_t window,
                       const volatile sig_atomic_t *stop, struct progress *bar, struct perplexity *out, jit_error *err);

#endif

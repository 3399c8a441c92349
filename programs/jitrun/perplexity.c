/* programs/jitrun/perplexity.c - the jitrun program's --perplexity: how well the model expects a text (perplexity.h).
 * Uses nothing but jitrun.h of the library. */
#include "programs/jitrun/perplexity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"

/* The token the model puts before every text, or -1: what an empty text becomes says it. */
static int32_t first_token(const jit_model *m, const int32_t *ids, size_t n)
{
	int32_t *special = NULL, id = -1;
	size_t n_special = 0;

	if (n && jit_model_tokenize(m, "", 0, 1, 0, &special, &n_special, NULL) == JIT_OK && n_special &&
	    special[0] == ids[0])
		id = ids[0];
	free(special);
	return id;
}

int perplexity_measure(const jit_model *m, jit_session *s, const char *text, size_t n_text, bool special, size_t window,
                       const volatile sig_atomic_t *stop, struct progress *bar, struct perplexity *out, jit_error *err)
{
	float *logprob = malloc(window * sizeof *logprob);
	int32_t *ids = NULL;
	double sum = 0;
	int status = jit_model_tokenize(m, text, n_text, 1, special, &ids, &out->tokens, err);

	out->scored = out->windows = 0;
	if (!logprob && status == JIT_OK) {
		snprintf(err->message, sizeof err->message, "no memory for windows of %zu tokens", window);
		status = err->code = JIT_ERROR_MEMORY;
	}
	if (status == JIT_OK && out->tokens < window) {
		snprintf(err->message, sizeof err->message,
		         "the text has %zu tokens and a window takes %zu; give a longer text or a smaller --context",
		         out->tokens, window);
		status = err->code = JIT_ERROR_ARGUMENT;
	}
	int32_t begin = status == JIT_OK ? first_token(m, ids, out->tokens) : -1;
	for (size_t at = 0; status == JIT_OK && at + window <= out->tokens && !*stop; at += window) {
		if (begin >= 0)
			ids[at] = begin;
		status = jit_session_rewind(s, 0, err);
		if (status == JIT_OK)
			status = jit_session_score(s, ids + at, window, logprob, err);
		for (size_t i = window / 2 + 1; status == JIT_OK && i < window; i++, out->scored++)
			sum -= (double)logprob[i];
		out->windows++;
		if (bar)
			progress_show(bar, at + window, out->tokens);
	}
	if (bar)
		progress_end(bar);
	out->perplexity = out->scored ? math_host_exp(sum / (double)out->scored) : 0;
	free(ids);
	free(logprob);
	return status;
}

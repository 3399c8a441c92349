/* server/engine/bits.c - answers that are computed once more. */
#include "server/engine/bits.h"

#include <stdlib.h>
#include <string.h>

enum { PROMPT_TOKENS = 32 }; /* tokens of a prompt, for which a request that comes may have to wait */

struct bits {
	jit_model *model;
	jit_session_options options;
	unsigned every;
	uint64_t seen, checked, wrong;
	/* one answer */
	jit_session *session;
	int32_t *ids; /* NULL: none */
	size_t n, n_prompt, at, vocab;
	uint64_t expected, sum;
	struct used_adapters adapters;
};

struct bits *bits_open(jit_model *model, const jit_session_options *o, unsigned every)
{
	struct bits *b = calloc(1, sizeof *b);
	jit_model_info info = JIT_MODEL_INFO();

	if (!b || jit_model_get_info(model, &info, NULL) != JIT_OK) {
		free(b);
		return NULL;
	}
	b->model = model;
	b->options = *o;
	b->every = every;
	b->vocab = (size_t)info.vocab;
	return b;
}

static void end(struct bits *b)
{
	jit_session_close(b->session);
	used_adapters_drop(&b->adapters);
	free(b->ids);
	b->session = NULL;
	b->ids = NULL;
}

void bits_close(struct bits *b)
{
	if (b)
		end(b);
	free(b);
}

/* While one waits to be computed, none else is. */
bool bits_wants(struct bits *b) { return b->seen++ % b->every == 0 && !b->ids; }

uint64_t bits_sum(uint64_t sum, const float *row, size_t n)
{
	uint32_t bits;

	for (size_t i = 0; i < n; i++) {
		memcpy(&bits, row + i, sizeof bits);
		sum = (sum ^ bits) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 32;
	}
	return sum;
}

void bits_take(struct bits *b, const int32_t *ids, size_t n, size_t n_prompt, uint64_t sum,
               const struct used_adapters *adapters)
{
	if (b->ids || n < n_prompt || !n_prompt || !(b->ids = malloc(n * sizeof *ids)))
		return;
	memcpy(b->ids, ids, n * sizeof *ids);
	used_adapters_copy(&b->adapters, adapters);
	b->n = n;
	b->n_prompt = n_prompt;
	b->at = 0;
	b->expected = sum;
	b->sum = 0;
}

bool bits_pending(const struct bits *b) { return b && b->ids; }

/* False: it cannot be told, as when there is no memory. */
static bool step(struct bits *b)
{
	size_t left = b->at < b->n_prompt ? b->n_prompt - b->at : 1, n = left < PROMPT_TOKENS ? left : PROMPT_TOKENS;

	if (!b->session && (!(b->session = jit_session_open(b->model, &b->options, NULL)) ||
	                    !used_adapters_set(&b->adapters, b->session, b->ids, b->n_prompt, NULL)))
		return false;
	if (jit_session_feed(b->session, b->ids + b->at, n, NULL) != JIT_OK)
		return false;
	b->at += n;
	if (b->at < b->n_prompt)
		return true;
	const float *row = jit_session_logits(b->session, NULL);
	if (row)
		b->sum = bits_sum(b->sum, row, b->vocab);
	return row != NULL;
}

void bits_step(struct bits *b)
{
	bool ok = step(b);

	if (ok && b->at < b->n)
		return;
	b->checked += ok;
	b->wrong += ok && b->sum != b->expected;
	end(b);
}

uint64_t bits_checked(const struct bits *b) { return b ? b->checked : 0; }

uint64_t bits_wrong(const struct bits *b) { return b ? b->wrong : 0; }

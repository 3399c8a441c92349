#include "runtime/sampling/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool rules_open(struct rules *r, const struct model_sampling *of, int32_t vocab)
{
	const bool by_text = of->n_never_first || of->no_repeat || of->n_words;

	*r = (struct rules){ .of = of, .vocab = vocab };
	if (by_text)
		r->logits = malloc((size_t)vocab * sizeof *r->logits);
	return r->logits || !by_text;
}

void rules_close(struct rules *r) { free(r->logits); }

static void forbid(struct rules *r, const float **logits, int32_t id)
{
	if (*logits != r->logits)
		memcpy(r->logits, *logits, (size_t)r->vocab * sizeof *r->logits);
	*logits = r->logits;
	r->logits[id] = -INFINITY;
}

/* Where the last tokens were there before, what followed them then. */
static void forbid_repeats(struct rules *r, const float **logits, const int32_t *text, size_t n)
{
	const size_t before = r->of->no_repeat - 1;

	for (size_t i = 0; n > before && i < n - before; i++)
		if (memcmp(text + i, text + n - before, before * sizeof *text) == 0)
			forbid(r, logits, text[i + before]);
}

/* A row that is longer than the text is not looked for, as transformers does it. */
static void forbid_words(struct rules *r, const float **logits, const int32_t *text, size_t n)
{
	for (size_t at = 0; at < r->of->n_words;) {
		const size_t length = (size_t)r->of->words[at], before = length - 1;
		const int32_t *word = &r->of->words[at + 1];
		if (length <= n && memcmp(word, text + n - before, before * sizeof *text) == 0)
			forbid(r, logits, word[before]);
		at += 1 + length;
	}
}

void rules_apply(struct rules *r, const float **logits, const int32_t *text, size_t n, bool begins)
{
	if (!r->logits)
		return;
	if (r->of->no_repeat)
		forbid_repeats(r, logits, text, n);
	forbid_words(r, logits, text, n);
	for (size_t i = 0; begins && i < r->of->n_never_first; i++)
		forbid(r, logits, r->of->never_first[i]);
}

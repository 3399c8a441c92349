/* loaders/tokenizer/tokenizer_pair.c - two texts as the tokens of one, with the types that say which text each is of.
 *
 * Owns: the template of a pair, which a tokenizer's files have.
 */
#include "loaders/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

bool tok_pair_add(struct tokenizer *t, int32_t what, int32_t type)
{
	if (t->n_pair == TOK_MAX_PAIR)
		return false;
	t->pair[t->n_pair++] = (struct tok_pair_part){ what, type };
	return true;
}

struct made {
	int32_t *ids, *types;
	size_t n;
};

static void put(struct made *m, const int32_t *ids, size_t n, int32_t type)
{
	memcpy(m->ids + m->n, ids, n * sizeof *ids);
	for (size_t i = 0; i < n; i++)
		m->types[m->n + i] = type;
	m->n += n;
}

static bool assemble(const struct tokenizer *t, int32_t *const text[2], const size_t n[2], struct made *m,
                     struct error *err)
{
	const size_t max = n[0] + n[1] + t->n_pair + 1;

	m->ids = malloc(max * sizeof *m->ids);
	m->types = malloc(max * sizeof *m->types);
	if (!m->ids || !m->types)
		return error_set(err, ERROR_MEMORY, "no memory for %zu tokens", max);
	for (unsigned i = 0; i < t->n_pair; i++) {
		const struct tok_pair_part *p = &t->pair[i];
		if (p->what < 0)
			put(m, text[p->what == TOK_PAIR_SECOND], n[p->what == TOK_PAIR_SECOND], p->type);
		else
			put(m, &p->what, 1, p->type);
	}
	return true;
}

bool tokenizer_encode_pair(const struct tokenizer *t, const char *const text[2], const size_t n_text[2], unsigned flags,
                           int32_t **ids, int32_t **types, size_t *n, struct error *err)
{
	int32_t *part[2] = { NULL, NULL };
	size_t n_part[2];
	struct made m = { 0 };
	bool ok = t->n_pair > 0 ||
	          error_set(err, ERROR_UNSUPPORTED, "the tokenizer's files do not say how two texts become one");

	for (int i = 0; i < 2 && ok; i++)
		ok = tokenizer_encode(t, text[i], n_text[i], flags & TOKENIZE_SPECIAL, &part[i], &n_part[i], err);
	ok = ok && assemble(t, part, n_part, &m, err);
	free(part[0]);
	free(part[1]);
	if (!ok) {
		free(m.ids);
		free(m.types);
		m = (struct made){ 0 };
	}
	*ids = m.ids;
	*types = m.types;
	*n = m.n;
	return ok;
}

/* chat/jinja_memory.c - memory that belongs to a template or to one call, and is given back as a whole.
 *
 * Owns: the blocks, and how much may be taken. What a hostile template does can thus cost no more than `max`.
 */
#include <stdlib.h>

#include "chat/jinja.h"

struct memory_block {
	struct memory_block *before;
	size_t n, used;
	_Alignas(16) char p[];
};

enum { BLOCK_BYTES = 1 << 14, BLOCK_MAX = 1 << 20 };

static size_t rounded(size_t n) { return (n + 15) & ~(size_t)15; }

void *memory_take(struct memory *m, size_t n, bool *limit)
{
	struct memory_block *b = m->last;

	if (n > m->max || m->total > m->max - n) {
		if (limit)
			*limit = true;
		return NULL;
	}
	n = rounded(n ? n : 1);
	if (!b || b->n - b->used < n) {
		size_t want = b ? 2 * b->n : BLOCK_BYTES;
		if (want > BLOCK_MAX)
			want = BLOCK_MAX;
		if (want < n)
			want = n;
		b = malloc(sizeof *b + want);
		if (!b)
			return NULL;
		*b = (struct memory_block){ m->last, want, 0 };
		m->last = b;
		m->total += want;
	}
	void *p = b->p + b->used;
	b->used += n;
	return p;
}

bool memory_extend(struct memory *m, const void *p, size_t n, size_t more)
{
	struct memory_block *b = m->last;
	size_t had = rounded(n ? n : 1), need = rounded(more);

	if (!b || (const char *)p + had != b->p + b->used || need - had > b->n - b->used)
		return false;
	b->used += need - had;
	return true;
}

void memory_free(struct memory *m)
{
	while (m->last) {
		struct memory_block *before = m->last->before;
		free(m->last);
		m->last = before;
	}
	m->total = 0;
}

/* tests/runtime/batch_sound.c - see batch_sound.h. */
#include "tests/runtime/batch_sound.h"

struct tally {
	const struct jit_batch *batch;
	size_t uses, remembers, fixed;
};

static void tally_pages(struct tally *t, const struct kv_page *page)
{
	const struct jit_batch *b = t->batch;

	t->uses = t->remembers = 0;
	for (size_t i = 0; i < b->n; i++)
		for (size_t c = 0; c < b->member[i]->pages.n; c++)
			t->uses += b->member[i]->pages.page[c] == page;
	for (size_t i = 0; i < b->n_kept; i++)
		for (size_t c = 0; c < b->kept[i].pages.n; c++)
			t->remembers += b->kept[i].pages.page[c] == page;
}

static bool check_pages(struct tally *t, const struct batch_pages *p, size_t computed, struct error *err)
{
	if (computed > p->n * NUMERICS_CHUNK)
		return error_set(err, ERROR_ARGUMENT, "%zu tokens are in %zu pages", computed, p->n);
	for (size_t c = 0; c < p->n; c++) {
		tally_pages(t, p->page[c]);
		if (p->page[c]->holders != t->uses + t->remembers || p->page[c]->remembering != t->remembers)
			return error_set(err, ERROR_ARGUMENT,
			                 "page %zu has %u holders, %u of them remember it, expected %zu and %zu", c,
			                 p->page[c]->holders, p->page[c]->remembering, t->uses + t->remembers,
			                 t->remembers);
	}
	return true;
}

bool batch_memory_sound(const struct jit_batch *b, struct error *err)
{
	struct tally t = { .batch = b, .fixed = b->n_kept * b->fixed_bytes };

	for (size_t i = 0; i < b->n_kept; i++)
		if (!check_pages(&t, &b->kept[i].pages, b->kept[i].computed, err))
			return false;
	for (size_t i = 0; i < b->n; i++) {
		const struct batch_member *m = b->member[i];
		const struct session_memory *memory = &m->session->memory;
		t.fixed += m->admitted ? b->fixed_bytes : 0;
		if (!check_pages(&t, &m->pages, m->session->computed, err))
			return false;
		for (size_t c = 0; c < m->pages.n; c++)
			if (memory->held != m->pages.n || memory->page[c] != m->pages.page[c]->at)
				return error_set(err, ERROR_ARGUMENT, "page %zu is not in its session's table", c);
	}
	return b->pages.used == t.fixed + b->pages.held * b->pages.page_bytes ||
	       error_set(err, ERROR_ARGUMENT, "%llu bytes count, expected %zu and %zu pages",
	                 (unsigned long long)b->pages.used, t.fixed, b->pages.held);
}

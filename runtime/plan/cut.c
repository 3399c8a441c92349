/* runtime/plan/cut.c - see cut.h. */
#include "runtime/plan/cut.h"

#include <stdlib.h>

/* Rows of embeddings are read by the numbers of tokens, experts by what a router says. */
static bool is_shared(const struct weights_entry *e, const struct model_spec *s)
{
	return !e->tensor->experts && e->tensor != &s->embed && e->tensor != &s->input_embed &&
	       e->pairing != WEIGHTS_SECOND_OF_TWO; /* which lies among the first one's */
}

bool cut_weights(const struct model_spec *s, enum weight_layout layout, struct cut_share **out, size_t *n,
                 struct error *err)
{
	const size_t max = (size_t)s->layers * MATRIX_SLOTS + WEIGHTS_OUTSIDE;
	struct weights w = { 0 };
	struct weights_entry *e = calloc(max, sizeof *e);
	bool ok = weights_allocate(&w, s, err);

	*n = 0;
	*out = ok ? calloc(max, sizeof **out) : NULL;
	if (ok && (!e || !*out))
		ok = error_set(err, ERROR_MEMORY, "no memory for the list of %u layers' matrices", s->layers);
	const size_t entries = ok ? weights_list(e, s, &w) : 0;
	if (ok)
		weights_lay(e, entries, layout);
	for (size_t i = 0; i < entries; i++)
		if (is_shared(&e[i], s))
			(*out)[(*n)++] = (struct cut_share){ e[i].at, e[i].stride, e[i].blocks };
	free(e);
	weights_close(&w);
	return ok;
}

size_t cut_last_section(const struct plan *p) { return p->n_sections ? p->section[p->n_sections - 1] : 0; }

struct kernel_extent cut_written(const struct plan *p, const struct plan_op *op, uint32_t slot)
{
	const struct key *key = &p->kernel[op->kernel].key;
	const struct kernel_use use = kernel_use(key, slot);

	if (!(use.access & KERNEL_WRITE) || use.layout == KERNEL_PAGES)
		return (struct kernel_extent){ 0, 0 };
	return kernel_extent(key, op->arg, slot, op->begin, op->end);
}

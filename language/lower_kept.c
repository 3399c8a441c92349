/* language/lower_kept.c - rows that a card keeps in registers: where several reductions, and an `each`, go over ranges
 * that are known and short, their iterations are written one after another instead of as loops. What they read, and
 * what they compute of it, is then joined (tidy.c), and memory is read once.
 *
 * A warp that reads its row anew for each reduction finds little of it in a cache: the warps of a multiprocessor have
 * more rows than that holds.
 */
#include "language/lower_lanes.h"

enum { MAX_KEPT = 128, MAX_WEIGHT = 16000 };

struct ranges {
	unsigned n, weight;
	bool others; /* loops, or what does not stand still between the ranges */
};

static void count_in(const struct node *n, struct ranges *r)
{
	for (; n; n = n->next) {
		r->others |= n->kind == NODE_FOR || n->kind == NODE_WHILE || n->kind == NODE_IF ||
		             n->kind == NODE_SCAN || n->kind == NODE_ATOMIC;
		if (n->kind == NODE_REDUCE || n->kind == NODE_EACH) {
			r->n++;
			r->weight += jk_lower_weight(n->kind == NODE_EACH ? n->d : n->c);
		}
		count_in(n->a, r);
		count_in(n->b, r);
		count_in(n->c, r);
		count_in(n->d, r);
	}
}

unsigned jk_kept_of(const struct lower *l)
{
	struct ranges r = { 0 };

	count_in(l->k->body, &r);
	if (!l->keeps || l->check || l->k->n_memory || r.others || r.n < 2)
		return 0;
	const unsigned vectors = MAX_WEIGHT / (r.weight + 1);
	return vectors < MAX_KEPT ? vectors : MAX_KEPT;
}

bool jk_is_kept(const struct lower *l, const struct lanes_of *w)
{
	return w->known && w->n <= (int64_t)l->kept * l->lanes;
}

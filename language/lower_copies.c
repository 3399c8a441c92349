/* language/lower_copies.c - several vectors of instances, or rows of them, whose statements are written in turn.
 *
 * A loop that has the same turns for all of them is written once, with the statements of each in it. What they share is
 * then read once a turn, and their chains of operations do not wait for each other: a product of matrices, in which
 * each element is one chain, takes a fifth of the time. Instances do not see what others write, so that the order in
 * which they run cannot show.
 */
#include <stdlib.h>
#include <string.h>

#include "language/lower.h"

/* ---- how many */

struct census {
	unsigned variables; /* vectors that live from turn to turn */
	bool loops;         /* there is a loop that all copies share */
};

static void count(const struct node *n, struct census *c)
{
	for (; n; n = n->next) {
		if (n->kind == NODE_DECLARE && n->a && n->symbol->assigned && n->symbol->varying)
			c->variables += type_is_wide(n->symbol->type) ? 2 : 1;
		if (n->kind == NODE_FOR && jk_lower_for_is_plain(n)) {
			c->loops = true;
			count(n->d, c);
		} else if (n->kind == NODE_COMPOUND) {
			count(n->a, c);
		}
	}
}

unsigned jk_copies_of(const struct lower *l, const struct node *body)
{
	struct census c = { 0 };
	unsigned n = 1;

	if (l->check || l->k->cooperates || l->k->n_memory)
		return 1;
	count(body, &c);
	/* two more registers each, for what a turn reads and computes */
	while (c.loops && 2 * n <= MAX_COPIES && 2 * n * (c.variables + 2) <= l->registers)
		n *= 2;
	return n;
}

/* ---- what each knows */

bool jk_copies_alloc(struct lower *l)
{
	l->copies = 1;
	for (unsigned c = 0; c < MAX_COPIES; c++) {
		l->memo_of[c] = calloc(l->k->n_nodes + 1, sizeof **l->memo_of);
		l->symbol_of[c] = calloc(l->k->n_symbols + 1, sizeof **l->symbol_of);
		if (!l->memo_of[c] || !l->symbol_of[c])
			return false;
	}
	jk_copy_use(l, 0);
	return true;
}

void jk_copies_free(struct lower *l)
{
	for (unsigned c = 0; c < MAX_COPIES; c++) {
		free(l->memo_of[c]);
		free(l->symbol_of[c]);
	}
}

void jk_copy_use(struct lower *l, unsigned copy)
{
	l->copy = copy;
	l->memo = l->memo_of[copy];
	l->symbol = l->symbol_of[copy];
}

void jk_copies_begin(struct lower *l, unsigned n)
{
	for (unsigned c = 1; c < n; c++) {
		memcpy(l->memo_of[c], l->memo, (l->k->n_nodes + 1) * sizeof *l->memo);
		memcpy(l->symbol_of[c], l->symbol, (l->k->n_symbols + 1) * sizeof *l->symbol);
	}
	l->copies = n;
}

void jk_copies_end(struct lower *l)
{
	l->copies = 1;
	jk_copy_use(l, 0);
}

/* ---- statements */

void jk_copies_statement(struct lower *l, const struct node *n)
{
	const unsigned copies = l->copies;

	if (n->kind == NODE_FOR && jk_lower_for_is_shared(l, n)) {
		jk_lower_statement(l, n);
		return;
	}
	l->copies = 1;
	for (unsigned c = 0; c < copies; c++) {
		jk_copy_use(l, c);
		jk_lower_statement(l, n);
	}
	jk_copy_use(l, 0);
	l->copies = copies;
}

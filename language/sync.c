/* language/sync.c - whether sync stands between writing elements of a tile and reading them.
 *
 * A tile is written by some iteration and read by others, so that behind a statement that writes one, reading it needs
 * a sync first. Inside of one each, iterations read what they wrote themselves: own.c. Paths through if are joined; the
 * body of a loop is walked twice, the second time with what its end leaves.
 */
#include <stdlib.h>
#include <string.h>

#include "language/kernel.h"

struct walk {
	struct jk_messages *m;
	bool *written; /* by symbol: since the last sync */
	uint32_t n_symbols;
	bool again, failed;
};

static void read_tree(struct walk *w, const struct node *n);

static void read_list(struct walk *w, const struct node *n)
{
	for (; n; n = n->next)
		read_tree(w, n);
}

static void check_read(struct walk *w, const struct node *n)
{
	if (w->failed || n->symbol->kind != SYMBOL_TILE || !w->written[n->symbol->number])
		return;
	jk_message_add(w->m, n->at, "%.60s was written, and nothing waits for it; write sync; before this",
	               n->symbol->name->text);
	w->failed = true;
}

/* All that is read below, targets of assignments left out. */
static void read_tree(struct walk *w, const struct node *n)
{
	const bool target = n->kind == NODE_ASSIGN || n->kind == NODE_SCATTER || n->kind == NODE_ATOMIC;

	if (n->kind == NODE_ELEMENT)
		check_read(w, n);
	if (target && n->a->kind == NODE_ELEMENT) {
		read_list(w, n->a->a);
		if (n->op && n->kind == NODE_ASSIGN)
			check_read(w, n->a);
	} else {
		read_list(w, n->a);
	}
	read_list(w, n->b);
	if (n->kind == NODE_SCAN)
		read_list(w, n->c->a);
	else
		read_list(w, n->c);
	read_list(w, n->d);
}

static void write_list(struct walk *w, const struct node *n)
{
	for (; n; n = n->next) {
		const struct node *target = n->kind == NODE_SCAN ? n->c : n->a;
		const bool writes = n->kind == NODE_ASSIGN || n->kind == NODE_SCATTER || n->kind == NODE_ATOMIC ||
		                    n->kind == NODE_SCAN;
		if (writes && target->kind == NODE_ELEMENT && target->symbol->kind == SYMBOL_TILE)
			w->written[target->symbol->number] = true;
		if (n->kind == NODE_IF || n->kind == NODE_COMPOUND) {
			write_list(w, n->kind == NODE_IF ? n->b : n->a);
			write_list(w, n->kind == NODE_IF ? n->c : NULL);
		} else if (n->kind == NODE_FOR || n->kind == NODE_WHILE || n->kind == NODE_EACH) {
			write_list(w, n->d);
		}
	}
}

static void statements(struct walk *w, const struct node *n);

static void branches(struct walk *w, const struct node *n)
{
	bool *before = malloc(w->n_symbols + 1);

	if (!before) {
		w->failed = true;
		return;
	}
	read_tree(w, n->a);
	memcpy(before, w->written, w->n_symbols);
	statements(w, n->b);
	for (uint32_t k = 0; k < w->n_symbols; k++) {
		const bool first = w->written[k];
		w->written[k] = before[k];
		before[k] = first;
	}
	statements(w, n->c);
	for (uint32_t k = 0; k < w->n_symbols; k++)
		w->written[k] |= before[k];
	free(before);
}

static void loop(struct walk *w, const struct node *n)
{
	const bool again = w->again;

	read_list(w, n->a);
	read_list(w, n->b);
	statements(w, n->d);
	if (again)
		return;
	w->again = true;
	if (n->kind == NODE_WHILE)
		read_list(w, n->a);
	statements(w, n->d);
	w->again = false;
}

static void statements(struct walk *w, const struct node *n)
{
	for (; n && !w->failed; n = n->next) {
		switch (n->kind) {
		case NODE_SYNC: memset(w->written, 0, w->n_symbols); break;
		case NODE_IF: branches(w, n); break;
		case NODE_FOR:
		case NODE_WHILE: loop(w, n); break;
		case NODE_COMPOUND: statements(w, n->a); break;
		default: {
			struct node alone = *n;
			alone.next = NULL;
			read_tree(w, &alone);
			write_list(w, &alone);
		}
		}
	}
}

bool jk_sync_check(const struct jk_kernel *k, struct jk_messages *m)
{
	struct walk w = { .m = m, .n_symbols = k->n_symbols, .written = calloc(k->n_symbols + 1, 1) };

	if (!w.written) {
		jk_message_add(m, (struct source_location){ 0 }, "no memory to bind a kernel");
		return false;
	}
	statements(&w, k->body);
	free(w.written);
	if (w.failed && !m->n)
		jk_message_add(m, (struct source_location){ 0 }, "no memory to bind a kernel");
	return !w.failed;
}

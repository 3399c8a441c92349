/* language/lower_copies.c - several rows, and vectors of instances of each, whose statements are written one after
 * another.
 *
 * A loop that has the same iterations for all of them is written once, with the statements of each in it. What they
 * share is then read once per iteration, and their chains of operations do not wait for each other: a product of
 * matrices, in which each element is one chain, takes a tenth of the time. Instances do not see what others write, so
 * that the order in which they run cannot show.
 */
#include <stdlib.h>
#include <string.h>

#include "jit/target.h"
#include "language/lower.h"

enum { HOST_ROWS = 4, STRIDE = MAX_COPIES / MAX_ROWS, HEAVY = 60 };

/* ---- how many */

struct census {
	unsigned variables,
		weight;      /* vectors that live from iteration to iteration; statements and their operands, roughly */
	bool loops, of_rows; /* there is a loop that vectors share; one that rows share, too */
};

static unsigned weight_of(const struct node *n)
{
	unsigned sum = 0;

	for (; n && sum < 10 * HEAVY; n = n->next)
		sum += (n->kind == NODE_BUILTIN ? 9u : 1u) + weight_of(n->a) + weight_of(n->b) + weight_of(n->c) +
		       weight_of(n->d);
	return sum;
}

static void count(const struct node *n, struct census *c)
{
	for (; n; n = n->next) {
		if (n->kind == NODE_DECLARE && n->a && n->symbol->assigned && n->symbol->varying)
			c->variables += type_is_wide(n->symbol->type) ? 2 : 1;
		if (n->kind == NODE_FOR && jk_lower_for_is_plain(n)) {
			c->loops = true;
			c->of_rows |= !n->a->depth && !n->b->depth;
			count(n->d, c);
		} else if (n->kind == NODE_COMPOUND) {
			count(n->a, c);
		}
	}
}

static struct census census_of(const struct jk_kernel *k)
{
	struct census c = { .weight = weight_of(k->body) };

	if (!k->cooperates && !k->n_memory)
		count(k->body, &c);
	return c;
}

const struct symbol *jk_row_index(const struct jk_kernel *k)
{
	const struct symbol *s = k->indices;

	while (s->next && s->next->next)
		s = s->next;
	return s->next ? s : NULL;
}

uint64_t jk_rows_of(const struct jk_kernel *k)
{
	const struct symbol *row = jk_row_index(k);
	const struct census c = census_of(k);

	return row && row->behind - row->first >= HOST_ROWS && c.of_rows && c.weight <= HEAVY && c.variables <= 2
	               ? HOST_ROWS
	               : 1;
}

uint64_t jk_rows_on(const struct jk_kernel *k, const struct target *t)
{
	const struct symbol *row = jk_row_index(k);
	const struct census c = census_of(k);
	const bool many = k->rows > 1 && row->behind - row->first >= MAX_ROWS && c.variables == 1 && c.weight <= 37 &&
	                  !t->backend->host_runs && !t->vector_file;

	return many ? MAX_ROWS : k->rows;
}

/* Whether there are registers for the variables of all, a row's vectors, and two values. */
static bool fits(const struct lower *l, const struct census *c, unsigned rows, unsigned vectors)
{
	return rows * vectors <= (l->keeps ? MAX_COPIES : MAX_COPIES / 2) &&
	       rows * vectors * c->variables + vectors + 2 <= l->registers &&
	       rows * vectors * c->weight <=
	               (l->keeps  ? 40U
	                : l->card ? 20U
	                          : 10U) *
	                       HEAVY;
}

void jk_copies_of(const struct lower *l, unsigned *rows, unsigned *vectors)
{
	const struct census c = census_of(l->k);

	*rows = *vectors = 1;
	if (l->check || !c.loops)
		return;
	if (l->rows > 1 && fits(l, &c, l->rows, 1))
		*rows = l->rows;
	while (*vectors < (*rows > 1 ? STRIDE : 8) && fits(l, &c, *rows, 2 * *vectors))
		*vectors *= 2;
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

static void learn(struct lower *l, unsigned copy, unsigned from)
{
	memcpy(l->memo_of[copy], l->memo_of[from], (l->k->n_nodes + 1) * sizeof *l->memo);
	memcpy(l->symbol_of[copy], l->symbol_of[from], (l->k->n_symbols + 1) * sizeof *l->symbol);
}

void jk_copies_rows(struct lower *l, unsigned rows)
{
	for (unsigned r = 1; r < rows; r++)
		learn(l, r * STRIDE, 0);
}

void jk_copies_begin(struct lower *l, unsigned rows, unsigned vectors)
{
	const unsigned stride = rows > 1 ? STRIDE : MAX_COPIES;

	l->stride = stride;
	l->copies = 0;
	for (unsigned r = 0; r < rows; r++)
		for (unsigned v = 0; v < vectors; v++) {
			if (v)
				learn(l, r * stride + v, r * stride);
			l->written[l->copies++] = (uint8_t)(r * stride + v);
		}
}

void jk_copies_end(struct lower *l)
{
	l->copies = 1;
	jk_copy_use(l, 0);
}

void jk_copies_each(struct lower *l, void (*what)(struct lower *l, unsigned copy, void *user), void *user)
{
	const unsigned copies = l->copies;

	if (copies == 1) {
		what(l, l->copy, user);
		return;
	}
	l->copies = 1;
	for (unsigned c = 0; c < copies; c++) {
		jk_copy_use(l, l->written[c]);
		what(l, l->copy, user);
	}
	jk_copy_use(l, 0);
	l->copies = copies;
}

/* ---- statements */

static void write_statement(struct lower *l, unsigned copy, void *user)
{
	(void)copy;
	jk_lower_statement(l, user);
}

void jk_copies_statement(struct lower *l, const struct node *n)
{
	if (n->kind == NODE_FOR && jk_lower_for_is_shared(l, n))
		jk_lower_statement(l, n);
	else
		jk_copies_each(l, write_statement, (void *)(uintptr_t)n);
}

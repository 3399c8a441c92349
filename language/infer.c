/* language/infer.c - what may differ between lanes, and in which loop a value is known first.
 *
 * Owns: both answers for every expression, symbol and loop of a bound kernel. A value differs between lanes when it
 * depends on an index that does, or is assigned where control does; a loop does when its ends, its condition or a break
 * in it do. Rounds go on until nothing changes, which is after two or three of them in kernels that somebody writes.
 */
#include "language/kernel.h"

enum { MAX_LOOPS = 60 };

struct inference {
	struct jk_kernel *k;
	struct jk_messages *m;
	bool changed, last; /* in this round; of the last round, which notes what depends on the others */
	unsigned control, lanes, loops, base;
	struct node *loop[MAX_LOOPS + 1];
	unsigned body_control[MAX_LOOPS + 1]; /* of the loop's body */
	bool failed;
};

static bool walk(struct inference *x, struct node *list);
static void expression(struct inference *x, struct node *n);

static void set(struct inference *x, bool *to, bool value)
{
	if (value && !*to) {
		*to = true;
		x->changed = true;
	}
}

static void note_read(struct inference *x, struct symbol *s)
{
	if (!x->last || s->kind != SYMBOL_LOCAL)
		return;
	struct node *loop = x->loops > s->loops ? x->loop[s->loops] : NULL;
	if (!loop || (s->read_loop && s->read_loop != loop))
		s->read_twice = true;
	s->read_loop = loop;
}

static void enter_loop(struct inference *x, struct node *n)
{
	if (x->loops == MAX_LOOPS) {
		if (!x->failed)
			jk_message_add(x->m, n->at, "loops nest deeper than %d", MAX_LOOPS);
		x->failed = true;
		return;
	}
	x->control += n->varying;
	x->body_control[x->loops] = x->control;
	x->loop[x->loops++] = n;
}

static void leave_loop(struct inference *x, struct node *n)
{
	if (x->loops)
		x->loops--;
	x->control -= n->varying;
}

/* The index of a loop, known in its body. */
static void declare_index(struct inference *x, struct symbol *s, bool varying)
{
	s->control = (uint8_t)x->control;
	s->lanes = (uint8_t)x->lanes;
	s->loops = (uint8_t)x->loops;
	s->depth = (uint8_t)(x->base + x->loops - 1);
	set(x, &s->varying, varying);
}

static void parts(struct inference *x, struct node *n)
{
	bool varying = false;
	unsigned depth = 0;
	struct node *const part[] = { n->a, n->b, n->c };

	for (unsigned k = 0; k < 3; k++)
		for (struct node *a = part[k]; a; a = a->next) {
			expression(x, a);
			varying |= a->varying;
			depth = a->depth > depth ? a->depth : depth;
		}
	n->varying = varying;
	n->depth = (uint8_t)depth;
}

static void reduction(struct inference *x, struct node *n)
{
	expression(x, n->a);
	expression(x, n->b);
	if (x->last && (n->a->varying || n->b->varying)) {
		jk_message_add(x->m, n->at, "the range of a reduction differs between lanes; write a for loop");
		x->failed = true;
	}
	enter_loop(x, n);
	x->lanes++;
	declare_index(x, n->symbol, true);
	if (!x->failed)
		expression(x, n->c);
	x->lanes--;
	leave_loop(x, n);
	n->depth = DEPTH_NEVER;
}

static bool only_declarations(const struct node *list)
{
	for (; list; list = list->next)
		if (list->kind != NODE_DECLARE || !list->a || list->symbol->assigned)
			return false;
	return true;
}

static void expression(struct inference *x, struct node *n)
{
	const struct symbol *s = n->symbol;

	switch (n->kind) {
	case NODE_NUMBER:
	case NODE_BOOL: n->depth = 0; return;
	case NODE_NAME:
		note_read(x, n->symbol);
		n->varying = s->varying;
		n->depth = s->depth;
		return;
	case NODE_REDUCE: reduction(x, n); return;
	case NODE_INLINED:
		walk(x, n->a);
		expression(x, n->b);
		n->varying = n->b->varying;
		n->depth = only_declarations(n->a) ? n->b->depth : DEPTH_NEVER;
		return;
	case NODE_ELEMENT:
		parts(x, n);
		if (s->kind == SYMBOL_PRIVATE)
			n->varying |= s->varying;
		if (s->kind != SYMBOL_ARRAY || s->access != JK_IN)
			n->depth = DEPTH_NEVER;
		return;
	default: parts(x, n); return;
	}
}

static void declaration(struct inference *x, struct node *n)
{
	struct symbol *s = n->symbol;

	if (n->a)
		expression(x, n->a);
	s->control = (uint8_t)x->control;
	s->lanes = (uint8_t)x->lanes;
	s->loops = (uint8_t)x->loops;
	s->depth = s->assigned || !n->a         ? DEPTH_NEVER
	           : n->a->depth == DEPTH_NEVER ? (uint8_t)(x->base + x->loops - 1)
	                                        : n->a->depth;
	set(x, &s->varying, n->a && n->a->varying);
}

static void assign(struct inference *x, struct node *n)
{
	struct symbol *s = n->a->symbol;

	expression(x, n->b);
	if (n->a->kind == NODE_ELEMENT)
		expression(x, n->a);
	else if (n->op)
		note_read(x, s);
	if (s->kind == SYMBOL_LOCAL || s->kind == SYMBOL_PRIVATE)
		set(x, &s->varying, n->b->varying || x->control > s->control);
	if (x->last && (s->kind == SYMBOL_LOCAL || s->kind == SYMBOL_PRIVATE) && s->lanes < x->lanes) {
		jk_message_add(x->m, n->a->at,
		               "%.60s is declared outside of each, whose iterations have no order; declare it inside, "
		               "or use a "
		               "reduction",
		               s->name->text);
		x->failed = true;
	}
}

static void branch_out(struct inference *x, struct node *n)
{
	struct node *loop = x->loop[x->loops - 1];

	if (x->control > x->body_control[x->loops - 1])
		set(x, &loop->varying, true);
	n->breaks = loop->varying;
}

static bool conditional(struct inference *x, struct node *n)
{
	bool breaks;

	expression(x, n->a);
	n->varying = n->a->varying;
	x->control += n->varying;
	breaks = walk(x, n->b);
	breaks |= walk(x, n->c);
	x->control -= n->varying;
	return n->breaks = breaks;
}

static void loop(struct inference *x, struct node *n)
{
	const bool varies = n->varying;
	bool differs = false;

	if (n->kind == NODE_FOR || n->kind == NODE_EACH || n->kind == NODE_SCAN) {
		expression(x, n->a);
		expression(x, n->b);
		differs = n->kind == NODE_FOR && (n->a->varying || n->b->varying);
	}
	enter_loop(x, n);
	if (x->failed)
		return;
	if (n->kind == NODE_WHILE) {
		expression(x, n->a);
		differs = n->a->varying;
	}
	x->lanes += n->kind == NODE_EACH || n->kind == NODE_SCAN;
	if (n->symbol)
		declare_index(x, n->symbol, n->kind != NODE_FOR || differs);
	if (n->kind == NODE_SCAN) {
		expression(x, n->d);
		expression(x, n->c);
	} else {
		walk(x, n->d);
	}
	x->lanes -= n->kind == NODE_EACH || n->kind == NODE_SCAN;
	if (x->loops)
		x->loops--;
	x->control -= varies;
	if (n->kind == NODE_FOR || n->kind == NODE_WHILE)
		set(x, &n->varying, differs);
}

static bool statement(struct inference *x, struct node *n)
{
	switch (n->kind) {
	case NODE_DECLARE: declaration(x, n); return false;
	case NODE_ASSIGN: assign(x, n); return false;
	case NODE_IF: return conditional(x, n);
	case NODE_FOR:
	case NODE_WHILE:
	case NODE_EACH:
	case NODE_SCAN: loop(x, n); return false;
	case NODE_BREAK: branch_out(x, n); return n->breaks;
	case NODE_COMPOUND: return n->breaks = walk(x, n->a);
	case NODE_SCATTER:
	case NODE_ATOMIC:
		expression(x, n->a);
		expression(x, n->b);
		return false;
	default: return false;
	}
}

/* Whether a break of the innermost varying loop is inside. */
static bool walk(struct inference *x, struct node *list)
{
	bool breaks = false;

	for (; list && !x->failed; list = list->next)
		breaks |= statement(x, list);
	return breaks;
}

static void indices(struct jk_kernel *k)
{
	for (struct symbol *s = k->indices; s; s = s->next) {
		s->varying = !k->cooperates && !s->next;
		s->depth = s->varying ? 2 : 1;
	}
}

bool jk_infer(struct jk_kernel *k, struct jk_messages *m)
{
	/* loops around the body: over units and, where lanes are instances, over chunks of lanes */
	struct inference x = { .k = k, .m = m, .changed = true, .base = k->cooperates ? 2 : 3 };

	indices(k);
	while (x.changed && !x.failed) {
		x.changed = false;
		walk(&x, k->body);
	}
	if (!x.failed) {
		x.last = true;
		walk(&x, k->body);
	}
	return !x.failed;
}

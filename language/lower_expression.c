/* language/lower_expression.c - a tree into values, left to right, and what is known outside of a loop before it. */
#include <string.h>

#include "language/lower.h"

static struct value *keep(struct lower *l, const struct value *v)
{
	struct value *to = jk_arena_take(&l->arena, sizeof *to);

	*to = *v;
	return to;
}

void jk_lower_remember_symbol(struct lower *l, const struct symbol *s, const struct value *v)
{
	if (!l->symbol[s->number])
		jk_lower_note_undo(l, UNDO_SYMBOL, s->number);
	l->symbol[s->number] = keep(l, v);
}

/* A variable that is never assigned is its value, which may be wanted before its declaration is met: jk_lower_hoist().
 */
struct value jk_lower_symbol(struct lower *l, const struct symbol *s)
{
	struct value v;

	if (!l->symbol[s->number]) {
		if (!s->init)
			jk_lower_fail(l, s->at, "%.60s has no value here", s->name->text);
		v = jk_lower_expression(l, s->init);
		v.reg = v.kind >= VALUE_VECTOR ? jk_lower_copy(l, v.reg) : v.reg;
		jk_lower_remember_symbol(l, s, &v);
	}
	v = *l->symbol[s->number];
	if (s->assigned && v.kind == VALUE_LINEAR) { /* a scalar variable: what it is now */
		const struct quantity *q = &l->quantity[v.linear.term[0].quantity];
		return jk_value_scalar(l, v.type, jk_lower_copy(l, q->reg), q->lo, q->hi);
	}
	return v;
}

/* --- operands that are not evaluated in all lanes */

/* Whether it does more than compute: reads memory or has loops. */
static bool is_plain(const struct node *n)
{
	switch (n->kind) {
	case NODE_NUMBER:
	case NODE_BOOL:
	case NODE_NAME: return true;
	case NODE_ELEMENT:
	case NODE_INLINED:
	case NODE_REDUCE: return false;
	default: break;
	}
	for (const struct node *a = n->a; a; a = a->next)
		if (!is_plain(a))
			return false;
	return (!n->b || is_plain(n->b)) && (!n->c || is_plain(n->c));
}

/* For the lanes for which c is, or is not. */
static struct value under(struct lower *l, const struct node *n, const struct value *c, bool is)
{
	const uint16_t mask = l->mask;
	struct value only = *c, v;

	if (is_plain(n) || (!c->varying && !l->check))
		return jk_lower_expression(l, n);
	if (!is)
		only = jk_lower_unary(l, &(struct node){ .op = OP_NOT, .type = JK_BOOL }, only);
	l->mask = jk_lower_and(l, mask, jk_lower_to_mask(l, &only));
	v = jk_lower_expression(l, n);
	l->mask = mask;
	return v;
}

static struct value short_circuit(struct lower *l, const struct node *n)
{
	const struct value a = jk_lower_expression(l, n->a);

	if (a.kind == VALUE_CONSTANT)
		return (n->op == OP_BOTH) == (a.bits != 0) ? jk_lower_expression(l, n->b) : a;
	const struct value b = under(l, n->b, &a, n->op == OP_BOTH);
	return jk_lower_binary(l, n, n->op, a, b);
}

static struct value selection(struct lower *l, const struct node *n)
{
	const struct value c = jk_lower_expression(l, n->a);

	if (c.kind == VALUE_CONSTANT)
		return jk_lower_expression(l, c.bits ? n->b : n->c);
	const struct value a = under(l, n->b, &c, true), b = under(l, n->c, &c, false);
	return jk_lower_choose(l, c, a, b);
}

static struct value builtin(struct lower *l, const struct node *n)
{
	struct value operand[8];
	unsigned k = 0;

	for (const struct node *a = n->a; a && k < 8; a = a->next)
		operand[k++] = jk_lower_expression(l, a);
	return jk_lower_builtin(l, n, operand);
}

static struct value evaluate(struct lower *l, const struct node *n)
{
	struct value a, b;

	switch (n->kind) {
	case NODE_NUMBER:
	case NODE_BOOL: return jk_value_bits(n->type, n->bits);
	case NODE_NAME: return jk_lower_symbol(l, n->symbol);
	case NODE_ELEMENT: return jk_lower_load(l, n);
	case NODE_UNARY: return jk_lower_unary(l, n, jk_lower_expression(l, n->a));
	case NODE_BINARY:
		if (n->op == OP_BOTH || n->op == OP_EITHER)
			return short_circuit(l, n);
		a = jk_lower_expression(l, n->a);
		b = jk_lower_expression(l, n->b);
		return jk_lower_binary(l, n, n->op, a, b);
	case NODE_SELECT: return selection(l, n);
	case NODE_CAST: return jk_lower_cast(l, n, n->type, jk_lower_expression(l, n->a));
	case NODE_BUILTIN: return builtin(l, n);
	case NODE_REDUCE: return jk_lower_reduction(l, n);
	default: /* NODE_INLINED */ jk_lower_statements(l, n->a); return jk_lower_expression(l, n->b);
	}
}

struct value jk_lower_expression(struct lower *l, const struct node *n)
{
	return l->memo[n->number] ? *l->memo[n->number] : evaluate(l, n);
}

/* --- hoisting */

static void hoist(struct lower *l, const struct node *n, unsigned depth, bool certain);

/* Nothing that may be missing, and that nobody asked for, is read. */
static bool reads(const struct node *n)
{
	if (n->kind == NODE_ELEMENT)
		return true;
	for (const struct node *a = n->a; a; a = a->next)
		if (reads(a))
			return true;
	return (n->b && reads(n->b)) || (n->c && reads(n->c));
}

static void hoist_list(struct lower *l, const struct node *n, unsigned depth, bool certain)
{
	for (; n; n = n->next)
		hoist(l, n, depth, certain);
}

static bool is_expression(const struct node *n) { return n->kind < NODE_WRONG; }

static void hoist_value(struct lower *l, const struct node *n, unsigned depth, bool certain)
{
	struct value v;

	if (n->kind <= NODE_NAME || l->memo[n->number])
		return;
	if (n->depth < depth && (!reads(n) || (certain && !l->check))) {
		v = jk_lower_expression(l, n);
		v.reg = v.kind >= VALUE_VECTOR ? jk_lower_copy(l, v.reg) : v.reg;
		jk_lower_note_undo(l, UNDO_NODE, n->number);
		l->memo[n->number] = keep(l, &v);
		return;
	}
	const bool conditional =
		n->kind == NODE_SELECT || (n->kind == NODE_BINARY && (n->op == OP_BOTH || n->op == OP_EITHER));
	if (n->kind == NODE_REDUCE) { /* it hoists from its own loop */
		hoist(l, n->a, depth, certain);
		hoist(l, n->b, depth, certain);
		return;
	}
	hoist_list(l, n->a, depth, certain);
	if (n->b)
		hoist(l, n->b, depth, certain && !conditional);
	if (n->c)
		hoist(l, n->c, depth, certain && !conditional);
}

static void hoist(struct lower *l, const struct node *n, unsigned depth, bool certain)
{
	if (is_expression(n)) {
		hoist_value(l, n, depth, certain);
		return;
	}
	switch (n->kind) {
	case NODE_DECLARE:
		if (n->a)
			hoist(l, n->a, depth, certain);
		break;
	case NODE_ASSIGN:
	case NODE_SCATTER:
	case NODE_ATOMIC:
		if (n->a->kind == NODE_ELEMENT)
			hoist_list(l, n->a->a, depth, certain);
		hoist(l, n->b, depth, certain);
		break;
	case NODE_IF:
		hoist(l, n->a, depth, certain);
		hoist_list(l, n->b, depth, false);
		hoist_list(l, n->c, depth, false);
		break;
	case NODE_FOR:
	case NODE_EACH:
	case NODE_SCAN:
		hoist(l, n->a, depth, certain);
		hoist(l, n->b, depth, certain);
		if (n->kind == NODE_SCAN)
			hoist(l, n->d, depth, false);
		else
			hoist_list(l, n->d, depth, false);
		break;
	case NODE_WHILE:
		hoist(l, n->a, depth, certain);
		hoist_list(l, n->d, depth, false);
		break;
	case NODE_COMPOUND: hoist_list(l, n->a, depth, certain); break;
	default: break;
	}
}

void jk_lower_hoist(struct lower *l, const struct node *list, unsigned depth) { hoist_list(l, list, depth, true); }

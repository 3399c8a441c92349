/* language/lower_statement.c - declarations, assignments, if and break. */
#include "language/lower.h"

/* --- declarations */

/* Elements begin as 0. */
static void clear(struct lower *l, const struct symbol *s)
{
	const unsigned bytes = jk_type_bytes(s->type);
	const uint64_t size =
		s->kind == SYMBOL_TILE ? (s->elements * bytes + 255) & ~UINT64_C(255) : s->elements * bytes * l->lanes;
	const uint64_t n = size / (4 * l->lanes);
	const uint32_t scope = jk_lower_scope(l);
	const ir_f zero = { jk_lower_emit(l, IR_fconst, 0, 0, 0, 0) };
	const ir_a base = { l->address[s->number] };

	if (n <= 16) {
		for (uint64_t k = 0; k < n; k++)
			ir_fstore(l->ir, base, zero, (int32_t)(k * 4 * l->lanes), 0);
		return;
	}
	const ir_s t = ir_loop(l->ir, ir_sconst(l->ir, (int64_t)n)), at = ir_smuli(l->ir, t, 4 * l->lanes);
	ir_fstore(l->ir, ir_aadd(l->ir, base, at), zero, 0, 0);
	ir_endloop(l->ir);
	jk_lower_check(l);
	jk_lower_unscope(l, scope);
}

/* Uniform integers that a scalar can hold. */
static bool is_scalar(const struct symbol *s) { return !s->varying && type_is_int(s->type) && s->type != JK_U64; }

static void declare_variable(struct lower *l, const struct node *n, struct value v)
{
	const struct symbol *s = n->symbol;
	struct value to;
	uint16_t reg;

	if (is_scalar(s)) {
		wide lo, hi;
		reg = jk_lower_variable(l, IR_TYPE_s, jk_lower_to_scalar(l, &v, n->at));
		jk_type_range(s->type, &lo, &hi);
		to = jk_value_of_quantity(
			l, s->type, jk_lower_quantity(l, QUANTITY_OTHER, 0, reg, false, (int64_t)lo, (int64_t)hi));
	} else if (s->type == JK_BOOL && !s->varying) {
		reg = jk_lower_variable(l, IR_TYPE_c, jk_lower_to_condition(l, &v));
		to = (struct value){ .kind = VALUE_CONDITION, .type = JK_BOOL, .reg = reg };
	} else {
		const uint16_t first = s->type == JK_BOOL ? jk_lower_to_mask(l, &v) : jk_lower_to_vector(l, &v);
		reg = jk_lower_variable(l, jk_lower_lane_type(s->type), first);
		to = jk_value_vector(s->type, reg, s->varying);
	}
	l->symbol[s->number] = NULL;
	jk_lower_remember_symbol(l, s, &to);
}

static void note_local(struct lower *l, const struct symbol *s, const char *where)
{
	struct jk_kernel *k = (struct jk_kernel *)(uintptr_t)l->k;

	if (!l->analyse)
		return;
	for (size_t i = 0; i < k->n_locals; i++)
		if (k->local[i].line == s->at.line && k->local[i].column == s->at.column)
			return;
	if (k->n_locals < k->locals_capacity)
		k->local[k->n_locals++] =
			(struct jk_local){ s->at.line, s->at.column, s->name->text, !s->varying, where };
}

static void declaration(struct lower *l, const struct node *n)
{
	const struct symbol *s = n->symbol;

	if (!n->a) {
		clear(l, s);
		note_local(l, s, "frame");
		return;
	}
	if (!s->assigned) {
		const struct value v = jk_lower_symbol(l, s);
		note_local(
			l, s,
			v.kind == VALUE_CONSTANT || (v.kind == VALUE_LINEAR && !v.linear.n) ? "constant" : "register");
		return;
	}
	note_local(l, s, "register");
	declare_variable(l, n, jk_lower_expression(l, n->a));
}

/* --- assignments */

/* Where a variable is read in the loop alone whose lanes are active, lanes that have left it may have anything. */
static bool left_lanes_count(const struct lower *l, const struct symbol *s)
{
	const struct loop_state *loop = l->loops ? &l->loop[l->loops - 1] : NULL;

	return !loop || !loop->live || l->mask != loop->live || s->read_twice || s->read_loop != loop->node;
}

static void set_vector(struct lower *l, const struct symbol *s, const struct value *to, const struct value *v)
{
	struct value mask = { .kind = VALUE_MASK, .type = JK_BOOL, .varying = true, .reg = l->mask }, given = *v, both;

	if (s->varying && l->mask && l->control > s->control && left_lanes_count(l, s)) {
		given = jk_value_vector(s->type, s->type == JK_BOOL ? jk_lower_to_mask(l, v) : jk_lower_to_vector(l, v),
		                        true);
		both = jk_lower_choose(l, mask, given, *to);
		jk_lower_assign(l, to->reg, both.reg);
		return;
	}
	jk_lower_assign(l, to->reg, s->type == JK_BOOL ? jk_lower_to_mask(l, v) : jk_lower_to_vector(l, v));
}

/* Sums and products of uniform integers that may wrap. False: not in scalars. */
static bool wrapped(struct lower *l, unsigned op, const struct value *a, const struct value *b, struct value *out)
{
	static const uint16_t rows[] = { 0, IR_sadd, IR_ssub, IR_smul };
	const wide bound = (wide)1 << 31;
	wide lo, hi;

	if (op > OP_MUL || !op || a->kind != VALUE_LINEAR || b->kind != VALUE_LINEAR || a->varying || b->varying)
		return false;
	if (op == OP_MUL && (a->lo < -bound || a->hi >= bound || b->lo < -bound || b->hi >= bound))
		return false;
	const uint16_t x = jk_lower_scalar(l, &a->linear), y = jk_lower_scalar(l, &b->linear);
	uint16_t r = jk_lower_emit(l, (enum ir_op)rows[op], x, y, 0, 0);
	if (a->type == JK_I32) {
		r = jk_lower_emit(l, IR_sshli, r, 0, 0, 32);
		r = jk_lower_emit(l, IR_sshri, r, 0, 0, 32);
	} else if (a->type == JK_U32) {
		uint16_t high = jk_lower_emit(l, IR_sshri, r, 0, 0, 32);
		high = jk_lower_emit(l, IR_sshli, high, 0, 0, 32);
		r = jk_lower_emit(l, IR_ssub, r, high, 0, 0);
	}
	jk_type_range(a->type, &lo, &hi);
	*out = jk_value_scalar(l, a->type, r, (int64_t)lo, (int64_t)hi);
	return true;
}

static void assign_variable(struct lower *l, const struct node *n)
{
	const struct symbol *s = n->a->symbol;
	struct value v = jk_lower_expression(l, n->b);

	if (!l->symbol[s->number])
		jk_lower_fail(l, n->a->at, "%.60s has no value here", s->name->text);
	const struct value to = *l->symbol[s->number];
	if (n->op) {
		const struct value old = jk_lower_symbol(l, s);
		struct value r;
		if (is_scalar(s) && wrapped(l, n->op, &old, &v, &r))
			v = r;
		else
			v = jk_lower_binary(l, n, n->op, old, v);
	} else if (n->b->kind == NODE_BINARY && is_scalar(s) && v.kind == VALUE_VECTOR) {
		const struct value a = jk_lower_expression(l, n->b->a), b = jk_lower_expression(l, n->b->b);
		struct value r;
		if (wrapped(l, n->b->op, &a, &b, &r))
			v = r;
	}
	if (is_scalar(s))
		jk_lower_assign(l, l->quantity[to.linear.term[0].quantity].reg, jk_lower_to_scalar(l, &v, n->at));
	else if (to.kind == VALUE_CONDITION)
		jk_lower_assign(l, to.reg, jk_lower_to_condition(l, &v));
	else
		set_vector(l, s, &to, &v);
}

static void assignment(struct lower *l, const struct node *n)
{
	struct value v;

	if (n->a->kind == NODE_NAME) {
		assign_variable(l, n);
		return;
	}
	v = jk_lower_expression(l, n->b);
	if (n->op) {
		const struct value old = jk_lower_load(l, n->a);
		v = jk_lower_binary(l, n, n->op, old, v);
	}
	jk_lower_store(l, n->a, v, OP_NONE, false);
}

/* --- break and if */

static uint16_t never(struct lower *l)
{
	const struct value no = jk_value_bits(JK_BOOL, 0);

	return jk_lower_to_mask(l, &no);
}

static void leave(struct lower *l, uint16_t condition)
{
	ir_emit(l->ir, IR_break, 0, condition, 0, 0, 0);
	jk_lower_check(l);
}

static uint16_t always(struct lower *l)
{
	const struct value yes = jk_value_bits(JK_BOOL, 1);

	return jk_lower_to_condition(l, &yes);
}

/* The lanes of the mask leave the innermost loop; the loop itself ends when none is left. */
static void leave_lanes(struct lower *l, uint16_t mask)
{
	struct loop_state *loop = &l->loop[l->loops - 1];

	if (!mask || mask == loop->live)
		jk_lower_assign(l, loop->live, never(l));
	else
		jk_lower_assign(l, loop->live,
		                jk_lower_emit(l, IR_mand, loop->live, jk_lower_emit(l, IR_mnot, mask, 0, 0, 0), 0, 0));
}

static void leave_when_empty(struct lower *l)
{
	const uint16_t live = l->loop[l->loops - 1].live;

	leave(l, jk_lower_emit(l, IR_cnot, jk_lower_emit(l, IR_any, live, 0, 0, 0), 0, 0, 0));
}

static bool is_break(const struct node *list)
{
	while (list && list->kind == NODE_COMPOUND && !list->next)
		list = list->a;
	return list && list->kind == NODE_BREAK;
}

static void block(struct lower *l, const struct node *list)
{
	const uint32_t scope = jk_lower_scope(l);

	jk_lower_statements(l, list);
	jk_lower_unscope(l, scope);
}

static void uniform_if(struct lower *l, const struct node *n, const struct value *c)
{
	const uint16_t mask = l->mask;

	if (!l->loops || !is_break(n->b) || n->c || l->loop[l->loops - 1].live) {
		jk_lower_open_if(l, jk_lower_to_condition(l, c));
		block(l, n->b);
		l->mask = mask;
		if (n->c) {
			ir_emit(l->ir, IR_else, 0, 0, 0, 0, 0);
			block(l, n->c);
			l->mask = mask;
		}
		jk_lower_close_if(l);
	} else {
		leave(l, jk_lower_to_condition(l, c));
	}
}

/* What is so short that a branch around it would cost more. */
static unsigned weight(const struct lower *l, const struct node *n)
{
	unsigned sum = 0;

	for (; n; n = n->next) {
		if (n->kind == NODE_COMPOUND || (n->kind == NODE_ASSIGN && n->a->kind == NODE_NAME))
			sum += weight(l, n->kind == NODE_COMPOUND ? n->a : n->b);
		else if (n->kind == NODE_IF && l->keeps)
			sum += 1 + weight(l, n->a) + weight(l, n->b) + weight(l, n->c);
		else if (n->kind == NODE_NUMBER || n->kind == NODE_BOOL || n->kind == NODE_NAME)
			sum += 0;
		else if (n->kind == NODE_UNARY || n->kind == NODE_CAST ||
		         (n->kind == NODE_BINARY && n->op != OP_DIV && n->op != OP_REM))
			sum += 1 + weight(l, n->a) + weight(l, n->b);
		else
			return 1000;
	}
	return sum;
}

static void masked_part(struct lower *l, const struct node *list, uint16_t mask)
{
	const bool branches = weight(l, list) > 6;
	const uint16_t old = l->mask;

	if (!list)
		return;
	if (branches)
		jk_lower_open_if(l, jk_lower_emit(l, IR_any, mask, 0, 0, 0));
	l->mask = mask;
	l->control++;
	block(l, list);
	l->control--;
	l->mask = old;
	if (branches)
		jk_lower_close_if(l);
}

static void masked_if(struct lower *l, const struct node *n, const struct value *c)
{
	const uint16_t is = jk_lower_copy(l, jk_lower_to_mask(l, c)), mask = l->mask;
	const uint16_t yes = jk_lower_and(l, mask, is);

	if (is_break(n->b) && !n->c) {
		leave_lanes(l, yes);
		return;
	}
	/* what is active now may be less behind the first part */
	const uint16_t no = n->c ? jk_lower_and(l, jk_lower_copy(l, mask), jk_lower_emit(l, IR_mnot, is, 0, 0, 0)) : 0;
	masked_part(l, n->b, yes);
	if (n->c)
		masked_part(l, n->c, no);
}

static void conditional(struct lower *l, const struct node *n)
{
	const struct value c = jk_lower_expression(l, n->a);

	/* Where a condition differs between lanes only in its form, what is declared inside counts it all the same. */
	if (c.kind == VALUE_CONSTANT) {
		l->control += n->a->varying;
		block(l, c.bits ? n->b : n->c);
		l->control -= n->a->varying;
	} else if (n->a->varying)
		masked_if(l, n, &c);
	else
		uniform_if(l, n, &c);
}

static void branch_out(struct lower *l)
{
	if (l->loop[l->loops - 1].live)
		leave_lanes(l, l->mask);
	else
		leave(l, always(l));
}

/* --- all */

static void scatter(struct lower *l, const struct node *n)
{
	const struct value v = jk_lower_expression(l, n->b);

	jk_lower_store(l, n->a, v, n->kind == NODE_ATOMIC ? n->op : OP_NONE, n->kind == NODE_SCATTER);
}

void jk_lower_statement(struct lower *l, const struct node *n)
{
	switch (n->kind) {
	case NODE_DECLARE: declaration(l, n); break;
	case NODE_ASSIGN: assignment(l, n); break;
	case NODE_IF: conditional(l, n); break;
	case NODE_FOR: jk_lower_for(l, n); break;
	case NODE_WHILE: jk_lower_while(l, n); break;
	case NODE_EACH: jk_lower_each(l, n); break;
	case NODE_SCAN: jk_lower_scan(l, n); break;
	case NODE_BREAK: branch_out(l); break;
	case NODE_COMPOUND: block(l, n->a); break;
	case NODE_SCATTER:
	case NODE_ATOMIC: scatter(l, n); break;
	default: break; /* sync: iterations of each are over when what stands behind it begins */
	}
}

void jk_lower_statements(struct lower *l, const struct node *list)
{
	for (; list; list = list->next) {
		if (l->copies > 1)
			jk_copies_statement(l, list);
		else
			jk_lower_statement(l, list);
		if (!list->breaks)
			continue;
		/* lanes may have left */
		const uint16_t live = l->loop[l->loops - 1].live;
		if (!live)
			continue;
		if (l->mask == live)
			leave_when_empty(l);
		else if (list->next)
			l->mask = jk_lower_and(l, l->mask, live);
	}
}

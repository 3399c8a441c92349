/* language/parse_expression.c - expressions, with C's operators and C's precedence. */
#include "language/parse.h"

#include <string.h>

/* --- what stands between operators */

static struct node *parse_number(struct parser *p)
{
	struct node *n = jk_node_new(p, NODE_NUMBER, jk_location_of(p->at));

	n->text = p->f->text + p->at->start;
	n->length = p->at->length;
	n->type = p->at->kind == TOKEN_REAL ? TYPE_REAL : TYPE_WHOLE;
	p->at++;
	return n;
}

static struct node *parse_brackets(struct parser *p)
{
	struct node *n;

	p->at++;
	if (!jk_enter(p))
		return jk_node_wrong(p);
	n = jk_parse_expression(p);
	jk_leave(p);
	jk_expect_mark(p, MARK_CLOSE, "behind an expression");
	return n;
}

static struct node *parse_cast(struct parser *p)
{
	const struct source_location at = jk_location_of(p->at);
	const unsigned type = jk_take_type(p);
	struct node *n = jk_node_new(p, NODE_CAST, at);

	n->type = (uint8_t)type;
	if (!jk_is_mark(p, MARK_OPEN)) {
		jk_expected(p, "( behind a type in an expression, such as f32(i)");
		return n;
	}
	n->a = parse_brackets(p);
	jk_type_cast(p->m, n);
	jk_node_measure(p, n);
	return n;
}

struct node *jk_parse_element(struct parser *p, struct symbol *s, struct source_location at)
{
	struct node *n = jk_node_new(p, NODE_ELEMENT, at), **last = &n->a;
	unsigned dims = 0;

	n->symbol = s;
	n->use = p->f->n_elements++;
	n->type = (uint8_t)jk_type_widened(s->type);
	while (jk_is_mark(p, MARK_OPEN_BRACKET) && !p->lost) {
		p->at++;
		if (!jk_enter(p))
			return n;
		*last = jk_parse_expression(p);
		jk_leave(p);
		jk_expect_mark(p, MARK_CLOSE_BRACKET, "behind a subscript");
		if ((*last)->type == TYPE_WHOLE)
			jk_type_give(p->m, *last, JK_I64, "subscript");
		else if (!type_is_int((*last)->type) && (*last)->type != TYPE_WRONG)
			jk_message_add(p->m, (*last)->at,
			               "subscript of %.60s: expected an integer, found %s; write i32(...)",
			               s->name->text, jk_type_text((*last)->type));
		last = &(*last)->next;
		dims++;
	}
	if (!p->lost && dims != s->dims) {
		jk_message_add(p->m, at,
		               "%.60s has %u dimensions, and %u subscripts are given; write one [...] for each",
		               s->name->text, s->dims, dims);
		n->type = TYPE_WRONG;
	}
	jk_node_measure(p, n);
	return n;
}

struct node *jk_parse_extents(struct parser *p, struct symbol *s)
{
	struct node *first = NULL, **last = &first;

	while (jk_is_mark(p, MARK_OPEN_BRACKET) && !p->lost) {
		const struct token *at = p->at++;
		if (!jk_enter(p))
			return first;
		*last = jk_parse_expression(p);
		jk_leave(p);
		jk_expect_mark(p, MARK_CLOSE_BRACKET, "behind an extent");
		if ((*last)->type == TYPE_WHOLE)
			jk_type_give(p->m, *last, JK_I64, "extent");
		else if (!type_is_int((*last)->type) && (*last)->type != TYPE_WRONG)
			jk_message_add(p->m, (*last)->at, "extent of %.60s: expected an integer, found %s",
			               s->name->text, jk_type_text((*last)->type));
		last = &(*last)->next;
		if (s->dims++ == JK_MAX_DIMS) {
			jk_message_add(p->m, jk_location_of(at), "an array has at most %d dimensions", JK_MAX_DIMS);
			p->lost = true;
		}
	}
	return first;
}

/* --- calls */

static struct node *parse_array_argument(struct parser *p, const struct symbol *fn, const struct symbol *parameter)
{
	struct node *n = jk_node_new(p, NODE_NAME, jk_location_of(p->at));
	struct symbol *s;

	if (p->at->kind != TOKEN_NAME) {
		jk_expected(p, "the name of an array, which this parameter is");
		return n;
	}
	if (!(s = jk_look_up(p)))
		return n;
	n->symbol = s;
	if (s->kind != SYMBOL_ARRAY || s->dims != parameter->dims || s->type != parameter->type)
		jk_message_add(p->m, n->at, "%.40s of %.40s: expected an array of %s with %u dimensions, found %.40s",
		               parameter->name->text, fn->name->text, jk_type_text(parameter->type), parameter->dims,
		               s->name->text);
	else if (s->access == JK_OUT)
		jk_message_add(p->m, n->at, "%.60s is only written, and %.60s reads it; make it inout", s->name->text,
		               fn->name->text);
	return n;
}

static struct node *parse_call(struct parser *p, struct symbol *fn, struct source_location at)
{
	struct node *n = jk_node_new(p, NODE_CALL, at), **last = &n->a;
	struct symbol *parameter = fn->parameters;
	char what[120];

	n->symbol = fn;
	n->type = fn->type;
	if (!jk_expect_mark(p, MARK_OPEN, "behind the name of a function") || !jk_enter(p))
		return n;
	for (unsigned k = 0; !p->lost && !jk_is_mark(p, MARK_CLOSE); k++) {
		if (k)
			jk_expect_mark(p, MARK_COMMA, "between arguments");
		if (!parameter || p->lost)
			break;
		if (parameter->dims) {
			*last = parse_array_argument(p, fn, parameter);
		} else {
			*last = jk_parse_expression(p);
			snprintf(what, sizeof what, "%.40s of %.40s", parameter->name->text, fn->name->text);
			jk_type_expect(p->m, *last, parameter->type, what);
		}
		last = &(*last)->next;
		parameter = parameter->next;
	}
	jk_leave(p);
	if (!p->lost && (parameter || !jk_is_mark(p, MARK_CLOSE))) {
		jk_message_add(p->m, at, "%.60s takes %u arguments; write that many", fn->name->text, fn->number);
		p->lost = true;
	}
	jk_expect_mark(p, MARK_CLOSE, "behind arguments");
	jk_node_measure(p, n);
	return n;
}

static struct node *parse_builtin(struct parser *p, unsigned b, struct source_location at)
{
	struct node *n = jk_node_new(p, NODE_BUILTIN, at), **last = &n->a;
	unsigned given = 0;

	n->op = (uint8_t)b;
	p->at++;
	if (!jk_enter(p))
		return n;
	while (!p->lost && !jk_is_mark(p, MARK_CLOSE)) {
		if (given)
			jk_expect_mark(p, MARK_COMMA, "between operands");
		if (p->lost)
			break;
		*last = jk_parse_expression(p);
		last = &(*last)->next;
		given++;
	}
	jk_leave(p);
	jk_expect_mark(p, MARK_CLOSE, "behind operands");
	if (p->lost)
		return n;
	if (given != jk_builtin_operands(b))
		jk_message_add(p->m, at, "%s takes %u operands, found %u", jk_builtin_name(b), jk_builtin_operands(b),
		               given);
	else
		jk_type_builtin(p->m, n);
	jk_node_measure(p, n);
	return n;
}

/* --- reductions */

int jk_reduction_at(const struct parser *p)
{
	static const char *const words[] = { "sum", "min", "max", "any", "all" };
	static const int op[] = { OP_ADD, OP_MIN, OP_MAX, OP_ANY, OP_ALL };

	for (unsigned k = 0; k < 5; k++)
		if (jk_is_word(p, words[k]))
			return op[k];
	return -1;
}

unsigned jk_parse_range(struct parser *p, struct node **lo, struct node **hi, bool from_zero)
{
	static const char what[] = "ends of a range";
	unsigned type;

	*lo = NULL;
	*hi = jk_parse_expression(p);
	if (jk_is_mark(p, MARK_RANGE) || !from_zero) {
		if (!jk_expect_mark(p, MARK_RANGE, "between the ends of a range, such as 0..n"))
			return TYPE_WRONG;
		*lo = *hi;
		*hi = jk_parse_expression(p);
	}
	if ((*lo && (*lo)->type == TYPE_WRONG) || (*hi)->type == TYPE_WRONG)
		return TYPE_WRONG;
	type = *lo && (*lo)->type != TYPE_WHOLE ? (*lo)->type : (*hi)->type;
	if (type == TYPE_WHOLE)
		type = JK_I32;
	if (!type_is_int(type)) {
		jk_message_add(p->m, (*hi)->at, "%s: expected integers, found %s; write i32(...)", what,
		               jk_type_text(type));
		return TYPE_WRONG;
	}
	return (!*lo || jk_type_expect(p->m, *lo, type, what)) && jk_type_expect(p->m, *hi, type, what)
	               ? type
	               : TYPE_WRONG;
}

static struct node *parse_reduction(struct parser *p, unsigned op)
{
	struct node *n = jk_node_new(p, NODE_REDUCE, jk_location_of(p->at));
	struct scope scope;
	struct symbol *s;

	if (!p->kernel)
		jk_message_add(p->m, n->at, "a reduction cannot stand in a function; reduce in the kernel");
	else if (p->lanes)
		jk_message_add(p->m, n->at,
		               "a reduction cannot stand inside each or another reduction; write a for loop");
	else
		p->kernel->cooperates = true;
	n->op = (uint8_t)op;
	p->at += 2;
	if (!jk_enter(p) || !(s = jk_declare_later(p, SYMBOL_INDEX, JK_I32, "the name of an index")))
		return n;
	p->at++; /* in */
	s->type = (uint8_t)jk_parse_range(p, &n->a, &n->b, false);
	n->symbol = s;
	jk_scope_open(p, &scope);
	jk_declare_now(p, s);
	p->lanes++;
	if (jk_expect_mark(p, MARK_COLON, "behind the range of a reduction")) {
		n->c = jk_parse_expression(p);
		if (op == OP_ANY || op == OP_ALL)
			jk_type_expect(p->m, n->c, JK_BOOL, "what any and all look at");
		else if (n->c->type == TYPE_WHOLE || n->c->type == TYPE_REAL || n->c->type == JK_BOOL)
			jk_message_add(p->m, n->c->at,
			               "what is reduced: expected a number with a type, found %s; write a cast",
			               jk_type_text(n->c->type));
		n->type = n->c->type;
	}
	p->lanes--;
	jk_scope_close(p);
	jk_leave(p);
	jk_expect_mark(p, MARK_CLOSE, "behind a reduction");
	jk_node_measure(p, n);
	return n;
}

/* --- names */

static void check_read(struct parser *p, const struct symbol *s, const struct node *n)
{
	if (s->kind == SYMBOL_ARRAY && s->access == JK_OUT)
		jk_message_add(p->m, n->at, "%.60s is only written; make it inout to read it", s->name->text);
}

static struct node *parse_value(struct parser *p, struct symbol *s, struct source_location at)
{
	struct node *n = jk_node_new(p, NODE_NAME, at);

	n->symbol = s;
	n->type = s->type;
	if (s->kind == SYMBOL_FN || s->kind == SYMBOL_KERNEL) {
		jk_message_add(p->m, at, "%.60s is a %s, and a value is expected%s", s->name->text,
		               s->kind == SYMBOL_FN ? "function" : "kernel",
		               s->kind == SYMBOL_FN ? "; write (...) behind it" : "");
		n->type = TYPE_WRONG;
	} else if (s->kind == SYMBOL_TUNE && !p->tuning) {
		jk_message_add(
			p->m, at,
			"%.60s is tuned, and may only stand in block(...) and unroll(...), which change no result",
			s->name->text);
		n->type = TYPE_WRONG;
	}
	return n;
}

static struct node *parse_name(struct parser *p)
{
	const struct source_location at = jk_location_of(p->at);
	const bool call = p->at[1].kind == TOKEN_MARK && p->at[1].mark == MARK_OPEN;
	struct symbol *s;
	struct node *n;
	int builtin;

	if (call && jk_reduction_at(p) >= 0 && p->at[2].kind == TOKEN_NAME && p->at[3].kind == TOKEN_in)
		return parse_reduction(p, (unsigned)jk_reduction_at(p));
	if (call && !p->at->name->symbol) {
		builtin = jk_builtin_find(p->at->name->text, p->at->name->length);
		if (builtin >= 0) {
			p->at++;
			return parse_builtin(p, (unsigned)builtin, at);
		}
	}
	s = jk_look_up(p);
	if (!s) {
		n = jk_node_new(p, NODE_WRONG, at);
		while (jk_is_mark(p, MARK_OPEN_BRACKET) || jk_is_mark(p, MARK_OPEN)) { /* what it is applied to */
			const unsigned close = jk_is_mark(p, MARK_OPEN) ? MARK_CLOSE : MARK_CLOSE_BRACKET;
			p->at++;
			if (!jk_enter(p))
				return n;
			while (!p->lost && !jk_is_mark(p, close)) {
				jk_parse_expression(p);
				if (!jk_take_mark(p, MARK_COMMA))
					break;
			}
			jk_leave(p);
			jk_expect_mark(p, close, "behind what a name is applied to");
		}
		return n;
	}
	if (s->kind == SYMBOL_FN && call)
		return parse_call(p, s, at);
	if (s->dims && s->kind != SYMBOL_KERNEL && s->kind != SYMBOL_FN) {
		n = jk_parse_element(p, s, at);
		check_read(p, s, n);
		return n;
	}
	return parse_value(p, s, at);
}

static struct node *parse_unary(struct parser *p);

static struct node *parse_operand(struct parser *p)
{
	struct node *n;

	switch (p->at->kind) {
	case TOKEN_WHOLE:
	case TOKEN_REAL: return parse_number(p);
	case TOKEN_NAME: return parse_name(p);
	case TOKEN_true:
	case TOKEN_false:
		n = jk_node_new(p, NODE_BOOL, jk_location_of(p->at));
		n->bits = p->at++->kind == TOKEN_true;
		n->type = JK_BOOL;
		n->typed = true;
		return n;
	default: break;
	}
	if (jk_is_type(p))
		return parse_cast(p);
	if (jk_is_mark(p, MARK_OPEN))
		return parse_brackets(p);
	jk_expected(p, "an expression");
	return jk_node_wrong(p);
}

static struct node *parse_unary(struct parser *p)
{
	const unsigned op = jk_is_mark(p, MARK_SUB)    ? OP_NEG
	                    : jk_is_mark(p, MARK_NOT)  ? OP_NOT
	                    : jk_is_mark(p, MARK_FLIP) ? OP_FLIP
	                                               : OP_NONE;
	struct node *n;

	if (!op && !jk_is_mark(p, MARK_ADD))
		return parse_operand(p);
	n = jk_node_new(p, NODE_UNARY, jk_location_of(p->at));
	p->at++;
	if (!jk_enter(p))
		return n;
	n->a = parse_unary(p);
	jk_leave(p);
	if (!op)
		return n->a;
	n->op = (uint8_t)op;
	jk_type_unary(p->m, n);
	jk_node_measure(p, n);
	return n;
}

static unsigned binary_at(const struct parser *p, unsigned *precedence)
{
	static const struct {
		uint8_t mark, op, precedence;
	} of[] = { { MARK_MUL, OP_MUL, 10 }, { MARK_DIV, OP_DIV, 10 },  { MARK_REM, OP_REM, 10 },
		   { MARK_ADD, OP_ADD, 9 },  { MARK_SUB, OP_SUB, 9 },   { MARK_SHL, OP_SHL, 8 },
		   { MARK_SHR, OP_SHR, 8 },  { MARK_LT, OP_LT, 7 },     { MARK_LE, OP_LE, 7 },
		   { MARK_GT, OP_GT, 7 },    { MARK_GE, OP_GE, 7 },     { MARK_EQ, OP_EQ, 6 },
		   { MARK_NE, OP_NE, 6 },    { MARK_AND, OP_AND, 5 },   { MARK_XOR, OP_XOR, 4 },
		   { MARK_OR, OP_OR, 3 },    { MARK_BOTH, OP_BOTH, 2 }, { MARK_EITHER, OP_EITHER, 1 } };

	if (p->at->kind == TOKEN_MARK)
		for (unsigned k = 0; k < sizeof of / sizeof *of; k++)
			if (of[k].mark == p->at->mark) {
				*precedence = of[k].precedence;
				return of[k].op;
			}
	return OP_NONE;
}

static struct node *parse_binary(struct parser *p, unsigned min)
{
	struct node *left = parse_unary(p);
	unsigned precedence = 0, op;

	while (!p->lost && (op = binary_at(p, &precedence)) != OP_NONE && precedence >= min) {
		struct node *n = jk_node_new(p, NODE_BINARY, jk_location_of(p->at));
		p->at++;
		n->op = (uint8_t)op;
		n->a = left;
		n->b = parse_binary(p, precedence + 1);
		jk_type_binary(p->m, n);
		jk_node_measure(p, n);
		left = n;
	}
	return left;
}

struct node *jk_parse_expression(struct parser *p)
{
	struct node *n = parse_binary(p, 1), *select;

	if (p->lost || !jk_is_mark(p, MARK_QUESTION))
		return n;
	select = jk_node_new(p, NODE_SELECT, jk_location_of(p->at));
	p->at++;
	if (!jk_enter(p))
		return select;
	select->a = n;
	select->b = jk_parse_expression(p);
	if (jk_expect_mark(p, MARK_COLON, "between the two values of ? :")) {
		select->c = jk_parse_expression(p);
		jk_type_select(p->m, select);
		jk_node_measure(p, select);
	}
	jk_leave(p);
	return select;
}

/* chat/jinja_eval.c - what expressions are worth.
 *
 * Owns: the order in which parts of an expression are evaluated, names, and comparisons. Every node counts a step, and
 * how deep this is called in itself is bounded by CHAT_MAX_DEPTH.
 */
#include <math.h>
#include <string.h>

#include "chat/jinja.h"

static struct value lookup(struct run *r, const struct text *name)
{
	for (const struct scope *s = r->scope; s; s = s->parent)
		for (const struct binding *b = s->first; b; b = b->next) {
			if (!run_step(r, 1))
				return value_of(KIND_ABSENT);
			if (b->n == name->n && memcmp(b->name, name->p, name->n) == 0)
				return b->value;
		}
	struct value v = global_function(name->p, name->n);
	if (v.kind != KIND_ABSENT && (r->now || !text_is(name, "strftime_now")))
		return v;
	return value_undefined(UNDEFINED_NAME, name, KIND_ABSENT);
}

static struct value eval_items(struct run *r, const struct node *n)
{
	size_t count = 0, i = 0;

	for (const struct node *p = n->first; p; p = p->next)
		count++;
	struct value v = value_list(r, n->type == NODE_LIST ? KIND_LIST : KIND_TUPLE, count);
	for (const struct node *p = n->first; p && !r->failed; p = p->next)
		v.list->item[i++] = eval(r, p);
	return v;
}

static struct value eval_dict(struct run *r, const struct node *n)
{
	struct value v = dict_new(r, 0);

	for (const struct node *p = n->first; p && !r->failed; p = p->next) {
		struct value key = eval(r, p->a), value = eval(r, p->b);
		if (r->failed || !value_hashable(r, key) || !dict_append(r, v.dict, key, value))
			break;
	}
	if (!r->failed)
		dict_finish(r, v.dict);
	return v;
}

static bool compare(struct run *r, int op, struct value a, struct value b)
{
	char name[3] = { (char)(op > 255 ? op >> 8 : op), (char)(op > 255 ? op & 255 : 0), 0 };

	switch (op) {
	case OPERATOR2('=', '='): return value_equal(r, a, b);
	case OPERATOR2('!', '='): return !value_equal(r, a, b);
	case 'i': return value_contains(r, b, a);
	case 'n': return !value_contains(r, b, a);
	default: break;
	}
	if (is_number(a) && is_number(b) && (isnan(real_of(a)) || isnan(real_of(b))))
		return false;
	int c = value_compare(r, a, b, name);
	return op == '<' ? c < 0 : op == '>' ? c > 0 : op == OPERATOR2('<', '=') ? c <= 0 : c >= 0;
}

static struct value eval_comparison(struct run *r, const struct node *n)
{
	struct value a = eval(r, n->a);

	for (const struct node *p = n->first; p && !r->failed; p = p->next) {
		struct value b = eval(r, p->a);
		if (r->failed || !compare(r, p->op, a, b))
			return value_bool(false);
		a = b;
	}
	return value_bool(true);
}

/* The texts of all parts; Markup counts as plain text here. */
static struct value eval_concat(struct run *r, const struct node *n)
{
	struct build b = { .r = r };

	for (const struct node *p = n->first; p && !r->failed; p = p->next) {
		struct value v = eval(r, p);
		if (!r->failed)
			build_str(&b, v);
	}
	return value_text(build_done(&b));
}

static struct value eval_sign(struct run *r, const struct node *n)
{
	struct value v = eval(r, n->a);

	if (r->failed)
		return v;
	if (v.kind == KIND_UNDEFINED)
		return fail_undefined(r, v);
	if (!is_number(v))
		return run_fail(r, "bad operand type for unary %c: '%s'", n->type == NODE_PLUS ? '+' : '-',
		                value_type(v));
	if (n->type == NODE_PLUS)
		return v.kind == KIND_FLOAT ? v : value_int(integer_of(v));
	return v.kind == KIND_FLOAT ? value_float(-v.real) : operate(r, '-', value_int(0), v);
}

static struct value eval_slice(struct run *r, const struct node *n)
{
	struct value of = eval(r, n->a), from = eval(r, n->first), to = eval(r, n->first->next),
		     step = eval(r, n->first->next->next);

	return get_slice(r, of, from, to, step);
}

static struct value eval_call(struct run *r, const struct node *n)
{
	struct arguments args;
	struct value f = eval(r, n->a);

	if (r->failed || !eval_arguments(r, n->first, &args))
		return value_of(KIND_ABSENT);
	r->line = n->line;
	return call(r, f, &args);
}

static struct value eval_filter(struct run *r, const struct node *n, bool test)
{
	struct arguments args;
	struct value v = eval(r, n->a);

	if (r->failed || !eval_arguments(r, n->first, &args))
		return value_of(KIND_ABSENT);
	r->line = n->line;
	if (n->number == NO_NUMBER)
		return run_fail(r, "No %s named '%.*s' found.", test ? "test" : "filter", (int)n->name.n, n->name.p);
	return test ? value_bool(apply_test(r, n->number, v, &args)) : apply_filter(r, n->number, v, &args);
}

static struct value eval_choice(struct run *r, const struct node *n)
{
	struct value test = eval(r, n->a);

	if (r->failed)
		return test;
	if (value_truth(test))
		return eval(r, n->b);
	if (n->c)
		return eval(r, n->c);
	return value_undefined(
		UNDEFINED_OTHER,
		text_literal(r, "the inline if-expression evaluated to false and no else section was defined."),
		KIND_ABSENT);
}

static struct value eval_logic(struct run *r, const struct node *n)
{
	struct value a = eval(r, n->a);

	if (r->failed || value_truth(a) == (n->type == NODE_OR))
		return a;
	return eval(r, n->b);
}

static struct value eval_binary(struct run *r, const struct node *n)
{
	struct value a = eval(r, n->a), b = eval(r, n->b);

	r->line = n->line;
	return r->failed ? value_of(KIND_ABSENT) : operate(r, n->op, a, b);
}

static struct value eval_not(struct run *r, const struct node *n)
{
	struct value v = eval(r, n->a);

	return value_bool(!r->failed && !value_truth(v));
}

static struct value eval_item(struct run *r, const struct node *n)
{
	struct value of = eval(r, n->a), key = eval(r, n->b);

	r->line = n->line;
	return get_item(r, of, key);
}

static struct value eval_attribute(struct run *r, const struct node *n)
{
	struct value of = eval(r, n->a);

	r->line = n->line;
	return get_attribute(r, of, &n->name);
}

static struct value eval_node(struct run *r, const struct node *n)
{
	switch ((enum node_type)n->type) {
	case NODE_CONSTANT: return n->constant;
	case NODE_NAME: return lookup(r, &n->name);
	case NODE_ATTRIBUTE: return eval_attribute(r, n);
	case NODE_ITEM: return eval_item(r, n);
	case NODE_SLICE: return eval_slice(r, n);
	case NODE_CALL: return eval_call(r, n);
	case NODE_FILTER: return eval_filter(r, n, false);
	case NODE_TEST: return eval_filter(r, n, true);
	case NODE_NOT: return eval_not(r, n);
	case NODE_NEGATE:
	case NODE_PLUS: return eval_sign(r, n);
	case NODE_BINARY: return eval_binary(r, n);
	case NODE_CONCAT: return eval_concat(r, n);
	case NODE_COMPARE: return eval_comparison(r, n);
	case NODE_AND:
	case NODE_OR: return eval_logic(r, n);
	case NODE_CHOICE: return eval_choice(r, n);
	case NODE_LIST:
	case NODE_TUPLE: return eval_items(r, n);
	case NODE_DICT: return eval_dict(r, n);
	default: return run_fail(r, "a statement stands where a value is expected");
	}
}

struct value eval(struct run *r, const struct node *n)
{
	struct value v;

	if (!run_step(r, 1))
		return value_of(KIND_ABSENT);
	if (r->depth >= CHAT_MAX_DEPTH)
		return run_fail(r, "maximum recursion depth exceeded");
	r->depth++;
	v = eval_node(r, n);
	r->depth--;
	return r->failed ? value_of(KIND_ABSENT) : v;
}

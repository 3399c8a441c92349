/* chat/jinja_expression.c - tokens become expressions, with Jinja's order of operators.
 *
 * Owns: which operator binds more. Never: nests deeper than CHAT_MAX_NESTING.
 */
#include <string.h>

#include "chat/jinja.h"

static struct node *parse_or(struct parser *p);

/* ---- operators, from those that bind most */

/* One of these operators, taken; else 0. */
static int take_one(struct parser *p, const int *ops)
{
	for (; *ops; ops++)
		if (parse_is_op(p, *ops)) {
			parse_advance(p);
			return *ops;
		}
	return 0;
}

static struct node *binary(struct parser *p, struct node *(*part)(struct parser *), const int *ops)
{
	struct node *n = part(p);

	for (int op; n && !p->failed && (op = take_one(p, ops));) {
		n = parse_pair(p, NODE_BINARY, n->line, n, part(p));
		if (n)
			n->op = op;
	}
	return p->failed ? NULL : n;
}

static struct node *with_filters(struct parser *p) { return parse_unary(p, true); }

static struct node *parse_power(struct parser *p)
{
	static const int ops[] = { OPERATOR2('*', '*'), 0 };

	return binary(p, with_filters, ops);
}

static struct node *parse_product(struct parser *p)
{
	static const int ops[] = { '*', '/', OPERATOR2('/', '/'), '%', 0 };

	return binary(p, parse_power, ops);
}

static struct node *parse_concat(struct parser *p)
{
	struct node *first = parse_product(p), *n, **tail;

	if (!first || !parse_is_op(p, '~'))
		return first;
	n = parse_node(p, NODE_CONCAT, first->line);
	tail = n ? &n->first : NULL;
	if (!parse_add(p, n, &tail, first))
		return NULL;
	while (parse_take_op(p, '~'))
		if (!parse_add(p, n, &tail, parse_product(p)))
			return NULL;
	return n;
}

static struct node *parse_sum(struct parser *p)
{
	static const int ops[] = { '+', '-', 0 };

	return binary(p, parse_concat, ops);
}

/* The operator of a comparison, taken: 'i' for in, 'n' for not in; 0: there is none. */
static int take_comparison(struct parser *p)
{
	static const int ops[] = {
		OPERATOR2('=', '='), OPERATOR2('!', '='), OPERATOR2('<', '='), OPERATOR2('>', '='), '<', '>', 0
	};

	if (parse_take_name(p, "in"))
		return 'i';
	if (parse_is_name(p, "not") && p->then.type == TOKEN_NAME && p->then.n == 2 &&
	    memcmp(p->then.p, "in", 2) == 0) {
		parse_advance(p);
		parse_advance(p);
		return 'n';
	}
	return take_one(p, ops);
}

static struct node *parse_comparison(struct parser *p)
{
	struct node *first = parse_sum(p), *n = NULL, **tail = NULL;

	for (int op; first && !p->failed && (op = take_comparison(p));) {
		if (!n) {
			n = parse_pair(p, NODE_COMPARE, first->line, first, NULL);
			tail = n ? &n->first : NULL;
		}
		struct node *operand = parse_pair(p, NODE_OPERAND, p->now.line, parse_sum(p), NULL);
		if (operand)
			operand->op = op;
		if (!parse_add(p, n, &tail, operand))
			return NULL;
	}
	return p->failed ? NULL : n ? n : first;
}

static struct node *parse_not(struct parser *p)
{
	uint32_t line = p->now.line;

	if (!parse_is_name(p, "not"))
		return parse_comparison(p);
	if (!parse_enter(p))
		return NULL;
	parse_advance(p);
	struct node *n = parse_pair(p, NODE_NOT, line, parse_not(p), NULL);
	p->nesting--;
	return n;
}

static struct node *parse_and(struct parser *p)
{
	struct node *n = parse_not(p);

	while (n && parse_take_name(p, "and"))
		n = parse_pair(p, NODE_AND, n->line, n, parse_not(p));
	return p->failed ? NULL : n;
}

static struct node *parse_or(struct parser *p)
{
	struct node *n = parse_and(p);

	while (n && parse_take_name(p, "or"))
		n = parse_pair(p, NODE_OR, n->line, n, parse_and(p));
	return p->failed ? NULL : n;
}

struct node *parse_expression(struct parser *p)
{
	if (!parse_enter(p))
		return NULL;
	struct node *n = parse_or(p);
	while (n && parse_take_name(p, "if")) {
		struct node *test = parse_or(p), *other = NULL;
		if (test && parse_take_name(p, "else") && !(other = parse_expression(p)))
			return NULL;
		struct node *choice = parse_pair(p, NODE_CHOICE, n->line, test, n);
		n = parse_deepen(p, choice, other);
		if (n)
			n->c = other;
	}
	p->nesting--;
	return p->failed ? NULL : n;
}

struct node *parse_tuple(struct parser *p, bool conditions, const char *end)
{
	struct node *first = NULL, *n = NULL, **tail = NULL;
	uint32_t line = p->now.line;

	for (;;) {
		bool done = p->now.type == TOKEN_PRINT_END || p->now.type == TOKEN_BLOCK_END ||
		            (p->now.type == TOKEN_OPERATOR && end[0] == ')' && parse_is_op(p, ')')) ||
		            (end[0] != ')' && end[0] && parse_is_name(p, end));
		if (done && (n || (!first && end[0] == ')')))
			return n ? n : parse_node(p, NODE_TUPLE, line);
		struct node *part = conditions ? parse_expression(p) : parse_or(p);
		if (!part)
			return NULL;
		if (n && !parse_add(p, n, &tail, part))
			return NULL;
		first = first ? first : part;
		if (!parse_is_op(p, ','))
			return n ? n : first;
		parse_advance(p);
		if (!n) {
			n = parse_node(p, NODE_TUPLE, line);
			tail = n ? &n->first : NULL;
			if (!parse_add(p, n, &tail, first))
				return NULL;
		}
	}
}

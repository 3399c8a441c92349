/* chat/jinja_primary.c - tokens become the parts of expressions that operators stand between.
 *
 * Owns: names, literals, and what follows them: subscripts, calls, filters and tests.
 * Never: nests deeper than CHAT_MAX_NESTING.
 */
#include <string.h>

#include "chat/jinja.h"

static struct node *constant(struct parser *p, uint32_t line, struct value v)
{
	struct node *n = parse_node(p, NODE_CONSTANT, line);

	if (n)
		n->constant = v;
	return n;
}

static struct node *text_constant(struct parser *p, uint32_t line, const char *s, size_t n_s)
{
	struct node *n = parse_node(p, NODE_CONSTANT, line);

	if (!n)
		return NULL;
	n->name = (struct text){ .p = s, .n = n_s };
	n->constant = (struct value){ .kind = KIND_TEXT, .text = &n->name };
	return n;
}

/* ---- what stands by itself */

/* Strings that follow each other are one. */
static struct node *parse_strings(struct parser *p)
{
	uint32_t line = p->now.line;
	const char *s = p->now.p;
	size_t n = p->now.n;

	parse_advance(p);
	while (!p->failed && p->now.type == TOKEN_STRING) {
		char *joined = memory_take(p->memory, n + p->now.n, NULL);
		if (!joined)
			return parse_fail(p, NULL);
		memcpy(joined, s, n);
		memcpy(joined + n, p->now.p, p->now.n);
		s = joined;
		n += p->now.n;
		parse_advance(p);
	}
	return p->failed ? NULL : text_constant(p, line, s, n);
}

static struct node *parse_list(struct parser *p)
{
	struct node *n = parse_node(p, NODE_LIST, p->now.line), **tail = n ? &n->first : NULL;

	parse_advance(p);
	while (!p->failed && !parse_is_op(p, ']')) {
		if (!parse_add(p, n, &tail, parse_expression(p)) || (!parse_is_op(p, ']') && !parse_expect_op(p, ',')))
			return NULL;
	}
	return parse_expect_op(p, ']') ? n : NULL;
}

static struct node *parse_dict(struct parser *p)
{
	struct node *n = parse_node(p, NODE_DICT, p->now.line), **tail = n ? &n->first : NULL;

	parse_advance(p);
	while (!p->failed && !parse_is_op(p, '}')) {
		uint32_t line = p->now.line;
		struct node *key = parse_expression(p);
		if (!key || !parse_expect_op(p, ':'))
			return NULL;
		if (!parse_add(p, n, &tail, parse_pair(p, NODE_PAIR, line, key, parse_expression(p))) ||
		    (!parse_is_op(p, '}') && !parse_expect_op(p, ',')))
			return NULL;
	}
	return parse_expect_op(p, '}') ? n : NULL;
}

static struct node *parse_name(struct parser *p)
{
	static const struct {
		const char *name;
		enum kind kind;
		bool truth;
	} fixed[] = {
		{ "true", KIND_BOOL, true },   { "True", KIND_BOOL, true },  { "false", KIND_BOOL, false },
		{ "False", KIND_BOOL, false }, { "none", KIND_NONE, false }, { "None", KIND_NONE, false },
	};
	struct token t = p->now;

	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (parse_take_name(p, fixed[i].name))
			return constant(p, t.line,
			                (struct value){ .kind = (uint8_t)fixed[i].kind, .truth = fixed[i].truth });
	struct node *n = parse_node(p, NODE_NAME, t.line);
	if (n)
		n->name = (struct text){ .p = t.p, .n = t.n };
	parse_advance(p);
	return n;
}

static struct node *parse_primary(struct parser *p)
{
	struct token t = p->now;
	struct node *n;

	switch (t.type) {
	case TOKEN_NAME: return parse_name(p);
	case TOKEN_STRING: return parse_strings(p);
	case TOKEN_INTEGER: parse_advance(p); return constant(p, t.line, value_int(t.integer));
	case TOKEN_FLOAT: parse_advance(p); return constant(p, t.line, value_float(t.real));
	default: break;
	}
	if (parse_is_op(p, '['))
		return parse_list(p);
	if (parse_is_op(p, '{'))
		return parse_dict(p);
	if (!parse_take_op(p, '('))
		return parse_fail(p, "an expression");
	n = parse_tuple(p, true, ")");
	return n && parse_expect_op(p, ')') ? n : NULL;
}

/* ---- what follows a value: subscripts, calls, filters, tests */

static struct node *argument(struct parser *p)
{
	uint32_t line = p->now.line;
	enum node_type type = NODE_ARGUMENT;
	struct text name = { 0 };

	if (parse_take_op(p, '*')) {
		type = NODE_SPREAD;
	} else if (parse_take_op(p, OPERATOR2('*', '*'))) {
		type = NODE_SPREAD_KEYWORDS;
	} else if (p->now.type == TOKEN_NAME && p->then.type == TOKEN_OPERATOR && p->then.op == '=') {
		type = NODE_KEYWORD;
		name = (struct text){ .p = p->now.p, .n = p->now.n };
		parse_advance(p);
		parse_advance(p);
	}
	struct node *n = parse_pair(p, type, line, parse_expression(p), NULL);
	if (n)
		n->name = name;
	return n;
}

/* Arguments come in this order: without a name, with one or *, **. */
static bool parse_arguments(struct parser *p, struct node *n)
{
	struct node **tail = &n->first;
	enum node_type before = NODE_ARGUMENT;

	if (!parse_expect_op(p, '('))
		return false;
	while (!p->failed && !parse_is_op(p, ')')) {
		struct node *a = argument(p);
		if (!a)
			return false;
		bool ok = a->type == NODE_ARGUMENT ? before == NODE_ARGUMENT
		          : a->type == NODE_SPREAD ? before != NODE_SPREAD && before != NODE_SPREAD_KEYWORDS
		                                   : before != NODE_SPREAD_KEYWORDS;
		if (!ok)
			return parse_fail(p, "arguments without names first, then those with names") != NULL;
		before = (enum node_type)a->type;
		if (!parse_add(p, n, &tail, a) || (!parse_is_op(p, ')') && !parse_expect_op(p, ',')))
			return false;
	}
	return parse_expect_op(p, ')');
}

static struct node *parse_call(struct parser *p, struct node *of)
{
	struct node *n = parse_pair(p, NODE_CALL, p->now.line, of, NULL);

	return n && parse_arguments(p, n) ? n : NULL;
}

/* A bound of a slice behind its first colon, or None. */
static struct node *bound(struct parser *p)
{
	if (parse_is_op(p, ':') || parse_is_op(p, ']'))
		return constant(p, p->now.line, value_none());
	return parse_expression(p);
}

/* Subscripts with commas between are a tuple, which a dictionary may have as a key. */
static struct node *several(struct parser *p, struct node *first)
{
	struct node *n = parse_node(p, NODE_TUPLE, p->now.line), **tail = n ? &n->first : NULL;

	while (first) {
		if (!parse_add(p, n, &tail, first) || !parse_take_op(p, ',') || parse_is_op(p, ']'))
			break;
		first = parse_expression(p);
	}
	return p->failed ? NULL : n;
}

static struct node *parse_subscript(struct parser *p, struct node *of)
{
	uint32_t line = p->now.line;
	struct node *from = parse_is_op(p, ':') ? constant(p, line, value_none()) : parse_expression(p), *n, **tail;

	if (from && parse_is_op(p, ','))
		return parse_pair(p, NODE_ITEM, line, of, several(p, from));
	if (!from || !parse_is_op(p, ':'))
		return from ? parse_pair(p, NODE_ITEM, line, of, from) : NULL;
	n = parse_pair(p, NODE_SLICE, line, of, NULL);
	tail = n ? &n->first : NULL;
	parse_advance(p);
	if (!parse_add(p, n, &tail, from) || !parse_add(p, n, &tail, bound(p)))
		return NULL;
	struct node *step = parse_take_op(p, ':') ? bound(p) : constant(p, line, value_none());
	return parse_add(p, n, &tail, step) ? n : NULL;
}

static struct node *parse_attribute(struct parser *p, struct node *of)
{
	struct token t = p->now;
	struct node *n;

	if (t.type == TOKEN_INTEGER) {
		parse_advance(p);
		return parse_pair(p, NODE_ITEM, t.line, of, constant(p, t.line, value_int(t.integer)));
	}
	if (t.type != TOKEN_NAME)
		return parse_fail(p, "a name or a number behind '.'");
	n = parse_pair(p, NODE_ATTRIBUTE, t.line, of, NULL);
	if (n)
		n->name = (struct text){ .p = t.p, .n = t.n };
	parse_advance(p);
	return n;
}

static struct node *parse_postfix(struct parser *p, struct node *n)
{
	while (n && !p->failed) {
		if (parse_take_op(p, '.')) {
			n = parse_attribute(p, n);
		} else if (parse_is_op(p, '[')) {
			parse_advance(p);
			n = parse_is_op(p, ']')
			            ? parse_pair(p, NODE_ITEM, p->now.line, n, parse_node(p, NODE_TUPLE, p->now.line))
			            : parse_subscript(p, n);
			if (n && !parse_expect_op(p, ']'))
				return NULL;
		} else if (parse_is_op(p, '(')) {
			n = parse_call(p, n);
		} else {
			break;
		}
	}
	return p->failed ? NULL : n;
}

struct node *parse_filters(struct parser *p, struct node *of, bool first_is_here)
{
	while (!p->failed && (first_is_here || parse_take_op(p, '|'))) {
		struct token t = p->now;
		first_is_here = false;
		if (t.type != TOKEN_NAME)
			return parse_fail(p, "the name of a filter");
		struct node *n = parse_pair(p, NODE_FILTER, t.line, of, NULL);
		if (!n)
			return NULL;
		n->name = (struct text){ .p = t.p, .n = t.n };
		n->number = find_filter(t.p, t.n);
		parse_advance(p);
		if (parse_is_op(p, '(') && !parse_arguments(p, n))
			return NULL;
		of = n;
	}
	return p->failed ? NULL : of;
}

/* Whether a test's argument begins here, without brackets around it. */
static bool argument_follows(const struct parser *p)
{
	if (p->now.type == TOKEN_NAME)
		return !parse_is_name(p, "else") && !parse_is_name(p, "or") && !parse_is_name(p, "and");
	return p->now.type == TOKEN_STRING || p->now.type == TOKEN_INTEGER || p->now.type == TOKEN_FLOAT ||
	       parse_is_op(p, '[') || parse_is_op(p, '{');
}

static struct node *parse_test(struct parser *p, struct node *of)
{
	bool negated = parse_take_name(p, "not");
	struct token t = p->now;

	if (t.type != TOKEN_NAME)
		return parse_fail(p, "the name of a test behind 'is'");
	struct node *n = parse_pair(p, NODE_TEST, t.line, of, NULL);
	if (!n)
		return NULL;
	n->name = (struct text){ .p = t.p, .n = t.n };
	n->number = find_test(t.p, t.n);
	parse_advance(p);
	if (parse_is_op(p, '(')) {
		if (!parse_arguments(p, n))
			return NULL;
	} else if (argument_follows(p)) {
		if (parse_is_name(p, "is"))
			return parse_fail(p, "no second 'is'");
		struct node **tail = &n->first;
		if (!parse_add(p, n, &tail,
		               parse_pair(p, NODE_ARGUMENT, p->now.line, parse_postfix(p, parse_primary(p)), NULL)))
			return NULL;
	}
	return negated ? parse_pair(p, NODE_NOT, t.line, n, NULL) : n;
}

struct node *parse_unary(struct parser *p, bool filters)
{
	uint32_t line = p->now.line;
	struct node *n;

	if (!parse_enter(p))
		return NULL;
	if (parse_take_op(p, '-'))
		n = parse_pair(p, NODE_NEGATE, line, parse_unary(p, false), NULL);
	else if (parse_take_op(p, '+'))
		n = parse_pair(p, NODE_PLUS, line, parse_unary(p, false), NULL);
	else
		n = parse_primary(p);
	n = parse_postfix(p, n);
	while (filters && n && !p->failed) {
		if (parse_is_op(p, '|'))
			n = parse_filters(p, n, false);
		else if (parse_take_name(p, "is"))
			n = parse_test(p, n);
		else if (parse_is_op(p, '('))
			n = parse_call(p, n);
		else
			break;
	}
	p->nesting--;
	return p->failed ? NULL : n;
}

/* chat/jinja_statement.c - tokens become statements.
 *
 * Owns: which statements there are. What Jinja has and no chat template uses (include, import, extends, block) is
 * refused. Never: nests deeper than CHAT_MAX_NESTING.
 */
#include <string.h>

#include "chat/jinja.h"

/* ---- targets and parameters */

static struct node *name_node(struct parser *p, enum node_type type)
{
	struct token t = p->now;

	if (t.type != TOKEN_NAME)
		return parse_fail(p, "a name");
	struct node *n = parse_node(p, type, t.line);
	if (n)
		n->name = (struct text){ .p = t.p, .n = t.n };
	parse_advance(p);
	return n;
}

/* A name, some between commas or brackets, or with members a name's attribute. */
static struct node *parse_target(struct parser *p, bool names_only, bool members)
{
	struct node *first, *n, **tail;
	uint32_t line = p->now.line;

	if (!parse_enter(p))
		return NULL;
	if (!names_only && parse_take_op(p, '(')) {
		first = parse_target(p, false, members);
		if (!first || !parse_expect_op(p, ')'))
			return NULL;
	} else {
		static const char *const fixed[] = { "true", "false", "none", "True", "False", "None" };
		for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
			if (parse_is_name(p, fixed[i]))
				return parse_fail(p, "a name that can be assigned to");
		first = name_node(p, NODE_NAME);
		if (first && members && parse_take_op(p, '.')) {
			n = name_node(p, NODE_NAMESPACE_MEMBER);
			if (!n)
				return NULL;
			n->a = first;
			first = n;
		}
	}
	p->nesting--;
	if (!first || names_only || !parse_is_op(p, ','))
		return first;
	n = parse_node(p, NODE_TUPLE, line);
	if (!n)
		return NULL;
	for (tail = &n->first; first;) {
		*tail = first;
		tail = &first->next;
		if (!parse_take_op(p, ',') || parse_is_name(p, "in") || parse_is_op(p, '=') || parse_is_op(p, ')'))
			break;
		if (parse_is_op(p, '(')) {
			parse_advance(p);
			first = parse_target(p, false, members);
			if (!first || !parse_expect_op(p, ')'))
				return NULL;
		} else {
			first = parse_target(p, true, members);
		}
	}
	return p->failed ? NULL : n;
}

/* Whether a macro's next parameter may have this name. */
static bool check_parameter(struct parser *p, const struct node *list, const struct node *n)
{
	enum { PARAMETERS_MAX = 255 };
	unsigned count = 0;

	if (p->failed)
		return false;
	for (const struct node *one = list->first; one; one = one->next, count++)
		p->failed |= text_same(&one->name, &n->name);
	if (p->failed)
		return lex_fail(&p->lex, n->line, "a macro has two parameters of the name '%.*s'", (int)n->name.n,
		                n->name.p);
	p->failed = count >= PARAMETERS_MAX;
	return !p->failed || lex_fail(&p->lex, n->line, "a macro has over %d parameters", PARAMETERS_MAX);
}

/* (a, b=1) of a macro: a chain. */
static struct node *parse_parameters(struct parser *p)
{
	struct node *list = parse_node(p, NODE_TUPLE, p->now.line), **tail = list ? &list->first : NULL;
	bool defaults = false;

	if (!parse_expect_op(p, '('))
		return NULL;
	while (!p->failed && !parse_is_op(p, ')')) {
		struct node *n = name_node(p, NODE_PARAMETER);
		if (!n || !check_parameter(p, list, n))
			return NULL;
		if (parse_take_op(p, '=')) {
			defaults = true;
			n->b = parse_expression(p);
		} else if (defaults) {
			return parse_fail(p, "a default value, as the parameter before has one");
		}
		*tail = n;
		tail = &n->next;
		if (!parse_is_op(p, ')') && !parse_expect_op(p, ','))
			return NULL;
	}
	return parse_expect_op(p, ')') ? list : NULL;
}

/* ---- statements; each is called with its name as the token that is there */

/* "%}", a body, and the name of its end. */
static bool block_body(struct parser *p, struct node *n, const char *end)
{
	const char *const ends[] = { end, NULL };

	if (!n || p->failed || !parse_expect(p, TOKEN_BLOCK_END))
		return false;
	n->first = parse_body(p, ends);
	return parse_expect_name(p, end);
}

static struct node *parse_if(struct parser *p)
{
	static const char *const ends[] = { "elif", "else", "endif", NULL };
	struct node *n = parse_node(p, NODE_IF, p->now.line), **tail = n ? &n->first : NULL;
	bool last = false;

	while (!p->failed && !parse_is_name(p, "endif")) {
		struct node *branch = parse_node(p, NODE_BRANCH, p->now.line);
		if (last)
			return parse_fail(p, "'endif'");
		last = parse_is_name(p, "else");
		parse_advance(p);
		if (!branch || (!last && !(branch->a = parse_tuple(p, false, ""))) || !parse_expect(p, TOKEN_BLOCK_END))
			return NULL;
		branch->first = parse_body(p, ends);
		*tail = branch;
		tail = &branch->next;
	}
	return parse_expect_name(p, "endif") ? n : NULL;
}

static struct node *parse_for(struct parser *p)
{
	static const char *const ends[] = { "endfor", "else", NULL };
	struct node *n = parse_node(p, NODE_FOR, p->now.line);

	parse_advance(p);
	if (!n || !(n->a = parse_target(p, false, false)) || !parse_expect_name(p, "in") ||
	    !(n->b = parse_tuple(p, false, "recursive")))
		return NULL;
	for (const struct node *name = n->a->type == NODE_TUPLE ? n->a->first : n->a; name; name = name->next)
		if (text_is(&name->name, "loop"))
			return parse_fail(p, "another name than 'loop' for a loop's items");
	if (parse_take_name(p, "if") && !(n->c = parse_expression(p)))
		return NULL;
	if (parse_is_name(p, "recursive"))
		return parse_fail(p, "'%}': recursive loops are not supported");
	if (!parse_expect(p, TOKEN_BLOCK_END))
		return NULL;
	p->loops++;
	n->first = parse_body(p, ends);
	p->loops--;
	if (parse_take_name(p, "else")) {
		struct node *other = parse_node(p, NODE_SCOPE, p->now.line);
		n->other = other;
		return block_body(p, other, "endfor") ? n : NULL;
	}
	return parse_expect_name(p, "endfor") ? n : NULL;
}

static struct node *parse_set(struct parser *p)
{
	struct node *n = parse_node(p, NODE_SET, p->now.line);

	parse_advance(p);
	if (!n || !(n->a = parse_target(p, false, true)))
		return NULL;
	if (parse_take_op(p, '='))
		return (n->b = parse_tuple(p, true, "")) ? n : NULL;
	n->type = NODE_SET_BLOCK;
	if (parse_is_op(p, '|') && !(n->b = parse_filters(p, NULL, false)))
		return NULL;
	return block_body(p, n, "endset") ? n : NULL;
}

/* Break and continue belong to the loops of a macro's own body. */
static bool macro_body(struct parser *p, struct node *n, const char *end)
{
	unsigned loops = p->loops;

	p->loops = 0;
	bool ok = block_body(p, n, end);
	p->loops = loops;
	return ok;
}

/* Whether the tree uses the name. */
static bool uses_name(const struct node *n, const char *name)
{
	for (; n; n = n->next)
		if ((n->type == NODE_NAME && text_is(&n->name, name)) || uses_name(n->a, name) ||
		    uses_name(n->b, name) || uses_name(n->c, name) || uses_name(n->first, name) ||
		    uses_name(n->other, name))
			return true;
	return false;
}

/* A macro takes more arguments than it has parameters when it asks for them. */
static void note_rest(struct node *n)
{
	n->op = (uses_name(n->first, "varargs") ? MACRO_VARARGS : 0) |
	        (uses_name(n->first, "kwargs") ? MACRO_KWARGS : 0);
}

static struct node *parse_macro(struct parser *p)
{
	parse_advance(p);
	struct node *n = name_node(p, NODE_MACRO);
	if (!n || !(n->other = parse_parameters(p)))
		return NULL;
	if (!macro_body(p, n, "endmacro"))
		return NULL;
	note_rest(n);
	return n;
}

static struct node *parse_call_block(struct parser *p)
{
	struct node *n = parse_node(p, NODE_CALL_BLOCK, p->now.line);

	parse_advance(p);
	if (!n || (parse_is_op(p, '(') && !(n->other = parse_parameters(p))))
		return NULL;
	uint32_t line = p->now.line;
	n->a = parse_expression(p);
	if (n->a && n->a->type != NODE_CALL) {
		p->failed = true;
		lex_fail(&p->lex, line, "expected a call of a macro behind 'call'");
		return NULL;
	}
	n->name = (struct text){ .p = "caller", .n = 6 };
	if (!n->a || !macro_body(p, n, "endcall"))
		return NULL;
	note_rest(n);
	return n;
}

static struct node *parse_filter_block(struct parser *p)
{
	struct node *n = parse_node(p, NODE_FILTER_BLOCK, p->now.line);

	parse_advance(p);
	if (!n || !(n->b = parse_filters(p, NULL, true)))
		return NULL;
	return macro_body(p, n, "endfilter") ? n : NULL;
}

static struct node *parse_with(struct parser *p)
{
	struct node *n = parse_node(p, NODE_WITH, p->now.line), **tail = n ? &n->other : NULL;

	parse_advance(p);
	while (!p->failed && p->now.type != TOKEN_BLOCK_END) {
		struct node *one = parse_node(p, NODE_SET, p->now.line);
		if (!one || !(one->a = parse_target(p, true, false)) || !parse_expect_op(p, '=') ||
		    !(one->b = parse_expression(p)))
			return NULL;
		*tail = one;
		tail = &one->next;
		if (p->now.type != TOKEN_BLOCK_END && !parse_expect_op(p, ','))
			return NULL;
	}
	return block_body(p, n, "endwith") ? n : NULL;
}

/* What only marks a part of the text, for training. */
static struct node *parse_generation(struct parser *p)
{
	struct node *n = parse_node(p, NODE_SCOPE, p->now.line);

	parse_advance(p);
	return macro_body(p, n, "endgeneration") ? n : NULL;
}

static struct node *parse_jump(struct parser *p, enum node_type type)
{
	struct node *n = parse_node(p, type, p->now.line);

	if (!p->loops)
		return parse_fail(p, "break and continue inside a loop alone");
	parse_advance(p);
	return n;
}

static struct node *parse_print(struct parser *p)
{
	struct node *list = NULL, **tail = &list;

	parse_advance(p);
	while (!p->failed && p->now.type != TOKEN_BLOCK_END) {
		struct node *n = parse_node(p, NODE_PRINT, p->now.line);
		if (!n || !(n->a = parse_expression(p)))
			return NULL;
		*tail = n;
		tail = &n->next;
		if (p->now.type != TOKEN_BLOCK_END && !parse_expect_op(p, ','))
			return NULL;
	}
	struct node *scope = parse_node(p, NODE_IF, p->now.line), *branch = parse_node(p, NODE_BRANCH, p->now.line);
	if (!scope || !branch)
		return NULL;
	scope->first = branch; /* an else without an if: no scope of its own */
	branch->first = list;
	return scope;
}

static struct node *parse_statement(struct parser *p)
{
	static const struct {
		const char *name;
		struct node *(*parse)(struct parser *);
	} rows[] = {
		{ "if", parse_if },           { "for", parse_for },
		{ "set", parse_set },         { "macro", parse_macro },
		{ "call", parse_call_block }, { "filter", parse_filter_block },
		{ "with", parse_with },       { "generation", parse_generation },
		{ "print", parse_print },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (parse_is_name(p, rows[i].name))
			return rows[i].parse(p);
	if (parse_is_name(p, "break"))
		return parse_jump(p, NODE_BREAK);
	if (parse_is_name(p, "continue"))
		return parse_jump(p, NODE_CONTINUE);
	return parse_fail(
		p,
		"a statement (if, for, set, macro, call, filter, with, break, continue, generation or the end of one)");
}

static bool at_end(const struct parser *p, const char *const *ends)
{
	for (; ends && *ends; ends++)
		if (parse_is_name(p, *ends))
			return true;
	return false;
}

static struct node *data_node(struct parser *p)
{
	struct node *n = parse_node(p, NODE_DATA, p->now.line);

	if (n)
		n->name = (struct text){ .p = p->now.p, .n = p->now.n };
	parse_advance(p);
	return n;
}

static struct node *print_node(struct parser *p)
{
	parse_advance(p);
	struct node *n = parse_node(p, NODE_PRINT, p->now.line);
	if (!n || !(n->a = parse_tuple(p, true, "")))
		return NULL;
	return parse_expect(p, TOKEN_PRINT_END) ? n : NULL;
}

struct node *parse_body(struct parser *p, const char *const *ends)
{
	struct node *first = NULL, **tail = &first, *n = NULL;

	if (!parse_enter(p))
		return NULL;
	while (!p->failed) {
		if (p->now.type == TOKEN_END && !ends)
			break;
		if (p->now.type == TOKEN_END) {
			parse_fail(p, ends[1] ? "the end of a block" : ends[0]);
		} else if (p->now.type == TOKEN_DATA) {
			n = data_node(p);
		} else if (p->now.type == TOKEN_PRINT) {
			n = print_node(p);
		} else {
			parse_advance(p);
			if (at_end(p, ends))
				break;
			n = parse_statement(p);
			if (n)
				parse_expect(p, TOKEN_BLOCK_END);
		}
		if (p->failed)
			return NULL;
		*tail = n;
		tail = &n->next;
	}
	p->nesting--;
	return p->failed ? NULL : first;
}

/* language/parse_statement.c - statements and blocks. */
#include "language/parse.h"

#include <string.h>

/* Goes on behind the next ; or before the } that closes the block. */
void jk_skip_statement(struct parser *p)
{
	unsigned open = 0;

	for (; p->at->kind != TOKEN_END; p->at++) {
		if (p->at->kind == TOKEN_fn || p->at->kind == TOKEN_kernel || p->at->kind == TOKEN_const)
			return; /* a } lacks: what follows is another declaration */
		if (jk_is_mark(p, MARK_OPEN_BRACE)) {
			open++;
		} else if (jk_is_mark(p, MARK_CLOSE_BRACE)) {
			if (!open)
				break;
			if (!--open) {
				p->at++;
				break;
			}
		} else if (jk_is_mark(p, MARK_SEMICOLON) && !open) {
			p->at++;
			break;
		}
	}
	p->lost = false;
}

/* --- declarations */

static struct node *parse_declarator(struct parser *p, unsigned type)
{
	struct node *n = jk_node_new(p, NODE_DECLARE, jk_location_of(p->at));
	struct symbol *s = jk_declare_later(p, SYMBOL_LOCAL, type, "the name of a variable");
	char what[120];

	if (!s)
		return n;
	n->symbol = s;
	if (jk_is_mark(p, MARK_OPEN_BRACKET)) {
		s->kind = SYMBOL_PRIVATE;
		s->extent = jk_parse_extents(p, s);
		if (jk_is_mark(p, MARK_SET)) {
			jk_expected(p, "; behind an array, whose elements begin as 0");
			return n;
		}
		if (p->lanes && p->kernel && p->kernel->cooperates)
			s->access = JK_INOUT; /* one for each lane */
	} else if (jk_take_mark(p, MARK_SET)) {
		n->a = jk_parse_expression(p);
		snprintf(what, sizeof what, "value of %.60s", s->name->text);
		jk_type_expect(p->m, n->a, type, what);
	} else {
		jk_expected(p, "= and a first value");
		return n;
	}
	if (!type_is_value(type) || (s->dims && type == JK_BOOL))
		jk_message_add(p->m, s->at, "%s is a type of elements of parameters alone; write %s",
		               jk_type_text(type), type == JK_BOOL ? "u32" : jk_type_text(jk_type_widened(type)));
	jk_declare_now(p, s);
	return n;
}

static struct node *parse_declaration(struct parser *p)
{
	struct node *first = NULL, **last = &first;
	const unsigned type = jk_take_type(p);

	do {
		*last = parse_declarator(p, type);
		last = &(*last)->next;
	} while (!p->lost && jk_take_mark(p, MARK_COMMA));
	jk_expect_mark(p, MARK_SEMICOLON, "behind a declaration");
	return first;
}

/* --- assignments */

static unsigned assignment_at(const struct parser *p)
{
	static const uint8_t mark[] = { MARK_ADD_SET, MARK_SUB_SET, MARK_MUL_SET, MARK_DIV_SET, MARK_REM_SET,
		                        MARK_AND_SET, MARK_OR_SET,  MARK_XOR_SET, MARK_SHL_SET, MARK_SHR_SET };

	for (unsigned k = 0; k < sizeof mark; k++)
		if (jk_is_mark(p, mark[k]))
			return OP_ADD + k;
	return OP_NONE;
}

/* Whether the name may be written; says why not. */
static void check_target(struct parser *p, const struct symbol *s, struct source_location at)
{
	static const char *const what[] = {
		"a constant", "a constant", "a function", "a kernel", "a parameter of a kernel", "an array", "an index"
	};

	if (s->kind == SYMBOL_ARRAY && s->access == JK_IN)
		jk_message_add(p->m, at, "%.60s is only read; make it out or inout to write it", s->name->text);
	else if (s->kind <= SYMBOL_INDEX && s->kind != SYMBOL_ARRAY)
		jk_message_add(p->m, at, "%.60s is %s, and cannot be assigned; declare a variable", s->name->text,
		               what[s->kind]);
}

/* A variable or an element that is written. */
struct node *jk_parse_target(struct parser *p)
{
	const struct source_location at = jk_location_of(p->at);
	struct symbol *s;
	struct node *n;

	if (p->at->kind != TOKEN_NAME) {
		jk_expected(p, "a statement");
		return jk_node_wrong(p);
	}
	s = jk_look_up(p);
	if (!s) {
		p->lost = true;
		return jk_node_new(p, NODE_WRONG, at);
	}
	check_target(p, s, at);
	if (s->dims && s->kind != SYMBOL_KERNEL && s->kind != SYMBOL_FN)
		return jk_parse_element(p, s, at);
	s->assigned = true;
	n = jk_node_new(p, NODE_NAME, at);
	n->symbol = s;
	n->type = s->kind <= SYMBOL_KERNEL ? TYPE_WRONG : s->type;
	return n;
}

static struct node *parse_assignment(struct parser *p)
{
	struct node *n = jk_node_new(p, NODE_ASSIGN, jk_location_of(p->at));
	char what[100];

	n->a = jk_parse_target(p);
	if (p->lost)
		return n;
	if (jk_is_mark(p, MARK_INCREMENT) || jk_is_mark(p, MARK_DECREMENT)) {
		jk_expected(p, jk_is_mark(p, MARK_INCREMENT) ? "+= 1" : "-= 1");
		return n;
	}
	n->at = jk_location_of(p->at);
	n->op = (uint8_t)assignment_at(p);
	if (n->op) {
		p->at++;
		if (n->a->kind == NODE_ELEMENT && n->a->symbol->access == JK_OUT && n->a->symbol->kind == SYMBOL_ARRAY)
			jk_message_add(p->m, n->a->at, "%.60s is only written; make it inout to read it",
			               n->a->symbol->name->text);
	} else if (!jk_expect_mark(p, MARK_SET, "behind what is assigned")) {
		return n;
	}
	n->b = jk_parse_expression(p);
	if (n->op) {
		struct node whole = { .kind = NODE_BINARY, .op = n->op, .at = n->at, .a = n->a, .b = n->b };
		jk_type_binary(p->m, &whole);
		jk_type_expect(p->m, &whole, n->a->type, "value");
	} else {
		snprintf(what, sizeof what, "value of %.60s", n->a->symbol ? n->a->symbol->name->text : "this");
		jk_type_expect(p->m, n->b, n->a->type, what);
	}
	jk_expect_mark(p, MARK_SEMICOLON, "behind an assignment");
	return n;
}

/* --- control */

static struct node *parse_statement(struct parser *p);

static struct node *parse_body(struct parser *p)
{
	if (jk_is_mark(p, MARK_OPEN_BRACE))
		return jk_parse_block(p);
	if (!jk_is_type(p))
		return parse_statement(p);
	jk_expected(p, "{ before a declaration");
	return jk_node_wrong(p);
}

static struct node *parse_if(struct parser *p)
{
	struct node *n = jk_node_new(p, NODE_IF, jk_location_of(p->at++));

	if (!jk_enter(p))
		return n;
	if (jk_expect_mark(p, MARK_OPEN, "behind if")) {
		n->a = jk_parse_expression(p);
		jk_type_expect(p->m, n->a, JK_BOOL, "condition of if");
		jk_expect_mark(p, MARK_CLOSE, "behind the condition");
	}
	if (!p->lost)
		n->b = parse_body(p);
	if (!p->lost && p->at->kind == TOKEN_else) {
		p->at++;
		n->c = p->at->kind == TOKEN_if ? parse_if(p) : parse_body(p);
	}
	jk_leave(p);
	return n;
}

struct symbol *jk_parse_loop_index(struct parser *p, const char *word)
{
	char what[60];
	struct symbol *s;

	snprintf(what, sizeof what, "behind %s", word);
	if (!jk_expect_mark(p, MARK_OPEN, what) ||
	    !(s = jk_declare_later(p, SYMBOL_INDEX, JK_I32, "the name of an index")))
		return NULL;
	if (p->at->kind == TOKEN_in) {
		p->at++;
		return s;
	}
	snprintf(what, sizeof what, "in behind the index, such as %s (k in 0..n)", word);
	jk_expected(p, what);
	return NULL;
}

void jk_parse_loop_body(struct parser *p, struct node *n)
{
	struct scope scope;

	jk_scope_open(p, &scope);
	if (n->symbol)
		jk_declare_now(p, n->symbol);
	if (!p->lost)
		n->d = parse_body(p);
	jk_scope_close(p);
}

static struct node *parse_for(struct parser *p)
{
	struct node *n = jk_node_new(p, NODE_FOR, jk_location_of(p->at++));

	n->symbol = jk_parse_loop_index(p, "for");
	if (!n->symbol)
		return n;
	n->symbol->type = (uint8_t)jk_parse_range(p, &n->a, &n->b, false);
	if (jk_is_word(p, "step")) {
		p->at++;
		n->c = jk_parse_expression(p);
		jk_type_expect(p->m, n->c, n->symbol->type, "step of a loop");
	}
	jk_expect_mark(p, MARK_CLOSE, "behind the range of a loop");
	if (jk_is_word(p, "unroll")) {
		p->at++;
		jk_expect_mark(p, MARK_OPEN, "behind unroll");
		p->tuning = true;
		n->e = jk_parse_expression(p);
		p->tuning = false;
		if (n->e->type == TYPE_WHOLE)
			jk_type_give(p->m, n->e, JK_I64, "unroll");
		else if (!type_is_int(n->e->type) && n->e->type != TYPE_WRONG)
			jk_message_add(p->m, n->e->at, "unroll: expected an integer, found %s",
			               jk_type_text(n->e->type));
		jk_expect_mark(p, MARK_CLOSE, "behind the value of unroll");
	}
	p->loops++;
	jk_parse_loop_body(p, n);
	p->loops--;
	return n;
}

static struct node *parse_while(struct parser *p)
{
	struct node *n = jk_node_new(p, NODE_WHILE, jk_location_of(p->at++));

	if (!jk_expect_mark(p, MARK_OPEN, "behind while"))
		return n;
	n->a = jk_parse_expression(p);
	jk_type_expect(p->m, n->a, JK_BOOL, "condition of while");
	jk_expect_mark(p, MARK_CLOSE, "behind the condition");
	if (!p->lost && !jk_is_word(p, "at"))
		jk_expected(p, "at most and a number of iterations, such as at most 1000");
	if (p->lost)
		return n;
	p->at++;
	if (!jk_is_word(p, "most")) {
		jk_expected(p, "most behind at");
		return n;
	}
	p->at++;
	n->b = jk_parse_expression(p);
	if (n->b->type == TYPE_WHOLE)
		jk_type_give(p->m, n->b, JK_I64, "bound of while");
	else if (!type_is_int(n->b->type) && n->b->type != TYPE_WRONG)
		jk_message_add(p->m, n->b->at, "bound of while: expected an integer, found %s",
		               jk_type_text(n->b->type));
	p->loops++;
	jk_parse_loop_body(p, n);
	p->loops--;
	return n;
}

static struct node *parse_break(struct parser *p)
{
	struct node *n = jk_node_new(p, NODE_BREAK, jk_location_of(p->at++));

	if (!p->loops)
		jk_message_add(p->m, n->at, "break leaves a for or while loop%s; write an if",
		               p->lanes ? ", and never an each" : ", and there is none around it");
	jk_expect_mark(p, MARK_SEMICOLON, "behind break");
	return n;
}

static struct node *parse_simple(struct parser *p)
{
	struct node *n = p->at->kind == TOKEN_NAME && !p->at->name->symbol ? jk_parse_scatter(p) : NULL;

	return n ? n : parse_assignment(p);
}

static struct node *parse_statement(struct parser *p)
{
	if (jk_is_type(p))
		return parse_declaration(p);
	switch (p->at->kind) {
	case TOKEN_if: return parse_if(p);
	case TOKEN_for: return parse_for(p);
	case TOKEN_while: return parse_while(p);
	case TOKEN_each: return jk_parse_each(p);
	case TOKEN_scan: return jk_parse_scan(p);
	case TOKEN_break: return parse_break(p);
	case TOKEN_tile: return jk_parse_tile(p);
	case TOKEN_sync: return jk_parse_sync(p);
	default: break;
	}
	return jk_is_mark(p, MARK_OPEN_BRACE) ? jk_parse_block(p) : parse_simple(p);
}

struct node *jk_parse_statements(struct parser *p)
{
	struct node *first = NULL, **last = &first;

	while (p->at->kind != TOKEN_END && !jk_is_mark(p, MARK_CLOSE_BRACE) && p->at->kind != TOKEN_return &&
	       p->m->n < JK_MAX_MESSAGES) {
		const struct token *begin = p->at;
		if (jk_take_mark(p, MARK_SEMICOLON))
			continue;
		const unsigned depth = p->depth, loops = p->loops, lanes = p->lanes;
		*last = parse_statement(p);
		while (*last)
			last = &(*last)->next;
		if (!p->lost)
			continue;
		p->depth = depth;
		p->loops = loops;
		p->lanes = lanes;
		if (p->at->kind == TOKEN_fn || p->at->kind == TOKEN_kernel || p->at->kind == TOKEN_const)
			break;
		if (p->at == begin && !jk_is_mark(p, MARK_SEMICOLON) && !jk_is_mark(p, MARK_OPEN_BRACE))
			p->at++;
		jk_skip_statement(p);
		if (p->lost)
			break;
	}
	return first;
}

struct node *jk_parse_block(struct parser *p)
{
	struct node *n = jk_node_new(p, NODE_COMPOUND, jk_location_of(p->at));
	struct scope scope;

	p->at++;
	if (!jk_enter(p))
		return n;
	jk_scope_open(p, &scope);
	n->a = jk_parse_statements(p);
	jk_scope_close(p);
	jk_leave(p);
	if (p->at->kind == TOKEN_return)
		jk_expected(p, "} before return, which is the last statement of a function");
	jk_expect_mark(p, MARK_CLOSE_BRACE, "behind statements");
	return n;
}

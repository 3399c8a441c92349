/* chat/go_template_pipeline.c - what stands in an action of Go's templates: declarations, commands, operands. */
#include <string.h>

#include "chat/go_template.h"

static bool enter(struct go_parser *p)
{
	if (p->nesting++ >= GO_MAX_NESTING)
		go_lex_fail(&p->lex, go_token(p)->line, "more than %d structures are nested in each other",
		            GO_MAX_NESTING);
	return !p->lex.failed;
}

/* ---- operands */

static bool is_known(const struct go_parser *p, const struct text *name)
{
	for (size_t i = p->hidden; i < p->n_variables; i++)
		if (text_same(&p->variable[i], name))
			return true;
	return text_is(name, "$");
}

static bool add_name(struct go_parser *p, struct go_name ***tail, const struct go_token *t)
{
	struct go_name *n = memory_take(p->memory, sizeof *n, NULL);

	if (!n)
		return go_lex_no_memory(&p->lex);
	*n = (struct go_name){ .text = { .p = t->p, .n = t->n } };
	**tail = n;
	*tail = &n->next;
	return true;
}

static struct go_node *word(struct go_parser *p, const struct go_token *t)
{
	const bool truth = go_token_is(t, "true");
	struct go_node *n = go_node_new(p, GO_NODE_FUNCTION, t->line);

	if (!n)
		return NULL;
	n->text = (struct text){ .p = t->p, .n = t->n };
	if (truth || go_token_is(t, "false")) {
		n->type = GO_NODE_BOOL;
		n->constant.truth = truth;
		return n;
	}
	if (go_token_is(t, "nil")) {
		n->type = GO_NODE_NIL;
		return n;
	}
	n->number = go_find_function(t->p, t->n);
	if (n->number == NO_NUMBER)
		go_lex_fail(&p->lex, t->line, "\"%.*s\" is no function, expected one of Go's or ollama's",
		            (int)(t->n < 40 ? t->n : 40), t->p);
	return n;
}

static struct go_node *variable(struct go_parser *p, const struct go_token *t)
{
	struct go_node *n = go_node_new(p, GO_NODE_VARIABLE, t->line);

	if (!n)
		return NULL;
	n->text = (struct text){ .p = t->p, .n = t->n };
	if (!is_known(p, &n->text))
		go_lex_fail(&p->lex, t->line, "the variable %.*s is not declared", (int)(t->n < 40 ? t->n : 40), t->p);
	return n;
}

/* NULL: the token begins none, or failed. */
static struct go_node *term(struct go_parser *p)
{
	const struct go_token *t = go_token(p);
	struct go_node *n = NULL;

	switch (t->type) {
	case GO_TOKEN_WORD: n = word(p, t); break;
	case GO_TOKEN_VARIABLE: n = variable(p, t); break;
	case GO_TOKEN_FIELD: n = go_node_new(p, GO_NODE_FIELD, t->line); break;
	case GO_TOKEN_DOT: n = go_node_new(p, GO_NODE_DOT, t->line); break;
	case GO_TOKEN_STRING:
		n = go_node_new(p, GO_NODE_STRING, t->line);
		if (n)
			go_unquote(p, t, &n->text);
		break;
	case GO_TOKEN_NUMBER:
	case GO_TOKEN_CHARACTER:
		n = go_node_new(p, GO_NODE_NUMBER, t->line);
		if (n)
			go_number(p, t, n);
		break;
	case GO_TOKEN_OPEN: p->now++; return go_parse_pipe(p, GO_TOKEN_CLOSE, "what stands in parentheses");
	default: return NULL;
	}
	p->now++;
	return n;
}

static bool takes_fields(const struct go_node *n)
{
	return n->type == GO_NODE_FIELD || n->type == GO_NODE_VARIABLE || n->type == GO_NODE_PIPE ||
	       n->type == GO_NODE_FUNCTION;
}

/* A term with the fields behind it. */
static struct go_node *operand(struct go_parser *p)
{
	const size_t first = p->now;
	struct go_node *n = term(p);

	if (!n || p->lex.failed)
		return NULL;
	struct go_name **tail = &n->name;
	if (n->type == GO_NODE_FIELD && !add_name(p, &tail, &p->lex.token[first]))
		return NULL;
	if (go_token(p)->type != GO_TOKEN_FIELD || go_token(p)->space)
		return n;
	if (!takes_fields(n))
		return go_parse_fail(p, "no field behind a constant or a dot");
	if (n->type == GO_NODE_PIPE || n->type == GO_NODE_FUNCTION) {
		struct go_node *chain = go_node_new(p, GO_NODE_CHAIN, n->line);
		if (!chain)
			return NULL;
		chain->first = n;
		n = chain;
		tail = &n->name;
	}
	while (go_token(p)->type == GO_TOKEN_FIELD && !go_token(p)->space)
		if (!add_name(p, &tail, &p->lex.token[p->now++]))
			return NULL;
	return n;
}

/* ---- commands */

static bool ends_command(const struct go_token *t)
{
	return t->type == GO_TOKEN_END || t->type == GO_TOKEN_CLOSE || t->type == GO_TOKEN_PIPE;
}

static struct go_node *command(struct go_parser *p)
{
	struct go_node *c = go_node_new(p, GO_NODE_COMMAND, go_token(p)->line), **tail = c ? &c->first : NULL;

	while (c && !p->lex.failed) {
		struct go_node *n = operand(p);
		if (!n)
			return p->lex.failed ? NULL : go_parse_fail(p, "an operand");
		*tail = n;
		tail = &n->next;
		if (ends_command(go_token(p)))
			return c;
		if (!go_token(p)->space)
			return go_parse_fail(p, "a space between operands, | or }}");
	}
	return NULL;
}

/* One variable or, in a range, two. */
static bool declarations(struct go_parser *p, struct go_node *pipe, bool range)
{
	struct go_node **tail = &pipe->declared;

	for (unsigned i = 0; go_token(p)->type == GO_TOKEN_VARIABLE; i++) {
		const struct go_token *t = go_token(p), *next = t + 1;
		const bool comma = next->type == GO_TOKEN_OTHER && next->n == 1 && *next->p == ',';
		if (next->type != GO_TOKEN_ASSIGN && next->type != GO_TOKEN_DECLARE && !comma)
			return true;
		struct go_node *n = go_node_new(p, GO_NODE_VARIABLE, t->line);
		if (!n || !go_parse_know(p, t))
			return false;
		n->text = (struct text){ .p = t->p, .n = t->n };
		*tail = n;
		tail = &n->next;
		p->now += 2;
		pipe->assigns = next->type == GO_TOKEN_ASSIGN;
		if (!comma)
			return true;
		if (!range || i > 0 || go_token(p)->type != GO_TOKEN_VARIABLE) {
			go_parse_fail(p, range ? "a variable behind the comma, two in all" : "one variable");
			return false;
		}
	}
	return true;
}

static bool may_follow(const struct go_node *c)
{
	switch (c->first->type) {
	case GO_NODE_BOOL:
	case GO_NODE_DOT:
	case GO_NODE_NIL:
	case GO_NODE_NUMBER:
	case GO_NODE_STRING: return false;
	default: return true;
	}
}

struct go_node *go_parse_pipe(struct go_parser *p, enum go_token_type end, const char *context)
{
	struct go_node *pipe = go_node_new(p, GO_NODE_PIPE, go_token(p)->line), **tail = pipe ? &pipe->first : NULL;

	if (!pipe || !enter(p) || !declarations(p, pipe, strcmp(context, "range") == 0))
		return NULL;
	while (!p->lex.failed) {
		struct go_node *c;
		if (go_token(p)->type == end && !pipe->first) {
			go_lex_fail(&p->lex, pipe->line, "%s has no value", context);
			return NULL;
		}
		if (!(c = command(p)))
			return NULL;
		if (pipe->first && !may_follow(c)) {
			go_lex_fail(&p->lex, c->line,
			            "behind | stands a constant or a dot, expected a function or a field");
			return NULL;
		}
		*tail = c;
		tail = &c->next;
		const struct go_token *t = go_token(p);
		if (t->type != GO_TOKEN_PIPE && t->type != end)
			return go_parse_fail(p, end == GO_TOKEN_END ? "}}" : ")");
		/* the end of an action stays where it is */
		p->now += t->type == GO_TOKEN_PIPE || end != GO_TOKEN_END;
		if (t->type == end)
			break;
	}
	p->nesting--;
	return pipe;
}

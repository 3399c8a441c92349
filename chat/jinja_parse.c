/* chat/jinja_parse.c - a template's text becomes its tree.
 *
 * Owns: the parser's way through the tokens, its nodes and its refusals, and that every filter and test that a template
 * will need is there. Never: makes a tree deeper than a call may be.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "chat/go_template.h"

/* ---- tokens */

struct node *parse_fail(struct parser *p, const char *expected)
{
	char text[80];

	if (!p->failed && !p->lex.failed) {
		if (expected)
			lex_fail(&p->lex, p->now.line, "expected %s, found %s", expected, lex_describe(&p->now, text));
		else
			error_set(p->lex.err, ERROR_MEMORY, "%s: no memory for the template", p->lex.label);
	}
	p->failed = true;
	return NULL;
}

void parse_advance(struct parser *p)
{
	p->now = p->then;
	if (p->now.type == TOKEN_END || p->failed)
		return;
	if (!lex_next(&p->lex, &p->then))
		p->failed = true;
}

static bool token_is(const struct token *t, const char *name)
{
	return t->type == TOKEN_NAME && t->n == strlen(name) && memcmp(t->p, name, t->n) == 0;
}
bool parse_is_name(const struct parser *p, const char *name) { return !p->failed && token_is(&p->now, name); }
bool parse_is_op(const struct parser *p, int op)
{
	return !p->failed && p->now.type == TOKEN_OPERATOR && p->now.op == op;
}

bool parse_take_name(struct parser *p, const char *name)
{
	if (!parse_is_name(p, name))
		return false;
	parse_advance(p);
	return true;
}

bool parse_take_op(struct parser *p, int op)
{
	if (!parse_is_op(p, op))
		return false;
	parse_advance(p);
	return true;
}

bool parse_expect_op(struct parser *p, int op)
{
	struct token t = { .type = TOKEN_OPERATOR, .op = op };
	char text[80];

	return parse_take_op(p, op) || parse_fail(p, lex_describe(&t, text)) != NULL;
}

bool parse_expect_name(struct parser *p, const char *name)
{
	struct token t = { .type = TOKEN_NAME, .p = name, .n = strlen(name) };
	char text[80];

	return parse_take_name(p, name) || parse_fail(p, lex_describe(&t, text)) != NULL;
}

bool parse_expect(struct parser *p, enum token_type type)
{
	struct token t = { .type = type };
	char text[80];

	if (p->now.type != type || p->failed)
		return parse_fail(p, lex_describe(&t, text)) != NULL;
	parse_advance(p);
	return true;
}

bool parse_enter(struct parser *p)
{
	if (p->failed)
		return false;
	if (p->nesting == CHAT_MAX_NESTING) {
		lex_fail(&p->lex, p->now.line, "expressions or blocks are nested more than %d deep", CHAT_MAX_NESTING);
		p->failed = true;
		return false;
	}
	p->nesting++;
	return true;
}

struct node *parse_node(struct parser *p, enum node_type type, uint32_t line)
{
	struct node *n = p->failed ? NULL : memory_take(p->memory, sizeof *n, NULL);

	if (!n)
		return parse_fail(p, NULL);
	*n = (struct node){ .type = (uint8_t)type, .line = line, .depth = 1, .number = NO_NUMBER };
	return n;
}

/* ---- nodes of several parts */

struct node *parse_deepen(struct parser *p, struct node *n, const struct node *part)
{
	if (!n || !part)
		return n;
	if (part->depth >= n->depth)
		n->depth = (uint16_t)(part->depth + 1);
	if (n->depth > 4 * CHAT_MAX_NESTING) {
		if (!p->failed)
			lex_fail(&p->lex, n->line, "an expression has more than %d operators inside each other",
			         4 * CHAT_MAX_NESTING);
		p->failed = true;
		return NULL;
	}
	return n;
}

/* A node of two parts. */
struct node *parse_pair(struct parser *p, enum node_type type, uint32_t line, struct node *a, struct node *b)
{
	struct node *n = parse_node(p, type, line);

	if (!n || p->failed)
		return NULL;
	n->a = a;
	n->b = b;
	return parse_deepen(p, parse_deepen(p, n, a), b);
}

/* Appends to a chain. */
bool parse_add(struct parser *p, struct node *n, struct node ***tail, struct node *part)
{
	if (!n || !part || p->failed)
		return false;
	**tail = part;
	*tail = &part->next;
	return parse_deepen(p, n, part) != NULL;
}

/* ---- names of filters and tests */

/* As Jinja does: a name that is not there is an error at once, but inside "if" only when it is reached. */
static bool check_names(struct parser *p, const struct node *n, bool soft)
{
	for (; n; n = n->next) {
		char text[50];
		bool filter = n->type == NODE_FILTER,
		     inner = n->type == NODE_FOR || (n->type >= NODE_SET_BLOCK && n->type <= NODE_SCOPE);
		if ((filter || n->type == NODE_TEST) && n->number == NO_NUMBER && !soft)
			return lex_fail(&p->lex, n->line, "No %s named '%s'", filter ? "filter" : "test",
			                error_quote(text, sizeof text, n->name.p, n->name.n));
		bool parts = soft || n->type == NODE_IF || n->type == NODE_CHOICE, body = parts && !inner;
		if (!check_names(p, n->a, parts) ||
		    !check_names(p, n->b, n->type == NODE_FOR || !inner ? parts : false) ||
		    !check_names(p, n->c, body) || !check_names(p, n->first, body) || !check_names(p, n->other, body))
			return false;
	}
	return true;
}

/* ---- the template */

/* Copies the text with plain line ends, and without the one at its end. */
static char *plain_lines(struct memory *m, const char *text, size_t n, size_t *out)
{
	char *p = memory_take(m, n + 1, NULL);
	size_t at = 0;

	for (size_t i = 0; p && i < n; i++) {
		if (text[i] == '\r' && i + 1 < n && text[i + 1] == '\n')
			continue;
		p[at++] = text[i] == '\r' ? '\n' : text[i];
	}
	if (at && p[at - 1] == '\n')
		at--;
	*out = at;
	return p;
}

/* Texts are cut between characters, so that all of it must be made of them. */
static bool check_characters(const struct lexer *l)
{
	uint32_t c, line = 1;
	unsigned n;

	for (size_t at = 0; at < l->n; at += n) {
		n = text_char(l->p + at, l->n - at, &c);
		if (!n)
			return error_set(l->err, ERROR_FORMAT, "%s, line %u: the template is not valid UTF-8", l->label,
			                 line);
		line += c == '\n';
	}
	return true;
}

static bool parse_all(struct chat_template *t, const char *text, size_t n, struct error *err)
{
	struct parser p = { .lex = { .line = 1, .memory = &t->memory, .label = t->label, .err = err },
		            .memory = &t->memory };

	p.lex.p = plain_lines(&t->memory, text, n, &p.lex.n);
	if (!p.lex.p)
		return parse_fail(&p, NULL) != NULL;
	if (!check_characters(&p.lex))
		return false;
	p.now.type = p.then.type = TOKEN_DATA;
	parse_advance(&p);
	parse_advance(&p);
	t->body = parse_body(&p, NULL);
	return !p.failed && check_names(&p, t->body, false);
}

struct chat_template *chat_template_parse(const char *text, size_t n, const char *label, struct error *err)
{
	struct chat_template *t = calloc(1, sizeof *t);

	if (n > CHAT_MAX_TEMPLATE) {
		error_set(err, ERROR_FORMAT, "%s: the chat template has %zu bytes, expected at most %d", label, n,
		          CHAT_MAX_TEMPLATE);
		free(t);
		return NULL;
	}
	if (t) {
		t->memory.max = (size_t)CHAT_MAX_TEMPLATE * 256; /* a token becomes a node of some 200 bytes */
		t->label = strdup(label);
	}
	if (!t || !t->label)
		error_set(err, ERROR_MEMORY, "%s: no memory for the chat template", label);
	else if (chat_template_is_go(text, n) ? go_open(t, text, n, err) : parse_all(t, text, n, err))
		return t;
	chat_template_free(t);
	return NULL;
}

struct chat_facts chat_template_facts(const struct chat_template *t)
{
	return t->go ? t->go->facts : (struct chat_facts){ .go = false };
}

void chat_template_free(struct chat_template *t)
{
	if (!t)
		return;
	memory_free(&t->memory);
	free(t->label);
	free(t);
}

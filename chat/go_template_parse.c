/* chat/go_template_parse.c - templates in Go's language: texts and control structures to nodes.
 *
 * Owns: what ends what. Which variables are known where follows from it: one is known up to the end of the structure in
 * which it was declared.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "chat/go_template.h"

struct go_node *go_node_new(struct go_parser *p, enum go_node_type type, uint32_t line)
{
	struct go_node *n = memory_take(p->memory, sizeof *n, NULL);

	if (n) {
		*n = (struct go_node){ .type = (uint8_t)type, .line = line };
		return n;
	}
	go_lex_no_memory(&p->lex);
	return NULL;
}

struct go_node *go_parse_fail(struct go_parser *p, const char *expected)
{
	const struct go_token *t = go_token(p);

	go_lex_fail(&p->lex, t->line, "found \"%.*s\", expected %s", (int)(t->n < 40 ? t->n : 40), t->p, expected);
	return NULL;
}

bool go_parse_know(struct go_parser *p, const struct go_token *variable)
{
	if (!array_grow((void **)&p->variable, &p->capacity, p->n_variables + 1, sizeof *p->variable))
		return go_lex_no_memory(&p->lex);
	p->variable[p->n_variables++] = (struct text){ .p = variable->p, .n = variable->n };
	return true;
}

static bool expect_end(struct go_parser *p)
{
	if (go_token(p)->type != GO_TOKEN_END)
		go_parse_fail(p, "}}");
	return !p->lex.failed;
}

/* What a name in quotes says. */
static bool take_name(struct go_parser *p, struct text *name)
{
	if (go_token(p)->type != GO_TOKEN_STRING) {
		go_parse_fail(p, "the name of a template in quotes");
		return false;
	}
	return go_unquote(p, &p->lex.token[p->now++], name);
}

/* Up to {{ end }}. inner: a structure that stands alone, and knows no variables of what is around it. */
static struct go_node *list_to_end(struct go_parser *p, bool inner)
{
	const size_t known = p->n_variables, hidden = p->hidden;
	const unsigned loops = p->loops;

	if (inner) {
		p->hidden = known;
		p->loops = 0;
	}
	struct go_node *first = go_parse_list(p);
	if (!p->lex.failed && p->stop != GO_STOP_END)
		go_lex_fail(&p->lex, p->lex.line, "%s, expected {{ end }}",
		            p->stop == GO_STOP_ELSE ? "found {{ else }}" : "the template ends");
	p->n_variables = known;
	p->hidden = hidden;
	p->loops = loops;
	return first;
}

/* ---- control structures */

static bool enter(struct go_parser *p)
{
	if (p->nesting++ >= GO_MAX_NESTING)
		go_lex_fail(&p->lex, p->lex.line, "more than %d structures are nested in each other", GO_MAX_NESTING);
	return !p->lex.failed;
}

static struct go_node *control(struct go_parser *p, enum go_node_type type, const char *name);

/* Behind {{ else }}: another condition of the same kind, which shares the end, or a list. */
static struct go_node *other(struct go_parser *p, enum go_node_type type, const char *name)
{
	const bool again = type != GO_NODE_RANGE && go_token_is(go_token(p), name);

	if (!again)
		return expect_end(p) ? list_to_end(p, false) : NULL;
	p->now++;
	return control(p, type, name);
}

/* Behind "if", "range" or "with". */
static struct go_node *control(struct go_parser *p, enum go_node_type type, const char *name)
{
	struct go_node *n = go_node_new(p, type, go_token(p)->line);
	const size_t known = p->n_variables;

	if (!n || !enter(p))
		return NULL;
	n->pipe = go_parse_pipe(p, GO_TOKEN_END, name);
	p->loops += type == GO_NODE_RANGE;
	if (!p->lex.failed)
		n->first = go_parse_list(p);
	p->loops -= type == GO_NODE_RANGE;
	if (!p->lex.failed && p->stop == GO_STOP_ELSE)
		n->other = other(p, type, name);
	else if (!p->lex.failed && p->stop != GO_STOP_END)
		go_lex_fail(&p->lex, n->line, "{{ %s }} has no {{ end }}", name);
	p->n_variables = known;
	p->nesting--;
	return n;
}

static bool is_empty(const struct go_node *first)
{
	for (; first; first = first->next) {
		if (first->type != GO_NODE_TEXT)
			return false;
		for (size_t i = 0; i < first->text.n; i++)
			if (!strchr(" \t\r\n\v\f", first->text.p[i]))
				return false;
	}
	return true;
}

/* One that is empty gives way. */
static void keep(struct go_parser *p, const struct text *name, struct go_node *body, uint32_t line)
{
	struct go_defined *d = p->t->defined;

	while (d && !text_same(&d->name, name))
		d = d->next;
	if (d && is_empty(body))
		return;
	if (d && !is_empty(d->body)) {
		go_lex_fail(&p->lex, line, "the template \"%.*s\" is defined twice", (int)(name->n < 60 ? name->n : 60),
		            name->p);
		return;
	}
	if (!d && (d = memory_take(p->memory, sizeof *d, NULL))) {
		*d = (struct go_defined){ .name = *name, .next = p->t->defined };
		p->t->defined = d;
	}
	if (d)
		d->body = body;
	else
		go_lex_no_memory(&p->lex);
}

static void define(struct go_parser *p)
{
	const uint32_t line = go_token(p)->line;
	struct text name;

	if (!enter(p) || !take_name(p, &name) || !expect_end(p))
		return;
	struct go_node *body = list_to_end(p, true);
	p->nesting--;
	if (!p->lex.failed)
		keep(p, &name, body, line);
}

/* block: its text follows, and is used where no other template of that name is. */
static struct go_node *call_template(struct go_parser *p, bool block)
{
	struct go_node *n = go_node_new(p, GO_NODE_TEMPLATE, go_token(p)->line);

	if (!n || !enter(p) || !take_name(p, &n->text))
		return NULL;
	if (block || go_token(p)->type != GO_TOKEN_END)
		n->pipe = go_parse_pipe(p, GO_TOKEN_END, block ? "block" : "template");
	if (block && !p->lex.failed) {
		struct go_node *body = list_to_end(p, true);
		if (!p->lex.failed)
			keep(p, &n->text, body, n->line);
	}
	p->nesting--;
	return n;
}

static struct go_node *leave_loop(struct go_parser *p, enum go_node_type type)
{
	struct go_node *n = go_node_new(p, type, go_token(p)->line);

	if (!p->loops) {
		p->now--;
		return go_parse_fail(p, "it in a {{ range }}");
	}
	return expect_end(p) ? n : NULL;
}

/* ---- lists */

static struct go_node *statement(struct go_parser *p)
{
	static const struct {
		const char *word;
		enum go_node_type type;
	} words[] = { { "if", GO_NODE_IF },
		      { "range", GO_NODE_RANGE },
		      { "with", GO_NODE_WITH },
		      { "template", GO_NODE_TEMPLATE },
		      { "block", GO_NODE_TEXT },
		      { "break", GO_NODE_BREAK },
		      { "continue", GO_NODE_CONTINUE } };
	const struct go_token *t = go_token(p);

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!go_token_is(t, words[i].word))
			continue;
		p->now++;
		switch (words[i].type) {
		case GO_NODE_TEMPLATE: return call_template(p, false);
		case GO_NODE_TEXT: return call_template(p, true);
		case GO_NODE_BREAK:
		case GO_NODE_CONTINUE: return leave_loop(p, words[i].type);
		default: return control(p, words[i].type, words[i].word);
		}
	}
	struct go_node *n = go_node_new(p, GO_NODE_ACTION, t->line);
	if (n)
		n->pipe = go_parse_pipe(p, GO_TOKEN_END, "command");
	return n;
}

/* An action that ends the list: behind "end" or "else". */
static bool stops(struct go_parser *p)
{
	if (go_token_is(go_token(p), "end")) {
		p->stop = GO_STOP_END;
		p->now++;
		return expect_end(p) || true;
	}
	if (!go_token_is(go_token(p), "else"))
		return false;
	p->stop = GO_STOP_ELSE;
	p->now++;
	return true;
}

static struct go_node *text_node(struct go_parser *p)
{
	struct go_node *n = go_node_new(p, GO_NODE_TEXT, p->lex.text_line);

	if (n)
		n->text = p->lex.text;
	return n;
}

struct go_node *go_parse_list(struct go_parser *p)
{
	struct go_node *first = NULL, **tail = &first;

	while (!p->lex.failed) {
		const enum go_item item = go_lex(&p->lex);
		struct go_node *n = NULL;
		p->now = 0;
		if (item == GO_ITEM_END) {
			p->stop = GO_STOP_TEXT;
			break;
		}
		if (item == GO_ITEM_TEXT) {
			n = text_node(p);
		} else if (go_token_is(go_token(p), "define") && p->nesting == 0) {
			p->now++;
			define(p);
		} else if (stops(p)) {
			break;
		} else {
			n = statement(p);
		}
		if (n && !p->lex.failed) {
			*tail = n;
			tail = &n->next;
		}
	}
	return first;
}

static bool check_characters(struct go_parser *p)
{
	uint32_t c, line = 1;
	unsigned n;

	for (size_t i = 0; i < p->lex.n; i += n) {
		n = text_char(p->lex.p + i, p->lex.n - i, &c);
		if (!n)
			return go_lex_fail(&p->lex, line, "the template is not valid UTF-8");
		line += c == '\n';
	}
	return true;
}

bool go_parse(struct chat_template *t, const char *text, size_t n, struct error *err)
{
	struct go_parser p = { .memory = &t->memory, .t = t->go };
	char *copy = memory_take(&t->memory, n + 1, NULL);

	if (!copy)
		return error_set(err, ERROR_MEMORY, "%s: no memory for the chat template", t->label);
	memcpy(copy, text, n);
	copy[n] = 0;
	p.lex = (struct go_lexer){ .p = copy, .n = n, .line = 1, .label = t->label, .err = err };
	if (check_characters(&p))
		t->go->body = go_parse_list(&p);
	if (!p.lex.failed && p.stop != GO_STOP_TEXT)
		go_lex_fail(&p.lex, p.lex.line, "{{ %s }} without {{ if }}, {{ range }} or {{ with }} before it",
		            p.stop == GO_STOP_END ? "end" : "else");
	free(p.lex.token);
	free(p.variable);
	return !p.lex.failed;
}

/* chat/go_template.c - which language a template is in, and what one in Go's language looks at.
 *
 * Owns: that a template is told by its first action that only one of the languages has. What both have means the same
 * in both. The facts are found as ollama finds them, so that its clients are told the same of a model.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chat/go_template.h"

/* ---- the language */

static bool is_letter(char c) { return isalnum((unsigned char)c) || c == '_'; }

static const char *pass_spaces(const char *p, const char *end)
{
	while (p < end && isspace((unsigned char)*p))
		p++;
	return p;
}

static bool is_one_of(const char *const *words, size_t count, const char *word, size_t n)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == n && memcmp(words[i], word, n) == 0)
			return true;
	return false;
}

/* What stands behind a name in Jinja, where a function of Go's has an argument. */
static bool is_operator(const char *word, size_t n)
{
	static const char *const words[] = { "if", "is", "in", "and", "or", "not", "else" };

	return is_one_of(words, sizeof words / sizeof *words, word, n);
}

/* A word that begins actions of Go's, and might be a name in Jinja. */
static bool is_keyword(const char *word, size_t n)
{
	static const char *const words[] = { "range", "with", "template", "block", "define" };

	return is_one_of(words, sizeof words / sizeof *words, word, n);
}

static size_t word_length(const char *p, const char *end)
{
	size_t n = 0;

	while (p + n < end && is_letter(p[n]))
		n++;
	return n;
}

/* Behind the name of a function of Go's: an argument. Jinja has a call, a member, an operator or nothing there. */
static int language_of_function(const char *p, const char *end, const char *name, size_t n)
{
	const char *next = pass_spaces(p, end);

	if (strncmp(name, "currentDate", n) == 0 || strncmp(name, "yesterdayDate", n) == 0)
		return 1;
	if (next == end || next == p)
		return -1;
	if (*next == '(' ||
	    (n == 3 && memcmp(name, "not", 3) == 0 && (is_letter(*next) || *next == '"' || *next == '\'')))
		return 0;
	if (isdigit((unsigned char)*next))
		return 1;
	if (is_letter(*next))
		return is_operator(next, word_length(next, end)) ? -1 : 1;
	return strchr(".$\"`", *next) ? 1 : -1;
}

/* Behind two braces and a dash: above 0 for Go, below for Jinja, 0: it might be either. */
static int language_of(const char *p, const char *end)
{
	while ((p = pass_spaces(p, end)) < end && *p == '(')
		p++;
	if (p == end || *p == '"' || *p == '\'')
		return 0;
	if (*p == '.' || *p == '$' || *p == '`' || *p == '/')
		return 1;
	const size_t n = word_length(p, end);
	if (n == 0)
		return -1;
	if (isdigit((unsigned char)*p) || (n == 4 && memcmp(p, "true", n) == 0) ||
	    (n == 5 && memcmp(p, "false", n) == 0))
		return 0;
	if (n == 2 && memcmp(p, "if", n) == 0)
		return 1;
	if (go_find_function(p, n) != NO_NUMBER || is_keyword(p, n))
		return language_of_function(p + n, end, p, n);
	/* a function that Go does not have, with a field or a variable for its argument */
	const char *next = pass_spaces(p + n, end);
	const bool variable = end - next > 1 && *next == '$' && (is_letter(next[1]) || next[1] == '.');
	return next > p + n && next < end && (*next == '.' || variable) ? 1 : -1;
}

/* Behind the next of these two characters; NULL: the text has none. */
static const char *behind(const char *p, const char *end, const char *what)
{
	const char *found = p < end ? memmem(p, (size_t)(end - p), what, 2) : NULL;

	return found ? found + 2 : NULL;
}

bool chat_template_is_go(const char *text, size_t n)
{
	const char *end = text + n, *next;
	bool comments = true;

	for (const char *p = text; p + 1 < end; p = next) {
		next = p + 1;
		if (*p != '{')
			continue;
		if (p[1] == '%')
			return false;
		if (p[1] == '#' && comments) {
			const char *over = behind(p + 2, end, "#}");
			comments = over != NULL;
			next = over ? over : next;
		}
		if (p[1] != '{')
			continue;
		const int language = language_of(p + 2 + (p + 2 < end && p[2] == '-'), end);
		if (language)
			return language > 0;
		if (!(next = behind(p + 2, end, "}}")))
			return false;
	}
	return false;
}

/* ---- what it looks at */

struct seen {
	bool messages, tools, suffix, response, think;
};

static void see_name(struct seen *s, const struct text *t)
{
	const struct {
		const char *name;
		bool *to;
	} rows[] = { { "messages", &s->messages }, { "tools", &s->tools }, { "suffix", &s->suffix },
		     { "response", &s->response }, { "think", &s->think }, { "thinklevel", &s->think },
		     { "isthinkset", &s->think } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (t->n == strlen(rows[i].name) && strncasecmp(t->p, rows[i].name, t->n) == 0)
			*rows[i].to = true;
}

/* Fields of chains are not looked at, as ollama does not. */
static void see(struct seen *s, const struct go_node *n)
{
	for (; n; n = n->next) {
		for (const struct go_name *name = n->type == GO_NODE_CHAIN ? NULL : n->name; name; name = name->next)
			see_name(s, &name->text);
		see(s, n->pipe);
		if (n->type != GO_NODE_CHAIN)
			see(s, n->first);
		see(s, n->other);
	}
}

static bool has_field(const struct go_node *n, const char *name)
{
	for (; n; n = n->next)
		if ((n->type == GO_NODE_FIELD && text_is(&n->name->text, name)) ||
		    (n->type != GO_NODE_CHAIN && has_field(n->first, name)))
			return true;
	return false;
}

/* ---- the marks around reasoning */

struct marks {
	bool opens, closes;
};

static bool has_words(const struct text *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (!isspace((unsigned char)t->p[i]))
			return true;
	return false;
}

/* n: in this list, which stands in a loop over messages. .Thinking there stands between its first and its last text. */
static void find_marks(struct marks *m, const struct go_node *n, const struct go_node *list, bool messages)
{
	for (; n; n = n->next) {
		const struct go_node *last = list;
		if (n->type == GO_NODE_FIELD && text_is(&n->name->text, "Thinking") && messages) {
			while (last->next)
				last = last->next;
			if (list->type == GO_NODE_TEXT)
				m->opens = has_words(&list->text);
			if (last->type == GO_NODE_TEXT)
				m->closes = has_words(&last->text);
		}
		const bool inner = n->type == GO_NODE_RANGE ? has_field(n->pipe, "Messages") : messages;
		const bool holds = n->type == GO_NODE_IF || n->type == GO_NODE_RANGE || n->type == GO_NODE_WITH;
		find_marks(m, n->pipe, list, inner);
		if (n->type != GO_NODE_CHAIN)
			find_marks(m, n->first, holds ? n->first : list, inner);
		find_marks(m, n->other, n->other, inner);
	}
}

/* ---- where a prompt ends */

/* Whether .Response is an operand of the action. */
static bool writes_response(const struct go_node *pipe)
{
	for (const struct go_node *c = pipe ? pipe->first : NULL; c; c = c->next)
		for (const struct go_node *n = c->first; n; n = n->next) {
			if (n->type == GO_NODE_PIPE && writes_response(n))
				return true;
			for (const struct go_name *name = n->type == GO_NODE_FIELD ? n->name : NULL; name;
			     name = name->next)
				if (text_is(&name->text, "Response"))
					return true;
		}
	return false;
}

/* Marks all statements behind the first one that writes it. */
static void mark_gone(struct go_node *n, bool *over)
{
	for (; n; n = n->next) {
		n->gone = *over;
		if (n->type == GO_NODE_ACTION && !*over)
			*over = writes_response(n->pipe);
		mark_gone(n->first, over);
		mark_gone(n->other, over);
	}
}

bool go_open(struct chat_template *t, const char *text, size_t n, struct error *err)
{
	struct seen s = { 0 };
	struct marks m = { 0 };
	bool over = false;

	t->go = memory_take(&t->memory, sizeof *t->go, NULL);
	if (!t->go)
		return error_set(err, ERROR_MEMORY, "%s: no memory for the chat template", t->label);
	*t->go = (struct go_template){ .body = NULL };
	if (!go_parse(t, text, n, err))
		return false;
	see(&s, t->go->body);
	for (const struct go_defined *d = t->go->defined; d; d = d->next)
		see(&s, d->body);
	find_marks(&m, t->go->body, t->go->body, false);
	mark_gone(t->go->body, &over);
	t->go->ends_with_response = !s.messages && !s.response;
	t->go->facts = (struct chat_facts){
		.go = true,
		.messages = s.messages,
		.tools = s.tools,
		.suffix = s.suffix,
		.think = s.think,
		.thinks = m.opens && m.closes
	};
	return true;
}

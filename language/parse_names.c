/* language/parse_names.c - what names mean where the parser stands: scopes, and what a wrong name may have meant. */
#include "language/parse.h"

#include <string.h>

void jk_scope_open(struct parser *p, struct scope *s)
{
	*s = (struct scope){ .outer = p->scope, .level = p->scope ? p->scope->level + 1 : 0 };
	p->scope = s;
}

void jk_scope_close(struct parser *p)
{
	for (struct symbol *s = p->scope->first; s; s = s->scope_next)
		s->name->symbol = s->shadows;
	p->scope = p->scope->outer;
}

void jk_declare_now(struct parser *p, struct symbol *s)
{
	const struct symbol *other = s->name->symbol;

	s->level = p->scope->level;
	if (other && other->level == s->level)
		jk_message_add(p->m, s->at, "%.60s has a meaning already, at line %u; take another name", s->name->text,
		               other->at.line);
	s->shadows = s->name->symbol;
	s->name->symbol = s;
	s->scope_next = p->scope->first;
	p->scope->first = s;
}

struct symbol *jk_declare_later(struct parser *p, unsigned kind, unsigned type, const char *what)
{
	struct symbol *s = jk_arena_take(p->arena, sizeof *s);

	if (p->at->kind != TOKEN_NAME) {
		char text[100];
		const bool word = p->at->kind > TOKEN_MARK && p->at->kind < TOKEN_KINDS;
		snprintf(text, sizeof text, "%s%s", what, word ? ", which no word of the language can be" : "");
		jk_expected(p, text);
		return NULL;
	}
	s->kind = (uint8_t)kind;
	s->type = (uint8_t)type;
	s->at = jk_location_of(p->at);
	s->name = p->at++->name;
	if (s->name->length > 100) {
		jk_message_add(p->m, s->at, "this name has %u characters; at most 100 are expected", s->name->length);
		return NULL;
	}
	return s;
}

struct symbol *jk_declare(struct parser *p, unsigned kind, unsigned type, const char *what)
{
	struct symbol *s = jk_declare_later(p, kind, type, what);

	if (s)
		jk_declare_now(p, s);
	return s;
}

/* How many letters differ, up to 3. */
static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
	enum { MAX = 24 };
	unsigned row[MAX + 1];

	if (n > MAX || m > MAX || n > m + 2 || m > n + 2)
		return 3;
	for (unsigned k = 0; k <= m; k++)
		row[k] = k;
	for (unsigned i = 1; i <= n; i++) {
		unsigned diagonal = row[0];
		row[0] = i;
		for (unsigned k = 1; k <= m; k++) {
			const unsigned above = row[k], change = diagonal + (a[i - 1] != b[k - 1]);
			unsigned min = above < row[k - 1] ? above + 1 : row[k - 1] + 1;
			row[k] = change < min ? change : min;
			diagonal = above;
		}
	}
	return row[m] < 3 ? row[m] : 3;
}

/* The name or function that looks most like it; NULL: none does. */
static const char *similar(const struct parser *p, const struct name *name)
{
	unsigned best = name->length < 2 ? 1 : name->length < 4 ? 2 : 3;
	const char *found = NULL;

	for (const struct scope *s = p->scope; s; s = s->outer)
		for (const struct symbol *k = s->first; k; k = k->scope_next) {
			const unsigned d = distance(name->text, name->length, k->name->text, k->name->length);
			if (d < best) {
				best = d;
				found = k->name->text;
			}
		}
	for (unsigned k = 0; k < BUILTINS; k++) {
		const unsigned d = distance(name->text, name->length, jk_builtin_name(k), strlen(jk_builtin_name(k)));
		if (d < best) {
			best = d;
			found = jk_builtin_name(k);
		}
	}
	return found;
}

struct symbol *jk_look_up(struct parser *p)
{
	const struct token *t = p->at++;
	const char *other;

	if (t->name->symbol)
		return t->name->symbol;
	other = p->m->n < JK_MAX_MESSAGES ? similar(p, t->name) : NULL;
	if (other)
		jk_message_add(p->m, jk_location_of(t), "%.60s has no meaning here; is %s meant?", t->name->text,
		               other);
	else
		jk_message_add(p->m, jk_location_of(t), "%.60s has no meaning here; declare it above", t->name->text);
	return NULL;
}

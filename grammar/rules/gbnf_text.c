/* grammar/rules/gbnf_text.c - the literals and the sets of characters in a GBNF grammar. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "grammar/machine/effort.h"
#include "grammar/rules/gbnf_parts.h"

struct ranges {
	struct character_range *p;
	size_t n, room;
};

static bool push(struct gbnf_reader *r, struct ranges *l, uint32_t low, uint32_t high)
{
	void *all = l->p;

	if (!effort_array(&all, &l->room, l->n + 1, sizeof *l->p))
		return error_set(r->err, ERROR_MEMORY, "no memory for a grammar");
	l->p = all;
	l->p[l->n++] = (struct character_range){ low, high };
	return true;
}

static bool hexadecimal(struct gbnf_reader *r, unsigned digits, uint32_t *code)
{
	static const char all[] = "0123456789abcdef";

	for (*code = 0; digits; digits--, r->at++) {
		char c = r->at < r->n ? r->text[r->at] : 0;
		const char *digit = strchr(all, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
		if (!c || !digit)
			return gbnf_wrong(r, "an escape with too few hexadecimal digits");
		*code = *code << 4 | (uint32_t)(digit - all);
	}
	if (*code > CODE_POINT_MAX || (*code >= 0xd800 && *code <= 0xdfff))
		return gbnf_wrong(r, "an escape that is no character of Unicode");
	return true;
}

static bool escape(struct gbnf_reader *r, uint32_t *code)
{
	static const char names[] = "trn\\\"[]", values[] = "\t\r\n\\\"[]";
	char c = r->at < r->n ? r->text[r->at] : 0;
	const char *named = c ? strchr(names, c) : NULL;

	if (named) {
		r->at++;
		*code = (uint32_t)values[named - names];
		return true;
	}
	if (c != 'x' && c != 'u' && c != 'U')
		return gbnf_wrong(r,
		                  "an escape that there is not: known are \\x \\u \\U \\t \\r \\n \\\\ \\\" \\[ \\]");
	r->at++;
	return hexadecimal(r, c == 'x' ? 2 : c == 'u' ? 4 : 8, code);
}

/* A character as it is, or escaped. `what` has no end where there is none. */
static bool character(struct gbnf_reader *r, const char *what, uint32_t *code)
{
	if (r->at >= r->n)
		return gbnf_wrong(r, what);
	if (gbnf_take(r, '\\'))
		return escape(r, code);
	unsigned n = text_char(r->text + r->at, r->n - r->at, code);
	r->at += n;
	return n || gbnf_wrong(r, "a byte that is not UTF-8");
}

bool gbnf_literal(struct gbnf_reader *r, uint32_t *node, bool *nothing)
{
	struct ranges all = { 0 };
	uint32_t code = 0;
	bool ok = true;

	r->at++;
	while (ok && !gbnf_take(r, '"')) {
		ok = character(r, "a literal without end", &code);
		if (ok && code == 0)
			ok = gbnf_wrong(r, "the character 0, which no answer can have");
		ok = ok && push(r, &all, code, code);
	}
	*nothing = all.n == 0;
	*node = expression_empty(&r->g->x);
	/* Pairs lean to the right. */
	for (size_t i = all.n; ok && i-- > 0;) {
		uint32_t one = expression_set(&r->g->x, &all.p[i], 1);
		*node = i + 1 == all.n ? one : expression_join(&r->g->x, one, *node);
	}
	free(all.p);
	return ok;
}

static int by_low(const void *a, const void *b)
{
	const struct character_range *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

/* All characters but these and 0. */
static bool invert(struct gbnf_reader *r, struct ranges *l)
{
	struct ranges others = { 0 };
	uint32_t from = 1;
	bool ok = true;

	qsort(l->p, l->n, sizeof *l->p, by_low);
	for (size_t i = 0; i < l->n && ok; i++) {
		if (l->p[i].low > l->p[i].high)
			continue;
		if (l->p[i].low > from)
			ok = push(r, &others, from, l->p[i].low - 1);
		if (l->p[i].high >= from)
			from = l->p[i].high + 1;
	}
	ok = ok && (from > CODE_POINT_MAX || push(r, &others, from, CODE_POINT_MAX));
	free(l->p);
	*l = others;
	return ok;
}

static bool one_range(struct gbnf_reader *r, struct ranges *l)
{
	static const char endless[] = "a set of characters without end";
	uint32_t low, high;

	if (!character(r, endless, &low))
		return false;
	high = low;
	if (r->at + 1 < r->n && r->text[r->at] == '-' && r->text[r->at + 1] != ']') {
		r->at++;
		if (!character(r, endless, &high))
			return false;
	}
	return push(r, l, low, high);
}

bool gbnf_set(struct gbnf_reader *r, uint32_t *node, bool *nothing)
{
	struct ranges l = { 0 };
	bool ok = true;

	r->at++;
	bool others = gbnf_take(r, '^');
	while (ok && !gbnf_take(r, ']'))
		ok = one_range(r, &l);
	*nothing = l.n == 0; /* [] and [^] are the empty text */
	if (ok && others && !*nothing)
		ok = invert(r, &l);
	for (size_t i = 0; i < l.n; i++)
		if (l.p[i].low == 0)
			l.p[i].low = 1;
	*node = *nothing ? expression_empty(&r->g->x) : expression_set(&r->g->x, l.p, l.n);
	free(l.p);
	return ok;
}

uint32_t gbnf_any(struct gbnf_reader *r)
{
	return expression_set(&r->g->x, &(struct character_range){ 1, CODE_POINT_MAX }, 1);
}

/* ---- tokens */

/* The id in <[id]>, behind the bracket. */
static bool token_id(struct gbnf_reader *r, uint32_t *id)
{
	const size_t from = r->at;
	uint64_t value = 0;

	for (; r->at < r->n && r->text[r->at] >= '0' && r->text[r->at] <= '9'; r->at++)
		value = value > UINT32_MAX ? value : 10 * value + (uint64_t)(r->text[r->at] - '0');
	if (r->at == from)
		return gbnf_wrong(r, "expected the number of a token");
	if (!gbnf_take(r, ']') || !gbnf_take(r, '>'))
		return gbnf_wrong(r, "expected ]> behind the number of a token");
	*id = value < r->tokens->n_ids ? (uint32_t)value : UINT32_MAX;
	return true;
}

bool gbnf_token(struct gbnf_reader *r, uint32_t *node)
{
	const size_t from = r->at;
	bool without = gbnf_take(r, '!');
	const char *text = r->text + r->at;
	uint32_t id = UINT32_MAX;

	if (!gbnf_take(r, '<'))
		return gbnf_wrong(r, "expected < behind !");
	if (!r->tokens)
		return gbnf_fail(r->err, ERROR_UNSUPPORTED, r->text, from,
		                 "a test of one whole token, and none are known");
	if (gbnf_take(r, '[')) {
		if (!token_id(r, &id))
			return false;
	} else {
		const char *end = memchr(text, '>', r->n - r->at + 1);
		if (!end)
			return gbnf_wrong(r, "the text of a token without >");
		r->at = (size_t)(end + 1 - r->text);
		id = r->tokens->named(r->tokens->user, text, (size_t)(end + 1 - text));
	}
	if (id == UINT32_MAX)
		return gbnf_fail(r->err, ERROR_ARGUMENT, r->text, from, "the model has no such token");
	if (!without && !r->tokens->takes(r->tokens->user, id))
		return gbnf_fail(r->err, ERROR_UNSUPPORTED, r->text, from,
		                 "a token that ends answers, or whose text is no whole characters");
	*node = expression_token(&r->g->x, id, without);
	return true;
}

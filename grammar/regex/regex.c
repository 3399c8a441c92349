#include "grammar/regex/regex.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "grammar/machine/effort.h"
#include "grammar/regex/regex_parts.h"

enum { DEPTH_MAX = 200, REPEAT_MAX = 100000 };

bool regex_fail(struct regex *r, const char *why)
{
	char quoted[256];

	return error_set(r->err, ERROR_UNSUPPORTED, "the expression \"%s\": %s at byte %zu",
	                 error_quote(quoted, sizeof quoted, r->text, r->n), why, r->at);
}

uint32_t regex_character(struct regex *r)
{
	uint32_t code = 0;
	unsigned n = text_char(r->text + r->at, r->n - r->at, &code);

	r->at += n ? n : 1;
	return n ? code : 0xfffd;
}

bool regex_take(struct regex *r, const char *what)
{
	size_t n = strlen(what);

	if (r->n - r->at < n || memcmp(r->text + r->at, what, n) != 0)
		return false;
	r->at += n;
	return true;
}

static bool digits(struct regex *r, uint32_t *value)
{
	size_t from = r->at;

	for (*value = 0; r->at < r->n && r->text[r->at] >= '0' && r->text[r->at] <= '9'; r->at++)
		if (*value <= REPEAT_MAX)
			*value = 10 * *value + (uint32_t)(r->text[r->at] - '0');
	return r->at > from;
}

/* {2} {2,} {2,5}. False: these are no counts, and the brace is a character. */
static bool counts(struct regex *r, uint32_t *min, uint32_t *max)
{
	size_t from = r->at;
	bool ok = regex_take(r, "{") && digits(r, min);

	*max = *min;
	if (ok && regex_take(r, ",") && !digits(r, max))
		*max = REPEAT_ANY;
	ok = ok && regex_take(r, "}");
	if (!ok)
		r->at = from;
	return ok;
}

static bool repeat(struct regex *r, uint32_t *node)
{
	uint32_t min = 0, max = REPEAT_ANY;
	bool bounded = false;

	if (regex_take(r, "+"))
		min = 1;
	else if (regex_take(r, "?"))
		max = 1;
	else if (!regex_take(r, "*") && !(bounded = counts(r, &min, &max)))
		return true;
	regex_take(r, "?"); /* as few as possible: the same texts */
	if (bounded && (min > REPEAT_MAX || (max != REPEAT_ANY && (max > REPEAT_MAX || max < min))))
		return regex_fail(r, "a repetition whose counts are too large or in the wrong order");
	*node = expression_repeat(r->x, *node, min, max);
	return true;
}

static bool alternatives(struct regex *r, uint32_t *node);

static bool group(struct regex *r, uint32_t *node)
{
	bool ahead = regex_take(r, "?="), without = !ahead && regex_take(r, "?!");

	if (regex_take(r, "?<=") || regex_take(r, "?<!"))
		return regex_fail(r, "looking behind, which is not supported,");
	if ((ahead || without) && r->looks)
		return regex_fail(r, "looking ahead inside of (?!, which is not supported,");
	r->looks += without;
	if (ahead || without) {
		;
	} else if (regex_take(r, "?<")) {
		while (r->at < r->n && r->text[r->at] != '>')
			r->at++;
		if (!regex_take(r, ">"))
			return regex_fail(r, "a name of a group without end");
	} else if (regex_take(r, "?") && !regex_take(r, ":")) {
		return regex_fail(r, "a kind of group that is not supported");
	}
	if (++r->depth > DEPTH_MAX)
		return regex_fail(r, "groups inside too many groups");
	if (!alternatives(r, node))
		return false;
	r->depth--;
	r->looks -= without;
	if (ahead || without)
		*node = expression_ahead(r->x, *node, without);
	return regex_take(r, ")") || regex_fail(r, "a group without end");
}

static bool atom(struct regex *r, uint32_t *node)
{
	static const struct character_range line[] = {
		{ 0, '\n' - 1 }, { '\n' + 1, '\r' - 1 }, { '\r' + 1, 0x2027 }, { 0x202a, CODE_POINT_MAX }
	};

	if (regex_take(r, "^"))
		*node = expression_edge(r->x, EXPRESSION_BEGIN);
	else if (regex_take(r, "$"))
		*node = expression_edge(r->x, EXPRESSION_END);
	else if (regex_take(r, "."))
		*node = expression_set(r->x, line, sizeof line / sizeof *line);
	else if (regex_take(r, "("))
		return group(r, node) && repeat(r, node);
	else if (strchr("*+?", r->text[r->at]) && r->text[r->at])
		return regex_fail(r, "a repetition of nothing");
	else if (r->text[r->at] == '[' || r->text[r->at] == '\\')
		return regex_class(r, node) && repeat(r, node);
	else
		*node = expression_character(r->x, regex_character(r));
	return repeat(r, node);
}

/* What stands one after another, up to a bar, the end of a group, or the end. */
static bool sequence(struct regex *r, uint32_t *node)
{
	uint32_t one;

	*node = expression_empty(r->x);
	if (r->at == r->n || r->text[r->at] == '|' || r->text[r->at] == ')')
		return true;
	/* Pairs lean to the right: first, then all that follows. */
	size_t room = 16, n = 0;
	uint32_t *part = effort_malloc(room * sizeof *part);
	bool ok = part != NULL || error_set(r->err, ERROR_MEMORY, "no memory for an expression");
	while (ok && r->at < r->n && r->text[r->at] != '|' && r->text[r->at] != ')') {
		ok = atom(r, &one);
		uint32_t *more = n < room ? part : effort_realloc(part, 2 * room * sizeof *part);
		if (!more) {
			ok = error_set(r->err, ERROR_MEMORY, "no memory for an expression");
			break;
		}
		room = more == part && n < room ? room : 2 * room;
		part = more;
		part[n++] = one;
	}
	for (size_t i = n; ok && i-- > 0;)
		*node = i + 1 == n ? part[i] : expression_join(r->x, part[i], *node);
	free(part);
	return ok;
}

static bool alternatives(struct regex *r, uint32_t *node)
{
	uint32_t one;

	if (!sequence(r, node))
		return false;
	/* The order of alternatives says nothing: each new one goes in front. */
	while (regex_take(r, "|")) {
		if (!sequence(r, &one))
			return false;
		*node = expression_either(r->x, one, *node);
	}
	return true;
}

bool regex_read(struct expression *x, const char *text, size_t n, uint32_t *node, struct error *err)
{
	struct regex r = { .x = x, .text = text, .n = n, .err = err };

	if (!alternatives(&r, node))
		return false;
	if (r.at < n)
		return regex_fail(&r, "the end of a group that was not begun");
	return !x->failed || error_set(err, ERROR_UNSUPPORTED, "an expression is too large");
}

struct automaton *regex_automaton(const char *text, size_t n, bool anywhere, struct error *err)
{
	struct expression x = { 0 };
	uint32_t node;
	struct automaton *a = regex_read(&x, text, n, &node, err) ? automaton_open(&x, node, anywhere, err) : NULL;

	expression_clear(&x);
	return a;
}

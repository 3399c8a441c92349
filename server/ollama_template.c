/* server/ollama_template.c - templates that a request of ollama's API brings along, in the language of Go's templates.
 *
 * Owns: the part of that language which a prompt needs: .System, .Prompt, .Suffix and .Response, if, else and end, and
 * dashes that take white space away. A conversation's template is Jinja, and the model's.
 */
#include "server/ollama_template.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH = 16 };
static const char spaces[] = " \t\r\n";

struct expansion {
	const struct ollama_values *values;
	struct bytes *text, *plain;
	/* A condition around what comes: whether it is written, whether one of its branches was, and whether what is
	 * around it is. */
	struct {
		bool on, done, around;
	} in[DEPTH];
	unsigned depth;
	bool over; /* behind .Response nothing belongs to a prompt */
	struct refusal *refusal;
};

static bool is_on(const struct expansion *e) { return e->depth == 0 || e->in[e->depth - 1].on; }

static void put(struct expansion *e, const char *text, size_t n, unsigned char plain)
{
	if (!is_on(e) || e->over)
		return;
	bytes_add(e->text, text, n);
	for (size_t i = 0; i < n; i++)
		bytes_add(e->plain, &plain, 1);
}

static bool refuse_action(const struct expansion *e, const char *action, size_t n)
{
	return refuse(e->refusal, 400, "template",
	              "template has {{ %.*s }}, expected .System, .Prompt, .Suffix, .Response, if, else or end",
	              (int)(n < 80 ? n : 80), action);
}

/* NULL: there is no value of that name. */
static const char *value_of(const struct expansion *e, const char *name, size_t n)
{
	const struct {
		const char *name, *value;
	} rows[] = { { ".System", e->values->system },
		     { ".Prompt", e->values->prompt },
		     { ".Suffix", e->values->suffix },
		     { ".Response", "" },
		     { ".First", "true" },
		     { ".Tools", "" } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0)
			return rows[i].value ? rows[i].value : "";
	return NULL;
}

static bool starts(const char *action, size_t n, const char *word)
{
	const size_t length = strlen(word);

	return n >= length && memcmp(action, word, length) == 0 && (n == length || strchr(spaces, action[length]));
}

/* Behind "if". */
static bool condition(struct expansion *e, const char *action, size_t n, bool *holds)
{
	const size_t skip = strspn(action, spaces);
	const char *value = skip < n ? value_of(e, action + skip, n - skip) : NULL;

	*holds = value && *value;
	return value != NULL;
}

static bool open_branch(struct expansion *e, const char *action, size_t n)
{
	bool holds;

	if (e->depth == DEPTH)
		return refuse(e->refusal, 400, "template", "template has more than %d conditions in each other", DEPTH);
	if (!condition(e, action, n, &holds))
		return refuse_action(e, action, n);
	const bool around = is_on(e);
	e->in[e->depth].around = around;
	e->in[e->depth].on = around && holds;
	e->in[e->depth++].done = holds;
	return true;
}

static bool next_branch(struct expansion *e, const char *action, size_t n)
{
	const size_t skip = 4 + strspn(action + 4, spaces);
	bool holds = true;

	if (e->depth == 0 || (n > 4 && (!starts(action + skip, n - skip, "if") ||
	                                !condition(e, action + skip + 2, n - skip - 2, &holds))))
		return refuse_action(e, action, n);
	e->in[e->depth - 1].on = e->in[e->depth - 1].around && !e->in[e->depth - 1].done && holds;
	e->in[e->depth - 1].done = e->in[e->depth - 1].done || holds;
	return true;
}

/* n bytes without the spaces around them. */
static bool act(struct expansion *e, const char *action, size_t n)
{
	const char *value = value_of(e, action, n);

	if (n == 0 || (n >= 4 && memcmp(action, "/*", 2) == 0 && memcmp(action + n - 2, "*/", 2) == 0))
		return true;
	if (n == strlen(".Response") && memcmp(action, ".Response", n) == 0) {
		e->over = e->over || is_on(e);
		return true;
	}
	if (value) {
		put(e, value, strlen(value), 1);
		return true;
	}
	if (starts(action, n, "if"))
		return open_branch(e, action + 2, n - 2);
	if (starts(action, n, "else"))
		return next_branch(e, action, n);
	if (n != 3 || memcmp(action, "end", 3) != 0 || e->depth == 0)
		return refuse_action(e, action, n);
	e->depth--;
	return true;
}

static bool is_space(char c) { return c && strchr(spaces, c); }

bool ollama_expand(const char *given, const struct ollama_values *values, struct bytes *text, struct bytes *plain,
                   struct refusal *r)
{
	struct expansion e = { .values = values, .text = text, .plain = plain, .refusal = r };
	const char *at = given;

	for (const char *open; (open = strstr(at, "{{"));) {
		const char *close = strstr(open, "}}"), *from = open + 2, *to = close, *end = open;
		if (!close)
			return refuse(r, 400, "template", "template has {{ without }} behind it");
		const bool before = *from == '-' && is_space(from[1]), behind = to > from + 1 && to[-1] == '-';
		from += before;
		to -= behind;
		while (before && end > at && is_space(end[-1]))
			end--;
		put(&e, at, (size_t)(end - at), 0);
		while (from < to && is_space(*from))
			from++;
		while (to > from && is_space(to[-1]))
			to--;
		if (!act(&e, from, (size_t)(to - from)))
			return false;
		at = close + 2;
		at += behind ? strspn(at, spaces) : 0;
	}
	put(&e, at, strlen(at), 0);
	return e.depth == 0 || refuse(r, 400, "template", "template has a condition without {{ end }}");
}

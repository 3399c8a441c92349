/* loaders/adapter/adapter_names.c - expressions that name modules, as rank_pattern and alpha_pattern have them
 * (adapter_config.h).
 *
 * An expression is followed through the path with the set of all positions it may have come to, so that no expression
 * takes long: what would take too many steps is refused, as is what this does not know.
 */
#include <string.h>

#include "loaders/adapter/adapter_config.h"

enum { MAX_PATH = 512, STEPS_MAX = 1 << 16, DEPTH_MAX = 16 };

/* Positions in a path; [n] is its end. */
struct positions {
	bool at[MAX_PATH + 1];
};
struct naming {
	const char *path;
	size_t n;
	unsigned steps, depth;
	bool bad;
};

static void follow(struct naming *m, const char *p, const char *end, const struct positions *from,
                   struct positions *to);

/* ---- single characters */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_escaped(struct naming *m, char which, char c)
{
	if (which == 'd')
		return c >= '0' && c <= '9';
	if (which == 'w')
		return is_word(c);
	m->bad = m->bad || is_word(which);
	return c == which;
}

/* p: behind the bracket; end: the closing one. */
static bool is_in_class(struct naming *m, const char *p, const char *end, char c)
{
	const bool other = *p == '^';
	bool found = false;

	for (p += other; p < end; p++) {
		if (*p == '\\' && p + 1 < end) {
			found |= is_escaped(m, *++p, c);
		} else if (p + 2 < end && p[1] == '-') {
			found |= c >= p[0] && c <= p[2];
			p += 2;
		} else {
			found |= c == *p;
		}
	}
	return found != other;
}

static bool is_one(struct naming *m, const char *p, const char *end, char c)
{
	switch (*p) {
	case '.': return true;
	case '\\': return is_escaped(m, p[1], c);
	case '[': return is_in_class(m, p + 1, end - 1, c);
	default: m->bad = m->bad || strchr("*+?{}])", *p) != NULL; return c == *p;
	}
}

/* ---- parts */

/* The end of what begins at p: a character, a class or a group. NULL: it has none. */
static const char *part_end(const char *p, const char *end)
{
	unsigned open = 0;

	if (*p == '[') {
		for (p += p + 1 < end && p[1] == '^' ? 3 : 2; p < end && *p != ']'; p++)
			p += *p == '\\';
		return p < end ? p + 1 : NULL;
	}
	if (*p == '\\')
		return p + 2 <= end ? p + 2 : NULL;
	if (*p != '(')
		return p + 1;
	do {
		const char *behind = *p == '(' || *p == ')' ? p + 1 : part_end(p, end);
		open += *p == '(';
		open -= *p == ')';
		if (!behind)
			return NULL;
		p = behind;
	} while (open && p < end);
	return open ? NULL : p;
}

static void part(struct naming *m, const char *p, const char *end, const struct positions *from, struct positions *to)
{
	*to = (struct positions){ { false } };
	if (*p == '(') {
		p += end - p > 3 && p[1] == '?' && p[2] == ':' ? 3 : 1;
		follow(m, p, end - 1, from, to);
		return;
	}
	if (*p == '^' || *p == '$') {
		const size_t at = *p == '^' ? 0 : m->n;
		to->at[at] = from->at[at];
		return;
	}
	for (size_t i = 0; i < m->n; i++)
		to->at[i + 1] = from->at[i] && is_one(m, p, end, m->path[i]);
	is_one(m, p, end, 0);
}

/* Adds positions. Whether any was new. */
static bool add_positions(struct positions *to, const struct positions *more, size_t n)
{
	bool any = false;

	for (size_t i = 0; i <= n; i++) {
		any |= more->at[i] && !to->at[i];
		to->at[i] |= more->at[i];
	}
	return any;
}

/* A part as often as `often` says: '*', '+', '?', or once. */
static void parts(struct naming *m, const char *p, const char *end, char often, struct positions *at)
{
	struct positions all = *at, one;

	if (often == '+' || !often) {
		part(m, p, end, at, &one);
		all = one;
	} else {
		one = *at;
	}
	while (often && !m->bad) {
		struct positions next;
		part(m, p, end, &one, &next);
		if (!add_positions(&all, &next, m->n) || often == '?')
			break;
		one = next;
	}
	*at = all;
}

/* One branch of an expression; returns where it ends. */
static const char *branch(struct naming *m, const char *p, const char *end, struct positions *at)
{
	while (p < end && *p != '|' && !m->bad) {
		const char *behind = part_end(p, end);
		m->bad = m->bad || !behind || ++m->steps > STEPS_MAX;
		if (m->bad)
			break;
		const bool repeats = behind < end && strchr("*+?", *behind) != NULL;
		parts(m, p, behind, repeats ? *behind : 0, at);
		p = behind + repeats;
		p += repeats && p < end && *p == '?'; /* as few as there may be are the same names */
	}
	return p;
}

static void follow(struct naming *m, const char *p, const char *end, const struct positions *from, struct positions *to)
{
	*to = (struct positions){ { false } };
	m->bad = m->bad || ++m->depth > DEPTH_MAX;
	for (bool more = true; more && !m->bad;) {
		struct positions at = *from;
		p = branch(m, p, end, &at);
		add_positions(to, &at, m->n);
		more = p < end && *p == '|';
		p += more;
	}
	m->depth--;
}

bool adapter_names(const char *expression, const char *path, bool *bad)
{
	struct naming m = { .path = path, .n = strlen(path) };
	struct positions from = { { true } }, to = { { false } };

	*bad = m.n > MAX_PATH;
	for (size_t i = 0; !*bad && i < m.n; i++)
		from.at[i + 1] = path[i] == '.';
	if (!*bad)
		follow(&m, expression, expression + strlen(expression), &from, &to);
	*bad = *bad || m.bad;
	return !*bad && to.at[m.n];
}

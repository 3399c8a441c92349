/* grammar/rules/lark_lazy.c - repetitions of as few as possible.
 *
 * `a.*?b` ends at the first b: before each character that is repeated, what follows the repetition is looked for, and
 * must not be there. A stack cannot look ahead, but an automaton can (lark_states.c).
 */
#include <stdlib.h>

#include "grammar/machine/effort.h"
#include "grammar/rules/lark_parts.h"

enum { DEPTH_MAX = 1000 };

/* ---- the expression, with looking ahead */

struct unlazy {
	struct expression *x;
	bool *lazy; /* [node]: there is such a repetition in it */
	size_t n;
	unsigned depth;
};

/* Parts of a node have smaller numbers than it. */
static void mark(struct unlazy *u)
{
	for (size_t i = 0; i < u->n; i++) {
		const struct expression_node *e = &u->x->node[i];
		const bool pair = e->kind == EXPRESSION_JOIN || e->kind == EXPRESSION_EITHER;
		u->lazy[i] = (pair && (u->lazy[e->first] || u->lazy[e->rest])) ||
		             (e->kind == EXPRESSION_REPEAT && (e->rest || u->lazy[e->first]));
	}
}

/* A node with what follows it in the terminal. */
static uint32_t rewrite(struct unlazy *u, uint32_t node, uint32_t follows)
{
	struct expression *x = u->x;
	const struct expression_node e = x->node[node];
	uint32_t first, rest;

	if (node >= u->n || !u->lazy[node] || x->failed || !effort_take(4))
		return node;
	if (++u->depth > DEPTH_MAX) {
		x->failed = true;
		return node;
	}
	if (e.kind == EXPRESSION_JOIN) {
		first = rewrite(u, e.first, expression_join(x, e.rest, follows));
		rest = rewrite(u, e.rest, follows);
		node = expression_join(x, first, rest);
	} else if (e.kind == EXPRESSION_EITHER) {
		first = rewrite(u, e.first, follows);
		rest = rewrite(u, e.rest, follows);
		node = expression_either(x, first, rest);
	} else {
		const uint32_t more = expression_join(x, expression_repeat(x, e.first, 0, REPEAT_ANY), follows);
		const uint32_t max = e.max == REPEAT_ANY ? REPEAT_ANY : e.max - e.min;
		first = rewrite(u, e.first, more);
		rest = expression_join(x, expression_ahead(x, follows, true), first);
		node = !e.rest ? expression_repeat(x, first, e.min, e.max)
		               : expression_join(x, expression_repeat(x, first, e.min, e.min),
		                                 expression_repeat(x, rest, 0, max));
	}
	u->depth--;
	return node;
}

/* Only what has such repetitions, and what stands behind it, is followed by an automaton. */
static bool replace(struct unlazy *u, struct lark *r, size_t at, uint32_t node, uint32_t *out)
{
	const struct expression_node e = u->x->node[node];
	const bool pair = e.kind == EXPRESSION_EITHER || (e.kind == EXPRESSION_JOIN && !u->lazy[e.first]);
	uint32_t first, rest;

	*out = node;
	if (!u->lazy[node])
		return true;
	if (!pair)
		return lark_states(r, at, rewrite(u, node, expression_empty(u->x)), out);
	if (++u->depth > DEPTH_MAX)
		return lark_lacks(r, at, "too many parts, some of which have ? behind a repetition");
	if (!replace(u, r, at, e.first, &first) || !replace(u, r, at, e.rest, &rest))
		return false;
	u->depth--;
	*out = e.kind == EXPRESSION_JOIN ? expression_join(u->x, first, rest) : expression_either(u->x, first, rest);
	return true;
}

bool lark_unlazy(struct lark *r, size_t at, uint32_t node, uint32_t *out)
{
	struct unlazy u = { .x = &r->g->x, .n = r->g->x.n };
	bool ok;

	if (u.x->failed || !(u.lazy = effort_calloc(u.n + 1, sizeof *u.lazy)) || !effort_take(u.n)) {
		ok = lark_no_memory(r);
	} else {
		mark(&u);
		ok = replace(&u, r, at, node, out);
	}
	free(u.lazy);
	return ok;
}

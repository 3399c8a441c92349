/* chat/go_template_compare.c - eq, ne, lt, le, gt and ge of Go's templates.
 *
 * Owns: which values can be compared: those of one basic type, and all with nil.
 */
#include <string.h>

#include "chat/go_template.h"

enum basic { BASIC_NONE, BASIC_BOOL, BASIC_INT, BASIC_UINT, BASIC_FLOAT, BASIC_STRING };

static enum basic basic_of(struct go_value v)
{
	switch (v.kind) {
	case GO_BOOL: return BASIC_BOOL;
	case GO_INT: return BASIC_INT;
	case GO_BYTE: return BASIC_UINT;
	case GO_FLOAT: return BASIC_FLOAT;
	case GO_STRING: return BASIC_STRING;
	default: return BASIC_NONE;
	}
}

static bool is_integer(enum basic b) { return b == BASIC_INT || b == BASIC_UINT; }

static bool same(struct go_value a, struct go_value b)
{
	switch (basic_of(a)) {
	case BASIC_BOOL: return a.truth == b.truth;
	case BASIC_FLOAT: return a.real == b.real;
	case BASIC_STRING: return text_same(a.text, b.text);
	default: return a.integer == b.integer;
	}
}

static struct go_value unlike(struct go_run *g, const struct go_node *n, struct go_value a, struct go_value b)
{
	return go_fail(g, n, "a value of type %s is compared with one of type %s, expected one type", go_type_name(a),
	               go_type_name(b));
}

/* Of two that are of no basic type. */
static struct go_value other_equal(struct go_run *g, const struct go_node *n, struct go_value a, struct go_value b)
{
	if (a.kind != b.kind && a.kind != GO_NONE && b.kind != GO_NONE)
		return unlike(g, n, a, b);
	if (go_is_nil(a) || go_is_nil(b))
		return go_of_bool(go_is_nil(a) == go_is_nil(b));
	if (a.kind == GO_POINTER)
		return go_of_bool(a.field == b.field);
	if (a.kind == GO_ORDERED)
		return go_of_bool(a.map == b.map);
	return go_fail(g, n, "values of type %s cannot be compared", go_type_name(b));
}

/* The first one with any other. */
static struct go_value equal(struct go_run *g, const struct go_node *n, const struct go_value *v, size_t count)
{
	const enum basic first = basic_of(v[0]);

	for (size_t i = 1; i < count; i++) {
		const enum basic then = basic_of(v[i]);
		struct go_value is = go_of_bool(false);
		if (first == then || (is_integer(first) && is_integer(then)))
			is = first == BASIC_NONE ? other_equal(g, n, v[0], v[i]) : go_of_bool(same(v[0], v[i]));
		else if (v[0].kind != GO_NONE && v[i].kind != GO_NONE)
			return unlike(g, n, v[0], v[i]);
		if (g->r->failed || is.truth)
			return is;
	}
	return go_of_bool(false);
}

static struct go_value below(struct go_run *g, const struct go_node *n, struct go_value a, struct go_value b)
{
	const enum basic first = basic_of(a), then = basic_of(b);

	if (first == BASIC_NONE || then == BASIC_NONE || (first == then && first == BASIC_BOOL))
		return go_fail(g, n, "a value of type %s has no order, expected numbers or strings",
		               go_type_name(first == BASIC_NONE || first == BASIC_BOOL ? a : b));
	if (first != then && !(is_integer(first) && is_integer(then)))
		return unlike(g, n, a, b);
	return go_of_bool(first == BASIC_FLOAT    ? a.real < b.real
	                  : first == BASIC_STRING ? text_order(a.text, b.text) < 0
	                                          : a.integer < b.integer);
}

struct go_value go_compare(struct go_run *g, const struct go_node *n, const char *how, const struct go_value *given,
                           size_t count)
{
	struct go_value v[2], out;
	const bool swapped = strcmp(how, "ge") == 0 || strcmp(how, "gt") == 0;

	if (strcmp(how, "eq") == 0 || strcmp(how, "ne") == 0) {
		if (count < 2)
			return go_fail(g, n, "%s has nothing to compare with", how);
		out = equal(g, n, given, count);
		out.truth = out.truth == (how[0] == 'e');
		return out;
	}
	v[0] = given[0];
	v[1] = given[1];
	out = below(g, n, v[0], v[1]);
	/* le and gt: below or equal, and not */
	if (!g->r->failed && !out.truth && (strcmp(how, "le") == 0 || strcmp(how, "gt") == 0))
		out = equal(g, n, v, 2);
	out.truth = out.truth != swapped;
	return out;
}

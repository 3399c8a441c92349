/* chat/jinja_test.c - the tests behind "is".
 *
 * Owns: their table, and which values each holds for, as in Jinja.
 */
#include <math.h>
#include <string.h>

#include "chat/jinja.h"
#include "chat/jinja_methods.h"

typedef bool test_fn(struct run *r, struct value v, struct value other);
struct test {
	const char *name;
	test_fn *holds;
	unsigned arguments;
};

static bool is_defined(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind != KIND_UNDEFINED;
}
static bool is_undefined(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_UNDEFINED;
}
static bool is_none(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_NONE;
}
static bool is_boolean(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_BOOL;
}
static bool is_true(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_BOOL && v.truth;
}
static bool is_false(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_BOOL && !v.truth;
}
static bool is_integer(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_INT;
}
static bool is_float(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_FLOAT;
}
static bool is_any_number(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return is_number(v);
}
static bool is_string(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_TEXT;
}
static bool is_mapping(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_DICT;
}
static bool is_escaped(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_TEXT && v.text->safe;
}
static bool is_callable(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_MACRO || v.kind == KIND_FUNCTION || v.kind == KIND_METHOD || v.kind == KIND_UNDEFINED;
}

static bool is_iterable(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return is_sequence(v) || v.kind == KIND_TEXT || v.kind == KIND_DICT || v.kind == KIND_UNDEFINED ||
	       v.kind == KIND_LOOP;
}

/* What has a length and items by number or key. */
static bool is_sequence_test(struct run *r, struct value v, struct value o)
{
	return is_iterable(r, v, o) && v.kind != KIND_VIEW && v.kind != KIND_STREAM && v.kind != KIND_LOOP;
}

static bool is_same(struct run *r, struct value v, struct value o)
{
	(void)r;
	return value_same(v, o);
}
static bool is_in(struct run *r, struct value v, struct value o) { return value_contains(r, o, v); }
static bool is_equal(struct run *r, struct value v, struct value o) { return value_equal(r, v, o); }
static bool is_unequal(struct run *r, struct value v, struct value o) { return !value_equal(r, v, o); }

static bool not_a_number(struct value v, struct value o)
{
	return is_number(v) && is_number(o) && (isnan(real_of(v)) || isnan(real_of(o)));
}
static bool is_less(struct run *r, struct value v, struct value o)
{
	return !not_a_number(v, o) && value_compare(r, v, o, "<") < 0;
}
static bool is_less_or_equal(struct run *r, struct value v, struct value o)
{
	return !not_a_number(v, o) && value_compare(r, v, o, "<=") <= 0;
}
static bool is_greater(struct run *r, struct value v, struct value o)
{
	return !not_a_number(v, o) && value_compare(r, v, o, ">") > 0;
}
static bool is_greater_or_equal(struct run *r, struct value v, struct value o)
{
	return !not_a_number(v, o) && value_compare(r, v, o, ">=") >= 0;
}

static bool rest_is(struct run *r, struct value v, struct value by, double want)
{
	struct value m = operate(r, '%', v, by);

	return !r->failed && value_equal(r, m, value_float(want));
}

static bool is_odd(struct run *r, struct value v, struct value o)
{
	(void)o;
	return rest_is(r, v, value_int(2), 1);
}
static bool is_even(struct run *r, struct value v, struct value o)
{
	(void)o;
	return rest_is(r, v, value_int(2), 0);
}
static bool is_divisible(struct run *r, struct value v, struct value o) { return rest_is(r, v, o, 0); }

static bool has_case(struct run *r, struct value v, unsigned which)
{
	const struct arguments none = { 0 };

	return string_method(r, which, to_text(r, v), &none).truth && !r->failed;
}

static bool is_lower(struct run *r, struct value v, struct value o)
{
	(void)o;
	return has_case(r, v, STRING_islower);
}
static bool is_upper(struct run *r, struct value v, struct value o)
{
	(void)o;
	return has_case(r, v, STRING_isupper);
}
static bool is_filter(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_TEXT && find_filter(v.text->p, v.text->n) != NO_NUMBER;
}
static bool is_test(struct run *r, struct value v, struct value o)
{
	(void)r;
	(void)o;
	return v.kind == KIND_TEXT && find_test(v.text->p, v.text->n) != NO_NUMBER;
}

static const struct test tests[] = {
	{ "defined", is_defined, 0 },
	{ "undefined", is_undefined, 0 },
	{ "none", is_none, 0 },
	{ "boolean", is_boolean, 0 },
	{ "true", is_true, 0 },
	{ "false", is_false, 0 },
	{ "integer", is_integer, 0 },
	{ "float", is_float, 0 },
	{ "number", is_any_number, 0 },
	{ "string", is_string, 0 },
	{ "mapping", is_mapping, 0 },
	{ "iterable", is_iterable, 0 },
	{ "sequence", is_sequence_test, 0 },
	{ "callable", is_callable, 0 },
	{ "escaped", is_escaped, 0 },
	{ "lower", is_lower, 0 },
	{ "upper", is_upper, 0 },
	{ "odd", is_odd, 0 },
	{ "even", is_even, 0 },
	{ "divisibleby", is_divisible, 1 },
	{ "sameas", is_same, 1 },
	{ "in", is_in, 1 },
	{ "filter", is_filter, 0 },
	{ "test", is_test, 0 },
	{ "eq", is_equal, 1 },
	{ "equalto", is_equal, 1 },
	{ "==", is_equal, 1 },
	{ "ne", is_unequal, 1 },
	{ "!=", is_unequal, 1 },
	{ "lt", is_less, 1 },
	{ "lessthan", is_less, 1 },
	{ "<", is_less, 1 },
	{ "le", is_less_or_equal, 1 },
	{ "<=", is_less_or_equal, 1 },
	{ "gt", is_greater, 1 },
	{ "greaterthan", is_greater, 1 },
	{ ">", is_greater, 1 },
	{ "ge", is_greater_or_equal, 1 },
	{ ">=", is_greater_or_equal, 1 },
};

unsigned find_test(const char *name, size_t n)
{
	for (unsigned i = 0; i < sizeof tests / sizeof *tests; i++)
		if (strlen(tests[i].name) == n && memcmp(tests[i].name, name, n) == 0)
			return i;
	return NO_NUMBER;
}

bool apply_test(struct run *r, unsigned number, struct value v, const struct arguments *args)
{
	const struct test *t = &tests[number];

	if (!run_step(r, 1))
		return false;
	if (args->n + args->n_keywords != t->arguments) {
		run_fail(r, "the test '%s' takes %u argument%s, %zu given", t->name, t->arguments,
		         t->arguments == 1 ? "" : "s", args->n + args->n_keywords);
		return false;
	}
	return t->holds(r, v, t->arguments ? args->n ? args->v[0] : args->keyword[0].value : value_none()) &&
	       !r->failed;
}

/* chat/jinja_test.c - the tests behind "is".
 *
 * Owns: their table, and which values each holds for, as in Jinja.
 */
#include <math.h>
#include <string.h>

#include "chat/jinja.h"
#include "chat/jinja_methods.h"

/* One of these three, by what it needs: the value alone; a run, which can fail; another value, its argument. */
struct test {
	const char *name;
	bool (*of)(struct value v);
	bool (*in_run)(struct run *r, struct value v);
	bool (*beside)(struct run *r, struct value v, struct value other);
};

static bool is_defined(struct value v) { return v.kind != KIND_UNDEFINED; }
static bool is_undefined(struct value v) { return v.kind == KIND_UNDEFINED; }
static bool is_none(struct value v) { return v.kind == KIND_NONE; }
static bool is_boolean(struct value v) { return v.kind == KIND_BOOL; }
static bool is_true(struct value v) { return v.kind == KIND_BOOL && v.truth; }
static bool is_false(struct value v) { return v.kind == KIND_BOOL && !v.truth; }
static bool is_integer(struct value v) { return v.kind == KIND_INT; }
static bool is_float(struct value v) { return v.kind == KIND_FLOAT; }
static bool is_any_number(struct value v) { return is_number(v); }
static bool is_string(struct value v) { return v.kind == KIND_TEXT; }
static bool is_mapping(struct value v) { return v.kind == KIND_DICT; }
static bool is_escaped(struct value v) { return v.kind == KIND_TEXT && v.text->safe; }
static bool is_callable(struct value v)
{
	return v.kind == KIND_MACRO || v.kind == KIND_FUNCTION || v.kind == KIND_METHOD || v.kind == KIND_UNDEFINED;
}

static bool is_iterable(struct value v)
{
	return is_sequence(v) || v.kind == KIND_TEXT || v.kind == KIND_DICT || v.kind == KIND_UNDEFINED ||
	       v.kind == KIND_LOOP;
}

/* What has a length and items by number or key. */
static bool is_sequence_test(struct value v)
{
	return is_iterable(v) && v.kind != KIND_VIEW && v.kind != KIND_STREAM && v.kind != KIND_LOOP;
}

static bool is_same(struct run *r, struct value v, struct value o) { return value_same(v, o); }
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

static bool is_odd(struct run *r, struct value v) { return rest_is(r, v, value_int(2), 1); }
static bool is_even(struct run *r, struct value v) { return rest_is(r, v, value_int(2), 0); }
static bool is_divisible(struct run *r, struct value v, struct value o) { return rest_is(r, v, o, 0); }

static bool has_case(struct run *r, struct value v, unsigned which)
{
	const struct arguments none = { 0 };

	return string_method(r, which, to_text(r, v), &none).truth && !r->failed;
}

static bool is_lower(struct run *r, struct value v) { return has_case(r, v, STRING_islower); }
static bool is_upper(struct run *r, struct value v) { return has_case(r, v, STRING_isupper); }
static bool is_filter(struct value v) { return v.kind == KIND_TEXT && find_filter(v.text->p, v.text->n) != NO_NUMBER; }
static bool is_test(struct value v) { return v.kind == KIND_TEXT && find_test(v.text->p, v.text->n) != NO_NUMBER; }

static const struct test tests[] = {
	{ "defined", .of = is_defined },
	{ "undefined", .of = is_undefined },
	{ "none", .of = is_none },
	{ "boolean", .of = is_boolean },
	{ "true", .of = is_true },
	{ "false", .of = is_false },
	{ "integer", .of = is_integer },
	{ "float", .of = is_float },
	{ "number", .of = is_any_number },
	{ "string", .of = is_string },
	{ "mapping", .of = is_mapping },
	{ "iterable", .of = is_iterable },
	{ "sequence", .of = is_sequence_test },
	{ "callable", .of = is_callable },
	{ "escaped", .of = is_escaped },
	{ "lower", .in_run = is_lower },
	{ "upper", .in_run = is_upper },
	{ "odd", .in_run = is_odd },
	{ "even", .in_run = is_even },
	{ "divisibleby", .beside = is_divisible },
	{ "sameas", .beside = is_same },
	{ "in", .beside = is_in },
	{ "filter", .of = is_filter },
	{ "test", .of = is_test },
	{ "eq", .beside = is_equal },
	{ "equalto", .beside = is_equal },
	{ "==", .beside = is_equal },
	{ "ne", .beside = is_unequal },
	{ "!=", .beside = is_unequal },
	{ "lt", .beside = is_less },
	{ "lessthan", .beside = is_less },
	{ "<", .beside = is_less },
	{ "le", .beside = is_less_or_equal },
	{ "<=", .beside = is_less_or_equal },
	{ "gt", .beside = is_greater },
	{ "greaterthan", .beside = is_greater },
	{ ">", .beside = is_greater },
	{ "ge", .beside = is_greater_or_equal },
	{ ">=", .beside = is_greater_or_equal },
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
	const unsigned wanted = t->beside ? 1 : 0;

	if (!run_step(r, 1))
		return false;
	if (args->n + args->n_keywords != wanted) {
		run_fail(r, "the test '%s' takes %u argument%s, %zu given", t->name, wanted, wanted == 1 ? "" : "s",
		         args->n + args->n_keywords);
		return false;
	}
	if (t->of)
		return t->of(v);
	if (t->in_run)
		return t->in_run(r, v) && !r->failed;
	return t->beside(r, v, args->n ? args->v[0] : args->keyword[0].value) && !r->failed;
}

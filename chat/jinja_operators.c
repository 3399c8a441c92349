/* chat/jinja_operators.c - what + - * / // % ** and ~ do, as in Python.
 *
 * Owns: arithmetic, which fails where 64 bits do not hold a result, and joining and repeating texts and lists.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "chat/jinja.h"

static const char *op_name(int op, char out[3])
{
	out[0] = (char)(op > 255 ? op >> 8 : op);
	out[1] = (char)(op > 255 ? op & 255 : 0);
	out[2] = 0;
	return out;
}

static struct value unsupported(struct run *r, int op, struct value a, struct value b)
{
	char name[3];

	if (a.kind == KIND_UNDEFINED || b.kind == KIND_UNDEFINED)
		return fail_undefined(r, a.kind == KIND_UNDEFINED ? a : b);
	if (op == OPERATOR2('*', '*'))
		return run_fail(r, "unsupported operand type(s) for ** or pow(): '%s' and '%s'", value_type(a),
		                value_type(b));
	return run_fail(r, "unsupported operand type(s) for %s: '%s' and '%s'", op_name(op, name), value_type(a),
	                value_type(b));
}

static struct value too_large(struct run *r) { return run_fail(r, "an integer does not fit 64 bits"); }

/* Rounded down, as Python does. */
static int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static int64_t floor_rest(int64_t a, int64_t b)
{
	int64_t m = a % b;
	return m && (m < 0) != (b < 0) ? m + b : m;
}

static struct value power_of_integers(struct run *r, int64_t a, int64_t b)
{
	int64_t v = 1;

	if (b < 0)
		return a ? value_float(pow((double)a, (double)b))
		         : run_fail(r, "0.0 cannot be raised to a negative power");
	if (a == 0 || a == 1)
		return value_int(b ? a : 1);
	if (a == -1)
		return value_int(b & 1 ? -1 : 1);
	for (; b > 0; b--)
		if (__builtin_mul_overflow(v, a, &v))
			return too_large(r);
	return value_int(v);
}

static struct value integers(struct run *r, int op, int64_t a, int64_t b)
{
	int64_t v;

	switch (op) {
	case '+': return __builtin_add_overflow(a, b, &v) ? too_large(r) : value_int(v);
	case '-': return __builtin_sub_overflow(a, b, &v) ? too_large(r) : value_int(v);
	case '*': return __builtin_mul_overflow(a, b, &v) ? too_large(r) : value_int(v);
	case OPERATOR2('*', '*'): return power_of_integers(r, a, b);
	default: break;
	}
	if (b == 0)
		return run_fail(r, op == '/'   ? "division by zero"
		                   : op == '%' ? "integer modulo by zero"
		                               : "integer division or modulo by zero");
	if (op == '/')
		return value_float((double)a / (double)b);
	if (a == INT64_MIN && b == -1)
		return op == '%' ? value_int(0) : too_large(r);
	return value_int(op == '%' ? floor_rest(a, b) : floor_quotient(a, b));
}

static struct value reals(struct run *r, int op, double a, double b)
{
	switch (op) {
	case '+': return value_float(a + b);
	case '-': return value_float(a - b);
	case '*': return value_float(a * b);
	case OPERATOR2('*', '*'):
		if (a == 0 && b < 0)
			return run_fail(r, "0.0 cannot be raised to a negative power");
		if (a < 0 && b != floor(b) && isfinite(b))
			return run_fail(r, "a negative number to a broken power is no real number");
		return value_float(pow(a, b));
	default: break;
	}
	if (b == 0)
		return run_fail(r, op == '/'   ? "float division by zero"
		                   : op == '%' ? "float modulo"
		                               : "float floor division by zero");
	if (op == '/')
		return value_float(a / b);
	double rest = fmod(a, b);
	if (rest != 0 && (rest < 0) != (b < 0))
		rest += b;
	if (op == '%')
		return value_float(rest == 0 ? copysign(0.0, b) : rest);
	double quotient = (a - rest) / b, whole = floor(quotient);
	return value_float(quotient == 0 ? copysign(0.0, a / b) : quotient - whole > 0.5 ? whole + 1 : whole);
}

/* Markup takes what it is joined to for text of no trust, and escapes it. */
static struct value join_texts(struct run *r, const struct text *a, const struct text *b)
{
	struct build out = { .r = r };
	bool safe = a->safe || b->safe;

	if (safe && !a->safe)
		build_escaped(&out, a);
	else
		build_text(&out, a);
	if (safe && !b->safe)
		build_escaped(&out, b);
	else
		build_text(&out, b);
	struct text *t = text_change(build_done(&out));
	if (t)
		t->safe = safe;
	return value_text(t);
}

static struct value join_lists(struct run *r, struct value a, struct value b)
{
	struct value v = value_list(r, (enum kind)a.kind, a.list->n + b.list->n);

	if (v.kind == KIND_ABSENT)
		return v;
	if (a.list->n)
		memcpy(v.list->item, a.list->item, a.list->n * sizeof *v.list->item);
	if (b.list->n)
		memcpy(v.list->item + a.list->n, b.list->item, b.list->n * sizeof *v.list->item);
	v.user = a.user && b.user;
	return v;
}

static struct value add(struct run *r, struct value a, struct value b)
{
	if (a.kind == KIND_TEXT && b.kind == KIND_TEXT)
		return join_texts(r, a.text, b.text);
	if (a.kind == b.kind && (a.kind == KIND_LIST || a.kind == KIND_TUPLE))
		return join_lists(r, a, b);
	if (b.kind == KIND_UNDEFINED || a.kind == KIND_UNDEFINED)
		return unsupported(r, '+', a, b);
	if (a.kind == KIND_TEXT && !a.text->safe)
		return run_fail(r, "can only concatenate str (not \"%s\") to str", value_type(b));
	if (a.kind == KIND_LIST || a.kind == KIND_TUPLE)
		return run_fail(r, "can only concatenate %s (not \"%s\") to %s", value_type(a), value_type(b),
		                value_type(a));
	return unsupported(r, '+', a, b);
}

static struct value repeat(struct run *r, struct value v, int64_t times)
{
	if (times < 0)
		times = 0;
	if (v.kind == KIND_TEXT) {
		struct build b = { .r = r };
		if (!v.text->n)
			return v;
		for (int64_t i = 0; i < times && !r->failed; i++)
			build_text(&b, v.text);
		struct text *t = text_change(build_done(&b));
		if (t)
			t->safe = v.text->safe;
		return value_text(t);
	}
	size_t n = v.list->n, all;
	if (__builtin_mul_overflow(n, (size_t)times, &all))
		return run_fail(r, "a list has more items than there is memory for");
	struct value out = value_list(r, (enum kind)v.kind, all);
	for (size_t i = 0; out.kind != KIND_ABSENT && i < all; i++)
		out.list->item[i] = v.list->item[i % n];
	return out;
}

static bool repeats(struct value v) { return v.kind == KIND_TEXT || v.kind == KIND_LIST || v.kind == KIND_TUPLE; }

struct value operate(struct run *r, int op, struct value a, struct value b)
{
	struct value v;

	if (!run_step(r, 1))
		return value_of(KIND_ABSENT);
	if (is_number(a) && is_number(b)) {
		v = a.kind == KIND_FLOAT || b.kind == KIND_FLOAT
		            ? reals(r, op, real_of(a), real_of(b))
		            : integers(r, op, integer_of(a), integer_of(b));
		v.user = a.user || b.user;
		return v;
	}
	if (op == '+')
		return add(r, a, b);
	if (op == '%' && a.kind == KIND_TEXT)
		return string_percent(r, a.text, b);
	if (op == '*' && repeats(a) && (b.kind == KIND_INT || b.kind == KIND_BOOL))
		return repeat(r, a, integer_of(b));
	if (op == '*' && repeats(b) && (a.kind == KIND_INT || a.kind == KIND_BOOL))
		return repeat(r, b, integer_of(a));
	if (op == '*' && (repeats(a) || repeats(b)) && a.kind != KIND_UNDEFINED && b.kind != KIND_UNDEFINED)
		return run_fail(r, "can't multiply sequence by non-int of type '%s'", value_type(repeats(a) ? b : a));
	return unsupported(r, op, a, b);
}

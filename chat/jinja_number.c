/* chat/jinja_number.c - filters of numbers.
 *
 * Owns: which texts are numbers, as Python's int() and float() read them, and rounding.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "chat/jinja.h"

/* Python's float() of a text; false: it is none. */
static bool read_real(const struct text *t, double *out)
{
	char text[500], *end;
	size_t n = 0;

	if (t->n >= sizeof text)
		return false;
	for (size_t i = 0; i < t->n; i++) {
		char c = t->p[i];
		bool between =
			i && i + 1 < t->n && isdigit((unsigned char)t->p[i - 1]) && isdigit((unsigned char)t->p[i + 1]);
		if (c == '_' && between)
			continue;
		if (c == '_' || c == 0 || c == 'x' || c == 'X' || c == '(' || c == 'p' || c == 'P')
			return false;
		text[n++] = c;
	}
	text[n] = 0;
	*out = strtod(text, &end);
	return n && *end == 0 && !isspace((unsigned char)text[0]);
}

static int digit_value(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isalpha((unsigned char)c) ? (c | 32) - 'a' + 10 : 99;
}

/* Python's int() of a text: 1 read, 0 it is none, -1 too large. */
static int read_integer(const struct text *t, int64_t base, int64_t *out)
{
	static const struct {
		char letter;
		int base;
	} prefix[] = { { 'x', 16 }, { 'o', 8 }, { 'b', 2 } };
	size_t at = t->n && (t->p[0] == '-' || t->p[0] == '+');
	bool negative = at && t->p[0] == '-', digit = false;
	int64_t v = 0;

	for (size_t i = 0; i < 3; i++)
		if (t->n - at > 2 && t->p[at] == '0' && (t->p[at + 1] | 32) == prefix[i].letter &&
		    (base == prefix[i].base || base == 0)) {
			base = prefix[i].base;
			at += 2 + (t->p[at + 2] == '_');
			break;
		}
	if (base == 0)
		base = 10;
	for (; at < t->n; at++) {
		if (t->p[at] == '_' && digit && at + 1 < t->n) {
			digit = false;
			continue;
		}
		int d = digit_value(t->p[at]);
		if (d >= base)
			return 0;
		digit = true;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_sub_overflow(v, d, &v))
			return -1;
	}
	if (!digit || (!negative && v == INT64_MIN))
		return digit ? -1 : 0;
	*out = negative ? v : -v;
	return 1;
}

static struct value integer_of_real(struct run *r, double x, struct value otherwise)
{
	if (!isfinite(x))
		return otherwise;
	return x > -9.2e18 && x < 9.2e18 ? value_int((int64_t)x) : run_fail(r, "an integer does not fit 64 bits");
}

static struct value do_int(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "default", "base" };
	struct value a[2], otherwise;
	int64_t base = 10, i;
	double x;

	if (!bind_arguments(r, "int", args, names, 2, 0, a) || !want_int(r, "int", a[1], &base))
		return value_of(KIND_ABSENT);
	otherwise = a[0].kind == KIND_ABSENT ? value_int(0) : a[0];
	if (v.kind == KIND_UNDEFINED)
		return fail_undefined(r, v);
	if (v.kind == KIND_FLOAT)
		return integer_of_real(r, v.real, otherwise);
	if (is_number(v))
		return (struct value){ .kind = KIND_INT, .user = v.user, .integer = integer_of(v) };
	if (v.kind != KIND_TEXT)
		return otherwise;
	const struct text *t = string_strip(r, v.text, NULL, true, true);
	if (r->failed)
		return value_of(KIND_ABSENT);
	int got = base == 0 || (base >= 2 && base <= 36) ? read_integer(t, base, &i) : 0;
	if (got < 0)
		return run_fail(r, "an integer does not fit 64 bits");
	if (got)
		return (struct value){ .kind = KIND_INT, .user = text_user_at(t, 0), .integer = i };
	return read_real(t, &x) ? integer_of_real(r, x, otherwise) : otherwise;
}

static struct value do_float(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "default" };
	struct value a;
	double x;

	if (!bind_arguments(r, "float", args, names, 1, 0, &a))
		return value_of(KIND_ABSENT);
	if (v.kind == KIND_UNDEFINED)
		return fail_undefined(r, v);
	if (is_number(v))
		return (struct value){ .kind = KIND_FLOAT, .user = v.user, .real = real_of(v) };
	const struct text *t = v.kind == KIND_TEXT ? string_strip(r, v.text, NULL, true, true) : NULL;
	if (t && !r->failed && read_real(t, &x))
		return (struct value){ .kind = KIND_FLOAT, .user = text_user_at(t, 0), .real = x };
	return a.kind == KIND_ABSENT ? value_float(0) : a;
}

static struct value do_abs(struct run *r, struct value v, const struct arguments *args)
{
	if (!no_arguments(r, "abs", args))
		return value_of(KIND_ABSENT);
	if (v.kind == KIND_UNDEFINED)
		return fail_undefined(r, v);
	if (!is_number(v))
		return run_fail(r, "bad operand type for abs(): '%s'", value_type(v));
	if (v.kind == KIND_FLOAT)
		return value_float(fabs(v.real));
	return integer_of(v) < 0 ? operate(r, '-', value_int(0), v) : value_int(integer_of(v));
}

static struct value do_round(struct run *r, struct value v, const struct arguments *args)
{
	static const char *const names[] = { "precision", "method" };
	static const struct text common = { .p = "common", .n = 6 };
	const struct text *method = &common;
	struct value a[2];
	int64_t decimals = 0;
	char text[700];

	if (!bind_arguments(r, "round", args, names, 2, 0, a) || !want_int(r, "round", a[0], &decimals) ||
	    !want_text(r, "round", a[1], &method))
		return value_of(KIND_ABSENT);
	if (!is_number(v))
		return v.kind == KIND_UNDEFINED ? fail_undefined(r, v)
		                                : run_fail(r, "type %s doesn't define __round__ method", value_type(v));
	if (decimals < 0 || decimals > 300)
		return run_fail(r, "the filter 'round' takes 0 to 300 places here, %lld given", (long long)decimals);
	if (text_is(method, "common")) {
		if (v.kind != KIND_FLOAT || !isfinite(v.real))
			return v.kind == KIND_BOOL ? value_int(v.truth) : v;
		snprintf(text, sizeof text, "%.*f", (int)decimals, v.real);
		return value_float(strtod(text, NULL));
	}
	double scale = pow(10, (double)decimals);
	if (text_is(method, "ceil"))
		return value_float(ceil(real_of(v) * scale) / scale);
	if (text_is(method, "floor"))
		return value_float(floor(real_of(v) * scale) / scale);
	return run_fail(r, "method must be common, ceil or floor");
}

const struct filter number_filter[] = {
	{ "abs", do_abs }, { "float", do_float }, { "int", do_int }, { "round", do_round }, { NULL, NULL },
};

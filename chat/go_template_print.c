/* chat/go_template_print.c - the texts of values, as Go's package fmt writes them without a verb of its own.
 *
 * Owns: how numbers are written, and what of a written list or struct is the user's: all of it, for these come from
 * conversations alone.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/go_template.h"

/* The fewest digits that read back as x, as one digit, a dot, others and an exponent; the nearest to x of these. */
static void shortest(double x, char out[40])
{
	int precision = 0;

	do
		snprintf(out, 40, "%.*e", precision, x);
	while (strtod(out, NULL) != x && ++precision < 17);
}

void go_float_text(double x, char how, char out[48])
{
	char digits[40];

	if (!isfinite(x)) {
		strcpy(out, isnan(x) ? "NaN" : x < 0 ? "-Inf" : "+Inf");
		return;
	}
	shortest(x, digits);
	char *e = strchr(digits, 'e');
	const int exponent = atoi(e + 1), decimals = (int)(e - digits) - !!signbit(x) - 1;
	const int behind = decimals > 0 ? decimals - 1 : 0; /* digits behind the first one */
	const bool power = how == 'j' ? x != 0 && (fabs(x) < 1e-6 || fabs(x) >= 1e21) : exponent < -4 || exponent >= 6;
	if (!power) {
		snprintf(out, 48, "%.*f", behind > exponent ? behind - exponent : 0, x);
		return;
	}
	/* JSON leaves out the 0 before one digit of a negative exponent */
	const int width = how == 'j' && exponent < 0 ? 1 : 2;
	snprintf(out, 48, "%.*se%c%0*d", (int)(e - digits), digits, exponent < 0 ? '-' : '+', width, abs(exponent));
}

/* A value within another one. */
static void within(struct build *b, struct go_value v)
{
	if (v.kind == GO_POINTER || (v.kind == GO_ORDERED && !v.nil))
		run_fail(b->r,
		         "a value of type %s within another one prints as an address, expected one of its members",
		         v.type->name);
	else
		go_print(b, v);
}

static void print_items(struct build *b, struct go_value v)
{
	build_bytes(b, "[", 1, true);
	for (size_t i = 0; i < v.list->n && !b->r->failed; i++) {
		if (i)
			build_bytes(b, " ", 1, true);
		within(b, v.list->item[i]);
	}
	build_bytes(b, "]", 1, true);
}

static void print_members(struct build *b, struct go_value v)
{
	build_string(b, "map[", true);
	for (size_t i = 0; i < v.map->n && !b->r->failed; i++) {
		if (i)
			build_bytes(b, " ", 1, true);
		build_text(b, v.map->pair[i].key);
		build_bytes(b, ":", 1, true);
		within(b, v.map->pair[i].value);
	}
	build_bytes(b, "]", 1, true);
}

static void print_fields(struct build *b, struct go_value v)
{
	const struct go_type *type = v.kind == GO_POINTER ? v.type->element : v.type;

	build_string(b, v.kind == GO_POINTER ? "&{" : "{", true);
	for (size_t i = 0; i < type->n_fields && !b->r->failed; i++) {
		if (i)
			build_bytes(b, " ", 1, true);
		within(b, v.field[i]);
	}
	build_bytes(b, "}", 1, true);
}

/* By its own method String(). False: it has none. */
static bool print_itself(struct build *b, struct go_value v)
{
	if (!v.type || v.type->says == GO_SAYS_NOTHING)
		return false;
	if (v.type->says == GO_SAYS_TYPES && v.list->n == 1)
		build_text(b, v.list->item[0].text);
	else if (v.type->says == GO_SAYS_TYPES && v.list->n > 1)
		print_items(b, v);
	else if (v.type->says == GO_SAYS_JSON && v.nil && v.kind == GO_MAP)
		build_string(b, "{}", true);
	else if (v.type->says == GO_SAYS_JSON)
		go_json(b, v);
	return true;
}

void go_print(struct build *b, struct go_value v)
{
	char text[48];

	if (!run_step(b->r, 1) || print_itself(b, v))
		return;
	switch (v.kind) {
	case GO_BOOL: build_string(b, v.truth ? "true" : "false", v.user); return;
	case GO_STRING: build_text(b, v.text); return;
	case GO_LIST: print_items(b, v); return;
	case GO_MAP: print_members(b, v); return;
	case GO_STRUCT:
	case GO_POINTER:
		if (!v.nil || v.kind == GO_STRUCT) {
			print_fields(b, v);
			return;
		}
		break;
	case GO_ORDERED:
		if (!v.nil) {
			run_fail(b->r, "a value of type %s prints as addresses, expected one of its members",
			         v.type->name);
			return;
		}
		break;
	case GO_INT:
	case GO_BYTE: snprintf(text, sizeof text, "%" PRId64, v.integer); break;
	case GO_FLOAT: go_float_text(v.real, 'g', text); break;
	default: break;
	}
	if (v.kind != GO_INT && v.kind != GO_BYTE && v.kind != GO_FLOAT)
		strcpy(text, "<nil>");
	build_string(b, text, v.user);
}

/* Go's Sprint has a space between two that are no strings, Sprintln between all. */
void go_print_all(struct build *b, const struct go_value *v, size_t n, bool lines)
{
	for (size_t i = 0; i < n; i++) {
		if (i && (lines || (v[i].kind != GO_STRING && v[i - 1].kind != GO_STRING)))
			build_bytes(b, " ", 1, false);
		go_print(b, v[i]);
	}
	if (lines)
		build_bytes(b, "\n", 1, false);
}

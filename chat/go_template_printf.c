/* chat/go_template_printf.c - printf as Go's package fmt has it: verbs, flags, width and precision.
 *
 * Owns: that a verb which does not fit its value says so in the text, as in Go. Forms that name addresses or Go's own
 * syntax, and arguments by number, are refused.
 */
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "chat/go_template.h"

enum { MAX_WIDTH = 1000000 };

static size_t runes(const struct text *t)
{
	size_t count = 0;
	uint32_t c;

	for (size_t i = 0; i < t->n; count++) {
		const unsigned n = text_char(t->p + i, t->n - i, &c);
		i += n ? n : 1;
	}
	return count;
}

static void fill(struct build *b, char c, int64_t n)
{
	for (; n > 0 && !b->r->failed; n--)
		build_bytes(b, &c, 1, false);
}

/* With the width's padding. head: bytes of a sign, behind which zeros stand. */
static void pad(struct build *b, const struct text *t, const struct go_format *f, size_t head)
{
	const int64_t lacks = f->width - (int64_t)runes(t);
	const bool zero = f->zero && !f->minus;

	if (!f->minus && !zero)
		fill(b, ' ', lacks);
	build_part(b, t, 0, zero ? head : 0);
	if (zero)
		fill(b, '0', lacks);
	build_part(b, t, zero ? head : 0, t->n - (zero ? head : 0));
	if (f->minus)
		fill(b, ' ', lacks);
}

/* The value follows as %v writes it, with the same width. */
static void bad_verb(struct go_run *g, const struct go_node *n, struct build *b, struct go_value v, const char *verb,
                     size_t length, const struct go_format *f)
{
	struct go_format plain = *f;

	plain.verb = 'v';
	plain.sharp = false;
	build_bytes(b, "%!", 2, false);
	build_bytes(b, verb, length, false);
	build_bytes(b, "(", 1, false);
	if (v.kind == GO_NONE || v.kind == GO_NIL) {
		build_string(b, "<nil>)", false);
		return;
	}
	build_string(b, go_type_name(v), false);
	build_bytes(b, "=", 1, false);
	go_print_as(g, n, b, v, &plain);
	build_bytes(b, ")", 1, false);
}

/* ---- strings */

static void quote(struct build *b, const struct text *t, bool ascii, char mark)
{
	static const char from[] = "\a\b\f\n\r\t\v\\", to[] = "abfnrtv\\";
	char text[16];

	build_bytes(b, &mark, 1, false);
	for (size_t i = 0; i < t->n && !b->r->failed;) {
		uint32_t c = 0;
		const unsigned n = text_char(t->p + i, t->n - i, &c);
		const char *known = n && c && c < 0x80 ? strchr(from, (int)c) : NULL;
		const bool mine = text_user_at(t, i);
		if (known || (n && c == (unsigned char)mark)) {
			snprintf(text, sizeof text, "\\%c", known ? to[known - from] : mark);
			build_string(b, text, mine);
		} else if (n && character_prints(c) && (c < 0x80 || !ascii)) {
			build_part(b, t, i, n);
		} else {
			snprintf(text, sizeof text,
			         !n                      ? "\\x%02x"
			         : c < 0x20 || c == 0x7f ? "\\x%02x"
			         : c < 0x10000           ? "\\u%04x"
			                                 : "\\U%08x",
			         n ? (unsigned)c : (unsigned)(unsigned char)t->p[i]);
			build_string(b, text, mine);
		}
		i += n ? n : 1;
	}
	build_bytes(b, &mark, 1, false);
}

static void hex(struct build *b, const struct text *t, const struct go_format *f)
{
	char two[6];

	if (f->sharp && t->n)
		build_string(b, f->verb == 'x' ? "0x" : "0X", false);
	for (size_t i = 0; i < t->n && !b->r->failed; i++) {
		snprintf(two, sizeof two, f->verb == 'x' ? "%02x" : "%02X", (unsigned)(unsigned char)t->p[i]);
		build_string(b, two, text_user_at(t, i));
	}
}

static const struct text *shortened(struct run *r, const struct text *t, int max)
{
	size_t at = 0;
	uint32_t c;

	if (max < 0)
		return t;
	for (int k = 0; k < max && at < t->n; k++) {
		const unsigned n = text_char(t->p + at, t->n - at, &c);
		at += n ? n : 1;
	}
	return text_part(r, t, 0, at);
}

/* False: the verb is none of strings. */
static bool print_string(struct build *b, const struct text *t, const struct go_format *f)
{
	struct build own = { .r = b->r };
	const struct text *part = shortened(b->r, t, f->precision);

	if (!part)
		return true;
	switch (f->verb) {
	case 'v':
	case 's': pad(b, part, f, 0); return true;
	case 'q': quote(&own, part, f->plus, '"'); break;
	case 'x':
	case 'X':
		hex(&own,
		    f->precision < 0 || (size_t)f->precision > t->n ? t : text_part(b->r, t, 0, (size_t)f->precision),
		    f);
		break;
	default: return false;
	}
	part = build_done(&own);
	if (part)
		pad(b, part, f, 0);
	return true;
}

/* ---- numbers */

static void print_digits(char out[80], uint64_t v, unsigned base, bool upper)
{
	const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
	size_t n = 80;

	out[--n] = 0;
	do
		out[--n] = digits[v % base];
	while (v /= base);
	memmove(out, out + n, 80 - n);
}

static void put_integer(struct build *b, struct go_value v, const struct go_format *f, unsigned base,
                        const char *before)
{
	const bool negative = v.integer < 0;
	char digits[80], text[200];
	struct go_format own = *f;
	const char *sign = negative ? "-" : f->plus ? "+" : f->space ? " " : "";

	print_digits(digits, negative ? 0 - (uint64_t)v.integer : (uint64_t)v.integer, base, f->verb == 'X');
	if (f->precision > 80) {
		run_fail(b->r, "printf has a precision of %d, expected at most 80 for integers", f->precision);
		return;
	}
	const int zeros = f->precision > (int)strlen(digits) ? f->precision - (int)strlen(digits) : 0;
	snprintf(text, sizeof text, "%s%s%.*s%s", sign, before, zeros,
	         "00000000000000000000000000000000000000000000000000000000000000000000000000000000", digits);
	own.zero = f->zero && f->precision < 0;
	pad(b, &(struct text){ .p = text, .n = strlen(text), .user = v.user }, &own, strlen(sign) + strlen(before));
}

static void put_character(struct build *b, struct go_value v, const struct go_format *f)
{
	const bool fits = v.integer >= 0 && v.integer <= 0x10ffff && (v.integer < 0xd800 || v.integer > 0xdfff);
	struct build own = { .r = b->r };
	char text[24];

	if (f->verb == 'U') {
		snprintf(text, sizeof text, "U+%04" PRIX64, (uint64_t)v.integer);
		build_string(&own, text, v.user);
	} else {
		build_character(&own, fits ? (uint32_t)v.integer : 0xfffd, v.user);
	}
	const struct text *t = build_done(&own);
	if (t && f->verb == 'q') {
		struct build quoted = { .r = b->r };
		quote(&quoted, t, f->plus, '\'');
		t = build_done(&quoted);
	}
	if (t)
		pad(b, t, f, 0);
}

static bool print_integer(struct build *b, struct go_value v, const struct go_format *f)
{
	switch (f->verb) {
	case 'v':
	case 'd': put_integer(b, v, f, 10, ""); return true;
	case 'b': put_integer(b, v, f, 2, f->sharp ? "0b" : ""); return true;
	case 'o': put_integer(b, v, f, 8, f->sharp ? "0" : ""); return true;
	case 'O': put_integer(b, v, f, 8, "0o"); return true;
	case 'x': put_integer(b, v, f, 16, f->sharp ? "0x" : ""); return true;
	case 'X': put_integer(b, v, f, 16, f->sharp ? "0X" : ""); return true;
	case 'c':
	case 'q':
	case 'U': put_character(b, v, f); return true;
	default: return false;
	}
}

static bool print_real(struct build *b, struct go_value v, const struct go_format *f)
{
	const char verb = f->verb == 'v' ? 'g' : f->verb == 'F' ? 'f' : f->verb;
	const char form[] = { '%', '.', '*', verb, 0 };
	char text[1500];
	size_t head = 0;

	if (!strchr("eEfgG", verb))
		return false;
	if (f->precision > 1000 || f->sharp) {
		run_fail(b->r, "printf writes a number by %%%s%c, expected no # and at most 1000 digits",
		         f->sharp ? "#" : "", f->verb);
		return true;
	}
	text[0] = v.real < 0 ? '-' : f->plus ? '+' : ' ';
	if (v.real < 0 || f->plus || f->space)
		head = 1;
	const double x = v.real < 0 ? -v.real : v.real;
	if (f->precision < 0 && (verb == 'g' || verb == 'G'))
		go_float_text(x, 'g', text + head);
	else
		snprintf(text + head, sizeof text - head, form, f->precision < 0 ? 6 : f->precision, x);
	for (char *p = text; verb == 'G' && *p; p++)
		*p = (char)toupper((unsigned char)*p);
	pad(b, &(struct text){ .p = text, .n = strlen(text), .user = v.user }, f, head);
	return true;
}

/* ---- what holds others */

static void print_within(struct go_run *g, const struct go_node *n, struct build *b, struct go_value v,
                         const struct go_format *f)
{
	const struct go_type *type = v.kind == GO_POINTER ? v.type->element : v.type;
	const size_t count = v.kind == GO_LIST ? v.list->n : v.kind == GO_MAP ? v.map->n : type->n_fields;

	build_string(b, v.kind == GO_LIST ? "[" : v.kind == GO_MAP ? "map[" : v.kind == GO_POINTER ? "&{" : "{", true);
	for (size_t i = 0; i < count && !b->r->failed; i++) {
		if (i)
			build_bytes(b, " ", 1, true);
		if (v.kind == GO_MAP) {
			go_print_as(g, n, b, go_of_text(v.map->pair[i].key), f);
			build_bytes(b, ":", 1, true);
		} else if (v.kind != GO_LIST && f->names) {
			build_string(b, type->field[i].name, true);
			build_bytes(b, ":", 1, true);
		}
		const struct go_value one = v.kind == GO_LIST  ? v.list->item[i]
		                            : v.kind == GO_MAP ? v.map->pair[i].value
		                                               : v.field[i];
		if (one.kind == GO_POINTER || (one.kind == GO_ORDERED && !one.nil))
			go_fail(g, n, "a value of type %s prints as an address, expected one of its members",
			        one.type->name);
		if (one.kind == GO_NIL)
			build_string(b, "<nil>", false);
		else
			go_print_as(g, n, b, one, f);
	}
	build_string(b, v.kind == GO_LIST || v.kind == GO_MAP ? "]" : "}", true);
}

static bool print_scalar(struct build *b, struct go_value v, const struct go_format *f)
{
	switch (v.kind) {
	case GO_STRING: return print_string(b, v.text, f);
	case GO_INT:
	case GO_BYTE: return print_integer(b, v, f);
	case GO_FLOAT: return print_real(b, v, f);
	case GO_BOOL:
		if (f->verb == 't' || f->verb == 'v')
			pad(b, &(struct text){ .p = v.truth ? "true" : "false", .n = v.truth ? 4 : 5, .user = v.user },
			    f, 0);
		return f->verb == 't' || f->verb == 'v';
	default:
		if (strchr("bodxX", f->verb) && (v.kind == GO_POINTER || v.kind == GO_ORDERED)) /* an address of 0 */
			return print_integer(b, go_of_int(0), f);
		if (f->verb == 'v')
			pad(b, &(struct text){ .p = "<nil>", .n = 5 }, f, 0);
		return f->verb == 'v';
	}
}

void go_print_as(struct go_run *g, const struct go_node *n, struct build *b, struct go_value v,
                 const struct go_format *f)
{
	struct build own = { .r = g->r };

	if (!run_step(g->r, 1))
		return;
	if ((v.kind == GO_FLOAT && strchr("bxX", f->verb)) || (f->sharp && strchr("vqUT", f->verb)) || f->verb == 'p') {
		go_fail(g, n, "printf writes %s by %%%s%c, which is not supported", go_type_name(v),
		        f->sharp ? "#" : "", f->verb);
		return;
	}
	if (f->verb == 'T') {
		const char *name = v.kind == GO_NONE || v.kind == GO_NIL ? "<nil>" : go_type_name(v);
		pad(b, &(struct text){ .p = name, .n = strlen(name) }, f, 0);
		return;
	}
	if (v.type && v.type->says != GO_SAYS_NOTHING && strchr("vsxXq", f->verb)) {
		go_print(&own, v);
		const struct text *t = build_done(&own);
		if (t)
			print_string(b, t, f);
		return;
	}
	const bool holds =
		v.kind == GO_LIST || v.kind == GO_MAP || v.kind == GO_STRUCT || (v.kind == GO_POINTER && !v.nil);
	if (holds)
		print_within(g, n, b, v, f);
	else if (!print_scalar(b, v, f))
		bad_verb(g, n, b, v, &f->verb, 1, f);
}

/* ---- the format */

struct arguments_left {
	const struct go_value *v;
	size_t n, at;
};

/* Digits, or an argument by a star. False: the argument is no number that fits. */
static bool read_count(const struct text *t, size_t *i, struct arguments_left *a, int *out)
{
	if (*i < t->n && t->p[*i] == '*') {
		++*i;
		const struct go_value *v = a->at < a->n ? &a->v[a->at++] : NULL;
		if (!v || (v->kind != GO_INT && v->kind != GO_BYTE) || v->integer > MAX_WIDTH ||
		    v->integer < -MAX_WIDTH)
			return false;
		*out = (int)v->integer;
		return true;
	}
	for (; *i < t->n && isdigit((unsigned char)t->p[*i]); ++*i) {
		*out = (*out < 0 ? 0 : *out) * 10 + (t->p[*i] - '0');
		if (*out > MAX_WIDTH)
			*out = MAX_WIDTH;
	}
	return true;
}

static void read_flags(const struct text *t, size_t *i, struct go_format *f)
{
	for (; *i < t->n; ++*i) {
		switch (t->p[*i]) {
		case '-': f->minus = true; break;
		case '+': f->plus = true; break;
		case '#': f->sharp = true; break;
		case ' ': f->space = true; break;
		case '0': f->zero = true; break;
		default: return;
		}
	}
}

/* Behind a percent sign; *i is behind the verb then. */
static void directive(struct go_run *g, const struct go_node *n, struct build *b, const struct text *t, size_t *i,
                      struct arguments_left *a)
{
	struct go_format f = { .width = -1, .precision = -1 };

	read_flags(t, i, &f);
	if (!read_count(t, i, a, &f.width))
		build_string(b, "%!(BADWIDTH)", false);
	if (f.width < -1) {
		f.minus = true;
		f.width = -f.width;
	}
	if (*i < t->n && t->p[*i] == '.') {
		++*i;
		f.precision = 0;
		if (!read_count(t, i, a, &f.precision) || f.precision < 0) {
			f.precision = -1;
			build_string(b, "%!(BADPREC)", false);
		}
	}
	if (*i == t->n) {
		build_string(b, "%!(NOVERB)", false);
		return;
	}
	uint32_t c;
	const unsigned length = text_char(t->p + *i, t->n - *i, &c);
	const char *verb = t->p + *i;
	f.verb = *verb;
	*i += length ? length : 1;
	f.names = f.verb == 'v' && f.plus;
	f.plus = f.plus && !f.names;
	if (f.verb == '[') {
		go_fail(g, n, "printf's format has %%[, which is not supported: arguments stand in their order");
	} else if (f.verb == '%') {
		build_bytes(b, "%", 1, text_user_at(t, *i - 1));
	} else if (a->at == a->n) {
		build_bytes(b, "%!", 2, false);
		build_bytes(b, verb, length ? length : 1, false);
		build_string(b, "(MISSING)", false);
	} else if ((unsigned char)f.verb >= 0x80) {
		bad_verb(g, n, b, a->v[a->at++], verb, length ? length : 1, &f);
	} else {
		go_print_as(g, n, b, a->v[a->at++], &f);
	}
}

void go_printf(struct go_run *g, const struct go_node *n, struct build *b, const struct text *t,
               const struct go_value *v, size_t count)
{
	struct arguments_left a = { v, count, 0 };

	for (size_t i = 0; i < t->n && !g->r->failed;) {
		const char *percent = memchr(t->p + i, '%', t->n - i);
		const size_t end = percent ? (size_t)(percent - t->p) : t->n;
		build_part(b, t, i, end - i);
		i = end + 1;
		if (percent)
			directive(g, n, b, t, &i, &a);
	}
	for (size_t first = a.at; a.at < count && !g->r->failed; a.at++) {
		const bool nil = v[a.at].kind == GO_NONE || v[a.at].kind == GO_NIL;
		build_string(b, a.at == first ? "%!(EXTRA " : ", ", false);
		if (!nil) {
			build_string(b, go_type_name(v[a.at]), false);
			build_bytes(b, "=", 1, false);
		}
		go_print(b, v[a.at]);
		if (a.at + 1 == count)
			build_bytes(b, ")", 1, false);
	}
}

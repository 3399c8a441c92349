/* chat/jinja_print.c - the texts of values: Python's str() and repr().
 *
 * Owns: how numbers are written, and what of a written list or dictionary is the user's: brackets and commas belong to
 * whom the list belongs.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/jinja.h"

/* The fewest digits that read back as x, laid out as Python does: exponents below -4 and from 16 on. */
void print_float(double x, char out[40])
{
	char digits[40], *e;
	int precision = 0;

	if (!isfinite(x)) {
		strcpy(out, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
		return;
	}
	do
		snprintf(digits, sizeof digits, "%.*e", precision, x);
	while (strtod(digits, NULL) != x && ++precision < 17);
	e = strchr(digits, 'e');
	long exponent = strtol(e + 1, NULL, 10);
	if (exponent < -4 || exponent >= 16) {
		snprintf(out, 40, "%.*se%c%02ld", (int)(e - digits), digits, exponent < 0 ? '-' : '+', labs(exponent));
		return;
	}
	int decimals = precision > exponent ? precision - (int)exponent : 1;
	snprintf(out, 40, "%.*f", decimals, x);
}

static void repr_text(struct build *b, const struct text *t, bool user)
{
	char quote = memchr(t->p, '\'', t->n) && !memchr(t->p, '"', t->n) ? '"' : '\'', text[16];

	build_bytes(b, &quote, 1, user);
	for (size_t i = 0; i < t->n && !b->r->failed;) {
		uint32_t c;
		unsigned n = text_at(t, i, &c);
		bool mine = text_user_at(t, i);
		if (c == (unsigned char)quote || c == '\\') {
			build_bytes(b, "\\", 1, mine);
			build_part(b, t, i, n);
		} else if (c == '\n' || c == '\r' || c == '\t') {
			build_string(b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", mine);
		} else if (character_prints(c)) {
			build_part(b, t, i, n);
		} else {
			snprintf(text, sizeof text,
			         c < 0x100     ? "\\x%02x"
			         : c < 0x10000 ? "\\u%04x"
			                       : "\\U%08x",
			         (unsigned)c);
			build_string(b, text, mine);
		}
		i += n;
	}
	build_bytes(b, &quote, 1, user);
}

static void repr_items(struct build *b, const struct list *l, const char *open, const char *close, bool user)
{
	build_string(b, open, user);
	for (size_t i = 0; i < l->n && !b->r->failed; i++) {
		if (i)
			build_string(b, ", ", user);
		build_repr(b, l->item[i]);
	}
	build_string(b, close, user);
}

static void repr_dict(struct build *b, const struct dict *d, bool user)
{
	build_string(b, "{", user);
	for (size_t i = 0; i < d->n && !b->r->failed; i++) {
		if (i)
			build_string(b, ", ", user);
		build_repr(b, d->pair[i].key);
		build_string(b, ": ", user);
		build_repr(b, d->pair[i].value);
	}
	build_string(b, "}", user);
}

static void repr_view(struct build *b, struct value v)
{
	build_string(b, value_type(v), v.user);
	repr_items(b, v.list, "([", "])", v.user);
}

static void repr_range(struct build *b, struct value v)
{
	char text[80];
	int n = snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64, v.list->start, v.list->stop);

	snprintf(text + n, sizeof text - (size_t)n, v.list->step == 1 ? ")" : ", %" PRId64 ")", v.list->step);
	build_string(b, text, v.user);
}

static void repr_other(struct build *b, struct value v)
{
	char text[64];

	switch ((enum kind)v.kind) {
	case KIND_NONE: build_string(b, "None", v.user); break;
	case KIND_BOOL: build_string(b, v.truth ? "True" : "False", v.user); break;
	case KIND_INT:
		snprintf(text, sizeof text, "%" PRId64, v.integer);
		build_string(b, text, v.user);
		break;
	case KIND_FLOAT:
		print_float(v.real, text);
		build_string(b, text, v.user);
		break;
	case KIND_UNDEFINED: build_string(b, "Undefined", v.user); break;
	default:
		/* Python prints where they lie in memory */
		run_fail(b->r, "a value of type '%s' has no text", value_type(v));
		break;
	}
}

void build_repr(struct build *b, struct value v)
{
	struct run *r = b->r;

	if (!run_step(r, 1))
		return;
	if (r->depth >= CHAT_MAX_DEPTH) {
		run_fail(r, "a value is nested too deep");
		return;
	}
	r->depth++;
	switch ((enum kind)v.kind) {
	case KIND_TEXT:
		if (v.text->safe)
			build_string(b, "Markup(", v.text->user);
		repr_text(b, v.text, text_user_at(v.text, 0));
		if (v.text->safe)
			build_string(b, ")", v.text->user);
		break;
	case KIND_LIST: repr_items(b, v.list, "[", "]", v.user); break;
	case KIND_TUPLE: repr_items(b, v.list, "(", v.list->n == 1 ? ",)" : ")", v.user); break;
	case KIND_RANGE: repr_range(b, v); break;
	case KIND_VIEW: repr_view(b, v); break;
	case KIND_DICT: repr_dict(b, v.dict, v.user); break;
	case KIND_NAMESPACE:
		build_string(b, "<Namespace ", v.user);
		repr_dict(b, v.dict, v.user);
		build_string(b, ">", v.user);
		break;
	default: repr_other(b, v); break;
	}
	r->depth--;
}

void build_str(struct build *b, struct value v)
{
	if (v.kind == KIND_TEXT)
		build_text(b, v.text);
	else if (v.kind != KIND_UNDEFINED && v.kind != KIND_ABSENT)
		build_repr(b, v);
}

const struct text *to_text(struct run *r, struct value v)
{
	static const struct text nothing = { .p = "" };
	struct build b = { .r = r };

	if (v.kind == KIND_TEXT)
		return v.text;
	build_str(&b, v);
	const struct text *t = build_done(&b);
	return t && !r->failed ? t : &nothing;
}

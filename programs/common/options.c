#include "programs/common/options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

enum { NOTES = 16 /* told at most */ };

/* The arguments that are still to be read, and what is to be said of those that were. */
struct reading {
	struct option_program *program;
	int argc, at, n_notes;
	char **argv;
	struct {
		const char *typed, *answer;
	} note[NOTES];
	const struct option_foreign *half; /* given last, with its name and value */
	const char *half_typed, *half_value;
	bool whole; /* the other one was given, too */
};

/* What one of them gives: an option with its name as it was typed, and a value attached to it or NULL. */
struct given {
	const char *typed, *name, *value;
	size_t n; /* of name */
};

bool options_complain(const struct option_program *p, const char *format, ...)
{
	char text[700], quoted[1400];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	if (p->said) {
		snprintf(p->said, p->room, "%s", text);
		return false;
	}
	fprintf(stderr, "%s: %s%s\nTry '%s --help'.\n", p->name, p->where ? p->where : "",
	        error_quote(quoted, sizeof quoted, text, strlen(text)), p->name);
	return false;
}

/* As vLLM takes them, too: with _ for -. */
static bool is_name(const char *name, const char *typed, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (name[i] != (i && typed[i] == '_' ? '-' : typed[i])) /* ends at the name's end, too */
			return false;
	return name[n] == 0;
}

const struct option_row *options_find(const struct option_program *p, const char *name, size_t n)
{
	for (int i = 0; i < p->n_rows; i++)
		if (p->row[i].kind != OPTION_GROUP && is_name(p->row[i].name, name, n))
			return &p->row[i];
	return NULL;
}

static const struct option_row *find_letter(const struct option_program *p, char c)
{
	for (int i = 0; i < p->n_rows; i++)
		if (p->row[i].kind != OPTION_GROUP && p->row[i].letter == c)
			return &p->row[i];
	return NULL;
}

bool options_is_choice(const char *choices, const char *v)
{
	size_t n = strlen(v);
	for (const char *c = choices; n && *c; c += strcspn(c, "|"), c += *c == '|')
		if (strcspn(c, "|") == n && memcmp(c, v, n) == 0)
			return true;
	return false;
}

static bool is_whole(double d) { return fabs(d) < 1e15 && d == floor(d); }

/* A bound is told unless it is that of the number's type. */
static bool complain_of_number(const struct option_program *p, const struct option_row *o, const char *v)
{
	const char *what = o->kind == OPTION_INT ? "whole number" : "number";

	if (o->high >= 2147483647 && is_whole(o->low))
		return options_complain(p, "--%s: \"%.40s\" is not a %s from %.0f up", o->name, v, what, o->low);
	return options_complain(p, "--%s: \"%.40s\" is not a %s between %.10g and %.10g", o->name, v, what, o->low,
	                        o->high);
}

static bool store_number(const struct option_program *p, const struct option_row *o, const char *v)
{
	char *end;
	double d;

	errno = 0;
	long n = o->kind == OPTION_INT ? strtol(v, &end, 10) : 0;
	d = o->kind == OPTION_INT ? (double)n : strtod(v, &end);
	if (end == v || *end || errno || !(d >= o->low && d <= o->high))
		return complain_of_number(p, o, v);
	if (o->kind == OPTION_INT)
		*(long *)o->target = n;
	else
		*(double *)o->target = d;
	return true;
}

bool options_has_choices(const struct option_row *o)
{
	return o->kind == OPTION_CHOICE || o->kind == OPTION_OPEN_CHOICE ||
	       (o->kind == OPTION_LIST && strchr(o->value, '|'));
}

static bool store_in_list(const struct option_program *p, const struct option_row *o, const char *v)
{
	struct option_list *l = o->target;

	if (l->n == OPTION_LIST_MAX)
		return options_complain(p, "--%s is given too often: \"%s\" is one too many", o->name, v);
	l->value[l->n++] = v;
	return true;
}

bool options_store(const struct option_program *p, const struct option_row *o, const char *v)
{
	if (p->given)
		p->given[o - p->row] = true;
	if (options_has_choices(o) && o->kind != OPTION_OPEN_CHOICE && !options_is_choice(o->value, v))
		return options_complain(p, "--%s: \"%.40s\" is not one of %s", o->name, v, o->value);
	switch (o->kind) {
	case OPTION_FLAG: *(bool *)o->target = true; return true;
	case OPTION_LIST: return store_in_list(p, o, v);
	case OPTION_INT:
	case OPTION_FLOAT: return store_number(p, o, v);
	default: *(const char **)o->target = v; return true;
	}
}

/* Brackets, quotation marks and blanks around values are none of them. */
bool options_store_all(const struct option_program *p, const struct option_row *o, const char *value)
{
	char *copy = strdup(value), *rest = copy, *one; /* for as long as the program runs */
	bool ok = copy != NULL, any = false;

	while (ok && (one = strsep(&rest, ","))) {
		one += strspn(one, " []\"'");
		size_t n = strlen(one);
		while (n && strchr(" []\"'", one[n - 1]))
			n--;
		one[n] = 0;
		if (n)
			ok = any = options_store(p, o, one);
	}
	return any || (copy && ok && options_complain(p, "--%s: \"%.40s\" has no value", o->name, value));
}

/* An option of the table, however it was named. */
static bool take_row(struct reading *r, const struct option_row *o, const struct given *g)
{
	const char *value = g->value;

	if (value && o->kind == OPTION_FLAG)
		return options_complain(r->program, "%.*s takes no value", (int)strcspn(g->typed, "="), g->typed);
	if (o->kind != OPTION_FLAG && !value) {
		if (r->at >= r->argc)
			return options_complain(r->program, "%s needs a value: %s", g->typed, o->value);
		value = r->argv[r->at++];
	}
	return options_store(r->program, o, value);
}

static bool is_switch(const char *text) { return options_is_choice("on|off|auto|0|1|true|false", text); }

static bool skip_foreign(struct reading *r, const struct option_foreign *f, const struct given *g)
{
	if (r->n_notes < NOTES) {
		r->note[r->n_notes].typed = g->typed;
		r->note[r->n_notes++].answer = f->answer;
	}
	if (f->kind == OPTION_UNUSED_VALUE && !g->value) {
		if (r->at >= r->argc)
			return options_complain(r->program, "%s needs a value", g->typed);
		r->at++;
	} else if (f->kind == OPTION_UNUSED_SWITCH && !g->value && r->at < r->argc && is_switch(r->argv[r->at])) {
		r->at++;
	}
	return true;
}

/* Whether a half that was given before has the same value. */
static bool agree(struct reading *r, const struct option_foreign *f, const struct option_row *o, const char *typed)
{
	const char *value = o->kind == OPTION_CHOICE ? *(const char *const *)o->target : "";

	if (r->half && r->half != f && strcmp(r->half_value, value) != 0)
		return options_complain(r->program, "%.*s is \"%.40s\" and %.*s is \"%.40s\": %s",
		                        (int)strcspn(r->half_typed, "="), r->half_typed, r->half_value,
		                        (int)strcspn(typed, "="), typed, value, f->answer);
	r->whole |= r->half && r->half != f;
	r->half = f;
	r->half_typed = typed;
	r->half_value = value;
	return true;
}

/* The value of an option that has one, which stands behind it or is the next argument. NULL: there is none. */
static const char *value_of(const struct reading *r, const struct given *g)
{
	return g->value ? g->value : r->at < r->argc ? r->argv[r->at] : NULL;
}

/* What asks for nothing. */
static bool skip_usual(struct reading *r, const struct option_foreign *f, const struct given *g)
{
	const char *value = f->usual ? value_of(r, g) : NULL;

	if (!value || !options_is_choice(f->usual, value))
		return false;
	r->at += !g->value;
	return true;
}

static bool take_list(struct reading *r, const struct option_row *o, const struct given *g)
{
	const char *value = value_of(r, g);

	if (!value)
		return options_complain(r->program, "%s needs a value: %s", g->typed, o->value);
	r->at += !g->value;
	return options_store_all(r->program, o, value);
}

static bool refuse(struct reading *r, const struct option_foreign *f, const struct given *g)
{
	return options_complain(r->program, "%.*s: %s", (int)strcspn(g->typed, "="), g->typed, f->answer);
}

static bool take_foreign(struct reading *r, const struct option_foreign *f, const struct given *g)
{
	const struct option_row *o = f->row ? options_find(r->program, f->row, strlen(f->row)) : NULL;
	const char *value = value_of(r, g);

	if (skip_usual(r, f, g))
		return true;
	if (o && f->kind == OPTION_SAME_FILE && value && access(value, F_OK) != 0)
		return refuse(r, f, g);
	if (o && f->kind == OPTION_SAME_LIST)
		return take_list(r, o, g);
	if (o)
		return take_row(r, o, g) && (f->kind != OPTION_HALF || agree(r, f, o, g->typed));
	return f->kind == OPTION_REFUSED ? refuse(r, f, g) : skip_foreign(r, f, g);
}

/* A number may follow its letter at once, and so may a text, unless that makes a name that is nearly one of a table. */
static bool may_be_attached(const struct option_program *p, const struct option_row *o, const char *a)
{
	if (o->kind == OPTION_INT || o->kind == OPTION_FLOAT)
		return strchr("0123456789+-.", a[2]) != NULL;
	return !options_is_near(p, a + 1, strcspn(a + 1, "="));
}

static bool take_option(struct reading *r, const char *a)
{
	const struct option_program *p = r->program;
	const char *name = a + 1 + (a[1] == '-');
	struct given g = { .typed = a, .name = name, .n = strcspn(name, "=") };
	const struct option_row *o = a[1] == '-' || g.n > 1 ? options_find(p, name, g.n) : find_letter(p, a[1]);
	const struct option_foreign *f = o ? NULL : options_foreign(p, name, g.n);

	g.value = name[g.n] == '=' ? name + g.n + 1 : NULL;
	if (o)
		return take_row(r, o, &g);
	if (f)
		return take_foreign(r, f, &g);
	o = a[1] == '-' ? NULL : find_letter(p, a[1]);
	if (!o || (o->kind != OPTION_FLAG && !may_be_attached(p, o, a)))
		return options_unknown(p, a, name, g.n);
	if (o->kind == OPTION_FLAG)
		return options_is_near(p, name, g.n)
		               ? options_unknown(p, a, name, g.n)
		               : options_complain(p, "-%.1s takes no value, and short options are given one by one",
		                                  name);
	g.value = a + 2;
	return take_row(r, o, &g);
}

static bool take_operand(struct option_program *p, const char *a)
{
	if (p->n_operands == p->max_operands)
		return options_complain(p, "unexpected argument \"%s\"", a);
	p->operand[p->n_operands++] = a;
	return true;
}

/* Whether each half has its other one. */
static bool has_both_halves(const struct reading *r)
{
	const struct option_foreign *other = r->program->foreign;

	if (!r->half || r->whole)
		return true;
	while (other->kind != OPTION_HALF || other == r->half || strcmp(other->row, r->half->row) != 0)
		other++;
	return options_complain(r->program, "%.*s is \"%.40s\" and --%.*s is not given: %s",
	                        (int)strcspn(r->half_typed, "="), r->half_typed, r->half_value,
	                        (int)strcspn(other->names, " "), other->names, r->half->answer);
}

/* Once all is read and understood. */
static void print_notes(const struct reading *r)
{
	const struct option_program *p = r->program;

	for (int i = 0; i < r->n_notes && !(p->quiet && *p->quiet); i++)
		fprintf(stderr, "%s: %.*s is not used: %s.\n", p->name, (int)strcspn(r->note[i].typed, "="),
		        r->note[i].typed, r->note[i].answer);
}

bool options_given(const struct option_program *p, const char *name)
{
	const struct option_row *o = options_find(p, name, strlen(name));

	return o && p->given && p->given[o - p->row];
}

bool options_preset(const struct option_program *p, const char *name, const char *value)
{
	const struct option_row *o = options_find(p, name, strlen(name));

	if (!o || options_given(p, name))
		return true;
	bool ok = options_store(p, o, value);
	if (p->given)
		p->given[o - p->row] = false;
	return ok;
}

bool options_parse(struct option_program *p, int argc, char **argv)
{
	struct reading r = { .program = p, .argc = argc, .at = 1, .argv = argv };
	bool only_operands = false;

	p->n_operands = 0;
	for (int i = 0; p->given && i < p->n_rows; i++)
		p->given[i] = false;
	while (r.at < argc) {
		const char *a = argv[r.at++];
		if (only_operands || a[0] != '-' || a[1] == 0) {
			if (!take_operand(p, a))
				return false;
		} else if (strcmp(a, "--") == 0) {
			only_operands = true;
		} else if (!take_option(&r, a)) {
			return false;
		}
	}
	if (!has_both_halves(&r))
		return false;
	print_notes(&r);
	return true;
}

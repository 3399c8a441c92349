/* chat/jinja_call.c - calls: arguments, macros, and the functions that every template has.
 *
 * Owns: which argument belongs to which parameter, with Python's refusals, and the functions namespace, range, dict,
 * raise_exception, strftime_now and their like. The only clock is the time that the caller of chat_render() gave.
 */
#include <stdio.h>
#include <string.h>

#include "chat/jinja.h"

/* ---- arguments */

static size_t count(const struct node *n)
{
	size_t all = 0;

	for (; n; n = n->next)
		all++;
	return all;
}

bool add_keyword(struct run *r, struct arguments *args, const struct text *name, struct value v)
{
	for (size_t i = 0; i < args->n_keywords; i++)
		if (!run_step(r, 1) || text_same(args->keyword[i].key.text, name)) {
			run_fail(r, "got multiple values for keyword argument '%.*s'", (int)name->n, name->p);
			return false;
		}
	args->keyword[args->n_keywords++] = (struct pair){ value_text(name), v };
	return true;
}

static bool spread(struct run *r, struct arguments *args, struct value v, size_t more)
{
	struct list *l = iterate(r, v);
	struct value *all = l ? run_take(r, (args->n + l->n + more) * sizeof *all) : NULL;

	if (!all)
		return false;
	if (args->n)
		memcpy(all, args->v, args->n * sizeof *all);
	if (l->n)
		memcpy(all + args->n, l->item, l->n * sizeof *all);
	args->v = all;
	args->n += l->n;
	return true;
}

static bool spread_keywords(struct run *r, struct arguments *args, struct value v)
{
	if (v.kind != KIND_DICT) {
		run_fail(r, "argument after ** must be a mapping, not %s", value_type(v));
		return false;
	}
	struct pair *all = run_take(r, (args->n_keywords + v.dict->n + 1) * sizeof *all);
	if (!all)
		return false;
	if (args->n_keywords)
		memcpy(all, args->keyword, args->n_keywords * sizeof *all);
	args->keyword = all;
	for (size_t i = 0; i < v.dict->n; i++) {
		struct value key = v.dict->pair[i].key;
		if (key.kind != KIND_TEXT) {
			run_fail(r, "keywords must be strings");
			return false;
		}
		if (!add_keyword(r, args, key.text, v.dict->pair[i].value))
			return false;
	}
	return true;
}

bool eval_arguments(struct run *r, const struct node *first, struct arguments *out)
{
	size_t n = count(first);

	*out = (struct arguments){ 0 };
	if (!n)
		return true;
	out->v = run_take(r, n * sizeof *out->v);
	out->keyword = run_take(r, n * sizeof *out->keyword);
	for (; first && !r->failed; first = first->next, n--) {
		struct value v = eval(r, first->a);
		if (r->failed)
			break;
		if (first->type == NODE_ARGUMENT)
			out->v[out->n++] = v;
		else if (first->type == NODE_KEYWORD)
			add_keyword(r, out, &first->name, v);
		else if (first->type == NODE_SPREAD)
			spread(r, out, v, n);
		else
			spread_keywords(r, out, v);
	}
	return !r->failed;
}

bool bind_arguments(struct run *r, const char *what, const struct arguments *args, const char *const *names, size_t n,
                    size_t required, struct value *out)
{
	memset(out, 0, n * sizeof *out);
	if (args->n > n) {
		run_fail(r, "%s expected at most %zu argument%s, got %zu", what, n, n == 1 ? "" : "s", args->n);
		return false;
	}
	if (args->n)
		memcpy(out, args->v, args->n * sizeof *out);
	for (size_t i = 0; i < args->n_keywords; i++) {
		const struct text *name = args->keyword[i].key.text;
		size_t k = 0;
		while (k < n && !(names[k] && text_is(name, names[k])))
			k++;
		if (k == n || out[k].kind != KIND_ABSENT) {
			run_fail(r,
			         k == n ? "%s got an unexpected keyword argument '%.*s'"
			                : "%s got multiple values for argument '%.*s'",
			         what, (int)name->n, name->p);
			return false;
		}
		out[k] = args->keyword[i].value;
	}
	for (size_t k = 0; k < required; k++)
		if (out[k].kind == KIND_ABSENT) {
			run_fail(r, "%s missing required argument '%s' (pos %zu)", what, names[k] ? names[k] : "",
			         k + 1);
			return false;
		}
	return true;
}

bool want_int(struct run *r, const char *what, struct value v, int64_t *out)
{
	if (v.kind == KIND_ABSENT)
		return true;
	if (v.kind == KIND_INT || v.kind == KIND_BOOL) {
		*out = integer_of(v);
		return true;
	}
	if (v.kind == KIND_UNDEFINED)
		fail_undefined(r, v);
	else
		run_fail(r, "%s: '%s' object cannot be interpreted as an integer", what, value_type(v));
	return false;
}

bool want_text(struct run *r, const char *what, struct value v, const struct text **out)
{
	if (v.kind == KIND_ABSENT)
		return true;
	if (v.kind != KIND_TEXT) {
		run_fail(r, "%s: expected a str, got '%s'", what, value_type(v));
		return false;
	}
	*out = v.text;
	return true;
}

/* ---- macros */

static struct value tuple_of(struct run *r, const struct value *v, size_t n)
{
	struct value t = value_list(r, KIND_TUPLE, n);

	if (t.kind != KIND_ABSENT && n)
		memcpy(t.list->item, v, n * sizeof *v);
	return t;
}

/* What a macro's parameters are, in its own scope; defaults may use those before. *used counts the keywords taken. */
static void bind_parameters(struct run *r, const struct node *first, const struct arguments *args, size_t *used)
{
	size_t i = 0;

	for (const struct node *p = first; p && !r->failed; p = p->next, i++) {
		struct value v = i < args->n ? args->v[i] : value_of(KIND_ABSENT);
		for (size_t k = 0; k < args->n_keywords; k++) {
			if (!run_step(r, 1) || !text_same(args->keyword[k].key.text, &p->name))
				continue;
			if (v.kind != KIND_ABSENT) {
				run_fail(r, "macro got multiple values for argument '%.*s'", (int)p->name.n, p->name.p);
				return;
			}
			v = args->keyword[k].value;
			++*used;
		}
		if (v.kind == KIND_ABSENT)
			v = p->b ? eval(r, p->b) : value_undefined(UNDEFINED_PARAMETER, &p->name, KIND_ABSENT);
		scope_set(r, p->name.p, p->name.n, v);
	}
}

static void bind_rest(struct run *r, const struct macro *m, const struct arguments *args, size_t parameters,
                      size_t used)
{
	const struct node *n = m->node;
	int len = (int)n->name.n;

	if (n->op & MACRO_VARARGS)
		scope_set(r, "varargs", 7,
		          tuple_of(r, args->v + parameters, args->n > parameters ? args->n - parameters : 0));
	else if (args->n > parameters)
		run_fail(r, "macro '%.*s' takes not more than %zu argument(s)", len, n->name.p, parameters);
	if (r->failed || used == args->n_keywords)
		return;
	struct value rest = dict_new(r, 0);
	for (size_t k = 0; k < args->n_keywords && !r->failed; k++) {
		const struct node *p = n->other ? n->other->first : NULL;
		while (p && !text_same(&p->name, args->keyword[k].key.text))
			p = p->next;
		if (!p)
			dict_append(r, rest.dict, args->keyword[k].key, args->keyword[k].value);
	}
	if (r->failed || !dict_finish(r, rest.dict))
		return;
	const struct text *name = rest.dict->pair[0].key.text;
	if (n->op & MACRO_KWARGS)
		scope_set(r, "kwargs", 6, rest);
	else
		run_fail(r, "macro '%.*s' takes no keyword argument '%.*s'", len, n->name.p, (int)name->n, name->p);
}

struct value call_macro(struct run *r, const struct macro *m, const struct arguments *args, struct value caller)
{
	const struct node *first = m->node->other ? m->node->other->first : NULL;
	struct scope *before = r->scope;
	size_t used = 0;
	struct value v = value_of(KIND_ABSENT);

	if (r->depth + 8 >= CHAT_MAX_DEPTH)
		return run_fail(r, "maximum recursion depth exceeded");
	r->depth += 8; /* a body takes more of the stack than an expression */
	r->scope = scope_enter(r, m->scope);
	if (r->scope) {
		bind_parameters(r, first, args, &used);
		if (!r->failed)
			bind_rest(r, m, args, count(first), used);
		if (caller.kind != KIND_ABSENT && !r->failed)
			scope_set(r, "caller", 6, caller);
		v = render_body(r, m->node->first);
	}
	r->scope = before;
	r->depth -= 8;
	return v;
}

/* ---- functions */

enum { FUNCTION_NAMESPACE, FUNCTION_RANGE, FUNCTION_DICT, FUNCTION_RAISE, FUNCTION_NOW, FUNCTION_COUNT };

static const char *const function_name[FUNCTION_COUNT] = { "namespace", "range", "dict", "raise_exception",
	                                                   "strftime_now" };

struct value global_function(const char *name, size_t n)
{
	for (unsigned i = 0; i < FUNCTION_COUNT; i++)
		if (strlen(function_name[i]) == n && memcmp(function_name[i], name, n) == 0)
			return (struct value){ .kind = KIND_FUNCTION, .detail = (uint8_t)i };
	return value_of(KIND_ABSENT);
}

/* dict(a, b=1): what a holds, and the names. */
static struct value make_dict(struct run *r, const struct arguments *args)
{
	struct value d = dict_new(r, 0);

	if (args->n > 1)
		return run_fail(r, "dict expected at most 1 argument, got %zu", args->n);
	if (args->n && args->v[0].kind == KIND_DICT) {
		for (size_t i = 0; i < args->v[0].dict->n && !r->failed; i++)
			dict_append(r, d.dict, args->v[0].dict->pair[i].key, args->v[0].dict->pair[i].value);
	} else if (args->n) {
		struct list *l = iterate(r, args->v[0]);
		for (size_t i = 0; l && i < l->n && !r->failed; i++) {
			struct list *two = iterate(r, l->item[i]);
			if (two && two->n != 2)
				return run_fail(r,
				                "dictionary update sequence element #%zu has length %zu; 2 is required",
				                i, two->n);
			if (two && value_hashable(r, two->item[0]))
				dict_append(r, d.dict, two->item[0], two->item[1]);
		}
	}
	for (size_t i = 0; i < args->n_keywords && !r->failed; i++)
		dict_append(r, d.dict, args->keyword[i].key, args->keyword[i].value);
	return !r->failed && dict_finish(r, d.dict) ? d : value_of(KIND_ABSENT);
}

static struct value make_range(struct run *r, const struct arguments *args)
{
	enum { MAX = 100000 }; /* as many as Jinja's sandbox allows */
	static const char *const names[3] = { NULL };
	struct value v[3];
	int64_t start = 0, stop = 0, step = 1;

	if (!bind_arguments(r, "range", args, names, 3, 1, v) || !want_int(r, "range", v[0], &start) ||
	    !want_int(r, "range", v[1], &stop) || !want_int(r, "range", v[2], &step))
		return value_of(KIND_ABSENT);
	if (v[1].kind == KIND_ABSENT) {
		stop = start;
		start = 0;
	}
	if (step == 0)
		return run_fail(r, "range() arg 3 must not be zero");
	__int128 n = step > 0 ? ((__int128)stop - start + step - 1) / step
	                      : ((__int128)start - stop - step - 1) / -(__int128)step;
	if (n > MAX)
		return run_fail(r, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", MAX);
	struct value out = value_list(r, KIND_RANGE, n < 0 ? 0 : (size_t)n);
	if (out.kind == KIND_ABSENT)
		return out;
	out.list->start = start;
	out.list->stop = stop;
	out.list->step = step;
	for (size_t i = 0; i < out.list->n; i++)
		out.list->item[i] = value_int((int64_t)(start + (__int128)i * step));
	return out;
}

static struct value raise_exception(struct run *r, const struct arguments *args)
{
	static const char *const names[] = { "message" };
	struct value v;

	if (!bind_arguments(r, "raise_exception()", args, names, 1, 1, &v))
		return v;
	const struct text *t = to_text(r, v);
	if (!r->failed) {
		run_fail(r, "%.*s", (int)(t->n < 1000 ? t->n : 1000), t->p);
		r->refused = true;
	}
	return value_of(KIND_ABSENT);
}

/* One conversion of a format of time, in the C locale. */
static bool time_part(struct build *b, char c, const struct tm *now)
{
	char format[3] = { '%', c, 0 }, text[200];

	if (c == 'f') {
		build_string(b, "000000", false);
		return true;
	}
	if (c == 'z' || c == 'Z') /* a time without a zone */
		return true;
	if (!strchr("aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyY%", c))
		return false;
	if (strftime(text, sizeof text, format, now))
		build_string(b, text, false);
	return true;
}

static struct value strftime_now(struct run *r, const struct arguments *args)
{
	static const char *const names[] = { "format" };
	struct build b = { .r = r };
	const struct text *f = NULL;
	struct value v;

	if (!bind_arguments(r, "strftime_now()", args, names, 1, 1, &v) || !want_text(r, "strftime_now()", v, &f))
		return value_of(KIND_ABSENT);
	for (size_t i = 0; i < f->n && !r->failed; i++) {
		if (f->p[i] != '%') {
			build_part(&b, f, i, 1);
			continue;
		}
		i++;
		if (i == f->n || !f->p[i] || !time_part(&b, f->p[i], r->now))
			return run_fail(r, "strftime_now: the format has a conversion '%%%.*s' that is not supported",
			                i < f->n, f->p + (i < f->n ? i : 0));
	}
	return value_text(build_done(&b));
}

struct value call_function(struct run *r, unsigned number, const struct arguments *args)
{
	struct value v;

	switch (number) {
	case FUNCTION_NAMESPACE:
		v = make_dict(r, args);
		if (v.kind == KIND_DICT) {
			v.kind = KIND_NAMESPACE;
			v.dict->order = NULL; /* members come to it */
		}
		return v;
	case FUNCTION_RANGE: return make_range(r, args);
	case FUNCTION_DICT: return make_dict(r, args);
	case FUNCTION_RAISE: return raise_exception(r, args);
	default: return strftime_now(r, args);
	}
}

struct value call(struct run *r, struct value f, const struct arguments *args)
{
	if (!run_step(r, 1))
		return value_of(KIND_ABSENT);
	switch ((enum kind)f.kind) {
	case KIND_UNDEFINED: return fail_undefined(r, f);
	case KIND_MACRO: {
		/* a macro that calls its caller may be given one by name */
		struct arguments rest = *args;
		struct value caller = value_of(KIND_ABSENT);
		for (size_t i = 0; i < rest.n_keywords; i++)
			if (text_is(rest.keyword[i].key.text, "caller")) {
				caller = rest.keyword[i].value;
				rest.keyword[i] = rest.keyword[--rest.n_keywords];
			}
		return call_macro(r, f.macro, &rest, caller);
	}
	case KIND_FUNCTION: return call_function(r, f.detail, args);
	case KIND_METHOD:
		if (f.method->self.kind == KIND_LOOP)
			return loop_call(r, f.method->self.loop,
			                 text_literal(r, f.method->number ? "changed" : "cycle"), args);
		return call_method(r, f.method, args);
	default: return run_fail(r, "'%s' object is not callable", value_type(f));
	}
}

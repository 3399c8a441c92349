/* chat/jinja_run.c - a template runs: statements, scopes and loops.
 *
 * Owns: which names a statement may set, who sees them, and what a loop knows of itself. A loop's turn, a macro and a
 * block have scopes of their own, "if" has none. Items are asked for as they are needed, as a condition of a loop may
 * depend on what its turns before did.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/jinja.h"

struct loop {
	struct list *items;
	size_t at;               /* the next item to look at */
	const struct node *node; /* its target and condition, or no condition any more */
	bool filtered;
	struct scope *outside;
	struct value before, now, after; /* after: looked at ahead, absent when it was not */
	bool over;                       /* nothing comes after `after` */
	size_t index, depth;
	struct value seen; /* of loop.changed() */
};

/* ---- the running template */

struct value run_fail(struct run *r, const char *format, ...)
{
	char text[1400];
	va_list ap;

	if (!r->failed) {
		va_start(ap, format);
		vsnprintf(text, sizeof text, format, ap);
		va_end(ap);
		error_set(r->err, ERROR_ARGUMENT, "%s, line %u: %s", r->label, r->line, text);
	}
	r->failed = true;
	return value_of(KIND_ABSENT);
}

void *run_take(struct run *r, size_t n)
{
	bool limit = false;
	void *p = r->failed ? NULL : memory_take(&r->memory, n, &limit);

	if (!p && !r->failed) {
		r->failed = true;
		if (limit)
			error_set(r->err, ERROR_ARGUMENT,
			          "%s, line %u: the template takes more than %d bytes of memory", r->label, r->line,
			          CHAT_MAX_MEMORY);
		else
			error_set(r->err, ERROR_MEMORY, "%s, line %u: no memory to run the template", r->label,
			          r->line);
	}
	return p;
}

bool run_step(struct run *r, size_t steps)
{
	r->steps += steps;
	if (r->steps > CHAT_MAX_STEPS && !r->failed)
		run_fail(r, "the template takes more than %d steps", CHAT_MAX_STEPS);
	return !r->failed;
}

struct scope *scope_enter(struct run *r, struct scope *parent)
{
	struct scope *s = run_take(r, sizeof *s);

	if (s)
		*s = (struct scope){ .parent = parent };
	return s;
}

bool scope_set(struct run *r, const char *name, size_t n, struct value v)
{
	struct binding *b;

	for (b = r->scope->first; b; b = b->next)
		if (!run_step(r, 1) || (b->n == n && memcmp(b->name, name, n) == 0))
			break;
	if (r->failed)
		return false;
	if (!b) {
		b = run_take(r, sizeof *b);
		if (!b)
			return false;
		*b = (struct binding){ .name = name, .n = n, .next = r->scope->first };
		r->scope->first = b;
	}
	b->value = v;
	return true;
}

/* ---- assignments */

static void assign_member(struct run *r, const struct node *target, struct value v)
{
	const struct text *name = &target->name;
	struct value of = eval(r, target->a);

	if (r->failed)
		return;
	if (of.kind != KIND_NAMESPACE) {
		run_fail(r, "cannot assign attribute on non-namespace object");
		return;
	}
	struct pair *p = dict_find_name(r, of.dict, name);
	if (p)
		p->value = v;
	else
		dict_append(r, of.dict, value_text(name), v);
}

static void assign(struct run *r, const struct node *target, struct value v)
{
	if (r->failed)
		return;
	if (target->type == NODE_NAME) {
		scope_set(r, target->name.p, target->name.n, v);
	} else if (target->type == NODE_NAMESPACE_MEMBER) {
		assign_member(r, target, v);
	} else {
		struct list *l =
			is_sequence(v) || v.kind == KIND_TEXT || v.kind == KIND_DICT || v.kind == KIND_UNDEFINED
				? iterate(r, v)
				: NULL;
		size_t n = 0;
		for (const struct node *p = target->first; p; p = p->next)
			n++;
		if (!l) {
			run_fail(r, "cannot unpack non-iterable %s object", value_type(v));
			return;
		}
		if (l->n != n) {
			if (l->n > n)
				run_fail(r, "too many values to unpack (expected %zu)", n);
			else
				run_fail(r, "not enough values to unpack (expected %zu, got %zu)", n, l->n);
			return;
		}
		n = 0;
		for (const struct node *p = target->first; p; p = p->next)
			assign(r, p, l->item[n++]);
	}
}

/* ---- loops */

/* The next item that meets the condition; absent: none, and `over` is set. */
static struct value loop_fetch(struct run *r, struct loop *loop)
{
	while (loop->at < loop->items->n && run_step(r, 1)) {
		struct value v = loop->items->item[loop->at++], met;
		struct scope *scope = r->scope;
		if (!loop->filtered)
			return v;
		r->scope = scope_enter(r, loop->outside);
		if (r->scope) {
			assign(r, loop->node->a, v);
			met = eval(r, loop->node->c);
		}
		r->scope = scope;
		if (r->failed)
			break;
		if (value_truth(met))
			return v;
	}
	loop->over = true;
	return value_of(KIND_ABSENT);
}

static struct value loop_peek(struct run *r, struct loop *loop)
{
	if (loop->after.kind == KIND_ABSENT && !loop->over)
		loop->after = loop_fetch(r, loop);
	return loop->after;
}

static bool loop_next(struct run *r, struct loop *loop)
{
	struct value v = loop->after.kind != KIND_ABSENT || loop->over ? loop->after : loop_fetch(r, loop);

	loop->after = value_of(KIND_ABSENT);
	if (r->failed || v.kind == KIND_ABSENT)
		return false;
	loop->before = loop->now;
	loop->now = v;
	loop->index++;
	return true;
}

/* How many items there are in all; those that are still to come are tried against the condition for it. */
static size_t loop_length(struct run *r, struct loop *loop)
{
	size_t ahead = loop->after.kind != KIND_ABSENT;

	if (loop->filtered && !loop->over) {
		struct value rest = value_list(r, KIND_LIST, loop->items->n - loop->at);
		size_t n = 0;
		for (struct value v; rest.kind != KIND_ABSENT && (v = loop_fetch(r, loop)).kind != KIND_ABSENT;)
			rest.list->item[n++] = v;
		if (r->failed)
			return 0;
		rest.list->n = n;
		loop->items = rest.list;
		loop->at = 0;
		loop->filtered = false;
		loop->over = n == 0;
	}
	return loop->index + ahead + (loop->items->n - loop->at);
}

static struct value loop_method(struct run *r, struct loop *loop, unsigned number)
{
	struct method *m = run_take(r, sizeof *m);

	if (!m)
		return value_of(KIND_ABSENT);
	*m = (struct method){ { .kind = KIND_LOOP, .loop = loop }, number };
	return (struct value){ .kind = KIND_METHOD, .method = m };
}

struct value loop_attribute(struct run *r, struct loop *loop, const struct text *name)
{
	static const char *const names[] = { "index",    "index0", "first",    "last",      "previtem",
		                             "nextitem", "length", "revindex", "revindex0", "depth",
		                             "depth0",   "cycle",  "changed" };
	size_t i = 0;

	while (i < sizeof names / sizeof *names && !text_is(name, names[i]))
		i++;
	switch (i) {
	case 0: return value_int((int64_t)loop->index);
	case 1: return value_int((int64_t)loop->index - 1);
	case 2: return value_bool(loop->index == 1);
	case 3: return value_bool(loop_peek(r, loop).kind == KIND_ABSENT);
	case 4:
		return loop->index > 1 ? loop->before
		                       : value_undefined(UNDEFINED_OTHER, text_literal(r, "there is no previous item"),
		                                         KIND_ABSENT);
	case 5:
		return loop_peek(r, loop).kind != KIND_ABSENT
		               ? loop->after
		               : value_undefined(UNDEFINED_OTHER, text_literal(r, "there is no next item"),
		                                 KIND_ABSENT);
	case 6: return value_int((int64_t)loop_length(r, loop));
	case 7: return value_int((int64_t)(loop_length(r, loop) - loop->index) + 1);
	case 8: return value_int((int64_t)(loop_length(r, loop) - loop->index));
	case 9: return value_int(1);
	case 10: return value_int(0);
	case 11: return loop_method(r, loop, 0);
	case 12: return loop_method(r, loop, 1);
	default: return value_of(KIND_ABSENT);
	}
}

struct value loop_call(struct run *r, struct loop *loop, const struct text *name, const struct arguments *args)
{
	if (r->failed)
		return value_of(KIND_ABSENT);
	if (text_is(name, "cycle")) {
		if (!args->n)
			return run_fail(r, "no items for cycling given");
		return args->v[(loop->index - 1) % args->n];
	}
	struct value all = value_list(r, KIND_TUPLE, args->n);
	if (all.kind == KIND_ABSENT)
		return all;
	if (args->n)
		memcpy(all.list->item, args->v, args->n * sizeof *args->v);
	bool changed = loop->seen.kind == KIND_ABSENT || !value_equal(r, loop->seen, all);
	loop->seen = all;
	return value_bool(changed);
}

static void run_iteration(struct run *r, struct loop *loop, struct scope *outside)
{
	const struct node *n = loop->node;

	r->scope = scope_enter(r, outside);
	if (!r->scope)
		return;
	assign(r, n->a, loop->now);
	scope_set(r, "loop", 4, (struct value){ .kind = KIND_LOOP, .loop = loop });
	if (!r->failed)
		run_statements(r, n->first);
}

static void run_for(struct run *r, const struct node *n)
{
	struct scope *outside = r->scope;
	struct value of = eval(r, n->b);
	struct list *items = r->failed ? NULL : iterate(r, of);
	struct loop *loop = items ? run_take(r, sizeof *loop) : NULL;

	if (!loop)
		return;
	*loop = (struct loop){ .items = items, .node = n, .filtered = n->c != NULL, .outside = outside };
	while (loop_next(r, loop)) {
		run_iteration(r, loop, outside);
		r->scope = outside;
		bool stop = r->flow == FLOW_BREAK;
		r->flow = FLOW_ON;
		if (r->failed || stop)
			break;
	}
	if (!loop->index && n->other && !r->failed) {
		r->scope = scope_enter(r, outside);
		if (r->scope)
			run_statements(r, n->other->first);
		r->scope = outside;
	}
}

/* ---- blocks */

struct value render_body(struct run *r, const struct node *first)
{
	struct build b = { .r = r }, *before = r->out;

	r->out = &b;
	if (!r->failed)
		run_statements(r, first);
	r->out = before;
	return r->failed ? value_of(KIND_ABSENT) : value_text(build_done(&b));
}

static struct value render_scope(struct run *r, const struct node *first)
{
	struct scope *outside = r->scope;
	struct value v = value_of(KIND_ABSENT);

	r->scope = scope_enter(r, outside);
	if (r->scope)
		v = render_body(r, first);
	r->scope = outside;
	return v;
}

/* Filters around nothing, of blocks: the innermost takes v. */
static struct value filtered(struct run *r, const struct node *n, struct value v)
{
	struct arguments args;

	if (!n || r->failed)
		return v;
	v = filtered(r, n->a, v);
	if (r->failed || !eval_arguments(r, n->first, &args))
		return value_of(KIND_ABSENT);
	if (n->number == NO_NUMBER)
		return run_fail(r, "No filter named '%.*s' found.", (int)n->name.n, n->name.p);
	return apply_filter(r, n->number, v, &args);
}

static struct value make_macro(struct run *r, const struct node *n)
{
	struct macro *m = run_take(r, sizeof *m);

	if (!m)
		return value_of(KIND_ABSENT);
	*m = (struct macro){ n, r->scope };
	return (struct value){ .kind = KIND_MACRO, .macro = m };
}

static void run_call_block(struct run *r, const struct node *n)
{
	static const struct text caller = { .p = "caller", .n = 6 };
	struct value f = eval(r, n->a->a), body = make_macro(r, n);
	struct arguments args;

	if (r->failed || !eval_arguments(r, n->a->first, &args))
		return;
	struct pair *keywords = run_take(r, (args.n_keywords + 1) * sizeof *keywords);
	if (!keywords)
		return;
	if (args.n_keywords)
		memcpy(keywords, args.keyword, args.n_keywords * sizeof *keywords);
	args.keyword = keywords;
	if (add_keyword(r, &args, &caller, body))
		build_str(r->out, call(r, f, &args));
}

static void run_with(struct run *r, const struct node *n)
{
	struct scope *outside = r->scope, *inside = scope_enter(r, outside);

	for (const struct node *p = n->other; p && !r->failed; p = p->next) {
		struct value v = eval(r, p->b);
		r->scope = inside;
		if (!r->failed)
			assign(r, p->a, v);
		r->scope = outside;
	}
	if (r->failed)
		return;
	r->scope = inside;
	run_statements(r, n->first);
	r->scope = outside;
}

static void run_scope(struct run *r, const struct node *first)
{
	struct scope *outside = r->scope;

	r->scope = scope_enter(r, outside);
	if (r->scope)
		run_statements(r, first);
	r->scope = outside;
}

static void run_if(struct run *r, const struct node *n)
{
	for (const struct node *branch = n->first; branch && !r->failed; branch = branch->next) {
		struct value v = branch->a ? eval(r, branch->a) : value_bool(true);
		if (!r->failed && value_truth(v)) {
			run_statements(r, branch->first);
			return;
		}
	}
}

static void run_print(struct run *r, const struct node *n)
{
	struct value v = eval(r, n->a);

	r->line = n->line;
	if (!r->failed)
		build_str(r->out, v);
}

static void run_one(struct run *r, const struct node *n)
{
	struct value v;

	r->line = n->line;
	switch ((enum node_type)n->type) {
	case NODE_DATA: build_text(r->out, &n->name); break;
	case NODE_PRINT: run_print(r, n); break;
	case NODE_IF: run_if(r, n); break;
	case NODE_FOR: run_for(r, n); break;
	case NODE_SET:
		v = eval(r, n->b);
		assign(r, n->a, v);
		break;
	case NODE_SET_BLOCK:
		v = filtered(r, n->b, render_scope(r, n->first));
		assign(r, n->a, v);
		break;
	case NODE_MACRO: scope_set(r, n->name.p, n->name.n, make_macro(r, n)); break;
	case NODE_CALL_BLOCK: run_call_block(r, n); break;
	case NODE_FILTER_BLOCK:
		v = filtered(r, n->b, render_scope(r, n->first));
		if (!r->failed)
			build_str(r->out, v);
		break;
	case NODE_WITH: run_with(r, n); break;
	case NODE_SCOPE: run_scope(r, n->first); break;
	case NODE_BREAK: r->flow = FLOW_BREAK; break;
	case NODE_CONTINUE: r->flow = FLOW_CONTINUE; break;
	default: run_fail(r, "an expression stands where a statement is expected"); break;
	}
}

void run_statements(struct run *r, const struct node *first)
{
	if (r->depth >= CHAT_MAX_DEPTH) {
		run_fail(r, "maximum recursion depth exceeded");
		return;
	}
	r->depth++;
	for (; first && r->flow == FLOW_ON && run_step(r, 1); first = first->next)
		run_one(r, first);
	r->depth--;
}

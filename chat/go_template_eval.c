/* chat/go_template_eval.c - pipelines, commands, operands and the fields of values.
 *
 * Owns: what is asked of a value that is not there. A map gives what its type is at first, a struct refuses.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "chat/go_template.h"

struct go_value go_fail(struct go_run *g, const struct go_node *n, const char *format, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	g->r->line = n->line;
	run_fail(g->r, "%s", text);
	return (struct go_value){ .kind = GO_NONE };
}

static const struct go_value none = { .kind = GO_NONE };

/* ---- variables */

bool go_push(struct go_run *g, const struct text *name, struct go_value v)
{
	if (g->n == g->capacity) {
		const size_t capacity = g->n ? 2 * g->n : 32;
		struct go_variable *all = run_take(g->r, capacity * sizeof *all);
		if (!all)
			return false;
		if (g->n)
			memcpy(all, g->variable, g->n * sizeof *all);
		g->variable = all;
		g->capacity = capacity;
	}
	g->variable[g->n++] = (struct go_variable){ name, v };
	return true;
}

/* The one that was declared last. NULL: failed. */
static struct go_variable *find_variable(struct go_run *g, const struct go_node *n)
{
	for (size_t i = g->n; i-- > g->hidden;)
		if (text_same(g->variable[i].name, &n->text))
			return &g->variable[i];
	go_fail(g, n, "the variable %.*s is not declared", (int)(n->text.n < 60 ? n->text.n : 60), n->text.p);
	return NULL;
}

static void declare(struct go_run *g, const struct go_node *pipe, struct go_value v)
{
	for (const struct go_node *d = pipe->declared; d && !g->r->failed; d = d->next) {
		struct go_variable *old = pipe->assigns ? find_variable(g, d) : NULL;
		if (old)
			old->value = v;
		else if (!pipe->assigns)
			go_push(g, &d->text, v);
	}
}

/* ---- fields */

static struct go_value field(struct go_run *g, const struct go_node *n, struct go_value of, const struct text *name,
                             bool args)
{
	const struct go_type *type = of.kind == GO_POINTER ? of.type->element : of.type;
	struct go_value out;

	if (of.kind == GO_NONE)
		return none;
	if (of.kind == GO_NIL)
		return go_fail(g, n, "the field %.*s of nothing", (int)(name->n < 60 ? name->n : 60), name->p);
	if (!of.walks && go_method(g, n, of, name, &out))
		return args ? go_fail(g, n, "%.*s takes no arguments", (int)name->n, name->p) : out;
	if (args)
		return go_fail(g, n, "%.*s has arguments and is no function", (int)(name->n < 60 ? name->n : 60),
		               name->p);
	if (of.kind == GO_MAP) {
		const struct go_value *found = go_member(&of, name);
		/* what ends at .Response has nothing there, as it is in ollama */
		return found ? *found : g->cut ? none : go_zero(g->r, of.type->element);
	}
	for (size_t i = 0; of.field && type && (of.kind == GO_STRUCT || of.kind == GO_POINTER) && i < type->n_fields;
	     i++)
		if (text_is(name, type->field[i].name))
			return of.field[i];
	return go_fail(g, n, "a value of type %s has no field %.*s", go_type_name(of),
	               (int)(name->n < 60 ? name->n : 60), name->p);
}

/* args: behind the last field; last: the value of a pipe. */
static struct go_value fields(struct go_run *g, const struct go_node *n, struct go_value of, const struct go_node *args,
                              const struct go_value *last)
{
	for (const struct go_name *name = n->name; name && !g->r->failed; name = name->next)
		of = field(g, n, of, &name->text, !name->next && (args || last));
	return of;
}

/* ---- operands */

static struct go_value no_function(struct go_run *g, const struct go_node *n, struct go_value v,
                                   const struct go_node *args, const struct go_value *last)
{
	return args || last ? go_fail(g, n, "an argument is given to a value of type %s, which is no function",
	                              go_type_name(v))
	                    : v;
}

static struct go_value constant(struct go_run *g, const struct go_node *n)
{
	switch (n->type) {
	case GO_NODE_BOOL: return go_of_bool(n->constant.truth);
	case GO_NODE_STRING: return go_of_text(text_copy(g->r, &n->text));
	case GO_NODE_NUMBER: break;
	default: return none;
	}
	if (!n->constant.is_float)
		return go_of_int(n->constant.integer);
	return (struct go_value){ .kind = GO_FLOAT, .type = &go_float, .real = n->constant.real };
}

/* The first operand of a command with the others, or one of the others alone. */
static struct go_value operand(struct go_run *g, const struct go_node *n, struct go_value dot,
                               const struct go_node *args, const struct go_value *last)
{
	struct go_variable *v;
	struct go_value of;

	switch (n->type) {
	case GO_NODE_FIELD: return fields(g, n, dot, args, last);
	case GO_NODE_FUNCTION: return go_call_number(g, n, n->number, args, dot, last);
	case GO_NODE_VARIABLE:
		if (!(v = find_variable(g, n)))
			return none;
		return n->name ? fields(g, n, v->value, args, last) : no_function(g, n, v->value, args, last);
	case GO_NODE_CHAIN:
		of = go_argument(g, n->first, dot, GO_WANTS_VALUE);
		return g->r->failed ? none : fields(g, n, of, args, last);
	case GO_NODE_PIPE: return no_function(g, n, go_pipe(g, n, dot), args, last);
	case GO_NODE_DOT: return no_function(g, n, dot, args, last);
	case GO_NODE_NIL: return go_fail(g, n, "nil stands alone, expected a value");
	default: return no_function(g, n, constant(g, n), args, last);
	}
}

struct go_value go_argument(struct go_run *g, const struct go_node *n, struct go_value dot, enum go_wants wants)
{
	if (n->type == GO_NODE_NIL)
		return wants == GO_WANTS_STRING ? go_fail(g, n, "nil is given, expected a string") : none;
	return operand(g, n, dot, NULL, NULL);
}

/* ---- pipelines */

struct go_value go_pipe(struct go_run *g, const struct go_node *pipe, struct go_value dot)
{
	struct go_value v = none;
	const struct go_value *last = NULL;

	if (!pipe || !go_enter(g, pipe))
		return none;
	for (const struct go_node *c = pipe->first; c && !g->r->failed; c = c->next) {
		const struct go_value given = v;
		v = go_held(operand(g, c->first, dot, c->first->next, last ? &given : NULL));
		last = &v;
	}
	go_leave(g);
	if (!g->r->failed)
		declare(g, pipe, v);
	return v;
}

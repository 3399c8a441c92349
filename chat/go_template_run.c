/* chat/go_template_run.c - statements of Go's templates.
 *
 * Owns: how deep they may call each other, and how long a variable is there: up to the end of the structure in which it
 * was declared.
 */
#include <string.h>

#include "chat/go_template.h"

bool go_enter(struct go_run *g, const struct go_node *n)
{
	if (g->r->depth >= CHAT_MAX_DEPTH)
		go_fail(g, n, "templates and structures are more than %d deep in each other", CHAT_MAX_DEPTH);
	else
		g->r->depth++;
	return !g->r->failed;
}

void go_leave(struct go_run *g) { g->r->depth--; }

static void print(struct go_run *g, struct go_value v)
{
	if (v.kind == GO_NONE)
		build_string(g->r->out, "<no value>", false);
	else if (v.kind == GO_POINTER) /* what it points to */
		go_print(g->r->out, (struct go_value){ .kind = GO_STRUCT, .type = v.type->element, .field = v.field });
	else
		go_print(g->r->out, v);
}

static void branch(struct go_run *g, const struct go_node *n, struct go_value dot)
{
	const size_t known = g->n;
	const struct go_value v = go_pipe(g, n->pipe, dot);

	if (g->r->failed)
		return;
	if (go_truth(v))
		go_walk(g, n->first, n->type == GO_NODE_WITH ? v : dot);
	else
		go_walk(g, n->other, dot);
	g->n = known;
}

/* ---- loops */

/* Sets the loop's variables; those that it declared lie at the end. */
static void set_variables(struct go_run *g, const struct go_node *pipe, size_t at, struct go_value index,
                          struct go_value item)
{
	const struct go_node *first = pipe->declared, *second = first ? first->next : NULL;
	const struct go_value value[2] = { second ? index : item, item };

	for (unsigned i = 0; first && i < (second ? 2U : 1U); i++) {
		const struct text *name = i ? &second->text : &first->text;
		size_t k = at + i;
		for (k = pipe->assigns ? g->n : k; pipe->assigns && k-- > g->hidden;)
			if (text_same(g->variable[k].name, name))
				break;
		g->variable[k].value = value[i];
	}
}

/* One round; false: the loop ends. */
static bool once(struct go_run *g, const struct go_node *n, size_t declared, struct go_value index,
                 struct go_value item)
{
	const size_t known = g->n;

	if (!run_step(g->r, 1))
		return false;
	set_variables(g, n->pipe, declared, index, item);
	go_walk(g, n->first, item);
	g->n = known;
	const bool on = g->r->flow != FLOW_BREAK && !g->r->failed;
	g->r->flow = FLOW_ON;
	return on;
}

/* Integers from 0 on: the number is the item. */
static void count(struct go_run *g, const struct go_node *n, size_t declared, struct go_value v)
{
	if (n->pipe->declared && n->pipe->declared->next) {
		go_fail(g, n, "a range over the number %lld declares two variables, expected one",
		        (long long)v.integer);
		return;
	}
	for (int64_t i = 0; i < v.integer && once(g, n, declared, v, go_of_int(i)); i++)
		;
}

static struct go_value key_of(const struct go_pair *p) { return go_of_text(p->key); }

static void range(struct go_run *g, const struct go_node *n, struct go_value dot)
{
	const size_t known = g->n;
	const struct go_value v = go_pipe(g, n->pipe, dot);
	size_t items = 0;

	if (g->r->failed)
		return;
	if (v.kind == GO_LIST)
		items = v.list->n;
	else if (v.kind == GO_MAP || (v.kind == GO_ORDERED && v.walks))
		items = v.map->n;
	else if (v.kind == GO_INT || v.kind == GO_BYTE)
		items = v.integer > 0;
	else if (v.kind != GO_NONE && !(v.kind == GO_POINTER && v.nil))
		go_fail(g, n, "range over a value of type %s, expected a list, a map or an integer", go_type_name(v));
	const struct go_node *declared = n->pipe->assigns ? NULL : n->pipe->declared;
	const size_t at = g->n - (declared ? declared->next ? 2 : 1 : 0);
	if (g->r->failed)
		return;
	if (items == 0)
		go_walk(g, n->other, dot);
	else if (v.kind == GO_INT || v.kind == GO_BYTE)
		count(g, n, at, v);
	else if (v.kind == GO_LIST)
		for (size_t i = 0; i < items && once(g, n, at, go_of_int((int64_t)i), v.list->item[i]); i++)
			;
	else
		for (size_t i = 0; i < items && once(g, n, at, key_of(&v.map->pair[i]), v.map->pair[i].value); i++)
			;
	g->n = known;
}

/* ---- calls */

static void call_template(struct go_run *g, const struct go_node *n, struct go_value dot)
{
	static const struct text root = { .p = "$", .n = 1 };
	const struct go_defined *d = g->t->defined;

	while (d && !text_same(&d->name, &n->text))
		d = d->next;
	if (!d) {
		go_fail(g, n, "the template \"%.*s\" is not defined", (int)(n->text.n < 60 ? n->text.n : 60),
		        n->text.p);
		return;
	}
	const struct go_value of = n->pipe ? go_pipe(g, n->pipe, dot) : (struct go_value){ .kind = GO_NONE };
	const size_t known = g->n, hidden = g->hidden;
	const bool cut = g->cut;
	g->hidden = known;
	g->cut = false;
	if (!g->r->failed && go_push(g, &root, of))
		go_walk(g, d->body, of);
	g->cut = cut;
	g->n = known;
	g->hidden = hidden;
}

static void statement(struct go_run *g, const struct go_node *n, struct go_value dot)
{
	struct go_value v;

	switch (n->type) {
	case GO_NODE_TEXT: build_part(g->r->out, &n->text, 0, n->text.n); break;
	case GO_NODE_ACTION:
		v = go_pipe(g, n->pipe, dot);
		g->r->line = n->line;
		if (!g->r->failed && !n->pipe->declared)
			print(g, v);
		break;
	case GO_NODE_IF:
	case GO_NODE_WITH: branch(g, n, dot); break;
	case GO_NODE_RANGE: range(g, n, dot); break;
	case GO_NODE_TEMPLATE: call_template(g, n, dot); break;
	case GO_NODE_BREAK: g->r->flow = FLOW_BREAK; break;
	case GO_NODE_CONTINUE: g->r->flow = FLOW_CONTINUE; break;
	default: break;
	}
}

void go_walk(struct go_run *g, const struct go_node *first, struct go_value dot)
{
	if (!first || !go_enter(g, first))
		return;
	for (; first && run_step(g->r, 1) && g->r->flow == FLOW_ON; first = first->next)
		if (!(g->cut && first->gone))
			statement(g, first, dot);
	go_leave(g);
}

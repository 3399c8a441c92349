/* language/parse_lanes.c - statements of kernels that use lanes inside of an instance: each, scan, tile, sync; and
 * writes to places that several instances may reach.
 */
#include "language/parse.h"

#include <string.h>

/* Statements that only a kernel has, and there at its own level alone. */
static void cooperate(struct parser *p, struct source_location at, const char *what)
{
	if (!p->kernel)
		jk_message_add(p->m, at, "%s cannot stand in a function; write it in the kernel", what);
	else if (p->lanes)
		jk_message_add(p->m, at,
		               "%s cannot stand inside each: control around it must be uniform; end the each before it",
		               what);
	else
		p->kernel->cooperates = true;
}

struct node *jk_parse_tile(struct parser *p)
{
	struct node *n = jk_node_new(p, NODE_DECLARE, jk_location_of(p->at++));
	struct symbol *s;

	cooperate(p, n->at, "tile");
	if (!jk_is_type(p)) {
		jk_expected(p, "the type of a tile, such as f32");
		return n;
	}
	const unsigned type = jk_take_type(p);
	if (!(s = jk_declare_later(p, SYMBOL_TILE, type, "the name of a tile")))
		return n;
	if (!type_is_value(type) || type == JK_BOOL)
		jk_message_add(p->m, s->at, "%s is a type of elements of parameters alone; write %s",
		               jk_type_text(type), type == JK_BOOL ? "u32" : jk_type_text(jk_type_widened(type)));
	n->symbol = s;
	s->extent = jk_parse_extents(p, s);
	if (!s->dims && !p->lost)
		jk_expected(p, "the extents of a tile, such as [16][16]");
	jk_declare_now(p, s);
	jk_expect_mark(p, MARK_SEMICOLON, "behind a tile");
	return n;
}

struct node *jk_parse_each(struct parser *p)
{
	struct node *n = jk_node_new(p, NODE_EACH, jk_location_of(p->at++));
	const unsigned loops = p->loops;

	cooperate(p, n->at, "each");
	n->symbol = jk_parse_loop_index(p, "each");
	if (!n->symbol)
		return n;
	n->symbol->type = (uint8_t)jk_parse_range(p, &n->a, &n->b, false);
	jk_expect_mark(p, MARK_CLOSE, "behind the range of each");
	p->loops = 0;
	p->lanes++;
	jk_parse_loop_body(p, n);
	p->lanes--;
	p->loops = loops;
	return n;
}

struct node *jk_parse_scan(struct parser *p)
{
	struct node *n = jk_node_new(p, NODE_SCAN, jk_location_of(p->at++));
	struct scope scope;

	cooperate(p, n->at, "scan");
	if (jk_is_word(p, "exclusive")) {
		n->flag = 1;
		p->at++;
	}
	const int op = jk_reduction_at(p);
	if (op != OP_ADD && op != OP_MIN && op != OP_MAX) {
		jk_expected(p, "sum, min or max behind scan");
		return n;
	}
	n->op = (uint8_t)op;
	p->at++;
	n->symbol = jk_parse_loop_index(p, "scan");
	if (!n->symbol)
		return n;
	n->symbol->type = (uint8_t)jk_parse_range(p, &n->a, &n->b, false);
	jk_expect_mark(p, MARK_CLOSE, "behind the range of scan");
	jk_scope_open(p, &scope);
	jk_declare_now(p, n->symbol);
	p->lanes++;
	n->c = p->lost ? jk_node_wrong(p) : jk_parse_target(p);
	if (!p->lost && n->c->kind == NODE_NAME)
		jk_message_add(p->m, n->c->at, "expected an element that a scan writes, such as out[j]");
	if (!p->lost && jk_expect_mark(p, MARK_SET, "behind what a scan writes")) {
		n->d = jk_parse_expression(p);
		jk_type_expect(p->m, n->d, n->c->type, "what is scanned");
		jk_expect_mark(p, MARK_SEMICOLON, "behind scan");
	}
	p->lanes--;
	jk_scope_close(p);
	return n;
}

/* scatter_distinct(a[i], v) and atomic_add(a[i], v). kind: of node; op: of atomics. */
static struct node *parse_scatter(struct parser *p, unsigned kind, unsigned op)
{
	struct node *n = jk_node_new(p, kind, jk_location_of(p->at++));

	n->op = (uint8_t)op;
	jk_expect_mark(p, MARK_OPEN, "before an element and a value");
	if (p->lost || !jk_enter(p))
		return n;
	n->a = jk_parse_target(p);
	jk_leave(p);
	if (p->lost || !jk_expect_mark(p, MARK_COMMA, "between an element and a value"))
		return n;
	n->b = jk_parse_expression(p);
	if (n->a->kind != NODE_ELEMENT || (n->a->symbol->kind != SYMBOL_ARRAY && n->a->symbol->kind != SYMBOL_TILE))
		jk_message_add(p->m, n->a->at, "expected an element of an array, such as out[i]");
	else if (kind == NODE_ATOMIC && !type_is_int(n->a->symbol->type))
		jk_message_add(p->m, n->a->at,
		               "atomics take elements of i32, u32, i64 and u64, found %s: sums of floats would depend "
		               "on the order; use sum(...)",
		               jk_type_text(n->a->symbol->type));
	else if (kind == NODE_ATOMIC && n->a->symbol->access == JK_OUT)
		jk_message_add(p->m, n->a->at, "an atomic reads what it changes; make %.60s inout",
		               n->a->symbol->name->text);
	jk_type_expect(p->m, n->b, n->a->type, "value");
	jk_expect_mark(p, MARK_CLOSE, "behind the value");
	jk_expect_mark(p, MARK_SEMICOLON, "behind )");
	return n;
}

struct node *jk_parse_scatter(struct parser *p)
{
	static const struct {
		const char *word;
		uint8_t kind, op;
	} scatters[] = { { "scatter_distinct", NODE_SCATTER, 0 }, { "atomic_add", NODE_ATOMIC, OP_ADD },
		         { "atomic_min", NODE_ATOMIC, OP_MIN },   { "atomic_max", NODE_ATOMIC, OP_MAX },
		         { "atomic_and", NODE_ATOMIC, OP_AND },   { "atomic_or", NODE_ATOMIC, OP_OR } };

	for (unsigned k = 0; k < sizeof scatters / sizeof *scatters; k++)
		if (jk_is_word(p, scatters[k].word) && !p->at->name->symbol) {
			if (!p->kernel)
				jk_message_add(p->m, jk_location_of(p->at),
				               "%s cannot stand in a function, which writes no arrays",
				               scatters[k].word);
			return parse_scatter(p, scatters[k].kind, scatters[k].op);
		}
	return NULL;
}

struct node *jk_parse_sync(struct parser *p)
{
	struct node *n = jk_node_new(p, NODE_SYNC, jk_location_of(p->at++));

	cooperate(p, n->at, "sync");
	jk_expect_mark(p, MARK_SEMICOLON, "behind sync");
	return n;
}

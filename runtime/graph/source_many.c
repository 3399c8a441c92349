/* runtime/graph/source_many.c - reductions, and what goes along one axis. */
#include <inttypes.h>
#include <string.h>

#include "graph/eval_rules.h"
#include "runtime/graph/source.h"

static const struct tensor_value_info *info(const struct source *s, tensor_value v) { return &s->g->value[v]; }

/* ---- reductions */

static enum tensor_op pair_of(enum tensor_op op)
{
	switch (op) {
	case OP_reduce_sum: return OP_add;
	case OP_reduce_product: return OP_mul;
	case OP_reduce_max: return OP_max;
	case OP_reduce_min: return OP_min;
	case OP_reduce_any: return OP_or;
	default: return OP_and;
	}
}

const char *source_neutral(struct source *s, enum tensor_op op, int wide)
{
	return source_literal(s, wide, eval_neutral(op, wide));
}

/* What is reduced: dimensions that go, seen as one index j of n, and those that stay. */
struct reduction {
	const struct tensor_node *n;
	const struct shape *from;
	bool goes[TENSOR_MAX_RANK];
	uint64_t count, inner; /* elements that are reduced; kept ones behind the last of them */
	int wide;
	enum tensor_op op;
};

static struct reduction reduction_of(const struct source *s, const struct tensor_node *n)
{
	const struct attribute *axes = tensor_node_attribute(n, ATTRIBUTE_axes);
	struct reduction r = { .n = n, .from = &info(s, n->operand[0])->shape, .count = 1, .inner = 1 };

	r.wide = tensor_wide_type(info(s, n->operand[0])->type);
	r.op = pair_of(n->op);
	for (uint32_t i = 0; i < axes->n; i++)
		r.goes[axes->whole[i]] = true;
	for (unsigned d = 0; d < r.from->rank; d++) {
		r.count *= r.goes[d] ? r.from->dim[d] : 1;
		r.inner = r.goes[d] ? 1 : r.inner * r.from->dim[d];
	}
	return r;
}

/* The shape of what goes, or stays. */
static struct shape part_of(const struct reduction *r, bool goes)
{
	struct shape s = { 0 };

	for (unsigned d = 0; d < r->from->rank; d++)
		if (r->goes[d] == goes)
			s.dim[s.rank++] = r->from->dim[d];
	return s;
}

/* The operand's element number j of those that are reduced into the result's element `kept`. */
static const char *reduced_element(struct source *s, const struct reduction *r, const struct position *kept,
                                   const char *j)
{
	const struct shape gone = part_of(r, true);
	struct position of = { .flat = j }, at = { .has_dims = true };
	unsigned k = 0, g = 0;

	position_dims(s, &gone, &of);
	for (unsigned d = 0; d < r->from->rank; d++)
		at.dim[d] = r->goes[d] ? of.dim[g++] : kept->dim[k++];
	return source_element(s, r->n->operand[0], at);
}

/* An instance for each result, whose lanes share the elements. */
static void by_rows(struct source *s, const struct reduction *r)
{
	static const char *const names[TENSOR_OPS] = {
		[OP_add] = "sum", [OP_max] = "max", [OP_min] = "min", [OP_or] = "any", [OP_and] = "all"
	};
	const struct tensor_value_info *out = info(s, r->n->first);
	struct position at = { .flat = "i" };

	bytes_print(&s->head, "i in %" PRIu64, shape_elements(&out->shape));
	position_dims(s, &out->shape, &at);
	s->inlines = true;
	const char *x = reduced_element(s, r, &at, "j");
	s->inlines = false;
	source_line(s, "o[i] = %s;",
	            source_stored(s, out->type,
	                          source_text(s, "%s(j in 0..%" PRIu64 ": %s)", names[r->op], r->count, x)));
}

/* A lane for each result, which has the 32 partial results of the order to itself. */
static void by_columns(struct source *s, const struct reduction *r)
{
	const struct tensor_value_info *out = info(s, r->n->first);
	const char *type = tensor_type_name(r->wide), *none = source_neutral(s, r->op, r->wide);
	struct position at = { .flat = "i" };

	bytes_print(&s->head, "i in %" PRIu64, shape_elements(&out->shape));
	position_dims(s, &out->shape, &at);
	source_line(s, "%s total = %s;", type, none);
	source_line(s, "%s p[32];", type);
	source_line(s, "for (part in 0..%" PRIu64 ") {", (r->count + 1023) / 1024);
	source_line(s, "for (l in 0..32) { p[l] = %s; }", none);
	source_line(s, "for (j in part * 1024..min(part * 1024 + 1024, %" PRIu64 ")) {", r->count);
	source_forget(s);
	const char *x = reduced_element(s, r, &at, "j");
	source_line(s, "p[j & 31] = %s;", source_pair(s, r->op, r->wide, "p[j & 31]", x));
	source_line(s, "}");
	for (int half = 16; half; half /= 2)
		source_line(s, "for (l in 0..%d) { p[l] = %s; }", half,
		            source_pair(s, r->op, r->wide, "p[l]", source_text(s, "p[l + %d]", half)));
	source_line(s, "total = %s;", source_pair(s, r->op, r->wide, "total", "p[0]"));
	source_line(s, "}");
	source_line(s, "o[i] = %s;", source_stored(s, out->type, "total"));
}

/* One after the other. */
static void by_chain(struct source *s, const struct reduction *r)
{
	const struct tensor_value_info *out = info(s, r->n->first);
	struct position at = { .flat = "i" };

	bytes_print(&s->head, "i in %" PRIu64, shape_elements(&out->shape));
	position_dims(s, &out->shape, &at);
	source_line(s, "%s total = %s;", tensor_type_name(r->wide), source_neutral(s, r->op, r->wide));
	source_line(s, "for (j in 0..%" PRIu64 ") {", r->count);
	source_forget(s);
	source_line(s, "total = %s;", source_pair(s, r->op, r->wide, "total", reduced_element(s, r, &at, "j")));
	source_line(s, "}");
	source_line(s, "o[i] = %s;", source_stored(s, out->type, "total"));
}

void source_reduce(struct source *s, const struct tensor_node *n)
{
	enum { LANES = 8 };
	const struct reduction r = reduction_of(s, n);
	/* Partial results of 8 bytes take all the memory that a workgroup of a card shares. */
	const bool has_room = s->lanes || tensor_type_bytes(r.wide) < 8;

	if (n->op == OP_reduce_product)
		by_chain(s, &r);
	else if (r.inner >= LANES && r.wide != JIT_TYPE_BOOL && r.count > 0 && has_room)
		by_columns(s, &r);
	else
		by_rows(s, &r);
}

/* ---- along one axis: a lane for each row of elements, which goes through it */

struct axis {
	uint64_t outer, n, inner;
	const char *row; /* the first element's position, without its index along the axis */
};

static struct axis axis_of(struct source *s, const struct tensor_node *n)
{
	const struct shape *of = &info(s, n->operand[0])->shape;
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	struct axis a = { shape_part(of, 0, axis), of->dim[axis], shape_part(of, axis + 1, of->rank), "0" };

	bytes_print(&s->head, "i in %" PRIu64 ", k in %" PRIu64, a.outer, a.inner);
	a.row = source_text(s, "i * %" PRIu64 " + k", a.n * a.inner);
	return a;
}

static const char *along(struct source *s, const struct tensor_node *n, const struct axis *a, const char *j)
{
	const char *flat = source_text(s, "(%s + %s * %" PRIu64 ")", a->row, j, a->inner);

	return source_element(s, n->operand[0], (struct position){ .flat = flat });
}

/* Whether y comes before x. */
static const char *better(struct source *s, const struct tensor_node *n, int wide, const char *x, const char *y)
{
	const char *less = n->op == OP_argmax ? source_text(s, "%s < %s", x, y) : source_text(s, "%s > %s", x, y);

	return tensor_is_float(wide) ? source_text(s, "(%s == %s && (%s != %s || %s))", x, x, y, y, less)
	                             : source_text(s, "(%s)", less);
}

void source_arg(struct source *s, const struct tensor_node *n)
{
	const int wide = tensor_wide_type(info(s, n->operand[0])->type);
	const struct axis a = axis_of(s, n);

	source_line(s, "%s best = %s;", tensor_type_name(wide), along(s, n, &a, "0"));
	source_line(s, "i32 where = 0;");
	source_line(s, "for (j in 1..%" PRIu64 ") {", a.n);
	source_forget(s);
	const char *x = along(s, n, &a, "j"), *takes = better(s, n, wide, "best", x);
	if (tensor_node_whole(n, ATTRIBUTE_last, 0, 0))
		takes = source_text(s, "%s || !%s", takes, better(s, n, wide, x, "best"));
	const char *here = source_local(s, "bool", takes);
	source_line(s, "best = select(%s, %s, best);", here, x);
	source_line(s, "where = select(%s, j, where);", here);
	source_line(s, "}");
	source_line(s, "o[i * %" PRIu64 " + k] = i64(where);", a.inner);
}

void source_scan(struct source *s, const struct tensor_node *n)
{
	const int type = info(s, n->operand[0])->type, wide = tensor_wide_type(type);
	const enum tensor_op op = n->op == OP_cumsum ? OP_add : OP_mul;
	const bool back = tensor_node_whole(n, ATTRIBUTE_reverse, 0, 0) != 0,
		   without = tensor_node_whole(n, ATTRIBUTE_exclusive, 0, 0) != 0;
	const struct axis a = axis_of(s, n);
	const char *j = back ? source_text(s, "(%" PRIu64 " - j)", a.n - 1) : "j";

	source_line(s, "%s total = %s;", tensor_type_name(wide), source_neutral(s, op, wide));
	source_line(s, "for (j in 0..%" PRIu64 ") {", a.n);
	source_forget(s);
	const char *x = along(s, n, &a, j), *at = source_text(s, "%s + %s * %" PRIu64, a.row, j, a.inner);
	if (without)
		source_line(s, "o[%s] = total;", at);
	source_line(s, "total = %s;", source_pair(s, op, wide, "total", x));
	if (!without)
		source_line(s, "o[%s] = total;", at);
	source_line(s, "}");
}

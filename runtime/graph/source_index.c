/* runtime/graph/source_index.c - elements at indices that are elements themselves, and what is written there. */
#include <inttypes.h>
#include <string.h>

#include "runtime/graph/source.h"

static const struct tensor_value_info *info(const struct source *s, tensor_value v) { return &s->g->value[v]; }

static const char *in_range(struct source *s, int type, const char *i, uint64_t extent)
{
	return tensor_is_signed(type) ? source_text(s, "(%s >= 0 && %s < %" PRIu64 ")", i, i, extent)
	                              : source_text(s, "(%s < %" PRIu64 ")", i, extent);
}

static const char *nothing(struct source *s, int wide)
{
	return wide == JIT_TYPE_BOOL ? "false" : source_number(s, wide, 0);
}

const char *source_taken(struct source *s, const struct tensor_node *n, const struct position *at)
{
	const struct shape *from = &info(s, n->operand[0])->shape, *by = &info(s, n->operand[1])->shape;
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	const bool along = n->op == OP_take_along;
	const int type = tensor_wide_type(info(s, n->operand[1])->type),
		  wide = tensor_wide_type(info(s, n->first)->type);
	struct position index = { .has_dims = true }, to = { .has_dims = true };

	for (unsigned d = 0; d < by->rank; d++)
		index.dim[d] = along ? at->dim[d] : at->dim[axis + d];
	const char *i = source_element(s, n->operand[1], index);
	const char *inside = source_local(s, "bool", in_range(s, type, i, from->dim[axis]));
	for (unsigned d = 0; d < from->rank; d++)
		to.dim[d] = along || d < axis ? at->dim[d] : d > axis ? at->dim[d + by->rank - 1] : NULL;
	to.dim[axis] =
		source_local(s, "i32", source_text(s, "i32(select(%s, %s, %s))", inside, i, source_number(s, type, 0)));
	return source_text(s, "select(%s, %s, %s)", inside, source_element(s, n->operand[0], to), nothing(s, wide));
}

/* The indices of a position, which stand in the last dimension of `by`, as numbers of i32; those out of range are 0.
 * The condition that none is; NULL: there are no indices. */
static const char *positions(struct source *s, tensor_value by, struct position index, const struct shape *of,
                             unsigned first, const char *out[TENSOR_MAX_RANK])
{
	const struct shape *at = &info(s, by)->shape;
	const int type = tensor_wide_type(info(s, by)->type);
	const char *inside = NULL;

	for (uint64_t k = 0; k < at->dim[at->rank - 1]; k++) {
		index.dim[at->rank - 1] = source_text(s, "%" PRIu64, k);
		const char *i = source_element(s, by, index);
		const char *here = in_range(s, type, i, of->dim[first + k]);
		inside = inside ? source_text(s, "(%s && %s)", inside, here) : here;
		out[k] = i;
	}
	if (!inside)
		return NULL;
	inside = source_local(s, "bool", inside);
	for (uint64_t k = 0; k < at->dim[at->rank - 1]; k++)
		out[k] = source_local(
			s, "i32", source_text(s, "i32(select(%s, %s, %s))", inside, out[k], source_number(s, type, 0)));
	return inside;
}

const char *source_gathered(struct source *s, const struct tensor_node *n, const struct position *at)
{
	const struct shape *from = &info(s, n->operand[0])->shape, *by = &info(s, n->operand[1])->shape;
	const unsigned batches = (unsigned)tensor_node_whole(n, ATTRIBUTE_batch, 0, 0),
		       length = (unsigned)by->dim[by->rank - 1];
	const int wide = tensor_wide_type(info(s, n->first)->type);
	struct position index = { .has_dims = true }, to = { .has_dims = true };

	for (unsigned d = 0; d + 1 < by->rank; d++)
		index.dim[d] = at->dim[d];
	const char *inside = positions(s, n->operand[1], index, from, batches, to.dim + batches);
	for (unsigned d = 0; d < batches; d++)
		to.dim[d] = at->dim[d];
	for (unsigned d = batches + length; d < from->rank; d++)
		to.dim[d] = at->dim[by->rank - 1 + d - batches - length];
	const char *x = source_element(s, n->operand[0], to);
	return inside ? source_text(s, "select(%s, %s, %s)", inside, x, nothing(s, wide)) : x;
}

/* ---- what is written at indices */

/* The array as [outer][parts][rows][inner]: an instance has the rows of a part, and looks at all updates, in their
 * order. On cards there are several parts, where instances would be few. */
struct scattering {
	const struct tensor_node *n;
	const struct shape *of, *by;
	struct shape outer, inner; /* dimensions around the ones that indices stand for */
	uint64_t parts, rows, updates;
	unsigned axis;
	bool along;
};

static struct scattering scattering_of(const struct source *s, const struct tensor_node *n)
{
	enum { INSTANCES = 16, PARTS = 32 };
	struct scattering w = { .n = n, .of = &info(s, n->operand[0])->shape, .by = &info(s, n->operand[1])->shape };
	unsigned first, length = 1;

	w.along = n->op == OP_scatter_along;
	w.axis = w.along ? (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0) : 0;
	if (!w.along)
		length = (unsigned)w.by->dim[w.by->rank - 1];
	w.updates = w.along ? w.by->dim[w.axis] : shape_part(w.by, 0, w.by->rank - 1);
	first = w.axis + length;
	w.outer.rank = w.axis;
	memcpy(w.outer.dim, w.of->dim, w.axis * sizeof *w.of->dim);
	w.inner.rank = w.of->rank - first;
	memcpy(w.inner.dim, w.of->dim + first, w.inner.rank * sizeof *w.of->dim);
	w.rows = shape_part(w.of, w.axis, first);
	const uint64_t instances = shape_elements(&w.outer) * (w.along ? shape_elements(&w.inner) : 1);
	w.parts = !s->lanes && instances < INSTANCES ? source_divisor(w.rows, PARTS) : 1;
	w.rows /= w.parts;
	return w;
}

/* The row that update u goes to, and whether it goes anywhere; and its own position. Indices are rows: passes made
 * them so (graph/pass_sort.c). */
static const char *row_of(struct source *s, const struct scattering *w, const struct position *outer,
                          const struct position *inner, struct position *update, const char **inside)
{
	const int type = tensor_wide_type(info(s, w->n->operand[1])->type);
	struct position index = { .has_dims = true };

	*inside = NULL;
	update->has_dims = true;
	for (unsigned d = 0; w->along && d < w->of->rank; d++) {
		update->dim[d] = d < w->axis ? outer->dim[d] : d == w->axis ? "u" : inner->dim[d - w->axis - 1];
		if (d != w->axis && w->by->dim[d] < w->of->dim[d])
			*inside = source_text(s, "%s%s%s < %" PRIu64, *inside ? *inside : "", *inside ? " && " : "",
			                      update->dim[d], w->by->dim[d]);
	}
	if (!w->along) {
		index.dim[0] = update->dim[0] = "u";
		index.dim[1] = "0";
	}
	const char *i = source_element(s, w->n->operand[1], w->along ? *update : index);
	const char *here = in_range(s, type, i, w->parts * w->rows);
	*inside = source_local(s, "bool", *inside ? source_text(s, "(%s && %s)", *inside, here) : here);
	return source_local(s, "i32", source_text(s, "select(%s, %s, 0)", *inside, i));
}

static const char *put_mode(struct source *s, const struct scattering *w, const char *old, const char *x)
{
	static const enum tensor_op ops[] = {
		[SCATTER_ADD] = OP_add, [SCATTER_MUL] = OP_mul, [SCATTER_MIN] = OP_min, [SCATTER_MAX] = OP_max
	};
	const int64_t mode = tensor_node_whole(w->n, ATTRIBUTE_mode, 0, SCATTER_SET);
	const int type = info(s, w->n->first)->type;

	return mode == SCATTER_SET ? source_stored(s, type, x)
	                           : source_pair(s, ops[mode], tensor_wide_type(type), old, x);
}

/* Instances have no lanes beside each other, so that rows are the same in all lanes, which writes are proven by. */
void source_scatter(struct source *s, const struct tensor_node *n)
{
	const struct scattering w = scattering_of(s, n);
	const uint64_t outer = shape_elements(&w.outer), inner = shape_elements(&w.inner);
	const char *iterations = w.along ? "" : source_text(s, "each (c in 0..%" PRIu64 ") ", inner), *inside;
	struct position i = { .flat = "i" }, c = { .flat = "c" }, update = { 0 };

	s->access = "inout";
	s->out = source_text(s, "[%" PRIu64 "][%" PRIu64 "][%" PRIu64 "][%" PRIu64 "]", outer, w.parts, w.rows, inner);
	bytes_print(&s->head, "i in %" PRIu64 ", t in %" PRIu64, outer, w.parts);
	if (w.along)
		bytes_print(&s->head, ", c in %" PRIu64, inner);
	const char *old =
		source_text(s, "(((i * %" PRIu64 " + t) * %" PRIu64 " + r) * %" PRIu64 " + c)", w.parts, w.rows, inner);
	if (w.along)
		source_line(s, "each (r in 0..%" PRIu64 ") { {", w.rows);
	else
		source_line(s, "for (r in 0..%" PRIu64 ") { %s{", w.rows, iterations);
	source_line(s, "o[i][t][r][c] = %s;",
	            source_stored(s, info(s, n->first)->type, source_element_at(s, n->operand[0], old)));
	source_line(s, "} }");
	source_line(s, "sync;");
	source_forget(s);
	position_dims(s, &w.outer, &i);
	if (w.along)
		position_dims(s, &w.inner, &c);
	source_line(s, "for (u in 0..%" PRIu64 ") {", w.updates);
	const char *row = row_of(s, &w, &i, &c, &update, &inside);
	row = source_local(s, "i32", row);
	const char *here = w.parts > 1 ? source_text(s, "%s / %" PRIu64 " == t", row, w.rows) : "true";
	source_line(s, "if (%s && %s) { %s{", inside ? inside : "true", here, iterations);
	if (!w.along) {
		position_dims(s, &w.inner, &c);
		memcpy(update.dim + w.by->rank - 1, c.dim, w.inner.rank * sizeof *c.dim);
	}
	const char *x = source_element(s, n->operand[2], update);
	const char *at =
		w.rows == 1 ? "o[i][t][0][c]" : source_text(s, "o[i][t][max(%s, 0) %% %" PRIu64 "][c]", row, w.rows);
	source_line(s, "%s = %s;", at, put_mode(s, &w, at, x));
	source_line(s, "} }");
	source_line(s, "}");
}

/* ---- remainders of floats */

/* Bits of the greater are shifted into a remainder of integers, as many at a time as fit beside it. */
static const char remainder_text[] =
	"fn %1$s rem_%1$s(%1$s a, %1$s b) {\n"
	"%2$s x = bits_%2$s(abs(a)); %2$s y = bits_%2$s(abs(b));\n"
	"i32 ex = max(i32(x >> %3$u), 1); i32 ey = max(i32(y >> %3$u), 1);\n"
	"%2$s one = %2$s(1) << %3$u;\n"
	"%2$s m = select(y < one, y, (y & (one - 1)) | one);\n"
	"%2$s r = select(x < one, x, (x & (one - 1)) | one) %% m;\n"
	"i32 e = ex - ey;\n"
	"while (e > 0) at most %4$u { i32 s = min(e, %5$u); r = (r << %2$s(s)) %% m; e -= s; }\n"
	"%2$s scale = select(ey > %3$u, %2$s(max(ey - %3$u, 0)) << %3$u, %2$s(1) << %2$s(ey - 1));\n"
	"%1$s found = select(x < y, abs(a), %1$s(r) * bits_%1$s(scale));\n"
	"%2$s sign = bits_%2$s(a) ^ x;\n"
	"%2$s infinite = %2$s(%6$u) << %3$u;\n"
	"return bits_%1$s(select(x >= infinite || y > infinite || y == 0, infinite | 1, bits_%2$s(found) | sign));\n"
	"}\n";

const char *source_remainder(struct source *s, int wide, const char *x, const char *y)
{
	s->remainders |= wide == JIT_TYPE_F32 ? 1u : 2u;
	return source_text(s, "rem_%s(%s, %s)", tensor_type_name(wide), x, y);
}

void source_put_remainders(struct source *s)
{
	if (s->remainders & 1)
		bytes_text(&s->text, source_text(s, remainder_text, "f32", "u32", 23u, 40u, 8u, 255u));
	if (s->remainders & 2)
		bytes_text(&s->text, source_text(s, remainder_text, "f64", "u64", 52u, 200u, 11u, 2047u));
}

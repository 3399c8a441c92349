/* runtime/graph/source_prepare.c - operands of products in the order in which tiles read them. */
#include <inttypes.h>
#include <string.h>

#include "runtime/graph/source_tile.h"

/* ---- dimensions */

/* Neighbours that lie as one are one. */
static void merge(const struct through *t, struct through *to)
{
	*to = (struct through){ 0 };
	for (unsigned d = 0; d < t->shape.rank; d++) {
		const unsigned n = to->shape.rank;
		if (t->shape.dim[d] == 1)
			continue;
		if (n && to->stride[n - 1] == t->stride[d] * t->shape.dim[d]) {
			to->shape.dim[n - 1] *= t->shape.dim[d];
			to->stride[n - 1] = t->stride[d];
		} else {
			to->stride[n] = t->stride[d];
			to->shape.dim[to->shape.rank++] = t->shape.dim[d];
		}
	}
}

const char *through_distance(struct source *s, const struct through *t, const char *index)
{
	struct through merged;
	struct position at = { .flat = index };
	const char *sum = NULL;

	merge(t, &merged);
	position_dims(s, &merged.shape, &at);
	for (unsigned d = 0; d < merged.shape.rank; d++) {
		const uint64_t by = merged.stride[d];
		const char *x = by == 1 ? at.dim[d] : source_text(s, "%s * %" PRIu64, at.dim[d], by);
		sum = sum ? source_text(s, "%s + %s", sum, x) : x;
	}
	return sum ? source_text(s, "(%s)", sum) : "0";
}

bool through_is_straight(const struct through *t, uint64_t *stride)
{
	struct through merged;

	merge(t, &merged);
	*stride = merged.shape.rank ? merged.stride[0] : 0;
	return merged.shape.rank <= 1;
}

/* ---- kernels */

void prepare_begin(const struct source *s, struct source *to)
{
	*to = (struct source){ .g = s->g, .p = s->p, .lanes = s->lanes };
}

const char *prepare_end(struct source *s, struct source *to, tensor_value from, bool pairs, uint64_t elements)
{
	const char *type = source_type(s->g->value[from].type);
	struct prepared *p = &s->prepared[s->n_prepared];

	bytes_print(&to->text, "kernel prepare_(in %s a0[%" PRIu64 "], out %s o[%" PRIu64 "]) over (",
	            pairs ? "u64" : type, shape_elements(&s->g->value[from].shape) / (pairs ? 2 : 1), type, elements);
	bytes_add(&to->text, to->head.p, to->head.n);
	bytes_text(&to->text, ") {\n");
	bytes_add(&to->text, to->body.p, to->body.n);
	bytes_add(&to->text, "}\n", 3);
	*p = (struct prepared){ from, elements, to->text.lost ? NULL : strdup(to->text.p) };
	s->lost = s->lost || to->lost || to->head.lost || to->body.lost || !p->text;
	source_free(to);
	return source_text(s, "p%u", s->n_prepared++);
}

const char *prepare_lines(struct source *s, tensor_value v, const struct side *side)
{
	const uint64_t batches = shape_elements(&side->batch.shape), sums = shape_elements(&side->sum.shape),
		       own = shape_elements(&side->own.shape);
	struct source to;

	prepare_begin(s, &to);
	bytes_print(&to.head, "b in %" PRIu64 ", k in %" PRIu64 ", n in %" PRIu64, batches, sums, own);
	source_line(&to, "o[(b * %" PRIu64 " + k) * %" PRIu64 " + n] = a0[%s + %s + %s];", sums, own,
	            through_distance(&to, &side->batch, "b"), through_distance(&to, &side->own, "n"),
	            through_distance(&to, &side->sum, "k"));
	return prepare_end(s, &to, v, false, batches * sums * own);
}

void prepare_rows(struct source *s, struct tile *t, tensor_value v, const struct side *side, uint64_t batches)
{
	const uint64_t blocks = tile_row_blocks(t);
	struct source to;

	prepare_begin(s, &to);
	bytes_print(&to.head, "b in %" PRIu64 ", m in %" PRIu64 ", r in %u, k in %" PRIu64, batches, blocks, t->r,
	            t->depth);
	const char *at = source_text(&to, "%s + %s", through_distance(&to, &side->batch, "b"),
	                             through_distance(&to, &side->own, source_text(&to, "(m * %u + r)", t->r)));
	source_line(&to, "o[((b * %" PRIu64 " + m) * %" PRIu64 " + k) * %u + r] = a0[%s + %s];", blocks, t->depth, t->r,
	            at, through_distance(&to, &side->sum, "k"));
	t->row.array = prepare_end(s, &to, v, false, batches * blocks * t->depth * t->r);
	t->row.base = source_text(s, "b * %" PRIu64, blocks * t->depth * t->r);
	t->row.depth = source_text(s, "k * %u", t->r);
	t->row.block = t->depth * t->r;
	t->row.step = 1;
}

void prepare_columns(struct source *s, struct tile *t, tensor_value v, const struct side *side)
{
	const uint64_t blocks = tile_column_blocks(t), width = tile_width(t);
	struct source to;

	prepare_begin(s, &to);
	bytes_print(&to.head, "b in %" PRIu64 ", p in %" PRIu64 ", k in %" PRIu64 ", n in %" PRIu64, t->batches, blocks,
	            t->depth, width);
	const char *at =
		source_text(&to, "%s + %s", through_distance(&to, &side->batch, "b"),
	                    through_distance(&to, &side->own, source_text(&to, "(p * %" PRIu64 " + n)", width)));
	source_line(&to, "o[((b * %" PRIu64 " + p) * %" PRIu64 " + k) * %" PRIu64 " + n] = a0[%s + %s];", blocks,
	            t->depth, width, at, through_distance(&to, &side->sum, "k"));
	t->column.array = prepare_end(s, &to, v, false, t->batches * blocks * t->depth * width);
	t->column.base = source_text(s, "b * %" PRIu64 " + p * %" PRIu64, blocks * t->depth * width, t->depth * width);
	t->column.depth = source_text(s, "k * %" PRIu64, width);
	t->column.step = t->step;
}

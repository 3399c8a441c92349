/* runtime/graph/source_products.c - products. */
#include <inttypes.h>
#include <string.h>

#include "runtime/graph/source_tile.h"

static const struct tensor_value_info *info(const struct source *s, tensor_value v) { return &s->g->value[v]; }

/* ---- dot */

static void add_dim(struct through *t, const struct shape *of, const uint64_t *stride, unsigned d)
{
	t->stride[t->shape.rank] = stride[d];
	t->shape.dim[t->shape.rank++] = of->dim[d];
}

struct side product_side(const struct tensor_graph *g, const struct tensor_node *n, unsigned operand)
{
	const struct attribute *sums = tensor_node_attribute(n, operand ? ATTRIBUTE_right : ATTRIBUTE_left),
			       *batches =
				       tensor_node_attribute(n, operand ? ATTRIBUTE_right_batch : ATTRIBUTE_left_batch);
	const struct shape *of = &g->value[n->operand[operand]].shape;
	uint64_t stride[TENSOR_MAX_RANK];
	struct side x = { 0 };

	shape_strides(of, stride);
	for (uint32_t i = 0; batches && i < batches->n; i++)
		add_dim(&x.batch, of, stride, (unsigned)batches->whole[i]);
	for (uint32_t i = 0; sums && i < sums->n; i++)
		add_dim(&x.sum, of, stride, (unsigned)sums->whole[i]);
	for (unsigned d = 0; d < of->rank; d++)
		if (!attribute_has(sums, d) && !attribute_has(batches, d))
			add_dim(&x.own, of, stride, d);
	return x;
}

/* Plain loops. Lanes lie along the right operand's own dimensions, or along the left one's where the right one has few.
 */
static void plain(struct source *s, const struct tensor_node *n)
{
	const struct tensor_value_info *out = info(s, n->first);
	const struct side side[] = { product_side(s->g, n, 0), product_side(s->g, n, 1) };
	const uint64_t size[] = { shape_elements(&side[0].own.shape), shape_elements(&side[1].own.shape) },
		       batches = shape_elements(&side[0].batch.shape), sums = shape_elements(&side[0].sum.shape);
	const unsigned lane = size[1] >= 8 || size[1] >= size[0] ? 1 : 0, row = 1 - lane;
	const uint64_t rows = source_divisor(size[row], SOURCE_ROWS);
	const char *type = tensor_type_name(tensor_wide_type(out->type)), *base[2], *step[2];
	const char *zero = source_number(s, tensor_wide_type(out->type), 0);

	bytes_print(&s->head, "b in %" PRIu64 ", m in %" PRIu64 ", n in %" PRIu64, batches, rows ? size[row] / rows : 0,
	            size[lane]);
	for (unsigned k = 0; k < 2; k++)
		base[k] = source_local(s, "i32", through_distance(s, &side[k].batch, "b"));
	base[lane] = source_local(s, "i32",
	                          source_text(s, "%s + %s", base[lane], through_distance(s, &side[lane].own, "n")));
	const char *first[SOURCE_ROWS];
	for (uint64_t r = 0; r < rows; r++) {
		const char *m = source_text(s, "(m * %" PRIu64 " + %" PRIu64 ")", rows, r);
		first[r] = source_local(s, "i32",
		                        source_text(s, "%s + %s", base[row], through_distance(s, &side[row].own, m)));
		source_line(s, "%s s%" PRIu64 " = %s;", type, r, zero);
	}
	source_line(s, "for (k in 0..%" PRIu64 ") {", sums);
	source_forget(s);
	for (unsigned k = 0; k < 2; k++)
		step[k] = through_distance(s, &side[k].sum, "k");
	const char *y = source_element_at(s, n->operand[lane], source_text(s, "(%s + %s)", base[lane], step[lane]));
	for (uint64_t r = 0; r < rows; r++) {
		const char *x = source_element_at(s, n->operand[row], source_text(s, "(%s + %s)", first[r], step[row]));
		if (tensor_is_float(out->type))
			source_line(s, "s%" PRIu64 " = fma(%s, %s, s%" PRIu64 ");", r, row ? y : x, row ? x : y, r);
		else
			source_line(s, "s%" PRIu64 " = s%" PRIu64 " + %s * %s;", r, r, x, y);
	}
	source_line(s, "}");
	for (uint64_t r = 0; r < rows; r++)
		source_line(s,
		            row == 0 ? "o[(b * %" PRIu64 " + m * %" PRIu64 " + %" PRIu64 ") * %" PRIu64
		                       " + n] = s%" PRIu64 ";"
		                     : "o[(b * %" PRIu64 " + n) * %" PRIu64 " + m * %" PRIu64 " + %" PRIu64
		                       "] = s%" PRIu64 ";",
		            size[0], row == 0 ? rows : size[1], row == 0 ? r : rows, row == 0 ? size[1] : r, r);
}

/* ---- in tiles */

enum { SETS = 2048 /* bytes: rows so far apart fall on the same lines of a cache's first level */ };

static bool is_constant(const struct source *s, tensor_value v)
{
	const struct tensor_node *n = tensor_node_of(s->g, partition_root(s->p, s->g, v));

	return n && n->op == OP_constant;
}

static void find_rows(struct source *s, struct tile *t, tensor_value v, const struct side *side)
{
	uint64_t own, sum;
	const bool one = through_is_straight(&side->own, &own), straight = through_is_straight(&side->sum, &sum) && one;
	const bool collide = own * tensor_type_bytes(info(s, v)->type) % SETS == 0 && t->r > 6 && t->rows > t->r;

	if (!straight || (s->lanes && t->r > 1 && (collide || is_constant(s, v)))) {
		prepare_rows(s, t, v, side, t->batches);
		return;
	}
	t->row = (struct tile_side){ .array = source_array(s, v),
		                     .base = source_local(s, "i32", through_distance(s, &side->batch, "b")),
		                     .depth = source_text(s, "k * %" PRIu64, sum),
		                     .block = own * t->r,
		                     .step = own };
}

static void find_columns(struct source *s, struct tile *t, tensor_value v, const struct side *side)
{
	enum { BLOCKS = 3 /* blocks of rows: what is read so often is not worth a copy */ };
	uint64_t own, sum;
	const bool one = through_is_straight(&side->own, &own), straight = through_is_straight(&side->sum, &sum) && one;

	const uint64_t behind = tile_column_blocks(t) * tile_width(t) - t->columns;
	const char *array = NULL;

	if (straight && (own == 1 || t->columns == 1) &&
	    (!s->lanes || (!is_constant(s, v) && tile_row_blocks(t) <= BLOCKS)))
		array = behind ? source_array_behind(s, v, behind) : source_array(s, v);
	if (!array) {
		prepare_columns(s, t, v, side);
		return;
	}
	if (!s->lanes && sum % t->j) { /* lines begin anywhere: several columns cannot be loaded at once */
		t->apart = 1;
		t->step = t->lanes;
	}
	t->column = (struct tile_side){
		.array = array,
		.base = source_text(s, "%s + p * %" PRIu64, through_distance(s, &side->batch, "b"), tile_width(t)),
		.depth = source_text(s, "k * %" PRIu64, sum),
		.step = t->step
	};
}

struct position product_position(struct source *s, const struct side side[2], const char *batch, const char *left,
                                 const char *right)
{
	const char *index[] = { batch, left, right };
	const struct shape *part[] = { &side[0].batch.shape, &side[0].own.shape, &side[1].own.shape };
	struct position at = { .has_dims = true };
	unsigned d = 0;

	for (unsigned i = 0; i < 3; i++) {
		struct position own = { .flat = index[i] };
		position_dims(s, part[i], &own);
		for (unsigned k = 0; k < part[i]->rank; k++)
			at.dim[d++] = own.dim[k];
	}
	return at;
}

static struct position position(struct source *s, const struct tile *t, const char *row, unsigned j)
{
	const char *column = source_text(s, "(p * %" PRIu64 " + n * %u + %u)", tile_width(t), t->apart, j * t->step);

	return product_position(s, t->user, "b", t->transposed ? column : row, t->transposed ? row : column);
}

static struct tile tile_of(const struct tensor_graph *g, const struct tensor_node *n, const struct side side[2],
                           unsigned lanes)
{
	const uint64_t size[] = { shape_elements(&side[0].own.shape), shape_elements(&side[1].own.shape) };
	const unsigned columns = size[1] * 2 > lanes || size[1] >= size[0] ? 1 : 0, rows = 1 - columns;
	struct tile t = { .n = n,
		          .batches = shape_elements(&side[0].batch.shape),
		          .rows = size[rows],
		          .columns = size[columns],
		          .depth = shape_elements(&side[0].sum.shape),
		          .lanes = lanes,
		          .transposed = rows == 1,
		          .position = position,
		          .user = side };
	const uint64_t max = INT32_MAX;

	if (!t.depth || !t.batches)
		return t;
	const int wide = tensor_wide_type(g->value[n->first].type);
	if (lanes)
		tile_choose(&t, (t.columns + t.lanes - 1) / t.lanes, wide);
	else
		tile_choose_on_card(&t, wide);
	if (t.r && (t.batches * tile_row_blocks(&t) * t.r * t.depth > max ||
	            t.batches * tile_column_blocks(&t) * tile_width(&t) * t.depth > max))
		t.r = 0;
	return t;
}

bool tile_takes(const struct tensor_graph *g, const struct tensor_node *n, unsigned lanes)
{
	if (n->op == OP_conv)
		return tile_takes_conv(g, n, lanes);
	const struct side side[] = { product_side(g, n, 0), product_side(g, n, 1) };

	return tile_of(g, n, side, lanes).r != 0;
}

void source_dot(struct source *s, const struct tensor_node *n)
{
	enum { SMALL_TILE = 32 /* leave registers for more elements of the depth */ };
	const struct side side[] = { product_side(s->g, n, 0), product_side(s->g, n, 1) };
	struct tile t = tile_of(s->g, n, side, s->lanes);

	if (!t.r) {
		plain(s, n);
		return;
	}
	tile_in_line(s, &t);
	find_rows(s, &t, n->operand[t.transposed], &side[t.transposed]);
	find_columns(s, &t, n->operand[!t.transposed], &side[!t.transposed]);
	t.loop[t.loops++] = source_text(s, "for (k in 0..%" PRIu64 ")%s", t.depth,
	                                s->lanes                  ? ""
	                                : t.r * t.j <= SMALL_TILE ? " unroll(8)"
	                                                          : " unroll(4)");
	s->out = source_text(s, "[%" PRIu64 "][%" PRIu64 "][%" PRIu64 "]", t.batches, t.transposed ? t.columns : t.rows,
	                     t.transposed ? t.rows : t.columns);
	tile_write(s, &t);
}

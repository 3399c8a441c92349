/* runtime/graph/source_products.c - products, convolutions and windows. */
#include <inttypes.h>
#include <string.h>

#include "runtime/graph/source.h"

enum { ROWS_MOST = 8 }; /* results that an instance has side by side: they share what it reads of the other operand */

static const struct tensor_value_info *info(const struct source *s, tensor_value v) { return &s->g->value[v]; }

/* The greatest divisor of n that is at most `most`. */
static uint64_t divisor(uint64_t n, uint64_t most)
{
	while (most > 1 && n % most)
		most--;
	return most;
}

static const char *loaded(struct source *s, tensor_value v, const char *at)
{
	return source_element(s, v, (struct position){ .flat = at });
}

/* ---- dot */

/* Dimensions of an operand that one index goes through, in its order. */
struct through {
	struct shape shape;
	uint64_t stride[TENSOR_MAX_RANK];
};

/* How far the index's element is from the first one. */
static const char *distance(struct source *s, const struct through *t, const char *index)
{
	struct shape merged = { 0 };
	uint64_t stride[TENSOR_MAX_RANK];
	const char *sum = NULL;

	/* Neighbours that lie as one are one. */
	for (unsigned d = 0; d < t->shape.rank; d++) {
		if (t->shape.dim[d] == 1)
			continue;
		if (merged.rank && stride[merged.rank - 1] == t->stride[d] * t->shape.dim[d]) {
			merged.dim[merged.rank - 1] *= t->shape.dim[d];
			stride[merged.rank - 1] = t->stride[d];
		} else {
			stride[merged.rank] = t->stride[d];
			merged.dim[merged.rank++] = t->shape.dim[d];
		}
	}
	struct position at = { .flat = index };
	position_dims(s, &merged, &at);
	for (unsigned d = 0; d < merged.rank; d++) {
		const char *x = stride[d] == 1 ? at.dim[d] : source_text(s, "%s * %" PRIu64, at.dim[d], stride[d]);
		sum = sum ? source_text(s, "%s + %s", sum, x) : x;
	}
	return sum ? source_text(s, "(%s)", sum) : "0";
}

struct side {
	struct through batch, own, sum;
};

static void add_dim(struct through *t, const struct shape *of, const uint64_t *stride, unsigned d)
{
	t->stride[t->shape.rank] = stride[d];
	t->shape.dim[t->shape.rank++] = of->dim[d];
}

static struct side side_of(const struct source *s, const struct tensor_node *n, unsigned operand)
{
	const struct attribute *sums = tensor_node_attribute(n, operand ? ATTRIBUTE_right : ATTRIBUTE_left),
			       *batches =
				       tensor_node_attribute(n, operand ? ATTRIBUTE_right_batch : ATTRIBUTE_left_batch);
	const struct shape *of = &info(s, n->operand[operand])->shape;
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

/* Lanes lie along the right operand's own dimensions, or along the left one's where the right one has few. */
void source_dot(struct source *s, const struct tensor_node *n)
{
	const struct tensor_value_info *out = info(s, n->first);
	const struct side side[] = { side_of(s, n, 0), side_of(s, n, 1) };
	const uint64_t size[] = { shape_elements(&side[0].own.shape), shape_elements(&side[1].own.shape) },
		       batches = shape_elements(&side[0].batch.shape), sums = shape_elements(&side[0].sum.shape);
	const unsigned lane = size[1] >= 8 || size[1] >= size[0] ? 1 : 0, row = 1 - lane;
	const uint64_t rows = divisor(size[row], ROWS_MOST);
	const char *type = tensor_type_name(tensor_wide_type(out->type)), *base[2], *step[2];
	const char *zero = source_number(s, tensor_wide_type(out->type), 0);

	bytes_print(&s->head, "b in %" PRIu64 ", m in %" PRIu64 ", n in %" PRIu64, batches, rows ? size[row] / rows : 0,
	            size[lane]);
	for (unsigned k = 0; k < 2; k++)
		base[k] = source_local(s, "i32", distance(s, &side[k].batch, "b"));
	base[lane] = source_local(s, "i32", source_text(s, "%s + %s", base[lane], distance(s, &side[lane].own, "n")));
	const char *first[ROWS_MOST];
	for (uint64_t r = 0; r < rows; r++) {
		const char *m = source_text(s, "(m * %" PRIu64 " + %" PRIu64 ")", rows, r);
		first[r] = source_local(s, "i32", source_text(s, "%s + %s", base[row], distance(s, &side[row].own, m)));
		source_line(s, "%s s%" PRIu64 " = %s;", type, r, zero);
	}
	source_line(s, "for (k in 0..%" PRIu64 ") {", sums);
	source_forget(s);
	for (unsigned k = 0; k < 2; k++)
		step[k] = distance(s, &side[k].sum, "k");
	const char *y = loaded(s, n->operand[lane], source_text(s, "(%s + %s)", base[lane], step[lane]));
	for (uint64_t r = 0; r < rows; r++) {
		const char *x = loaded(s, n->operand[row], source_text(s, "(%s + %s)", first[r], step[row]));
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

/* ---- windows */

/* Indices of a window's loops and of the result, and where the operand's element lies. */
struct windows {
	const struct tensor_node *n;
	unsigned dims;
	uint64_t in[TENSOR_MAX_RANK], window[TENSOR_MAX_RANK];
	const char *at[TENSOR_MAX_RANK]; /* the result's position */
};

static const char *whole(struct source *s, int64_t n)
{
	return source_text(s, n < 0 ? "(0 - %" PRId64 ")" : "%" PRId64, n < 0 ? -n : n);
}

/* Opens the loops, and returns the position of the operand's element in its dimensions; *inside: whether there is one,
 * NULL: always. */
static const char *open_windows(struct source *s, const struct windows *w, const struct shape *out, const char **inside)
{
	const char *flat = "0";

	*inside = NULL;
	for (unsigned d = 0; d < w->dims; d++)
		source_line(s, "for (w%u in 0..%" PRIu64 ") {", d, w->window[d]);
	source_forget(s);
	for (unsigned d = 0; d < w->dims; d++) {
		const int64_t stride = tensor_node_whole(w->n, ATTRIBUTE_strides, d, 1),
			      low = tensor_node_whole(w->n, ATTRIBUTE_low, d, 0),
			      dilation = tensor_node_whole(w->n, ATTRIBUTE_dilation, d, 1),
			      input = tensor_node_whole(w->n, ATTRIBUTE_input_dilation, d, 1);
		const int64_t last =
			(int64_t)(out->dim[2 + d] - 1) * stride - low + (int64_t)(w->window[d] - 1) * dilation;
		const char *p = source_text(s, "%s * %" PRId64 " + w%u * %" PRId64 " - %s", w->at[d], stride, d,
		                            dilation, whole(s, low));
		p = source_local(s, "i32", p);
		const char *q = input > 1 ? source_local(s, "i32", source_text(s, "%s / %" PRId64, p, input)) : p;
		if (low > 0 || input > 1 || last >= (int64_t)w->in[d]) {
			const char *here = source_text(s, "%s >= 0 && %s < %" PRIu64, p, q, w->in[d]);
			if (input > 1)
				here = source_text(s, "%s && %s %% %" PRId64 " == 0", here, p, input);
			*inside = *inside ? source_text(s, "%s && %s", *inside, here) : here;
		}
		flat = d ? source_text(s, "(%s * %" PRIu64 " + %s)", flat, w->in[d], q) : q;
	}
	if (*inside)
		*inside = source_local(s, "bool", *inside);
	return source_local(s, "i32", flat);
}

static void close_windows(struct source *s, const struct windows *w)
{
	for (unsigned d = 0; d < w->dims; d++)
		source_line(s, "}");
}

/* The result's positions in the dimensions behind the first two, of one index. */
static void open_positions(struct source *s, struct windows *w, const struct shape *out, const char *index)
{
	struct shape space = { .rank = w->dims };
	struct position at = { .flat = index };

	memcpy(space.dim, out->dim + 2, w->dims * sizeof *space.dim);
	position_dims(s, &space, &at);
	memcpy(w->at, at.dim, sizeof w->at);
}

void source_conv(struct source *s, const struct tensor_node *n)
{
	const struct shape *in = &info(s, n->operand[0])->shape, *by = &info(s, n->operand[1])->shape,
			   *out = &info(s, n->first)->shape;
	const int wide = tensor_wide_type(info(s, n->first)->type);
	const uint64_t channels = by->dim[1], groups = (uint64_t)tensor_node_whole(n, ATTRIBUTE_groups, 0, 1),
		       each = by->dim[0] / groups, rows = divisor(each ? each : 1, ROWS_MOST),
		       taps = shape_part(by, 2, by->rank), size = shape_part(in, 2, in->rank),
		       space = shape_part(out, 2, out->rank);
	struct windows w = { .n = n, .dims = in->rank - 2 };
	const char *inside, *zero = source_number(s, wide, 0);

	memcpy(w.in, in->dim + 2, w.dims * sizeof *w.in);
	memcpy(w.window, by->dim + 2, w.dims * sizeof *w.window);
	bytes_print(&s->head, "b in %" PRIu64 ", c in %" PRIu64 ", p in %" PRIu64, out->dim[0], out->dim[1] / rows,
	            space);
	open_positions(s, &w, out, "p");
	const char *group = groups > 1 ? source_local(s, "i32", source_text(s, "c / %" PRIu64, each / rows)) : "0";
	for (uint64_t r = 0; r < rows; r++)
		source_line(s, "%s s%" PRIu64 " = %s;", tensor_type_name(wide), r, zero);
	source_line(s, "for (k in 0..%" PRIu64 ") {", channels);
	const char *element = open_windows(s, &w, out, &inside), *tap = "0";
	for (unsigned d = 0; d < w.dims; d++)
		tap = d ? source_text(s, "(%s * %" PRIu64 " + w%u)", tap, w.window[d], d) : "w0";
	const char *x = loaded(s, n->operand[0],
	                       source_text(s, "((b * %" PRIu64 " + %s * %" PRIu64 " + k) * %" PRIu64 " + %s)",
	                                   in->dim[1], group, channels, size, element));
	if (inside)
		x = source_local(s, tensor_type_name(wide), source_text(s, "select(%s, %s, %s)", inside, x, zero));
	for (uint64_t r = 0; r < rows; r++) {
		const char *y = loaded(
			s, n->operand[1],
			source_text(s, "(((c * %" PRIu64 " + %" PRIu64 ") * %" PRIu64 " + k) * %" PRIu64 " + %s)", rows,
		                    r, channels, taps, tap));
		if (tensor_is_float(wide))
			source_line(s, "s%" PRIu64 " = fma(%s, %s, s%" PRIu64 ");", r, x, y, r);
		else
			source_line(s, "s%" PRIu64 " = s%" PRIu64 " + %s * %s;", r, r, x, y);
	}
	close_windows(s, &w);
	source_line(s, "}");
	for (uint64_t r = 0; r < rows; r++)
		source_line(s, "o[(b * %" PRIu64 " + c * %" PRIu64 " + %" PRIu64 ") * %" PRIu64 " + p] = s%" PRIu64 ";",
		            out->dim[1], rows, r, space, r);
}

void source_window(struct source *s, const struct tensor_node *n)
{
	const struct shape *in = &info(s, n->operand[0])->shape, *out = &info(s, n->first)->shape;
	const struct attribute *window = tensor_node_attribute(n, ATTRIBUTE_window);
	const enum tensor_op op = n->op == OP_window_max ? OP_max : OP_add;
	const int wide = tensor_wide_type(info(s, n->first)->type);
	const uint64_t size = shape_part(in, 2, in->rank), space = shape_part(out, 2, out->rank);
	struct windows w = { .n = n, .dims = in->rank - 2 };
	const char *inside, *type = tensor_type_name(wide);

	memcpy(w.in, in->dim + 2, w.dims * sizeof *w.in);
	for (unsigned d = 0; d < w.dims; d++)
		w.window[d] = (uint64_t)window->whole[d];
	bytes_print(&s->head, "c in %" PRIu64 ", p in %" PRIu64, out->dim[0] * out->dim[1], space);
	open_positions(s, &w, out, "p");
	source_line(s, "%s total = %s;", type, source_neutral(s, op, wide));
	const char *element = open_windows(s, &w, out, &inside);
	const char *x = loaded(s, n->operand[0], source_text(s, "(c * %" PRIu64 " + %s)", size, element)),
		   *next = source_pair(s, op, wide, "total", x);
	source_line(s, inside ? "total = select(%s, %s, total);" : "total = %s;", inside ? inside : next, next);
	close_windows(s, &w);
	source_line(s, "o[c * %" PRIu64 " + p] = total;", space);
}

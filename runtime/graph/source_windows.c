/* runtime/graph/source_windows.c - convolutions and windows. */
#include <inttypes.h>
#include <string.h>

#include "runtime/graph/source_tile.h"

enum { UNROLLED = 4 /* iterations of a loop over a window */ };
static const struct tensor_value_info *info(const struct source *s, tensor_value v) { return &s->g->value[v]; }

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
 * NULL: always; *between: whether it would lie between two of them, NULL: never. */
static const char *open_windows(struct source *s, const struct windows *w, const struct shape *out, const char **inside,
                                const char **between)
{
	const char *flat = "0";

	*inside = *between = NULL;
	for (unsigned d = 0; d < w->dims; d++)
		source_line(s, "for (w%u in 0..%" PRIu64 ")%s {", d, w->window[d],
		            s->lanes && w->window[d] <= UNROLLED ? source_text(s, " unroll(%" PRIu64 ")", w->window[d])
		                                                 : "");
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
			if (input > 1) {
				const char *apart = source_text(s, "%s %% %" PRId64 " != 0", p, input);
				*between = *between ? source_text(s, "%s || %s", *between, apart) : apart;
			}
			*inside = *inside ? source_text(s, "%s && %s", *inside, here) : here;
		}
		flat = d ? source_text(s, "(%s * %" PRIu64 " + %s)", flat, w->in[d], q) : q;
	}
	if (*inside)
		*inside = source_local(s, "bool", *inside);
	if (*between)
		*between = source_local(s, "bool", *between);
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

/* Plain loops. */
void source_conv_plain(struct source *s, const struct tensor_node *n)
{
	const struct shape *in = &info(s, n->operand[0])->shape, *by = &info(s, n->operand[1])->shape,
			   *out = &info(s, n->first)->shape;
	const int wide = tensor_wide_type(info(s, n->first)->type);
	const uint64_t channels = by->dim[1], groups = (uint64_t)tensor_node_whole(n, ATTRIBUTE_groups, 0, 1),
		       each = by->dim[0] / groups, rows = source_divisor(each ? each : 1, SOURCE_ROWS),
		       taps = shape_part(by, 2, by->rank), size = shape_part(in, 2, in->rank),
		       space = shape_part(out, 2, out->rank);
	struct windows w = { .n = n, .dims = in->rank - 2 };
	const char *inside, *between, *zero = source_number(s, wide, 0);

	memcpy(w.in, in->dim + 2, w.dims * sizeof *w.in);
	memcpy(w.window, by->dim + 2, w.dims * sizeof *w.window);
	bytes_print(&s->head, "b in %" PRIu64 ", c in %" PRIu64 ", p in %" PRIu64, out->dim[0], out->dim[1] / rows,
	            space);
	open_positions(s, &w, out, "p");
	const char *group = groups > 1 ? source_local(s, "i32", source_text(s, "c / %" PRIu64, each / rows)) : "0";
	for (uint64_t r = 0; r < rows; r++)
		source_line(s, "%s s%" PRIu64 " = %s;", tensor_type_name(wide), r, zero);
	source_line(s, "for (k in 0..%" PRIu64 ") {", channels);
	const char *element = open_windows(s, &w, out, &inside, &between), *tap = "0";
	for (unsigned d = 0; d < w.dims; d++)
		tap = d ? source_text(s, "(%s * %" PRIu64 " + w%u)", tap, w.window[d], d) : "w0";
	const char *x =
		source_element_at(s, n->operand[0],
	                          source_text(s, "((b * %" PRIu64 " + %s * %" PRIu64 " + k) * %" PRIu64 " + %s)",
	                                      in->dim[1], group, channels, size, element));
	if (inside)
		x = source_local(s, tensor_type_name(wide), source_text(s, "select(%s, %s, %s)", inside, x, zero));
	for (uint64_t r = 0; r < rows; r++) {
		const char *y = source_element_at(
			s, n->operand[1],
			source_text(s, "(((c * %" PRIu64 " + %" PRIu64 ") * %" PRIu64 " + k) * %" PRIu64 " + %s)", rows,
		                    r, channels, taps, tap));
		const char *sum = tensor_is_float(wide) ? source_text(s, "fma(%s, %s, s%" PRIu64 ")", x, y, r)
		                                        : source_text(s, "s%" PRIu64 " + %s * %s", r, x, y);
		if (between)
			sum = source_text(s, "select(%s, s%" PRIu64 ", %s)", between, r, sum);
		source_line(s, "s%" PRIu64 " = %s;", r, sum);
	}
	close_windows(s, &w);
	source_line(s, "}");
	for (uint64_t r = 0; r < rows; r++)
		source_line(s, "o[(b * %" PRIu64 " + c * %" PRIu64 " + %" PRIu64 ") * %" PRIu64 " + p] = s%" PRIu64 ";",
		            out->dim[1], rows, r, space, r);
}

/* Every other element of a line, which lanes read in pairs that are side by side. */
static bool goes_by_pairs(const struct source *s, const struct tensor_node *n)
{
	const struct tensor_value_info *in = info(s, n->operand[0]);

	return tensor_node_whole(n, ATTRIBUTE_strides, 1, 1) == 2 && in->type == JIT_TYPE_F32 &&
	       in->shape.dim[3] % 2 == 0 && tensor_node_whole(n, ATTRIBUTE_low, 1, 0) >= 0;
}

/* The element 2 x + tap - low of line y * stride + .. of channel c. */
static const char *element_of_pair(struct source *s, const struct tensor_node *n)
{
	const struct shape *in = &info(s, n->operand[0])->shape;
	const int64_t low = tensor_node_whole(n, ATTRIBUTE_low, 1, 0), even = (low + 1) / 2 * 2;
	const char *line =
		source_text(s, "y * %" PRId64 " + w0 * %" PRId64 " - %s", tensor_node_whole(n, ATTRIBUTE_strides, 0, 1),
	                    tensor_node_whole(n, ATTRIBUTE_dilation, 0, 1),
	                    whole(s, tensor_node_whole(n, ATTRIBUTE_low, 0, 0)));
	const char *at = source_local(s, "i32",
	                              source_text(s, "w1 * %" PRId64 " + %" PRId64,
	                                          tensor_node_whole(n, ATTRIBUTE_dilation, 1, 1), even - low));

	return source_text(s,
	                   "bits_f32(u32(%s[(c * %" PRIu64 " + %s) * %" PRIu64 " + x + %s / 2 - %" PRId64
	                   "] >> (u64(%s) %% 2 * 32)))",
	                   source_array_pairs(s, n->operand[0]), in->dim[2], line, in->dim[3] / 2, at, even / 2, at);
}

void source_window(struct source *s, const struct tensor_node *n)
{
	const struct shape *in = &info(s, n->operand[0])->shape, *out = &info(s, n->first)->shape;
	const struct attribute *window = tensor_node_attribute(n, ATTRIBUTE_window);
	const enum tensor_op op = n->op == OP_window_max ? OP_max : OP_add;
	const int wide = tensor_wide_type(info(s, n->first)->type);
	const uint64_t size = shape_part(in, 2, in->rank), space = shape_part(out, 2, out->rank);
	struct windows w = { .n = n, .dims = in->rank - 2 };
	const char *inside, *between, *type = tensor_type_name(wide);

	memcpy(w.in, in->dim + 2, w.dims * sizeof *w.in);
	for (unsigned d = 0; d < w.dims; d++)
		w.window[d] = (uint64_t)window->whole[d];
	const bool by_rows = s->lanes && w.dims == 2;
	bytes_print(&s->head, "c in %" PRIu64, out->dim[0] * out->dim[1]);
	if (by_rows) { /* lanes read neighbours, or elements that are one stride apart */
		bytes_print(&s->head, ", y in %" PRIu64 ", x in %" PRIu64, out->dim[2], out->dim[3]);
		w.at[0] = "y";
		w.at[1] = "x";
	} else {
		bytes_print(&s->head, ", p in %" PRIu64, space);
		open_positions(s, &w, out, "p");
	}
	source_line(s, "%s total = %s;", type, source_neutral(s, op, wide));
	const char *element = open_windows(s, &w, out, &inside, &between);
	const char *x = by_rows && goes_by_pairs(s, n)
	                        ? element_of_pair(s, n)
	                        : source_element_at(s, n->operand[0],
	                                            source_text(s, "(c * %" PRIu64 " + %s)", size, element)),
		   *next = source_pair(s, op, wide, "total", x);
	source_line(s, inside ? "total = select(%s, %s, total);" : "total = %s;", inside ? inside : next, next);
	close_windows(s, &w);
	if (by_rows)
		source_line(s, "o[c * %" PRIu64 " + y * %" PRIu64 " + x] = total;", space, out->dim[3]);
	else
		source_line(s, "o[c * %" PRIu64 " + p] = total;", space);
}

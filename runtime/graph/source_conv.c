/* runtime/graph/source_conv.c - convolutions in tiles.
 *
 * Owns: the order in which the input is read. A copy of it has all that lies beside its elements, and where
 * windows advance by several elements, those that a tap meets lie side by side: the copy is cut into phases, one for
 * each remainder. Then the elements that a tap needs for neighbouring results are neighbours. Columns of tiles are
 * results in one line, over the ends of rows, too, which are as long as the copy's: what is behind the results' ends is
 * computed and not stored. Or they are vectors of several rows. Or they are channels (source_channels.c).
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/graph/source_conv.h"

static const struct tensor_value_info *info(const struct source *s, tensor_value v) { return &s->g->value[v]; }

struct conv conv_of(const struct tensor_graph *g, const struct tensor_node *n)
{
	const struct shape *in = &g->value[n->operand[0]].shape, *by = &g->value[n->operand[1]].shape,
			   *out = &g->value[n->first].shape;
	struct conv c = { .n = n, .dims = in->rank - 2, .batches = in->dim[0], .channels = by->dim[1] };
	uint64_t step = 1;

	c.groups = (uint64_t)tensor_node_whole(n, ATTRIBUTE_groups, 0, 1);
	c.each = by->dim[0] / c.groups;
	c.taps = shape_part(by, 2, by->rank);
	for (unsigned d = c.dims; d-- > 0 && c.dims <= CONV_DIMS;) {
		struct space *x = &c.of[d];
		*x = (struct space){ .stride = (uint64_t)tensor_node_whole(n, ATTRIBUTE_strides, d, 1),
			             .low = (uint64_t)tensor_node_whole(n, ATTRIBUTE_low, d, 0),
			             .dilation = (uint64_t)tensor_node_whole(n, ATTRIBUTE_dilation, d, 1),
			             .input = (uint64_t)tensor_node_whole(n, ATTRIBUTE_input_dilation, d, 1),
			             .in = in->dim[2 + d],
			             .window = by->dim[2 + d],
			             .out = out->dim[2 + d],
			             .step = step };
		const uint64_t reach = (x->window - 1) * x->dilation, last = (x->out - 1) * x->stride + reach;
		x->cut = last / x->stride + 1;
		x->phases = reach < x->stride ? reach + 1 : x->stride;
		x->max = reach / x->stride;
		step *= x->cut;
	}
	for (unsigned d = c.dims; d-- > 0 && c.dims <= CONV_DIMS;) {
		c.of[d].phase_step = step;
		step *= c.of[d].phases;
	}
	c.channel = step;
	return c;
}

/* ---- the copy */

/* Where the input's element is that the copy has in phase f at x. */
static const char *origin(struct source *to, const struct space *d, const char *x, const char *f, const char **inside)
{
	const int64_t low = (int64_t)d->low;
	const char *p = d->stride > 1 ? source_text(to, "%s * %" PRIu64 " + %s", x, d->stride, f) : x, *here;

	p = source_text(to, low < 0 ? "%s + %" PRId64 : "%s - %" PRId64, p, low < 0 ? -low : low);
	p = source_local(to, "i32", p);
	here = source_text(to, "%s >= 0 && %s < %" PRIu64, p, p, d->in);
	*inside = *inside ? source_text(to, "%s && %s", *inside, here) : here;
	return p;
}

/* Every other element of rows, which are read in pairs: lanes that read words are side by side. */
static bool goes_by_pairs(const struct source *s, const struct conv *c)
{
	const struct space *x = &c->of[c->dims - 1];

	return x->stride == 2 && x->in % 2 == 0 && info(s, c->n->operand[0])->type == JIT_TYPE_F32;
}

static const char *element_of_pair(struct source *to, const struct conv *c, const char *row, const char *f)
{
	const struct space *x = &c->of[c->dims - 1];
	const int64_t low = (int64_t)x->low, even = low >= 0 ? (low + 1) / 2 * 2 : -(-low / 2 * 2);

	/* Element 2 x + f - low is one of pair x + (f - low + even) / 2 - even / 2. */
	const char *at = source_local(to, "i32", source_text(to, "%s + %" PRId64, f, even - low));
	const char *pair = source_text(to, "(%s) * %" PRIu64 " + x + %s / 2 - %" PRId64, row, x->in / 2, at,
	                               even >= 0 ? even / 2 : 0);
	if (even < 0)
		pair = source_text(to, "%s + %" PRId64, pair, -even / 2);
	return source_text(to, "bits_f32(u32(a0[%s] >> (u64(%s) %% 2 * 32)))", pair, at);
}

/* Where there are many channels, each is a unit of work. */
static void open_copy(struct source *to, const struct conv *c)
{
	enum { MANY = 16 };
	const struct space *y = &c->of[0], *x = &c->of[c->dims - 1];
	const uint64_t channels = c->batches * c->groups * c->channels,
		       phases = x->phases * (c->dims > 1 ? y->phases : 1), rows = c->dims > 1 ? y->cut : 1;

	bytes_print(&to->head, "c in %" PRIu64 ", f in %" PRIu64, channels, phases);
	if (channels < MANY)
		bytes_print(&to->head, ", y in %" PRIu64, rows);
	bytes_print(&to->head, ", x in %" PRIu64, x->cut);
	source_line(to, channels < MANY ? "{" : "for (y in 0..%" PRIu64 ") {", rows);
}

static const char *copy_input(struct source *s, const struct conv *c, uint64_t elements)
{
	const struct space *y = &c->of[0], *x = &c->of[c->dims - 1];
	const tensor_value v = c->n->operand[0];
	const char *wide = source_number(s, tensor_wide_type(info(s, v)->type), 0), *inside = NULL, *p, *q = "0",
		   *f = "f";
	struct source to;

	prepare_begin(s, &to);
	open_copy(&to, c);
	if (c->dims > 1) {
		q = origin(&to, y, "y", source_text(&to, "f / %" PRIu64, x->phases), &inside);
		f = source_text(&to, "f %% %" PRIu64, x->phases);
	}
	p = origin(&to, x, "x", f, &inside);
	const char *row = source_text(&to, "c * %" PRIu64 " + %s", c->dims > 1 ? y->in : 1, q);
	const char *element = goes_by_pairs(s, c) ? element_of_pair(&to, c, row, f)
	                                          : source_text(&to, "a0[(%s) * %" PRIu64 " + %s]", row, x->in, p);
	source_line(&to, "o[c * %" PRIu64 " + f * %" PRIu64 " + y * %" PRIu64 " + x] = select(%s, %s, %s);", c->channel,
	            x->phase_step, x->cut, inside, element, wide);
	source_line(&to, "}");
	return prepare_end(s, &to, v, goes_by_pairs(s, c), elements);
}

/* The input itself, where the copy would be the same. */
static const char *input_as_it_is(struct source *s, const struct conv *c, uint64_t elements)
{
	const tensor_value v = c->n->operand[0];

	for (unsigned d = 0; d < c->dims; d++) {
		const struct space *x = &c->of[d];
		if (x->stride > 1 || x->low || x->cut != x->in)
			return NULL;
	}
	return source_array_behind(s, v, elements - shape_elements(&info(s, v)->shape));
}

/* ---- taps */

/* number * by divided by another number: the whole, or the rest. min: number * by is less. */
static const char *share(struct source *s, const char *number, uint64_t by, uint64_t divisor, uint64_t min, bool rest)
{
	if (min <= divisor)
		return rest ? source_text(s, "%s * %" PRIu64, number, by) : "0";
	if (by % divisor == 0)
		return rest ? "0" : source_text(s, "%s * %" PRIu64, number, by / divisor);
	return source_text(s, rest ? "(%s * %" PRIu64 " %% %" PRIu64 ")" : "(%s * %" PRIu64 " / %" PRIu64 ")", number,
	                   by, divisor);
}

static const char *tap_position(struct source *s, const struct conv *c)
{
	const char *sum = c->channels == 1 ? "0" : source_text(s, "c * %" PRIu64, c->channel);

	for (unsigned d = 0; d < c->dims; d++) {
		const struct space *x = &c->of[d];
		const uint64_t min = (x->window - 1) * x->dilation + 1;
		const char *w = source_text(s, "w%u", d);
		if (x->window == 1)
			continue;
		sum = source_text(s, "%s + %s * %" PRIu64 " + %s * %" PRIu64, sum,
		                  share(s, w, x->dilation, x->stride, min, true), x->phase_step,
		                  share(s, w, x->dilation, x->stride, min, false), x->step);
	}
	return sum;
}

/* Whether positions of taps are quotients and rests, of which a subscript cannot have many. */
static bool is_cut(const struct space *x)
{
	return x->dilation % x->stride && (x->window - 1) * x->dilation >= x->stride;
}

static void open_taps(struct source *s, const struct conv *c, struct tile *t)
{
	enum { UNROLLED = 224 /* products of an iteration */ };
	const char *tap = "0";

	if (c->channels > 1)
		t->loop[t->loops++] = source_text(s, "for (c in 0..%" PRIu64 ")", c->channels);
	for (unsigned d = 0; d < c->dims; d++) {
		const uint64_t window = c->of[d].window;
		const bool last = d + 1 == c->dims, fits = window * t->r * t->j <= UNROLLED,
			   unrolls = last ? fits || is_cut(&c->of[d]) || c->by_rows
		                          : c->by_rows && (is_cut(&c->of[d]) || c->taps * t->r * t->j <= UNROLLED);
		if (window == 1)
			continue;
		t->loop[t->loops++] =
			unrolls ? source_text(s, "for (w%u in 0..%" PRIu64 ") unroll(%" PRIu64 ")", d, window, window)
				: source_text(s, "for (w%u in 0..%" PRIu64 ")", d, window);
		tap = source_text(s, "(%s * %" PRIu64 " + w%u)", tap, window, d);
	}
	t->row.depth = c->channels == 1 ? tap : source_text(s, "(c * %" PRIu64 " + %s)", c->taps, tap);
}

/* ---- operands */

static void find_weights(struct source *s, const struct conv *c, struct tile *t)
{
	const uint64_t depth = c->channels * c->taps;
	const struct side side = { .batch = { { 1, { c->groups } }, { c->each * depth } },
		                   .own = { { 1, { c->each } }, { depth } },
		                   .sum = { { 1, { depth } }, { 1 } } };
	const char *group = c->groups == 1 ? "0" : t->batch;

	if (c->groups > 1 && c->batches > 1)
		group = source_local(s, "i32", source_text(s, "%s %% %" PRIu64, group, c->groups));

	open_taps(s, c, t);
	const char *k = t->row.depth;
	if (t->r > 1) {
		prepare_rows(s, t, c->n->operand[1], &side, c->groups);
		t->row.base = source_text(s, "(%s) * %" PRIu64, group, tile_row_blocks(t) * t->row.block);
	} else {
		t->row = (struct tile_side){ .array = source_array(s, c->n->operand[1]),
			                     .base = source_text(s, "(%s) * %" PRIu64, group, c->each * depth),
			                     .block = depth };
	}
	t->row.depth = source_text(s, "%s * %u", k, t->r);
}

/* Elements of the copy, with those that are read behind it. */
static uint64_t elements_of(const struct conv *c, const struct tile *t)
{
	const struct space *x = &c->of[c->dims - 1];
	uint64_t last = (c->batches * c->groups * c->channels - 1) * c->channel;

	if (c->by_rows)
		last += ((c->of[0].out + t->j - 1) / t->j * t->j - 1) * x->cut + x->out / t->lanes * t->lanes +
		        t->lanes;
	else
		last += tile_column_blocks(t) * tile_width(t) - 1;
	for (unsigned d = 0; d < c->dims; d++)
		last += (c->of[d].phases - 1) * c->of[d].phase_step + c->of[d].max * c->of[d].step;
	const uint64_t copy = c->batches * c->groups * c->channels * c->channel;
	return copy > last + 1 ? copy : last + 1;
}

/* ---- columns */

enum { APART = 72, TOGETHER = 3 /* cycles to store a vector, and to read what is added to it */ };

static const char *subscript_over_rows(struct source *s, const struct tile *t, unsigned j)
{
	const struct conv *c = t->user;
	const char *at = source_text(s, "(p * %" PRIu64 " + n + %u)", tile_width(t), j * t->lanes), *y, *x;

	at = source_local(s, "i32", at);
	y = source_local(s, "i32", source_text(s, "%s / %" PRIu64, at, c->of[1].cut));
	x = source_local(s, "i32", source_text(s, "%s %% %" PRIu64, at, c->of[1].cut));
	return source_text(s, "[%s][%s]", y, x);
}

static const char *subscript_by_rows(struct source *s, const struct tile *t, unsigned j)
{
	return source_text(s, "[y * %u + %u][x * %u + n]", t->j, j, t->lanes);
}

static const char *subscript_by_lines(struct source *s, const struct tile *t, unsigned j)
{
	return source_text(s, "[y][x * %" PRIu64 " + n + %u]", tile_width(t), j * t->lanes);
}

static uint64_t vectors_of_row(const struct conv *c, unsigned lanes) { return (c->of[1].out + lanes - 1) / lanes; }

/* Whether vectors of rows are less work than results in one line, most of which are stored one by one. */
static bool likes_rows(const struct conv *c, const struct tile *t)
{
	const struct space *y = &c->of[0], *x = &c->of[1];

	if (c->dims != 2 || x->cut == x->out || (is_cut(y) && y->window * x->window > 9) || x->window > 8)
		return false;
	const uint64_t line = (t->columns + t->lanes - 1) / t->lanes;
	return y->out * vectors_of_row(c, t->lanes) * (t->depth + TOGETHER) < line * (t->depth + APART);
}

/* An index for batches and rows, where there are both. */
static void columns_by_rows(struct source *s, struct tile *t, const struct conv *c)
{
	const uint64_t rows = c->by_lines ? c->of[0].out : (c->of[0].out + t->j - 1) / t->j,
		       vectors = c->by_lines ? (c->of[1].out + tile_width(t) - 1) / tile_width(t)
	                                     : vectors_of_row(c, t->lanes);

	t->subscript = c->by_lines ? subscript_by_lines : subscript_by_rows;
	t->batch = t->batches == 1 ? "0" : "b";
	if (t->batches == 1) {
		t->indices = source_text(s, "y in %" PRIu64 ", x in %" PRIu64, rows, vectors);
	} else {
		t->indices = source_text(s, "i in %" PRIu64 ", x in %" PRIu64, t->batches * rows, vectors);
		source_line(s, "i32 b = i / %" PRIu64 ";", rows);
		source_line(s, "i32 y = i %% %" PRIu64 ";", rows);
	}
	t->column.base = source_text(s, "%s * %" PRIu64 " + y * %" PRIu64 " + x * %u", t->batch,
	                             c->channels * c->channel, t->j * c->of[1].cut, t->lanes);
	t->column.step = c->of[1].cut;
}

/* The same, where the copy has channels between its lines. Those of wide images are cut, so that what a tile reads is
 * close together. */
static void find_lines(struct source *s, struct tile *t, const struct conv *c)
{
	enum { WIDE = 128 };
	const struct space *y = &c->of[0], *x = &c->of[1];
	const uint64_t width = tile_width(t), tiles = width < WIDE ? WIDE / width : 1, each = tiles * width;
	const bool cut = x->out > each;
	const struct conv_input in = conv_find_input(s, c, cut ? each : x->out, width);
	const char *group = "0", *batch = t->batch, *at = source_text(s, "x * %" PRIu64, width);

	if (c->groups > 1) {
		group = source_text(s, "%s %% %" PRIu64, t->batch, c->groups);
		batch = source_text(s, "%s / %" PRIu64, t->batch, c->groups);
	}
	if (cut)
		at = source_text(s, "x / %" PRIu64 " * %" PRIu64 " + x %% %" PRIu64 " * %" PRIu64, tiles, in.part,
		                 tiles, width);
	t->column =
		(struct tile_side){ .array = in.array,
		                    .base = source_text(s, "%s * %" PRIu64 " + %s * %" PRIu64 " + y * %" PRIu64 " + %s",
		                                        batch, in.batch, group, c->channels * in.channel, in.line, at),
		                    .step = t->lanes };
	t->column.depth = source_text(s, "c * %" PRIu64 " + w0 * %" PRIu64 " + w1 * %" PRIu64, in.channel,
	                              y->dilation * in.line, x->dilation);
}

static void columns_in_line(struct source *s, struct tile *t, const struct conv *c)
{
	tile_in_line(s, t);
	if (c->dims == 2 && c->of[1].cut != c->of[1].out)
		t->subscript = subscript_over_rows;
	t->column.base = source_text(s, "b * %" PRIu64 " + p * %" PRIu64, c->channels * c->channel, tile_width(t));
	t->column.step = t->lanes;
}

static struct position position(struct source *s, const struct tile *t, const char *row, unsigned j)
{
	const struct conv *c = t->user;
	struct position at = { .has_dims = true };
	const char *line = source_text(s, "(p * %" PRIu64 " + n + %u)", tile_width(t), j * t->lanes);

	at.dim[0] = c->groups == 1 ? t->batch : source_text(s, "(%s / %" PRIu64 ")", t->batch, c->groups);
	at.dim[1] =
		c->groups == 1
			? row
			: source_text(s, "(%s %% %" PRIu64 " * %" PRIu64 " + %s)", t->batch, c->groups, c->each, row);
	if (c->dims == 1) {
		at.dim[2] = line;
	} else if (c->by_lines) {
		at.dim[2] = "y";
		at.dim[3] = source_text(s, "(x * %" PRIu64 " + n + %u)", tile_width(t), j * t->lanes);
	} else if (c->by_rows) {
		at.dim[2] = source_text(s, "(y * %u + %u)", t->j, j);
		at.dim[3] = source_text(s, "(x * %u + n)", t->lanes);
	} else {
		at.dim[2] = source_text(s, "(%s / %" PRIu64 ")", line, c->of[1].cut);
		at.dim[3] = source_text(s, "(%s %% %" PRIu64 ")", line, c->of[1].cut);
	}
	if (c->dims == 2 && c->of[1].cut == c->of[1].out) /* positions of a line are those of the result */
		at.flat = source_text(s, "((%s * %" PRIu64 " + %s) * %" PRIu64 " + %s)", at.dim[0], c->groups * c->each,
		                      at.dim[1], t->columns, line);
	return at;
}

static struct tile tile_of(const struct tensor_graph *g, const struct tensor_node *n, struct conv *c, unsigned lanes)
{
	const struct space *y = &c->of[0], *x = &c->of[c->dims == 2];
	struct tile t = { .n = n,
		          .batches = c->batches * c->groups,
		          .rows = c->each,
		          .columns = c->dims == 1 ? x->out : (y->out - 1) * x->cut + x->out,
		          .depth = c->channels * c->taps,
		          .lanes = lanes,
		          .position = position,
		          .user = c };

	for (unsigned d = 0; d < c->dims && d < CONV_DIMS; d++)
		if (c->of[d].input > 1) /* what the pass has left, as its steps and dilations have a common divisor */
			return t;
	if (!lanes || !t.depth || c->dims > CONV_DIMS || shape_elements(&g->value[n->first].shape) == 0)
		return t;
	c->by_rows = likes_rows(c, &t);
	const int wide = tensor_wide_type(g->value[n->first].type);
	uint64_t cost;
	c->by_lines =
		c->by_rows && y->stride == 1 && x->stride == 1 && c->channels > 1 && y->window > 1 && x->window > 1;
	if (c->by_lines)
		cost = tile_choose(&t, vectors_of_row(c, lanes), wide) * y->out * (t.depth + TOGETHER);
	else if (c->by_rows)
		cost = tile_choose(&t, y->out, wide) * vectors_of_row(c, lanes) * (t.depth + TOGETHER);
	else
		cost = tile_choose(&t, (t.columns + lanes - 1) / lanes, wide) *
		       (t.depth + (c->dims == 2 && x->cut != x->out ? APART : TOGETHER));
	c->by_channels = channels_like(g, c, &t, cost);
	if (t.r && !c->by_channels && elements_of(c, &t) > INT32_MAX)
		t.r = 0;
	return t;
}

bool tile_takes_conv(const struct tensor_graph *g, const struct tensor_node *n, unsigned lanes)
{
	struct conv c = conv_of(g, n);

	return depthwise_takes(g, &c, lanes) || tile_of(g, n, &c, lanes).r != 0;
}

void source_conv(struct source *s, const struct tensor_node *n)
{
	struct conv c = conv_of(s->g, n);
	const struct space *y = &c.of[0], *x = &c.of[c.dims == 2];
	struct tile t = tile_of(s->g, n, &c, s->lanes);

	if (depthwise_takes(s->g, &c, s->lanes)) {
		source_conv_depthwise(s, &c);
		return;
	}
	if (!t.r) {
		source_conv_plain(s, n);
		return;
	}
	if (c.by_channels) {
		source_conv_channels(s, &c, &t);
		return;
	}
	(c.by_rows ? columns_by_rows : columns_in_line)(s, &t, &c);
	find_weights(s, &c, &t);
	if (c.by_lines) {
		find_lines(s, &t, &c);
	} else {
		t.column.array = input_as_it_is(s, &c, elements_of(&c, &t));
		if (!t.column.array)
			t.column.array = copy_input(s, &c, elements_of(&c, &t));
		t.column.depth = tap_position(s, &c);
	}
	if (c.dims == 2 && x->cut != x->out)
		s->out = source_text(s, "[%" PRIu64 "][%" PRIu64 "][%" PRIu64 "][%" PRIu64 "]", t.batches, t.rows,
		                     y->out, x->out);
	else
		s->out = source_text(s, "[%" PRIu64 "][%" PRIu64 "][%" PRIu64 "]", t.batches, t.rows, t.columns);
	tile_write(s, &t);
}

/* runtime/graph/source_channels.c - convolutions whose lanes are channels of the result.
 *
 * Owns: the kernel, and the order in which it reads the input. Rows of tiles are neighbouring positions of one line of
 * the result, so that small images fill lanes, too, and steps of several elements need no other order. The copy of the
 * input has its channels between its lines: what a tile reads is then close together, however large an image is.
 */
#include <inttypes.h>

#include "runtime/graph/source_conv.h"

static const struct space *line_of(const struct conv *c) { return &c->of[c->dims - 1]; }

static uint64_t lines_out(const struct conv *c) { return c->dims > 1 ? c->of[0].out : 1; }

static uint64_t reach(const struct space *x) { return (x->out - 1) * x->stride + (x->window - 1) * x->dilation + 1; }

bool channels_like(const struct tensor_graph *g, const struct conv *c, struct tile *t, uint64_t cost)
{
	/* Cycles to store a vector whose lanes are channels, and to read what is added to it; and where channels are so
	 * many bytes apart that they fall on the same lines of caches. */
	enum { APART = 40, COLLIDE = 300, SETS = 4096 };
	const struct space *x = line_of(c);
	const int type = g->value[c->n->first].type;
	const bool collide = lines_out(c) * x->out * tensor_type_bytes(type) % SETS == 0;
	struct tile other = *t;

	other.rows = x->out;
	other.columns = c->each;
	other.transposed = true;
	const uint64_t each = tile_choose(&other, (c->each + t->lanes - 1) / t->lanes, tensor_wide_type(type)),
		       elements =
			       c->batches * c->groups * c->channels * reach(x) * (c->dims > 1 ? reach(&c->of[0]) : 1);
	if (elements > INT32_MAX || each * lines_out(c) * (t->depth + (collide ? COLLIDE : APART)) > cost)
		return false;
	*t = other;
	return true;
}

/* ---- the input */

static bool is_as_it_is(const struct conv *c)
{
	for (unsigned d = 0; d < c->dims; d++)
		if (c->of[d].low || reach(&c->of[d]) > c->of[d].in)
			return false;
	return true;
}

/* The position in the input, and whether there is an element. */
static const char *origin(struct source *to, const struct space *d, const char *x, const char **inside)
{
	const int64_t low = (int64_t)d->low;
	const char *p =
		source_local(to, "i32",
	                     source_text(to, low < 0 ? "%s + %" PRId64 : "%s - %" PRId64, x, low < 0 ? -low : low));
	const char *here = source_text(to, "%s >= 0 && %s < %" PRIu64, p, p, d->in);

	*inside = *inside ? source_text(to, "%s && %s", *inside, here) : here;
	return p;
}

struct conv_input conv_find_input(struct source *s, const struct conv *c, uint64_t each, uint64_t behind)
{
	const tensor_value v = c->n->operand[0];
	const struct space *x = line_of(c), *y = &c->of[0];
	const uint64_t channels = c->groups * c->channels, lines = c->dims > 1 ? reach(y) : 1,
		       parts = (x->out + each - 1) / each, width = reach(x) - (x->out - each) * x->stride,
		       line = parts * channels * width;
	const char *inside = NULL, *q = "0";
	struct source to;

	if (is_as_it_is(c)) {
		const uint64_t channel = (c->dims > 1 ? y->in : 1) * x->in;
		const char *array = behind ? source_array_behind(s, v, behind) : source_array(s, v);
		if (array)
			return (struct conv_input){ array, x->in, each * x->stride, channel, channels * channel };
	}
	prepare_begin(s, &to);
	bytes_print(&to.head, "b in %" PRIu64 ", y in %" PRIu64 ", c in %" PRIu64 ", x in %" PRIu64, c->batches,
	            lines * parts, channels, width);
	if (c->dims > 1)
		q = origin(&to, y, parts > 1 ? source_text(&to, "y / %" PRIu64, parts) : "y", &inside);
	const char *p =
		parts > 1 ? source_text(&to, "y %% %" PRIu64 " * %" PRIu64 " + x", parts, each * x->stride) : "x";
	p = origin(&to, x, p, &inside);
	source_line(&to,
	            "o[((b * %" PRIu64 " + y) * %" PRIu64 " + c) * %" PRIu64 " + x] = select(%s, a0[((b * %" PRIu64
	            " + c) * %" PRIu64 " + %s) * %" PRIu64 " + %s], %s);",
	            lines * parts, channels, width, inside, channels, c->dims > 1 ? y->in : 1, q, x->in, p,
	            source_number(s, tensor_wide_type(s->g->value[v].type), 0));
	return (struct conv_input){ prepare_end(s, &to, v, false, c->batches * lines * line + behind), line,
		                    channels * width, width, lines * line };
}

/* ---- the kernel */

static const char *subscript(struct source *s, const struct tile *t, unsigned j)
{
	const struct conv *c = t->user;

	return source_text(s, c->dims > 1 ? "[p * %" PRIu64 " + n + %u][y]" : "[p * %" PRIu64 " + n + %u]",
	                   tile_width(t), j * t->lanes);
}

static struct position position(struct source *s, const struct tile *t, const char *row, unsigned j)
{
	const struct conv *c = t->user;
	const char *channel = source_text(s, "(p * %" PRIu64 " + n + %u)", tile_width(t), j * t->lanes);
	struct position at = { .has_dims = true };

	if (c->groups > 1)
		channel =
			source_text(s, "(%s %% %" PRIu64 " * %" PRIu64 " + %s)", t->batch, c->groups, c->each, channel);
	at.dim[0] = c->groups == 1 ? t->batch : source_text(s, "(%s / %" PRIu64 ")", t->batch, c->groups);
	at.dim[1] = channel;
	at.dim[2] = c->dims > 1 ? "y" : row;
	at.dim[3] = c->dims > 1 ? row : NULL;
	return at;
}

static void find_weights(struct source *s, const struct conv *c, struct tile *t, const char *group)
{
	const struct side side = { .batch = { { 1, { c->groups } }, { c->each * t->depth } },
		                   .own = { { 1, { c->each } }, { t->depth } },
		                   .sum = { { 1, { t->depth } }, { 1 } } };
	struct tile of = *t;

	of.batches = c->groups;
	prepare_columns(s, &of, c->n->operand[1], &side);
	t->column = of.column;
	t->column.base = source_text(s, "%s * %" PRIu64 " + p * %" PRIu64, group,
	                             tile_column_blocks(t) * t->depth * tile_width(t), t->depth * tile_width(t));
}

/* Loops over channels and taps, and where these lie. Copies of an iteration would share elements of rows, and keep them
 * in registers that sums need. */
static void open_taps(struct source *s, const struct conv *c, struct tile *t, const struct conv_input *in)
{
	const char *tap = "0", *at = "0";

	if (c->channels > 1) {
		t->loop[t->loops++] = source_text(s, "for (c in 0..%" PRIu64 ")", c->channels);
		at = source_text(s, "c * %" PRIu64, in->channel);
	}
	for (unsigned d = 0; d < c->dims; d++) {
		const struct space *x = &c->of[d];
		if (x->window == 1)
			continue;
		t->loop[t->loops++] = source_text(s, "for (w%u in 0..%" PRIu64 ")", d, x->window);
		tap = source_text(s, "(%s * %" PRIu64 " + w%u)", tap, x->window, d);
		at = source_text(s, "%s + w%u * %" PRIu64, at, d, x->dilation * (d + 1 == c->dims ? 1 : in->line));
	}
	t->row.depth = at;
	t->column.depth = source_text(s, "(c * %" PRIu64 " + %s) * %" PRIu64, c->taps, tap, tile_width(t));
	if (c->channels == 1)
		t->column.depth = source_text(s, "%s * %" PRIu64, tap, tile_width(t));
}

/* The larger of what lines and blocks of channels read anew is kept near. */
static void open_indices(struct source *s, const struct conv *c, struct tile *t)
{
	enum { NEAR = 512 << 10 /* bytes of weights */ };
	const uint64_t blocks = tile_column_blocks(t), lines = lines_out(c), rows = t->batches * lines;
	const bool near = c->each * t->depth * tensor_type_bytes(s->g->value[c->n->operand[1]].type) <= NEAR;
	const char *line = t->batches == 1 && c->dims > 1 ? "y" : "i", *format = "%s in %" PRIu64 ", p in %" PRIu64;

	t->indices = near ? source_text(s, format, line, rows, blocks)
	                  : source_text(s, "p in %" PRIu64 ", %s in %" PRIu64, blocks, line, rows);
	t->batch = t->batches == 1 ? "0" : c->dims == 1 ? "i" : "b";
	if (t->batches > 1 && c->dims > 1) {
		source_line(s, "i32 b = i / %" PRIu64 ";", lines);
		source_line(s, "i32 y = i %% %" PRIu64 ";", lines);
	}
}

void source_conv_channels(struct source *s, struct conv *c, struct tile *t)
{
	const struct space *x = line_of(c);
	const struct conv_input in = conv_find_input(s, c, x->out, 0);
	const char *group = "0", *batch;

	open_indices(s, c, t);
	batch = t->batch;
	if (c->groups > 1) {
		group = source_local(s, "i32", source_text(s, "%s %% %" PRIu64, t->batch, c->groups));
		batch = source_local(s, "i32", source_text(s, "%s / %" PRIu64, t->batch, c->groups));
	}
	t->subscript = subscript;
	t->position = position;
	find_weights(s, c, t, group);
	t->row = (struct tile_side){ .array = in.array,
		                     .base = source_text(s, "%s * %" PRIu64 " + %s * %" PRIu64, batch, in.batch, group,
		                                         c->channels * in.channel),
		                     .block = t->r * x->stride,
		                     .step = x->stride };
	if (c->dims > 1)
		t->row.base = source_text(s, "%s + y * %" PRIu64, t->row.base, c->of[0].stride * in.line);
	open_taps(s, c, t, &in);
	if (c->dims > 1)
		s->out = source_text(s, "[%" PRIu64 "][%" PRIu64 "][%" PRIu64 "][%" PRIu64 "]", t->batches, c->each,
		                     lines_out(c), x->out);
	else
		s->out = source_text(s, "[%" PRIu64 "][%" PRIu64 "][%" PRIu64 "]", t->batches, c->each, x->out);
	tile_write(s, t);
}

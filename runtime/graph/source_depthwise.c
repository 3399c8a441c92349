/* runtime/graph/source_depthwise.c - convolutions of channels by themselves, on CPUs.
 *
 * Owns: the kernel. An instance has some lines of a channel's result. The lines of the input that it reads go into a
 * tile that begins as zeroes, so that what lies beside the input is there, too; no copy of the whole input is made.
 * Where windows advance by two elements, even and odd ones lie apart in the tile.
 */
#include <inttypes.h>

#include "runtime/graph/source_conv.h"

static const struct tensor_value_info *info(const struct source *s, tensor_value v) { return &s->g->value[v]; }

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t reach(const struct space *x, uint64_t out)
{
	return (out - 1) * x->stride + (x->window - 1) * x->dilation + 1;
}

/* Elements of a line of the tile that lie side by side. */
static uint64_t width(const struct space *x)
{
	const uint64_t all = larger(reach(x, x->out), x->in + x->low);

	return x->stride == 1 ? all : all / 2 + 1;
}

/* Lines of the result that an instance has: what it reads is to stay in the first cache. */
static uint64_t lines(const struct conv *c, unsigned bytes)
{
	enum { BYTES = 24 << 10 };
	const struct space *y = &c->of[0], *x = &c->of[1];
	uint64_t blocks = 1;

	while (blocks < y->out && reach(y, (y->out + blocks - 1) / blocks) * width(x) * x->stride * bytes > BYTES)
		blocks++;
	return (y->out + blocks - 1) / blocks;
}

bool depthwise_takes(const struct tensor_graph *g, const struct conv *c, unsigned lanes)
{
	enum { TAPS = 32, BYTES = 512 << 10 };
	const struct space *y = &c->of[0], *x = &c->of[1];
	const int type = g->value[c->n->operand[0]].type;
	const bool plain = x->stride == 1 && (type == JIT_TYPE_F32 || type == JIT_TYPE_F64),
		   pairs = x->stride == 2 && x->dilation == 1 && x->in % 2 == 0 && type == JIT_TYPE_F32;
	const uint64_t max = INT32_MAX;

	return lanes && c->dims == 2 && c->channels == 1 && c->each == 1 && c->groups > 1 && (plain || pairs) &&
	       x->low <= x->in && y->low <= y->in && c->taps <= TAPS && y->input == 1 && x->input == 1 && x->out &&
	       y->out && reach(y, 1) * width(x) * x->stride * tensor_type_bytes(type) <= BYTES &&
	       c->batches * c->groups * larger(y->in * x->in, y->out * x->out) <= max;
}

/* The lines of the input: a0[(i * lines + row) * width + x], where there are such. */
static void put_input(struct source *s, const struct conv *c, uint64_t out)
{
	const struct space *y = &c->of[0], *x = &c->of[1];
	const uint64_t step = x->stride, low = x->low;
	const char *array = (step == 1 ? source_array : source_array_pairs)(s, c->n->operand[0]);

	source_line(s, "for (y in 0..%" PRIu64 ") {", reach(y, out));
	source_line(s, "i32 row = m * %" PRIu64 " + y - %" PRIu64 ";", out * y->stride, y->low);
	source_line(s, "if (row >= 0 && row < %" PRIu64 ") {", y->in);
	source_line(s, "each (x in 0..%" PRIu64 ") {", x->in / step);
	const char *element =
		source_text(s, "%s[(i * %" PRIu64 " + row) * %" PRIu64 " + x]", array, y->in, x->in / step);
	if (step == 1) {
		source_line(s, "c[y][0][x + %" PRIu64 "] = %s;", low, element);
	} else {
		source_line(s, "u64 two = %s;", element);
		source_line(s, "c[y][%" PRIu64 "][x + %" PRIu64 "] = bits_f32(u32(two));", low % 2, low / 2);
		source_line(s, "c[y][%" PRIu64 "][x + %" PRIu64 "] = bits_f32(u32(two >> 32));", (low + 1) % 2,
		            (low + 1) / 2);
	}
	source_line(s, "}");
	source_line(s, "}");
	source_line(s, "}");
	source_line(s, "sync;");
}

/* The sum of a position: taps in ascending order. */
static void put_sum(struct source *s, const struct conv *c, const char *type)
{
	const struct space *y = &c->of[0], *x = &c->of[1];

	source_line(s, "%s s = 0;", type);
	for (uint64_t a = 0; a < y->window; a++)
		for (uint64_t b = 0; b < x->window; b++) {
			const uint64_t tap = b * x->dilation;
			source_line(s,
			            "s = fma(w%" PRIu64 ", c[y * %" PRIu64 " + %" PRIu64 "][%" PRIu64 "][x + %" PRIu64
			            "], s);",
			            a * x->window + b, y->stride, a * y->dilation, tap % x->stride, tap / x->stride);
		}
}

static const char *finished(struct source *s, const struct conv *c)
{
	const struct space *y = &c->of[0], *x = &c->of[1];
	struct position at = { .has_dims = true, .dim = { "i", "0", "line", "x" } };

	if (s->end == c->n)
		return "s";
	at.dim[0] = c->batches == 1 ? "0" : source_text(s, "(i / %" PRIu64 ")", c->groups);
	at.dim[1] = c->batches == 1 ? "i" : source_text(s, "(i %% %" PRIu64 ")", c->groups);
	at.flat = source_text(s, "((i * %" PRIu64 " + line) * %" PRIu64 " + x)", y->out, x->out);
	return source_finished(s, "s", at);
}

void source_conv_depthwise(struct source *s, const struct conv *c)
{
	const struct space *y = &c->of[0], *x = &c->of[1];
	const int kind = info(s, c->n->first)->type;
	const char *type = tensor_type_name(kind), *weights;
	const uint64_t out = lines(c, tensor_type_bytes(kind));

	bytes_print(&s->head, "i in %" PRIu64 ", m in %" PRIu64, c->batches * c->groups, (y->out + out - 1) / out);
	source_line(s, "tile %s c[%" PRIu64 "][%" PRIu64 "][%" PRIu64 "];", type, reach(y, out), x->stride, width(x));
	put_input(s, c, out);
	weights = source_array(s, c->n->operand[1]);
	for (uint64_t k = 0; k < c->taps; k++)
		source_line(s, "%s w%" PRIu64 " = %s[%s * %" PRIu64 " + %" PRIu64 "];", type, k, weights,
		            c->batches == 1 ? "i" : source_text(s, "i %% %" PRIu64, c->groups), c->taps, k);
	source_line(s, "for (y in 0..%" PRIu64 ") {", out);
	source_line(s, "i32 line = m * %" PRIu64 " + y;", out);
	source_line(s, "if (line < %" PRIu64 ") {", y->out);
	source_line(s, "each (x in 0..%" PRIu64 ") {", x->out);
	source_forget(s);
	put_sum(s, c, type);
	source_line(s, "scatter_distinct(o[i][line][x], %s);", finished(s, c));
	source_line(s, "}");
	source_line(s, "}");
	source_line(s, "}");
	s->out = source_text(s, "[%" PRIu64 "][%" PRIu64 "][%" PRIu64 "]", c->batches * c->groups, y->out, x->out);
}

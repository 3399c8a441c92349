/* kernels-templates/recurrent/conv.c - a causal convolution over time, channel by channel, that goes on where the pass
 * before ended.
 *
 * Owns: KEY_CONV, which is numerics.h rule 16. A unit goes through the columns of the launch one after the other and
 * keeps the last inputs in registers. So it makes no difference how a text is cut.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

struct conv {
	struct ir *b;
	unsigned taps;
	bool gated, biased;
	enum key_act act;
	int64_t column_bytes; /* of the channels of one column, and of one past input of the state */
	ir_a arg;
	ir_s at; /* where the unit's channels begin in a column, in bytes */
	ir_f bias;
	ir_f weight[CONV_MAX_TAPS]; /* the oldest input's first */
	ir_f past[CONV_MAX_TAPS];   /* variables: the inputs before this column's */
};

/* One argument's memory, this unit's channels. */
static ir_a channels_of(const struct conv *c, unsigned slot)
{
	return ir_aadd(c->b, ir_aload(c->b, c->arg, (int32_t)slot * 8), c->at);
}

static ir_f convolve(const struct conv *c, ir_f x)
{
	struct ir *b = c->b;
	ir_f sum = ir_fmul(b, c->weight[0], c->past[0]);

	for (unsigned j = 1; j < c->taps; j++)
		sum = ir_ffma(b, c->weight[j], j + 1 < c->taps ? c->past[j] : x, sum);
	if (c->biased)
		sum = ir_fadd(b, sum, c->bias);
	return c->act ? math_act(b, c->act, sum) : sum;
}

/* `lanes` channels, from byte `disp` of the unit's on. */
static void convolve_lanes(struct conv *c, int32_t disp)
{
	struct ir *b = c->b;
	ir_a from = channels_of(c, CONV_STATE_IN), to = channels_of(c, CONV_STATE_OUT),
	     x = ir_var_a(b, channels_of(c, CONV_X)), out = ir_var_a(b, channels_of(c, CONV_OUT));
	ir_a second = c->gated ? ir_var_a(b, channels_of(c, CONV_X2)) : x,
	     gate = c->gated ? ir_var_a(b, channels_of(c, CONV_GATE)) : x;
	ir_a weights = ir_aadd(b, ir_aload(b, c->arg, CONV_WEIGHT * 8), ir_smuli(b, c->at, c->taps));

	for (unsigned j = 0; j < c->taps; j++)
		c->weight[j] =
			ir_fbits(b, ir_iload_s(b, weights, disp * (int32_t)c->taps + (int32_t)(j * 4), c->taps * 4));
	if (c->biased)
		c->bias = ir_fload(b, channels_of(c, CONV_BIAS), disp, 0);
	for (unsigned j = 0; j + 1 < c->taps; j++)
		c->past[j] = ir_var_f(b, ir_fload(b, from, (int32_t)(j * c->column_bytes) + disp, 0));
	ir_loop(b, ir_sload64(b, c->arg, CONV_COLUMNS * 8));
	ir_f in = ir_fload(b, x, disp, 0);
	if (c->gated)
		in = ir_fmul(b, in, ir_fload(b, second, disp, 0));
	ir_f y = convolve(c, in);
	if (c->gated)
		y = ir_fmul(b, y, ir_fload(b, gate, disp, 0));
	ir_fstore(b, out, y, disp, 0);
	for (unsigned j = 0; j + 1 < c->taps; j++)
		ir_set_f(b, c->past[j], j + 2 < c->taps ? c->past[j + 1] : in);
	ir_set_a(b, x, ir_aaddi(b, x, c->column_bytes));
	ir_set_a(b, out, ir_aaddi(b, out, c->column_bytes));
	if (c->gated) {
		ir_set_a(b, second, ir_aaddi(b, second, c->column_bytes));
		ir_set_a(b, gate, ir_aaddi(b, gate, c->column_bytes));
	}
	ir_endloop(b);
	for (unsigned j = 0; j + 1 < c->taps; j++)
		ir_fstore(b, to, c->past[j], (int32_t)(j * c->column_bytes) + disp, 0);
}

bool conv_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	(void)target;
	if (key->k == 0 || key->k % 32 || key->k > 1u << 24)
		return build_refuse(key, err, "the number of channels must be a multiple of 32, up to 16777216");
	if (key->rows < 2 || key->rows > CONV_MAX_TAPS)
		return build_refuse(key, err, "a convolution has 2 to 8 taps");
	if (key->flags & ~(uint32_t)(KEY_GATED | KEY_BIAS))
		return build_refuse(key, err, "these flags do not go together");
	struct conv c = { .b = b,
		          .taps = key->rows,
		          .gated = key->flags & KEY_GATED,
		          .biased = key->flags & KEY_BIAS,
		          .act = (enum key_act)key->act,
		          .column_bytes = (int64_t)key->k * 4,
		          .arg = ir_arg(b) };
	ir_s begin = ir_begin(b), i = ir_loop(b, ir_ssub(b, ir_end(b), begin));

	c.at = ir_sshli(b, ir_sadd(b, begin, i), 7);
	for (unsigned v = 0; v < math_parts(b); v++)
		convolve_lanes(&c, (int32_t)(v * b->lanes * 4));
	ir_endloop(b);
	return true;
}

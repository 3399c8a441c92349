/* kernels-templates/recurrent/channel.c - the selective scan of Mamba 1, token by token: each channel has a small state
 * of its own, each number of which forgets at its own rate.
 *
 * Owns: KEY_CHANNEL, which is numerics.h rule 18. A unit is 32 channels. The columns of the launch go through their
 * state one after the other. It is read where the pass before left it for the first column, and where it is written for
 * all others.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

struct channel {
	struct ir *b;
	uint32_t rows;
	unsigned parts;
	ir_a x, dt, out, taken, read; /* variables: this column's */
	ir_a bias, decay, skip;       /* the unit's */
	ir_a from, to;                /* its state; from: a variable */
};

static int32_t part_at(const struct channel *t, unsigned v) { return (int32_t)(v * t->b->lanes * 4); }

/* A part of the unit's channels, through all rows of their states: fewer values at a time than there are registers. */
static void scan_part(const struct channel *t, unsigned v)
{
	struct ir *b = t->b;
	const int32_t part = part_at(t, v);
	ir_a at = ir_var_a(b, ir_aaddi(b, t->from, part)), to = ir_var_a(b, ir_aaddi(b, t->to, part)),
	     decay = ir_var_a(b, ir_aaddi(b, t->decay, part)), taken = ir_var_a(b, t->taken),
	     read = ir_var_a(b, t->read);
	ir_f x = ir_fload(b, t->x, part, 0);
	ir_f step = math_softplus(b, ir_fadd(b, ir_fload(b, t->dt, part, 0), ir_fload(b, t->bias, part, 0)));
	ir_f in = ir_fmul(b, x, step), sum = ir_var_f(b, ir_fconst(b, 0.0f));

	ir_loop(b, ir_sconst(b, t->rows));
	ir_f e = math_exp(b, ir_fmul(b, ir_fload(b, decay, 0, 0), step));
	ir_f row = ir_ffma(b, ir_fbcast(b, taken, 0), in, ir_fmul(b, ir_fload(b, at, 0, 0), e));
	ir_fstore(b, to, row, 0, 0);
	ir_set_f(b, sum, ir_ffma(b, row, ir_fbcast(b, read, 0), sum));
	ir_set_a(b, at, ir_aaddi(b, at, 128));
	ir_set_a(b, to, ir_aaddi(b, to, 128));
	ir_set_a(b, decay, ir_aaddi(b, decay, 128));
	ir_set_a(b, taken, ir_aaddi(b, taken, 4));
	ir_set_a(b, read, ir_aaddi(b, read, 4));
	ir_endloop(b);
	ir_fstore(b, t->out, ir_ffma(b, ir_fload(b, t->skip, part, 0), x, sum), part, 0);
}

static void scan_column(const struct channel *t)
{
	for (unsigned v = 0; v < t->parts; v++)
		scan_part(t, v);
	ir_set_a(t->b, t->from, t->to);
}

/* So many bytes from where the slot's memory begins. */
static ir_a address_in(struct ir *b, ir_a arg, unsigned slot, ir_s bytes)
{
	return ir_aadd(b, ir_aload(b, arg, (int32_t)slot * 8), bytes);
}

bool channel_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	(void)target;
	if (!key->k || key->k % 32 || key->k > 1u << 20 || !key->rows || key->rows > CHANNEL_MAX_STATE || key->flags)
		return build_refuse(key, err, "channels are a multiple of 32 with states of 1 to 256, without flags");
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b), i = ir_loop(b, ir_ssub(b, ir_end(b), begin)), unit = ir_sadd(b, begin, i);
	ir_s here = ir_sshli(b, unit, 7), states = ir_smuli(b, unit, (int64_t)key->rows * 128), none = ir_sconst(b, 0);
	const int64_t column = (int64_t)key->k * 4, narrow = (int64_t)numerics_pad(key->rows) * 4;
	struct channel t = {
		.b = b,
		.rows = key->rows,
		.parts = math_parts(b),
		.x = ir_var_a(b, address_in(b, arg, CHANNEL_X, here)),
		.dt = ir_var_a(b, address_in(b, arg, CHANNEL_DT, here)),
		.out = ir_var_a(b, address_in(b, arg, CHANNEL_OUT, here)),
		.taken = ir_var_a(b, address_in(b, arg, CHANNEL_B, none)),
		.read = ir_var_a(b, address_in(b, arg, CHANNEL_C, none)),
		.bias = address_in(b, arg, CHANNEL_DT_BIAS, here),
		.decay = address_in(b, arg, CHANNEL_DECAY, states),
		.skip = address_in(b, arg, CHANNEL_SKIP, here),
		.from = ir_var_a(b, address_in(b, arg, CHANNEL_STATE_IN, states)),
		.to = address_in(b, arg, CHANNEL_STATE_OUT, states)
	};

	ir_loop(b, ir_sload64(b, arg, CHANNEL_COLUMNS * 8));
	scan_column(&t);
	ir_set_a(b, t.x, ir_aaddi(b, t.x, column));
	ir_set_a(b, t.dt, ir_aaddi(b, t.dt, column));
	ir_set_a(b, t.out, ir_aaddi(b, t.out, column));
	ir_set_a(b, t.taken, ir_aaddi(b, t.taken, narrow));
	ir_set_a(b, t.read, ir_aaddi(b, t.read, narrow));
	ir_endloop(b);
	ir_endloop(b);
	return true;
}

/* kernels-templates/recurrent/gate.c - numbers times the activation function of others, one for each or one for each
 * head, or the activation function whose own numbers a layer has.
 *
 * Owns: KEY_GATE. Every element is computed by itself: pads of +0 stay +0.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

/* Each unit is a part of one head. */
static bool build_by_head(struct ir *b, const struct key *key)
{
	const int64_t each = key->head_dim / 32, token = key->heads * each;
	const ir_a arg = ir_arg(b);
	const ir_s begin = ir_begin(b), i = ir_loop(b, ir_ssub(b, ir_end(b), begin)), unit = ir_sadd(b, begin, i);
	const ir_s column = ir_sdivi(b, unit, token),
		   head = ir_sdivi(b, ir_ssub(b, unit, ir_smuli(b, column, token)), each);
	const ir_s gate = ir_sadd(b, ir_smuli(b, column, (int64_t)numerics_pad(key->heads) * 4), ir_sshli(b, head, 2)),
		   bytes = ir_sshli(b, unit, 7);
	const ir_a x = ir_aadd(b, ir_aload(b, arg, GATE_X * 8), bytes),
		   out = ir_aadd(b, ir_aload(b, arg, GATE_OUT * 8), bytes);
	const ir_f by =
		math_act(b, (enum key_act)key->act, ir_fbcast(b, ir_aadd(b, ir_aload(b, arg, GATE_GATE * 8), gate), 0));

	for (unsigned v = 0; v < math_parts(b); v++) {
		const int32_t at = (int32_t)(v * b->lanes * 4);
		ir_fstore(b, out, ir_fmul(b, ir_fload(b, x, at, 0), by), at, 0);
	}
	ir_endloop(b);
	return true;
}

bool gate_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	(void)target;
	const bool bends = key->flags == KEY_SCALED, by_head = key->flags == KEY_BY_HEAD;

	if (bends ? key->act != ACT_NONE : !key->act || (key->flags && !by_head))
		return build_refuse(key, err, "a gate has an activation function, or that of four numbers");
	if (by_head && (!key->heads || !key->head_dim || key->head_dim % 32))
		return build_refuse(key, err, "heads with one number each must have a multiple of 32 elements");
	if (by_head)
		return build_by_head(b, key);
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b), bytes = ir_sshli(b, begin, 7);
	ir_s count = ir_ssub(b, ir_end(b), begin);
	ir_a x = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, GATE_X * 8), bytes));
	ir_a by = ir_aload(b, arg, GATE_GATE * 8), gate = bends ? by : ir_var_a(b, ir_aadd(b, by, bytes));
	ir_a out = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, GATE_OUT * 8), bytes));
	struct math_xielu numbers = { 0 };

	if (bends)
		numbers = (struct math_xielu){ ir_fbcast(b, by, 0), ir_fbcast(b, by, 4), ir_fbcast(b, by, 8),
			                       ir_fbcast(b, by, 12) };
	ir_loop(b, count);
	for (unsigned v = 0; v < math_parts(b); v++) {
		int32_t at = (int32_t)(v * b->lanes * 4);
		ir_f e = ir_fload(b, x, at, 0), y;
		if (bends)
			y = math_xielu(b, e, &numbers);
		else
			y = ir_fmul(b, e, math_act(b, (enum key_act)key->act, ir_fload(b, gate, at, 0)));
		ir_fstore(b, out, y, at, 0);
	}
	ir_set_a(b, x, ir_aaddi(b, x, 128));
	if (!bends)
		ir_set_a(b, gate, ir_aaddi(b, gate, 128));
	ir_set_a(b, out, ir_aaddi(b, out, 128));
	ir_endloop(b);
	return true;
}

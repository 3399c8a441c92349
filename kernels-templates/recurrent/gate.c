/* kernels-templates/recurrent/gate.c - numbers times the activation function of others.
 *
 * Owns: KEY_GATE. Every element is computed by itself: pads of +0 stay +0.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

bool gate_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	(void)target;
	if (!key->act || key->flags)
		return build_refuse(key, err, "a gate has an activation function and no flags");
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b), bytes = ir_sshli(b, begin, 7);
	ir_s count = ir_ssub(b, ir_end(b), begin);
	ir_a x = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, GATE_X * 8), bytes));
	ir_a gate = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, GATE_GATE * 8), bytes));
	ir_a out = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, GATE_OUT * 8), bytes));

	ir_loop(b, count);
	for (unsigned v = 0; v < math_parts(b); v++) {
		int32_t at = (int32_t)(v * b->lanes * 4);
		ir_f factor = math_act(b, (enum key_act)key->act, ir_fload(b, gate, at, 0));
		ir_fstore(b, out, ir_fmul(b, ir_fload(b, x, at, 0), factor), at, 0);
	}
	ir_set_a(b, x, ir_aaddi(b, x, 128));
	ir_set_a(b, gate, ir_aaddi(b, gate, 128));
	ir_set_a(b, out, ir_aaddi(b, out, 128));
	ir_endloop(b);
	return true;
}

/* kernels-templates/kinds/scale.c - f32 times a number, or bounded by one: embeddings, what is added to the stream,
 * logits; or times other numbers.
 *
 * Owns: KEY_SCALE, which is numerics.h rule 11. Pads of +0 stay +0: every element is computed by itself.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

bool scale_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	bool pair = key->flags == KEY_PAIR, one = key->flags == KEY_GATED;

	if (!pair && !one &&
	    (key->flags & ~(uint32_t)(KEY_RESIDUAL | KEY_CAP) || key->flags == (KEY_RESIDUAL | KEY_CAP)))
		return build_refuse(key, err, "these flags do not go together");
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b), bytes = ir_sshli(b, begin, 7);
	ir_s count = ir_ssub(b, ir_end(b), begin);
	ir_a in = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, SCALE_IN * 8), bytes));
	ir_a out = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, SCALE_OUT * 8), bytes));
	ir_a others = pair ? ir_var_a(b, ir_aadd(b, ir_aload(b, arg, SCALE_BY * 8), bytes)) : arg;
	ir_f by = pair  ? (ir_f){ 0 }
	          : one ? ir_fbcast(b, ir_aload(b, arg, SCALE_BY * 8), 0)
	                : ir_fbcast(b, arg, SCALE_BY * 8);

	ir_loop(b, count);
	for (unsigned v = 0; v < math_parts(b); v++) {
		int32_t at = (int32_t)(v * b->lanes * 4);
		ir_f x = ir_fload(b, in, at, 0), factor = pair ? ir_fload(b, others, at, 0) : by,
		     y = key->flags & KEY_CAP ? math_cap(b, x, by) : ir_fmul(b, x, factor);
		if (key->flags & KEY_RESIDUAL)
			y = ir_fadd(b, ir_fload(b, out, at, 0), y);
		ir_fstore(b, out, y, at, 0);
	}
	ir_set_a(b, in, ir_aaddi(b, in, 128));
	ir_set_a(b, out, ir_aaddi(b, out, 128));
	if (pair)
		ir_set_a(b, others, ir_aaddi(b, others, 128));
	ir_endloop(b);
	return true;
}

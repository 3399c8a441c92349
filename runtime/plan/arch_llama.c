/* runtime/plan/arch_llama.c - the layer of Llama, and of the families that differ from it by what tensors they have, by
 * scales, and by what rotates.
 *
 * A form of layer is this function: its steps (plan_build.h), in their order. Biases, norms, scales, gates and windows
 * need no word here: a step does what there are tensors for, and what the model's description says.
 */
#include "runtime/plan/plan_build.h"

void arch_llama_layer(struct plan_builder *b, const struct weights_layer *l, uint32_t layer)
{
	bool int8_attention = plan_wants_int8(b, &l->q) || plan_wants_int8(b, &l->k) || plan_wants_int8(b, &l->v);
	bool int8_ffn = (l->gate.packed && plan_wants_int8(b, &l->gate)) || plan_wants_int8(b, &l->up);

	struct activations in = step_input(b, l->attn_norm, int8_attention || (b->spec->parallel && int8_ffn));
	step_queries_keys_values(b, l, in);
	step_rotate_and_store(b, l, layer);
	step_attention(b, layer);
	step_attention_output(b, l);

	if (!b->spec->parallel)
		in = step_input(b, l->ffn_norm, int8_ffn);
	step_gate_and_up(b, l, in);
	step_down(b, l);
}

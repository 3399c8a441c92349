/* runtime/plan/arch_llama.c - the layer of Llama, and of the families that differ from it by what tensors they have.
 *
 * A form of layer is this function: its steps (plan_build.h), in their order. Biases, norms of Q and K and windows need
 * no word here: a step does what there are tensors for.
 */
#include "runtime/plan/plan_build.h"

void arch_llama_layer(struct plan_builder *b, const struct weights_layer *l, uint32_t layer)
{
	const struct plan_buffers *f = b->buf;
	bool int8_attention = plan_wants_int8(b, &l->q) || plan_wants_int8(b, &l->k) || plan_wants_int8(b, &l->v);
	bool int8_ffn = plan_wants_int8(b, &l->gate) || plan_wants_int8(b, &l->up);

	step_norm(b, f->x, l->attn_norm, int8_attention, b->n, plan_normed(b));
	step_queries_keys_values(b, l);
	step_rotate_and_store(b, l, layer);
	step_attention(b, layer);
	step_attention_output(b, l);

	step_norm(b, f->x, l->ffn_norm, int8_ffn, b->n, plan_normed(b));
	step_gate_and_up(b, l, ACT_SILU);
	step_down(b, l);
}

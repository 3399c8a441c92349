/* runtime/plan/arch_bert.c - the layer of BERT: norms, with biases, stand behind its two sums.
 *
 * The norm behind the last layer is the model's final norm, which the loader has moved there.
 */
#include "runtime/plan/arch.h"

graph_ref arch_bert_layer(const struct arch *a, graph_ref stream)
{
	const struct weights_layer *l = a->l;
	graph_ref product = graph_matmul(a->g, arch_attention(a, stream), &l->o, l->o_bias);

	stream = arch_biased_norm(a, graph_add(a->g, stream, product), l->attn_post_norm, l->attn_post_norm_bias);
	const graph_ref h = arch_gated(a, stream, &l->gate, &l->up, l->gate_bias, l->up_bias);
	product = graph_matmul(a->g, h, &l->down, l->down_bias);
	return arch_biased_norm(a, graph_add(a->g, stream, product), l->ffn_post_norm, l->ffn_post_norm_bias);
}

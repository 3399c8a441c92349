/* runtime/plan/arch_latent.c - the layer of models with latent attention (DeepSeek's MLA): one row of the cache serves
 * all heads.
 *
 * Owns: that attention in the form that never makes the heads' own keys and values: queries go through a matrix of
 * their head to where the latent vectors are, and what comes out of attention through another one (kernels-templates/
 * numerics.h, rule 9a).
 */
#include "runtime/plan/arch.h"

/* A matrix for each head, `rows` of them each, into the heads of `into`, which are `apart` numbers apart. 0: a new one.
 */
static graph_ref by_head(const struct arch *a, const struct weights_matrix *w, uint32_t rows, graph_ref x,
                         graph_ref into, uint32_t apart)
{
	const struct graph_node n = { .kind = NODE_BY_HEAD,
		                      .rows = rows,
		                      .groups = apart,
		                      .in = { [IN_X] = x, [IN_W] = graph_matrix(a->g, w), [IN_INTO] = into } };

	return graph_node(a->g, &n, (uint64_t)a->spec->heads * apart);
}

static graph_ref attention(const struct arch *a, graph_ref in)
{
	const struct model_spec *s = a->spec;
	const struct model_latent *latent = &s->latent;
	const struct weights_layer *l = a->l;
	const uint64_t heads = s->heads, apart = latent->rank + latent->rotating;
	graph_ref q = graph_matmul(a->g, in, l->q_a.packed ? &l->q_a : &l->q, NULL),
		  kv = graph_matmul(a->g, in, &l->kv_a, NULL);

	if (l->q_a.packed)
		q = graph_matmul(a->g, graph_keep(a->g, graph_norm(a->g, q, l->q_a_norm, MODEL_LATENT_EPS)), &l->q_b,
		                 NULL);
	const graph_ref rotated =
		graph_node(a->g, &(struct graph_node){ .kind = NODE_ROTATE, .in = { [IN_X] = q } }, heads * apart);
	const graph_ref rest = graph_result(a->g, heads * numerics_pad(latent->rest));
	const struct graph_node store = { .kind = NODE_STORE,
		                          .in = { [IN_X] = kv,
		                                  [IN_W] = graph_vector(a->g, l->kv_a_norm, latent->rank),
		                                  [IN_INTO] = graph_kept(a->g, GRAPH_CACHE, a->layer) } };
	const graph_ref cache = graph_node(a->g, &store, 0);
	const graph_ref queries = by_head(a, &l->k_b, latent->rank, rest, rotated, (uint32_t)apart);
	const graph_ref mixed =
		graph_node(a->g,
	                   &(struct graph_node){ .kind = NODE_ATTEND, .in = { [IN_X] = queries, [IN_W] = cache } },
	                   heads * numerics_pad(latent->rank));

	return by_head(a, &l->v_b, latent->value, mixed, 0, latent->value);
}

graph_ref arch_latent_layer(const struct arch *a, graph_ref stream)
{
	const struct weights_layer *l = a->l;
	const graph_ref mixed = attention(a, arch_norm(a, stream, l->attn_norm));

	stream = arch_add(a, stream, graph_matmul(a->g, mixed, &l->o, NULL), NULL);
	const graph_ref in = arch_norm(a, stream, l->ffn_norm);
	return l->router.packed ? arch_experts(a, stream, in) : arch_feed_forward(a, stream, in);
}

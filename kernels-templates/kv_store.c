/* kernels-templates/kv_store.c - keys (optional norm, rotation) and values into the cache.
 *
 * Owns: KEY_KV_STORE, the writing side of the cache's layout: keys with the position in the lane, values with the dimension in it
 * (templates.h). Writes the elements of its own positions and nothing else: another column's kernel may write beside it.
 */
#include "kernels-templates/heads.h"

struct kv_out { ir_a at; unsigned element; };

/* Element i of a key lies 32 elements behind element i - 1. */
static void key_sink(struct ir *b, void *context, ir_f v, unsigned i, unsigned n)
{
	const struct kv_out *out = context;
	unsigned stride = 32 * out->element;
	if (out->element == 2)
		ir_fstore_hs(b, out->at, v, (int32_t)(i * stride), n, stride);
	else
		ir_fstore_s(b, out->at, v, (int32_t)(i * stride), n, stride);
}

static void store_value(struct ir *b, ir_a from, ir_a to, unsigned dims, unsigned element)
{
	for (unsigned i = 0; i < dims; i += b->lanes) {
		unsigned n = dims - i < b->lanes ? dims - i : b->lanes;
		ir_f v = ir_fload(b, from, (int32_t)(i * 4), n);
		if (element == 2)
			ir_fstore_h(b, to, v, (int32_t)(i * 2), n);
		else
			ir_fstore(b, to, v, (int32_t)(i * 4), n);
	}
}

bool kv_store_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const char *refusal = heads_refusal(key->kv_heads, key->head_dim);
	unsigned element = heads_kv_bytes(key);
	(void)target;
	if (refusal)
		return build_refuse(key, err, refusal);
	if (!element)
		return build_refuse(key, err, "the cache must be F16 or F32");
	uint32_t dims = key->head_dim, column_bytes = (uint32_t)numerics_pad((uint64_t)key->kv_heads * dims) * 4;
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b);
	struct heads_rotation r = { .dims = dims, .normed = key->flags & KEY_QK_NORM };
	struct kv_out out = { .element = element };

	ir_s i = ir_loop(b, ir_ssub(b, ir_end(b), begin));
	struct heads_unit u = heads_unit(b, ir_sadd(b, begin, i), key->kv_heads);
	ir_s position = ir_sadd(b, ir_sload64(b, arg, KV_STORE_POS0 * 8), u.column);
	ir_s chunk = ir_smul(b, ir_sshri(b, position, 7), ir_sload64(b, arg, KV_STORE_CHUNK_BYTES * 8));
	ir_s place = ir_sadd(b, ir_smuli(b, u.head, NUMERICS_CHUNK), ir_sandi(b, position, NUMERICS_CHUNK - 1));      /* in the chunk */
	ir_s lane = ir_sandi(b, position, 31);
	ir_s block = ir_sadd(b, chunk, ir_smuli(b, ir_ssub(b, place, lane), dims * element));
	ir_s angles = ir_smuli(b, u.column, dims / 2 * 4);

	r.x = heads_at(b, ir_aload(b, arg, KV_STORE_K * 8), u, column_bytes, dims * 4);
	r.cos = ir_aadd(b, ir_aload(b, arg, KV_STORE_COS * 8), angles);
	r.sin = ir_aadd(b, ir_aload(b, arg, KV_STORE_SIN * 8), angles);
	if (r.normed) {
		r.norm = ir_aload(b, arg, KV_STORE_NORM * 8);
		r.eps = ir_fbcast(b, arg, KV_STORE_EPS * 8);
	}
	out.at = ir_aadd(b, ir_aload(b, arg, KV_STORE_KCACHE * 8), ir_sadd(b, block, ir_smuli(b, lane, element)));
	heads_rotate(b, &r, key_sink, &out);

	ir_s row = ir_sadd(b, chunk, ir_smuli(b, place, dims * element));
	store_value(b, heads_at(b, ir_aload(b, arg, KV_STORE_V * 8), u, column_bytes, dims * 4),
	            ir_aadd(b, ir_aload(b, arg, KV_STORE_VCACHE * 8), row), dims, element);
	ir_endloop(b);
	return true;
}

/* kernels-templates/attention/kv_store.h - one head's key and value into the cache, for kernels that do so. */
#ifndef KERNELS_KV_STORE_H
#define KERNELS_KV_STORE_H

#include "kernels-templates/emit/heads.h"

/* What a kernel's columns have in common. column_bytes and arg: of KEY_KV_STORE alone. */
struct kv_store {
	const struct key *key;
	ir_a arg, scratch; /* scratch: int8: a block's, and behind them a rotated key */
	bool int8, octets;
	uint32_t column_bytes, row_bytes;
	unsigned element;
};

/* Outside of loops. key: kv, head_dim; flags QK_NORM, NORM_LAST, VALUE_NORM. */
struct kv_store kv_store_begin(struct ir *b, const struct key *key, const struct target *target);
/* keys, values: where those of all heads lie in the page of the position. from: f32 [head_dim]; eps: with VALUE_NORM.
 */
void kv_store_emit_key(struct ir *b, const struct kv_store *s, const struct heads_rotation *r, ir_a keys, ir_s head,
                       ir_s position);
void kv_store_emit_value(struct ir *b, const struct kv_store *s, ir_a from, ir_f eps, ir_a values, ir_s head,
                         ir_s position);

#endif

/* loaders/model/model_rows.c - which row of a file a row of a packed matrix is: heads whose elements are in another
 * order there, or that alternate with those of another matrix; and how many rows or columns each width is. */
#include "loaders/model/model_load.h"

static uint64_t row_by_key(const struct model_tensor *t, uint64_t r)
{
	unsigned i = 0;

	while (r >= (uint64_t)t->key_heads * t->section[i].rows)
		r -= (uint64_t)t->key_heads * t->section[i++].rows;
	return r / t->section[i].rows * t->by_key + t->section[i].first + r % t->section[i].rows;
}

uint64_t model_source_row(const struct model_tensor *t, uint32_t head_dim, uint64_t r)
{
	if (t->by_key)
		return row_by_key(t, r);
	if (!t->rope_dims && !t->head_rows)
		return r;
	if (t->rope_skip) {
		uint64_t d = r % head_dim, i = d - t->rope_skip, part = t->rope_dims / 2;
		return d < t->rope_skip ? r : r - i + (i >= part ? 2 * (i - part) + 1 : 2 * i);
	}
	uint64_t half = head_dim / 2, rotated = t->rope_dims / 2, i = r % head_dim, head = r - i;
	bool second = i >= half;

	if (t->head_rows)
		head = head / head_dim * t->head_rows + t->head_first;
	if (!t->rope_dims)
		return head + i;

	i -= second ? half : 0;
	if (i >= rotated) /* behind those that rotate: the first half's, then the second's */
		return head + 2 * rotated + (second ? half - rotated : 0) + i - rotated;
	return head + (t->rope_pairs ? 2 * i + second : second ? rotated + i : i);
}

uint64_t model_width(const struct model_spec *s, uint32_t layer, enum tensor_width w)
{
	const struct model_sizes z = model_sizes_of(s, layer);

	switch (w) {
	case WIDTH_HIDDEN: return s->hidden;
	case WIDTH_HEADS: return model_heads_of(s, layer);
	case WIDTH_QUERIES: return (uint64_t)model_heads_of(s, layer) * z.head_dim;
	case WIDTH_KEYS: return (uint64_t)z.kv_heads * z.head_dim;
	case WIDTH_FFN: return z.ffn;
	case WIDTH_INPUT: return s->layer_input;
	case WIDTH_HEAD_DIM: return z.head_dim;
	case WIDTH_CHANNELS: return s->recurrent.channels;
	case WIDTH_TAPS: return (uint64_t)s->recurrent.channels * s->recurrent.taps;
	case WIDTH_VALUES: return (uint64_t)s->recurrent.value_heads * s->recurrent.value_dim;
	case WIDTH_VALUE_HEADS: return s->recurrent.value_heads;
	case WIDTH_STATE_KEYS: return (uint64_t)s->recurrent.key_heads * s->recurrent.key_dim;
	case WIDTH_VALUE_DIM: return s->recurrent.value_dim;
	case WIDTH_RESULTS: return (uint64_t)model_heads_of(s, layer) * (s->latent.rank ? s->latent.value : z.head_dim);
	case WIDTH_LATENT: return s->latent.rank;
	case WIDTH_LATENT_ROW: return (uint64_t)s->latent.rank + s->latent.rotating;
	case WIDTH_QUERY_RANK: return s->latent.query_rank;
	case WIDTH_REST: return s->latent.rest;
	case WIDTH_EXPERTS: return s->experts;
	case WIDTH_EXPERT_FFN: return s->expert_ffn;
	case WIDTH_SHARED_FFN: return s->shared_ffn;
	case WIDTH_STEP_RANK: return s->recurrent.step_rank;
	case WIDTH_STATE: return s->recurrent.key_dim;
	case WIDTH_STATES: return (uint64_t)s->recurrent.value_heads * s->recurrent.value_dim * s->recurrent.key_dim;
	case WIDTH_NUMBERS: return XIELU_NUMBERS;
	case WIDTH_KEYS_BY_HEAD: return (uint64_t)s->heads * s->latent.rank;
	default: return 1;
	}
}

/* loaders/model/model_hf_heads.c - what config.json says of heads of keys and values where a field turns on that there
 * is one, or one for a group of those of queries (arch_row.kv_one, kv_groups).
 */
#include "loaders/model/model_hf_fields.h"

/* Falcon's: how many heads of keys there are, whether norms stand side by side, and that these layers are parallel. */
static bool read_groups(struct hf_reader *r, bool *grouped)
{
	struct model_spec *s = &r->m->spec;
	uint32_t norms = 2;

	*grouped = false;
	if (!r->row->kv_groups || !hf_get_bool(r, r->root, r->row->kv_groups, grouped) || !*grouped)
		return r->err->code == ERROR_NONE;
	if (!hf_get_u32(r, r->root, "num_kv_heads", OPTIONAL, MODEL_MAX_HEADS, &s->kv_heads) ||
	    !hf_get_u32(r, r->root, "num_ln_in_parallel_attn", OPTIONAL, UINT32_MAX, &norms) ||
	    !hparam_range(r->label, "num_ln_in_parallel_attn", norms, 1, 2, r->err))
		return false;
	if (norms == 1 && !s->parallel)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: %s is false beside num_ln_in_parallel_attn 1, expected true", r->label,
		                 r->row->parallel);
	s->parallel = r->m->file->by_groups = true;
	r->m->file->two_norms = norms == 2 ? r->row->two_norms : NULL;
	return true;
}

bool hf_read_key_heads(struct hf_reader *r)
{
	bool one = false, grouped; /* null is as good as false, as for their classes */

	if (!read_groups(r, &grouped) || !hf_get_bool(r, r->root, r->row->kv_one, &one))
		return false;
	if (grouped)
		return true;
	r->m->file->by_groups = !one;
	r->m->spec.kv_heads = one ? 1 : r->m->spec.heads;
	return true;
}

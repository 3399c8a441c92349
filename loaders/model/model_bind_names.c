/* loaders/model/model_bind_names.c - what a layer's tensors are called in each kind of file, which of them share one,
 * and in which order their rows lie there.
 *
 * Owns: the table of slots with their names and shapes (tensor_slots.h), and that of fused tensors.
 */
#include "loaders/model/model_bind.h"

#include <stddef.h>

/* clang-format off */
const struct bind_slot_row bind_slots[TENSOR_SLOTS] = {
#define MATRIX(name, gguf, hf, rows, cols, group, order) \
	{ offsetof(struct model_layer, name), { gguf, hf }, WIDTH_##rows, WIDTH_##cols, \
	  false, GROUP_##group, ORDER_##order },
#define VECTOR(name, gguf, hf, cols, group, order) \
	{ offsetof(struct model_layer, name), { gguf, hf }, WIDTH_ONE, WIDTH_##cols, \
	  true, GROUP_##group, ORDER_##order },
	TENSOR_SLOTS_EACH(MATRIX, VECTOR)
#undef MATRIX
#undef VECTOR
};
/* clang-format on */

/* Matrices in one tensor, in the order of their slots. */
static const struct {
	enum arch_fused fused;
	enum tensor_slot first, last;
	const char *name[2];
} fusions[] = {
	{ FUSED_QKV, SLOT_q, SLOT_v, { "attn_qkv.weight", "self_attn.qkv_proj.weight" } },
	{ FUSED_QKV, SLOT_q_bias, SLOT_v_bias, { "attn_qkv.bias", "self_attn.qkv_proj.bias" } },
	{ FUSED_Q_GATE, SLOT_q_gate, SLOT_q, { "attn_q.weight", "self_attn.q_proj.weight" } },
	{ FUSED_Q_GATE, SLOT_q_gate_bias, SLOT_q_bias, { "attn_q.bias", "self_attn.q_proj.bias" } },
	{ FUSED_CONV, SLOT_conv_b, SLOT_conv_x, { "shortconv.in_proj.weight", "conv.in_proj.weight" } },
	{ FUSED_GATE_UP, SLOT_gate, SLOT_up, { "ffn_up.weight", "mlp.gate_up_proj.weight" } },
	{ FUSED_EXPERTS,
	  SLOT_expert_gate,
	  SLOT_expert_up,
	  { "ffn_gate_up_exps.weight", "block_sparse_moe.input_linear.weight" } },
	{ FUSED_SHARED, SLOT_shared_gate, SLOT_shared_up, { NULL, "shared_mlp.input_linear.weight" } },
	{ FUSED_SCAN, SLOT_scan_z, SLOT_scan_dt, { "ssm_in.weight", "mamba.in_proj.weight" } },
	{ FUSED_CHANNEL, SLOT_channel_x, SLOT_channel_z, { "ssm_in.weight", "mamba.in_proj.weight" } },
	{ FUSED_CHANNEL, SLOT_channel_dt, SLOT_channel_c, { "ssm_x.weight", "mamba.x_proj.weight" } },
	{ FUSED_DELTA, SLOT_delta_qkv, SLOT_delta_z, { "ssm_in.weight", "linear_attn.in_proj_qkvz.weight" } },
	{ FUSED_RATES, SLOT_delta_b, SLOT_delta_a, { "ssm_ba.weight", "linear_attn.in_proj_ba.weight" } },
	{ FUSED_BY_COLUMNS, SLOT_expert_gate, SLOT_expert_up, { NULL, "mlp.experts.gate_up_proj" } },
	{ FUSED_BY_COLUMNS, SLOT_expert_gate_bias, SLOT_expert_up_bias, { NULL, "mlp.experts.gate_up_proj_bias" } }
};

/* What the architecture's row calls it, behind the layer's number; NULL: as others do. */
static const char *own_name(const struct model_file *f, enum tensor_slot slot)
{
	if (f->experts_each && (slot == SLOT_expert_gate || slot == SLOT_expert_down))
		return NULL;
	for (int i = 0; f->two_norms && i < ARCH_NORM_NAMES; i++)
		if (f->two_norms[i].slot == slot)
			return f->format == MODEL_GGUF ? f->two_norms[i].gguf : f->two_norms[i].hf;
	for (int i = 0; i < ARCH_NAMES_MAX; i++) {
		const struct arch_name *own = &f->arch->renamed[i];
		const char *name = f->format == MODEL_GGUF ? own->gguf : own->hf;
		if (own->slot == slot && name)
			return name;
	}
	return NULL;
}

uint32_t bind_fused(const struct model_file *f)
{
	struct found_tensor t;

	if (f->format == MODEL_GGUF && f->arch->encoder && f->arch->gguf_fused == FUSED_GATE_UP &&
	    model_find_tensor(f, "blk.0.ffn_gate.weight", &t))
		return 0;
	return f->format == MODEL_HF
	               ? (f->arch->hf_fused & ~(f->experts_each ? (uint32_t)FUSED_EXPERTS : 0)) |
	                         (f->by_groups ? (uint32_t)FUSED_BY_HEADS : 0)
	               : f->arch->gguf_fused | (f->experts_fused ? (uint32_t)FUSED_EXPERTS : 0) |
	                         (f->delta_fused ? (uint32_t)FUSED_DELTA : 0);
}

const char *bind_fused_name(const struct model_file *f, enum tensor_slot slot, enum tensor_slot *first,
                            enum tensor_slot *last)
{
	uint32_t fused = bind_fused(f);

	for (size_t i = 0; i < sizeof fusions / sizeof *fusions; i++)
		if (fused & fusions[i].fused && slot >= fusions[i].first && slot <= fusions[i].last) {
			*first = fusions[i].first;
			*last = fusions[i].last;
			const char *own = own_name(f, fusions[i].first);
			return own ? own : fusions[i].name[f->format];
		}
	return NULL;
}

const char *bind_own_name(const struct model_file *f, enum tensor_slot slot)
{
	const char *own = own_name(f, slot);

	return own ? own : bind_slots[slot].name[f->format];
}

static bool is_norm(enum tensor_group group)
{
	return group == GROUP_PRE_NORM || group == GROUP_FFN_NORM || group == GROUP_POST_NORM ||
	       group == GROUP_QK_NORM || group == GROUP_QK_ROW_NORM;
}

bool bind_plus_one(const struct binder *b)
{
	return b->f->format == MODEL_HF && b->f->arch->switches & SWITCH_PLUS_ONE && !b->norms_whole;
}

void bind_note_order(const struct binder *b, uint32_t layer, const struct bind_slot_row *slot, struct model_tensor *t)
{
	const struct model_spec *s = &b->m->spec;
	const uint32_t dims = model_rope_of(s, layer)->dims;

	if (slot->order == ORDER_ROTATED && s->latent.rank && t->bytes) {
		model_note_latent(s, slot->rows == WIDTH_LATENT_ROW, b->f->needs.rope_pairs, t);
		return;
	}
	t->rope_pairs = slot->order == ORDER_ROTATED && b->f->needs.rope_pairs && t->bytes;
	if (slot->order == ORDER_ROTATED && t->bytes && (t->rope_pairs || (!s->layer_sizes && dims != s->head_dim)))
		t->rope_dims = dims;
	t->plus_one = is_norm(slot->group) && bind_plus_one(b) && t->bytes;
}

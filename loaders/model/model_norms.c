/* loaders/model/model_norms.c - what models that generate have beyond Llama outside of attention: norms with biases or
 * without weights, feed-forward layers that stand beside attention, embeddings of positions, a bias of the output
 * matrix. For GGUF and config.json alike. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loaders/model/model_bind.h"
#include "loaders/model/model_gguf_fields.h"

void model_parallel_needs(struct model_file *f, const struct model_spec *s)
{
	if (!f->arch->parallel || !s->parallel || f->arch->norms_apart)
		return;
	if (!f->two_norms)
		f->needs.group[GROUP_FFN_NORM] = f->needs.group[GROUP_FFN_NORM_BIAS] = NEED_NOT;
}

/* By a key where the feed-forward layer has a norm of its own in any case, else by that norm. */
bool gguf_read_parallel(struct gguf_reader *r)
{
	static const char key[] = "use_parallel_residual";
	struct found_tensor t;

	if (!r->row->parallel)
		return true;
	const struct gguf_kv *kv = gguf_find(r->g, gguf_key(r, key));
	if (kv && kv->type != GGUF_BOOL)
		return error_set(r->err, ERROR_FORMAT, "%s: key %s is not true or false", r->g->path, r->key);
	if (!r->row->norms_apart)
		r->m->spec.parallel = !model_find_tensor(r->m->file, "blk.0.ffn_norm.weight", &t);
	else if (kv)
		r->m->spec.parallel = gguf_item_int(kv, 0) != 0;
	if (r->row->two_norms && model_find_tensor(r->m->file, "blk.0.attn_norm_2.weight", &t))
		r->m->file->two_norms = r->row->two_norms;
	model_parallel_needs(r->m->file, &r->m->spec);
	return true;
}

/* "NAME.bias" of "NAME.weight". */
static void bias_name(char out[NAME_CAP], const char *weight)
{
	static const char end[] = ".weight";
	const size_t n = strlen(weight), stem = n > strlen(end) ? n - strlen(end) : n;

	snprintf(out, NAME_CAP, "%.*s.bias", (int)stem, weight);
}

/* A vector of ones, which is in no file. */
static struct model_tensor ones(uint64_t cols)
{
	return (struct model_tensor){
		.name = "",
		.type = DTYPE_F32,
		.rows = 1,
		.cols = cols,
		.bytes = (size_t)cols * 4,
		.row_bytes = (size_t)cols * 4,
		.ones = true
	};
}

/* With a bias if the others have one. */
static bool bind_embed_norm(struct binder *b)
{
	const struct arch_row *row = b->f->arch;
	struct model_spec *s = &b->m->spec;
	char name[NAME_CAP];

	if (!row->embed_norm)
		return true;
	snprintf(name, sizeof name, "%s%s.weight", b->base,
	         b->f->format == MODEL_HF ? row->embed_norm : "token_embd_norm");
	if (!bind_tensor(b, name, 1, s->hidden, true, NEED_ALWAYS, NULL, &s->embed_norm))
		return false;
	snprintf(name, sizeof name, "%s%s.bias", b->base,
	         b->f->format == MODEL_HF ? row->embed_norm : "token_embd_norm");
	return bind_tensor(b, name, 1, s->hidden, true, b->f->needs.group[GROUP_NORM_BIAS], NULL, &s->embed_norm_bias);
}

bool bind_positions(struct binder *b)
{
	const struct arch_row *row = b->f->arch;
	struct model_spec *s = &b->m->spec;
	char name[NAME_CAP];

	if (!bind_embed_norm(b))
		return false;
	if (!row->pos_embed)
		return true;
	snprintf(name, sizeof name, "%s%s", b->base,
	         b->f->format == MODEL_HF ? row->pos_embed : "position_embd.weight");
	s->positions_from = row->positions_from;
	return bind_tensor(b, name, (uint64_t)s->context_train + s->positions_from, s->hidden, false, NEED_ALWAYS, NULL,
	                   &s->pos_embed);
}

bool bind_outer_biases(struct binder *b, const char *final_norm, const char *head)
{
	const struct arch_row *row = b->f->arch;
	struct model_spec *s = &b->m->spec;
	char name[NAME_CAP];

	if (row->norms_plain)
		s->final_norm = ones(s->hidden);
	bias_name(name, final_norm);
	if (b->f->needs.group[GROUP_NORM_BIAS] == NEED_ALWAYS &&
	    !bind_tensor(b, name, 1, s->hidden, true, NEED_ALWAYS, NULL, &s->final_norm_bias))
		return false;
	bias_name(name, head);
	return !b->f->needs.head_biased || bind_tensor(b, name, 1, s->vocab, true, NEED_ALWAYS, NULL, &s->head_bias);
}

/* Kernels norm each head where it lies among the others (kernels-templates/kinds/norm.c). */
bool bind_check_heads(const struct binder *b)
{
	const struct model_spec *s = &b->m->spec;

	if (!s->head_weights || !s->layer[0].q_row_norm.bytes)
		return true;
	if (s->head_dim % 16 || s->heads * s->head_dim % 32 || s->kv_heads * s->head_dim % 32)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: norms are of %" PRIu32 " and %" PRIu32 " heads of %" PRIu32
		                 " dimensions, which is not supported: jitrun runs multiples of 16, and of 32 together",
		                 b->label, s->heads, s->kv_heads, s->head_dim);
	return true;
}

void bind_plain_norms(struct model *m)
{
	const struct model_recurrent *c = &m->spec.recurrent;

	for (uint32_t i = 0; m->file->arch->norms_plain && i < m->spec.layers; i++)
		m->spec.layer[i].attn_norm = m->spec.layer[i].ffn_norm = ones(m->spec.hidden);
	for (uint32_t i = 0; m->file->head_ones && i < m->spec.layers; i++)
		if (!m->spec.layer_rotation || m->spec.layer_rotation[i] != ROTATION_NONE)
			m->spec.layer[i].q_norm = m->spec.layer[i].k_norm = ones(m->spec.head_dim);
	for (uint32_t i = 0; m->file->channel_ones && i < m->spec.layers; i++) {
		m->spec.layer[i].channel_dt_norm = ones(c->step_rank);
		m->spec.layer[i].channel_b_norm = m->spec.layer[i].channel_c_norm = ones(c->key_dim);
	}
}

/* loaders/model/model_encoder.c - what models that encode a text have beside others, for both kinds of files: what the
 * embedding of a token is made of beside its row, and the norm behind the last layer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loaders/model/model_bind.h"

/* Windows are said by the whole length, of which half is to each side. */
void model_widen_window(struct model_spec *s)
{
	if (s->sliding_window)
		s->sliding_window = s->sliding_window / 2 * 2 + 1;
}

/* ---- names of tensors */

const char *bind_layers_name(const struct model_file *f)
{
	static const char *const usual[2] = { "blk.", "layers." };

	return f->format == MODEL_HF && f->arch->layers ? f->arch->layers : usual[f->format];
}

/* A name that ends in LayerNorm.weight or .bias, as the first files of BERT have it. */
void bind_old_norm_name(const struct binder *b, char name[NAME_CAP])
{
	static const char *const ends[][2] = { { "LayerNorm.weight", "LayerNorm.gamma" },
		                               { "LayerNorm.bias", "LayerNorm.beta" } };
	struct found_tensor t;
	char old[NAME_CAP];
	const size_t n = strlen(name);

	for (int i = 0; i < 2; i++) {
		const size_t end = strlen(ends[i][0]);
		if (n < end || strcmp(name + n - end, ends[i][0]) != 0)
			continue;
		snprintf(old, sizeof old, "%.*s%s", (int)(n - end), name, ends[i][1]);
		if (!model_find_tensor(b->f, name, &t) && model_find_tensor(b->f, old, &t))
			memcpy(name, old, NAME_CAP);
	}
}

/* Of an encoder's class alone, and of those around it. */
void bind_encoder_prefix(struct binder *b, const char *embed)
{
	const char *const base[] = { b->f->arch->base ? b->f->arch->base : "model.", "model.", "" };
	struct found_tensor t;
	char name[NAME_CAP];

	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s%s", base[i], embed);
		b->base = base[i];
		if (model_find_tensor(b->f, name, &t))
			return;
	}
}

/* ---- tensors */

bool model_bind_encoder(struct binder *b, struct error *err)
{
	static const char *const gguf[] = { "position_embd.weight", "token_types.weight", "token_embd_norm.weight",
		                            "token_embd_norm.bias" };
	const struct arch_encoder *e = b->f->arch->encoder;
	const bool hf = b->f->format == MODEL_HF;
	struct model_spec *s = &b->m->spec;
	char name[4][NAME_CAP];

	(void)err;
	for (int i = 0; i < 4 && !hf; i++)
		snprintf(name[i], NAME_CAP, "%s", gguf[i]);
	if (hf) {
		snprintf(name[0], NAME_CAP, "%s%s", b->base, e->pos_embed ? e->pos_embed : "");
		snprintf(name[1], NAME_CAP, "%s%s", b->base, e->type_embed ? e->type_embed : "");
		snprintf(name[2], NAME_CAP, "%s%s.weight", b->base, e->norm ? e->norm : "");
		snprintf(name[3], NAME_CAP, "%s%s.bias", b->base, e->norm ? e->norm : "");
		bind_old_norm_name(b, name[2]);
		bind_old_norm_name(b, name[3]);
	}
	char bias[NAME_CAP];
	snprintf(bias, NAME_CAP, "%s%s", b->base, hf && e->score_bias ? e->score_bias : "");
	if (!bind_tensor(b, bias, s->buckets, s->heads, false, s->buckets ? NEED_ALWAYS : NEED_NOT, NULL,
	                 &s->score_bias))
		return false;
	return bind_tensor(b, name[0], (uint64_t)s->context_train + s->positions_from, s->hidden, false,
	                   e->positions ? NEED_ALWAYS : NEED_NOT, NULL, &s->pos_embed) &&
	       bind_tensor(b, name[1], s->token_types, s->hidden, false, s->token_types ? NEED_ALWAYS : NEED_NOT, NULL,
	                   &s->type_embed) &&
	       bind_tensor(b, name[2], 1, s->hidden, true, e->norm ? NEED_ALWAYS : NEED_NOT, NULL, &s->embed_norm) &&
	       bind_tensor(b, name[3], 1, s->hidden, true, s->form == FORM_BERT && e->norm ? NEED_ALWAYS : NEED_NOT,
	                   NULL, &s->embed_norm_bias);
}

void model_move_last_norm(struct model *m)
{
	struct model_spec *s = &m->spec;
	struct model_layer *last = &s->layer[s->layers - 1];

	if (s->form != FORM_BERT)
		return;
	s->final_norm = last->ffn_post_norm;
	s->final_norm_bias = last->ffn_post_norm_bias;
	last->ffn_post_norm = last->ffn_post_norm_bias = (struct model_tensor){ 0 };
}

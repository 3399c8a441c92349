/* loaders/model/model_mlx.c - safetensors as MLX's converter lays them out, where that is not as transformers does.
 *
 * Owns: its names of tensors, and what it has already computed. All experts' matrices of a kind are one tensor; gate
 * and up are apart, and so are the heads' matrices of latent attention for keys and for values. Whether a convolution's
 * taps lie as its own do says that norms have their 1, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loaders/model/model_bind.h"

/* What stands before the kind of a matrix, behind the layer's number. */
static const char *const dense[] = { "mlp.", "feed_forward." };
static const char *const attentions[] = { "self_attn." };
static const char *const mixtures[] = { "mlp.switch_mlp.",   "block_sparse_moe.switch_mlp.", "feed_forward.switch_mlp.",
	                                "mixer.switch_mlp.", "experts.switch_glu.",          "mlp.experts." };

static const struct {
	enum tensor_slot slot;
	const char *name, *other;
} kinds[] = { { SLOT_gate, "gate_proj.weight", NULL },
	      { SLOT_up, "up_proj.weight", NULL },
	      { SLOT_down, "down_proj.weight", NULL },
	      { SLOT_k_b, "embed_q.weight", NULL },
	      { SLOT_v_b, "unembed_out.weight", NULL },
	      { SLOT_expert_gate, "gate_proj.weight", NULL },
	      { SLOT_expert_up, "up_proj.weight", "fc1.weight" },
	      { SLOT_expert_down, "down_proj.weight", "fc2.weight" },
	      { SLOT_expert_gate_bias, "gate_proj.bias", NULL },
	      { SLOT_expert_up_bias, "up_proj.bias", NULL },
	      { SLOT_expert_down_bias, "down_proj.bias", NULL } };

static bool there(const struct binder *b, char out[NAME_CAP], uint32_t layer, const char *before, const char *kind)
{
	struct found_tensor t;

	snprintf(out, NAME_CAP, "%slayers.%" PRIu32 ".%s%s", b->base, layer, before, kind);
	return model_find_tensor(b->f, out, &t);
}

bool bind_mlx_name(const struct binder *b, uint32_t layer, enum tensor_slot k, char out[NAME_CAP])
{
	const bool feeds = k == SLOT_gate || k == SLOT_up || k == SLOT_down, attends = k == SLOT_k_b || k == SLOT_v_b;
	const char *const *before = feeds ? dense : attends ? attentions : mixtures;
	const size_t n = feeds     ? sizeof dense / sizeof *dense
	                 : attends ? sizeof attentions / sizeof *attentions
	                           : sizeof mixtures / sizeof *mixtures;

	for (size_t i = 0; b->f->format == MODEL_HF && i < sizeof kinds / sizeof *kinds; i++)
		for (size_t j = 0; kinds[i].slot == k && j < n; j++)
			if (there(b, out, layer, before[j], kinds[i].name) ||
			    (kinds[i].other && there(b, out, layer, before[j], kinds[i].other)))
				return true;
	return false;
}

bool bind_mlx_taps(const struct binder *b, const struct found_tensor *t)
{
	const struct model_recurrent *c = &b->m->spec.recurrent;

	return b->f->format == MODEL_HF && t->rank == 3 && t->dim[0] == 1 && t->dim[1] == c->taps &&
	       t->dim[2] == c->channels;
}

bool bind_mlx_norms(const struct binder *b)
{
	const struct model_spec *s = &b->m->spec;
	struct found_tensor t;
	char name[NAME_CAP];

	for (uint32_t i = 0; i < s->layers; i++) {
		snprintf(name, sizeof name, "%slayers.%" PRIu32 ".linear_attn.conv1d.weight", b->base, i);
		if (model_layer_mixer(s, i) == MIXER_DELTA && model_find_tensor(b->f, name, &t))
			return bind_mlx_taps(b, &t);
	}
	return false;
}

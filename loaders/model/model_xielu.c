/* loaders/model/model_xielu.c - the numbers of the activation function xIELU, of each layer its own: single elements in
 * safetensors, lists of all layers' in GGUF's keys.
 *
 * Owns: what becomes of them. Files hold the two slopes before softplus, and before the slope that both sides have is
 * added.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"
#include "loaders/model/model_bind.h"

static const char *const key_names[XIELU_NUMBERS] = { "xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps" };
static const char *const tensor_names[XIELU_NUMBERS] = { "alpha_p", "alpha_n", "beta", "eps" };
/* What the class has where a file leaves one out; of the slopes files have all. */
static const float usual[XIELU_NUMBERS] = { [XIELU_BOTH] = 0.5f, [XIELU_END] = -9.98377799987793e-07f };

static double softplus(double x) { return x > 30 ? x : math_host_log(1 + math_host_exp(x)); }

static bool check(const char *label, const char *name, float value, struct error *err)
{
	return (value >= -1e4f && value <= 1e4f) ||
	       error_set(err, ERROR_FORMAT, "%s: %s is %.9g, expected -10000 to 10000", label, name, (double)value);
}

static bool of_keys(struct binder *b, uint32_t layer, float out[XIELU_NUMBERS])
{
	const struct gguf *g = &b->f->part[0].gguf;

	for (int i = 0; i < XIELU_NUMBERS; i++) {
		const struct gguf_kv *kv = gguf_find(g, key_names[i]);
		if (!kv)
			return error_set(b->err, ERROR_FORMAT, "%s: the key %s is missing", g->path, key_names[i]);
		if (kv->type == GGUF_STRING ||
		    (kv->type == GGUF_ARRAY && (kv->item != GGUF_F32 || kv->count != b->m->spec.layers)))
			return error_set(b->err, ERROR_FORMAT,
			                 "%s: key %s holds other than a number for each of the %" PRIu32 " layers",
			                 g->path, key_names[i], b->m->spec.layers);
		out[i] = (float)gguf_item_float(kv, kv->type == GGUF_ARRAY ? layer : 0);
		if (!check(g->path, key_names[i], out[i], b->err))
			return false;
	}
	return true;
}

static bool of_tensors(struct binder *b, uint32_t layer, float out[XIELU_NUMBERS])
{
	char name[NAME_CAP];
	struct found_tensor t;

	for (int i = 0; i < XIELU_NUMBERS; i++) {
		snprintf(name, sizeof name, "%s%s%" PRIu32 ".mlp.act_fn.%s", b->base, bind_layers_name(b->f), layer,
		         tensor_names[i]);
		out[i] = usual[i];
		if (!model_find_tensor(b->f, name, &t)) {
			if (i == XIELU_BOTH || i == XIELU_END)
				continue;
			return error_set(b->err, ERROR_FORMAT, "%s: the tensor %s is missing", b->f->part[0].file.label,
			                 name);
		}
		if (t.rank > 1 || t.dim[0] != 1)
			return error_set(b->err, ERROR_FORMAT, "%s: tensor %s has %" PRIu64 " elements, expected one",
			                 t.label, name, t.dim[0] * t.dim[1] * t.dim[2] * t.dim[3]);
		if (!bind_check_type(b, name, &t, true))
			return false;
		b->f->used[t.entry] = true;
		if (b->f->flags & MODEL_HEADER_ONLY)
			continue;
		if (!model_read_floats(&b->f->part[t.part].file, &t, 1, &out[i], b->err) ||
		    !check(t.label, name, out[i], b->err))
			return false;
	}
	return true;
}

bool model_bind_xielu(struct binder *b, struct error *err)
{
	struct model_spec *s = &b->m->spec;

	if (s->act != MODEL_XIELU)
		return true;
	b->f->xielu = calloc((size_t)s->layers * XIELU_NUMBERS, sizeof *b->f->xielu);
	if (!b->f->xielu)
		return error_set(err, ERROR_MEMORY, "no memory for the numbers of %" PRIu32 " layers", s->layers);
	for (uint32_t i = 0; i < s->layers; i++) {
		float *of = b->f->xielu + (size_t)i * XIELU_NUMBERS;
		if (!(b->f->format == MODEL_GGUF ? of_keys : of_tensors)(b, i, of))
			return false;
		of[XIELU_ABOVE] = (float)softplus((double)of[XIELU_ABOVE]);
		of[XIELU_BELOW] = (float)((double)of[XIELU_BOTH] + softplus((double)of[XIELU_BELOW]));
		s->layer[i].xielu = (struct model_tensor){
			.name = "xielu",
			.type = DTYPE_F32,
			.rows = 1,
			.cols = XIELU_NUMBERS,
			.bytes = XIELU_NUMBERS * sizeof *of,
			.row_bytes = XIELU_NUMBERS * sizeof *of,
			.given = of
		};
	}
	return true;
}

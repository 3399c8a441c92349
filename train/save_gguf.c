/* train/save_gguf.c - an adapter as one GGUF file, as llama.cpp has them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"
#include "loaders/files/gguf_write.h"
#include "loaders/model/model_adapter.h"
#include "train/save.h"

/* What GGUF files call the model's family, and in which order they have its queries and keys. */
static const char *family(const jit_train *t, bool *pairs, struct error *err)
{
	const struct arch_row *row = train_arch(t);

	if (row && !row->gguf && row->hf && strcmp(row->hf, "mistral") == 0)
		row = arch_of_gguf("llama", 5);
	if (row && row->gguf) {
		*pairs = row->gguf_pairs;
		return row->gguf;
	}
	error_set(err, ERROR_UNSUPPORTED, "%.200s: a model of %s has no name in GGUF files; save its adapter as PEFT",
	          t->path, t->m.spec.arch_name);
	return NULL;
}

/* False: files of GGUF do not have these rows in one tensor. */
static bool put_name(const jit_train *t, const struct net_tensor *x, char out[256])
{
	const char *suffix = x->kind == LAYER_A ? ".lora_a" : ".lora_b";
	const enum tensor_slot slot = (enum tensor_slot)x->slot;
	struct model_location at;

	if (train_is_gguf(t)) {
		snprintf(out, 256, "%s%s", train_tensor_of(&t->m, x->layer, slot)->name, suffix);
		return true;
	}
	if (!model_location_of(&t->m, true, x->layer, slot, &at) || at.first_row ||
	    at.all_rows != train_group_of(&t->m, x->layer, slot).rows)
		return false;
	snprintf(out, 256, "%s.weight%s", at.name, suffix);
	return true;
}

static bool check_names(const jit_train *t, struct error *err)
{
	char name[256];

	for (uint32_t i = 0; i < t->net->tensors; i++)
		if (!put_name(t, &t->net->tensor[i], name))
			return error_set(err, ERROR_UNSUPPORTED,
			                 "GGUF files have %.200s in another form; save the adapter as PEFT",
			                 t->net->tensor[i].name);
	return true;
}

static bool put_header(const jit_train *t, struct gguf_out *o, FILE *f, const char *arch)
{
	const double scale = t->o.rslora ? math_host_sqrt((double)t->o.rank) : 1; /* readers divide by the rank */

	gguf_put_begin(o, f, 32);
	gguf_put_string(o, "general.type", "adapter");
	gguf_put_string(o, "general.architecture", arch);
	gguf_put_string(o, "adapter.type", "lora");
	gguf_put_f32(o, "adapter.lora.alpha", (float)(train_decimal(t->o.alpha) * scale));
	for (uint32_t i = 0; i < t->net->tensors; i++) {
		const struct net_tensor *x = &t->net->tensor[i];
		char name[256];
		put_name(t, x, name);
		gguf_put_tensor(o, (struct gguf_str){ name, strlen(name) }, DTYPE_F32, 2,
		                (uint64_t[]){ x->shape.dim[1], x->shape.dim[0] });
	}
	return gguf_put_end(o);
}

bool train_save_gguf(const jit_train *t, const char *path, struct error *err)
{
	static const char zero[32];
	bool pairs = false, ok = true;
	const char *arch = family(t, &pairs, err);
	struct gguf_out o;
	struct train_file f;

	if (t->o.dora)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "GGUF files have no adapters with magnitudes (DoRA); save it as PEFT");
	if (!arch || !check_names(t, err) || !train_file_open(&f, path, err))
		return false;
	if (!put_header(t, &o, f.f, arch))
		ok = error_set(err, ERROR_IO, "%.300s: cannot be written: %s", path, strerror(errno));
	for (uint32_t i = 0; ok && i < t->net->tensors; i++) {
		const struct net_tensor *x = &t->net->tensor[i];
		float *values = train_ordered(t, x, pairs, err);
		ok = values != NULL;
		if (ok) {
			fwrite(values, sizeof *values, x->n, f.f);
			fwrite(zero, 1, gguf_put_padding(&o, x->n * sizeof *values), f.f);
		}
		free(values);
	}
	return train_file_close(&f, ok, err);
}

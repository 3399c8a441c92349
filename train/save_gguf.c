/* train/save_gguf.c - an adapter as one GGUF file, as llama.cpp has them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"
#include "loaders/files/gguf_write.h"
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

static void put_name(const jit_train *t, const struct net_tensor *x, char out[256])
{
	static const char *const names[TENSOR_SLOTS] = {
#define X(name, gguf, ...) [SLOT_##name] = gguf,
		TENSOR_SLOTS_EACH(X, X)
#undef X
	};
	const char *suffix = x->kind == LAYER_A ? ".lora_a" : ".lora_b";

	if (train_is_gguf(t))
		snprintf(out, 256, "%s%s", train_tensor_of(&t->m, x->layer, (enum tensor_slot)x->slot)->name, suffix);
	else
		snprintf(out, 256, "blk.%u.%s%s", x->layer, names[x->slot], suffix);
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
	if (!arch || !train_file_open(&f, path, err))
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

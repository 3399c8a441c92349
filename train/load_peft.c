/* train/load_peft.c - training goes on from an adapter that peft, or jittrain, wrote. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels-templates/formats/weight_format.h"
#include "loaders/files/safetensors.h"
#include "train/save.h"

/* By its name in files, and by the one that peft has in memory. */
static const struct safetensors_tensor *find(const struct safetensors *s, const struct net_tensor *x)
{
	const char *end = strstr(x->name, ".weight");
	char names[2][600];

	snprintf(names[0], sizeof names[0], "base_model.model.%s", x->name);
	snprintf(names[1], sizeof names[1], "base_model.model.%.*s.default%s", (int)(end ? end - x->name : 500),
	         x->name, end ? end : "");
	for (uint32_t i = 0; i < s->n_tensors; i++)
		for (int k = 0; k < 2; k++)
			if (s->tensor[i].name.n == strlen(names[k]) &&
			    memcmp(s->tensor[i].name.p, names[k], s->tensor[i].name.n) == 0)
				return &s->tensor[i];
	return NULL;
}

static bool read_tensor(const jit_train *t, const struct file *f, const struct safetensors_tensor *from,
                        struct net_tensor *x, float *own, void *raw, struct error *err)
{
	const struct weight_format *w = weight_format_find(from->type);
	const uint64_t rows = x->shape.dim[0], cols = x->n / rows;
	const struct arch_row *row = train_arch(t);

	if (from->rank != x->shape.rank || from->dim[0] != rows || (x->shape.rank == 2 && from->dim[1] != cols))
		return error_set(err, ERROR_FORMAT, "%.200s: %.150s has another shape than this model and rank ask for",
		                 f->label, x->name);
	if (!w || from->bytes != x->n * dtype_table[from->type].bytes)
		return error_set(err, ERROR_UNSUPPORTED, "%.200s: %.150s is %s, expected F32, F16 or BF16", f->label,
		                 x->name, dtype_table[from->type].name);
	if (!file_read(f, from->offset, from->bytes, raw, err))
		return false;
	w->to_f32(own, raw, x->n);
	for (uint64_t r = 0; r < rows; r++)
		memcpy(x->value + r * cols,
		       own + (x->kind == LAYER_A ? r : train_row_in_file(t, x, row && row->hf_pairs, r)) * cols,
		       cols * sizeof *own);
	return true;
}

static bool read_tensors(jit_train *t, const struct file *f, const struct safetensors *s, struct error *err)
{
	if (s->n_tensors != t->net->tensors)
		return error_set(err, ERROR_FORMAT,
		                 "%.200s: has %u tensors, and %u are trained: are --targets the same?", f->label,
		                 s->n_tensors, t->net->tensors);
	for (uint32_t i = 0; i < t->net->tensors; i++) {
		struct net_tensor *x = &t->net->tensor[i];
		const struct safetensors_tensor *from = find(s, x);
		if (!from)
			return error_set(err, ERROR_FORMAT, "%.200s: has no tensor %.200s", f->label, x->name);
		float *own = malloc((x->n + 1) * sizeof *own);
		void *raw = malloc(from->bytes + 1);
		const bool ok = own && raw ? read_tensor(t, f, from, x, own, raw, err)
		                           : error_set(err, ERROR_MEMORY, "there is no memory for %.100s", x->name);
		free(own);
		free(raw);
		if (!ok)
			return false;
	}
	return true;
}

bool train_load_peft(jit_train *t, const char *path, struct error *err)
{
	struct safetensors s = { 0 };
	struct file f = { 0 };
	struct stat st;
	char inside[4096];
	bool ok = true;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		ok = train_path(inside, path, "adapter_model.safetensors", err);
		path = inside;
	}
	ok = ok && file_open(&f, path, err) && safetensors_open(&s, &f, false, err) && read_tensors(t, &f, &s, err);
	safetensors_free(&s);
	file_close(&f);
	return ok;
}

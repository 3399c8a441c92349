/* train/save_weights.c - all weights of a model: a folder with model.safetensors, and what else the model's folder has.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "train/save.h"

/* Matrices of experts are files' tensors of their own. */
static uint32_t entries_of(const struct net_tensor *x)
{
	return x->slot < TENSOR_SLOTS && x->shape.rank == 3 ? (uint32_t)x->shape.dim[0] : 1;
}

static void fill_entries(const jit_train *t, const struct net_tensor *x, const float *values, char (*name)[600],
                         struct train_entry *e)
{
	const struct model_recurrent *r = &t->m.spec.recurrent;
	const uint32_t n = entries_of(x);
	const char *of = strstr(x->name, ".experts.0.");

	for (uint32_t i = 0; i < n; i++) {
		struct shape s = x->shape;
		if (n > 1 || s.rank == 3)
			s = (struct shape){ 2, { x->shape.dim[1], x->shape.dim[2] } };
		if (x->slot == SLOT_taps) /* those of a convolution with one channel a group */
			s = (struct shape){ 3, { r->channels, 1, r->taps } };
		if (of && s.rank == 2)
			snprintf(name[i], sizeof *name, "%.*s.experts.%u.%s", (int)(of - x->name), x->name, i, of + 11);
		else
			snprintf(name[i], sizeof *name, "%s", x->name);
		e[i] = (struct train_entry){ name[i], s, values + i * (x->n / n) };
	}
}

/* ---- tensors of the file that are one of the layer's or several of them */

/* Whether the file's tensor is made of what train_group_of() says: by rows, or elements, of one or more slots. */
static bool is_grouped(const jit_train *t, const struct net_tensor *x)
{
	return x->layer != NET_NO_LAYER && x->shape.rank < 3 && x->slot != SLOT_taps &&
	       !train_tensor_of(&t->m, x->layer, (enum tensor_slot)x->slot)->experts;
}

static bool is_of_group(const struct net_tensor *x, uint32_t layer, const struct train_group *g)
{
	return x->layer == layer && g->has[x->slot];
}

/* Puts a slot's rows to their places; transposed: rows of the file are columns. */
static void put_rows(const jit_train *t, const struct train_group *g, const struct net_tensor *x, float *all)
{
	const enum tensor_slot slot = (enum tensor_slot)x->slot;
	const bool transposed = train_tensor_of(&t->m, x->layer, slot)->transposed;
	const uint64_t rows = x->shape.dim[0], cols = x->n / rows;

	for (uint64_t r = 0; r < rows; r++) {
		const uint64_t to = train_group_row(&t->m, x->layer, slot, r);
		for (uint64_t c = 0; c < cols; c++)
			all[transposed ? c * g->rows + to : to * cols + c] = x->value[r * cols + c];
	}
}

static float *group_values(const jit_train *t, const struct net_tensor *x, const struct train_group *g,
                           struct error *err)
{
	const uint64_t cols = x->n / x->shape.dim[0];
	float *all = calloc(g->rows * cols + 1, sizeof *all);

	if (!all) {
		error_set(err, ERROR_MEMORY, "there is no memory for %.100s", x->name);
		return NULL;
	}
	for (uint32_t i = 0; i < t->net->tensors; i++)
		if (is_of_group(&t->net->tensor[i], x->layer, g))
			put_rows(t, g, &t->net->tensor[i], all);
	return all;
}

/* Its entry, where x is the first slot of the tensor. */
static bool group_entry(const jit_train *t, const struct net_tensor *x, float **values, char (*name)[600],
                        struct train_entry *e, uint32_t *n, struct error *err)
{
	const struct train_group g = train_group_of(&t->m, x->layer, (enum tensor_slot)x->slot);
	struct shape s = x->shape;

	if (g.first != (enum tensor_slot)x->slot)
		return true;
	*values = group_values(t, x, &g, err);
	s.dim[0] = g.rows;
	if (train_tensor_of(&t->m, x->layer, g.first)->transposed)
		s = (struct shape){ 2, { x->shape.dim[1], g.rows } };
	snprintf(name[*n], sizeof *name, "%s", x->name);
	e[*n] = (struct train_entry){ name[*n], s, *values };
	*n += 1;
	return *values != NULL;
}

static bool write_tensors(const jit_train *t, const char *folder, struct error *err)
{
	const struct arch_row *row = train_arch(t);
	uint32_t all = 0, n = 0;

	for (uint32_t i = 0; i < t->net->tensors; i++)
		all += entries_of(&t->net->tensor[i]);
	struct train_entry *e = calloc(all + (size_t)1, sizeof *e);
	float **values = calloc(t->net->tensors + (size_t)1, sizeof *values);
	char(*name)[600] = calloc(all + (size_t)1, sizeof *name), path[4096];
	bool ok = (e && values && name) || error_set(err, ERROR_MEMORY, "there is no memory for the weights");

	for (uint32_t i = 0; ok && i < t->net->tensors; i++) {
		const struct net_tensor *x = &t->net->tensor[i];
		if (is_grouped(t, x)) {
			ok = group_entry(t, x, &values[i], name, e, &n, err);
			continue;
		}
		values[i] = train_ordered(t, x, row && row->hf_pairs, err);
		ok = values[i] != NULL;
		if (ok)
			fill_entries(t, x, values[i], name + n, e + n);
		n += entries_of(x);
	}
	ok = ok && train_path(path, folder, "model.safetensors", err) && train_write_safetensors(path, e, n, err);
	for (uint32_t i = 0; values && i < t->net->tensors; i++)
		free(values[i]);
	free(e);
	free(values);
	free(name);
	return ok;
}

/* Texts beside the weights: what is not weights, nor their index. */
static bool is_beside(const char *name)
{
	static const char *const ends[] = { ".json", ".jinja", ".model", ".txt" };
	const size_t n = strlen(name);

	if (strstr(name, ".index.json"))
		return false;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (n > strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}

static bool copy_file(const char *from, const char *to, struct error *err)
{
	char bytes[1 << 16];
	struct train_file f;
	FILE *in = fopen(from, "rb");
	bool ok = in && train_file_open(&f, to, err);

	if (!in)
		return error_set(err, ERROR_IO, "%.300s: %s", from, strerror(errno));
	for (size_t n; ok && (n = fread(bytes, 1, sizeof bytes, in)) > 0;)
		fwrite(bytes, 1, n, f.f);
	if (ok && ferror(in))
		error_set(err, ERROR_IO, "%.300s: cannot be read", from);
	ok = ok && train_file_close(&f, !ferror(in), err);
	fclose(in);
	return ok;
}

bool train_copy_texts(const char *from, const char *to, struct error *err)
{
	char path[4096], copy[4096];
	DIR *d = opendir(from);
	bool ok = true;

	if (!d)
		return error_set(err, ERROR_IO, "%.300s: %s", from, strerror(errno));
	for (struct dirent *e; ok && (e = readdir(d));)
		if (is_beside(e->d_name))
			ok = train_path(path, from, e->d_name, err) && train_path(copy, to, e->d_name, err) &&
			     copy_file(path, copy, err);
	closedir(d);
	return ok;
}

static bool copy_others(const jit_train *t, const char *folder, struct error *err)
{
	char from[4096];
	struct stat s;

	snprintf(from, sizeof from, "%s", t->path);
	if (stat(from, &s) == 0 && !S_ISDIR(s.st_mode)) {
		char *slash = strrchr(from, '/');
		snprintf(slash ? slash : from, 2, ".");
		if (slash)
			*slash = 0;
	}
	return train_copy_texts(from, folder, err);
}

bool train_save_weights(const jit_train *t, const char *folder, struct error *err)
{
	return train_folder_open(folder, err) && copy_others(t, folder, err) && write_tensors(t, folder, err);
}

/* train/save_weights.c - all weights of a model: a folder with model.safetensors, and what else the model's folder has.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "train/save.h"

/* Matrices of experts are files' tensors of their own; taps are those of a convolution with one channel a group. */
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
		if (x->slot == SLOT_taps)
			s = (struct shape){ 3, { r->channels, 1, r->taps } };
		if (of && s.rank == 2)
			snprintf(name[i], sizeof *name, "%.*s.experts.%u.%s", (int)(of - x->name), x->name, i, of + 11);
		else
			snprintf(name[i], sizeof *name, "%s", x->name);
		e[i] = (struct train_entry){ name[i], s, values + i * (x->n / n) };
	}
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
		values[i] = train_ordered(t, x, row && row->hf_pairs, err);
		ok = values[i] != NULL;
		if (ok)
			fill_entries(t, x, values[i], name + n, e + n);
		n += entries_of(x);
	}
	ok = ok && train_path(path, folder, "model.safetensors", err) && train_write_safetensors(path, e, all, err);
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

static bool copy_others(const jit_train *t, const char *folder, struct error *err)
{
	char from[4096], path[4096], to[4096];
	struct stat s;
	bool ok = true;

	snprintf(from, sizeof from, "%s", t->path);
	if (stat(from, &s) == 0 && !S_ISDIR(s.st_mode)) {
		char *slash = strrchr(from, '/');
		snprintf(slash ? slash : from, 2, ".");
		if (slash)
			*slash = 0;
	}
	DIR *d = opendir(from);
	if (!d)
		return error_set(err, ERROR_IO, "%.300s: %s", from, strerror(errno));
	for (struct dirent *e; ok && (e = readdir(d));)
		if (is_beside(e->d_name))
			ok = train_path(path, from, e->d_name, err) && train_path(to, folder, e->d_name, err) &&
			     copy_file(path, to, err);
	closedir(d);
	return ok;
}

bool train_save_weights(const jit_train *t, const char *folder, struct error *err)
{
	return train_folder_open(folder, err) && copy_others(t, folder, err) && write_tensors(t, folder, err);
}

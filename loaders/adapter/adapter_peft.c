/* loaders/adapter/adapter_peft.c - adapters as PEFT saves them: adapter_config.json, and adapter_model.safetensors with
 * tensors base_model.model.MODULE.lora_A.weight and .lora_B.weight (adapter.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/adapter/adapter_config.h"

enum { PATH_CAP = 4096 };

/* What stands between a module's path and its tensors' names: A, then B; the second pair of names has the name of an
 * adapter in it, as checkpoints of training runs do. */
static const char *const ends[][2] = { { ".lora_A.weight", ".lora_B.weight" },
	                               { ".lora_A.default.weight", ".lora_B.default.weight" } };
static const char *const begins[] = { "base_model.model.", "" };

static bool ends_in(const struct name_ref *name, const char *end)
{
	const size_t n = strlen(end);

	return name->n > n && memcmp(name->p + name->n - n, end, n) == 0;
}

/* The module's path within the name. False: it is none of these. */
static bool module_of(const struct name_ref *name, struct name_ref *path, bool *second)
{
	*path = *name;
	for (size_t i = 0; i < 2 * sizeof ends / sizeof *ends; i++) {
		const char *end = ends[i / 2][i % 2];
		if (!ends_in(name, end))
			continue;
		path->n -= strlen(end);
		*second = i % 2;
		for (size_t j = 0; j < sizeof begins / sizeof *begins; j++) {
			const size_t n = strlen(begins[j]);
			if (path->n > n && memcmp(path->p, begins[j], n) == 0) {
				path->p += n;
				path->n -= n;
				return true;
			}
		}
	}
	return false;
}

static bool take_tensor(struct adapter_file *f, const struct safetensors_tensor *s, struct error *err)
{
	char shown[160];
	struct name_ref path;
	bool second;

	error_quote(shown, sizeof shown, s->name.p, s->name.n);
	if (!module_of(&s->name, &path, &second) || memchr(path.p, 0, path.n))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s is not known, expected names that end in .lora_A.weight or "
		                 ".lora_B.weight",
		                 f->weights.label, shown);
	if (s->rank != 2)
		return error_set(err, ERROR_UNSUPPORTED, "%s: tensor %s has %u dimensions, expected 2",
		                 f->weights.label, shown, s->rank);
	struct adapter_pair *pair = adapter_pair_of(f, path.p, path.n, err);
	struct adapter_tensor t = {
		.name = strdup(shown), .type = s->type, .rows = s->dim[0], .cols = s->dim[1], .offset = s->offset
	};
	if (!pair || !t.name) {
		free((char *)(uintptr_t)t.name);
		return pair && error_set(err, ERROR_MEMORY, "no memory for the list of an adapter's tensors");
	}
	if (adapter_take(f, second ? &pair->b : &pair->a, &t, err))
		return true;
	free((char *)(uintptr_t)t.name);
	return false;
}

static bool read_files(struct adapter_file *f, const struct adapter_config *c, struct error *err)
{
	if (!adapter_config_invocation(c, f, err))
		return false;
	for (uint32_t i = 0; i < f->st.n_tensors; i++)
		if (!take_tensor(f, &f->st.tensor[i], err))
			return false;
	for (size_t i = 0; i < f->n_pairs; i++)
		if (!adapter_config_pair(c, &f->pair[i], err))
			return false;
	return true;
}

/* dir/name, or name beside the file at `beside`. */
static bool join(char out[PATH_CAP], const char *dir, const char *beside, const char *name, struct error *err)
{
	const char *slash = beside ? strrchr(beside, '/') : NULL;
	const int n = dir ? snprintf(out, PATH_CAP, "%s/%s", dir, name)
	                  : snprintf(out, PATH_CAP, "%.*s%s", slash ? (int)(slash + 1 - beside) : 0,
	                             beside ? beside : "", name);

	return n < PATH_CAP ||
	       error_set(err, ERROR_ARGUMENT, "the path of an adapter is longer than %d bytes", PATH_CAP);
}

bool adapter_open_peft(struct adapter_file *f, const char *dir, const char *weights, struct error *err)
{
	char config[PATH_CAP], model[PATH_CAP], pickled[PATH_CAP];
	struct adapter_config c;

	if (!join(config, dir, weights, "adapter_config.json", err) ||
	    !join(model, dir, NULL, "adapter_model.safetensors", err) ||
	    !join(pickled, dir, NULL, "adapter_model.bin", err))
		return false;
	if (!weights && access(model, F_OK) != 0 && access(pickled, F_OK) == 0) {
		char label[200];
		file_label(label, pickled);
		return error_set(err, ERROR_UNSUPPORTED, "%s: pickled weights are not read, expected safetensors",
		                 label);
	}
	if (!file_open(&f->config, config, err) || !file_text(&f->config, JSON_MAX_CONFIG, err) ||
	    !file_open(&f->weights, weights ? weights : model, err) ||
	    !safetensors_open(&f->st, &f->weights, false, err))
		return false;
	const bool ok = adapter_config_read(&c, &f->config, err) && read_files(f, &c, err);
	adapter_config_close(&c);
	return ok;
}

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
/* The same of an embedding; biases of B, which no merge has; and a module's magnitudes. */
static const char *const embedding_ends[][2] = { { ".lora_embedding_A", ".lora_embedding_B" },
	                                         { ".lora_embedding_A.default", ".lora_embedding_B.default" } };
static const char *const bias_ends[] = { ".lora_B.bias", ".lora_B.default.bias" };
static const char *const magnitude_ends[] = { ".lora_magnitude_vector", ".lora_magnitude_vector.weight",
	                                      ".lora_magnitude_vector.default.weight" };
/* Of a module's own bias, in place of the model's. */
static const char *const own_bias_ends[] = { ".base_layer.bias", ".bias" };
/* A module itself, and the model's own one. */
static const char whole_end[] = ".weight", base_end[] = ".base_layer.weight";
static const char *const begins[] = { "base_model.model.", "" };

static bool ends_in(const struct name_ref *name, const char *end)
{
	const size_t n = strlen(end);

	return name->n > n && memcmp(name->p + name->n - n, end, n) == 0;
}

enum kind {
	KIND_A,
	KIND_B,
	KIND_EMBEDDING_A,
	KIND_EMBEDDING_B,
	KIND_MAGNITUDE,
	KIND_BIAS,
	KIND_OWN_BIAS,
	KIND_BASE,
	KIND_WHOLE,
	KIND_NONE
};

/* What a tensor is by its name's end, which *end is then. */
static enum kind kind_of(const struct name_ref *name, bool merges, const char **end)
{
	for (size_t i = 0; i < 4; i++)
		if (ends_in(name, *end = ends[i / 2][i % 2]))
			return i % 2 ? KIND_B : KIND_A;
	for (size_t i = 0; i < 4; i++)
		if (ends_in(name, *end = embedding_ends[i / 2][i % 2]))
			return i % 2 ? KIND_EMBEDDING_B : KIND_EMBEDDING_A;
	for (size_t i = 0; !merges && i < sizeof bias_ends / sizeof *bias_ends; i++)
		if (ends_in(name, *end = bias_ends[i]))
			return KIND_BIAS;
	for (size_t i = 0; !merges && i < sizeof own_bias_ends / sizeof *own_bias_ends; i++)
		if (ends_in(name, *end = own_bias_ends[i]))
			return KIND_OWN_BIAS;
	for (size_t i = 0; i < sizeof magnitude_ends / sizeof *magnitude_ends; i++)
		if (ends_in(name, *end = magnitude_ends[i]))
			return KIND_MAGNITUDE;
	if (ends_in(name, *end = base_end))
		return KIND_BASE;
	return ends_in(name, *end = whole_end) ? KIND_WHOLE : KIND_NONE;
}

/* The module's path within the name. */
static enum kind module_of(const struct name_ref *name, bool merges, struct name_ref *path)
{
	const char *end;
	const enum kind kind = kind_of(name, merges, &end);

	*path = *name;
	if (kind == KIND_NONE)
		return kind;
	path->n -= strlen(end);
	for (size_t j = 0; j < sizeof begins / sizeof *begins; j++) {
		const size_t n = strlen(begins[j]);
		if (path->n > n && memcmp(path->p, begins[j], n) == 0) {
			path->p += n;
			path->n -= n;
			return kind;
		}
	}
	return KIND_NONE;
}

static struct adapter_tensor *tensor_of(struct adapter_pair *p, enum kind kind)
{
	switch (kind) {
	case KIND_MAGNITUDE: return &p->magnitude;
	case KIND_BIAS: return &p->bias;
	case KIND_OWN_BIAS: return &p->own_bias;
	case KIND_B:
	case KIND_EMBEDDING_B: return &p->b;
	default: return &p->a;
	}
}

static bool take_whole(struct adapter_file *f, const struct safetensors_tensor *s, const struct name_ref *path,
                       const char *shown, bool is_base, struct error *err)
{
	const bool vector = s->rank == 1 && f->merges;

	if (s->rank != 2 && !vector)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s is a whole module, which is done of embed_tokens and lm_head alone",
		                 f->weights.label, shown);
	return adapter_take_whole(
		f,
		&(struct adapter_whole){ .path = strndup(path->p, path->n),
	                                 .t = { .name = strdup(shown),
	                                        .type = s->type,
	                                        .rows = vector ? 1 : s->dim[0],
	                                        .cols = s->dim[vector ? 0 : 1],
	                                        .offset = s->offset },
	                                 .is_base = is_base },
		err);
}

static bool take_tensor(struct adapter_file *f, const struct safetensors_tensor *s, struct error *err)
{
	char shown[160];
	struct name_ref path;

	error_quote(shown, sizeof shown, s->name.p, s->name.n);
	const enum kind kind = module_of(&s->name, f->merges, &path);
	if (kind == KIND_NONE || memchr(path.p, 0, path.n))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s is not known, expected names that end in .lora_A.weight or "
		                 ".lora_B.weight",
		                 f->weights.label, shown);
	if (kind == KIND_WHOLE || kind == KIND_BASE)
		return take_whole(f, s, &path, shown, kind == KIND_BASE, err);
	const bool is_row = kind == KIND_MAGNITUDE || kind == KIND_BIAS || kind == KIND_OWN_BIAS,
		   row = is_row && s->rank == 1;
	if (s->rank != 2 && !row)
		return error_set(err, ERROR_UNSUPPORTED, "%s: tensor %s has %u dimensions, expected %d",
		                 f->weights.label, shown, s->rank, is_row ? 1 : 2);
	struct adapter_pair *pair = adapter_pair_of(f, path.p, path.n, err);
	struct adapter_tensor t = { .name = strdup(shown),
		                    .type = s->type,
		                    .rows = row ? 1 : s->dim[0],
		                    .cols = s->dim[row ? 0 : 1],
		                    .offset = s->offset };
	if (!pair || !t.name) {
		free((char *)(uintptr_t)t.name);
		return pair && error_set(err, ERROR_MEMORY, "no memory for the list of an adapter's tensors");
	}
	pair->embeds |= kind == KIND_EMBEDDING_A || kind == KIND_EMBEDDING_B;
	if (adapter_take(f, tensor_of(pair, kind), &t, err))
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
	if (!adapter_config_parameters(c, f, err))
		return false;
	for (size_t i = 0; i < f->n_pairs; i++)
		if (!adapter_config_pair(c, &f->pair[i], err))
			return false;
	return adapter_config_whole(c, f, err);
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
	const bool ok = adapter_config_read(&c, &f->config, f->merges, err) && read_files(f, &c, err);
	adapter_config_close(&c);
	return ok;
}

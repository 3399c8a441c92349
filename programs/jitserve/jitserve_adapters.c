/* programs/jitserve/jitserve_adapters.c - adapters of the command line: --lora and what others call so.
 *
 * Owns: which model an adapter is for, its name, and whether it counts for requests that say nothing: one that has a
 * name does not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_read.h"
#include "programs/common/adapter_args.h"
#include "programs/common/preset.h"
#include "programs/jitserve/jitserve.h"

static bool no_memory(struct error *err) { return error_set(err, ERROR_MEMORY, "no memory for the list of adapters"); }

/* base: the model's name; NULL: the first. NULL: err. */
static struct served_adapters *list_of(struct models *all, const char *base, struct error *err)
{
	struct served *m = base ? models_named(all, base) : all->n ? &all->list[0] : NULL;

	if (!m) {
		error_set(err, ERROR_ARGUMENT,
		          base ? "base_model_name is %.200s, and no model is called so"
		               : "--lora needs a model beside it%.0s",
		          base ? base : "");
		return NULL;
	}
	if (!m->adapters && !(m->adapters = served_adapters_open()))
		no_memory(err);
	return m->adapters;
}

static bool add(struct models *all, const char *base, const char *name, const char *path, float scale,
                struct error *err)
{
	struct served_adapters *to = list_of(all, base, err);
	const bool usual = !name && !serve.lora_unapplied;

	if (!to || (name && !models_may_name(all, name, err)))
		return false;
	if (name && (!*name || strlen(name) >= ADAPTER_NAME))
		return error_set(err, ERROR_ARGUMENT, "the name of the adapter %s is empty or longer than %d bytes",
		                 path, ADAPTER_NAME - 1);
	return served_adapters_add(to, name, path, scale, usual ? scale : 0, err);
}

/* FILE[:SCALE] or NAME=FILE[:SCALE]; a file may have any of these characters in its name. */
static bool add_value(struct models *all, const char *option, char *value, bool needs_scale, struct error *err)
{
	char *equals = strchr(value, '='), *path = value;
	float scale;
	bool cut = false;

	if (access(value, F_OK) == 0)
		scale = 1;
	else
		cut = adapter_args_cut(value, &scale);
	if (needs_scale && !cut)
		return error_set(err, ERROR_ARGUMENT, "--%s is %s, expected FILE:SCALE", option, value);
	const bool named = equals && equals != value && access(value, F_OK) != 0;
	if (named) {
		*equals = 0;
		path = equals + 1;
	}
	return add(all, NULL, named ? value : NULL, path, scale, err);
}

/* Several with commas between, as llama.cpp takes them. */
static bool add_values(struct models *all, const char *option, const char *value, bool needs_scale, struct error *err)
{
	char *copy = strdup(value), *rest = copy, *one;
	bool ok = copy || no_memory(err);

	if (ok && access(value, F_OK) == 0)
		ok = add_value(all, option, copy, needs_scale, err);
	else
		while (ok && (one = strsep(&rest, ",")))
			ok = !*one || add_value(all, option, one, needs_scale, err);
	free(copy);
	return ok;
}

/* vLLM's other form: an object with name, path and base_model_name. */
static bool add_object(struct models *all, const char *value, struct error *err)
{
	json_t *o = json_read(value, strlen(value), JSON_MAX_CONFIG, "--lora-modules", err);
	const char *name = json_string_value(json_object_get(o, "name")),
		   *path = json_string_value(json_object_get(o, "path")),
		   *base = json_string_value(json_object_get(o, "base_model_name"));
	const bool ok = o && ((name && path) ||
	                      error_set(err, ERROR_ARGUMENT,
	                                "--lora-modules is %.100s, expected an object with name and path", value));
	const bool added = ok && add(all, base, name, path, 1, err);

	json_decref(o);
	return added;
}

static bool add_module(struct models *all, const char *value, struct error *err)
{
	if (value[strspn(value, " ")] == '{')
		return add_object(all, value, err);
	return strchr(value, '=')
	               ? add_values(all, "lora-modules", value, false, err)
	               : error_set(err, ERROR_ARGUMENT, "--lora-modules is %.100s, expected NAME=FILE", value);
}

/* FILE[:SCALE] of a preset. */
static bool add_of_preset(struct models *all, const struct served *m, const char *value, struct error *err)
{
	char *path = strdup(value);
	float scale = 1;

	if (path && access(path, F_OK) != 0)
		adapter_args_cut(path, &scale);
	const bool ok = path ? add(all, m->name, NULL, path, scale, err) : no_memory(err);
	free(path);
	return ok;
}

/* Those that a model's preset names count in requests that say nothing, as those of --lora without a name. What else is
 * wrong with a preset is told when the model is opened. */
static bool add_presets(struct models *all, size_t i, struct error *err)
{
	struct preset p = { 0 };
	struct error ignored = { 0 };
	bool ok = true;

	if (serve_preset_read(&all->list[i], i, &p, &ignored)) {
		for (unsigned s = 0; ok && s < p.n_set; s++)
			if (strcmp(p.set[s].name, "lora") == 0)
				ok = add_of_preset(all, &all->list[i], p.set[s].value, err);
		serve_preset_laid(i);
	}
	preset_free(&p);
	return ok;
}

/* Clients may load adapters for any model, also for those that come later. */
static bool open_all(struct models *all, struct error *err)
{
	for (size_t i = 0; i < SERVE_MAX_MODELS; i++)
		if (!all->list[i].adapters && !(all->list[i].adapters = served_adapters_open()))
			return no_memory(err);
	return true;
}

bool serve_adapters_open(struct models *all, struct error *err)
{
	bool ok = !serve.lora_dir || serve_is_folder("--lora-dir", serve.lora_dir, false, err);

	for (int i = 0; ok && i < serve.lora.n; i++)
		ok = add_values(all, "lora", serve.lora.value[i], false, err);
	for (int i = 0; ok && i < serve.lora_scaled.n; i++)
		ok = add_values(all, "lora-scaled", serve.lora_scaled.value[i], true, err);
	for (int i = 0; ok && i < serve.lora_modules.n; i++)
		ok = add_module(all, serve.lora_modules.value[i], err);
	for (size_t i = 0; ok && i < all->n; i++)
		ok = add_presets(all, i, err);
	return ok && (!serve.lora_dir || open_all(all, err));
}

bool serve_adapters_enter(struct served *m, jit_error *err)
{
	const bool has_some = m->adapters && served_adapters_count(m->adapters);

	if (!m->adapters)
		return true;
	if (jit_model_adapters(m->model, (int)serve.lora_ranks, err) != JIT_OK)
		return !has_some; /* then none can be loaded by request */
	return served_adapters_enter(m->adapters, m->model, err);
}

void serve_adapters_close(struct models *all)
{
	for (size_t i = 0; i < SERVE_MAX_MODELS; i++) {
		served_adapters_close(all->list[i].adapters);
		all->list[i].adapters = NULL;
	}
}

/* programs/jitwarm/jitwarm_main.c - the jitwarm program: compiles the kernels that a model needs ahead of time, and
 * maintains caches of them.
 *
 * Owns: what models, targets and cache an invocation is about. Only headers are read, never weights; jitwarm tune alone
 * opens a whole model.
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/model/model_load.h"
#include "programs/common/allocator.h"
#include "programs/jitwarm/jitwarm.h"
#include "programs/synth/synth.h"
#include "runtime/host/system.h"
#include "runtime/model/packed.h"

int warm_fail(const struct error *e)
{
	fprintf(stderr, "jitwarm: %s.\n", e->text);
	return WARM_FAILED;
}

int warm_usage(const char *text)
{
	fprintf(stderr, "jitwarm: %s\nTry 'jitwarm --help'.\n", text);
	return WARM_USAGE;
}

bool warm_can_write(const char *path, struct error *err)
{
	const char *why;

	return output_can_write(path, &why) || error_set(err, ERROR_IO, "%s: cannot be written: %s", path, why);
}

/* ---- targets */

static void add_target(const struct target *out[TARGET_COUNT], int *n, const struct target *t)
{
	for (int i = 0; i < *n; i++)
		if (out[i] == t)
			return;
	out[(*n)++] = t;
}

int warm_targets(const struct target *out[TARGET_COUNT], struct error *err)
{
	int n = 0;

	for (int i = 0; i < warm.targets.n || (i == 0 && warm.targets.n == 0 && !warm_device_target()); i++) {
		const char *name = warm.targets.n ? warm.targets.value[i] : "native";
		const struct backend *all = backend_find(name);
		for (int k = TARGET_NONE + 1; all && k < TARGET_COUNT; k++)
			if (target_table[k].backend == all)
				add_target(out, &n, &target_table[k]);
		if (all)
			continue;
		const struct target *t = strcmp(name, "native") == 0 ? target_native(err) : target_find(name);
		if (!t)
			return 0; /* only for native: the other names were choices of the option */
		add_target(out, &n, t);
	}
	if (warm_device_target())
		add_target(out, &n, warm_device_target());
	return n;
}

/* ---- models */

static bool visit_file(const char *path, bool (*visit)(const struct model *, const char *, void *, struct error *),
                       void *user, struct error *err)
{
	struct packed *packed;
	struct model m;

	if (!packed_or_files(&m, &packed, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err))
		return false;
	bool ok = visit(&m, path, user, err);
	model_close(&m);
	packed_close(packed);
	return ok;
}

static bool visit_shape(const char *text, bool (*visit)(const struct model *, const char *, void *, struct error *),
                        void *user, struct error *err)
{
	struct model_shape shape;
	struct model m;
	size_t n;

	if (!shape_parse(&shape, text, err))
		return false;
	uint8_t *header = synth_header(&n, &shape, mixture_find(warm.weights), err);
	bool ok = header && model_open_memory(&m, header, n, NULL, 0, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err);
	if (ok) {
		ok = visit(&m, text, user, err);
		model_close(&m);
	}
	free(header);
	return ok;
}

int warm_model_count(void) { return warm.n_operands + warm.shapes.n; }

bool warm_each_model(bool (*visit)(const struct model *, const char *, void *, struct error *), void *user,
                     struct error *err)
{
	for (int i = 0; i < warm.n_operands; i++)
		if (!visit_file(warm.operand[i], visit, user, err))
			return false;
	for (int i = 0; i < warm.shapes.n; i++)
		if (!visit_shape(warm.shapes.value[i], visit, user, err))
			return false;
	return true;
}

static bool add_driver_keys(struct key **keys, size_t *n, struct driver_code by, struct error *err)
{
	struct key *all = realloc(*keys, (2 * *n + 1) * sizeof *all);

	if (!all)
		return error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", 2 * *n);
	for (size_t i = 0; i < *n; i++)
		all[*n + i] = driver_code_key(&all[i], by);
	*keys = all;
	*n *= 2;
	return true;
}

bool warm_model_keys(const struct model *m, const struct target *t, struct key **keys, size_t *n, struct error *err)
{
	struct key_list_options o = { .target = t, .tokens = (uint32_t)warm.batch, .dataflow = warm_device_awaits(t) };

	o.activations = strcmp(warm.activations, "any") == 0   ? KEY_LIST_ANY_ACTIVATIONS
	                : strcmp(warm.activations, "f32") == 0 ? KEY_LIST_F32_ACTIVATIONS
	                                                       : KEY_LIST_INT8_ACTIVATIONS;
	/* Classes differ where there are products of matrices, or of pairs. Whether pairs are faster is measured where
	 * the model runs, so that both are made for either answer. */
	o.numerics = (!t->has_mma && !t->has_dot2) || strcmp(warm.numerics, "exact") == 0 ? KEY_LIST_EXACT
	             : strcmp(warm.numerics, "any") == 0 || t->has_dot2                   ? KEY_LIST_ANY_NUMERICS
	                                                                                  : KEY_LIST_BOUNDED;
	o.kv = strcmp(warm.kv_type, "any") == 0    ? KEY_LIST_KV_ANY
	       : strcmp(warm.kv_type, "f32") == 0  ? KEY_LIST_KV_F32
	       : strcmp(warm.kv_type, "q8_0") == 0 ? KEY_LIST_KV_Q8_0
	                                           : KEY_LIST_KV_F16;
	if (warm.tuned && t->backend->host_runs && !(o.tune = warm_open_tune(true, err)))
		return false;
	bool ok = key_list_kernels(&m->spec, &o, keys, n, err);
	if (ok && t == warm_device_target()) {
		ok = warm_add_programs(&m->spec, &o, keys, n, err) && add_driver_keys(keys, n, warm_linker()->by, err);
		if (!ok) {
			free(*keys);
			*keys = NULL;
		}
	}
	tune_close(o.tune);
	return ok;
}

/* ---- the rest */

struct cache *warm_open_cache(bool read_only, struct error *err)
{
	char path[4096];
	const struct cache_options o = { .read_only = read_only };

	if (warm.cache)
		return cache_open(warm.cache, &o, err);
	if (!cache_default_path(path, sizeof path)) {
		error_set(err, ERROR_ARGUMENT,
		          "there is no cache to look at: --cache is not given, $JITRUN_CACHE is not set, and neither "
		          "$XDG_CACHE_HOME nor $HOME is an absolute path");
		return NULL;
	}
	return cache_open(path, &o, err);
}

int main(int argc, char **argv)
{
	output_begin();
	allocator_begin();
	system_file_limit_is_error();
	system_lost_pages_are_error("jitwarm");
	return output_end("jitwarm", warm_run(argc, argv), WARM_FAILED);
}

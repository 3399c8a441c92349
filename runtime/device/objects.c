#include "runtime/device/objects.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/store/safefile.h"
#include "runtime/device/program.h"

/* Where a backend's code is text, each kernel is a module of its own, and nothing is linked. */
struct writer {
	const char *dir, *suffix;
	const struct target *target;
	struct registry *registry;
	struct objects_count *count;
};

static bool write_file(const struct writer *w, const char *name, const uint8_t *bytes, size_t n, struct error *err)
{
	char path[4096];
	size_t length = (size_t)snprintf(path, sizeof path, "%s/%s%s", w->dir, name, w->suffix);

	if (length >= sizeof path)
		return error_set(err, ERROR_ARGUMENT, "the path of %s has %zu bytes, at most %zu are possible", name,
		                 length, sizeof path - 1);
	FILE *f = safefile_may_grow_to(n) ? fopen(path, "wbe") : NULL;
	bool ok = f && fwrite(bytes, 1, n, f) == n;
	ok = (!f || fclose(f) == 0) && ok;
	w->count->bytes += n;
	return ok || error_set(err, ERROR_IO, "%.400s: could not be written: %s", path, strerror(errno));
}

static bool write_kernel(const struct writer *w, const struct kernel *k, struct error *err)
{
	const struct backend *backend = w->target->backend;
	const struct object *const one[] = { &k->object };
	char name[KEY_TEXT_MAX];
	uint64_t offset;
	uint8_t *bytes = NULL;
	size_t size = k->object.code_bytes;

	if (backend->link && !backend->link(&bytes, &size, w->target, one, 1, &offset, err))
		return false;
	bool ok = write_file(w, key_text(&k->key, name, sizeof name), bytes ? bytes : k->object.code, size, err);
	free(bytes);
	w->count->kernels += ok;
	return ok;
}

static bool links(const struct writer *w) { return w->target->backend->link != NULL; }

static bool write_pass(const struct writer *w, const struct plan *p, struct error *err)
{
	struct program program;
	char name[64];
	bool ok = true;

	for (size_t i = 0; ok && i < p->n_kernels; i++) {
		enum kernel_source from;
		const struct key *key = &p->kernel[i].key;
		const struct kernel *k = links(w) ? program_function(w->registry, key, &from, err)
		                                  : registry_get(w->registry, key, &from, err);
		ok = k && (from == KERNEL_FROM_MEMORY ||
		           write_kernel(w, k, err)); /* from memory: an earlier pass has it too */
	}
	if (!ok || !links(w))
		return ok;
	if (!program_make(&program, p, p->args, w->registry, w->target, err))
		return false;
	snprintf(name, sizeof name, "pass-c%u.%s", p->tokens, w->target->name);
	ok = write_file(w, name, program.bytes, program.size, err);
	program_free(&program);
	w->count->programs += ok;
	return ok;
}

static bool write_passes(const struct writer *w, const struct model_spec *spec, const struct plan_options *opt,
                         enum dtype kv, struct error *err)
{
	static const uint32_t tokens[] = { 1, 4, 8, 16 };
	struct plan_options with_parts = *opt;
	struct weights weights;
	struct plan p;

	with_parts.context = PLAN_PARTS_TO_COME; /* as sessions have it */
	if (!weights_describe(&weights, spec, err))
		return false;
	bool ok = true;
	for (size_t i = 0; ok && i < sizeof tokens / sizeof *tokens; i++) {
		ok = plan_outline(&p, spec, &weights, kv, tokens[i], tokens[i] > 1 ? PLAN_ALL_LOGITS : PLAN_LAST_LOGITS,
		                  &with_parts, err) &&
		     write_pass(w, &p, err);
		plan_free(&p);
	}
	weights_close(&weights);
	return ok;
}

bool objects_write(const struct model_spec *spec, const struct plan_options *opt, enum dtype kv, const char *dir,
                   struct objects_count *count, struct error *err)
{
	struct registry_options ro = { .build = template_build };
	struct writer w = {
		.dir = dir, .suffix = opt->target->backend->link ? ".co" : ".ptx", .target = opt->target, .count = count
	};
	struct stat st;

	*count = (struct objects_count){ 0 };
	if (mkdir(dir, 0777) != 0 && errno != EEXIST)
		return error_set(err, ERROR_IO, "%.400s: the directory could not be made: %s", dir, strerror(errno));
	if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode))
		return error_set(err, ERROR_IO, "%.400s: is no directory", dir);
	if (access(dir, W_OK | X_OK) != 0)
		return error_set(err, ERROR_IO, "%.400s: files cannot be made there: %s", dir, strerror(errno));
	w.registry = registry_open(&ro, err);
	if (!w.registry)
		return false;
	bool ok = write_passes(&w, spec, opt, kv, err);
	registry_close(w.registry);
	return ok;
}

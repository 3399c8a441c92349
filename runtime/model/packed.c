#include "runtime/model/packed.h"

#include <stdlib.h>
#include <string.h>

struct packed {
	struct container *container;
	struct model_source *source;
	size_t n;
	char *path;
};

static bool load_sources(struct packed *p, struct error *err)
{
	size_t all = container_count(p->container);

	if (!(p->source = calloc(all + 1, sizeof *p->source)))
		return error_set(err, ERROR_MEMORY, "no memory for the %zu sections of a packed model", all);
	for (size_t i = 0; i < all; i++) {
		const struct container_section *s = container_get(p->container, i);
		if (s->kind != CONTAINER_SOURCE)
			continue;
		if (s->number >= MODEL_SOURCE_ROLES)
			return error_set(err, ERROR_FORMAT,
			                 "the packed model %s is damaged: the number of a text is %u, expected less "
			                 "than %d",
			                 container_name(p->container), s->number, MODEL_SOURCE_ROLES);
		void *bytes = container_load(p->container, s, err);
		if (!bytes)
			return false;
		p->source[p->n++] = (struct model_source){ (enum model_source_role)s->number, bytes, s->bytes };
	}
	return true;
}

struct packed *packed_open(const char *path, struct error *err)
{
	struct packed *p = calloc(1, sizeof *p);

	if (!p) {
		error_set(err, ERROR_MEMORY, "no memory for a packed model");
		return NULL;
	}
	if (!(p->path = strdup(path)))
		error_set(err, ERROR_MEMORY, "no memory for the name of a packed model");
	else if ((p->container = container_open(path, err)) && load_sources(p, err))
		return p;
	packed_close(p);
	return NULL;
}

void packed_close(struct packed *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		free((void *)(uintptr_t)p->source[i].bytes);
	free(p->source);
	container_close(p->container);
	free(p->path);
	free(p);
}

const struct container *packed_container(const struct packed *p) { return p->container; }

bool packed_has_kernels(const struct packed *p) { return container_find(p->container, CONTAINER_KERNELS, 0) != NULL; }

bool packed_model(const struct packed *p, struct model *out, unsigned flags, struct error *err)
{
	if (!model_open_sources(out, p->source, p->n, p->path, flags, err))
		return false;
	out->file_bytes = container_bytes(p->container);
	return true;
}

bool packed_or_files(struct model *out, struct packed **packed, const char *path, unsigned flags, struct error *err)
{
	*packed = NULL;
	if (!container_is(path))
		return model_open(out, path, flags, err);
	*packed = packed_open(path, err);
	if (*packed && packed_model(*packed, out, flags, err))
		return true;
	packed_close(*packed);
	*packed = NULL;
	return false;
}

/* loaders/onnx/file.c - opening ONNX files, and what they say of themselves. */
#include "loaders/onnx/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/file.h"

#define MAX_FILE (UINT64_C(1) << 31) /* protobuf has no larger messages */

static const char *text_of(const char *s) { return s ? s : ""; }

/* ---- what inputs and outputs are */

static bool read_dims(const struct onnx_file *f, const struct onnx_dimensions *d, struct onnx_slot *s,
                      struct error *err)
{
	if (d->n_dim > TENSOR_MAX_RANK)
		return error_set(err, ERROR_UNSUPPORTED, "%s: %s has %zu dimensions, expected at most %d", f->name,
		                 s->name, d->n_dim, TENSOR_MAX_RANK);
	s->has_shape = true;
	s->rank = (unsigned)d->n_dim;
	for (unsigned i = 0; i < s->rank; i++) {
		const struct onnx_dimension *from = d->dim[i];
		if (from->has_value && (from->value < 0 || (uint64_t)from->value > TENSOR_MAX_BYTES))
			return error_set(err, ERROR_FORMAT, "%s: dimension %u of %s is %" PRId64, f->name, i, s->name,
			                 from->value);
		s->dim[i] = (struct onnx_dim){ from->name && from->name[0] ? from->name : NULL,
			                       from->has_value ? (uint64_t)from->value : 0, from->has_value };
	}
	return true;
}

static bool read_slot(const struct onnx_file *f, const struct onnx_value *v, struct onnx_slot *s, struct error *err)
{
	*s = (struct onnx_slot){ .name = text_of(v->name), .type = -1 };
	if (!s->name[0])
		return error_set(err, ERROR_FORMAT, "%s: an input or output has no name", f->name);
	if (!v->type || !v->type->array)
		return true;
	s->elements = v->type->array->elements;
	s->type = onnx_held_type(s->elements);
	return !v->type->array->shape || read_dims(f, v->type->array->shape, s, err);
}

static bool has_initializer(const struct onnx_graph *g, const char *name)
{
	for (size_t i = 0; i < g->n_initializer; i++)
		if (strcmp(text_of(g->initializer[i]->name), name) == 0)
			return true;
	return false;
}

static bool read_slots(struct onnx_file *f, struct error *err)
{
	const struct onnx_graph *g = f->model->graph;
	struct onnx_about *a = &f->about;

	if (g->n_input + g->n_output > 1 << 20)
		return error_set(err, ERROR_FORMAT, "%s: there are %zu inputs and %zu outputs", f->name, g->n_input,
		                 g->n_output);
	f->slot = calloc(g->n_input + g->n_output + 1, sizeof *f->slot);
	if (!f->slot)
		return error_set(err, ERROR_MEMORY, "there is no memory for %s", f->name);
	for (size_t i = 0; i < g->n_input; i++) {
		if (!read_slot(f, g->input[i], &f->slot[a->inputs], err))
			return false;
		a->inputs += !has_initializer(g, f->slot[a->inputs].name);
	}
	for (size_t i = 0; i < g->n_output; i++)
		if (!read_slot(f, g->output[i], &f->slot[a->inputs + a->outputs++], err))
			return false;
	a->input = f->slot;
	a->output = f->slot + a->inputs;
	return true;
}

static bool read_about(struct onnx_file *f, struct error *err)
{
	const struct onnx_model *m = f->model;
	struct onnx_about *a = &f->about;

	if (!m->graph)
		return error_set(err, ERROR_FORMAT, "%s: there is no graph", f->name);
	if (m->graph->n_sparse_initializer)
		return error_set(err, ERROR_UNSUPPORTED, "%s: the graph has sparse initializers", f->name);
	*a = (struct onnx_about){ .graph = text_of(m->graph->name),
		                  .producer = text_of(m->producer),
		                  .producer_version = text_of(m->producer_version),
		                  .ir_version = m->ir_version,
		                  .nodes = (uint32_t)m->graph->n_node,
		                  .metadata = (uint32_t)m->n_metadata,
		                  .weights = (uint32_t)m->graph->n_initializer };
	for (size_t i = 0; i < m->n_opset; i++)
		if (!text_of(m->opset[i]->domain)[0] || strcmp(m->opset[i]->domain, "ai.onnx") == 0)
			a->opset = m->opset[i]->version;
	return read_slots(f, err);
}

/* ---- open, close */

struct onnx_file *onnx_open_bytes(const char *name, const void *bytes, size_t n, const char *folder, struct error *err)
{
	struct onnx_file *f = calloc(1, sizeof *f);

	if (f)
		f->name = strdup(name);
	if (f && folder)
		f->folder = strdup(folder);
	if (!f || !f->name || (folder && !f->folder)) {
		error_set(err, ERROR_MEMORY, "there is no memory for %s", name);
		onnx_close(f);
		return NULL;
	}
	f->model = proto_decode_model(name, bytes, n, err);
	if (f->model && read_about(f, err))
		return f;
	onnx_close(f);
	return NULL;
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

struct onnx_file *onnx_open(const char *path, struct error *err)
{
	struct onnx_file *out = NULL;
	struct file f;
	void *bytes = NULL;
	char *folder = NULL;

	if (!file_open(&f, path, err))
		return NULL;
	if (f.size > MAX_FILE)
		error_set(err, ERROR_FORMAT, "%s has %" PRIu64 " bytes, expected at most 2 GiB", f.label, f.size);
	else if (!(bytes = malloc((size_t)f.size)) || !(folder = folder_of(path)))
		error_set(err, ERROR_MEMORY, "there is no memory for %s", f.label);
	else if (file_read(&f, 0, (size_t)f.size, bytes, err) && file_same(&f, err))
		out = onnx_open_bytes(f.label, bytes, (size_t)f.size, folder, err);
	free(bytes);
	free(folder);
	file_close(&f);
	return out;
}

void onnx_close(struct onnx_file *f)
{
	if (!f)
		return;
	proto_free_model(f->model);
	free(f->slot);
	free(f->name);
	free(f->folder);
	free(f);
}

const struct onnx_about *onnx_about(const struct onnx_file *f) { return &f->about; }

void onnx_metadata(const struct onnx_file *f, uint32_t i, const char **key, const char **value)
{
	*key = text_of(f->model->metadata[i]->key);
	*value = text_of(f->model->metadata[i]->value);
}

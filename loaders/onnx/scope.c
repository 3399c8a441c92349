/* loaders/onnx/scope.c - the names of a graph, and which value each has. */
#include <stdlib.h>
#include <string.h>

#include "loaders/onnx/import.h"

static struct name_ref name_at(const void *owner, uint32_t item)
{
	const char *const *name = owner;

	return (struct name_ref){ name[item], strlen(name[item]) };
}

static bool make_room(struct scope *s, size_t n, struct error *err)
{
	if (n > IMPORT_MAX_NODES * (size_t)4)
		return error_set(err, ERROR_FORMAT, "%s: a graph has %zu names", s->im->file->name, n);
	s->name = calloc(n + 1, sizeof *s->name);
	s->value = calloc(n + 1, sizeof *s->value);
	s->narrow = calloc(n + 1, sizeof *s->narrow);
	s->initializer = calloc(n + 1, sizeof *s->initializer);
	return (s->name && s->value && s->narrow && s->initializer) ||
	       error_set(err, ERROR_MEMORY, "there is no memory for %s", s->im->file->name);
}

static void add_name(struct scope *s, const char *name)
{
	if (name && name[0])
		s->name[s->names++] = name;
}

/* The names are there: each once. */
static bool build_index(struct scope *s, struct error *err)
{
	if (!names_build(&s->index, s->name, s->names, name_at))
		return error_set(err, ERROR_MEMORY, "there is no memory for %s", s->im->file->name);
	const uint32_t twice = names_duplicate(&s->index);
	return twice == (uint32_t)NAMES_NONE ||
	       error_set(err, ERROR_FORMAT, "%s: two values are called %s", s->im->file->name, s->name[twice]);
}

static size_t outputs_of(struct onnx_node *const *node, size_t n)
{
	size_t outputs = 0;

	for (size_t i = 0; i < n; i++)
		outputs += node[i]->n_output;
	return outputs;
}

static void add_outputs(struct scope *s, struct onnx_node *const *node, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < node[i]->n_output; k++)
			add_name(s, node[i]->output[k]);
}

bool import_scope_of_graph(struct scope *s, struct import *im, const struct scope *outer, const struct onnx_graph *g,
                           struct error *err)
{
	*s = (struct scope){ .im = im, .outer = outer };
	if (!make_room(s, g->n_initializer + g->n_input + outputs_of(g->node, g->n_node), err))
		return false;
	for (size_t i = 0; i < g->n_initializer; i++) {
		if (g->initializer[i]->name && g->initializer[i]->name[0])
			s->initializer[s->names] = g->initializer[i];
		add_name(s, g->initializer[i]->name);
	}
	if (!build_index(s, err))
		return false;
	const uint32_t initializers = s->names;
	for (size_t i = 0; i < g->n_input; i++) {
		const char *name = g->input[i]->name;
		if (name && (!initializers || names_find(&s->index, name, strlen(name)) == (uint32_t)NAMES_NONE))
			add_name(s, name);
	}
	add_outputs(s, g->node, g->n_node);
	names_free(&s->index);
	return build_index(s, err);
}

bool import_scope_of_function(struct scope *s, const struct op *call, const struct onnx_function *f, struct error *err)
{
	*s = (struct scope){ .im = call->im, .function = f, .call = call };
	if (!make_room(s, f->n_input + outputs_of(f->node, f->n_node), err))
		return false;
	for (size_t i = 0; i < f->n_input; i++)
		add_name(s, f->input[i]);
	add_outputs(s, f->node, f->n_node);
	return build_index(s, err);
}

void import_scope_free(struct scope *s)
{
	names_free(&s->index);
	free(s->name);
	free(s->value);
	free(s->narrow);
	free(s->initializer);
}

bool import_scope_set(struct scope *s, const char *name, tensor_value v, uint8_t narrow)
{
	const uint32_t i = s->names ? names_find(&s->index, name, strlen(name)) : (uint32_t)NAMES_NONE;

	if (i == (uint32_t)NAMES_NONE)
		return false;
	s->value[i] = v;
	s->narrow[i] = narrow;
	return true;
}

static tensor_value make_initializer(const struct scope *s, uint32_t i, struct error *err)
{
	struct tensor t;
	char what[300];

	snprintf(what, sizeof what, "%.100s: initializer %.150s", s->im->file->name, s->name[i]);
	if (!onnx_tensor_of(s->initializer[i], what, s->im->file->folder, &t, err))
		return 0;
	s->value[i] = tensor_graph_take(s->im->g, &t, err);
	s->narrow[i] = onnx_narrow_bits(s->initializer[i]->type) ? (uint8_t)s->initializer[i]->type : 0;
	if (s->value[i] && !tensor_graph_name_value(s->im->g, s->value[i], s->name[i], err))
		return 0;
	return s->value[i];
}

static tensor_value find_or_make(const struct scope *s, uint32_t i, const char *name, uint8_t *narrow,
                                 struct error *err)
{
	tensor_value v = s->value[i];

	if (!v && s->initializer[i])
		v = make_initializer(s, i, err);
	else if (!v)
		error_set(err, ERROR_FORMAT, "%s is used before it is made", name);
	if (narrow)
		*narrow = s->narrow[i];
	return v;
}

tensor_value import_scope_find(const struct scope *s, const char *name, uint8_t *narrow, struct error *err)
{
	for (const struct scope *at = s; at; at = at->outer) {
		const uint32_t i = at->names ? names_find(&at->index, name, strlen(name)) : (uint32_t)NAMES_NONE;
		if (i != (uint32_t)NAMES_NONE)
			return import_capture(s->im, at->im, find_or_make(at, i, name, narrow, err), err);
	}
	error_set(err, ERROR_FORMAT, "no value is called %s", name);
	return 0;
}

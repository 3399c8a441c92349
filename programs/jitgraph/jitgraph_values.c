/* programs/jitgraph/jitgraph_values.c - the values of a graph's inputs and outputs: what --input, --random and --out
 * say of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/jitgraph/jitgraph.h"
#include "runtime/host/system.h"

void jitgraph_values_close(struct jitgraph_values *v)
{
	for (size_t i = 0; v->list && i < v->n; i++)
		free(v->list[i].data);
	free(v->list);
	free(v->data);
	*v = (struct jitgraph_values){ .n = 0 };
}

static struct array array_of(const jit_tensor *t)
{
	struct array a = { t->name ? t->name : "", t->type, (unsigned)t->rank, { 0 }, t->elements, t->bytes, NULL };

	memcpy(a.extent, t->dim, sizeof t->dim);
	return a;
}

static bool no_memory(const struct array *a, struct error *err)
{
	return error_set(err, ERROR_MEMORY, "no memory for the %" PRIu64 " bytes of %.100s", a->bytes, a->name);
}

/* The list, with types and shapes, and no data yet. of: jit_graph_input or jit_graph_output. */
static bool begin(struct jitgraph_values *v, const jit_graph *g, size_t n,
                  int (*of)(const jit_graph *g, size_t number, jit_tensor *out, jit_error *err), struct error *err)
{
	const uint64_t available = system_available_memory();
	double all = 0;

	*v = (struct jitgraph_values){ .n = n };
	v->list = calloc(n + 1, sizeof *v->list);
	v->data = calloc(n + 1, sizeof *v->data);
	if (!v->list || !v->data)
		return error_set(err, ERROR_MEMORY, "no memory for a list of arrays");
	for (size_t i = 0; i < n; i++) {
		jit_tensor t = JIT_TENSOR();
		of(g, i, &t, NULL);
		v->list[i] = array_of(&t);
		all += (double)t.bytes;
	}
	return all <= (double)available ||
	       error_set(err, ERROR_MEMORY, "the %s have %.0f bytes, and %" PRIu64 " bytes of memory are free",
	                 of == jit_graph_input ? "inputs" : "outputs", all, available);
}

/* ---- inputs */

static bool is_name(const struct jitgraph_values *v, const char *name)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->list[i].name, name) == 0)
			return true;
	return false;
}

/* Entries name what there is, and nothing twice; files of several arrays need no name. what: "input". */
static bool check_entries(const struct option_list *list, const char *option, const char *what,
                          const struct jitgraph_values *v, struct error *err)
{
	char name[ARRAY_NAME_MAX];

	for (int i = 0; i < list->n; i++) {
		if (!strchr(list->value[i], '=') && jitgraph_is_container(list->value[i]))
			continue;
		if (!array_option_name(option, list->value[i], name, err))
			return false;
		if (!is_name(v, name))
			return error_set(err, ERROR_ARGUMENT, "%s %.100s: the graph has no %s %.64s", option,
			                 list->value[i], what, name);
		for (int j = 0; j < i; j++)
			if (strncmp(list->value[j], list->value[i], strlen(name) + 1) == 0)
				return error_set(err, ERROR_ARGUMENT, "%s %.64s is given twice", option, name);
	}
	return true;
}

static bool take_file(struct array *a, const char *spec, bool *missing, struct error *err)
{
	struct array found;

	if (!jitgraph_read(&found, spec, a->name, missing, err) || (missing && *missing))
		return err->code == ERROR_NONE;
	if (!array_fits(a, spec, array_npy_type(found.type), found.dims, found.extent, err)) {
		free(found.data);
		return false;
	}
	free(a->data);
	a->data = found.data;
	return true;
}

/* From a file of several arrays that has it. */
static bool take_from_containers(struct array *a, bool *taken, struct error *err)
{
	for (int i = 0; i < jitgraph.in.n && !*taken; i++) {
		bool missing = false;
		if (strchr(jitgraph.in.value[i], '=') || !jitgraph_is_container(jitgraph.in.value[i]))
			continue;
		if (!take_file(a, jitgraph.in.value[i], &missing, err))
			return false;
		*taken = !missing;
	}
	return true;
}

static bool take_input(struct array *a, size_t number, struct error *err)
{
	const char *spec = array_given(jitgraph.in.value, jitgraph.in.n, a->name);
	bool taken = false;

	if (!(a->data = calloc(a->bytes ? (size_t)a->bytes : 1, 1)))
		return no_memory(a, err);
	if (spec && (jitgraph_is_container(spec) || strstr(spec, ".pb")))
		return take_file(a, spec, NULL, err);
	if (spec)
		return array_fill(a, "--input", spec, err);
	if (!take_from_containers(a, &taken, err) || taken)
		return taken;
	if (jitgraph.seed < 0)
		return error_set(err, ERROR_ARGUMENT,
		                 "the input %.64s has no values; give --input %.64s=FILE.npy, or --random 1", a->name,
		                 a->name);
	array_fill_random(a, (uint64_t)jitgraph.seed + number);
	return true;
}

bool jitgraph_inputs(struct jitgraph_values *v, const jit_graph *g, struct error *err)
{
	bool ok = begin(v, g, jit_graph_inputs(g), jit_graph_input, err) &&
	          check_entries(&jitgraph.in, "--input", "input", v, err);

	for (size_t i = 0; ok && i < v->n; i++) {
		ok = take_input(&v->list[i], i, err);
		v->data[i] = v->list[i].data;
	}
	return ok;
}

/* ---- outputs */

bool jitgraph_outputs(struct jitgraph_values *v, const jit_graph *g, struct error *err)
{
	if (!begin(v, g, jit_graph_outputs(g), jit_graph_output, err))
		return false;
	for (size_t i = 0; i < v->n; i++) {
		if (!(v->list[i].data = calloc(v->list[i].bytes ? (size_t)v->list[i].bytes : 1, 1)))
			return no_memory(&v->list[i], err);
		v->data[i] = v->list[i].data;
	}
	return true;
}

bool jitgraph_check_names(const jit_graph *g, struct error *err)
{
	struct jitgraph_values v;
	bool ok = begin(&v, g, jit_graph_outputs(g), jit_graph_output, err) &&
	          check_entries(&jitgraph.out, "--out", "output", &v, err) &&
	          check_entries(&jitgraph.expect, "--expect", "output", &v, err);

	jitgraph_values_close(&v);
	return ok;
}

static bool put_one(const struct array *a, const char *spec, struct error *err)
{
	const bool raw = strncmp(spec, "raw:", 4) == 0;

	if (jitgraph_is_container(spec))
		return jitgraph_write_all(spec, a, 1, err);
	return array_write(a, raw ? spec + 4 : spec, raw, err);
}

bool jitgraph_put_outputs(const struct jitgraph_values *v, struct error *err)
{
	for (int i = 0; i < jitgraph.out.n; i++)
		if (!strchr(jitgraph.out.value[i], '=') &&
		    !jitgraph_write_all(jitgraph.out.value[i], v->list, v->n, err))
			return false;
	for (size_t i = 0; i < v->n; i++) {
		const char *spec = array_given(jitgraph.out.value, jitgraph.out.n, v->list[i].name);
		if (spec && !put_one(&v->list[i], spec, err))
			return false;
		if (!jitgraph.quiet)
			array_print(&v->list[i]);
	}
	return true;
}

/* runtime/graph/executable.c - a graph as kernels, opened and run. */
#include "runtime/graph/executable_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "graph/passes.h"
#include "runtime/host/system.h"
#include "runtime/kernels/compute.h"

bool executable_took(int status, const jit_error *from, struct error *err)
{
	if (status == JIT_OK)
		return true;
	return error_set(err, status == JIT_ERROR_CANCELLED ? ERROR_CANCELLED : ERROR_DEVICE, "%s", from->message);
}

static bool is_constant(const struct executable *x, tensor_value v)
{
	const struct tensor_node *n = tensor_node_of(&x->g, v);

	return n && n->op == OP_constant;
}

jit_buffer *executable_locate(const struct executable *x, tensor_value v, uint64_t *at)
{
	v = partition_root(&x->p, &x->g, v);
	if (x->binding[v].is) {
		*at = x->binding[v].at;
		return x->binding[v].buffer;
	}
	*at = is_constant(x, v) ? x->constant_at[v] : x->arena.at[v];
	return is_constant(x, v) ? x->constants : x->memory;
}

uint64_t executable_bytes_of(const struct executable *x, tensor_value v)
{
	const struct tensor_value_info *i = &x->g.value[v];

	return shape_elements(&i->shape) * tensor_type_bytes(i->type);
}

/* ---- opening */

static uint64_t rounded(uint64_t bytes) { return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN; }

static uint64_t prepared_bytes(const struct executable *x, const struct prepared *p)
{
	return p->elements * tensor_type_bytes(x->g.value[p->from].type);
}

/* Lanes of a CPU's kernels; 0: kernels run elsewhere. */
static unsigned cpu_lanes(const jit_compute *c)
{
	return c->device->facts.host_runs ? c->device->facts.target->lanes : 0;
}

/* Whether language/lower_kept.c does there what it says: on NVIDIA cards. */
static bool keeps_rows(const jit_compute *c)
{
	return !c->device->facts.host_runs && !c->device->facts.interprets && !c->device->facts.target->vector_file;
}

static bool write_sources(struct executable *x, struct error *err)
{
	bool ok = true;

	x->step = calloc(x->p.groups + (size_t)1, sizeof *x->step);
	if (!x->step)
		return error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	for (uint32_t i = 0; i < x->p.groups; i++)
		x->step[i].group = &x->p.group[i];
	for (uint32_t i = 0; ok && i < x->p.groups; i++)
		if (!x->p.group[i].host && x->g.node[x->p.group[i].node].op != OP_scan &&
		    (executable_bytes_of(x, x->g.node[x->p.group[i].node].first) > 0 ||
		     x->g.node[x->p.group[i].node].op == OP_kernel))
			ok = source_write(&x->step[i].source, &x->g, &x->p, &x->p.group[i], cpu_lanes(x->compute),
			                  keeps_rows(x->compute), err);
	return ok;
}

static void need(const struct executable *x, tensor_value v)
{
	x->constant_needed[partition_root(&x->p, &x->g, v)] = true;
}

/* Which constants are needed, and how much memory steps work in. */
static void find_needs(struct executable *x)
{
	uint64_t max[PREPARED_MAX] = { 0 };

	for (uint32_t i = 0; i < x->p.groups; i++) {
		const struct source *s = &x->step[i].source;
		const struct tensor_node *n = &x->g.node[x->p.group[i].node];
		for (unsigned k = 0; k < s->reads; k++)
			need(x, s->read[k]);
		for (uint32_t k = 0; (x->p.group[i].host || n->op == OP_scan) && k < n->operands; k++)
			if (n->op != OP_scan || !looping_constant(x, n, k))
				need(x, n->operand[k]);
		for (unsigned k = 0; k < s->n_prepared; k++) {
			const tensor_value from = partition_root(&x->p, &x->g, s->prepared[k].from);
			const uint64_t bytes = is_constant(x, from) ? 0 : rounded(prepared_bytes(x, &s->prepared[k]));
			max[k] = bytes > max[k] ? bytes : max[k];
		}
	}
	for (uint32_t i = 0; i < x->g.outputs; i++)
		need(x, x->g.output[i]);
	x->memory_bytes = x->arena.bytes;
	for (unsigned k = 0; k < PREPARED_MAX; k++) {
		x->scratch_at[k] = x->memory_bytes;
		x->memory_bytes += max[k];
	}
}

/* The text lives as long as the executable. users: whose kernel and constants it has; NULL: it has one, and none. */
static bool open_part(struct executable *x, struct part *p, const char *text, const struct source *users,
                      struct error *err)
{
	jit_error e = { 0 };

	p->kernel = executable_kernel(x, text, users, err);
	if (!p->kernel)
		return false;
	p->launch = jit_launch_open(p->kernel, &e);
	return p->launch || executable_took(JIT_ERROR_DEVICE, &e, err);
}

static void close_part(struct part *p)
{
	jit_launch_close(p->launch);
	*p = (struct part){ 0 };
}

bool executable_set_value(struct executable *x, struct part *p, unsigned parameter, tensor_value v, struct error *err)
{
	jit_error e = { 0 };
	uint64_t at;
	jit_buffer *b = executable_locate(x, v, &at);

	return !b || executable_took(jit_launch_set_buffer(p->launch, parameter, b, at, &e), &e, err);
}

/* What an earlier step has prepared of the same constant in the same way. */
static jit_buffer *prepared_before(const struct executable *x, const struct step *step, const struct prepared *p)
{
	const tensor_value root = partition_root(&x->p, &x->g, p->from);

	for (const struct step *s = x->step; s < step; s++)
		for (unsigned k = 0; k < s->source.n_prepared; k++)
			if (s->made[k] && partition_root(&x->p, &x->g, s->source.prepared[k].from) == root &&
			    strcmp(s->source.prepared[k].text, p->text) == 0)
				return s->made[k];
	return NULL;
}

/* Of a constant once and for all. */
static bool prepare_constant(struct executable *x, struct step *step, unsigned k, struct error *err)
{
	const struct prepared *p = &step->source.prepared[k];
	const struct tensor *t = tensor_node_of(&x->g, partition_root(&x->p, &x->g, p->from))->constant;
	struct part *part = &step->prepare[k];
	jit_error e = { 0 };

	step->made[k] = jit_buffer_open(x->compute, prepared_bytes(x, p), &e);
	if (!step->made[k])
		return error_set(err, ERROR_MEMORY, "%s", e.message);
	x->constant_bytes += prepared_bytes(x, p);
	const bool ok =
		executable_took(jit_launch_set_memory(part->launch, 0, t->data, tensor_bytes(t), &e), &e, err) &&
		executable_took(jit_launch_set_buffer(part->launch, 1, step->made[k], 0, &e), &e, err) &&
		executable_took(jit_launch_run(part->launch, &e), &e, err);
	close_part(part);
	return ok;
}

static bool open_prepared(struct executable *x, struct step *step, unsigned k, struct error *err)
{
	const struct source *s = &step->source;
	const tensor_value from = s->prepared[k].from;
	const bool constant = is_constant(x, partition_root(&x->p, &x->g, from));
	struct part *p = &step->prepare[k];
	jit_error e = { 0 };

	step->made[k] = constant ? prepared_before(x, step, &s->prepared[k]) : NULL;
	step->borrowed[k] = step->made[k] != NULL;
	bool ok = step->made[k] || open_part(x, p, s->prepared[k].text, NULL, err);
	if (ok && constant && !step->made[k])
		ok = prepare_constant(x, step, k, err);
	else if (ok && !constant)
		ok = executable_set_value(x, p, 0, from, err) &&
		     executable_took(jit_launch_set_buffer(p->launch, 1, x->memory, x->scratch_at[k], &e), &e, err);
	jit_buffer *b = step->made[k] ? step->made[k] : x->memory;
	return ok && executable_took(jit_launch_set_buffer(step->main.launch, s->reads + k, b,
	                                                   step->made[k] ? 0 : x->scratch_at[k], &e),
	                             &e, err);
}

static bool open_step(struct executable *x, struct step *step, struct error *err)
{
	const struct tensor_node *n = &x->g.node[step->group->node];
	const struct source *s = &step->source;

	if (n->op == OP_scan)
		return (step->loop = looping_open(x, n, err)) != NULL;
	if (!s->text.n)
		return true;
	bool ok = open_part(x, &step->main, s->text.p, s->is_users ? s : NULL, err);

	for (unsigned i = 0; ok && i < s->reads; i++)
		ok = executable_set_value(x, &step->main, i, s->read[i], err);
	for (unsigned k = 0; ok && k < s->n_prepared; k++)
		ok = open_prepared(x, step, k, err);
	return ok && (s->is_users || executable_set_value(x, &step->main, s->reads + s->n_prepared, n->first, err));
}

static bool open_steps(struct executable *x, struct error *err)
{
	const double begin = system_seconds();
	bool ok = true;

	if (!x->aside)
		executable_make_kernels(x);
	for (uint32_t i = 0; ok && i < x->p.groups; i++)
		ok = open_step(x, &x->step[i], err);
	ok = ok && executable_list_steps(x, err);
	for (size_t i = 0; i < x->n_opened; i++)
		x->generated += x->opened[i].kernel && x->opened[i].kernel->source == KERNEL_GENERATED;
	x->code_ns = (uint64_t)((system_seconds() - begin) * 1e9);
	return ok;
}

/* Constants stay on the device, one behind the other. */
static bool write_constants(struct executable *x, struct error *err)
{
	jit_error e = { 0 };

	for (tensor_value v = 1; v < x->g.values; v++)
		if (is_constant(x, v) && x->constant_needed[v]) {
			x->constant_at[v] = x->constant_bytes;
			x->constant_bytes += rounded(executable_bytes_of(x, v));
		}
	x->constants = jit_buffer_open(x->compute, x->constant_bytes ? x->constant_bytes : ARENA_ALIGN, &e);
	if (!x->constants)
		return error_set(err, ERROR_MEMORY, "%s", e.message);
	for (tensor_value v = 1; v < x->g.values; v++)
		if (is_constant(x, v) && x->constant_needed[v] && executable_bytes_of(x, v) &&
		    !executable_took(jit_buffer_write(x->constants, x->constant_at[v],
		                                      tensor_node_of(&x->g, v)->constant->data,
		                                      executable_bytes_of(x, v), &e),
		                     &e, err))
			return false;
	return true;
}

/* Memory that a host gives when it is written to would end the process late. */
static bool fits(const struct executable *x, struct error *err)
{
	const uint64_t available = system_available_memory();
	uint64_t constants = 0;

	for (tensor_value v = 1; v < x->g.values; v++)
		if (is_constant(x, v) && x->constant_needed[v])
			constants += rounded(executable_bytes_of(x, v));
	return !cpu_lanes(x->compute) || (x->memory_bytes <= available && constants <= available - x->memory_bytes) ||
	       error_set(err, ERROR_MEMORY,
	                 "the graph needs %" PRIu64 " bytes for values and %" PRIu64 " for constants, and %" PRIu64
	                 " bytes of memory are free",
	                 x->memory_bytes, constants, available);
}

static bool open_memory(struct executable *x, struct error *err)
{
	jit_error e = { 0 };

	x->constant_at = calloc(x->g.values, sizeof *x->constant_at);
	x->constant_needed = calloc(x->g.values, sizeof *x->constant_needed);
	if (!x->constant_at || !x->constant_needed)
		return error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	find_needs(x);
	if (!fits(x, err))
		return false;
	x->memory = jit_buffer_open(x->compute, x->memory_bytes ? x->memory_bytes : ARENA_ALIGN, &e);
	return x->memory ? write_constants(x, err) : error_set(err, ERROR_MEMORY, "%s", e.message);
}

/* bound NULL: no input is. */
static bool open_values(struct executable *x, const struct tensor_graph *g, const bool bound[], struct error *err)
{
	/* Tiles lay the operands of products out themselves. */
	const unsigned all = (1u << PASSES) - 1, passes = cpu_lanes(x->compute) ? all & ~(1u << PASS_PRODUCTS) : all;
	bool ok = passes_run_some(&x->g, g, passes, err) && partition_make(&x->p, &x->g, cpu_lanes(x->compute), err);
	bool *outside = ok ? calloc(x->g.values, sizeof *outside) : NULL;

	x->binding = ok ? calloc(x->g.values, sizeof *x->binding) : NULL;
	if (ok && (!outside || !x->binding))
		ok = error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	for (uint32_t i = 0; ok && bound && i < x->g.inputs; i++)
		x->binding[x->g.input[i]].is = outside[x->g.input[i]] = bound[i];
	ok = ok && arena_make(&x->arena, &x->g, &x->p, outside, err);
	free(outside);
	return ok;
}

struct executable *executable_open(jit_compute *c, const struct tensor_graph *g, struct error *err)
{
	return executable_open_bound(c, g, NULL, err);
}

static struct executable *open_with(jit_compute *c, const struct tensor_graph *g, const bool bound[], bool aside,
                                    struct error *err)
{
	struct executable *x = calloc(1, sizeof *x);

	if (!x) {
		error_set(err, ERROR_MEMORY, "there is no memory for a graph");
		return NULL;
	}
	x->compute = c;
	x->aside = aside;
	tensor_graph_init(&x->g);
	if (open_values(x, g, bound, err) && write_sources(x, err) && open_memory(x, err) && open_steps(x, err)) {
		tensor_graph_forget(&x->g);
		return x;
	}
	executable_close(x);
	return NULL;
}

struct executable *executable_open_bound(jit_compute *c, const struct tensor_graph *g, const bool bound[],
                                         struct error *err)
{
	return open_with(c, g, bound, false, err);
}

struct executable *executable_open_aside(jit_compute *c, const struct tensor_graph *g, struct error *err)
{
	return open_with(c, g, NULL, true, err);
}

void executable_close(struct executable *x)
{
	if (!x)
		return;
	for (uint32_t i = 0; x->step && i < x->p.groups; i++) {
		struct step *step = &x->step[i];
		launch_list_close(step->list);
		close_part(&step->main);
		looping_close(step->loop);
		for (unsigned k = 0; k < PREPARED_MAX; k++) {
			close_part(&step->prepare[k]);
			if (!step->borrowed[k])
				jit_buffer_close(step->made[k]);
		}
		source_free(&step->source);
	}
	for (size_t i = 0; i < x->n_opened; i++)
		jit_kernel_close(x->opened[i].kernel);
	free(x->opened);
	if (!x->is_lent)
		jit_buffer_close(x->memory);
	jit_buffer_close(x->constants);
	free(x->step);
	free(x->constant_at);
	free(x->constant_needed);
	free(x->binding);
	arena_free(&x->arena);
	partition_free(&x->p);
	tensor_graph_free(&x->g);
	free(x);
}

static bool bind_step(struct executable *x, struct step *step, tensor_value v, struct error *err)
{
	const struct source *s = &step->source;
	bool ok = true;

	for (unsigned k = 0; ok && step->main.launch && k < s->reads; k++)
		if (partition_root(&x->p, &x->g, s->read[k]) == v)
			ok = executable_set_value(x, &step->main, k, v, err);
	for (unsigned k = 0; ok && k < s->n_prepared; k++)
		if (partition_root(&x->p, &x->g, s->prepared[k].from) == v)
			ok = executable_set_value(x, &step->prepare[k], 0, v, err);
	if (ok && step->main.launch && !s->is_users && x->g.node[step->group->node].first == v)
		ok = executable_set_value(x, &step->main, s->reads + s->n_prepared, v, err);
	return ok;
}

bool executable_bind_value(struct executable *x, tensor_value v, jit_buffer *b, uint64_t at, struct error *err)
{
	bool ok = true;

	x->binding[v] = (struct binding){ true, b, at };
	for (uint32_t i = 0; ok && i < x->p.groups; i++)
		ok = bind_step(x, &x->step[i], v, err);
	return ok;
}

bool executable_bind(struct executable *x, uint32_t input, jit_buffer *b, uint64_t at, struct error *err)
{
	const tensor_value v = input < x->g.inputs ? x->g.input[input] : 0;

	if (!v || !x->binding[v].is)
		return error_set(err, ERROR_ARGUMENT, "input %u is not bound", input);
	return executable_bind_value(x, v, b, at, err);
}

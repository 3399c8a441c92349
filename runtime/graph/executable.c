/* runtime/graph/executable.c - a graph as kernels, opened and run. */
#include "runtime/graph/executable.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "graph/passes.h"
#include "runtime/graph/arena.h"
#include "runtime/graph/source.h"
#include "runtime/host/system.h"

struct step {
	const struct group *group;
	jit_kernel *kernel;
	jit_launch *launch;
	char *text;         /* the kernel's */
	tensor_value *read; /* its parameters before the result */
	unsigned reads;
};

/* An input that is somewhere else. */
struct binding {
	bool is;
	jit_buffer *buffer; /* NULL: nobody has said where, yet */
	uint64_t at;
};

struct executable {
	jit_compute *compute;
	struct tensor_graph g;
	struct partition p;
	struct arena arena;
	struct step *step;
	jit_buffer *memory, *constants;
	uint64_t *constant_at;   /* of each value, in `constants` */
	struct binding *binding; /* of each value */
	uint64_t constant_bytes, generated, code_ns, last_ns;
};

static bool took(int status, const jit_error *from, struct error *err)
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

/* Where a value's bytes are. */
static jit_buffer *place_of(const struct executable *x, tensor_value v, uint64_t *at)
{
	v = partition_root(&x->p, &x->g, v);
	if (x->binding[v].is) {
		*at = x->binding[v].at;
		return x->binding[v].buffer;
	}
	*at = is_constant(x, v) ? x->constant_at[v] : x->arena.at[v];
	return is_constant(x, v) ? x->constants : x->memory;
}

static uint64_t bytes_of(const struct executable *x, tensor_value v)
{
	const struct tensor_value_info *i = &x->g.value[v];

	return shape_elements(&i->shape) * tensor_type_bytes(i->type);
}

/* ---- opening */

static bool open_kernel(struct executable *x, struct step *step, struct source *s, struct error *err)
{
	jit_error e = { 0 };

	bytes_add(&s->text, "", 1);
	step->text = s->text.lost ? NULL : strdup(s->text.p);
	if (!step->text)
		return error_set(err, ERROR_MEMORY, "there is no memory for the text of a kernel");
	step->kernel = jit_kernel_open(x->compute, &JIT_KERNEL_OPTIONS(.source = step->text, .path = "graph"), &e);
	if (!step->kernel)
		return error_set(err, ERROR_DEVICE, "%.400s", e.message);
	step->launch = jit_launch_open(step->kernel, &e);
	bool ok = step->launch || took(JIT_ERROR_DEVICE, &e, err);
	step->read = ok ? calloc(s->reads + (size_t)1, sizeof *step->read) : NULL;
	if (ok && !step->read)
		return error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	for (unsigned i = 0; ok && i <= s->reads; i++) {
		const tensor_value v = i < s->reads ? s->read[i] : x->g.node[step->group->node].first;
		uint64_t at;
		jit_buffer *b = place_of(x, v, &at);
		step->read[i] = v;
		ok = !b || took(jit_launch_set_buffer(step->launch, i, b, at, &e), &e, err);
	}
	step->reads = s->reads;
	return ok;
}

static bool open_steps(struct executable *x, struct error *err)
{
	const double begin = system_seconds();
	jit_compute_info before = JIT_COMPUTE_INFO(), after = JIT_COMPUTE_INFO();
	bool ok = true;

	jit_compute_get_info(x->compute, &before, NULL);
	x->step = calloc(x->p.groups + (size_t)1, sizeof *x->step);
	if (!x->step)
		return error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	for (uint32_t i = 0; ok && i < x->p.groups; i++) {
		struct step *step = &x->step[i];
		struct source s;
		step->group = &x->p.group[i];
		if (step->group->host || bytes_of(x, x->g.node[step->group->node].first) == 0)
			continue;
		ok = source_write(&s, &x->g, &x->p, step->group, err) && open_kernel(x, step, &s, err);
		source_free(&s);
	}
	jit_compute_get_info(x->compute, &after, NULL);
	x->generated = after.generated - before.generated;
	x->code_ns = (uint64_t)((system_seconds() - begin) * 1e9);
	return ok;
}

/* Constants stay on the device, one behind the other. */
static bool write_constants(struct executable *x, struct error *err)
{
	jit_error e = { 0 };

	x->constant_at = calloc(x->g.values, sizeof *x->constant_at);
	if (!x->constant_at)
		return error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	for (tensor_value v = 1; v < x->g.values; v++)
		if (is_constant(x, v)) {
			x->constant_at[v] = x->constant_bytes;
			x->constant_bytes += (bytes_of(x, v) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
		}
	x->constants = jit_buffer_open(x->compute, x->constant_bytes ? x->constant_bytes : ARENA_ALIGN, &e);
	if (!x->constants)
		return error_set(err, ERROR_MEMORY, "%s", e.message);
	for (tensor_value v = 1; v < x->g.values; v++)
		if (is_constant(x, v) && bytes_of(x, v) &&
		    !took(jit_buffer_write(x->constants, x->constant_at[v], tensor_node_of(&x->g, v)->constant->data,
		                           bytes_of(x, v), &e),
		          &e, err))
			return false;
	return true;
}

/* bound NULL: no input is. */
static bool open_values(struct executable *x, const struct tensor_graph *g, const bool bound[], struct error *err)
{
	bool ok = passes_run(&x->g, g, err) && partition_make(&x->p, &x->g, err);
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

struct executable *executable_open_bound(jit_compute *c, const struct tensor_graph *g, const bool bound[],
                                         struct error *err)
{
	struct executable *x = calloc(1, sizeof *x);
	jit_error e = { 0 };

	if (!x) {
		error_set(err, ERROR_MEMORY, "there is no memory for a graph");
		return NULL;
	}
	x->compute = c;
	tensor_graph_init(&x->g);
	bool ok = open_values(x, g, bound, err) && write_constants(x, err);
	if (ok) {
		x->memory = jit_buffer_open(c, x->arena.bytes ? x->arena.bytes : ARENA_ALIGN, &e);
		ok = x->memory || error_set(err, ERROR_MEMORY, "%s", e.message);
	}
	if (ok && open_steps(x, err))
		return x;
	executable_close(x);
	return NULL;
}

void executable_close(struct executable *x)
{
	if (!x)
		return;
	for (uint32_t i = 0; x->step && i < x->p.groups; i++) {
		jit_launch_close(x->step[i].launch);
		jit_kernel_close(x->step[i].kernel);
		free(x->step[i].text);
		free(x->step[i].read);
	}
	jit_buffer_close(x->memory);
	jit_buffer_close(x->constants);
	free(x->step);
	free(x->constant_at);
	free(x->binding);
	arena_free(&x->arena);
	partition_free(&x->p);
	tensor_graph_free(&x->g);
	free(x);
}

bool executable_bind(struct executable *x, uint32_t input, jit_buffer *b, uint64_t at, struct error *err)
{
	const tensor_value v = input < x->g.inputs ? x->g.input[input] : 0;
	jit_error e = { 0 };

	if (!v || !x->binding[v].is)
		return error_set(err, ERROR_ARGUMENT, "input %u is not bound", input);
	x->binding[v].buffer = b;
	x->binding[v].at = at;
	for (uint32_t i = 0; i < x->p.groups; i++) {
		const struct step *step = &x->step[i];
		for (unsigned k = 0; step->launch && k < step->reads; k++)
			if (partition_root(&x->p, &x->g, step->read[k]) == v &&
			    !took(jit_launch_set_buffer(step->launch, k, b, at, &e), &e, err))
				return false;
	}
	return true;
}

/* ---- runs */

static bool fetch(const struct executable *x, tensor_value v, void *to, struct error *err)
{
	jit_error e = { 0 };
	uint64_t at;
	jit_buffer *b = place_of(x, v, &at);

	return bytes_of(x, v) == 0 || took(jit_buffer_read(b, at, to, bytes_of(x, v), &e), &e, err);
}

static bool put(const struct executable *x, tensor_value v, const void *from, struct error *err)
{
	jit_error e = { 0 };
	uint64_t at;
	jit_buffer *b = place_of(x, v, &at);

	return bytes_of(x, v) == 0 || took(jit_buffer_write(b, at, from, bytes_of(x, v), &e), &e, err);
}

/* A group without a kernel. */
static bool run_on_host(const struct executable *x, const struct tensor_node *n, struct error *err)
{
	struct tensor in[TENSOR_MAX_OPERANDS], out[TENSOR_MAX_RESULTS];
	const struct tensor *operand[TENSOR_MAX_OPERANDS];
	uint32_t made = 0;
	bool ok = true;

	for (; ok && made < n->operands; made += ok) {
		const struct tensor_value_info *v = &x->g.value[n->operand[made]];
		ok = tensor_make(&in[made], v->type, &v->shape, err);
		operand[made] = &in[made];
	}
	for (uint32_t i = 0; ok && i < made; i++)
		ok = fetch(x, n->operand[i], in[i].data, err);
	ok = ok && tensor_node_eval(&x->g, n, operand, out, err);
	for (uint32_t i = 0; ok && i < n->results; i++)
		put(x, n->first + i, out[i].data, err);
	for (uint32_t i = 0; ok && i < n->results; i++)
		tensor_free(&out[i]);
	for (uint32_t i = 0; i < made; i++)
		tensor_free(&in[i]);
	return ok && err->code == ERROR_NONE;
}

bool executable_run(struct executable *x, const void *const in[], void *const out[], struct error *err)
{
	const double begin = system_seconds();
	jit_error e = { 0 };

	for (uint32_t i = 0; i < x->g.inputs; i++)
		if (!x->binding[x->g.input[i]].is && !put(x, x->g.input[i], in[i], err))
			return false;
	for (uint32_t i = 0; i < x->p.groups; i++) {
		const struct step *step = &x->step[i];
		if (step->launch && !took(jit_launch_run(step->launch, &e), &e, err))
			return false;
		if (step->group->host && !run_on_host(x, &x->g.node[step->group->node], err))
			return false;
	}
	for (uint32_t i = 0; i < x->g.outputs; i++)
		if (out[i] && !fetch(x, x->g.output[i], out[i], err))
			return false;
	x->last_ns = (uint64_t)((system_seconds() - begin) * 1e9);
	return true;
}

/* ---- reports */

void executable_get_report(const struct executable *x, struct executable_report *out)
{
	*out = (struct executable_report){
		.kernels = x->p.kernels,
		.hosted = x->p.groups - x->p.kernels,
		.generated = x->generated,
		.code_ns = x->code_ns,
		.arena_bytes = x->arena.bytes,
		.constant_bytes = x->constant_bytes,
		.value_bytes = x->arena.all_bytes,
		.last_ns = x->last_ns
	};
}

void executable_print(const struct executable *x, FILE *out, bool text)
{
	for (uint32_t i = 0; i < x->p.groups; i++) {
		const struct step *step = &x->step[i];
		const struct tensor_node *n = &x->g.node[step->group->node];
		const struct tensor_value_info *v = &x->g.value[n->first];
		jit_kernel_report r = JIT_KERNEL_REPORT();
		char shape[SHAPE_TEXT_MAX];
		fprintf(out, "%s %s: ", tensor_ops[n->op].name, shape_text(v->type, &v->shape, shape));
		if (step->group->host)
			fprintf(out, "interpreted on the host: the operation has no kernel yet\n");
		else if (!step->kernel)
			fprintf(out, "no elements\n");
		else if (jit_kernel_get_report(step->kernel, &r, NULL) == JIT_OK)
			fprintf(out, "%s, %" PRIu64 " bytes of code, %s; last run %.3f ms\n",
			        r.runs == JIT_RUNS_NATIVE ? "native" : "interpreted", r.code_bytes, r.key,
			        (double)r.last_ns / 1e6);
		if (text && step->text)
			fputs(step->text, out);
	}
}

const struct tensor_graph *executable_graph(const struct executable *x) { return &x->g; }

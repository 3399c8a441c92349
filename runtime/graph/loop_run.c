/* runtime/graph/loop_run.c - scan on a device. See loop_run.h. */
#include "runtime/graph/loop_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/graph/loop_rounds.h"

/* ---- opening */

const struct tensor *looping_constant(const struct executable *x, const struct tensor_node *n, uint32_t operand)
{
	const int64_t own =
		tensor_node_whole(n, ATTRIBUTE_carried, 0, 0) + tensor_node_whole(n, ATTRIBUTE_stacked, 0, 0);
	const struct tensor_node *by = tensor_node_of(&x->g, partition_root(&x->p, &x->g, n->operand[operand]));

	return operand >= own && by && by->op == OP_constant ? by->constant : NULL;
}

/* An input of the body, or the constant that it is: such are laid out once, and not in each iteration. */
static tensor_value body_input(struct looping *l, struct tensor_graph *to, uint32_t operand, struct error *err)
{
	const struct tensor *t = looping_constant(l->around, l->n, operand);
	const struct tensor_value_info *v = &l->of.body.value[l->of.body.input[operand]];
	char name[24];

	l->input[operand] = t ? LOOP_CONSTANT : to->inputs;
	if (t) {
		struct tensor own = *t;
		own.shape = v->shape;
		own.type = v->type;
		return tensor_graph_lend(to, &own, err);
	}
	snprintf(name, sizeof name, "i%u", operand);
	return tensor_graph_input(to, name, v->type, &v->shape, err);
}

static bool give_constants(struct looping *l, struct error *err)
{
	tensor_value in[TENSOR_MAX_OPERANDS], out[TENSOR_MAX_RESULTS];
	struct tensor_graph to;
	char name[24];
	bool ok = true;

	tensor_graph_init(&to);
	for (uint32_t i = 0; ok && i < l->n->operands; i++)
		ok = (in[i] = body_input(l, &to, i, err)) != 0;
	ok = ok && graph_inline(&to, &l->of.body, in, out, err);
	for (uint32_t i = 0; ok && i < l->of.body.outputs; i++) {
		snprintf(name, sizeof name, "o%u", i);
		ok = tensor_graph_output(&to, name, out[i], err);
	}
	tensor_graph_free(&l->of.body);
	l->of.body = to;
	return ok;
}

/* What is carried may be given on as it is, and to another location: then it is copied before others are written. */
static bool keep_apart(struct loop *l, struct error *err)
{
	for (uint32_t i = 0; i < l->carried; i++) {
		tensor_value v = l->body.output[i];
		const struct tensor_node *by = tensor_node_of(&l->body, v);
		while (by && (by->op == OP_reshape || by->op == OP_bitcast)) {
			v = by->operand[0];
			by = tensor_node_of(&l->body, v);
		}
		if (by)
			continue;
		const struct attribute none = { ATTRIBUTE_axes, 0, NULL, 0 };
		l->body.output[i] = tensor_graph_add(&l->body, OP_reverse, &l->body.output[i], 1, &none, 1, err);
		if (!l->body.output[i])
			return false;
	}
	return true;
}

static bool open_body(struct looping *l, struct error *err)
{
	bool bound[TENSOR_MAX_OPERANDS];

	memset(bound, true, sizeof bound);
	l->mover = calloc(l->of.body.outputs + (size_t)1, sizeof *l->mover);
	if (!l->mover)
		return error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	l->body = executable_open_bound(l->around->compute, &l->of.body, bound, err);
	return l->body != NULL;
}

struct looping *looping_open(struct executable *x, const struct tensor_node *n, struct error *err)
{
	struct looping *l = calloc(1, sizeof *l);

	if (!l) {
		error_set(err, ERROR_MEMORY, "there is no memory for a graph");
		return NULL;
	}
	l->around = x;
	l->n = n;
	if (loop_of(&l->of, &x->g, n, err) && give_constants(l, err) && keep_apart(&l->of, err) && open_body(l, err) &&
	    loop_rounds_open(l, err)) {
		tensor_graph_forget(&l->of.body);
		return l;
	}
	looping_close(l);
	return NULL;
}

void looping_close(struct looping *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; l->mover && i < l->of.body.outputs; i++) {
		jit_launch_close(l->mover[i].launch);
		jit_kernel_close(l->mover[i].kernel);
	}
	free(l->mover);
	loop_rounds_close(l);
	executable_close(l->body);
	loop_close(&l->of);
	free(l);
}

const struct executable *looping_body(const struct looping *l) { return l->body; }

/* ---- iterations */

struct location looping_location(const struct executable *x, tensor_value v)
{
	struct location p;

	p.buffer = executable_locate(x, v, &p.at);
	return p;
}

static bool took(int status, const jit_error *e, struct error *err)
{
	return status == JIT_OK ||
	       error_set(err, status == JIT_ERROR_CANCELLED ? ERROR_CANCELLED : ERROR_DEVICE, "%s", e->message);
}

static bool open_mover(struct looping *l, struct mover *m, uint64_t bytes, struct error *err)
{
	const char *type = bytes % 4 ? "u8" : "u32";
	const uint64_t n = bytes % 4 ? bytes : bytes / 4;
	char text[200];
	jit_error e = { 0 };

	snprintf(text, sizeof text,
	         "kernel move_(in %s from[%" PRIu64 "], out %s to[%" PRIu64 "]) over (i in %" PRIu64
	         ") { to[i] = from[i]; }\n",
	         type, n, type, n, n);
	m->kernel = jit_kernel_open(l->around->compute, &JIT_KERNEL_OPTIONS(.source = text, .path = "graph"), &e);
	m->launch = m->kernel ? jit_launch_open(m->kernel, &e) : NULL;
	m->bytes = bytes;
	return m->launch || took(JIT_ERROR_DEVICE, &e, err);
}

bool looping_move(struct looping *l, struct mover *m, struct location from, struct location to, uint64_t bytes,
                  struct error *err)
{
	char *source = jit_buffer_memory(from.buffer), *target = jit_buffer_memory(to.buffer);
	jit_error e = { 0 };

	if (bytes == 0)
		return true;
	if (source && target) {
		memmove(target + to.at, source + from.at, (size_t)bytes);
		return true;
	}
	if (!m->launch && !open_mover(l, m, bytes, err))
		return false;
	return took(jit_launch_set_buffer(m->launch, 0, from.buffer, from.at, &e), &e, err) &&
	       took(jit_launch_set_buffer(m->launch, 1, to.buffer, to.at, &e), &e, err) &&
	       took(jit_launch_run(m->launch, &e), &e, err);
}

uint64_t looping_bytes(const struct looping *l, tensor_value v)
{
	const struct tensor_value_info *i = &l->of.body.value[v];

	return shape_elements(&i->shape) * tensor_type_bytes(i->type);
}

/* Binds what the body is given in the iteration with that index. first: what stays from iteration to iteration, too. */
static bool bind(struct looping *l, uint64_t at, bool first, struct error *err)
{
	for (uint32_t i = 0; i < l->n->operands; i++) {
		const bool stacked = i >= l->of.carried && i < l->of.carried + l->of.stacked;
		struct location p = looping_location(l->around, i < l->of.carried ? l->n->first + i : l->n->operand[i]);
		if (stacked)
			p.at += at * looping_bytes(l, l->of.body.input[i]);
		if (l->input[i] != LOOP_CONSTANT && (first || stacked) &&
		    !executable_bind(l->body, l->input[i], p.buffer, p.at, err))
			return false;
	}
	return true;
}

/* Slices first: one may be what is carried, as it was before the iteration. */
static bool keep(struct looping *l, uint64_t at, struct error *err)
{
	const uint32_t outputs = l->of.body.outputs;
	bool ok = true;

	for (uint32_t k = 0; ok && k < outputs; k++) {
		const uint32_t i = (k + l->of.carried) % outputs;
		const uint64_t bytes = looping_bytes(l, l->of.body.output[i]);
		struct location to = looping_location(l->around, l->n->first + i);
		if (i >= l->of.carried)
			to.at += at * bytes;
		ok = looping_move(l, &l->mover[i], looping_location(l->body, l->body->g.output[i]), to, bytes, err);
	}
	return ok;
}

bool looping_run(struct looping *l, struct error *err)
{
	const void *in[TENSOR_MAX_OPERANDS] = { 0 };
	void *out[TENSOR_MAX_RESULTS] = { 0 };
	bool ok = true;

	if (l->rounds.list && l->of.length)
		return loop_rounds_run(l, err);
	for (uint32_t i = 0; ok && i < l->of.carried; i++)
		ok = looping_move(l, &l->mover[i], looping_location(l->around, l->n->operand[i]),
		                  looping_location(l->around, l->n->first + i), looping_bytes(l, l->of.body.input[i]),
		                  err);
	for (uint64_t i = 0; ok && i < l->of.length; i++) {
		const uint64_t at = loop_index(&l->of, i);
		ok = bind(l, at, i == 0, err) && executable_run(l->body, in, out, err) && keep(l, at, err);
	}
	return ok;
}

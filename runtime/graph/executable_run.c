/* runtime/graph/executable_run.c - runs of an executable: its steps, one behind the other. */
#include <stdlib.h>

#include "graph/eval.h"
#include "runtime/graph/executable_state.h"
#include "runtime/host/system.h"

static bool fetch(const struct executable *x, tensor_value v, void *to, struct error *err)
{
	jit_error e = { 0 };
	uint64_t at;
	jit_buffer *b = executable_locate(x, v, &at);

	return executable_bytes_of(x, v) == 0 ||
	       executable_took(jit_buffer_read(b, at, to, executable_bytes_of(x, v), &e), &e, err);
}

static bool put(const struct executable *x, tensor_value v, const void *from, struct error *err)
{
	jit_error e = { 0 };
	uint64_t at;
	jit_buffer *b = executable_locate(x, v, &at);

	return executable_bytes_of(x, v) == 0 ||
	       executable_took(jit_buffer_write(b, at, from, executable_bytes_of(x, v), &e), &e, err);
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

/* Elements that a user's kernel does not write are 0. */
static bool clear(const struct executable *x, const struct tensor_node *n, struct error *err)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < n->results; i++) {
		const uint64_t bytes = executable_bytes_of(x, n->first + i);
		void *zeros = calloc(bytes ? (size_t)bytes : 1, 1);
		ok = zeros ? put(x, n->first + i, zeros, err)
		           : error_set(err, ERROR_MEMORY, "there is no memory for a graph");
		free(zeros);
	}
	return ok;
}

/* ---- steps */

static bool is_listed(const struct step *s)
{
	bool ok = s->main.launch && !s->loop && !s->group->host && (!s->source.is_users || s->source.is_whole) &&
	          launch_list_takes(s->main.launch);

	for (unsigned k = 0; k < PREPARED_MAX; k++)
		ok = ok && (!s->prepare[k].launch || launch_list_takes(s->prepare[k].launch));
	return ok;
}

/* The launches of steps first .. behind - 1, which are in `launch`, with what they prepare in front of each. */
static size_t put_launches(const struct executable *x, uint32_t first, uint32_t behind, jit_launch **launch)
{
	size_t n = 0;

	for (uint32_t i = first; i < behind; i++) {
		for (unsigned k = 0; k < PREPARED_MAX; k++)
			if (x->step[i].prepare[k].launch)
				launch[n++] = x->step[i].prepare[k].launch;
		launch[n++] = x->step[i].main.launch;
	}
	return n;
}

bool executable_list_steps(struct executable *x, struct error *err)
{
	jit_launch **launch = calloc((size_t)x->p.groups * (PREPARED_MAX + 1) + 1, sizeof(jit_launch *));
	bool ok = launch || error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	uint32_t behind;

	for (uint32_t i = 0; ok && i < x->p.groups; i = behind) {
		for (behind = i; behind < x->p.groups && is_listed(&x->step[behind]);)
			behind++;
		if (behind > i) {
			x->step[i].behind = behind;
			x->step[i].list = launch_list_open(launch, put_launches(x, i, behind, launch), 1, err);
			ok = x->step[i].list != NULL;
		} else {
			behind++;
		}
	}
	free(launch);
	return ok;
}

bool executable_is_one_list(const struct executable *x)
{
	return x->p.groups && x->step[0].list && x->step[0].behind == x->p.groups;
}

struct launch_list *executable_list_rounds(const struct executable *x, uint32_t *rounds, struct error *err)
{
	enum { OPS_MAX = 2048 /* each has room for arguments */ };
	jit_launch **launch = calloc((size_t)x->p.groups * (PREPARED_MAX + 1) + 1, sizeof(jit_launch *));
	struct launch_list *list = NULL;
	size_t ops = 0;

	if (launch) {
		const size_t n = put_launches(x, 0, x->p.groups, launch);
		for (size_t i = 0; i < n; i++)
			ops += launch[i]->plan.plan.n_ops;
		if (ops && *rounds > OPS_MAX / ops)
			*rounds = ops < OPS_MAX ? (uint32_t)(OPS_MAX / ops) : 1;
		list = launch_list_open(launch, n, *rounds, err);
	} else
		error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	free(launch);
	return list;
}

static bool run_step(struct executable *x, const struct step *step, struct error *err)
{
	const struct tensor_node *n = &x->g.node[step->group->node];
	jit_error e = { 0 };

	for (unsigned k = 0; k < PREPARED_MAX; k++)
		if (step->prepare[k].launch && !executable_took(jit_launch_run(step->prepare[k].launch, &e), &e, err))
			return false;
	if (step->source.is_users && !step->source.is_whole && !clear(x, n, err))
		return false;
	if (step->main.launch && !executable_took(jit_launch_run(step->main.launch, &e), &e, err))
		return false;
	return (!step->loop || looping_run(step->loop, err)) && (!step->group->host || run_on_host(x, n, err));
}

bool executable_run(struct executable *x, const void *const in[], void *const out[], struct error *err)
{
	const double begin = system_seconds();

	for (uint32_t i = 0; i < x->g.inputs; i++)
		if (!x->binding[x->g.input[i]].is && !put(x, x->g.input[i], in[i], err))
			return false;
	for (uint32_t i = 0; i < x->p.groups;) {
		const struct step *step = &x->step[i];
		if (!(step->list ? launch_list_run(step->list, 1, err) : run_step(x, step, err)))
			return false;
		i = step->list ? step->behind : i + 1;
	}
	for (uint32_t i = 0; i < x->g.outputs; i++)
		if (out[i] && !fetch(x, x->g.output[i], out[i], err))
			return false;
	x->last_ns = (uint64_t)((system_seconds() - begin) * 1e9);
	return true;
}

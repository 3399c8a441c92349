/* runtime/kernels/launch_list.c - see launch_list.h. */
#include "runtime/kernels/launch_list.h"

#include <stdlib.h>
#include <string.h>

struct launch_list {
	jit_compute *compute;
	struct plan plan;
	struct listed {
		jit_launch *launch;
		uint64_t changes;  /* of its arguments, that the plan has */
		size_t first, end; /* its ops in the first round */
	} * of;
	size_t n, ops; /* ops: of a round */
	uint32_t rounds;
	bool prepared;
};

bool launch_list_takes(const jit_launch *l)
{
	return compute_host_runs(l->kernel->compute) && !l->fault && l->kernel->is.units;
}

/* So little that threads would wait for each other longer than they work. */
static bool is_small(const struct launch_shape *s)
{
	const double small = 1 << 15;

	return s->moves + s->operations < small;
}

static void add(struct launch_list *list, size_t i, jit_launch *launch, uint32_t round)
{
	struct plan *p = &list->plan;
	const struct plan *from = &launch->plan.plan;

	if (round == 0)
		list->of[i] = (struct listed){ launch, launch->changes - 1, p->n_ops, p->n_ops + from->n_ops };
	p->kernel[i].key = from->kernel[0].key;
	for (size_t k = 0; k < from->n_ops; k++, p->n_ops++) {
		struct plan_op *op = &p->op[p->n_ops];
		*op = from->op[k];
		op->kernel = (uint32_t)i;
		op->serial = op->serial || is_small(&launch->plan.shape);
		op->arg = p->args + p->n_ops * LAUNCH_ARGS_MAX;
		p->stage[p->n_ops] = (uint32_t)p->n_ops;
	}
	p->stage[p->n_ops] = (uint32_t)p->n_ops;
}

static const char *name_of(const void *list, size_t kernel)
{
	return ((const struct launch_list *)list)->of[kernel].launch->kernel->is.name;
}

static bool make(struct launch_list *list, jit_launch *const launch[], size_t n, uint32_t rounds, struct error *err)
{
	struct plan *p = &list->plan;
	size_t ops = 0;

	for (size_t i = 0; i < n; i++)
		ops += launch[i]->plan.plan.n_ops;
	list->compute = launch[0]->kernel->compute;
	list->n = n;
	list->ops = ops;
	list->rounds = rounds;
	ops *= rounds;
	list->of = calloc(n, sizeof *list->of);
	p->tokens = 1;
	p->n_kernels = n;
	p->kernel = calloc(n, sizeof *p->kernel);
	p->op = calloc(ops, sizeof *p->op);
	p->n_args = ops * LAUNCH_ARGS_MAX;
	p->args = calloc(p->n_args, sizeof *p->args);
	p->stage = calloc(ops + 1, sizeof *p->stage);
	p->took = calloc(ops, sizeof *p->took);
	if (!list->of || !p->kernel || !p->op || !p->args || !p->stage || !p->took)
		return error_set(err, ERROR_MEMORY, "no memory for a list of %zu launches", n);
	for (uint32_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < n; i++)
			add(list, i, launch[i], round);
	p->n_stages = ops;
	list->prepared = compute_prepare(list->compute, p, name_of, list, err);
	return list->prepared && err->code == ERROR_NONE;
}

struct launch_list *launch_list_open(jit_launch *const launch[], size_t n, uint32_t rounds, struct error *err)
{
	struct launch_list *list = calloc(1, sizeof *list);

	if (!list)
		error_set(err, ERROR_MEMORY, "no memory for a list of %zu launches", n);
	else if (make(list, launch, n, rounds, err))
		return list;
	launch_list_close(list);
	return NULL;
}

void launch_list_close(struct launch_list *list)
{
	if (!list)
		return;
	struct plan *p = &list->plan;
	if (list->prepared && list->compute->stream->forget) {
		pthread_mutex_lock(&list->compute->stream_lock);
		list->compute->stream->forget(list->compute->stream, p);
		pthread_mutex_unlock(&list->compute->stream_lock);
	}
	free(list->of);
	free(p->kernel);
	free(p->op);
	free(p->args);
	free(p->stage);
	free(p->took);
	free(list);
}

static bool give(struct launch_list *list, struct listed *l, uint32_t round, struct error *err)
{
	if (!launch_has_arguments(l->launch, err))
		return false;
	for (size_t k = l->first; k < l->end; k++)
		memcpy(list->plan.op[round * list->ops + k].arg, l->launch->plan.arg,
		       l->launch->plan.shape.args * sizeof *l->launch->plan.arg);
	l->changes = l->launch->changes;
	return true;
}

bool launch_list_set_round(struct launch_list *list, uint32_t round, struct error *err)
{
	bool ok = true;

	for (size_t i = 0; ok && i < list->n; i++)
		ok = give(list, &list->of[i], round, err);
	return ok;
}

/* What has changed since the last run. */
static bool give_changed(struct launch_list *list, struct error *err)
{
	bool ok = true;

	for (size_t i = 0; ok && i < list->n; i++)
		ok = list->of[i].changes == list->of[i].launch->changes || give(list, &list->of[i], 0, err);
	return ok;
}

/* A launch's time is that of a round. */
static void note(struct launch_list *list, uint32_t rounds)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct listed *l = &list->of[i];
		uint64_t took = 0;
		for (uint32_t round = 0; round < rounds; round++)
			for (size_t k = l->first; k < l->end; k++)
				took += atomic_exchange_explicit(&list->plan.took[round * list->ops + k], 0,
				                                 memory_order_relaxed);
		l->launch->kernel->launches += rounds;
		l->launch->kernel->last_ns = took / rounds;
	}
}

bool launch_list_run(struct launch_list *list, uint32_t rounds, struct error *err)
{
	jit_compute *c = list->compute;
	bool ok;

	list->plan.n_ops = list->plan.n_stages = rounds * list->ops;
	pthread_mutex_lock(&c->stream_lock);
	if (cancel_any(&c->cancel))
		ok = cancel_error(err);
	else
		ok = (list->rounds > 1 || give_changed(list, err)) &&
		     c->stream->run(c->stream, &list->plan, c->pool, err);
	if (ok)
		note(list, rounds);
	pthread_mutex_unlock(&c->stream_lock);
	return ok;
}

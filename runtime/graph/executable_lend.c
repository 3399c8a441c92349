/* runtime/graph/executable_lend.c - memory that several executables share. */
#include "runtime/graph/executable_state.h"

uint64_t executable_memory_bytes(const struct executable *x) { return x->memory_bytes; }

static bool bind_step(struct executable *x, struct step *step, struct error *err)
{
	const struct source *s = &step->source;
	const tensor_value result = x->g.node[step->group->node].first;
	jit_error e = { 0 };
	bool ok = true;

	for (unsigned i = 0; ok && i < s->reads; i++)
		ok = executable_set_value(x, &step->main, i, s->read[i], err);
	for (unsigned k = 0; ok && k < s->n_prepared; k++) {
		const struct part *p = &step->prepare[k];
		if (step->made[k])
			continue;
		ok = executable_set_value(x, &step->prepare[k], 0, s->prepared[k].from, err) &&
		     executable_took(jit_launch_set_buffer(p->launch, 1, x->memory, x->scratch_at[k], &e), &e, err) &&
		     executable_took(jit_launch_set_buffer(step->main.launch, s->reads + k, x->memory, x->scratch_at[k],
		                                           &e),
		                     &e, err);
	}
	return ok && (s->is_users || executable_set_value(x, &step->main, s->reads + s->n_prepared, result, err));
}

bool executable_lend(struct executable *x, jit_buffer *b, struct error *err)
{
	if (!x->is_lent)
		jit_buffer_close(x->memory);
	x->memory = b;
	x->is_lent = true;
	for (uint32_t i = 0; i < x->p.groups; i++)
		if (x->step[i].main.launch && !bind_step(x, &x->step[i], err))
			return false;
	return true;
}

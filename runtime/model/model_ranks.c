/* runtime/model/model_ranks.c - see model_ranks.h. */
#include "runtime/model/model_ranks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/ranks/choose.h"

bool model_leads(const jit_model *m) { return m->ranks && m->ranks->carrier->rank == 0; }

bool model_is_alone(const jit_model *m, const char *what, struct error *err)
{
	return !m->ranks || error_set(err, ERROR_UNSUPPORTED, "%s: not yet where several ranks compute a model (%s)",
	                              what, m->ranks->about);
}

struct weights_part model_part(const jit_model *m)
{
	if (!m->ranks)
		return (struct weights_part){ 0, m->file.spec.layers, true, NULL };
	if (m->ranks->by_rows)
		return (struct weights_part){ 0, m->file.spec.layers, true, &m->ranks->shares };
	const struct split_range own = ranks_own(m->ranks);
	return (struct weights_part){ own.first, own.end, model_leads(m), NULL };
}

/* What is written or told is rank 0's. */
static void keep_quiet(jit_model_options *o)
{
	o->progress = NULL;
	o->cancel = NULL;
	o->dump_ir = o->dump_asm = o->jitdump = NULL;
	o->perf_map = o->gdb = 0;
}

bool model_ranks_open(jit_model *m, jit_model_options *o, struct error *err)
{
	if (!o->ranks)
		return !o->split || error_set(err, ERROR_ARGUMENT, "split: nothing is split without ranks");
	if (o->bounded_numerics != JIT_NUMERICS_EXACT)
		return error_set(err, ERROR_UNSUPPORTED, "bounded_numerics: several ranks compute exactly alone");
	if (!(m->ranks = ranks_open(o->ranks, err)))
		return false;
	if (!model_leads(m))
		keep_quiet(o);
	return true;
}

bool model_ranks_device(jit_model *m, struct error *err)
{
	if (!m->device->facts.host_runs)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "device %s: several ranks compute a model on CPUs alone so far",
		                 m->device->facts.name);
	m->tune_passes = 0; /* of a pass nobody sees all kernels */
	if (!model_leads(m))
		return true;
	struct device *d = ranks_device(m->ranks, m->device, err);
	if (!d)
		return false;
	m->device = d;
	return true;
}

/* As is best by what is measured now. */
static bool split_best(const jit_model *m, const jit_model_options *o, struct error *err)
{
	static const enum dtype kv[] = { DTYPE_F16, DTYPE_F32, DTYPE_Q8_0 };
	struct ranks *r = m->ranks;
	struct ranks_machine machine;
	struct ranks_choice choice;
	uint64_t bytes = split_ends_bytes(&m->file.spec).token;

	for (uint32_t i = 0; i < m->file.spec.layers; i++)
		bytes += split_layer_bytes(&m->file.spec, i).token;
	if (!ranks_measure(r, bytes / r->carrier->size, &machine, err) ||
	    !ranks_choose(&m->file.spec, m->target, kv[o->session ? o->session->kv % 3 : 0], r->carrier->size, &machine,
	                  &choice, err) ||
	    !ranks_split(r, &m->file.spec, choice.by_rows ? "rows" : "pipeline", err))
		return false;
	const size_t n = strlen(r->about);
	snprintf(r->about + n, sizeof r->about - n, "; %s", choice.why);
	return true;
}

bool model_ranks_greet(jit_model *m, const jit_model_options *o, struct error *err)
{
	struct ranks_greeting own = { .layers = m->file.spec.layers, .kv = o->session ? (uint32_t)o->session->kv : 0 };

	m->tune_passes = 0;
	snprintf(own.version, sizeof own.version, "%s", jit_version());
	snprintf(own.split, sizeof own.split, "%s", o->split ? o->split : "pipeline");
	snprintf(own.numerics, sizeof own.numerics, "%s", m->f32_activations ? "f32 activations" : "exact");
	return ranks_model_hash(&m->file, m->packed != NULL, &own.model, err) && ranks_greet(m->ranks, &own, err) &&
	       (o->split && strcmp(o->split, "auto") == 0 ? split_best(m, o, err)
	                                                  : ranks_split(m->ranks, &m->file.spec, o->split, err));
}

bool model_ranks_ready(jit_model *m, struct error *err)
{
	struct carrier *by = m->ranks->carrier;
	bool ok = err->code == ERROR_NONE && ranks_meet(m->ranks, err);

	if (ok && by->rank != 0)
		ok = model_follow(m, err);
	if (!ok)
		carrier_abort(by, err->text);
	if (by->rank == 0)
		return true;
	if (by->told_why)
		err->text[0] = 0;
	if (by->own) { /* it has none of its caller's threads, and nothing of what it inherited is its own */
		ranks_close(m->ranks);
		_exit(!ok);
	}
	return false;
}

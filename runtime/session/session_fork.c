/* runtime/session/session_fork.c - a second session that goes on where another one is. */
#include <string.h>

#include "runtime/session/session_kv.h"
#include "runtime/session/session_state.h"
#include "runtime/model/sized.h"

static bool fork_into(jit_session *to, const jit_session *from, struct error *err)
{
	const struct session_memory *m = &from->memory;
	const struct model_spec *spec = &from->model->file.spec;

	if (to->memory.kv.type != m->kv.type)
		return error_set(err, ERROR_ARGUMENT, "kv: %s is not %s, the KV cache of the session that is forked",
		                 dtype_table[to->memory.kv.type].name, dtype_table[m->kv.type].name);
	if (from->computed > to->context || from->length > (size_t)to->context + 1)
		return error_set(err, ERROR_ARGUMENT, "context: %u is less than the %zu tokens of the session",
		                 to->context, from->length);
	if (from->adapters.n && !to->engine->adapted)
		return error_set(err, ERROR_ARGUMENT, "the fork was opened before the model had adapters");
	if (from->pictures.n &&
	    (!to->engine->shown || !engine_map_shown(to->engine, err) || !session_pictures_copy(to, from, err)))
		return error_set(err, ERROR_ARGUMENT, "the fork was opened before its model could take pictures");
	if (from->adapters.from && !session_keys_room(to, err))
		return false;
	adapters_copy(&to->adapters, &from->adapters);
	session_memory_begin_window(&to->memory, spec, (uint32_t)from->computed, m->window_first);
	memcpy(to->ids, from->ids, from->length * sizeof *to->ids);
	to->length = from->length;
	to->chosen_from = from->chosen_from;
	to->chosen_to = from->chosen_to;
	to->computed = from->computed;
	if (from->logits_valid && to->computed == to->length)
		to->computed--; /* its logits are made again when somebody asks */
	return kv_copy(&to->memory, m, spec, from->computed, to->computed, err);
}

jit_session *jit_session_fork(const jit_session *s, const jit_session_options *options, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e)) {
		model_report(err, &e);
		return NULL;
	}
	jit_session *fork = jit_session_open(s->model, options, err);

	if (!fork || fork_into(fork, s, &e))
		return fork;
	jit_session_close(fork);
	model_report(err, &e);
	return NULL;
}

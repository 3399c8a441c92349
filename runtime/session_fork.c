/* runtime/session_fork.c - a second session that goes on where another one is. */
#include <stdlib.h>
#include <string.h>

#include "runtime/session_kv.h"
#include "runtime/session_state.h"

/* Those pieces that both keep; the new session wants none else. */
static bool copy_pieces(const jit_session *to, const jit_session *from, struct error *err)
{
	const struct model_spec *spec = &from->model->file.spec;
	struct device *d = from->memory.device;
	size_t n = kv_piece_most(&from->memory.kv, spec);
	uint32_t first = from->memory.window_first;
	uint64_t pieces = kv_pieces_count(spec, from->computed, first);
	struct kv_piece *have = kv_pieces(&from->memory, spec, from->computed, first, err),
			*want = have ? kv_pieces(&to->memory, spec, from->computed, first, err) : NULL;
	uint8_t *copy = d->facts.host_reaches ? NULL : malloc(n);
	bool ok = want && (copy || d->facts.host_reaches || error_set(err, ERROR_MEMORY, "no memory for %zu bytes", n));

	for (uint64_t i = 0; ok && i < pieces; i++) {
		if (!want[i].at)
			continue;
		if (!copy)
			memcpy(want[i].at, have[i].at, have[i].bytes);
		else
			ok = d->read(d, copy, have[i].at, have[i].bytes, err) &&
			     d->upload(d, want[i].at, copy, have[i].bytes, err);
	}
	free(copy);
	free(have);
	free(want);
	return ok;
}

/* The last of the states that both can go on from. */
static bool copy_state(jit_session *to, const jit_session *from, struct error *err)
{
	const struct session_states *t = &from->memory.states;
	struct device *d = from->memory.device;
	int state = t->bytes ? states_find(t, to->computed) : -1;

	if (state < 0)
		return true;
	const uint8_t *have = t->base + (uint64_t)state * t->bytes;
	uint8_t *want = states_take(&to->memory.states, t->position[state]);
	if (d->facts.host_reaches) {
		memcpy(want, have, t->bytes);
		return true;
	}
	uint8_t *copy = malloc(t->bytes);
	bool ok = copy ? d->read(d, copy, have, t->bytes, err) && d->upload(d, want, copy, t->bytes, err)
	               : error_set(err, ERROR_MEMORY, "no memory for %llu bytes", (unsigned long long)t->bytes);
	free(copy);
	return ok;
}

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
	session_memory_begin_window(&to->memory, spec, (uint32_t)from->computed, m->window_first);
	if (!copy_pieces(to, from, err))
		return false;
	memcpy(to->ids, from->ids, from->length * sizeof *to->ids);
	to->length = from->length;
	to->computed = from->computed;
	if (from->logits_valid && to->computed == to->length)
		to->computed--; /* its logits are made again when somebody asks */
	return copy_state(to, from, err);
}

jit_session *jit_session_fork(const jit_session *s, const jit_session_options *options, jit_error *err)
{
	struct error e = { 0 };
	jit_session *fork = jit_session_open(s->model, options, err);

	if (!fork || fork_into(fork, s, &e))
		return fork;
	jit_session_close(fork);
	model_report(err, &e);
	return NULL;
}

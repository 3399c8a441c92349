/* runtime/session/session_adapters.c - which adapters a session has, and from which token on
 * (runtime/model/adapters.h).
 */
#include "runtime/model/sized.h"
#include "runtime/session/session_state.h"

/* The first token that they count for. */
static uint64_t first_of(const struct adapters_chosen *c) { return c->n ? c->from : UINT64_MAX; }

static bool set(jit_session *s, struct adapters_chosen *c, struct error *err)
{
	const uint64_t own = first_of(&s->adapters), other = first_of(c), first = own < other ? own : other;

	if (c->n && !s->engine->adapted)
		return error_set(err, ERROR_ARGUMENT,
		                 "the session was opened before the model had adapters (jit_model_adapters)");
	if (s->length > first && c->key != s->adapters.key)
		return error_set(err, ERROR_ARGUMENT,
		                 "the session has %zu tokens, which belong to the adapters it has: rewind it to %llu "
		                 "first",
		                 s->length, (unsigned long long)first);
	if (c->from && !session_keys_room(s, err))
		return false;
	adapters_drop(&s->adapters);
	s->adapters = *c;
	*c = (struct adapters_chosen){ 0 };
	return true;
}

int jit_session_set_adapters(jit_session *s, jit_adapter *const *adapters, const float *scales, size_t n,
                             jit_error *err)
{
	struct adapters_chosen c = { 0 };
	struct error e = { 0 };

	if (NEEDED(s, &e) && NEEDED_LIST(adapters, n, &e) && adapters_choose(&c, s->model, adapters, scales, n, &e) &&
	    adapters_always_count(&c, &e))
		set(s, &c, &e);
	adapters_drop(&c);
	return model_report(err, &e);
}

int jit_session_set_adapters_from(jit_session *s, jit_adapter *const *adapters, const float *scales, size_t n,
                                  size_t from, jit_error *err)
{
	struct adapters_chosen c = { 0 };
	struct error e = { 0 };

	if (NEEDED(s, &e) && NEEDED_LIST(adapters, n, &e) && adapters_choose(&c, s->model, adapters, scales, n, &e)) {
		adapters_begin(&c, from);
		set(s, &c, &e);
	}
	adapters_drop(&c);
	return model_report(err, &e);
}

const struct adapters_chosen *session_adapters_at(const jit_session *s, uint64_t position)
{
	static const struct adapters_chosen none;

	return position < s->adapters.from ? &none : &s->adapters;
}

uint32_t session_adapted_alike(const jit_session *s, uint64_t position, uint32_t max)
{
	const uint64_t from = s->adapters.from;

	return position < from && from - position < max ? (uint32_t)(from - position) : max;
}

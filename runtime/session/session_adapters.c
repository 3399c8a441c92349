/* runtime/session/session_adapters.c - which adapters a session has (runtime/model/adapters.h). */
#include "runtime/model/sized.h"
#include "runtime/session/session_state.h"

static bool set(jit_session *s, struct adapters_chosen *c, struct error *err)
{
	if (c->n && !s->engine->adapted)
		return error_set(err, ERROR_ARGUMENT,
		                 "the session was opened before the model had adapters (jit_model_adapters)");
	if (s->length && c->key != s->adapters.key)
		return error_set(
			err, ERROR_ARGUMENT,
			"the session has %zu tokens, which belong to the adapters it has: rewind it to 0 first",
			s->length);
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

	if (NEEDED(s, &e) && NEEDED_LIST(adapters, n, &e) && adapters_choose(&c, s->model, adapters, scales, n, &e))
		set(s, &c, &e);
	adapters_drop(&c);
	return model_report(err, &e);
}

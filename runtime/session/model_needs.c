/* runtime/session/model_needs.c - jit_model_needs: in how much memory a model and a session would run, without opening
 * them. */
#include "loaders/model/model.h"
#include "runtime/host/system.h"
#include "include/jitrun_options.h"
#include "runtime/model/model.h"
#include "runtime/model/options.h"
#include "runtime/model/packed.h"
#include "runtime/model/load_weights.h"
#include "runtime/session/session.h"
#include "runtime/model/sized.h"

/* Where nobody gave a context, half of what the weights leave is a text's, as it is once they are loaded. */
static bool measure_session(jit_model *m, const jit_session_options *session, jit_needs *own, struct error *err)
{
	const uint64_t weights = own->weight_bytes, available = own->available_bytes;
	jit_session_options o;
	struct session_needs size;

	if (!options_session(&o, session, err))
		return false;
	if (!o.context)
		o.context = (int)session_usual_context(&m->file.spec, options_kv_type(o.kv),
		                                       (available > weights ? available - weights : 0) / 2);
	if (!session_measure(m, &o, &size, err))
		return false;
	own->kv_bytes = size.kv_bytes;
	own->pass_bytes = size.pass_bytes;
	own->context = (int)size.context;
	return true;
}

static bool measure(jit_model *m, const jit_session_options *session, jit_needs *own, struct error *err)
{
	const struct model_spec *s = &m->file.spec;

	m->target = device_host_target(NULL, true, err);
	if (!m->target || !weights_measure(&m->weights, s, m->target, err))
		return false;
	*own = (jit_needs){ .weight_bytes = m->weights.arena_bytes + m->weights.vectors_bytes,
		            .token_bytes = m->weights.token_bytes,
		            .available_bytes = system_available_memory(),
		            .context_trained = (int)s->context_train };
	const bool ok = measure_session(m, session, own, err);
	weights_close(&m->weights);
	return ok;
}

int jit_model_needs(const char *path, const jit_session_options *session, jit_needs *out, jit_error *err)
{
	jit_model m = { 0 };
	jit_needs own;
	struct error e = { 0 };

	if (!NEEDED(path, &e) || !NEEDED(out, &e) ||
	    !packed_or_files(&m.file, &m.packed, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &e))
		return model_report(err, &e);
	if (measure(&m, session, &own, &e))
		SIZED_WRITE(jit_needs, out, &own, &e);
	model_close(&m.file);
	packed_close(m.packed);
	return model_report(err, &e);
}

/* runtime/model_needs.c - jit_model_needs: in how much memory a model and a session would run, without opening them. */
#include "loaders/model.h"
#include "runtime/host/system.h"
#include "runtime/jitrun_options.h"
#include "runtime/model.h"
#include "runtime/packed.h"
#include "runtime/device/load_weights.h"
#include "runtime/session.h"
#include "runtime/sized.h"

static bool measure(jit_model *m, const jit_session_options *session, jit_needs *own, struct error *err)
{
	const struct model_spec *s = &m->file.spec;
	struct session_needs size;

	m->target = device_host_target(NULL, true, err);
	if (!m->target || !weights_measure(&m->weights, s, m->target, err) || !session_measure(m, session, &size, err))
		return false;
	*own = (jit_needs){ .weight_bytes = m->weights.arena_bytes + m->weights.vectors_bytes,
		            .token_bytes = m->weights.token_bytes,
		            .kv_bytes = size.kv_bytes,
		            .pass_bytes = size.pass_bytes,
		            .available_bytes = system_available_memory(),
		            .context = (int)size.context,
		            .context_trained = (int)s->context_train };
	return true;
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

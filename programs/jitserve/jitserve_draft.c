/* programs/jitserve/jitserve_draft.c - the draft model of the first model (--draft).
 *
 * Owns: that it is open while that model's batch is.
 */
#include "programs/jitserve/jitserve.h"

static const struct served *user; /* NULL: it is not open */
static jit_model *model;
static jit_draft_options options;

const char *serve_draft_refused(void)
{
	const char *why = draft_model_refused(&serve.draft, serve.speculate);

	if (why || !serve.draft.model)
		return why;
	if (serve.ranks)
		return "--draft goes without --ranks";
	return serve.n_models ? NULL : "--draft needs a MODEL on the command line";
}

bool serve_draft_enter(const struct served *m, const struct models *all, jit_cancel *c, jit_batch_options *o,
                       jit_error *err)
{
	jit_model_options mo = serve_model_options(m);

	if (!serve.draft.model || m != all->list || m->info.encodes)
		return true;
	mo.cancel = c;
	if (!(model = draft_model_open(&serve.draft, mo, &options, err)))
		return false;
	user = m;
	o->draft = &options;
	return true;
}

void serve_draft_leave(const struct served *m)
{
	if (m != user)
		return;
	jit_model_close(model);
	model = NULL;
	user = NULL;
}

uint64_t serve_draft_bytes(const struct served *m)
{
	jit_model_info info = JIT_MODEL_INFO();

	return m == user && jit_model_get_info(model, &info, NULL) == JIT_OK ? info.weight_bytes : 0;
}

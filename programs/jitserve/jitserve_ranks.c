/* programs/jitserve/jitserve_ranks.c - a model that several processes compute together (--ranks).
 *
 * Owns: when it is opened: ranks may be copies of this process, so that is done before there are other threads, and
 * once, so that the model never leaves. The port is opened when all ranks are there.
 */
#include <stdio.h>

#include "include/jitrun_cards.h"
#include "programs/common/progress.h"
#include "programs/jitserve/jitserve.h"

static jit_model *model;
static bool taken; /* who took it closes it */

const char *serve_ranks_refused(void)
{
	if (!serve.ranks)
		return serve.split ? "--split goes with --ranks" : NULL;
	if (serve.n_models != 1 || serve_has_more())
		return "--ranks goes with one model, and without --models-dir, --presets-dir and --pull-with";
	return serve.keep >= 0 ? "--ranks keeps its model open; expected --keep-alive -1" : NULL;
}

static int on_progress(void *user, uint64_t done, uint64_t total)
{
	progress_show(user, done, total);
	return 0;
}

bool serve_ranks_open(const char *path, int *status, struct error *err)
{
	jit_model_options o = serve_model_options(NULL);
	jit_error e = { 0 };
	struct progress bar;

	progress_begin(&bar, "loading", NULL, !serve.quiet);
	o.progress = on_progress;
	o.progress_user = &bar;
	model = jit_model_open(path, &o, &e);
	progress_end(&bar);
	if (model)
		return true;
	*status = e.code == JIT_OK ? SERVE_DONE : SERVE_FAILED;
	return e.message[0] ? error_set(err, ERROR_IO, "%s", e.message) : false;
}

jit_model *serve_ranks_take(jit_error *err)
{
	if (taken) {
		err->code = JIT_ERROR_ARGUMENT;
		snprintf(err->message, sizeof err->message, "the model was closed, and its ranks have ended");
		return NULL;
	}
	taken = true;
	return model;
}

bool serve_ranks_alive(struct error *err)
{
	jit_error e = { 0 };

	return jit_model_alive(model, &e) == JIT_OK || error_set(err, ERROR_DEVICE, "%s", e.message);
}

void serve_ranks_close(void)
{
	if (!taken)
		jit_model_close(model);
}

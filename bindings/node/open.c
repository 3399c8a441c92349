/* open.c - what opens models, sessions and batches, and measures a model before it is opened. */
#include <stdlib.h>

#include "addon.h"

static void run_open(struct job *j)
{
	jit_model_options o = JIT_MODEL_OPTIONS(.cancel = j->request->p);
	struct session_options session;

	for (size_t i = 0; i + 1 < j->texts.n; i += 2)
		if (jit_model_options_set(&o, j->texts.list[i], j->texts.list[i + 1], &j->err))
			return;
	if (j->flag && !session_options(NULL, &j->session, &session, &j->err))
		return;
	if (j->flag)
		o.session = &session.o;
	if (j->hook) {
		o.progress = on_progress;
		o.progress_user = j->hook;
	}
	j->made = jit_model_open(j->text, &o, &j->err);
}

static napi_value opened(napi_env env, struct job *j) { return make_box(env, BOX_MODEL, j->made, NULL, j->request); }

/* The first argument is the path, the third a session's options or undefined. */
static bool take_path(napi_env env, napi_value path, napi_value session, struct job *j)
{
	j->text = take_text(env, path, NULL);
	j->flag = !is_nothing(env, session);
	return j->text && (!j->flag || take_session(env, session, &j->session));
}

/* open(path, [name, value, ...], session or undefined, request, progress or undefined) */
static napi_value open_model(napi_env env, napi_callback_info info)
{
	napi_value argv[5];
	struct job *j = arguments(env, info, argv, 5) ? new_job(env, NULL, run_open, opened) : NULL;
	if (!j)
		return NULL;
	j->request = take_box(env, argv[3], BOX_REQUEST);
	bool ready = j->request && take_path(env, argv[0], argv[2], j) && take_texts(env, argv[1], &j->texts);
	if (ready && !is_nothing(env, argv[4]))
		ready = (j->hook = new_hook(env, argv[4])) != NULL;
	return start_job(env, j, ready);
}

static void run_session(struct job *j)
{
	struct session_options s;

	if (!session_options(model_of(j->box), &j->session, &s, &j->err))
		return;
	s.o.cancel = j->request->p;
	j->made = j->box->kind == BOX_SESSION ? jit_session_fork(j->box->p, &s.o, &j->err)
	                                      : jit_session_open(j->box->p, &s.o, &j->err);
}

static struct box *model_box(struct box *b)
{
	while (b->kind != BOX_MODEL)
		b = b->parent;
	return b;
}

static napi_value session_opened(napi_env env, struct job *j)
{
	return make_box(env, BOX_SESSION, j->made, model_box(j->box), j->request);
}

/* session(model, options, request), fork(session, options, request) */
static napi_value open_on(napi_env env, napi_callback_info info, enum box_kind kind)
{
	napi_value argv[3];
	struct job *j = job_of(env, info, argv, 3, kind, run_session, session_opened);
	if (!j)
		return NULL;
	j->request = take_box(env, argv[2], BOX_REQUEST);
	return start_job(env, j, j->request && take_session(env, argv[1], &j->session));
}

static napi_value open_session(napi_env env, napi_callback_info info) { return open_on(env, info, BOX_MODEL); }

static napi_value fork_session(napi_env env, napi_callback_info info) { return open_on(env, info, BOX_SESSION); }

static void run_batch(struct job *j)
{
	jit_batch_options o = JIT_BATCH_OPTIONS(.cancel = j->request->p);

	for (size_t i = 0; i + 1 < j->texts.n; i += 2)
		if (jit_batch_options_set(&o, j->texts.list[i], j->texts.list[i + 1], &j->err))
			return;
	j->made = jit_batch_open(j->box->p, &o, &j->err);
}

static napi_value batch_opened(napi_env env, struct job *j)
{
	return make_box(env, BOX_BATCH, j->made, j->box, j->request);
}

/* batch(model, [name, value, ...], request) */
static napi_value open_batch(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	struct job *j = job_of(env, info, argv, 3, BOX_MODEL, run_batch, batch_opened);
	if (!j)
		return NULL;
	j->request = take_box(env, argv[2], BOX_REQUEST);
	return start_job(env, j, j->request && take_texts(env, argv[1], &j->texts));
}

static void run_needs(struct job *j)
{
	struct session_options session;

	j->needs = JIT_NEEDS();
	if (!j->flag || session_options(NULL, &j->session, &session, &j->err))
		jit_model_needs(j->text, j->flag ? &session.o : NULL, &j->needs, &j->err);
}

static napi_value measured(napi_env env, struct job *j) { return needs_of(env, &j->needs); }

/* needs(path, session or undefined) */
static napi_value needs(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct job *j = arguments(env, info, argv, 2) ? new_job(env, NULL, run_needs, measured) : NULL;
	return j ? start_job(env, j, take_path(env, argv[0], argv[1], j)) : NULL;
}

static void run_objects(struct job *j)
{
	jit_objects_options o = JIT_OBJECTS_OPTIONS();

	j->objects = JIT_OBJECTS();
	for (size_t i = 0; i + 1 < j->texts.n; i += 2)
		if (jit_objects_options_set(&o, j->texts.list[i], j->texts.list[i + 1], &j->err))
			return;
	jit_write_objects(j->text, &o, &j->objects, &j->err);
}

static napi_value objects_written(napi_env env, struct job *j) { return objects_of(env, &j->objects); }

/* objects(path, [name, value, ...]) */
static napi_value write_objects(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct job *j = arguments(env, info, argv, 2) ? new_job(env, NULL, run_objects, objects_written) : NULL;
	if (!j)
		return NULL;
	j->text = take_text(env, argv[0], NULL);
	return start_job(env, j, j->text && take_texts(env, argv[1], &j->texts));
}

void export_opening(napi_env env, napi_value exports)
{
	export_function(env, exports, "open", open_model);
	export_function(env, exports, "session", open_session);
	export_function(env, exports, "fork", fork_session);
	export_function(env, exports, "batch", open_batch);
	export_function(env, exports, "needs", needs);
	export_function(env, exports, "objects", write_objects);
}

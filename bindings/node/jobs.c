/* jobs.c - what computes, on threads of libuv's pool: the event loop goes on meanwhile. */
#include <stdio.h>
#include <stdlib.h>

#include "addon.h"

/* What runs for an environment. Belongs to its thread. */
struct running {
	struct job *first;
};

static struct running *running_of(napi_env env)
{
	void *data = NULL;
	napi_get_instance_data(env, &data);
	return data;
}

struct job *new_job(napi_env env, struct box *box, void (*run)(struct job *),
                    napi_value (*result)(napi_env, struct job *))
{
	struct job *j = calloc(1, sizeof *j);
	if (!j) {
		throw_argument(env, "not enough memory for a call");
		return NULL;
	}
	j->box = box;
	j->run = run;
	j->result = result;
	return j;
}

static void free_job(struct job *j)
{
	for (size_t i = 0; i < j->n_choices; i++) {
		free(j->choices[i].text);
		free(j->choices[i].top);
	}
	free(j->choices);
	free(j->ready);
	free_texts(&j->texts);
	free_session(&j->session);
	free_given(&j->given);
	drop_hook(j->hook);
	free(j->text);
	free(j->ids);
	free(j->floats);
	free(j);
}

static void execute(napi_env env, void *data)
{
	(void)env;
	struct job *j = data;
	j->run(j);
}

static void unlink_job(napi_env env, struct job *j)
{
	struct running *r = running_of(env);
	if (j->before)
		j->before->behind = j->behind;
	else if (r && r->first == j)
		r->first = j->behind;
	if (j->behind)
		j->behind->before = j->before;
}

/* Takes back what start_job() did. */
static void end_job(napi_env env, struct job *j)
{
	unlink_job(env, j);
	if (j->box && j->box->kind != BOX_MODEL)
		not_busy(j->box);
	for (size_t i = 0; i < j->n_choices; i++)
		release_box(j->choices[i].session);
	release_box(j->box);
	release_box(j->request);
	napi_delete_async_work(env, j->work);
	free_job(j);
}

static void complete(napi_env env, napi_status status, void *data)
{
	struct job *j = data;
	if (status != napi_ok && !j->err.code)
		j->err = (jit_error){ .code = JIT_ERROR_CANCELLED, .message = "the call was cancelled" };
	napi_value value = j->err.code ? NULL : j->result(env, j), error = NULL;
	if (value) {
		napi_resolve_deferred(env, j->deferred, value);
	} else {
		if (!is_pending(env) || napi_get_and_clear_last_exception(env, &error) != napi_ok)
			error = make_error(env, &j->err);
		napi_reject_deferred(env, j->deferred, error);
	}
	end_job(env, j);
}

/* A session computes for one call at a time, and so does a batch with all its sessions; a model opens any number. */
napi_value start_job(napi_env env, struct job *j, bool ready)
{
	struct running *r = running_of(env);
	napi_value promise = NULL, name = from_text(env, "jitrun", NAPI_AUTO_LENGTH);
	if (!ready) {
		free_job(j);
		return NULL;
	}
	napi_create_promise(env, &j->deferred, &promise);
	napi_create_async_work(env, NULL, name, execute, complete, j, &j->work);
	if (j->box) {
		j->box->uses++;
		if (j->box->kind != BOX_MODEL)
			*busy_of(j->box) = true;
	}
	if (j->request)
		j->request->uses++;
	for (size_t i = 0; i < j->n_choices; i++)
		j->choices[i].session->uses++;
	if (r) {
		j->behind = r->first;
		if (r->first)
			r->first->before = j;
		r->first = j;
	}
	napi_queue_async_work(env, j->work);
	return promise;
}

/* A job of a function whose first argument of n is a box. */
struct job *job_of(napi_env env, napi_callback_info info, napi_value *argv, size_t n, enum box_kind kind,
                   void (*run)(struct job *), napi_value (*result)(napi_env, struct job *))
{
	struct box *b = first_box(env, info, argv, n, kind);
	return b ? new_job(env, b, run, result) : NULL;
}

/* p NULL: the job fails. */
bool lacks_memory(struct job *j, const void *p, const char *what)
{
	if (!p) {
		j->err = (jit_error){ .code = JIT_ERROR_MEMORY };
		snprintf(j->err.message, sizeof j->err.message, "not enough memory for %s", what);
	}
	return !p;
}

napi_value no_result(napi_env env, struct job *j)
{
	(void)j;
	return nothing(env);
}

napi_value text_result(napi_env env, struct job *j) { return from_text(env, j->text, j->n_text); }

napi_value floats_result(napi_env env, struct job *j) { return from_floats(env, j->floats, j->n_floats); }

/* The process, or a thread of Node, ends by process.exit(), and then waits for the threads of the pool: what runs is
 * cancelled, and what waits for an answer of JavaScript gets none. */
static napi_value leave(napi_env env, napi_callback_info info)
{
	struct running *r = running_of(env);
	(void)info;
	for (struct job *j = r ? r->first : NULL; j; j = j->behind) {
		if (j->box && j->box->kind == BOX_SESSION)
			jit_session_cancel(j->box->p);
		struct box *request = j->request ? j->request : j->box ? j->box->request : NULL;
		if (request)
			jit_cancel_set(request->p, 1);
	}
	leave_hooks(env);
	return NULL;
}

static void free_running(napi_env env, void *data, void *hint)
{
	(void)env, (void)hint;
	free(data);
}

bool start_jobs(napi_env env, napi_value exports)
{
	struct running *r = calloc(1, sizeof *r);
	if (!r || napi_set_instance_data(env, r, free_running, NULL) != napi_ok) {
		free(r);
		throw_argument(env, "not enough memory for the addon");
		return false;
	}
	export_function(env, exports, "leave", leave);
	return true;
}

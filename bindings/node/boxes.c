/* boxes.c - objects of the library in the hands of JavaScript: which are open, which compute, when they are closed. */
#include <stdlib.h>

#include "addon.h"

static void close_object(struct box *b)
{
	switch (b->kind) {
	case BOX_MODEL: jit_model_close(b->p); break;
	case BOX_SESSION: jit_session_close(b->p); break;
	case BOX_ANSWER: jit_answer_close(b->p); break;
	case BOX_BATCH: jit_batch_close(b->p); break;
	case BOX_REQUEST: jit_cancel_close(b->p); break;
	}
}

static bool of_batch(const struct box *b) { return b->kind == BOX_SESSION && b->parent->kind == BOX_BATCH; }

static void leave_batch(struct box *b)
{
	struct box **at = &b->parent->sessions;
	while (*at && *at != b)
		at = &(*at)->sibling;
	if (*at)
		*at = b->sibling;
	b->sibling = NULL;
}

/* A session of a batch that computes is closed when it does so no more: close_ended(). */
void release_box(struct box *b)
{
	while (b && --b->uses == 0) {
		struct box *parent = b->parent;
		if (of_batch(b)) {
			leave_batch(b);
			if (parent->busy) {
				b->sibling = parent->ended;
				parent->ended = b;
				return;
			}
		}
		close_object(b);
		drop_hook(b->hook);
		release_box(b->request);
		free(b);
		b = parent;
	}
}

static void close_ended(struct box *batch)
{
	while (batch->ended) {
		struct box *b = batch->ended;
		batch->ended = b->sibling;
		b->sibling = NULL;
		b->uses = 1;
		release_box(b);
	}
}

/* The garbage collector has no more use for it. close() of JavaScript may have come before, and keeps the memory. */
static void collected(napi_env env, void *data, void *hint)
{
	(void)env, (void)hint;
	struct box *b = *(struct box **)data;
	if (b)
		release_box(b);
	free(data);
}

napi_value make_box(napi_env env, enum box_kind kind, void *p, struct box *parent, struct box *request)
{
	struct box *b = calloc(1, sizeof *b), **slot = calloc(1, sizeof *slot);
	napi_value value = NULL;
	if (!b || !slot)
		abort(); /* a few bytes */
	*b = (struct box){ .kind = kind, .p = p, .parent = parent, .request = request, .uses = 1 };
	if (parent)
		parent->uses++;
	if (request)
		request->uses++;
	if (of_batch(b)) {
		b->sibling = parent->sessions;
		parent->sessions = b;
	}
	*slot = b;
	if (napi_create_external(env, slot, collected, NULL, &value) != napi_ok)
		collected(env, slot, NULL); /* the environment ends */
	return value;
}

jit_model *model_of(const struct box *b)
{
	while (b && b->kind != BOX_MODEL)
		b = b->parent;
	return b ? b->p : NULL;
}

/* Whether it computes. Sessions of a batch compute when the batch does. */
bool *busy_of(struct box *b) { return of_batch(b) ? &b->parent->busy : &b->busy; }

struct box *peek_box(napi_env env, napi_value value)
{
	struct box **slot = NULL;
	return napi_get_value_external(env, value, (void **)&slot) == napi_ok && slot ? *slot : NULL;
}

struct box *take_box(napi_env env, napi_value value, enum box_kind kind)
{
	static const char *const closed[] = { "the model is closed", "the session is closed", "the answer is closed",
		                              "the batch is closed", "the request is closed" };
	struct box *b = peek_box(env, value);
	if (!b || b->kind != kind) {
		throw_argument(env, closed[kind]);
		return NULL;
	}
	if (*busy_of(b)) {
		throw_argument(env, busy_of(b) == &b->busy && kind == BOX_SESSION
		                            ? "the session computes: wait for the promise of the call before"
		                            : "the batch computes: wait for the promise of the call before");
		return NULL;
	}
	return b;
}

/* The first of n arguments, which is a box. */
struct box *first_box(napi_env env, napi_callback_info info, napi_value *argv, size_t n, enum box_kind kind)
{
	return arguments(env, info, argv, n) ? take_box(env, argv[0], kind) : NULL;
}

/* Closes it now, or when what computes with it has ended. */
static napi_value close_box(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box **slot = NULL;
	if (arguments(env, info, argv, 1) && napi_get_value_external(env, argv[0], (void **)&slot) == napi_ok &&
	    *slot) {
		struct box *b = *slot;
		*slot = NULL;
		release_box(b);
	}
	return NULL;
}

/* What a signal of JavaScript asks for, of all that was opened with it. */
static napi_value request(napi_env env, napi_callback_info info)
{
	jit_error err = { 0 };
	(void)info;
	jit_cancel *c = jit_cancel_open(&err);
	return c ? make_box(env, BOX_REQUEST, c, NULL, NULL) : throw_error(env, &err);
}

/* cancel(session or request): while it computes, too, for that is what it is for. What is asked of a session one call
 * answers; what is asked of a request stays. */
static napi_value cancel(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box *b = arguments(env, info, argv, 1) ? peek_box(env, argv[0]) : NULL;
	if (b && b->kind == BOX_SESSION)
		jit_session_cancel(b->p);
	if (b && b->kind == BOX_REQUEST) {
		b->sticky = true;
		jit_cancel_set(b->p, 1);
	}
	return NULL;
}

/* abort(session): ends the call that computes, if there is one, and no later one. */
static napi_value abort_call(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box *b = arguments(env, info, argv, 1) ? peek_box(env, argv[0]) : NULL;
	if (b && b->kind == BOX_SESSION && b->request && b->busy) {
		b->aborted = true;
		jit_cancel_set(b->request->p, 1);
	}
	return NULL;
}

/* What computed has ended. */
void not_busy(struct box *b)
{
	*busy_of(b) = false;
	if (b->aborted)
		jit_cancel_set(b->request->p, b->request->sticky);
	b->aborted = false;
	close_ended(b->kind == BOX_BATCH ? b : b->parent);
}

/* cancelled(request) */
static napi_value cancelled(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box *b = first_box(env, info, argv, 1, BOX_REQUEST);
	return b ? from_flag(env, jit_cancel_get(b->p)) : NULL;
}

void export_boxes(napi_env env, napi_value exports)
{
	export_function(env, exports, "close", close_box);
	export_function(env, exports, "request", request);
	export_function(env, exports, "cancel", cancel);
	export_function(env, exports, "cancelled", cancelled);
	export_function(env, exports, "abort", abort_call);
}

/* hooks.c - functions of JavaScript that the library calls: while a model loads, while a prompt is computed, and before
 * a token is chosen.
 *
 * The library calls them on a thread of libuv's pool and waits for an answer, which only the thread of the environment
 * can have. So each call is a question that is sent there, and the pool's thread waits. An environment that ends
 * answers for JavaScript: a question never waits for a thread that does not come any more. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "addon.h"

struct question {
	enum { PROGRESS, PROMPT, LOGITS } kind;
	uint64_t a, b; /* done and total, computed and length */
	float *logits;
	size_t n_logits;
	const int32_t *ids;
	size_t n_ids;
	int answer, holders; /* holders: the asking thread and the queue */
	bool answered;
};

/* The function of a session, or of a model that loads: one that tells by the kind what is to be called. */
struct hook {
	napi_threadsafe_function function; /* NULL: the environment took it away */
	struct question *asked;            /* the one that waits */
	struct hook *next;                 /* of all hooks */
	void *environment;
	bool dropped, left; /* left: the environment ends, and nobody is asked any more */
};

/* Guards all questions and the list. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static struct hook *hooks;

/* lock is held */
static void let_go(struct question *q)
{
	if (--q->holders == 0)
		free(q);
}

/* On a thread of the pool. Non-zero: give up. */
static int ask(struct hook *h, const struct question *what)
{
	struct question *q = malloc(sizeof *q);
	if (!q)
		return 1;
	*q = *what;
	q->holders = 2;
	q->answer = 1;
	pthread_mutex_lock(&lock);
	napi_threadsafe_function f = h->left ? NULL : h->function;
	h->asked = q;
	/* The queue has no limit, so this does not wait. */
	if (!f || napi_call_threadsafe_function(f, q, napi_tsfn_nonblocking) != napi_ok) {
		q->answered = true;
		let_go(q);
	}
	while (!q->answered)
		pthread_cond_wait(&told, &lock);
	h->asked = NULL;
	int answer = q->answer;
	let_go(q);
	pthread_mutex_unlock(&lock);
	return answer;
}

int on_progress(void *hook, uint64_t done, uint64_t total)
{
	return ask(hook, &(struct question){ .kind = PROGRESS, .a = done, .b = total });
}

static int on_prompt(void *hook, size_t computed, size_t length)
{
	return ask(hook, &(struct question){ .kind = PROMPT, .a = computed, .b = length });
}

static int on_logits(void *hook, float *logits, size_t n_logits, const int32_t *ids, size_t n_ids)
{
	const struct question q = {
		.kind = LOGITS, .logits = logits, .n_logits = n_logits, .ids = ids, .n_ids = n_ids
	};
	return ask(hook, &q);
}

/* Calls it as function(kind, a, b), which gives true to give up. *changed: the logits as it left them. */
static bool call_function(napi_env env, napi_value function, const struct question *q, float **changed)
{
	napi_value argv[3] = { from_int(env, q->kind) }, that = nothing(env), result = NULL;
	if (q->kind == LOGITS) {
		argv[1] = from_floats(env, q->logits, q->n_logits);
		argv[2] = from_ids(env, q->ids, q->n_ids);
	} else {
		argv[1] = from_uint(env, q->a);
		argv[2] = from_uint(env, q->b);
	}
	if (!argv[0] || !argv[1] || !argv[2] || napi_call_function(env, that, function, 3, argv, &result) != napi_ok) {
		napi_get_and_clear_last_exception(env, &result); /* it is ending: the function itself catches all */
		return true;
	}
	void *data = NULL;
	size_t n = 0;
	if (q->kind == LOGITS &&
	    (napi_get_typedarray_info(env, argv[1], NULL, &n, &data, NULL, NULL) != napi_ok || n != q->n_logits))
		return true; /* it was given to another thread */
	*changed = data;
	bool give_up = true;
	return napi_get_value_bool(env, result, &give_up) != napi_ok || give_up;
}

/* On the environment's thread. env NULL: it is gone. */
static void on_question(napi_env env, napi_value function, void *context, void *data)
{
	struct question *q = data;
	float *changed = NULL;
	(void)context;

	pthread_mutex_lock(&lock);
	bool asked = env && !q->answered; /* else no thread waits, and what it points to is gone */
	pthread_mutex_unlock(&lock);
	/* The asking thread waits, so all that the question points to stays, unless the environment ends meanwhile. */
	int answer = asked ? call_function(env, function, q, &changed) : 1;
	pthread_mutex_lock(&lock);
	if (!q->answered) {
		if (changed && !answer)
			memcpy(q->logits, changed, q->n_logits * sizeof *changed);
		q->answer = answer;
		q->answered = true;
		pthread_cond_broadcast(&told);
	}
	let_go(q);
	pthread_mutex_unlock(&lock);
}

static void unlink_hook(struct hook *h)
{
	for (struct hook **at = &hooks; *at; at = &(*at)->next)
		if (*at == h) {
			*at = h->next;
			return;
		}
}

/* The environment has taken the function away: it was dropped, or the environment ends. */
static void finalized(napi_env env, void *data, void *hint)
{
	struct hook *h = data;
	(void)env, (void)hint;
	pthread_mutex_lock(&lock);
	h->function = NULL;
	bool dropped = h->dropped;
	if (h->asked) {
		h->asked->answered = true;
		pthread_cond_broadcast(&told);
	}
	pthread_mutex_unlock(&lock);
	if (dropped)
		free(h);
}

struct hook *new_hook(napi_env env, napi_value function)
{
	struct hook *h = calloc(1, sizeof *h);
	napi_value name = from_text(env, "jitrun", NAPI_AUTO_LENGTH);
	if (!h) {
		throw_argument(env, "not enough memory for a function");
		return NULL;
	}
	h->environment = env;
	if (napi_create_threadsafe_function(env, function, NULL, name, 0, 1, h, finalized, NULL, on_question,
	                                    &h->function) != napi_ok) {
		free(h);
		throw_argument(env, "a function was expected");
		return NULL;
	}
	napi_unref_threadsafe_function(env, h->function); /* the job that asks keeps the event loop */
	pthread_mutex_lock(&lock);
	h->next = hooks;
	hooks = h;
	pthread_mutex_unlock(&lock);
	return h;
}

/* On the environment's thread, when nothing computes that could ask. */
void drop_hook(struct hook *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&lock);
	unlink_hook(h);
	h->dropped = true;
	napi_threadsafe_function f = h->function;
	pthread_mutex_unlock(&lock);
	if (f)
		napi_release_threadsafe_function(f, napi_tsfn_abort);
	else
		free(h);
}

/* The environment ends: those that wait in its functions go on, and nobody is asked any more. */
void leave_hooks(void *environment)
{
	pthread_mutex_lock(&lock);
	for (struct hook *h = hooks; h; h = h->next)
		if (h->environment == environment) {
			h->left = true;
			if (h->asked)
				h->asked->answered = true;
		}
	pthread_cond_broadcast(&told);
	pthread_mutex_unlock(&lock);
}

/* hook(session, function): the one function of a session; before the others */
static napi_value hook(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct box *b = first_box(env, info, argv, 2, BOX_SESSION);
	if (b && !b->hook)
		b->hook = new_hook(env, argv[1]);
	return NULL;
}

/* logitsFn(session, on) and promptFn(session, on): whether the session's function hears of it */
static napi_value logits_fn(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	jit_error err = { 0 };
	struct box *b = first_box(env, info, argv, 2, BOX_SESSION);
	if (!b)
		return NULL;
	jit_logits_fn fn = take_int(env, argv[1]) && b->hook ? on_logits : NULL;
	return jit_session_set_logits_fn(b->p, fn, b->hook, &err) ? throw_error(env, &err) : NULL;
}

static napi_value prompt_fn(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	jit_error err = { 0 };
	struct box *b = first_box(env, info, argv, 2, BOX_SESSION);
	if (!b)
		return NULL;
	jit_prompt_fn fn = take_int(env, argv[1]) && b->hook ? on_prompt : NULL;
	return jit_session_set_prompt_fn(b->p, fn, b->hook, &err) ? throw_error(env, &err) : NULL;
}

void export_hooks(napi_env env, napi_value exports)
{
	export_function(env, exports, "hook", hook);
	export_function(env, exports, "logitsFn", logits_fn);
	export_function(env, exports, "promptFn", prompt_fn);
}

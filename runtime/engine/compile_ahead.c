/* runtime/engine/compile_ahead.c - a list that one thread adds to and another works off. */
#include "runtime/engine/compile_ahead.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "runtime/host/system.h"
#include "runtime/plan/key_list.h"

enum { PASSES_MAX = 16 };

/* An expected pass: its kernels are there once so many of the list are done. */
struct pass {
	uint32_t tokens;
	enum plan_logits logits;
	size_t until;
};

struct compile_ahead {
	struct compile_ahead_options opt;
	struct key_list_passes *passes;
	struct pass pass[PASSES_MAX];
	unsigned n_passes;
	pthread_t thread;
	bool running;
	pthread_mutex_t lock; /* the list, `stop` */
	pthread_cond_t added, finished;
	struct key *list;
	size_t n, capacity; /* kernels, in the order in which they are made */
	bool stop;
	_Atomic size_t done; /* of the list, whether that went well or not */
	_Atomic uint64_t made, nanoseconds;
	char (*name)[KEY_TEXT_MAX];
	size_t n_names; /* what the trace shows: stays where it is, as the profile keeps addresses */
};

enum {
	NAMES_MAX = 4096,
	LOAD_AT_ONCE = 32
}; /* who waits for one of the kernels waits for those that are loaded with it */

struct compile_ahead *compile_ahead_open(const struct compile_ahead_options *o, struct error *err)
{
	struct compile_ahead *r = calloc(1, sizeof *r);

	if (!r) {
		error_set(err, ERROR_MEMORY, "no memory for a list of kernels to come");
		return NULL;
	}
	r->opt = *o;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->added, NULL);
	pthread_cond_init(&r->finished, NULL);
	r->passes = key_list_passes_open(o->spec, err);
	if (r->passes)
		return r;
	compile_ahead_close(r);
	return NULL;
}

void compile_ahead_close(struct compile_ahead *r)
{
	if (!r)
		return;
	if (r->running) {
		pthread_mutex_lock(&r->lock);
		r->stop = true;
		pthread_cond_signal(&r->added);
		pthread_mutex_unlock(&r->lock);
		pthread_join(r->thread, NULL);
	}
	key_list_passes_close(r->passes);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->added);
	pthread_cond_destroy(&r->finished);
	free(r->list);
	free(r->name);
	free(r);
}

/* ---- the thread */

/* Room for a text that the profile may keep; NULL: nobody looks, or it is full. */
static char *new_name(struct compile_ahead *r)
{
	if (!r->opt.profile || !profile_keeps_events(r->opt.profile) || r->n_names == NAMES_MAX)
		return NULL;
	if (!r->name && !(r->name = malloc(NAMES_MAX * sizeof *r->name)))
		return NULL;
	return r->name[r->n_names++];
}

/* name: NULL or new_name()'s. */
static void made(struct compile_ahead *r, size_t n, const char *name, uint64_t start)
{
	uint64_t end = profile_now();

	atomic_fetch_add(&r->made, n);
	atomic_fetch_add(&r->nanoseconds, end - start);
	if (name)
		profile_note(r->opt.profile, "background", name, start, end);
}

/* What the cache has of the next n. */
static void load(struct compile_ahead *r, const struct key *key, size_t n)
{
	uint64_t start = profile_now();
	size_t loaded = registry_load(r->opt.registry, key, n);
	char *name = loaded ? new_name(r) : NULL;

	if (name)
		snprintf(name, KEY_TEXT_MAX, "%zu kernels from the cache", loaded);
	if (loaded)
		made(r, loaded, name, start);
}

static void make(struct compile_ahead *r, const struct key *key)
{
	enum kernel_source from = KERNEL_FROM_MEMORY;
	struct error ignored = { 0 };
	uint64_t start = profile_now();

	if (!registry_get(r->opt.registry, key, &from, &ignored) || from == KERNEL_FROM_MEMORY)
		return;
	char *name = new_name(r);
	if (name)
		key_text(key, name, KEY_TEXT_MAX);
	made(r, 1, name, start);
}

/* With the lock: has the cache asked for the next ones on the list. Returns how much of the list has been asked for
 * then. */
static size_t load_next(struct compile_ahead *r)
{
	struct key key[LOAD_AT_ONCE];
	size_t from = r->done, n = r->n - from < LOAD_AT_ONCE ? r->n - from : LOAD_AT_ONCE;

	memcpy(key, r->list + from, n * sizeof *key);
	pthread_mutex_unlock(&r->lock);
	load(r, key, n);
	pthread_mutex_lock(&r->lock);
	return from + n;
}

static void *thread_main(void *user)
{
	struct compile_ahead *r = user;
	size_t loaded = 0;

	system_thread_began();
	pthread_mutex_lock(&r->lock);
	for (;;) {
		while (r->done == r->n && !r->stop)
			pthread_cond_wait(&r->added, &r->lock);
		if (r->stop && (r->done == r->n || !r->opt.finish))
			break;
		if (r->done == loaded)
			loaded = load_next(r);
		struct key key = r->list[r->done];
		pthread_mutex_unlock(&r->lock);
		make(r, &key);
		pthread_mutex_lock(&r->lock);
		r->done++;
		pthread_cond_broadcast(&r->finished);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- what is expected */

/* Those that are missing go to the list; how long it is then. */
static size_t add_missing(struct compile_ahead *r, const struct key *keys, size_t n)
{
	pthread_mutex_lock(&r->lock);
	if (array_grow((void **)&r->list, &r->capacity, r->n + n, sizeof *r->list))
		for (size_t i = 0; i < n; i++)
			if (!registry_ready(r->opt.registry, &keys[i]))
				r->list[r->n++] = keys[i];
	size_t until = r->n;
	pthread_cond_signal(&r->added);
	pthread_mutex_unlock(&r->lock);
	return until;
}

/* Which of the passes; n_passes: none. */
static unsigned find_pass(const struct compile_ahead *r, uint32_t tokens, enum plan_logits logits)
{
	unsigned i = 0;

	while (i < r->n_passes && (r->pass[i].tokens != tokens || r->pass[i].logits != logits))
		i++;
	return i;
}

void compile_ahead_request(struct compile_ahead *r, uint32_t tokens, enum plan_logits logits, bool tuned)
{
	struct error ignored = { 0 };
	struct key *keys;
	unsigned at = find_pass(r, tokens, logits);
	size_t n;

	if (at == PASSES_MAX) { /* of those that came once, the rests of prompts, only the last ones are remembered */
		memmove(r->pass + PASSES_MAX / 2, r->pass + PASSES_MAX / 2 + 1, (PASSES_MAX / 2 - 1) * sizeof *r->pass);
		at = --r->n_passes;
	}
	if (!key_list_of_pass(r->passes, r->opt.kv, tokens, logits, &r->opt.plan, tuned, &keys, &n, &ignored))
		return;
	r->pass[at] = (struct pass){ tokens, logits, add_missing(r, keys, n) };
	r->n_passes += at == r->n_passes;
	free(keys);
	if (r->n > r->done && !r->running)
		r->running = pthread_create(&r->thread, NULL, thread_main, r) == 0;
}

bool compile_ahead_ready(const struct compile_ahead *r, uint32_t tokens, enum plan_logits logits)
{
	unsigned at = find_pass(r, tokens, logits);

	return at < r->n_passes &&
	       (r->done >= r->pass[at].until ||
	        !r->running); /* without a thread the session makes what it needs when it needs it */
}

static void wait_until(struct compile_ahead *r, size_t until)
{
	if (r->done >= until || !r->running)
		return;
	pthread_mutex_lock(&r->lock);
	while (r->done < until)
		pthread_cond_wait(&r->finished, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

void compile_ahead_wait(struct compile_ahead *r, uint32_t tokens, enum plan_logits logits)
{
	unsigned at = find_pass(r, tokens, logits);

	if (at < r->n_passes)
		wait_until(r, r->pass[at].until);
}

void compile_ahead_drain(struct compile_ahead *r) { wait_until(r, r->n); }

void compile_ahead_count(const struct compile_ahead *r, struct compile_ahead_counters *out)
{
	*out = (struct compile_ahead_counters){ r->made, r->nanoseconds };
}

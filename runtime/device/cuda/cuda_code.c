/* runtime/device/cuda/cuda_code.c - kernels from PTX text to functions of the card. See cuda.h.
 *
 * The driver makes machine code of a text, which takes it a tenth of a second; what it made is kept in the cache under
 * a key of its own (jit/store/driver_code.h). A card has each kernel once, whatever sessions ask for it.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ptx/program.h"
#include "jit/ptx/ptx.h"
#include "runtime/device/cuda/cuda.h"

enum { LOG_BYTES = 2048 };

static bool failed_kernel(struct cuda *d, const struct key *key, int result, const char *what, const char *log,
                          struct error *err)
{
	char name[KEY_TEXT_MAX], text[200];
	size_t line = strcspn(log, "\n");

	if (result == CUDA_GIVEN_UP)
		return cuda_failed(d, result, what, err);
	return error_set(err, ERROR_DEVICE, "%s: %s kernel %s failed: %s%s%.*s", d->name, what,
	                 key_text(key, name, sizeof name), cuda_result_text(d->api, result, text, sizeof text),
	                 line ? ": " : "", (int)line, log);
}

/* ---- machine code of a text */

/* cubin: malloc'ed; its size. */
static bool link_text(struct cuda *d, const struct key *key, const struct object *o, struct object *cubin,
                      struct error *err)
{
	char log[LOG_BYTES] = "", *text = malloc(o->code_bytes + 1);
	int options[] = { CUDA_ERROR_LOG, CUDA_ERROR_LOG_BYTES };
	void *values[] = { log, (void *)(uintptr_t)sizeof log }, *state = NULL, *made = NULL;
	size_t size = 0;

	if (!text)
		return error_set(err, ERROR_MEMORY, "no memory for the text of a kernel");
	memcpy(text, o->code, o->code_bytes);
	text[o->code_bytes] = 0;
	int result = d->api->link_create(2, options, values, &state);
	if (!result)
		result = d->api->link_add(state, CUDA_INPUT_PTX, text, o->code_bytes + 1, "kernel", 0, NULL, NULL);
	if (!result)
		result = d->api->link_complete(state, &made, &size);
	log[sizeof log - 1] = 0;
	bool ok = !result && made && size && size < RECORD_MAX_CODE;
	if (ok && !(cubin->code = malloc(size))) {
		ok = error_set(err, ERROR_MEMORY, "no memory for the code of a kernel");
	} else if (ok) {
		memcpy(cubin->code, made, size);
		cubin->code_bytes = cubin->pool_offset = (uint32_t)size;
	} else {
		failed_kernel(d, key, result, "making code of", log, err);
	}
	if (state)
		d->api->link_destroy(state);
	free(text);
	return ok;
}

bool cuda_link(void *user, const struct key *key, const struct object *text, struct object *out, struct error *err)
{
	struct cuda *d = user;

	*out = (struct object){ 0 };
	return cuda_enter(d, err) && link_text(d, key, text, out, err);
}

/* Of a sealed run. why: of an answer that says nothing of the object. */
static bool refuse(const struct cuda *d, const struct key *key, enum record_answer answer, const struct error *why,
                   struct error *err)
{
	char name[KEY_TEXT_MAX], by[DRIVER_CODE_TEXT_MAX];

	if (why->code)
		return error_set(err, why->code, "%s", why->text);
	return error_set(err, ERROR_UNSUPPORTED,
	                 "of kernel %s the cache has the text, but %s the code that the driver of %s makes of it (%s), "
	                 "and --sealed forbids making it; 'jitwarm MODEL --device %s --out CACHE' makes it beforehand",
	                 key_text(key, name, sizeof name), answer == RECORD_DAMAGED ? "cannot use" : "not", d->name,
	                 driver_code_text(d->linker.by, by), d->device.facts.name);
}

static enum record_answer find_code(const struct cuda *d, struct registry *r, const struct kernel *k,
                                    struct object *cubin, struct error *why)
{
	const struct key key = driver_code_key(&k->key, d->linker.by);
	struct cache *cache = registry_cache(r);

	*cubin = (struct object){ 0 };
	return cache ? cache_load(cache, &key, cubin, NULL, why) : RECORD_ABSENT;
}

static bool make_code(struct cuda *d, struct registry *r, const struct kernel *k, struct object *cubin,
                      struct error *err)
{
	const struct key key = driver_code_key(&k->key, d->linker.by);
	struct cache *cache = registry_cache(r);

	object_free(cubin);
	if (!link_text(d, &k->key, &k->object, cubin, err))
		return false;
	if (cache)
		cache_store(cache, &key, cubin, NULL);
	return true;
}

/* ---- functions of the card */

/* Before a launch may have so many bytes of shared memory, the driver wants to be told. */
enum { SHARED_UNASKED = 48 << 10 };

static void unload(struct cuda *d, struct cuda_kernel *k)
{
	for (unsigned i = d->cards; i-- > 0;) {
		if (!k->module[i])
			continue;
		cuda_enter_card(d, i, NULL); /* and if not: what can be given back is */
		d->api->module_unload(k->module[i]);
		k->module[i] = NULL;
	}
}

static int load_on(struct cuda *d, unsigned card, struct cuda_kernel *out, const void *cubin)
{
	int result = d->api->context_set(d->card[card].context);

	if (!result)
		result = d->api->module_load(&out->module[card], cubin);
	if (!result)
		result = d->api->module_function(&out->function[card], out->module[card],
		                                 out->key.kind == KEY_PROGRAM ? PTX_PROGRAM_ENTRY : PTX_ENTRY);
	if (!result && out->shared_bytes > SHARED_UNASKED)
		result = d->api->function_set(out->function[card], CUDA_FUNCTION_SHARED, (int)out->shared_bytes);
	return result;
}

static bool load(struct cuda *d, struct cuda_kernel *out, const struct kernel *k, const void *cubin, struct error *err)
{
	const struct target *t = d->device.facts.target;
	int blocks = 0, result = 0;

	out->key = k->key;
	out->cooperative = k->object.cooperative;
	out->waves = ptx_block_waves(k->key.kind == KEY_USER, k->object.shared_bytes + k->object.frame_bytes, t->waves);
	out->shared_bytes = ptx_shared_bytes(&k->object, out->waves);
	for (unsigned i = d->cards; i-- > 0 && !result;) /* the first one last, whose context then is this thread's */
		result = load_on(d, i, out, cubin);
	if (!result)
		result = d->api->function_blocks(&blocks, out->function[0], (int)(out->waves * t->lanes),
		                                 out->shared_bytes);
	out->resident = (uint32_t)blocks * d->units;
	if (!result && blocks >= 1)
		return true;
	unload(d, out);
	return failed_kernel(d, &k->key, result, "loading", "", err);
}

/* From what is kept, unless the driver refuses it; else from the text, where that may be. */
static bool get_function(struct cuda *d, struct registry *r, const struct kernel *k, struct cuda_kernel *out,
                         struct error *err)
{
	struct object cubin;
	struct error why = { 0 };
	enum record_answer answer = find_code(d, r, k, &cubin, &why);
	bool ok = answer == RECORD_FOUND && load(d, out, k, cubin.code, &why);

	if (!ok)
		ok = registry_is_sealed(r) ? refuse(d, &k->key, answer, &why, err)
		                           : make_code(d, r, k, &cubin, err) && load(d, out, k, cubin.code, err);
	object_free(&cubin);
	return ok;
}

static struct cuda_kernel *make_kernel(struct cuda *d, struct registry *r, const struct key *key, struct error *err)
{
	const struct kernel *k = registry_get(r, key, NULL, err);
	struct cuda_kernel *made = k ? calloc(1, sizeof *made) : NULL;

	if (k && !made)
		error_set(err, ERROR_MEMORY, "no memory for a kernel of a card");
	if (made && cuda_enter(d, err) && get_function(d, r, k, made, err))
		return made;
	free(made);
	return NULL;
}

struct cuda_kernel *cuda_find_kernel(struct cuda *d, const struct key *key)
{
	struct cuda_kernel *k;

	pthread_mutex_lock(&d->lock);
	for (k = d->kernels; k && !key_equal(&k->key, key); k = k->next)
		;
	pthread_mutex_unlock(&d->lock);
	return k;
}

/* Another session's may have been first: then there are two. */
static void keep(struct cuda *d, struct cuda_kernel *k)
{
	pthread_mutex_lock(&d->lock);
	k->next = d->kernels;
	d->kernels = k;
	pthread_mutex_unlock(&d->lock);
}

struct cuda_kernel *cuda_get_kernel(struct cuda *d, struct registry *r, const struct key *key, struct error *err)
{
	struct cuda_kernel *k = cuda_find_kernel(d, key);

	if (!k && (k = make_kernel(d, r, key, err)))
		keep(d, k);
	return k;
}

bool cuda_ready(struct device *device, struct registry *r, const struct key *key, struct error *err)
{
	return cuda_get_kernel((struct cuda *)device, r, key, err) != NULL;
}

struct making {
	struct cuda *d;
	struct registry *registry;
	struct plan *plan;
	_Atomic size_t next;
	pthread_mutex_t lock; /* of the error */
	struct error failure;
};

static void make_some(void *user, int worker, int workers)
{
	struct making *m = user;

	for (size_t i; (i = atomic_fetch_add_explicit(&m->next, 1, memory_order_relaxed)) < m->plan->n_kernels;) {
		struct error err = { 0 };
		struct plan_kernel *k = &m->plan->kernel[i];
		struct cuda_kernel *made = k->handle ? NULL : make_kernel(m->d, m->registry, &k->key, &err);
		if (made) {
			keep(m->d, made);
			k->handle = made;
		}
		if (!err.code)
			continue;
		pthread_mutex_lock(&m->lock);
		error_set(&m->failure, err.code, "%s", err.text);
		pthread_mutex_unlock(&m->lock);
	}
}

bool cuda_make_plan(struct cuda *d, struct registry *r, struct plan *p, struct pool *pool, struct error *err)
{
	struct making m = { .d = d, .registry = r, .plan = p, .lock = PTHREAD_MUTEX_INITIALIZER };
	size_t missing = 0;

	if (!device_make_plan(r, p, pool, err))
		return false;
	for (size_t i = 0; i < p->n_kernels; i++)
		missing += !(p->kernel[i].handle = cuda_find_kernel(d, &p->kernel[i].key));
	if (missing)
		pool_run(pool, make_some, &m);
	pthread_mutex_destroy(&m.lock);
	return !m.failure.code || error_set(err, m.failure.code, "%s", m.failure.text);
}

void cuda_forget_kernels(struct cuda *d)
{
	for (struct cuda_kernel *k = d->kernels, *next; k; k = next) {
		next = k->next;
		unload(d, k);
		free(k);
	}
	d->kernels = NULL;
}

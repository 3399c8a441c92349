/* jit/store/registry_load.c - many kernels at once from the cache.
 *
 * All entries are claimed first, so that other threads that want one of them wait for this load.
 */
#include <stdlib.h>

#include "jit/store/registry_state.h"

/* Entries this thread set BUILDING, and what was found of them. */
struct batch {
	struct entry **entry;
	const struct key **key;
	struct object *object;
	enum record_answer *answer;
	unsigned *source;
	struct execmem_block *block;
	size_t n;
};

static bool batch_open(struct batch *b, size_t n)
{
	*b = (struct batch){ .entry = malloc(n * sizeof *b->entry),
		             .key = malloc(n * sizeof *b->key),
		             .object = malloc(n * sizeof *b->object),
		             .answer = malloc(n * sizeof *b->answer),
		             .source = malloc(n * sizeof *b->source),
		             .block = malloc(n * sizeof *b->block) };
	return b->entry && b->key && b->object && b->answer && b->source && b->block;
}

static void batch_close(struct batch *b)
{
	free(b->entry);
	free(b->key);
	free(b->object);
	free(b->answer);
	free(b->source);
	free(b->block);
}

static void batch_claim(struct batch *b, struct registry *r, const struct key *key, size_t n)
{
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < n && !r->frozen; i++) {
		struct entry *e = registry_key_is_usable(&key[i], NULL)
		                          ? registry_entry_claim(r, &key[i], key_hash(&key[i]))
		                          : NULL;
		if (!e || e->state != ENTRY_IDLE)
			continue;
		atomic_store_explicit(&e->state, ENTRY_BUILDING, memory_order_relaxed);
		b->key[b->n] = &e->kernel.key;
		b->entry[b->n++] = e;
	}
	pthread_mutex_unlock(&r->lock);
}

/* Loads, and makes executable in one go. Returns the number loaded; when pages are not to be had, none is, and the code
 * that asks for a kernel is told. */
static size_t batch_load(struct batch *b, struct registry *r)
{
	uint64_t start = registry_now_ns();
	size_t blocks = 0, found = 0, at = 0;

	cache_load_all(r->opt.cache, b->key, b->n, b->object, b->answer, b->source);
	for (size_t i = 0; i < b->n; i++) {
		found += b->object[i].code != NULL;
		if (b->object[i].code && registry_runs_here(r, &b->entry[i]->kernel))
			b->block[blocks++] =
				(struct execmem_block){ .code = b->object[i].code, .n = b->object[i].code_bytes };
	}
	bool mapped = execmem_put_all(r->pages, b->block, blocks, NULL);
	uint64_t each = found ? (registry_now_ns() - start) / found : 0;
	for (size_t i = 0; i < b->n; i++) {
		struct kernel *k = &b->entry[i]->kernel;
		b->entry[i]->known = b->object[i].code ? RECORD_FAILED : b->answer[i];
		if (!mapped)
			object_free(&b->object[i]);
		if (!b->object[i].code)
			continue;
		k->object = b->object[i];
		k->source = registry_source_of(r, b->source[i]);
		registry_set_code(r, k, registry_runs_here(r, k) ? b->block[at++].at : NULL);
		registry_count_kernel(r, k, each);
	}
	return mapped ? found : 0;
}

static void batch_publish(struct batch *b, struct registry *r)
{
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < b->n; i++) {
		atomic_store_explicit(&b->entry[i]->state, b->object[i].code ? ENTRY_READY : ENTRY_IDLE,
		                      memory_order_release);
		pthread_cond_broadcast(&b->entry[i]->done);
	}
	pthread_mutex_unlock(&r->lock);
}

size_t registry_load(struct registry *r, const struct key *key, size_t n)
{
	struct batch b;
	size_t loaded = 0;

	if (!registry_can_load(r) || n == 0)
		return 0;
	if (batch_open(&b, n)) {
		batch_claim(&b, r, key, n);
		loaded = batch_load(&b, r);
		batch_publish(&b, r);
	}
	batch_close(&b);
	return loaded;
}

/* programs/jitk/jitk_snn.c - the network of the example snn: its edges, by target and then by source, and its spikes.
 *
 * Owns: which neuron synapse k of neuron i ends at, which a number by counter says. Edges are sorted in parallel: parts
 * of the sources write pairs into buckets of targets, each behind what the parts before it write there, and each bucket
 * is sorted by itself. The result depends on n alone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/jitk/jitk_example.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"

enum { SYNAPSES = 4, PARTS = 64, BUCKETS = 256 };

struct edge {
	uint32_t target, source;
};
struct graph {
	uint64_t n;
	unsigned shift; /* target >> shift is its bucket */
	struct edge *edge;
	uint32_t *first, *source;
	uint64_t begin[BUCKETS + 1];
	uint64_t at[PARTS][BUCKETS]; /* how many edges, then where the next one goes */
};

static uint64_t splitmix64(uint64_t seed, uint64_t counter)
{
	uint64_t z = seed + counter * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Neurons have no synapse with themselves, where there is another one. */
static uint32_t target_of(uint64_t n, uint64_t i, uint64_t k)
{
	uint64_t t = splitmix64(UINT64_C(0xdeadbeef12345678), i * SYNAPSES + k) % n;

	if (t == i)
		t = t + 1 == n ? 0 : t + 1;
	return (uint32_t)t;
}

static void take_part(struct graph *g, uint32_t part, bool write)
{
	uint64_t *at = g->at[part];

	for (uint64_t i = g->n * part / PARTS; i < g->n * (part + 1) / PARTS; i++)
		for (uint64_t k = 0; k < SYNAPSES; k++) {
			const uint32_t t = target_of(g->n, i, k);
			if (write)
				g->edge[at[t >> g->shift]] = (struct edge){ t, (uint32_t)i };
			at[t >> g->shift]++;
		}
}

static void give_room(struct graph *g)
{
	uint64_t all = 0;

	for (unsigned b = 0; b < BUCKETS; b++) {
		g->begin[b] = all;
		for (unsigned p = 0; p < PARTS; p++) {
			const uint64_t count = g->at[p][b];
			g->at[p][b] = all;
			all += count;
		}
	}
	g->begin[BUCKETS] = all;
}

/* Sorts a bucket's edges, which come in ascending order of their sources, by target. */
static void sort_bucket(struct graph *g, uint32_t b)
{
	const uint64_t low = (uint64_t)b << g->shift, next = (uint64_t)(b + 1) << g->shift;
	const uint64_t high = next < g->n ? next : g->n;
	uint64_t at = g->begin[b];

	for (uint64_t e = g->begin[b]; e < g->begin[b + 1]; e++)
		g->first[g->edge[e].target]++;
	for (uint64_t t = low; t < high; t++) {
		const uint32_t count = g->first[t];
		g->first[t] = (uint32_t)at;
		at += count;
	}
	for (uint64_t e = g->begin[b]; e < g->begin[b + 1]; e++)
		g->source[g->first[g->edge[e].target]++] = g->edge[e].source;
	for (uint64_t t = high; t > low; t--) /* each one is where the next begins */
		g->first[t - 1] = t - 1 > low ? g->first[t - 2] : (uint32_t)g->begin[b];
}

static uint32_t open_stage(void *user, int worker, uint32_t stage)
{
	if (stage == 1)
		give_room(user);
	return stage == 2 ? BUCKETS : PARTS;
}

static void share(void *user, int worker, uint32_t stage, uint32_t number)
{
	if (stage == 2)
		sort_bucket(user, number);
	else
		take_part(user, number, stage == 1);
}

/* first: n + 1 zeros. The kernel has no more neurons than 32 bits count edges of. */
static bool make_graph(uint64_t n, uint32_t *first, uint32_t *source, struct error *err)
{
	struct graph *g = calloc(1, sizeof *g);
	struct pool *pool = NULL;
	bool ok = g && (g->edge = malloc((n ? n : 1) * SYNAPSES * sizeof *g->edge)) != NULL;

	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory for the edges of %" PRIu64 " neurons", n);
	ok = ok && (pool = pool_open(jitk.threads ? (int)jitk.threads : system_default_threads(), err)) != NULL;
	if (ok) {
		g->n = n;
		g->first = first;
		g->source = source;
		while (n >> g->shift > BUCKETS - 1)
			g->shift++;
		pool_work(pool, &(struct pool_work){ .stages = 3, .open = open_stage, .share = share, .user = g });
		first[n] = (uint32_t)(n * SYNAPSES);
	}
	pool_close(pool);
	free(g ? g->edge : NULL);
	free(g);
	return ok;
}

/* `source` is made with `first`, and kept until its turn comes. */
bool example_fill_snn(struct jitk_array *a, bool *done, struct error *err)
{
	static uint32_t *source;
	static uint64_t n;

	*done = true;
	if (strcmp(a->is.name, "first") == 0) {
		n = a->is.elements - 1;
		if (!(source = malloc((n ? n : 1) * SYNAPSES * sizeof *source)))
			return error_set(err, ERROR_MEMORY, "no memory for the edges of %" PRIu64 " neurons", n);
		return make_graph(n, (uint32_t *)(void *)a->data, source, err);
	}
	if (strcmp(a->is.name, "source") == 0 && source) {
		free(a->data);
		a->data = (uint8_t *)source;
		source = NULL;
		return true;
	}
	*done = strcmp(a->is.name, "v") == 0;
	for (uint64_t i = 0; *done && i < a->is.elements; i++)
		((double *)(void *)a->data)[i] = -65;
	return true;
}

void example_print_snn(const struct jitk_arrays *a, long steps)
{
	const struct jitk_array *spikes = &a->list[a->n - 1];
	const uint32_t *count = (const uint32_t *)(const void *)spikes->data;
	uint64_t all = 0, hash = UINT64_C(14695981039346656037);

	for (uint64_t i = 0; i < spikes->is.elements; i++) {
		all += count[i];
		hash = (hash ^ count[i]) * UINT64_C(1099511628211);
	}
	printf("%" PRIu64 " spikes of %" PRIu64 " neurons in %ld steps, hash of their counts %016" PRIx64 "\n", all,
	       spikes->is.elements, steps, hash);
}

/* loaders/tokenizer/tokenizer_queue.c - which pair of neighbours merges next.
 *
 * Owns: the candidates of a word, smallest key first. A word of up to MANY_SYMBOLS has a binary heap, and beside it a
 * row of those that came in rising order, as nearly all do where a text repeats itself. A long word has millions of
 * candidates, and each step of a heap of that size waits for memory. So they lie in buckets by priority, in the order
 * in which they came, and only one bucket at a time is a heap, which the processor's caches can hold. Where the keys of
 * a bucket rise already, as those of a text that repeats itself do, it is read as it is.
 */
#include <stdlib.h>

#include "loaders/tokenizer/tokenizer_internal.h"

enum { BUCKETS = 4096, MANY_SYMBOLS = 4096, EXACT_BITS = 10, PART_BITS = 7 };
#define NONE UINT32_MAX

struct tok_bucket {
	uint32_t first, last;
	bool falls; /* a key is smaller than the one before it */
};

static bool pair_before(const struct tok_pair *a, const struct tok_pair *b) { return a->key < b->key; }

static void sift_down(struct tok_pair *heap, size_t n, size_t i)
{
	struct tok_pair x = heap[i];

	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= n)
			break;
		/* added, not branched upon: which of the two is smaller cannot be predicted */
		if (child + 1 < n)
			child += pair_before(&heap[child + 1], &heap[child]);
		if (!pair_before(&heap[child], &x))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = x;
}

static void sift_up(struct tok_pair *heap, size_t i)
{
	struct tok_pair x = heap[i];

	while (i > 0 && pair_before(&x, &heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = x;
}

/* Never falls with the priority. Scores are the bits of a float: their upper ones tell the exponent and some of the
 * rest. Of ranks each small one has a bucket, as common pairs have small ranks; then 128 share each power of two. */
static int bucket_of(const struct tokenizer *t, uint32_t priority)
{
	if (t->model == TOK_CHAR_SCORES)
		return (int)(priority >> 20);
	if (priority >> EXACT_BITS == 0)
		return (int)priority;
	const int power = 31 - __builtin_clz(priority);
	return (1 << EXACT_BITS) + ((power - EXACT_BITS) << PART_BITS) +
	       (int)((priority >> (power - PART_BITS)) & ((1 << PART_BITS) - 1));
}

bool tok_queue_begin(struct tok_work *w, size_t symbols)
{
	struct tok_queue *q = &w->queue;
	size_t room = 0;

	q->n_heap = q->n_later = q->n_row = q->row_first = 0;
	q->spare = NONE;
	q->now = BUCKETS;
	if (symbols <= MANY_SYMBOLS)
		return true;
	if (!q->bucket && !tok_grow((void **)&q->bucket, &room, BUCKETS, sizeof *q->bucket, w->err))
		return false;
	for (unsigned i = 0; i < BUCKETS; i++)
		q->bucket[i] = (struct tok_bucket){ NONE, NONE, false };
	q->now = -1;
	return true;
}

static bool add_to_heap(struct tok_work *w, const struct tok_pair *c)
{
	struct tok_queue *q = &w->queue;

	if (q->n_heap == q->heap_cap &&
	    !tok_grow((void **)&q->heap, &q->heap_cap, q->n_heap + 1, sizeof *q->heap, w->err))
		return false;
	q->heap[q->n_heap++] = *c;
	return true;
}

static bool add_to_bucket(struct tok_work *w, struct tok_bucket *b, const struct tok_pair *c)
{
	struct tok_queue *q = &w->queue;
	uint32_t i = q->spare;

	if (i != NONE) {
		q->spare = q->next[i];
	} else {
		i = (uint32_t)q->n_later;
		if (q->n_later == q->later_cap &&
		    !tok_grow((void **)&q->later, &q->later_cap, q->n_later + 1, sizeof *q->later, w->err))
			return false;
		if (q->n_later == q->next_cap &&
		    !tok_grow((void **)&q->next, &q->next_cap, q->n_later + 1, sizeof *q->next, w->err))
			return false;
		q->n_later++;
	}
	q->later[i] = *c;
	q->next[i] = NONE;
	if (b->first == NONE) {
		b->first = i;
		b->falls = false;
	} else {
		b->falls |= pair_before(c, &q->later[b->last]);
		q->next[b->last] = i;
	}
	b->last = i;
	return true;
}

static bool add_to_row(struct tok_work *w, const struct tok_pair *c)
{
	struct tok_queue *q = &w->queue;

	if (q->n_row == q->row_cap && !tok_grow((void **)&q->row, &q->row_cap, q->n_row + 1, sizeof *q->row, w->err))
		return false;
	q->row[q->n_row++] = *c;
	return true;
}

bool tok_queue_push(const struct tokenizer *t, struct tok_work *w, const struct tok_pair *c)
{
	struct tok_queue *q = &w->queue;
	const int b = q->now < BUCKETS ? bucket_of(t, (uint32_t)(c->key >> 32)) : 0;

	if (b > q->now)
		return add_to_bucket(w, &q->bucket[b], c);
	if (q->now == BUCKETS && (q->n_row == 0 || !pair_before(c, &q->row[q->n_row - 1])))
		return add_to_row(w, c);
	if (!add_to_heap(w, c))
		return false;
	sift_up(q->heap, q->n_heap - 1);
	return true;
}

static struct tok_pair take_first(struct tok_queue *q, struct tok_bucket *b)
{
	const uint32_t i = b->first;

	b->first = q->next[i];
	if (b->first != NONE)
		__builtin_prefetch(&q->later[b->first]);
	q->next[i] = q->spare;
	q->spare = i;
	return q->later[i];
}

/* The next bucket that has something; the heap is empty. */
static bool open_bucket(struct tok_work *w)
{
	struct tok_queue *q = &w->queue;

	while (q->now < BUCKETS && (q->now < 0 || q->bucket[q->now].first == NONE))
		if (++q->now == BUCKETS)
			return true;
	struct tok_bucket *b = &q->bucket[q->now];
	if (!b->falls)
		return true;
	while (b->first != NONE) {
		const struct tok_pair c = take_first(q, b);
		if (!add_to_heap(w, &c))
			return false;
	}
	for (size_t i = q->n_heap / 2; i-- > 0;)
		sift_down(q->heap, q->n_heap, i);
	return true;
}

bool tok_queue_pop(struct tok_work *w, struct tok_pair *c, bool *any)
{
	struct tok_queue *q = &w->queue;

	if (q->row_first < q->n_row && (!q->n_heap || pair_before(&q->row[q->row_first], &q->heap[0]))) {
		*c = q->row[q->row_first++];
		if (q->row_first == q->n_row)
			q->row_first = q->n_row = 0;
		return *any = true;
	}
	if (q->n_heap == 0 && q->now < BUCKETS && !open_bucket(w))
		return false;
	struct tok_bucket *b = q->now < BUCKETS ? &q->bucket[q->now] : NULL;
	*any = true;
	if (b && b->first != NONE && (!q->n_heap || pair_before(&q->later[b->first], &q->heap[0]))) {
		*c = take_first(q, b);
	} else if (q->n_heap) {
		*c = q->heap[0];
		q->heap[0] = q->heap[--q->n_heap];
		if (q->n_heap)
			sift_down(q->heap, q->n_heap, 0);
	} else {
		*any = false;
	}
	/* Symbols of a long word are in no cache: those of the pairs that come next are prefetched. */
	if (b && q->n_heap > 2)
		for (int i = 0; i < 3; i++)
			__builtin_prefetch(&w->symbol[(uint32_t)q->heap[i].key]);
	if (b && b->first != NONE)
		__builtin_prefetch(&w->symbol[(uint32_t)q->later[b->first].key]);
	return true;
}

void tok_queue_free(struct tok_queue *q)
{
	free(q->heap);
	free(q->row);
	free(q->later);
	free(q->next);
	free(q->bucket);
}

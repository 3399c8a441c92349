/* runtime/device/cuda/cuda_cards.c - memory of several cards that compute together. See cuda.h.
 *
 * Owns: one range of addresses, of which each card has a part of the same size (PTX_CARD_SHIFT). Whatever is allocated
 * is memory of each card, at the same place of its part, and all cards reach it. So a kernel finds its operands in its
 * own card's memory, and stores results to all of them by changing the card's number in the address. Of weights each
 * card has what its units read, and the places of the rest are empty.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "jit/ptx/ptx.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/plan/weights.h"

/* Kernels add displacements of 32 bits to addresses, which must stay in the card's part. */
#define PART_BYTES (UINT64_C(1) << PTX_CARD_SHIFT)
#define MARGIN_BYTES (UINT64_C(1) << 32)

/* Memory of one card, at its own handle. */
struct run {
	uint64_t at, bytes; /* from where the allocation begins; in whole granules */
	uint64_t handle;
	bool mapped;
};
/* In the order of their places. */
struct cuda_mapped {
	struct cuda_mapped *next;
	uint64_t at, bytes; /* in a card's part */
	struct runs {
		struct run *run; /* in the order of their places; between them the card has nothing */
		size_t n, capacity;
	} of[CUDA_CARDS_MAX];
};

static struct cuda_memory memory_of(const struct cuda *d, unsigned card)
{
	return (struct cuda_memory){ .type = CUDA_MEMORY_PINNED,
		                     .location = { CUDA_LOCATION_CARD, d->card[card].number } };
}

static bool reach_each_other(struct cuda *d, struct error *err)
{
	for (unsigned i = 0; i < d->cards; i++)
		for (unsigned k = 0; k < d->cards; k++) {
			int can = 0,
			    result = i == k ? 0 : d->api->peer_reached(&can, d->card[i].number, d->card[k].number);
			if (result)
				return cuda_failed(d, result, "asking which memory the cards reach", err);
			if (i != k && !can)
				return error_set(
					err, ERROR_DEVICE,
					"card %d does not reach the memory of card %d; cards that compute together "
					"must, by NVLink or over the bus",
					d->card[i].number, d->card[k].number);
		}
	return true;
}

bool cuda_cards_open(struct cuda *d, struct error *err)
{
	const uint64_t bytes = d->cards * PART_BYTES;
	const struct cuda_memory memory = memory_of(d, 0);
	uint64_t base = 0;

	if (!reach_each_other(d, err))
		return false;
	int result = d->api->granule_bytes(&d->granule, &memory, 0);
	if (!result)
		result = d->api->addresses_take(&base, bytes, bytes, 0, 0);
	if (result)
		return cuda_failed(d, result, "taking addresses for several cards", err);
	d->base = base;
	return base % bytes == 0 ||
	       error_set(err, ERROR_DEVICE,
	                 "%s: the driver has no addresses for several cards at a "
	                 "multiple of their size",
	                 d->name);
}

void cuda_cards_close(struct cuda *d)
{
	if (d->base)
		d->api->addresses_leave(d->base, d->cards * PART_BYTES);
	d->base = 0;
}

uint64_t cuda_on_card(const struct cuda *d, unsigned card, uint64_t address)
{
	return d->base && address - d->base < PART_BYTES ? address | (uint64_t)card << PTX_CARD_SHIFT : address;
}

/* Unmapping does not wait for what is still to be filled or copied there: a card that then finds no memory is lost to
 * the process. */
static void free_mapped(struct cuda *d, struct cuda_mapped *m)
{
	cuda_finish_copies(d);
	for (unsigned card = 0; card < d->cards; card++) {
		for (size_t i = 0; i < m->of[card].n; i++) {
			const struct run *r = &m->of[card].run[i];
			if (r->mapped)
				d->api->memory_unmap(cuda_on_card(d, card, d->base + m->at + r->at), r->bytes);
			if (r->handle)
				d->api->memory_release(r->handle);
		}
		free(m->of[card].run);
	}
	free(m);
}

/* ---- which granules a card has */

/* What it does not need of a share; but kernels may read a little behind what they need, which may be here. */
static void leave_out(uint8_t *wanted, size_t granule, uint64_t from, uint64_t end)
{
	for (uint64_t i = (from + WEIGHTS_SLACK + granule - 1) / granule; (i + 1) * granule <= end; i++)
		wanted[i] = false;
}

/* By granule, malloc'ed; NULL: no memory. */
static uint8_t *wanted_granules(const struct cuda *d, unsigned card, uint64_t granules, const struct cut_share *share,
                                size_t n)
{
	uint8_t *wanted = malloc(granules + 1);

	if (wanted)
		memset(wanted, true, granules);
	for (size_t i = 0; wanted && i < n; i++) {
		const uint64_t first = cut_begin(share[i].units, card, d->cards),
			       end = cut_begin(share[i].units, card + 1, d->cards);
		leave_out(wanted, d->granule, share[i].at, share[i].at + first * share[i].bytes);
		leave_out(wanted, d->granule, share[i].at + end * share[i].bytes,
		          share[i].at + share[i].units * share[i].bytes);
	}
	return wanted;
}

static bool find_runs(const struct cuda *d, struct cuda_mapped *m, const struct cut_share *share, size_t n)
{
	const uint64_t granules = m->bytes / d->granule;
	bool ok = true;

	for (unsigned card = 0; card < d->cards && ok; card++) {
		struct runs *r = &m->of[card];
		uint8_t *wanted = wanted_granules(d, card, granules, share, n);
		ok = wanted != NULL;
		for (uint64_t i = 0; ok && i < granules; i++) {
			if (!wanted[i])
				continue;
			if (!i || !wanted[i - 1]) {
				ok = array_grow((void **)&r->run, &r->capacity, r->n + 1, sizeof *r->run);
				if (ok)
					r->run[r->n++] = (struct run){ .at = i * d->granule };
			}
			if (ok)
				r->run[r->n - 1].bytes += d->granule;
		}
		free(wanted);
	}
	return ok;
}

static uint64_t runs_bytes(const struct runs *r)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->n; i++)
		bytes += r->run[i].bytes;
	return bytes;
}

static uint64_t whole_granules(const struct cuda *d, uint64_t bytes)
{
	return (bytes + d->granule - 1) / d->granule * d->granule;
}

uint64_t cuda_cards_bytes(const struct cuda *d, size_t bytes, const struct cut_share *share, size_t n)
{
	struct cuda_mapped m = { .bytes = whole_granules(d, bytes) };
	const bool ok = find_runs(d, &m, share, n);
	uint64_t max = 0;

	for (unsigned card = 0; card < d->cards; card++) {
		const uint64_t mine = runs_bytes(&m.of[card]);
		max = mine > max ? mine : max;
		free(m.of[card].run);
	}
	return ok ? max : m.bytes;
}

/* ---- mapping */

/* Zeroed memory of a card, where the others reach it, too. */
static int map_run(struct cuda *d, const struct cuda_mapped *m, unsigned card, struct run *r)
{
	struct cuda_reach reach[CUDA_CARDS_MAX];
	const struct cuda_memory memory = memory_of(d, card);
	const uint64_t to = cuda_on_card(d, card, d->base + m->at + r->at);

	for (unsigned i = 0; i < d->cards; i++)
		reach[i] = (struct cuda_reach){ { CUDA_LOCATION_CARD, d->card[i].number }, CUDA_REACH_ALL };
	int result = d->api->memory_create(&r->handle, r->bytes, &memory, 0);
	if (result) {
		r->handle = 0;
		return result;
	}
	result = d->api->memory_map(to, r->bytes, 0, r->handle, 0);
	r->mapped = !result;
	if (!result)
		result = d->api->memory_reach(to, r->bytes, reach, d->cards);
	return result ? result : d->api->set_bytes(to, 0, r->bytes);
}

static int map(struct cuda *d, struct cuda_mapped *m)
{
	int result = 0;

	for (unsigned card = d->cards; card-- > 0 && !result;) { /* the first one's context then is this thread's */
		result = d->api->context_set(d->card[card].context);
		for (size_t i = 0; i < m->of[card].n && !result; i++)
			result = map_run(d, m, card, &m->of[card].run[i]);
	}
	return result;
}

/* The first place that has room, in the list where it belongs. NULL: there is none. */
static struct cuda_mapped **find_slot(struct cuda *d, uint64_t bytes, uint64_t *at)
{
	struct cuda_mapped **next = &d->mapped;

	for (*at = MARGIN_BYTES; *next && (*next)->at - *at < bytes; next = &(*next)->next)
		*at = (*next)->at + (*next)->bytes;
	return PART_BYTES - MARGIN_BYTES - *at >= bytes ? next : NULL;
}

int cuda_cards_alloc(struct cuda *d, size_t bytes, const struct cut_share *share, size_t n, uint64_t *address)
{
	struct cuda_mapped *m = calloc(1, sizeof *m), **where = NULL;

	if (m && bytes <= PART_BYTES) {
		m->bytes = whole_granules(d, bytes);
		pthread_mutex_lock(&d->lock);
		if ((where = find_slot(d, m->bytes, &m->at))) {
			m->next = *where;
			*where = m;
		}
		pthread_mutex_unlock(&d->lock);
	}
	if (!where) {
		free(m);
		return CUDA_OUT_OF_MEMORY;
	}
	int result = find_runs(d, m, share, n) ? map(d, m) : CUDA_OUT_OF_MEMORY;
	*address = d->base + m->at;
	if (result)
		cuda_cards_release(d, *address);
	return result;
}

void cuda_cards_release(struct cuda *d, uint64_t address)
{
	struct cuda_mapped *gone = NULL;

	pthread_mutex_lock(&d->lock);
	for (struct cuda_mapped **m = &d->mapped; *m && !gone; m = &(*m)->next)
		if (d->base + (*m)->at == address) {
			gone = *m;
			*m = gone->next;
			break;
		}
	pthread_mutex_unlock(&d->lock);
	if (gone)
		free_mapped(d, gone);
}

/* ---- copies */

/* The run of a card's that has these bytes, or the first of them behind. NULL: it has none. */
static const struct run *run_at(const struct cuda_mapped *m, unsigned card, uint64_t at)
{
	const struct runs *r = &m->of[card];
	size_t low = 0, high = r->n;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (r->run[middle].at + r->run[middle].bytes <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low < r->n ? &r->run[low] : NULL;
}

static const struct cuda_mapped *mapped_at(struct cuda *d, uint64_t address)
{
	const struct cuda_mapped *m;

	pthread_mutex_lock(&d->lock);
	for (m = d->mapped; m && address - (d->base + m->at) >= m->bytes; m = m->next)
		;
	pthread_mutex_unlock(&d->lock);
	return m;
}

int cuda_cards_copy_to(struct cuda *d, uint64_t to, const uint8_t *from, size_t bytes)
{
	const struct cuda_mapped *m = mapped_at(d, to);
	const uint64_t begin = m ? to - d->base - m->at : 0, end = begin + bytes;
	int result = m ? 0 : CUDA_INVALID;

	for (unsigned card = d->cards; m && card-- > 0 && !result;) {
		result = d->api->context_set(d->card[card].context);
		for (uint64_t at = begin; at < end && !result;) {
			const struct run *r = run_at(m, card, at);
			if (!r || r->at >= end)
				break;
			at = r->at > at ? r->at : at;
			const uint64_t upto = r->at + r->bytes < end ? r->at + r->bytes : end;
			result = d->api->copy_to(cuda_on_card(d, card, to + (at - begin)), from + (at - begin),
			                         upto - at);
			at = upto;
		}
	}
	return result;
}

int cuda_cards_copy_from(struct cuda *d, uint8_t *to, uint64_t from, size_t bytes)
{
	const struct cuda_mapped *m = mapped_at(d, from);
	const uint64_t begin = m ? from - d->base - m->at : 0, end = begin + bytes;
	int result = m ? 0 : CUDA_INVALID;

	for (uint64_t at = begin; m && at < end && !result;) {
		const struct run *r = NULL;
		unsigned card = 0;
		while (card < d->cards && (!(r = run_at(m, card, at)) || r->at > at))
			card++;
		if (card == d->cards)
			return CUDA_INVALID;
		const uint64_t upto = r->at + r->bytes < end ? r->at + r->bytes : end;
		result = d->api->context_set(d->card[card].context);
		if (!result)
			result = d->api->copy_from(to + (at - begin), cuda_on_card(d, card, from + (at - begin)),
			                           upto - at);
		at = upto;
	}
	return result;
}

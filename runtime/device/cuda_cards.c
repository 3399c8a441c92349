/* runtime/device/cuda_cards.c - memory of several cards that compute together. See cuda.h.
 *
 * Owns: one range of addresses, of which each card has a part of the same size (PTX_CARD_SHIFT). Whatever is allocated
 * is memory of each card, at the same place of its part, and all cards reach it. So a kernel finds its operands in its
 * own card's memory, and stores results to all of them by changing the card's number in the address.
 */
#include <stdlib.h>

#include "jit/ptx/ptx.h"
#include "runtime/device/cuda.h"

/* Kernels add displacements of 32 bits to addresses, which must stay in the card's part. */
#define PART_BYTES (UINT64_C(1) << PTX_CARD_SHIFT)
#define MARGIN_BYTES (UINT64_C(1) << 32)

/* In the order of their places. */
struct cuda_mapped {
	struct cuda_mapped *next;
	uint64_t at, bytes;                /* in a card's part */
	uint64_t handle[CUDA_CARDS_MOST];
	unsigned created, mapped;          /* on so many cards */
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
			int can = 0, result = i == k ? 0 : d->api->peer_reached(&can, d->card[i].number, d->card[k].number);
			if (result)
				return cuda_failed(d, result, "asking which memory the cards reach", err);
			if (i != k && !can)
				return error_set(err, ERROR_DEVICE,
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
	int result = d->api->piece_bytes(&d->piece, &memory, 0);
	if (!result)
		result = d->api->addresses_take(&base, bytes, bytes, 0, 0);
	if (result)
		return cuda_failed(d, result, "taking addresses for several cards", err);
	d->base = base;
	return base % bytes == 0 || error_set(err, ERROR_DEVICE, "%s: the driver has no addresses for several cards at a "
	                                                         "multiple of their size", d->name);
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

static void free_mapped(struct cuda *d, struct cuda_mapped *m)
{
	for (unsigned i = 0; i < m->mapped; i++)
		d->api->memory_unmap(cuda_on_card(d, i, d->base + m->at), m->bytes);
	for (unsigned i = 0; i < m->created; i++)
		d->api->memory_release(m->handle[i]);
	free(m);
}

/* Memory of each card, where the others reach it, too. */
static int map(struct cuda *d, struct cuda_mapped *m)
{
	struct cuda_reach reach[CUDA_CARDS_MOST];
	int result = 0;

	for (unsigned i = 0; i < d->cards; i++)
		reach[i] = (struct cuda_reach){ { CUDA_LOCATION_CARD, d->card[i].number }, CUDA_REACH_ALL };
	for (unsigned i = 0; i < d->cards && !result; i++) {
		const struct cuda_memory memory = memory_of(d, i);
		const uint64_t to = cuda_on_card(d, i, d->base + m->at);
		result = d->api->memory_create(&m->handle[i], m->bytes, &memory, 0);
		m->created += !result;
		if (!result)
			result = d->api->memory_map(to, m->bytes, 0, m->handle[i], 0);
		m->mapped += m->created == i + 1 && !result;
		if (!result)
			result = d->api->memory_reach(to, m->bytes, reach, d->cards);
		if (!result && cuda_enter_card(d, i, NULL))
			result = d->api->set_bytes(to, 0, m->bytes);
	}
	cuda_enter(d, NULL);
	return result;
}

/* The first place that has room, in the list where it belongs. NULL: there is none. */
static struct cuda_mapped **place(struct cuda *d, uint64_t bytes, uint64_t *at)
{
	struct cuda_mapped **next = &d->mapped;

	for (*at = MARGIN_BYTES; *next && (*next)->at - *at < bytes; next = &(*next)->next)
		*at = (*next)->at + (*next)->bytes;
	return PART_BYTES - MARGIN_BYTES - *at >= bytes ? next : NULL;
}

int cuda_cards_alloc(struct cuda *d, size_t bytes, uint64_t *address)
{
	struct cuda_mapped *m = calloc(1, sizeof *m), **where = NULL;
	int result = CUDA_OUT_OF_MEMORY;

	if (m && bytes <= PART_BYTES) {
		m->bytes = (bytes + d->piece - 1) / d->piece * d->piece;
		pthread_mutex_lock(&d->lock);
		if ((where = place(d, m->bytes, &m->at))) {
			m->next = *where;
			*where = m;
		}
		pthread_mutex_unlock(&d->lock);
	}
	if (!where) {
		free(m);
		return result;
	}
	result = map(d, m);
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

/* runtime/device/cuda/cuda_partition.c - see cuda_partition.h.
 *
 * Owns: the choice of blocks. A block that is free when an op's inputs come has fetched the op's code and its first
 * weights, and waits; one that still works on those inputs has all that before it. And what an op does once for all its
 * units, each of its blocks does. So a stage keeps to blocks that are free, where they are half as many as it has units
 * or more, and no block has units of two of its ops while there are blocks enough.
 */
#include "runtime/device/cuda/cuda_partition.h"

static uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* What of a lot is to be distributed: units, or as many as a block does at once, where there are too many of them. */
static uint64_t portions(const struct cuda_lot *l, bool spread)
{
	return spread ? l->units : (l->units + l->waves - 1) / l->waves;
}

/* Sets how many blocks each lot has; returns how many all have, `blocks` at most but where there are more lots. */
static uint32_t share_out(struct cuda_lot lot[], size_t n, uint64_t all, bool spread, uint32_t blocks)
{
	uint64_t used = UINT64_MAX, max;

	/* The fewest blocks of which none has more than `max` units, */
	for (max = (all + blocks - 1) / blocks; used > blocks && max <= all; max++) {
		used = 0;
		for (size_t i = 0; i < n; i++)
			used += lot[i].blocks = (uint32_t)((portions(&lot[i], spread) + max - 1) / max);
	}
	/* and what is left, in proportion. */
	for (size_t i = 0; i < n && used < blocks; i++) {
		uint64_t all_portions = portions(&lot[i], spread),
			 fair = min(all_portions * blocks / all, all_portions),
			 more = fair > lot[i].blocks ? min(fair - lot[i].blocks, blocks - used) : 0;
		lot[i].blocks += (uint32_t)more;
		used += more;
	}
	return (uint32_t)used;
}

void cuda_partition(struct cuda_ring *d, struct cuda_lot lot[], size_t n)
{
	const uint32_t unused = d->blocks - d->busy;
	uint64_t units = 0, all = 0;

	for (size_t i = 0; i < n; i++)
		units += lot[i].units;
	const bool spread = units <= d->blocks;
	for (size_t i = 0; i < n; i++)
		all += portions(&lot[i], spread);
	const bool keeps = !lot[0].last_are_long && all <= 2 * (uint64_t)unused;
	uint32_t used = share_out(lot, n, all, spread, keeps ? unused : d->blocks), at = d->next;

	if (lot[0].last_are_long && used > unused) /* they end where the free ones do */
		at = (uint32_t)(((uint64_t)d->next + unused + 2 * (uint64_t)d->blocks - used) % d->blocks);
	for (size_t i = 0; i < n; i++) {
		struct cuda_lot *l = &lot[i];
		uint64_t shares = (uint64_t)l->blocks * l->waves;
		l->first = at;
		l->per = (uint32_t)(l->units / shares);
		l->rest = (uint32_t)(l->units % shares);
		at = (uint32_t)(((uint64_t)at + l->blocks) % d->blocks);
	}
	d->next = at;
	d->busy = used < d->blocks ? used : d->blocks;
}

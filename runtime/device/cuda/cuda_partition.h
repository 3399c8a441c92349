/* runtime/device/cuda/cuda_partition.h - which blocks of a cooperative launch do which units of a plan's ops. */
#ifndef RUNTIME_CUDA_PARTITION_H
#define RUNTIME_CUDA_PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Blocks stand in a ring: those from `next` on are free, and the last `busy` in front of it do the stage before. */
struct cuda_ring {
	uint32_t blocks; /* of the launch; next and busy begin as 0 */
	uint32_t next, busy;
};
/* An op of a stage. */
struct cuda_lot {
	uint64_t units;     /* 1 or more */
	uint32_t waves;     /* of a block, that have shares of their own; 1: blocks have them */
	bool last_are_long; /* the last units take longest */
	/* Set: `blocks` blocks of the ring from `first` on have shares, of `per` units, the first `rest` shares one
	 * more (struct ptx_command). */
	uint32_t first, blocks, per, rest;
};
/* Distributes the units of a stage, whose ops do not wait for each other; n is 1 or more. */
void cuda_partition(struct cuda_ring *d, struct cuda_lot lot[], size_t n);

#endif

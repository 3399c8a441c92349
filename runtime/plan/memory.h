/* runtime/plan/memory.h - what memory on a device is for, which decides who reaches it.
 *
 * Owns: the enum, which plans say of their buffers and devices are asked for (runtime/device/device.h), and how cards
 * that compute together share weights and units.
 */
#ifndef RUNTIME_PLAN_MEMORY_H
#define RUNTIME_PLAN_MEMORY_H

#include <stdint.h>

enum device_memory {
	DEVICE_WEIGHTS,
	DEVICE_VECTORS, /* written by upload() before the first plan runs; kernels read them. VECTORS: norms and biases
	                 */
	DEVICE_CACHE,
	DEVICE_BUFFERS, /* KV cache, activations: kernels alone */
	DEVICE_SHARED   /* ids, angles, logits: the host writes and reads them in place, between runs */
};

/* Weights of which cards that compute together need not have all: from `at` on so many bytes for each of `units` units,
 * which unit i of an op that has as many reads alone. Which units a card has: memory_share_begin(). */
struct memory_share {
	uint64_t at, bytes, units;
};
/* Of an op with so many units, the first that this one of so many cards has; card == cards: where the last one's end.
 * Units of large matrices are distributed by eights, which a group does at once. */
static inline uint64_t memory_share_begin(uint64_t units, unsigned card, unsigned cards)
{
	const uint64_t together = units >= 64 * (uint64_t)cards ? 8 : 1, groups = units / together;

	return card == cards ? units : groups * card / cards * together;
}

#endif

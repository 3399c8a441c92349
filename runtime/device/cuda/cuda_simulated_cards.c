/* runtime/device/cuda/cuda_simulated_cards.c - addresses and memory of several cards in the simulated library. See
 * cuda_simulated.h.
 *
 * Addresses that are taken are the process's, and nothing is there until memory is mapped. A card's memory is reached
 * by nobody until it is said by whom.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/device/cuda/cuda_simulated.h"

/* Real cards have some megabytes; so that small models have many. */
enum { GRANULE = 1 << 12 };

struct handle {
	size_t bytes;
	int card;
};

int sim_peer_reached(int *can, int device, int peer)
{
	*can = device != peer;
	return 0;
}

int sim_granule_bytes(size_t *bytes, const struct cuda_memory *m, int option)
{
	*bytes = GRANULE;
	return 0;
}

int sim_addresses_take(uint64_t *address, size_t bytes, size_t alignment, uint64_t wanted, unsigned long long flags)
{
	uint8_t *p = mmap(NULL, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return CUDA_OUT_OF_MEMORY;
	const size_t front = alignment - (uintptr_t)p % alignment;
	munmap(p, front);
	if (alignment > front)
		munmap(p + front + bytes, alignment - front);
	*address = (uint64_t)(uintptr_t)p + front;
	return 0;
}

int sim_addresses_leave(uint64_t address, size_t bytes)
{
	return munmap((void *)(uintptr_t)address, bytes) ? CUDA_SIMULATED_INVALID : 0;
}

int sim_memory_create(uint64_t *handle, size_t bytes, const struct cuda_memory *m, unsigned long long flags)
{
	struct handle *h = NULL;

	if (m->type != CUDA_MEMORY_PINNED || m->location.type != CUDA_LOCATION_CARD || bytes % GRANULE)
		return CUDA_SIMULATED_INVALID;
	cuda_simulated_begin();
	if (cuda_simulation.used + bytes <= CUDA_SIMULATED_MEMORY && (h = calloc(1, sizeof *h))) {
		*h = (struct handle){ bytes, m->location.card };
		cuda_simulation.used += bytes;
	}
	*handle = (uint64_t)(uintptr_t)h;
	return cuda_simulated_end(h ? 0 : CUDA_OUT_OF_MEMORY);
}

int sim_memory_release(uint64_t handle)
{
	struct handle *h = (struct handle *)(uintptr_t)handle;

	cuda_simulated_begin();
	cuda_simulation.used -= h->bytes;
	free(h);
	return cuda_simulated_end(0);
}

int sim_memory_map(uint64_t address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags)
{
	const struct handle *h = (const struct handle *)(uintptr_t)handle;
	struct cuda_simulated_block *b = calloc(1, sizeof *b);
	void *p = (void *)(uintptr_t)address;

	if (!b || address % GRANULE || bytes != h->bytes || offset) {
		free(b);
		return b ? CUDA_SIMULATED_INVALID : CUDA_OUT_OF_MEMORY;
	}
	*b = (struct cuda_simulated_block){ .p = p, .bytes = bytes, .apart = true };
	cuda_simulated_begin();
	bool ok = ptx_memory_add(cuda_simulation.memory, p, bytes);
	if (ok) {
		ptx_memory_own(cuda_simulation.memory, p, h->card);
		b->next = cuda_simulation.blocks;
		cuda_simulation.blocks = b;
	} else {
		free(b);
	}
	return cuda_simulated_end(ok ? 0 : CUDA_OUT_OF_MEMORY);
}

/* Nothing is there any more. Unlike freeing, this does not wait for what was to be done there, and a card that finds no
 * memory is lost to its process. */
int sim_memory_unmap(uint64_t address, size_t bytes)
{
	void *p = (void *)(uintptr_t)address;
	struct cuda_simulated_block *gone = NULL;

	cuda_simulated_begin();
	cuda_simulated_forget_copies(p, bytes);
	for (struct cuda_simulated_block **b = &cuda_simulation.blocks; *b && !gone; b = gone ? b : &(*b)->next)
		if ((*b)->p == p && (*b)->bytes == bytes && (*b)->apart) {
			gone = *b;
			*b = gone->next;
			ptx_memory_remove(cuda_simulation.memory, p);
			mmap(p, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		}
	free(gone);
	return cuda_simulated_end(gone ? 0 : CUDA_SIMULATED_INVALID);
}

/* By two cards or more, as jitrun asks for it. */
int sim_memory_reach(uint64_t address, size_t bytes, const struct cuda_reach *r, size_t n)
{
	struct cuda_simulated_block *b;
	int result = n < 2 || r->flags != CUDA_REACH_ALL ? CUDA_SIMULATED_INVALID : 0;

	cuda_simulated_begin();
	for (b = cuda_simulation.blocks; b && b->p != (void *)(uintptr_t)address; b = b->next)
		;
	if (!b || b->bytes != bytes || mprotect(b->p, bytes, PROT_READ | PROT_WRITE))
		result = CUDA_SIMULATED_INVALID;
	if (!result)
		b->hidden = getenv("JITRUN_SIM_HIDE") != NULL;
	return cuda_simulated_end(result);
}

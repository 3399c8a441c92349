/* sim/ptx_copies.c - copies from global to shared memory that a warp starts and waits for later (cp.async).
 *
 * Owns: when their bytes are there: not before the warp has waited for the group they belong to, and then for the lane
 * that started them; for others once they have met it. Until then they count as bytes that nothing wrote.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sim/ptx_warp.h"

enum { BYTES = 16 };

struct ptx_copy {
	uint64_t to;
	uint32_t group, lane;
	size_t bytes;
	uint8_t data[BYTES];
};

static bool start(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, unsigned lane)
{
	struct ptx_step store = *s, load = *s;
	struct ptx_copies *c = &w->copies;
	struct ptx_copy *copy;
	const uint64_t to = w->reg[(size_t)s->s[0] * PTX_LANES + lane] + (uint64_t)s->disp,
		       from = w->reg[(size_t)s->s[1] * PTX_LANES + lane] + (uint64_t)s->second;
	const size_t bytes = (size_t)w->reg[(size_t)s->s[2] * PTX_LANES + lane];
	const uint8_t *data;

	if (bytes != 4 && bytes != 8 && bytes != 16)
		return ptx_trap(b, w, (int)lane, "a copy of another size than 4, 8 or 16 bytes");
	store.shared = true;
	load.shared = false;
	if (!ptx_reach(b, w, &store, lane, to, bytes, true) ||
	    !(data = ptx_reach(b, w, &load, lane, from, bytes, false)) ||
	    (b->together && !ptx_is_ordered(b, w, &load, lane, from, bytes, 0, true)))
		return false;
	if (!array_grow((void **)&c->copy, &c->capacity, c->n + 1, sizeof *c->copy))
		return ptx_trap(b, w, (int)lane, "there is no memory to simulate a copy");
	copy = &c->copy[c->n++];
	*copy = (struct ptx_copy){ .to = to, .group = c->group, .lane = lane, .bytes = bytes };
	memcpy(copy->data, data, bytes);
	for (size_t i = 0; i < bytes; i++)
		b->byte[to + i].is_written = 0;
	return true;
}

bool ptx_copy(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	for (unsigned l = 0; l < PTX_LANES; l++)
		if (mask >> l & 1 && !start(b, w, s, l))
			return false;
	if (b->together)
		ptx_poll_other(b, w, 0, 0, true);
	return true;
}

void ptx_copies_wait(struct ptx_block *b, struct ptx_warp *w, uint64_t but)
{
	struct ptx_copies *c = &w->copies;
	size_t left = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct ptx_copy *copy = &c->copy[i];
		if (copy->group + but >= c->group) {
			c->copy[left++] = *copy;
			continue;
		}
		const struct ptx_byte written = { .written_epoch = b->epoch,
			                          .written_met = w->met,
			                          .writer = (uint8_t)w->number,
			                          .lane = (uint8_t)copy->lane,
			                          .is_written = 1 };
		memcpy(b->shared + copy->to, copy->data, copy->bytes);
		for (size_t k = 0; k < copy->bytes; k++)
			b->byte[copy->to + k] = written;
	}
	c->n = left;
}

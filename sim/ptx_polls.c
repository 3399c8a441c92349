/* sim/ptx_polls.c - warps of a cooperative launch that wait for words which others write.
 *
 * Owns: who polls, and what happens when nobody does anything else. A loop that only loads, by relaxed or acquire
 * loads, and loads the same twice from the same places goes on doing so until one of the words is written: its warp is
 * set aside until then, which costs nothing, and when no other warp is left the launch hangs.
 */
#include <stdio.h>
#include <string.h>

#include "sim/ptx_warp.h"

enum { TOLD = 2 /* warps that a sentence has room for */, MAX_ROUND = 1 << 20 /* steps */ };

/* The words of one round of a loop; at, load: of the first, or the first that nothing wrote. */
struct ptx_seen {
	uint64_t at;
	size_t load;
	unsigned n;
	bool is_missing;
};

static size_t slot_of(uint64_t word) { return (size_t)(word * UINT64_C(0x9e3779b97f4a7c15) >> 48) % PTX_WATCHED; }

static void see(struct ptx_together *all, uint64_t at, size_t load)
{
	const bool is_missing = !ptx_order_is_written(all->order, at);

	if (!all->seen->n++ || (is_missing && !all->seen->is_missing)) {
		all->seen->at = at;
		all->seen->load = load;
		all->seen->is_missing = is_missing;
	}
}

void ptx_poll_load(struct ptx_block *b, struct ptx_warp *w, uint64_t at, size_t bytes, const uint8_t *value)
{
	struct ptx_together *all = b->together;

	for (size_t i = 0; i < bytes; i += 4) {
		const size_t slot = slot_of((at + i) / 4);
		uint32_t v;
		memcpy(&v, value + i, sizeof v);
		all->watched[slot / 64] |= UINT64_C(1) << slot % 64;
		w->poll.hash = (w->poll.hash ^ (at + i) ^ (uint64_t)v << 32) * UINT64_C(0x9e3779b97f4a7c15);
		w->poll.hash ^= w->poll.hash >> 29;
	}
	w->poll.loads = true;
	w->poll.load = w->at;
	for (size_t i = 0; all->seen && i < bytes; i += 4)
		see(all, at + i, w->at);
}

void ptx_poll_other(struct ptx_block *b, struct ptx_warp *w, uint64_t at, size_t bytes, bool changes)
{
	struct ptx_together *all = b->together;

	w->poll.disturbed = true;
	if (!changes)
		return;
	all->last_change = b->run->instructions;
	for (uint64_t word = at / 4; word * 4 < at + bytes; word++) {
		const size_t slot = slot_of(word);
		if (!(all->watched[slot / 64] >> slot % 64 & 1))
			continue;
		all->version++;
		memset(all->watched, 0, sizeof all->watched);
		return;
	}
}

void ptx_poll_branch(struct ptx_block *b, struct ptx_warp *w)
{
	const struct ptx_together *all = b->together;

	if (w->poll.loads && !w->poll.disturbed && w->poll.branch == w->at && w->poll.hash == w->poll.last_hash &&
	    w->poll.version == all->version)
		w->state = PTX_POLLS;
	w->poll.branch = w->at;
	w->poll.last_hash = w->poll.hash;
	w->poll.version = all->version;
	w->poll.hash = 0;
	w->poll.loads = w->poll.disturbed = false;
}

/* --- what hangs */

/* One round more, which changes nothing, tells what it reads. */
static bool tell(struct ptx_block *b, struct ptx_warp *w, char *out, size_t size)
{
	struct ptx_seen seen = { 0 };
	uint64_t slice = MAX_ROUND;
	char text[50];

	b->together->seen = &seen;
	w->state = PTX_RUNS;
	bool ok = ptx_run_slice(b, w, &slice);
	b->together->seen = NULL;
	const struct ptx_step *s = &b->t->step[seen.load];
	snprintf(out, size, "block %u, warp %u polls 0x%llx%s, line %u, \"%s\"", b->number, w->number,
	         (unsigned long long)seen.at, seen.is_missing ? ", which nothing wrote" : "", s->line,
	         ptx_text_line(b->t, s->line, text, sizeof text));
	return ok;
}

bool ptx_poll_hangs(struct ptx_together *all)
{
	unsigned told = 0, polls = 0, waits = 0;
	char text[512] = "";
	size_t n = 0;

	for (uint32_t i = 0; i < all->n; i++)
		for (unsigned k = 0; k < all->block[i].n_warps; k++) {
			struct ptx_warp *w = &all->block[i].warp[k];
			waits += w->state == PTX_AT_BARRIER;
			if (w->state != PTX_POLLS || (polls++, told == TOLD))
				continue;
			if (told++)
				n += (size_t)snprintf(text + n, sizeof text - n, "; ");
			if (!tell(&all->block[i], w, text + n, sizeof text - n - 4))
				return false;
			n = strlen(text);
		}
	return error_set(all->block->err, ERROR_DEVICE,
	                 "the simulated kernel hangs, %u warps poll and %u wait at barriers: %s", polls, waits, text);
}

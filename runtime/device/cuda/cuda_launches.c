/* runtime/device/cuda/cuda_launches.c - the launches of a pass: who has which units, and all of them as a graph. See
 * cuda_pass.h.
 *
 * Ops that differ in their arguments alone, as those of several sequences do, are one launch in a graph.
 * Several cards each launch their share of an op's units. Where the plan has a barrier, their queues meet: what one
 * card stored to the others is there when they go on.
 */
#include <stdlib.h>

#include "kernels-templates/matmul/recipe.h"
#include "runtime/device/cuda/cuda_pass.h"

enum { MAX_PARTS = 1 << 15, MAX_BLOCKS = 65535, MAX_ALIKE = 4096, USER_ROUNDS = 16 };
/* Bytes and operations of a unit that make one more round worth its start; of kernels whose blocks have bytes of their
 * own, which are cleared and added up. */
#define WORK_OF_ROUND 150
#define WORK_OF_ROUND_WITH_BYTES 600

/* In how many parts `tiles` column tiles are done the soonest, by so many blocks of which `resident` live at once: as
 * many turns as there are times that the card is filled, of as many tiles as a part has. Of equal ones the fewest, in
 * which a block's weights serve several tiles. */
static uint64_t best_parts(uint64_t tiles, uint64_t blocks, uint64_t resident)
{
	uint64_t best = 1, min = UINT64_MAX, time;

	for (uint64_t parts = 1; parts <= tiles && parts <= MAX_PARTS; parts++, min = time < min ? time : min) {
		time = (blocks * parts + resident - 1) / resident * ((tiles + parts - 1) / parts);
		best = time < min ? parts : best;
	}
	return best;
}

/* Of row blocks side by side, whose weights the L2 cache has no room for beside other data: all tiles of a row block
 * live at once, so that the second one finds there what the first one has read. */
static void share_weights(uint64_t tiles, uint64_t resident, uint64_t *parts, uint64_t *blocks)
{
	const uint64_t at_once = tiles < resident ? resident / tiles : 1, rounds = (*blocks + at_once - 1) / at_once;

	if (*blocks > at_once) {
		*parts = tiles < resident ? tiles : resident;
		*blocks = (*blocks + rounds - 1) / rounds;
	}
}

/* Blocks of a user's kernel for each that lives at once. With many, units that are done at the same time lie near each
 * other, and so does what they read. */
static uint64_t user_rounds(const struct plan_op *op, bool has_bytes)
{
	const double work = (op->moves + op->operations) / (double)(op->end - op->begin) /
	                    (has_bytes ? WORK_OF_ROUND_WITH_BYTES : WORK_OF_ROUND);

	return work < 1 ? 1 : work < USER_ROUNDS ? (uint64_t)work : USER_ROUNDS;
}

/* How many blocks have an op's units, and how many each (struct ptx_launch). Where tiles are distributed to parts, or
 * row blocks are done side by side, a block has as many units as it does at once; and large tiles are a block each,
 * which begin in such an order that those of the same weights live at the same time. Units of a user's kernel may take
 * unequal time, so there are more blocks than live at once: a multiprocessor that is free takes the next one. */
static void partition(const struct cuda_stream *s, struct cuda_plan *c, unsigned card, size_t i)
{
	const struct cuda *d = cuda_card_of(s);
	const struct plan_op *l = &c->plan->op[i];
	const struct cuda_kernel *k = c->plan->kernel[l->kernel].handle;
	const struct target *t = d->device.facts.target;
	const struct cut_units units = cut_units_of(l, card, d->cards);
	struct cuda_side *side = &c->side[card];
	const struct matmul_recipe r = matmul_recipe(&k->key, t);
	const uint64_t tiles = r.parts ? l->arg[MATMUL_TILES] : 1;
	const bool large = r.operands != MATMUL_DIRECT && tiles <= MAX_PARTS;
	const bool floats = r.engine == MATMUL_SIDE_BY_SIDE, at_once = large || tiles > 1 || floats;
	uint64_t waves = k->cooperative ? 1 : k->waves, each = at_once ? r.together : waves,
		 max = large                     ? MAX_BLOCKS
	               : k->key.kind == KEY_USER ? k->resident * user_rounds(l, k->shared_bytes > 0)
	                                         : k->resident,
		 blocks = (units.n + each - 1) / each;

	max = s->max_blocks ? s->max_blocks : max, blocks = blocks < max ? blocks : max;
	uint64_t parts = large ? tiles : blocks ? best_parts(tiles, blocks, max) : 1;
	if (floats && tiles > 1 && template_reads(&k->key, units.n, 0, 0).weights > d->cache / 3 * 2)
		share_weights(tiles, max, &parts, &blocks);
	side->parts[i] = (uint32_t)parts;
	side->blocks[i] = (uint32_t)blocks;
	if (blocks)
		side->launch[i] = (struct ptx_launch){
			.arg = side->on_card + (uint64_t)(l->arg - c->plan->args) * sizeof *l->arg,
			.next = PLAN_ARGS_MAX * sizeof *l->arg,
			.begin = units.begin,
			.per = (uint32_t)(units.n / (blocks * waves)),
			.rest = (uint32_t)(units.n % (blocks * waves))
		};
}

bool cuda_partition_units(const struct cuda_stream *s, struct cuda_plan *c)
{
	const size_t n = c->plan->n_ops;

	for (unsigned card = 0; card < cuda_card_of(s)->cards; card++) {
		struct cuda_side *side = &c->side[card];
		side->launch = calloc(n + 1, sizeof *side->launch);
		side->blocks = calloc(n + 1, sizeof *side->blocks);
		side->parts = calloc(n + 1, sizeof *side->parts);
		if (!side->launch || !side->blocks || !side->parts)
			return false;
		for (size_t i = 0; i < n; i++)
			partition(s, c, card, i);
	}
	return true;
}

/* ---- what a queue is given */

static int enter(struct cuda *d, unsigned card) { return d->api->context_set(d->card[card].context); }

/* Whether the op behind i can be in its launch: it need not wait, and differs in its arguments alone. */
static bool is_alike(const struct cuda_plan *c, unsigned cards, size_t i)
{
	const struct plan_op *op = &c->plan->op[i];
	bool same = !op->barrier && op[1].kernel == op->kernel && op[1].begin == op->begin && op[1].end == op->end;

	for (unsigned card = 0; card < cards && same; card++) {
		const uint32_t *parts = &c->side[card].parts[i], *blocks = &c->side[card].blocks[i];
		same = parts[1] == parts[0] && blocks[1] == blocks[0];
	}
	return same;
}

/* How many ops from i on are one launch. Where times are taken, each has its own. */
static uint32_t alike(const struct cuda_stream *s, const struct cuda_plan *c, size_t i)
{
	uint32_t n = 1;

	while (!c->times && n < MAX_ALIKE && i + n < c->plan->n_ops && is_alike(c, cuda_card_of(s)->cards, i + n - 1))
		n++;
	return n;
}

/* n: ops from i on, which are alike. */
static int launch_on(const struct cuda_stream *s, struct cuda_plan *c, unsigned card, size_t i, uint32_t n,
                     bool overlaps)
{
	struct cuda *d = cuda_card_of(s);
	const struct target *t = d->device.facts.target;
	const struct cuda_kernel *k = c->plan->kernel[c->plan->op[i].kernel].handle;
	struct cuda_side *side = &c->side[card];
	struct ptx_launch *l = &side->launch[i];
	struct cuda_launch_attribute attribute = { .id = CUDA_LAUNCH_OVERLAPS, .of = { .value = 1 } };
	const bool parts = matmul_recipe(&k->key, t).parts; /* else there is one */
	const struct cuda_launch_config config = {
		.grid = { parts ? side->parts[i] : side->blocks[i], parts ? side->blocks[i] : 1, n },
		.block = { k->waves * t->lanes, 1, 1 },
		.shared_bytes = k->shared_bytes,
		.stream = s->queue[card],
		.attribute = &attribute,
		.n_attributes = overlaps
	};
	void *params[] = { &l->arg, &l->begin, &l->per, &l->rest, &l->order, &l->next };
	int result = d->cards > 1 ? enter(d, card) : 0;

	return result ? result : d->api->launch(&config, k->function[card], params, NULL);
}

static int launch_on_cards(const struct cuda_stream *s, struct cuda_plan *c, size_t i, uint32_t n)
{
	int result = 0;

	for (unsigned card = cuda_card_of(s)->cards; card-- > 0 && !result;)
		if (c->side[card].blocks[i])
			result = launch_on(s, c, card, i, n, false);
	return result;
}

int cuda_launch_op(const struct cuda_stream *s, struct cuda_plan *c, size_t i) { return launch_on_cards(s, c, i, 1); }

int cuda_send(const struct cuda_stream *s, const struct cuda_plan *c, size_t begin, size_t end)
{
	struct cuda *d = cuda_card_of(s);
	int result = 0;

	for (unsigned card = d->cards; card-- > 0 && !result;) {
		const struct cuda_side *side = &c->side[card];
		result = d->cards > 1 ? enter(d, card) : 0;
		if (!result)
			result = d->api->copy_to_later(side->on_card + begin, (const uint8_t *)side->args + begin,
			                               end - begin, s->queue[card]);
	}
	return result;
}

/* The queues of cards first .. end - 1 go on when all others have come so far. */
static int wait_for_others(const struct cuda_stream *s, unsigned first, unsigned end)
{
	struct cuda *d = cuda_card_of(s);
	int result = 0;

	for (unsigned card = d->cards; card-- > 0 && !result;) {
		result = enter(d, card);
		if (!result)
			result = d->api->event_record(s->event[card], s->queue[card], 0);
	}
	for (unsigned card = first; card < end; card++)
		for (unsigned other = 0; other < d->cards && !result; other++)
			if (other != card)
				result = d->api->stream_wait_event(s->queue[card], s->event[other], 0);
	return result;
}

int cuda_meet(const struct cuda_stream *s)
{
	const unsigned cards = cuda_card_of(s)->cards;

	return cards > 1 ? wait_for_others(s, 0, cards) : 0;
}

int cuda_fetch(const struct cuda_stream *s, const struct cuda_plan *c)
{
	struct cuda *d = cuda_card_of(s);
	int result = d->cards > 1 ? wait_for_others(s, 0, 1) : 0;

	for (unsigned i = 0; i < c->n_outputs && !result; i++)
		result = d->api->copy_from_later(c->output[i].to, (uint64_t)(uintptr_t)c->outputs + c->output[i].at,
		                                 c->output[i].bytes, s->queue[0]);
	return result;
}

/* ---- a graph */

/* A pass of so many tokens has blocks for all multiprocessors. Those of a launch that comes early would be put where
 * the one in front leaves room first, several of them on one, and others would have none: then a launch comes early
 * only where it need not wait. */
enum { FILLS_CARD = 64 };

static int launch_all(struct cuda_stream *s, struct cuda_plan *c)
{
	const struct cuda *d = cuda_card_of(s);
	struct cuda_side *side = &c->side[0];
	bool overlaps = d->capability >= 90 && d->driver >= CUDA_OVERLAPS_IN_GRAPHS && !c->times, first = true,
	     waits = true;
	int result = cuda_send(s, c, 0, c->commands);

	if (!result)
		result = cuda_times_mark(c->times, 0, s->queue[0], true);
	for (size_t i = 0, n; !result && i < c->plan->n_ops; i += n) {
		n = alike(s, c, i);
		const bool barrier = c->plan->op[i + n - 1].barrier;
		if (side->blocks[i]) {
			side->launch[i].order = (waits ? PTX_WAIT_FIRST : 0) | (waits && !barrier ? PTX_NEXT_LATER : 0);
			result = launch_on(s, c, 0, i, (uint32_t)n,
			                   overlaps && !first && (!waits || c->plan->tokens < FILLS_CARD));
			if (!result)
				result = cuda_times_mark(c->times, i + n, s->queue[0], true);
			first = waits = false;
		}
		waits |= barrier;
	}
	return result;
}

/* On several cards launches do not overlap. Arguments are sent where the plan's first barrier is not yet passed. */
static int launch_on_all(struct cuda_stream *s, struct cuda_plan *c)
{
	struct cuda *d = cuda_card_of(s);
	int result = d->api->event_record(s->event[0], s->queue[0], 0);

	for (unsigned card = 1; card < d->cards && !result; card++)
		result = d->api->stream_wait_event(s->queue[card], s->event[0], 0);
	if (!result)
		result = cuda_send(s, c, 0, c->commands);
	if (!result)
		result = cuda_times_mark(c->times, 0, s->queue[0], true);
	for (size_t i = 0, n; !result && i < c->plan->n_ops; i += n) {
		n = alike(s, c, i);
		for (unsigned card = 0; card < d->cards; card++)
			c->side[card].launch[i].order = PTX_WAIT_FIRST;
		result = launch_on_cards(s, c, i, (uint32_t)n);
		if (!result)
			result = cuda_times_mark(c->times, i + n, s->queue[0], true);
		if (!result && c->plan->op[i + n - 1].barrier)
			result = cuda_meet(s);
	}
	return result ? result : cuda_fetch(s, c);
}

bool cuda_record(struct cuda_stream *s, struct cuda_plan *c, struct error *err)
{
	struct cuda *d = cuda_card_of(s);
	void *graph = NULL;
	int result = d->api->capture_begin(s->queue[0], CUDA_CAPTURE_THREAD);

	if (!result) {
		int launched = d->cards > 1 ? launch_on_all(s, c) : launch_all(s, c), entered = enter(d, 0);
		result = d->api->capture_end(s->queue[0], &graph);
		result = launched ? launched : entered ? entered : result;
	}
	if (!result)
		result = d->api->graph_instantiate(&c->graph, graph, 0);
	if (graph)
		d->api->graph_destroy(graph);
	return !result || cuda_failed(d, result, "recording a pass", err);
}

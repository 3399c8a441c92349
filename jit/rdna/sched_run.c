/* jit/rdna/sched_run.c - one run: list scheduling by height, within the budget of registers.
 *
 * Owns: register pressure along an order, the choice of the next instruction among those that are ready, and the clock
 * that says when one is ready.
 */
#include <assert.h>

#include "jit/rdna/sched.h"

/* --- register pressure: a tuple counts as a whole until its last word's live range ends, for what is free in the
 * middle of it helps no other tuple */

void rsched_begin_registers(struct sched *s)
{
	const struct rdna_live *v = &s->live;
	for (size_t r = 0; r < s->l->n_regs; r++) {
		s->reg[r].left = v->reg[r].uses + (v->marks[v->reg[r].end] & RDNA_MARK_FIXED ? 1 : 0);
		s->reg[r].claimed = false;
	}
}

void rsched_pass_over(struct sched *s, uint32_t at)
{
	const struct rdna_live *v = &s->live;
	for (const struct rdna_use *u = v->use + v->use_from[at], *to = v->use + v->use_from[at + 1]; u < to; u++) {
		s->reg[u->reg].left--;
		s->reg[u->reg].claimed |= u->written;
	}
}

/* Undoes a walk over the run, so that it can be walked again. */
static void restore_registers(struct sched *s)
{
	const struct rdna_live *v = &s->live;
	for (const struct rdna_use *u = v->use + v->use_from[s->first], *to = v->use + v->use_from[s->first + s->n];
	     u < to; u++) {
		s->reg[u->reg].left++;
		s->reg[u->reg].claimed = v->reg[u->reg].start < s->first;
	}
}

/* The live ranges of a tuple's words end one by one. */
static void end_words(struct sched *s, const struct rdna_use *u, uint32_t at)
{
	for (struct rdna_word *word = &s->live.word[u->word], *end = word + u->n; word < end; word++)
		word->end = word->end - s->first < s->n ? at : word->end;
}

/* Puts a node at this position: what it takes and gives back, and where live ranges begin and end. */
static inline void put_registers(struct sched *s, const struct node *n, uint32_t at)
{
	struct held *const reg = s->reg;
	counts take = 0, give = 0;
	for (const struct rdna_use *u = n->uses, *to = n->uses_end; u < to; u++) {
		struct held *h = &reg[u->reg];
		if (u->takes && !h->claimed) {
			h->claimed = true;
			take += h->named;
			s->live.reg[u->reg].start = at;
		}
		bool dies = --h->left == 0;
		if (dies)
			give += h->named;
		if (h->tuple)
			end_words(s, u, at);
		else if (dies)
			s->live.word[u->word].end = at;
	}
	counts all = s->held + take;
	assert(within(give, all));
	s->held = all - give;
	if (n->early_clobber && !within(all, s->peak))
		s->peak = larger(s->peak, all);
	else if (!within(s->held, s->peak))
		s->peak = larger(s->peak, s->held);
}

/* Counts down the uses and up again. */
static bool fits_counted(struct sched *s, const struct node *n, counts spare)
{
	counts take = 0, give = 0;
	for (const struct rdna_use *u = n->uses; u < n->uses_end; u++) {
		struct held *h = &s->reg[u->reg];
		take += u->takes && !h->claimed ? h->named : 0;
		give += --h->left == 0 ? h->named : 0;
	}
	for (const struct rdna_use *u = n->uses; u < n->uses_end; u++)
		s->reg[u->reg].left++;
	/* of each class it takes no more than it gives back, or there is room for the rest */
	return (not_above(take, give) | not_above(s->held + take - give + spare, s->budget)) == top_bits;
}

/* Most of the time there is room for all that it may take, and nothing needs to be counted. spare: what it has to
 * leave. */
static inline bool fits_surely(const struct sched *s, const struct node *n, counts spare)
{
	return within(s->held + n->max + spare, s->budget);
}

static inline bool fits(struct sched *s, const struct node *n, counts spare)
{
	return fits_surely(s, n, spare) || fits_counted(s, n, spare);
}

static inline counts spare_of_loads(const struct sched *s)
{
	return reserve + COUNTS(0, s->held_back ? LOADS_AGAIN : 0);
}

/* --- choice */

/* The best of the set that fits, among its first few, from `rank` on; NONE: none does. *refused: the very best does
 * not. */
static uint32_t look_through(struct sched *s, const struct set *t, uint32_t rank, counts spare, bool *refused)
{
	uint32_t looks = 0;
	while (rank < s->n && looks < LOOKS && !fits(s, s->by_rank[rank], spare)) {
		rank = set_next(t, rank + 1);
		looks++;
	}
	*refused = looks;
	return rank < s->n && looks < LOOKS ? rank : NONE;
}

/* The same, where the very best, which is `first`, mostly does. */
static inline uint32_t fitting(struct sched *s, const struct set *t, uint32_t first, counts spare, bool *refused)
{
	if (first < s->n && !fits_surely(s, s->by_rank[first], spare))
		return look_through(s, t, first, spare, refused);
	*refused = false;
	return first < s->n ? first : NONE;
}

static uint32_t draw(struct sched *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 17;
	s->random ^= s->random << 5;
	return s->random;
}

static uint32_t any_at_all(struct sched *s)
{
	bool loads = set_first(&s->may[LOADS]) < s->n, others = set_first(&s->may[OTHERS]) < s->n;
	struct set *t = &s->may[others && (!loads || draw(s) & 1) ? OTHERS : LOADS];
	uint32_t rank = set_next(t, (uint32_t)(draw(s) % s->n));
	if (rank == s->n)
		rank = set_first(t);
	return rank < s->n && fits(s, s->by_rank[rank], t == &s->may[LOADS] ? spare_of_loads(s) : 0) ? rank : NONE;
}

/* A rank. load, other: the first of those that may be placed, n where there is none. */
static inline uint32_t choose(struct sched *s, uint32_t load, uint32_t other)
{
	if (s->random)
		return any_at_all(s);
	bool full;
	load = fitting(s, &s->may[LOADS], load, spare_of_loads(s), &s->held_back);
	other = fitting(s, &s->may[OTHERS], other, 0, &full);
	return load < other ? load : other;
}

/* --- time */

/* Nothing is in front of the node any more. It may be placed when its moment comes, or at once if it has. */
static inline void wait_for(struct sched *s, struct node *n, uint32_t now)
{
	if (n->ready <= now || s->random) {
		set_add(set_of(s, n), n->rank);
		return;
	}
	uint32_t slot = n->ready % SLOTS;
	n->next = s->slots >> slot & 1 ? s->slot[slot] : NULL;
	s->slot[slot] = n;
	s->slots |= UINT64_C(1) << slot;
}

/* How long after `arrived` the next slot's moment is; there is one. */
static inline uint32_t next_slot(const struct sched *s)
{
	unsigned from = (s->arrived + 1) % SLOTS;
	return 1 + (uint32_t)__builtin_ctzll(s->slots >> from | s->slots << (SLOTS - from) % SLOTS);
}

/* All whose moments have come by now may be placed, but for those that were before. */
static inline void arrive(struct sched *s, uint32_t now)
{
	for (uint32_t at = s->arrived; at < now && s->slots;) {
		uint32_t slot = ++at % SLOTS;
		if (!(s->slots >> slot & 1))
			continue;
		for (struct node *n = s->slot[slot]; n; n = n->next)
			if (!n->done)
				set_add(set_of(s, n), n->rank);
		s->slots &= ~(UINT64_C(1) << slot);
	}
	s->arrived = now;
}

static inline void release(struct sched *s, const struct node *n, uint32_t now)
{
	struct node *const node = s->node;
	for (uint32_t k = n->edges; k; k = s->edge[k].next) {
		const struct edge *e = &s->edge[k];
		struct node *to = &node[e->to];
		uint32_t ready = now + e->latency;
		to->ready = to->ready < ready ? ready : to->ready;
		if (--to->preds == 0)
			wait_for(s, to, now);
	}
}

static void begin_run(struct sched *s)
{
	s->held = s->peak = s->before[s->first];
	s->held_back = false;
	s->slots = 0;
	s->arrived = 0;
	set_clear(&s->may[LOADS], s->n);
	set_clear(&s->may[OTHERS], s->n);
	for (struct node *n = s->node, *end = n + s->n; n < end; n++)
		if (!n->preds)
			set_add(set_of(s, n), n->rank);
}

/* As it was before the run was listed. */
static void restore_run(struct sched *s)
{
	restore_registers(s);
	for (struct node *n = s->node, *end = n + s->n; n < end; n++) {
		n->ready = 0;
		n->done = false;
	}
	for (size_t e = 1; e < s->n_edges; e++)
		s->node[s->edge[e].to].preds++;
}

/* Nothing ready fits: the first instruction that is left has nothing in front of it, and its own order was one that
 * fitted. */
static struct node *first_left(const struct sched *s, struct node *from)
{
	while (from->done)
		from++;
	assert(!from->preds);
	return from;
}

static void list_schedule(struct sched *s)
{
	uint32_t now = 0, at = (uint32_t)s->first, behind = at + (uint32_t)s->n;
	struct node *left = s->node; /* all in front of it are placed */
	begin_run(s);
	for (; at < behind; at++, now++) {
		arrive(s, now);
		uint32_t load = set_first(&s->may[LOADS]), other = set_first(&s->may[OTHERS]);
		while (s->slots && load == s->n && other == s->n) {
			arrive(s, now += next_slot(s));
			load = set_first(&s->may[LOADS]);
			other = set_first(&s->may[OTHERS]);
		}
		uint32_t rank = choose(s, load, other);
		struct node *n = rank == NONE ? (left = first_left(s, left)) : s->by_rank[rank];
		n->done = true;
		set_remove(set_of(s, n), n->rank);
		if (now < n->ready)
			arrive(s, now = n->ready);
		put_registers(s, n, at);
		s->order[at] = n->at;
		release(s, n, now);
	}
}

/* --- one run */

/* By how many registers the order just made exceeds what is allowed, the worse of the classes. */
static unsigned excess(const struct sched *s, counts allowed)
{
	unsigned max = 0;
	for (unsigned c = 0; c < RDNA_CLASSES; c++)
		if (count_of(s->peak, c) > count_of(allowed, c) && count_of(s->peak, c) - count_of(allowed, c) > max)
			max = count_of(s->peak, c) - count_of(allowed, c);
	return max;
}

/* Walks the old order, or the new one, and sets its live ranges. Returns the register pressure. */
static counts go_through(struct sched *s, bool made)
{
	restore_registers(s);
	s->held = s->peak = s->before[s->first];
	for (size_t at = s->first; at < s->first + s->n; at++)
		put_registers(s, &s->node[(made ? s->order[at] : at) - s->first], (uint32_t)at);
	return s->peak;
}

static void keep_order(struct sched *s)
{
	go_through(s, false);
	for (size_t at = s->first; at < s->first + s->n; at++)
		s->order[at] = (uint32_t)at;
}

void rsched_schedule_run(struct sched *s)
{
	counts budget = s->budget, allowed = budget;
	unsigned over = 1;
	if (!rsched_depend(s))
		return;
	rsched_find_ranks(s);
	for (unsigned attempt = 0; over && attempt < ATTEMPTS; attempt++) {
		if (attempt)
			restore_run(s);
		list_schedule(s);
		over = excess(s, allowed);
		if (over && !attempt) {
			allowed = larger(go_through(s, false), budget);
			go_through(s, true);
			over = excess(s, allowed);
		}
		if (over)
			s->budget = less(s->budget, 2 * over);
	}
	s->budget = budget;
	if (over)
		keep_order(s);
}

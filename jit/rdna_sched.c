/* jit/rdna_sched.c - list scheduling of straight runs: loads early and together, within a budget of registers.
 *
 * Owns: the order between instructions that are FIXED, and nothing else: no instruction is changed, none leaves its run. Rules for editors: an order is
 * legal when it keeps every edge of depend(); the heuristics only choose among legal ones. An order that needs more registers than the budget and than the
 * order it replaces is thrown away, so that a kernel that could be allocated still can. Everything is linear in the run: runs have thousands.
 *
 * The instructions stay where they are until the allocator has agreed; what is made is a list of their numbers, `order`. What they name is not read from them but
 * from the lists of rdna_live, once for all runs. Lives of the new order differ from the old ones inside runs alone, for what begins or ends in a run does so in any order
 * of it, and what goes around a loop does in any: so going through a run's order sets them.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jit/array.h"
#include "jit/rdna_live.h"

#define NONE UINT32_MAX

/* In instructions of this wave, other waves taking their turns between. None is as many as SLOTS. */
enum { AFTER_VALU = 2, AFTER_TRANS = 4, AFTER_SALU = 2, AFTER_MATRIX = 8, AFTER_LDS = 16, AFTER_SMEM = 40, AFTER_VMEM = 60, SLOTS = 64 };

/* How many candidates are looked at for one that fits; what loads leave free for the results of arithmetic; how much room makes them begin again. */
enum { LOOKS = 8, LOADS_AGAIN = 16, ATTEMPTS = 4, SPECIALS = 3, SHORTEST = 3 };

/* Numbers of registers of both classes: scalar ones in the low half, vector ones in the high one. Sums and differences are made of both at once; none is negative, and none comes
 * near the halves' top bits, which are left to comparisons. */
typedef uint64_t counts;
#define COUNTS(sgprs, vgprs) ((counts)(sgprs) | (counts)(vgprs) << 32)
static const counts top_bits = COUNTS(1u << 31, 1u << 31), reserve = COUNTS(6, 12);
static inline unsigned count_of(counts n, enum rdna_class c) { return (unsigned)(n >> (c == RDNA_CLASS_VGPR ? 32 : 0) & 0x7fffffff); }
static inline bool within(counts n, counts limit) { return (((limit | top_bits) - n) & top_bits) == top_bits; }
static inline counts larger(counts a, counts b)
{
	unsigned s[2] = { count_of(a, RDNA_CLASS_SGPR), count_of(b, RDNA_CLASS_SGPR) }, v[2] = { count_of(a, RDNA_CLASS_VGPR), count_of(b, RDNA_CLASS_VGPR) };
	return COUNTS(s[0] > s[1] ? s[0] : s[1], v[0] > v[1] ? v[0] : v[1]);
}
/* Where that would be less than nothing, nothing. */
static inline counts less(counts n, unsigned by)
{
	unsigned s = count_of(n, RDNA_CLASS_SGPR), v = count_of(n, RDNA_CLASS_VGPR);
	return COUNTS(s > by ? s - by : 0, v > by ? v - by : 0);
}

/* A register while an order is gone through. end, start: of its words' lives, as the order that came in has them. */
struct held {
	uint32_t left /* uses to come, all those behind the run being one */, begun /* the number of the going through that it is counted for */, start, end;
	counts named;                            /* words that something names */
	bool claimed;
};
struct node {
	counts most;                             /* words it may take */
	uint32_t edges, preds, all_preds, height, ready, rank;
	uint32_t next;                           /* of those that wait for the same moment */
	uint8_t latency;
	bool load, done;
};
struct edge { uint32_t from, to, next, latency; };
struct cell { uint32_t node, next; };

/* Nodes by rank, a bit each, and for every 64 of them a bit that says whether there are any. Rank n is always in it. */
struct set { uint64_t *bits, *some; };

/* By word: the latest instruction of this run that wrote it, plus one, and the cells of those that read it since. What is of an earlier run has smaller numbers. */
struct word { uint32_t writer, readers; };

struct sched {
	struct rdna_lir *l;
	struct rdna_live live;
	struct held *reg;                        /* by register */
	counts *before;                          /* by instruction: words live in front of it, in the order that came in */
	bool *scc_after;                         /* by instruction: scc is read before it is written again */
	struct word *word;
	uint32_t *order;                         /* by position: the instruction that is to stand there */
	counts budget;
	uint32_t random;
	void *memory;

	/* The run: instructions first .. first + n - 1; nodes are counted from first. */
	uint32_t first, n;
	struct node *node;
	struct edge *edge; size_t n_edges, edge_capacity;
	struct cell *cell; size_t n_cells, cell_capacity, run_cells /* number of the run's first */;
	uint32_t *by_rank, *by_height;           /* nodes; room to sort them */
	struct set loads, others;                /* that may be placed now */
	uint32_t slot[SLOTS];                    /* nodes that may be placed from a moment on, by that moment: `arrived` + 1 ... + SLOTS */
	uint64_t slots;                          /* a bit for each that is not empty */
	uint32_t arrived;

	/* Registers while an order is gone through. */
	uint32_t begun;                          /* how many were */
	counts held, peak;
	bool held_back;                          /* loads wait for room */
	bool failed;
};

static bool room(struct sched *s, void **array, size_t *capacity, size_t n, size_t size)
{
	if (!array_grow(array, capacity, n, size))
		s->failed = true;
	return !s->failed;
}

/* --- what must stay in front of what */

static inline void edge(struct sched *s, uint32_t from, uint32_t to, unsigned latency)
{
	struct node *f = &s->node[from];
	if (from == to)
		return;
	if (f->edges != NONE && s->edge[f->edges].to == to) {
		if (s->edge[f->edges].latency < latency)
			s->edge[f->edges].latency = latency;
		return;
	}
	if (s->n_edges == s->edge_capacity && !room(s, (void **)&s->edge, &s->edge_capacity, s->n_edges + 1, sizeof *s->edge))
		return;
	s->edge[s->n_edges] = (struct edge){ from, to, f->edges, latency };
	f->edges = (uint32_t)s->n_edges++;
	s->node[to].all_preds++;
}

static inline void push_cell(struct sched *s, uint32_t *list, uint32_t node)
{
	if (s->n_cells >= s->cell_capacity && !room(s, (void **)&s->cell, &s->cell_capacity, s->n_cells + 1, sizeof *s->cell))
		return;
	s->cell[s->n_cells] = (struct cell){ node, *list };
	*list = (uint32_t)s->n_cells++;
}

static void edges_from(struct sched *s, uint32_t list, uint32_t to)
{
	for (; list != NONE; list = s->cell[list].next)
		edge(s, s->cell[list].node, to, 0);
}

/* Who reads what nobody writes any more need not be remembered. */
static inline void read_word(struct sched *s, uint32_t word, uint32_t k, bool written_later)
{
	struct word *w = &s->word[word];
	if (w->writer > s->first) {
		uint32_t from = w->writer - 1 - s->first;
		edge(s, from, k, s->node[from].latency);
	}
	if (!written_later)
		return;
	if (w->readers < s->run_cells)
		w->readers = NONE;
	push_cell(s, &w->readers, k);
}

static inline void write_word(struct sched *s, uint32_t word, uint32_t k)
{
	struct word *w = &s->word[word];
	if (w->writer > s->first)
		edge(s, w->writer - 1 - s->first, k, 1);
	if (w->readers != NONE && w->readers >= s->run_cells)
		edges_from(s, w->readers, k);
	w->readers = NONE;
	w->writer = s->first + k + 1;
}

static inline void depend_on_words(struct sched *s, uint32_t k)
{
	const struct rdna_live *v = &s->live;
	const uint32_t *from = v->use_from + s->first + k;
	const struct rdna_use *u = v->use + from[0], *to = v->use + from[1];
	for (; u < to && !u->written; u++) {
		uint32_t word = u->word, end = word + u->n;
		do
			read_word(s, word, k, v->written[word] > s->first + k);
		while (++word < end);
	}
	for (; u < to; u++) {
		uint32_t word = u->word, end = word + u->n;
		s->node[k].most += u->takes ? s->reg[u->reg].named : 0;
		do
			write_word(s, word, k);
		while (++word < end);
	}
}

/* Machine registers that stand behind all words; others are read alone. */
static void depend_on_special(struct sched *s, uint32_t k, const struct rdna_lir_operand *o, bool written)
{
	for (unsigned r = o->reg; o->kind == RDNA_LIR_FIXED && r < o->reg + o->n; r++) {
		uint32_t word = (uint32_t)s->live.n_words + (r == RDNA_VCC_LO ? 0 : r == RDNA_VCC_HI ? 1 : 2);
		if (r != RDNA_VCC_LO && r != RDNA_VCC_HI && r != RDNA_M0)
			continue;
		if (written)
			write_word(s, word, k);
		else
			read_word(s, word, k, true);
	}
}

static void depend_on_specials(struct sched *s, uint32_t k, const struct rdna_lir_ins *i, unsigned facts)
{
	for (unsigned j = 0; j < 4; j++)
		depend_on_special(s, k, &i->s[j], false);
	depend_on_special(s, k, &i->saddr, false);
	if (rdna_lir_reads_dst(i))
		depend_on_special(s, k, &i->d[0], false);
	if (facts & RDNA_READS_VCC)
		read_word(s, (uint32_t)s->live.n_words, k, true);
	for (unsigned j = 0; j < 2; j++)
		depend_on_special(s, k, &i->d[j], true);
}

/* One kind of memory: the last store, the loads since. */
struct access_order { uint32_t store, loads; };

static void depend_on_memory(struct sched *s, uint32_t k, struct access_order *m)
{
	bool stores = s->l->ins[s->first + k].stores;
	if (m->store != NONE)
		edge(s, m->store, k, 1);
	if (!stores) {
		push_cell(s, &m->loads, k);
		return;
	}
	edges_from(s, m->loads, k);
	*m = (struct access_order){ k, NONE };
}

/* Most scalar instructions leave something in scc that nobody reads. Those may trade places with each other, but none may come between a write
 * that is read and its readers: they stay behind the readers before them and in front of the next such write. */
struct scc_order { uint32_t writer, readers, unread; };

static void depend_on_scc(struct sched *s, uint32_t k, bool reads, bool writes, struct scc_order *o)
{
	if (reads) {
		if (o->writer != NONE)
			edge(s, o->writer, k, s->node[o->writer].latency);
		push_cell(s, &o->readers, k);
	}
	if (!writes)
		return;
	edges_from(s, o->readers, k);
	if (!s->scc_after[s->first + k]) {
		push_cell(s, &o->unread, k);
		return;
	}
	edges_from(s, o->unread, k);
	if (o->writer != NONE)
		edge(s, o->writer, k, 1);
	*o = (struct scc_order){ k, NONE, NONE };
}

static inline unsigned latency_of(unsigned facts)
{
	if (facts & RDNA_IS_VALU && !(facts & (RDNA_IS_WMMA | RDNA_IS_TRANS)))
		return AFTER_VALU;
	return facts & RDNA_IS_VMEM ? AFTER_VMEM : facts & RDNA_IS_SMEM ? AFTER_SMEM : facts & RDNA_IS_LDS ? AFTER_LDS : facts & RDNA_IS_WMMA ? AFTER_MATRIX
	       : facts & RDNA_IS_TRANS ? AFTER_TRANS : AFTER_SALU;
}

static bool depend(struct sched *s)
{
	struct access_order memory[RDNA_MEM_CONST] = { { NONE, NONE }, { NONE, NONE }, { NONE, NONE } };
	struct scc_order scc = { NONE, NONE, NONE };
	s->n_edges = 0;
	s->run_cells = s->n_cells;
	for (uint32_t k = 0; k < s->n; k++) {
		const struct rdna_lir_ins *i = &s->l->ins[s->first + k];
		unsigned facts = rdna_lir_facts(i->op), marks = s->live.marks[s->first + k];
		struct node *n = &s->node[k];
		n->most = n->all_preds = n->height = 0;
		n->edges = NONE;
		n->latency = (uint8_t)latency_of(facts);
		n->load = facts & (RDNA_IS_VMEM | RDNA_IS_SMEM | RDNA_IS_LDS) && i->d[0].kind;
		depend_on_words(s, k);
		if (marks & RDNA_MARK_MACHINE)
			depend_on_specials(s, k, i, facts);
		if (marks & (RDNA_MARK_READS_SCC | RDNA_MARK_WRITES_SCC))
			depend_on_scc(s, k, marks & RDNA_MARK_READS_SCC, marks & RDNA_MARK_WRITES_SCC, &scc);
		if (i->memory == RDNA_MEM_GLOBAL || i->memory == RDNA_MEM_LDS)
			depend_on_memory(s, k, &memory[i->memory]);
	}
	return !s->failed;
}

/* --- heights: by how much the end of the run must follow a node; ranks: the highest first, then in the order that came in */

/* Edges lie in the order of the nodes they lead to: from the last one on, a node's height is known when an edge to it is met. */
static uint32_t find_heights(struct sched *s)
{
	uint32_t most = 0;
	for (size_t e = s->n_edges; e-- > 0;) {
		const struct edge *x = &s->edge[e];
		uint32_t height = s->node[x->to].height + x->latency, *from = &s->node[x->from].height;
		*from = *from < height ? height : *from;
		most = most < height ? height : most;
	}
	return most;
}

/* Sorts the nodes by a byte of their heights, which has so many values, the highest first, keeping their order otherwise. */
static void sort_by_byte(const struct sched *s, const uint32_t *from, uint32_t *to, unsigned shift, unsigned values)
{
	uint32_t place[256], sum = 0;
	memset(place, 0, values * sizeof *place);
	for (uint32_t k = 0; k < s->n; k++)
		place[s->node[k].height >> shift & 255]++;
	for (unsigned b = values; b-- > 0;) {
		uint32_t count = place[b];
		place[b] = sum;
		sum += count;
	}
	for (uint32_t k = 0; k < s->n; k++)
		to[place[s->node[from[k]].height >> shift & 255]++] = from[k];
}

static void find_ranks(struct sched *s)
{
	uint32_t most = find_heights(s);
	for (uint32_t k = 0; k < s->n; k++)
		s->by_rank[k] = k;
	for (unsigned shift = 0; shift < 32 && most >> shift; shift += 8) {
		uint32_t *sorted = s->by_height;
		sort_by_byte(s, s->by_rank, sorted, shift, most >> shift > 255 ? 256 : (most >> shift) + 1);
		s->by_height = s->by_rank;
		s->by_rank = sorted;
	}
	for (uint32_t k = 0; k < s->n; k++)
		s->node[s->by_rank[k]].rank = k;
}

/* --- registers: a tuple counts as a whole until its last word dies, for what is free in the middle of it helps no other tuple */

/* A tuple that is named behind the run, or goes around the back of a loop, does not die in it. */
static void begin_registers(struct sched *s)
{
	const struct rdna_live *v = &s->live;
	uint32_t first = s->first, behind = first + s->n, begun = ++s->begun;
	for (const struct rdna_use *u = v->use + v->use_from[first], *to = v->use + v->use_from[behind]; u < to; u++) {
		struct held *h = &s->reg[u->reg];
		if (h->begun != begun) {
			h->begun = begun;
			h->claimed = h->start < first;
			h->left = h->end >= behind;
		}
		h->left++;
	}
	s->held = s->peak = s->before[first];
}

/* Node k stands at this position: what it takes and gives back, and where lives begin and end. */
static inline void place_registers(struct sched *s, uint32_t k, uint32_t at)
{
	const struct rdna_live *v = &s->live;
	const uint32_t first = s->first, n = s->n, *from = v->use_from + first + k;
	counts take = 0, give = 0;
	for (const struct rdna_use *u = v->use + from[0], *to = v->use + from[1]; u < to; u++) {
		struct held *h = &s->reg[u->reg];
		if (u->takes && !h->claimed) {
			h->claimed = true;
			take += h->named;
			v->start[u->reg] = at;
		}
		h->left -= u->times;
		if (!h->left && u->times)
			give += h->named;
		uint32_t word = u->word, end = word + u->n;
		do
			if (v->end[word] - first < n)
				v->end[word] = at;
		while (++word < end);
	}
	counts all = s->held + take;
	assert(within(give, all));
	s->held = all - give;
	if (rdna_lir_apart(&s->l->ins[first + k]) && !within(all, s->peak))
		s->peak = larger(s->peak, all);
	else if (!within(s->held, s->peak))
		s->peak = larger(s->peak, s->held);
}

static bool fits_counted(const struct sched *s, uint32_t k, counts spare)
{
	const struct rdna_live *v = &s->live;
	counts take = 0, give = 0;
	for (uint32_t u = v->use_from[s->first + k]; u < v->use_from[s->first + k + 1]; u++) {
		const struct held *h = &s->reg[v->use[u].reg];
		take += v->use[u].takes && !h->claimed ? h->named : 0;
		give += h->left == v->use[u].times ? h->named : 0;
	}
	for (unsigned c = 0; c < RDNA_CLASSES; c++) {
		unsigned t = count_of(take, c), g = count_of(give, c);
		if (t > g && count_of(s->held, c) + t - g + count_of(spare, c) > count_of(s->budget, c))
			return false;
	}
	return true;
}

/* Most of the time there is room for all that it may take, and nothing needs to be counted. spare: what it has to leave. */
static inline bool fits_surely(const struct sched *s, uint32_t k, counts spare) { return within(s->held + s->node[k].most + spare, s->budget); }

static inline bool fits(const struct sched *s, uint32_t k, counts spare) { return fits_surely(s, k, spare) || fits_counted(s, k, spare); }

static inline counts spare_of_loads(const struct sched *s) { return reserve + COUNTS(0, s->held_back ? LOADS_AGAIN : 0); }

/* --- sets */

static inline void set_add(struct set *t, uint32_t rank)
{
	t->bits[rank / 64] |= UINT64_C(1) << rank % 64;
	t->some[rank / 4096] |= UINT64_C(1) << rank / 64 % 64;
}

static inline void set_remove(struct set *t, uint32_t rank)
{
	uint64_t left = t->bits[rank / 64] &= ~(UINT64_C(1) << rank % 64);
	if (!left)
		t->some[rank / 4096] &= ~(UINT64_C(1) << rank / 64 % 64);
}

static void set_clear(struct set *t, uint32_t n)
{
	memset(t->bits, 0, (n / 64 + 1) * sizeof *t->bits);
	memset(t->some, 0, (n / 4096 + 1) * sizeof *t->some);
	set_add(t, n);
}

/* The first one from this rank on, which is n at most. */
static inline uint32_t set_next(const struct set *t, uint32_t rank)
{
	uint64_t here = t->bits[rank / 64] >> rank % 64;
	if (here)
		return rank + (uint32_t)__builtin_ctzll(here);
	uint32_t at = rank / 64 + 1;
	uint64_t some = t->some[at / 64] >> at % 64;
	if (!some) {
		for (at = at / 64 + 1; !t->some[at]; at++)
			;
		some = t->some[at];
		at *= 64;
	}
	at += (uint32_t)__builtin_ctzll(some);
	return at * 64 + (uint32_t)__builtin_ctzll(t->bits[at]);
}

static inline uint32_t set_first(const struct set *t)
{
	uint32_t at = 0;
	while (!t->some[at])
		at++;
	at = 64 * at + (uint32_t)__builtin_ctzll(t->some[at]);
	return 64 * at + (uint32_t)__builtin_ctzll(t->bits[at]);
}

static inline struct set *set_of(struct sched *s, const struct node *n) { return n->load ? &s->loads : &s->others; }

/* --- choice */

/* The best of the set that fits, among its first few; NONE: none does. *refused: the very best does not. */
static uint32_t look_through(struct sched *s, const struct set *t, counts spare, bool *refused)
{
	uint32_t rank = set_first(t), looks = 0;
	while (rank < s->n && looks < LOOKS && !fits(s, s->by_rank[rank], spare)) {
		rank = set_next(t, rank + 1);
		looks++;
	}
	*refused = looks;
	return rank < s->n && looks < LOOKS ? rank : NONE;
}

/* The same, where the very best mostly does. */
static inline uint32_t fitting(struct sched *s, const struct set *t, counts spare, bool *refused)
{
	uint32_t rank = set_first(t);
	if (rank < s->n && !fits_surely(s, s->by_rank[rank], spare))
		return look_through(s, t, spare, refused);
	*refused = false;
	return rank < s->n ? rank : NONE;
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
	bool loads = set_first(&s->loads) < s->n, others = set_first(&s->others) < s->n;
	struct set *t = others && (!loads || draw(s) & 1) ? &s->others : &s->loads;
	uint32_t rank = set_next(t, draw(s) % s->n);
	if (rank == s->n)
		rank = set_first(t);
	return rank < s->n && fits(s, s->by_rank[rank], t == &s->loads ? spare_of_loads(s) : 0) ? rank : NONE;
}

/* A rank. */
static uint32_t choose(struct sched *s)
{
	if (s->random)
		return any_at_all(s);
	bool full;
	uint32_t load = fitting(s, &s->loads, spare_of_loads(s), &s->held_back), other = fitting(s, &s->others, 0, &full);
	return load < other ? load : other;
}

/* --- time */

/* Nothing is in front of node k any more. It may be placed when its moment comes, or at once if it has. */
static inline void wait_for(struct sched *s, uint32_t k, uint32_t now)
{
	struct node *n = &s->node[k];
	if (n->ready <= now || s->random) {
		set_add(set_of(s, n), n->rank);
		return;
	}
	uint32_t slot = n->ready % SLOTS;
	n->next = s->slots >> slot & 1 ? s->slot[slot] : NONE;
	s->slot[slot] = k;
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
	while (s->slots && s->arrived + next_slot(s) <= now) {
		s->arrived += next_slot(s);
		for (uint32_t k = s->slot[s->arrived % SLOTS]; k != NONE; k = s->node[k].next)
			if (!s->node[k].done)
				set_add(set_of(s, &s->node[k]), s->node[k].rank);
		s->slots &= ~(UINT64_C(1) << s->arrived % SLOTS);
	}
	s->arrived = now;
}

static inline void release(struct sched *s, uint32_t k, uint32_t now)
{
	for (uint32_t e = s->node[k].edges; e != NONE; e = s->edge[e].next) {
		struct node *to = &s->node[s->edge[e].to];
		if (to->ready < now + s->edge[e].latency)
			to->ready = now + s->edge[e].latency;
		if (--to->preds == 0)
			wait_for(s, s->edge[e].to, now);
	}
}

static void begin_run(struct sched *s)
{
	s->held_back = false;
	s->slots = 0;
	s->arrived = 0;
	set_clear(&s->loads, s->n);
	set_clear(&s->others, s->n);
	begin_registers(s);
	for (uint32_t k = 0; k < s->n; k++) {
		struct node *n = &s->node[k];
		n->preds = n->all_preds;
		n->ready = 0;
		n->done = false;
		if (!n->preds)
			set_add(set_of(s, n), n->rank);
	}
}

/* Nothing ready fits: the first instruction that is left has nothing in front of it, and its own order was one that fitted. */
static void list_schedule(struct sched *s)
{
	uint32_t now = 0, cursor = 0, *order = s->order + s->first;
	begin_run(s);
	for (uint32_t placed = 0; placed < s->n; now++) {
		arrive(s, now);
		while (s->slots && set_first(&s->loads) == s->n && set_first(&s->others) == s->n)
			arrive(s, now += next_slot(s));
		uint32_t rank = choose(s);
		while (rank == NONE && s->node[cursor].done)
			cursor++;
		uint32_t k = rank == NONE ? cursor : s->by_rank[rank];
		assert(!s->node[k].preds);
		s->node[k].done = true;
		set_remove(set_of(s, &s->node[k]), s->node[k].rank);
		if (now < s->node[k].ready)
			arrive(s, now = s->node[k].ready);
		place_registers(s, k, s->first + placed);
		order[placed++] = s->first + k;
		release(s, k, now);
	}
}

/* --- one run */

/* By how many registers the order just made exceeds what is allowed, the worse of the classes. */
static unsigned excess(const struct sched *s, counts allowed)
{
	unsigned most = 0;
	for (unsigned c = 0; c < RDNA_CLASSES; c++)
		if (count_of(s->peak, c) > count_of(allowed, c) && count_of(s->peak, c) - count_of(allowed, c) > most)
			most = count_of(s->peak, c) - count_of(allowed, c);
	return most;
}

/* Goes through the order that came in, or the one that was made, for the lives it makes. Returns the most registers that it needs. */
static counts go_through(struct sched *s, bool made)
{
	begin_registers(s);
	for (uint32_t at = s->first; at < s->first + s->n; at++)
		place_registers(s, (made ? s->order[at] : at) - s->first, at);
	return s->peak;
}

static void keep_order(struct sched *s)
{
	go_through(s, false);
	for (uint32_t at = s->first; at < s->first + s->n; at++)
		s->order[at] = at;
}

/* What the order that came in needs is allowed, too, where that is more than the budget; nobody asks how much that is while orders keep to the budget. */
static void schedule_run(struct sched *s)
{
	counts budget = s->budget, allowed = budget;
	unsigned over = 1;
	if (!depend(s))
		return;
	find_ranks(s);
	for (unsigned attempt = 0; over && attempt < ATTEMPTS; attempt++) {
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

/* --- the pass */

static void find_pressure(struct sched *s)
{
	const struct rdna_lir *l = s->l;
	const struct rdna_live *v = &s->live;
	memset(s->before, 0, (l->n_ins + 2) * sizeof *s->before);
	s->reg[0] = (struct held){0};
	for (uint32_t r = 1; r < l->n_regs; r++) {
		uint32_t named = 0, last = 0;
		for (uint32_t word = v->first_word[r]; word < v->first_word[r + 1]; word++) {
			uint32_t end = v->end[word];
			named += end != RDNA_LIVE_NEVER;
			last = end != RDNA_LIVE_NEVER && last < end ? end : last;
		}
		struct held *h = &s->reg[r];
		h->begun = 0;
		h->start = v->start[r];
		h->end = last;
		h->named = l->reg[r].cls == RDNA_CLASS_VGPR ? COUNTS(0, named) : COUNTS(named, 0);
		if (named) {
			s->before[h->start + 1] += h->named;
			s->before[last + 1] -= h->named;
		}
	}
	for (size_t k = 1; k < l->n_ins + 2; k++)
		s->before[k] += s->before[k - 1];
}

static void find_scc(struct sched *s)
{
	bool wanted = false;
	for (size_t k = s->l->n_ins; k-- > 0;) {
		unsigned marks = s->live.marks[k];
		s->scc_after[k] = wanted;
		wanted = (wanted && !(marks & RDNA_MARK_WRITES_SCC)) || marks & RDNA_MARK_READS_SCC;
	}
}

static uint32_t longest_run(const struct sched *s)
{
	uint32_t longest = 0, first = 0;
	for (uint32_t k = 0; k <= s->l->n_ins; k++)
		if (s->live.marks[k] & RDNA_MARK_FIXED) {
			longest = longest < k - first ? k - first : longest;
			first = k + 1;
		}
	return longest;
}

/* Takes so many elements of a size from the memory at *at; with none there, only counts. */
static void *part(uint8_t **at, size_t *bytes, size_t n, size_t size)
{
	void *p = *at;
	size_t all = (n * size + 7) & ~(size_t)7;
	*bytes += all;
	if (p)
		*at += all;
	return p;
}

static size_t share_memory(struct sched *s, uint8_t *at, uint32_t longest)
{
	size_t bytes = 0, n_ins = s->l->n_ins, words = s->live.n_words + SPECIALS;
	s->reg = part(&at, &bytes, s->l->n_regs, sizeof *s->reg);
	s->before = part(&at, &bytes, n_ins + 2, sizeof *s->before);
	s->scc_after = part(&at, &bytes, n_ins + 1, sizeof *s->scc_after);
	s->word = part(&at, &bytes, words, sizeof *s->word);
	s->order = part(&at, &bytes, n_ins + 1, sizeof *s->order);
	s->node = part(&at, &bytes, longest, sizeof *s->node);
	s->by_rank = part(&at, &bytes, longest, sizeof *s->by_rank);
	s->by_height = part(&at, &bytes, longest, sizeof *s->by_height);
	s->loads.bits = part(&at, &bytes, longest / 64 + 1, sizeof *s->loads.bits);
	s->loads.some = part(&at, &bytes, longest / 4096 + 1, sizeof *s->loads.some);
	s->others.bits = part(&at, &bytes, longest / 64 + 1, sizeof *s->others.bits);
	s->others.some = part(&at, &bytes, longest / 4096 + 1, sizeof *s->others.some);
	return bytes;
}

static bool prepare(struct sched *s)
{
	if (s->l->failed || !rdna_live_find(&s->live, s->l))
		return false;
	uint32_t longest = longest_run(s);
	s->memory = malloc(share_memory(s, NULL, longest));
	if (!s->memory)
		return false;
	share_memory(s, s->memory, longest);
	find_pressure(s);
	find_scc(s);
	return true;
}

static void clean(struct sched *s)
{
	free(s->memory);
	free(s->edge);
	free(s->cell);
	rdna_live_free(&s->live);
}

/* Behind the last instruction is a mark that ends its run. */
static void schedule_all(struct sched *s)
{
	uint32_t n_ins = (uint32_t)s->l->n_ins;
	s->n_cells = 1;                          /* number 0 is of no run */
	memset(s->word, 0, (s->live.n_words + SPECIALS) * sizeof *s->word);
	s->first = 0;
	for (uint32_t k = 0; k <= n_ins && !s->failed; k++) {
		s->order[k] = k;
		if (!(s->live.marks[k] & RDNA_MARK_FIXED))
			continue;
		s->n = k - s->first;
		if (s->n >= SHORTEST)
			schedule_run(s);
		s->first = k + 1;
	}
}

/* The instructions in the new order. */
static void reorder(const struct sched *s, struct rdna_lir_ins *to)
{
	for (size_t k = 0; k < s->l->n_ins; k++)
		to[k] = s->l->ins[s->order[k]];
}

static void exchange(struct rdna_lir *l, struct rdna_lir_ins **other)
{
	struct rdna_lir_ins *ins = l->ins;
	l->ins = *other;
	*other = ins;
}

/* What the allocator makes of the instructions; the kernel stays as it is. live: NULL if it is to find that. False: it does not fit at all. */
static bool try_allocation(struct rdna_lir *l, const struct rdna_live *live, struct rdna_regs *used)
{
	bool ok = live ? rdna_regalloc_known(l, live, used, NULL) : rdna_regalloc(l, 0, 0, 0, used, NULL);
	l->allocated = false;
	return ok;
}

/* Counting words does not see how tuples break up the file, so the allocator is asked: where the new order needs more registers than it may (or more than the
 * old one, if that is more), the budget is lowered, and in the end the old order stays. */
static bool schedule(struct sched *s, unsigned vgprs)
{
	enum { SGPRS = 86, MOST_SGPRS = RDNA_ABI_SGPRS - 6 };    /* some are left to tuples' alignment and to loops' counters */
	struct rdna_lir *l = s->l;
	struct rdna_regs before, after = {0};
	struct rdna_lir_ins *other = malloc(l->ins_capacity * sizeof *other);     /* the order that l->ins does not have */
	if (!other)
		return !l->n_ins;
	vgprs = !vgprs || vgprs > RDNA_ABI_VGPRS ? RDNA_ABI_VGPRS : vgprs;
	s->budget = COUNTS(SGPRS, vgprs);
	unsigned allowed = vgprs, scalar = MOST_SGPRS;
	bool fits = false, latest = true;                       /* the latest trial was of the new order */
	for (unsigned attempt = 0; !fits && !s->failed && attempt < ATTEMPTS; attempt++) {
		if (attempt)
			exchange(l, &other);
		schedule_all(s);
		if (s->failed)
			break;
		reorder(s, other);
		exchange(l, &other);
		bool fitted = latest = try_allocation(l, &s->live, &after);
		if (!attempt && !(fitted && after.vgprs <= allowed && after.sgprs <= scalar)) {
			exchange(l, &other);
			if (try_allocation(l, NULL, &before)) {
				latest = false;
				allowed = before.vgprs > allowed ? before.vgprs : allowed;
				scalar = before.sgprs > scalar ? before.sgprs : scalar;
			}
			exchange(l, &other);
		}
		fits = fitted && after.vgprs <= allowed && after.sgprs <= scalar;
		s->budget = less(s->budget, after.vgprs > allowed ? after.vgprs - allowed + 4 : 8);
	}
	if (!fits && !s->failed)
		exchange(l, &other);
	l->tried = fits && latest;
	l->used = after;
	free(other);
	return !s->failed;
}

bool rdna_sched(struct rdna_lir *l, unsigned vgprs, uint32_t seed, struct error *err)
{
	struct sched s = { .l = l, .random = seed };
	bool ok = prepare(&s) && schedule(&s, vgprs);
	clean(&s);
	return ok || error_set(err, ERROR_MEMORY, "no memory to order the instructions of a kernel");
}

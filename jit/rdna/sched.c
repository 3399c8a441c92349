/* jit/rdna/sched.c - list scheduling of straight runs: loads early and together, within a budget of registers.
 *
 * Owns: the order between instructions that are FIXED, and nothing else: no instruction is changed, none leaves its
 * run. Rules for editors: an order is legal when it keeps every edge of depend(); the heuristics only choose among
 * legal ones. An order that needs more registers than the budget and than the order it replaces is thrown away, so that
 * a kernel that could be allocated still can. Everything is linear in the run: runs have thousands.
 *
 * The instructions stay where they are until the allocator has agreed; what is made is a list of their numbers,
 * `order`. What they name is not read from them but from the lists of rdna_live, once for all runs. Lives of the new
 * order differ from the old ones inside runs alone, for what begins or ends in a run does so in any order of it, and
 * what goes around a loop does in any: so going through a run's order sets them.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "jit/rdna/live.h"

#define NONE UINT32_MAX

/* In instructions of this wave, other waves taking their turns between. None is as many as SLOTS. */
enum {
	AFTER_VALU = 2,
	AFTER_TRANS = 4,
	AFTER_SALU = 2,
	AFTER_MATRIX = 8,
	AFTER_LDS = 16,
	AFTER_SMEM = 40,
	AFTER_VMEM = 60,
	SLOTS = 64
};

/* How many candidates are looked at for one that fits; what loads leave free for the results of arithmetic; how much
 * room makes them begin again. */
enum { LOOKS = 8, LOADS_AGAIN = 16, ATTEMPTS = 4, SPECIALS = 3, SHORTEST = 3 };

/* Numbers of registers of both classes: scalar ones in the low half, vector ones in the high one. Sums and differences
 * are made of both at once; none is negative, and none comes near the halves' top bits, which are left to
 * comparisons. */
typedef uint64_t counts;
#define COUNTS(sgprs, vgprs) ((counts)(sgprs) | (counts)(vgprs) << 32)
static const counts top_bits = COUNTS(1u << 31, 1u << 31), reserve = COUNTS(6, 12);
static inline unsigned count_of(counts n, enum rdna_class c)
{
	return (unsigned)(n >> (c == RDNA_CLASS_VGPR ? 32 : 0) & 0x7fffffff);
}
/* The top bits of those classes whose number is not above the limit's. */
static inline counts not_above(counts n, counts limit) { return ((limit | top_bits) - n) & top_bits; }
static inline bool within(counts n, counts limit) { return not_above(n, limit) == top_bits; }
static inline counts larger(counts a, counts b)
{
	unsigned s[2] = { count_of(a, RDNA_CLASS_SGPR), count_of(b, RDNA_CLASS_SGPR) },
		 v[2] = { count_of(a, RDNA_CLASS_VGPR), count_of(b, RDNA_CLASS_VGPR) };
	return COUNTS(s[0] > s[1] ? s[0] : s[1], v[0] > v[1] ? v[0] : v[1]);
}
/* Where that would be less than nothing, nothing. */
static inline counts less(counts n, unsigned by)
{
	unsigned s = count_of(n, RDNA_CLASS_SGPR), v = count_of(n, RDNA_CLASS_VGPR);
	return COUNTS(s > by ? s - by : 0, v > by ? v - by : 0);
}

/* A register while orders are gone through, from the first run to the last. */
struct held {
	counts named;  /* words that something names */
	uint32_t left; /* uses to come; one more where its life goes on to the end of a loop, or to what is no run's */
	bool claimed;  /* it has been written */
	bool tuple;
};
struct node {
	counts most; /* words it may take */
	const struct rdna_use *uses, *uses_end;
	struct node *next; /* of those that wait for the same moment */
	uint32_t at;       /* the instruction */
	uint32_t edges, preds, height, ready, rank;
	uint8_t latency;
	bool load, early_clobber, done;
};
struct edge {
	uint32_t from, to, next, latency;
}; /* nodes by their numbers; edge number 0 is none, and leads nowhere */
struct cell {
	struct node *node;
	uint32_t next;
};

/* Nodes by rank, a bit each, and for every 64 of them a bit that says whether there are any. Rank n is always in it. */
struct set {
	uint64_t *bits, *some;
};
enum { OTHERS, LOADS };

/* By word: the latest instruction of this run that wrote it, plus one, and the cells of those that read it since. What
 * is of an earlier run has smaller numbers. */
struct word {
	uint32_t writer, readers;
};

/* Sizes that loops ask for are size_t: numbers of 32 bits are stored all the time, and would be thought to change
 * them. */
struct sched {
	struct rdna_lir *l;
	struct rdna_live live;
	struct held *reg; /* by register */
	counts *before;   /* by instruction: words live in front of it, in the order that came in */
	struct word *word;
	uint32_t *order; /* by position: the instruction that is to stand there */
	counts budget;
	uint32_t random;
	void *memory;

	/* The run: instructions first .. first + n - 1; nodes are counted from first. */
	size_t first, n;
	struct node *node;
	struct edge *edge;
	size_t n_edges, edge_capacity;
	struct cell *cell;
	size_t n_cells, cell_capacity, run_cells /* number of the run's first */;
	struct node **by_rank, **by_height; /* nodes; room to sort them */
	struct set may[2];                  /* that may be placed now: OTHERS, LOADS */
	struct node
		*slot[SLOTS]; /* those that may be placed from a moment on, by that moment: `arrived` + 1 ... + SLOTS */
	uint64_t slots;       /* a bit for each that is not empty */
	uint32_t arrived;

	/* Registers while an order is gone through. */
	counts held, peak;
	bool held_back; /* loads wait for room */
	bool failed;
};

static bool room(struct sched *s, void **array, size_t *capacity, size_t n, size_t size)
{
	if (!array_grow(array, capacity, n, size))
		s->failed = true;
	return !s->failed;
}

/* --- what must stay in front of what */

static inline void edge(struct sched *s, struct node *from, struct node *to, unsigned latency)
{
	struct edge *latest = &s->edge[from->edges];
	uint32_t number = to->at - (uint32_t)s->first;
	if (latest->to == number) {
		if (latest->latency < latency)
			latest->latency = latency;
		return;
	}
	if (s->n_edges == s->edge_capacity &&
	    !room(s, (void **)&s->edge, &s->edge_capacity, s->n_edges + 1, sizeof *s->edge))
		return;
	s->edge[s->n_edges] = (struct edge){ from->at - (uint32_t)s->first, number, from->edges, latency };
	from->edges = (uint32_t)s->n_edges++;
	to->preds++;
}

static inline void push_cell(struct sched *s, uint32_t *list, struct node *node)
{
	if (s->n_cells >= s->cell_capacity &&
	    !room(s, (void **)&s->cell, &s->cell_capacity, s->n_cells + 1, sizeof *s->cell))
		return;
	s->cell[s->n_cells] = (struct cell){ node, *list };
	*list = (uint32_t)s->n_cells++;
}

static void edges_from(struct sched *s, uint32_t list, struct node *to)
{
	for (; list != NONE; list = s->cell[list].next)
		if (s->cell[list].node != to)
			edge(s, s->cell[list].node, to, 0);
}

/* Who reads what nobody writes any more need not be remembered. */
static inline void read_word(struct sched *s, struct word *w, struct node *n, bool written_later)
{
	if (w->writer > s->first) {
		struct node *from = &s->node[w->writer - 1 - s->first];
		edge(s, from, n, from->latency);
	}
	if (!written_later)
		return;
	if (w->readers < s->run_cells)
		w->readers = NONE;
	push_cell(s, &w->readers, n);
}

static inline void write_word(struct sched *s, struct word *w, struct node *n)
{
	if (w->writer > s->first && w->writer <= n->at)
		edge(s, &s->node[w->writer - 1 - s->first], n, 1);
	if (w->readers != NONE && w->readers >= s->run_cells)
		edges_from(s, w->readers, n);
	w->readers = NONE;
	w->writer = n->at + 1;
}

static inline void depend_on_words(struct sched *s, struct node *n)
{
	const struct rdna_use *u = n->uses, *to = n->uses_end;
	struct word *const words = s->word;
	for (; u < to && !u->written; u++) {
		const uint32_t *written = s->live.written + u->word;
		struct word *word = words + u->word, *end = word + u->n;
		do
			read_word(s, word, n, *written++ > n->at);
		while (++word < end);
	}
	for (; u < to; u++) {
		struct word *word = words + u->word, *end = word + u->n;
		n->most += u->takes ? s->reg[u->reg].named : 0;
		do
			write_word(s, word, n);
		while (++word < end);
	}
}

/* Machine registers that stand behind all words; others are read alone. */
static void depend_on_special(struct sched *s, struct node *n, const struct rdna_lir_operand *o, bool written)
{
	for (unsigned r = o->reg; o->kind == RDNA_LIR_FIXED && r < o->reg + o->n; r++) {
		struct word *word = &s->word[s->live.n_words + (r == RDNA_VCC_LO ? 0 : r == RDNA_VCC_HI ? 1 : 2)];
		if (r != RDNA_VCC_LO && r != RDNA_VCC_HI && r != RDNA_M0)
			continue;
		if (written)
			write_word(s, word, n);
		else
			read_word(s, word, n, true);
	}
}

static void depend_on_specials(struct sched *s, struct node *n, const struct rdna_lir_ins *i, unsigned facts)
{
	for (unsigned j = 0; j < 4; j++)
		depend_on_special(s, n, &i->s[j], false);
	depend_on_special(s, n, &i->saddr, false);
	if (rdna_lir_reads_dst(i))
		depend_on_special(s, n, &i->d[0], false);
	if (facts & RDNA_READS_VCC)
		read_word(s, &s->word[s->live.n_words], n, true);
	for (unsigned j = 0; j < 2; j++)
		depend_on_special(s, n, &i->d[j], true);
}

/* One kind of memory: the last store, the loads since. */
struct access_order {
	struct node *store;
	uint32_t loads;
};

static void depend_on_memory(struct sched *s, struct node *n, bool stores, struct access_order *m)
{
	if (m->store)
		edge(s, m->store, n, 1);
	if (!stores) {
		push_cell(s, &m->loads, n);
		return;
	}
	edges_from(s, m->loads, n);
	*m = (struct access_order){ n, NONE };
}

/* Most scalar instructions leave something in scc that nobody reads. Those may trade places with each other, but none
 * may come between a write that is read and its readers: they stay behind the readers before them and in front of the
 * next such write. */
struct scc_order {
	struct node *writer;
	uint32_t readers, unread;
};

static void depend_on_scc(struct sched *s, struct node *n, unsigned marks, struct scc_order *o)
{
	if (marks & RDNA_MARK_READS_SCC) {
		if (o->writer)
			edge(s, o->writer, n, o->writer->latency);
		push_cell(s, &o->readers, n);
	}
	if (!(marks & RDNA_MARK_WRITES_SCC))
		return;
	edges_from(s, o->readers, n);
	if (!(marks & RDNA_MARK_SCC_WANTED)) {
		push_cell(s, &o->unread, n);
		return;
	}
	edges_from(s, o->unread, n);
	if (o->writer)
		edge(s, o->writer, n, 1);
	*o = (struct scc_order){ n, NONE, NONE };
}

static inline unsigned latency_of(unsigned facts)
{
	if (facts & RDNA_IS_VALU && !(facts & (RDNA_IS_WMMA | RDNA_IS_TRANS)))
		return AFTER_VALU;
	return facts & RDNA_IS_VMEM    ? AFTER_VMEM
	       : facts & RDNA_IS_SMEM  ? AFTER_SMEM
	       : facts & RDNA_IS_LDS   ? AFTER_LDS
	       : facts & RDNA_IS_WMMA  ? AFTER_MATRIX
	       : facts & RDNA_IS_TRANS ? AFTER_TRANS
	                               : AFTER_SALU;
}

static bool depend(struct sched *s)
{
	struct access_order memory[RDNA_MEM_CONST] = { { NULL, NONE }, { NULL, NONE }, { NULL, NONE } };
	struct scc_order scc = { NULL, NONE, NONE };
	const struct rdna_lir_ins *i = s->l->ins + s->first;
	const uint32_t *uses = s->live.use_from + s->first;
	const uint16_t *marks = s->live.marks + s->first;
	s->n_edges = 1;
	s->run_cells = s->n_cells;
	for (struct node *n = s->node, *end = n + s->n; n < end; n++, i++, uses++, marks++) {
		unsigned facts = rdna_lir_facts(i->op);
		*n = (struct node){ .at = (uint32_t)(i - s->l->ins),
			            .uses = s->live.use + uses[0],
			            .uses_end = s->live.use + uses[1],
			            .latency = (uint8_t)latency_of(facts),
			            .early_clobber = rdna_lir_early_clobber(i),
			            .load = facts & (RDNA_IS_VMEM | RDNA_IS_SMEM | RDNA_IS_LDS) && i->d[0].kind };
		depend_on_words(s, n);
		if (*marks & RDNA_MARK_MACHINE)
			depend_on_specials(s, n, i, facts);
		if (*marks & (RDNA_MARK_READS_SCC | RDNA_MARK_WRITES_SCC))
			depend_on_scc(s, n, *marks, &scc);
		if (i->memory == RDNA_MEM_GLOBAL || i->memory == RDNA_MEM_LDS)
			depend_on_memory(s, n, i->stores, &memory[i->memory]);
	}
	return !s->failed;
}

/* --- heights: by how much the end of the run must follow a node; ranks: the highest first, then in the order that came
 * in */

/* Edges lie in the order of the nodes they lead to: from the last one on, a node's height is known when an edge to it
 * is met. Returns the greatest. */
static uint32_t find_heights(struct sched *s)
{
	struct node *const node = s->node;
	uint32_t most = 0;
	for (const struct edge *e = s->edge + s->n_edges; --e > s->edge;) {
		uint32_t height = node[e->to].height + e->latency, *from = &node[e->from].height;
		*from = *from < height ? height : *from;
		most = most < height ? height : most;
	}
	return most;
}

/* Sorts nodes by a byte of their heights, which has so many values, the highest first, keeping their order
 * otherwise. */
static void sort_by_byte(size_t n, struct node *const *from, struct node **to, unsigned shift, unsigned values)
{
	uint32_t place[256], sum = 0;
	memset(place, 0, values * sizeof *place);
	for (size_t k = 0; k < n; k++)
		place[from[k]->height >> shift & 255]++;
	for (unsigned b = values; b-- > 0;) {
		uint32_t count = place[b];
		place[b] = sum;
		sum += count;
	}
	for (size_t k = 0; k < n; k++)
		to[place[from[k]->height >> shift & 255]++] = from[k];
}

static void find_ranks(struct sched *s)
{
	uint32_t most = find_heights(s);
	for (size_t k = 0; k < s->n; k++)
		s->by_rank[k] = &s->node[k];
	for (unsigned shift = 0; shift < 32 && most >> shift; shift += 8) {
		struct node **sorted = s->by_height;
		sort_by_byte(s->n, s->by_rank, sorted, shift, most >> shift > 255 ? 256 : (most >> shift) + 1);
		s->by_height = s->by_rank;
		s->by_rank = sorted;
	}
	for (size_t k = 0; k < s->n; k++)
		s->by_rank[k]->rank = (uint32_t)k;
}

/* --- registers: a tuple counts as a whole until its last word dies, for what is free in the middle of it helps no
 * other tuple */

/* At the beginning of the first run. What goes on to an instruction of no run never dies in one: the end of a loop
 * comes behind all that goes around its back. */
static void begin_registers(struct sched *s)
{
	const struct rdna_live *v = &s->live;
	for (size_t r = 0; r < s->l->n_regs; r++) {
		s->reg[r].left = v->reg[r].uses + (v->marks[v->reg[r].end] & RDNA_MARK_FIXED ? 1 : 0);
		s->reg[r].claimed = false;
	}
}

/* An instruction that stays where it is, in no run. */
static void pass_over(struct sched *s, uint32_t at)
{
	const struct rdna_live *v = &s->live;
	for (const struct rdna_use *u = v->use + v->use_from[at], *to = v->use + v->use_from[at + 1]; u < to; u++) {
		s->reg[u->reg].left--;
		s->reg[u->reg].claimed |= u->written;
	}
}

/* The run was gone through and is to be so again. */
static void restore_registers(struct sched *s)
{
	const struct rdna_live *v = &s->live;
	for (const struct rdna_use *u = v->use + v->use_from[s->first], *to = v->use + v->use_from[s->first + s->n];
	     u < to; u++) {
		s->reg[u->reg].left++;
		s->reg[u->reg].claimed = v->reg[u->reg].start < s->first;
	}
}

/* A tuple's words die one by one. */
static void end_words(struct sched *s, const struct rdna_use *u, uint32_t at)
{
	for (struct rdna_word *word = &s->live.word[u->word], *end = word + u->n; word < end; word++)
		word->end = word->end - s->first < s->n ? at : word->end;
}

/* A node stands at this position: what it takes and gives back, and where lives begin and end. */
static inline void place_registers(struct sched *s, const struct node *n, uint32_t at)
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
	return within(s->held + n->most + spare, s->budget);
}

static inline bool fits(struct sched *s, const struct node *n, counts spare)
{
	return fits_surely(s, n, spare) || fits_counted(s, n, spare);
}

static inline counts spare_of_loads(const struct sched *s)
{
	return reserve + COUNTS(0, s->held_back ? LOADS_AGAIN : 0);
}

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

static void set_clear(struct set *t, size_t n)
{
	memset(t->bits, 0, (n / 64 + 1) * sizeof *t->bits);
	memset(t->some, 0, (n / 4096 + 1) * sizeof *t->some);
	set_add(t, (uint32_t)n);
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

static inline struct set *set_of(struct sched *s, const struct node *n) { return &s->may[n->load ? LOADS : OTHERS]; }

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
	uint32_t rank = set_next(t, draw(s) % s->n);
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
		place_registers(s, n, at);
		s->order[at] = n->at;
		release(s, n, now);
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

/* Goes through the order that came in, or the one that was made, for the lives it makes. Returns the most registers
 * that it needs. */
static counts go_through(struct sched *s, bool made)
{
	restore_registers(s);
	s->held = s->peak = s->before[s->first];
	for (size_t at = s->first; at < s->first + s->n; at++)
		place_registers(s, &s->node[(made ? s->order[at] : at) - s->first], (uint32_t)at);
	return s->peak;
}

static void keep_order(struct sched *s)
{
	go_through(s, false);
	for (size_t at = s->first; at < s->first + s->n; at++)
		s->order[at] = (uint32_t)at;
}

/* What the order that came in needs is allowed, too, where that is more than the budget; nobody asks how much that is
 * while orders keep to the budget. */
static void schedule_run(struct sched *s)
{
	counts budget = s->budget, allowed = budget;
	unsigned over = 1;
	if (!depend(s))
		return;
	find_ranks(s);
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

/* --- the pass */

static void find_pressure(struct sched *s)
{
	const struct rdna_live *v = &s->live;
	size_t n_ins = s->l->n_ins;
	memset(s->before, 0, (n_ins + 2) * sizeof *s->before);
	for (size_t r = 0; r < s->l->n_regs; r++) {
		const struct rdna_life *life = &v->reg[r];
		const struct rdna_lir_reg *g = &s->l->reg[r];
		unsigned named = g->n == 1 ? v->named[r] : (unsigned)__builtin_popcount(v->named[r]);
		struct held *h = &s->reg[r];
		h->named = g->cls == RDNA_CLASS_VGPR ? COUNTS(0, named) : COUNTS(named, 0);
		h->tuple = g->n > 1;
		if (named) {
			s->before[life->start + 1] += h->named;
			s->before[life->end + 1] -= h->named;
		}
	}
	for (size_t k = 1; k < n_ins + 2; k++)
		s->before[k] += s->before[k - 1];
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

/* No run is longer than the kernel. */
static size_t share_memory(struct sched *s, uint8_t *at)
{
	size_t bytes = 0, n_ins = s->l->n_ins, words = s->live.n_words + SPECIALS;
	s->reg = part(&at, &bytes, s->l->n_regs, sizeof *s->reg);
	s->before = part(&at, &bytes, n_ins + 2, sizeof *s->before);
	s->word = part(&at, &bytes, words, sizeof *s->word);
	s->order = part(&at, &bytes, n_ins + 1, sizeof *s->order);
	s->node = part(&at, &bytes, n_ins, sizeof *s->node);
	s->by_rank = part(&at, &bytes, n_ins, sizeof *s->by_rank);
	s->by_height = part(&at, &bytes, n_ins, sizeof *s->by_height);
	for (unsigned k = 0; k < 2; k++) {
		s->may[k].bits = part(&at, &bytes, n_ins / 64 + 1, sizeof *s->may[k].bits);
		s->may[k].some = part(&at, &bytes, n_ins / 4096 + 1, sizeof *s->may[k].some);
	}
	return bytes;
}

static bool prepare(struct sched *s)
{
	if (s->l->failed || !rdna_live_find(&s->live, s->l))
		return false;
	s->memory = malloc(share_memory(s, NULL));
	if (!s->memory || !room(s, (void **)&s->edge, &s->edge_capacity, s->live.n_uses + 1, sizeof *s->edge))
		return false;
	share_memory(s, s->memory);
	s->edge[0] = (struct edge){ .to = NONE };
	find_pressure(s);
	return true;
}

static void clean(struct sched *s)
{
	free(s->memory);
	free(s->edge);
	free(s->cell);
	rdna_live_free(&s->live);
}

static void keep_in_place(struct sched *s, uint32_t from, uint32_t to)
{
	for (uint32_t at = from; at < to; at++) {
		s->order[at] = at;
		pass_over(s, at);
	}
}

/* Behind the last instruction is a mark that ends its run. */
static void schedule_all(struct sched *s)
{
	uint32_t n_ins = (uint32_t)s->l->n_ins;
	s->n_cells = 1; /* number 0 is of no run */
	memset(s->word, 0, (s->live.n_words + SPECIALS) * sizeof *s->word);
	begin_registers(s);
	for (uint32_t first = 0, end = 0; end < n_ins && !s->failed; first = end + 1) {
		for (end = first; !(s->live.marks[end] & RDNA_MARK_FIXED); end++)
			;
		s->first = first;
		s->n = end - first;
		if (s->n >= SHORTEST)
			schedule_run(s);
		else
			keep_in_place(s, first, end);
		if (end < n_ins)
			keep_in_place(s, end, end + 1);
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

/* What the allocator makes of the instructions; the kernel stays as it is. live: NULL if it is to find that. False: it
 * does not fit at all, or s->failed: another order because memory ran out would be other code for the same key. */
static bool try_allocation(struct sched *s, const struct rdna_live *live, struct rdna_regs *used)
{
	struct rdna_lir *l = s->l;
	struct error why = { 0 };
	bool ok = live ? rdna_regalloc_known(l, live, used, &why) : rdna_regalloc(l, 0, 0, 0, used, &why);
	l->allocated = false;
	s->failed |= why.code == ERROR_MEMORY;
	return ok;
}

/* Counting words does not see how tuples break up the file, so the allocator is asked: where the new order needs more
 * registers than it may (or more than the old one, if that is more), the budget is lowered, and in the end the old
 * order stays. */
static bool schedule(struct sched *s, unsigned vgprs)
{
	enum {
		SGPRS = 86,
		MOST_SGPRS = RDNA_ABI_SGPRS - 6
	}; /* some are left to tuples' alignment and to loops' counters */
	struct rdna_lir *l = s->l;
	struct rdna_regs before, after = { 0 };
	struct rdna_lir_ins *other = malloc(l->ins_capacity * sizeof *other); /* the order that l->ins does not have */
	if (!other)
		return !l->n_ins;
	vgprs = !vgprs || vgprs > RDNA_ABI_VGPRS ? RDNA_ABI_VGPRS : vgprs;
	s->budget = COUNTS(SGPRS, vgprs);
	unsigned allowed = vgprs, scalar = MOST_SGPRS;
	bool fits = false, latest = true; /* the latest trial was of the new order */
	for (unsigned attempt = 0; !fits && !s->failed && attempt < ATTEMPTS; attempt++) {
		if (attempt)
			exchange(l, &other);
		schedule_all(s);
		if (s->failed)
			break;
		reorder(s, other);
		exchange(l, &other);
		bool fitted = latest = try_allocation(s, &s->live, &after);
		if (!attempt && !(fitted && after.vgprs <= allowed && after.sgprs <= scalar)) {
			exchange(l, &other);
			if (try_allocation(s, NULL, &before)) {
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

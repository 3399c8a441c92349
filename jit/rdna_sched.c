/* jit/rdna_sched.c - list scheduling of straight runs: loads early and together, within a budget of registers.
 *
 * Owns: the order between instructions that are FIXED, and nothing else: no instruction is changed, none leaves its run. Rules for editors: an order is
 * legal when it keeps every edge of depend(); the heuristics only choose among legal ones. An order that needs more registers than the budget and than the
 * order it replaces is thrown away, so that a kernel that could be allocated still can. Everything is linear in the run but for heaps: runs have thousands.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jit/array.h"
#include "jit/rdna_live.h"

#define NONE UINT32_MAX

/* In instructions of this wave, other waves taking their turns between. */
enum { AFTER_VALU = 2, AFTER_TRANS = 4, AFTER_SALU = 2, AFTER_MATRIX = 8, AFTER_LDS = 16, AFTER_SMEM = 40, AFTER_VMEM = 60 };

/* How many candidates are looked at for one that fits; what loads leave free for the results of arithmetic; how much room makes them begin again. */
enum { LOOKS = 8, LOADS_AGAIN = 16, ATTEMPTS = 4, SPECIALS = 3, SHORTEST = 3 };
static const unsigned reserve[RDNA_CLASSES] = { [RDNA_CLASS_SGPR] = 6, [RDNA_CLASS_VGPR] = 12 };

struct use { uint32_t reg; bool written; };
struct held { uint32_t left /* uses to come, all those behind the run being one */; uint8_t named /* words that something names */, cls; bool claimed, begun; };
struct node { uint32_t edges, preds, all_preds, height, ready; unsigned most[RDNA_CLASSES]; /* words it may take */ uint8_t latency; bool load, done; };
struct edge { uint32_t to, next; uint8_t latency; };
struct cell { uint32_t node, next; };
struct heap { uint64_t *at /* rank << 32 | node, the least first */; size_t n, capacity; };

struct sched {
	struct rdna_lir *l;
	struct rdna_live live;
	uint32_t *before[RDNA_CLASSES];          /* by instruction: words live in front of it, in the order that came in */
	bool *scc_after;                         /* by instruction: scc is read before it is written again */
	unsigned budget[RDNA_CLASSES];
	uint32_t random;

	/* The run: instructions first .. first + n - 1; nodes are counted from first. */
	uint32_t first, n;
	struct node *node; size_t node_capacity;
	struct edge *edge; size_t n_edges, edge_capacity;
	struct cell *cell; size_t n_cells, cell_capacity;
	uint32_t *access_from; size_t access_from_capacity;      /* by node, n + 1: its part of access[] */
	uint32_t *access; size_t n_access, access_capacity;      /* word << 1 | written; the reads of an instruction first */
	uint32_t *use_from; size_t use_from_capacity;            /* the same of registers, operand by operand */
	struct use *use; size_t n_use, use_capacity;
	uint32_t *writer, *readers;              /* by word: latest node that wrote it; cells of those that read it since */
	struct heap loads, others, waiting;
	uint32_t *order; size_t order_capacity;
	struct rdna_lir_ins *copy; size_t copy_capacity;

	/* Registers while an order is gone through. */
	struct held *reg;                        /* by register */
	unsigned held[RDNA_CLASSES], peak[RDNA_CLASSES];
	bool held_back;                          /* loads wait for room */
	bool failed;
};

static bool room(struct sched *s, void **array, size_t *capacity, size_t n, size_t size)
{
	if (!array_grow(array, capacity, n, size))
		s->failed = true;
	return !s->failed;
}

/* --- accesses */

static uint32_t special(const struct sched *s, unsigned reg)
{
	uint32_t base = (uint32_t)s->live.n_words;
	return reg == RDNA_VCC_LO ? base : reg == RDNA_VCC_HI ? base + 1 : reg == RDNA_M0 ? base + 2 : NONE;
}

static void access_word(struct sched *s, uint32_t word, bool written)
{
	if (s->n_access < s->access_capacity || room(s, (void **)&s->access, &s->access_capacity, s->n_access + 1, sizeof *s->access))
		s->access[s->n_access++] = word << 1 | written;
}

static void access_operand(struct sched *s, const struct rdna_lir_operand *o, bool written)
{
	if (o->kind == RDNA_LIR_VIRTUAL) {
		for (uint32_t word = s->live.first_word[o->reg] + o->sub, end = word + o->n; word < end; word++)
			access_word(s, word, written);
		if (s->n_use < s->use_capacity || room(s, (void **)&s->use, &s->use_capacity, s->n_use + 1, sizeof *s->use))
			s->use[s->n_use++] = (struct use){ o->reg, written };
	}
	for (unsigned k = 0; o->kind == RDNA_LIR_FIXED && k < o->n; k++)
		if (special(s, o->reg + k) != NONE)
			access_word(s, special(s, o->reg + k), written);
}

static bool find_accesses(struct sched *s)
{
	s->n_access = s->n_use = 0;
	if (!room(s, (void **)&s->access_from, &s->access_from_capacity, s->n + 1, sizeof *s->access_from)
	    || !room(s, (void **)&s->use_from, &s->use_from_capacity, s->n + 1, sizeof *s->use_from))
		return false;
	for (uint32_t k = 0; k < s->n; k++) {
		const struct rdna_lir_ins *i = &s->l->ins[s->first + k];
		s->access_from[k] = (uint32_t)s->n_access;
		s->use_from[k] = (uint32_t)s->n_use;
		for (unsigned j = 0; j < 4; j++)
			if (i->s[j].kind)
				access_operand(s, &i->s[j], false);
		if (i->saddr.kind)
			access_operand(s, &i->saddr, false);
		if (rdna_lir_reads_dst(i))
			access_operand(s, &i->d[0], false);
		if (rdna_lir_facts(i->op) & RDNA_READS_VCC)
			access_word(s, special(s, RDNA_VCC_LO), false);
		for (unsigned j = 0; j < 2; j++)
			if (i->d[j].kind)
				access_operand(s, &i->d[j], true);
	}
	s->access_from[s->n] = (uint32_t)s->n_access;
	s->use_from[s->n] = (uint32_t)s->n_use;
	return !s->failed;
}

/* --- what must stay in front of what */

static void edge(struct sched *s, uint32_t from, uint32_t to, unsigned latency)
{
	struct node *f = &s->node[from];
	if (from == to || s->failed)
		return;
	if (f->edges != NONE && s->edge[f->edges].to == to) {
		if (s->edge[f->edges].latency < latency)
			s->edge[f->edges].latency = (uint8_t)latency;
		return;
	}
	if (!room(s, (void **)&s->edge, &s->edge_capacity, s->n_edges + 1, sizeof *s->edge))
		return;
	s->edge[s->n_edges] = (struct edge){ to, f->edges, (uint8_t)latency };
	f->edges = (uint32_t)s->n_edges++;
	s->node[to].all_preds++;
}

static void push_cell(struct sched *s, uint32_t *list, uint32_t node)
{
	if (!room(s, (void **)&s->cell, &s->cell_capacity, s->n_cells + 1, sizeof *s->cell))
		return;
	s->cell[s->n_cells] = (struct cell){ node, *list };
	*list = (uint32_t)s->n_cells++;
}

static void edges_from(struct sched *s, uint32_t list, uint32_t to)
{
	for (; list != NONE; list = s->cell[list].next)
		edge(s, s->cell[list].node, to, 0);
}

static void depend_on_words(struct sched *s, uint32_t k)
{
	for (uint32_t a = s->access_from[k]; a < s->access_from[k + 1] && !s->failed; a++) {
		uint32_t word = s->access[a] >> 1;
		bool written = s->access[a] & 1;
		if (s->writer[word] != NONE)
			edge(s, s->writer[word], k, written ? 1 : s->node[s->writer[word]].latency);
		if (!written) {
			push_cell(s, &s->readers[word], k);
			continue;
		}
		edges_from(s, s->readers[word], k);
		s->readers[word] = NONE;
		s->writer[word] = k;
	}
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

static void depend_on_scc(struct sched *s, uint32_t k, struct scc_order *o)
{
	const struct rdna_lir_ins *i = &s->l->ins[s->first + k];
	unsigned facts = rdna_lir_facts(i->op);
	bool reads = facts & RDNA_READS_SCC;
	for (unsigned j = 0; j < 4; j++)
		reads |= i->s[j].kind == RDNA_LIR_FIXED && i->s[j].reg == RDNA_SCC;
	if (reads) {
		if (o->writer != NONE)
			edge(s, o->writer, k, s->node[o->writer].latency);
		push_cell(s, &o->readers, k);
	}
	if (!(facts & RDNA_WRITES_SCC))
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

static unsigned latency_of(unsigned facts)
{
	return facts & RDNA_IS_VMEM ? AFTER_VMEM : facts & RDNA_IS_SMEM ? AFTER_SMEM : facts & RDNA_IS_LDS ? AFTER_LDS : facts & RDNA_IS_WMMA ? AFTER_MATRIX
	       : facts & RDNA_IS_TRANS ? AFTER_TRANS : facts & RDNA_IS_VALU ? AFTER_VALU : AFTER_SALU;
}

static bool depend(struct sched *s)
{
	struct access_order memory[RDNA_MEM_CONST] = { { NONE, NONE }, { NONE, NONE }, { NONE, NONE } };
	struct scc_order scc = { NONE, NONE, NONE };
	s->n_edges = s->n_cells = 0;
	for (size_t a = 0; a < s->n_access; a++)
		s->writer[s->access[a] >> 1] = s->readers[s->access[a] >> 1] = NONE;
	for (uint32_t k = 0; k < s->n && !s->failed; k++) {
		const struct rdna_lir_ins *i = &s->l->ins[s->first + k];
		unsigned facts = rdna_lir_facts(i->op);
		bool load = facts & (RDNA_IS_VMEM | RDNA_IS_SMEM | RDNA_IS_LDS) && i->d[0].kind;
		s->node[k] = (struct node){ .edges = NONE, .latency = (uint8_t)latency_of(facts), .load = load };
		depend_on_words(s, k);
		depend_on_scc(s, k, &scc);
		if (i->memory == RDNA_MEM_GLOBAL || i->memory == RDNA_MEM_LDS)
			depend_on_memory(s, k, &memory[i->memory]);
	}
	for (uint32_t k = s->n; !s->failed && k-- > 0;)
		for (uint32_t e = s->node[k].edges; e != NONE; e = s->edge[e].next) {
			uint32_t h = s->node[s->edge[e].to].height + s->edge[e].latency;
			if (s->node[k].height < h)
				s->node[k].height = h;
		}
	return !s->failed;
}

/* --- registers: a tuple counts as a whole until its last word dies, for what is free in the middle of it helps no other tuple */

/* A tuple that is named behind the run, or goes around the back of a loop, does not die in it. */
static void begin_register(struct sched *s, uint32_t r)
{
	struct held *h = &s->reg[r];
	bool stays = false;
	for (uint32_t word = s->live.first_word[r]; word < s->live.first_word[r + 1]; word++)
		stays |= s->live.end[word] != RDNA_LIVE_NEVER && s->live.end[word] >= s->first + s->n;
	h->claimed = s->live.start[r] < s->first;
	h->begun = true;
	h->left = stays;
}

static void begin_registers(struct sched *s)
{
	for (size_t u = 0; u < s->n_use; u++)
		s->reg[s->use[u].reg].begun = false;
	for (size_t u = 0; u < s->n_use; u++) {
		uint32_t r = s->use[u].reg;
		if (!s->reg[r].begun)
			begin_register(s, r);
		s->reg[r].left++;
	}
	for (unsigned c = 0; c < RDNA_CLASSES; c++)
		s->held[c] = s->peak[c] = s->before[c][s->first];
}

/* Of every tuple it writes a word of, all words; unless they are claimed already, or as if none were. */
static void find_taken(const struct sched *s, uint32_t k, bool claimed_too, unsigned take[RDNA_CLASSES])
{
	uint32_t last = 0;
	memset(take, 0, RDNA_CLASSES * sizeof *take);
	for (uint32_t u = s->use_from[k + 1]; u-- > s->use_from[k] && s->use[u].written;) {
		uint32_t r = s->use[u].reg;
		if (r == last || (s->reg[r].claimed && !claimed_too))
			continue;
		last = r;
		take[s->reg[r].cls] += s->reg[r].named;
	}
}

/* How many words node k takes and gives back; with `keep` it does. */
static void use_registers(struct sched *s, uint32_t k, bool keep, unsigned take[RDNA_CLASSES], unsigned give[RDNA_CLASSES])
{
	const struct use *begin = s->use + s->use_from[k], *end = s->use + s->use_from[k + 1];
	find_taken(s, k, false, take);
	memset(give, 0, RDNA_CLASSES * sizeof *give);
	for (const struct use *u = begin; u < end; u++) {
		struct held *h = &s->reg[u->reg];
		h->claimed |= keep && u->written;
		if (--h->left == 0)
			give[h->cls] += h->named;
	}
	for (const struct use *u = begin; u < end && !keep; u++)
		s->reg[u->reg].left++;
}

static void place_registers(struct sched *s, uint32_t k)
{
	unsigned take[RDNA_CLASSES], give[RDNA_CLASSES];
	bool apart = rdna_lir_apart(&s->l->ins[s->first + k]);
	use_registers(s, k, true, take, give);
	for (unsigned c = 0; c < RDNA_CLASSES; c++) {
		unsigned most = s->held[c] + take[c] - (apart || give[c] > s->held[c] + take[c] ? 0 : give[c]);
		if (s->peak[c] < most)
			s->peak[c] = most;
		s->held[c] += take[c] - give[c];
	}
}

static unsigned spare(const struct sched *s, uint32_t k, unsigned c)
{
	return s->node[k].load ? reserve[c] + (s->held_back && c == RDNA_CLASS_VGPR ? LOADS_AGAIN : 0) : 0;
}

/* Most of the time there is room for all that it may take, and nothing needs to be counted. */
static bool fits(struct sched *s, uint32_t k)
{
	unsigned take[RDNA_CLASSES], give[RDNA_CLASSES];
	bool room = true;
	for (unsigned c = 0; c < RDNA_CLASSES; c++)
		room &= s->held[c] + s->node[k].most[c] + spare(s, k, c) <= s->budget[c];
	if (room)
		return true;
	find_taken(s, k, false, take);
	room = true;
	for (unsigned c = 0; c < RDNA_CLASSES; c++)
		room &= !take[c] || s->held[c] + take[c] + spare(s, k, c) <= s->budget[c];
	if (room)
		return true;
	use_registers(s, k, false, take, give);
	for (unsigned c = 0; c < RDNA_CLASSES; c++)
		if (take[c] > give[c] && s->held[c] + take[c] - give[c] + spare(s, k, c) > s->budget[c])
			return false;
	return true;
}

/* --- heaps: by height, highest first; or by the moment of readiness, earliest first; then in the order that came in */

static uint32_t by_height(const struct sched *s, uint32_t k) { return UINT32_MAX - s->node[k].height; }

static void heap_push(struct sched *s, struct heap *h, uint32_t rank, uint32_t k)
{
	uint64_t entry = (uint64_t)rank << 32 | k;
	if (h->n == h->capacity && !room(s, (void **)&h->at, &h->capacity, h->n + 1, sizeof *h->at))
		return;
	size_t at = h->n++;
	for (; at && entry < h->at[(at - 1) / 2]; at = (at - 1) / 2)
		h->at[at] = h->at[(at - 1) / 2];
	h->at[at] = entry;
}

static uint32_t first_of(const struct heap *h) { return (uint32_t)h->at[0]; }

static uint32_t heap_pop(struct heap *h)
{
	uint32_t top = first_of(h);
	uint64_t last = h->at[--h->n];
	size_t at = 0, child;
	while ((child = 2 * at + 1) < h->n) {
		child += child + 1 < h->n && h->at[child + 1] < h->at[child];
		if (last <= h->at[child])
			break;
		h->at[at] = h->at[child];
		at = child;
	}
	if (h->n)
		h->at[at] = last;
	return top;
}

/* What the heap holds may have been placed without it: that goes. */
static bool heap_clean(struct sched *s, struct heap *h)
{
	while (h->n && s->node[first_of(h)].done)
		heap_pop(h);
	return h->n;
}

/* --- choice */

/* The best of the heap that fits, among its first few; *refused: the very best does not. */
static uint32_t fitting(struct sched *s, struct heap *h, bool *refused)
{
	uint32_t looked[LOOKS], n = 0, found = NONE;
	if (heap_clean(s, h) && fits(s, first_of(h))) {
		*refused = false;
		return first_of(h);
	}
	while (n < LOOKS && found == NONE && heap_clean(s, h)) {
		looked[n] = heap_pop(h);
		if (fits(s, looked[n]))
			found = looked[n];
		n++;
	}
	*refused = n && found != looked[0];
	for (; n; n--)
		heap_push(s, h, by_height(s, looked[n - 1]), looked[n - 1]);
	return found;
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
	struct heap *h = s->others.n && (!s->loads.n || draw(s) & 1) ? &s->others : &s->loads;
	uint32_t k = h->n ? (uint32_t)h->at[draw(s) % h->n] : NONE;
	return k != NONE && !s->node[k].done && fits(s, k) ? k : NONE;
}

static uint32_t choose(struct sched *s)
{
	if (s->random)
		return any_at_all(s);
	bool full;
	uint32_t load = fitting(s, &s->loads, &s->held_back), other = fitting(s, &s->others, &full);
	if (load == NONE || other == NONE)
		return load == NONE ? other : load;
	uint32_t x = by_height(s, load), y = by_height(s, other);
	return x < y || (x == y && load < other) ? load : other;
}

static void release(struct sched *s, uint32_t k, uint32_t now)
{
	for (uint32_t e = s->node[k].edges; e != NONE; e = s->edge[e].next) {
		struct node *to = &s->node[s->edge[e].to];
		if (to->ready < now + s->edge[e].latency)
			to->ready = now + s->edge[e].latency;
		if (--to->preds == 0)
			heap_push(s, &s->waiting, to->ready, s->edge[e].to);
	}
}

/* Nothing ready fits: the first instruction that is left has nothing in front of it, and its own order was one that fitted. */
static bool list_schedule(struct sched *s)
{
	uint32_t now = 0, cursor = 0;
	s->loads.n = s->others.n = s->waiting.n = 0;
	s->held_back = false;
	begin_registers(s);
	for (uint32_t k = 0; k < s->n; k++) {
		struct node *p = &s->node[k];
		p->preds = p->all_preds;
		p->ready = 0;
		p->done = false;
		if (!p->preds)
			heap_push(s, &s->waiting, 0, k);
	}
	for (uint32_t placed = 0; placed < s->n && !s->failed;) {
		while (heap_clean(s, &s->waiting) && (s->random || s->node[first_of(&s->waiting)].ready <= now)) {
			uint32_t k = heap_pop(&s->waiting);
			heap_push(s, s->node[k].load ? &s->loads : &s->others, by_height(s, k), k);
		}
		if (!heap_clean(s, &s->loads) && !heap_clean(s, &s->others) && s->waiting.n) {
			now = s->node[first_of(&s->waiting)].ready;
			continue;
		}
		uint32_t k = choose(s);
		while (s->node[cursor].done)
			cursor++;
		k = k == NONE ? cursor : k;
		assert(!s->node[k].preds);
		now = now > s->node[k].ready ? now : s->node[k].ready;
		s->node[k].done = true;
		place_registers(s, k);
		s->order[placed++] = k;
		release(s, k, now++);
		while (cursor + 1 < s->n && s->node[cursor].done)
			cursor++;
	}
	return !s->failed;
}

/* --- one run */

static void apply(struct sched *s)
{
	if (!room(s, (void **)&s->copy, &s->copy_capacity, s->n, sizeof *s->copy))
		return;
	memcpy(s->copy, s->l->ins + s->first, s->n * sizeof *s->copy);
	for (uint32_t k = 0; k < s->n; k++)
		s->l->ins[s->first + k] = s->copy[s->order[k]];
}

/* By how many registers the order just made exceeds what is allowed, the worse of the classes. */
static unsigned excess(const struct sched *s, const unsigned allowed[RDNA_CLASSES])
{
	unsigned most = 0;
	for (unsigned c = 0; c < RDNA_CLASSES; c++)
		if (s->peak[c] > allowed[c] && s->peak[c] - allowed[c] > most)
			most = s->peak[c] - allowed[c];
	return most;
}

/* What the order that came in needs, or the budget where that is more. */
static void find_allowed(struct sched *s, const unsigned budget[RDNA_CLASSES], unsigned allowed[RDNA_CLASSES])
{
	begin_registers(s);
	for (uint32_t k = 0; k < s->n; k++)
		place_registers(s, k);
	for (unsigned c = 0; c < RDNA_CLASSES; c++)
		allowed[c] = s->peak[c] > budget[c] ? s->peak[c] : budget[c];
}

static void schedule_run(struct sched *s)
{
	unsigned allowed[RDNA_CLASSES], budget[RDNA_CLASSES], over;
	bool known = false;
	if (!room(s, (void **)&s->node, &s->node_capacity, s->n, sizeof *s->node) || !room(s, (void **)&s->order, &s->order_capacity, s->n, sizeof *s->order)
	    || !find_accesses(s) || !depend(s))
		return;
	for (uint32_t k = 0; k < s->n; k++)
		find_taken(s, k, true, s->node[k].most);
	memcpy(budget, s->budget, sizeof budget);
	for (unsigned attempt = 0; attempt < ATTEMPTS && list_schedule(s); attempt++) {
		over = excess(s, known ? allowed : budget);
		if (over && !known) {
			unsigned peak[RDNA_CLASSES];
			memcpy(peak, s->peak, sizeof peak);
			find_allowed(s, budget, allowed);
			memcpy(s->peak, peak, sizeof peak);
			known = true;
			over = excess(s, allowed);
		}
		if (!over) {
			apply(s);
			break;
		}
		for (unsigned c = 0; c < RDNA_CLASSES; c++)
			s->budget[c] = s->budget[c] > 2 * over ? s->budget[c] - 2 * over : 0;
	}
	memcpy(s->budget, budget, sizeof budget);
}

/* --- the pass */

static bool find_pressure(struct sched *s)
{
	struct rdna_lir *l = s->l;
	const struct rdna_live *v = &s->live;
	for (unsigned c = 0; c < RDNA_CLASSES; c++)
		if (!(s->before[c] = calloc(l->n_ins + 2, sizeof *s->before[c])))
			return false;
	for (uint32_t r = 1; r < l->n_regs; r++) {
		uint32_t end = 0;
		for (uint32_t word = v->first_word[r]; word < v->first_word[r + 1]; word++) {
			if (v->end[word] == RDNA_LIVE_NEVER)
				continue;
			s->reg[r].named++;
			end = end < v->end[word] ? v->end[word] : end;
		}
		s->reg[r].cls = l->reg[r].cls;
		if (!s->reg[r].named)
			continue;
		s->before[l->reg[r].cls][v->start[r] + 1] += s->reg[r].named;
		s->before[l->reg[r].cls][end + 1] -= s->reg[r].named;
	}
	for (unsigned c = 0; c < RDNA_CLASSES; c++)
		for (size_t k = 1; k < l->n_ins + 2; k++)
			s->before[c][k] += s->before[c][k - 1];
	return true;
}

static void find_scc(struct sched *s)
{
	bool wanted = false;
	for (size_t k = s->l->n_ins; k-- > 0;) {
		const struct rdna_lir_ins *i = &s->l->ins[k];
		unsigned facts = rdna_lir_facts(i->op);
		s->scc_after[k] = wanted;
		wanted = wanted && !(facts & RDNA_WRITES_SCC);
		wanted |= !!(facts & RDNA_READS_SCC);
		for (unsigned j = 0; j < 4; j++)
			wanted |= i->s[j].kind == RDNA_LIR_FIXED && i->s[j].reg == RDNA_SCC;
	}
}

static bool prepare(struct sched *s)
{
	size_t n_regs = s->l->n_regs;
	if (s->l->failed || !rdna_live_find(&s->live, s->l))
		return false;
	size_t words = s->live.n_words + SPECIALS;
	s->scc_after = calloc(s->l->n_ins + 1, sizeof *s->scc_after);
	s->writer = malloc(words * sizeof *s->writer);
	s->readers = malloc(words * sizeof *s->readers);
	s->reg = calloc(n_regs, sizeof *s->reg);
	if (!s->scc_after || !s->writer || !s->readers || !s->reg || !find_pressure(s))
		return false;
	find_scc(s);
	return true;
}

static void clean(struct sched *s)
{
	void *const all[] = {
		s->before[0], s->before[1], s->scc_after, s->node, s->edge, s->cell, s->access_from, s->access, s->writer, s->readers,
		s->loads.at, s->others.at, s->waiting.at, s->order, s->copy, s->use_from, s->use, s->reg,
	};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		free(all[k]);
	rdna_live_free(&s->live);
}

static void schedule_all(struct sched *s)
{
	const struct rdna_lir *l = s->l;
	for (size_t k = 0; k < l->n_ins && !s->failed; k++) {
		if (rdna_lir_facts(l->ins[k].op) & RDNA_IS_FIXED)
			continue;
		s->first = (uint32_t)k;
		while (k < l->n_ins && !(rdna_lir_facts(l->ins[k].op) & RDNA_IS_FIXED))
			k++;
		s->n = (uint32_t)k - s->first;
		if (s->n >= SHORTEST)
			schedule_run(s);
	}
}

/* What the allocator makes of it; the kernel stays as it is. False: it does not fit at all. */
static bool try_allocation(struct rdna_lir *l, struct rdna_regs *used)
{
	bool ok = rdna_regalloc(l, 0, 0, 0, used, NULL);
	l->allocated = false;
	return ok;
}

static bool allocate_old(struct rdna_lir *l, struct rdna_lir_ins *old, struct rdna_regs *used)
{
	struct rdna_lir_ins *new = l->ins;
	l->ins = old;
	bool ok = try_allocation(l, used);
	l->ins = new;
	return ok;
}

/* Counting words does not see how tuples break up the file, so the allocator is asked: where the new order needs more registers than it may (or more than the
 * old one, if that is more), the budget is lowered, and in the end the old order stays. */
static bool schedule(struct sched *s, unsigned vgprs)
{
	enum { SGPRS = 86, MOST_SGPRS = RDNA_ABI_SGPRS - 6 };    /* some are left to tuples' alignment and to loops' counters */
	struct rdna_lir *l = s->l;
	struct rdna_regs before, after = {0};
	struct rdna_lir_ins *old = malloc((l->n_ins + 1) * sizeof *old);
	if (!old)
		return false;
	memcpy(old, l->ins, l->n_ins * sizeof *old);
	s->budget[RDNA_CLASS_SGPR] = SGPRS;
	s->budget[RDNA_CLASS_VGPR] = vgprs = !vgprs || vgprs > RDNA_ABI_VGPRS ? RDNA_ABI_VGPRS : vgprs;
	unsigned allowed = vgprs, scalar = MOST_SGPRS;
	bool fits = false, latest = true;                       /* the latest trial was of the new order */
	for (unsigned attempt = 0; !fits && !s->failed && attempt < ATTEMPTS; attempt++) {
		if (attempt)
			memcpy(l->ins, old, l->n_ins * sizeof *old);
		schedule_all(s);
		bool fitted = latest = try_allocation(l, &after);
		if (!attempt && !(fitted && after.vgprs <= allowed && after.sgprs <= scalar) && allocate_old(l, old, &before)) {
			latest = false;
			allowed = before.vgprs > allowed ? before.vgprs : allowed;
			scalar = before.sgprs > scalar ? before.sgprs : scalar;
		}
		fits = fitted && after.vgprs <= allowed && after.sgprs <= scalar;
		unsigned less = after.vgprs > allowed ? after.vgprs - allowed + 4 : 8;
		for (unsigned c = 0; c < RDNA_CLASSES; c++)
			s->budget[c] = s->budget[c] > less ? s->budget[c] - less : 0;
	}
	if (!fits)
		memcpy(l->ins, old, l->n_ins * sizeof *old);
	l->tried = fits && latest;
	l->used = after;
	free(old);
	return !s->failed;
}

bool rdna_sched(struct rdna_lir *l, unsigned vgprs, uint32_t seed, struct error *err)
{
	struct sched s = { .l = l, .random = seed };
	bool ok = prepare(&s) && schedule(&s, vgprs);
	clean(&s);
	return ok || error_set(err, ERROR_MEMORY, "no memory to order the instructions of a kernel");
}

/* jit/rdna/sched_graph.c - what must stay in front of what in a run, and how urgent each instruction is.
 *
 * An edge leads from an instruction to one that must follow it, with the latency between the two. Heights are the
 * lengths of the critical paths to the end of the run, ranks the order by height.
 */
#include "base/array.h"
#include "jit/rdna/sched.h"

bool rsched_room(struct sched *s, void **array, size_t *capacity, size_t n, size_t size)
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
	    !rsched_room(s, (void **)&s->edge, &s->edge_capacity, s->n_edges + 1, sizeof *s->edge))
		return;
	s->edge[s->n_edges] = (struct edge){ from->at - (uint32_t)s->first, number, from->edges, latency };
	from->edges = (uint32_t)s->n_edges++;
	to->preds++;
}

static inline void push_cell(struct sched *s, uint32_t *list, struct node *node)
{
	if (s->n_cells >= s->cell_capacity &&
	    !rsched_room(s, (void **)&s->cell, &s->cell_capacity, s->n_cells + 1, sizeof *s->cell))
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
		n->max += u->takes ? s->reg[u->reg].named : 0;
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

/* Most scalar instructions leave something in scc that nobody reads. Those may change their order, but none
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

bool rsched_depend(struct sched *s)
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
	uint32_t max = 0;
	for (const struct edge *e = s->edge + s->n_edges; --e > s->edge;) {
		uint32_t height = node[e->to].height + e->latency, *from = &node[e->from].height;
		*from = *from < height ? height : *from;
		max = max < height ? height : max;
	}
	return max;
}

/* Sorts nodes by a byte of their heights, which has so many values, the highest first, keeping their order
 * otherwise. */
static void sort_by_byte(size_t n, struct node *const *from, struct node **to, unsigned shift, unsigned values)
{
	uint32_t bucket[256], sum = 0;
	memset(bucket, 0, values * sizeof *bucket);
	for (size_t k = 0; k < n; k++)
		bucket[from[k]->height >> shift & 255]++;
	for (unsigned b = values; b-- > 0;) {
		uint32_t count = bucket[b];
		bucket[b] = sum;
		sum += count;
	}
	for (size_t k = 0; k < n; k++)
		to[bucket[from[k]->height >> shift & 255]++] = from[k];
}

void rsched_find_ranks(struct sched *s)
{
	uint32_t max = find_heights(s);
	for (size_t k = 0; k < s->n; k++)
		s->by_rank[k] = &s->node[k];
	for (unsigned shift = 0; shift < 32 && max >> shift; shift += 8) {
		struct node **sorted = s->by_height;
		sort_by_byte(s->n, s->by_rank, sorted, shift, max >> shift > 255 ? 256 : (max >> shift) + 1);
		s->by_height = s->by_rank;
		s->by_rank = sorted;
	}
	for (size_t k = 0; k < s->n; k++)
		s->by_rank[k]->rank = (uint32_t)k;
}

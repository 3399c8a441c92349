/* jit/rdna/sched.h - what the files of RDNA scheduling share: the state of the pass. */
#ifndef JIT_RDNA_SCHED_H
#define JIT_RDNA_SCHED_H

#include <string.h>

#include "jit/rdna/live.h"

#define NONE UINT32_MAX

/* Latencies until a result may be used, in instructions of this wave, while other waves issue between. None
 * exceeds SLOTS. */
enum {
	AFTER_VALU = 2,
	AFTER_TRANS = 4, /* transcendental functions */
	AFTER_SALU = 2,
	AFTER_MATRIX = 8, /* WMMA */
	AFTER_LDS = 16,
	AFTER_SMEM = 40, /* scalar loads */
	AFTER_VMEM = 60, /* vector loads of global memory */
	SLOTS = 64       /* moments ahead for which waiting instructions are kept, a slot each */
};

enum {
	LOOKS = 8,        /* candidates that are looked at, by height, for one that fits the budget */
	LOADS_AGAIN = 16, /* vector registers that must be free before loads that were held back begin again */
	ATTEMPTS = 4,     /* orders that are tried, with ever smaller budgets, before the old order is kept */
	SPECIALS = 3,     /* machine registers that stand behind all words: both halves of vcc, m0 */
	SHORTEST = 3      /* instructions of a run that is worth scheduling */
};

/* Numbers of registers of both classes: scalar ones in the low half, vector ones in the high one. Sums and differences
 * are made of both at once; none is negative, and none comes near the halves' top bits, which are left to
 * comparisons. */
typedef uint64_t counts;
#define COUNTS(sgprs, vgprs) ((counts)(sgprs) | (counts)(vgprs) << 32)
static const counts top_bits = COUNTS(1u << 31, 1u << 31);
/* What loads leave free for the results of arithmetic. */
static const counts reserve = COUNTS(6, 12);

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

/* A register while orders are walked, from the first run to the last. */
struct held {
	counts named;  /* words that something names */
	uint32_t left; /* uses to come; one more where its live range goes on to a loop's end, or to what is no run's */
	bool claimed;  /* it has been written */
	bool tuple;
};
struct node {
	counts max; /* words it may take */
	const struct rdna_use *uses, *uses_end;
	struct node *next; /* of those that wait for the same moment */
	uint32_t at;       /* the instruction */
	uint32_t edges, preds, height, ready, rank;
	uint8_t latency;
	bool load, early_clobber, done;
};
/* Nodes by their numbers. Edge number 0 is none, and leads nowhere. */
struct edge {
	uint32_t from, to, next, latency;
};
/* An element of a list of nodes. */
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
	/* Nodes that may be placed from a moment on, by that moment: `arrived` + 1 ... + SLOTS. */
	struct node *slot[SLOTS];
	uint64_t slots; /* a bit for each that is not empty */
	uint32_t arrived;

	/* Registers while an order is gone through. */
	counts held, peak;
	bool held_back; /* loads wait for room */
	bool failed;
};

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

static inline void set_clear(struct set *t, size_t n)
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

/* --- sched_graph.c */

bool rsched_room(struct sched *s, void **array, size_t *capacity, size_t n, size_t size);
/* The nodes and edges of the run at hand. False: no memory. */
bool rsched_depend(struct sched *s);
/* Heights, and ranks by them. */
void rsched_find_ranks(struct sched *s);

/* --- sched_run.c */

/* To be called before the first run. A live range that goes on to an instruction outside of runs ends in none: the end
 * of a loop comes behind every live range that crosses its back edge. */
void rsched_begin_registers(struct sched *s);
/* An instruction that stays where it is, in no run. */
void rsched_pass_over(struct sched *s, uint32_t at);
/* Schedules the run at hand. The new order may need as many registers as the old one where that is more than the
 * budget; the old one's number is only computed when the first new order exceeds the budget. */
void rsched_schedule_run(struct sched *s);

#endif

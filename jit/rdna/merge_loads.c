/* jit/rdna/merge_loads.c - which loads of a kernel one instruction does: neighbouring words behind one address, inside
 * a straight run.
 *
 * Owns the choice alone; select_memory.c does the loads, at the first member of a group. Scalar loads may be moved
 * before any store, because a kernel does not read back by them what it stores; vector and LDS loads stay between the
 * same stores. A load reads no word outside its first and last member. Rule for editors: a group's base must be the
 * same at all its members.
 */
#include "jit/rdna/select.h"

#include <stdlib.h>
#include <string.h>

/* Scalar registers that loads of one straight run may fill at a time. The rest of the file holds addresses, constants
 * and masks. */
enum { RGROUP_SCALARS = 48 };

struct rgroup_load {
	uint64_t base;   /* the family; whether it is LDS; the address's root, 0: the arguments', and its version */
	uint64_t moment; /* how many stores it is behind; the stride */
	int64_t disp;
	uint32_t at, last;
	uint8_t family, words; /* words of one member: 1 or 2 */
};

struct rgroup {
	struct rscan *s;
	const struct ir *ir;
	enum rdna_gen gen;
	unsigned scalar_words; /* the most that one scalar load can load */
	uint32_t *version; /* by register: of variables how often they were written, of other addresses the same at all
	                      their uses */
	uint32_t stores, lds_stores;
	struct rgroup_load *load, *sorted;
	size_t n;
	int32_t *pressure; /* by instruction of the run */
};

static inline bool same_base(const struct rgroup_load *a, const struct rgroup_load *b)
{
	return a->base == b->base && a->moment == b->moment;
}

/* By base, moment and displacement. */
static inline bool comes_before(const struct rgroup_load *a, const struct rgroup_load *b)
{
	return a->base != b->base       ? a->base < b->base
	       : a->moment != b->moment ? a->moment < b->moment
	                                : a->disp < b->disp;
}

/* Merges parts of 1, 2, 4 ... loads; equal ones stay in the order of their instructions. */
static void rgroup_sort(struct rgroup *g)
{
	for (size_t part = 1; part < g->n; part *= 2) {
		struct rgroup_load *from = g->load, *to = g->sorted;
		for (size_t begin = 0; begin < g->n; begin += 2 * part) {
			size_t x = begin, middle = begin + part < g->n ? begin + part : g->n, y = middle,
			       end = middle + part < g->n ? middle + part : g->n;
			while (x < middle || y < end)
				*to++ = x == middle || (y < end && comes_before(&from[y], &from[x]))
				                ? from[y++]
				                : from[x++];
		}
		g->load = g->sorted;
		g->sorted = from;
	}
}

/* Notes instruction k if it is a load that may join others. */
static void rgroup_note(struct rgroup *g, uint32_t k)
{
	const struct ir_ins *i = &g->ir->ins[k];
	bool lds = g->s->reg[i->a].lds;
	uint8_t family = lds ? RSCAN_ALONE : RSCAN_SCALAR, words = 1;
	uint32_t stride = 0;
	int64_t disp = i->imm;

	switch (ir_row(i)) {
	case IR_fbcast:
	case IR_ibcast: family = lds ? RSCAN_LDS : RSCAN_SCALAR; break;
	case IR_sload32: break;
	case IR_sload64:
	case IR_aload: words = 2; break;
	case IR_iload_s:
		family = RSCAN_STRIDED;
		disp = ir_x_disp(i->imm);
		stride = ir_x_stride(i->imm);
		break;
	default: return;
	}
	if (family == RSCAN_ALONE || i->mask || (g->ir->is_var[i->dst] && family != RSCAN_SCALAR))
		return;
	uint16_t root = rscan_root(g->s, g->ir, i->a, &disp);
	uint32_t version = g->version[root], epoch = family == RSCAN_SCALAR ? 0 : lds ? g->lds_stores : g->stores;
	if (g->ir->ins[g->s->reg[root].def].op == IR_arg && !g->ir->is_var[root])
		root = 0;
	g->load[g->n++] = (struct rgroup_load){
		.base = (uint64_t)family << 49 | (uint64_t)lds << 48 | (uint64_t)root << 32 | version,
		.moment = (uint64_t)epoch << 32 | stride,
		.disp = disp,
		.at = k,
		.last = g->ir->is_var[i->dst] ? k : g->s->reg[i->dst].last,
		.family = family,
		.words = words,
	};
}

/* How many of the loads from number `from` on lie in `words` words from its own on, the last of them at the end of
 * these; 0: they do not fit. */
static size_t rgroup_fit(const struct rgroup *g, size_t from, unsigned words)
{
	const struct rgroup_load *first = &g->load[from];
	unsigned covered = 0;
	size_t n = 0, used = 0;
	int64_t reached = 0;

	for (size_t k = from; k < g->n && same_base(first, &g->load[k]); k++) {
		int64_t at = g->load[k].disp - first->disp, end = at + 4 * (int64_t)g->load[k].words;
		if (end > 4 * (int64_t)words)
			break;
		if (at % 4 || (g->load[k].words == 2 && at % 8))
			return 0;
		covered += end > reached ? (unsigned)(end - (at > reached ? at : reached)) / 4 : 0;
		reached = end > reached ? end : reached;
		n = k - from + 1;
		used = reached == 4 * (int64_t)words ? n : used;
	}
	/* words between members are loaded for nothing: fewer than half */
	return used == n && 2 * covered > words ? n : 0;
}

/* The sizes that loads of a family have, largest first. */
static unsigned rgroup_size(const struct rgroup *g, const struct rgroup_load *l, unsigned limit, unsigned n)
{
	static const uint8_t scalar[] = { 16, 8, 4, 3, 2, 1 }, vector[] = { 4, 3, 2, 1 };

	if (l->family != RSCAN_SCALAR)
		return n < sizeof vector ? vector[n] : 0;
	while (n < sizeof scalar && (scalar[n] > limit || (scalar[n] == 3 && g->gen != RDNA_GFX12)))
		n++;
	return n < sizeof scalar ? scalar[n] : 0;
}

/* The group that begins with load `from`: how many loads, of how many words. */
static size_t rgroup_take(const struct rgroup *g, size_t from, unsigned limit, unsigned *words)
{
	unsigned before = 0;

	for (unsigned n = 0; (*words = rgroup_size(g, &g->load[from], limit, n)) != 0; n++) {
		size_t taken = *words != before ? rgroup_fit(g, from, *words) : 0;
		if (taken)
			return taken;
		before = *words;
	}
	*words = g->load[from].words;
	return 1;
}

/* Most scalar registers filled at a time by the scalar loads of the run begin..end-1, in tuples of at most `limit`. */
static int32_t rgroup_peak(struct rgroup *g, unsigned limit, uint32_t begin, uint32_t end)
{
	int32_t now = 0, max = 0;

	if (!g->n || g->load[0].family != RSCAN_SCALAR) /* they come first */
		return 0;
	memset(g->pressure, 0, (end - begin + 2) * sizeof *g->pressure);
	for (size_t k = 0; k < g->n && g->load[k].family == RSCAN_SCALAR;) {
		unsigned words;
		size_t taken = rgroup_take(g, k, limit, &words);
		uint32_t first = UINT32_MAX, last = 0;
		for (size_t m = k; m < k + taken; m++) {
			first = g->load[m].at < first ? g->load[m].at : first;
			last = g->load[m].last > last ? g->load[m].last : last;
		}
		g->pressure[first - begin] += (int32_t)words;
		g->pressure[(last < end ? last : end) - begin + 1] -= (int32_t)words;
		k += taken;
	}
	for (uint32_t k = 0; k <= end - begin; k++) {
		now += g->pressure[k];
		max = now > max ? now : max;
	}
	return max;
}

static bool rgroup_record(struct rgroup *g, size_t from, size_t n, unsigned words)
{
	struct rscan *s = g->s;
	struct rscan_group group = {
		.family = g->load[from].family, .words = (uint8_t)words, .first = UINT32_MAX, .disp = g->load[from].disp
	};

	if (s->n_groups + 2 > s->groups_capacity) {
		size_t capacity = 2 * s->groups_capacity + 32;
		struct rscan_group *grown = realloc(s->groups, capacity * sizeof *grown);
		if (!grown)
			return false;
		s->groups = grown;
		s->groups_capacity = capacity;
	}
	s->n_groups += s->n_groups == 0; /* number 0 is none */
	for (size_t k = from; k < from + n; k++) {
		group.first = g->load[k].at < group.first ? g->load[k].at : group.first;
		s->group[g->load[k].at] = (uint32_t)s->n_groups;
		s->word[g->load[k].at] = (uint32_t)(g->load[k].disp - group.disp) / 4;
	}
	s->groups[s->n_groups++] = group;
	return true;
}

/* Ends the straight run begin..end-1. */
static bool rgroup_run(struct rgroup *g, uint32_t begin, uint32_t end)
{
	unsigned limit = g->scalar_words;

	if (!g->n)
		return true;
	rgroup_sort(g);
	while (limit > 1 && rgroup_peak(g, limit, begin, end) > RGROUP_SCALARS)
		limit /= 2;
	for (size_t k = 0; k < g->n;) {
		unsigned words;
		size_t taken = rgroup_take(g, k, limit, &words);
		if (!rgroup_record(g, k, taken, words))
			return false;
		k += taken;
	}
	g->n = 0;
	return true;
}

bool rscan_group_loads(struct rscan *s, const struct ir *ir, enum rdna_gen gen, unsigned scalar_words)
{
	struct rgroup g = { .s = s, .ir = ir, .gen = gen, .scalar_words = scalar_words };
	uint32_t begin = 0;

	g.version = calloc(ir->n_regs + 1, sizeof *g.version);
	g.load = malloc((s->n_moments + 1) * sizeof *g.load);
	g.sorted = malloc((s->n_moments + 1) * sizeof *g.sorted);
	g.pressure = malloc((ir->n_ins + 3) * sizeof *g.pressure);
	bool ok = g.version && g.load && g.sorted && g.pressure;
	for (size_t n = 0; ok && n < s->n_moments; n++) {
		uint32_t k = s->moment[n];
		const struct ir_ins *i = &ir->ins[k];
		unsigned row = rscan_row(i);
		s->group[k] = 0;
		if (row & RSCAN_LOADS_WORDS && !s->skip[k])
			rgroup_note(&g, k);
		if (row & RSCAN_STORES)
			*(s->reg[i->a].lds ? &g.lds_stores : &g.stores) += 1;
		if (row & RSCAN_WAITS)
			g.lds_stores++;
		if (i->op == IR_barrier_all)
			g.stores++;
		g.version[i->dst]++;
		if (row & RSCAN_ENDS_RUN) {
			ok = rgroup_run(&g, begin, k);
			begin = k + 1;
		}
	}
	ok = ok && rgroup_run(&g, begin, (uint32_t)ir->n_ins);
	free(g.version);
	free(g.load);
	free(g.sorted);
	free(g.pressure);
	return ok;
}

/* jit/ptx/scan.c - one look at the IR before PTX is written: what is dead, which addresses are of shared memory, of
 * what power of two an address is surely a multiple, which loads of neighbouring words one instruction does.
 *
 * Never changes the IR. A load of 8 or 16 bytes must be aligned to that, which the IR does not promise. It is known
 * from how an address is computed, of pointers in the arguments (PTX_ARG_ALIGN: plans give no others), and of strided
 * loads whose stride is a multiple of 16: there the template means vectors of 16 bytes (target->lane_bytes), which lie
 * at multiples of 16. Users' kernels (ir->beside) mean nothing by it, and see when they begin where their
 * arrays lie. The simulator traps on an address that is not.
 */
#include "jit/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN_MAX = 6, LOOK_AHEAD = 96, LOOK_AHEAD_OF_USERS = 2048 };

/* Users' kernels are longer, where units stand side by side. */
static size_t look_ahead(const struct ir *ir) { return ir->beside ? LOOK_AHEAD_OF_USERS : LOOK_AHEAD; }

/* Backward: what has no effect, writes no variable and has no live use. */
static void find_dead(struct ptx_scan *s, const struct ir *ir)
{
	for (size_t k = ir->n_ins; k-- > 0;) {
		const struct ir_ins *i = &ir->ins[k];
		s->dead[k] =
			ir_does(i->op, IR_HINTS) || (!ir_stays(i->op) && !ir->is_var[i->dst] && !s->reg[i->dst].uses);
		if (s->dead[k])
			continue;
		s->reg[i->a].uses++;
		s->reg[i->b].uses++;
		s->reg[i->c].uses++;
		s->reg[i->mask].uses++;
	}
}

static unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }

static unsigned align_of(int64_t value)
{
	return value ? min((unsigned)__builtin_ctzll((uint64_t)value), ALIGN_MAX) : ALIGN_MAX;
}

/* Of a pointer that is loaded. */
static unsigned loaded_align(const struct ir *ir, const struct ptx_scan *s, const struct ir_ins *i)
{
	return !ir->is_var[i->a] && ir->ins[s->reg[i->a].def].op == IR_arg ? PTX_ARG_ALIGN : 0;
}

/* The exponent of the power of two that i's result is a multiple of, of scalars and addresses. */
static unsigned result_align(const struct ir *ir, const struct ptx_scan *s, const struct ir_ins *i)
{
	unsigned a = s->reg[i->a].align, b = s->reg[i->b].align;

	switch (i->op) {
	case IR_const: return align_of(i->imm);
	case IR_add:
	case IR_sub:
	case IR_min:
	case IR_max: return min(a, b);
	case IR_addi: return min(a, align_of(i->imm));
	case IR_mul: return min(a + b, ALIGN_MAX);
	case IR_muli: return min(a + align_of(i->imm), ALIGN_MAX);
	case IR_shl: return min(a + (unsigned)i->imm, ALIGN_MAX);
	case IR_andi: return a > align_of(i->imm) ? a : align_of(i->imm);
	case IR_sar: return a > i->imm && a < ALIGN_MAX ? a - (unsigned)i->imm : 0;
	case IR_mov: return a;
	case IR_local:
	case IR_shared: return ALIGN_MAX;
	case IR_arg: return s->shared_arg ? ALIGN_MAX : 3;
	case IR_uload: return i->type == IR_TYPE_a ? loaded_align(ir, s, i) : 0;
	default: return 0;
	}
}

static bool moves_address(const struct ir_ins *i)
{
	return ir_facts_of(i)->dst == IR_TYPE_a && ir_facts_of(i)->a == IR_TYPE_a && ir_does(i->op, IR_PURE);
}

/* Variables may get theirs from variables that are written later, so until nothing changes. */
static bool find_addresses(struct ptx_scan *s, const struct ir *ir, struct error *err)
{
	for (size_t r = 0; r < ir->n_regs; r++)
		s->reg[r].align = ALIGN_MAX;
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t k = 0; k < ir->n_ins; k++) {
			const struct ir_ins *i = &ir->ins[k];
			if (!i->dst || (ir->type[i->dst] != IR_TYPE_s && ir->type[i->dst] != IR_TYPE_a))
				continue;
			struct ptx_register *d = &s->reg[i->dst];
			unsigned align = min(d->align, result_align(ir, s, i));
			bool shared = d->shared || ir_does(i->op, IR_FRAMES) || (i->op == IR_arg && s->shared_arg) ||
			              (moves_address(i) && s->reg[i->a].shared);
			changed |= align != d->align || shared != d->shared;
			d->align = (uint8_t)align;
			d->shared = shared;
		}
	}
	for (size_t k = 0; k < ir->n_ins; k++) {
		const struct ir_ins *i = &ir->ins[k];
		bool shared = ir_does(i->op, IR_FRAMES) || (i->op == IR_arg && s->shared_arg) ||
		              (moves_address(i) && s->reg[i->a].shared);
		if (ir_facts_of(i)->dst == IR_TYPE_a && !shared && s->reg[i->dst].shared)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "the address %%%u is of global memory and of shared memory at different times",
			                 i->dst);
	}
	return true;
}

/* Definitions, numbers of registers, and displacements that need no instruction of their own. */
static void find_roots(struct ptx_scan *s, const struct ir *ir, uint32_t numbers[PTX_CLASSES])
{
	static const uint8_t class[] = {
		[IR_TYPE_f32] = PTX_B32, [IR_TYPE_i32] = PTX_B32, [IR_TYPE_m] = PTX_PRED,  [IR_TYPE_s] = PTX_B64,
		[IR_TYPE_c] = PTX_PRED,  [IR_TYPE_a] = PTX_B64,   [IR_TYPE_f64] = PTX_B64, [IR_TYPE_i64] = PTX_B64
	};

	for (size_t r = 1; r < ir->n_regs; r++) {
		s->reg[r].root = (uint16_t)r;
		if (ir->type[r] && ir->type[r] != IR_TYPE_t && ir->type[r] != IR_TYPE_o)
			s->reg[r].number = numbers[class[ir->type[r]]]++;
	}
	for (size_t k = ir->n_ins; k-- > 0;)
		s->reg[ir->ins[k].dst].def = (uint32_t)k;
	for (size_t k = 0; k < ir->n_ins; k++) {
		const struct ir_ins *i = &ir->ins[k];
		if (ir_row(i) != IR_aaddi || ir->is_var[i->dst] || ir->is_var[i->a])
			continue;
		int64_t disp = s->reg[i->a].disp + i->imm;
		if (disp < -(1 << 30) || disp >= 1 << 30)
			continue;
		s->reg[i->dst].root = s->reg[i->a].root;
		s->reg[i->dst].disp = disp;
	}
	/* Backward: what is computed from another one makes that one needed, too. */
	for (size_t k = ir->n_ins; k-- > 0;) {
		const struct ir_ins *i = &ir->ins[k];
		bool value = ir_row(i) == IR_aadd || ir_row(i) == IR_amov ||
		             (ir_row(i) == IR_aaddi && (s->reg[i->dst].root == i->dst || s->reg[i->dst].whole));
		s->reg[i->a].whole |= value;
	}
}

uint16_t ptx_root(const struct ptx_scan *s, uint16_t address, int64_t *disp)
{
	*disp += s->reg[address].disp;
	return s->reg[address].root;
}

/* Sums of bytes' products that begin at 0 and are read once, to be made floats: they stay below 2^22, so that a sum
 * that began at PTX_BIAS is a float with the sum in its fraction. */
static void find_biased(struct ptx_scan *s, const struct ir *ir)
{
	for (size_t k = 0; k < ir->n_ins; k++) {
		const struct ir_ins *i = &ir->ins[k];
		if (ir_row(i) != IR_ti2f || ir->is_var[i->a] || s->reg[i->a].uses != 1)
			continue;
		const struct ir_ins *dot = &ir->ins[s->reg[i->a].def];
		if (ir_row(dot) != IR_tdot_i8 || ir->is_var[dot->c])
			continue;
		const struct ir_ins *from = &ir->ins[s->reg[dot->c].def];
		s->reg[i->a].biased = ir_row(from) == IR_tconst && from->imm == 0;
	}
}

static bool from_shared(const struct ptx_scan *s, const struct ir *ir, uint16_t operand)
{
	return s->reg[ir->ins[s->reg[operand].def].a].shared;
}

static void find_factors(struct ptx_scan *s, const struct ir *ir)
{
	s->matrices = true;
	for (size_t k = 0; k < ir->n_ins; k++) {
		const struct ir_ins *i = &ir->ins[k];
		if (i->op == IR_ostore) {
			s->matrices &= !from_shared(s, ir, i->b);
		} else if (ptx_multiplies(i)) {
			s->matrices &= from_shared(s, ir, i->a) && from_shared(s, ir, i->b);
			s->reg[i->a].first = true;
		}
	}
}

/* --- loads that one instruction does */

struct word {
	uint16_t root;
	uint32_t stride; /* 0: the same for all lanes */
	uint16_t mask;
	int64_t disp;
	unsigned align; /* of the root, or what it counts as */
};

/* Loads and stores that one instruction does have the same mask. */
static bool keeps_mask(const struct ir *ir, const struct ir_ins *i)
{
	return !i->mask || (ir->beside && !ir->is_var[i->mask]);
}

static bool is_word(const struct ir *ir, const struct ptx_scan *s, size_t k, struct word *w)
{
	const struct ir_ins *i = &ir->ins[k];
	bool strided = i->op == IR_load_strided;

	if (s->dead[k] || !keeps_mask(ir, i) || (!strided && (i->op != IR_bcast || ir_types[i->type].bytes != 4)) ||
	    ir->is_var[i->dst])
		return false;
	*w = (struct word){ .stride = strided ? ir_x_stride(i->imm) : 0, .mask = i->mask, .disp = ir_disp(i) };
	w->root = ptx_root(s, i->a, &w->disp);
	unsigned by_stride = align_of(w->stride);
	w->align = min(s->reg[w->root].align, by_stride);
	if (strided && by_stride >= 4 && !ir->beside)
		w->align = 4;
	return true;
}

static bool is_stored_word(const struct ir *ir, const struct ptx_scan *s, size_t k, struct word *w)
{
	const struct ir_ins *i = &ir->ins[k];

	if (i->op != IR_store_strided || !keeps_mask(ir, i) || ir_types[i->type].bytes != 4 || ir->is_var[i->b] ||
	    s->reg[i->a].shared)
		return false;
	*w = (struct word){ .stride = ir_x_stride(i->imm), .mask = i->mask, .disp = ir_disp(i) };
	w->root = ptx_root(s, i->a, &w->disp);
	w->align = min(s->reg[w->root].align, align_of(w->stride));
	return true;
}

/* Whether loads may not be moved from behind instruction k to before it. */
static bool stops(const struct ir *ir, size_t k, uint16_t root)
{
	const struct ir_ins *i = &ir->ins[k];

	return ir_does(i->op, IR_BRANCHES | IR_MEETS | IR_WRITES) || i->dst == root;
}

/* The load at k, and the others that lie in the same `words` words; at[]: where each is, SIZE_MAX: none. */
static bool find_members(const struct ir *ir, const struct ptx_scan *s, size_t k, unsigned words, size_t at[4])
{
	struct word first, other;
	unsigned n = 0;

	is_word(ir, s, k, &first);
	int64_t bytes = 4 * (int64_t)words, from = first.disp - ((first.disp % bytes) + bytes) % bytes;
	for (unsigned j = 0; j < 4; j++)
		at[j] = SIZE_MAX;
	for (size_t m = k; m < ir->n_ins && m < k + look_ahead(ir) && n < words; m++) {
		if (m > k && stops(ir, m, first.root))
			break;
		if (s->leader[m] || !is_word(ir, s, m, &other) || other.root != first.root ||
		    other.stride != first.stride || other.mask != first.mask || other.disp < from ||
		    other.disp >= from + bytes || other.disp % 4)
			continue;
		size_t *slot = &at[(other.disp - from) / 4];
		if (*slot != SIZE_MAX)
			continue;
		*slot = m;
		n++;
	}
	return n == words;
}

void ptx_members(const struct ptx_scan *s, const struct ir *ir, size_t k, size_t at[4])
{
	const struct ir_ins *i = &ir->ins[k];
	const int64_t bytes = 4 * s->words[k];
	int64_t from = ir_disp(i);

	ptx_root(s, i->a, &from);
	from -= (from % bytes + bytes) % bytes;
	for (size_t m = k; m < ir->n_ins && m < k + look_ahead(ir); m++) {
		struct word w;
		if (s->leader[m] == k + 1 && is_word(ir, s, m, &w))
			at[(w.disp - from) / 4] = m;
	}
}

void ptx_stored_members(const struct ptx_scan *s, const struct ir *ir, size_t k, size_t at[4])
{
	struct word w;
	unsigned n = 0;

	for (size_t m = k + 1; m-- > 0 && n < s->words[k];)
		if (s->leader[m] == k + 1 && is_stored_word(ir, s, m, &w)) {
			at[(w.disp & 15) / 4] = m;
			n++;
		}
}

static void join_loads(struct ptx_scan *s, const struct ir *ir)
{
	struct word w;
	size_t at[4];

	for (size_t k = 0; k < ir->n_ins; k++) {
		if (s->leader[k] || !is_word(ir, s, k, &w))
			continue;
		for (unsigned words = 4; words >= 2; words /= 2) {
			if (w.align < (words == 4 ? 4u : 3u) || !find_members(ir, s, k, words, at))
				continue;
			for (unsigned j = 0; j < words; j++)
				s->leader[at[j]] = (uint32_t)k + 1;
			s->words[k] = (uint8_t)words;
			break;
		}
	}
}

/* Four stores of neighbouring words with nothing between them but what is computed: the last one does all. */
static void join_stores_from(struct ptx_scan *s, const struct ir *ir, size_t k)
{
	struct word first, other;
	size_t at[4];
	unsigned n = 0;

	if (!is_stored_word(ir, s, k, &first) || first.align < 4 || first.disp % 16)
		return;
	for (size_t m = k; m < ir->n_ins && n < 4; m++) {
		if (is_stored_word(ir, s, m, &other) && other.root == first.root && other.stride == first.stride &&
		    other.mask == first.mask && other.disp == first.disp + 4 * n)
			at[n++] = m;
		else if (ir_does(ir->ins[m].op, IR_BRANCHES | IR_MEETS | IR_WRITES | IR_READS))
			return;
	}
	if (n < 4)
		return;
	for (unsigned j = 0; j < 4; j++)
		s->leader[at[j]] = (uint32_t)at[3] + 1;
	s->words[at[3]] = 4;
}

static void join_stores(struct ptx_scan *s, const struct ir *ir)
{
	for (size_t k = 0; ir->beside && k < ir->n_ins; k++)
		if (!s->leader[k])
			join_stores_from(s, ir, k);
}

bool ptx_scan(struct ptx_scan *s, const struct ir *ir, bool join, bool shared_arg, struct error *err)
{
	*s = (struct ptx_scan){ .shared_arg = shared_arg,
		                .reg = calloc(ir->n_regs + 1, sizeof *s->reg),
		                .dead = calloc(ir->n_ins + 1, sizeof *s->dead),
		                .leader = calloc(ir->n_ins + 1, sizeof *s->leader),
		                .words = calloc(ir->n_ins + 1, sizeof *s->words) };
	if (!s->reg || !s->dead || !s->leader || !s->words) {
		ptx_scan_free(s);
		return error_set(err, ERROR_MEMORY, "no memory for the %zu operations of a kernel", ir->n_ins);
	}
	find_dead(s, ir);
	if (!find_addresses(s, ir, err)) {
		ptx_scan_free(s);
		return false;
	}
	find_roots(s, ir, s->numbers);
	find_biased(s, ir);
	find_factors(s, ir);
	if (join) {
		join_loads(s, ir);
		join_stores(s, ir);
	}
	return true;
}

void ptx_scan_free(struct ptx_scan *s)
{
	free(s->reg);
	free(s->dead);
	free(s->leader);
	free(s->words);
	*s = (struct ptx_scan){ 0 };
}

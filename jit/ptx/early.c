/* jit/ptx/early.c - what a launch does before those in front of it have ended.
 *
 * Owns: the argument slots, which nobody writes while a pass runs and which are therefore read at once; and weights,
 * asked for ahead. What vectors of 16 bytes a wave reads first, and so where they lie, follows from the arguments and
 * the wave's share; the card is told to fetch them into its L2 cache. That reads nothing and so may come too early:
 * what a launch before this one still writes there is what the loads find later. A kernel with ifs or breaks, or
 * of a user, asks for nothing.
 */
#include "jit/ptx/ptx.h"

#include <stdlib.h>

typedef struct ptx_operand op;

/* --- argument slots */

static enum ptx_op load_of(const struct ptx_emitter *e, const struct ir_ins *i)
{
	if (e->scan.shared_arg)
		return i->type == IR_TYPE_u32 ? PTX_LD_SHARED_U32 : PTX_LD_SHARED_B64;
	return i->type == IR_TYPE_u32 ? PTX_LD_GLOBAL_U32 : PTX_LD_GLOBAL_B64;
}

/* Whether i loads an argument slot; its displacement. */
static bool is_slot(const struct ptx_emitter *e, const struct ir_ins *i, int64_t *disp)
{
	if (i->op != IR_uload)
		return false;
	*disp = i->imm;
	uint16_t root = ptx_root(&e->scan, i->a, disp);
	return !e->ir->is_var[root] && e->ir->ins[e->scan.reg[root].def].op == IR_arg;
}

const struct ptx_operand *ptx_slot(const struct ptx_emitter *e, const struct ir_ins *i)
{
	int64_t disp;

	if (!is_slot(e, i, &disp))
		return NULL;
	for (unsigned k = 0; k < e->n_slots; k++)
		if (e->slot[k].disp == disp && e->slot[k].load == load_of(e, i))
			return &e->slot[k].o;
	return NULL;
}

void ptx_load_slots(struct ptx_emitter *e)
{
	int64_t disp;

	for (size_t k = 0; k < e->ir->n_ins && e->n_slots < PTX_MEMO; k++) {
		const struct ir_ins *i = &e->ir->ins[k];
		if (e->scan.dead[k] || !is_slot(e, i, &disp) || ptx_slot(e, i))
			continue;
		op o = ptx_new(&e->w, PTX_B64);
		PTX_PUT_OP(&e->w, load_of(e, i), o, ptx_at(e->arg, disp));
		e->slot[e->n_slots].disp = disp;
		e->slot[e->n_slots].load = load_of(e, i);
		e->slot[e->n_slots++].o = o;
	}
}

bool ptx_leave_unaligned(struct ptx_emitter *e, op *label)
{
	struct ptx_writer *w = &e->w;
	bool joins = false;

	for (size_t k = 0; k < e->ir->n_ins; k++)
		joins |= e->scan.words[k] > 0;
	if (!joins)
		return false;
	const op all = ptx_new(w, PTX_B64), rest = ptx_new(w, PTX_B64), zero = ptx_new(w, PTX_B64),
		 is = ptx_new(w, PTX_PRED);
	PTX_PUT(w, MOV_B64, zero, ptx_imm(0));
	PTX_PUT(w, MOV_B64, all, zero);
	for (size_t k = 0; k < e->ir->n_ins; k++) {
		const struct ir_ins *i = &e->ir->ins[k];
		const op *slot = i->op == IR_uload && i->type == IR_TYPE_a ? ptx_slot(e, i) : NULL;
		if (slot)
			PTX_PUT(w, OR_B64, all, all, *slot);
	}
	PTX_PUT(w, AND_B64, rest, all, ptx_imm((1 << PTX_ARG_ALIGN) - 1));
	PTX_PUT(w, NE_S64, is, rest, zero);
	*label = ptx_to(w->labels++);
	w->guard = is;
	PTX_PUT(w, BRA, *label);
	return true;
}

/* --- weights */

/* The instruction that writes r last before k, when every loop is in its first iteration. */
static size_t writer_of(const struct ptx_emitter *e, uint16_t r, size_t k)
{
	unsigned ended = 0; /* loops that were left before k */

	while (k-- > 0) {
		const struct ir_ins *i = &e->ir->ins[k];
		ended += i->op == IR_endloop;
		if (i->dst == r && !e->scan.dead[k])
			return ended || i->a == r || i->b == r ? SIZE_MAX : k;
		ended -= i->op == IR_loop && ended;
	}
	return SIZE_MAX;
}

/* Whether i gives a scalar or an address that follows from the arguments and the wave's share. */
static bool is_known(const struct ptx_emitter *e, const struct ir_ins *i)
{
	const uint8_t dst = ir_facts_of(i)->dst;

	return ((dst == IR_TYPE_s || dst == IR_TYPE_a) && ir_does(i->op, IR_PURE)) || i->op == IR_loop ||
	       ptx_slot(e, i);
}

enum { DEPTH_MAX = 64 };

/* What register r holds when instruction k is first reached, computed apart from the kernel's own registers. number: by
 * instruction, its result's register plus 1. False: that is not known before the kernel runs. */
static bool first_value(struct ptx_emitter *e, uint32_t *number, uint16_t r, size_t k, unsigned depth, uint32_t *out)
{
	size_t at = writer_of(e, r, k);

	if (at == SIZE_MAX || depth == DEPTH_MAX || !is_known(e, &e->ir->ins[at]))
		return false;
	struct ir_ins i = e->ir->ins[at];
	const op *slot = ptx_slot(e, &i);
	uint32_t a = 0, b = 0;
	bool needs = i.op != IR_loop && !slot;
	if (number[at]) {
		*out = number[at] - 1;
		return true;
	}
	if ((needs && i.a && !first_value(e, number, i.a, at, depth + 1, &a)) ||
	    (needs && i.b && !first_value(e, number, i.b, at, depth + 1, &b)))
		return false;
	op d = ptx_new(&e->w, PTX_B64);
	*out = d.reg[0];
	number[at] = *out + 1;
	if (slot) {
		PTX_PUT(&e->w, MOV_B64, d, *slot);
	} else if (i.op == IR_loop) {
		PTX_PUT(&e->w, MOV_B64, d, ptx_imm(0));
	} else { /* the row as ever, with other registers */
		const uint32_t dst = e->scan.reg[i.dst].number, from = e->scan.reg[i.a].number,
			       with = e->scan.reg[i.b].number;
		e->scan.reg[i.a].number = a;
		e->scan.reg[i.b].number = i.b == i.a ? a : b;
		e->scan.reg[i.dst].number = *out;
		bool ok = ptx_scalar(e, &i) || ptx_math(e, &i);
		e->scan.reg[i.b].number = with;
		e->scan.reg[i.a].number = from;
		e->scan.reg[i.dst].number = dst;
		return ok;
	}
	return true;
}

/* Words of 16 bytes a lane, which lie side by side: from where they are displaced, and over which bytes. */
struct stretch {
	uint16_t root;
	int64_t from, to;
};
enum { STRETCHES = 4, VECTOR = 16, STRETCH_MAX = 1 << 16 };

static bool is_vector(const struct ptx_emitter *e, size_t k)
{
	const struct ir_ins *i = &e->ir->ins[k];

	return i->op == IR_load_strided && e->scan.words[k] == 4 && ir_x_stride(i->imm) == VECTOR &&
	       !e->scan.reg[i->a].shared;
}

/* What the vectors from k to the end of its loop's body read in an iteration. Returns how many stretches; end: of the
 * body. */
static unsigned find_stretches(const struct ptx_emitter *e, size_t k, struct stretch s[STRETCHES], size_t *end)
{
	unsigned n = 0;

	for (; k < e->ir->n_ins && e->ir->ins[k].op != IR_loop && e->ir->ins[k].op != IR_endloop; k++) {
		size_t at[4] = { 0 };
		unsigned j = 0;
		if (!is_vector(e, k))
			continue;
		ptx_members(&e->scan, e->ir, k, at);
		int64_t from = ir_x_disp(e->ir->ins[at[0]].imm);
		uint16_t root = ptx_root(&e->scan, e->ir->ins[at[0]].a, &from);
		while (j < n && s[j].root != root)
			j++;
		if (j == STRETCHES)
			break;
		if (j == n)
			s[n++] = (struct stretch){ .root = root, .from = from, .to = from };
		s[j].from = from < s[j].from ? from : s[j].from;
		s[j].to = from + 32 * VECTOR > s[j].to ? from + 32 * VECTOR : s[j].to;
	}
	*end = k;
	return n;
}

/* The loop around k. SIZE_MAX: there is none. */
static size_t loop_around(const struct ptx_emitter *e, size_t k)
{
	unsigned ended = 0;

	while (k-- > 0) {
		if (e->ir->ins[k].op == IR_loop && !ended)
			return k;
		ended -= e->ir->ins[k].op == IR_loop;
		ended += e->ir->ins[k].op == IR_endloop;
	}
	return SIZE_MAX;
}

/* Where the next iteration goes on where this one has ended, all iterations' bytes belong together. */
static int64_t bytes_of(const struct ptx_emitter *e, const struct stretch *s, size_t loop, size_t end)
{
	int64_t bytes = s->to - s->from;
	size_t count = loop == SIZE_MAX ? SIZE_MAX : writer_of(e, e->ir->ins[loop].a, loop);

	if (count == SIZE_MAX || ir_row(&e->ir->ins[count]) != IR_sconst)
		return bytes;
	for (size_t k = loop; k < end; k++) {
		const struct ir_ins *i = &e->ir->ins[k];
		if (ir_row(i) == IR_aaddi && i->dst == s->root && i->a == s->root && i->imm == bytes)
			bytes *= e->ir->ins[count].imm;
	}
	return bytes < STRETCH_MAX ? bytes : STRETCH_MAX;
}

/* Lane 0, where all loops around k have an iteration. False: that is not known. */
static bool is_reached(struct ptx_emitter *e, uint32_t *number, size_t k, op *out)
{
	op one = ptx_new(&e->w, PTX_PRED), zero = ptx_new(&e->w, PTX_B64);

	PTX_PUT(&e->w, LT_U32, one, e->lane, ptx_imm(1));
	PTX_PUT(&e->w, MOV_B64, zero, ptx_imm(0));
	while ((k = loop_around(e, k)) != SIZE_MAX) {
		op iterates = ptx_new(&e->w, PTX_PRED), both = ptx_new(&e->w, PTX_PRED);
		uint32_t count;
		if (!first_value(e, number, e->ir->ins[k].a, k, 0, &count))
			return false;
		PTX_PUT(&e->w, LT_S64, iterates, zero, ptx_register(PTX_B64, count));
		PTX_PUT(&e->w, AND_PRED, both, one, iterates);
		one = both;
	}
	*out = one;
	return true;
}

/* Whether what stands in the text first need not be what is read first. */
static bool may_skip(const struct ir *ir)
{
	for (size_t k = 0; k < ir->n_ins; k++)
		if (ir->ins[k].op == IR_if || ir->ins[k].op == IR_break)
			return true;
	return false;
}

void ptx_ask_ahead(struct ptx_emitter *e)
{
	struct stretch s[STRETCHES];
	uint32_t *number = calloc(e->ir->n_ins + 1, sizeof *number), base;
	size_t k = 0, end;
	op reached;

	if (e->w.capability < 90 || e->ir->beside || may_skip(e->ir)) {
		free(number);
		return;
	}
	if (!number) {
		e->w.no_memory = true;
		return;
	}
	while (k < e->ir->n_ins && !is_vector(e, k))
		k++;
	unsigned n = find_stretches(e, k, s, &end);
	if (n && is_reached(e, number, k, &reached))
		for (unsigned j = 0; j < n; j++) {
			op size = ptx_new(&e->w, PTX_B32);
			if (!first_value(e, number, s[j].root, k, 0, &base))
				continue;
			PTX_PUT(&e->w, MOV_B32, size, ptx_imm(bytes_of(e, &s[j], loop_around(e, k), end)));
			e->w.guard = reached;
			PTX_PUT(&e->w, BULK_PREFETCH_L2, ptx_at(ptx_register(PTX_B64, base), s[j].from), size);
		}
	free(number);
}

/* jit/spirv/flow.c - loops, ifs and barriers.
 *
 * Owns: blocks and what merges them. Loops and ifs are structured in SPIR-V as they are in the IR.
 */
#include "jit/spirv/spirv.h"

static void label(struct spirv_emitter *e, uint32_t id) { SPIRV_PUT(&e->w, e->w.code, Label, id); }
static void branch(struct spirv_emitter *e, uint32_t to) { SPIRV_PUT(&e->w, e->w.code, Branch, to); }

static void branch_on(struct spirv_emitter *e, uint32_t condition, uint32_t then, uint32_t otherwise)
{
	SPIRV_PUT(&e->w, e->w.code, BranchConditional, condition, then, otherwise);
}

uint32_t spirv_variable(struct spirv_emitter *e, enum spirv_type type)
{
	struct spirv_writer *w = &e->w;
	const uint32_t of = spirv_pointer(w, type, false), id = spirv_id(w);

	SPIRV_PUT(w, &w->variables, Variable, of, id, SPV_CLASS_Function);
	return id;
}

/* Few instructions without a loop among them are written several times, one behind the other: of the forms of CPUs'
 * kernels, whose inner loops are short. Cards' have what they need side by side. */
enum { COPIES = 4, COPIED_MAX = 24 };

static unsigned copies_of(const struct spirv_emitter *e, size_t begin)
{
	size_t k = begin + 1;

	while (e->ir->ins[k].op != IR_endloop) {
		if (e->ir->ins[k].op == IR_loop)
			return 1;
		k++;
	}
	return e->ir->lanes < 32 && k - begin <= COPIED_MAX ? COPIES : 1;
}

static void count_iteration(struct spirv_emitter *e)
{
	struct spirv_writer *w = &e->w;
	const uint32_t n = SPIRV_VALUE(w, SPIRV_U32, Load, e->iterations);

	SPIRV_PUT(w, w->code, Store, e->iterations, SPIRV_VALUE(w, SPIRV_U32, IAdd, n, spirv_u32(w, 1)));
}

/* The body follows, unless there were as many iterations as there are to be. */
static void begin_body(struct spirv_emitter *e)
{
	struct spirv_writer *w = &e->w;
	const unsigned d = e->depth - 1;
	const uint32_t body = spirv_id(w), index = SPIRV_VALUE(w, SPIRV_U64, Load, e->loop[d].index);

	branch_on(e, SPIRV_VALUE(w, SPIRV_BOOL, SLessThan, index, e->loop[d].count), body, e->loop[d].end);
	label(e, body);
	spirv_set(e, e->ir->ins[e->loop[d].begin].dst, index);
}

/* The index is a variable. Readers in the body get the value that it had when the body began. */
static void begin_loop(struct spirv_emitter *e, const struct ir_ins *i)
{
	struct spirv_writer *w = &e->w;
	const unsigned d = e->depth++;
	const uint32_t check = spirv_id(w);

	e->loop[d].count = spirv_get(e, i->a);
	e->loop[d].begin = (size_t)(i - e->ir->ins);
	e->loop[d].copies = copies_of(e, e->loop[d].begin);
	e->loop[d].head = spirv_id(w);
	e->loop[d].next = spirv_id(w);
	e->loop[d].end = spirv_id(w);
	e->loop[d].index = spirv_variable(e, SPIRV_U64);
	SPIRV_PUT(w, w->code, Store, e->loop[d].index, spirv_u64(w, 0));
	branch(e, e->loop[d].head);
	label(e, e->loop[d].head);
	SPIRV_PUT(w, w->code, LoopMerge, e->loop[d].end, e->loop[d].next, 0);
	branch(e, check);
	label(e, check);
	count_iteration(e);
	begin_body(e);
}

static void advance(struct spirv_emitter *e)
{
	struct spirv_writer *w = &e->w;
	const unsigned d = e->depth - 1;
	const uint32_t index = SPIRV_VALUE(w, SPIRV_U64, Load, e->loop[d].index);

	SPIRV_PUT(w, w->code, Store, e->loop[d].index, SPIRV_VALUE(w, SPIRV_U64, IAdd, index, spirv_u64(w, 1)));
}

/* *k: the instruction, which becomes the loop's first one where its body is written once more. */
static void end_loop(struct spirv_emitter *e, size_t *k)
{
	unsigned d = e->depth - 1;

	if (--e->loop[d].copies) {
		advance(e);
		begin_body(e);
		*k = e->loop[d].begin;
		return;
	}
	branch(e, e->loop[d].next);
	label(e, e->loop[d].next);
	advance(e);
	branch(e, e->loop[d].head);
	e->depth--;
	label(e, e->loop[d].end);
}

static void leave_loop(struct spirv_emitter *e, const struct ir_ins *i)
{
	struct spirv_writer *w = &e->w;
	const uint32_t condition = spirv_get(e, i->a), leaves = spirv_id(w), stays = spirv_id(w);

	SPIRV_PUT(w, w->code, SelectionMerge, stays, 0);
	branch_on(e, condition, leaves, stays);
	label(e, leaves);
	branch(e, e->loop[e->depth - 1].end);
	label(e, stays);
}

static void begin_if(struct spirv_emitter *e, const struct ir_ins *i)
{
	struct spirv_writer *w = &e->w;
	const unsigned d = e->branches++;
	const uint32_t condition = spirv_get(e, i->a), first = spirv_id(w);

	e->branch[d].other = spirv_id(w);
	e->branch[d].end = spirv_id(w);
	e->branch[d].has_other = false;
	SPIRV_PUT(w, w->code, SelectionMerge, e->branch[d].end, 0);
	branch_on(e, condition, first, e->branch[d].other);
	label(e, first);
}

static void second_part(struct spirv_emitter *e)
{
	const unsigned d = e->branches - 1;

	branch(e, e->branch[d].end);
	label(e, e->branch[d].other);
	e->branch[d].has_other = true;
}

static void end_if(struct spirv_emitter *e)
{
	const unsigned d = --e->branches;

	branch(e, e->branch[d].end);
	if (!e->branch[d].has_other) {
		label(e, e->branch[d].other);
		branch(e, e->branch[d].end);
	}
	label(e, e->branch[d].end);
}

bool spirv_flow(struct spirv_emitter *e, const struct ir_ins *i, size_t *k)
{
	switch (i->op) {
	case IR_loop: begin_loop(e, i); break;
	case IR_endloop: end_loop(e, k); break;
	case IR_break: leave_loop(e, i); break;
	case IR_if: begin_if(e, i); break;
	case IR_else: second_part(e); break;
	case IR_endif: end_if(e); break;
	case IR_barrier_all:
	case IR_barrier: spirv_barrier(e, SPV_SCOPE_Workgroup); return true;
	default: return false;
	}
	spirv_forget(e);
	return true;
}

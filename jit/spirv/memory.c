/* jit/spirv/memory.c - the rows of ops.def that load, store and update memory.
 *
 * Owns: addresses of lanes, and where lanes meet. The lanes of a subgroup meet between a store and what they load
 * behind it, for one may load what another stored; and between a load from locals or shared bytes and a store there.
 * Lanes from n on, and those that a mask is not set for, load zero and store nothing: their loads go to the argument
 * slots, which are there, and their stores are branched around.
 */
#include <stdlib.h>

#include "jit/ir/lanes.h"
#include "jit/spirv/spirv.h"

/* type: of what lies in memory; step: bytes from lane to lane, 0: the row's stride; one: the same for all lanes. */
static const struct row {
	uint8_t type, step;
	bool one, has_sign;
} rows[IR_ROWS] = {
	[IR_fload] = { SPIRV_U32, 4, false, false },       [IR_iload] = { SPIRV_U32, 4, false, false },
	[IR_fload_h] = { SPIRV_U16, 2, false, false },     [IR_iload_u8] = { SPIRV_U8, 1, false, false },
	[IR_iload_s8] = { SPIRV_U8, 1, false, true },      [IR_iload_u16] = { SPIRV_U16, 2, false, false },
	[IR_dload] = { SPIRV_U64, 8, false, false },       [IR_lload] = { SPIRV_U64, 8, false, false },
	[IR_iload_s] = { SPIRV_U32, 0, false, false },     [IR_fawait] = { SPIRV_U32, 0, false, false },
	[IR_fawait_at] = { SPIRV_U32, 1, false, false },   [IR_fgive] = { SPIRV_U32, 4, false, false },
	[IR_fbcast] = { SPIRV_U32, 0, true, false },       [IR_ibcast] = { SPIRV_U32, 0, true, false },
	[IR_fbcast_h] = { SPIRV_U16, 0, true, false },     [IR_dbcast] = { SPIRV_U64, 0, true, false },
	[IR_lbcast] = { SPIRV_U64, 0, true, false },       [IR_sload32] = { SPIRV_U32, 0, true, false },
	[IR_sload64] = { SPIRV_U64, 0, true, false },      [IR_aload] = { SPIRV_U64, 0, true, false },
	[IR_igather] = { SPIRV_U32, 1, false, false },     [IR_igather_32] = { SPIRV_U32, 4, false, false },
	[IR_igather_16] = { SPIRV_U16, 2, false, false },  [IR_igather_8] = { SPIRV_U8, 1, false, false },
	[IR_lgather] = { SPIRV_U64, 8, false, false },     [IR_fstore] = { SPIRV_U32, 4, false, false },
	[IR_fstore_h] = { SPIRV_U16, 2, false, false },    [IR_istore_8] = { SPIRV_U8, 1, false, false },
	[IR_istore_16] = { SPIRV_U16, 2, false, false },   [IR_dstore] = { SPIRV_U64, 8, false, false },
	[IR_lstore] = { SPIRV_U64, 8, false, false },      [IR_fstore_s] = { SPIRV_U32, 0, false, false },
	[IR_fstore_hs] = { SPIRV_U16, 0, false, false },   [IR_fstore1] = { SPIRV_U32, 0, true, false },
	[IR_iscatter_32] = { SPIRV_U32, 4, false, false }, [IR_iscatter_16] = { SPIRV_U16, 2, false, false },
	[IR_iscatter_8] = { SPIRV_U8, 1, false, false },   [IR_lscatter] = { SPIRV_U64, 8, false, false },
	[IR_iatomic_add] = { SPIRV_U32, 4, false, false }, [IR_latomic_add] = { SPIRV_U64, 8, false, false },
	[IR_iatomic_min] = { SPIRV_U32, 4, false, false }, [IR_iatomic_max] = { SPIRV_U32, 4, false, false },
	[IR_uatomic_min] = { SPIRV_U32, 4, false, false }, [IR_uatomic_max] = { SPIRV_U32, 4, false, false },
	[IR_iatomic_and] = { SPIRV_U32, 4, false, false }, [IR_iatomic_or] = { SPIRV_U32, 4, false, false },
};

static const uint32_t bytes_of[SPIRV_TYPES] = { [SPIRV_U8] = 1, [SPIRV_U16] = 2, [SPIRV_U32] = 4, [SPIRV_U64] = 8 };

/* ---- the frame */

static bool mark_frame(struct spirv_emitter *e, const struct ir_ins *i)
{
	bool is = i->op == IR_local || i->op == IR_shared;

	if (ir_facts_of(i)->dst != IR_TYPE_a || i->op == IR_uload)
		return false;
	is = is || (i->a && e->in_frame[i->a]);
	if (!is || e->in_frame[i->dst])
		return false;
	e->in_frame[i->dst] = true;
	return true;
}

bool spirv_find_frame(struct spirv_emitter *e)
{
	if (!(e->in_frame = calloc(e->ir->n_regs + 1, sizeof *e->in_frame)))
		return false;
	for (bool more = true; more;) {
		more = false;
		for (size_t k = 0; k < e->ir->n_ins; k++)
			more |= mark_frame(e, &e->ir->ins[k]);
	}
	for (size_t k = 0; k < e->ir->n_ins; k++) {
		const struct ir_ins *i = &e->ir->ins[k];
		e->stores |= ir_does(i->op, IR_WRITES);
		e->loads_frame |= ir_does(i->op, IR_READS) && e->in_frame[i->a];
	}
	return true;
}

void spirv_forget(struct spirv_emitter *e)
{
	e->stored = e->stores;
	e->loaded = e->loads_frame;
}

void spirv_barrier(struct spirv_emitter *e, uint32_t lanes)
{
	struct spirv_writer *w = &e->w;
	const uint32_t scope = spirv_u32(w, lanes),
		       semantics = spirv_u32(w, SPV_SEMANTICS_AcquireRelease | SPV_SEMANTICS_UniformMemory);

	SPIRV_PUT(w, w->code, ControlBarrier, scope, scope, semantics);
	e->stored = e->loaded = false;
}

/* In front of a load. What is the same for all lanes and lies in global memory was not stored by this kernel. */
static bool meet_writers(struct spirv_emitter *e, const struct ir_ins *i, bool one)
{
	const bool frame = e->in_frame[i->a];

	if (one && !frame)
		return false;
	if (e->stored)
		spirv_barrier(e, SPV_SCOPE_Subgroup);
	e->loaded |= frame;
	return e->stores;
}

static void meet_readers(struct spirv_emitter *e, const struct ir_ins *i)
{
	if (e->loaded && e->in_frame[i->a])
		spirv_barrier(e, SPV_SCOPE_Subgroup);
	e->stored = true;
}

/* ---- addresses */

#define U64(op, ...) SPIRV_VALUE(&e->w, SPIRV_U64, op, __VA_ARGS__)
#define BOOL(op, ...) SPIRV_VALUE(&e->w, SPIRV_BOOL, op, __VA_ARGS__)

static uint32_t times(struct spirv_emitter *e, uint32_t wide, uint64_t by)
{
	return by == 1 ? wide : U64(IMul, wide, spirv_u64(&e->w, by));
}

/* Of a lane's element. */
static uint32_t address(struct spirv_emitter *e, const struct ir_ins *i, const struct row *r)
{
	const int64_t disp = ir_disp(i);
	uint32_t at = spirv_get(e, i->a);
	const bool indexed = ir_facts_of(i)->b == IR_TYPE_i32 && ir_facts_of(i)->imm == IR_IMM_d;

	if (disp)
		at = U64(IAdd, at, spirv_u64(&e->w, (uint64_t)disp));
	if (indexed)
		return U64(IAdd, at, times(e, U64(UConvert, spirv_get(e, i->b)), r->step));
	return r->one ? at : U64(IAdd, at, times(e, e->lane64, r->step ? r->step : ir_x_stride(i->imm)));
}

/* Whether this lane takes part. 0: all do. */
static uint32_t some_lanes(struct spirv_emitter *e, const struct ir_ins *i, const struct row *r)
{
	const unsigned n = ir_facts_of(i)->imm == IR_IMM_x ? ir_x_lanes(i->imm, e->ir->lanes) : e->ir->lanes;
	const uint32_t mask = i->mask ? spirv_get(e, i->mask) : 0;

	if (r->one) /* of stores: lane 0's */
		return ir_does(i->op, IR_WRITES) ? BOOL(IEqual, e->lane, spirv_u32(&e->w, 0)) : 0;
	if (n == e->ir->lanes)
		return mask;
	const uint32_t first = BOOL(ULessThan, e->lane, spirv_u32(&e->w, n));
	return mask ? BOOL(LogicalAnd, first, mask) : first;
}

static uint32_t pointer(struct spirv_emitter *e, enum spirv_type type, uint32_t at)
{
	struct spirv_writer *w = &e->w;
	const uint32_t of = spirv_pointer(w, type, true), id = spirv_id(w);

	SPIRV_PUT(w, w->code, ConvertUToPtr, of, id, at);
	return id;
}

/* ---- loads */

static uint32_t read_at(struct spirv_emitter *e, enum spirv_type type, uint32_t at, bool of_others)
{
	struct spirv_writer *w = &e->w;
	const uint32_t from = pointer(e, type, at), bytes = bytes_of[type];

	if (!of_others)
		return SPIRV_VALUE(w, type, Load, from, SPV_ACCESS_Aligned, bytes);
	return SPIRV_VALUE(w, type, Load, from,
	                   SPV_ACCESS_Aligned | SPV_ACCESS_MakePointerVisible | SPV_ACCESS_NonPrivatePointer, bytes,
	                   spirv_u32(w, SPV_SCOPE_Workgroup));
}

/* What lies in memory as what the row gives. */
static uint32_t as_lane(struct spirv_emitter *e, const struct ir_ins *i, const struct row *r, uint32_t v)
{
	struct spirv_writer *w = &e->w;
	const enum spirv_type to = spirv_type_of(e, i->dst), from = (enum spirv_type)r->type;

	if (i->type == IR_TYPE_f16)
		return SPIRV_CALL(w, WIDEN_HALF, SPIRV_VALUE(w, SPIRV_U32, UConvert, v));
	if (to == SPIRV_F32 || to == SPIRV_F64)
		return SPIRV_VALUE(w, to, Bitcast, v);
	if (from == to)
		return v;
	return r->has_sign ? SPIRV_VALUE(w, to, SConvert, v) : SPIRV_VALUE(w, to, UConvert, v);
}

static void load(struct spirv_emitter *e, const struct ir_ins *i, const struct row *r)
{
	struct spirv_writer *w = &e->w;
	const enum spirv_type type = spirv_type_of(e, i->dst);
	const bool of_others = meet_writers(e, i, r->one);
	const uint32_t some = some_lanes(e, i, r);
	uint32_t at = address(e, i, r);

	if (some)
		at = U64(Select, some, at, e->arg);
	uint32_t v = as_lane(e, i, r, read_at(e, (enum spirv_type)r->type, at, of_others));
	if (some)
		v = SPIRV_VALUE(w, type, Select, some, v, spirv_constant(w, type, 0));
	spirv_set(e, i->dst, v);
}

/* ---- stores and atomics */

/* What follows is for the lanes for which it holds; returns the label behind it. */
static uint32_t begin_some(struct spirv_emitter *e, uint32_t some)
{
	struct spirv_writer *w = &e->w;
	const uint32_t inside = spirv_id(w), behind = spirv_id(w);

	if (!some)
		return 0;
	SPIRV_PUT(w, w->code, SelectionMerge, behind, 0);
	SPIRV_PUT(w, w->code, BranchConditional, some, inside, behind);
	SPIRV_PUT(w, w->code, Label, inside);
	return behind;
}

static void end_some(struct spirv_emitter *e, uint32_t behind)
{
	if (!behind)
		return;
	SPIRV_PUT(&e->w, e->w.code, Branch, behind);
	SPIRV_PUT(&e->w, e->w.code, Label, behind);
}

static uint32_t as_element(struct spirv_emitter *e, const struct ir_ins *i, const struct row *r, uint16_t reg)
{
	struct spirv_writer *w = &e->w;
	const enum spirv_type to = (enum spirv_type)r->type, from = spirv_type_of(e, reg);
	uint32_t v = spirv_get(e, reg);

	if (i->type == IR_TYPE_f16)
		v = SPIRV_CALL(w, NARROW_HALF, v);
	else if (from == SPIRV_F32 || from == SPIRV_F64)
		v = SPIRV_VALUE(w, to, Bitcast, v);
	return to == SPIRV_U8 || to == SPIRV_U16 ? SPIRV_VALUE(w, to, UConvert, v) : v;
}

static void store(struct spirv_emitter *e, const struct ir_ins *i, const struct row *r)
{
	struct spirv_writer *w = &e->w;
	const enum spirv_type type = (enum spirv_type)r->type;

	meet_readers(e, i);
	const uint32_t some = some_lanes(e, i, r), at = address(e, i, r),
		       v = as_element(e, i, r, ir_does(i->op, IR_INDEXED) ? i->c : i->b), behind = begin_some(e, some),
		       to = pointer(e, type, at);
	SPIRV_PUT(w, w->code, Store, to, v,
	          SPV_ACCESS_Aligned | SPV_ACCESS_MakePointerAvailable | SPV_ACCESS_NonPrivatePointer, bytes_of[type],
	          spirv_u32(w, SPV_SCOPE_Workgroup));
	end_some(e, behind);
}

static enum spv_op atomic_of(unsigned op)
{
	switch (op) {
	case IR_atomic_add: return SPV_AtomicIAdd;
	case IR_atomic_min: return SPV_AtomicSMin;
	case IR_atomic_max: return SPV_AtomicSMax;
	case IR_atomic_min_unsigned: return SPV_AtomicUMin;
	case IR_atomic_max_unsigned: return SPV_AtomicUMax;
	case IR_atomic_and: return SPV_AtomicAnd;
	default: return SPV_AtomicOr;
	}
}

static void update(struct spirv_emitter *e, const struct ir_ins *i, const struct row *r)
{
	struct spirv_writer *w = &e->w;
	const enum spirv_type type = (enum spirv_type)r->type;

	meet_readers(e, i);
	w->atomics64 |= type == SPIRV_U64;
	const uint32_t some = some_lanes(e, i, r), at = address(e, i, r), v = spirv_get(e, i->c),
		       behind = begin_some(e, some),
		       operand[] = { pointer(e, type, at), spirv_u32(w, SPV_SCOPE_QueueFamily), spirv_u32(w, 0), v };
	spirv_make_value(w, type, atomic_of(i->op), operand, 4);
	end_some(e, behind);
}

/* ---- what another call of the launch gives */

/* Each lane looks until its word is there. */
static void await(struct spirv_emitter *e, const struct ir_ins *i, const struct row *r)
{
	struct spirv_writer *w = &e->w;
	const uint32_t some = some_lanes(e, i, r), at = address(e, i, r), empty = spirv_u32(w, IR_EMPTY),
		       from = pointer(e, SPIRV_U32, some ? U64(Select, some, at, e->arg) : at), head = spirv_id(w),
		       look = spirv_id(w), next = spirv_id(w), end = spirv_id(w),
		       scope = spirv_u32(w, SPV_SCOPE_QueueFamily), semantics = spirv_u32(w, 0);

	SPIRV_PUT(w, w->code, Branch, head);
	SPIRV_PUT(w, w->code, Label, head);
	SPIRV_PUT(w, w->code, LoopMerge, end, next, 0);
	SPIRV_PUT(w, w->code, Branch, look);
	SPIRV_PUT(w, w->code, Label, look);
	const uint32_t v = SPIRV_VALUE(w, SPIRV_U32, AtomicLoad, from, scope, semantics),
		       there = BOOL(INotEqual, v, empty),
		       done = some ? BOOL(LogicalOr, there, BOOL(LogicalNot, some)) : there;
	SPIRV_PUT(w, w->code, BranchConditional, done, end, next);
	SPIRV_PUT(w, w->code, Label, next);
	SPIRV_PUT(w, w->code, Branch, head);
	SPIRV_PUT(w, w->code, Label, end);
	const uint32_t f = SPIRV_VALUE(w, SPIRV_F32, Bitcast, v);
	spirv_set(e, i->dst, some ? SPIRV_VALUE(w, SPIRV_F32, Select, some, f, spirv_constant(w, SPIRV_F32, 0)) : f);
}

static void give(struct spirv_emitter *e, const struct ir_ins *i, const struct row *r)
{
	struct spirv_writer *w = &e->w;

	e->stored = true;
	const uint32_t some = some_lanes(e, i, r), at = address(e, i, r),
		       bits = SPIRV_VALUE(w, SPIRV_U32, Bitcast, spirv_get(e, i->b)),
		       is_empty = BOOL(IEqual, bits, spirv_u32(w, IR_EMPTY)),
		       given = SPIRV_VALUE(w, SPIRV_U32, Select, is_empty, spirv_u32(w, IR_EMPTY_GIVEN), bits),
		       behind = begin_some(e, some), to = pointer(e, SPIRV_U32, at),
		       scope = spirv_u32(w, SPV_SCOPE_QueueFamily), semantics = spirv_u32(w, 0);
	SPIRV_PUT(w, w->code, AtomicStore, to, scope, semantics, given);
	end_some(e, behind);
}

bool spirv_memory(struct spirv_emitter *e, const struct ir_ins *i)
{
	const struct row *r = &rows[ir_row(i)];
	const bool writes = ir_does(i->op, IR_WRITES);

	if (ir_does(i->op, IR_HINTS))
		return true;
	if (r->type == SPIRV_VOID)
		return false;
	if (ir_does(i->op, IR_AWAITS))
		await(e, i, r);
	else if (i->op == IR_give)
		give(e, i, r);
	else if (writes && ir_does(i->op, IR_READS))
		update(e, i, r);
	else if (writes)
		store(e, i, r);
	else
		load(e, i, r);
	return true;
}

/* jit/ptx/memory.c - the rows of ops.def that load and store.
 *
 * Owns: addresses of lanes, and joined loads. The lanes of a warp meet between a store and what they load behind it,
 * for one may load what another stored; and between a load from shared memory and a store there, for one may store
 * where another, which is slower, has yet to load. Lanes from n on, and those that a mask is not set for, are
 * predicated: they load zero and store nothing.
 */
#include "jit/ptx/ptx.h"

typedef struct ptx_operand op;

void ptx_new_run(struct ptx_emitter *e) { e->n_sums = 0; }

/* --- made at the entry, once */

/* The swizzled number of the vector behind `first`, which is even, by 0 or 1. */
static op swizzle(struct ptx_emitter *e, op vector, op strip, unsigned first)
{
	struct ptx_writer *w = &e->w;
	op number = ptx_new(w, PTX_B32), by = ptx_new(w, PTX_B32), swizzled = ptx_new(w, PTX_B32);

	PTX_PUT(w, ADD_S32, number, vector, ptx_imm(first));
	PTX_PUT(w, AND_B32, by, strip, ptx_imm(7));
	PTX_PUT(w, XOR_B32, swizzled, number, by);
	return swizzled;
}

/* Of lane l: strip l % 16 and vector l / 16, or l % 8 for l % 16; or strip l % 8 + 8 * (l / 16) and vector l / 8 % 2.
 */
static op matrix_rows(struct ptx_emitter *e, uint64_t kind, unsigned stride, unsigned step)
{
	struct ptx_writer *w = &e->w;
	const bool swizzled = kind == PTX_LANES_FIRST_SWIZZLED || kind == PTX_LANES_SECOND_SWIZZLED,
		   first = kind != PTX_LANES_SECOND && kind != PTX_LANES_SECOND_SWIZZLED;
	op strip = ptx_new(w, PTX_B32), upper = ptx_new(w, PTX_B32), vector = ptx_new(w, PTX_B32),
	   at = ptx_new(w, PTX_B32), all = ptx_new(w, PTX_B32);

	PTX_PUT(w, SHR_U32, upper, e->lane, ptx_imm(4));
	PTX_PUT(w, AND_B32, strip, e->lane, ptx_imm(first && kind != PTX_LANES_TOP ? 15 : 7));
	if (first) {
		vector = upper;
	} else {
		PTX_PUT(w, SHR_U32, vector, e->lane, ptx_imm(3));
		PTX_PUT(w, AND_B32, vector, vector, ptx_imm(1));
		PTX_PUT(w, SHL_B32, upper, upper, ptx_imm(3));
		PTX_PUT(w, ADD_S32, strip, strip, upper);
	}
	PTX_PUT(w, MUL_S32, at, strip, ptx_imm(stride));
	if (swizzled) {
		vector = swizzle(e, vector, strip, step);
		step = 1;
	}
	PTX_PUT(w, MAD_U32, all, vector, ptx_imm(step * IR_VECTOR_BYTES), at);
	return all;
}

/* Of lane 4g + t: row g and column 2t of a tile; strip g and eight of its bytes, the first or second half of a vector.
 */
static op matrix_lanes(struct ptx_emitter *e, uint64_t by)
{
	struct ptx_writer *w = &e->w;
	const unsigned step = (unsigned)by & 0xff, stride = (unsigned)(by >> 8) & 0xffffff;
	const uint64_t kind = by & UINT64_C(0xffffffff) << 32;
	const bool swizzled = kind == PTX_LANES_STRIP_SWIZZLED;
	op g = ptx_new(w, PTX_B32), t = ptx_new(w, PTX_B32), rows = ptx_new(w, PTX_B32), all = ptx_new(w, PTX_B32);

	PTX_PUT(w, SHR_U32, g, e->lane, ptx_imm(2));
	PTX_PUT(w, MUL_S32, rows, g, ptx_imm(stride));
	if (kind == PTX_LANES_TILE) {
		PTX_PUT(w, AND_B32, t, e->lane, ptx_imm(3));
		PTX_PUT(w, MAD_U32, all, t, ptx_imm(2 * step), rows);
		return all;
	}
	if (kind != PTX_LANES_STRIP && kind != PTX_LANES_STRIP_SWIZZLED)
		return matrix_rows(e, kind, stride, step);
	op vector = ptx_new(w, PTX_B32), half = ptx_new(w, PTX_B32), number = ptx_new(w, PTX_B32),
	   vectors = ptx_new(w, PTX_B32);
	PTX_PUT(w, SHR_U32, t, e->lane, ptx_imm(1));
	PTX_PUT(w, AND_B32, number, t, ptx_imm(1));
	PTX_PUT(w, AND_B32, half, e->lane, ptx_imm(1));
	if (swizzled)
		number = swizzle(e, number, g, step);
	PTX_PUT(w, MAD_U32, vectors, number, ptx_imm((swizzled ? 1 : step) * IR_VECTOR_BYTES), rows);
	PTX_PUT(w, SHL_B32, vector, half, ptx_imm(3));
	PTX_PUT(w, ADD_S32, all, vectors, vector);
	return all;
}

static op lanes_add(struct ptx_emitter *e, uint64_t by)
{
	for (unsigned k = 0; k < e->n_lanes; k++)
		if (e->lanes[k].by == by)
			return e->lanes[k].o;
	struct ptx_buffer *to = e->w.to;
	const op guard = e->w.guard;
	op o = ptx_new(&e->w, PTX_B64);
	bool keep = e->n_lanes < PTX_MEMO;

	e->w.to = keep ? &e->w.entry : to;
	e->w.guard = ptx_imm(0);
	if (by >> 32)
		PTX_PUT(&e->w, CVT_U64_U32, o, matrix_lanes(e, by));
	else
		PTX_PUT(&e->w, MUL_WIDE_U32, o, e->lane, ptx_imm((int64_t)by));
	e->w.to = to;
	e->w.guard = guard;
	if (keep) {
		e->lanes[e->n_lanes].by = by;
		e->lanes[e->n_lanes++].o = o;
	}
	return o;
}

op ptx_first_lanes(struct ptx_emitter *e, unsigned n)
{
	for (unsigned k = 0; k < e->n_first; k++)
		if (e->first[k].by == n)
			return e->first[k].o;
	struct ptx_buffer *to = e->w.to;
	op o = ptx_new(&e->w, PTX_PRED);

	e->w.to = &e->w.entry;
	PTX_PUT(&e->w, LT_U32, o, e->lane, ptx_imm(n));
	e->w.to = to;
	e->first[e->n_first].by = n; /* there are 32 at most */
	e->first[e->n_first++].o = o;
	return o;
}

/* --- addresses */

op ptx_address(struct ptx_emitter *e, uint16_t a, int64_t disp, uint64_t by)
{
	uint16_t root = ptx_root(&e->scan, a, &disp);

	if (disp < INT32_MIN || disp > INT32_MAX)
		e->w.wrong = "a displacement beyond 32 bits";
	if (!by)
		return ptx_at(ptx_reg(e, root), disp);
	for (unsigned k = 0; k < e->n_sums && k < PTX_MEMO; k++)
		if (e->sums[k].root == root && e->sums[k].by == by)
			return ptx_at(e->sums[k].o, disp);
	op o = ptx_new(&e->w, PTX_B64);
	PTX_PUT(&e->w, ADD_S64, o, ptx_reg(e, root), lanes_add(e, by));
	if (!e->ir->is_var[root]) {
		e->sums[e->n_sums % PTX_MEMO].root = root;
		e->sums[e->n_sums % PTX_MEMO].by = by;
		e->sums[e->n_sums++ % PTX_MEMO].o = o;
	}
	return ptx_at(o, disp);
}

static bool is_shared(const struct ptx_emitter *e, const struct ir_ins *i) { return e->scan.reg[i->a].shared; }

void ptx_meet(struct ptx_emitter *e, bool shared)
{
	if (e->stored[shared])
		PTX_PUT(&e->w, BAR_WARP_SYNC, ptx_imm(0xffffffff));
	e->stored[shared] = false;
	e->loaded |= shared;
}

void ptx_meet_readers(struct ptx_emitter *e, bool shared)
{
	if (shared && e->loaded) {
		PTX_PUT(&e->w, BAR_WARP_SYNC, ptx_imm(0xffffffff));
		e->stored[0] = e->loaded = false;
	}
	e->stored[shared] = true;
}

/* --- stores */

void ptx_store(struct ptx_writer *w, unsigned cards, enum ptx_op store, op to, op data)
{
	const op guard = w->guard;

	PTX_PUT_OP(w, store, to, data);
	for (unsigned card = 1; card < cards; card++) {
		op base = ptx_new(w, PTX_B64);
		PTX_PUT(w, XOR_B64, base, ptx_register(PTX_B64, to.reg[0]), ptx_imm((int64_t)card << PTX_CARD_SHIFT));
		w->guard = guard;
		PTX_PUT_OP(w, store, ptx_at(base, to.value), data);
	}
}

/* --- rows */

/* extra: bytes of an element; 0: the row's stride. */
static const struct row {
	uint16_t global, shared;
	uint8_t bytes;
	bool one; /* the same for all lanes */
} rows[IR_ROWS] = {
#define ROW(name, access, type, bytes, one) \
	[IR_##name] = { PTX_##access##_GLOBAL_##type, PTX_##access##_SHARED_##type, bytes, one },
	ROW(fload, LD, B32, 4, false) ROW(iload, LD, B32, 4, false) ROW(iload_u8, LD, U8, 1, false) ROW(
		iload_s8, LD, S8, 1, false) ROW(iload_u16, LD, U16, 2, false) ROW(fload_h, LD, B16, 2, false)
		ROW(iload_s, LD, B32, 0, false) ROW(fbcast, LD, B32, 4, true) ROW(ibcast, LD, B32, 4, true) ROW(
			fbcast_h, LD, B16, 2, true) ROW(igather, LD, B32, 4, true) ROW(sload32, LD, U32, 4, true)
			ROW(sload64, LD, B64, 8, true) ROW(aload, LD, B64, 8, true) ROW(fstore, ST, B32, 4, false) ROW(
				fstore_h, ST, B16, 2,
				false) ROW(istore_16, ST, B16, 2, false) ROW(istore_8, ST, B8, 1, false)
				ROW(fstore_s, ST, B32, 0, false) ROW(fstore_hs, ST, B16, 0, false) ROW(
					fstore1, ST, B32, 4,
					true) ROW(dload, LD, B64, 8, false) ROW(lload, LD, B64, 8, false)
					ROW(dbcast, LD, B64, 8, true) ROW(lbcast, LD, B64, 8, true) ROW(
						dstore, ST,
						B64, 8, false) ROW(lstore, ST, B64, 8, false)
						ROW(igather_32, LD, B32, 4, true) ROW(igather_8, LD, U8, 1, true)
							ROW(igather_16, LD, U16, 2, true) ROW(lgather, LD, B64, 8, true)
								ROW(iscatter_32, ST, B32, 4, true) ROW(
									iscatter_8, ST, B8, 1,
									true) ROW(iscatter_16, ST, B16, 2,
	                                                                          true) ROW(lscatter, ST, B64, 8, true)
#undef ROW
									[IR_fgive] = { PTX_ST_RELAXED, PTX_ST_RELAXED,
	                                                                               4, false },
};

static unsigned lanes_of(const struct ir_ins *i)
{
	return ir_facts_of(i)->imm == IR_IMM_x ? ir_x_lanes(i->imm, 32) : 32;
}

static op address_of(struct ptx_emitter *e, const struct ir_ins *i)
{
	const struct row *r = &rows[ir_row(i)];

	return ptx_address(e, i->a, ir_disp(i), r->one ? 0 : r->bytes ? r->bytes : ir_x_stride(i->imm));
}

static void load_joined(struct ptx_emitter *e, const struct ir_ins *i)
{
	static const enum ptx_op op_of[2][2] = { { PTX_LD_GLOBAL_V2, PTX_LD_GLOBAL_V4 },
		                                 { PTX_LD_SHARED_V2, PTX_LD_SHARED_V4 } };
	unsigned words = e->scan.words[e->at];
	op d = { .kind = PTX_TUPLE, .class = PTX_B32, .n = (uint8_t)words };
	size_t at[4] = { 0 };

	ptx_members(&e->scan, e->ir, e->at, at);
	for (unsigned k = 0; k < words; k++)
		d.reg[k] = e->scan.reg[e->ir->ins[at[k]].dst].number;
	const struct ir_ins *first = &e->ir->ins[at[0]];
	const op from = ptx_address(e, first->a, ir_disp(first), i->op == IR_load_strided ? ir_x_stride(i->imm) : 0);
	for (unsigned k = 0; i->mask && k < words; k++)
		PTX_PUT(&e->w, MOV_B32, ptx_register(PTX_B32, d.reg[k]), ptx_imm(0));
	e->w.guard = i->mask ? ptx_reg(e, i->mask) : ptx_imm(0);
	PTX_PUT_OP(&e->w, op_of[is_shared(e, i)][words == 4], d, from);
}

/* The predicate of those lanes that i says, of the first n; a constant: all take part. */
static op some_lanes(struct ptx_emitter *e, const struct ir_ins *i, unsigned n)
{
	if (n == 32)
		return i->mask ? ptx_reg(e, i->mask) : ptx_imm(0);
	op first = ptx_first_lanes(e, n);
	if (!i->mask)
		return first;
	op both = ptx_new(&e->w, PTX_PRED);
	PTX_PUT(&e->w, AND_PRED, both, first, ptx_reg(e, i->mask));
	return both;
}

static void load_part(struct ptx_emitter *e, enum ptx_op op_of, const struct ir_ins *i, op from)
{
	const op some = some_lanes(e, i, lanes_of(i)), d = ptx_reg(e, i->dst);
	const bool half = i->type == IR_TYPE_f16;
	const op word = half ? ptx_new(&e->w, PTX_B16) : d;

	if (some.kind == PTX_REGISTER)
		PTX_PUT_OP(&e->w, d.class == PTX_B64 ? PTX_MOV_B64 : PTX_MOV_B32, d, ptx_imm(0));
	e->w.guard = some;
	PTX_PUT_OP(&e->w, op_of, word, from);
	e->w.guard = some;
	if (half)
		PTX_PUT(&e->w, CVT_F32_F16, d, word);
	e->w.guard = ptx_imm(0);
}

static void load(struct ptx_emitter *e, const struct ir_ins *i)
{
	const struct row *r = &rows[ir_row(i)];
	enum ptx_op load = (enum ptx_op)(is_shared(e, i) ? r->shared : r->global);
	const op *slot = ptx_slot(e, i);

	if (slot) {
		PTX_PUT(&e->w, MOV_B64, ptx_reg(e, i->dst), *slot);
		return;
	}
	if (is_shared(e, i) || !r->one) /* what is the same for all lanes was not stored by this kernel (ops.def) */
		ptx_meet(e, is_shared(e, i));
	if (e->scan.words[e->at]) {
		load_joined(e, i);
		return;
	}
	load_part(e, load, i, address_of(e, i));
}

static void gather(struct ptx_emitter *e, const struct ir_ins *i)
{
	const struct row *r = &rows[ir_row(i)];
	op wide = ptx_new(&e->w, PTX_B64), sum = ptx_new(&e->w, PTX_B64);
	int64_t disp = i->imm;
	uint16_t root = ptx_root(&e->scan, i->a, &disp);

	ptx_meet(e, is_shared(e, i));
	PTX_PUT(&e->w, CVT_U64_U32, wide, ptx_reg(e, i->b));
	PTX_PUT(&e->w, ADD_S64, sum, ptx_reg(e, root), wide);
	load_part(e, (enum ptx_op)(is_shared(e, i) ? r->shared : r->global), i, ptx_at(sum, disp));
}

static op lower_half(struct ptx_emitter *e, op word)
{
	const op low = ptx_new(&e->w, PTX_B16), high = ptx_new(&e->w, PTX_B16);

	PTX_PUT(&e->w, UNPACK_HALVES,
	        (op){ .kind = PTX_TUPLE, .class = PTX_B16, .n = 2, .reg = { low.reg[0], high.reg[0] } }, word);
	return low;
}

static void store_joined(struct ptx_emitter *e, const struct ir_ins *i)
{
	op data = { .kind = PTX_TUPLE, .class = PTX_B32, .n = 4 };
	size_t at[4] = { 0 };

	ptx_stored_members(&e->scan, e->ir, e->at, at);
	for (unsigned k = 0; k < 4; k++)
		data.reg[k] = e->scan.reg[e->ir->ins[at[k]].b].number;
	const struct ir_ins *first = &e->ir->ins[at[0]];
	const op to = ptx_address(e, first->a, ir_disp(first), ir_x_stride(i->imm));
	ptx_meet_readers(e, is_shared(e, i));
	e->w.guard = i->mask ? ptx_reg(e, i->mask) : ptx_imm(0);
	ptx_store(&e->w, e->cards, PTX_ST_GLOBAL_V4, to, data);
}

static void store(struct ptx_emitter *e, const struct ir_ins *i)
{
	if (e->scan.words[e->at]) {
		store_joined(e, i);
		return;
	}
	const struct row *r = &rows[ir_row(i)];
	op to = address_of(e, i), data = ptx_reg(e, i->b);
	const op some = some_lanes(e, i, i->op == IR_store_first ? 1 : lanes_of(i));

	if (i->type == IR_TYPE_f16) {
		op half = ptx_new(&e->w, PTX_B16);
		PTX_PUT(&e->w, CVT_F16_F32, half, data);
		data = half;
	} else if (i->type == IR_TYPE_i16) {
		data = lower_half(e, data);
	}
	ptx_meet_readers(e, is_shared(e, i));
	if (i->op == IR_give && is_shared(e, i))
		e->w.wrong = "what is given lies in shared memory";
	e->w.guard = some;
	if (is_shared(e, i))
		PTX_PUT_OP(&e->w, (enum ptx_op)r->shared, to, data);
	else
		ptx_store(&e->w, e->cards,
		          i->op == IR_give && e->cards > 1 ? PTX_ST_RELAXED_SYSTEM : (enum ptx_op)r->global, to, data);
}

/* The address of each lane's element. */
static op element(struct ptx_emitter *e, const struct ir_ins *i)
{
	op offset = ptx_new(&e->w, PTX_B64), sum = ptx_new(&e->w, PTX_B64);
	int64_t disp = i->imm;
	uint16_t root = ptx_root(&e->scan, i->a, &disp);

	PTX_PUT(&e->w, MUL_WIDE_U32, offset, ptx_reg(e, i->b), ptx_imm(ir_types[i->type].bytes));
	PTX_PUT(&e->w, ADD_S64, sum, ptx_reg(e, root), offset);
	return ptx_at(sum, disp);
}

#define RED(row, kind) [IR_##row] = { PTX_RED_GLOBAL_##kind, PTX_RED_SYSTEM_##kind, PTX_RED_SHARED_##kind }
static const uint16_t updates[IR_ROWS][3] = {
	RED(iatomic_add, ADD_U32), RED(latomic_add, ADD_U64), RED(iatomic_min, MIN_S32), RED(iatomic_max, MAX_S32),
	RED(uatomic_min, MIN_U32), RED(uatomic_max, MAX_U32), RED(iatomic_and, AND_B32), RED(iatomic_or, OR_B32)
};
#undef RED

/* Gathers, scatters, atomics. */
static void by_index(struct ptx_emitter *e, const struct ir_ins *i)
{
	const struct row *r = &rows[ir_row(i)];
	const bool shared = is_shared(e, i), updates_it = updates[ir_row(i)][0];
	op at = element(e, i);

	if (i->op == IR_gather_at) {
		ptx_meet(e, shared);
		load_part(e, (enum ptx_op)(shared ? r->shared : r->global), i, at);
		return;
	}
	op data = ptx_reg(e, i->c);
	const op some = some_lanes(e, i, 32);
	if (i->type == IR_TYPE_u16)
		data = lower_half(e, data);
	if (updates_it)
		ptx_meet(e, shared); /* it reads, too */
	ptx_meet_readers(e, shared);
	e->w.guard = some;
	if (shared)
		PTX_PUT_OP(&e->w, (enum ptx_op)(updates_it ? updates[ir_row(i)][2] : r->shared), at, data);
	else
		ptx_store(&e->w, e->cards, (enum ptx_op)(updates_it ? updates[ir_row(i)][e->cards > 1] : r->global), at,
		          data);
}

/* Where a wave's own bytes, or the group's, begin. */
static void give_address(struct ptx_emitter *e, const struct ir_ins *i)
{
	uint32_t offset = 0;

	for (size_t k = 0; k < e->at; k++)
		if (e->ir->ins[k].op == i->op)
			offset += ir_local_size(e->ir->ins[k].imm);
	PTX_PUT(&e->w, ADD_S64, ptx_reg(e, i->dst), i->op == IR_local ? e->locals : e->shared, ptx_imm(offset));
}

bool ptx_memory(struct ptx_emitter *e, const struct ir_ins *i)
{
	if (i->op == IR_local || i->op == IR_shared)
		give_address(e, i);
	else if (i->op == IR_gather)
		gather(e, i);
	else if (ir_does(i->op, IR_INDEXED))
		by_index(e, i);
	else if (!rows[ir_row(i)].global)
		return ptx_await(e, i);
	else if (ir_facts_of(i)->dst == IR_TYPE__)
		store(e, i);
	else
		load(e, i);
	return true;
}

/* jit/ptx/matrix.c - the rows of ops.def that work on tiles, operands and products of matrices: mma.sync.
 *
 * Owns: where the elements of a tile and the bytes of an operand lie, which the IR does not know. Lane 4g + t has of a
 * tile the rows g and g + 8 and the columns 2t, 2t + 1, 2t + 8, 2t + 9: register 4h + 2i + j is row g + 8i, column
 * 2t + 8h + j, so that registers 4h to 4h + 3 are the sums of one instruction, which has 8 columns. Where a tile's
 * elements differ by their row or their column alone, or not at all, alike registers are one.
 *
 * Of an operand the lane has eight bytes of strip g and of strip g + 8: half t % 2 of vector t / 2. The instruction
 * takes the first four of them for other k's than the rest, and both factors do so alike: sums of integers know no
 * order, and that of floats is left to the card (numerics.h rule 13). Vectors lie at multiples of 16. Where all factors
 * come from shared memory, they are loaded as matrices of eight rows: then the lane has word t of both vectors.
 */
#include "jit/ptx/ptx.h"

typedef struct ptx_operand op;

/* --- tiles as registers */

/* Which register of a tile of that shape holds element `at` of a full one; how many it has; the element of one. */
static unsigned cell_of(unsigned shape, unsigned at)
{
	return shape == PTX_FULL        ? at
	       : shape == PTX_BY_ROW    ? at >> 1 & 1
	       : shape == PTX_BY_COLUMN ? (at >> 2) * 2 + (at & 1)
	                                : 0;
}
static unsigned cells(unsigned shape) { return cell_of(shape, PTX_TILE_WORDS - 1) + 1; }
static unsigned element_of(unsigned shape, unsigned cell)
{
	return shape == PTX_FULL        ? cell
	       : shape == PTX_BY_ROW    ? cell * 2
	       : shape == PTX_BY_COLUMN ? (cell >> 1) * 4 + (cell & 1)
	                                : 0;
}

static op element(const struct ptx_emitter *e, uint16_t r, unsigned at)
{
	const struct ptx_tile *t = &e->tile[r];
	return ptx_register(PTX_B32, t->reg[cell_of(t->shape, at)]);
}

static op tuple(const uint32_t *reg, unsigned n)
{
	op o = { .kind = PTX_TUPLE, .class = PTX_B32, .n = (uint8_t)n };
	for (unsigned k = 0; k < n; k++)
		o.reg[k] = reg[k];
	return o;
}

/* Makes dst's registers, of that shape at least; variables are full from the first. Returns its shape. */
static unsigned give(struct ptx_emitter *e, uint16_t dst, unsigned shape)
{
	struct ptx_tile *t = &e->tile[dst];

	if (t->known)
		return t->shape;
	t->known = true;
	t->shape = e->ir->is_var[dst] ? PTX_FULL : (uint8_t)shape;
	for (unsigned k = 0; k < cells(t->shape); k++)
		t->reg[k] = ptx_new(&e->w, PTX_B32).reg[0];
	return t->shape;
}

static void move(struct ptx_emitter *e, const struct ir_ins *i)
{
	unsigned shape = give(e, i->dst, i->op == IR_const ? 0 : e->tile[i->a].shape);

	for (unsigned k = 0; k < cells(shape); k++) {
		unsigned at = element_of(shape, k);
		PTX_PUT(&e->w, MOV_B32, element(e, i->dst, at),
		        i->op == IR_const ? ptx_imm((int64_t)(uint32_t)(uint64_t)i->imm) : element(e, i->a, at));
	}
}

/* Element by element. */
static void compute(struct ptx_emitter *e, const struct ir_ins *i)
{
	struct ptx_writer *w = &e->w;
	unsigned wants = e->tile[i->a].shape | (i->b ? e->tile[i->b].shape : 0u) | (i->c ? e->tile[i->c].shape : 0u),
		 shape = give(e, i->dst, wants);
	op bias = ptx_imm(0);

	if (i->op == IR_from_int && e->scan.reg[i->a].biased) {
		bias = ptx_new(w, PTX_B32);
		PTX_PUT(w, MOV_B32, bias, ptx_imm(PTX_BIAS));
	}
	for (unsigned k = 0; k < cells(shape); k++) {
		unsigned at = element_of(shape, k);
		op d = element(e, i->dst, at), a = element(e, i->a, at);
		if (i->op == IR_mul)
			PTX_PUT(w, MUL_F32, d, a, element(e, i->b, at));
		else if (i->op == IR_fma)
			PTX_PUT(w, FMA_F32, d, a, element(e, i->b, at), element(e, i->c, at));
		else if (bias.kind == PTX_REGISTER)
			PTX_PUT(w, SUB_F32, d, a, bias);
		else
			PTX_PUT(w, CVT_F32_S32, d, a);
	}
}

/* --- memory */

static bool is_shared(const struct ptx_emitter *e, const struct ir_ins *i) { return e->scan.reg[i->a].shared; }

/* Behind the lane's first element. */
static int64_t element_disp(const struct ir_ins *i, unsigned at)
{
	int64_t row = at >> 1 & 1 ? 8 : 0, column = (at >> 2) * 8 + (at & 1);
	return ir_x_disp(i->imm) + row * ir_x_stride(i->imm) + column * ir_t_step(i->imm);
}

static uint64_t lanes(const struct ir_ins *i, uint64_t kind)
{
	uint64_t by = (uint64_t)i->imm >> 32;
	return by ? kind | by : 0;
}

/* Whether neighbours in a row are one access: both words lie in the same eight bytes. */
static bool pairs(const struct ptx_emitter *e, const struct ir_ins *i)
{
	int64_t disp = ir_x_disp(i->imm);
	uint16_t root = ptx_root(&e->scan, i->a, &disp);

	return ir_t_step(i->imm) == 4 && ir_x_stride(i->imm) % 8 == 0 && disp % 8 == 0 && e->scan.reg[root].align >= 3;
}

static void load(struct ptx_emitter *e, const struct ir_ins *i)
{
	struct ptx_writer *w = &e->w;
	const bool shared = is_shared(e, i), half = i->type == IR_TYPE_f16;
	unsigned shape = give(e, i->dst,
	                      (ir_x_stride(i->imm) ? PTX_BY_ROW : 0u) | (ir_t_step(i->imm) ? PTX_BY_COLUMN : 0u)),
		 step = !half && shape & PTX_BY_COLUMN && pairs(e, i) ? 2 : 1;
	enum ptx_op one = half ? (shared ? PTX_LD_SHARED_B16 : PTX_LD_GLOBAL_B16)
	                       : (shared ? PTX_LD_SHARED_B32 : PTX_LD_GLOBAL_B32),
		    two = shared ? PTX_LD_SHARED_V2 : PTX_LD_GLOBAL_V2;

	ptx_meet(e, shared);
	for (unsigned k = 0; k < cells(shape); k += step) {
		unsigned at = element_of(shape, k);
		if (i->op == IR_tload_top && at >> 1 & 1) { /* row g once more */
			for (unsigned j = at; j < at + step; j++)
				PTX_PUT(w, MOV_B32, element(e, i->dst, j), element(e, i->dst, j & ~2u));
			continue;
		}
		op from = ptx_address(e, i->a, element_disp(i, at), lanes(i, PTX_LANES_TILE)),
		   d = step == 2 ? tuple(&e->tile[i->dst].reg[k], 2) : element(e, i->dst, at);
		if (!half) {
			PTX_PUT_OP(w, step == 2 ? two : one, d, from);
			continue;
		}
		op h = ptx_new(w, PTX_B16);
		PTX_PUT_OP(w, one, h, from);
		PTX_PUT(w, CVT_F32_F16, d, h);
	}
}

static void store(struct ptx_emitter *e, const struct ir_ins *i)
{
	const bool shared = is_shared(e, i), two = pairs(e, i);

	ptx_meet_readers(e, shared);
	for (unsigned at = 0; at < PTX_TILE_WORDS; at += two ? 2 : 1) {
		if (i->op == IR_tstore_top && at >> 1 & 1) /* row g + 8 */
			continue;
		op to = ptx_address(e, i->a, element_disp(i, at), lanes(i, PTX_LANES_TILE)), v = element(e, i->b, at),
		   both[] = { v, element(e, i->b, at + two) };
		if (two)
			v = tuple((uint32_t[]){ both[0].reg[0], both[1].reg[0] }, 2);
		ptx_store(&e->w, shared ? 1 : e->cards,
		          shared ? (two ? PTX_ST_SHARED_V2 : PTX_ST_SHARED_B32)
		                 : (two ? PTX_ST_GLOBAL_V2 : PTX_ST_GLOBAL_B32),
		          to, v);
	}
}

/* Registers are in the order in which the instruction has them: vectors of a strip are its first and second k's. */
static void load_matrices(struct ptx_emitter *e, const struct ir_ins *i)
{
	const bool first = e->scan.reg[i->dst].first;
	const bool swizzled = i->op == IR_oload_swizzled;
	const uint64_t rows = swizzled                ? (first ? PTX_LANES_FIRST_SWIZZLED : PTX_LANES_SECOND_SWIZZLED)
	                      : !first                ? PTX_LANES_SECOND
	                      : i->op == IR_oload_top ? PTX_LANES_TOP
	                                              : PTX_LANES_FIRST;
	const uint32_t *r = e->tile[i->dst].reg, swapped[] = { r[0], r[2], r[1], r[3] };

	PTX_PUT(&e->w, LOAD_MATRIX, tuple(first ? swapped : r, 4),
	        ptx_address(e, i->a, ir_x_disp(i->imm), lanes(i, rows)));
}

static void load_operand(struct ptx_emitter *e, const struct ir_ins *i)
{
	const bool shared = is_shared(e, i);
	const uint64_t kind = i->op == IR_oload_swizzled ? PTX_LANES_STRIP_SWIZZLED : PTX_LANES_STRIP;
	struct ptx_tile *t = &e->tile[i->dst];

	ptx_meet(e, shared);
	for (unsigned k = 0; k < 4; k++)
		t->reg[k] = ptx_new(&e->w, PTX_B32).reg[0];
	if (shared && e->scan.matrices) {
		load_matrices(e, i);
		return;
	}
	for (unsigned k = 0; k < 2; k++) {
		const int64_t strip = i->op == IR_oload_top ? 0 : k * INT64_C(8);
		PTX_PUT_OP(&e->w, shared ? PTX_LD_SHARED_V2 : PTX_LD_GLOBAL_V2, tuple(t->reg + 2 * k, 2),
		           ptx_address(e, i->a, ir_x_disp(i->imm) + strip * ir_x_stride(i->imm), lanes(i, kind)));
	}
}

static void store_operand(struct ptx_emitter *e, const struct ir_ins *i)
{
	const bool shared = is_shared(e, i);

	ptx_meet_readers(e, shared);
	for (unsigned k = 0; k < 2; k++)
		PTX_PUT_OP(&e->w, shared ? PTX_ST_SHARED_V2 : PTX_ST_GLOBAL_V2,
		           ptx_address(e, i->a, ir_x_disp(i->imm) + k * INT64_C(8) * ir_x_stride(i->imm),
		                       lanes(i, PTX_LANES_STRIP)),
		           tuple(e->tile[i->b].reg + 2 * k, 2));
}

/* --- products */

/* Sums that are held with the bias begin at it, not at 0. */
static void dot(struct ptx_emitter *e, const struct ir_ins *i)
{
	struct ptx_writer *w = &e->w;
	enum ptx_op by = i->type == IR_TYPE_i8 ? PTX_MMA_S8 : i->type == IR_TYPE_f16 ? PTX_MMA_F16 : PTX_MMA_BF16;
	const uint32_t *a = e->tile[i->a].reg, *b = e->tile[i->b].reg;
	uint32_t first[] = { a[0], a[2], a[1], a[3] };
	op bias = ptx_imm(0);

	give(e, i->dst, PTX_FULL);
	if (e->scan.reg[i->dst].biased) {
		bias = ptx_new(w, PTX_B32);
		PTX_PUT(w, MOV_B32, bias, ptx_imm(PTX_BIAS));
	}
	for (unsigned h = 0; h < 2; h++) {
		uint32_t from[4];
		for (unsigned k = 0; k < 4; k++)
			from[k] = bias.kind == PTX_REGISTER ? bias.reg[0] : element(e, i->c, 4 * h + k).reg[0];
		PTX_PUT_OP(w, by, tuple(e->tile[i->dst].reg + 4 * h, 4), tuple(first, 4), tuple(b + 2 * h, 2),
		           tuple(from, 4));
	}
}

bool ptx_matrix(struct ptx_emitter *e, const struct ir_ins *i)
{
	switch (ir_row(i)) {
	case IR_tconst:
	case IR_tmov: move(e, i); return true;
	case IR_tmul:
	case IR_tfma:
	case IR_ti2f: compute(e, i); return true;
	case IR_tload:
	case IR_tload_top:
	case IR_tload_h: load(e, i); return true;
	case IR_tstore:
	case IR_tstore_top: store(e, i); return true;
	case IR_oload:
	case IR_oload_swizzled:
	case IR_oload_top: load_operand(e, i); return true;
	case IR_ostore: store_operand(e, i); return true;
	case IR_tdot_i8:
	case IR_tdot_f16:
	case IR_tdot_bf16: dot(e, i); return true;
	default: return false;
	}
}

/* jit/rdna/select_matrix.c - tiles, operands and products of matrices.
 *
 * Owns: how a tile and an operand lie over registers and lanes, which the IR does not know. A tile takes eight
 * registers; one whose rows are all alike takes one, and a constant none. With n the register, c the lane in its half
 * of the wave and h that half:
 *
 *   gfx11   tile: element (2n + h, c)      operand: strip c in eight registers, the same in both halves
 *   gfx12   tile: element (n + 8h, c)      operand: vector h of strip c in four registers
 *
 * For floats a vector is what half a wave of gfx12 holds of a row. Products of bytes take the first and then the second
 * half of what a lane has: which k's these are does not matter, since both factors say the same and sums of integers
 * know no order. Rule for editors: a product may write where its addend lies, never where its factors do.
 */
#include "jit/rdna/select.h"

enum { TILE_WORDS = 8 };

static bool halves_apart(const struct rsel *s) { return s->gen == RDNA_GFX12; }

static unsigned operand_words(const struct rsel *s) { return halves_apart(s) ? 4 : 8; }

/* --- tiles as operands */

/* All of a tile: a tuple of eight, one register or a constant. */
static rsel_op tile_any(struct rsel *s, uint16_t r)
{
	if (!s->ir->is_var[r] && s->scan.reg[r].fold == RSCAN_CONST)
		return rdna_lir_imm((uint32_t)rsel_definition(s, r)->imm);
	return rsel_home(s, r)->o;
}

/* Register n of it. */
static rsel_op tile_word(const struct rsel *s, rsel_op tile, unsigned n)
{
	return tile.n == TILE_WORDS ? rdna_lir_words(tile.reg, n, 1) : tile;
}

static rsel_op give_new(struct rsel *s, const struct ir_ins *i, unsigned words)
{
	rsel_op o = rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_VGPR, words));

	s->value[i->dst] = (struct rsel_value){ .kind = RSEL_VECTOR, .o = o };
	return o;
}

/* Where a tile goes that has `words` registers if it is no variable. */
static rsel_op tile_dst(struct rsel *s, const struct ir_ins *i, unsigned words)
{
	return s->ir->is_var[i->dst] ? rsel_home(s, i->dst)->o : give_new(s, i, words);
}

static void rsel_tile_move(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op from = i->op == IR_const ? rdna_lir_imm((uint32_t)i->imm) : tile_any(s, i->a),
		to = tile_dst(s, i, TILE_WORDS);

	for (unsigned n = 0; n < TILE_WORDS; n++)
		rsel_mov(s, tile_word(s, to, n), tile_word(s, from, n));
}

/* Element by element. */
static void rsel_tile_math(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = tile_any(s, i->a), b = i->b ? tile_any(s, i->b) : rsel_none(),
		c = i->c ? tile_any(s, i->c) : rsel_none();
	rsel_op d = tile_dst(s, i, a.n == TILE_WORDS || b.n == TILE_WORDS || c.n == TILE_WORDS ? TILE_WORDS : 1);

	for (unsigned n = 0; n < d.n; n++)
		rsel_valu(s, r->op, tile_word(s, d, n), tile_word(s, a, n), tile_word(s, b, n), tile_word(s, c, n));
}

/* --- memory */

/* Bytes from a tile's register to the next; from half a wave to the other. */
static uint32_t register_step(const struct rsel *s, uint32_t stride) { return halves_apart(s) ? stride : 2 * stride; }
static uint32_t half_step(const struct rsel *s, uint32_t stride)
{
	return halves_apart(s) ? TILE_WORDS * stride : stride;
}

/* One instruction that loads into, or stores, `data`; offset: from the address. */
static void access(struct rsel *s, unsigned global, unsigned lds, const struct rsel_pointer *p, int64_t offset,
                   rsel_op lanes, rsel_op data, bool store)
{
	int64_t limit = s->gen == RDNA_GFX12 ? 1 << 23 : 1 << 12;
	struct rsel_pointer at = *p;
	rsel_op base = rsel_none();
	int32_t disp = (int32_t)offset;

	if (!p->lds) {
		at.disp += offset;
		base = rsel_base(s, &at, -limit, limit - 1, &disp);
	}
	struct rdna_lir_ins *n = rsel_add(s, p->lds ? lds : global);
	n->s[0] = lanes;
	n->saddr = base;
	n->offset = disp;
	n->memory = p->lds ? RDNA_MEM_LDS : RDNA_MEM_GLOBAL;
	n->stores = store;
	if (store)
		n->s[1] = data;
	else
		n->d[0] = data;
}

/* What lanes add to an address; LDS has no other part of it. */
static rsel_op lane_part(struct rsel *s, const struct rsel_pointer *p, uint32_t by_column, uint32_t by_half)
{
	rsel_op lanes = rsel_tile_lanes(s, by_column, by_half);

	if (!p->lds)
		return lanes;
	rsel_op sum = rsel_new_vgpr(s);
	rsel_valu(s, RDNA_V_ADD_NC_U32, sum, rsel_lds_sum(s, p), lanes, rsel_none());
	return sum;
}

static void rsel_tile_load(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	uint32_t stride = ir_x_stride(i->imm);
	struct rsel_pointer p = rsel_pointer(s, i->a, ir_x_disp(i->imm));
	rsel_op lanes = lane_part(s, &p, ir_t_step(i->imm), half_step(s, stride)),
		d = tile_dst(s, i, stride ? TILE_WORDS : 1);

	for (unsigned n = 0; n < d.n; n++) {
		rsel_op to = tile_word(s, d, n), got = i->type == IR_TYPE_f16 ? rsel_new_vgpr(s) : to;
		access(s, r->op, r->other, &p, (int64_t)n * register_step(s, stride), lanes, got, false);
		if (i->type == IR_TYPE_f16)
			rsel_valu(s, RDNA_V_CVT_F32_F16, to, got, rsel_none(), rsel_none());
	}
}

static void rsel_tile_store(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	uint32_t stride = ir_x_stride(i->imm);
	rsel_op v = tile_any(s, i->b);
	struct rsel_pointer p = rsel_pointer(s, i->a, ir_x_disp(i->imm));
	rsel_op lanes = lane_part(s, &p, ir_t_step(i->imm), half_step(s, stride));

	for (unsigned n = 0; n < TILE_WORDS; n++)
		access(s, r->op, r->other, &p, (int64_t)n * register_step(s, stride), lanes,
		       rsel_to_vgpr(s, tile_word(s, v, n)), true);
}

static void rsel_operand_load(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	int64_t apart = (int64_t)ir_t_step(i->imm) * IR_VECTOR_BYTES;
	struct rsel_pointer p = rsel_pointer(s, i->a, ir_x_disp(i->imm));
	rsel_op lanes = lane_part(s, &p, ir_x_stride(i->imm), halves_apart(s) ? (uint32_t)apart : 0),
		d = give_new(s, i, operand_words(s));

	for (unsigned n = 0; n < d.n; n += 4)
		access(s, r->op, r->other, &p, n ? apart : 0, lanes, rdna_lir_words(d.reg, n, 4), false);
}

/* --- products */

/* The addend as the instruction takes it: eight registers, or nothing. */
static rsel_op addend(struct rsel *s, uint16_t r)
{
	rsel_op c = tile_any(s, r);

	if (c.n == TILE_WORDS || (c.kind == RDNA_LIR_CONST && c.value == 0))
		return c;
	rsel_op all = rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_VGPR, TILE_WORDS));
	for (unsigned n = 0; n < TILE_WORDS; n++)
		rsel_mov(s, tile_word(s, all, n), c);
	return all;
}

static void product(struct rsel *s, unsigned op, rsel_op d, rsel_op a, rsel_op b, rsel_op c)
{
	struct rdna_lir_ins *n = rsel_add(s, op);

	n->d[0] = d;
	n->s[0] = a;
	n->s[1] = b;
	n->s[2] = c;
}

static void rsel_tile_dot(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_home(s, i->a)->o, b = rsel_home(s, i->b)->o, c = addend(s, i->c),
		d = tile_dst(s, i, TILE_WORDS);
	unsigned half = operand_words(s) / 2;

	if (i->type != IR_TYPE_i8) {
		product(s, r->op, d, a, b, c);
		return;
	}
	for (unsigned k = 0; k < 2; k++) {
		rsel_op x = rdna_lir_words(a.reg, k * half, half), y = rdna_lir_words(b.reg, k * half, half);
		x.mods = y.mods = RDNA_NEG; /* which here says that there are signs */
		product(s, r->op, d, x, y, k ? d : c);
	}
}

const struct rsel_rule rsel_matrix_rules[IR_ROWS] = {
	[IR_tconst] = { .select = rsel_tile_move },
	[IR_tmov] = { .select = rsel_tile_move },
	[IR_tmul] = { .select = rsel_tile_math, .op = RDNA_V_MUL_F32 },
	[IR_tfma] = { .select = rsel_tile_math, .op = RDNA_V_FMA_F32 },
	[IR_ti2f] = { .select = rsel_tile_math, .op = RDNA_V_CVT_F32_I32 },
	[IR_tload] = { .select = rsel_tile_load, .op = RDNA_GLOBAL_LOAD_B32, .other = RDNA_DS_LOAD_B32 },
	[IR_tload_h] = { .select = rsel_tile_load, .op = RDNA_GLOBAL_LOAD_U16, .other = RDNA_DS_LOAD_U16 },
	[IR_tstore] = { .select = rsel_tile_store, .op = RDNA_GLOBAL_STORE_B32, .other = RDNA_DS_STORE_B32 },
	[IR_oload] = { .select = rsel_operand_load, .op = RDNA_GLOBAL_LOAD_B128 },
	[IR_tdot_i8] = { .select = rsel_tile_dot, .op = RDNA_V_WMMA_I32_16X16X16_IU8 },
	[IR_tdot_f16] = { .select = rsel_tile_dot, .op = RDNA_V_WMMA_F32_16X16X16_F16 },
	[IR_tdot_bf16] = { .select = rsel_tile_dot, .op = RDNA_V_WMMA_F32_16X16X16_BF16 },
};

/* jit/rdna/select_memory.c - loads and stores of global memory and of LDS.
 *
 * Owns: the rows of memory. Global vectors go by a scalar base, an offset for each lane that was made at the entry, and
 * a displacement; what all lanes share comes through the scalar cache. LDS goes by one vector register of addresses
 * without sign: a base lies in LDS itself. Groups of loads are done where their first member stands. Rule for
 * editors: lanes that take no part in a load keep what was in the register, so it is cleared before.
 */
#include "jit/rdna/select.h"

/* --- addresses */

static void global_range(const struct rsel *s, int64_t *low, int64_t *high)
{
	int64_t limit = s->gen == RDNA_GFX10_3 ? 1 << 11 : s->gen == RDNA_GFX12 ? 1 << 23 : 1 << 12;

	*low = -limit;
	*high = limit - 1;
}

/* The global instruction's address: the lanes' offsets, the base, the displacement. */
struct rsel_address {
	rsel_op lanes, base;
	int32_t offset;
};

static struct rsel_address global_address(struct rsel *s, const struct rsel_pointer *p, rsel_op lanes)
{
	struct rsel_address a = { .lanes = lanes };
	int64_t low, high;

	global_range(s, &low, &high);
	a.base = rsel_base(s, p, low, high, &a.offset);
	return a;
}

/* base + far and the lanes' offsets. */
static rsel_op lds_lanes(struct rsel *s, const struct rsel_pointer *p, uint32_t stride, int64_t far)
{
	uint32_t known = rsel_remembered(s, p, stride, far);

	if (known)
		return rdna_lir_r(s->l, known);
	struct rsel_pointer at = *p;
	at.disp = far;
	rsel_op base = rsel_lds_sum(s, &at), d = rsel_new_vgpr(s);
	if (stride)
		rsel_valu(s, RDNA_V_ADD_NC_U32, d, base, rsel_at_entry(s, RSEL_LANES, stride), rsel_none());
	else
		rsel_mov(s, d, base);
	rsel_remember(s, p, stride, far, d.reg);
	return d;
}

static struct rsel_address lds_address(struct rsel *s, const struct rsel_pointer *p, uint32_t stride)
{
	int64_t far =
		p->disp < 0 || p->disp > UINT16_MAX ? p->disp : 0; /* the instruction holds 16 bits without sign */
	struct rsel_address a = { .offset = (int32_t)(p->disp - far) };

	if (p->base.kind == RDNA_LIR_NONE && !far)
		a.lanes = rsel_at_entry(s, p->locals ? RSEL_LOCAL_LANES : RSEL_LANES, stride);
	else
		a.lanes = lds_lanes(s, p, stride, far);
	return a;
}

static struct rsel_address lane_address(struct rsel *s, const struct rsel_pointer *p, uint32_t stride)
{
	return p->lds ? lds_address(s, p, stride) : global_address(s, p, rsel_at_entry(s, RSEL_LANES, stride));
}

static struct rdna_lir_ins *access(struct rsel *s, unsigned op, const struct rsel_pointer *p,
                                   const struct rsel_address *a)
{
	struct rdna_lir_ins *n = rsel_add(s, op);

	n->s[0] = a->lanes;
	n->saddr = a->base;
	n->offset = a->offset;
	n->memory = p->lds ? RDNA_MEM_LDS : RDNA_MEM_GLOBAL;
	return n;
}

/* Whether some lanes take no part: those from lane n on, and those that i's mask is not set for. */
static bool is_partial(const struct ir_ins *i, unsigned n) { return i->mask || n < 32; }

/* The lanes of i's mask below n, in a scalar register. */
static rsel_op lanes_of_mask(struct rsel *s, const struct ir_ins *i, unsigned n)
{
	rsel_op mask = rsel_mask(s, i->mask);

	if (n == 32)
		return mask;
	rsel_op some = rsel_new_sgpr(s);
	rsel_salu(s, RDNA_S_AND_B32, some, mask, rdna_lir_imm((1u << n) - 1));
	return some;
}

/* access() by the lanes of i, of the first n. */
static struct rdna_lir_ins *access_some(struct rsel *s, unsigned op, const struct rsel_pointer *p,
                                        const struct rsel_address *a, const struct ir_ins *i, unsigned n)
{
	rsel_op mask = i->mask ? lanes_of_mask(s, i, n) : rsel_none();
	struct rdna_lir_ins *ins = access(s, op, p, a);

	ins->s[3] = mask;
	ins->exec = i->mask || n == 32 ? 0 : (1u << n) - 1;
	return ins;
}

/* --- scalar loads */

static void load_scalars(struct rsel *s, const struct rsel_pointer *p, rsel_op d)
{
	static const uint16_t op[17] = { [1] = RDNA_S_LOAD_B32,  [2] = RDNA_S_LOAD_B64,  [3] = RDNA_S_LOAD_B96,
		                         [4] = RDNA_S_LOAD_B128, [8] = RDNA_S_LOAD_B256, [16] = RDNA_S_LOAD_B512 };
	int64_t limit = s->gen == RDNA_GFX12 ? 1 << 23 : 1 << 20;
	int32_t offset;
	rsel_op base = rsel_base(s, p, -limit, limit - 1, &offset);
	struct rdna_lir_ins *n = rsel_add(s, op[d.n]);

	n->d[0] = d;
	n->s[0] = base;
	n->offset = offset;
	n->memory = RDNA_MEM_CONST;
}

/* --- groups */

static const uint16_t global_words[5] = { 0, RDNA_GLOBAL_LOAD_B32, RDNA_GLOBAL_LOAD_B64, RDNA_GLOBAL_LOAD_B96,
	                                  RDNA_GLOBAL_LOAD_B128 };
static const uint16_t lds_words[5] = { 0, RDNA_DS_LOAD_B32, RDNA_DS_LOAD_B64, RDNA_DS_LOAD_B96, RDNA_DS_LOAD_B128 };

void rsel_load_lanes(struct rsel *s, const struct rsel_pointer *p, uint32_t stride, rsel_op d)
{
	struct rsel_address a = lane_address(s, p, stride);

	access(s, p->lds ? lds_words[d.n] : global_words[d.n], p, &a)->d[0] = d;
}

/* The words that instruction i loads, out of its group's, which are loaded now if i is the first of it. */
static rsel_op group_words(struct rsel *s, const struct ir_ins *i, unsigned words)
{
	uint32_t number = s->scan.group[s->at], word = s->scan.word[s->at];
	const struct rscan_group *g = &s->scan.groups[number];
	uint32_t stride = i->op == IR_load_strided ? ir_x_stride(i->imm) : 0;
	int64_t disp = ir_disp(i);

	if (!s->tuple[number]) {
		struct rsel_pointer p = rsel_pointer(s, i->a, disp - 4 * (int64_t)word);
		s->tuple[number] =
			rdna_lir_new(s->l, g->family == RSCAN_SCALAR ? RDNA_CLASS_SGPR : RDNA_CLASS_VGPR, g->words);
		rsel_op d = rdna_lir_r(s->l, s->tuple[number]);
		if (g->family == RSCAN_SCALAR)
			load_scalars(s, &p, d);
		else
			rsel_load_lanes(s, &p, stride, d);
	}
	return rdna_lir_words(s->tuple[number], word, words);
}

/* A word of a vector register as i's result, which is no variable. */
static void give_word(struct rsel *s, const struct ir_ins *i, rsel_op o)
{
	s->value[i->dst] = (struct rsel_value){ .kind = RSEL_VECTOR, .o = o };
}

/* --- rows */

/* fbcast, ibcast */
static void rsel_broadcast(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	if (!s->scan.group[s->at]) { /* of LDS, into a variable */
		struct rsel_pointer p = rsel_pointer(s, i->a, i->imm);
		rsel_load_lanes(s, &p, 0, rsel_dst(s, i));
		return;
	}
	rsel_op o = group_words(s, i, 1);
	if (rsel_is_vgpr(s, &o))
		give_word(s, i, o);
	else
		rsel_give_uniform(s, i, o);
}

/* One load, of lanes that i says. op: the global load; other: that of LDS. */
static void load_some(struct rsel *s, const struct ir_ins *i, const struct rsel_pointer *p, struct rsel_address a,
                      const struct rsel_rule *r)
{
	unsigned n = ir_facts_of(i)->imm == IR_IMM_x ? ir_x_lanes(i->imm, 32) : 32;
	rsel_op d = rsel_dst(s, i);

	for (unsigned k = 0; is_partial(i, n) && k < d.n; k++)
		rsel_mov(s, d.n == 1 ? d : rdna_lir_words(d.reg, k, 1), rdna_lir_imm(0));
	access_some(s, p->lds ? r->other : r->op, p, &a, i, n)->d[0] = d;
}

static void rsel_load_strided(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	if (s->scan.group[s->at]) {
		give_word(s, i, group_words(s, i, 1));
		return;
	}
	struct rsel_pointer p = rsel_pointer(s, i->a, ir_x_disp(i->imm));
	if (i->mask)
		load_some(s, i, &p, lane_address(s, &p, ir_x_stride(i->imm)), r);
	else
		rsel_load_lanes(s, &p, ir_x_stride(i->imm), rsel_dst(s, i));
}

/* sload32, sload64, aload. What lies in LDS comes by way of lane 0. */
static void rsel_load_scalar(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	unsigned words = r->extra;

	if (s->scan.group[s->at]) {
		rsel_give_loaded(s, i, group_words(s, i, words));
		return;
	}
	struct rsel_pointer p = rsel_pointer(s, i->a, i->imm);
	uint32_t from = rdna_lir_new(s->l, RDNA_CLASS_VGPR, words), to = rdna_lir_new(s->l, RDNA_CLASS_SGPR, words);
	rsel_load_lanes(s, &p, 0, rdna_lir_r(s->l, from));
	for (unsigned k = 0; k < words; k++) {
		struct rdna_lir_ins *n = rsel_add(s, RDNA_V_READFIRSTLANE_B32);
		n->d[0] = rdna_lir_words(to, k, 1);
		n->s[0] = rdna_lir_words(from, k, 1);
	}
	rsel_give_loaded(s, i, rdna_lir_r(s->l, to));
}

void rsel_load(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_pointer p = rsel_pointer(s, i->a, ir_x_disp(i->imm));

	load_some(s, i, &p, lane_address(s, &p, r->extra), r);
}

/* A plan's barriers stand between who gives and who awaits. */
static void rsel_await(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_pointer p = rsel_pointer(s, i->a, ir_x_disp(i->imm));

	if (ir_x_stride(i->imm) == 4)
		rsel_load(s, i, r);
	else
		rsel_load_lanes(s, &p, ir_x_stride(i->imm), rsel_dst(s, i));
}

static bool is_half(const struct rsel *s, const struct ir_ins *i)
{
	return !s->ir->is_var[i->dst] && s->scan.reg[i->dst].fold == RSCAN_HALF;
}

/* fload_h: widened here unless those who use it do that. */
static void rsel_load_halves(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_pointer p = rsel_pointer(s, i->a, ir_x_disp(i->imm));
	struct rsel_address a = lane_address(s, &p, 2);
	rsel_op half = rsel_new_vgpr(s);
	unsigned n = ir_x_lanes(i->imm, 32);

	if (is_partial(i, n))
		rsel_mov(s, half, rdna_lir_imm(0));
	access_some(s, p.lds ? RDNA_DS_LOAD_U16 : RDNA_GLOBAL_LOAD_U16, &p, &a, i, n)->d[0] = half;
	if (is_half(s, i))
		give_word(s, i, half);
	else
		rsel_valu(s, RDNA_V_CVT_F32_F16, rsel_dst(s, i), half, rsel_none(), rsel_none());
}

/* fbcast_h: only the newest cards' scalar cache gives 16 bits. */
static void rsel_broadcast_half(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_pointer p = rsel_pointer(s, i->a, i->imm);
	rsel_op half;

	if (!p.lds && rdna_has(RDNA_S_LOAD_U16, s->gen)) {
		int32_t offset;
		rsel_op base = rsel_base(s, &p, -(1 << 23), (1 << 23) - 1, &offset);
		half = rsel_new_sgpr(s);
		struct rdna_lir_ins *n = rsel_add(s, RDNA_S_LOAD_U16);
		n->d[0] = half;
		n->s[0] = base;
		n->offset = offset;
		n->memory = RDNA_MEM_CONST;
	} else {
		struct rsel_address a = lane_address(s, &p, 0);
		half = rsel_new_vgpr(s);
		access(s, p.lds ? RDNA_DS_LOAD_U16 : RDNA_GLOBAL_LOAD_U16, &p, &a)->d[0] = half;
	}
	rsel_valu(s, RDNA_V_CVT_F32_F16, rsel_dst(s, i), half, rsel_none(), rsel_none());
}

static void rsel_gather(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_pointer p = rsel_pointer(s, i->a, i->imm);
	rsel_op offsets = rsel_vgpr(s, i->b);
	struct rsel_address a = { .lanes = offsets };

	if (i->mask && s->ir->is_var[i->dst] && !p.lds && offsets.reg == rsel_home(s, i->dst)->o.reg) {
		a.lanes = rsel_new_vgpr(s); /* for the destination is cleared before */
		rsel_mov(s, a.lanes, offsets);
		offsets = a.lanes;
	}
	if (p.lds) {
		a.lanes = rsel_new_vgpr(s);
		rsel_valu(s, RDNA_V_ADD_NC_U32, a.lanes, rsel_lds_sum(s, &p), offsets, rsel_none());
	} else {
		a = global_address(s, &p, offsets);
	}
	load_some(s, i, &p, a, r);
}

/* Where the lanes' elements are: their numbers times the size of one, from p on. */
static struct rsel_address element_address(struct rsel *s, const struct ir_ins *i, const struct rsel_pointer *p)
{
	const unsigned bytes = ir_types[i->type].bytes;
	rsel_op index = rsel_vgpr(s, i->b), offsets = rsel_new_vgpr(s);

	if (bytes == 1)
		rsel_mov(s, offsets, index);
	else
		rsel_valu(s, RDNA_V_LSHLREV_B32, offsets, rdna_lir_imm((uint32_t)__builtin_ctz(bytes)), index,
		          rsel_none());
	if (!p->lds)
		return global_address(s, p, offsets);
	struct rsel_address a = { .lanes = rsel_new_vgpr(s) };
	rsel_valu(s, RDNA_V_ADD_NC_U32, a.lanes, rsel_lds_sum(s, p), offsets, rsel_none());
	return a;
}

static void rsel_gather_at(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_pointer p = rsel_pointer(s, i->a, i->imm);

	load_some(s, i, &p, element_address(s, i, &p), r);
}

/* Scatters, and atomics, which the second cache does: other compute units have their own first ones. */
static void rsel_scatter(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_pointer p = rsel_pointer(s, i->a, i->imm);
	rsel_op data = ir_types[i->type].bytes == 8 ? rsel_home(s, i->c)->o : rsel_vgpr(s, i->c);
	struct rsel_address a = element_address(s, i, &p);
	struct rdna_lir_ins *ins = access_some(s, p.lds ? r->other : r->op, &p, &a, i, 32);

	ins->s[1] = data;
	ins->stores = true;
	if (r->extra && !p.lds && s->gen == RDNA_GFX12)
		ins->scope = RDNA_SCOPE_DEV;
}

void rsel_store(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	unsigned n = i->op == IR_store_first ? 1 : ir_x_lanes(i->imm, 32);
	struct rsel_pointer p = rsel_pointer(s, i->a, ir_disp(i));
	rsel_op data;

	if (r->extra == 8) {
		data = rsel_home(s, i->b)->o;
	} else if (i->type == IR_TYPE_f16) {
		data = rsel_new_vgpr(s);
		rsel_valu(s, RDNA_V_CVT_F16_F32, data, rsel_any(s, i->b), rsel_none(), rsel_none());
	} else {
		data = rsel_vgpr(s, i->b);
	}
	struct rsel_address a = lane_address(s, &p, r->extra ? r->extra : ir_x_stride(i->imm));
	struct rdna_lir_ins *ins = access_some(s, p.lds ? r->other : r->op, &p, &a, i, n);
	ins->s[1] = data;
	ins->stores = true;
}

#define RSEL_LOAD(bytes, x, y) \
	{ \
		.select = rsel_load, .op = RDNA_GLOBAL_LOAD_##x, .other = RDNA_DS_LOAD_##y, .extra = bytes \
	}
#define RSEL_GATHER \
	{ \
		.select = rsel_gather, .op = RDNA_GLOBAL_LOAD_B32, .other = RDNA_DS_LOAD_B32 \
	}
#define RSEL_STORE(bytes, x) \
	{ \
		.select = rsel_store, .op = RDNA_GLOBAL_STORE_##x, .other = RDNA_DS_STORE_##x, .extra = bytes \
	}

#define RSEL_GATHER_AT(x, y) \
	{ \
		.select = rsel_gather_at, .op = RDNA_GLOBAL_LOAD_##x, .other = RDNA_DS_LOAD_##y \
	}
#define RSEL_SCATTER(x) \
	{ \
		.select = rsel_scatter, .op = RDNA_GLOBAL_STORE_##x, .other = RDNA_DS_STORE_##x \
	}
#define RSEL_ATOMIC(x) \
	{ \
		.select = rsel_scatter, .op = RDNA_GLOBAL_ATOMIC_##x, .other = RDNA_DS_##x, .extra = true \
	}

const struct rsel_rule rsel_memory_rules[IR_ROWS] = {
	[IR_igather_32] = RSEL_GATHER_AT(B32, B32),
	[IR_igather_8] = RSEL_GATHER_AT(U8, U8),
	[IR_igather_16] = RSEL_GATHER_AT(U16, U16),
	[IR_lgather] = RSEL_GATHER_AT(B64, B64),
	[IR_iscatter_32] = RSEL_SCATTER(B32),
	[IR_iscatter_8] = RSEL_SCATTER(B8),
	[IR_iscatter_16] = RSEL_SCATTER(B16),
	[IR_lscatter] = RSEL_SCATTER(B64),
	[IR_iatomic_add] = RSEL_ATOMIC(ADD_U32),
	[IR_latomic_add] = RSEL_ATOMIC(ADD_U64),
	[IR_iatomic_min] = RSEL_ATOMIC(MIN_I32),
	[IR_iatomic_max] = RSEL_ATOMIC(MAX_I32),
	[IR_uatomic_min] = RSEL_ATOMIC(MIN_U32),
	[IR_uatomic_max] = RSEL_ATOMIC(MAX_U32),
	[IR_iatomic_and] = RSEL_ATOMIC(AND_B32),
	[IR_iatomic_or] = RSEL_ATOMIC(OR_B32),
	[IR_fload] = RSEL_LOAD(4, B32, B32),
	[IR_iload] = RSEL_LOAD(4, B32, B32),
	[IR_iload_u8] = RSEL_LOAD(1, U8, U8),
	[IR_iload_s8] = RSEL_LOAD(1, I8, I8),
	[IR_iload_u16] = RSEL_LOAD(2, U16, U16),
	[IR_fawait] = { .select = rsel_await, .op = RDNA_GLOBAL_LOAD_B32, .other = RDNA_DS_LOAD_B32, .extra = 4 },
	[IR_fawait_at] = RSEL_GATHER,
	[IR_fload_h] = { .select = rsel_load_halves },
	[IR_iload_s] = { .select = rsel_load_strided, .op = RDNA_GLOBAL_LOAD_B32, .other = RDNA_DS_LOAD_B32 },
	[IR_fbcast] = { .select = rsel_broadcast },
	[IR_ibcast] = { .select = rsel_broadcast },
	[IR_fbcast_h] = { .select = rsel_broadcast_half },
	[IR_igather] = RSEL_GATHER,
	[IR_fgive] = RSEL_STORE(4, B32),
	[IR_fstore] = RSEL_STORE(4, B32),
	[IR_fstore_h] = RSEL_STORE(2, B16),
	[IR_istore_8] = RSEL_STORE(1, B8),
	[IR_istore_16] = RSEL_STORE(2, B16),
	[IR_fstore1] = RSEL_STORE(4, B32),
	[IR_fstore_s] = RSEL_STORE(0, B32),
	[IR_fstore_hs] = RSEL_STORE(0, B16),
	[IR_sload32] = { .select = rsel_load_scalar, .extra = 1 },
	[IR_sload64] = { .select = rsel_load_scalar, .extra = 2 },
	[IR_aload] = { .select = rsel_load_scalar, .extra = 2 },
};

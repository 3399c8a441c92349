/* tests/jit/rdna_lir_random.c - see rdna_lir_random.h.
 *
 * Registers: v0 lane * 4; v1..v23 integers; v24..v27 floats made of bytes; v28..v31 sums; v32..v35 products,
 * reciprocals; v36..v39 wide loads. s16..s31 integers; s[32:33] in, s[34:35] out; s36..s39 masks; s40..s47 wide loads;
 * s48.. loop indices; s56.. loop counts. */
#include "tests/jit/rdna_lir_random.h"

#include "tests/jit/rdna_build.h"

enum {
	INTS = 23,
	SGPRS = 16,
	IN_BASE = 32,
	OUT_BASE = 34,
	MASK = 36,
	WIDE_S = 40,
	INDEX = 48,
	COUNT = 56,
	MAX_DEPTH = 3,
	SCRATCH_OUT = 4096
};

struct maker {
	struct rdna_lir *l;
	uint64_t x;
	unsigned depth, ifs; /* loops, ifs that are open */
};

static uint32_t draw(struct maker *m, uint32_t n)
{
	m->x = m->x * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(m->x >> 33) % n;
}

static operand any_int(struct maker *m) { return v(1 + draw(m, INTS)); }
static operand any_s(struct maker *m) { return s(16 + draw(m, SGPRS)); }
static operand any_source(struct maker *m)
{
	return draw(m, 4) ? any_int(m) : draw(m, 2) ? any_s(m) : imm(draw(m, 3) ? draw(m, 64) : draw(m, 1u << 30));
}
static operand any_float(struct maker *m) { return v(24 + draw(m, 4)); }

static void integer(struct maker *m)
{
	static const uint16_t ops[] = { RDNA_V_ADD_NC_U32, RDNA_V_XOR_B32,     RDNA_V_AND_B32, RDNA_V_SUB_NC_U32,
		                        RDNA_V_MIN_I32,    RDNA_V_LSHLREV_B32, RDNA_V_OR_B32 };
	unsigned k = draw(m, 9);
	if (k == 8)
		put(m->l, RDNA_V_ADD3_U32, any_int(m), any_int(m), any_source(m), any_int(m));
	else if (k == 7)
		put(m->l, RDNA_V_MOV_B32, any_int(m), any_source(m), NONE, NONE);
	else
		put(m->l, ops[k], any_int(m), any_source(m), any_int(m), NONE);
}

static void floating(struct maker *m)
{
	operand sum = v(28 + draw(m, 4)), t = v(32 + draw(m, 2));
	switch (draw(m, 6)) {
	case 0: put(m->l, RDNA_V_CVT_F32_UBYTE0, any_float(m), any_int(m), NONE, NONE); break;
	case 1: put(m->l, RDNA_V_MUL_F32, t, any_float(m), any_float(m), NONE); break;
	case 2: put(m->l, RDNA_V_ADD_F32, sum, sum, t, NONE); break;
	case 3: put(m->l, RDNA_V_RCP_F32, v(34 + draw(m, 2)), any_float(m), NONE, NONE); break;
	case 4: put(m->l, RDNA_V_CVT_U32_F32, any_int(m), v(34 + draw(m, 2)), NONE, NONE); break;
	default: put(m->l, RDNA_V_FMA_F32, sum, any_float(m), draw(m, 4) ? any_float(m) : imm(0x3fc00000), sum);
	}
}

static void scalar(struct maker *m)
{
	static const uint16_t ops[] = { RDNA_S_ADD_CO_U32, RDNA_S_XOR_B32, RDNA_S_MUL_I32, RDNA_S_ADD_CO_I32,
		                        RDNA_S_AND_B32 };
	operand d = any_s(m), mask = s(MASK + draw(m, 4));
	switch (draw(m, 6)) {
	case 0: put(m->l, RDNA_V_READFIRSTLANE_B32, d, any_int(m), NONE, NONE); break;
	case 1: put(m->l, RDNA_V_CMP_GT_I32, mask, any_source(m), any_int(m), NONE); break;
	case 2: put(m->l, RDNA_V_CNDMASK_B32, any_int(m), any_int(m), any_int(m), mask); break;
	case 3: put(m->l, RDNA_S_MOV_B32, d, imm(draw(m, 100000)), NONE, NONE); break;
	default:
		put(m->l, ops[draw(m, 5)], d, draw(m, 2) ? d : any_s(m), draw(m, 3) ? any_s(m) : imm(draw(m, 100000)),
		    NONE);
	}
}

/* --- memory. Lane l touches v0 = 4 * l bytes behind the offset. */

static void some_lanes(struct maker *m, struct rdna_lir_ins *i)
{
	unsigned how = draw(m, 12);
	i->exec = how == 0 ? 0x0000ffff : how == 1 ? 0x000000ff : 0;
	if (how == 2 || how == 3)
		i->s[3] = s(MASK + draw(m, 4));
}

static void global(struct maker *m)
{
	bool in = draw(m, 3), store = !in && draw(m, 2);
	unsigned k = draw(m, 3);
	static const uint16_t loads[] = { RDNA_GLOBAL_LOAD_B32, RDNA_GLOBAL_LOAD_B64, RDNA_GLOBAL_LOAD_B128 };
	struct rdna_lir_ins *i;
	if (store) {
		i = put(m->l, RDNA_GLOBAL_STORE_B32, NONE, v(0), any_int(m), NONE);
		i->stores = true;
	} else {
		i = put(m->l, loads[k], k == 0 ? any_int(m) : vn(36, k == 1 ? 2 : 4), v(0), NONE, NONE);
	}
	i->saddr = sn(in ? IN_BASE : OUT_BASE, 2);
	i->offset = (int32_t)(4 * draw(m, 480));
	some_lanes(m, i);
	i->memory = in ? RDNA_MEM_CONST : RDNA_MEM_GLOBAL;
}

static void scalar_load(struct maker *m)
{
	static const uint16_t loads[] = { RDNA_S_LOAD_B32, RDNA_S_LOAD_B64, RDNA_S_LOAD_B128 };
	bool in = draw(m, 3);
	unsigned k = draw(m, 3);
	struct rdna_lir_ins *i = put(m->l, loads[k], k == 0 ? any_s(m) : sn(WIDE_S + 4 * draw(m, 2), k == 1 ? 2 : 4),
	                             sn(in ? IN_BASE : OUT_BASE, 2), NONE, NONE);
	i->offset = (int32_t)(4 * draw(m, 480));
	i->memory = in ? RDNA_MEM_CONST : RDNA_MEM_GLOBAL;
}

static void lds(struct maker *m)
{
	unsigned k = draw(m, 3);
	struct rdna_lir_ins *i = k == 0   ? put(m->l, RDNA_DS_STORE_B32, NONE, v(0), any_int(m), NONE)
	                         : k == 1 ? put(m->l, RDNA_DS_LOAD_B32, any_int(m), v(0), NONE, NONE)
	                                  : put(m->l, RDNA_DS_SWIZZLE_B32, any_int(m), any_int(m), NONE, NONE);
	i->offset =
		k == 2 ? RDNA_SWIZZLE(31, 0, 1 << draw(m, 5)) : (int32_t)(4 * draw(m, (RDNA_LIR_RANDOM_LDS - 128) / 4));
	i->stores = k == 0;
	i->memory = k == 2 ? RDNA_MEM_NONE : RDNA_MEM_LDS;
	if (k < 2)
		some_lanes(m, i);
}

/* --- structure */

static void some(struct maker *m, unsigned size);

static void loop(struct maker *m, unsigned size)
{
	bool constant = draw(m, 2), index = draw(m, 4);
	unsigned d = m->depth++, count = draw(m, 4);
	if (!constant)
		put(m->l, RDNA_S_MOV_B32, s(COUNT + d), imm(count - (draw(m, 8) == 0)), NONE, NONE);
	put(m->l, RDNA_LIR_LOOP, index ? s(INDEX + d) : NONE, constant ? imm(count) : s(COUNT + d), NONE, NONE);
	if (index)
		put(m->l, RDNA_V_ADD_NC_U32, any_int(m), s(INDEX + d), any_int(m), NONE);
	some(m, size);
	if (index && draw(m, 4) == 0) /* as if the index were dead, and its register another's */
		put(m->l, RDNA_S_MOV_B32, s(INDEX + d), imm(draw(m, 9)), NONE, NONE);
	if (draw(m, 4) == 0)
		put(m->l, RDNA_S_MOV_B32, s(COUNT + d), imm(draw(m, 9)), NONE, NONE);
	rdna_lir_add(m->l, RDNA_LIR_ENDLOOP);
	m->depth--;
}

/* Integers and masks, all or some of whose bits are 0 now and then. */
static operand condition(struct maker *m)
{
	operand c = draw(m, 2) ? any_s(m) : s(MASK + draw(m, 4));
	if (draw(m, 2))
		put(m->l, RDNA_S_AND_B32, c, c, imm(1 + draw(m, 2)), NONE);
	return c;
}

static void branch(struct maker *m, unsigned size)
{
	if (m->depth && draw(m, 3) == 0) {
		operand c = condition(m);
		put(m->l, RDNA_LIR_BREAK, NONE, c, NONE, NONE);
	} else if (m->ifs < MAX_DEPTH) {
		operand c = condition(m);
		m->ifs++;
		put(m->l, RDNA_LIR_IF, NONE, c, NONE, NONE);
		some(m, size);
		if (draw(m, 2)) {
			rdna_lir_add(m->l, RDNA_LIR_ELSE);
			some(m, size);
		}
		rdna_lir_add(m->l, RDNA_LIR_ENDIF);
		m->ifs--;
	}
}

static void some(struct maker *m, unsigned size)
{
	for (unsigned k = 0; k < size; k++)
		switch (draw(m, 16)) {
		case 0:
		case 1:
		case 2: global(m); break;
		case 3:
		case 4: scalar_load(m); break;
		case 5:
		case 6: lds(m); break;
		case 7:
			if (draw(m, 4) == 0)
				put_barrier(m->l);
			break;
		case 8:
			if (draw(m, 3) == 0)
				branch(m, size / 4);
			else if (m->depth < MAX_DEPTH && draw(m, 2) == 0)
				loop(m, size / 3);
			break;
		case 9:
		case 10: scalar(m); break;
		case 11:
		case 12:
		case 13: floating(m); break;
		default: integer(m);
		}
}

static void prologue(struct maker *m)
{
	for (unsigned k = 0; k < 2; k++) {
		struct rdna_lir_ins *i =
			put(m->l, RDNA_S_LOAD_B64, sn(IN_BASE + 2 * k, 2), sn(RDNA_ABI_ARG, 2), NONE, NONE);
		i->offset = (int32_t)(8 * k);
		i->memory = RDNA_MEM_CONST;
	}
	put(m->l, RDNA_V_MBCNT_LO_U32_B32, v(0), imm(UINT32_MAX), imm(0), NONE);
	put(m->l, RDNA_V_LSHLREV_B32, v(0), imm(2), v(0), NONE);
	for (unsigned k = 1; k < 40; k++)
		put(m->l, RDNA_V_MOV_B32, v(k), k < 24 ? v(0) : imm(0), NONE, NONE);
	for (unsigned k = 0; k < SGPRS; k++)
		put(m->l, RDNA_S_MOV_B32, s(16 + k), imm(draw(m, 100000)), NONE, NONE);
	for (unsigned k = MASK; k < INDEX + 16; k++)
		put(m->l, RDNA_S_MOV_B32, s(k), imm(k), NONE, NONE);
	for (unsigned k = 0; k < RDNA_LIR_RANDOM_LDS; k += 128)
		put(m->l, RDNA_DS_STORE_B32, NONE, v(0), v(1 + k / 128 % INTS), NONE)->offset = (int32_t)k;
}

static void save(struct maker *m, unsigned n, operand from)
{
	struct rdna_lir_ins *i = put(m->l, RDNA_GLOBAL_STORE_B32, NONE, v(0), from, NONE);
	i->saddr = sn(OUT_BASE, 2);
	i->offset = (int32_t)(n % 8 * 128);
	if (n % 8 == 7)
		put(m->l, RDNA_V_ADD_NC_U32, v(0), imm(1024), v(0), NONE);
}

static void epilogue(struct maker *m)
{
	unsigned n = 0;
	put(m->l, RDNA_V_ADD_NC_U32, v(0), imm(SCRATCH_OUT), v(0), NONE);
	for (unsigned k = 1; k < 40; k++)
		save(m, n++, v(k));
	for (unsigned k = 16; k < INDEX; k++) {
		if (k >= IN_BASE && k < OUT_BASE + 2)
			continue;
		put(m->l, RDNA_V_MOV_B32, v(40), s(k), NONE, NONE);
		save(m, n++, v(40));
	}
}

void rdna_lir_random(struct rdna_lir *l, enum rdna_gen gen, uint64_t seed, unsigned size)
{
	struct maker m = { .l = l, .x = seed * 0x9e3779b97f4a7c15ull + 1 };
	rdna_lir_init(l, gen);
	l->allocated = true;
	l->shared_bytes = RDNA_LIR_RANDOM_LDS;
	prologue(&m);
	some(&m, size);
	epilogue(&m);
}

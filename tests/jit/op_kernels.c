/* tests/jit/op_kernels.c - see op_kernels.h. */
#include "tests/jit/op_kernels.h"

#include "jit/ir/lanes.h"

/* Bytes of a vector. */
static int32_t vector(const struct ir *b) { return (int32_t)b->lanes * 4; }

const uint32_t op_edges[OP_EDGES] = {
	0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001,
	0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f000000, 0x4b000001, 0x4effffff,
	0x0000001f, 0x00000020, 0x7f7f7f7f, 0x81818181, 0x12345678, 0xff8fffff, 0x3fc00000, 0x40200000,
	0x42b00000, 0xc2ae0000, 0xffff8000, 0x80008000, 0x7fff7fff, 0xfc007c00, 0x04000001, 0x83ff0001,
};

bool op_is_nan(uint32_t u) { return (u & 0x7fffffff) > 0x7f800000; }

void op_fill(uint32_t in[OP_WORDS], enum ir_op op)
{
	bool floats = ir_facts[op].a == IR_TYPE_f32 || ir_facts[op].b == IR_TYPE_f32;
	uint32_t state = 1;
	for (unsigned k = 0; k < OP_WORDS; k++) {
		uint32_t a = op_edges[k % OP_EDGES], b = op_edges[(k * 7 + k / OP_EDGES) % OP_EDGES];
		state = state * 1664525 + 1013904223;
		uint32_t u = k < OP_THIRD ? a : k < 2 * OP_THIRD ? b : (k & 1 ? state : a);
		if (floats && op_is_nan(u))
			u = 0x7fc00000;
		if (op == IR_f2i && ((u & 0x7fffffff) > 0x4e000000))
			u = 0x4e000000 | (u & 0x80000000);
		if (op == IR_dot4)
			for (unsigned s = 0; s < 32; s += 8)
				if ((u >> s & 0xff) == 0x80)
					u ^= 0x01u << s;
		if (op == IR_dot2b && k < OP_THIRD)
			u &= 0x7f7f7f7f;
		if (op == IR_ilut16)
			u &= 0x0f0f0f0f;
		in[k] = u;
	}
}

static bool is_vector(uint8_t kind) { return kind == IR_TYPE_f32 || kind == IR_TYPE_i32 || kind == IR_TYPE_m; }

void op_each_vector(unsigned lanes, void (*fn)(enum ir_op op, int64_t imm))
{
	static const int64_t shifts[] = { 0, 1, 7, 16, 31 };
	for (enum ir_op op = 0; op < IR_ROWS; op++) {
		const struct ir_facts *f = &ir_facts[op];
		if (!ir_is_row(op) || !is_vector(f->dst) || (f->a && !is_vector(f->a)) || op == IR_fmov ||
		    op == IR_imov || op == IR_fdot2 /* which few targets have */)
			continue;
		if (op == IR_ishl || op == IR_ishr || op == IR_isar || op == IR_irotl)
			for (unsigned k = 0; k < 5; k++)
				fn(op, shifts[k]);
		else if (op == IR_fxor)
			for (unsigned stride = 1; stride < lanes; stride *= 2)
				fn(op, stride);
		else if (op == IR_ilut16)
			for (unsigned k = 0; k < LANES_TABLES; k++)
				fn(op, k);
		else if (op == IR_fhalf)
			for (unsigned k = 0; k < 2; k++)
				fn(op, k);
		else
			fn(op, op == IR_fconst ? 0x40490fdb : op == IR_iconst ? -12345 : 0);
	}
}

static uint16_t operand(struct ir *b, ir_a in, uint8_t kind, enum op_form form, const uint32_t *words, int32_t at)
{
	ir_i w = form == OP_LANES     ? ir_iload(b, in, at)
	         : form == OP_UNIFORM ? ir_ibcast(b, in, at)
	                              : ir_iconst(b, (int32_t)words[at / 4]);
	switch (kind) {
	case IR_TYPE_f32:
		return form == OP_UNIFORM    ? ir_fbcast(b, in, at).r
		       : form == OP_CONSTANT ? ir_fconst(b, bits_f32(words[at / 4])).r
		                             : ir_fbits(b, w).r;
	case IR_TYPE_i32: return w.r;
	case IR_TYPE_m: return ir_igt(b, w, ir_iconst(b, 0)).r;
	default: return 0;
	}
}

static void store_kind(struct ir *b, ir_a out, uint8_t kind, uint16_t r, int32_t disp)
{
	ir_f f = { r };
	if (kind == IR_TYPE_i32)
		f = ir_fbits(b, (ir_i){ r });
	else if (kind == IR_TYPE_m)
		f = ir_fbits(b, ir_isel(b, (ir_m){ r }, ir_iconst(b, -1), ir_iconst(b, 0)));
	ir_fstore(b, out, f, disp, 0);
}

bool op_build_vector(struct ir *b, enum ir_op op, int64_t imm, unsigned dst_on, unsigned forms, const uint32_t *words)
{
	const struct ir_facts *f = &ir_facts[op];
	const uint8_t kind[3] = { f->a, f->b, f->c };
	if (dst_on && (kind[dst_on - 1] != f->dst || f->dst == IR_TYPE_m))
		return false;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	for (int32_t at = 0; at + vector(b) <= OP_THIRD * 4; at += vector(b)) {
		uint16_t r[3] = { 0 };
		for (unsigned k = 0; k < 3; k++)
			r[k] = is_vector(kind[k]) ? operand(b, in, kind[k], forms >> 2 * k & 3, words,
			                                    at + (int32_t)k * OP_THIRD * 4)
			                          : 0;
		uint16_t dst = 0;
		if (dst_on) {
			dst = f->dst == IR_TYPE_f32 ? ir_var_f(b, (ir_f){ r[dst_on - 1] }).r
			                            : ir_var_i(b, (ir_i){ r[dst_on - 1] }).r;
			r[dst_on - 1] = dst;
		}
		dst = ir_emit(b, op, dst, r[0], r[1], r[2], imm);
		store_kind(b, out, f->dst, dst, at);
	}
	return true;
}

void op_store_scalar(struct ir *b, ir_a out, ir_s v, int32_t *at)
{
	ir_fstore1(b, out, ir_fbits(b, ir_isplat(b, v)), *at);
	ir_fstore1(b, out, ir_fbits(b, ir_isplat(b, ir_sshri(b, v, 32))), *at + 4);
	*at += 8;
}

static const int64_t scalar_edges[] = {
	0,
	1,
	-1,
	2,
	5,
	63,
	64,
	1000003,
	INT32_MAX,
	INT32_MIN,
	-77,
	UINT32_MAX,
	INT64_C(0x123456789abcdef0),
	INT64_C(-0x7edcba9876543210)
};
enum { SCALARS = sizeof scalar_edges / sizeof *scalar_edges };

/* x as a scalar of which this is known: nothing, that it lies within 32 bits unsigned, or 31; else it is a constant. */
static ir_s known(struct ir *b, ir_a in, int32_t at, unsigned how, int64_t x)
{
	if (how == 1 && x >= 0 && x <= UINT32_MAX)
		return ir_sload32(b, in, at);
	if (how == 2 && x >= 0 && x <= INT32_MAX)
		return ir_sandi(b, ir_sload64(b, in, at), INT32_MAX);
	return how == 3 ? ir_sconst(b, x) : ir_sload64(b, in, at);
}

/* Operands of every kind, then the destination on each operand. */
static void scalar_variants(struct ir *b, enum ir_op op, ir_a in, ir_a out, int64_t x, int64_t y, int64_t imm,
                            int32_t *at)
{
	bool two = ir_facts[op].b == IR_TYPE_s;
	for (unsigned variant = 0; variant < 10; variant++) {
		ir_s p = known(b, in, 0, variant & 3, x), q = known(b, in, 8, variant * 3 >> 2 & 3, y);
		uint16_t dst = 0;
		if (variant == 8)
			dst = (p = ir_var_s(b, p)).r;
		if (variant == 9 && two)
			dst = (q = ir_var_s(b, q)).r;
		const bool compares = ir_facts[op].dst == IR_TYPE_c;
		ir_s r = { ir_emit(b, op, compares ? 0 : dst, p.r, two ? q.r : 0, 0, imm) };
		if (compares) { /* what it chooses: constants, then the operands */
			const ir_c holds = { r.r };
			op_store_scalar(b, out, ir_ssel(b, holds, ir_sconst(b, 5), ir_sconst(b, INT64_MIN)), at);
			r.r = ir_emit(b, IR_ssel, dst, holds.r, p.r, q.r, 0);
		}
		op_store_scalar(b, out, r, at);
		op_store_scalar(b, out, p, at);
		op_store_scalar(b, out, q, at);
	}
}

static bool fits32(int64_t v) { return v >= INT32_MIN && v <= INT32_MAX; }

/* What ops.def leaves undefined, and sums that C leaves so. */
static bool scalar_allowed(enum ir_op op, int64_t x, int64_t y, int64_t imm)
{
	int64_t r;
	switch (op) {
	case IR_sadd: return !__builtin_add_overflow(x, y, &r);
	case IR_ssub: return !__builtin_sub_overflow(x, y, &r);
	case IR_saddi: return !__builtin_add_overflow(x, imm, &r);
	case IR_smuli: return fits32(imm) && !__builtin_mul_overflow(x, imm, &r);
	case IR_smul: return fits32(x) && fits32(y);
	case IR_sandi: return imm >= 0 && imm <= INT32_MAX;
	case IR_sdivi: return imm > 0 && imm <= INT32_MAX && x >= 0 && x <= INT32_MAX;
	default: return true;
	}
}

static bool computes_scalar(enum ir_op op)
{
	return ir_is_row(op) && (ir_facts[op].dst == IR_TYPE_s || ir_facts[op].dst == IR_TYPE_c) &&
	       ir_facts[op].a == IR_TYPE_s && ir_facts[op].effects & IR_PURE && op != IR_smov;
}

void op_each_scalar(void (*begin)(struct ir *b),
                    void (*check)(const struct ir *b, const void *in, size_t in_bytes, unsigned round))
{
	for (enum ir_op op = 0; op < IR_ROWS; op++)
		for (unsigned p = 0; p < SCALARS; p++)
			for (unsigned q = 0; q < SCALARS; q++) {
				const int64_t in[2] = { scalar_edges[p], scalar_edges[q] };
				int64_t imm = op == IR_sshli || op == IR_sshri ? scalar_edges[q] & 63 : scalar_edges[q];
				if (!computes_scalar(op) || !scalar_allowed(op, in[0], in[1], imm))
					continue;
				struct ir b;
				int32_t at = 0;
				begin(&b);
				ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
				scalar_variants(&b, op, src, out, in[0], in[1], ir_facts[op].b == IR_TYPE_s ? 0 : imm,
				                &at);
				check(&b, in, sizeof in, p);
				ir_free(&b);
			}
}

void op_build_division(struct ir *b, int64_t d, uint64_t in[OP_DIVIDENDS])
{
	ir_a arg = ir_arg(b), src = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	for (int32_t k = 0; k < OP_DIVIDENDS; k++) {
		int64_t q = INT32_MAX / d * (k / 3) / 21, v = q * d + k % 3 - 1;
		in[k] = (uint64_t)(v < 0 ? 0 : v > INT32_MAX ? INT32_MAX : v);
		int32_t at = 8 * k;
		op_store_scalar(b, out, ir_sdivi(b, ir_sload64(b, src, 8 * k), d), &at);
	}
}

void op_build_lane_counts(struct ir *b, unsigned n)
{
	const int32_t V = vector(b);
	ir_a arg = ir_arg(b), src = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8), local = ir_local(b, 4 * V);
	ir_f v = ir_fload(b, src, 0, 0), w = ir_fload(b, ir_aaddi(b, src, 4096 - 4 * (int)(n ? n : b->lanes)), 0, n);
	ir_f var = ir_var_f(b, v);
	ir_emit(b, IR_fload, var.r, src.r, 0, 0, ir_x(36, n, 0));
	ir_fstore(b, out, w, 0, 0);
	ir_fstore(b, out, v, 128, n);
	ir_fstore_h(b, out, v, 258, n);
	ir_fstore_s(b, out, v, 512, n, 12);
	ir_fstore_hs(b, out, v, 1024, n, 6);
	ir_fstore1(b, out, v, 1400);
	ir_istore_8(b, out, ir_isar(b, ir_ibits(b, v), 24), 1501);
	ir_fstore(b, out, var, 1540, 0);
	ir_fstore(b, local, w, 0, 0);
	ir_fstore(b, local, v, V, 0);
	ir_fstore(b, local, w, V, n);
	ir_fstore_h(b, local, v, 40, n);
	ir_fstore_s(b, local, v, 0, n, 8);
	ir_fstore_hs(b, local, v, 2, n, 6);
	ir_fstore1(b, local, v, 16);
	ir_istore_8(b, local, ir_isar(b, ir_ibits(b, v), 24), 5);
	ir_fstore(b, out, ir_fload(b, local, 0, 0), 2048, 0);
	ir_fstore(b, out, ir_fload(b, local, V, n), 2048 + V, 0);
}

void op_build_awaits(struct ir *b, unsigned n)
{
	const int32_t V = vector(b);
	ir_a arg = ir_arg(b), src = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8), at = ir_var_a(b, src);
	ir_f w = ir_fawait(b, ir_aaddi(b, src, 4096 - 4 * (int)(n ? n : b->lanes)), 0, n), part[4], var, here;
	ir_i offset = ir_isub(b, ir_iconst(b, 4 * 99), ir_imul(b, ir_ilane(b), ir_iconst(b, 12)));
	for (int k = 0; k < 4; k++)
		part[k] = ir_fawait_s(b, src, 16 + 4 * k, 16);
	ir_f far = ir_fawait_s(b, src, 8, 20), picked = ir_fawait_at(b, src, offset, 16),
	     later = ir_fawait(b, at, 0, 0);
	var = ir_var_f(b, w);
	ir_emit(b, IR_fawait, var.r, src.r, 0, 0, ir_x(36, n, 4));
	ir_set_a(b, at, ir_aaddi(b, at, 64));
	ir_s round = ir_loop(b, ir_sconst(b, 3));
	here = ir_fawait(b, at, 0, 0);
	ir_fgive(b, ir_aadd(b, out, ir_smuli(b, round, V)), ir_fadd(b, here, part[3]), 4096, 0);
	ir_set_f(b, var, ir_fadd(b, var, ir_fadd(b, part[3], here)));
	ir_set_a(b, at, ir_aaddi(b, at, V));
	ir_endloop(b);
	for (int k = 0; k < 4; k++)
		ir_fgive(b, out, part[k], k * V, n);
	ir_fstore(b, out, w, 4 * V, 0);
	ir_fstore(b, out, far, 5 * V, 0);
	ir_fstore(b, out, picked, 6 * V, 0);
	ir_fstore(b, out, later, 7 * V, 0);
	ir_fstore(b, out, var, 8 * V, 0);
	ir_fgive(b, out, ir_fbits(b, ir_iconst(b, IR_EMPTY)), 9 * V, 0);
	ir_fgive(b, out, ir_fbits(b, ir_iconst(b, IR_EMPTY + 1)), 10 * V, n);
}

void op_build_names(struct ir *b)
{
	const int32_t V = vector(b);
	ir_a arg = ir_arg(b), src = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8), p = ir_var_a(b, src);
	ir_i v = ir_var_i(b, ir_iload(b, src, 0));
	ir_s s = ir_var_s(b, ir_sload64(b, src, 8));
	ir_f name = ir_fbits(b, v), minus = ir_fneg(b, name), half = ir_fhalf(b, v, 1);
	ir_i splat = ir_isplat(b, s), shifted = ir_ishl(b, v, 3);
	ir_a q = ir_aaddi(b, p, 4), far = ir_aaddi(b, q, 8);
	ir_s same = { ir_emit(b, IR_smov, 0, s.r, 0, 0, 0) };
	ir_set_i(b, v, ir_iadd(b, v, ir_iconst(b, 1)));
	ir_set_a(b, p, ir_aaddi(b, far, 32));
	ir_set_s(b, s, ir_saddi(b, s, 5));
	ir_fstore(b, out, name, 0, 0);
	ir_fstore(b, out, ir_fbits(b, v), V, 0);
	ir_fstore(b, out, ir_fload(b, q, 0, 0), 2 * V, 0);
	ir_fstore(b, out, ir_fload(b, far, 0, 0), 3 * V, 0);
	ir_fstore(b, out, ir_fbits(b, ir_iadd(b, splat, shifted)), 4 * V, 0);
	ir_fstore(b, out, ir_fmul(b, minus, ir_fconst(b, 2)), 5 * V, 0);
	ir_fstore(b, out, ir_ffma(b, half, half, half), 6 * V, 0);
	ir_fstore(b, out, ir_fbits(b, ir_isplat(b, same)), 7 * V, 0);
	/* an address of which another one is made, and nothing else */
	ir_a one = ir_aaddi(b, src, 4), two = ir_aaddi(b, one, 4);
	ir_a sum = ir_aadd(b, two, ir_sconst(b, 8));
	ir_fstore(b, out, ir_fload(b, sum, 0, 0), 11 * V, 0);
	ir_f w = ir_fbits(b, v);
	ir_loop(b, ir_sconst(b, 2));
	ir_i next = ir_ixor(b, v, ir_ibits(b, w));
	ir_fstore(b, out, ir_fbits(b, v), 8 * V, 0);
	ir_emit(b, IR_imov, v.r, next.r, 0, 0, 0);
	ir_set_a(b, p, ir_aaddi(b, p, 4));
	ir_endloop(b);
	ir_fstore(b, out, ir_fload(b, p, 0, 0), 9 * V, 0);
	ir_fstore(b, out, ir_fbits(b, v), 10 * V, 0);
}

void op_build_loops(struct ir *b, bool use_index)
{
	ir_a arg = ir_arg(b), out = ir_aload(b, arg, 8);
	ir_s n = ir_begin(b), m = ir_end(b), total = ir_var_s(b, ir_sconst(b, 7)), count = ir_var_s(b, n);
	ir_i acc = ir_var_i(b, ir_iconst(b, 1));
	ir_s i = ir_loop(b, count);
	ir_set_s(b, count, ir_saddi(b, count, 5)); /* the count was read at the loop's head */
	ir_s j = ir_loop(b, m);
	ir_s k = ir_loop(b, ir_sconst(b, 3));
	ir_set_s(b, total, ir_sadd(b, ir_smuli(b, total, 3), use_index ? ir_sadd(b, i, ir_ssub(b, k, j)) : n));
	ir_set_s(b, total, ir_sandi(b, total, 0xfffff));
	ir_endloop(b);
	ir_set_i(b, acc, ir_iadd(b, acc, ir_imul(b, acc, ir_ilane(b))));
	ir_endloop(b);
	ir_endloop(b);
	int32_t at = vector(b);
	op_store_scalar(b, out, total, &at);
	op_store_scalar(b, out, count, &at);
	ir_fstore(b, out, ir_fbits(b, acc), 0, 0);
}

/* tests/jit/wide_rows_tests.c - every row of ops.def that has lanes of 64 bits, on every kind of target: operands lane
 * by lane, the same for all, and constants; the destination on each operand; at the ends of all ranges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "jit/ir/lanes.h"
#include "tests/jit/every_target.h"
#include "tests/jit/wide_rows_tests.h"
#include "tests/support/shared.h"

/* Three operands of so many values of 64 bits; those of 32 bits lie in the lower half of each operand's bytes. */
enum { VALUES = 128, OPERAND_BYTES = 8 * VALUES, OPERANDS = 3 };
_Static_assert(OPERANDS *OPERAND_BYTES <= RANDOM_IR_IN_BYTES, "what goes in");

static bool is_wide(uint8_t type) { return type == IR_TYPE_f64 || type == IR_TYPE_i64; }
static bool is_lanes(uint8_t type)
{
	return is_wide(type) || type == IR_TYPE_f32 || type == IR_TYPE_i32 || type == IR_TYPE_m;
}

static const uint64_t edges[] = {
	0,
	UINT64_C(0x8000000000000000), /* -0, the least number */
	1,
	UINT64_MAX,
	UINT64_C(0x7fffffffffffffff),
	UINT64_C(0x8000000000000001),
	UINT64_C(0x000fffffffffffff), /* below the normal numbers */
	UINT64_C(0x0010000000000000),
	UINT64_C(0x7fefffffffffffff),
	UINT64_C(0x7ff0000000000000),
	UINT64_C(0xfff0000000000000),
	UINT64_C(0x7ff8000000000000),
	UINT64_C(0x3ff0000000000000), /* 1 */
	UINT64_C(0xbff8000000000000), /* -1.5 */
	UINT64_C(0x3fe0000000000000), /* 0.5 */
	UINT64_C(0x4004000000000000), /* 2.5 */
	UINT64_C(0x41dfffffffc00000), /* 2^31 - 1 */
	UINT64_C(0x41dfffffffe00000), /* 2^31 - 1/2 */
	UINT64_C(0x41e0000000000000),
	UINT64_C(0xc1e0000000000000),
	UINT64_C(0xc1e0000000100000), /* -2^31 - 1/2 */
	UINT64_C(0xc1e0000000200000),
	UINT64_C(0x41efffffffe00000), /* 2^32 - 1 */
	UINT64_C(0x41f0000000000000),
	UINT64_C(0xbfefffffffffffff),
	UINT64_C(0x43dfffffffffffff), /* below 2^63 */
	UINT64_C(0x43e0000000000000),
	UINT64_C(0xc3e0000000000000),
	UINT64_C(0xc3e0000000000001),
	UINT64_C(0x43efffffffffffff),
	UINT64_C(0x43f0000000000000),
	UINT64_C(0x4330000000000001),
	UINT64_C(0x4340000000000000), /* 2^53 */
	UINT64_C(0x0020000000000001), /* beyond 2^53, not exact */
	UINT64_C(0x7fffffffffffffbf),
	UINT64_C(0xfffffffffffffc00),
	UINT64_C(0x47efffffe0000000), /* the greatest float, and what rounds to it, or to infinity */
	UINT64_C(0x47effffff0000000),
	UINT64_C(0x47efffffefffffff),
	UINT64_C(0x380fffffffffffff), /* floats below the normal ones */
	UINT64_C(0x36a0000000000000),
	UINT64_C(0x3690000000000000),
	UINT64_C(0x3690000000000001),
	31,
	32,
	63,
	64,
	UINT64_C(0x100000000),
	UINT64_C(0xffffffff),
	UINT64_C(0x80000000),
	UINT64_C(0x123456789abcdef0),
};
enum { EDGES = sizeof edges / sizeof *edges };

static uint64_t state = 1;
static uint64_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state ^ state >> 29;
}

static bool is_nan(uint64_t u) { return (u & INT64_MAX) > UINT64_C(0x7ff0000000000000); }
static bool is_narrow_nan(uint32_t u) { return (u & INT32_MAX) > 0x7f800000; }

/* One NaN, so that which of two comes through cannot show. */
static uint64_t value(uint8_t type)
{
	const uint64_t any = draw(), at = draw();
	uint64_t u = draw() & 3            ? edges[at % EDGES]
	             : type == IR_TYPE_f64 ? (any & ~(UINT64_C(0x7c0) << 52))
	                                   : any >> (at & 63);

	if (type == IR_TYPE_f64 && !(draw() & 7))
		u = f64_bits((double)(int64_t)any * 0.5);
	return type == IR_TYPE_f64 && is_nan(u) ? UINT64_C(0x7ff8000000000000) : u;
}

static uint32_t narrow_value(uint8_t type)
{
	const uint32_t u = draw() & 1 ? (uint32_t)edges[draw() % EDGES] : (uint32_t)draw();

	return type == IR_TYPE_f32 && is_narrow_nan(u) ? 0x7fc00000 : u;
}

static void fill(uint8_t in[RANDOM_IR_IN_BYTES], const struct ir_facts *f)
{
	const uint8_t type[OPERANDS] = { f->a, f->b, f->c };

	memset(in, 0, RANDOM_IR_IN_BYTES);
	for (unsigned k = 0; k < OPERANDS; k++)
		for (unsigned n = 0; n < VALUES; n++) {
			const uint64_t wide = value(type[k]);
			const uint32_t narrow = narrow_value(type[k]);
			if (is_wide(type[k]))
				memcpy(in + k * OPERAND_BYTES + 8 * n, &wide, 8);
			else
				memcpy(in + k * OPERAND_BYTES + 4 * n, &narrow, 4);
		}
}

struct row_of {
	uint16_t row;
	int64_t imm;
	unsigned forms, dst_on; /* 2 bits an operand: lanes, the same for all, a constant */
	const uint8_t *in;
};

static uint16_t operand(struct ir *b, ir_a in, uint8_t type, unsigned form, const uint8_t *words, int32_t at)
{
	uint64_t wide;
	uint32_t narrow;

	memcpy(&wide, words + at, 8);
	memcpy(&narrow, words + at, 4);
	if (is_wide(type)) {
		const ir_l l = form == 0   ? ir_lload(b, in, at, 0)
		               : form == 1 ? ir_lbcast(b, in, at)
		                           : ir_lconst(b, (int64_t)wide);
		return type == IR_TYPE_i64 ? l.r : form == 1 ? ir_dbcast(b, in, at).r : ir_dbits(b, l).r;
	}
	const ir_i i = form == 0   ? ir_iload(b, in, at)
	               : form == 1 ? ir_ibcast(b, in, at)
	                           : ir_iconst(b, (int32_t)narrow);
	return type == IR_TYPE_i32 ? i.r : type == IR_TYPE_f32 ? ir_fbits(b, i).r : ir_igt(b, i, ir_iconst(b, 0)).r;
}

static void store_result(struct ir *b, ir_a out, uint8_t type, uint16_t r, int32_t at)
{
	if (type == IR_TYPE_f64)
		ir_dstore(b, out, (ir_d){ r }, at, 0);
	else if (type == IR_TYPE_i64)
		ir_lstore(b, out, (ir_l){ r }, at, 0);
	else if (type == IR_TYPE_m)
		ir_fstore(b, out, ir_fbits(b, ir_isel(b, (ir_m){ r }, ir_iconst(b, -1), ir_iconst(b, 0))), at, 0);
	else
		ir_fstore(b, out, type == IR_TYPE_i32 ? ir_fbits(b, (ir_i){ r }) : (ir_f){ r }, at, 0);
}

static void build_row(struct ir *b, const void *user)
{
	const struct row_of *t = user;
	const struct ir_facts *f = &ir_facts[t->row];
	const uint8_t type[OPERANDS] = { f->a, f->b, f->c };
	const int32_t lanes = (int32_t)b->lanes;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);

	for (int32_t n = 0; n < VALUES; n += lanes) {
		uint16_t r[OPERANDS] = { 0 }, dst = 0;
		for (unsigned k = 0; k < OPERANDS; k++)
			if (type[k])
				r[k] = operand(b, in, type[k], t->forms >> 2 * k & 3, t->in,
				               (int32_t)k * OPERAND_BYTES + n * (is_wide(type[k]) ? 8 : 4));
		if (t->dst_on && type[t->dst_on - 1] == f->dst) {
			dst = ir_new_var(b, f->dst);
			ir_emit(b, ir_rows[f->dst][IR_mov], dst, r[t->dst_on - 1], 0, 0, 0);
			r[t->dst_on - 1] = dst;
		}
		dst = ir_emit(b, t->row, dst, r[0], r[1], r[2], t->imm);
		store_result(b, out, f->dst, dst, 8 * n);
	}
}

static bool makes_nans(const struct ir_facts *f)
{
	switch (f->op) {
	case IR_add:
	case IR_sub:
	case IR_mul:
	case IR_fma:
	case IR_div:
	case IR_sqrt:
	case IR_round:
	case IR_floor:
	case IR_ceil:
	case IR_trunc:
	case IR_widen:
	case IR_narrow: return f->dst == IR_TYPE_f64 || f->dst == IR_TYPE_f32;
	default: return false;
	}
}

static void check_row(uint16_t row, int64_t imm)
{
	const struct ir_facts *f = &ir_facts[row];
	const unsigned operands = 0u + (f->a != 0) + (f->b != 0) + (f->c != 0);
	const enum every_nans nans = !makes_nans(f) ? EVERY_EXACT : is_wide(f->dst) ? EVERY_NANS_OF_8 : EVERY_NANS_OF_4;
	uint8_t in[RANDOM_IR_IN_BYTES];
	char what[60];

	for (unsigned round = 0; round < (test_quick() ? (f->op == IR_div || f->op == IR_sqrt ? 4u : 1u) : 20u);
	     round++) {
		fill(in, f);
		for (unsigned forms = 0; forms < 1u << 2 * operands; forms++) {
			if ((forms & 3) == 3 || (forms >> 2 & 3) == 3 || forms >> 4 == 3)
				continue;
			/* at the quick size: all lanes, all alike, and one way more */
			if (test_quick() && forms && forms != 0x15u >> (6 - 2 * operands) && forms != 2)
				continue;
			for (unsigned dst_on = 0; dst_on < 4; dst_on++) {
				const uint8_t type[4] = { 0, f->a, f->b, f->c };
				const struct row_of t = { row, imm, forms, dst_on, in };
				if (dst_on && (type[dst_on] != f->dst || forms))
					continue;
				snprintf(what, sizeof what, "%s #%lld, forms %x, on %u", f->name, (long long)imm, forms,
				         dst_on);
				every_target_check(build_row, &t, in, sizeof in, 1, nans, what);
			}
		}
	}
}

static void test_rows(void **unused)
{
	static const int64_t shifts[] = { 0, 1, 31, 32, 33, 63 };

	for (uint16_t row = 0; row < IR_ROWS; row++) {
		const struct ir_facts *f = &ir_facts[row];
		if (!ir_is_row(row) || !(f->effects & IR_PURE) || (!is_wide(f->dst) && !is_wide(f->a)) ||
		    (f->a && !is_lanes(f->a)) || f->op == IR_mov)
			continue;
		if (f->op == IR_shl || f->op == IR_shr || f->op == IR_sar)
			for (unsigned k = 0; k < sizeof shifts / sizeof *shifts; k++)
				check_row(row, shifts[k]);
		else if (f->op != IR_exchange)
			check_row(row, f->op == IR_const ? INT64_C(0x400921fb54442d18) : 0);
	}
}

/* Across lanes: of every width, its own distances. */
static void build_exchange(struct ir *b, const void *user)
{
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	ir_d v = ir_dload(b, in, 0, 0), var = ir_var_d(b, v);
	int32_t at = 0;

	for (unsigned by = 1; by < b->lanes; by *= 2, at += 16 * (int32_t)b->lanes) {
		ir_dstore(b, out, ir_dxor(b, v, by), at, 0);
		ir_set_d(b, var, ir_dxor(b, var, by));
		ir_dstore(b, out, var, at + 8 * (int32_t)b->lanes, 0);
	}
}

static void test_exchange(void **unused)
{
	uint64_t in[64];

	for (unsigned k = 0; k < 64; k++)
		in[k] = draw();
	every_target_check(build_exchange, NULL, in, sizeof in, 1, EVERY_EXACT, "dxor");
}

/* Loads and stores of every number of lanes, with a mask and without, of locals too; scalars in all lanes; moves
 * around a loop. */
static void build_memory(struct ir *b, const void *user)
{
	const unsigned n = *(const unsigned *)user % (b->lanes + 1);
	const int32_t V = 8 * (int32_t)b->lanes;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8), local = ir_local(b, 2 * V);
	ir_m mask = ir_igt(b, ir_iload(b, in, 1024), ir_iconst(b, 0));
	ir_d v = ir_dload(b, in, 0, n), w = ir_dload(b, in, 16, 0), kept = ir_dload(b, in, 8, n);

	ir_where(b, mask);
	ir_l sum = ir_var_l(b, ir_lsplat(b, ir_sload64(b, in, 264)));
	ir_loop(b, ir_sconst(b, 3));
	ir_set_l(b, sum, ir_ladd(b, sum, ir_lbits(b, w)));
	ir_set_l(b, sum, ir_lsel(b, mask, ir_lmul(b, sum, ir_lsplat(b, ir_sconst(b, 31))), sum));
	ir_endloop(b);
	ir_dstore(b, local, w, 0, 0);
	ir_dstore(b, local, v, V, 0);
	ir_lstore(b, local, sum, V, n);
	ir_where(b, mask);
	ir_dstore(b, out, v, 0, 0);
	ir_dstore(b, out, kept, V, 0);
	ir_dstore(b, out, w, 2 * V + 8, n);
	ir_lstore(b, out, sum, 4 * V, n);
	ir_where(b, mask);
	ir_lstore(b, out, ir_lload(b, local, V, 0), 6 * V, 0);
	ir_dstore(b, out, ir_dload(b, local, 8, n), 8 * V, 0);
	ir_lstore(b, out, sum, 10 * V, 0);
}

static void test_memory(void **unused)
{
	uint64_t in[256];

	for (unsigned k = 0; k < 256; k++)
		in[k] = draw();
	for (unsigned n = 0; n <= 32; n += test_quick() ? 5 : 1)
		every_target_check(build_memory, &n, in, sizeof in, 1, EVERY_EXACT, "memory of 64 bits a lane");
}

static int open_all(void **state_of)
{
	every_target_open();
	return 0;
}

static int close_all(void **state_of)
{
	every_target_close();
	return 0;
}

int wide_rows_tests(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_exchange),
		                            cmocka_unit_test(test_memory) };

	return cmocka_run_group_tests_name("wide rows", tests, open_all, close_all);
}

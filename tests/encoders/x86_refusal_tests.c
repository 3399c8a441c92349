/* tests/encoders/x86_refusal_tests.c - the x86 encoder refuses: the sentence for every rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/encoders/x86_test.h"

#define R(n) x86_r64(n)
#define D(n) x86_r32(n)

#define K(n) x86_k(n)

#define I(n) x86_imm(n)
#define MEM x86_mem(X86_RAX, 0)
#define NONE \
	{ \
		.cls = X86_NONE \
	}
#define VSIB(n) x86_mem_index(X86_RAX, n, 4, 0)

struct refusal {
	const char *rule;
	enum x86_op op;
	struct x86_operand o[4];
	bool evex;
	uint8_t mask;
	bool zeroing;
};

static void refuse(const struct refusal *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct x86 x;
		x86_init(&x);
		x.evex = r[i].evex;
		x.mask = r[i].mask;
		x.zeroing = r[i].zeroing;
		x86_label(&x);
		x86_ins(&x, r[i].op, r[i].o[0], r[i].o[1], r[i].o[2], r[i].o[3]);
		if (!x.error)
			fail_msg("refusal %u, %s: accepted, but %s", i, x86_op_name(r[i].op), r[i].rule);
		assert_string_equal(x.error, r[i].rule);
		assert_int_equal(x.error_op, r[i].op);
		assert_int_equal(x.size, 0);
		x86_ins(&x, X86_RET, X86_0, X86_0, X86_0, X86_0);
		assert_int_equal(x.size, 0);
		assert_false(x86_finish(&x));
		x86_free(&x);
	}
}

#define REFUSE(r) refuse(r, sizeof r / sizeof r[0])

static void test_refused_operands(void **state)
{
	const struct refusal r[] = {
		{ "an operand is missing", X86_MOV, { R(0) }, 0, 0, 0 },
		{ "an operand is missing", X86_VADDPS, { Y(0), Y(1) }, 0, 0, 0 },
		{ "an operand is missing", X86_VADDPS, { NONE }, 0, 0, 0 },
		{ "there is an operand too many", X86_RET, { R(0) }, 0, 0, 0 },
		{ "there is an operand too many", X86_VADDPS, { Y(0), Y(1), Y(2), Y(3) }, 0, 0, 0 },
		{ "the operand cannot be in memory", X86_VADDPS, { MEM, Y(1), Y(2) }, 0, 0, 0 },
		{ "the operand cannot be in memory", X86_VADDPS, { Y(1), MEM, MEM }, 0, 0, 0 },
		{ "the operand cannot be in memory", X86_MOV, { MEM, MEM }, 0, 0, 0 },
		{ "the operand must be a 32-bit general register", X86_ADD, { MEM, I(1) }, 0, 0, 0 },
		{ "the operand must be in memory", X86_LEA, { R(0), R(1) }, 0, 0, 0 },
		{ "the operand must be in memory", X86_PREFETCHT0, { R(0) }, 0, 0, 0 },
		{ "the operand must be in memory", X86_MOV8, { D(0), D(1) }, 0, 0, 0 },
		{ "the operand must be a 64-bit general register", X86_MOV, { R(0), D(1) }, 0, 0, 0 },
		{ "the operand must be a 64-bit general register", X86_PUSH, { D(1) }, 0, 0, 0 },
		{ "the operand must be a 32-bit general register", X86_IMUL, { D(0), R(1) }, 0, 0, 0 },
		{ "the operand must be a 32-bit general register", X86_SETE, { R(1) }, 0, 0, 0 },
		{ "the operand must be an xmm register", X86_VMOVSS, { x86_xmm(0), x86_xmm(1), Y(2) }, 0, 0, 0 },
		{ "the operand must be an xmm register", X86_VPMOVZXBD, { Y(0), Y(1) }, 0, 0, 0 },
		{ "the operand must be a ymm register", X86_VADDPS, { Y(0), x86_xmm(1), Y(2) }, 0, 0, 0 },
		{ "the operand must be a ymm register", X86_VCVTPH2PS, { x86_zmm(0), x86_zmm(1) }, 1, 0, 0 },
		{ "the operand must be a zmm register", X86_VADDPS, { x86_zmm(0), Y(1), Y(2) }, 1, 0, 0 },
		{ "the operand must be a mask register", X86_KANDW, { K(1), K(2), Y(1) }, 1, 0, 0 },
		{ "the operand must be a vector register", X86_VADDPS, { R(0), Y(1), Y(2) }, 0, 0, 0 },
		{ "the instruction has no 128-bit form", X86_VPERMD, { x86_xmm(0), x86_xmm(1), x86_xmm(2) }, 0, 0, 0 },
		{ "the instruction has no 128-bit form", X86_VEXTRACTI128, { x86_xmm(0), x86_xmm(1), I(1) }, 0, 0, 0 },
		{ "the instruction has only a 512-bit form", X86_VEXTRACTI64X4, { Y(0), Y(1), I(1) }, 1, 0, 0 },
		{ "a general register must be numbered 0 to 15", X86_MOV, { R(16), R(0) }, 0, 0, 0 },
		{ "a general register must be numbered 0 to 15", X86_MOV, { R(-1), R(0) }, 0, 0, 0 },
		{ "a vector register must be numbered 0 to 31", X86_VADDPS, { Y(32), Y(0), Y(0) }, 1, 0, 0 },
		{ "a mask register must be k0 to k7", X86_KANDW, { K(8), K(0), K(0) }, 1, 0, 0 },
		{ "the operand must be an immediate", X86_VPSHUFD, { Y(0), Y(1), Y(2) }, 0, 0, 0 },
		{ "the operand must be a label", X86_JE, { R(0) }, 0, 0, 0 },
		{ "the operand must be a label", X86_JE, { MEM }, 0, 0, 0 },
		{ "a label must come from x86_label", X86_JE, { x86_mem_label(7, 0) }, 0, 0, 0 },
		{ "a label must come from x86_label", X86_LEA, { R(0), x86_mem_label(1, 0) }, 0, 0, 0 },
	};
	REFUSE(r);
}

static void test_refused_memory(void **state)
{
	const struct refusal r[] = {
		{ "rsp cannot be an index", X86_MOV, { R(0), x86_mem_index(0, X86_RSP, 1, 0) }, 0, 0, 0 },
		{ "a scale must be 1, 2, 4 or 8", X86_MOV, { R(0), x86_mem_index(0, 1, 3, 0) }, 0, 0, 0 },
		{ "a scale must be 1, 2, 4 or 8", X86_MOV, { R(0), x86_mem_index(0, 1, 0, 0) }, 0, 0, 0 },
		{ "a scale must be 1, 2, 4 or 8", X86_VMOVUPS, { Y(0), x86_mem_index(0, 1, 16, 0) }, 0, 0, 0 },
		{ "a base must be a general register numbered 0 to 15", X86_MOV, { R(0), x86_mem(16, 0) }, 0, 0, 0 },
		{ "an index must be a general register numbered 0 to 15",
		  X86_MOV,
		  { R(0), x86_mem_index(0, 16, 1, 0) },
		  0,
		  0,
		  0 },
		{ "an address needs a base, an index or a label",
		  X86_MOV,
		  { R(0), x86_mem(X86_NO_BASE, 64) },
		  0,
		  0,
		  0 },
		{ "a gather or scatter address must have a vector index",
		  X86_VGATHERDPS,
		  { Y(0), MEM, Y(2) },
		  0,
		  0,
		  0 },
		{ "a gather or scatter address must have a vector index",
		  X86_VGATHERDPS,
		  { Y(0), x86_mem_label(0, 0), Y(2) },
		  0,
		  0,
		  0 },
		{ "a vector register must be numbered 0 to 31", X86_VPGATHERDD, { Y(0), VSIB(32) }, 1, 1, 0 },
		{ "the destination, index and mask of a gather must differ",
		  X86_VGATHERDPS,
		  { Y(0), VSIB(0), Y(2) },
		  0,
		  0,
		  0 },
		{ "the destination, index and mask of a gather must differ",
		  X86_VGATHERDPS,
		  { Y(0), VSIB(1), Y(0) },
		  0,
		  0,
		  0 },
		{ "the destination, index and mask of a gather must differ",
		  X86_VGATHERDPS,
		  { Y(0), VSIB(1), Y(1) },
		  0,
		  0,
		  0 },
		{ "the destination, index and mask of a gather must differ",
		  X86_VPGATHERDD,
		  { x86_zmm(5), VSIB(5) },
		  1,
		  1,
		  0 },
	};
	REFUSE(r);
}

static void test_refused_tiles(void **state)
{
	static const char none[] =
		"the instruction has no EVEX form: no zmm, no register above 15, no mask, no broadcast";
	static const char pitch[] = "the address of a tile must have an index, the pitch of its rows";
	static const char differ[] = "the three tiles of a product must differ";
	const struct x86_operand rows = x86_mem_index(X86_RAX, X86_RCX, 1, 0);
	const struct refusal r[] = {
		{ "a tile register must be tmm0 to tmm7", X86_TILEZERO, { T(8) }, 0, 0, 0 },
		{ "a tile register must be tmm0 to tmm7", X86_TILEZERO, { T(-1) }, 0, 0, 0 },
		{ "a tile register must be tmm0 to tmm7", X86_TILELOADD, { T(8), rows }, 1, 0, 0 },
		{ "a tile register must be tmm0 to tmm7", X86_TDPBUSD, { T(0), T(1), T(8) }, 0, 0, 0 },
		{ "the operand must be a tile register", X86_TILEZERO, { Y(0) }, 0, 0, 0 },
		{ "the operand must be a tile register", X86_TDPBSSD, { T(0), K(1), T(2) }, 1, 0, 0 },
		{ "the operand must be a tile register", X86_TILELOADD, { R(0), rows }, 0, 0, 0 },
		{ "the operand must be a vector register", X86_VADDPS, { T(0), Y(1), Y(2) }, 0, 0, 0 },
		{ "the operand must be a 64-bit general register", X86_MOV, { R(0), T(1) }, 0, 0, 0 },
		{ "the operand cannot be in memory", X86_TDPBSSD, { T(0), T(1), rows }, 0, 0, 0 },
		{ "the operand must be in memory", X86_TILELOADDT1, { T(0), T(1) }, 0, 0, 0 },
		{ "the operand must be in memory", X86_LDTILECFG, { R(0) }, 0, 0, 0 },
		{ "there is an operand too many", X86_TILERELEASE, { T(0) }, 0, 0, 0 },
		{ "an operand is missing", X86_TILEZERO, { NONE }, 0, 0, 0 },
		{ pitch, X86_TILELOADD, { T(0), MEM }, 0, 0, 0 },
		{ pitch, X86_TILELOADDT1, { T(0), x86_mem(X86_RSP, 64) }, 1, 0, 0 },
		{ pitch, X86_TILESTORED, { x86_mem(X86_R12, 0), T(0) }, 1, 0, 0 },
		{ pitch, X86_TILESTORED, { x86_mem_label(0, 0), T(0) }, 0, 0, 0 },
		{ "rsp cannot be an index", X86_TILELOADD, { T(0), x86_mem_index(0, X86_RSP, 1, 0) }, 0, 0, 0 },
		{ "an index must be a general register numbered 0 to 15",
		  X86_TILELOADD,
		  { T(0), x86_mem_index(0, 16, 1, 0) },
		  1,
		  0,
		  0 },
		{ differ, X86_TDPBSSD, { T(1), T(1), T(2) }, 0, 0, 0 },
		{ differ, X86_TDPBSUD, { T(1), T(2), T(1) }, 1, 0, 0 },
		{ differ, X86_TDPBUSD, { T(2), T(1), T(1) }, 0, 0, 0 },
		{ differ, X86_TDPBUUD, { T(7), T(7), T(7) }, 0, 0, 0 },
		{ differ, X86_TDPBF16PS, { T(0), T(3), T(0) }, 1, 0, 0 },
		{ none, X86_TDPBUSD, { T(0), T(1), T(2) }, 1, 1, 0 },
		{ none, X86_TILELOADD, { T(0), x86_mem_broadcast(rows) }, 1, 0, 0 },
	};
	REFUSE(r);
}

static void test_refused_immediates(void **state)
{
	const struct refusal r[] = {
		{ "the immediate must fit in one byte", X86_VPSHUFD, { Y(0), Y(1), I(256) }, 0, 0, 0 },
		{ "the immediate must fit in one byte", X86_VPSRLD, { Y(0), Y(1), I(-129) }, 0, 0, 0 },
		{ "the immediate must fit in one byte", X86_SHL, { R(0), I(256) }, 0, 0, 0 },
		{ "the immediate must fit in 32 bits, sign-extended", X86_ADD, { R(1), I(0x80000000) }, 0, 0, 0 },
		{ "the immediate must fit in 32 bits, sign-extended", X86_MOV64I, { MEM, I(-0x80000001ll) }, 0, 0, 0 },
		{ "the immediate must fit in 32 bits", X86_ADD, { D(1), I(0x100000000) }, 0, 0, 0 },
		{ "the immediate must fit in 32 bits", X86_MOV, { D(1), I(-0x80000001ll) }, 0, 0, 0 },
		{ "the immediate must fit in 32 bits", X86_IMUL, { D(1), D(2), I(0x100000000) }, 0, 0, 0 },
	};
	REFUSE(r);
}

static void test_refused_evex(void **state)
{
	static const char off[] =
		"a zmm or mask register, a vector register above 15, a broadcast or an AVX-512 instruction needs EVEX";
	static const char none[] =
		"the instruction has no EVEX form: no zmm, no register above 15, no mask, no broadcast";
	const struct x86_operand bcst = x86_mem_broadcast(MEM), z = x86_zmm(1);
	const struct refusal r[] = {
		{ off, X86_VADDPS, { z, z, z }, 0, 0, 0 },
		{ off, X86_VADDPS, { Y(16), Y(0), Y(0) }, 0, 0, 0 },
		{ off, X86_VADDPS, { Y(0), Y(31), Y(0) }, 0, 0, 0 },
		{ off, X86_VADDPS, { Y(0), Y(0), Y(16) }, 0, 0, 0 },
		{ off, X86_VADDPS, { Y(0), Y(0), Y(0) }, 0, 1, 0 },
		{ off, X86_VADDPS, { Y(0), Y(0), Y(0) }, 0, 0, 1 },
		{ off, X86_VADDPS, { Y(0), Y(0), bcst }, 0, 0, 0 },
		{ off, X86_VGATHERDPS, { Y(0), VSIB(16), Y(2) }, 0, 0, 0 },
		{ off, X86_VPANDD, { Y(0), Y(0), Y(0) }, 0, 0, 0 },
		{ off, X86_KMOVW, { K(1), D(0) }, 0, 0, 0 },
		{ off, X86_VPCMPEQD, { K(1), Y(0), Y(0) }, 0, 0, 0 },
		{ none, X86_VPAND, { z, z, z }, 1, 0, 0 },
		{ none, X86_VPAND, { Y(16), Y(0), Y(0) }, 1, 0, 0 },
		{ none, X86_VBLENDVPS, { Y(0), Y(0), Y(0), Y(16) }, 1, 0, 0 },
		{ none, X86_VMOVDQU, { Y(0), Y(1) }, 1, 3, 0 },
		{ none, X86_ADD, { R(0), R(1) }, 1, 3, 0 },
		{ none, X86_VPAND, { Y(0), Y(0), bcst }, 1, 0, 0 },
		{ "the instruction cannot broadcast its memory operand", X86_VPADDB, { z, z, bcst }, 1, 0, 0 },
		{ "the instruction cannot broadcast its memory operand", X86_VMOVUPS, { z, bcst }, 1, 0, 0 },
		{ "the instruction takes no mask", X86_VMOVD, { x86_xmm(1), D(1) }, 1, 1, 0 },
		{ "the instruction takes no mask", X86_VPEXTRD, { D(1), x86_xmm(1), I(0) }, 1, 1, 0 },
		{ "a mask register must be k0 to k7", X86_VADDPS, { z, z, z }, 1, 8, 0 },
		{ "a gather or scatter needs a mask other than k0", X86_VPGATHERDD, { z, VSIB(2) }, 1, 0, 0 },
		{ "a gather or scatter needs a mask other than k0", X86_VPSCATTERDD, { VSIB(2), z }, 1, 0, 0 },
		{ "zeroing needs a mask other than k0", X86_VADDPS, { z, z, z }, 1, 0, 1 },
		{ "zeroing needs a vector register as destination and no gather", X86_VMOVUPS, { MEM, z }, 1, 1, 1 },
		{ "zeroing needs a vector register as destination and no gather",
		  X86_VPCMPEQD,
		  { K(1), z, z },
		  1,
		  1,
		  1 },
		{ "zeroing needs a vector register as destination and no gather",
		  X86_VPGATHERDD,
		  { z, VSIB(2) },
		  1,
		  1,
		  1 },
	};
	REFUSE(r);
}

int x86_refusal_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_operands), cmocka_unit_test(test_refused_memory),
		cmocka_unit_test(test_refused_tiles),    cmocka_unit_test(test_refused_immediates),
		cmocka_unit_test(test_refused_evex),
	};

	return cmocka_run_group_tests_name("x86_refusal_tests", tests, NULL, NULL);
}

/* tests/t_compile.c - generated code against the interpreter, byte for byte.
 *
 * Every op alone on edge values with its destination on each operand; random kernels on whole and on shrunken register files with
 * scrambled choices; loops, frames, constants; the same bytes twice; the listing through the system's assembler when there is one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/compile.h"
#include "jit/execmem.h"
#include "jit/ir_build.h"
#include "jit/lanes.h"
#include "tests/random_ir.h"

typedef void (*kernel_fn)(const uint64_t *arg, int64_t begin, int64_t end);

/* The target under test: every test runs once for each. */
static const struct target *isa;

/* Bytes of a vector. */
static int32_t V(void)
{
	return (int32_t)isa->lanes * 4;
}

static bool can_run(void)
{
	const struct target_cpu cpu = target_this_cpu();
	return target_runs(&cpu, isa, NULL);
}

/* The register files of the tests, and scrambled choices from some of them. */
static const struct compile_options files[] = {
	{0}, { .max_vector_regs = 8, .max_gprs = 8, .max_mask_regs = 3 }, { .max_vector_regs = 6, .max_gprs = 5, .max_mask_regs = 2 },
	{ .max_vector_regs = 4, .max_gprs = 4, .max_mask_regs = 2 }, { .seed = 12345 }, { .max_vector_regs = 8, .max_gprs = 6, .max_mask_regs = 3, .seed = 99 },
	{ .max_vector_regs = 4, .max_gprs = 4, .max_mask_regs = 2, .seed = 7 },
};
enum { FILES = sizeof files / sizeof *files };

/* Calls the code with known values in the registers it must keep; returns whether they came back. Steps over the red zone first. */
static bool call_checked(kernel_fn fn, const uint64_t *arg, int64_t begin, int64_t end)
{
	uint64_t kept[6] = { 0 }, *to = kept;
	__asm__ volatile(
		"leaq -128(%%rsp), %%rsp\n\t"
		"pushq %%rbx\n\tpushq %%rbp\n\tpushq %%r12\n\tpushq %%r13\n\tpushq %%r14\n\tpushq %%r15\n\tpushq %%rax\n\t"
		"movq %%rsp, %%rbx\n\tandq $-64, %%rsp\n\tpushq %%rbx\n\tpushq %%rbx\n\t"
		"movl $0x1111, %%ebx\n\tmovl $0x2222, %%ebp\n\tmovl $0x3333, %%r12d\n\t"
		"movl $0x4444, %%r13d\n\tmovl $0x5555, %%r14d\n\tmovl $0x6666, %%r15d\n\t"
		"call *%%rcx\n\t"
		"movq (%%rsp), %%rax\n\tmovq (%%rax), %%rax\n\t"
		"movq %%rbx, (%%rax)\n\tmovq %%rbp, 8(%%rax)\n\tmovq %%r12, 16(%%rax)\n\t"
		"movq %%r13, 24(%%rax)\n\tmovq %%r14, 32(%%rax)\n\tmovq %%r15, 40(%%rax)\n\t"
		"movq (%%rsp), %%rsp\n\taddq $8, %%rsp\n\t"
		"popq %%r15\n\tpopq %%r14\n\tpopq %%r13\n\tpopq %%r12\n\tpopq %%rbp\n\tpopq %%rbx\n\t"
		"leaq 128(%%rsp), %%rsp\n\t"
		: "+D"(arg), "+S"(begin), "+d"(end), "+c"(fn), "+a"(to)
		:
		: "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
		  "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	return kept[0] == 0x1111 && kept[1] == 0x2222 && kept[2] == 0x3333 && kept[3] == 0x4444 && kept[4] == 0x5555 && kept[5] == 0x6666;
}

static void run_native(const struct object *o, const uint64_t *arg, int64_t begin, int64_t end)
{
	struct error err = {0};
	void *code = execmem_map(o->code, o->code_bytes, &err);
	assert_non_null(code);
	kernel_fn fn;
	memcpy(&fn, &code, sizeof fn);
	assert_true(call_checked(fn, arg, begin, end));
	execmem_unmap(code, o->code_bytes);
}

static struct random_ir_buffers *fresh(uint64_t seed)
{
	struct random_ir_buffers *b = aligned_alloc(64, sizeof *b);
	assert_non_null(b);
	random_ir_fill(b, seed);
	return b;
}

static void compile(struct object *o, const struct ir *ir, const struct compile_options *opt, struct compile_stats *stats)
{
	struct error err = {0};
	if (!compile_ir(o, ir, isa, opt, stats, &err)) {
		ir_print(ir, stderr);
		fail_msg("%s", err.text);
	}
}

/* Interpreter and generated code on the same buffers; the output must agree in every byte. */
static void check(const struct ir *ir, const struct compile_options *opt, const void *in, size_t in_bytes, uint64_t seed,
                  int64_t begin, int64_t end)
{
	struct object o;
	compile(&o, ir, opt, NULL);
	if (can_run()) {
		struct random_ir_buffers *x = fresh(seed), *y = fresh(seed);
		memcpy(x->in, in, in_bytes);
		memcpy(y->in, in, in_bytes);
		ir_interp(ir, x->arg, begin, end);
		run_native(&o, y->arg, begin, end);
		for (size_t k = 0; k < sizeof x->out; k++)
			if (x->out[k] != y->out[k]) {
				ir_print(ir, stderr);
				fail_msg("%s, seed %llu, %u vector and %u general registers: output byte %zu is %02x, the interpreter says %02x",
				         isa->name, (unsigned long long)seed, opt->max_vector_regs, opt->max_gprs, k, y->out[k], x->out[k]);
			}
		free(x);
		free(y);
	}
	object_free(&o);
}

static void check_all(const struct ir *ir, const void *in, size_t in_bytes, int64_t begin, int64_t end)
{
	for (unsigned f = 0; f < FILES; f++)
		check(ir, &files[f], in, in_bytes, 1, begin, end);
}

/* --- op by op */

/* No NaN but one payload, so that which of two NaNs comes through cannot show. */
static const uint32_t edge_bits[] = {
	0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001,
	0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f000000, 0x4b000001, 0x4effffff,
	0x0000001f, 0x00000020, 0x7f7f7f7f, 0x81818181, 0x12345678, 0xffffffff & 0xff8fffff, 0x3fc00000, 0x40200000,
};
enum { EDGES = sizeof edge_bits / sizeof *edge_bits, IN_WORDS = 960 };

static bool is_nan(uint32_t u)
{
	return (u & 0x7fffffff) > 0x7f800000;
}

/* Operand vectors: words 0..959 in three thirds, one per operand. Floats hold one NaN; integers for dot4 hold no byte -128. */
static void fill_edges(uint32_t *in, enum ir_op op)
{
	bool floats = ir_facts[op].a == IR_KIND_F || ir_facts[op].b == IR_KIND_F;
	uint32_t state = 1;
	for (unsigned k = 0; k < IN_WORDS; k++) {
		uint32_t a = edge_bits[k % EDGES], b = edge_bits[(k * 7 + k / EDGES) % EDGES];
		state = state * 1664525 + 1013904223;
		uint32_t u = k < IN_WORDS / 3 ? a : k < IN_WORDS * 2 / 3 ? b : (k & 1 ? state : a);
		if (floats && is_nan(u))
			u = 0x7fc00000;
		if (op == IR_f2i && ((u & 0x7fffffff) > 0x4e000000))
			u = 0x4e000000 | (u & 0x80000000);
		if (op == IR_dot4)
			for (unsigned s = 0; s < 32; s += 8)
				if ((u >> s & 0xff) == 0x80)
					u ^= 0x01u << s;
		if (op == IR_dot2b && k < IN_WORDS / 3)
			u &= 0x7f7f7f7f;
		if (op == IR_ilut16)
			u &= 0x0f0f0f0f;
		in[k] = u;
	}
}

static uint16_t load_kind(struct ir *b, ir_a in, uint8_t kind, int32_t disp)
{
	ir_i w = ir_iload(b, in, disp);
	switch (kind) {
	case IR_KIND_F: return ir_fbits(b, w).r;
	case IR_KIND_I: return w.r;
	case IR_KIND_M: return ir_igt(b, w, ir_iconst(b, 0)).r;
	default: return 0;
	}
}

static void store_kind(struct ir *b, ir_a out, uint8_t kind, uint16_t r, int32_t disp)
{
	ir_f f = { r };
	if (kind == IR_KIND_I)
		f = ir_fbits(b, (ir_i){ r });
	else if (kind == IR_KIND_M)
		f = ir_fbits(b, ir_isel(b, (ir_m){ r }, ir_iconst(b, -1), ir_iconst(b, 0)));
	ir_fstore(b, out, f, disp, 0);
}

static bool is_vector(uint8_t kind)
{
	return kind == IR_KIND_F || kind == IR_KIND_I || kind == IR_KIND_M;
}

/* dst_on: 0 a fresh register, 1..3 a variable that is operand a, b or c. Masks have no moves, so they are left fresh. */
static bool build_vector_op(struct ir *b, enum ir_op op, int64_t imm, unsigned dst_on)
{
	const struct ir_facts *f = &ir_facts[op];
	const uint8_t kind[3] = { f->a, f->b, f->c };
	if (dst_on && (kind[dst_on - 1] != f->dst || f->dst == IR_KIND_M))
		return false;
	ir_init(b, isa->lanes);
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	for (int32_t at = 0; at + V() <= IN_WORDS / 3 * 4; at += V()) {
		uint16_t r[3] = {0};
		for (unsigned k = 0; k < 3; k++)
			r[k] = is_vector(kind[k]) ? load_kind(b, in, kind[k], at + (int32_t)k * IN_WORDS / 3 * 4) : 0;
		uint16_t dst = 0;
		if (dst_on) {
			dst = f->dst == IR_KIND_F ? ir_var_f(b, (ir_f){ r[dst_on - 1] }).r : ir_var_i(b, (ir_i){ r[dst_on - 1] }).r;
			r[dst_on - 1] = dst;
		}
		dst = ir_emit(b, op, dst, r[0], r[1], r[2], imm);
		store_kind(b, out, f->dst, dst, at);
	}
	return true;
}

static void check_vector_op(enum ir_op op, int64_t imm)
{
	uint32_t in[IN_WORDS];
	fill_edges(in, op);
	for (unsigned dst_on = 0; dst_on < 4; dst_on++) {
		struct ir b;
		if (!build_vector_op(&b, op, imm, dst_on))
			continue;
		check_all(&b, in, sizeof in, 0, 1);
		ir_free(&b);
	}
}

static void test_vector_ops(void **state)
{
	static const int64_t shifts[] = { 0, 1, 7, 16, 31 }, strides[] = { 1, 2, 4, 8 };
	for (enum ir_op op = 0; op < IR_OP_COUNT; op++) {
		const struct ir_facts *f = &ir_facts[op];
		if (!is_vector(f->dst) || (f->a && !is_vector(f->a)) || op == IR_fmov || op == IR_imov)
			continue;
		if (op == IR_ishl || op == IR_ishr || op == IR_isar)
			for (unsigned k = 0; k < 5; k++)
				check_vector_op(op, shifts[k]);
		else if (op == IR_fxor)
			for (unsigned k = 0; k < 4 && strides[k] < isa->lanes; k++)
				check_vector_op(op, strides[k]);
		else if (op == IR_ilut16)
			for (unsigned k = 0; k < LANES_TABLES; k++)
				check_vector_op(op, k);
		else if (op == IR_fhalf)
			for (unsigned k = 0; k < 2; k++)
				check_vector_op(op, k);
		else
			check_vector_op(op, op == IR_fconst ? 0x40490fdb : op == IR_iconst ? -12345 : 0);
	}
}

static const int64_t scalar_edges[] = { 0, 1, -1, 2, 5, 63, 64, 1000003, INT32_MAX, INT32_MIN, -77 };
enum { SCALARS = sizeof scalar_edges / sizeof *scalar_edges };

static void store_scalar(struct ir *b, ir_a out, ir_s v, int32_t *at)
{
	ir_fstore1(b, out, ir_fbits(b, ir_isplat(b, v)), *at);
	ir_fstore1(b, out, ir_fbits(b, ir_isplat(b, ir_sshri(b, v, 32))), *at + 4);
	*at += 8;
}

/* Both operands from memory, then each a constant, then the destination on each operand. */
static void scalar_variants(struct ir *b, enum ir_op op, ir_a in, ir_a out, int64_t x, int64_t y, int64_t imm, int32_t *at)
{
	bool two = ir_facts[op].b == IR_KIND_S;
	for (unsigned variant = 0; variant < 5; variant++) {
		ir_s p = variant == 1 ? ir_sconst(b, x) : ir_sload64(b, in, 0), q = variant == 2 ? ir_sconst(b, y) : ir_sload64(b, in, 8);
		uint16_t dst = 0;
		if (variant == 3)
			dst = (p = ir_var_s(b, p)).r;
		if (variant == 4 && two)
			dst = (q = ir_var_s(b, q)).r;
		ir_s r = { ir_emit(b, op, dst, p.r, two ? q.r : 0, 0, imm) };
		store_scalar(b, out, r, at);
		if (variant < 3) {                           /* the operands must have survived */
			store_scalar(b, out, p, at);
			store_scalar(b, out, q, at);
		}
	}
}

static bool scalar_imm_allowed(enum ir_op op, int64_t x, int64_t imm)
{
	switch (op) {
	case IR_sandi: return imm >= 0;
	case IR_sdivi: return imm > 0 && x >= 0;
	default: return true;
	}
}

static void test_scalar_ops(void **state)
{
	for (enum ir_op op = IR_sadd; op <= IR_sdivi; op++)
		for (unsigned p = 0; p < SCALARS; p++)
			for (unsigned q = 0; q < SCALARS; q++) {
				int64_t in[2] = { scalar_edges[p], scalar_edges[q] };
				int64_t imm = op == IR_sshli || op == IR_sshri ? scalar_edges[q] & 31 : scalar_edges[q];
				if (!scalar_imm_allowed(op, in[0], imm))
					continue;
				struct ir b;
				int32_t at = 0;
				ir_init(&b, isa->lanes);
				ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
				scalar_variants(&b, op, src, out, in[0], in[1], ir_facts[op].b == IR_KIND_S ? 0 : imm, &at);
				check(&b, &files[p % FILES], in, sizeof in, 1, 0, 1);
				ir_free(&b);
			}
}

/* Every quotient is right near its steps, for divisors of every size. */
static void test_division(void **state)
{
	for (int64_t d = 1; d < INT32_MAX; d = d < 40 ? d + 1 : d * 3 + 1) {
		struct ir b;
		uint64_t in[64];
		ir_init(&b, isa->lanes);
		ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
		for (int32_t k = 0; k < 64; k++) {
			int64_t q = INT32_MAX / d * (k / 3) / 21, v = q * d + k % 3 - 1;
			in[k] = (uint64_t)(v < 0 ? 0 : v > INT32_MAX ? INT32_MAX : v);
			int32_t at = 8 * k;
			store_scalar(&b, out, ir_sdivi(&b, ir_sload64(&b, src, 8 * k), d), &at);
		}
		check(&b, &files[d % FILES], in, sizeof in, 1, 0, 1);
		ir_free(&b);
	}
}

/* --- memory */

static void test_lane_counts(void **state)
{
	uint32_t in[IN_WORDS];
	fill_edges(in, IR_f2i);
	for (unsigned n = 0; n <= isa->lanes; n++) {
		struct ir b;
		ir_init(&b, isa->lanes);
		ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
		ir_f v = ir_fload(&b, src, 0, 0), w = ir_fload(&b, ir_aaddi(&b, src, 4096 - 4 * (n ? (int)n : (int)isa->lanes)), 0, n);
		ir_fstore(&b, out, w, 0, 0);
		ir_fstore(&b, out, v, 64, n);
		ir_fstore_h(&b, out, v, 130, n);
		ir_fstore_s(&b, out, v, 256, n, 12);
		ir_fstore_hs(&b, out, v, 512, n, 6);
		ir_fstore1(&b, out, v, 700);
		ir_istore_8(&b, out, ir_isar(&b, ir_ibits(&b, v), 24), 801);
		check_all(&b, in, sizeof in, 0, 1);
		ir_free(&b);
	}
}

static void test_gather(void **state)
{
	uint32_t in[IN_WORDS];
	for (unsigned k = 0; k < IN_WORDS; k++)
		in[k] = k * 2654435761u;
	struct ir b;
	ir_init(&b, isa->lanes);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8), local = ir_local(&b, 1024);
	ir_i offset = ir_iand(&b, ir_iload(&b, src, 64), ir_iconst(&b, 0xfc)), var = ir_var_i(&b, offset);
	ir_emit(&b, IR_igather, var.r, src.r, var.r, 0, 32);
	ir_fstore(&b, out, ir_fbits(&b, var), 0, 0);
	ir_fstore(&b, out, ir_fbits(&b, ir_igather(&b, src, offset, -0)), V(), 0);
	for (int32_t k = 0; k < 1024; k += V())
		ir_fstore(&b, local, ir_fload(&b, src, k, 0), k, 0);
	ir_fstore(&b, out, ir_fbits(&b, ir_igather(&b, local, offset, 128)), 2 * V(), 0);
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

/* A load may move to its use only while nothing it depends on changes. */
static void test_folded_loads(void **state)
{
	float in[IN_WORDS];
	for (unsigned k = 0; k < IN_WORDS; k++)
		in[k] = (float)k * 0.37f - 5;
	struct ir b;
	ir_init(&b, isa->lanes);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8), p = ir_var_a(&b, src), t = ir_aaddi(&b, p, 64);
	ir_f one = ir_fconst(&b, 1.5f), acc = ir_var_f(&b, ir_fload(&b, src, 0, 0));
	ir_f before = ir_fload(&b, t, 0, 0);
	ir_set_a(&b, p, ir_aaddi(&b, p, 128));                                 /* the address changes */
	ir_fstore(&b, out, ir_fadd(&b, before, one), 0, 0);
	ir_fstore(&b, out, ir_fload(&b, t, 32, 0), V(), 0);
	ir_f old = ir_fload(&b, out, 0, 0);
	ir_fstore(&b, out, one, 0, 0);                                         /* the memory changes */
	ir_fstore(&b, out, ir_fmul(&b, old, one), 2 * V(), 0);
	ir_f outside = ir_fload(&b, p, 0, 0);
	ir_s k = ir_loop(&b, ir_sconst(&b, 3));
	ir_set_f(&b, acc, ir_ffma(&b, outside, one, acc));                     /* another block */
	ir_set_a(&b, p, ir_aadd(&b, p, ir_sshli(&b, k, 5)));
	ir_set_f(&b, acc, ir_ffma(&b, acc, one, ir_fload(&b, p, 0, 0)));
	ir_set_f(&b, acc, ir_ffma(&b, ir_fload(&b, p, 32, 0), one, acc));
	ir_set_f(&b, acc, ir_ffma(&b, acc, ir_fload(&b, p, 64, 0), one));
	ir_endloop(&b);
	ir_fstore(&b, out, acc, 3 * V(), 0);
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

/* Names of a variable (casts, sums of addresses) must mean its value of then. */
static void test_names_of_variables(void **state)
{
	uint32_t in[IN_WORDS];
	fill_edges(in, IR_f2i);
	struct ir b;
	ir_init(&b, isa->lanes);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8), p = ir_var_a(&b, src);
	ir_i v = ir_var_i(&b, ir_iload(&b, src, 0));
	ir_f name = ir_fbits(&b, v);
	ir_a q = ir_aaddi(&b, p, 4), far = ir_aaddi(&b, q, 8);
	ir_set_i(&b, v, ir_iadd(&b, v, ir_iconst(&b, 1)));
	ir_set_a(&b, p, ir_aaddi(&b, far, 32));
	ir_fstore(&b, out, name, 0, 0);
	ir_fstore(&b, out, ir_fbits(&b, v), V(), 0);
	ir_fstore(&b, out, ir_fload(&b, q, 0, 0), 2 * V(), 0);
	ir_fstore(&b, out, ir_fload(&b, far, 0, 0), 3 * V(), 0);
	ir_f w = ir_fbits(&b, v);
	ir_loop(&b, ir_sconst(&b, 2));
	ir_i next = ir_ixor(&b, v, ir_ibits(&b, w));
	ir_fstore(&b, out, ir_fbits(&b, v), 4 * V(), 0);
	ir_emit(&b, IR_imov, v.r, next.r, 0, 0, 0);
	ir_set_a(&b, p, ir_aaddi(&b, p, 4));
	ir_endloop(&b);
	ir_fstore(&b, out, ir_fload(&b, p, 0, 0), 5 * V(), 0);
	ir_fstore(&b, out, ir_fbits(&b, v), 6 * V(), 0);
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

/* A value bound for a variable must not be written there early while a name of the old value is still read. */
static void test_early_writes(void **state)
{
	float in[32];
	for (unsigned k = 0; k < 32; k++)
		in[k] = (float)k - 3.5f;
	struct ir b;
	ir_init(&b, isa->lanes);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
	ir_f v = ir_var_f(&b, ir_fload(&b, src, 0, 0)), w = ir_fload(&b, src, V(), 0);
	ir_i name = ir_ibits(&b, v);
	ir_f next = ir_fmul(&b, w, w);
	ir_fstore(&b, out, ir_fbits(&b, ir_ixor(&b, name, ir_ilane(&b))), 0, 0);
	ir_emit(&b, IR_fmov, v.r, next.r, 0, 0, 0);
	ir_fstore(&b, out, v, V(), 0);
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

/* dot4 keeps what it made of a recent operand; a write of the variable must end that. */
static void test_dot4_memo(void **state)
{
	uint32_t in[IN_WORDS];
	fill_edges(in, IR_dot4);
	struct ir b;
	ir_init(&b, isa->lanes);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
	ir_i zero = ir_iconst(&b, 0), w = ir_var_i(&b, ir_iload(&b, src, 0)), acc = ir_var_i(&b, zero);
	ir_loop(&b, ir_sconst(&b, 3));
	ir_fstore(&b, out, ir_fbits(&b, ir_dot4(&b, w, ir_iload(&b, src, 640), zero)), 8 * V(), 0);
	ir_emit(&b, IR_dot4, acc.r, acc.r, ir_iload(&b, src, 672).r, zero.r, 0);
	for (int32_t k = 0; k < 6; k++) {
		ir_set_i(&b, acc, ir_dot4(&b, w, ir_iload(&b, src, 640 + V() * k), acc));
		if (k & 1)
			ir_set_i(&b, w, ir_ixor(&b, w, ir_iload(&b, src, 32 * k)));
		ir_fstore(&b, out, ir_fbits(&b, acc), V() * k, 0);
	}
	ir_endloop(&b);
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

/* --- loops */

/* Three nested loops whose counts come from the arguments; the index read or not. */
static void build_loops(struct ir *b, bool use_index)
{
	ir_init(b, isa->lanes);
	ir_a arg = ir_arg(b), out = ir_aload(b, arg, 8);
	ir_s n = ir_begin(b), m = ir_end(b), total = ir_var_s(b, ir_sconst(b, 7)), count = ir_var_s(b, n);
	ir_i acc = ir_var_i(b, ir_iconst(b, 1));
	ir_s i = ir_loop(b, count);
	ir_set_s(b, count, ir_saddi(b, count, 5));            /* the count was read at the loop's head */
	ir_s j = ir_loop(b, m);
	ir_s k = ir_loop(b, ir_sconst(b, 3));
	ir_set_s(b, total, ir_sadd(b, ir_smuli(b, total, 3), use_index ? ir_sadd(b, i, ir_ssub(b, k, j)) : n));
	ir_set_s(b, total, ir_sandi(b, total, 0xfffff));
	ir_endloop(b);
	ir_set_i(b, acc, ir_iadd(b, acc, ir_imul(b, acc, ir_ilane(b))));
	ir_endloop(b);
	ir_endloop(b);
	int32_t at = 64;
	store_scalar(b, out, total, &at);
	store_scalar(b, out, count, &at);
	ir_fstore(b, out, ir_fbits(b, acc), 0, 0);
}

static void test_loops(void **state)
{
	static const int64_t counts[] = { -3, 0, 1, 2, 7 };
	for (unsigned use = 0; use < 2; use++) {
		struct ir b;
		build_loops(&b, use);
		for (unsigned n = 0; n < 5; n++)
			for (unsigned m = 0; m < 5; m++)
				check_all(&b, "", 0, counts[n], counts[m]);
		ir_free(&b);
	}
}

static void test_deep_nesting(void **state)
{
	struct ir b;
	ir_init(&b, isa->lanes);
	ir_a arg = ir_arg(&b), out = ir_aload(&b, arg, 8);
	ir_s sum = ir_var_s(&b, ir_sconst(&b, 0)), index[IR_MAX_LOOP_DEPTH];
	for (unsigned d = 0; d < IR_MAX_LOOP_DEPTH; d++)
		index[d] = ir_loop(&b, ir_sconst(&b, d % 4 == 0 ? 2 : 1));
	for (unsigned d = 0; d < IR_MAX_LOOP_DEPTH; d++)
		ir_set_s(&b, sum, ir_sadd(&b, sum, ir_saddi(&b, index[d], d)));
	for (unsigned d = 0; d < IR_MAX_LOOP_DEPTH; d++)
		ir_endloop(&b);
	int32_t at = 0;
	store_scalar(&b, out, sum, &at);
	check_all(&b, "", 0, 0, 1);
	ir_free(&b);
}

/* --- frames, constants, pressure */

static void test_large_frames(void **state)
{
	static const int32_t sizes[] = { 4, 64, 4000, 4096, 8192, 262144 };
	for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		struct ir b;
		int32_t last = (sizes[s] - 4) & ~3;
		ir_init(&b, isa->lanes);
		ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
		ir_a x = ir_local(&b, sizes[s]), y = ir_local(&b, 100), p = ir_var_a(&b, x);
		ir_f v = ir_fload(&b, src, 0, 0);
		ir_fstore1(&b, x, v, 0);
		ir_fstore1(&b, p, v, last);
		ir_fstore(&b, y, v, 0, 0);
		ir_fstore1(&b, ir_aaddi(&b, x, last), ir_fxor(&b, v, 1), 0);
		ir_fstore1(&b, out, ir_fbcast(&b, p, last), 0);
		ir_fstore(&b, out, ir_fload(&b, ir_aadd(&b, y, ir_sconst(&b, 0)), 0, 0), V(), 0);
		check_all(&b, edge_bits, sizeof edge_bits, 0, 1);
		ir_free(&b);
	}
}

static void test_many_constants(void **state)
{
	struct ir b;
	ir_init(&b, isa->lanes);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
	ir_f acc = ir_var_f(&b, ir_fload(&b, src, 0, 0));
	ir_loop(&b, ir_sconst(&b, 2));
	for (int k = 0; k < 300; k++)
		ir_set_f(&b, acc, ir_ffma(&b, acc, ir_fconst(&b, 1.0f / (float)(k + 1)), ir_fconst(&b, (float)(k % 40))));
	ir_fstore(&b, out, ir_fabs(&b, ir_fneg(&b, acc)), 0, 0);
	ir_endloop(&b);
	float in[16] = { 0, 1, 2, 3, -4, 5, 6, -7, 8, 9, -10, 11, 12, 13, -14, 15 };
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

/* More values alive than registers, in a loop: the spills are counted, and constants are not. */
static void test_pressure_is_counted(void **state)
{
	for (unsigned live = 8; live <= 40; live += 16) {
		struct ir b;
		struct object o;
		struct compile_stats stats;
		ir_f acc[40];
		ir_init(&b, isa->lanes);
		ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8), p = ir_var_a(&b, src);
		for (unsigned k = 0; k < live; k++)
			acc[k] = ir_var_f(&b, ir_fconst(&b, 0));
		ir_loop(&b, ir_sconst(&b, 4));
		ir_f x = ir_fbcast(&b, p, 0);
		for (unsigned k = 0; k < live; k++)
			ir_set_f(&b, acc[k], ir_ffma(&b, x, ir_fload(&b, p, V() * (int32_t)k, 0), acc[k]));
		ir_set_a(&b, p, ir_aaddi(&b, p, 32));
		ir_endloop(&b);
		for (unsigned k = 0; k < live; k++)
			ir_fstore(&b, out, acc[k], V() * (int32_t)k, 0);
		compile(&o, &b, NULL, &stats);
		assert_int_equal(stats.spills_in_loops > 0, live >= isa->vector_regs);
		assert_true(stats.spills >= stats.spills_in_loops);
		assert_true(stats.vector_regs_used <= isa->vector_regs && stats.machine_instructions > 2 * live);
		object_free(&o);
		float in[960];
		for (unsigned k = 0; k < 960; k++)
			in[k] = (float)(k % 97) * 0.25f;
		check_all(&b, in, sizeof in, 0, 1);
		ir_free(&b);
	}
}

/* --- random kernels */

static void test_random(void **state)
{
	const char *more = getenv("JITRUN_RANDOM_KERNELS");
	uint64_t n = more ? strtoull(more, NULL, 10) : 400;
	for (uint64_t seed = 1; seed <= n; seed++) {
		struct ir ir;
		random_ir(&ir, isa->lanes, seed, seed % 7 == 0 ? 900 : 30 + (unsigned)(seed % 11) * 25);
		struct compile_options opt = files[seed % FILES];
		if (opt.seed)
			opt.seed = (uint32_t)seed;
		struct random_ir_buffers *x = fresh(seed);
		check(&ir, &opt, x->in, sizeof x->in, seed, (int64_t)(seed % 5) - 1, (int64_t)(seed % 9));
		free(x);
		ir_free(&ir);
	}
}

static void test_same_bytes(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct ir ir;
		struct object a, b;
		random_ir(&ir, isa->lanes, seed, 300);
		compile(&a, &ir, &files[seed % 4], NULL);
		compile(&b, &ir, &files[seed % 4], NULL);
		assert_int_equal(a.code_bytes, b.code_bytes);
		assert_int_equal(a.pool_offset, b.pool_offset);
		assert_memory_equal(a.code, b.code, a.code_bytes);
		object_free(&a);
		object_free(&b);
		ir_free(&ir);
	}
}

/* --- refusals and listings */

static void test_refusals(void **state)
{
	struct error err = {0};
	struct object o;
	struct ir b;
	ir_init(&b, 24 - isa->lanes);
	ir_arg(&b);
	assert_false(compile_ir(&o, &b, isa, NULL, NULL, &err));
	assert_non_null(strstr(err.text, isa->lanes == 8 ? "16 lanes" : "8 lanes"));
	ir_free(&b);
	err = (struct error){0};
	ir_init(&b, isa->lanes);
	ir_loop(&b, ir_begin(&b));
	assert_false(compile_ir(&o, &b, isa, NULL, NULL, &err));
	assert_true(err.code != ERROR_NONE);
	ir_free(&b);
}

static bool build_copy(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	ir_a arg = ir_arg(b);
	ir_fstore(b, ir_aload(b, arg, 8), ir_fmul(b, ir_fload(b, ir_aload(b, arg, 0), 0, 0), ir_fconst(b, 3)), 0, 0);
	return key->kind == KEY_NORM || error_set(err, ERROR_UNSUPPORTED, "only norms are built here, the key asks for kind %u", key->kind);
}

static void test_keys_and_listings(void **state)
{
	struct key key;
	struct error err = {0};
	struct object o;
	char *ir_text = NULL, *asm_text = NULL, name[KEY_TEXT_MAX];
	size_t ir_bytes, asm_bytes;
	struct compile_options opt = { .dump_ir = open_memstream(&ir_text, &ir_bytes), .dump_asm = open_memstream(&asm_text, &asm_bytes) };
	memset(&key, 0, sizeof key);
	key.kind = KEY_NORM;
	key.target = (uint8_t)isa->id;
	assert_true(compile_key(&o, &key, build_copy, &opt, NULL, &err));
	fclose(opt.dump_ir);
	fclose(opt.dump_asm);
	key_text(&key, name, sizeof name);
	assert_non_null(strstr(ir_text, name));
	assert_non_null(strstr(ir_text, "fmul"));
	assert_non_null(strstr(asm_text, name));
	assert_non_null(strstr(asm_text, "fmul"));
	object_free(&o);
	free(ir_text);
	free(asm_text);
	key.kind = KEY_ROPE;
	assert_false(compile_key(&o, &key, build_copy, NULL, NULL, &err));
	assert_non_null(strstr(err.text, "only norms"));
}

/* The listing, assembled, is the object's bytes; disassembled, it holds no bad instruction. */
static void test_listing_assembles(void **state)
{
	char dir[] = "/tmp/t_compile.XXXXXX", command[512], path[256], line[512];
	if (system("as --version >/dev/null 2>&1 && objdump --version >/dev/null 2>&1 && objcopy --version >/dev/null 2>&1") != 0) {
		print_message("no as, objdump and objcopy here: skipped\n");
		skip();
	}
	assert_non_null(mkdtemp(dir));
	struct ir ir;
	struct object o;
	random_ir(&ir, isa->lanes, 3, 400);
	snprintf(path, sizeof path, "%s/k.s", dir);
	struct compile_options opt = { .dump_asm = fopen(path, "w") };
	compile(&o, &ir, &opt, NULL);
	fclose(opt.dump_asm);
	snprintf(command, sizeof command, "cd %s && as k.s -o k.o && objcopy -O binary -j .text k.o k.bin && objcopy -O binary -j .rodata k.o k.pool &&"
	         " cat k.pool >>k.bin && objdump -d k.o >k.dis", dir);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof path, "%s/k.bin", dir);
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = malloc(o.code_bytes + 1);
	assert_int_equal(fread(bytes, 1, o.code_bytes + 1, f), o.code_bytes);
	assert_memory_equal(bytes, o.code, o.code_bytes);
	fclose(f);
	snprintf(path, sizeof path, "%s/k.dis", dir);
	f = fopen(path, "r");
	bool code = true, returned = false;
	while (fgets(line, sizeof line, f)) {
		code &= !strstr(line, "<constants>:");
		returned |= code && strstr(line, "ret");
		assert_false(code && strstr(line, "(bad)"));
	}
	assert_true(returned);
	fclose(f);
	snprintf(command, sizeof command, "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	free(bytes);
	object_free(&o);
	ir_free(&ir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector_ops), cmocka_unit_test(test_scalar_ops), cmocka_unit_test(test_division),
		cmocka_unit_test(test_lane_counts), cmocka_unit_test(test_gather), cmocka_unit_test(test_folded_loads),
		cmocka_unit_test(test_names_of_variables), cmocka_unit_test(test_early_writes), cmocka_unit_test(test_dot4_memo), cmocka_unit_test(test_loops),
		cmocka_unit_test(test_deep_nesting), cmocka_unit_test(test_large_frames), cmocka_unit_test(test_many_constants),
		cmocka_unit_test(test_pressure_is_counted), cmocka_unit_test(test_random), cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_keys_and_listings), cmocka_unit_test(test_listing_assembles),
	};
	int failed = 0;
	for (int id = TARGET_NONE + 1; id < TARGET_COUNT; id++) {
		isa = &target_table[id];
		if (isa->backend != BACKEND_X86)
			continue;
		failed += cmocka_run_group_tests_name(isa->name, tests, NULL, NULL);
	}
	return failed;
}

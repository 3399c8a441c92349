/* tests/jit/t_compile.c - generated code against the interpreter, byte for byte.
 *
 * Every op alone on edge values with its destination on each operand; random kernels on whole and on shrunken register
 * files with scrambled choices; loops, frames, constants; the same bytes twice; the listing through the system's
 * assembler when there is one.
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
#include "jit/store/execmem.h"
#include "jit/ir/ir_build.h"
#include "tests/jit/op_kernels.h"

typedef void (*kernel_fn)(const uint64_t *arg, int64_t begin, int64_t end);

/* The target under test: every test runs once for each. */
static const struct target *isa;

/* Bytes of a vector. */
static int32_t V(void) { return (int32_t)isa->lanes * 4; }

static bool can_run(void)
{
	const struct target_cpu cpu = target_this_cpu();
	return target_runs(&cpu, isa, NULL);
}

/* The register files of the tests, and scrambled choices from some of them. */
static const struct compile_options files[] = {
	{ 0 },
	{ .max_vector_regs = 8, .max_gprs = 8, .max_mask_regs = 3 },
	{ .max_vector_regs = 6, .max_gprs = 5, .max_mask_regs = 2 },
	{ .max_vector_regs = 4, .max_gprs = 4, .max_mask_regs = 2 },
	{ .seed = 12345 },
	{ .max_vector_regs = 8, .max_gprs = 6, .max_mask_regs = 3, .seed = 99 },
	{ .max_vector_regs = 4, .max_gprs = 4, .max_mask_regs = 2, .seed = 7 },
};
enum { FILES = sizeof files / sizeof *files };

/* Calls the code with known values in the registers it must keep; returns whether they came back. Steps over the red
 * zone first. */
static bool call_checked(kernel_fn fn, const uint64_t *arg, int64_t begin, int64_t end)
{
	uint64_t kept[6] = { 0 }, *to = kept;
	__asm__ volatile(
		"leaq -128(%%rsp), %%rsp\n\t"
		"pushq %%rbx\n\tpushq %%rbp\n\tpushq %%r12\n\tpushq %%r13\n\tpushq %%r14\n\tpushq %%r15\n\tpushq "
		"%%rax\n\t"
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
		: "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
		  "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	return kept[0] == 0x1111 && kept[1] == 0x2222 && kept[2] == 0x3333 && kept[3] == 0x4444 && kept[4] == 0x5555 &&
	       kept[5] == 0x6666;
}

static void run_native(const struct object *o, const uint64_t *arg, int64_t begin, int64_t end)
{
	struct error err = { 0 };
	void *code = execmem_map(o->code, o->code_bytes, &err);
	assert_non_null(code);
	kernel_fn fn;
	memcpy(&fn, &code, sizeof fn);
	assert_true(call_checked(fn, arg, begin, end));
	execmem_unmap(code, o->code_bytes);
}

static void compile(struct object *o, const struct ir *ir, const struct compile_options *opt,
                    struct compile_stats *stats)
{
	struct error err = { 0 };
	if (!compile_ir(o, ir, isa, opt, stats, &err)) {
		ir_print(ir, stderr);
		fail_msg("%s", err.text);
	}
}

/* Interpreter and generated code on the same buffers; the output must agree in every byte. */
static void check(const struct ir *ir, const struct compile_options *opt, const void *in, size_t in_bytes,
                  uint64_t seed, int64_t begin, int64_t end)
{
	struct object o;
	compile(&o, ir, opt, NULL);
	if (can_run()) {
		struct random_ir_buffers *x = random_ir_buffers_new(seed), *y = random_ir_buffers_new(seed);
		memcpy(x->in, in, in_bytes);
		memcpy(y->in, in, in_bytes);
		ir_interp(ir, x->arg, begin, end);
		run_native(&o, y->arg, begin, end);
		for (size_t k = 0; k < sizeof x->out; k++)
			if (x->out[k] != y->out[k]) {
				ir_print(ir, stderr);
				fail_msg("%s, seed %llu, %u vector and %u general registers: output byte %zu is %02x, "
				         "the interpreter says %02x",
				         isa->name, (unsigned long long)seed, opt->max_vector_regs, opt->max_gprs, k,
				         y->out[k], x->out[k]);
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

static void check_vector_op(enum ir_op op, int64_t imm)
{
	uint32_t in[OP_WORDS];
	op_fill(in, op);
	for (unsigned dst_on = 0; dst_on < 4; dst_on++) {
		struct ir b;
		ir_init(&b, isa->lanes);
		if (op_build_vector(&b, op, imm, dst_on, 0, in))
			check_all(&b, in, sizeof in, 0, 1);
		ir_free(&b);
	}
}

static void test_vector_ops(void **state) { op_each_vector(isa->lanes, check_vector_op); }

static void begin_ir(struct ir *b) { ir_init(b, isa->lanes); }

static void check_scalar(const struct ir *ir, const void *in, size_t in_bytes, unsigned turn)
{
	check(ir, &files[turn % FILES], in, in_bytes, 1, 0, 1);
}

static void test_scalar_ops(void **state) { op_each_scalar(begin_ir, check_scalar); }

/* Every quotient is right near its steps, for divisors of every size. */
static void test_division(void **state)
{
	for (int64_t d = 1; d < INT32_MAX; d = d < 40 ? d + 1 : d * 3 + 1) {
		struct ir b;
		uint64_t in[OP_DIVIDENDS];
		ir_init(&b, isa->lanes);
		op_build_division(&b, d, in);
		check(&b, &files[d % FILES], in, sizeof in, 1, 0, 1);
		ir_free(&b);
	}
}

/* --- memory */

static void test_lane_counts(void **state)
{
	uint32_t in[OP_WORDS];
	op_fill(in, IR_f2i);
	for (unsigned n = 0; n <= isa->lanes; n++) {
		struct ir b;
		ir_init(&b, isa->lanes);
		op_build_lane_counts(&b, n);
		check_all(&b, in, sizeof in, 0, 1);
		ir_free(&b);
	}
}

static void test_gather(void **state)
{
	uint32_t in[OP_WORDS];
	for (unsigned k = 0; k < OP_WORDS; k++)
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
	float in[OP_WORDS];
	for (unsigned k = 0; k < OP_WORDS; k++)
		in[k] = (float)k * 0.37f - 5;
	struct ir b;
	ir_init(&b, isa->lanes);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8), p = ir_var_a(&b, src),
	     t = ir_aaddi(&b, p, 64);
	ir_f one = ir_fconst(&b, 1.5f), acc = ir_var_f(&b, ir_fload(&b, src, 0, 0));
	ir_f before = ir_fload(&b, t, 0, 0);
	ir_set_a(&b, p, ir_aaddi(&b, p, 128)); /* the address changes */
	ir_fstore(&b, out, ir_fadd(&b, before, one), 0, 0);
	ir_fstore(&b, out, ir_fload(&b, t, 32, 0), V(), 0);
	ir_f old = ir_fload(&b, out, 0, 0);
	ir_fstore(&b, out, one, 0, 0); /* the memory changes */
	ir_fstore(&b, out, ir_fmul(&b, old, one), 2 * V(), 0);
	ir_f outside = ir_fload(&b, p, 0, 0);
	ir_s k = ir_loop(&b, ir_sconst(&b, 3));
	ir_set_f(&b, acc, ir_ffma(&b, outside, one, acc)); /* another block */
	ir_set_a(&b, p, ir_aadd(&b, p, ir_sshli(&b, k, 5)));
	ir_set_f(&b, acc, ir_ffma(&b, acc, one, ir_fload(&b, p, 0, 0)));
	ir_set_f(&b, acc, ir_ffma(&b, ir_fload(&b, p, 32, 0), one, acc));
	ir_set_f(&b, acc, ir_ffma(&b, acc, ir_fload(&b, p, 64, 0), one));
	ir_endloop(&b);
	ir_fstore(&b, out, acc, 3 * V(), 0);
	check_all(&b, in, sizeof in, 0, 1);
	ir_free(&b);
}

static void test_names_of_variables(void **state)
{
	uint32_t in[OP_WORDS];
	op_fill(in, IR_f2i);
	struct ir b;
	ir_init(&b, isa->lanes);
	op_build_names(&b);
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
	uint32_t in[OP_WORDS];
	op_fill(in, IR_dot4);
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

static void test_loops(void **state)
{
	static const int64_t counts[] = { -3, 0, 1, 2, 7 };
	for (unsigned use = 0; use < 2; use++) {
		struct ir b;
		ir_init(&b, isa->lanes);
		op_build_loops(&b, use);
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
	op_store_scalar(&b, out, sum, &at);
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
		check_all(&b, op_edges, sizeof op_edges, 0, 1);
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
		ir_set_f(&b, acc,
		         ir_ffma(&b, acc, ir_fconst(&b, 1.0f / (float)(k + 1)), ir_fconst(&b, (float)(k % 40))));
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
		assert_int_equal(stats.spills_in_inner_loops > 0, live >= isa->vector_regs);
		assert_true(stats.spills >= stats.spills_in_inner_loops);
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
		struct random_ir_buffers *x = random_ir_buffers_new(seed);
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
	struct error err = { 0 };
	struct object o;
	struct ir b;
	ir_init(&b, 24 - isa->lanes);
	ir_arg(&b);
	assert_false(compile_ir(&o, &b, isa, NULL, NULL, &err));
	assert_non_null(strstr(err.text, isa->lanes == 8 ? "16 lanes" : "8 lanes"));
	ir_free(&b);
	err = (struct error){ 0 };
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
	return key->kind == KEY_NORM ||
	       error_set(err, ERROR_UNSUPPORTED, "only norms are built here, the key asks for kind %u", key->kind);
}

static void test_keys_and_listings(void **state)
{
	struct key key;
	struct error err = { 0 };
	struct object o;
	char *ir_text = NULL, *asm_text = NULL, name[KEY_TEXT_MAX];
	size_t ir_bytes, asm_bytes;
	struct compile_options opt = { .dump_ir = open_memstream(&ir_text, &ir_bytes),
		                       .dump_asm = open_memstream(&asm_text, &asm_bytes) };
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
	if (system("as --version >/dev/null 2>&1 && objdump --version >/dev/null 2>&1 && objcopy --version >/dev/null "
	           "2>&1") != 0) {
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
	snprintf(command, sizeof command,
	         "cd %s && as k.s -o k.o && objcopy -O binary -j .text k.o k.bin && objcopy -O binary -j .rodata k.o "
	         "k.pool &&"
	         " cat k.pool >>k.bin && objdump -d k.o >k.dis",
	         dir);
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
		cmocka_unit_test(test_vector_ops),
		cmocka_unit_test(test_scalar_ops),
		cmocka_unit_test(test_division),
		cmocka_unit_test(test_lane_counts),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_folded_loads),
		cmocka_unit_test(test_names_of_variables),
		cmocka_unit_test(test_early_writes),
		cmocka_unit_test(test_dot4_memo),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_deep_nesting),
		cmocka_unit_test(test_large_frames),
		cmocka_unit_test(test_many_constants),
		cmocka_unit_test(test_pressure_is_counted),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_keys_and_listings),
		cmocka_unit_test(test_listing_assembles),
	};
	int failed = 0;
	for (int id = TARGET_NONE + 1; id < TARGET_COUNT; id++) {
		isa = &target_table[id];
		if (isa->backend != &backend_x86)
			continue;
		failed += cmocka_run_group_tests_name(isa->name, tests, NULL, NULL);
	}
	return failed;
}

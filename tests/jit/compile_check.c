/* tests/jit/compile_check.c - see compile_check.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/compile.h"
#include "jit/store/execmem.h"
#include "tests/jit/op_kernels.h"
#include "tests/jit/compile_check.h"

const struct target *compile_isa;

static bool can_run(void)
{
	const struct target_cpu cpu = target_this_cpu();
	return target_runs(&cpu, compile_isa, NULL);
}

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

void compile_x86(struct object *o, const struct ir *ir, const struct compile_options *opt, struct compile_stats *stats)
{
	struct error err = { 0 };
	if (!compile_ir(o, ir, compile_isa, opt, stats, &err)) {
		ir_print(ir, stderr);
		fail_msg("%s", err.text);
	}
}

void check_native(const struct ir *ir, const struct compile_options *opt, const void *in, size_t in_bytes,
                  uint64_t seed, int64_t begin, int64_t end)
{
	struct object o;
	compile_x86(&o, ir, opt, NULL);
	if (can_run()) {
		struct random_ir_buffers *x = random_ir_buffers_new(seed), *y = random_ir_buffers_new(seed);
		memcpy(x->in, in, in_bytes);
		memcpy(y->in, in, in_bytes);
		ir_interp(ir, x->arg, begin, end);
		run_native(&o, y->arg, begin, end);
		for (size_t k = 0; k < sizeof x->out; k++)
			if (x->out[k] != y->out[k]) {
				const char *isa = compile_isa->name;
				ir_print(ir, stderr);
				fail_msg("%s, seed %llu, %u vector and %u general registers: output byte %zu is %02x, "
				         "the interpreter says %02x",
				         isa, (unsigned long long)seed, opt->max_vector_regs, opt->max_gprs, k,
				         y->out[k], x->out[k]);
			}
		free(x);
		free(y);
	}
	object_free(&o);
}

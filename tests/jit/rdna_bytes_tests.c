/* tests/jit/rdna_bytes_tests.c - RDNA code as bytes: short forms, refusals, loops in the simulator, disassembly,
 * listings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/rdna/machine.h"
#include "tests/jit/random_ir.h"
#include "tests/jit/rdna_build.h"
#include "tests/jit/rdna_call.h"
#include "tests/jit/rdna_lir_random.h"
#include "tests/jit/rdna_bytes_tests.h"

/* --- bytes */

static void bytes_of(enum rdna_gen gen, const char *text, struct object *o)
{
	struct error err = { .code = ERROR_NONE };
	struct rdna_lir l;
	parse_rdna(&l, gen, text);
	rdna_shorten(&l);
	*o = (struct object){ 0 };
	must_do(rdna_emit(o, &l, &err), &err);
	rdna_lir_free(&l);
}

/* Words, the return's one aside. */
static void short_forms_are_found(void **state)
{
	static const struct {
		uint8_t gen, words;
		const char *text;
	} cases[] = {
		{ G11, 1, "v_fma_f32 v1, v2, v3, v1" },
		{ G11, 1, "v_fma_f32 v1, v2, s16, v1" },
		{ G11, 2, "v_fma_f32 v1, v2, v3, v4" },
		{ G11, 2, "v_fma_f32 v1, -v2, v3, v1" },
		{ G11, 2, "v_fma_f32 v1, s16, s17, v1" },
		{ G11, 2, "v_fma_f32 v1, v2, v3, 0x12345678" },
		{ G11, 2, "v_fma_f32 v1, v2, 0x12345678, v3" },
		{ G11, 2, "v_fma_f32 v1, v2, 0x12345678, v1" },
		{ G10, 1, "v_dot4_i32_i8 v1, v2, v3, v1" },
		{ G10, 2, "v_dot4_i32_i8 v1, v2, v3, v4" },
		{ G11, 1, "v_add_f32 v1, v2, s16" },
		{ G11, 1, "v_sub_f32 v1, v2, s16" },
		{ G11, 1, "v_sub_nc_u32 v1, v2, 7" },
		{ G11, 2, "v_max_num_f32 v1, v2, s16" },
		{ G11, 1, "s_mov_b32 s16, 0xffff8000" },
		{ G11, 2, "s_mov_b32 s16, 0x8000" },
		{ G11, 1, "s_add_co_i32 s16, s16, 1000" },
		{ G11, 2, "s_add_co_u32 s16, s16, 1000" },
		{ G11, 1, "s_mul_i32 s16, s16, 1000" },
		{ G11, 2, "s_mul_i32 s16, s17, 1000" },
		/* lanes on and off once for both, and not at all for what is no memory */
		{ G10, 7,
		  "global_store_b32 v0, v1, s[10:11] exec:0x1f\ns_mov_b32 s16, 0\nglobal_store_b32 v0, v1, s[10:11] "
		  "exec:0x1f" },
		{ G10, 9,
		  "global_store_b32 v0, v1, s[10:11] exec:0x1f\nv_mov_b32 v2, 0\nglobal_store_b32 v0, v1, "
		  "s[10:11]\nglobal_store_b32 v0, v1, s[10:11] exec:0xffffffff" },
	};
	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct object o;
		bytes_of((enum rdna_gen)cases[k].gen, cases[k].text, &o);
		if (o.code_bytes != 4u * (cases[k].words + 1u))
			fail_msg("\"%s\" takes %u words, expected %u", cases[k].text, o.code_bytes / 4 - 1,
			         cases[k].words);
		object_free(&o);
	}
}

static void refusals_name_the_instruction(void **state)
{
	struct error err = { .code = ERROR_NONE };
	struct object o = { 0 };
	struct rdna_lir l;
	(void)state;
	parse_rdna(&l, RDNA_GFX11, "v_mov_b32 v1, 0\nv_fma_f32 v2, s16, s17, s18\nv_mov_b32 v3, 0\n");
	assert_false(rdna_emit(&o, &l, &err));
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	assert_string_equal(err.text, "cannot encode \"v_fma_f32 v2, s16, s17, s18\": a vector instruction can read at "
	                              "most two different scalar registers or literals (constant bus)");
	assert_null(o.code);
	rdna_lir_free(&l);
}

/* --- loops, run in the simulator: v1 counts turns, v2 sums the index */

static void start(struct rdna_lir *l, enum rdna_gen gen)
{
	rdna_lir_init(l, gen);
	l->allocated = true;
	put_scalar(l, RDNA_S_LOAD_B64, sn(20, 2), RDNA_ABI_ARG, 0, RDNA_MEM_CONST);
	put(l, RDNA_V_MBCNT_LO_U32_B32, v(0), imm(UINT32_MAX), imm(0), NONE);
	put(l, RDNA_V_LSHLREV_B32, v(0), imm(2), v(0), NONE);
	put(l, RDNA_V_MOV_B32, v(1), imm(0), NONE, NONE);
	put(l, RDNA_V_MOV_B32, v(2), imm(0), NONE, NONE);
}

static void finish(struct rdna_lir *l, uint32_t out[64])
{
	const struct rdna_hazard_options h = { 0 };
	struct error err = { .code = ERROR_NONE };
	struct object o = { 0 };
	uint64_t arg = (uint64_t)(uintptr_t)out;
	put_global(l, RDNA_GLOBAL_STORE_B32, v(1), 0, 20, 0);
	put_global(l, RDNA_GLOBAL_STORE_B32, v(2), 0, 20, 128);
	must_do(rdna_wait(l, &err) && rdna_hazard(l, &h, &err) && rdna_emit(&o, l, &err), &err);
	const struct rdna_call c = {
		.object = &o, .gen = l->gen, .arg = &arg, .n_args = 1, .end = -3, .memory = { { out, 256, true } }
	};
	must_do(rdna_call(&c, &(struct sim_options){ .memory = SIM_MEMORY_AT_WAIT }, &err), &err);
	object_free(&o);
	rdna_lir_free(l);
}

/* trash: what the body does to the index's (1) and the count's (2) register at its end */
static void one_loop(enum rdna_gen gen, bool constant, int32_t count, bool index, unsigned trash, size_t filler)
{
	struct rdna_lir l;
	uint32_t out[64], iterations = count > 0 ? (uint32_t)count : 0;
	start(&l, gen);
	put(&l, RDNA_S_MOV_B32, s(30), imm((uint32_t)count), NONE, NONE);
	put(&l, RDNA_LIR_LOOP, index ? s(31) : NONE, constant ? imm((uint32_t)count) : s(30), NONE, NONE);
	put(&l, RDNA_V_ADD_NC_U32, v(1), imm(1), v(1), NONE);
	if (index)
		put(&l, RDNA_V_ADD_NC_U32, v(2), s(31), v(2), NONE);
	for (size_t k = 0; k < filler; k++)
		put(&l, RDNA_V_XOR_B32, v(3), v(1), v(2), NONE);
	if (trash & 1)
		put(&l, RDNA_S_MOV_B32, s(31), imm(77), NONE, NONE);
	if (trash & 2)
		put(&l, RDNA_S_MOV_B32, s(30), imm(99), NONE, NONE);
	rdna_lir_add(&l, RDNA_LIR_ENDLOOP);
	finish(&l, out);
	for (unsigned k = 0; k < 32; k++)
		if (out[k] != iterations ||
		    out[32 + k] != (index && iterations ? iterations * (iterations - 1) / 2 : 0))
			fail_msg("%s, count %d (%s), index %d, trash %u: %u turns, indices add up to %u",
			         rdna_call_targets[gen], count, constant ? "constant" : "register", index, trash,
			         out[k], out[32 + k]);
}

static void loops_run_as_often_as_counted(void **state)
{
	(void)state;
	for (unsigned gen = 0; gen < RDNA_GEN_COUNT; gen++)
		for (int32_t count = -1; count < 5; count++)
			for (unsigned k = 0; k < 16; k++)
				one_loop((enum rdna_gen)gen, k & 1, count, k & 2, k >> 2, 0);
}

/* An if in a loop of three turns, which a break leaves after the first one where the condition holds. */
static void one_if(enum rdna_gen gen, bool holds, size_t filler)
{
	struct rdna_lir l;
	uint32_t out[64];
	start(&l, gen);
	put(&l, RDNA_S_MOV_B32, s(30), imm(holds ? 4 : 0), NONE, NONE);
	put(&l, RDNA_LIR_LOOP, NONE, imm(3), NONE, NONE);
	for (unsigned part = 0; part < 3; part++) {
		put(&l, RDNA_LIR_IF + part, NONE, part ? NONE : s(30), NONE, NONE);
		put(&l, RDNA_V_ADD_NC_U32, v(part == 2 ? 2 : 1), imm(part ? 10 : 1), v(part == 2 ? 2 : 1), NONE);
		for (size_t k = 0; k < filler; k++)
			put(&l, RDNA_V_XOR_B32, v(3), v(1), v(2), NONE);
	}
	put(&l, RDNA_LIR_BREAK, NONE, s(30), NONE, NONE);
	put(&l, RDNA_V_ADD_NC_U32, v(2), imm(1), v(2), NONE);
	for (size_t k = 0; k < filler; k++)
		put(&l, RDNA_V_XOR_B32, v(3), v(1), v(2), NONE);
	rdna_lir_add(&l, RDNA_LIR_ENDLOOP);
	finish(&l, out);
	for (unsigned k = 0; k < 32; k++)
		if (out[k] != (holds ? 1 : 30) || out[32 + k] != (holds ? 10 : 33))
			fail_msg("%s, %s, filler %zu: %u and %u", rdna_call_targets[gen], holds ? "if" : "else", filler,
			         out[k], out[32 + k]);
}

/* 33 000 words are more than a branch reaches. */
static void branches_reach_far(void **state)
{
	(void)state;
	for (unsigned gen = 0; gen < RDNA_GEN_COUNT; gen++) {
		one_loop((enum rdna_gen)gen, false, 3, true, 0, 40000);
		one_loop((enum rdna_gen)gen, false, 0, true, 3, 40000);
		one_loop((enum rdna_gen)gen, true, 0, true, 3, 40000);
		for (unsigned k = 0; k < 4; k++)
			one_if((enum rdna_gen)gen, k & 1, k & 2 ? 40000 : 0);
	}
}

/* --- disassembly */

static const char *disassembler(void)
{
	static const char *const names[] = { "llvm-objdump-22", "llvm-objdump-21", "llvm-objdump-20",
		                             "llvm-objdump-19" };
	for (unsigned k = 0; k < sizeof names / sizeof *names; k++) {
		char command[128];
		snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", names[k]);
		if (system(command) == 0)
			return names[k];
	}
	return NULL;
}

static unsigned disassemble(const char *tool, const struct amdgpu_object *o, const char *what)
{
	char path[] = "/tmp/t_rdna_passes_XXXXXX", command[160], line[512];
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, o->bytes, o->size) == (ssize_t)o->size);
	close(fd);
	snprintf(command, sizeof command, "%s -d %s", tool, path);
	FILE *p = popen(command, "r");
	assert_non_null(p);
	unsigned n = 0;
	while (fgets(line, sizeof line, p)) {
		if (strstr(line, ".long") || strstr(line, "<unknown>"))
			fail_msg("%s: %s", what, line);
		n += strstr(line, "// ") != NULL;
	}
	assert_int_equal(pclose(p), 0);
	unlink(path);
	return n;
}

static void every_word_is_an_instruction(void **state)
{
	const char *tool = disassembler();
	(void)state;
	if (!tool) {
		print_message("skipped: there is no llvm-objdump of version 19 or later\n");
		skip();
	}
	for (unsigned gen = 0; gen < RDNA_GEN_COUNT; gen++)
		for (uint64_t seed = 0; seed < 3; seed++) {
			struct error err = { .code = ERROR_NONE };
			struct rdna_lir l;
			struct object o = { 0 };
			struct amdgpu_object bytes = { 0 };
			rdna_lir_random(&l, (enum rdna_gen)gen, seed, 400);
			rdna_shorten(&l);
			must_do(rdna_vopd(&l, &err) && rdna_wait(&l, &err) && rdna_hazard(&l, NULL, &err) &&
			                rdna_emit(&o, &l, &err),
			        &err);
			const struct rdna_call c = { .object = &o, .gen = (enum rdna_gen)gen };
			must_do(rdna_call_object(&c, &bytes, &err), &err);
			assert_true(disassemble(tool, &bytes, rdna_call_targets[gen]) > 300);
			amdgpu_object_free(&bytes);
			object_free(&o);
			rdna_lir_free(&l);
		}
}

/* --- the pipeline */

static bool run_ir(const struct object *o, enum rdna_gen gen, struct random_ir_buffers *b, enum sim_memory_mode mode,
                   struct error *err)
{
	const struct rdna_call c = {
		.object = o,
		.gen = gen,
		.arg = b->arg,
		.n_args = 4,
		.begin = 3,
		.end = 11,
		.memory = { { b->in, sizeof b->in, false },
		            { b->out, sizeof b->out, true },
		            { b->pointer, sizeof b->pointer, false } }
	};
	return rdna_call(&c, &(struct sim_options){ .memory = mode }, err);
}

static void optional_passes_change_no_result(void **state)
{
	static struct random_ir_buffers want, got;
	(void)state;
	for (uint64_t seed = 1; seed < 7; seed++)
		for (unsigned gen = 0; gen < RDNA_GEN_COUNT; gen++) {
			struct ir ir;
			random_ir(&ir, 32, seed, 120);
			random_ir_fill(&want, seed);
			ir_interp(&ir, want.arg, 3, 11);
			for (uint32_t skip = 0; skip < 16; skip++) {
				const struct compile_options opt = { .skip = skip, .verify_passes = true };
				struct compile_stats stats;
				struct error err = { .code = ERROR_NONE };
				struct object o;
				random_ir_fill(&got, seed);
				must_do(compile_ir(&o, &ir, target_find(rdna_call_targets[gen]), &opt, &stats, &err),
				        &err);
				must_do(run_ir(&o, (enum rdna_gen)gen, &got, SIM_MEMORY_AT_WAIT, &err), &err);
				if (memcmp(want.out, got.out, sizeof want.out))
					fail_msg("%s, kernel %llu without passes 0x%x: another result",
					         rdna_call_targets[gen], (unsigned long long)seed, skip);
				assert_true(!stats.dual_pairs || !(skip & COMPILE_SKIP_VOPD));
				assert_true(stats.machine_instructions > 100 &&
				            stats.vector_regs_used == o.vector_regs &&
				            o.scalar_regs >= RDNA_ABI_FREE_SGPR);
				object_free(&o);
			}
			ir_free(&ir);
		}
}

/* The listing's words are the code's. */
static void listings_hold_the_code(void **state)
{
	struct error err = { .code = ERROR_NONE };
	char *text = NULL;
	size_t size, at = 0;
	struct ir ir;
	struct object o;
	const struct compile_options opt = { .dump_asm = open_memstream(&text, &size) };
	(void)state;
	random_ir(&ir, 32, 5, 120);
	must_do(compile_ir(&o, &ir, target_find("gfx1100"), &opt, NULL, &err), &err);
	fclose(opt.dump_asm);
	assert_non_null(strstr(text, "; kernel\n\t.text\nkernel:\n\t.long 0x"));
	for (char *p = text; (p = strstr(p, ".long "));) {
		p += 6;
		for (;; p += 2) {
			uint32_t w = (uint32_t)strtoul(p, &p, 16), code;
			assert_true(at + 4 <= o.code_bytes);
			memcpy(&code, o.code + at, 4);
			assert_int_equal(w, code);
			at += 4;
			if (*p != ',')
				break;
		}
	}
	assert_int_equal(at, o.code_bytes);
	free(text);
	object_free(&o);
	ir_free(&ir);
}

int rdna_bytes_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_forms_are_found),         cmocka_unit_test(refusals_name_the_instruction),
		cmocka_unit_test(loops_run_as_often_as_counted), cmocka_unit_test(branches_reach_far),
		cmocka_unit_test(every_word_is_an_instruction),  cmocka_unit_test(optional_passes_change_no_result),
		cmocka_unit_test(listings_hold_the_code),
	};

	return cmocka_run_group_tests_name("rdna_bytes_tests", tests, NULL, NULL);
}

/* tests/jit/compile_listing_tests.c - random kernels compiled: the same bytes each time, refusals and listings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/compile.h"
#include "jit/ir/ir_build.h"
#include "tests/jit/op_kernels.h"
#include "tests/jit/compile_check.h"
#include "tests/support/shared.h"

/* --- random kernels */

static void test_random(void **state)
{
	const char *more = getenv("JITRUN_RANDOM_KERNELS");
	uint64_t n = more ? strtoull(more, NULL, 10) : 400;
	for (uint64_t seed = 1; seed <= n; seed++) {
		struct ir ir;
		if (!more && test_small_share() && seed % 5 != compile_isa->id % 5)
			continue;
		random_ir(&ir, compile_isa->lanes, seed, seed % 7 == 0 ? 900 : 30 + (unsigned)(seed % 11) * 25);
		struct compile_options opt = files[seed % FILES];
		if (opt.seed)
			opt.seed = (uint32_t)seed;
		struct random_ir_buffers *x = random_ir_buffers_new(seed);
		check_native(&ir, &opt, x->in, sizeof x->in, seed, (int64_t)(seed % 5) - 1, (int64_t)(seed % 9));
		free(x);
		ir_free(&ir);
	}
}

static void test_same_bytes(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct ir ir;
		struct object a, b;
		random_ir(&ir, compile_isa->lanes, seed, 300);
		compile_x86(&a, &ir, &files[seed % 4], NULL);
		compile_x86(&b, &ir, &files[seed % 4], NULL);
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
	ir_init(&b, 24 - compile_isa->lanes);
	ir_arg(&b);
	assert_false(compile_ir(&o, &b, compile_isa, NULL, NULL, &err));
	assert_non_null(strstr(err.text, compile_isa->lanes == 8 ? "16 lanes" : "8 lanes"));
	ir_free(&b);
	err = (struct error){ 0 };
	ir_init(&b, compile_isa->lanes);
	ir_loop(&b, ir_begin(&b));
	assert_false(compile_ir(&o, &b, compile_isa, NULL, NULL, &err));
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
	key.target = (uint8_t)compile_isa->id;
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
	random_ir(&ir, compile_isa->lanes, 3, 400);
	snprintf(path, sizeof path, "%s/k.s", dir);
	struct compile_options opt = { .dump_asm = fopen(path, "w") };
	compile_x86(&o, &ir, &opt, NULL);
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

int compile_listing_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_keys_and_listings),
		cmocka_unit_test(test_listing_assembles),
	};

	return cmocka_run_group_tests_name("compile_listing_tests", tests, NULL, NULL);
}

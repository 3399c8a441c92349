/* tests/jit/t_key.c - keys as text and back, equality, hash; targets and what a CPU must have; the code-generator
 * id. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/dtype.h"
#include "jit/key.h"
#include "jit/target.h"
#include "tests/support/shared.h"

static uint64_t state = 0x1234567;

static uint32_t any(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}

static uint32_t any_number(void)
{
	static const uint32_t edges[] = { 0, 0, 0, 1, 2, 9, 10, 255, 4096, UINT32_MAX - 1, UINT32_MAX };
	return any(2) ? edges[any(sizeof edges / sizeof edges[0])] : any(1u << (1 + any(30)));
}

static struct key any_key(void)
{
	struct key k;

	memset(&k, 0, sizeof k);
	k.kind = (uint8_t)(1 + any(KEY_KIND_COUNT - 1));
	k.target = (uint8_t)any(TARGET_COUNT);
	k.weight = (uint8_t)any(DTYPE_COUNT + 1);
	k.activation = (uint8_t)any(DTYPE_COUNT + 1);
	k.kv = (uint8_t)any(DTYPE_COUNT + 1);
	k.numerics = (uint8_t)any(2);
	k.row_blocks = (uint8_t)any_number();
	k.act = (uint8_t)any(KEY_ACT_COUNT);
	k.rows = any_number();
	k.k = any_number();
	k.tile_n = any_number();
	k.head_dim = any_number();
	k.heads = any_number();
	k.kv_heads = any_number();
	k.flags = any(256);
	k.schedule = any_number();
	k.codegen = key_codegen(k.target);
	return k;
}

static void test_round_trip(void **unused)
{
	char text[KEY_TEXT_MAX];
	struct key back;

	for (int i = 0; i < 200000; i++) {
		struct key k = any_key();
		key_text(&k, text, sizeof text);
		if (!key_parse(&back, text) || !key_equal(&k, &back))
			fail_msg("%s does not read back", text);
	}
}

static void test_documented_form(void **unused)
{
	char text[KEY_TEXT_MAX];
	struct key k;

	memset(&k, 0, sizeof k);
	k.kind = KEY_MATMUL;
	k.weight = k.activation = DTYPE_Q8_0 + 1;
	k.rows = 1024;
	k.k = 3072;
	k.tile_n = 4;
	k.flags = KEY_RESIDUAL;
	k.target = TARGET_AVX2;
	assert_string_equal(key_text(&k, text, sizeof text), "matmul.q8_0.aq8_0.1024x3072.c4.resid.avx2");
	k.act = ACT_SILU;
	k.flags = KEY_PAIR | KEY_QUANTISED_OUT;
	assert_string_equal(key_text(&k, text, sizeof text), "matmul.q8_0.aq8_0.1024x3072.c4.silu.pair.q8out.avx2");
	k = (struct key){ .kind = KEY_NORM, .k = 2048, .target = TARGET_AVX2 };
	assert_string_equal(key_text(&k, text, sizeof text), "norm.k2048.avx2");
	k = (struct key){ .kind = KEY_ATTENTION,
		          .kv = DTYPE_F16 + 1,
		          .head_dim = 128,
		          .heads = 16,
		          .kv_heads = 8,
		          .tile_n = 1,
		          .row_blocks = 3,
		          .schedule = 0x1a4,
		          .flags = KEY_WINDOW | KEY_QK_NORM,
		          .numerics = NUMERICS_BOUNDED,
		          .target = TARGET_AVX2 };
	assert_string_equal(key_text(&k, text, sizeof text),
	                    "attention.kvf16.c1.b3.d128.h16.g8.s1a4.qknorm.win.bounded.avx2");
}

static void test_longest_text_fits(void **unused)
{
	char text[4 * KEY_TEXT_MAX], cut[8];
	struct key k;
	size_t longest = 0;

	for (int kind = 1; kind < KEY_KIND_COUNT; kind++)
		for (int type = 1; type <= DTYPE_COUNT; type++) {
			memset(&k, 0xff, sizeof k);
			k.kind = (uint8_t)kind;
			k.weight = k.activation = k.kv = (uint8_t)type;
			k.numerics = NUMERICS_BOUNDED;
			k.act = KEY_ACT_COUNT - 1;
			k.target = TARGET_AVX512_VNNI; /* none has a longer name */
			key_text(&k, text, sizeof text);
			longest = strlen(text) > longest ? strlen(text) : longest;
		}
	assert_true(longest < KEY_TEXT_MAX);
	assert_int_equal(strlen(key_text(&k, cut, sizeof cut)), sizeof cut - 1);
	assert_memory_equal(cut, text, sizeof cut - 1);
}

static void test_what_is_not_a_key(void **unused)
{
	static const char *const bad[] = {
		"",
		".",
		"matmul.",
		".matmul",
		"norm..k8",
		"nothing",
		"matmul.q8_0.q8_0",
		"matmul.c4.c4",
		"matmul.c0",
		"matmul.c04",
		"matmul.c",
		"matmul.c-1",
		"matmul.c+1",
		"matmul. c1",
		"matmul.c1 ",
		"matmul.c4294967296",
		"matmul.b256",
		"matmul.x2",
		"matmul.none.pair",
		"matmul.pair.silu",
		"matmul.silu.silu",
		"matmul.8x",
		"matmul.x8x8",
		"matmul.0x8",
		"matmul.8x8x8",
		"matmul.8X8",
		"matmul.Q8_0",
		"matmul.avx2.c1",
		"matmul.c1.8x8",
		"matmul.none",
		"matmul.resid.bias",
		"matmul.avx3",
		"MATMUL",
		"matmul.z9",
		"matmul.kv",
		"matmul.a",
		"matmul.kvnone",
		"matmul.exact",
		"matmul.?",
		"?",
		"matmul.8",
	};
	char longer[4 * KEY_TEXT_MAX];
	struct key k;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (key_parse(&k, bad[i]))
			fail_msg("\"%s\" was taken for a key", bad[i]);
	memset(longer, 'm', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	assert_false(key_parse(&k, longer));
	assert_true(key_parse(&k, "matmul.r8.avx2") && k.rows == 8 && k.k == 0);
	assert_true(key_parse(&k, "matmul.b255") && k.row_blocks == 255);
	assert_int_equal(k.codegen, key_codegen(k.target));
}

/* Every byte of a key is part of its identity: hash and equality see it. */
/* Names of entries and slots of packs come from this hash: another one here is another RECORD_VERSION in
 * jit/store/record.h. */
static void test_hash_of_stored_files(void **unused)
{
	struct key k;

	assert_true(key_parse(&k, "matmul.q8_0.aq8_0.1024x3072.c4.b1.resid.avx2"));
	k.codegen = 42;
	assert_true(key_hash(&k) == 0xe8e9b4f9c508d23cu);
}

static void test_every_byte_counts(void **unused)
{
	char text[KEY_DIFFERENCES_MAX];

	for (size_t i = 0; i < sizeof(struct key); i++)
		for (int bit = 0; bit < 8; bit++) {
			struct key a = any_key(), b = a;
			assert_true(key_equal(&a, &b));
			assert_true(key_hash(&a) == key_hash(&b));
			((uint8_t *)&b)[i] ^= (uint8_t)(1 << bit);
			assert_false(key_equal(&a, &b));
			assert_true(key_hash(&a) != key_hash(&b));
			assert_true(key_distance(&a, &b) > 0);
			assert_true(strlen(key_differences(&a, &b, text, sizeof text)) > 0);
			assert_int_equal(key_distance(&a, &a), 0);
			assert_string_equal(key_differences(&a, &a, text, sizeof text), "");
		}
}

static void test_differences(void **unused)
{
	struct key want, have, far;
	char text[KEY_DIFFERENCES_MAX], narrow[12];

	assert_true(key_parse(&want, "matmul.q8_0.aq8_0.1024x3072.c4.b1.resid.avx2"));
	assert_true(key_parse(&have, "matmul.q8_0.af32.1024x3072.c5.b1.bias.resid.avx512"));
	assert_true(key_parse(&far, "norm.k1024.avx2"));
	assert_string_equal(key_differences(&want, &have, text, sizeof text),
	                    "target is avx512, not avx2, activation type is f32, not q8_0, tile_n is 5, not 4, flags "
	                    "is bias.resid, not resid");
	assert_string_equal(key_differences(&want, &have, narrow, sizeof narrow), "target is a");
	assert_true(key_distance(&want, &have) < key_distance(&want, &far));
	assert_string_equal(key_differences(&far,
	                                    &(struct key){ .kind = KEY_NORM, .k = 1024, .codegen = key_codegen_x86 },
	                                    text, sizeof text),
	                    "target is none, not avx2");
	have = want;
	have.act = ACT_SILU;
	assert_string_equal(key_differences(&want, &have, text, sizeof text), "activation function is silu, not none");
	have.act = 0;
	have.codegen = 1;
	key_differences(&want, &have, text, sizeof text);
	assert_memory_equal(text, "code generator is 0000000000000001, not ", 40);
}

static void test_targets(void **unused)
{
	char names[256], three[8];

	assert_null(target_find("none"));
	assert_null(target_find("avx"));
	assert_string_equal(
		target_list(names, sizeof names, TARGETS_ALL, "", ", "),
		"avx2, avx2vnni, avx512, avx512vnni, avx512bf16, avx512amx, gfx1030, gfx1031, gfx1032, gfx1033, "
		"gfx1034, gfx1035, gfx1036, gfx1100, "
		"gfx1101, gfx1102, gfx1103, gfx1150, gfx1151, gfx1200, gfx1201, sm80, sm90, sm90x2, sm90x4, "
		"sm90x8, spirv8, spirv16, spirv32");
	assert_string_equal(target_list(three, sizeof three, TARGETS_ALL, "", ", "), "avx2, a");
	for (int i = 0; i < TARGET_COUNT; i++) {
		assert_int_equal(target_table[i].id, i);
		if (i != TARGET_NONE)
			assert_ptr_equal(target_find(target_table[i].name), &target_table[i]);
	}
}

/* A CPU with everything but tiles, less one thing at a time: what runs, what is best, and which sentence says why
 * not. */
static void test_cpus(void **unused)
{
	const uint32_t avx = 1u << 28, fma = 1u << 12, f16c = 1u << 29, osxsave = 1u << 27, avx2 = 1u << 5;
	const uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31, vnni = 1u << 11, avx_vnni = 1u << 4,
		       bf16 = 1u << 5;
	const struct target_cpu whole = { .leaf1_ecx = avx | fma | f16c | osxsave,
		                          .leaf7_ebx = avx2 | f | dq | bw | vl,
		                          .leaf7_ecx = vnni,
		                          .leaf7_1_eax = avx_vnni | bf16,
		                          .xcr0 = 0xe7 };
	struct error err = { 0 };

	const struct {
		uint32_t leaf1, leaf7b, leaf7c, leaf71;
		uint64_t xcr0;
		enum target_id best, refused;
		const char *word;
	} lacks[] = {
		{ 0, 0, 0, 0, 0, TARGET_AVX512_BF16, TARGET_NONE, "none" },
		{ 0, 0, 0, bf16, 0, TARGET_AVX512_VNNI, TARGET_AVX512_BF16, "AVX512_BF16" },
		{ 0, 0, vnni, 0, 0, TARGET_AVX512, TARGET_AVX512_VNNI, "AVX512_VNNI" },
		{ 0, 0, 0, avx_vnni, 0, TARGET_AVX512_BF16, TARGET_AVX2_VNNI, "AVX-VNNI" },
		{ 0, f, 0, 0, 0, TARGET_AVX2_VNNI, TARGET_AVX512, "AVX512F" },
		{ 0, dq, 0, 0, 0, TARGET_AVX2_VNNI, TARGET_AVX512_VNNI, "AVX512DQ" },
		{ 0, bw, 0, 0, 0, TARGET_AVX2_VNNI, TARGET_AVX512, "AVX512BW" },
		{ 0, vl, 0, 0, 0, TARGET_AVX2_VNNI, TARGET_AVX512, "AVX512VL" },
		{ 0, vl, 0, avx_vnni, 0, TARGET_AVX2, TARGET_AVX512, "AVX512VL" },
		{ 0, 0, 0, 0, 0x20, TARGET_AVX2_VNNI, TARGET_AVX512, "operating system" },
		{ 0, 0, 0, 0, 0x80, TARGET_AVX2_VNNI, TARGET_AVX512_VNNI, "0xe6" },
		{ avx, 0, 0, 0, 0, TARGET_NONE, TARGET_AVX2, "AVX, " },
		{ fma, 0, 0, 0, 0, TARGET_NONE, TARGET_AVX512, "FMA" },
		{ f16c, 0, 0, 0, 0, TARGET_NONE, TARGET_AVX2, "F16C" },
		{ 0, avx2, 0, 0, 0, TARGET_NONE, TARGET_AVX2, "AVX2" },
		{ osxsave, 0, 0, 0, 0, TARGET_NONE, TARGET_AVX2, "operating system" },
		{ 0, 0, 0, 0, 2, TARGET_NONE, TARGET_AVX2, "operating system" },
		{ 0, 0, 0, 0, 4, TARGET_NONE, TARGET_AVX2_VNNI, "operating system" },
	};
	for (size_t i = 0; i < sizeof lacks / sizeof lacks[0]; i++) {
		const struct target_cpu cpu = { .leaf1_ecx = whole.leaf1_ecx & ~lacks[i].leaf1,
			                        .leaf7_ebx = whole.leaf7_ebx & ~lacks[i].leaf7b,
			                        .leaf7_ecx = whole.leaf7_ecx & ~lacks[i].leaf7c,
			                        .leaf7_1_eax = whole.leaf7_1_eax & ~lacks[i].leaf71,
			                        .xcr0 = whole.xcr0 & ~lacks[i].xcr0 };
		err = (struct error){ 0 };
		assert_ptr_equal(target_judge(&cpu, &err),
		                 lacks[i].best == TARGET_NONE ? NULL : &target_table[lacks[i].best]);
		assert_int_equal(err.code, lacks[i].best == TARGET_NONE ? ERROR_DEVICE : ERROR_NONE);
		err = (struct error){ 0 };
		assert_false(target_runs(&cpu, &target_table[lacks[i].refused], &err));
		assert_int_equal(err.code, ERROR_DEVICE);
		assert_non_null(strstr(err.text, lacks[i].word));
	}
	const struct target_cpu here = target_this_cpu();
	assert_ptr_equal(target_native(NULL), target_judge(&here, NULL));
}

/* The same of a CPU with tiles, whose operating system also has to save them and to permit this process their use. */
static void test_targets_with_tiles(void **unused)
{
	const uint32_t tile = 1u << 24, int8 = 1u << 25, bf16 = 1u << 22, vnni = 1u << 11;
	const struct target_cpu whole = {
		.leaf1_ecx = 0x38001000,
		.leaf7_ebx = 0xc0030020,
		.leaf7_ecx = vnni,
		.leaf7_edx = tile | int8 | bf16,
		.leaf7_1_eax = 1u << 4 | 1u << 5,
		.xcr0 = 0x600e7,
		.tile_permission = true
	};
	const struct target *t = &target_table[TARGET_AVX512_AMX], *like = &target_table[TARGET_AVX512_BF16];
	const struct {
		uint32_t leaf7c, leaf7d;
		uint64_t xcr0;
		bool forbidden;
		enum target_id best;
		const char *word;
	} lacks[] = {
		{ 0, bf16, 0, false, TARGET_AVX512_AMX, NULL },
		{ 0, tile, 0, false, TARGET_AVX512_BF16, "has no AMX-TILE, which code for avx512amx needs" },
		{ 0, int8, 0, false, TARGET_AVX512_BF16, "has no AMX-INT8," },
		{ 0, tile | int8, 0, true, TARGET_AVX512_BF16, "AMX-TILE" },
		{ vnni, 0, 0, false, TARGET_AVX512, "AVX512_VNNI" },
		{ 0, 0, 0x20000, false, TARGET_AVX512_BF16, "(XCR0 is 0x400e7, the bits of 0x600e6 must be set)" },
		{ 0, 0, 0x40000, false, TARGET_AVX512_BF16, "XCR0 is 0x200e7" },
		{ 0, 0, 0x80, false, TARGET_AVX2_VNNI, "XCR0 is 0x60067" },
		{ 0, 0, 0, true, TARGET_AVX512_BF16,
		  "does not permit this process to use tiles, which code for avx512amx does "
		  "(arch_prctl(ARCH_REQ_XCOMP_PERM, 18) failed)" },
	};

	assert_true(t->has_tiles && t->has_vnni && !t->has_mma && !like->has_tiles);
	assert_true(t->lanes == like->lanes && t->vector_regs == like->vector_regs && t->mask_regs == like->mask_regs &&
	            t->backend == like->backend && t->waves == like->waves);
	assert_ptr_equal(target_judge(&whole, NULL), t);
	for (size_t i = 0; i < sizeof lacks / sizeof lacks[0]; i++) {
		struct error err = { 0 };
		struct target_cpu cpu = whole;
		cpu.leaf7_ecx &= ~lacks[i].leaf7c;
		cpu.leaf7_edx &= ~lacks[i].leaf7d;
		cpu.xcr0 &= ~lacks[i].xcr0;
		cpu.tile_permission = !lacks[i].forbidden;
		assert_ptr_equal(target_judge(&cpu, &err), &target_table[lacks[i].best]);
		assert_int_equal(err.code, ERROR_NONE);
		assert_int_equal(target_runs(&cpu, t, &err), !lacks[i].word);
		assert_int_equal(err.code, lacks[i].word ? ERROR_DEVICE : ERROR_NONE);
		if (lacks[i].word && !strstr(err.text, lacks[i].word))
			fail_msg("%s", err.text);
	}
	for (int i = 0; i < TARGET_COUNT; i++) {
		assert_int_equal(target_table[i].has_tiles, i == TARGET_AVX512_AMX);
		assert_int_equal(target_table[i].has_dot2, i == TARGET_AVX512_BF16 || i == TARGET_AVX512_AMX);
	}
	const struct target_cpu here = target_this_cpu(), again = target_this_cpu();
	assert_true(!here.tile_permission || here.leaf7_edx & tile);
	assert_int_equal(here.tile_permission, again.tile_permission);
}

static void id_of(const char *script, const char *dir, const char *content, char out[24])
{
	char path[512], command[2048], line[256] = "";

	snprintf(path, sizeof path, "%s/source", dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(content, f);
	assert_int_equal(fclose(f), 0);
	snprintf(command, sizeof command, "sh '%s' x86 '%s'", script, path);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f) && !strstr(line, "UINT64_C"))
		;
	const char *id = strstr(line, "(0x");
	assert_non_null(id);
	snprintf(out, 24, "%.18s", id + 1);
	while (fgets(line, sizeof line, f))
		;
	assert_int_equal(pclose(f), 0);
	assert_int_equal(unlink(path), 0);
}

static void test_codegen_id(void **unused)
{
	char dir[] = "/tmp/t_key-XXXXXX", script[1024], a[24], b[24], again[24];

	assert_true(key_codegen_x86 && key_codegen_rdna && key_codegen_x86 != key_codegen_rdna);
	assert_int_equal(key_codegen(TARGET_AVX512), key_codegen_x86);
	assert_int_equal(key_codegen(TARGET_GFX1100), key_codegen_rdna);
	assert_int_equal(key_codegen(TARGET_NONE), 0);
	assert_int_equal(key_codegen(TARGET_COUNT), 0);
	if (access(source_path(script, "jit/codegen_id.sh"), R_OK))
		skip();
	assert_non_null(mkdtemp(dir));
	id_of(script, dir, "one", a);
	id_of(script, dir, "two", b);
	id_of(script, dir, "one", again);
	assert_string_equal(a, again);
	assert_string_not_equal(a, b);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_documented_form),
		cmocka_unit_test(test_longest_text_fits),
		cmocka_unit_test(test_what_is_not_a_key),
		cmocka_unit_test(test_hash_of_stored_files),
		cmocka_unit_test(test_every_byte_counts),
		cmocka_unit_test(test_differences),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_targets_with_tiles),
		cmocka_unit_test(test_codegen_id),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

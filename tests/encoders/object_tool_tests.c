/* tests/encoders/object_tool_tests.c - AMDGPU objects against a linker, readers and a compiler, where they are
 * installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/amdgpu_object.h"
#include "tests/encoders/object_reader.h"

/* --- by the tools */

/* The name of a tool of version 19 or later, or NULL. */
static const char *tool(const char *name, char out[64])
{
	char command[200];

	for (int version = 19; version <= 23; version++) {
		snprintf(out, 64, "%s-%d", name, version);
		snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", out);
		if (system(command) == 0)
			return out;
	}
	return NULL;
}

static void write_file(const char *path, const void *p, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static char *read_all(FILE *f, size_t *n)
{
	char *p = NULL;
	size_t size = 0, got;

	do {
		p = realloc(p, size + 65537);
		got = fread(p + size, 1, 65536, f);
		size += got;
	} while (got);
	p[size] = 0;
	if (n)
		*n = size;
	return p;
}

static char *read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "r");

	if (!f)
		fail_msg("%s cannot be read", path);
	char *p = read_all(f, n);
	fclose(f);
	return p;
}

static char *output_of(const char *format, ...)
{
	char command[1000];
	va_list a;

	va_start(a, format);
	vsnprintf(command, sizeof command, format, a);
	va_end(a);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	char *p = read_all(f, NULL);
	if (pclose(f))
		fail_msg("%s: %s", command, p);
	return p;
}

/* Our kernels as the assembler wants them described. */
static void write_assembly(FILE *f, const char *target, const struct amdgpu_kernel *k)
{
	bool gfx10 = strncmp(target, "gfx10", 5) == 0, gfx12 = strncmp(target, "gfx12", 5) == 0;

	fprintf(f, ".text\n.p2align 8\n.globl %s\n.protected %s\n.type %s,@function\n%s:\n", k->name, k->name, k->name,
	        k->name);
	for (size_t i = 0; i < k->code_size; i += 4)
		fprintf(f, ".long 0x%llx\n", (unsigned long long)little_endian((const uint8_t *)k->code + i, 4));
	fprintf(f, ".size %s, %zu\n.rodata\n.p2align 6\n.amdhsa_kernel %s\n", k->name, k->code_size, k->name);
	fprintf(f,
	        ".amdhsa_group_segment_fixed_size %u\n.amdhsa_private_segment_fixed_size %u\n.amdhsa_kernarg_size %u\n",
	        k->lds_bytes, k->scratch_bytes, k->kernarg_bytes);
	fprintf(f, ".amdhsa_user_sgpr_dispatch_ptr %d\n.amdhsa_user_sgpr_kernarg_segment_ptr %d\n", k->dispatch_ptr,
	        k->kernarg_bytes > 0);
	if (gfx10)
		fprintf(f,
		        ".amdhsa_user_sgpr_flat_scratch_init %d\n.amdhsa_system_sgpr_private_segment_wavefront_offset "
		        "%d\n",
		        k->scratch_bytes > 0, k->scratch_bytes > 0);
	else
		fprintf(f, ".amdhsa_enable_private_segment %d\n", k->scratch_bytes > 0);
	fprintf(f, ".amdhsa_user_sgpr_count %u\n", amdgpu_first_free_sgpr(target, k));
	for (int i = 0; i < 3; i++)
		fprintf(f, ".amdhsa_system_sgpr_workgroup_id_%c %d\n", "xyz"[i], k -> workgroup_id[i] || gfx12);
	fprintf(f,
	        ".amdhsa_system_vgpr_workitem_id %d\n.amdhsa_next_free_vgpr %d\n.amdhsa_next_free_sgpr "
	        "%d\n.amdhsa_reserve_vcc 0\n",
	        k->workitem_ids - 1, k->vgprs, k->sgprs);
	fprintf(f,
	        ".amdhsa_float_round_mode_32 %d\n.amdhsa_float_round_mode_16_64 %d\n.amdhsa_float_denorm_mode_32 %d\n"
	        ".amdhsa_float_denorm_mode_16_64 %d\n",
	        k->float_mode & 3, k->float_mode >> 2 & 3, k->float_mode >> 4 & 3, k->float_mode >> 6);
	if (!gfx12)
		fprintf(f, ".amdhsa_dx10_clamp %d\n.amdhsa_ieee_mode %d\n", k->dx10_clamp, k->ieee);
	fprintf(f,
	        ".amdhsa_fp16_overflow %d\n.amdhsa_workgroup_processor_mode %d\n.amdhsa_memory_ordered "
	        "1\n.amdhsa_forward_progress %d\n"
	        ".end_amdhsa_kernel\n",
	        k->fp16_overflow, k->wgp_mode, k->forward_progress);
}

static void write_metadata(FILE *f, const char *target, const struct amdgpu_kernel *k, int n)
{
	fprintf(f,
	        ".amdgpu_metadata\n---\namdhsa.version: [ 1, 2 ]\namdhsa.target: "
	        "amdgcn-amd-amdhsa--%s\namdhsa.kernels:\n",
	        target);
	for (int i = 0; i < n; i++, k++) {
		fprintf(f,
		        "  - .name: %s\n    .symbol: %s.kd\n    .kernarg_segment_size: %u\n    .kernarg_segment_align: "
		        "8\n",
		        k->name, k->name, k->kernarg_bytes);
		fprintf(f,
		        "    .group_segment_fixed_size: %u\n    .private_segment_fixed_size: %u\n    .wavefront_size: "
		        "32\n    .sgpr_count: %u\n"
		        "    .vgpr_count: %u\n    .max_flat_workgroup_size: %u\n",
		        k->lds_bytes, k->scratch_bytes, k->sgprs, k->vgprs,
		        k->workgroup[0] * k->workgroup[1] * k->workgroup[2]);
		fprintf(f,
		        "    .sgpr_spill_count: 0\n    .vgpr_spill_count: 0\n    .uses_dynamic_stack: false\n    "
		        ".workgroup_processor_mode: %d\n"
		        "    .reqd_workgroup_size: [ %u, %u, %u ]\n    .args:%s\n",
		        k->wgp_mode, k->workgroup[0], k->workgroup[1], k->workgroup[2], k->n_args ? "" : " []");
		for (uint32_t a = 0; a < k->n_args; a++) {
			const struct amdgpu_arg *g = &k->args[a];
			fprintf(f, "      - .offset: %u\n        .size: %u\n        .value_kind: %s\n", g->offset,
			        g->size, g->kind ? "global_buffer" : "by_value");
			if (g->kind)
				fprintf(f, "        .address_space: global\n");
			if (g->name)
				fprintf(f, "        .name: %s\n", g->name);
		}
	}
	fprintf(f, "...\n.end_amdgpu_metadata\n");
}

/* Everything that a loader reads is the same in both. */
static void compare(const struct image *ours, const struct image *theirs, const struct amdgpu_kernel *k, int n)
{
	static const uint8_t header_fields[] = { 16, 18, 20, 48, 52, 54 };

	assert_memory_equal(ours->p, theirs->p, 16);
	for (unsigned i = 0; i < sizeof header_fields; i++)
		assert_int_equal(little_endian(ours->p + header_fields[i], 2),
		                 little_endian(theirs->p + header_fields[i], 2));
	assert_int_equal(little_endian(ours->p + 56, 2), little_endian(theirs->p + 56, 2));
	for (unsigned i = 0; i < little_endian(ours->p + 56, 2); i++) {
		assert_int_equal(little_endian(object_header(ours, i), 4),
		                 little_endian(object_header(theirs, i), 4)); /* type */
		assert_int_equal(little_endian(object_header(ours, i) + 4, 4),
		                 little_endian(object_header(theirs, i) + 4, 4)); /* flags */
		assert_int_equal(little_endian(object_header(ours, i) + 48, 8),
		                 little_endian(object_header(theirs, i) + 48, 8)); /* alignment */
		assert_int_equal(little_endian(object_header(ours, i) + 16, 8) -
		                         little_endian(object_header(ours, i) + 8, 8),
		                 little_endian(object_header(theirs, i) + 16, 8) -
		                         little_endian(object_header(theirs, i) + 8, 8));
	}
	assert_int_equal(ours->note_size, theirs->note_size);
	assert_memory_equal(ours->note, theirs->note, ours->note_size);
	assert_int_equal(ours->n_symbols, theirs->n_symbols);
	for (int i = 0; i < n; i++) {
		const uint8_t *a = object_descriptor(ours, k[i].name), *b = object_descriptor(theirs, k[i].name);
		assert_memory_equal(a, b, 16);
		assert_memory_equal(a + 24, b + 24, 40);
		check_code(ours, &k[i]);
		a = object_symbol(ours, k[i].name);
		b = object_symbol(theirs, k[i].name);
		assert_memory_equal(a + 4, b + 4, 2);
		assert_int_equal(little_endian(a + 16, 8), little_endian(b + 16, 8));
	}
}

static void compare_target(const char *target, const char *dir, const char *mc, const char *lld)
{
	struct amdgpu_kernel k[KERNELS];
	struct image ours, theirs;
	char path[200];
	size_t n;

	make_kernels(target, k);
	k[2].prefetch_lines = 0; /* the older assemblers cannot say it */
	snprintf(path, sizeof path, "%s/%s.s", dir, target);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, ".amdgcn_target \"amdgcn-amd-amdhsa--%s\"\n.amdhsa_code_object_version 5\n", target);
	for (int i = 0; i < KERNELS; i++)
		write_assembly(f, target, &k[i]);
	write_metadata(f, target, k, KERNELS);
	fclose(f);
	free(output_of("%s -triple=amdgcn-amd-amdhsa -mcpu=%s -filetype=obj %s -o %s.o 2>&1 && %s -shared "
	               "--hash-style=both %s.o -o %s.co 2>&1",
	               mc, target, path, path, lld, path, path));
	struct amdgpu_object a = make_object(target, k, KERNELS);
	snprintf(path, sizeof path, "%s/%s.s.co", dir, target);
	char *b = read_file(path, &n);
	open_image(&ours, a.bytes, a.size);
	open_image(&theirs, (const uint8_t *)b, n);
	compare(&ours, &theirs, k, KERNELS);
	free(b);
	amdgpu_object_free(&a);
	free_kernels(k);
}

static void remove_folder(const char *dir) { free(output_of("rm -r %s", dir)); }

static void test_against_linker(void **state)
{
	char mc[64], lld[64], dir[] = "/tmp/amdgpu_object_XXXXXX";

	if (!tool("llvm-mc", mc) || !tool("ld.lld", lld)) {
		print_message("no llvm-mc or ld.lld of version 19 or later: objects are not compared\n");
		skip();
	}
	assert_non_null(mkdtemp(dir));
	for (int t = 0; t < TARGETS; t++)
		compare_target(targets[t], dir, mc, lld);
	print_message("%d targets, %d kernels each: the same as %s and %s make\n", (int)TARGETS, (int)KERNELS, mc, lld);
	remove_folder(dir);
}

static void test_readers(void **state)
{
	char readelf[64], objdump[64], dir[] = "/tmp/amdgpu_object_XXXXXX", path[100];
	struct amdgpu_kernel k[KERNELS];

	if (!tool("llvm-readelf", readelf) || !tool("llvm-objdump", objdump)) {
		print_message(
			"no llvm-readelf or llvm-objdump of version 19 or later: objects are not shown to them\n");
		skip();
	}
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/a.co", dir);
	for (int t = 0; t < TARGETS; t++) {
		make_kernels(targets[t], k);
		struct amdgpu_object a = make_object(targets[t], k, KERNELS);
		write_file(path, a.bytes, a.size);
		char *text = output_of("%s -a %s 2>&1", readelf, path);
		assert_null(strstr(text, "warning"));
		assert_null(strstr(text, "error"));
		assert_non_null(strstr(text, targets[t]));
		assert_non_null(strstr(text, ".symbol:         third.kd"));
		free(text);
		text = output_of("%s -d --symbolize-operands %s 2>&1", objdump, path);
		assert_non_null(strstr(text, "<lasting>:"));
		assert_null(strstr(text, "unknown"));
		assert_null(strstr(text, "warning"));
		free(text);
		text = output_of("%s -D -j .rodata %s 2>&1", objdump, path);
		assert_null(strstr(text, "error"));
		for (int i = 0; i < KERNELS; i++) {
			char want[200];
			snprintf(want, sizeof want, ".amdhsa_kernel %s\n", k[i].name);
			assert_non_null(strstr(text, want));
		}
		free(text);
		amdgpu_object_free(&a);
		free_kernels(k);
	}
	remove_folder(dir);
}

/* --- by the compiler: an OpenCL kernel's object, and ours around the same code */

static const char source[] =
	"__kernel __attribute__((reqd_work_group_size(64, 1, 1)))\n"
	"void scale(__global float *out, __global const float *in, int n, float s)\n"
	"{\n"
	"\t__local float row[64];\n"
	"\tint lane = __builtin_amdgcn_workitem_id_x(), i = __builtin_amdgcn_workgroup_id_x() * 64 + lane;\n"
	"\trow[lane] = in[i];\n"
	"\t__builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\");\n"
	"\t__builtin_amdgcn_s_barrier();\n"
	"\tif (i < n) out[i] = s * row[63 - lane];\n"
	"}\n";

static unsigned number_of(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	if (!p)
		fail_msg("no %s in the metadata", key);
	return (unsigned)strtoul(p + strlen(key), NULL, 10);
}

/* Lines of ours that theirs lacks are failures; what theirs adds is the language. */
static void compare_metadata(const struct image *ours, const struct image *theirs)
{
	char *a = object_metadata(ours), *b = object_metadata(theirs);

	for (char *line = strtok(a, "\n"); line; line = strtok(NULL, "\n")) {
		char want[1500];
		snprintf(want, sizeof want, "%s\n", line);
		if (!strstr(b, want))
			fail_msg("the compiler's metadata has no line %s in %s", line, b);
	}
	free(a);
	free(b);
}

static void compare_compiled(const char *target, const char *path)
{
	static const struct amdgpu_arg args[] = { { NULL, 0, 8, AMDGPU_ARG_BUFFER },
		                                  { NULL, 8, 8, AMDGPU_ARG_BUFFER },
		                                  { NULL, 16, 4, AMDGPU_ARG_VALUE },
		                                  { NULL, 20, 4, AMDGPU_ARG_VALUE } };
	bool gfx12 = strncmp(target, "gfx12", 5) == 0;
	struct image ours, theirs;
	size_t n;
	char *b = read_file(path, &n);

	open_image(&theirs, (const uint8_t *)b, n);
	char *text = object_metadata(&theirs);
	const uint8_t *s = object_symbol(&theirs, "scale"), *kd = object_descriptor(&theirs, "scale");
	struct amdgpu_kernel k = {
		.name = "scale",
		.code = object_at(&theirs, little_endian(s + 8, 8), little_endian(s + 16, 8)),
		.code_size = little_endian(s + 16, 8),
		.args = args,
		.n_args = 4,
		.kernarg_bytes = 24,
		.lds_bytes = 256,
		.workgroup = { 64, 1, 1 },
		.workgroup_id = { true },
		.workitem_ids = 1,
		.wgp_mode = true,
		.float_mode = AMDGPU_FLOAT_KEEP_DENORMALS,
		.ieee = !gfx12,
		.dx10_clamp = !gfx12
	};
	k.vgprs = (uint16_t)number_of(text, ".vgpr_count=");
	k.sgprs = (uint16_t)number_of(text, ".sgpr_count=");
	struct amdgpu_object a = make_object(target, &k, 1);
	open_image(&ours, a.bytes, a.size);
	compare_metadata(&ours, &theirs);
	const uint8_t *d = object_descriptor(&ours, "scale");
	assert_memory_equal(d, kd, 16);
	assert_memory_equal(d + 24, kd + 24, 24);
	/* but for the scalar registers' field, which the hardware ignores, the user registers, of which the compiler
	 * takes more than it needs, and gfx12's workgroup ids, which are always there */
	assert_int_equal(little_endian(d + 48, 4), little_endian(kd + 48, 4) & ~0x3c0u);
	assert_int_equal(little_endian(d + 52, 4) & ~0x33eu, little_endian(kd + 52, 4) & ~0x33eu);
	assert_int_equal(little_endian(d + 56, 4), little_endian(kd + 56, 4) & ~1u);
	assert_int_equal(little_endian(ours.p + 48, 4), little_endian(theirs.p + 48, 4));
	check_code(&ours, &k);
	amdgpu_object_free(&a);
	free(text);
	free(b);
}

static void test_against_compiler(void **state)
{
	static const char *const some[] = { "gfx1030", "gfx1100", "gfx1151", "gfx1201" };
	char clang[64], lld[64], dir[] = "/tmp/amdgpu_object_XXXXXX", path[100];

	if (!tool("clang", clang) || !tool("ld.lld", lld)) {
		print_message(
			"no clang or ld.lld of version 19 or later: objects are not compared with the compiler's\n");
		skip();
	}
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/k.cl", dir);
	write_file(path, source, sizeof source - 1);
	for (unsigned i = 0; i < 4; i++) {
		free(output_of("%s -target amdgcn-amd-amdhsa -mcpu=%s -mcode-object-version=5 -x cl -cl-std=CL2.0 "
		               "-nogpulib -O2 --ld-path=`which %s` %s -o %s.co "
		               "-Xlinker --hash-style=both 2>&1",
		               clang, some[i], lld, path, path));
		snprintf(path, sizeof path, "%s/k.cl.co", dir);
		compare_compiled(some[i], path);
		snprintf(path, sizeof path, "%s/k.cl", dir);
	}
	remove_folder(dir);
}

/* --- by the compiler: the registers that a wave starts with */

/* Kernels that take an address, a number and one, two or three of the workgroup's ids, as the compiler reads them. */
static void write_starters(const char *path)
{
	static const char ids[] = "xyz";
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (int i = 0; i < 3; i++) {
		fprintf(f, "declare i32 @llvm.amdgcn.workgroup.id.%c()\n", ids[i]);
		fprintf(f, "define protected amdgpu_kernel void @k%d(ptr addrspace(1) %%q0, i32 %%v) #%d {\n", i, i);
		for (int n = 0; n <= i; n++) {
			fprintf(f, "%%i%d = call i32 @llvm.amdgcn.workgroup.id.%c()\n", n, ids[n]);
			fprintf(f, "%%q%d = getelementptr i32, ptr addrspace(1) %%q%d, i32 %%i%d\n", n + 1, n, n);
		}
		fprintf(f, "store i32 %%v, ptr addrspace(1) %%q%d\nret void\n}\n", i + 1);
		fprintf(f, "attributes #%d = { \"amdgpu-flat-work-group-size\"=\"64,64\" }\n", i);
	}
	fclose(f);
}

static void compare_start(const char *target, const struct image *theirs, int i)
{
	bool gfx10 = strncmp(target, "gfx10", 5) == 0, gfx12 = strncmp(target, "gfx12", 5) == 0;
	char name[8];
	struct image ours;

	snprintf(name, sizeof name, "k%d", i);
	const uint8_t *s = object_symbol(theirs, name), *kd = object_descriptor(theirs, name);
	struct amdgpu_kernel k = {
		.name = name,
		.code = object_at(theirs, little_endian(s + 8, 8), little_endian(s + 16, 8)),
		.code_size = little_endian(s + 16, 8),
		.kernarg_bytes = 12,
		.vgprs = 8 * (1 + (little_endian(kd + 48, 4) & 63)),
		.workgroup = { 64, 1, 1 },
		.workgroup_id = { true, i > 0, i > 1 },
		.workitem_ids = 1,
		.float_mode = AMDGPU_FLOAT_KEEP_DENORMALS,
		.ieee = true,
		.dx10_clamp = true,
		.prefetch_lines = little_endian(kd + 44, 4) >> 4 & 63
	};
	struct amdgpu_object a = make_object(target, &k, 1);
	open_image(&ours, a.bytes, a.size);
	const uint8_t *d = object_descriptor(&ours, name);
	/* gfx10's compiler asks for a buffer for scratch that it does not use: its user registers are more. gfx12 has
	 * all ids always. The field of scalar registers is one that the hardware ignores. */
	uint64_t ignored = gfx10 ? 0x3e : gfx12 ? 0x380 : 0;
	assert_int_equal(little_endian(d + 44, 4), little_endian(kd + 44, 4));
	assert_int_equal(little_endian(d + 48, 4), little_endian(kd + 48, 4) & ~0x3c0u);
	assert_int_equal(little_endian(d + 52, 4) & ~ignored, little_endian(kd + 52, 4) & ~ignored);
	assert_int_equal(little_endian(d + 56, 4), little_endian(kd + 56, 4) & ~(uint64_t)gfx10);
	if (!gfx10)
		assert_int_equal(amdgpu_first_free_sgpr(target, &k), little_endian(kd + 52, 4) >> 1 & 31);
	amdgpu_object_free(&a);
}

static void test_start_against_compiler(void **state)
{
	char clang[64], lld[64], dir[] = "/tmp/amdgpu_object_XXXXXX", path[100];
	size_t n;

	if (!tool("clang", clang) || !tool("ld.lld", lld)) {
		print_message("no clang or ld.lld of version 19 or later: first registers are not compared\n");
		skip();
	}
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/k.ll", dir);
	write_starters(path);
	for (int t = 0; t < TARGETS; t++) {
		struct image theirs;
		free(output_of(
			"%s -w -target amdgcn-amd-amdhsa -mcumode -mcpu=%s -mcode-object-version=5 -x ir -nogpulib "
			"-O2 --ld-path=`which %s` %s/k.ll -o %s/k.co -Xlinker --hash-style=both 2>&1",
			clang, targets[t], lld, dir, dir));
		snprintf(path, sizeof path, "%s/k.co", dir);
		char *b = read_file(path, &n);
		open_image(&theirs, (const uint8_t *)b, n);
		for (int i = 0; i < 3; i++)
			compare_start(targets[t], &theirs, i);
		free(b);
	}
	remove_folder(dir);
}

int object_tool_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_linker),
		cmocka_unit_test(test_readers),
		cmocka_unit_test(test_against_compiler),
		cmocka_unit_test(test_start_against_compiler),
	};

	return cmocka_run_group_tests_name("object_tool_tests", tests, NULL, NULL);
}

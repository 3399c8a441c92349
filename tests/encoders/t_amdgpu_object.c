/* tests/encoders/t_amdgpu_object.c - code objects, read back by a parser of this file's own and by the tools that are
 * installed.
 *
 * Owns: a small reader of ELF (by the dynamic table, as a loader reads it) and of the metadata; and, where an
 * assembler, a linker and a compiler for these targets are installed, the comparison of our objects with theirs, field
 * for field.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "encoders/amdgpu_object.h"
#include "tests/encoders/object_reader.h"

static void check_segments(const struct image *o)
{
	uint64_t end = 0;
	unsigned executable = 0;

	for (unsigned i = 0; i < little_endian(o->p + 56, 2); i++) {
		const uint8_t *h = object_header(o, i);
		if (little_endian(h, 4) != 1)
			continue;
		assert_true(little_endian(h + 16, 8) / 4096 * 4096 >= end);
		assert_int_equal((little_endian(h + 16, 8) - little_endian(h + 8, 8)) % 4096, 0);
		assert_int_equal(little_endian(h + 48, 8), 4096);
		end = (little_endian(h + 16, 8) + little_endian(h + 40, 8) + 4095) / 4096 * 4096;
		executable += little_endian(h + 4, 4) == 5;
		assert_true(little_endian(h + 4, 4) != 7);
	}
	assert_int_equal(executable, 1);
}

static void check_descriptor(const uint8_t *d, const char *target, const struct amdgpu_kernel *k)
{
	bool gfx10 = strncmp(target, "gfx10", 5) == 0, gfx12 = strncmp(target, "gfx12", 5) == 0;
	uint32_t r1 = (uint32_t)little_endian(d + 48, 4), r2 = (uint32_t)little_endian(d + 52, 4),
		 properties = (uint32_t)little_endian(d + 56, 4);

	assert_int_equal(little_endian(d, 4), k->lds_bytes);
	assert_int_equal(little_endian(d + 4, 4), k->scratch_bytes);
	assert_int_equal(little_endian(d + 8, 4), k->kernarg_bytes);
	assert_int_equal(little_endian(d + 12, 4), 0);
	for (int i = 24; i < 44; i++)
		assert_int_equal(d[i], 0);
	assert_int_equal(little_endian(d + 44, 4), gfx10 ? 0 : k->prefetch_lines * 16);
	assert_int_equal((r1 & 63) * 8 + 8, (k->vgprs + 7) / 8 * 8);
	assert_int_equal(r1 >> 6 & 63, 0);
	assert_int_equal(r1 >> 12 & 255, k->float_mode);
	assert_int_equal(r1 >> 20 & 15, gfx12 ? 0 : k->dx10_clamp * 2 + k->ieee * 8);
	assert_int_equal(r1 >> 24, k->fp16_overflow * 4 + k->wgp_mode * 32 + 64 + k->forward_progress * 128);
	unsigned user = 2u * k->dispatch_ptr + 2u * (k->kernarg_bytes > 0) + 2u * (gfx10 && k->scratch_bytes),
		 ids = (unsigned)k->workgroup_id[0] + k->workgroup_id[1] + k->workgroup_id[2];
	if ((!strcmp(target, "gfx1100") || !strcmp(target, "gfx1102")) && user + ids < 16)
		user = 16 - ids;
	assert_int_equal(r2 & 63, (k->scratch_bytes > 0) + 2 * user);
	assert_int_equal(r2 >> 7 & 15,
	                 gfx12 ? 7 : k->workgroup_id[0] + k->workgroup_id[1] * 2 + k->workgroup_id[2] * 4);
	assert_int_equal(r2 >> 11, k->workitem_ids - 1);
	assert_int_equal(properties,
	                 0x400 + 2 * k->dispatch_ptr + 8 * (k->kernarg_bytes > 0) + 32 * (gfx10 && k->scratch_bytes));
	assert_int_equal(little_endian(d + 60, 4), 0);
	assert_int_equal(amdgpu_first_free_sgpr(target, k), user);
}

static void test_layout(void **state)
{
	static const uint8_t flags[TARGETS] = { 0x36, 0x37, 0x38, 0x39, 0x3e, 0x3d, 0x45, 0x41,
		                                0x46, 0x47, 0x44, 0x43, 0x4a, 0x48, 0x4e };
	struct amdgpu_kernel k[KERNELS];
	struct image o;

	for (int t = 0; t < TARGETS; t++) {
		make_kernels(targets[t], k);
		struct amdgpu_object a = make_object(targets[t], k, KERNELS), b = make_object(targets[t], k, KERNELS);
		assert_int_equal(a.size, b.size);
		assert_memory_equal(a.bytes, b.bytes, a.size);
		assert_memory_equal(a.bytes, "\177ELF\2\1\1\100\3\0\0\0\0\0\0\0", 16);
		assert_int_equal(little_endian(a.bytes + 16, 4), 3 | 224 << 16);
		assert_int_equal(little_endian(a.bytes + 48, 4), flags[t]);
		assert_int_equal(amdgpu_elf_flags(targets[t]), flags[t]);
		open_image(&o, a.bytes, a.size);
		assert_int_equal(o.n_symbols, 1 + 2 * KERNELS);
		check_segments(&o);
		for (int i = 0; i < KERNELS; i++) {
			check_code(&o, &k[i]);
			check_descriptor(object_descriptor(&o, k[i].name), targets[t], &k[i]);
		}
		amdgpu_object_free(&a);
		amdgpu_object_free(&b);
		free_kernels(k);
	}
}

static void test_metadata(void **state)
{
	struct amdgpu_kernel k[KERNELS];
	struct image o;

	make_kernels("gfx1101", k);
	struct amdgpu_object a = make_object("gfx1101", k + 1, 1);
	open_image(&o, a.bytes, a.size);
	char *text = object_metadata(&o);
	assert_string_equal(
		text,
		"/amdhsa.kernels[0]/.args[0]/.address_space=global\n/amdhsa.kernels[0]/.args[0]/.name=out\n/"
		"amdhsa.kernels[0]/.args[0]/.offset=0\n"
		"/amdhsa.kernels[0]/.args[0]/.size=8\n/amdhsa.kernels[0]/.args[0]/.value_kind=global_buffer\n"
		"/amdhsa.kernels[0]/.args[1]/.address_space=global\n/amdhsa.kernels[0]/.args[1]/.name=in\n/"
		"amdhsa.kernels[0]/.args[1]/.offset=8\n"
		"/amdhsa.kernels[0]/.args[1]/.size=8\n/amdhsa.kernels[0]/.args[1]/.value_kind=global_buffer\n"
		"/amdhsa.kernels[0]/.args[2]/.name=rows\n/amdhsa.kernels[0]/.args[2]/.offset=16\n/amdhsa.kernels[0]/"
		".args[2]/.size=4\n"
		"/amdhsa.kernels[0]/.args[2]/.value_kind=by_value\n/amdhsa.kernels[0]/.args[3]/.offset=20\n/"
		"amdhsa.kernels[0]/.args[3]/.size=4\n"
		"/amdhsa.kernels[0]/.args[3]/.value_kind=by_value\n/amdhsa.kernels[0]/.group_segment_fixed_size=65536\n"
		"/amdhsa.kernels[0]/.kernarg_segment_align=8\n/amdhsa.kernels[0]/.kernarg_segment_size=24\n"
		"/amdhsa.kernels[0]/.max_flat_workgroup_size=256\n"
		"/amdhsa.kernels[0]/.name=second_kernel_with_a_name_longer_than_31_characters\n/amdhsa.kernels[0]/"
		".private_segment_fixed_size=0\n"
		"/amdhsa.kernels[0]/.reqd_workgroup_size[0]=8\n/amdhsa.kernels[0]/.reqd_workgroup_size[1]=16\n"
		"/amdhsa.kernels[0]/.reqd_workgroup_size[2]=2\n/amdhsa.kernels[0]/.sgpr_count=106\n/amdhsa.kernels[0]/"
		".sgpr_spill_count=0\n"
		"/amdhsa.kernels[0]/.symbol=second_kernel_with_a_name_longer_than_31_characters.kd\n/amdhsa.kernels[0]/"
		".uses_dynamic_stack=false\n"
		"/amdhsa.kernels[0]/.vgpr_count=256\n/amdhsa.kernels[0]/.vgpr_spill_count=0\n/amdhsa.kernels[0]/"
		".wavefront_size=32\n"
		"/amdhsa.kernels[0]/.workgroup_processor_mode=1\n"
		"/amdhsa.target=amdgcn-amd-amdhsa--gfx1101\n/amdhsa.version[0]=1\n/amdhsa.version[1]=2\n");
	free(text);
	amdgpu_object_free(&a);
	free_kernels(k);
}

/* Many kernels: every name is found, every array and string length has its form; and how long a layer's takes is
 * said. */
static void test_many(void **state)
{
	enum { N = 300 };
	static struct amdgpu_kernel k[N];
	static char names[N][300];
	struct timespec t0, t1;
	struct image o;
	uint8_t *code;
	size_t size = make_code("gfx1100", 2048, &code);

	for (int i = 0; i < N; i++) {
		snprintf(names[i], sizeof names[i], "%0*d", 1 + i % 280, i);
		k[i] = (struct amdgpu_kernel){
			.name = names[i],
			.code = code,
			.code_size = size,
			.vgprs = 64,
			.kernarg_bytes = 24,
			.args = some_args,
			.n_args = 4,
			.workgroup = { 256, 1, 1 },
			.workitem_ids = 1
		};
	}
	clock_gettime(CLOCK_MONOTONIC, &t0);
	struct amdgpu_object a = make_object("gfx1100", k, 20);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	print_message("20 kernels of %zu bytes: %zu bytes in %.0f us\n", size, a.size,
	              (double)(t1.tv_sec - t0.tv_sec) * 1e6 + (double)(t1.tv_nsec - t0.tv_nsec) / 1e3);
	amdgpu_object_free(&a);
	a = make_object("gfx1100", k, N);
	open_image(&o, a.bytes, a.size);
	for (int i = 0; i < N; i++)
		check_code(&o, &k[i]);
	char *text = object_metadata(&o);
	assert_non_null(strstr(text, "/amdhsa.kernels[299]/.vgpr_count=64\n"));
	free(text);
	amdgpu_object_free(&a);
	free(code);
}

static void refuse(struct amdgpu_kernel k, const char *target, const char *sentence)
{
	struct amdgpu_object o = { (uint8_t *)&o, 1 };
	struct error e = { 0 };

	assert_false(amdgpu_object_make(&o, target, &k, 1, &e));
	assert_string_equal(e.text, sentence);
	assert_null(o.bytes);
	assert_int_equal(o.size, 0);
}

static const uint32_t end_program = 0xbfb00000;
static const struct amdgpu_kernel good_kernel = {
	.name = "k",
	.code = &end_program,
	.code_size = 4,
	.vgprs = 1,
	.workgroup = { 1, 1, 1 },
	.workitem_ids = 1,
	.kernarg_bytes = 24
};

static void test_refused_fields(void **state)
{
	struct amdgpu_kernel k;

	refuse(good_kernel, "gfx900", "the target is gfx900, expected one of gfx1030 to gfx1201");
#define REFUSE(field, value, sentence) \
	do { \
		k = good_kernel; \
		k.field = value; \
		refuse(k, "gfx1030", sentence); \
	} while (0)
	REFUSE(name, "", "a kernel has a name of 0 characters, expected 1 to 1000");
	REFUSE(code_size, 6, "kernel k: the code has 6 bytes, expected a multiple of 4");
	REFUSE(code_size, 0, "kernel k: the size of the code is 0, expected 4 to 67108864");
	REFUSE(vgprs, 0, "kernel k: the number of vector registers is 0, expected 1 to 256");
	REFUSE(vgprs, 257, "kernel k: the number of vector registers is 257, expected 1 to 256");
	REFUSE(sgprs, 109, "kernel k: the number of scalar registers is 109, expected 0 to 108");
	REFUSE(lds_bytes, 65537, "kernel k: the local memory of a workgroup is 65537, expected 0 to 65536");
	REFUSE(scratch_bytes, 262145, "kernel k: the scratch of a work-item is 262145, expected 0 to 262144");
	REFUSE(workgroup[1], 0, "kernel k: the workgroup's size in one direction is 0, expected 1 to 1024");
	REFUSE(workgroup[2], 1025, "kernel k: the workgroup's size in one direction is 1025, expected 1 to 1024");
	REFUSE(workitem_ids, 0, "kernel k: the number of work-item ids is 0, expected 1 to 3");
	REFUSE(workitem_ids, 4, "kernel k: the number of work-item ids is 4, expected 1 to 3");
	REFUSE(prefetch_lines, 1, "kernel k: the instruction prefetch is 1, expected 0 to 0");
	k = good_kernel;
	k.prefetch_lines = 4;
	refuse(k, "gfx1201", "kernel k: the instruction prefetch is 4, expected 0 to 3");
	k = good_kernel;
	k.workgroup[0] = k.workgroup[1] = 64;
	refuse(k, "gfx1030", "kernel k: the workgroup's size is 4096, expected 1 to 1024");
}

static void test_refused_arguments(void **state)
{
	static const struct amdgpu_arg overlap[] = { { "a", 0, 8, AMDGPU_ARG_BUFFER },
		                                     { "b", 4, 4, AMDGPU_ARG_VALUE } };
	static const struct amdgpu_arg odd[] = { { "a", 4, 8, AMDGPU_ARG_BUFFER } },
				       far[] = { { "a", 20, 8, AMDGPU_ARG_VALUE } };
	struct amdgpu_kernel k = good_kernel;

	k.n_args = 2, k.args = overlap;
	refuse(k, "gfx1030",
	       "kernel k: argument 1 has 4 bytes at offset 4, expected them behind offset 8 and before 24");
	k.n_args = 1, k.args = odd;
	refuse(k, "gfx1030",
	       "kernel k: argument 0 is a buffer of 8 bytes at offset 4, expected 8 bytes at a multiple of 8");
	k.args = far;
	refuse(k, "gfx1030",
	       "kernel k: argument 0 has 8 bytes at offset 20, expected them behind offset 0 and before 24");
}

static void test_refused_lists(void **state)
{
	struct amdgpu_kernel two[2] = { good_kernel, good_kernel };
	struct amdgpu_object o;
	struct error e = { 0 };

	assert_false(amdgpu_object_make(&o, "gfx1100", two, 2, &e));
	assert_string_equal(e.text, "kernel k: kernels 0 and 1 have this name, expected one");
	e = (struct error){ 0 };
	assert_false(amdgpu_object_make(&o, "gfx1100", two, 0, &e));
	assert_string_equal(e.text, "a code object has 0 kernels, expected 1 to 1000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_refused_fields),
		cmocka_unit_test(test_refused_arguments),
		cmocka_unit_test(test_refused_lists),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += object_tool_tests();
	return failed;
}

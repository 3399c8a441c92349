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
#include <unistd.h>

#include "encoders/amdgpu_object.h"
#include "encoders/rdna.h"

static const char *const targets[] = { "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034",
	                               "gfx1035", "gfx1036", "gfx1100", "gfx1101", "gfx1102",
	                               "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201" };
enum { TARGETS = sizeof targets / sizeof targets[0] };

/* --- reading an object */

struct image {
	const uint8_t *p;
	size_t size;
	const uint8_t *symbols, *strings, *hash; /* by the dynamic table */
	uint32_t n_symbols;
	const uint8_t *note;
	uint32_t note_size;
};

static uint64_t le(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	for (unsigned i = n; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

static const uint8_t *header(const struct image *o, unsigned i)
{
	assert_true(i < le(o->p + 56, 2));
	return o->p + le(o->p + 32, 8) + 56 * i;
}

/* What lies at an address; `n` bytes of it must be inside one loaded segment. */
static const uint8_t *at(const struct image *o, uint64_t address, uint64_t n)
{
	for (unsigned i = 0; i < le(o->p + 56, 2); i++) {
		const uint8_t *h = header(o, i);
		uint64_t start = le(h + 16, 8), size = le(h + 32, 8);
		if (le(h, 4) == 1 && address >= start && address + n <= start + size)
			return o->p + le(h + 8, 8) + (address - start);
	}
	fail_msg("%llu bytes at address %llx are in no segment", (unsigned long long)n, (unsigned long long)address);
	return NULL;
}

static void open_image(struct image *o, const uint8_t *p, size_t size)
{
	*o = (struct image){ .p = p, .size = size };
	for (unsigned i = 0; i < le(p + 56, 2); i++) {
		const uint8_t *h = header(o, i), *q = p + le(h + 8, 8);
		assert_true(le(h + 8, 8) + le(h + 32, 8) <= size);
		for (const uint8_t *d = q; le(h, 4) == 2 && le(d, 8); d += 16) {
			if (le(d, 8) == 6)
				o->symbols = at(o, le(d + 8, 8), 24);
			else if (le(d, 8) == 5)
				o->strings = at(o, le(d + 8, 8), 1);
			else if (le(d, 8) == 4)
				o->hash = at(o, le(d + 8, 8), 8);
		}
		if (le(h, 4) == 4) {
			assert_int_equal(le(q + 8, 4), 32);
			assert_string_equal((const char *)q + 12, "AMDGPU");
			o->note = q + 20;
			o->note_size = (uint32_t)le(q + 4, 4);
		}
	}
	assert_non_null(o->symbols);
	assert_non_null(o->strings);
	assert_non_null(o->hash);
	assert_non_null(o->note);
	o->n_symbols = (uint32_t)le(o->hash + 4, 4);
}

static uint32_t hash_of(const char *s)
{
	uint32_t h = 0, g;

	for (; *s; s++) {
		h = (h << 4) + (uint8_t)*s;
		if ((g = h & 0xf0000000))
			h ^= g >> 24;
		h &= ~g;
	}
	return h;
}

/* A dynamic symbol through the hash table. */
static const uint8_t *symbol(const struct image *o, const char *name)
{
	uint32_t buckets = (uint32_t)le(o->hash, 4), i = (uint32_t)le(o->hash + 8 + 4 * (hash_of(name) % buckets), 4);

	for (; i; i = (uint32_t)le(o->hash + 8 + 4 * (buckets + i), 4))
		if (strcmp((const char *)o->strings + le(o->symbols + 24 * i, 4), name) == 0)
			return o->symbols + 24 * i;
	fail_msg("no symbol %s", name);
	return NULL;
}

static const uint8_t *descriptor(const struct image *o, const char *kernel)
{
	char name[300];

	snprintf(name, sizeof name, "%s.kd", kernel);
	const uint8_t *s = symbol(o, name);
	assert_int_equal(s[4], 0x11);
	assert_int_equal(s[5], 3);
	assert_int_equal(le(s + 16, 8), 64);
	assert_int_equal(le(s + 8, 8) % 64, 0);
	return at(o, le(s + 8, 8), 64);
}

/* --- reading metadata: one line "path=value" per leaf */

struct reader {
	const uint8_t *p, *end;
	FILE *out;
};

static uint64_t big(struct reader *r, unsigned n)
{
	uint64_t v = 0;

	assert_true((size_t)(r->end - r->p) >= n);
	while (n--)
		v = v << 8 | *r->p++;
	return v;
}

static void read_value(struct reader *r, const char *path);

static void read_string(struct reader *r, uint64_t n, char out[1100])
{
	assert_true((uint64_t)(r->end - r->p) >= n && n < 1100);
	memcpy(out, r->p, n);
	out[n] = 0;
	r->p += n;
}

static void read_map(struct reader *r, const char *path, uint64_t n)
{
	char key[1100], longer[1400], last[1100] = "";

	while (n--) {
		uint64_t b = big(r, 1);
		read_string(r, b == 0xd9 ? big(r, 1) : b & 31, key);
		assert_true(strcmp(last, key) < 0);
		strcpy(last, key);
		snprintf(longer, sizeof longer, "%s/%s", path, key);
		read_value(r, longer);
	}
}

static void read_array(struct reader *r, const char *path, uint64_t n)
{
	char longer[1400];

	for (uint64_t i = 0; i < n; i++) {
		snprintf(longer, sizeof longer, "%s[%llu]", path, (unsigned long long)i);
		read_value(r, longer);
	}
}

static void read_value(struct reader *r, const char *path)
{
	uint64_t b = big(r, 1);
	char text[1100];

	if ((b & 0xf0) == 0x80 || b == 0xde) {
		read_map(r, path, b == 0xde ? big(r, 2) : b & 15);
	} else if ((b & 0xf0) == 0x90 || b == 0xdc) {
		read_array(r, path, b == 0xdc ? big(r, 2) : b & 15);
	} else if ((b & 0xe0) == 0xa0 || b == 0xd9 || b == 0xda) {
		read_string(r, b == 0xd9 ? big(r, 1) : b == 0xda ? big(r, 2) : b & 31, text);
		fprintf(r->out, "%s=%s\n", path, text);
	} else if (b == 0xc2 || b == 0xc3) {
		fprintf(r->out, "%s=%s\n", path, b == 0xc3 ? "true" : "false");
	} else {
		uint64_t v = b < 128     ? b
		             : b == 0xcc ? big(r, 1)
		             : b == 0xcd ? big(r, 2)
		             : b == 0xce ? big(r, 4)
		                         : UINT64_MAX;
		assert_true(v != UINT64_MAX);
		fprintf(r->out, "%s=%llu\n", path, (unsigned long long)v);
	}
}

/* The whole metadata as text; the caller frees. */
static char *metadata(const struct image *o)
{
	char *text = NULL;
	size_t n = 0;
	struct reader r = { o->note, o->note + o->note_size, open_memstream(&text, &n) };

	read_value(&r, "");
	assert_ptr_equal(r.p, r.end);
	fclose(r.out);
	return text;
}

/* --- the kernels that are tried */

static const struct amdgpu_arg some_args[] = { { "out", 0, 8, AMDGPU_ARG_BUFFER },
	                                       { "in", 8, 8, AMDGPU_ARG_BUFFER },
	                                       { "rows", 16, 4, AMDGPU_ARG_VALUE },
	                                       { NULL, 20, 4, AMDGPU_ARG_VALUE } };

static size_t make_code(const char *target, unsigned words, uint8_t **code)
{
	struct rdna r;

	rdna_init(&r, rdna_gen_of(target));
	while (r.size + 4 < 4 * (size_t)words)
		rdna_put_imm(&r, RDNA_S_NOP, (int64_t)(r.size / 4 % 16));
	rdna_put0(&r, RDNA_S_ENDPGM);
	assert_true(rdna_finish(&r));
	*code = malloc(r.size);
	memcpy(*code, r.code, r.size);
	size_t n = r.size;
	rdna_free(&r);
	return n;
}

enum { KERNELS = 4 };

static void make_kernels(const char *target, struct amdgpu_kernel k[KERNELS])
{
	static const char *const names[KERNELS] = { "first", "second_kernel_with_a_name_longer_than_31_characters",
		                                    "third", "lasting" };
	static const unsigned words[KERNELS] = { 1, 64, 65, 1000 };
	bool gfx10 = strncmp(target, "gfx10", 5) == 0;

	for (int i = 0; i < KERNELS; i++) {
		k[i] = (struct amdgpu_kernel){ .name = names[i],
			                       .vgprs = 1,
			                       .workgroup = { 32, 1, 1 },
			                       .workitem_ids = 1,
			                       .float_mode = AMDGPU_FLOAT_KEEP_DENORMALS };
		uint8_t *code;
		k[i].code_size = make_code(target, words[i], &code);
		k[i].code = code;
	}
	k[1] = (struct amdgpu_kernel){
		.name = names[1],
		.code = k[1].code,
		.code_size = k[1].code_size,
		.vgprs = 256,
		.sgprs = 106,
		.lds_bytes = 65536,
		.kernarg_bytes = 24,
		.args = some_args,
		.n_args = 4,
		.workgroup = { 8, 16, 2 },
		.workgroup_id = { true, true, true },
		.workitem_ids = 3,
		.float_mode = AMDGPU_FLOAT_FLUSH_F32 | 5,
		.ieee = true,
		.dx10_clamp = true,
		.fp16_overflow = true,
		.wgp_mode = true,
		.forward_progress = true
	};
	k[2].kernarg_bytes = 300;
	k[2].scratch_bytes = 64;
	k[2].vgprs = 97;
	k[2].sgprs = 17;
	k[2].dispatch_ptr = true;
	k[2].workgroup_id[0] = true;
	k[2].workitem_ids = 2;
	k[2].prefetch_lines = gfx10 ? 0 : 3;
	k[3].vgprs = 9;
	k[3].kernarg_bytes = 8;
	k[3].args = some_args;
	k[3].n_args = 1;
	k[3].workgroup[0] = 1024;
	k[3].wgp_mode = true;
}

static void free_kernels(struct amdgpu_kernel k[KERNELS])
{
	for (int i = 0; i < KERNELS; i++)
		free((void *)(uintptr_t)k[i].code);
}

static struct amdgpu_object make(const char *target, const struct amdgpu_kernel *k, size_t n)
{
	struct amdgpu_object o;
	struct error e = { 0 };

	if (!amdgpu_object_make(&o, target, k, n, &e))
		fail_msg("%s: %s", target, e.text);
	return o;
}

/* --- by this file's parser */

static void check_segments(const struct image *o)
{
	uint64_t end = 0;
	unsigned executable = 0;

	for (unsigned i = 0; i < le(o->p + 56, 2); i++) {
		const uint8_t *h = header(o, i);
		if (le(h, 4) != 1)
			continue;
		assert_true(le(h + 16, 8) / 4096 * 4096 >= end);
		assert_int_equal((le(h + 16, 8) - le(h + 8, 8)) % 4096, 0);
		assert_int_equal(le(h + 48, 8), 4096);
		end = (le(h + 16, 8) + le(h + 40, 8) + 4095) / 4096 * 4096;
		executable += le(h + 4, 4) == 5;
		assert_true(le(h + 4, 4) != 7);
	}
	assert_int_equal(executable, 1);
}

static void check_code(const struct image *o, const struct amdgpu_kernel *k)
{
	const uint8_t *s = symbol(o, k->name), *kd = descriptor(o, k->name);
	char name[300];

	snprintf(name, sizeof name, "%s.kd", k->name);
	uint64_t code = le(symbol(o, name) + 8, 8) + le(kd + 16, 8);
	assert_int_equal(s[4], 0x12);
	assert_int_equal(s[5], 3);
	assert_int_equal(le(s + 8, 8), code);
	assert_int_equal(le(s + 16, 8), k->code_size);
	assert_int_equal(code % 256, 0);
	assert_memory_equal(at(o, code, k->code_size), k->code, k->code_size);
	/* what prefetch may touch is there, and no instruction until the next kernel */
	const uint8_t *behind = at(o, code + k->code_size, 256);
	for (uint64_t a = 0; (code + k->code_size + a) % 256; a += 4)
		assert_int_equal(le(behind + a, 4), 0xbf9f0000);
}

static void check_descriptor(const uint8_t *d, const char *target, const struct amdgpu_kernel *k)
{
	bool gfx10 = strncmp(target, "gfx10", 5) == 0, gfx12 = strncmp(target, "gfx12", 5) == 0;
	uint32_t r1 = (uint32_t)le(d + 48, 4), r2 = (uint32_t)le(d + 52, 4), properties = (uint32_t)le(d + 56, 4);

	assert_int_equal(le(d, 4), k->lds_bytes);
	assert_int_equal(le(d + 4, 4), k->scratch_bytes);
	assert_int_equal(le(d + 8, 4), k->kernarg_bytes);
	assert_int_equal(le(d + 12, 4), 0);
	for (int i = 24; i < 44; i++)
		assert_int_equal(d[i], 0);
	assert_int_equal(le(d + 44, 4), gfx10 ? 0 : k->prefetch_lines * 16);
	assert_int_equal((r1 & 63) * 8 + 8, (k->vgprs + 7) / 8 * 8);
	assert_int_equal(r1 >> 6 & 63, 0);
	assert_int_equal(r1 >> 12 & 255, k->float_mode);
	assert_int_equal(r1 >> 20 & 15, gfx12 ? 0 : k->dx10_clamp * 2 + k->ieee * 8);
	assert_int_equal(r1 >> 24, k->fp16_overflow * 4 + k->wgp_mode * 32 + 64 + k->forward_progress * 128);
	unsigned user = 2 * k->dispatch_ptr + 2 * (k->kernarg_bytes > 0) + 2 * (gfx10 && k->scratch_bytes);
	assert_int_equal(r2 & 63, (k->scratch_bytes > 0) + 2 * user);
	assert_int_equal(r2 >> 7 & 15,
	                 gfx12 ? 7 : k->workgroup_id[0] + k->workgroup_id[1] * 2 + k->workgroup_id[2] * 4);
	assert_int_equal(r2 >> 11, k->workitem_ids - 1);
	assert_int_equal(properties,
	                 0x400 + 2 * k->dispatch_ptr + 8 * (k->kernarg_bytes > 0) + 32 * (gfx10 && k->scratch_bytes));
	assert_int_equal(le(d + 60, 4), 0);
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
		struct amdgpu_object a = make(targets[t], k, KERNELS), b = make(targets[t], k, KERNELS);
		assert_int_equal(a.size, b.size);
		assert_memory_equal(a.bytes, b.bytes, a.size);
		assert_memory_equal(a.bytes, "\177ELF\2\1\1\100\3\0\0\0\0\0\0\0", 16);
		assert_int_equal(le(a.bytes + 16, 4), 3 | 224 << 16);
		assert_int_equal(le(a.bytes + 48, 4), flags[t]);
		assert_int_equal(amdgpu_elf_flags(targets[t]), flags[t]);
		open_image(&o, a.bytes, a.size);
		assert_int_equal(o.n_symbols, 1 + 2 * KERNELS);
		check_segments(&o);
		for (int i = 0; i < KERNELS; i++) {
			check_code(&o, &k[i]);
			check_descriptor(descriptor(&o, k[i].name), targets[t], &k[i]);
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
	struct amdgpu_object a = make("gfx1101", k + 1, 1);
	open_image(&o, a.bytes, a.size);
	char *text = metadata(&o);
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
	struct amdgpu_object a = make("gfx1100", k, 20);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	print_message("20 kernels of %zu bytes: %zu bytes in %.0f us\n", size, a.size,
	              (double)(t1.tv_sec - t0.tv_sec) * 1e6 + (double)(t1.tv_nsec - t0.tv_nsec) / 1e3);
	amdgpu_object_free(&a);
	a = make("gfx1100", k, N);
	open_image(&o, a.bytes, a.size);
	for (int i = 0; i < N; i++)
		check_code(&o, &k[i]);
	char *text = metadata(&o);
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

static void test_refusals(void **state)
{
	static const uint32_t end = 0xbfb00000;
	static const struct amdgpu_arg overlap[] = { { "a", 0, 8, AMDGPU_ARG_BUFFER },
		                                     { "b", 4, 4, AMDGPU_ARG_VALUE } };
	static const struct amdgpu_arg odd[] = { { "a", 4, 8, AMDGPU_ARG_BUFFER } },
				       far[] = { { "a", 20, 8, AMDGPU_ARG_VALUE } };
	const struct amdgpu_kernel good = {
		.name = "k",
		.code = &end,
		.code_size = 4,
		.vgprs = 1,
		.workgroup = { 1, 1, 1 },
		.workitem_ids = 1,
		.kernarg_bytes = 24
	};
	struct amdgpu_kernel k, two[2] = { good, good };
	struct amdgpu_object o;
	struct error e = { 0 };

	refuse(good, "gfx900", "the target is gfx900, expected one of gfx1030 to gfx1201");
#define REFUSE(field, value, sentence) \
	do { \
		k = good; \
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
	k = good;
	k.prefetch_lines = 4;
	refuse(k, "gfx1201", "kernel k: the instruction prefetch is 4, expected 0 to 3");
	k = good;
	k.workgroup[0] = k.workgroup[1] = 64;
	refuse(k, "gfx1030", "kernel k: the workgroup's size is 4096, expected 1 to 1024");
	k = good;
	k.n_args = 2, k.args = overlap;
	refuse(k, "gfx1030",
	       "kernel k: argument 1 has 4 bytes at offset 4, expected them behind offset 8 and before 24");
	k.n_args = 1, k.args = odd;
	refuse(k, "gfx1030",
	       "kernel k: argument 0 is a buffer of 8 bytes at offset 4, expected 8 bytes at a multiple of 8");
	k.args = far;
	refuse(k, "gfx1030",
	       "kernel k: argument 0 has 8 bytes at offset 20, expected them behind offset 0 and before 24");
	assert_false(amdgpu_object_make(&o, "gfx1100", two, 2, &e));
	assert_string_equal(e.text, "kernel k: kernels 0 and 1 have this name, expected one");
	e = (struct error){ 0 };
	assert_false(amdgpu_object_make(&o, "gfx1100", two, 0, &e));
	assert_string_equal(e.text, "a code object has 0 kernels, expected 1 to 1000");
}

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
		fprintf(f, ".long 0x%llx\n", (unsigned long long)le((const uint8_t *)k->code + i, 4));
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
		assert_int_equal(le(ours->p + header_fields[i], 2), le(theirs->p + header_fields[i], 2));
	assert_int_equal(le(ours->p + 56, 2), le(theirs->p + 56, 2));
	for (unsigned i = 0; i < le(ours->p + 56, 2); i++) {
		assert_int_equal(le(header(ours, i), 4), le(header(theirs, i), 4));           /* type */
		assert_int_equal(le(header(ours, i) + 4, 4), le(header(theirs, i) + 4, 4));   /* flags */
		assert_int_equal(le(header(ours, i) + 48, 8), le(header(theirs, i) + 48, 8)); /* alignment */
		assert_int_equal(le(header(ours, i) + 16, 8) - le(header(ours, i) + 8, 8),
		                 le(header(theirs, i) + 16, 8) - le(header(theirs, i) + 8, 8));
	}
	assert_int_equal(ours->note_size, theirs->note_size);
	assert_memory_equal(ours->note, theirs->note, ours->note_size);
	assert_int_equal(ours->n_symbols, theirs->n_symbols);
	for (int i = 0; i < n; i++) {
		const uint8_t *a = descriptor(ours, k[i].name), *b = descriptor(theirs, k[i].name);
		assert_memory_equal(a, b, 16);
		assert_memory_equal(a + 24, b + 24, 40);
		check_code(ours, &k[i]);
		a = symbol(ours, k[i].name);
		b = symbol(theirs, k[i].name);
		assert_memory_equal(a + 4, b + 4, 2);
		assert_int_equal(le(a + 16, 8), le(b + 16, 8));
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
	struct amdgpu_object a = make(target, k, KERNELS);
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
		struct amdgpu_object a = make(targets[t], k, KERNELS);
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
	char *a = metadata(ours), *b = metadata(theirs);

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
	char *text = metadata(&theirs);
	const uint8_t *s = symbol(&theirs, "scale"), *kd = descriptor(&theirs, "scale");
	struct amdgpu_kernel k = {
		.name = "scale",
		.code = at(&theirs, le(s + 8, 8), le(s + 16, 8)),
		.code_size = le(s + 16, 8),
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
	struct amdgpu_object a = make(target, &k, 1);
	open_image(&ours, a.bytes, a.size);
	compare_metadata(&ours, &theirs);
	const uint8_t *d = descriptor(&ours, "scale");
	assert_memory_equal(d, kd, 16);
	assert_memory_equal(d + 24, kd + 24, 24);
	/* but for the scalar registers' field, which the hardware ignores, the user registers, of which the compiler
	 * takes more than it needs, and gfx12's workgroup ids, which are always there */
	assert_int_equal(le(d + 48, 4), le(kd + 48, 4) & ~0x3c0u);
	assert_int_equal(le(d + 52, 4) & ~0x33eu, le(kd + 52, 4) & ~0x33eu);
	assert_int_equal(le(d + 56, 4), le(kd + 56, 4) & ~1u);
	assert_int_equal(le(ours.p + 48, 4), le(theirs.p + 48, 4));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_against_linker),
		cmocka_unit_test(test_readers),
		cmocka_unit_test(test_against_compiler),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

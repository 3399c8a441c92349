/* tests/encoders/object_reader.c - see object_reader.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/amdgpu_object.h"
#include "encoders/rdna.h"
#include "tests/encoders/object_reader.h"

uint64_t little_endian(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	for (unsigned i = n; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

const uint8_t *object_header(const struct image *o, unsigned i)
{
	assert_true(i < little_endian(o->p + 56, 2));
	return o->p + little_endian(o->p + 32, 8) + 56 * i;
}

const uint8_t *object_at(const struct image *o, uint64_t address, uint64_t n)
{
	for (unsigned i = 0; i < little_endian(o->p + 56, 2); i++) {
		const uint8_t *h = object_header(o, i);
		uint64_t start = little_endian(h + 16, 8), size = little_endian(h + 32, 8);
		if (little_endian(h, 4) == 1 && address >= start && address + n <= start + size)
			return o->p + little_endian(h + 8, 8) + (address - start);
	}
	fail_msg("%llu bytes at address %llx are in no segment", (unsigned long long)n, (unsigned long long)address);
	return NULL;
}

void open_image(struct image *o, const uint8_t *p, size_t size)
{
	*o = (struct image){ .p = p, .size = size };
	for (unsigned i = 0; i < little_endian(p + 56, 2); i++) {
		const uint8_t *h = object_header(o, i), *q = p + little_endian(h + 8, 8);
		assert_true(little_endian(h + 8, 8) + little_endian(h + 32, 8) <= size);
		for (const uint8_t *d = q; little_endian(h, 4) == 2 && little_endian(d, 8); d += 16) {
			if (little_endian(d, 8) == 6)
				o->symbols = object_at(o, little_endian(d + 8, 8), 24);
			else if (little_endian(d, 8) == 5)
				o->strings = object_at(o, little_endian(d + 8, 8), 1);
			else if (little_endian(d, 8) == 4)
				o->hash = object_at(o, little_endian(d + 8, 8), 8);
		}
		if (little_endian(h, 4) == 4) {
			assert_int_equal(little_endian(q + 8, 4), 32);
			assert_string_equal((const char *)q + 12, "AMDGPU");
			o->note = q + 20;
			o->note_size = (uint32_t)little_endian(q + 4, 4);
		}
	}
	assert_non_null(o->symbols);
	assert_non_null(o->strings);
	assert_non_null(o->hash);
	assert_non_null(o->note);
	o->n_symbols = (uint32_t)little_endian(o->hash + 4, 4);
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

const uint8_t *object_symbol(const struct image *o, const char *name)
{
	uint32_t buckets = (uint32_t)little_endian(o->hash, 4),
		 i = (uint32_t)little_endian(o->hash + 8 + 4 * (hash_of(name) % buckets), 4);

	for (; i; i = (uint32_t)little_endian(o->hash + 8 + 4 * (buckets + i), 4))
		if (strcmp((const char *)o->strings + little_endian(o->symbols + 24 * i, 4), name) == 0)
			return o->symbols + 24 * i;
	fail_msg("no symbol %s", name);
	return NULL;
}

const uint8_t *object_descriptor(const struct image *o, const char *kernel)
{
	char name[300];

	snprintf(name, sizeof name, "%s.kd", kernel);
	const uint8_t *s = object_symbol(o, name);
	assert_int_equal(s[4], 0x11);
	assert_int_equal(s[5], 3);
	assert_int_equal(little_endian(s + 16, 8), 64);
	assert_int_equal(little_endian(s + 8, 8) % 64, 0);
	return object_at(o, little_endian(s + 8, 8), 64);
}

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

char *object_metadata(const struct image *o)
{
	char *text = NULL;
	size_t n = 0;
	struct reader r = { o->note, o->note + o->note_size, open_memstream(&text, &n) };

	read_value(&r, "");
	assert_ptr_equal(r.p, r.end);
	fclose(r.out);
	return text;
}

size_t make_code(const char *target, unsigned words, uint8_t **code)
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

void make_kernels(const char *target, struct amdgpu_kernel k[KERNELS])
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

void free_kernels(struct amdgpu_kernel k[KERNELS])
{
	for (int i = 0; i < KERNELS; i++)
		free((void *)(uintptr_t)k[i].code);
}

struct amdgpu_object make_object(const char *target, const struct amdgpu_kernel *k, size_t n)
{
	struct amdgpu_object o;
	struct error e = { 0 };

	if (!amdgpu_object_make(&o, target, k, n, &e))
		fail_msg("%s: %s", target, e.text);
	return o;
}

void check_code(const struct image *o, const struct amdgpu_kernel *k)
{
	const uint8_t *s = object_symbol(o, k->name), *kd = object_descriptor(o, k->name);
	char name[300];

	snprintf(name, sizeof name, "%s.kd", k->name);
	uint64_t code = little_endian(object_symbol(o, name) + 8, 8) + little_endian(kd + 16, 8);
	assert_int_equal(s[4], 0x12);
	assert_int_equal(s[5], 3);
	assert_int_equal(little_endian(s + 8, 8), code);
	assert_int_equal(little_endian(s + 16, 8), k->code_size);
	assert_int_equal(code % 256, 0);
	assert_memory_equal(object_at(o, code, k->code_size), k->code, k->code_size);
	/* what prefetch may touch is there, and no instruction until the next kernel */
	const uint8_t *behind = object_at(o, code + k->code_size, 256);
	for (uint64_t a = 0; (code + k->code_size + a) % 256; a += 4)
		assert_int_equal(little_endian(behind + a, 4), 0xbf9f0000);
}

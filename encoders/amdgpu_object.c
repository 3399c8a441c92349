/* encoders/amdgpu_object.c - lays a code object out.
 *
 * Owns: the order of sections and segments, which is the linker's: read-only data (note, dynamic symbols, descriptors),
 * code, the dynamic table, each in pages of its own; then what only tools read. The rule: a byte's place follows from
 * the kernels alone.
 */
#include <stdlib.h>
#include <string.h>

#include "encoders/amdgpu_parts.h"

enum {
	SECTION_NOTE = 1,
	SECTION_DYNSYM,
	SECTION_HASH,
	SECTION_DYNSTR,
	SECTION_RODATA,
	SECTION_TEXT,
	SECTION_DYNAMIC,
	SECTION_SYMTAB,
	SECTION_SHSTRTAB,
	SECTION_STRTAB,
	SECTION_COUNT
};
enum {
	HEADERS = 8, /* program headers */
	PAGE = 4096,
	CODE_TAIL = 384, /* bytes of s_code_end behind a kernel, for the instruction prefetcher */
	CODE_LINE = 128  /* a cache line of instructions */
};
static const uint32_t code_end = 0xbf9f0000; /* s_code_end, the same in every generation */

/* min_sgprs: a wave of 32 lanes must start with so many user and system registers, or the hardware does not set them
 * up rightly. */
static const struct target {
	char name[8];
	uint8_t flags, min_sgprs;
} targets[] = { { "gfx1030", 0x36, 0 }, { "gfx1031", 0x37, 0 },  { "gfx1032", 0x38, 0 }, { "gfx1033", 0x39, 0 },
	        { "gfx1034", 0x3e, 0 }, { "gfx1035", 0x3d, 0 },  { "gfx1036", 0x45, 0 }, { "gfx1100", 0x41, 16 },
	        { "gfx1101", 0x46, 0 }, { "gfx1102", 0x47, 16 }, { "gfx1103", 0x44, 0 }, { "gfx1150", 0x43, 0 },
	        { "gfx1151", 0x4a, 0 }, { "gfx1200", 0x48, 0 },  { "gfx1201", 0x4e, 0 } };

static const struct target *find_target(const char *name)
{
	for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
		if (strcmp(targets[i].name, name) == 0)
			return &targets[i];
	return NULL;
}

uint32_t amdgpu_elf_flags(const char *target)
{
	const struct target *t = find_target(target);
	return t ? t->flags : 0;
}

/* 10, 11 or 12 */
static unsigned generation(const char *target)
{
	return (unsigned)(target[3] - '0') * 10 + (unsigned)(target[4] - '0');
}

unsigned amdgpu_first_free_sgpr(const char *target, const struct amdgpu_kernel *k)
{
	const struct target *t = find_target(target);
	unsigned system = (unsigned)k->workgroup_id[0] + k->workgroup_id[1] + k->workgroup_id[2],
		 user = 2u * k->dispatch_ptr + 2u * (k->kernarg_bytes > 0) +
	                2u * (generation(target) == 10 && k->scratch_bytes);

	return t && user + system < t->min_sgprs ? t->min_sgprs - system : user;
}

/* --- a growing buffer, little-endian */

static void put_code_end(struct buffer *b, size_t to)
{
	while (!b->failed && b->size < to)
		amdgpu_put_le(b, code_end, 4);
}

/* --- the kernel descriptor: what the command processor sets a wave up with */

static uint32_t descriptor_rsrc1(unsigned gen, const struct amdgpu_kernel *k)
{
	uint32_t v = ((uint32_t)k->vgprs + 7) / 8 - 1; /* wave32: in blocks of 8 */

	v |= (uint32_t)k->float_mode << 12;
	if (gen < 12)
		v |= (uint32_t)k->dx10_clamp << 21 | (uint32_t)k->ieee << 23;
	v |= (uint32_t)k->fp16_overflow << 26 | (uint32_t)k->wgp_mode << 29 | 1u << 30; /* loads return in order */
	return v | (uint32_t)k->forward_progress << 31;
}

static uint32_t descriptor_rsrc2(unsigned gen, const char *target, const struct amdgpu_kernel *k)
{
	uint32_t v = (k->scratch_bytes > 0) | amdgpu_first_free_sgpr(target, k) << 1;

	for (int i = 0; i < 3; i++)
		v |= (uint32_t)(k->workgroup_id[i] || gen >= 12) << (7 + i);
	return v | (k->workitem_ids - 1u) << 11;
}

static void put_descriptor(struct buffer *b, const char *target, const struct amdgpu_kernel *k, int64_t to_code)
{
	unsigned gen = generation(target);
	size_t at = b->size;
	uint32_t properties =
		(uint32_t)k->dispatch_ptr << 1 | (uint32_t)(k->kernarg_bytes > 0) << 3 | 1u << 10; /* wave32 */

	if (gen == 10 && k->scratch_bytes)
		properties |= 1u << 5;
	amdgpu_put_le(b, k->lds_bytes, 4);
	amdgpu_put_le(b, k->scratch_bytes, 4);
	amdgpu_put_le(b, k->kernarg_bytes, 4);
	amdgpu_put_zeros(b, at + 16);
	amdgpu_put_le(b, (uint64_t)to_code, 8);
	amdgpu_put_zeros(b, at + 44);
	amdgpu_put_le(b, gen >= 11 ? (uint32_t)k->prefetch_lines << 4 : 0, 4);
	amdgpu_put_le(b, descriptor_rsrc1(gen, k), 4);
	amdgpu_put_le(b, descriptor_rsrc2(gen, target, k), 4);
	amdgpu_put_le(b, properties, 4);
	amdgpu_put_zeros(b, at + AMDGPU_DESCRIPTOR_SIZE);
}

/* --- what can be described */

static bool check_args(const struct amdgpu_kernel *k, struct error *e)
{
	uint32_t end = 0;

	for (uint32_t i = 0; i < k->n_args; i++) {
		const struct amdgpu_arg *a = &k->args[i];
		if (a->kind == AMDGPU_ARG_BUFFER && (a->size != 8 || a->offset % 8))
			return error_set(e, ERROR_ARGUMENT,
			                 "kernel %s: argument %u is a buffer of %u bytes at offset %u, expected 8 "
			                 "bytes at a multiple of 8",
			                 k->name, i, a->size, a->offset);
		if (!a->size || a->offset < end || a->offset > k->kernarg_bytes ||
		    a->size > k->kernarg_bytes - a->offset)
			return error_set(e, ERROR_ARGUMENT,
			                 "kernel %s: argument %u has %u bytes at offset %u, expected them behind "
			                 "offset %u and before %u",
			                 k->name, i, a->size, a->offset, end, k->kernarg_bytes);
		end = a->offset + a->size;
	}
	return true;
}

static bool check_limit(const struct amdgpu_kernel *k, const char *what, uint64_t value, uint64_t low, uint64_t high,
                        struct error *e)
{
	if (value >= low && value <= high)
		return true;
	return error_set(e, ERROR_ARGUMENT, "kernel %s: %s is %llu, expected %llu to %llu", k->name, what,
	                 (unsigned long long)value, (unsigned long long)low, (unsigned long long)high);
}

static bool check_kernel(const struct amdgpu_kernel *k, unsigned gen, struct error *e)
{
	uint64_t lines =
		gen < 11 ? 0 : (k->code_size + CODE_TAIL) / CODE_LINE; /* what is mapped behind the kernel's start */

	if (!k->name || !*k->name || strlen(k->name) > 1000)
		return error_set(e, ERROR_ARGUMENT, "a kernel has a name of %zu characters, expected 1 to 1000",
		                 k->name ? strlen(k->name) : 0);
	for (int i = 0; i < 3; i++)
		if (!check_limit(k, "the workgroup's size in one direction", k->workgroup[i], 1, 1024, e))
			return false;
	if (k->code_size % 4)
		return error_set(e, ERROR_ARGUMENT, "kernel %s: the code has %zu bytes, expected a multiple of 4",
		                 k->name, k->code_size);
	return check_limit(k, "the size of the code", k->code_size, 4, 1 << 26, e) &&
	       check_limit(k, "the workgroup's size", (uint64_t)k->workgroup[0] * k->workgroup[1] * k->workgroup[2], 1,
	                   1024, e) &&
	       check_limit(k, "the number of vector registers", k->vgprs, 1, 256, e) &&
	       check_limit(k, "the number of scalar registers", k->sgprs, 0, 108, e) &&
	       check_limit(k, "the local memory of a workgroup", k->lds_bytes, 0, 65536, e) &&
	       check_limit(k, "the scratch of a work-item", k->scratch_bytes, 0, 1 << 18, e) &&
	       check_limit(k, "the number of work-item ids", k->workitem_ids, 1, 3, e) &&
	       check_limit(k, "the instruction prefetch", k->prefetch_lines, 0, lines < 63 ? lines : 63, e) &&
	       check_args(k, e);
}

static bool check_request(const char *target, const struct amdgpu_kernel *k, size_t n, struct error *e)
{
	if (!target || !amdgpu_elf_flags(target))
		return error_set(e, ERROR_UNSUPPORTED, "the target is %s, expected one of gfx1030 to gfx1201",
		                 target ? target : "missing");
	if (n == 0 || n > 1000)
		return error_set(e, ERROR_ARGUMENT, "a code object has %zu kernels, expected 1 to 1000", n);
	for (size_t i = 0; i < n; i++) {
		if (!check_kernel(&k[i], generation(target), e))
			return false;
		for (size_t j = 0; j < i; j++)
			if (strcmp(k[i].name, k[j].name) == 0)
				return error_set(e, ERROR_ARGUMENT,
				                 "kernel %s: kernels %zu and %zu have this name, expected one",
				                 k[i].name, j, i);
	}
	return true;
}

/* --- symbols and strings */

struct layout {
	struct buffer b;
	const char *target;
	const struct amdgpu_kernel *k;
	size_t n;
	size_t at[SECTION_COUNT], size[SECTION_COUNT];
	uint64_t *code; /* where each kernel begins, as an address */
};

static uint64_t address(const struct layout *l, unsigned section)
{
	uint64_t pages = section == SECTION_TEXT ? 1 : section == SECTION_DYNAMIC ? 2 : 0;

	return section > SECTION_DYNAMIC ? 0 : l->at[section] + pages * PAGE;
}

static void begin(struct layout *l, unsigned section, size_t align)
{
	amdgpu_align(&l->b, align);
	l->at[section] = l->b.size;
}

static void end(struct layout *l, unsigned section) { l->size[section] = l->b.size - l->at[section]; }

static void put_symbol(struct buffer *b, uint32_t name, unsigned info, unsigned other, unsigned section, uint64_t value,
                       uint64_t size)
{
	amdgpu_put_le(b, name, 4);
	amdgpu_put_le(b, info, 1);
	amdgpu_put_le(b, other, 1);
	amdgpu_put_le(b, section, 2);
	amdgpu_put_le(b, value, 8);
	amdgpu_put_le(b, size, 8);
}

/* Each kernel has two: NAME, a function, and NAME.kd, an object; global and protected. Their addresses come later. */
static void put_symbols(struct layout *l, unsigned section)
{
	uint32_t name = 1;

	begin(l, section, 8);
	put_symbol(&l->b, 0, 0, 0, 0, 0, 0);
	for (size_t i = 0; i < l->n; i++) {
		uint32_t length = (uint32_t)strlen(l->k[i].name);
		put_symbol(&l->b, name, 0x12, 3, SECTION_TEXT, l->code ? l->code[i] : 0, l->k[i].code_size);
		name += length + 1;
		put_symbol(&l->b, name, 0x11, 3, SECTION_RODATA,
		           address(l, SECTION_RODATA) + i * AMDGPU_DESCRIPTOR_SIZE, AMDGPU_DESCRIPTOR_SIZE);
		name += length + 4;
	}
	end(l, section);
}

static void put_strings(struct layout *l, unsigned section)
{
	begin(l, section, 1);
	amdgpu_put_le(&l->b, 0, 1);
	for (size_t i = 0; i < l->n; i++) {
		size_t length = strlen(l->k[i].name);
		amdgpu_put(&l->b, l->k[i].name, length + 1);
		amdgpu_put(&l->b, l->k[i].name, length);
		amdgpu_put(&l->b, ".kd", 4);
	}
	end(l, section);
}

static uint32_t symbol_hash(const char *s, const char *suffix)
{
	uint32_t h = 0;

	for (int part = 0; part < 2; part++, s = suffix)
		for (const char *p = s; *p; p++) {
			h = (h << 4) + (uint8_t)*p;
			uint32_t g = h & 0xf0000000;
			h = (h ^ g >> 24) & ~g;
		}
	return h;
}

/* A table as long as the symbols are many: heads of the chains, then for each symbol the next one of its chain. */
static void put_hash(struct layout *l)
{
	uint32_t count = 1 + 2 * (uint32_t)l->n;

	begin(l, SECTION_HASH, 4);
	size_t heads = l->b.size + 8, chain = heads + 4 * (size_t)count;
	amdgpu_put_le(&l->b, count, 4);
	amdgpu_put_le(&l->b, count, 4);
	amdgpu_put_zeros(&l->b, l->b.size + 8 * (size_t)count);
	for (uint32_t i = 1; i < count && !l->b.failed; i++) {
		const char *name = l->k[(i - 1) / 2].name;
		size_t head = heads + 4 * (size_t)(symbol_hash(name, i % 2 ? "" : ".kd") % count);
		memcpy(l->b.p + chain + 4 * (size_t)i, l->b.p + head, 4);
		amdgpu_patch_le(&l->b, head, i, 4);
	}
	end(l, SECTION_HASH);
}

/* --- code and descriptors */

static void put_code(struct layout *l)
{
	begin(l, SECTION_TEXT, AMDGPU_KERNEL_ALIGN);
	for (size_t i = 0; i < l->n; i++) {
		put_code_end(&l->b, (l->b.size + AMDGPU_KERNEL_ALIGN - 1) / AMDGPU_KERNEL_ALIGN * AMDGPU_KERNEL_ALIGN);
		l->code[i] = l->b.size + PAGE;
		amdgpu_put(&l->b, l->k[i].code, l->k[i].code_size);
	}
	put_code_end(&l->b, (l->b.size + CODE_LINE - 1) / CODE_LINE * CODE_LINE + CODE_TAIL);
	end(l, SECTION_TEXT);
}

static void put_dynamic(struct layout *l)
{
	const uint64_t table[][2] = { { 6, address(l, SECTION_DYNSYM) }, { 11, 24 },
		                      { 5, address(l, SECTION_DYNSTR) }, { 10, l->size[SECTION_DYNSTR] },
		                      { 4, address(l, SECTION_HASH) },   { 0, 0 } };

	begin(l, SECTION_DYNAMIC, 8);
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		amdgpu_put_le(&l->b, table[i][0], 8);
		amdgpu_put_le(&l->b, table[i][1], 8);
	}
	end(l, SECTION_DYNAMIC);
}

/* The read-only part is written with descriptors and addresses left blank, and filled in when the code has its
 * place. */
static void fill_in(struct layout *l)
{
	struct buffer d = { 0 };

	for (size_t i = 0; i < l->n && !l->b.failed; i++) {
		uint64_t here = address(l, SECTION_RODATA) + i * AMDGPU_DESCRIPTOR_SIZE;
		size_t symbol = l->at[SECTION_DYNSYM] + 24 * (1 + 2 * i);
		put_descriptor(&d, l->target, &l->k[i], (int64_t)(l->code[i] - here));
		amdgpu_patch_le(&l->b, symbol + 8, l->code[i], 8);
		amdgpu_patch_le(&l->b, symbol + 24 + 8, here, 8);
	}
	if (d.failed)
		l->b.failed = true;
	else if (!l->b.failed)
		memcpy(l->b.p + l->at[SECTION_RODATA], d.p, d.size);
	free(d.p);
}

/* --- headers */

static void put_program_header(struct buffer *b, uint32_t type, uint32_t flags, uint64_t offset, uint64_t at,
                               uint64_t size, uint64_t memory, uint64_t align)
{
	const uint64_t v[] = { offset, at, at, size, memory, align };

	amdgpu_put_le(b, type, 4);
	amdgpu_put_le(b, flags, 4);
	for (int i = 0; i < 6; i++)
		amdgpu_put_le(b, v[i], 8);
}

static void put_program_headers(struct layout *l, struct buffer *b)
{
	size_t rodata_end = l->at[SECTION_RODATA] + l->size[SECTION_RODATA], dynamic = l->at[SECTION_DYNAMIC];
	uint64_t dynamic_at = address(l, SECTION_DYNAMIC), padded = PAGE - dynamic_at % PAGE;

	if (padded < l->size[SECTION_DYNAMIC])
		padded += PAGE;
	put_program_header(b, 6, 4, 64, 64, HEADERS * 56, HEADERS * 56, 8);
	put_program_header(b, 1, 4, 0, 0, rodata_end, rodata_end, PAGE);
	put_program_header(b, 1, 5, l->at[SECTION_TEXT], address(l, SECTION_TEXT), l->size[SECTION_TEXT],
	                   l->size[SECTION_TEXT], PAGE);
	put_program_header(b, 1, 6, dynamic, dynamic_at, l->size[SECTION_DYNAMIC], padded, PAGE);
	put_program_header(b, 2, 6, dynamic, dynamic_at, l->size[SECTION_DYNAMIC], l->size[SECTION_DYNAMIC], 8);
	put_program_header(b, 0x6474e552, 4, dynamic, dynamic_at, l->size[SECTION_DYNAMIC], padded,
	                   1);                               /* read-only once loaded */
	put_program_header(b, 0x6474e551, 6, 0, 0, 0, 0, 0); /* a stack that is not executable */
	put_program_header(b, 4, 4, l->at[SECTION_NOTE], l->at[SECTION_NOTE], l->size[SECTION_NOTE],
	                   l->size[SECTION_NOTE], 4);
}

static const char section_names[] =
	"\0.note\0.dynsym\0.hash\0.dynstr\0.rodata\0.text\0.dynamic\0.symtab\0.shstrtab\0.strtab";

static void put_section_headers(struct layout *l)
{
	static const struct {
		uint8_t type, flags, link, info, align_log2, entry;
	} s[SECTION_COUNT] = {
		[SECTION_NOTE] = { 7, 2, 0, 0, 2, 0 },
		[SECTION_DYNSYM] = { 11, 2, SECTION_DYNSTR, 1, 3, 24 },
		[SECTION_HASH] = { 5, 2, SECTION_DYNSYM, 0, 2, 4 },
		[SECTION_DYNSTR] = { 3, 2, 0, 0, 0, 0 },
		[SECTION_RODATA] = { 1, 2, 0, 0, 6, 0 },
		[SECTION_TEXT] = { 1, 6, 0, 0, 8, 0 },
		[SECTION_DYNAMIC] = { 6, 3, SECTION_DYNSTR, 0, 3, 16 },
		[SECTION_SYMTAB] = { 2, 0, SECTION_STRTAB, 1, 3, 24 },
		[SECTION_SHSTRTAB] = { 3, 0, 0, 0, 0, 0 },
		[SECTION_STRTAB] = { 3, 0, 0, 0, 0, 0 }
	};
	const char *name = section_names;

	amdgpu_put_zeros(&l->b, l->b.size + 64);
	for (unsigned i = 1; i < SECTION_COUNT; i++) {
		name += strlen(name) + 1;
		const uint64_t v[] = { s[i].flags, address(l, i), l->at[i], l->size[i] };
		amdgpu_put_le(&l->b, (uint64_t)(name - section_names), 4);
		amdgpu_put_le(&l->b, s[i].type, 4);
		for (int j = 0; j < 4; j++)
			amdgpu_put_le(&l->b, v[j], 8);
		amdgpu_put_le(&l->b, s[i].link, 4);
		amdgpu_put_le(&l->b, s[i].info, 4);
		amdgpu_put_le(&l->b, 1u << s[i].align_log2, 8);
		amdgpu_put_le(&l->b, s[i].entry, 8);
	}
}

static void put_elf_header(struct buffer *b, uint32_t flags, uint64_t section_headers)
{
	static const uint8_t ident[16] = {
		0x7f, 'E', 'L', 'F', 2, 1, 1, 64, 3
	}; /* 64 bits, little-endian, AMDGPU HSA, ABI version 3 */

	amdgpu_put(b, ident, 16);
	amdgpu_put_le(b, 3, 2);   /* a shared object */
	amdgpu_put_le(b, 224, 2); /* EM_AMDGPU */
	amdgpu_put_le(b, 1, 4);
	amdgpu_put_le(b, 0, 8);
	amdgpu_put_le(b, 64, 8);
	amdgpu_put_le(b, section_headers, 8);
	amdgpu_put_le(b, flags, 4);
	amdgpu_put_le(b, 64, 2);
	amdgpu_put_le(b, 56, 2);
	amdgpu_put_le(b, HEADERS, 2);
	amdgpu_put_le(b, 64, 2);
	amdgpu_put_le(b, SECTION_COUNT, 2);
	amdgpu_put_le(b, SECTION_SHSTRTAB, 2);
}

static void put_all(struct layout *l)
{
	struct buffer head = { 0 };

	amdgpu_put_zeros(&l->b, 64 + HEADERS * 56);
	begin(l, SECTION_NOTE, 4);
	amdgpu_put_note(&l->b, l->target, l->k, l->n);
	end(l, SECTION_NOTE);
	put_symbols(l, SECTION_DYNSYM);
	put_hash(l);
	put_strings(l, SECTION_DYNSTR);
	begin(l, SECTION_RODATA, AMDGPU_DESCRIPTOR_SIZE);
	amdgpu_put_zeros(&l->b, l->b.size + l->n * AMDGPU_DESCRIPTOR_SIZE);
	end(l, SECTION_RODATA);
	put_code(l);
	put_dynamic(l);
	fill_in(l);
	put_symbols(l, SECTION_SYMTAB);
	begin(l, SECTION_SHSTRTAB, 1);
	amdgpu_put(&l->b, section_names, sizeof section_names);
	end(l, SECTION_SHSTRTAB);
	put_strings(l, SECTION_STRTAB);
	amdgpu_align(&l->b, 8);
	put_elf_header(&head, amdgpu_elf_flags(l->target), l->b.size);
	put_section_headers(l);
	put_program_headers(l, &head);
	if (head.failed)
		l->b.failed = true;
	else if (!l->b.failed)
		memcpy(l->b.p, head.p, head.size);
	free(head.p);
}

bool amdgpu_object_make(struct amdgpu_object *out, const char *target, const struct amdgpu_kernel *kernels, size_t n,
                        struct error *e)
{
	struct layout l = { .target = target, .k = kernels, .n = n };

	*out = (struct amdgpu_object){ 0 };
	if (!check_request(target, kernels, n, e))
		return false;
	l.code = calloc(n, sizeof *l.code);
	l.b.failed = !l.code;
	if (l.code)
		put_all(&l);
	free(l.code);
	if (l.b.failed) {
		free(l.b.p);
		return error_set(e, ERROR_MEMORY, "the code object for %s needs more memory than there is", target);
	}
	*out = (struct amdgpu_object){ l.b.p, l.b.size };
	return true;
}

void amdgpu_object_free(struct amdgpu_object *o)
{
	free(o->bytes);
	*o = (struct amdgpu_object){ 0 };
}

/* sim/object.c - AMDHSA code objects: ELF files to kernels.
 *
 * Owns: parsing and its bounds. Every offset and count of the file is hostile until checked. Loads the PT_LOAD segments
 * into one image; code that needs relocations is refused, since code objects of compilers are position independent.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/wave.h"

static uint64_t get(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

struct file {
	const uint8_t *p;
	size_t n;
	uint64_t phoff, shoff;
	unsigned phnum, shnum;
};

static const struct {
	const char *name;
	uint8_t gen, sub;
	uint32_t mach;
	uint8_t min_sgprs;
} targets[] = {
	{ "gfx1030", 0, 0, 0x36, 0 },  { "gfx1031", 0, 0, 0x37, 0 },  { "gfx1032", 0, 0, 0x38, 0 },
	{ "gfx1033", 0, 0, 0x39, 0 },  { "gfx1034", 0, 0, 0x3e, 0 },  { "gfx1035", 0, 0, 0x3d, 0 },
	{ "gfx1036", 0, 0, 0x45, 0 },  { "gfx1100", 1, 0, 0x41, 16 }, { "gfx1101", 1, 0, 0x46, 0 },
	{ "gfx1102", 1, 0, 0x47, 16 }, { "gfx1103", 1, 0, 0x44, 0 },  { "gfx1150", 1, 5, 0x43, 0 },
	{ "gfx1151", 1, 5, 0x4a, 0 },  { "gfx1200", 2, 0, 0x48, 0 },  { "gfx1201", 2, 0, 0x4e, 0 },
};

struct sim_device *sim_open(const char *target, struct error *err)
{
	unsigned i = 0;
	while (i < sizeof targets / sizeof targets[0] && strcmp(targets[i].name, target))
		i++;
	if (i == sizeof targets / sizeof targets[0]) {
		char q[64];
		error_set(err, ERROR_ARGUMENT,
		          "the simulator has no target %s, expected one of gfx1030 to gfx1032, gfx1100 to gfx1103, "
		          "gfx1150, gfx1151, gfx1200, gfx1201",
		          error_quote(q, sizeof q, target, strlen(target)));
		return NULL;
	}
	struct sim_device *dev = calloc(1, sizeof *dev);
	if (!dev) {
		error_set(err, ERROR_MEMORY, "no memory for a simulated device");
		return NULL;
	}
	strcpy(dev->target, targets[i].name);
	dev->gen = targets[i].gen;
	dev->sub = targets[i].sub;
	dev->mach = targets[i].mach;
	dev->min_sgprs = targets[i].min_sgprs;
	bool avx2 = sim_have_avx2();
	dev->lanes = avx2 ? sim_lanes_avx2 : sim_lanes_base;
	dev->kit = avx2 ? &sim_kit_avx2 : &sim_kit_base;
	sim_tables(dev);
	return dev;
}

void sim_close(struct sim_device *dev)
{
	if (!dev)
		return;
	free(dev->regions);
	free(dev);
}

const char *sim_target(const struct sim_device *dev) { return dev->target; }

static bool open_file(struct file *f, const void *bytes, size_t n, const struct sim_device *dev, struct error *err)
{
	const uint8_t *p = bytes;
	if (n < 64 || memcmp(p, "\177ELF\2\1", 6))
		return error_set(err, ERROR_FORMAT,
		                 "the code object of %zu bytes is not a 64-bit little-endian ELF file", n);
	if (get(p + 18, 2) != 224)
		return error_set(err, ERROR_FORMAT, "the code object's e_machine is %u, expected 224 (AMDGPU)",
		                 (unsigned)get(p + 18, 2));
	if ((get(p + 48, 4) & 0xff) != dev->mach)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "the code object's e_flags name machine 0x%02x, expected 0x%02x (%s)",
		                 (unsigned)get(p + 48, 4) & 0xff, dev->mach, dev->target);
	*f = (struct file){ p, n, get(p + 32, 8), get(p + 40, 8), (unsigned)get(p + 56, 2), (unsigned)get(p + 60, 2) };
	if (f->phoff > n || (uint64_t)f->phnum * 56 > n - f->phoff)
		return error_set(err, ERROR_FORMAT, "the code object's %u program headers lie beyond its end",
		                 f->phnum);
	if (f->shoff > n || (uint64_t)f->shnum * 64 > n - f->shoff)
		return error_set(err, ERROR_FORMAT, "the code object's %u section headers lie beyond its end",
		                 f->shnum);
	return true;
}

static bool load_segments(struct sim_object *o, const struct file *f, struct error *err)
{
	uint64_t end = 0;
	for (unsigned i = 0; i < f->phnum; i++) {
		const uint8_t *h = f->p + f->phoff + i * 56;
		uint64_t off = get(h + 8, 8), va = get(h + 16, 8), fs = get(h + 32, 8), ms = get(h + 40, 8);
		if (get(h, 4) != 1)
			continue;
		if (off > f->n || fs > f->n - off || fs > ms || va > 1u << 26 || ms > 1u << 26)
			return error_set(err, ERROR_FORMAT,
			                 "segment %u of the code object (offset %llu, %llu bytes in the file) lies "
			                 "beyond its end",
			                 i, (unsigned long long)off, (unsigned long long)fs);
		if (va + ms > end)
			end = va + ms;
	}
	if (!end)
		return error_set(err, ERROR_FORMAT, "the code object has no loadable segment");
	o->image_size = end;
	o->image = aligned_alloc(4096, (end + 4096 + 4095) & ~4095ull);
	if (!o->image)
		return error_set(err, ERROR_MEMORY, "no memory for a code object of %llu bytes",
		                 (unsigned long long)end);
	memset(o->image, 0, end + 4096);
	for (unsigned i = 0; i < f->phnum; i++) {
		const uint8_t *h = f->p + f->phoff + i * 56;
		if (get(h, 4) != 1)
			continue;
		memcpy(o->image + get(h + 16, 8), f->p + get(h + 8, 8), get(h + 32, 8));
		if (get(h + 4, 4) & 1) {
			o->text = get(h + 16, 8);
			o->text_size = get(h + 32, 8) & ~3ull;
		}
	}
	if (!o->text_size || (o->text & 3))
		return error_set(err, ERROR_FORMAT, "the code object has no executable segment aligned to 4 bytes");
	return true;
}

static bool make_kernel(struct sim_object *o, const char *name, uint64_t kd, struct error *err)
{
	if (kd > o->image_size || o->image_size - kd < 64 || (kd & 63))
		return error_set(
			err, ERROR_FORMAT,
			"the descriptor of kernel %s lies at 0x%llx, expected a multiple of 64 inside the image", name,
			(unsigned long long)kd);
	const uint8_t *d = o->image + kd;
	uint64_t entry = kd + get(d + 16, 8);
	struct sim_kernel k = {
		.name = name,
		.lds_size = (uint32_t)get(d, 4),
		.scratch_size = (uint32_t)get(d + 4, 4),
		.kernarg_size = (uint32_t)get(d + 8, 4),
		.entry = (uint64_t)(uintptr_t)o->image + entry,
		.object = o,
		.rsrc3 = (uint32_t)get(d + 44, 4),
		.rsrc1 = (uint32_t)get(d + 48, 4),
		.rsrc2 = (uint32_t)get(d + 52, 4),
		.properties = (uint32_t)get(d + 56, 2)
	};
	k.vgprs = ((k.rsrc1 & 63) + 1) * 8;
	if (k.vgprs > 256)
		k.vgprs = 256;
	if (entry < o->text || entry - o->text >= o->text_size || (entry & 3))
		return error_set(err, ERROR_FORMAT, "kernel %s begins at 0x%llx, outside the executable segment", name,
		                 (unsigned long long)entry);
	if (!(k.properties >> 10 & 1))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "kernel %s is for waves of 64 lanes, and the simulator runs 32", name);
	unsigned sgprs = (k.rsrc2 >> 1 & 31) + (unsigned)__builtin_popcount(k.rsrc2 >> 7 & 15);
	if (sgprs < o->dev->min_sgprs)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "kernel %s starts with %u user and system registers, and %s needs at least %u", name,
		                 sgprs, o->dev->target, o->dev->min_sgprs);
	if (k.lds_size > 65536)
		return error_set(err, ERROR_FORMAT, "kernel %s has %u bytes of LDS, expected at most 65536", name,
		                 k.lds_size);
	if (k.scratch_size > 1u << 20)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "kernel %s has %u bytes of scratch for each lane, expected at most 1048576", name,
		                 k.scratch_size);
	o->kernels[o->n_kernels++] = k;
	return true;
}

/* Kernels are the symbols NAME.kd of the dynamic or static symbol table. */
static bool find_kernels(struct sim_object *o, const struct file *f, struct error *err)
{
	for (unsigned i = 0; i < f->shnum; i++) {
		const uint8_t *h = f->p + f->shoff + i * 64;
		uint64_t type = get(h + 4, 4), off = get(h + 24, 8), size = get(h + 32, 8), link = get(h + 40, 4);
		if (type == 4 && size)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "the code object has relocations (section %u), expected none", i);
		if (type != 11)
			continue;
		if (link >= f->shnum || off > f->n || size > f->n - off)
			return error_set(err, ERROR_FORMAT, "symbol table %u of the code object lies beyond its end",
			                 i);
		const uint8_t *s = f->p + f->shoff + link * 64;
		uint64_t soff = get(s + 24, 8), ssize = get(s + 32, 8);
		if (soff > f->n || ssize > f->n - soff || !ssize || f->p[soff + ssize - 1])
			return error_set(err, ERROR_FORMAT, "string table %llu of the code object lies beyond its end",
			                 (unsigned long long)link);
		o->names = malloc(ssize);
		o->kernels = calloc(size / 24 + 1, sizeof *o->kernels);
		if (!o->names || !o->kernels)
			return error_set(err, ERROR_MEMORY, "no memory for %llu symbols",
			                 (unsigned long long)(size / 24));
		memcpy(o->names, f->p + soff, ssize);
		for (uint64_t at = 0; at + 24 <= size; at += 24) {
			uint64_t name = get(f->p + off + at, 4), value = get(f->p + off + at + 8, 8);
			if (name >= ssize)
				return error_set(err, ERROR_FORMAT,
				                 "a symbol's name at %llu lies beyond its string table of %llu bytes",
				                 (unsigned long long)name, (unsigned long long)ssize);
			size_t n = strlen(o->names + name);
			if (n < 4 || strcmp(o->names + name + n - 3, ".kd"))
				continue;
			o->names[name + n - 3] = 0;
			if (!make_kernel(o, o->names + name, value, err))
				return false;
		}
		break;
	}
	return o->n_kernels > 0 ||
	       error_set(err, ERROR_FORMAT,
	                 "the code object has no kernel: no symbol of its dynamic symbol table ends in .kd");
}

static uint64_t hash(const uint8_t *p, size_t n) /* FNV-1a */
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	return h;
}

/* Once, however often it is loaded. Losing it does not matter to its user. */
static void keep_copy(const struct sim_device *dev, const void *bytes, size_t size)
{
	const char *dir = getenv("JITRUN_SIM_KEEP");
	char path[1024];

	if (!dir || !*dir)
		return;
	snprintf(path, sizeof path, "%s/%s-%016" PRIx64 ".co", dir, sim_target(dev), hash(bytes, size));
	FILE *f = fopen(path, "wbx"); /* there already: the same bytes */
	if (!f)
		return;
	fwrite(bytes, 1, size, f);
	fclose(f);
}

/* For the decoded instructions, one a word. */
static bool make_room(struct sim_object *o, struct error *err)
{
	size_t words = o->text_size / 4;

	o->code = calloc(words + 1, sizeof *o->code);
	o->halves = o->dev->gen ? calloc(words + 1, sizeof *o->halves) : o->code;
	return (o->code && o->halves) || error_set(err, ERROR_MEMORY, "no memory for %zu decoded words", words);
}

struct sim_object *sim_load(struct sim_device *dev, const void *bytes, size_t size, struct error *err)
{
	struct file f = { .p = NULL };
	struct sim_object *o = calloc(1, sizeof *o);
	if (!o) {
		error_set(err, ERROR_MEMORY, "no memory for a code object");
		return NULL;
	}
	o->dev = dev;
	if (!open_file(&f, bytes, size, dev, err) || !load_segments(o, &f, err) || !find_kernels(o, &f, err)) {
		sim_unload(o);
		return NULL;
	}
	if (!make_room(o, err) || !sim_map(dev, o->image, o->image_size, "the code object", false, err)) {
		sim_unload(o);
		return NULL;
	}
	keep_copy(dev, bytes, size);
	return o;
}

struct sim_object *sim_adopt(struct sim_device *dev, void *base, size_t size, const void *descriptor, struct error *err)
{
	struct sim_object *o = calloc(1, sizeof *o);
	uint64_t at = (uint64_t)((uintptr_t)descriptor - (uintptr_t)base);
	char name[32];

	if (!o) {
		error_set(err, ERROR_MEMORY, "no memory for a code object");
		return NULL;
	}
	*o = (struct sim_object){
		.dev = dev, .image = base, .image_size = size, .text_size = size & ~3ull, .borrowed = true
	};
	snprintf(name, sizeof name, "at 0x%llx", (unsigned long long)(uintptr_t)descriptor);
	o->names = strdup(name);
	o->kernels = calloc(1, sizeof *o->kernels);
	if (!o->names || !o->kernels)
		error_set(err, ERROR_MEMORY, "no memory for a kernel");
	else if (make_kernel(o, o->names, at, err) && make_room(o, err))
		return o;
	sim_unload(o);
	return NULL;
}

void sim_unload(struct sim_object *o)
{
	if (!o)
		return;
	if (o->image && !o->borrowed) {
		sim_unmap(o->dev, o->image);
		free(o->image);
	}
	if (o->halves != o->code)
		free(o->halves);
	free(o->code);
	free(o->kernels);
	free(o->names);
	free(o);
}

const struct sim_kernel *sim_find(const struct sim_object *o, const char *kernel)
{
	for (unsigned i = 0; i < o->n_kernels; i++)
		if (!strcmp(o->kernels[i].name, kernel))
			return &o->kernels[i];
	return NULL;
}

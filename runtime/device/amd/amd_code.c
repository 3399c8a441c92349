/* runtime/device/amd/amd_code.c - code objects in a card's memory. See amd.h.
 *
 * They are of our own making, so one that breaks the form is our mistake or damaged memory: it is refused all the same,
 * because a card that runs it hangs. Behind the code the card may prefetch: the image is that much longer.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/amd/amd.h"

enum { PREFETCH = 4096, MAX = 1 << 30 };
enum { ELF_LOAD = 1, ELF_DYNSYM = 11 };

struct elf {
	const uint8_t *p;
	size_t n;
	uint64_t segments, sections; /* offsets of their headers */
	unsigned n_segments, n_sections;
};

static uint64_t get(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

static bool broken(struct error *err, const char *what)
{
	return error_set(err, ERROR_FORMAT, "a code object is not as it was made: its %s lie beyond its end", what);
}

static bool open_elf(struct elf *f, const uint8_t *p, size_t n, struct error *err)
{
	if (n < 64 || memcmp(p, "\177ELF\2\1", 6) != 0)
		return broken(err, "first bytes");
	*f = (struct elf){ p, n, get(p + 32, 8), get(p + 40, 8), (unsigned)get(p + 56, 2), (unsigned)get(p + 60, 2) };
	if (f->segments > n || f->n_segments * 56ull > n - f->segments)
		return broken(err, "segments");
	return (f->sections <= n && f->n_sections * 64ull <= n - f->sections) || broken(err, "sections");
}

struct segment {
	uint64_t offset, address, in_file, in_memory;
};

static bool segment_at(const struct elf *f, unsigned i, struct segment *s)
{
	const uint8_t *h = f->p + f->segments + i * 56;

	*s = (struct segment){ get(h + 8, 8), get(h + 16, 8), get(h + 32, 8), get(h + 40, 8) };
	return get(h, 4) == ELF_LOAD;
}

static bool measure(const struct elf *f, uint64_t *size, struct error *err)
{
	struct segment s;

	*size = 0;
	for (unsigned i = 0; i < f->n_segments; i++) {
		if (!segment_at(f, i, &s))
			continue;
		if (s.offset > f->n || s.in_file > f->n - s.offset || s.in_file > s.in_memory || s.address > MAX ||
		    s.in_memory > MAX)
			return broken(err, "segments");
		*size = s.address + s.in_memory > *size ? s.address + s.in_memory : *size;
	}
	return *size || broken(err, "segments");
}

/* The code that copies cannot carry itself into the card's memory: it runs from the host's. */
static bool copy_code(struct amd *d, struct amd_code *out, const uint8_t *image, size_t bytes, struct error *err)
{
	if (d->copy_bytes.descriptor)
		return amd_vram(d, &out->buffer, bytes, KFD_MEMORY_EXECUTABLE, "code", err) &&
		       amd_write(d, out->buffer.address, image, bytes, err);
	return amd_host_memory(d, &out->buffer, bytes, KFD_MEMORY_EXECUTABLE, "code that copies", err) &&
	       memcpy(out->buffer.address, image, bytes);
}

bool amd_code_load(struct amd *d, struct amd_code *out, const uint8_t *elf, size_t size, struct error *err)
{
	struct elf f;
	struct segment s;
	uint64_t bytes;

	if (!open_elf(&f, elf, size, err) || !measure(&f, &bytes, err))
		return false;
	uint8_t *image = calloc(1, bytes + PREFETCH);
	if (!image)
		return error_set(err, ERROR_MEMORY, "no memory for a code object of %llu bytes",
		                 (unsigned long long)bytes);
	for (unsigned i = 0; i < f.n_segments; i++)
		if (segment_at(&f, i, &s))
			memcpy(image + s.address, elf + s.offset, s.in_file);
	bool ok = copy_code(d, out, image, bytes + PREFETCH, err);
	out->buffer.once = true;
	free(image);
	return ok;
}

void amd_code_unload(struct amd *d, struct amd_code *c) { amd_free(d, &c->buffer); }

/* The address in the image of the symbol NAME.kd. */
static bool find_descriptor(const struct elf *f, const char *kernel, uint64_t *address)
{
	size_t length = strlen(kernel);

	for (unsigned i = 0; i < f->n_sections; i++) {
		const uint8_t *h = f->p + f->sections + i * 64;
		uint64_t at = get(h + 24, 8), bytes = get(h + 32, 8), link = get(h + 40, 4);
		if (get(h + 4, 4) != ELF_DYNSYM || link >= f->n_sections || at > f->n || bytes > f->n - at)
			continue;
		const uint8_t *n = f->p + f->sections + link * 64;
		uint64_t names = get(n + 24, 8), names_bytes = get(n + 32, 8);
		if (names > f->n || names_bytes > f->n - names)
			continue;
		for (uint64_t k = 0; k + 24 <= bytes; k += 24) {
			uint64_t name = get(f->p + at + k, 4);
			const char *text = (const char *)f->p + names + name;
			if (name >= names_bytes || names_bytes - name < length + 4)
				continue;
			*address = get(f->p + at + k + 8, 8);
			if (memcmp(text, kernel, length) == 0 && memcmp(text + length, ".kd", 4) == 0)
				return true;
		}
	}
	return false;
}

static const uint8_t *bytes_at(const struct elf *f, uint64_t address, uint64_t n)
{
	struct segment s;

	for (unsigned i = 0; i < f->n_segments; i++)
		if (segment_at(f, i, &s) && address >= s.address && address - s.address <= s.in_file &&
		    n <= s.in_file - (address - s.address))
			return f->p + s.offset + (address - s.address);
	return NULL;
}

bool amd_code_find(const struct amd_code *c, const uint8_t *elf, size_t size, const char *kernel,
                   struct amd_kernel *out, struct error *err)
{
	struct elf f;
	uint64_t address, bytes;

	if (!open_elf(&f, elf, size, err) || !measure(&f, &bytes, err))
		return false;
	const uint8_t *d = find_descriptor(&f, kernel, &address) && !(address & 63) ? bytes_at(&f, address, 64) : NULL;
	if (!d)
		return error_set(err, ERROR_FORMAT, "a code object has no kernel \"%s\"", kernel);
	/* compute_pgm_rsrc1 counts vector registers in blocks of 8, where waves have 32 lanes */
	*out = (struct amd_kernel){ .descriptor = (uint64_t)(uintptr_t)c->buffer.address + address,
		                    .lds = (uint32_t)get(d, 4),
		                    .kernarg_bytes = (uint32_t)get(d + 8, 4),
		                    .vgprs = ((uint32_t)(get(d + 48, 4) & 63) + 1) * 8 };
	return true;
}

/* tests/fake_kfd/memory.c - buffers of the cards: allocated, mapped for the card, mapped for the program.
 *
 * All of a card's memory is a sparse file. A buffer lies at its address as soon as the card has mapped it; what the
 * program did not map is there without access, so only the card reaches it, and only while it works.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/fake_kfd/fake.h"

/* What the driver and the firmware keep for themselves. */
#define RESERVED (64ull << 20)
#define OFFSETS (1ull << 32)
enum { POISONED_MAX = 16 << 20, FLUSHED_MAX = 4 << 20 };
/* Memory of the program's, and registers: not in the card's file. */
enum { REGISTERS = MEM_DOORBELL | MEM_MMIO_REMAP, ELSEWHERE = MEM_USERPTR | REGISTERS };

/* The list of buffers, for those who ask from anywhere; what changes it holds the fake's lock too. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

static void *raw_mmap(uint64_t at, size_t bytes, int protection, int flags, int fd, uint64_t offset)
{
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

uint64_t memory_reserve(struct card *c, uint64_t bytes)
{
	uint64_t at = c->memory_used;

	if (c->memory < 0) {
		int fd = memfd_create("fake card", MFD_CLOEXEC);
		c->memory = fcntl(fd, F_DUPFD_CLOEXEC, 600);
		close(fd);
	}
	c->memory_used += (bytes + PAGE - 1) / PAGE * PAGE;
	if (ftruncate(c->memory, (off_t)c->memory_used) != 0)
		object_to("the fake has no room for %" PRIu64 " bytes", bytes);
	return at;
}

/* ---- accounts */

static bool counts_as_vram(const struct card *c, uint32_t flags) { return (flags & MEM_VRAM) && !c->apu; }

static uint64_t vram_limit(const struct card *c)
{
	uint64_t all = c->apu ? c->gtt : c->vram;

	return all > RESERVED + c->others ? all - RESERVED - c->others : 0;
}

uint64_t memory_available(const struct card *c)
{
	uint64_t used = account_used(c), limit = vram_limit(c);

	return used < limit ? (limit - used) >> 21 << 21 : 0;
}

/* ---- allocating */

static struct bo *overlap(const struct card *c, uint64_t address, uint64_t size)
{
	for (struct bo *b = c->bos; b; b = b->next)
		if (address < b->address + b->size && b->address < address + size)
			return b;
	return NULL;
}

static int refuse_alloc(const struct card *c, const struct io_alloc *a)
{
	uint32_t kind = a->flags & MEM_KINDS;

	if (!a->size) {
		object_to("ALLOC_MEMORY: the size is 0");
		return EINVAL;
	}
	if (!kind || (kind & (kind - 1))) {
		object_to("ALLOC_MEMORY: flags 0x%08x name %s of memory", a->flags, kind ? "several kinds" : "no kind");
		return EINVAL;
	}
	if (a->flags & ~MEM_KNOWN)
		object_to("ALLOC_MEMORY: flags 0x%08x have bits that mean nothing", a->flags);
	if ((a->flags & MEM_VRAM) && (a->flags & MEM_PUBLIC) && !c->apu && c->bar < c->vram) {
		object_to("ALLOC_MEMORY: VRAM that the host can map is not to be had: the BAR is small");
		return EINVAL;
	}
	if ((a->flags & MEM_MMIO_REMAP) && a->size != PAGE) {
		object_to("ALLOC_MEMORY: the remapped registers have one page, not %" PRIu64 " bytes", a->size);
		return EINVAL;
	}
	if ((a->flags & MEM_DOORBELL) && a->size != DOORBELLS) {
		object_to("ALLOC_MEMORY: a process's doorbells have %u bytes, not %" PRIu64, DOORBELLS, a->size);
		return EINVAL;
	}
	if ((a->flags & MEM_USERPTR) && (!a->mmap_offset || (a->mmap_offset & (PAGE - 1)))) {
		object_to("ALLOC_MEMORY: host memory at 0x%" PRIx64 ", expected a page's address", a->mmap_offset);
		return EINVAL;
	}
	if ((a->flags & MEM_USERPTR) && a->mmap_offset != a->address) {
		object_to("ALLOC_MEMORY: host memory that the card sees at another address, which the fake cannot do");
		return EINVAL;
	}
	return 0;
}

int memory_alloc(struct io_alloc *a)
{
	struct card *c = card_by_id(a->gpu_id);

	if (!c || !c->acquired) {
		object_to(c ? "ALLOC_MEMORY: before ACQUIRE_VM" : "ALLOC_MEMORY: there is no card %u", a->gpu_id);
		return c ? ENODEV : EINVAL;
	}
	int error = refuse_alloc(c, a);
	if (error)
		return error;
	uint64_t size = (a->size + PAGE - 1) / PAGE * PAGE;
	if ((counts_as_vram(c, a->flags) || (c->apu && (a->flags & (MEM_VRAM | MEM_GTT)))) &&
	    !account_take(c, size, vram_limit(c)))
		return ENOMEM;
	struct bo *b = calloc(1, sizeof *b);
	if (!b)
		return ENOMEM;
	*b = (struct bo){ .next = c->bos, .address = a->address, .size = size, .flags = a->flags };
	b->handle = (uint64_t)c->gpu_id << 32 | c->next_handle++;
	if (!(a->flags & MEM_USERPTR)) {
		uint64_t at = memory_reserve(c, size);
		a->mmap_offset = a->flags & MEM_MMIO_REMAP ? MMAP_REMAP | MMAP_GPU(c->gpu_id) : at + OFFSETS;
		b->mmap_offset = at + OFFSETS;
		if ((a->flags & MEM_VRAM) && size <= POISONED_MAX) { /* the driver clears none of it */
			static const uint64_t poison[PAGE / 8] = { [0 ... PAGE / 8 - 1] = 0x7fa57fa57fa57fa5 };
			for (uint64_t i = 0; i < size; i += PAGE)
				if (pwrite(c->memory, poison, PAGE, (off_t)(at + i)) != PAGE)
					break;
		}
	}
	pthread_mutex_lock(&list_lock);
	c->bos = b;
	pthread_mutex_unlock(&list_lock);
	a->handle = b->handle;
	return 0;
}

struct bo *memory_by_handle(struct card *c, uint64_t handle)
{
	struct bo *b = c->bos;

	while (b && b->handle != handle)
		b = b->next;
	return b;
}

/* ---- where a buffer lies in the process */

static bool reserved_only(uint64_t address, uint64_t size)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], mode[8];
	uint64_t from, to;
	bool ok = f != NULL;

	while (ok && fgets(line, sizeof line, f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &from, &to, mode) == 3 && from < address + size &&
		    address < to)
			ok = !strncmp(mode, "---", 3);
	if (f)
		fclose(f);
	return ok;
}

static bool is_in_memory(struct card *c, struct bo *b)
{
	uint64_t at = b->mmap_offset - OFFSETS;
	int flags = MAP_SHARED | MAP_NORESERVE;

	if (b->placed || (b->flags & ELSEWHERE))
		return true;
	void *p = raw_mmap(b->address, b->size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, c->memory, at);
	if (p == MAP_FAILED && reserved_only(b->address, b->size))
		p = raw_mmap(b->address, b->size, PROT_NONE, flags | MAP_FIXED, c->memory, at);
	b->placed = p != MAP_FAILED;
	b->protection = PROT_NONE;
	if (!b->placed)
		object_to("the card is to see a buffer at 0x%" PRIx64 ", where the process has other memory: the fake "
		          "cannot do that",
		          b->address);
	return b->placed;
}

void memory_unmapped(void *at, size_t bytes)
{
	uint64_t from = (uint64_t)(uintptr_t)at;

	pthread_mutex_lock(&list_lock);
	for (unsigned i = 0; i < fake.n_cards; i++)
		for (struct bo *b = fake.card[i].bos; b; b = b->next)
			if (b->placed && from < b->address + b->size && b->address < from + bytes)
				b->placed = false;
	pthread_mutex_unlock(&list_lock);
}

/* What the host writes into VRAM through the BAR may wait on its way until a write to a register flushes it. Who wrote
 * cannot be seen, so what is there is compared with what the last packet left. */
static bool looked_at(const struct bo *b)
{
	return (b->flags & MEM_VRAM) && (b->flags & MEM_PUBLIC) && b->mapped && b->placed && b->size <= FLUSHED_MAX;
}

static uint64_t sum_of(const struct bo *b)
{
	const uint64_t *p = (const uint64_t *)(uintptr_t)b->address;
	uint64_t s = b->size;

	for (uint64_t i = 0; i < b->size / 8; i++)
		s = (s ^ p[i]) * 0x9e3779b97f4a7c15;
	return s;
}

void memory_look_for_flush(struct card *c, bool before)
{
	_Atomic uint32_t *flush = (_Atomic uint32_t *)(void *)(c->doorbells + DOORBELLS);
	bool flushed = atomic_exchange(flush, 0) != 0;

	for (struct bo *b = c->bos; b; b = b->next) {
		if (!looked_at(b))
			continue;
		uint64_t sum = sum_of(b);
		if (before && sum != b->left && !flushed && !c->apu)
			object_to("the host wrote VRAM at 0x%" PRIx64 " (%" PRIu64 " bytes), and nothing flushed it on "
			          "its way to the card",
			          b->address, b->size);
		b->left = sum;
	}
}

void memory_reach(struct card *c, bool reach)
{
	c->reached = reach;
	for (struct bo *b = c->bos; b; b = b->next) {
		if (!b->mapped || (b->flags & ELSEWHERE) || !is_in_memory(c, b))
			continue;
		if (b->protection != (PROT_READ | PROT_WRITE))
			syscall(SYS_mprotect, b->address, b->size, reach ? PROT_READ | PROT_WRITE : b->protection);
	}
}

int memory_mmap(struct card *c, void *at, size_t bytes, int protection, int flags, uint64_t offset, void **out)
{
	struct bo *b = c->bos;

	while (b && (b->mmap_offset != offset || (b->flags & ELSEWHERE)))
		b = b->next;
	if (!b || bytes > b->size) {
		object_to("mmap: %zu bytes at offset 0x%" PRIx64 " of a render node, where %s", bytes, offset,
		          b ? "a buffer is smaller" : "no buffer begins");
		return EINVAL;
	}
	if ((b->flags & MEM_VRAM) && !c->apu && !(b->flags & MEM_PUBLIC) && protection != PROT_NONE) {
		object_to("mmap: VRAM that was not allocated for the host to map");
		return EPERM;
	}
	if ((flags & MAP_TYPE) == MAP_PRIVATE && protection == PROT_NONE) /* as debuggers are shown it */
		flags = (flags & ~MAP_TYPE) | MAP_SHARED;
	if ((flags & MAP_TYPE) == MAP_PRIVATE) {
		object_to("mmap: a buffer mapped MAP_PRIVATE");
		return EINVAL;
	}
	void *p = raw_mmap((uintptr_t)at, bytes, protection, flags, c->memory, offset - OFFSETS);
	if (p == MAP_FAILED)
		return errno;
	if ((uintptr_t)p == b->address && bytes == b->size) {
		b->placed = true;
		b->protection = protection;
	}
	*out = p;
	return 0;
}

/* ---- mapping for the card */

static int refuse_map(const struct io_map *a, const char *name, struct card **c, struct bo **b)
{
	const uint32_t *ids = (const uint32_t *)(uintptr_t)a->devices;

	*c = card_by_id((uint32_t)(a->handle >> 32));
	if (!a->n || a->done > a->n || !*c) {
		object_to("%s: %u cards of which %u are done, handle 0x%" PRIx64, name, a->n, a->done, a->handle);
		return EINVAL;
	}
	if (!ids)
		return EFAULT;
	*b = memory_by_handle(*c, a->handle);
	if (!*b) {
		object_to("%s: there is no buffer 0x%" PRIx64, name, a->handle);
		return ENOMEM;
	}
	const struct card *by = a->n == 1 ? card_by_id(ids[0]) : NULL;
	if (by == *c || (by && by->acquired && ((*b)->flags & MEM_GTT)))
		return 0;
	object_to("%s: the buffer is card %u's, and it is to be mapped by card %u", name, (*c)->gpu_id, ids[0]);
	return EINVAL;
}

/* ---- other cards: the host's memory is theirs to map as well, once its own card has */

static struct card *other_card(const struct io_map *a, const struct card *c)
{
	struct card *by = card_by_id(*(const uint32_t *)(uintptr_t)a->devices);

	return by == c ? NULL : by;
}

static unsigned bit_of(const struct card *c) { return 1u << (c - fake.card); }

static int map_to_other(struct io_map *a, struct bo *b, struct card *by)
{
	struct error err = { .code = ERROR_NONE };

	if (!b->mapped) {
		object_to("MAP_MEMORY: another card maps the buffer at 0x%" PRIx64 " before its own does", b->address);
		return EINVAL;
	}
	if (!(b->others & bit_of(by)) && !sim_map(by->sim, (void *)(uintptr_t)b->address, b->size, "another card's",
	                                          (b->flags & MEM_WRITABLE) != 0, &err)) {
		object_to("MAP_MEMORY: %s", err.text);
		return EINVAL;
	}
	b->others |= bit_of(by);
	a->done = a->n;
	return 0;
}

static int unmap_from_other(struct io_map *a, struct bo *b, struct card *by)
{
	if (b->others & bit_of(by))
		sim_unmap(by->sim, (void *)(uintptr_t)b->address);
	b->others &= ~bit_of(by);
	a->done = a->n;
	return 0;
}

int memory_map(struct io_map *a)
{
	struct card *c;
	struct bo *b;
	int error = refuse_map(a, "MAP_MEMORY", &c, &b);
	char name[48];
	struct error err = { .code = ERROR_NONE };

	if (error)
		return error;
	if (other_card(a, c))
		return map_to_other(a, b, other_card(a, c));
	if (!b->address || (b->address & (PAGE - 1)) || b->address + b->size > 1ull << 47) {
		object_to("MAP_MEMORY: the buffer's address is 0x%" PRIx64, b->address);
		return EINVAL;
	}
	if (b->mapped) { /* once more is nothing new */
		a->done = a->n;
		return 0;
	}
	for (const struct bo *o = c->bos; o; o = o->next)
		if (o != b && o->mapped && b->address < o->address + o->size && o->address < b->address + b->size) {
			object_to("MAP_MEMORY: at 0x%" PRIx64 " another buffer is mapped", b->address);
			return EINVAL;
		}
	if (!is_in_memory(c, b))
		return EINVAL;
	snprintf(name, sizeof name, "the buffer 0x%llx", (unsigned long long)b->handle);
	if (!(b->flags & REGISTERS) &&
	    !sim_map(c->sim, (void *)(uintptr_t)b->address, b->size, name, (b->flags & MEM_WRITABLE) != 0, &err)) {
		object_to("MAP_MEMORY: %s", err.text);
		return EINVAL;
	}
	b->mapped = true;
	b->left = looked_at(b) && (b->protection & PROT_READ) ? sum_of(b) : 0;
	a->done = a->n;
	return 0;
}

static void forget_code(struct bo *b)
{
	if (b->code)
		sim_unload(b->code);
	b->code = NULL;
}

int memory_unmap(struct io_map *a)
{
	struct card *c;
	struct bo *b;
	int error = refuse_map(a, "UNMAP_MEMORY", &c, &b);

	if (error)
		return error;
	if (other_card(a, c))
		return unmap_from_other(a, b, other_card(a, c));
	if (b->queues) {
		object_to("UNMAP_MEMORY: a queue uses the buffer at 0x%" PRIx64, b->address);
		return EBUSY;
	}
	if (b->mapped && !(b->flags & REGISTERS)) {
		forget_code(b);
		sim_unmap(c->sim, (void *)(uintptr_t)b->address);
	}
	b->mapped = false;
	a->done = a->n;
	return 0;
}

int memory_free(const struct io_free *a)
{
	struct card *c = card_by_id((uint32_t)(a->handle >> 32));
	struct bo **at = c ? &c->bos : NULL, *b;

	while (at && *at && (*at)->handle != a->handle)
		at = &(*at)->next;
	if (!at || !*at) {
		object_to("FREE_MEMORY: there is no buffer 0x%" PRIx64, a->handle);
		return EINVAL;
	}
	b = *at;
	if (event_page_has(b)) {
		object_to("FREE_MEMORY: the page of events is the process's until it ends");
		return EPERM;
	}
	if (b->mapped || b->others) {
		object_to("FREE_MEMORY: the buffer at 0x%" PRIx64 " is still mapped", b->address);
		return EBUSY;
	}
	pthread_mutex_lock(&list_lock);
	*at = b->next;
	pthread_mutex_unlock(&list_lock);
	if (b->placed && b->protection == PROT_NONE) /* the addresses stay reserved, as they were */
		raw_mmap(b->address, b->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		         0);
	if (!(b->flags & MEM_USERPTR))
		fallocate(c->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(b->mmap_offset - OFFSETS),
		          (off_t)b->size);
	if (counts_as_vram(c, b->flags) || (c->apu && (b->flags & (MEM_VRAM | MEM_GTT))))
		account_give(c, b->size);
	free(b);
	return 0;
}

struct bo *memory_at(struct card *c, uint64_t address, uint64_t bytes)
{
	struct bo *b = overlap(c, address, 1);

	while (b && !(b->mapped && address >= b->address && address - b->address < b->size))
		b = b->next;
	for (unsigned i = 0; !b && i < fake.n_cards; i++)
		for (b = fake.card[i].bos; b && !((b->others & bit_of(c)) && address - b->address < b->size);)
			b = b->next;
	return b && bytes <= b->size - (address - b->address) ? b : NULL;
}

void memory_left(void)
{
	for (unsigned i = 0; i < fake.n_cards; i++) {
		uint64_t bytes = 0;
		unsigned n = 0;
		for (const struct bo *b = fake.card[i].bos; b; b = b->next) {
			if (event_page_has(b)) /* which stays the process's */
				continue;
			bytes += b->size;
			n++;
		}
		if (n && !fake.card[i].gone)
			object_to("the program ended and left %u buffers of %" PRIu64 " bytes", n, bytes);
	}
}

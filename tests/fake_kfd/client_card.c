/* tests/fake_kfd/client_card.c - the client's card, its memory and the code that it loads. */
#include "tests/fake_kfd/client_parts.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum mistake mistake;
int kfd, drm;
uint32_t gpu_id, version;
uint64_t units, descriptor, entry;
struct buffer code;
static int other_drm = -1;
static uint32_t gpus[8], n_gpus;
static uint64_t render;

_Noreturn void refused(const char *what)
{
	printf("%d %s\n", errno, what);
	fflush(stdout);
	_exit(REFUSED);
}

void call(unsigned number, unsigned direction, void *argument, size_t size)
{
	if (ioctl(kfd, _IOC(direction, 'K', number, size), argument) != 0)
		refused("ioctl");
}
/* ---- the card */

static uint64_t property(unsigned node, const char *name)
{
	char path[128], line[128], word[64];
	unsigned long long n = 0;

	snprintf(path, sizeof path, "/sys/devices/virtual/kfd/kfd/topology/nodes/%u/%s", node,
	         name ? "properties" : "gpu_id");
	FILE *f = fopen(path, "r");
	if (!f)
		return 0;
	while (fgets(line, sizeof line, f))
		if (name ? sscanf(line, "%63s %llu", word, &n) == 2 && !strcmp(word, name)
		         : sscanf(line, "%llu", &n) == 1)
			break;
		else
			n = 0;
	fclose(f);
	return n;
}

static void find_card(void)
{
	for (unsigned node = 1; n_gpus < 8 && property(node, NULL); node++) {
		gpus[n_gpus++] = (uint32_t)property(node, NULL);
		gpu_id = gpus[n_gpus - 1];
		version = (uint32_t)property(node, "gfx_target_version");
		units = property(node, "simd_count") / property(node, "simd_per_cu");
		if (render) {
			char path[64];
			snprintf(path, sizeof path, "/dev/dri/renderD%u", (unsigned)render);
			other_drm = open(path, O_RDWR | O_CLOEXEC);
		}
		render = property(node, "drm_render_minor");
	}
	if (!n_gpus)
		exit(NOT_MADE);
}

static void acquire(void)
{
	struct io_acquire_vm a = { (uint32_t)drm, gpu_id };

	if (IS(NO_VM))
		return;
	if (IS(VM_OF_NO_RENDER_NODE))
		a.drm_fd = (uint32_t)kfd;
	if (IS(VM_OF_OTHER_CARD))
		a.drm_fd = (uint32_t)other_drm;
	CALL_IN(NR_ACQUIRE_VM, &a);
	if (IS(VM_TWICE)) {
		char path[64];
		snprintf(path, sizeof path, "/dev/dri/renderD%u", (unsigned)render);
		a.drm_fd = (uint32_t)open(path, O_RDWR | O_CLOEXEC);
		CALL_IN(NR_ACQUIRE_VM, &a);
	}
}

void open_card(void)
{
	char path[64];
	struct io_version v;

	kfd = open("/dev/kfd", (IS(KFD_READ_ONLY) ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	find_card();
	snprintf(path, sizeof path, "/dev/dri/renderD%u", (unsigned)render);
	drm = open(path, O_RDWR | O_CLOEXEC);
	if (kfd < 0 || drm < 0)
		refused("open");
	call(NR_GET_VERSION, _IOC_READ, &v, sizeof v);
	if (v.major != 1)
		exit(WRONG);
	if (IS(FORKED)) {
		pid_t child = fork();
		int status = 0;
		if (!child)
			acquire();
		waitpid(child, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	if (IS(CALL_OF_LATER_VERSION))
		CALL_BOTH(NR_RUNTIME_ENABLE, &(struct io_runtime){ .mode = 1 });
	acquire();
}

/* ---- memory */

void map(const struct buffer *b)
{
	uint32_t ids[1] = { IS(MAP_OTHER_CARD) ? gpus[0] : gpu_id };
	struct io_map a = { .handle = b->handle, .devices = (uintptr_t)ids, .n = IS(MAP_NO_CARDS) ? 0 : 1 };

	if (IS(MAP_NO_HANDLE))
		a.handle += 1000;
	CALL_BOTH(NR_MAP_MEMORY, &a);
	if (a.done != 1)
		exit(WRONG);
}

void unmap(const struct buffer *b)
{
	uint32_t ids[1] = { gpu_id };
	struct io_map a = { .handle = b->handle, .devices = (uintptr_t)ids, .n = 1 };

	CALL_BOTH(NR_UNMAP_MEMORY, &a);
}

static bool reached(const struct buffer *b) { return (b->flags & MEM_GTT) || (b->flags & MEM_PUBLIC); }

void map_for_host(const struct buffer *b)
{
	uint64_t size = b->size + (IS(HOST_MAPS_TOO_MUCH) ? 4096 : 0),
		 offset = b->offset + (IS(HOST_MAPS_ELSEWHERE) ? 1 << 30 : 0);
	void *p = mmap((void *)(uintptr_t)b->address, size, PROT_READ | PROT_WRITE,
	               (IS(HOST_MAPS_PRIVATELY) ? MAP_PRIVATE : MAP_SHARED) | MAP_FIXED, drm, (off_t)offset);

	if (p == MAP_FAILED)
		refused("mmap");
}

struct buffer reserve(uint64_t size, uint32_t flags)
{
	void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct buffer b = { .address = (uintptr_t)p, .size = size, .flags = flags };
	struct io_alloc a = { .address = b.address, .size = size, .gpu_id = gpu_id, .flags = flags };

	if (IS(SIZE_0))
		a.size = 0;
	if (IS(NO_KIND))
		a.flags &= ~(uint32_t)MEM_KINDS;
	if (IS(TWO_KINDS))
		a.flags |= MEM_VRAM | MEM_GTT;
	if (IS(UNKNOWN_CARD))
		a.gpu_id = 7;
	if (IS(ADDRESS_0))
		a.address = b.address = 0;
	if (IS(ADDRESS_MISALIGNED))
		a.address = b.address += 256;
	if (IS(HOST_MEMORY_MISALIGNED)) {
		a.flags = MEM_USERPTR | MEM_WRITABLE;
		a.mmap_offset = a.address + 8;
	}
	if (IS(STRUCT_TOO_SHORT))
		call(NR_ALLOC_MEMORY, _IOC_READ | _IOC_WRITE, &a, 32);
	if (IS(WRONG_DIRECTION))
		call(NR_ALLOC_MEMORY, _IOC_READ, &a, sizeof a);
	CALL_BOTH(NR_ALLOC_MEMORY, &a);
	b.handle = a.handle;
	b.offset = a.mmap_offset;
	return b;
}

struct buffer get(uint64_t size, uint32_t flags)
{
	struct buffer b = reserve(size, flags);

	if (reached(&b) && !IS(ADDRESS_0) && !IS(ADDRESS_MISALIGNED))
		map_for_host(&b);
	map(&b);
	return b;
}

void give(const struct buffer *b)
{
	if (!IS(FREE_MAPPED))
		unmap(b);
	CALL_IN(NR_FREE_MEMORY, &(struct io_free){ b->handle });
	if (IS(FREE_TWICE))
		CALL_IN(NR_FREE_MEMORY, &(struct io_free){ b->handle });
	munmap((void *)(uintptr_t)b->address, b->size);
}

/* ---- code: its segments into memory that the card may execute */

static unsigned char *read_file(size_t *n)
{
	static unsigned char bytes[1 << 16];
	char path[1024];
	const char *src = getenv("srcdir"),
		   *target = version / 10000 == 10   ? "gfx1030"
	                     : version / 10000 == 11 ? "gfx1100"
	                                             : "gfx1200";

	snprintf(path, sizeof path, "%s/tests/sim/kernels.%s.co", src ? src : ".", target);
	FILE *f = fopen(path, "rb");
	if (!f)
		exit(NOT_MADE);
	*n = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	return bytes;
}

static uint64_t find_descriptor(const unsigned char *bytes, const char *name)
{
	const Elf64_Ehdr *e = (const void *)bytes;
	const Elf64_Shdr *s = (const void *)(bytes + e->e_shoff);

	for (unsigned i = 0; i < e->e_shnum; i++)
		for (uint64_t k = 0; s[i].sh_type == SHT_DYNSYM && k < s[i].sh_size / sizeof(Elf64_Sym); k++) {
			const Elf64_Sym *y = (const Elf64_Sym *)(const void *)(bytes + s[i].sh_offset) + k;
			if (!strcmp((const char *)bytes + s[s[i].sh_link].sh_offset + y->st_name, name))
				return y->st_value;
		}
	exit(NOT_MADE);
}

void load(void)
{
	size_t n;
	const unsigned char *bytes = read_file(&n);
	const Elf64_Ehdr *e = (const void *)bytes;
	const Elf64_Phdr *p = (const void *)(bytes + e->e_phoff);
	uint32_t flags = HOST | MEM_WRITABLE | (IS(CODE_NOT_EXECUTABLE) ? 0 : MEM_EXECUTABLE);

	code = IS(CODE_NOT_MAPPED) ? reserve(1 << 16, flags) : get(1 << 16, flags);
	if (IS(CODE_NOT_MAPPED))
		map_for_host(&code);
	for (unsigned i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD)
			memcpy((void *)(uintptr_t)(code.address + p[i].p_vaddr), bytes + p[i].p_offset, p[i].p_filesz);
	descriptor = code.address + find_descriptor(bytes, "reduce.kd");
	entry = descriptor + *(const uint64_t *)(uintptr_t)(descriptor + 16);
}

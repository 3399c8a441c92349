/* tests/fake_kfd/devices.c - open files of /dev/kfd and of the render nodes: each is an empty file in memory, known by
 * its inode wherever its number goes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/fake_kfd/fake.h"

enum { FILES = 256 };
static struct open_file {
	uint64_t inode, device;
	int kind;
	struct card *card;
} files[FILES];
static _Atomic unsigned n_files;

static bool identify(int fd, uint64_t *inode, uint64_t *device)
{
	struct stat s;

	if (syscall(SYS_newfstatat, fd, "", &s, AT_EMPTY_PATH) != 0)
		return false;
	*inode = s.st_ino;
	*device = s.st_dev;
	return true;
}

static int which(const char *path, struct card **card)
{
	unsigned n;
	char rest;

	if (!strcmp(path, "/dev/kfd"))
		return FILE_KFD;
	if (sscanf(path, "/dev/dri/renderD%u%c", &n, &rest) != 1) {
		if (sscanf(path, "/dev/dri/card%u%c", &n, &rest) != 1)
			return FILE_NONE;
		n += FIRST_RENDER;
	}
	for (unsigned i = 0; i < fake.n_cards; i++)
		if (fake.card[i].render == n) {
			*card = &fake.card[i];
			return FILE_DRM;
		}
	return FILE_NONE;
}

int device_open(const char *path, int flags)
{
	struct card *card = NULL;
	int kind = which(path, &card);

	if (kind == FILE_NONE)
		return -2;
	int error = inject_call(kind == FILE_KFD ? "open-kfd" : "open-render");
	if (!error && fake.inject.denied)
		error = EACCES;
	if (!error && card && card->gone)
		error = ENOENT;
	if (error || n_files == FILES) {
		errno = error ? error : ENFILE;
		return -1;
	}
	if ((flags & O_ACCMODE) != O_RDWR)
		object_to("%s is opened for reading alone: nothing of it can be mapped for writing", path);
	int fd = memfd_create(path, flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd < 0)
		return -1;
	unsigned i = n_files;
	files[i].kind = kind;
	files[i].card = card;
	if (!identify(fd, &files[i].inode, &files[i].device))
		return -1;
	n_files = i + 1;
	if (kind == FILE_KFD)
		fake.pid = getpid();
	trace_call(fake.calls, kind == FILE_KFD ? "open-kfd" : "open-render", 0);
	return fd;
}

int device_kind(int fd, struct card **card, uint64_t *inode, uint64_t *device)
{
	uint64_t i, d;

	if (fd < 0 || !n_files || !identify(fd, &i, &d))
		return FILE_NONE;
	for (unsigned k = 0; k < n_files; k++)
		if (files[k].inode == i && files[k].device == d) {
			*card = files[k].card;
			if (inode) {
				*inode = i;
				*device = d;
			}
			return files[k].kind;
		}
	return FILE_NONE;
}

/* Doorbells, and the page of registers that flushes what the host wrote to VRAM. */
static int mmap_kfd(void *at, size_t bytes, int protection, int flags, uint64_t offset, void **out)
{
	struct card *c = card_by_id(MMAP_GPU_OF(offset));
	uint64_t kind = MMAP_KIND(offset);

	if (!c) {
		object_to("mmap of /dev/kfd: offset 0x%llx names no card", (unsigned long long)offset);
		return ENODEV;
	}
	if (kind != 3 && kind != 0) {
		object_to("mmap of /dev/kfd: offset 0x%llx names nothing that a card needs",
		          (unsigned long long)offset);
		return EINVAL;
	}
	if (bytes != (kind ? DOORBELLS : PAGE) || (flags & MAP_TYPE) == MAP_PRIVATE || (offset & (PAGE - 1))) {
		object_to("mmap of /dev/kfd: %zu bytes, expected %u, shared, at whole pages", bytes,
		          kind ? DOORBELLS : PAGE);
		return EINVAL;
	}
	uint64_t doorbell_offset = kind ? 0 : DOORBELLS; /* ACQUIRE_VM puts them first in the card's memory */
	if (!c->acquired) {
		object_to("mmap of /dev/kfd: before ACQUIRE_VM");
		return EINVAL;
	}
	*out = (void *)syscall(SYS_mmap, at, bytes, protection, flags, c->memory, doorbell_offset);
	return *out == MAP_FAILED ? errno : 0;
}

void *device_mmap(int kind, struct card *c, void *at, size_t bytes, int protection, int flags, uint64_t offset,
                  int *err)
{
	void *p = MAP_FAILED;
	const char *name = kind == FILE_KFD ? "mmap-kfd" : "mmap-render";

	*err = inject_call(name);
	if (*err)
		return MAP_FAILED;
	pthread_mutex_lock(&fake.lock);
	if (c && c->gone)
		*err = ENODEV;
	else if (kind == FILE_KFD)
		*err = mmap_kfd(at, bytes, protection, flags, offset, &p);
	else
		*err = memory_mmap(c, at, bytes, protection, flags, offset, &p);
	pthread_mutex_unlock(&fake.lock);
	trace_call(fake.calls, name, *err);
	return p;
}

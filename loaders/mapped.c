/* loaders/mapped.c - opens and maps one regular file. See mapped.h.
 *
 * Rule: every way the system can refuse becomes one sentence with the path; no advice is given about
 * paging, which is the affair of whoever reads the weights.
 */
#include "loaders/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void mapped_label(char out[200], const char *path)
{
	size_t n = strlen(path);
	const size_t keep = 120;

	if (n <= keep) {
		error_quote(out, 200, path, n);
		return;
	}
	const char *tail = path + n - keep;
	while (((unsigned char)*tail & 0xc0) == 0x80)
		tail++;
	memcpy(out, "...", 3);
	error_quote(out + 3, 197, tail, strlen(tail));
}

static const char *kind_of(mode_t mode)
{
	return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" :
	       S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "of an unknown kind";
}

static bool map_fd(struct mapped *m, int fd, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return error_set(err, ERROR_IO, "%s: cannot be examined: %s", m->label, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_IO, "%s: is %s, expected a regular file", m->label, kind_of(st.st_mode));
	if (st.st_size <= 0)
		return error_set(err, ERROR_FORMAT, "%s: is empty (0 bytes)", m->label);
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return error_set(err, ERROR_IO, "%s: %lld bytes cannot be mapped: %s", m->label, (long long)st.st_size, strerror(errno));
	m->base = p;
	m->size = (uint64_t)st.st_size;
	m->owned = true;
	return true;
}

bool mapped_open(struct mapped *m, const char *path, struct error *err)
{
	memset(m, 0, sizeof *m);
	mapped_label(m->label, path);
	/* O_NONBLOCK: a FIFO without a writer must be refused, not waited for */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return error_set(err, ERROR_IO, "%s: cannot be opened: %s", m->label, strerror(errno));
	bool ok = map_fd(m, fd, err);
	close(fd);
	return ok;
}

void mapped_borrow(struct mapped *m, const void *bytes, uint64_t n, const char *name)
{
	memset(m, 0, sizeof *m);
	mapped_label(m->label, name);
	m->base = bytes;
	m->size = n;
}

void mapped_close(struct mapped *m)
{
	if (m->owned)
		munmap((void *)(uintptr_t)m->base, (size_t)m->size);
	memset(m, 0, sizeof *m);
}

/* jit/execmem.c - pages that run generated code, and the names profilers give them.
 *
 * Owns: the only mmap and mprotect of executable memory. A page is writable, then executable, never both and never writable
 * again: code that must change is mapped anew.
 */
#include "jit/execmem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *execmem_map(const void *code, size_t n, struct error *err)
{
	assert(n > 0);
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		error_set(err, ERROR_MEMORY, "cannot map %zu bytes for generated code: %s", n, strerror(errno));
		return NULL;
	}
	memcpy(p, code, n);
	if (mprotect(p, n, PROT_READ | PROT_EXEC)) {
		error_set(err, ERROR_MEMORY, "cannot make %zu bytes of generated code executable: %s", n, strerror(errno));
		munmap(p, n);
		return NULL;
	}
	return p;
}

void execmem_unmap(void *p, size_t n)
{
	if (p)
		munmap(p, n);
}

void execmem_perf_map(const void *p, size_t n, const char *name)
{
	char path[48], line[320];
	int len = snprintf(line, sizeof line, "%lx %zx %.256s\n", (unsigned long)p, n, name);

	snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
	/* /tmp is everybody's: a link or another user's file of this name is left alone */
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	ssize_t done = write(fd, line, (size_t)len);     /* one write: lines of threads stay whole */
	(void)done;
	close(fd);
}

/* tests/fake_kfd/log.c - what the fake driver objects to, what it was asked, and which call is to fail. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake_kfd/fake.h"

/* A line at once, so that processes that share a file do not cut each other's. */
static void line(const char *variable, const char *text, size_t n)
{
	const char *path = getenv(variable);
	int fd = path && *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;

	if (fd < 0 && path && *path)
		return;
	if (write(fd < 0 ? STDERR_FILENO : fd, text, n) < 0)
		abort();
	if (fd >= 0)
		close(fd);
}

void object_to(const char *format, ...)
{
	char text[1024] = "fake kfd: ";
	va_list ap;
	int saved = errno;

	va_start(ap, format);
	vsnprintf(text + strlen(text), sizeof text - strlen(text) - 1, format, ap);
	va_end(ap);
	strcat(text, "\n");
	line("FAKE_KFD_LOG", text, strlen(text));
	errno = saved;
}

void trace_call(unsigned number, const char *name, int error)
{
	char text[128];
	int saved = errno;

	if (!getenv("FAKE_KFD_TRACE"))
		return;
	snprintf(text, sizeof text, "%u %s %d\n", number, name, error);
	line("FAKE_KFD_TRACE", text, strlen(text));
	errno = saved;
}

int inject_call(const char *name)
{
	unsigned n = atomic_fetch_add(&fake.calls, 1) + 1;
	const struct inject *i = &fake.inject;
	static _Atomic unsigned of_name;
	unsigned at = n;

	if (i->unplug_call && n >= i->unplug_call && !fake.card[0].gone) {
		for (unsigned k = 0; k < fake.n_cards; k++) {
			fake.card[k].gone = true;
			sysfs_gone(&fake.card[k]);
		}
		event_gone();
	}
	if (*i->fail_name && strcmp(i->fail_name, name))
		return 0;
	if (*i->fail_name)
		at = atomic_fetch_add(&of_name, 1) + 1;
	if (!i->fail_at || (i->fail_on ? at < i->fail_at : at != i->fail_at))
		return 0;
	trace_call(n, name, i->fail_errno);
	return i->fail_errno;
}

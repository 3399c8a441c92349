/* runtime/device/amd/amd_lock.c - one process at a time launches on a card. See amd.h.
 *
 * All workgroups of a launch wait for each other. Two processes that each had half of theirs on the card would wait for
 * ever, so each launch holds a lock that goes with the card.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/device/amd/amd.h"
#include "runtime/host/cancel.h"
#include "runtime/host/system.h"

/* Another process holds it for one launch at a time. */
#define LONGEST_WAIT 60.0

/* The first process makes the file. All may lock what they can read. */
static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd >= 0)
		fchmod(fd, 0644); /* whatever the umask is */
	return fd < 0 && errno == EEXIST ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : fd;
}

static int open_in(const struct amd *d, const char *dir, const char *suffix, char path[96])
{
	char card[32];

	if (d->card.unique_id)
		snprintf(card, sizeof card, "%016llx", (unsigned long long)d->card.unique_id);
	else
		snprintf(card, sizeof card, "%s", d->card.pci);
	snprintf(path, 96, "%s/jitrun-amd-%s.%s", dir, card, suffix);
	return open_file(path);
}

bool amd_lock_open(struct amd *d, struct error *err)
{
	static const char *const dirs[] = { "/run/lock", "/tmp" };
	char path[96];

	d->lock_file = d->queue_file = -1;
	for (size_t i = 0; d->queue_file < 0 && i < sizeof dirs / sizeof *dirs; i++) {
		d->lock_file = open_in(d, dirs[i], "lock", path);
		d->queue_file = d->lock_file < 0 ? -1 : open_in(d, dirs[i], "turn", path);
		if (d->queue_file < 0)
			amd_lock_close(d);
	}
	return d->queue_file >= 0 ||
	       error_set(err, ERROR_IO, "the card's lock %s cannot be opened: %s", path, strerror(errno));
}

void amd_lock_close(struct amd *d)
{
	int e = errno;

	if (d->lock_file >= 0)
		close(d->lock_file);
	if (d->queue_file >= 0)
		close(d->queue_file);
	d->lock_file = d->queue_file = -1;
	errno = e;
}

static bool take(const struct amd *d, int fd, const struct cancel *cancel, struct error *err)
{
	double since = 0;
	long pause = 20000; /* ns */

	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		double now = system_seconds();
		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_set(err, ERROR_IO, "the card's lock cannot be taken: %s", strerror(errno));
		if (cancel_any(cancel))
			return cancel_error(err);
		since = since > 0 ? since : now;
		if (now - since > LONGEST_WAIT)
			return error_set(err, ERROR_DEVICE, "another process has used %s for %.0f seconds on end",
			                 d->card.name, LONGEST_WAIT);
		nanosleep(&(struct timespec){ .tv_nsec = pause }, NULL);
		pause = pause < 1000000 ? 2 * pause : pause;
	}
	return true;
}

/* Who waits for the lock holds the turn, so that a process that launches again at once queues up. */
bool amd_lock_take(struct amd *d, const struct cancel *cancel, struct error *err)
{
	if (!take(d, d->queue_file, cancel, err))
		return false;
	bool ok = take(d, d->lock_file, cancel, err);
	flock(d->queue_file, LOCK_UN);
	return ok;
}

void amd_lock_give(struct amd *d) { flock(d->lock_file, LOCK_UN); }

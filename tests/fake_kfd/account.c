/* tests/fake_kfd/account.c - how much of each card's memory is taken, by all processes that share the folder, and whose
 * launch is running. Processes that died gave everything back. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fake_kfd/fake.h"

enum { PROCESSES = 64 };
struct accounts {
	struct {
		pid_t pid;
		uint64_t used[CARDS_MAX];
	} of[PROCESSES];
	pid_t launching[CARDS_MAX];
};

static struct accounts *accounts;
static int accounts_fd = -1;

bool account_open(void)
{
	char path[600];

	snprintf(path, sizeof path, "%s/accounts", fake.dir);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || ftruncate(fd, sizeof *accounts) != 0)
		return false;
	accounts_fd = fcntl(fd, F_DUPFD_CLOEXEC, 600);
	close(fd);
	void *p = mmap(NULL, sizeof *accounts, PROT_READ | PROT_WRITE, MAP_SHARED, accounts_fd, 0);
	accounts = p == MAP_FAILED ? NULL : p;
	return accounts != NULL;
}

static bool lives(pid_t pid) { return pid && kill(pid, 0) == 0; }

static unsigned own_row(void)
{
	unsigned free_row = PROCESSES;

	for (unsigned i = 0; i < PROCESSES; i++) {
		if (accounts->of[i].pid == getpid())
			return i;
		if (!lives(accounts->of[i].pid)) {
			accounts->of[i].pid = 0;
			for (unsigned k = 0; k < CARDS_MAX; k++)
				accounts->of[i].used[k] = 0;
			free_row = i;
		}
	}
	accounts->of[free_row % PROCESSES].pid = getpid();
	return free_row % PROCESSES;
}

static uint64_t sum(unsigned card)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < PROCESSES; i++)
		if (lives(accounts->of[i].pid))
			n += accounts->of[i].used[card];
	return n;
}

static unsigned index_of(const struct card *c) { return (unsigned)(c - fake.card); }

uint64_t account_used(const struct card *c)
{
	flock(accounts_fd, LOCK_EX);
	uint64_t n = sum(index_of(c));
	flock(accounts_fd, LOCK_UN);
	return n;
}

bool account_take(const struct card *c, uint64_t bytes, uint64_t limit)
{
	flock(accounts_fd, LOCK_EX);
	bool ok = sum(index_of(c)) + bytes <= limit;
	if (ok)
		accounts->of[own_row()].used[index_of(c)] += bytes;
	flock(accounts_fd, LOCK_UN);
	return ok;
}

void account_give(const struct card *c, uint64_t bytes)
{
	flock(accounts_fd, LOCK_EX);
	accounts->of[own_row()].used[index_of(c)] -= bytes;
	flock(accounts_fd, LOCK_UN);
}

pid_t account_begin(const struct card *c)
{
	pid_t *at = &accounts->launching[index_of(c)], other = 0;

	flock(accounts_fd, LOCK_EX);
	if (*at != getpid() && lives(*at))
		other = *at;
	else
		*at = getpid();
	flock(accounts_fd, LOCK_UN);
	return other;
}

void account_end(const struct card *c)
{
	pid_t *at = &accounts->launching[index_of(c)];

	flock(accounts_fd, LOCK_EX);
	if (*at == getpid())
		*at = 0;
	flock(accounts_fd, LOCK_UN);
}

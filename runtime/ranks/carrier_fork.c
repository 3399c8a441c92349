/* runtime/ranks/carrier_fork.c - ranks that are processes of this machine, over memory that they share.
 *
 * Owns: that memory. Between each two ranks there is a ring of bytes for each direction, which one rank fills and the
 * other empties; a rank that can go on with none of its rings sleeps on its bell, which the rank that changes one of
 * them rings. A thread of each rank, the watch, counts its own beats and looks at those of the others: a process that
 * was killed is found by its parent, one that was stopped by its beats. Time is counted in the watch's own looks, so
 * that ranks which were all stopped together (Ctrl-Z) go on together.
 *
 * The parent is rank 0. Its children end when it does.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/host/system.h"
#include "runtime/ranks/carrier.h"

enum {
	RING = 1 << 20,
	CHECK_MS = 50,  /* between two looks of the watch */
	SPINS_MAX = 400 /* looks at the bell before sleeping, some microseconds */
};
#define END_SECONDS 2.0 /* that children have to end by themselves */

struct ring {
	_Alignas(64) _Atomic uint64_t written;
	_Alignas(64) _Atomic uint64_t read;
};

struct member {
	_Alignas(64) _Atomic uint32_t bell; /* changes with each ring */
	_Atomic uint32_t sleeps;
	_Alignas(64) _Atomic uint32_t beats;
	_Atomic int pid;
};

enum { NOT_ABORTED, ABORT_WRITTEN_NOW, ABORTED };
struct shared {
	_Atomic uint32_t aborted, closing;
	char why[sizeof((struct error){ 0 }.text)];
	struct member member[CARRIER_RANKS_MAX];
	struct ring ring[]; /* [from][to]; behind them their bytes */
};

struct gather {
	uint8_t *all;
	const size_t *begin;
	size_t sent[CARRIER_RANKS_MAX], received[CARRIER_RANKS_MAX];
};

struct fork_carrier {
	struct carrier carrier;
	struct shared *shared;
	size_t bytes;
	uint8_t *data;
	pid_t parent; /* of children */
	struct gather gather;
	unsigned spins;
	bool watched;
	pthread_t watch;
	_Atomic uint32_t stop; /* the watch ends */
	double patience;
	uint32_t seen[CARRIER_RANKS_MAX],
		quiet[CARRIER_RANKS_MAX]; /* the watch's: beats, and looks without a new one */
	bool reaped[CARRIER_RANKS_MAX];
};

static struct fork_carrier *of(struct carrier *c) { return (struct fork_carrier *)c; }

static void futex_wait(_Atomic uint32_t *word, uint32_t old, unsigned ms)
{
	const struct timespec limit = { ms / 1000, (long)(ms % 1000) * 1000000 };

	syscall(SYS_futex, word, FUTEX_WAIT, old, &limit, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0); }

static void ring_bell(struct fork_carrier *f, unsigned rank)
{
	struct member *m = &f->shared->member[rank];

	atomic_fetch_add(&m->bell, 1);
	if (atomic_load(&m->sleeps))
		futex_wake(&m->bell);
}

/* ---- the end of all */

/* The first one counts. */
static void end_all(struct fork_carrier *f, const char *why)
{
	uint32_t none = NOT_ABORTED;

	if (!atomic_compare_exchange_strong(&f->shared->aborted, &none, ABORT_WRITTEN_NOW))
		return;
	snprintf(f->shared->why, sizeof f->shared->why, "%s", why);
	atomic_store(&f->shared->aborted, ABORTED);
	for (unsigned r = 0; r < f->carrier.size; r++)
		ring_bell(f, r);
}

static bool refuse_aborted(const struct fork_carrier *f, struct error *err)
{
	return error_set(err, ERROR_DEVICE, "%s", f->shared->why);
}

static bool fork_alive(struct carrier *c, struct error *err)
{
	return atomic_load(&of(c)->shared->aborted) != ABORTED || refuse_aborted(of(c), err);
}

static void fork_abort(struct carrier *c, const char *why)
{
	char text[sizeof((struct error){ 0 }.text)];

	snprintf(text, sizeof text, "rank %u: %.480s", c->rank, why);
	end_all(of(c), text);
}

/* ---- bytes */

/* As many of n bytes as the ring has room for. */
static size_t push(struct fork_carrier *f, unsigned to, const uint8_t *bytes, size_t n)
{
	const size_t number = (size_t)f->carrier.rank * f->carrier.size + to;
	struct ring *r = &f->shared->ring[number];
	uint8_t *data = f->data + number * RING;
	const uint64_t at = atomic_load_explicit(&r->written, memory_order_relaxed),
		       room = RING - (at - atomic_load_explicit(&r->read, memory_order_acquire));
	const size_t take = n < room ? n : (size_t)room, begin = at % RING,
		     first = take < RING - begin ? take : RING - begin;

	if (!take)
		return 0;
	memcpy(data + begin, bytes, first);
	memcpy(data, bytes + first, take - first);
	atomic_store_explicit(&r->written, at + take, memory_order_release);
	ring_bell(f, to);
	return take;
}

/* As many of n bytes as are there. */
static size_t pull(struct fork_carrier *f, unsigned from, uint8_t *bytes, size_t n)
{
	const size_t number = (size_t)from * f->carrier.size + f->carrier.rank;
	struct ring *r = &f->shared->ring[number];
	const uint8_t *data = f->data + number * RING;
	const uint64_t at = atomic_load_explicit(&r->read, memory_order_relaxed),
		       there = atomic_load_explicit(&r->written, memory_order_acquire) - at;
	const size_t take = n < there ? n : (size_t)there, begin = at % RING,
		     first = take < RING - begin ? take : RING - begin;

	if (!take)
		return 0;
	memcpy(bytes, data + begin, first);
	memcpy(bytes + first, data, take - first);
	atomic_store_explicit(&r->read, at + take, memory_order_release);
	ring_bell(f, from);
	return take;
}

static uint32_t bell(const struct fork_carrier *f) { return atomic_load(&f->shared->member[f->carrier.rank].bell); }

/* Until the bell is not `old` any more. How long it is looked at before sleeping follows from whether that helped. */
static bool sleep_on(struct fork_carrier *f, uint32_t old, struct error *err)
{
	struct member *m = &f->shared->member[f->carrier.rank];

	for (unsigned i = 0; i < f->spins; i++) {
		if (atomic_load_explicit(&m->bell, memory_order_acquire) != old) {
			f->spins = f->spins * 2 < SPINS_MAX ? f->spins * 2 : SPINS_MAX;
			return fork_alive(&f->carrier, err);
		}
		__builtin_ia32_pause();
	}
	f->spins = f->spins / 2 + 8;
	atomic_fetch_add(&m->sleeps, 1);
	while (atomic_load(&m->bell) == old && atomic_load(&f->shared->aborted) != ABORTED)
		futex_wait(&m->bell, old, CHECK_MS);
	atomic_fetch_sub(&m->sleeps, 1);
	return fork_alive(&f->carrier, err);
}

static bool fork_send(struct carrier *c, unsigned to, const void *bytes, size_t n, struct error *err)
{
	const uint8_t *at = bytes;

	while (n) {
		const uint32_t old = bell(of(c));
		const size_t did = push(of(c), to, at, n);
		at += did;
		n -= did;
		if (!did && !sleep_on(of(c), old, err))
			return false;
	}
	return fork_alive(c, err);
}

static bool fork_receive(struct carrier *c, unsigned from, void *bytes, size_t n, struct error *err)
{
	uint8_t *at = bytes;

	while (n) {
		const uint32_t old = bell(of(c));
		const size_t did = pull(of(c), from, at, n);
		at += did;
		n -= did;
		if (!did && !sleep_on(of(c), old, err))
			return false;
	}
	return fork_alive(c, err);
}

/* What can be sent and received now. *left: whether some is left. Returns the bytes. */
static size_t gather_some(struct fork_carrier *f, bool *left)
{
	struct gather *g = &f->gather;
	const unsigned own = f->carrier.rank;
	const size_t own_bytes = g->begin[own + 1] - g->begin[own];
	size_t did = 0;

	*left = false;
	for (unsigned r = 0; r < f->carrier.size; r++) {
		const size_t bytes = g->begin[r + 1] - g->begin[r];
		if (r == own)
			continue;
		const size_t sent = push(f, r, g->all + g->begin[own] + g->sent[r], own_bytes - g->sent[r]),
			     got = pull(f, r, g->all + g->begin[r] + g->received[r], bytes - g->received[r]);
		g->sent[r] += sent;
		g->received[r] += got;
		did += sent + got;
		*left |= g->sent[r] < own_bytes || g->received[r] < bytes;
	}
	return did;
}

static bool fork_gather_begin(struct carrier *c, void *all, const size_t *begin, struct error *err)
{
	bool left;

	of(c)->gather = (struct gather){ .all = all, .begin = begin };
	gather_some(of(c), &left);
	return fork_alive(c, err);
}

static bool fork_gather_wait(struct carrier *c, struct error *err)
{
	for (bool left = true; left;) {
		const uint32_t old = bell(of(c));
		if (!gather_some(of(c), &left) && left && !sleep_on(of(c), old, err))
			return false;
	}
	return true; /* all have what was gathered: what follows from it, each of them finds by itself */
}

static bool fork_broadcast(struct carrier *c, unsigned root, void *bytes, size_t n, struct error *err)
{
	if (c->rank != root)
		return fork_receive(c, root, bytes, n, err);
	for (unsigned r = 0; r < c->size; r++)
		if (r != root && !fork_send(c, r, bytes, n, err))
			return false;
	return true;
}

/* ---- the watch */

static void lost(struct fork_carrier *f, unsigned rank, const char *what)
{
	char text[160];

	snprintf(text, sizeof text, "rank %u (process %d) %s", rank, atomic_load(&f->shared->member[rank].pid), what);
	end_all(f, text);
}

/* Children that ended; they stay to be waited for by fork_close(). */
static void check_children(struct fork_carrier *f)
{
	for (unsigned r = 1; r < f->carrier.size; r++) {
		siginfo_t info = { 0 };
		char what[64];
		const int pid = atomic_load(&f->shared->member[r].pid);
		if (f->reaped[r] || !pid)
			continue;
		const int status = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
		if (status == 0 && !info.si_pid)
			continue;
		f->reaped[r] = true;
		if (status == 0 && info.si_code != CLD_EXITED)
			snprintf(what, sizeof what, "was killed by signal %d", info.si_status);
		else
			snprintf(what, sizeof what, "has ended");
		if (!atomic_load(&f->shared->closing))
			lost(f, r, what);
	}
}

static void check_beats(struct fork_carrier *f)
{
	for (unsigned r = 0; r < f->carrier.size; r++) {
		const uint32_t beats = atomic_load(&f->shared->member[r].beats);
		char what[64];
		f->quiet[r] = beats == f->seen[r] && beats ? f->quiet[r] + 1 : 0;
		f->seen[r] = beats;
		if (r == f->carrier.rank || f->quiet[r] * (CHECK_MS / 1000.0) < f->patience ||
		    atomic_load(&f->shared->closing))
			continue;
		snprintf(what, sizeof what, "has given no sign of life for %.1f s", f->patience);
		lost(f, r, what);
	}
}

static void *watch(void *user)
{
	struct fork_carrier *f = user;

	system_thread_began();
	while (!atomic_load(&f->stop)) {
		atomic_fetch_add(&f->shared->member[f->carrier.rank].beats, 1);
		check_beats(f);
		if (f->carrier.rank == 0)
			check_children(f);
		else if (getppid() != f->parent || atomic_load(&f->shared->aborted) == ABORTED)
			_exit(1); /* nobody needs what it computes */
		futex_wait(&f->stop, 0, CHECK_MS);
	}
	return NULL;
}

static bool begin_watch(struct fork_carrier *f, struct error *err)
{
	sigset_t all, before;

	sigfillset(&all); /* signals are for the caller's own threads */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	f->watched = pthread_create(&f->watch, NULL, watch, f) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return f->watched || error_set(err, ERROR_MEMORY, "no thread to watch over %u ranks", f->carrier.size);
}

/* ---- beginning and end */

static bool read_size(const char *which, unsigned *size, struct error *err)
{
	char *end;
	const unsigned long n = strtoul(which, &end, 10);

	*size = (unsigned)n;
	return (*which >= '0' && *which <= '9' && !*end && n >= 2 && n <= CARRIER_RANKS_MAX) ||
	       error_set(err, ERROR_ARGUMENT, "ranks: fork:%.32s does not say a number from 2 to %d", which,
	                 CARRIER_RANKS_MAX);
}

static struct fork_carrier *map_shared(unsigned size, struct error *err)
{
	const size_t head = (sizeof(struct shared) + (size_t)size * size * sizeof(struct ring) + 4095) / 4096 * 4096,
		     bytes = head + (size_t)size * size * RING;
	struct fork_carrier *f = calloc(1, sizeof *f);
	void *p = f ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
	            : MAP_FAILED;

	if (p == MAP_FAILED) {
		error_set(err, ERROR_MEMORY, "no memory that %u ranks can share", size);
		free(f);
		return NULL;
	}
	f->carrier = (struct carrier){ .driver = &carrier_fork, .size = size, .here = size, .own = true };
	f->shared = p;
	f->bytes = bytes;
	f->data = (uint8_t *)p + head;
	f->spins = SPINS_MAX;
	return f;
}

/* In the child: it has none of the parent's files but its output, and ends with the parent alone, which may have work
 * to finish when a keyboard or a supervisor has sent its signal to all processes. */
static void become_child(struct fork_carrier *f, unsigned rank, pid_t parent)
{
	f->carrier.rank = rank;
	f->parent = parent;
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
#ifdef SYS_close_range
	syscall(SYS_close_range, 3u, ~0u, 0u);
#endif
}

static bool make_children(struct fork_carrier *f, struct error *err)
{
	const pid_t parent = getpid();

	atomic_store(&f->shared->member[0].pid, (int)parent);
	for (unsigned r = 1; r < f->carrier.size; r++) {
		const pid_t pid = fork();
		if (pid < 0)
			return error_set(err, ERROR_MEMORY, "rank %u of %u could not be made: %s", r, f->carrier.size,
			                 strerror(errno));
		if (pid == 0) {
			become_child(f, r, parent);
			return true;
		}
		atomic_store(&f->shared->member[r].pid, (int)pid);
	}
	return true;
}

static void wait_for_children(struct fork_carrier *f)
{
	const double begin = system_seconds();

	for (unsigned r = 1; r < f->carrier.size; r++) {
		const pid_t pid = atomic_load(&f->shared->member[r].pid);
		pid_t got = 0;
		while (pid && (got = waitpid(pid, NULL, WNOHANG)) == 0 && system_seconds() - begin < END_SECONDS)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		if (pid && got == 0) {
			kill(pid, SIGKILL);
			while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
				continue;
		}
	}
}

static void fork_close(struct carrier *c)
{
	struct fork_carrier *f = of(c);

	if (c->rank == 0)
		atomic_store(&f->shared->closing, 1);
	/* A child that ended before would be missed. */
	while (c->rank && !atomic_load(&f->shared->closing) && fork_alive(c, NULL) && getppid() == f->parent)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	if (f->watched) {
		atomic_store(&f->stop, 1);
		futex_wake(&f->stop);
		pthread_join(f->watch, NULL);
	}
	if (c->rank == 0)
		wait_for_children(f);
	munmap(f->shared, f->bytes);
	free(f);
}

static struct carrier *fork_open(const char *which, struct error *err)
{
	double patience;
	unsigned size;
	struct fork_carrier *f = NULL;

	if (!read_size(which, &size, err) || !carrier_patience(&patience, err) || !(f = map_shared(size, err)))
		return NULL;
	f->patience = patience;
	if (make_children(f, err) && begin_watch(f, err))
		return &f->carrier;
	if (f->carrier.rank != 0)
		_exit(1);
	end_all(f, err && err->code ? err->text : "the ranks could not be made");
	fork_close(&f->carrier);
	return NULL;
}

const struct carrier_driver carrier_fork = {
	.name = "fork:",
	.open = fork_open,
	.send = fork_send,
	.receive = fork_receive,
	.gather_begin = fork_gather_begin,
	.gather_wait = fork_gather_wait,
	.broadcast = fork_broadcast,
	.alive = fork_alive,
	.abort = fork_abort,
	.close = fork_close
};

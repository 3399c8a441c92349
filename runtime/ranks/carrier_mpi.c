/* runtime/ranks/carrier_mpi.c - ranks that mpirun, srun or another launcher of MPI has started, on any machines.
 *
 * Owns: how MPI is used. Which MPI it is, the launcher's variables say; its module is a shared object beside the
 * library (mpi_module.h). Messages go from rank to rank and never wait inside MPI: who waits tests again and again,
 * yields, and sleeps, up to a millisecond, so that an idle rank uses hardly any time. A thread of each rank, the watch,
 * sends its beats to rank 0, and rank 0's to all; it also sends the sentence that ends all. Time without beats is
 * counted in the watch's own looks. A process that dies is the launcher's affair, which ends the others.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/host/system.h"
#include "runtime/ranks/carrier.h"
#include "runtime/ranks/mpi_module.h"

enum { TAG_BYTES = 1, TAG_BEATS };
enum { CHECK_MS = 50, CHUNK = 1 << 30 /* of one message */, YIELDS = 200, SHORT_SLEEPS = 2000 };
#define END_SECONDS 1.0  /* that the others have to take leave */
#define FAIL_SECONDS 0.3 /* that they have to hear of a failure */

enum { BEAT_LIVES, BEAT_ENDS, BEAT_FAILED };
struct beat {
	uint32_t kind;
	char why[sizeof((struct error){ 0 }.text)];
};

struct peer {
	struct beat in, out;
	uint64_t receiving, sending;
	bool has_sending, heard, ended, told;
	unsigned quiet; /* checks without a beat */
};

struct mpi_carrier {
	struct carrier carrier;
	const struct mpi_module *mpi;
	pthread_mutex_t lock; /* around calls of the module */
	char host[CARRIER_RANKS_MAX][MPI_MODULE_HOST];
	uint64_t gather[2 * CARRIER_RANKS_MAX];
	unsigned n_gather;
	struct peer peer[CARRIER_RANKS_MAX];
	pthread_t watch;
	bool watched;
	_Atomic bool stop, aborted;
	pthread_mutex_t why_lock;
	char why[sizeof((struct error){ 0 }.text)];
	double patience;
};

static struct mpi_carrier *of(struct carrier *c) { return (struct mpi_carrier *)c; }

static void sleep_us(long us) { nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL); }

/* ---- the module */

/* Which module: $JITRUN_MPI, else by what the launcher has set. NULL: there was none. */
static const char *module_name(void)
{
	const char *named = getenv("JITRUN_MPI");

	if (named && *named)
		return named;
	if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK"))
		return "openmpi";
	return getenv("PMI_RANK") || getenv("PMI_SIZE") ? "mpich" : NULL;
}

/* Beside the file that holds this function, in jitrun/ beside it, or in lib/jitrun beside the folder of a program. */
static void *open_module(const char *name, struct error *err)
{
	static const char *const between[] = { "", "jitrun/", "../lib/jitrun/" };
	const size_t n = strlen(name) > 3 ? strlen(name) - 3 : 0;
	Dl_info own;
	char path[4200];
	void *file = NULL;

	if (n && strcmp(name + n, ".so") == 0)
		file = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
	else if (dladdr((const void *)&carrier_mpi, &own) && own.dli_fname) {
		const char *slash = strrchr(own.dli_fname, '/');
		const int folder = slash ? (int)(slash + 1 - own.dli_fname) : 0;
		for (size_t i = 0; !file && i < sizeof between / sizeof *between; i++) {
			snprintf(path, sizeof path, "%.*s%sjitrun-%.32s.so", folder, own.dli_fname, between[i], name);
			file = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
		}
	}
	if (!file) {
		const char *why = dlerror();
		error_set(err, ERROR_UNSUPPORTED, "ranks: the module of the MPI %.64s is not there: %.300s", name,
		          why ? why : "this build has none");
	}
	return file;
}

static const struct mpi_module *find_module(struct error *err)
{
	const char *name = module_name();

	if (!name) {
		error_set(err, ERROR_ARGUMENT,
		          "ranks: mpi: no launcher of MPI started this process; expected mpirun -n 2 or srun --mpi "
		          "before the command");
		return NULL;
	}
	void *file = open_module(name, err);
	const struct mpi_module *m = file ? dlsym(file, MPI_MODULE_NAME) : NULL;
	if (file && (!m || m->version != MPI_MODULE_VERSION)) {
		error_set(err, ERROR_UNSUPPORTED, "ranks: the module of the MPI %.64s is of another version of jitrun",
		          name);
		return NULL;
	}
	return m;
}

/* ---- the end of all */

static void end_all(struct mpi_carrier *m, const char *why)
{
	pthread_mutex_lock(&m->why_lock);
	if (!atomic_load(&m->aborted)) {
		snprintf(m->why, sizeof m->why, "%s", why);
		atomic_store(&m->aborted, true);
	}
	pthread_mutex_unlock(&m->why_lock);
}

static bool mpi_alive(struct carrier *c, struct error *err)
{
	return !atomic_load(&of(c)->aborted) || error_set(err, ERROR_DEVICE, "%s", of(c)->why);
}

static void mpi_abort(struct carrier *c, const char *why)
{
	struct mpi_carrier *m = of(c);
	char text[sizeof m->why];

	snprintf(text, sizeof text, "rank %u on %s: %.380s", c->rank, m->host[c->rank], why);
	if (!atomic_load(&m->aborted))
		m->carrier.told_why = c->rank != 0;
	end_all(m, text);
}

static bool refuse(const struct mpi_carrier *m, int result, struct error *err)
{
	char text[300];

	m->mpi->text(result, text, sizeof text);
	return error_set(err, ERROR_DEVICE, "MPI: %s", text);
}

/* ---- bytes */

static void pause_for(unsigned tries)
{
	if (tries < YIELDS)
		sched_yield();
	else
		sleep_us(tries < SHORT_SLEEPS ? 20 : 1000);
}

static bool wait_for(struct mpi_carrier *m, uint64_t *request, struct error *err)
{
	for (unsigned tries = 0;; tries++) {
		int done = 0;
		pthread_mutex_lock(&m->lock);
		const int result = m->mpi->test(request, &done);
		pthread_mutex_unlock(&m->lock);
		if (result)
			return refuse(m, result, err);
		if (done)
			return true;
		if (!mpi_alive(&m->carrier, err))
			return false;
		pause_for(tries);
	}
}

static bool begin_send(struct mpi_carrier *m, unsigned to, const uint8_t *bytes, size_t n, uint64_t *request,
                       struct error *err)
{
	pthread_mutex_lock(&m->lock);
	const int result = m->mpi->send(to, TAG_BYTES, bytes, (int)n, request);
	pthread_mutex_unlock(&m->lock);
	return !result || refuse(m, result, err);
}

static bool begin_receive(struct mpi_carrier *m, unsigned from, uint8_t *bytes, size_t n, uint64_t *request,
                          struct error *err)
{
	pthread_mutex_lock(&m->lock);
	const int result = m->mpi->receive(from, TAG_BYTES, bytes, (int)n, request);
	pthread_mutex_unlock(&m->lock);
	return !result || refuse(m, result, err);
}

static size_t chunk_of(size_t n) { return n < CHUNK ? n : CHUNK; }

static bool mpi_send(struct carrier *c, unsigned to, const void *bytes, size_t n, struct error *err)
{
	const uint8_t *at = bytes;
	uint64_t request;

	for (size_t chunk; n; at += chunk, n -= chunk) {
		chunk = chunk_of(n);
		if (!begin_send(of(c), to, at, chunk, &request, err) || !wait_for(of(c), &request, err))
			return false;
	}
	return mpi_alive(c, err);
}

static bool mpi_receive(struct carrier *c, unsigned from, void *bytes, size_t n, struct error *err)
{
	uint8_t *at = bytes;
	uint64_t request;

	for (size_t chunk; n; at += chunk, n -= chunk) {
		chunk = chunk_of(n);
		if (!begin_receive(of(c), from, at, chunk, &request, err) || !wait_for(of(c), &request, err))
			return false;
	}
	return true;
}

static bool mpi_broadcast(struct carrier *c, unsigned root, void *bytes, size_t n, struct error *err)
{
	if (c->rank != root)
		return mpi_receive(c, root, bytes, n, err);
	for (unsigned r = 0; r < c->size; r++)
		if (r != root && !mpi_send(c, r, bytes, n, err))
			return false;
	return true;
}

/* All at once, each in one message. */
static bool mpi_gather_begin(struct carrier *c, void *all, const size_t *begin, struct error *err)
{
	struct mpi_carrier *m = of(c);
	uint8_t *bytes = all;
	const size_t own = begin[c->rank + 1] - begin[c->rank];
	bool ok = true;

	m->n_gather = 0;
	for (unsigned r = 0; ok && r < c->size; r++) {
		const size_t n = begin[r + 1] - begin[r];
		if (n > CHUNK)
			return error_set(err, ERROR_ARGUMENT, "%zu bytes of one rank are more than are gathered", n);
		if (r != c->rank && n)
			ok = begin_receive(m, r, bytes + begin[r], n, &m->gather[m->n_gather++], err);
		if (ok && r != c->rank && own)
			ok = begin_send(m, r, bytes + begin[c->rank], own, &m->gather[m->n_gather++], err);
	}
	return ok;
}

static bool mpi_gather_wait(struct carrier *c, struct error *err)
{
	struct mpi_carrier *m = of(c);

	for (unsigned i = 0; i < m->n_gather; i++)
		if (!wait_for(m, &m->gather[i], err))
			return false;
	return true;
}

/* ---- the watch */

/* Rank 0 and the others watch each other. */
static bool is_watched(const struct mpi_carrier *m, unsigned rank)
{
	return rank != m->carrier.rank && (m->carrier.rank == 0 || rank == 0);
}

static void post(struct mpi_carrier *m, unsigned rank)
{
	struct peer *p = &m->peer[rank];

	m->mpi->receive(rank, TAG_BEATS, &p->in, (int)sizeof p->in, &p->receiving);
}

static void take_beat(struct mpi_carrier *m, unsigned rank)
{
	struct peer *p = &m->peer[rank];

	p->quiet = 0;
	p->heard = true;
	p->ended = p->in.kind == BEAT_ENDS;
	if (p->in.kind == BEAT_FAILED) {
		p->in.why[sizeof p->in.why - 1] = 0;
		m->carrier.told_why |= m->carrier.rank != 0;
		end_all(m, p->in.why);
	}
	if (!p->ended)
		post(m, rank);
}

static void lose(struct mpi_carrier *m, unsigned rank)
{
	char text[256];

	snprintf(text, sizeof text, "rank %u on %s has given no sign of life for %.1f s", rank, m->host[rank],
	         m->patience);
	end_all(m, text);
}

/* What came, and whether it was too long ago. */
static void listen_to(struct mpi_carrier *m, unsigned rank)
{
	struct peer *p = &m->peer[rank];
	int done = 0;

	if (p->ended)
		return;
	if (m->mpi->test(&p->receiving, &done) == 0 && done)
		take_beat(m, rank);
	else if (p->heard && ++p->quiet * (CHECK_MS / 1000.0) >= m->patience)
		lose(m, rank);
}

/* One beat at a time is on its way, so that none pile up before a rank that has stopped. */
static void beat(struct mpi_carrier *m, unsigned rank, uint32_t kind)
{
	struct peer *p = &m->peer[rank];
	int done = 0;

	if (p->told || (p->has_sending && (m->mpi->test(&p->sending, &done) || !done)))
		return;
	p->out.kind = kind;
	snprintf(p->out.why, sizeof p->out.why, "%s", kind == BEAT_FAILED ? m->why : "");
	p->has_sending = m->mpi->send(rank, TAG_BEATS, &p->out, (int)sizeof p->out, &p->sending) == 0;
	p->told = kind != BEAT_LIVES;
}

static uint32_t kind_of(const struct mpi_carrier *m)
{
	return atomic_load(&m->aborted) ? BEAT_FAILED : atomic_load(&m->stop) ? BEAT_ENDS : BEAT_LIVES;
}

/* Whether a peer has all that is to be said to it, and has said its last, where there is no failure. */
static bool is_done(struct mpi_carrier *m, unsigned rank, bool failed)
{
	struct peer *p = &m->peer[rank];
	int sent = 0;

	return p->told && p->has_sending && m->mpi->test(&p->sending, &sent) == 0 && sent && (failed || p->ended);
}

static void *watch(void *user)
{
	struct mpi_carrier *m = user;
	double stopped = 0;

	system_thread_began();
	for (bool over = false; !over;) {
		const bool stop = atomic_load(&m->stop), failed = atomic_load(&m->aborted);
		stopped = stop && stopped == 0 ? system_seconds() : stopped;
		over = stop;
		pthread_mutex_lock(&m->lock);
		for (unsigned r = 0; r < m->carrier.size; r++) {
			if (!is_watched(m, r))
				continue;
			beat(m, r, kind_of(m));
			listen_to(m, r);
			over = over && is_done(m, r, failed);
		}
		pthread_mutex_unlock(&m->lock);
		over = over || (stop && system_seconds() - stopped > (failed ? FAIL_SECONDS : END_SECONDS));
		if (!over)
			sleep_us(stop ? 1000 : CHECK_MS * 1000L);
	}
	return NULL;
}

static bool begin_watch(struct mpi_carrier *m, struct error *err)
{
	sigset_t all, before;

	for (unsigned r = 0; r < m->carrier.size; r++)
		if (is_watched(m, r))
			post(m, r);
	sigfillset(&all); /* signals are for the caller's own threads */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	m->watched = pthread_create(&m->watch, NULL, watch, m) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return m->watched || error_set(err, ERROR_MEMORY, "no thread to watch over %u ranks", m->carrier.size);
}

/* ---- beginning and end */

/* Who is where. */
static bool exchange_hosts(struct mpi_carrier *m, struct error *err)
{
	size_t begin[CARRIER_RANKS_MAX + 1];

	for (unsigned r = 0; r <= m->carrier.size; r++)
		begin[r] = (size_t)r * sizeof *m->host;
	if (!mpi_gather_begin(&m->carrier, m->host, begin, err) || !mpi_gather_wait(&m->carrier, err))
		return false;
	for (unsigned r = 0; r < m->carrier.size; r++) {
		m->host[r][MPI_MODULE_HOST - 1] = 0;
		m->carrier.here += strcmp(m->host[r], m->host[m->carrier.rank]) == 0;
	}
	return true;
}

static bool begin(struct mpi_carrier *m, struct error *err)
{
	char host[MPI_MODULE_HOST];
	struct carrier *c = &m->carrier;
	const int result = m->mpi->begin(&c->rank, &c->size, host);

	if (result)
		return refuse(m, result, err);
	if (c->size < 2 || c->size > CARRIER_RANKS_MAX)
		return error_set(err, ERROR_ARGUMENT,
		                 "ranks: mpi: there %s %u process%s, expected 2 to %d: mpirun -n 2",
		                 c->size == 1 ? "is" : "are", c->size, c->size == 1 ? "" : "es", CARRIER_RANKS_MAX);
	memcpy(m->host[c->rank], host, sizeof host);
	return exchange_hosts(m, err) && begin_watch(m, err);
}

static void mpi_close(struct carrier *c)
{
	struct mpi_carrier *m = of(c);

	atomic_store(&m->stop, true);
	if (m->watched)
		pthread_join(m->watch, NULL);
	if (m->carrier.told_why) /* the launcher ends all with the first that ends: that is to be rank 0, which says why
	                          */
		nanosleep(&(struct timespec){ .tv_sec = 5 }, NULL);
	m->mpi->end(atomic_load(&m->aborted));
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->why_lock);
	free(m);
}

static struct carrier *mpi_open(const char *which, struct error *err)
{
	struct mpi_carrier *m = NULL;
	double patience;

	if (*which) {
		error_set(err, ERROR_ARGUMENT, "ranks: mpi%.32s: mpirun says how many ranks there are; expected mpi",
		          which);
		return NULL;
	}
	const struct mpi_module *module = carrier_patience(&patience, err) ? find_module(err) : NULL;
	if (!module || !(m = calloc(1, sizeof *m))) {
		error_set(err, ERROR_MEMORY, "no memory for ranks");
		return NULL;
	}
	m->carrier.driver = &carrier_mpi;
	m->mpi = module;
	m->patience = patience;
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->why_lock, NULL);
	if (begin(m, err))
		return &m->carrier;
	mpi_close(&m->carrier);
	return NULL;
}

const struct carrier_driver carrier_mpi = {
	.name = "mpi",
	.open = mpi_open,
	.send = mpi_send,
	.receive = mpi_receive,
	.gather_begin = mpi_gather_begin,
	.gather_wait = mpi_gather_wait,
	.broadcast = mpi_broadcast,
	.alive = mpi_alive,
	.abort = mpi_abort,
	.close = mpi_close
};

#include "bench/startup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/codegen_time.h"
#include "runtime/device/device.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "runtime/host/system.h"

enum { PROMPT = 8, CONTEXT = 512 };

/* What a child tells. */
struct report {
	bool ok, unsealed; /* unsealed: the device cannot run sealed */
	double load, first_token, codegen;
	long generated;
	int threads;
	jit_error err;
};

typedef void (*start_fn)(const char *path, const jit_model_options *mo, const jit_session_options *so,
                         struct report *r);

static void start_once(const char *path, const jit_model_options *mo, const jit_session_options *so, struct report *r)
{
	double start = system_seconds();
	int32_t ids[PROMPT], id;
	jit_model *m = jit_model_open(path, mo, &r->err);
	jit_session *s = m ? jit_session_open(m, so, &r->err) : NULL;
	jit_model_info info = JIT_MODEL_INFO();
	jit_session_stats stats = JIT_SESSION_STATS();

	if (s) {
		jit_model_get_info(m, &info, NULL);
		for (int i = 0; i < PROMPT; i++)
			ids[i] = (i + 1) % info.vocab;
		r->ok = jit_session_feed(s, ids, PROMPT, &r->err) == JIT_OK &&
		        jit_session_next(s, &id, &r->err) == JIT_OK;
		r->first_token = system_seconds() - start;
		session_rest(s); /* so that what is counted does not depend on who was faster */
		jit_session_get_stats(s, &stats, NULL);
		r->load = info.load_seconds;
		r->codegen = stats.generate_seconds;
		r->generated = (long)stats.kernels_generated;
		r->threads = stats.threads;
	}
	jit_session_close(s);
	jit_model_close(m);
}

/* False: errno, or 0 when it ended before it told all. */
static bool hear(int fd, struct report *r)
{
	for (size_t n = 0; n < sizeof *r;) {
		ssize_t got = read(fd, (char *)r + n, sizeof *r - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = got < 0 ? errno : 0;
			return false;
		}
		n += (size_t)got;
	}
	return true;
}

static bool tell(int fd, const struct report *r)
{
	return write(fd, r, sizeof *r) == (ssize_t)sizeof *r;
} /* smaller than a pipe's atomic write */

/* A child that was not heard: why is errno of hear(), status how it ended. */
static bool not_heard(int why, int status, struct error *err)
{
	if (why)
		return error_set(err, ERROR_IO, "what the process that starts the model tells could not be read: %s",
		                 strerror(why));
	if (WIFSIGNALED(status))
		return error_set(err, ERROR_IO, "the process that starts the model was ended by signal %d",
		                 WTERMSIG(status));
	return error_set(err, ERROR_IO,
	                 "the process that starts the model did not tell how long it took, and ended with status %d",
	                 WEXITSTATUS(status));
}

static bool await(pid_t pid, int *status, double *rss, struct error *err)
{
	struct rusage usage = { 0 };
	pid_t ended;

	while ((ended = wait4(pid, status, 0, &usage)) < 0 && errno == EINTR)
		;
	*rss = (double)usage.ru_maxrss / 1024;
	return ended == pid ||
	       error_set(err, ERROR_IO, "what the process that starts the model needed could not be asked: %s",
	                 strerror(errno));
}

/* Runs it in a child; the child's peak of resident memory in MiB. */
static bool in_child(start_fn what, const char *path, const jit_model_options *mo, const jit_session_options *so,
                     struct report *r, double *rss, jit_error *err)
{
	struct error why = { 0 };
	int pipe_fd[2], status = 0;

	memset(r, 0, sizeof *r);
	if (pipe(pipe_fd) != 0) {
		error_set(&why, ERROR_IO, "no pipe to a process that starts the model: %s", strerror(errno));
		return model_report(err, &why) == JIT_OK;
	}
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(pipe_fd[0]);
		what(path, mo, so, r);
		_exit(tell(pipe_fd[1], r) ? 0 : 1);
	}
	if (pid < 0)
		error_set(&why, ERROR_IO, "no process to start the model in: %s", strerror(errno));
	close(pipe_fd[1]);
	bool heard = pid > 0 && hear(pipe_fd[0], r);
	int failed = errno;
	if (pid > 0 && await(pid, &status, rss, &why) && !heard)
		not_heard(failed, status, &why);
	close(pipe_fd[0]); /* not before it ended: to write where nobody listens is a signal */
	if (why.code != ERROR_NONE)
		return model_report(err, &why) == JIT_OK;
	if (!r->ok)
		*err = r->err;
	return r->ok;
}

enum { LOAD, TTFT, TTFT_SEALED, TTFT_COLD, CODEGEN, RSS };

/* The ways to start, in turn, so that a neighbour who slows the machine slows all. */
static bool measure(const char *path, const jit_model_options way[3], const jit_session_options *so, long repetitions,
                    bool sealed, struct series s[START_ROWS], struct report last[3], jit_error *err)
{
	double rss, ignored;

	if (!in_child(start_once, path, &way[0], so, &last[0], &rss,
	              err)) /* fills the page cache and the cache of kernels */
		return false;
	for (long i = 0; i < repetitions; i++) {
		for (int w = 0; w < 3; w++)
			if ((sealed || w != 1) &&
			    !in_child(start_once, path, &way[w], so, &last[w], w == 0 ? &rss : &ignored, err))
				return false;
		const double value[START_ROWS] = { last[0].load,        last[0].first_token,   last[1].first_token,
			                           last[2].first_token, 1e3 * last[2].codegen, rss };
		for (int k = 0; k < START_ROWS; k++) {
			s[k].limit[s[k].n] = last[2].first_token;
			s[k].value[s[k].n++] = value[k];
		}
	}
	return true;
}

/* Every kernel that a session can need, into a pack in the cache's place. */
static void write_pack(const char *path, const jit_model_options *mo, const jit_session_options *so, struct report *r)
{
	struct error e = { 0 };
	struct device *d = device_open(mo->device ? mo->device : "cpu", mo->isa, &e);

	r->unsealed = d && !d->facts.keeps_code;
	if (d && !r->unsealed) {
		const struct key_list_options o = {
			.target = d->facts.target,
			.dataflow = d->facts.awaits,
			.kv = KEY_LIST_KV_ANY,
			.activations = mo->f32_activations ? KEY_LIST_F32_ACTIVATIONS : KEY_LIST_INT8_ACTIVATIONS,
			.numerics = mo->bounded_numerics ? KEY_LIST_BOUNDED : KEY_LIST_EXACT
		};
		r->ok = kernels_write_pack(path, &o, d->linker, mo->cache_dir, &e);
	} else {
		r->ok = r->unsealed;
	}
	device_close(d);
	if (!r->ok)
		snprintf(r->err.message, sizeof r->err.message, "%s", e.text);
}

bool start_measure(const char *path, const jit_model_options *model, const jit_session_options *session,
                   long repetitions, double noise, struct row out[START_ROWS], jit_error *err)
{
	static const char *const name[START_ROWS] = { "load", "ttft", "ttft sealed", "ttft cold", "codegen", "rss" };
	static const char *const unit[START_ROWS] = { "s", "s", "s", "s", "ms", "MiB" };
	jit_model_options way[3] = { *model, *model, *model };
	jit_session_options so = *session;
	struct series s[START_ROWS] = { 0 };
	struct report last[3];
	const char *tmp = getenv("TMPDIR");
	char pack[256];
	double ignored;
	bool sealed = false;

	snprintf(pack, sizeof pack, "%.200s/jitbench-XXXXXX.jkp", tmp ? tmp : "/tmp");
	int fd = mkstemps(pack, 4);
	if (fd < 0) {
		struct error why = { 0 };
		error_set(&why, ERROR_IO, "no temporary file %s could be made: %s", pack, strerror(errno));
		return model_report(err, &why) == JIT_OK;
	}
	close(fd);
	way[1].sealed = 1;
	way[1].cache_dir = pack;
	way[2].cache_dir = "";
	so.context = CONTEXT;
	bool ok = in_child(write_pack, path, &way[1], &so, &last[1], &ignored, err) &&
	          measure(path, way, &so, repetitions, sealed = !last[1].unsealed, s, last, err);
	unlink(pack);
	for (int k = 0; ok && k < START_ROWS; k++) {
		out[k] = (struct row){ 0 };
		if (k == TTFT_SEALED && !sealed)
			continue;
		out[k] = (struct row){ .unit = unit[k],
			               .threads = last[0].threads,
			               .count = k == CODEGEN ? last[2].generated : 0,
			               .n_prompt = k >= TTFT && k <= TTFT_COLD ? PROMPT : 0 };
		if (k == TTFT || k == TTFT_SEALED) {
			out[k].work = 1;
			out[k].limit_name = "ttft cold";
			out[k].limit_unit = "s";
		}
		snprintf(out[k].test, sizeof out[k].test, "%s", name[k]);
		row_fill(&out[k], &s[k], noise);
	}
	return ok;
}

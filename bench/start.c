#include "bench/start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/session.h"
#include "runtime/system.h"

enum { PROMPT = 8, CONTEXT = 512 };

/* What a child tells. */
struct report { bool ok; double load, first_token, codegen; long generated; int threads; jit_error err; };

static void start_once(const char *path, const jit_model_options *mo, const jit_session_options *so, struct report *r)
{
	double start = system_seconds();
	int32_t ids[PROMPT], id;
	jit_model *m = jit_model_open(path, mo, &r->err);
	jit_session *s = m ? jit_session_open(m, so, &r->err) : NULL;
	jit_model_info info;
	jit_session_stats stats;

	if (s) {
		jit_model_get_info(m, &info);
		for (int i = 0; i < PROMPT; i++)
			ids[i] = (i + 1) % info.vocab;
		r->ok = jit_session_feed(s, ids, PROMPT, &r->err) == JIT_OK && jit_session_next(s, &id, &r->err) == JIT_OK;
		r->first_token = system_seconds() - start;
		session_rest(s);                         /* so that what is counted does not depend on who was faster */
		jit_session_get_stats(s, &stats);
		r->load = info.load_seconds;
		r->codegen = stats.generate_seconds;
		r->generated = (long)stats.kernels_generated;
		r->threads = stats.threads;
	}
	jit_session_close(s);
	jit_model_close(m);
}

/* Runs it in a child; the child's peak of resident memory in MiB. */
static bool in_child(const char *path, const jit_model_options *mo, const jit_session_options *so, struct report *r, double *rss, jit_error *err)
{
	struct rusage usage = { 0 };
	int pipe_fd[2], status = 0;

	memset(r, 0, sizeof *r);
	if (pipe(pipe_fd) != 0) {
		snprintf(err->message, sizeof err->message, "no pipe to a process that starts the model: %s", strerror(errno));
		return false;
	}
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(pipe_fd[0]);
		start_once(path, mo, so, r);
		_exit(write(pipe_fd[1], r, sizeof *r) == (ssize_t)sizeof *r ? 0 : 1);
	}
	close(pipe_fd[1]);
	bool told = pid > 0 && read(pipe_fd[0], r, sizeof *r) == (ssize_t)sizeof *r;      /* smaller than a pipe's atomic write */
	close(pipe_fd[0]);
	if (pid > 0)
		wait4(pid, &status, 0, &usage);
	if (!told)
		snprintf(err->message, sizeof err->message, "the process that starts the model ended early, with status %d", status);
	else if (!r->ok)
		*err = r->err;
	*rss = (double)usage.ru_maxrss / 1024;
	return told && r->ok;
}

bool start_measure(const char *path, const jit_model_options *model, const jit_session_options *session, long repetitions, double noise,
                   struct row out[START_ROWS], jit_error *err)
{
	static const char *const name[START_ROWS] = { "load", "ttft", "codegen", "rss" }, *const unit[START_ROWS] = { "s", "s", "ms", "MiB" };
	jit_model_options cold = *model;
	jit_session_options so = *session;
	struct series s[START_ROWS] = { 0 };
	struct report warm, generated;
	double rss, ignored;

	cold.cache_dir = "";
	so.context = CONTEXT;
	if (!in_child(path, model, &so, &warm, &rss, err))       /* fills the page cache and the cache of kernels */
		return false;
	for (long i = 0; i < repetitions; i++) {
		if (!in_child(path, model, &so, &warm, &rss, err) || !in_child(path, &cold, &so, &generated, &ignored, err))
			return false;
		double value[START_ROWS] = { warm.load, warm.first_token, 1e3 * generated.codegen, rss };
		for (int k = 0; k < START_ROWS; k++)
			s[k].value[s[k].n++] = value[k];
	}
	for (int k = 0; k < START_ROWS; k++) {
		out[k] = (struct row){ .unit = unit[k], .threads = warm.threads, .count = k == 2 ? generated.generated : 0, .n_prompt = k == 1 ? PROMPT : 0 };
		snprintf(out[k].test, sizeof out[k].test, "%s", name[k]);
		row_fill(&out[k], &s[k], noise);
	}
	return true;
}

/* programs/jitserve_main.c - the jitserve program: serves models over HTTP.
 *
 * Owns: one run, from the socket to the end, and what signals mean.
 */
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "programs/allocator.h"
#include "programs/jitserve.h"
#include "programs/output.h"
#include "programs/progress.h"
#include "runtime/host/system.h"
#include "server/batcher.h"
#include "server/http.h"
#include "server/models.h"
#include "server/notify.h"
#include "server/replay.h"
#include "server/server.h"
#include "server/tool_calls.h"

enum { TOLD_SECONDS = 2 };

static sem_t asked_to_stop;
static jit_cancel *cancel; /* of what is loading */
static struct served served[SERVE_MOST_MODELS];
static struct sampling_args sampling[SERVE_MOST_MODELS]; /* what the sampling of each points to */
static struct models models = { .list = served };
static struct server server;
static char *template_text; /* of --template */

/* The second one ends the program at once. */
static void on_stop(int sig)
{
	signal(sig, SIG_DFL);
	jit_cancel_set(cancel, 1);
	sem_post(&asked_to_stop);
}

static int fail(const char *text)
{
	fprintf(stderr, "jitserve: %s.\n", text);
	return SERVE_FAILED;
}

int serve_usage(const char *text)
{
	fprintf(stderr, "jitserve: %s\nTry 'jitserve --help'.\n", text);
	return SERVE_USAGE;
}

static bool listen_for_signals(jit_error *err)
{
	struct sigaction on = { .sa_handler = on_stop };

	cancel = jit_cancel_open(err);
	if (!cancel)
		return false;
	sem_init(&asked_to_stop, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGTERM, &on, NULL);
	sigaction(SIGINT, &on, NULL);
	return true;
}

static int on_progress(void *user, uint64_t done, uint64_t total)
{
	atomic_store(&server.to_load, total);
	atomic_store(&server.loaded, done);
	return 0;
}

static bool open_model(struct served *m, jit_error *err)
{
	const jit_model_options o =
		JIT_MODEL_OPTIONS(.device = serve.device, .isa = serve.isa, .threads = (int)serve.threads,
	                          .sealed = serve.sealed, .cache_dir = serve.no_cache ? "" : serve.cache_dir,
	                          .progress = on_progress, .cancel = cancel);

	m->model = jit_model_open(m->path, &o, err);
	m->info = JIT_MODEL_INFO();
	m->created = (long)time(NULL);
	return m->model && jit_model_get_info(m->model, &m->info, err) == JIT_OK;
}

/* What a request's answer is chosen by where it says nothing. */
static bool take_sampling(struct served *m, jit_error *err)
{
	struct sampling_args *a = &sampling[m - served];

	*a = serve.sampling;
	m->has_seed = a->seed >= 0;
	m->most = serve.predict;
	if (!sampling_args_fill(a, m->model, m->path, err))
		return false;
	m->sampling = sampling_args_make(a);
	return true;
}

static int kv_type(void)
{
	if (strcmp(serve.kv_type, "q8_0") == 0)
		return JIT_KV_Q8_0;
	return strcmp(serve.kv_type, "f32") == 0 ? JIT_KV_F32 : JIT_KV_F16;
}

static int speculation(void)
{
	if (strcmp(serve.speculate, "off") == 0)
		return JIT_SPECULATE_OFF;
	return strcmp(serve.speculate, "auto") == 0 ? JIT_SPECULATE_AUTO : atoi(serve.speculate);
}

/* Of --template, or of the model's files. */
static enum tools_form find_tools_form(const struct served *m)
{
	jit_metadata d;

	if (template_text)
		return tools_form_of(template_text);
	for (size_t i = 0; i < jit_model_metadata_count(m->model); i++) {
		d = JIT_METADATA();
		if (jit_model_metadata(m->model, i, &d, NULL) == JIT_OK && d.text &&
		    strcmp(d.key, "tokenizer.chat_template") == 0)
			return tools_form_of(d.text);
	}
	return tools_form_of(NULL);
}

/* Of --pooling, or of the model's files. */
static int pooling_of(const struct served *m)
{
	jit_model_info info = JIT_MODEL_INFO();

	if (serve.pooling)
		return strcmp(serve.pooling, "mean") == 0 ? JIT_POOL_MEAN : JIT_POOL_LAST;
	return jit_model_get_info(m->model, &info, NULL) == JIT_OK && info.pooling == JIT_POOL_MEAN
	               ? JIT_POOL_MEAN
	               : JIT_POOL_LAST;
}

static bool open_batcher(struct served *m, jit_error *err)
{
	struct batcher_options o = {
		.model = m->model,
		.parallel = (unsigned)serve.parallel,
		.queue = (unsigned)serve.queue,
	};

	o.batch = JIT_BATCH_OPTIONS(.threads = (int)serve.threads, .context = (int)serve.context, .kv = kv_type(),
	                            .speculate = speculation(), .max_pass_ms = (int)serve.pass_ms,
	                            .kv_bytes = (uint64_t)serve.kv_mib << 20);
	m->template_text = template_text;
	m->kv = serve.kv_type;
	m->numerics = "exact";
	m->tools = (int)find_tools_form(m);
	m->pooling = pooling_of(m);
	m->batcher = batcher_open(&o, err);
	return m->batcher != NULL;
}

/* What names the model in X-Jitrun-Replay. */
static bool read_fingerprint(struct served *m, jit_error *err)
{
	struct error e = { 0 };

	if (serve.no_replay || serve_fingerprint(m->model, &m->fingerprint, &e))
		return true;
	snprintf(err->message, sizeof err->message, "%s", e.text);
	return false;
}

static bool open_models(jit_error *err)
{
	for (int i = 0; i < serve.n_models; i++) {
		served_name(&served[i], serve.model[i], i == 0 ? serve.alias : NULL);
		models.n++;
		if (!open_model(&served[i], err) || !take_sampling(&served[i], err) ||
		    !read_fingerprint(&served[i], err) || !open_batcher(&served[i], err))
			return false;
	}
	return true;
}

/* What still runs fails, so that its clients are answered. */
static void stop_batchers(void)
{
	for (size_t i = 0; i < models.n; i++)
		if (served[i].batcher)
			batcher_stop(served[i].batcher);
}

static void close_models(void)
{
	for (size_t i = 0; i < models.n; i++) {
		batcher_close(served[i].batcher);
		jit_model_close(served[i].model);
	}
	free(template_text);
}

static bool read_template(struct error *err)
{
	enum { MOST = 1 << 20 };
	const char *path = serve.template_file;

	if (!path)
		return true;
	FILE *f = fopen(path, "rbe");
	if (!f)
		return error_set(err, ERROR_IO, "%s: cannot be opened: %s", path, strerror(errno));
	template_text = calloc(1, MOST + 1);
	size_t n = template_text ? fread(template_text, 1, MOST + 1, f) : 0;
	bool ok = template_text && !ferror(f) && n <= MOST;
	fclose(f);
	return ok || error_set(err, ERROR_IO, "%s: cannot be read, or has more than %d bytes", path, MOST);
}

static bool open_server(struct error *err)
{
	server.o = (struct server_options){
		.host = serve.host,
		.port = serve.port,
		.connections = serve.connections,
		.per_address = serve.per_address,
		.read_seconds = serve.read_seconds,
		.alive_seconds = serve.alive_seconds,
		.body_bytes = serve.body_mib << 20,
		.unread_bytes = serve.unread_kib << 10,
		.insecure = serve.insecure,
	};
	server.origin = (struct origin_rules){ .host = serve.allow_host.value,
		                               .n_hosts = (size_t)serve.allow_host.n,
		                               .page = serve.cors_origin.value,
		                               .n_pages = (size_t)serve.cors_origin.n };
	server.models = &models;
	if (serve.api_key_file && !(server.keys = keys_read(serve.api_key_file, err)))
		return false;
	return server_open(&server, err);
}

static void wait_for_requests(double seconds)
{
	double end = system_seconds() + seconds;
	const struct timespec moment = { .tv_nsec = 20000000 };

	while (atomic_load(&server.requests) && system_seconds() < end)
		nanosleep(&moment, NULL);
}

/* Requests that run may end; those that come are refused. What runs on then is failed, and still told so. */
static void stop(void)
{
	atomic_store(&server.state, SERVER_STOPPING);
	notify("STOPPING=1");
	wait_for_requests((double)serve.stop_seconds);
	stop_batchers();
	wait_for_requests(TOLD_SECONDS);
}

/* --replay: no socket, one answer. */
static int replay(void)
{
	struct error e = { 0 };
	jit_error je = { 0 };

	bool opened = read_template(&e) && open_models(&je);
	server.models = &models;
	server.o.body_bytes = serve.body_mib << 20;
	bool ok = opened && replay_file(&server, serve.replay, stdout, &e);
	stop_batchers();
	close_models();
	return ok ? SERVE_DONE : fail(opened || e.code ? e.text : je.message);
}

int serve_run(void)
{
	struct error e = { 0 };
	jit_error je = { 0 };

	if (!listen_for_signals(&je))
		return fail(je.message);
	if (serve.replay)
		return replay();
	if (!read_template(&e) || !open_server(&e))
		return fail(e.text);
	bool ready = open_models(&je);
	if (ready) {
		atomic_store(&server.state, SERVER_READY);
		notify("READY=1");
		fprintf(stderr, "jitserve: ready on http://%s\n", server.listener.address);
		while (sem_wait(&asked_to_stop) && errno == EINTR)
			;
	}
	bool stopped = ready || jit_cancel_get(cancel);
	stop();
	server_close(&server);
	close_models();
	jit_cancel_close(cancel);
	return stopped ? SERVE_DONE : fail(je.message);
}

int main(int argc, char **argv)
{
	output_begin();
	allocator_begin();
	system_file_limit_is_error();
	return output_end("jitserve", serve_begin(argc, argv), SERVE_FAILED);
}

/* programs/jitserve/jitserve_main.c - the jitserve program: serves models over HTTP.
 *
 * Owns: one run, from the socket to the end, and what signals mean.
 */
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "programs/common/allocator.h"
#include "programs/jitserve/jitserve.h"
#include "programs/common/model_names.h"
#include "programs/common/output.h"
#include "programs/common/preset.h"
#include "programs/common/progress.h"
#include "runtime/host/system.h"
#include "server/control/fetch.h"
#include "server/talk/picture_fetch.h"
#include "server/http/http.h"
#include "server/engine/loader.h"
#include "server/engine/model_events.h"
#include "server/http/notify.h"
#include "server/api/replay.h"
#include "server/http/server.h"

enum { TOLD_SECONDS = 2, ARRIVING_SECONDS = 1 };

static sem_t stop_requested;
static atomic_bool no_device; /* one has failed, and the server ends for that */
static jit_cancel *cancel;    /* of what is loading */
static struct served served[SERVE_MAX_MODELS];
static struct model_named named[SERVE_MAX_MODELS];
static struct models models = { .list = served };
static struct server server;

/* The second one ends the program at once. */
static void on_stop(int sig)
{
	signal(sig, SIG_DFL);
	jit_cancel_set(cancel, 1);
	sem_post(&stop_requested);
}

void serve_device_failed(void *user, const char *why)
{
	struct served *m = user;

	if (serve_moves()) {
		if (loader_move(models.loader, m, why))
			fprintf(stderr, "jitserve: the model %s is opened again on the CPU: %s.\n", m->name, why);
		return;
	}
	if (atomic_exchange(&no_device, serve.exit_on_failure || serve.ranks))
		return;
	fprintf(stderr, "jitserve: the model %s cannot be computed any more: %s.\n", m->name, why);
	if (atomic_load(&no_device))
		sem_post(&stop_requested);
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
	sem_init(&stop_requested, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGTERM, &on, NULL);
	sigaction(SIGINT, &on, NULL);
	return true;
}

/* Said at the start, and not when somebody wants to save something. */
bool serve_is_folder(const char *option, const char *path, bool writes, struct error *err)
{
	struct stat st;

	if (stat(path, &st))
		return error_set(err, ERROR_IO, "%s is %s, which cannot be opened: %s", option, path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return error_set(err, ERROR_ARGUMENT, "%s is %s, which is no folder", option, path);
	return access(path, R_OK | X_OK | (writes ? W_OK : 0)) == 0 ||
	       error_set(err, ERROR_IO, "%s is %s, which this user may not %s: %s", option, path,
	                 writes ? "write" : "read", strerror(errno));
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
		.answers = serve.answers,
		.responses = serve.responses,
		.responses_mib = serve.responses_mib,
		.responses_seconds = serve.responses_seconds,
		.give_back = allocator_give_back,
		.body_bytes = serve.body_mib << 20,
		.unread_bytes = serve.unread_kib << 10,
		.insecure = serve.insecure,
		.no_page = serve.no_page,
		.slot_limits = { .files = serve.slot_files, .bytes = (uint64_t)serve.slot_mib << 20 },
		.slot_folder = serve.slot_save,
		.lora_folder = serve.lora_dir,
		.pull_with = serve.pull_with,
	};
	server.origin = (struct origin_rules){ .host = serve.allow_host.value,
		                               .n_hosts = (size_t)serve.allow_host.n,
		                               .page = serve.cors_origin.value,
		                               .n_pages = (size_t)serve.cors_origin.n };
	models.hides_slots = serve.no_slots;
	server.models = &models;
	if (serve.slot_save && !serve_is_folder("--slot-save", serve.slot_save, true, err))
		return false;
	if ((serve.api_key_file || serve.api_key.n) &&
	    !(server.keys = keys_gather(serve.api_key.value, (size_t)serve.api_key.n, serve.api_key_file, err)))
		return false;
	return tls_read(&server.tls, serve.tls_cert, serve.tls_key, err) && server_open(&server, err);
}

/* For those that are still on their way no longer than ARRIVING_SECONDS: their clients may never send the rest. */
static void wait_for_requests(double seconds)
{
	const double now = system_seconds(), end = now + seconds, arrive = now + ARRIVING_SECONDS;
	const struct timespec moment = { .tv_nsec = 20000000 };

	for (double at = now; at < end; at = system_seconds()) {
		if (atomic_load(at < arrive ? &server.requests : &server.running) == 0)
			return;
		nanosleep(&moment, NULL);
	}
}

/* Requests that run may end; those that come are refused. What runs on then is failed, and still told so. */
static void stop(void)
{
	atomic_store(&server.state, SERVER_STOPPING);
	notify("STOPPING=1");
	model_events_end();
	wait_for_requests((double)serve.stop_seconds);
	fetch_end();
	picture_fetch_end();
	if (models.loader)
		loader_stop(models.loader);
	wait_for_requests(TOLD_SECONDS);
}

/* Each is called as it was asked for, where that is a name. */
static bool name_models(struct error *err)
{
	for (int i = 0; i < serve.n_models; i++) {
		const char *alias = i < serve.alias.n ? serve.alias.value[i] : NULL;
		struct model_named *m = &named[i];
		struct preset p = { 0 };
		char *file = NULL;
		bool ok = model_named(m, serve.model[i], err);
		if (ok && !m->name && preset_is(m->path)) { /* a preset that names its model */
			file = strdup(m->path);             /* for as long as the program runs */
			ok = file && preset_open(&p, m, err);
		}
		serve_preset_from((size_t)i, m->manifest, file);
		preset_free(&p);
		if (!ok || !models_add(&models, m->path, alias ? alias : m->name, m->name ? serve.model[i] : NULL, err))
			return false;
	}
	return true;
}

/* The others are opened as they are asked for. */
static bool open_first(struct error *err)
{
	jit_error e = { 0 };

	if (!serve.n_models || loader_first(models.loader, &served[0], &e))
		return loader_start(models.loader, err);
	return error_set(err, ERROR_IO, "%s", e.message);
}

/* Until a signal or a failure ends the server. A rank may die while no request runs, so ranks are checked here. */
static void wait_for_end(void)
{
	enum { LOOK_MS = 100 };

	for (;;) {
		struct timespec until;
		struct error e = { 0 };
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOOK_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if ((serve.ranks ? sem_timedwait(&stop_requested, &until) : sem_wait(&stop_requested)) == 0)
			return;
		if (serve.ranks && errno == ETIMEDOUT && !serve_ranks_alive(&e))
			serve_device_failed(&served[0], e.text);
	}
}

/* --replay: no socket, one answer. */
static int replay(void)
{
	struct error e = { 0 };

	/* What nobody asks for depends on the memory of the machine. */
	if (!serve.context)
		serve.context = replay_context(serve.replay);
	server.models = &models;
	server.o.body_bytes = serve.body_mib << 20;
	server.o.answers = serve.answers;
	bool ok = serve_adapters_open(&models, &e) && serve_models_open(&server, cancel, &e) &&
	          replay_file(&server, serve.replay, stdout, &e);
	serve_models_close();
	serve_adapters_close(&models);
	serve_ranks_close();
	return ok ? SERVE_DONE : fail(e.text);
}

int serve_run(void)
{
	struct error e = { 0 };
	jit_error je = { 0 };
	int status;

	if (serve.alias.n > serve.n_models)
		return serve_usage("--alias was given more often than there are models");
	if (serve_ranks_refused())
		return serve_usage(serve_ranks_refused());
	if (serve_failure_refused())
		return serve_usage(serve_failure_refused());
	if (serve_draft_refused())
		return serve_usage(serve_draft_refused());
	if (!listen_for_signals(&je))
		return fail(je.message);
	if (!name_models(&e))
		return fail(e.text);
	if (serve.ranks && !serve_ranks_open(served[0].path, &status, &e))
		return e.code ? fail(e.text) : status;
	if (serve.replay)
		return replay();
	if (!serve_folder_open(&models, &e) || !serve_made_open(&models, &e) || !serve_adapters_open(&models, &e) ||
	    !open_server(&e))
		return fail(e.text);
	bool ready = serve_models_open(&server, cancel, &e) && open_first(&e);
	if (ready) {
		atomic_store(&server.state, SERVER_READY);
		notify("READY=1");
		fprintf(stderr, "jitserve: ready on http%s://%s\n", server.tls.credentials ? "s" : "",
		        server.listener.address);
		wait_for_end();
	}
	bool stopped = ready || jit_cancel_get(cancel);
	stop();
	server_close(&server);
	serve_models_close();
	serve_adapters_close(&models);
	serve_ranks_close();
	jit_cancel_close(cancel);
	output_memory_told();
	if (atomic_load(&no_device))
		return SERVE_NO_DEVICE;
	return stopped ? SERVE_DONE : fail(e.text);
}

int main(int argc, char **argv)
{
	output_begin();
	allocator_begin();
	system_file_limit_is_error();
	return output_end("jitserve", serve_begin(argc, argv), SERVE_FAILED);
}

/* programs/jitserve/jitserve_models.c - the models of the jitserve program: how each is opened, and how much memory
 * they may take.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "answers/tool_calls.h"
#include "programs/common/facts.h"
#include "programs/jitserve/jitserve.h"
#include "programs/common/model_facts.h"
#include "programs/common/shared_rows.h"
#include "runtime/host/system.h"
#include "runtime/model/model_notes.h"
#include "server/engine/batcher.h"
#include "server/talk/history.h"
#include "server/engine/loader.h"
#include "server/engine/models.h"
#include "server/http/server.h"
#include "server/request/text_file.h"

/* Of what is free when the server starts, several models may take so much; of that their KV caches so much, in equal
 * parts. */
enum { SHARE_OF_FREE = 8, SHARE_OF_CACHES = 4 };
/* Models that are open at once, where there may be more of them and nobody says. */
enum { MANY_AT_ONCE = 4 };

static struct sampling_args sampling[SERVE_MAX_MODELS]; /* what the sampling of each points to */
static long kept_context[SERVE_MAX_MODELS];             /* what its preset says; 0: nothing */
static struct server *server;
static jit_cancel *cancel;
static uint64_t limit;      /* UINT64_MAX: none */
static char *template_text; /* of --template */

static int on_progress(void *user, uint64_t done, uint64_t total)
{
	atomic_store(&server->to_load, total);
	atomic_store(&server->loaded, done);
	return loader_progress(server->models->loader, user, done, total) ? 0 : 1;
}

jit_model_options serve_model_options(const struct served *m)
{
	return JIT_MODEL_OPTIONS(.device = serve_device_of(m), .isa = serve.isa, .threads = (int)serve.threads,
	                         .sealed = serve.sealed, .cache_dir = serve.no_cache ? "" : serve.cache_dir,
	                         .bounded_numerics = numerics_option(serve.numerics), .ranks = serve.ranks,
	                         .split = serve.split);
}

static bool open_weights(struct served *m, jit_error *err)
{
	jit_model_options o = serve_model_options(m);

	o.progress = on_progress;
	o.progress_user = m;
	o.cancel = cancel;
	m->device = o.device;
	m->model = serve.ranks ? serve_ranks_take(err) : jit_model_open(m->path, &o, err);
	m->info = JIT_MODEL_INFO();
	if (!m->model || jit_model_get_info(m->model, &m->info, err) != JIT_OK)
		return false;
	if (numerics_stay_exact(serve.numerics, &m->info))
		numerics_note("jitserve", &m->info);
	if (model_sampling_not_done(m->model) && !serve.quiet)
		fprintf(stderr,
		        "jitserve: generation_config.json of the model %s asks for what is not done here: %s.\n",
		        m->name, model_sampling_not_done(m->model));
	if (m->info.bounded == JIT_BOUNDED_PROMPTS) {
		err->code = JIT_ERROR_ARGUMENT;
		snprintf(err->message, sizeof err->message,
		         "--numerics bounded: on the device %s answers would depend on how their prompts are cut, so "
		         "that it must be exact there",
		         serve_device_of(m));
		return false;
	}
	/* It is the same each time, and outlives the model in lists. */
	if (!m->description[0])
		snprintf(m->description, sizeof m->description, "%s", m->info.description);
	m->info.description = m->description;
	return true;
}

/* What a request's answer is chosen by where it says nothing. */
static bool take_sampling(struct served *m, jit_error *err)
{
	struct sampling_args *a = &sampling[m - server->models->list];

	const size_t i = (size_t)(m - server->models->list);

	*a = serve.sampling;
	m->additional = serve.additional;
	m->max = serve.predict;
	if (!serve_preset_use(m, i, a, &kept_context[i], err))
		return false;
	m->has_seed = a->seed >= 0;
	if (!sampling_args_fill(a, m->model, m->path, err))
		return false;
	m->sampling = sampling_args_make(a);
	return true;
}

/* Of --template, or of the model's files. */
static enum tools_form find_tools_form(const struct served *m)
{
	jit_metadata d;

	if (template_text || m->own_template)
		return tools_form_of(template_text ? template_text : m->own_template);
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
		return strcmp(serve.pooling, "mean") == 0   ? JIT_POOL_MEAN
		       : strcmp(serve.pooling, "cls") == 0  ? JIT_POOL_CLS
		       : strcmp(serve.pooling, "rank") == 0 ? JIT_POOL_RANK
		       : strcmp(serve.pooling, "none") == 0 ? JIT_POOL_NONE
		                                            : JIT_POOL_LAST;
	if (jit_model_get_info(m->model, &info, NULL) != JIT_OK || info.pooling == JIT_POOL_NONE)
		return JIT_POOL_LAST;
	return info.pooling;
}

/* Models that may be open at once. */
static size_t together(void)
{
	size_t n = serve_has_more() ? SERVE_MAX_MODELS : server->models->n, max = (size_t)serve.models_max;

	return max && max < n ? max : n;
}

/* Memory for the KV cache of a model; 0: as the library does, which takes half of what is free. */
static uint64_t cache_bytes(const struct served *m)
{
	size_t n = together();

	if (serve.kv_mib || limit == UINT64_MAX)
		return (uint64_t)serve.kv_mib << 20;
	return n > 1                          ? limit / SHARE_OF_CACHES / n
	       : limit > m->info.weight_bytes ? (limit - m->info.weight_bytes) / 2
	                                      : 1;
}

static enum reasoning reasoning(void)
{
	if (!serve.reasoning || strcmp(serve.reasoning, "template") == 0 || strcmp(serve.reasoning, "auto") == 0)
		return REASONING_TEMPLATE;
	return strcmp(serve.reasoning, "on") == 0 ? REASONING_ON : REASONING_OFF;
}

/* Where it is not said, one client leaves an eighth of the queue to others. */
static unsigned of_client(void)
{
	enum { SHARE = 8 };

	return (unsigned)(serve.client_answers ? serve.client_answers
	                                       : serve.parallel + serve.queue - serve.queue / SHARE);
}

static long context_of(const struct served *m)
{
	return serve.context || serve_given("context") ? serve.context : kept_context[m - server->models->list];
}

static bool open_batcher(struct served *m, jit_error *err)
{
	struct batcher_options o = {
		.model = m->model,
		.adapters = m->adapters,
		.parallel = (unsigned)serve.parallel,
		.queue = (unsigned)serve.queue,
		.of_client = of_client(),
		.check = (unsigned)serve.check_bits,
		.device_failed = serve_device_failed,
		.user = m,
	};

	o.batch = JIT_BATCH_OPTIONS(.threads = (int)serve.threads, .context = (int)context_of(m),
	                            .kv = kv_type_option(serve.kv_type), .tokens = (int)serve.batch_tokens,
	                            .speculate = speculate_option(serve.speculate), .max_pass_ms = (int)serve.pass_ms,
	                            .kv_bytes = cache_bytes(m));
	m->template_text = template_text ? template_text : m->own_template;
	m->reasoning = reasoning();
	m->has_budget = serve.reasoning_budget >= 0;
	m->budget = serve.reasoning_budget;
	m->budget_message = serve.reasoning_message;
	m->verbose = serve.verbose;
	m->suffix_first = serve.spm_infill;
	m->keeps_reasoning = serve.reasoning_format && strcmp(serve.reasoning_format, "none") == 0;
	m->kv = serve.kv_type;
	m->numerics = m->info.bounded == JIT_BOUNDED_ALL ? "bounded" : "exact";
	m->tools = (int)find_tools_form(m);
	models_find_marks(m);
	history_probe(m);
	m->pooling = pooling_of(m);
	if (!serve_draft_enter(m, server->models, cancel, &o.batch, err))
		return false;
	m->batcher = batcher_open(&o, err);
	if (!m->batcher && strncmp(err->message, "kv_bytes:", 9) == 0)
		err->code = JIT_ERROR_ARGUMENT; /* no other model needs to leave for that */
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

static void close_model(struct served *m)
{
	if (m->batcher)
		batcher_stop(m->batcher);
	serve_sight_leave(m);
	batcher_close(m->batcher);
	serve_draft_leave(m);
	if (m->adapters)
		served_adapters_leave(m->adapters);
	jit_model_close(m->model);
	m->batcher = NULL;
	m->model = NULL;
}

/* What an answer may have, and how much of that there is for all. */
static void tell_context(const struct served *m, const struct batcher_numbers *n)
{
	const int context = batcher_context(m->batcher), trained = m->info.context_trained;
	char why[80] = "trained", bytes[FACTS_SIZE];

	if (serve.quiet || serve.replay)
		return;
	if (m->info.encodes) {
		fprintf(stderr, "jitserve: %s: context %d; the model encodes texts\n", m->name, context);
		return;
	}
	if (serve.context)
		snprintf(why, sizeof why, "--context");
	else if (context_of(m))
		snprintf(why, sizeof why, "its preset");
	else if (context < trained)
		snprintf(why, sizeof why, "trained for %d, --context N asks for more", trained);
	fprintf(stderr, "jitserve: %s: context %d (%s); key/value memory for %.1f full texts: %s, taken as they grow\n",
	        m->name, context, why, (double)n->batch.pages * 128 / context, facts_size(bytes, n->batch.kv_bytes));
}

static bool open_on_device(struct served *m, jit_error *err)
{
	struct batcher_numbers n;

	if (!open_weights(m, err) || !take_sampling(m, err) || !read_fingerprint(m, err) ||
	    !serve_adapters_enter(m, err) || !serve_sight_enter(m, err) || !open_batcher(m, err) ||
	    !serve_sight_start(m, err)) {
		close_model(m);
		return false;
	}
	batcher_get_numbers(m->batcher, &n);
	m->bytes = m->info.weight_bytes + n.batch.kv_bytes + serve_draft_bytes(m) +
	           (m->adapters ? served_adapters_bytes(m->adapters) : 0);
	tell_context(m, &n);
	return true;
}

/* A model that comes later and finds that its device has failed is opened on the CPU, too. At the start that is an
 * error: then the command line may be wrong. */
static bool open_model(struct served *m, jit_error *err)
{
	const bool known = m->lost[0];

	if (open_on_device(m, err)) {
		if (known && !serve.quiet)
			fprintf(stderr, "jitserve: the model %s is computed on the CPU from now on.\n", m->name);
		return true;
	}
	if (err->code != JIT_ERROR_DEVICE || known || !serve_moves() || atomic_load(&server->state) != SERVER_READY ||
	    !loader_move(server->models->loader, m, err->message))
		return false;
	fprintf(stderr, "jitserve: the model %s is opened on the CPU: %s.\n", m->name, err->message);
	*err = (jit_error){ 0 };
	return open_on_device(m, err);
}

/* What weights take is about what their files have; those that grow are seen when they are there. */
static uint64_t estimate(const struct served *m)
{
	struct model_facts f;
	struct error ignored = { 0 };
	struct stat st;
	uint64_t cache = serve.kv_mib || together() > 1 ? cache_bytes(m) : 0;

	if (model_facts_read(&f, m->path, &ignored))
		return f.file_bytes + cache;
	return (stat(m->path, &st) == 0 ? (uint64_t)st.st_size : 0) + cache;
}

static bool read_template(struct error *err)
{
	enum { MAX = 1 << 20 };
	size_t n;

	if (serve.template_file)
		template_text = text_file_read(serve.template_file, MAX, &n, err);
	return template_text || !serve.template_file;
}

/* On a card, its driver says when there is no room. */
static void choose_limit(void)
{
	bool is_host = strcmp(serve.device, "cpu") == 0 || strcmp(serve.device, "ref") == 0;
	uint64_t free_bytes = system_available_memory();

	limit = UINT64_MAX;
	if (serve.memory_mib)
		limit = (uint64_t)serve.memory_mib << 20;
	else if ((serve_has_more() || server->models->n > 1) && is_host && free_bytes != UINT64_MAX)
		limit = free_bytes - free_bytes / SHARE_OF_FREE;
}

/* What is nowhere is said at the start, and not by a request. */
static bool are_there(struct error *err)
{
	for (size_t i = 0; i < server->models->n; i++) {
		struct stat st;
		if (stat(server->models->list[i].path, &st))
			return error_set(err, ERROR_IO, "%s: cannot be opened: %s", server->models->list[i].path,
			                 strerror(errno));
	}
	return true;
}

bool serve_models_open(struct server *s, jit_cancel *c, struct error *err)
{
	server = s;
	cancel = c;
	if (serve.models_max < 0)
		serve.models_max = serve_has_more() ? MANY_AT_ONCE : 0;
	choose_limit();
	const struct loader_options o = {
		.open = open_model,
		.close = close_model,
		.estimate = estimate,
		.limit = limit,
		.max = (size_t)serve.models_max,
		.keep = serve.keep,
		.stays = serve.ranks != NULL
	};
	if (!are_there(err) || !read_template(err))
		return false;
	server->models->loader = loader_open(server->models, &o, err);
	return server->models->loader != NULL;
}

void serve_models_close(void)
{
	loader_close(server ? server->models->loader : NULL);
	free(template_text);
}

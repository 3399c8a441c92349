/* runtime/model/model.c - jit_model: a file made ready. Owns the order of opening and closing; sessions borrow all of
 * it. */
#include "runtime/model/model.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/store/execmem.h"
#include "kernels-templates/templates.h"
#include "runtime/device/generated.h"
#include "runtime/host/cancel.h"
#include "runtime/host/pairs.h"
#include "runtime/model/adapters.h"
#include "runtime/model/load_packed.h"
#include "runtime/model/load_weights.h"
#include "runtime/model/model_ranks.h"
#include "runtime/host/pool.h"
#include "include/jitrun_cards.h"
#include "runtime/model/options.h"
#include "runtime/model/sized.h"
#include "runtime/host/system.h"
#include "runtime/tuning/tuner.h"
#include "runtime/plan/key_list.h"
#include "runtime/model/weight_cache.h"

const char *jit_version(void) { return JITRUN_VERSION; }

int model_report(jit_error *out, const struct error *e)
{
	static const int status[] = {
		[ERROR_NONE] = JIT_OK,
		[ERROR_IO] = JIT_ERROR_IO,
		[ERROR_FORMAT] = JIT_ERROR_FORMAT,
		[ERROR_UNSUPPORTED] = JIT_ERROR_UNSUPPORTED,
		[ERROR_MEMORY] = JIT_ERROR_MEMORY,
		[ERROR_ARGUMENT] = JIT_ERROR_ARGUMENT,
		[ERROR_DEVICE] = JIT_ERROR_DEVICE,
		[ERROR_CANCELLED] = JIT_ERROR_CANCELLED,
		[ERROR_STALLED] = JIT_ERROR_STALLED
	};
	if (out) {
		*out = (jit_error){ .code = status[e->code] };
		memcpy(out->message, e->text, sizeof out->message);
	}
	return status[e->code];
}

/* The kernels that a packed model contains. */
static const char *own_kernels(const jit_model *m, const char *path)
{
	return m->packed && packed_has_kernels(m->packed) && !m->device->facts.interprets ? path : NULL;
}

/* Every kernel the model can need that is kept, once and for all: a session says which ones it misses. That one cannot
 * be read is no such miss, and an error here. */
static bool load_kept(jit_model *m, const jit_cancel *cancel, struct error *err)
{
	const struct key_list_options o = {
		.target = m->target,
		.activations = m->f32_activations ? KEY_LIST_F32_ACTIVATIONS : KEY_LIST_INT8_ACTIVATIONS,
		.kv = KEY_LIST_KV_ANY,
		.numerics = m->bounded ? KEY_LIST_BOUNDED : KEY_LIST_EXACT,
		.dataflow = m->device->facts.awaits,
		.tune = m->tune
	};
	struct error why = { 0 };
	struct key *keys;
	size_t n, loaded = 0;

	if (!key_list_kernels(&m->file.spec, &o, &keys, &n, err))
		return false;
	registry_load(m->registry, keys, n);
	for (size_t i = 0; i < n && (why.code == ERROR_NONE || why.code == ERROR_UNSUPPORTED); i++) {
		struct error missing = { 0 };
		if (cancel_requested(cancel))
			cancel_error(&missing);
		else if (device_has_kernel(m->device, m->registry, &keys[i], &missing))
			loaded++;
		if (missing.code && (why.code == ERROR_NONE || missing.code != ERROR_UNSUPPORTED))
			why = missing;
	}
	free(keys);
	device_load_programs(m->device, m->registry, &m->file.spec, &o);
	registry_freeze(m->registry);
	m->has_all = loaded == n;
	return (loaded && (why.code == ERROR_NONE || why.code == ERROR_UNSUPPORTED)) ||
	       error_set(err, why.code, "%s", why.text);
}

struct kept {
	jit_model *model;
	const jit_cancel *cancel;
	bool ok;
	struct error err;
};

static void *load_kept_main(void *user)
{
	struct kept *k = user;

	system_thread_began();
	k->ok = load_kept(k->model, k->cancel, &k->err);
	return NULL;
}

/* Of the weights: the listener to their progress, and the caller that may cancel. */
struct loading {
	const jit_model_options *options;
	struct error *err;
};

static int load_progress(void *user, uint64_t done, uint64_t total)
{
	const struct loading *l = user;
	const jit_model_options *o = l->options;
	int stop = !cancel_requested(o->cancel) && o->progress ? o->progress(o->progress_user, done, total) : 0;

	/* After the listener too: what it cancels at the last bytes must not depend on which thread read them. */
	if (cancel_requested(o->cancel))
		return !cancel_error(l->err);
	return stop;
}

/* The weights of these files, packed by an earlier run or by this one. NULL without an error: they are packed into
 * memory. */
static struct container *find_kept(jit_model *m, const jit_model_options *o, struct pool *pool, struct loading *l)
{
	const char *requested = o->weight_cache ? o->weight_cache : getenv("JITRUN_WEIGHT_CACHE");
	struct weight_cache_options wo = {
		.limit_bytes = o->weight_cache_limit, .read_only = m->sealed, .progress = load_progress, .user = l
	};
	char usual[4096];

	if (m->ranks || m->packed || !m->device->facts.host_runs || !requested || (!*requested && !o->weight_cache))
		return NULL;
	if (!*requested && !weight_cache_default(usual, sizeof usual)) {
		error_set(&m->kept_trouble, ERROR_ARGUMENT,
		          "there is no directory for packed weights: neither JITRUN_WEIGHT_CACHE is set, nor is "
		          "XDG_CACHE_HOME or HOME an absolute path");
		return NULL;
	}
	wo.dir = *requested ? requested : usual;
	return weight_cache_get(&wo, &m->file, m->target, pool, &m->kept_trouble, l->err);
}

static bool load_weights(jit_model *m, const jit_model_options *o, struct error *err)
{
	struct loading l = { o, err };
	const struct weights_part own = model_part(m), *part = m->ranks ? &own : NULL;
	struct pool *pool = pool_open(o->threads > 0 ? o->threads : system_default_threads(), err);

	if (!pool)
		return false;
	const struct container *c =
		m->packed ? packed_container(m->packed) : (m->kept_weights = find_kept(m, o, pool, &l));
	bool ok = err->code ? false
	          : c       ? weights_open_packed(&m->weights, &m->file, c, m->device, o->copy_weights != 0, pool,
	                                          load_progress, &l, err)
	                    : weights_open(&m->weights, &m->file, part, m->device, pool, load_progress, &l, err);
	ok = ok && (!m->kept_weights || model_read_done(&m->file, err));
	pool_close(pool);
	return ok;
}

/* A sealed model loads its kernels while its weights, which have to wait for memory, are packed: what others generate
 * later on must not be faster. */
static bool load_kept_and_weights(jit_model *m, const jit_model_options *o, struct error *err)
{
	struct kept kept = { .model = m, .cancel = o->cancel };
	pthread_t thread;
	bool beside = pthread_create(&thread, NULL, load_kept_main, &kept) == 0;

	if (!beside)
		kept.ok = load_kept(m, o->cancel, &kept.err);
	bool ok = (beside || kept.ok) && load_weights(m, o, err);
	if (beside)
		pthread_join(thread, NULL);
	return kept.ok ? ok : error_set(err, kept.err.code, "%s", kept.err.text);
}

/* What is known of this processor lies in the cache's first directory; what is found out goes there when it can be
 * written. A sealed model writes nothing. */
static bool open_tune(jit_model *m, int mode, struct error *err)
{
	struct cache_source source = { 0 };

	if (mode == JIT_TUNE_OFF || !m->device->facts.tunes)
		return true;
	for (unsigned i = 0;
	     m->cache && i < cache_source_count(m->cache) && (!source.path || source.kind != CACHE_DIRECTORY); i++)
		cache_source_get(m->cache, i, &source);
	m->tune = tune_open(source.kind == CACHE_DIRECTORY ? source.path : NULL, err);
	m->tune_passes = mode == JIT_TUNE_QUICK ? TUNER_QUICK : 0;
	return m->tune != NULL;
}

/* Pairs of BF16 are for speed alone: where they gain none, results are exact. Each process decides that by what it
 * measures; no cache and no pack says anything about it, and has kernels of either class. A device that interprets code
 * for another CPU does what was asked for, and so does a sealed model: it measures, and generates nothing. */
static void decide_numerics(jit_model *m, int requested)
{
	m->bounded = requested != JIT_NUMERICS_EXACT;
	if (!m->bounded || !m->target->has_dot2)
		return;
	const struct pairs_peaks p = pairs_peaks();
	m->bounded_gain = pairs_gain(&p);
	m->bounded = requested == JIT_NUMERICS_ALWAYS_BOUNDED || m->bounded_gain <= 0 || pairs_pay(&p);
}

static bool open_parts(jit_model *m, const char *path, const jit_model_options *o, struct error *err)
{
	m->sealed = o->sealed != 0;
	if (container_is(path) &&
	    (!(m->packed = packed_open(path, err)) || !container_trusted(packed_container(m->packed), err)))
		return false;
	if (!(m->device = device_open(o->device ? o->device : "cpu", o->isa, err)))
		return false;
	m->target = m->device->facts.target;
	if (m->ranks && !model_ranks_device(m, err))
		return false;
	const struct generated_options kept = {
		.device = m->device,
		.first = own_kernels(m, path),
		.cache_dir = o->cache_dir,
		.cache_limit = o->cache_limit,
		.sealed = m->sealed,
		.dumps = o->dump_ir || o->dump_asm
	};
	if ((o->perf_map && !execmem_perf_map_open(err)) || !generated_dump(&m->dump_ir, o->dump_ir, err) ||
	    !generated_dump(&m->dump_asm, o->dump_asm, err) || !generated_cache(&m->cache, &kept, err) ||
	    !open_tune(m, o->tune, err) || (cancel_requested(o->cancel) && !cancel_error(err)) ||
	    !(m->packed ? packed_model(m->packed, &m->file, 0, err) : model_open(&m->file, path, 0, err)))
		return false;
	m->perf_map = o->perf_map != 0;
	m->f32_activations = o->f32_activations != 0;
	decide_numerics(m, o->bounded_numerics);
	if (m->ranks && !model_ranks_greet(m, o, err))
		return false;
	model_describe(&m->file, m->description, sizeof m->description);
	if ((o->jitdump || o->gdb) && !(m->perf_gdb = perf_gdb_open(o->jitdump, o->gdb != 0, err)))
		return false;
	struct registry_options ro = {
		.build = template_build,
		.cache = m->cache,
		.perf_map = o->perf_map != 0,
		.perf_gdb = m->perf_gdb,
		.dump_ir = m->dump_ir,
		.dump_asm = m->dump_asm,
		.sealed = m->sealed
	};
	m->registry = registry_open(&ro, err);
	if (cancel_requested(o->cancel))
		return cancel_error(err);
	return m->registry && session_fits(m, o, err) && (m->sealed ? load_kept_and_weights : load_weights)(m, o, err);
}

jit_model *jit_model_open(const char *path, const jit_model_options *options, jit_error *err)
{
	struct error e = { 0 };
	double start = system_seconds();
	jit_model *m = calloc(1, sizeof *m);
	jit_model_options own;

	if (!m)
		error_set(&e, ERROR_MEMORY, "no memory for a model");
	else if (!NEEDED(path, &e) || !*path)
		error_set(&e, ERROR_ARGUMENT, "the model's path is empty");
	else if (options_model(&own, options, &e) && model_ranks_open(m, &own, &e)) {
		open_parts(m, path, &own, &e);
		if (m->ranks && !model_ranks_ready(m, &e)) {
			model_report(err, &e);
			jit_model_close(m);
			return NULL;
		}
	}
	if (e.code != ERROR_NONE) {
		model_report(err, &e);
		jit_model_close(m);
		return NULL;
	}
	m->load_seconds = system_seconds() - start;
	return m;
}

int jit_model_written(jit_model *m, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(m, &e))
		return model_report(err, &e);
	if (generated_dump_written(m->dump_ir, "IR", &e) && generated_dump_written(m->dump_asm, "machine code", &e) &&
	    m->perf_gdb)
		perf_gdb_written(m->perf_gdb, &e);
	if (m->perf_map && !execmem_perf_map_written())
		error_set(&e, ERROR_IO, "/tmp/perf-%ld.map: could not be written whole", (long)getpid());
	return model_report(err, &e);
}

int jit_model_alive(const jit_model *m, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(m, &e) && m->device->alive)
		m->device->alive(m->device, &e);
	return model_report(err, &e);
}

void jit_model_close(jit_model *m)
{
	if (!m)
		return;
	perf_gdb_close(m->perf_gdb);
	if (m->registry)
		registry_close(m->registry);
	if (m->cache)
		cache_close(m->cache);
	tune_close(m->tune);
	session_grammar_forget(m);
	adapters_close(m);
	weights_close(&m->weights);
	device_close(m->device);
	ranks_close(m->ranks);
	if (m->file.file)
		model_close(&m->file);
	packed_close(m->packed);
	container_close(m->kept_weights);
	if (m->dump_ir && m->dump_ir != stdout)
		fclose(m->dump_ir);
	if (m->dump_asm && m->dump_asm != stdout)
		fclose(m->dump_asm);
	free(m);
}

static jit_model_info info_of(const jit_model *m)
{
	const struct model_spec *s = &m->file.spec;

	return (jit_model_info){
		.description = m->description,
		.vocab = (int)s->vocab,
		.layers = (int)s->layers,
		.hidden = (int)s->hidden,
		.context_trained = (int)s->context_train,
		.has_tokenizer = m->file.tokenizer != NULL,
		.file_bytes = m->file.file_bytes,
		.weight_bytes = m->weights.packed_bytes,
		.token_bytes = m->weights.token_bytes,
		.load_seconds = m->load_seconds,
		.has_chat_template = model_find_chat_template(&m->file, NULL) != NULL,
		.weight_cache_trouble = m->kept_trouble.code ? m->kept_trouble.text : NULL,
		.has_sampling = m->file.sampling.given || m->file.sampling.samplers,
		.pooling = (int)m->file.pooling,
		.encodes = m->file.spec.encodes,
		.embedding = (int)model_embedding(&m->file),
		.bounded = model_bounded(m),
		.bounded_gain = m->bounded_gain,
		.ranks = m->ranks ? m->ranks->about : NULL
	};
}

int jit_model_get_info(const jit_model *m, jit_model_info *out, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(m, &e)) {
		const jit_model_info info = info_of(m);
		SIZED_WRITE(jit_model_info, out, &info, &e);
	}
	return model_report(err, &e);
}

struct devices {
	jit_device_info *out; /* NULL: they are counted */
	size_t wanted, n;
};

static void note_device(void *user, const struct device_entry *e)
{
	struct devices *d = user;

	if (d->out && d->n == d->wanted) {
		snprintf(d->out->name, sizeof d->out->name, "%s", e->name);
		snprintf(d->out->about, sizeof d->out->about, "%s", e->about);
		snprintf(d->out->why_not, sizeof d->out->why_not, "%s", e->why_not.text);
	}
	d->n++;
}

size_t jit_device_count(void)
{
	struct devices d = { 0 };

	device_each(note_device, &d);
	return d.n;
}

int jit_device_get_info(size_t number, jit_device_info *out, jit_error *err)
{
	jit_device_info info = { 0 };
	struct devices d = { .out = &info, .wanted = number };
	struct error e = { 0 };

	device_each(note_device, &d);
	if (number >= d.n)
		error_set(&e, ERROR_ARGUMENT, "there is no device %zu; expected a number less than %zu", number, d.n);
	else
		SIZED_WRITE(jit_device_info, out, &info, &e);
	return model_report(err, &e);
}

#include "programs/common/output.h"
#include "bench/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/cards.h"
#include "bench/mca.h"
#include "programs/synth/synth.h"
#include "kernels-templates/signature.h"
#include "jit/rdna/program.h"
#include "runtime/model/model.h"
#include "runtime/model/options.h"
#include "runtime/device/simulated/simulator.h"
#include "runtime/session/session.h"

/* What no data sheet says. */
struct assumed {
	double bandwidth_share; /* of the rated one, reached by long streams */
	double latency;         /* seconds from a load to its data, between L2 and memory */
	double barrier;         /* seconds, of all workgroups */
	double first_launch;    /* seconds, from submission to the host's knowing of the end, beside the kernels */
	double next_launch;     /* seconds, of each further launch of the pass */
	double l0_bytes;        /* a clock, that a compute unit loads */
	double trans_cycles;    /* to issue a transcendental instruction; others take one */
};
static const struct assumed usual = {
	.bandwidth_share = 0.85,
	.latency = 0.5e-6,
	.barrier = 2e-6,
	.first_launch = 100e-6,
	.next_launch = 8e-6,
	.l0_bytes = 64,
	.trans_cycles = 4
};

enum { PREDICT_MAX_TOKENS = 16 };
/* What one kernel counts. */
struct counted {
	struct key key;
	struct sim_counters sum;
	uint64_t launches;
};

struct prediction {
	const struct predict_options *o;
	struct card card;
	struct assumed assumed;
	struct predict_measured measured;
	struct counted *kernel;
	size_t n;
	struct sim_counters idle; /* a command without units */
	unsigned vgprs, lds, workgroups;
	bool failed;
	struct plan plan; /* of the whole model */
	struct weights weights;
	struct model file;
};

/* ---- counting */

static struct counted *find_counted(const struct prediction *p, const struct key *key)
{
	for (size_t i = 0; i < p->n; i++)
		if (key_equal(&p->kernel[i].key, key))
			return &p->kernel[i];
	return NULL;
}

static void watch(void *user, const struct plan *plan, const struct sim_kernel *kernel, size_t first, size_t end,
                  const struct sim_counters *c)
{
	struct prediction *p = user;

	p->vgprs = kernel->vgprs;
	p->lds = kernel->lds_size;
	p->workgroups = (unsigned)c->workgroups;
	if (first == end) {
		p->idle = *c;
		return;
	}
	const struct key *key = &plan->kernel[plan->op[first].kernel].key;
	struct counted *k = find_counted(p, key);
	if (!k) {
		struct counted *more = realloc(p->kernel, (p->n + 1) * sizeof *more);
		if (!more) {
			p->failed = true;
			return;
		}
		p->kernel = more;
		k = &more[p->n++];
		*k = (struct counted){ .key = *key };
	}
	sim_counters_add(&k->sum, c);
	k->launches++;
}

static bool report(struct error *err, const jit_error *e) { return error_set(err, ERROR_DEVICE, "%s", e->message); }

/* One pass at the given depth, launch by launch, with as many workgroups as live on the card at once. */
static bool count_token(struct prediction *p, const char *path, struct error *err)
{
	const struct predict_options *o = p->o;
	const struct simulator_options sim = {
		.launch = STREAM_LAUNCH_OP, .units = p->card.units, .watch = watch, .user = p
	};
	const int32_t ids[PREDICT_MAX_TOKENS] = { 0 };
	char device[32];
	jit_error e = { 0 };

	snprintf(device, sizeof device, "sim:%s", o->target);
	p->n = 0;
	jit_model *m = jit_model_open(
		path, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .f32_activations = o->f32_activations), &e);
	jit_session *s =
		m ? jit_session_open(
			    m,
			    &JIT_SESSION_OPTIONS(.context = (int)(o->depth + o->tokens + 1), .batch = (int)o->tokens,
	                                         .kv = o->kv, .speculate = JIT_SPECULATE_OFF),
			    &e)
		  : NULL;
	bool ok = s && session_skip(s, o->depth) && simulator_set(session_stream(s), &sim) &&
	          (o->tokens > 1 ? jit_session_score(s, ids, o->tokens, NULL, &e) : jit_session_feed(s, ids, 1, &e)) ==
	                  JIT_OK;
	if (!ok)
		report(err, &e);
	jit_session_close(s);
	jit_model_close(m);
	return ok && p->failed ? error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", p->n) : ok;
}

static bool all_counted(const struct prediction *p)
{
	for (size_t i = 0; i < p->plan.n_kernels; i++)
		if (!find_counted(p, &p->plan.kernel[i].key))
			return false;
	return true;
}

/* As few layers as have every kernel of the whole model. */
static bool count_shape(struct prediction *p, struct error *err)
{
	struct model_shape part = *p->o->shape;

	for (part.layers = part.layers < 2 ? part.layers : 2;; part.layers *= 2) {
		char path[4096];
		if (part.layers > p->o->shape->layers)
			part.layers = p->o->shape->layers;
		int fd = synth_temporary(path, sizeof path, err);
		bool ok = fd >= 0 && synth_write(fd, "the temporary file", &part, p->o->mixture, NULL, NULL, err) &&
		          count_token(p, path, err);
		if (fd >= 0)
			close(fd);
		if (!ok || all_counted(p))
			return ok;
		if (part.layers == p->o->shape->layers)
			return error_set(err, ERROR_DEVICE, "%s has kernels that its layers do not", p->o->shape->name);
	}
}

/* ---- the whole model's plan, from its header */

static bool write_header(int fd, const struct predict_options *o, struct error *err)
{
	size_t n;
	uint8_t *bytes = synth_header(&n, o->shape, o->mixture, err);
	bool ok = bytes && (write(fd, bytes, n) == (ssize_t)n ||
	                    error_set(err, ERROR_IO, "the temporary file could not be written"));

	free(bytes);
	return ok;
}

static bool open_header(struct prediction *p, struct error *err)
{
	const unsigned flags = MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER;
	char path[4096];

	if (p->o->path)
		return model_open(&p->file, p->o->path, flags, err);
	int fd = synth_temporary(path, sizeof path, err);
	bool ok = fd >= 0 && write_header(fd, p->o, err) && model_open(&p->file, path, flags, err);
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool open_plan(struct prediction *p, struct error *err)
{
	const struct plan_options po = { .target = target_find(p->o->target),
		                         .f32_activations = p->o->f32_activations,
		                         .context = p->o->depth >= PLAN_PARTS_FROM ? PLAN_PARTS : PLAN_WHOLE };

	return open_header(p, err) && weights_describe(&p->weights, &p->file.spec, err) &&
	       plan_outline(&p->plan, &p->file.spec, &p->weights, options_kv_type(p->o->kv), p->o->tokens,
	                    p->o->tokens > 1 ? PLAN_ALL_LOGITS : PLAN_LAST_LOGITS, &po, err);
}

/* ---- time */

/* One launch of a kernel. */
struct op_cost {
	double instructions, valu, salu, load, load128, moved, min; /* bytes that must come from or go to memory */
	double weights, cache, min_weights,
		min_cache; /* of moved and min, what was read of weights and of keys and values */
	double waves;      /* that have units */
	double stalls;     /* waits of one wave for memory with nothing else to do */
	double seconds;
	const char *limit;
};

/* The kernel's own: without what the driver does for any command. */
static double own(uint64_t sum, uint64_t launches, uint64_t idle)
{
	double v = (double)sum / (double)launches - (double)idle;
	return v > 0 ? v : 0;
}

static void fill_counts(struct op_cost *f, const struct prediction *p, const struct counted *k)
{
#define COUNT(field) own(k->sum.field, k->launches, p->idle.field)
#define CLASS(c) COUNT(by_class[SIM_CLASS_##c])
	f->instructions = COUNT(instructions);
	f->valu = CLASS(VALU) + CLASS(DOT) + CLASS(VOPD) + p->assumed.trans_cycles * CLASS(TRANS);
	f->salu = CLASS(SALU) + CLASS(BRANCH) + CLASS(SMEM);
	f->load = COUNT(load_bytes);
	f->load128 = COUNT(load128_bytes);
	f->moved = f->load + COUNT(store_bytes) + COUNT(scalar_bytes);
	f->weights = COUNT(tally[SIMULATOR_WEIGHTS].load_bytes) + COUNT(tally[SIMULATOR_WEIGHTS].scalar_bytes);
	f->cache = COUNT(tally[SIMULATOR_CACHE].load_bytes) + COUNT(tally[SIMULATOR_CACHE].scalar_bytes);
	f->stalls = COUNT(waits_stalled);
#undef COUNT
#undef CLASS
}

static void slower(struct op_cost *f, double seconds, const char *limit)
{
	if (seconds > f->seconds) {
		f->seconds = seconds;
		f->limit = limit;
	}
}

/* The longest of what must happen, each taken as if the others cost nothing. Shares differ by a unit: who has most of
 * them makes the others wait. */
static struct op_cost op_cost_of(const struct prediction *p, const struct plan_op *l, bool cooperative)
{
	const struct card *c = &p->card;
	const struct key *key = &p->plan.kernel[l->kernel].key;
	struct op_cost f = { .limit = "" };
	double units = (double)(l->end - l->begin),
	       shares = (double)p->workgroups * (cooperative ? 1 : RDNA_PROGRAM_WAVES);
	double rounds = ceil(units / shares), busy = units < shares ? units : shares, uneven = rounds * busy / units;

	fill_counts(&f, p, find_counted(p, key));
	uint64_t tokens = kernel_columns(key, l->arg, p->plan.tokens);
	const struct template_reads reads = template_reads(key, (uint64_t)units, p->o->depth, tokens);
	f.min = (double)template_traffic(key, (uint64_t)units, p->o->depth, tokens);
	f.min_weights = (double)reads.weights;
	f.min_cache = (double)reads.cache;
	f.waves = busy * (cooperative ? RDNA_PROGRAM_WAVES : 1);
	f.stalls /= f.waves;
	double cus = fmin(busy, c->units), simds = fmin(f.waves, (double)c->units * TARGET_UNIT_SIMDS);
	slower(&f, f.min / (c->bandwidth * p->assumed.bandwidth_share), "memory");
	slower(&f, uneven * f.valu / simds / c->clock, "vector");
	slower(&f, uneven * f.salu / simds / c->clock, "scalar");
	slower(&f, uneven * f.load / p->assumed.l0_bytes / cus / c->clock, "L0");
	slower(&f, uneven * (f.instructions / f.waves / c->clock + f.stalls * p->assumed.latency), "latency");
	f.seconds += p->assumed.latency; /* to begin with */
	return f;
}

/* ---- printing */

struct line {
	const struct key *key;
	uint64_t launches;
	struct op_cost sum;
};

static int by_time(const void *a, const void *b)
{
	double x = ((const struct line *)a)->sum.seconds, y = ((const struct line *)b)->sum.seconds;
	return x < y ? 1 : x > y ? -1 : 0;
}

static void add_op_cost(struct line *line, const struct op_cost *f)
{
	line->launches++;
	line->sum.instructions += f->instructions;
	line->sum.load += f->load;
	line->sum.load128 += f->load128;
	line->sum.moved += f->moved;
	line->sum.min += f->min;
	line->sum.weights += f->weights;
	line->sum.cache += f->cache;
	line->sum.min_weights += f->min_weights;
	line->sum.min_cache += f->min_cache;
	line->sum.seconds += f->seconds;
	line->sum.waves = f->waves;
	line->sum.stalls = f->stalls;
	line->sum.limit = f->limit;
}

static bool is_cooperative(struct registry *r, const struct key *key, bool *out, struct error *err)
{
	const struct kernel *k = registry_get(r, key, NULL, err);
	*out = k && k->object.cooperative;
	return k != NULL;
}

static bool make_lines(const struct prediction *p, struct line *line, struct line *total, struct error *err)
{
	struct registry_options ro = { .build = template_build };
	struct registry *r = registry_open(&ro, err);
	bool ok = r != NULL;

	for (size_t i = 0; ok && i < p->plan.n_ops; i++) {
		const struct plan_op *l = &p->plan.op[i];
		bool cooperative;
		ok = is_cooperative(r, &p->plan.kernel[l->kernel].key, &cooperative, err);
		struct op_cost f = op_cost_of(p, l, cooperative);
		line[l->kernel].key = &p->plan.kernel[l->kernel].key;
		add_op_cost(&line[l->kernel], &f);
		add_op_cost(total, &f);
	}
	if (r)
		registry_close(r);
	qsort(line, p->plan.n_kernels, sizeof *line, by_time);
	return ok;
}

#define SAY(...) output_lines(out, 4, __VA_ARGS__)

static void print_lines(const struct line *line, size_t n, FILE *out)
{
	char text[KEY_TEXT_MAX];

	SAY("| kernel | launches | waves | instructions | loaded by 128 bits | moved MiB | least MiB | stalls "
	    "| limit | us |\n|---|---:|---:|---:|---:|---:|---:|---:|---|---:|\n");
	for (size_t i = 0; i < n; i++) {
		const struct op_cost *f = &line[i].sum;
		SAY("| %s | %llu | %.0f | %.0f | %.0f %% | %.2f | %.2f | %.1f | %s | %.1f |\n",
		    key_text(line[i].key, text, sizeof text), (unsigned long long)line[i].launches, f->waves,
		    f->instructions, f->load > 0 ? 100 * f->load128 / f->load : 0, f->moved / 0x1p20, f->min / 0x1p20,
		    f->stalls, f->limit, f->seconds * 1e6);
	}
}

static void print_launches(const struct prediction *p, const struct op_cost *total, FILE *out)
{
	size_t all = 0, inside_layers = 0;

	for (size_t i = 0; i + 1 < p->plan.n_ops; i++)
		all += p->plan.op[i].barrier;
	for (size_t part = 0; part < p->plan.n_sections; part++)
		for (size_t i = p->plan.section[part]; i + 1 < p->plan.section[part + 1]; i++)
			inside_layers += p->plan.op[i].barrier;
	const struct {
		const char *name;
		size_t launches, barriers;
	} way[] = { { "token", 1, all },
		    { "layer", p->plan.n_sections, inside_layers },
		    { "operation", p->plan.n_ops, 0 } };
	SAY("\n| a launch for each | launches | barriers | kernels ms | barriers ms | launching ms | predicted ms "
	    "| predicted %s/s | of rated bandwidth |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
	    p->o->tokens > 1 ? "passes" : "tokens");
	for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
		double barriers = (double)way[i].barriers * p->assumed.barrier,
		       launching = p->assumed.first_launch + (double)(way[i].launches - 1) * p->assumed.next_launch;
		double seconds = total->seconds + barriers + launching;
		SAY("| %s | %zu | %zu | %.3f | %.3f | %.3f | %.3f | %.1f | %.0f %% |\n", way[i].name, way[i].launches,
		    way[i].barriers, total->seconds * 1e3, barriers * 1e3, launching * 1e3, seconds * 1e3, 1 / seconds,
		    100 * total->min / seconds / p->card.bandwidth);
	}
}

static double ratio(double a, double b) { return b > 0 ? a / b : 1; }

static void print_traffic(const struct op_cost *t, FILE *out)
{
	double must = t->weights + t->cache, min = t->min_weights + t->min_cache;

	SAY("\nread of weights %.2f MiB, %.3f times the least; of the KV cache %.2f MiB, %.3f times; of both "
	    "together %.4f times. Everything else %.2f MiB, which is read by many waves and comes from "
	    "caches. %.1f %% of vector loads by 128 bits; %.0f instructions of waves\n",
	    t->weights / 0x1p20, ratio(t->weights, t->min_weights), t->cache / 0x1p20, ratio(t->cache, t->min_cache),
	    ratio(must, min), (t->moved - must) / 0x1p20, 100 * ratio(t->load128, t->load), t->instructions);
}

static void print_assumptions(const struct prediction *p, FILE *out)
{
	const struct card *c = &p->card;
	double under_way = c->bandwidth * p->assumed.bandwidth_share * p->assumed.latency;

	if (p->o->report)
		SAY("\nMeasured on a card, by %s: the first launch, and a barrier%s. All else is predicted.\n",
		    p->o->report, p->measured.read > 0 ? ", and the share of the bandwidth" : "");
	SAY("\nPREDICTED, not measured. From the card's data%s: %u compute units of %d SIMDs at %.2f GHz, %.0f "
	    "GB/s, %.0f MiB of last cache, %.0f MiB of L2.\n",
	    p->o->report ? " and its driver's" : " sheet", c->units, TARGET_UNIT_SIMDS, c->clock / 1e9,
	    c->bandwidth / 1e9, c->cache / 0x1p20, c->l2 / 0x1p20);
	SAY("Assumed: %.0f %% of that bandwidth for long streams; nothing of the weights stays in a cache; %.2f us "
	    "from a load to its data; %.1f us for a barrier of all workgroups; %.0f us "
	    "for a pass's first launch, waited for, and %.0f us for each further one; %.0f bytes loaded by a "
	    "compute unit in a clock; one instruction of a kind issued by a SIMD in a clock, "
	    "a transcendental one in %.0f. A kernel takes the longest of its limits, as if the others cost "
	    "nothing, and a load's time to begin with.\n",
	    100 * p->assumed.bandwidth_share, p->assumed.latency * 1e6, p->assumed.barrier * 1e6,
	    p->assumed.first_launch * 1e6, p->assumed.next_launch * 1e6, p->assumed.l0_bytes, p->assumed.trans_cycles);
	SAY("%u workgroups of %d waves, %u vector registers a lane, %u bytes of LDS: all that fit. So many waves "
	    "need %.1f loads of 128 bits a lane under way each for that bandwidth.\n",
	    p->workgroups, RDNA_PROGRAM_WAVES, p->vgprs, p->lds,
	    under_way / 512 / ((double)p->workgroups * RDNA_PROGRAM_WAVES));
}

static bool print_all(const struct prediction *p, FILE *out, struct error *err)
{
	struct line *line = calloc(p->plan.n_kernels, sizeof *line), total = { 0 };
	char description[256], what[64] = "a token";

	if (!line)
		return error_set(err, ERROR_MEMORY, "no memory for a table of %zu kernels", p->plan.n_kernels);
	bool ok = make_lines(p, line, &total, err);
	if (ok) {
		model_describe(&p->file, description, sizeof description);
		if (p->o->tokens > 1)
			snprintf(what, sizeof what, "a pass over %u tokens", p->o->tokens);
		SAY("# Predicted: %s of %s at position %u on %s (%s)\n\n", what, description, p->o->depth, p->card.name,
		    p->card.target);
		print_lines(line, p->plan.n_kernels, out);
		print_launches(p, &total.sum, out);
		print_traffic(&total.sum, out);
		print_assumptions(p, out);
	}
	free(line);
	return ok;
}

/* What was measured goes before what is assumed. Further launches of a pass are not waited for: none was measured. */
static void take_measured(struct prediction *p)
{
	const struct predict_measured *m = &p->measured;
	struct card *c = &p->card;
	c->target = p->o->target;
	c->name = *m->name ? m->name : p->o->target;
	c->units = m->units;
	c->clock = m->clock > 0 && (c->clock <= 0 || m->clock < c->clock) ? m->clock : c->clock;
	c->bandwidth = m->bandwidth > 0 ? m->bandwidth : c->bandwidth;
	p->assumed.first_launch = m->launch;
	p->assumed.barrier = m->barrier;
	if (m->read > 0 && c->bandwidth > 0)
		p->assumed.bandwidth_share = fmin(1, m->read / c->bandwidth);
}

/* The card's data: of the table, of the report, or both. */
static bool find_card(struct prediction *p, struct error *err)
{
	const struct card *known = card_find(p->o->target);
	char names[128];

	p->assumed = usual;
	if (known)
		p->card = *known;
	if (p->o->report && !predict_report_read(&p->measured, p->o->report, p->o->target, err))
		return false;
	if (p->o->report) {
		take_measured(p);
		return (p->card.clock > 0 && p->card.bandwidth > 0) ||
		       error_set(err, ERROR_FORMAT,
		                 "%s: the card's %s is not there, and there is no data sheet of %s here", p->o->report,
		                 p->card.clock > 0 ? "bandwidth" : "clock_mhz", p->o->target);
	}
	return known ||
	       error_set(err, ERROR_ARGUMENT, "there is no data of a card of target \"%.32s\"; there is for %s",
	                 p->o->target, card_targets(names, sizeof names));
}

bool predict(const struct predict_options *o, FILE *out, struct error *err)
{
	struct prediction p = { .o = o };

	if (o->tokens < 1 || o->tokens > PREDICT_MAX_TOKENS)
		return error_set(err, ERROR_ARGUMENT, "a prediction is of passes over 1 to %d tokens, not %u",
		                 PREDICT_MAX_TOKENS, o->tokens);
	if (!find_card(&p, err))
		return false;
	bool ok = open_plan(&p, err) && (o->path ? count_token(&p, o->path, err) : count_shape(&p, err)) &&
	          print_all(&p, out, err) && loops_print(out, &p.plan, target_find(o->target), err);
	plan_free(&p.plan);
	weights_close(&p.weights);
	model_close(&p.file);
	free(p.kernel);
	return ok;
}

#include "bench/layer_bench.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "programs/synth/synth.h"
#include "kernels-templates/templates.h"
#include "loaders/model/model_load.h"
#include "runtime/device/device.h"
#include "runtime/host/system.h"
#include "runtime/plan/live.h"
#include "runtime/plan/weights.h"

/* A model whose layers have no more than IN_CACHE bytes stays in a cache between tokens. */
enum { PLANS_MAX = 64, STRETCH = 320 << 20, IN_CACHE = 8 << 20, WIDEST = 16384, SLACK = 4096 };

/* One for each thing that the host fills in, for logits, for norms and biases; and some together for the values. */
enum { BUFFER_IDS, BUFFER_COS, BUFFER_SIN, BUFFER_LOGITS, BUFFER_VECTORS, BUFFER_VALUES, BUFFERS = BUFFER_VALUES + 24 };

struct step {
	void *handle;
	const uint64_t *arg;
	int64_t begin, end;
};

struct lab {
	const struct target *target;
	struct registry *registry;
	struct device *device;
	struct stream *stream;
	struct pool *pool;
	uint8_t *stretch;
	size_t filled;
	uint8_t *buffers;
	size_t used, values_used; /* bytes of each that hold something */
	struct model model;
	bool has_model;
	struct weights weights;
	struct plan_buffers buf;
	struct plan_layout layout;
	struct plan_cache kv;
	uint8_t **page;       /* the pages of the cache, one behind the other in the stretch */
	uint64_t layer_bytes; /* of matrices */
	bool cached;
	struct {
		struct plan plan;
		uint32_t tokens;
		bool general;
	} plan[PLANS_MAX];
	unsigned plans;
	struct step *step;
	uint64_t *args;
	size_t n_steps;      /* the repetitions */
	uint64_t repetition; /* which part of the stretch the next repetition has */
};

static uint64_t round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

/* Whatever these bytes are read as, scales or weights, they are finite, normal and not large. */
static void fill(uint8_t *at, size_t n)
{
	uint64_t x = 88172645463325252u;

	for (size_t i = 0; i + 8 <= n; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		uint64_t v = 0x3838383838383838u + (x & 0x0505050505050505u);
		memcpy(at + i, &v, 8);
	}
}

static size_t buffer_bytes(void) { return (size_t)LAB_TOKENS * WIDEST * sizeof(float) + SLACK; }

struct lab *lab_open(const struct target *target, int threads, struct error *err)
{
	struct lab *l = calloc(1, sizeof *l);

	if (!l) {
		error_set(err, ERROR_MEMORY, "no memory for a lab");
		return NULL;
	}
	l->target = target;
	l->registry = registry_open(&(struct registry_options){ .build = template_build }, err);
	l->device = l->registry ? device_open("cpu", target->name, err) : NULL;
	l->stream = l->device ? l->device->stream(l->device, &(struct stream_options){ .registry = l->registry }, err)
	                      : NULL;
	l->pool = l->stream ? pool_open(threads ? threads : system_default_threads(), err) : NULL;
	if (l->pool &&
	    (!(l->stretch = system_map(STRETCH + SLACK)) || !(l->buffers = system_map(BUFFERS * buffer_bytes()))))
		error_set(err, ERROR_MEMORY, "no memory for made-up weights");
	if (l->buffers)
		return l;
	lab_close(l);
	return NULL;
}

static void forget_model(struct lab *l)
{
	for (unsigned i = 0; i < l->plans; i++)
		plan_free(&l->plan[i].plan);
	l->plans = 0;
	if (l->has_model) {
		weights_close(&l->weights);
		model_close(&l->model);
	}
	plan_layout_close(&l->layout);
	l->has_model = false;
	free(l->page);
	l->page = NULL;
}

void lab_close(struct lab *l)
{
	if (!l)
		return;
	forget_model(l);
	if (l->stream)
		l->stream->close(l->stream);
	device_close(l->device);
	pool_close(l->pool);
	registry_close(l->registry);
	system_unmap(l->stretch, STRETCH + SLACK);
	system_unmap(l->buffers, BUFFERS * buffer_bytes());
	free(l->step);
	free(l->args);
	free(l);
}

int lab_threads(const struct lab *l) { return pool_threads(l->pool); }

/* ---- a layer */

static void *buffer(struct lab *l, unsigned i) { return l->buffers + i * buffer_bytes(); }

/* Of the buffers, what a layer of this shape uses. */
static void fill_buffers(struct lab *l, const struct model_shape *s)
{
	uint64_t attention = (uint64_t)s->heads * s->head_dim, widest = s->ffn > s->hidden ? s->ffn : s->hidden,
		 wide = attention > widest ? attention : widest;
	size_t bytes = LAB_TOKENS * wide * sizeof(float), logits = s->vocab * sizeof(float);
	size_t used = (bytes > logits ? bytes : logits) + SLACK;

	used = used < buffer_bytes() ? used : buffer_bytes();
	for (unsigned i = 0; used > l->used && i < BUFFER_VALUES; i++)
		fill((uint8_t *)buffer(l, i) + l->used, used - l->used);
	l->used = used > l->used ? used : l->used;
	if (l->layout.bytes > l->values_used)
		fill((uint8_t *)buffer(l, BUFFER_VALUES) + l->values_used, l->layout.bytes - l->values_used);
	l->values_used = l->layout.bytes > l->values_used ? l->layout.bytes : l->values_used;
}

static bool assign_buffers(struct lab *l, struct error *err)
{
	const uint64_t room = (BUFFERS - BUFFER_VALUES) * buffer_bytes();

	if (!plan_layout_open(&l->layout, &l->model.spec, &l->weights,
	                      &(struct plan_layout_options){ .tokens = LAB_TOKENS }, err))
		return false;
	l->buf = (struct plan_buffers){
		.tokens = LAB_TOKENS,
		.logit_tokens = 1,
		.ids = buffer(l, BUFFER_IDS),
		.cos = buffer(l, BUFFER_COS),
		.sin = buffer(l, BUFFER_SIN),
		.values = buffer(l, BUFFER_VALUES),
		.layout = &l->layout,
		.logits = buffer(l, BUFFER_LOGITS)
	};
	return l->layout.bytes <= room ||
	       error_set(err, ERROR_ARGUMENT, "a layer's values take %" PRIu64 " bytes, expected at most %" PRIu64,
	                 l->layout.bytes, room);
}

static void assign_matrix(struct lab *l, struct weights_matrix *m, uint64_t *at)
{
	m->packed = l->stretch + *at;
	*at += round_up(weight_packed_bytes(m->type, weight_layout_of(l->target), m->rows, m->k), 4096);
}

static void assign_layer(struct lab *l, struct weights_layer *w)
{
	uint64_t at = 0;

	for (int i = 0; i < MATRIX_SLOTS; i++)
		if (w->matrix[i].packed)
			assign_matrix(l, &w->matrix[i], &at);
	if (weights_gate_up_interleaved(w->gate.type, w->up.type))
		w->up.packed =
			w->gate.packed + weight_block_bytes(w->gate.type, weight_layout_of(l->target), w->gate.k);
	for (int i = 0; i < VECTOR_SLOTS; i++)
		if (w->vector[i])
			w->vector[i] = buffer(l, BUFFER_VECTORS);
	l->layer_bytes = at;
	l->weights.final_norm = buffer(l, BUFFER_VECTORS);
	l->weights.lm_head.packed = l->weights.embed.packed = l->stretch;
}

static bool assign_pages(struct lab *l, struct error *err)
{
	size_t pages = STRETCH / l->kv.page_bytes + 2;

	if (!(l->page = malloc(pages * sizeof *l->page)))
		return error_set(err, ERROR_MEMORY, "no memory for a table of %zu pages", pages);
	for (size_t i = 0; i < pages; i++)
		l->page[i] = l->stretch + i * l->kv.page_bytes;
	return true;
}

bool lab_model(struct lab *l, const struct model_shape *s, const struct mixture *m, struct error *err)
{
	struct model_shape one = *s;
	size_t n;

	forget_model(l);
	one.layers = 1;
	uint8_t *header = synth_header(&n, &one, m, err);
	bool ok =
		header && model_open_memory(&l->model, header, n, NULL, 0, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err);
	if (ok && !weights_describe(&l->weights, &l->model.spec, err)) {
		model_close(&l->model);
		ok = false;
	}
	free(header);
	if (!(l->has_model = ok))
		return false;
	if (s->ffn > WIDEST || s->heads * s->head_dim > WIDEST || s->hidden > WIDEST)
		return error_set(err, ERROR_ARGUMENT, "%s: is %u wide, expected at most %d", s->name, s->ffn, WIDEST);
	if (!assign_buffers(l, err))
		return false;
	fill_buffers(l, s);
	assign_layer(l, &l->weights.layer[0]);
	l->cached = l->layer_bytes * s->layers <= IN_CACHE;
	l->kv = (struct plan_cache){ .type = DTYPE_F16 };
	l->kv.page_bytes = plan_cache_bytes(l->kv.type, &l->model.spec, 0);
	return assign_pages(l, err);
}

struct plan *lab_plan(struct lab *l, uint32_t tokens, bool general, struct error *err)
{
	const struct plan_options o = { .target = l->target, .general = general };

	for (unsigned i = 0; i < l->plans; i++)
		if (l->plan[i].tokens == tokens && l->plan[i].general == general)
			return &l->plan[i].plan;
	if (l->plans == PLANS_MAX) {
		error_set(err, ERROR_ARGUMENT, "a lab has at most %d plans", PLANS_MAX);
		return NULL;
	}
	struct plan *p = &l->plan[l->plans].plan;
	if (!plan_build(p, &l->model.spec, &l->weights, &l->buf, &l->kv, tokens, PLAN_LAST_LOGITS, &o, err))
		return NULL;
	l->plan[l->plans].tokens = tokens;
	l->plan[l->plans++].general = general;
	return l->stream->prepare(l->stream, p, l->pool, err) ? p : NULL;
}

bool lab_set_schedule(struct lab *l, struct plan *p, uint32_t schedule, struct error *err)
{
	for (size_t i = 0; i < p->n_kernels; i++) {
		struct key *key = &p->kernel[i].key;
		if (key->kind != KEY_MATMUL)
			continue;
		key->schedule = schedule;
		if (template_schedule_refusal(key))
			key->schedule = 0;
	}
	return l->stream->prepare(l->stream, p, l->pool, err);
}

/* ---- repetitions */

/* Bytes of the stretch from where the launches' first operand in it is to the end of the last. */
static uint64_t bytes_read(const struct lab *l, const struct lab_run *r)
{
	uint64_t bytes = 0, cache = l->kv.page_bytes * (r->position / NUMERICS_CHUNK + LAB_TOKENS / NUMERICS_CHUNK + 1);

	for (size_t i = r->first; i < r->first + r->n; i++) {
		const struct plan_op *launch = &r->plan->op[i];
		const struct key *key = &r->plan->kernel[launch->kernel].key;
		uint64_t end = 0;
		if (key->kind == KEY_MATMUL)
			end = launch->arg[MATMUL_W] - (uint64_t)(uintptr_t)l->stretch +
			      template_traffic(key, (uint64_t)(launch->end - launch->begin), 0, 0);
		else if (key->kind == KEY_ATTENTION || key->kind == KEY_KV_STORE)
			end = cache;
		bytes = end > bytes ? end : bytes;
	}
	return round_up(bytes + 512, 4096);
}

bool lab_fits(const struct lab *l, const struct lab_run *r) { return bytes_read(l, r) <= STRETCH; }

static void move_operands(const struct key *key, uint64_t *arg, uint64_t by)
{
	if (key->kind == KEY_MATMUL) {
		arg[MATMUL_W] += by;
		if (arg[MATMUL_W2])
			arg[MATMUL_W2] += by;
	} else if (key->kind == KEY_ATTENTION) {
		arg[ATTENTION_KEYS] += by;
		arg[ATTENTION_VALUES] += by;
	} else if (key->kind == KEY_KV_STORE) {
		arg[KV_STORE_KEYS] += by;
		arg[KV_STORE_VALUES] += by;
	}
}

enum { ARGS_MAX = 24 };

static bool room_for(struct lab *l, size_t n, struct error *err)
{
	if (n <= l->n_steps)
		return true;
	free(l->step);
	free(l->args);
	l->step = malloc(n * sizeof *l->step);
	l->args = malloc(n * ARGS_MAX * sizeof *l->args);
	l->n_steps = l->step && l->args ? n : 0;
	return l->n_steps ? true : error_set(err, ERROR_MEMORY, "no memory for %zu launches", n);
}

static void repeat_launches(struct lab *l, const struct lab_run *r, unsigned times)
{
	uint64_t bytes = bytes_read(l, r), parts = l->cached ? 1 : STRETCH / bytes;
	size_t used = 0;

	if (l->filled < parts * bytes) {
		fill(l->stretch + l->filled, parts * bytes - l->filled);
		l->filled = parts * bytes;
	}
	for (unsigned t = 0; t < times; t++, l->repetition++)
		for (size_t i = r->first; i < r->first + r->n; i++) {
			const struct plan_op *from = &r->plan->op[i];
			uint64_t *arg = l->args + used * ARGS_MAX;
			memcpy(arg, from->arg, from->n_args * sizeof *arg);
			l->step[used++] =
				(struct step){ r->plan->kernel[from->kernel].handle, arg, from->begin, from->end };
			move_operands(&r->plan->kernel[from->kernel].key, arg, l->repetition % parts * bytes);
		}
}

/* A thread's share of every step: nobody waits for anybody, since nothing that is read means anything. */
struct shares {
	const struct lab *lab;
	size_t steps;
	_Atomic int next;
};

static void do_share(void *user, int worker, int workers)
{
	struct shares *s = user;
	const struct lab *l = s->lab;
	int64_t mine = s->next++;

	for (size_t i = 0; i < s->steps; i++) {
		const struct step *at = &l->step[i];
		int64_t units = at->end - at->begin, begin = at->begin + units * mine / workers,
			end = at->begin + units * (mine + 1) / workers;
		if (begin < end)
			l->stream->call(at->handle, at->arg, begin, end);
	}
}

static double processor_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double run_steps(struct lab *l, const struct lab_run *r, unsigned times, double (*now)(void), struct error *err)
{
	times = times < 1 ? 1 : times > LAB_TIMES ? LAB_TIMES : times;
	if (!room_for(l, times * r->n, err))
		return -1;
	plan_set_sequences(r->plan, &(struct plan_sequence){ .position = r->position, .pages = l->page });
	repeat_launches(l, r, times);
	struct shares s = { .lab = l, .steps = times * r->n };
	double start = now();
	pool_run(l->pool, do_share, &s);
	return (now() - start) / times;
}

double lab_time(struct lab *l, const struct lab_run *r, unsigned times, struct error *err)
{
	return run_steps(l, r, times, system_seconds, err);
}

double lab_processor_time(struct lab *l, const struct lab_run *r, unsigned times, struct error *err)
{
	return run_steps(l, r, times, processor_seconds, err) / lab_threads(l);
}

double lab_time_for(struct lab *l, const struct lab_run *r, double seconds, struct error *err)
{
	double once = lab_time(l, r, 2, err);

	return once < 0 ? once : lab_time(l, r, once > 0 ? (unsigned)(seconds / once) + 1 : LAB_TIMES, err);
}

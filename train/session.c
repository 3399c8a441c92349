/* train/session.c - jitrun_train.h: rows that are fed, and steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"
#include "runtime/host/system.h"
#include "runtime/model/model.h"
#include "runtime/model/sized.h"
#include "train/adamw.h"
#include "train/each.h"
#include "train/save.h"

/* ---- opening */

static bool open_compute(jit_train *t, struct error *err)
{
	jit_error e = { 0 };

	t->compute =
		jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = t->o.device, .isa = t->o.isa, .threads = t->o.threads,
	                                              .cache_dir = t->o.cache_dir, .cancel = t->o.cancel),
	                         &e);
	return t->compute || error_set(err, ERROR_DEVICE, "%s", e.message);
}

static bool open_net(jit_train *t, struct error *err)
{
	struct net_options o = { .tokens = (uint32_t)t->o.context,
		                 .full = t->o.full != 0,
		                 .keep = t->o.keep_activations != 0,
		                 .adapters = { .rank = (uint32_t)t->o.rank, .dora = t->o.dora != 0 },
		                 .dropout = t->o.full ? 0 : train_decimal(t->o.dropout),
		                 .seed = t->o.seed };

	o.adapters.scale =
		(float)(train_decimal(t->o.alpha) / (t->o.rslora ? math_host_sqrt((double)t->o.rank) : t->o.rank));
	o.adapters.dropout = o.dropout > 0;
	o.adapters.dora = o.adapters.dora && !o.full;
	if (!o.full && !train_targets(&t->m, t->targets, &o.adapters, err))
		return false;
	t->net = net_open(&t->m, t->compute, t->o.cancel, &o, err);
	return t->net != NULL;
}

static bool open_all(jit_train *t, const jit_train_options *options, struct error *err)
{
	if (!train_options(&t->o, options, err))
		return false;
	t->path = strdup(t->o.model);
	t->targets = t->o.targets ? strdup(t->o.targets) : NULL;
	if (!t->path || (t->o.targets && !t->targets))
		return error_set(err, ERROR_MEMORY, "there is no memory to train with");
	t->o.model = t->path;
	t->o.targets = t->targets;
	t->opened = train_model_open(&t->m, t->path, err);
	if (t->opened && t->o.full && train_is_gguf(t))
		return error_set(
			err, ERROR_UNSUPPORTED,
			"%.200s: all weights can be trained of a folder of safetensors alone; a GGUF file can get "
			"an adapter",
			t->path);
	if (t->opened && t->o.full && !train_model_whole(&t->m, t->path, err))
		return false;
	return t->opened && open_compute(t, err) && open_net(t, err);
}

jit_train *jit_train_open(const jit_train_options *options, jit_error *err)
{
	struct error e = { 0 };
	jit_train *t = NEEDED(options, &e) ? calloc(1, sizeof *t) : NULL;

	if (options && !t)
		error_set(&e, ERROR_MEMORY, "there is no memory to train with");
	if (t)
		open_all(t, options, &e);
	model_report(err, &e);
	if (e.code == ERROR_NONE)
		return t;
	jit_train_close(t);
	return NULL;
}

static void free_row(struct train_row *r)
{
	free(r->ids);
	free(r->position);
	free(r->segment);
	free(r->target);
	free(r->counts);
}

void jit_train_forget(jit_train *t)
{
	for (size_t i = 0; t && i < t->rows; i++)
		free_row(&t->row[i]);
	if (t)
		t->rows = 0;
}

void jit_train_close(jit_train *t)
{
	if (!t)
		return;
	jit_train_forget(t);
	net_close(t->net);
	jit_compute_close(t->compute);
	if (t->opened)
		model_close(&t->m);
	free(t->row);
	free(t->path);
	free(t->targets);
	free(t);
}

/* ---- rows */

static bool check_row(const jit_train *t, const int32_t *ids, size_t n, struct error *err)
{
	if (n < 2 || n > (size_t)t->o.context)
		return error_set(err, ERROR_ARGUMENT, "a row of %zu tokens, expected 2 to %d", n, t->o.context);
	for (size_t i = 0; i < n; i++)
		if (ids[i] < 0 || (uint32_t)ids[i] >= t->m.spec.vocab)
			return error_set(err, ERROR_ARGUMENT, "token %zu of a row is %d, expected 0 to %u", i, ids[i],
			                 t->m.spec.vocab - 1);
	return true;
}

/* Token i is computed, and predicts the one behind it where both are of one text. */
static void fill_row(struct train_row *r, const int32_t *ids, const uint8_t *counts, const int32_t *texts, size_t n)
{
	int32_t segment = 0, position = 0;

	for (size_t i = 0; i < n; i++) {
		const bool begins = i > 0 && texts && texts[i] != texts[i - 1];
		segment += begins;
		position = i > 0 && !begins ? position + 1 : 0;
		r->ids[i] = ids[i];
		r->segment[i] = segment;
		r->position[i] = position;
		if (i > 0 && !begins) {
			r->target[i - 1] = ids[i];
			r->counts[i - 1] = !counts || counts[i];
			r->counted += r->counts[i - 1];
		}
	}
	r->n = (uint32_t)n;
}

static bool add_row(jit_train *t, const int32_t *ids, const uint8_t *counts, const int32_t *texts, size_t n,
                    struct error *err)
{
	const size_t tokens = (size_t)t->o.context;
	struct train_row *more, r = { 0 };

	if (t->rows == t->room) {
		more = realloc(t->row, (t->room * 2 + 8) * sizeof *more);
		if (!more)
			return error_set(err, ERROR_MEMORY, "there is no memory for a row");
		t->row = more;
		t->room = t->room * 2 + 8;
	}
	r.ids = calloc(tokens, sizeof *r.ids);
	r.position = calloc(tokens, sizeof *r.position);
	r.segment = calloc(tokens, sizeof *r.segment);
	r.target = calloc(tokens, sizeof *r.target);
	r.counts = calloc(tokens, sizeof *r.counts);
	if (!r.ids || !r.position || !r.segment || !r.target || !r.counts) {
		free_row(&r);
		return error_set(err, ERROR_MEMORY, "there is no memory for a row");
	}
	for (size_t i = 0; i < tokens; i++)
		r.segment[i] = -1; /* what fills the row up is a text of its own */
	fill_row(&r, ids, counts, texts, n);
	t->row[t->rows++] = r;
	return true;
}

int jit_train_feed(jit_train *t, const int32_t *ids, const uint8_t *counts, const int32_t *texts, size_t n,
                   jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(t, &e) && NEEDED(ids, &e) && check_row(t, ids, n, &e))
		add_row(t, ids, counts, texts, n, &e);
	return model_report(err, &e);
}

/* ---- steps */

/* The loss of all rows; weighed: with gradients. */
static bool run_rows(jit_train *t, bool weighed, jit_train_report *r, struct error *err)
{
	double sum = 0;

	for (size_t i = 0; i < t->rows; i++) {
		r->tokens += t->row[i].n;
		r->counted += t->row[i].counted;
	}
	r->rows = t->rows;
	if (!r->counted)
		return error_set(err, ERROR_ARGUMENT, "%s",
		                 t->rows ? "no token of the rows counts" : "there are no rows: none was fed");
	if (!net_begin(t->net, err))
		return false;
	for (size_t i = 0; i < t->rows; i++) {
		const struct train_row *x = &t->row[i];
		const struct net_row row = { x->ids, x->position, x->segment, x->target, x->counts };
		double loss = 0;
		if (x->counted &&
		    !net_row(t->net, &row, weighed ? (float)(1 / (double)r->counted) : 0, t->fed + i, &loss, err))
			return false;
		sum += loss;
	}
	net_end(t->net);
	r->loss = sum / (double)r->counted;
	return isfinite(r->loss) ||
	       error_set(err, ERROR_ARGUMENT, "the loss is not a finite number: the rate may be too large");
}

/* A tensor's step, by parts. */
struct stepping {
	const struct adamw *a;
	struct net_tensor *x;
	uint64_t step;
	double scale;
};

static void step_part(void *user, uint64_t from, uint64_t to, uint32_t part)
{
	const struct stepping *s = user;
	const struct net_tensor *x = s->x;
	(void)part;

	adamw_step(s->a, s->step, x->value + from, x->gradient + from, s->scale, x->mean + from, x->square + from,
	           to - from);
}

static bool update(jit_train *t, jit_train_report *r, struct error *err)
{
	const struct adamw_rate rate = { .schedule = (enum adamw_schedule)t->o.schedule,
		                         .warmup = (uint64_t)t->o.warmup,
		                         .steps = (uint64_t)t->o.steps,
		                         .rate = train_decimal(t->o.rate),
		                         .min = train_decimal(t->o.least_rate) };
	struct adamw a = { 0, train_decimal(t->o.beta1), train_decimal(t->o.beta2), train_decimal(t->o.epsilon),
		           train_decimal(t->o.weight_decay) };
	double squares = 0;

	for (uint32_t i = 0; i < t->net->tensors; i++)
		squares = each_squares(t->net->pool, t->net->tensor[i].gradient, t->net->tensor[i].n, squares,
		                       t->net->squares);
	r->norm = math_host_sqrt(squares);
	if (!isfinite(r->norm))
		return error_set(err, ERROR_ARGUMENT, "the gradients' norm is not a finite number");
	a.rate = r->rate = adamw_rate_of(&rate, t->step + 1);
	const double clip = train_decimal(t->o.clip), scale = clip > 0 && r->norm > clip ? clip / (r->norm + 1e-6) : 1;
	t->step++;
	t->fed += t->rows;
	for (uint32_t i = 0; i < t->net->tensors; i++) {
		struct stepping s = { &a, &t->net->tensor[i], t->step, scale };
		each_run(t->net->pool, s.x->n, step_part, &s);
	}
	return true;
}

static int report(jit_train *t, bool weighed, jit_train_report *out, jit_error *err)
{
	jit_train_report own = JIT_TRAIN_REPORT();
	struct error e = { 0 };
	const double begin = system_seconds();
	bool ok = NEEDED(t, &e) && run_rows(t, weighed, &own, &e) && (!weighed || update(t, &own, &e));

	if (ok) {
		own.step = t->step;
		own.seconds = system_seconds() - begin;
		jit_train_forget(t);
		if (out)
			SIZED_WRITE(jit_train_report, out, &own, &e);
	}
	return model_report(err, &e);
}

int jit_train_step(jit_train *t, jit_train_report *out, jit_error *err) { return report(t, true, out, err); }
int jit_train_evaluate(jit_train *t, jit_train_report *out, jit_error *err) { return report(t, false, out, err); }

/* ---- tensors */

size_t jit_train_tensors(const jit_train *t) { return t ? t->net->tensors : 0; }

static struct net_tensor *tensor_at(const jit_train *t, size_t number, struct error *err)
{
	if (number < t->net->tensors)
		return &t->net->tensor[number];
	error_set(err, ERROR_ARGUMENT, "tensor %zu, expected one below %u", number, t->net->tensors);
	return NULL;
}

int jit_train_get_tensor(const jit_train *t, size_t number, jit_train_tensor *out, jit_error *err)
{
	struct error e = { 0 };
	const struct net_tensor *x = NEEDED(t, &e) && NEEDED(out, &e) ? tensor_at(t, number, &e) : NULL;

	if (x) {
		jit_train_tensor own = JIT_TRAIN_TENSOR();
		own.name = x->name;
		own.rows = x->shape.rank == 2 ? x->shape.dim[0] : 1;
		own.cols = x->shape.dim[x->shape.rank - 1];
		own.elements = x->n;
		own.values = x->value;
		own.gradients = x->gradient;
		SIZED_WRITE(jit_train_tensor, out, &own, &e);
	}
	return model_report(err, &e);
}

int jit_train_set_tensor(jit_train *t, size_t number, const float *values, size_t n, jit_error *err)
{
	struct error e = { 0 };
	struct net_tensor *x = NEEDED(t, &e) && NEEDED(values, &e) ? tensor_at(t, number, &e) : NULL;

	if (x && n != x->n)
		error_set(&e, ERROR_ARGUMENT, "%.100s: %zu values, expected %zu", x->name, n, (size_t)x->n);
	else if (x)
		memcpy(x->value, values, n * sizeof *values);
	return model_report(err, &e);
}

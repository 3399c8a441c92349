/* programs/jittrain/jittrain_run.c - one training: data, steps, evaluations, checkpoints, and what is saved. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_write.h"
#include "programs/jittrain/jittrain.h"
#include "train/file.h"
#include "train/train.h"

struct run {
	jit_train *t;
	struct data data, held; /* held: of --eval */
	struct curve curve;
	struct run_facts facts;
	uint64_t step;
	char *template_text;
};

static bool told(const jit_error *e, struct error *err) { return error_set(err, ERROR_IO, "%s", e->message); }

/* ---- opening */

static bool open_train(struct run *r, struct error *err)
{
	static const char *const schedules[] = { "constant", "cosine", "linear" };
	jit_error e = { 0 };
	jit_train_options o = JIT_TRAIN_OPTIONS(
			.model = train.model, .targets = train.targets, .device = train.device, .isa = train.isa,
			.cache_dir = train.no_cache ? "" : train.cache, .cancel = train_cancel,
			.seed = (uint64_t)train.seed, .threads = (int)train.threads, .context = (int)train.context,
			.full = strcmp(train.command, "full") == 0, .rank = (int)train.rank, .rslora = train.rslora,
			.dora = train.dora, .steps = (int)r->facts.steps, .warmup = (int)train.warmup,
			.alpha = (float)train.alpha, .rate = (float)train.rate, .least_rate = (float)train.least_rate,
			.weight_decay = (float)train.weight_decay, .beta1 = (float)train.beta1,
			.beta2 = (float)train.beta2, .epsilon = (float)train.epsilon, .clip = (float)train.clip,
			.dropout = (float)train.dropout, .keep_activations = train.keep);

	while (strcmp(schedules[o.schedule], train.schedule) != 0)
		o.schedule++;
	r->t = jit_train_open(&o, &e);
	return r->t || told(&e, err);
}

static bool read_template(struct run *r, struct error *err)
{
	FILE *f = train.template_file ? fopen(train.template_file, "rb") : NULL;
	size_t n;

	if (!train.template_file)
		return true;
	r->template_text = f ? calloc(1, (1 << 20) + 1) : NULL;
	if (!r->template_text) {
		const int why = errno;
		if (f)
			fclose(f);
		return error_set(err, ERROR_IO, "%.300s: %s", train.template_file, strerror(why));
	}
	n = fread(r->template_text, 1, (1 << 20) + 1, f);
	fclose(f);
	return n <= 1 << 20 ||
	       error_set(err, ERROR_FORMAT, "%.300s: the chat template has more than a MiB", train.template_file);
}

static bool read_data(struct run *r, const struct model *m, struct error *err)
{
	const struct data_options o = { .context = (uint32_t)train.context,
		                        .apart = train.apart,
		                        .too_long = strcmp(train.too_long, "cut") == 0    ? DATA_CUT
		                                    : strcmp(train.too_long, "skip") == 0 ? DATA_SKIP
		                                                                          : DATA_REFUSE,
		                        .template_text = r->template_text };

	for (int i = 0; i < train.data.n; i++)
		if (!data_read(&r->data, m, train.data.value[i], &o, err))
			return false;
	if (train.eval && !data_read(&r->held, m, train.eval, &o, err))
		return false;
	const double steps = ceil((double)r->data.rows * train.epochs / (double)train.batch);
	r->facts.steps = train.steps ? (uint64_t)train.steps : steps < 1 ? 1 : (uint64_t)steps;
	if (train.warmup < 0)
		train.warmup = (long)(r->facts.steps * 3 / 100);
	r->facts.rows = r->data.rows;
	r->facts.documents = r->data.documents;
	r->facts.skipped = r->data.skipped;
	r->facts.tokens = r->data.tokens;
	r->facts.counted = r->data.counted;
	return true;
}

/* ---- what --resume compares */

static char *describe_run(const struct run *r)
{
	json_t *o = json_object();
	char digest[32];

	snprintf(digest, sizeof digest, "%016" PRIx64, r->data.digest);
	json_put(o, "data", json_string(digest));
	json_put(o, "rows", json_integer((json_int_t)r->data.rows));
	json_put(o, "batch", json_integer(train.batch));
	json_put(o, "steps", json_integer((json_int_t)r->facts.steps));
	json_put(o, "in_order", json_boolean(train.in_order));
	return json_write(o);
}

static bool same_run(const struct run *r, const char *path, struct error *err)
{
	char *now = describe_run(r), before[1024] = "";
	FILE *f = fopen(path, "rb");
	const size_t n = f ? fread(before, 1, sizeof before - 1, f) : 0;

	if (f)
		fclose(f);
	const bool same = now && n == strlen(now) + 1 && strncmp(before, now, strlen(now)) == 0;
	free(now);
	return same || error_set(err, ERROR_FORMAT,
	                         "%.300s: the state is of another training: its data, --batch, --steps or --in-order "
	                         "differ from these",
	                         path);
}

static bool write_run(const struct run *r, const char *path, struct error *err)
{
	struct train_file f;
	char *text = describe_run(r);

	if (!text)
		return error_set(err, ERROR_MEMORY, "there is no memory for run.json");
	bool ok = train_file_open(&f, path, err);
	if (ok) {
		fprintf(f.f, "%s\n", text);
		ok = train_file_close(&f, true, err);
	}
	free(text);
	return ok;
}

static bool begin_or_go_on(struct run *r, struct error *err)
{
	char state[4096], about[4096];
	jit_error e = { 0 };

	if (!train_folder_open(train.out, err) || !train_path(state, train.out, "state", err) ||
	    !train_path(about, train.out, "run.json", err))
		return false;
	if (!train.resume || access(state, F_OK) != 0) {
		unlink(state); /* it would be taken for this training's */
		return (!train.init || train_load_peft(r->t, train.init, err)) && write_run(r, about, err);
	}
	if (!same_run(r, about, err))
		return false;
	if (jit_train_read_state(r->t, state, &e) != JIT_OK)
		return told(&e, err);
	r->step = r->facts.first = r->t->step;
	curve_read(&r->curve, train.out, r->step);
	return true;
}

/* ---- steps */

static bool feed(struct run *r, const struct data *d, size_t row, struct error *err)
{
	const struct data_row *x = &d->row[row];
	jit_error e = { 0 };

	return jit_train_feed(r->t, d->ids + x->first, d->counts + x->first, d->texts + x->first, x->n, &e) == JIT_OK ||
	       told(&e, err);
}

static bool evaluate(struct run *r, const char *what, struct error *err)
{
	jit_train_report report = JIT_TRAIN_REPORT();
	jit_error e = { 0 };

	if (!train.eval)
		return true;
	for (size_t i = 0; i < r->held.rows; i++)
		if (!feed(r, &r->held, i, err))
			return false;
	if (jit_train_evaluate(r->t, &report, &e) != JIT_OK)
		return error_set(err, e.code == JIT_ERROR_CANCELLED ? ERROR_CANCELLED : ERROR_IO, "%s", e.message);
	report_evaluation(what, &report);
	if (r->curve.n && r->curve.point[r->curve.n - 1].step == r->step)
		r->curve.point[r->curve.n - 1].evaluated = report.loss;
	return true;
}

static bool write_state(struct run *r, struct error *err)
{
	char path[4096];
	jit_error e = { 0 };

	if (!curve_write(&r->curve, train.out, err) || !train_path(path, train.out, "state", err))
		return false;
	return jit_train_write_state(r->t, path, &e) == JIT_OK || told(&e, err);
}

static bool take_step(struct run *r, struct error *err)
{
	jit_train_report report = JIT_TRAIN_REPORT();
	jit_error e = { 0 };

	jit_train_forget(r->t);
	for (uint64_t i = 0; i < (uint64_t)train.batch; i++)
		if (!feed(r, &r->data,
		          data_order(&r->data, (uint64_t)train.seed, !train.in_order,
		                     r->step * (uint64_t)train.batch + i),
		          err))
			return false;
	if (jit_train_step(r->t, &report, &e) != JIT_OK)
		return error_set(err, e.code == JIT_ERROR_CANCELLED ? ERROR_CANCELLED : ERROR_IO, "%s", e.message);
	r->step = report.step;
	if (!curve_add(&r->curve,
	               (struct curve_point){ report.step, report.tokens, report.loss, report.norm, report.rate, -1 }))
		return error_set(err, ERROR_MEMORY, "there is no memory for the losses");
	report_step(&r->facts, &report);
	if (train.eval_every && r->step % (uint64_t)train.eval_every == 0 && r->step < r->facts.steps &&
	    !evaluate(r, "during", err))
		return false;
	return !train.save_every || r->step % (uint64_t)train.save_every || write_state(r, err);
}

static bool save(struct run *r, struct error *err)
{
	char path[4096];
	const bool gguf = strcmp(train.format, "gguf") == 0, full = strcmp(train.command, "full") == 0;
	jit_error e = { 0 };

	if (!write_state(r, err))
		return false;
	if (gguf && !full ? !train_path(path, train.out, "adapter.gguf", err)
	                  : snprintf(path, sizeof path, "%s", train.out) < 0)
		return false;
	if (jit_train_save(r->t, path, full ? JIT_TRAIN_WEIGHTS : gguf ? JIT_TRAIN_GGUF : JIT_TRAIN_PEFT, &e) != JIT_OK)
		return told(&e, err);
	report_saved(path);
	return true;
}

static bool run_all(struct run *r, struct error *err)
{
	struct model facts = { 0 };
	jit_compute_info info = JIT_COMPUTE_INFO();

	/* The data is read first, by the tokenizer alone: what is wrong with it is said before anything is computed. */
	const bool read = read_template(r, err) && model_open(&facts, train.model, MODEL_CHAT_TEMPLATES, err) &&
	                  read_data(r, &facts, err);
	if (facts.file)
		model_close(&facts);
	if (!read || !open_train(r, err) || !begin_or_go_on(r, err))
		return false;
	jit_compute_get_info(r->t->compute, &info, NULL);
	r->facts.device = info.device;
	r->facts.threads = info.threads;
	report_begin(&r->facts);
	if (r->step == 0 && !evaluate(r, "before", err))
		return false;
	while (r->step < r->facts.steps)
		if (!take_step(r, err))
			return false;
	return evaluate(r, "after", err) && save(r, err);
}

int train_run(void)
{
	struct run *r = calloc(1, sizeof *r);
	struct error err = { 0 }, on_end = { 0 };
	int status = TRAIN_DONE;

	if (!r)
		return train_fail("there is no memory to train with");
	if (!run_all(r, &err)) {
		const bool interrupted = err.code == ERROR_CANCELLED && jit_cancel_get(train_cancel);
		/* No step that was taken is lost, whatever went wrong. */
		const bool kept = r->step > r->facts.first && write_state(r, &on_end);
		status = interrupted ? TRAIN_INTERRUPTED : train_fail(err.text);
		if (interrupted)
			fprintf(stderr, "jittrain: interrupted behind step %" PRIu64 "%s.\n", r->step,
			        kept ? "; --resume goes on" : "");
		if (on_end.code != ERROR_NONE)
			train_fail(on_end.text);
	} else if (!train.no_plot)
		curve_plot(train.out);
	jit_train_close(r->t);
	data_free(&r->data);
	data_free(&r->held);
	free(r->curve.point);
	free(r->template_text);
	free(r);
	return status;
}

/* runtime/kernels/kernel_tune.c - which values of the constants that a text leaves to tuning are fastest here.
 *
 * Owns: the trials, which run on copies of a launch's arrays, and what counts as faster. Every combination must give
 * the bits of the first one.
 */
#include <stdlib.h>
#include <string.h>

#include "language/jk.h"
#include "runtime/kernels/compute.h"
#include "runtime/model/model.h"
#include "runtime/model/sized.h"

/* Runs of each combination, behind one that warms up; a gain below this is luck. */
enum { TRIALS = 3 };
#define MIN_GAIN 1.02

struct tuning {
	jit_launch *like;
	size_t n;
	uint8_t **before; /* what each array had; of scalars NULL */
	uint8_t **first;  /* what the first combination made of it */
	uint8_t *got;
	jit_buffer **buffer;
};

static bool is_array(const struct tuning *t, size_t i) { return t->like->kernel->is.parameter[i].access != JIT_SCALAR; }

static uint64_t bytes_of(const struct tuning *t, size_t i) { return t->like->kernel->is.parameter[i].bytes; }

static void tuning_close(struct tuning *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->before)
			free(t->before[i]);
		if (t->first)
			free(t->first[i]);
		if (t->buffer)
			jit_buffer_close(t->buffer[i]);
	}
	free(t->before);
	free(t->first);
	free(t->got);
	free(t->buffer);
}

static bool copy_array(struct tuning *t, size_t i, struct error *err)
{
	const struct launch_argument *a = &t->like->argument[i];
	struct device *d = t->like->kernel->compute->device;
	const size_t bytes = (size_t)bytes_of(t, i);
	jit_error e = { 0 };

	t->before[i] = malloc(bytes + 1);
	t->first[i] = malloc(bytes + 1);
	if (!t->before[i] || !t->first[i])
		return error_set(err, ERROR_MEMORY, "no memory for copies of a kernel's arrays");
	if (a->caller)
		memcpy(t->before[i], a->caller, bytes);
	else if (bytes && !d->read(d, t->before[i], (const void *)(uintptr_t)a->bits, bytes, err))
		return false;
	t->buffer[i] = jit_buffer_open(t->like->kernel->compute, bytes, &e);
	return t->buffer[i] || error_set(err, ERROR_MEMORY, "%s", e.message);
}

static bool tuning_open(struct tuning *t, jit_launch *like, struct error *err)
{
	uint64_t max = 1;
	bool ok;

	*t = (struct tuning){ .like = like, .n = like->kernel->is.parameters };
	t->before = calloc(t->n + 1, sizeof *t->before);
	t->first = calloc(t->n + 1, sizeof *t->first);
	t->buffer = calloc(t->n + 1, sizeof *t->buffer);
	for (size_t i = 0; i < t->n; i++)
		max = is_array(t, i) && bytes_of(t, i) > max ? bytes_of(t, i) : max;
	t->got = malloc((size_t)max);
	ok = (t->before && t->first && t->buffer && t->got) ||
	     error_set(err, ERROR_MEMORY, "no memory for copies of a kernel's arrays");
	for (size_t i = 0; ok && i < t->n; i++)
		ok = !is_array(t, i) || copy_array(t, i, err);
	return ok;
}

static bool give(const struct tuning *t, jit_launch *l, jit_error *err)
{
	int status = JIT_OK;

	for (size_t i = 0; !status && i < t->n; i++) {
		if (!is_array(t, i)) {
			status = jit_launch_set_bits(l, i, t->like->argument[i].bits, err);
			continue;
		}
		status = jit_buffer_write(t->buffer[i], 0, t->before[i], bytes_of(t, i), err);
		if (!status)
			status = jit_launch_set_buffer(l, i, t->buffer[i], 0, err);
	}
	return status == JIT_OK;
}

/* That the first run of a combination makes what that of the first one did. */
static bool same_bits(struct tuning *t, size_t variant, const char *name, jit_error *err)
{
	for (size_t i = 0; i < t->n; i++) {
		const uint64_t bytes = bytes_of(t, i);
		if (!is_array(t, i) || !bytes)
			continue;
		if (jit_buffer_read(t->buffer[i], 0, variant ? t->got : t->first[i], bytes, err) != JIT_OK)
			return false;
		if (!variant || memcmp(t->got, t->first[i], (size_t)bytes) == 0)
			continue;
		*err = (jit_error){ .code = JIT_ERROR_UNSUPPORTED };
		snprintf(err->message, sizeof err->message, "with %.200s array %.64s has other bits than without", name,
		         t->like->kernel->is.parameter[i].name);
		return false;
	}
	return true;
}

static bool pass_on(const jit_error *e, struct error *err)
{
	return error_set(err,
	                 e->code == JIT_ERROR_CANCELLED     ? ERROR_CANCELLED
	                 : e->code == JIT_ERROR_MEMORY      ? ERROR_MEMORY
	                 : e->code == JIT_ERROR_UNSUPPORTED ? ERROR_UNSUPPORTED
	                 : e->code == JIT_ERROR_ARGUMENT    ? ERROR_ARGUMENT
	                                                    : ERROR_DEVICE,
	                 "%s", e->message);
}

/* The least time of a combination; 0: err. */
static uint64_t try_variant(struct tuning *t, size_t variant, struct error *err)
{
	const jit_kernel *like = t->like->kernel;
	const struct source_kernel *s = like->source_text;
	size_t n;
	const char *text = jk_file_text(s->file, &n);
	jit_error e = { 0 };
	const jit_kernel_options o =
		JIT_KERNEL_OPTIONS(.source = text, .n = n, .path = jk_file_name(s->file), .kernel = s->kernel,
	                           .constants = s->constants, .check = s->check);
	jit_kernel *k = kernel_source_open(like->compute, &o, variant, err);
	jit_launch *l = k ? jit_launch_open(k, &e) : NULL;
	uint64_t best = UINT64_MAX;
	bool ok = l && give(t, l, &e) && jit_launch_run(l, &e) == JIT_OK &&
	          same_bits(t, variant, k->source_text->tuned, &e);

	for (int i = 0; ok && i < TRIALS; i++)
		if ((ok = jit_launch_run(l, &e) == JIT_OK))
			best = k->last_ns < best ? k->last_ns : best;
	if (k && !ok)
		pass_on(&e, err);
	jit_launch_close(l);
	jit_kernel_close(k);
	return ok ? best + !best : 0;
}

static bool tune(jit_launch *l, struct error *err)
{
	struct source_kernel *s = l->kernel->source_text;
	struct tune *kept = l->kernel->compute->tune;
	struct tuning t;
	uint64_t first = 0, best = UINT64_MAX, ns;
	size_t fastest = 0;

	bool ok = tuning_open(&t, l, err);
	for (size_t i = 0; ok && i < s->variants; i++) {
		ok = (ns = try_variant(&t, i, err)) != 0;
		first = i ? first : ns;
		if (ok && ns < best) {
			best = ns;
			fastest = i;
		}
	}
	tuning_close(&t);
	if (!ok)
		return false;
	struct tune_result r = { .key = s->tuning, .gain = (double)first / (double)best, .samples = TRIALS };
	if (r.gain < MIN_GAIN) {
		r.gain = 1;
		fastest = 0;
	}
	r.key.schedule = (uint32_t)fastest;
	tune_set(kept, &r);
	if (!l->kernel->compute->sealed)
		tune_save(kept, NULL); /* what is not kept costs the next process a trial */
	return true;
}

int jit_launch_tune(jit_launch *l, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(l, &e) && launch_has_arguments(l, &e) && l->kernel->source_text &&
	    l->kernel->source_text->variants > 1)
		tune(l, &e);
	return model_report(err, &e);
}

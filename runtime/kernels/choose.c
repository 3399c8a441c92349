/* runtime/kernels/choose.c - how long a piece of work will take on each device, and on which it is done first.
 *
 * Owns: the model, which is the greater of two limits and what is copied. The CPU's limits are measured once in a
 * process, in some hundredths of a second; a card's are what its driver says.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/device.h"
#include "runtime/device/profile.h"
#include "runtime/host/pairs.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"
#include "include/jitrun_kernel.h"
#include "runtime/model/model.h"
#include "runtime/model/sized.h"

/* What of a limit kernels reach, and how long a launch takes to begin. */
#define SHARE_OF_BANDWIDTH 0.8
#define SHARE_OF_ARITHMETIC 0.5
#define START_ON_CPU 5e-6
#define START_ON_CARD 15e-6

/* ---- the CPU */

enum { COPY_BYTES = 64 << 20, COPY_TIMES = 4 };

struct copying {
	uint8_t *to;
	const uint8_t *from;
};

static void copy_share(void *user, int worker, int workers)
{
	const struct copying *c = user;
	const size_t each = COPY_BYTES / (size_t)workers;

	memcpy(c->to + (size_t)worker * each, c->from + (size_t)worker * each, each);
}

/* Bytes read and written a second by all threads; 0: no memory. */
static double measure_bandwidth(void)
{
	struct pool *pool = pool_open(system_default_threads(), NULL);
	uint8_t *both = malloc(2 * (size_t)COPY_BYTES);
	uint64_t best = UINT64_MAX;

	if (pool && both) {
		struct copying c = { both, both + COPY_BYTES };
		memset(both, 1, 2 * (size_t)COPY_BYTES);
		for (int i = 0; i < COPY_TIMES; i++) {
			const uint64_t start = profile_now();
			pool_run(pool, copy_share, &c);
			const uint64_t took = profile_now() - start + 1;
			best = took < best ? took : best;
		}
	}
	pool_close(pool);
	free(both);
	return best == UINT64_MAX ? 0 : 2.0 * COPY_BYTES / ((double)best * 1e-9);
}

static struct {
	pthread_once_t once;
	double bandwidth, arithmetic;
} cpu = { .once = PTHREAD_ONCE_INIT };

static void measure_cpu(void)
{
	const double lanes = 2 * 8 * 2 * 3e9; /* where no loop measures it: two fma of 8 lanes at 3 GHz */
	const struct pairs_peaks p = pairs_peaks();
	const double one = p.floats > 0 ? 2 * p.floats : lanes;

	cpu.bandwidth = measure_bandwidth();
	cpu.arithmetic = one * system_default_threads();
}

/* ---- predictions */

static void predict(jit_prediction *out, const jit_work *w, double memory_share)
{
	out->memory_seconds = (double)w->bytes / (out->bandwidth * memory_share);
	out->arithmetic_seconds = (double)w->operations / (out->arithmetic * SHARE_OF_ARITHMETIC);
	out->copy_seconds = out->link > 0 ? (double)w->copied / out->link : 0;
	out->seconds = (out->memory_seconds > out->arithmetic_seconds ? out->memory_seconds : out->arithmetic_seconds) +
	               out->copy_seconds + out->start_seconds;
}

static void not_chosen(jit_prediction *out, const char *why) { snprintf(out->why_not, sizeof out->why_not, "%s", why); }

static void of_cpu(jit_prediction *out, const jit_work *w)
{
	pthread_once(&cpu.once, measure_cpu);
	out->bandwidth = cpu.bandwidth;
	out->arithmetic = cpu.arithmetic;
	out->start_seconds = START_ON_CPU;
	if (cpu.bandwidth > 0)
		predict(out, w, 1);
	else
		not_chosen(out, "there was no memory to measure it");
}

static void of_card(jit_prediction *out, const jit_work *w)
{
	struct error e = { 0 };
	struct device *d = device_open(out->device, NULL, &e);
	uint64_t available;

	if (!d) {
		not_chosen(out, e.text);
		return;
	}
	out->bandwidth = d->facts.bandwidth;
	out->arithmetic = d->facts.arithmetic;
	out->link = d->facts.link;
	out->start_seconds = START_ON_CARD;
	if (out->bandwidth <= 0 || out->arithmetic <= 0)
		not_chosen(out, "its driver does not tell how fast it is");
	else if (d->available && d->available(d, &available) && available < w->memory)
		snprintf(out->why_not, sizeof out->why_not, "it has %llu bytes of memory left, and %llu are needed",
		         (unsigned long long)available, (unsigned long long)w->memory);
	else
		predict(out, w, SHARE_OF_BANDWIDTH);
	device_close(d);
}

struct wanted {
	size_t number, at;
	const jit_work *work;
	jit_prediction *out;
	bool found;
};

static void see(void *user, const struct device_entry *e)
{
	struct wanted *x = user;

	if (x->at++ != x->number)
		return;
	x->found = true;
	snprintf(x->out->device, sizeof x->out->device, "%s", e->name);
	if (e->why_not.code)
		not_chosen(x->out, e->why_not.text);
	else if (strcmp(e->name, "ref") == 0)
		not_chosen(x->out, "it interprets, which is slow");
	else if (strncmp(e->name, "sim:", 4) == 0)
		not_chosen(x->out, "it is simulated, which is very slow");
	else if (strncmp(e->name, "vulkan", 6) == 0)
		not_chosen(x->out, "Vulkan does not tell how fast a device is");
	else if (strcmp(e->name, "cpu") == 0)
		of_cpu(x->out, x->work);
	else
		of_card(x->out, x->work);
	if (x->out->why_not[0]) {
		jit_prediction without = { .size = x->out->size };
		memcpy(without.device, x->out->device, sizeof without.device);
		memcpy(without.why_not, x->out->why_not, sizeof without.why_not);
		*x->out = without;
	}
}

/* False: there is no such device. */
static bool predict_number(size_t number, const jit_work *work, jit_prediction *out)
{
	struct wanted x = { .number = number, .work = work, .out = out };

	*out = JIT_PREDICTION();
	device_each(see, &x);
	return x.found;
}

int jit_device_predict(size_t number, const jit_work *work, jit_prediction *out, jit_error *err)
{
	struct error e = { 0 };
	jit_work own;
	jit_prediction p;

	if (NEEDED(work, &e) && NEEDED(out, &e) && SIZED_READ(jit_work, &own, work, &e)) {
		if (predict_number(number, &own, &p))
			SIZED_WRITE(jit_prediction, out, &p, &e);
		else
			error_set(&e, ERROR_ARGUMENT, "device number %zu, there are %zu", number, jit_device_count());
	}
	return model_report(err, &e);
}

int jit_device_choose(const jit_work *work, jit_prediction *out, jit_error *err)
{
	struct error e = { 0 };
	jit_work own;
	jit_prediction best = { .seconds = 0 }, p;

	if (!NEEDED(work, &e) || !NEEDED(out, &e) || !SIZED_READ(jit_work, &own, work, &e))
		return model_report(err, &e);
	for (size_t i = 0; predict_number(i, &own, &p); i++)
		if (!p.why_not[0] && (!best.size || p.seconds < best.seconds))
			best = p;
	if (best.size)
		SIZED_WRITE(jit_prediction, out, &best, &e);
	else
		error_set(&e, ERROR_DEVICE, "no device can be chosen");
	return model_report(err, &e);
}

/* runtime/device/amd/amd_watch.c - waiting for a launch, and what is said of one that went wrong. See amd.h.
 *
 * A token takes milliseconds and often less: the signal is looked at for a moment, then the driver's event is waited
 * for together with those of faults and resets. A launch that takes much longer than predicted is given up. After
 * anything that went wrong nothing is launched any more, and nothing is asked of the driver that could wait for the
 * card.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/device/amd/amd.h"
#include "runtime/host/system.h"

enum { COMPLETED, FAULT, EXCEPTION, EVENTS };
enum { SLICE_MS = 100, DEAF_SLICE_MS = 1 /* where the signal interrupts nobody */ };
#define POLL_SECONDS 50e-6
#define TIMES_PREDICTED 20

double amd_deadline(const struct amd *d, double seconds)
{
	double max = seconds * TIMES_PREDICTED;

	return max > d->patience ? max : d->patience;
}

bool amd_is_alive(const struct amd *d, struct error *err)
{
	return !d->dead.code || error_set(err, d->dead.code, "%s", d->dead.text);
}

bool amd_alive(struct device *device, struct error *err)
{
	const struct amd *d = (const struct amd *)device;

	return !atomic_load(&d->is_dead) || amd_is_alive(d, err);
}

/* ---- sentences */

enum { WHERE_MAX = KEY_TEXT_MAX + 80 };

/* What was running, as far as the host can see: the workgroups count their barriers in memory that it may reach. */
static const char *where(const struct amd *d, const struct amd_launch *l, char text[WHERE_MAX])
{
	char key[KEY_TEXT_MAX];

	if (!l->plan) {
		snprintf(text, WHERE_MAX, "%s", l->what ? l->what : "a copy");
		return text;
	}
	size_t at = l->first;
	if (d->in_place) {
		const volatile struct rdna_program_sync *sync = d->sync.address;
		uint32_t done = (sync->arrivals - l->stream->arrivals) / l->plan->program.workgroups;
		at = card_command_at(l->plan, l->first, l->end, done);
	}
	if (at >= l->plan->program.n_commands)
		snprintf(text, WHERE_MAX, "a trial launch");
	else
		snprintf(text, WHERE_MAX, "%s %s, command %zu of %zu to %zu,",
		         d->in_place ? "kernel" : "the launch from kernel",
		         key_text(card_command_key(l->plan, at), key, sizeof key), at, l->first, l->end - 1);
	return text;
}

static bool died(struct amd *d, const struct error *why, bool silent, struct error *err)
{
	d->silent = silent;
	d->dead = *why;
	d->dead.code = ERROR_DEVICE;
	atomic_store(&d->is_dead, true);
	return error_set(err, ERROR_DEVICE, "%s", d->dead.text);
}

static bool say_fault(struct amd *d, const struct amd_launch *l, const struct kfd_memory_fault *f, struct error *err)
{
	struct error why = { 0 };
	char text[WHERE_MAX], near[120] = "";
	bool inside;
	const struct amd_region *r = amd_region_near(d, f->address, &inside);

	if (r)
		snprintf(near, sizeof near, ", %s %s", inside ? "in" : "nearest to", r->name);
	error_set(&why, ERROR_DEVICE, "%s: memory fault at 0x%llx (%s%s) while %s ran; the card is not used any more",
	          d->card.name, (unsigned long long)f->address,
	          f->not_present  ? "nothing is mapped there"
	          : f->no_execute ? "it may not be executed"
	          : f->read_only  ? "it may not be written"
	          : f->error_type ? "an error of the memory itself"
	                          : "no reason given",
	          near, where(d, l, text));
	return died(d, &why, false, err); /* the driver has taken the queue off the card */
}

static bool say_reset(struct amd *d, const struct amd_launch *l, const struct kfd_hw_exception *x, struct error *err)
{
	struct error why = { 0 };
	char text[WHERE_MAX];

	error_set(&why, ERROR_DEVICE, "%s was reset by its driver (%s%s) while %s ran; the card is not used any more",
	          d->card.name, x->reset_cause == KFD_RESET_ECC ? "an error of its memory" : "it hung",
	          x->memory_lost ? ", its memory is lost" : "", where(d, l, text));
	return died(d, &why, true, err);
}

static bool say_late(struct amd *d, const struct amd_launch *l, double limit, struct error *err)
{
	struct error why = { 0 };
	char text[WHERE_MAX];

	error_set(&why, ERROR_DEVICE,
	          "%s has worked on %s for %.1f seconds (%.4f were predicted); the card is not used any more",
	          d->card.name, where(d, l, text), limit, l->seconds);
	return died(d, &why, true, err);
}

static bool say_gone(struct amd *d, const struct amd_launch *l, int e, struct error *err)
{
	struct error why = { 0 };
	char text[WHERE_MAX];

	error_set(&why, ERROR_DEVICE, "%s is not there any more (%s), while %s ran", d->card.name, strerror(e),
	          where(d, l, text));
	return died(d, &why, true, err);
}

/* ---- waiting */

static bool is_done(const struct amd *d)
{
	return atomic_load_explicit((_Atomic int64_t *)(void *)&d->queue.signal->value, memory_order_acquire) <= 0;
}

static bool poll_signal(const struct amd *d)
{
	double until = system_seconds() + POLL_SECONDS;

	while (!is_done(d)) {
		if (system_seconds() > until)
			return false;
		__builtin_ia32_pause();
	}
	return true;
}

/* Waits for one of the events, or for a while. An interrupt that is lost costs that while. */
static int wait_slice(const struct amd *d, struct kfd_event_data data[EVENTS])
{
	const struct amd_queue *q = &d->queue;
	struct kfd_wait_events a = { .events = (uint64_t)(uintptr_t)data,
		                     .n_events = EVENTS,
		                     .timeout_ms = q->completed.mailbox ? SLICE_MS : DEAF_SLICE_MS };

	memset(data, 0, EVENTS * sizeof *data);
	data[COMPLETED].event_id = q->completed.id;
	data[FAULT].event_id = q->fault.id;
	data[EXCEPTION].event_id = q->exception.id;
	return kfd_call(KFD_WAIT_EVENTS, &a);
}

bool amd_wait(struct amd *d, const struct amd_launch *l, struct error *err)
{
	double limit = amd_deadline(d, l->seconds), until = system_seconds() + limit;
	struct kfd_event_data data[EVENTS];

	if (poll_signal(d))
		return true;
	for (;;) {
		int e = wait_slice(d, data);
		if (is_done(d))
			return true;
		if (e == ENODEV)
			return say_gone(d, l, e, err);
		if (e) { /* it may have no memory for a moment: the signal tells all the same */
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
			memset(data, 0, sizeof data);
		}
		if (data[FAULT].memory.gpu_id == d->card.gpu_id)
			return say_fault(d, l, &data[FAULT].memory, err);
		if (data[EXCEPTION].exception.gpu_id == d->card.gpu_id)
			return say_reset(d, l, &data[EXCEPTION].exception, err);
		if (system_seconds() > until)
			return say_late(d, l, limit, err);
	}
}

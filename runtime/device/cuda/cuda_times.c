/* runtime/device/cuda/cuda_times.c - how long a plan's launches take, by the card's own clock. See cuda.h.
 *
 * An event lies before the first launch of a pass and behind each; a launch took from the event before it to its own.
 * In a graph the events are nodes of it, so that the host's haste is no part of what is measured. Launches do not
 * overlap then, as an event waits for the launch before it. Where nobody asks for times there are no events.
 */
#include <stdlib.h>

#include "runtime/device/cuda/cuda.h"
#include "runtime/device/profile.h"

struct cuda_times {
	const struct cuda_api *api;
	size_t n;
	struct {
		void *event;
		uint64_t took; /* the launch before it, when last read */
	} at[];
};

void cuda_times_close(struct cuda_times *t)
{
	for (size_t i = 0; t && i < t->n; i++)
		t->api->event_destroy(t->at[i].event);
	free(t);
}

struct cuda_times *cuda_times_open(struct cuda *d, const struct plan *p, struct error *err)
{
	const size_t n = p->n_ops + 1;
	struct cuda_times *t = calloc(1, sizeof *t + n * sizeof *t->at);
	int result = 0;

	if (!t) {
		error_set(err, ERROR_MEMORY, "no memory for the times of %zu launches", p->n_ops);
		return NULL;
	}
	t->api = d->api;
	while (t->n < n && !(result = d->api->event_create(&t->at[t->n].event, 0)))
		t->n++;
	if (!result)
		return t;
	cuda_failed(d, result, "preparing to take times", err);
	cuda_times_close(t);
	return NULL;
}

int cuda_times_mark(const struct cuda_times *t, size_t ops, void *queue, bool recording)
{
	return t ? t->api->event_record(t->at[ops].event, queue, recording ? CUDA_EVENT_IN_GRAPH : 0) : 0;
}

int cuda_times_between(const struct cuda_times *t, size_t ops, size_t more, uint64_t *nanoseconds)
{
	float milliseconds = 0;
	int result = t->api->event_elapsed(&milliseconds, t->at[ops].event, t->at[more].event);

	*nanoseconds = milliseconds > 0 ? (uint64_t)(1e6 * (double)milliseconds + 0.5) : 0;
	return result;
}

int cuda_times_tell(struct cuda_times *t, const struct plan *p, const uint32_t *blocks, struct profile *to,
                    uint64_t began, uint64_t end)
{
	uint64_t sum = 0, start;
	size_t before = 0;
	int result = 0;

	for (size_t i = 0; !result && i < p->n_ops; i++)
		if (blocks[i]) {
			result = cuda_times_between(t, before, i + 1, &t->at[i + 1].took);
			sum += t->at[i + 1].took;
			before = i + 1;
		}
	/* the host woke up soon after the last launch's end; it is not known when the first began */
	start = end - began > sum ? end - sum : began;
	for (size_t i = 0; !result && i < p->n_ops; i++)
		if (blocks[i]) {
			profile_launch(to, 0, p, i, start, start + t->at[i + 1].took);
			start += t->at[i + 1].took;
		}
	return result;
}

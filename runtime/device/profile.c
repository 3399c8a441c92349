/* runtime/device/profile.c - records sums and events, and writes the trace. See profile.h. */
#include "runtime/device/profile.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels-templates/signature.h"
#include "runtime/host/system.h"

enum { EVENTS_MAX = 1 << 20, NOTES_MAX = 1 << 16 };

struct event {
	uint64_t start, end;
	uint32_t kernel;
};
struct note {
	uint64_t start, end;
	const char *track, *name; /* name NULL: that of kernel number `position` */
	uint32_t tokens;
	uint64_t position;
};

/* One worker's: nobody else writes here while a pass runs. Events are in a mapping whose pages exist once they are
 * touched. */
struct lane {
	uint64_t *nanoseconds; /* by kernel number */
	struct event *event;
	size_t n_events;
	uint64_t dropped;
	char apart[64]; /* no two lanes in one cache line */
};

struct profile {
	int workers;
	const char *track;
	bool events;
	struct lane *lane;
	struct profile_kernel *kernel;
	size_t n_kernels, capacity; /* by kernel number; of all plans, so one key may stand here twice */
	struct profile_totals totals;
	struct note *note;
	size_t n_notes;
	struct note width; /* of the passes now: from the first of this width to the last so far */
	pthread_mutex_t notes;
	uint64_t opened;
};

uint64_t profile_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct profile *profile_open(int workers, const char *track, bool events, struct error *err)
{
	struct profile *p = calloc(1, sizeof *p);

	if (p) {
		p->workers = workers;
		p->track = track;
		p->events = events;
		p->opened = profile_now();
		pthread_mutex_init(&p->notes, NULL);
		p->lane = calloc((size_t)workers, sizeof *p->lane);
		bool ok = p->lane != NULL;
		for (int i = 0; ok && events && i < workers; i++)
			ok = (p->lane[i].event = system_map(EVENTS_MAX * sizeof *p->lane[i].event)) != NULL;
		if (ok && events)
			ok = (p->note = system_map(NOTES_MAX * sizeof *p->note)) != NULL;
		if (ok)
			return p;
		profile_close(p);
	}
	error_set(err, ERROR_MEMORY, "no memory for a profile of %d workers", workers);
	return NULL;
}

void profile_close(struct profile *p)
{
	if (!p)
		return;
	for (int i = 0; p->lane && i < p->workers; i++) {
		free(p->lane[i].nanoseconds);
		system_unmap(p->lane[i].event, EVENTS_MAX * sizeof *p->lane[i].event);
	}
	system_unmap(p->note, NOTES_MAX * sizeof *p->note);
	pthread_mutex_destroy(&p->notes);
	free(p->lane);
	free(p->kernel);
	free(p);
}

static bool make_room(struct profile *p, size_t n)
{
	if (n <= p->capacity)
		return true;
	size_t capacity = 2 * n;
	struct profile_kernel *kernel = realloc(p->kernel, capacity * sizeof *kernel);
	if (!kernel)
		return false;
	p->kernel = kernel;
	for (int i = 0; i < p->workers; i++) {
		uint64_t *more = realloc(p->lane[i].nanoseconds, capacity * sizeof *more);
		if (!more)
			return false;
		memset(more + p->n_kernels, 0, (capacity - p->n_kernels) * sizeof *more);
		p->lane[i].nanoseconds = more;
	}
	p->capacity = capacity;
	return true;
}

bool profile_add_plan(struct profile *p, struct plan *plan, struct error *err)
{
	if (!make_room(p, p->n_kernels + plan->n_kernels))
		return error_set(err, ERROR_MEMORY, "no memory to profile %zu more kernels", plan->n_kernels);
	plan->profile_at = (uint32_t)p->n_kernels;
	for (size_t i = 0; i < plan->n_kernels; i++)
		p->kernel[p->n_kernels++] = (struct profile_kernel){
			.key = plan->kernel[i].key, .columns = kernel_slot(&plan->kernel[i].key, KERNEL_COLUMNS)
		};
	return true;
}

void profile_name(struct profile *p, const struct plan *plan, size_t kernel, const char *name)
{
	struct profile_kernel *k = &p->kernel[plan->profile_at + kernel];

	snprintf(k->name, sizeof k->name, "%.*s", (int)sizeof k->name - 1, name);
}

void profile_launch(struct profile *p, int worker, const struct plan *plan, size_t i, uint64_t start, uint64_t end)
{
	struct lane *lane = &p->lane[worker];
	uint32_t kernel = plan->profile_at + plan->op[i].kernel;

	lane->nanoseconds[kernel] += end - start;
	if (!p->events)
		return;
	if (lane->n_events == EVENTS_MAX)
		lane->dropped++;
	else
		lane->event[lane->n_events++] = (struct event){ start, end, kernel };
}

static void add_note(struct profile *p, const struct note *n)
{
	if (!p->events)
		return;
	pthread_mutex_lock(&p->notes);
	if (p->n_notes == NOTES_MAX)
		p->totals.dropped++;
	else
		p->note[p->n_notes++] = *n;
	pthread_mutex_unlock(&p->notes);
}

/* Passes of these widths share their kernels (runtime/engine/compile_ahead.h). */
static const char *width_of(uint32_t tokens)
{
	return tokens == 1    ? "1 token"
	       : tokens <= 4  ? "2 to 4 tokens"
	       : tokens <= 8  ? "5 to 8 tokens"
	       : tokens <= 16 ? "9 to 16 tokens"
	                      : "prompt tiles";
}

static void follow_width(struct profile *p, const struct plan *plan, uint64_t start, uint64_t end)
{
	const char *now = width_of(plan->tokens);

	if (p->width.name != now) {
		if (p->width.name)
			add_note(p, &p->width);
		p->width = (struct note){ .start = start, .track = "pass widths", .name = now };
	}
	p->width.end = end;
}

void profile_ran(struct profile *p, enum profile_pass kind, const struct plan *plan, uint64_t position, uint64_t start,
                 uint64_t end)
{
	static const char *const name[] = { "prompt", "decode" };

	p->totals.passes[kind]++;
	p->totals.tokens[kind] += plan->tokens;
	p->totals.nanoseconds[kind] += end - start;
	for (size_t i = 0; i < plan->n_ops; i++) {
		const struct plan_op *l = &plan->op[i];
		struct profile_kernel *k = &p->kernel[plan->profile_at + l->kernel];
		k->calls++;
		/* an op may have some of the tokens alone */
		uint64_t tokens = k->columns < l->n_args ? l->arg[k->columns] : plan->tokens;
		k->bytes += template_traffic(&k->key, (uint64_t)(l->end - l->begin), position, tokens);
	}
	add_note(p, &(struct note){ start, end, "passes", name[kind], plan->tokens, position });
	follow_width(p, plan, start, end);
}

void profile_launched(struct profile *p, const struct plan *plan, size_t kernel, uint64_t start, uint64_t end)
{
	add_note(p, &(struct note){ start, end, "launches", NULL, 0, plan->profile_at + kernel });
}

void profile_note(struct profile *p, const char *track, const char *name, uint64_t start, uint64_t end)
{
	add_note(p, &(struct note){ start, end, track, name, 0, 0 });
}

/* ---- reading */

static int slower_first(const void *a, const void *b)
{
	uint64_t x = ((const struct profile_kernel *)a)->nanoseconds,
		 y = ((const struct profile_kernel *)b)->nanoseconds;
	return x < y   ? 1
	       : x > y ? -1
	               : memcmp(&((const struct profile_kernel *)a)->key, &((const struct profile_kernel *)b)->key,
	                        sizeof(struct key));
}

bool profile_kernels(const struct profile *p, struct profile_kernel **list, size_t *n, struct profile_totals *totals)
{
	struct profile_kernel *out = malloc((p->n_kernels + 1) * sizeof *out);
	size_t used = 0;

	if (!out)
		return false;
	for (size_t i = 0; i < p->n_kernels; i++) {
		size_t at = 0;
		if (!p->kernel[i].calls) /* it is expected: other plans will have an op of it */
			continue;
		while (at < used && !key_equal(&out[at].key, &p->kernel[i].key))
			at++;
		if (at == used)
			out[used++] = (struct profile_kernel){ .key = p->kernel[i].key };
		out[at].calls += p->kernel[i].calls;
		out[at].bytes += p->kernel[i].bytes;
		for (int w = 0; w < p->workers; w++)
			out[at].nanoseconds += p->lane[w].nanoseconds[i];
	}
	qsort(out, used, sizeof *out, slower_first);
	*list = out;
	*n = used;
	*totals = p->totals;
	totals->workers = p->workers;
	for (int w = 0; w < p->workers; w++)
		totals->dropped += p->lane[w].dropped;
	return true;
}

/* ---- the trace */

enum { PROCESS = 1, TRACK_FIRST_NOTE = 1000 };

static double microseconds(const struct profile *p, uint64_t t) { return 1e-3 * (double)(t - p->opened); }

static void write_track(FILE *out, int track, const char *name, int number)
{
	fprintf(out, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s", PROCESS,
	        track, name);
	if (number >= 0)
		fprintf(out, " %d", number);
	fprintf(out, "\"}},\n");
}

static void write_span(const struct profile *p, FILE *out, int track, const char *name, uint64_t start, uint64_t end)
{
	fprintf(out, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f", PROCESS, track,
	        name, microseconds(p, start), 1e-3 * (double)(end - start));
}

/* out: KEY_TEXT_MAX bytes. */
static const char *kernel_text(const struct profile *p, size_t kernel, char *out)
{
	const struct profile_kernel *k = &p->kernel[kernel];

	return k->name[0] ? k->name : key_text(&k->key, out, KEY_TEXT_MAX);
}

static void write_notes(const struct profile *p, FILE *out)
{
	const char *track[64];
	char text[KEY_TEXT_MAX];
	int tracks = 0;

	for (size_t i = 0; i < p->n_notes + (p->width.name != NULL); i++) {
		const struct note *n = i < p->n_notes ? &p->note[i] : &p->width;
		int t = 0;
		while (t < tracks && strcmp(track[t], n->track) != 0)
			t++;
		if (t == tracks) {
			if (tracks == (int)(sizeof track / sizeof *track))
				continue;
			track[tracks++] = n->track;
			write_track(out, TRACK_FIRST_NOTE + t, n->track, -1);
		}
		write_span(p, out, TRACK_FIRST_NOTE + t, n->name ? n->name : kernel_text(p, n->position, text),
		           n->start, n->end);
		if (n->tokens)
			fprintf(out, ",\"args\":{\"tokens\":%u,\"position\":%llu}", n->tokens,
			        (unsigned long long)n->position);
		fprintf(out, "},\n");
	}
}

bool profile_keeps_events(const struct profile *p) { return p->events; }

bool profile_trace(const struct profile *p, FILE *out)
{
	char name[KEY_TEXT_MAX];

	fprintf(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	for (int w = 0; w < p->workers; w++) {
		write_track(out, w, p->track ? p->track : "worker", p->track ? -1 : w);
		for (size_t i = 0; i < p->lane[w].n_events; i++) {
			const struct event *e = &p->lane[w].event[i];
			write_span(p, out, w, kernel_text(p, e->kernel, name), e->start, e->end);
			fprintf(out, "},\n");
		}
	}
	write_notes(p, out);
	fprintf(out, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"jitrun\"}}\n]}\n",
	        PROCESS);
	return !ferror(out);
}

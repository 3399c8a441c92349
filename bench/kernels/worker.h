/* bench/kernels/worker.h - what a worker of compare.py is: a process that holds one kernel and its arrays, and runs it
 * when it is told to.
 *
 * It reads lines. "open NAME CONSTANTS ARRAY..." makes a kernel ready; "run MS" runs it at least once and until MS
 * milliseconds are over, and answers how often, and the nanoseconds of wall and of processor time; "check FILE" gives
 * arrays their first values, runs once, and writes all that the kernel wrote to FILE; "close" forgets it. An ARRAY is
 * NAME:TYPE:ACCESS:ELEMENTS:FILE, a scalar NAME:TYPE:scalar:1:VALUE; CONSTANTS are n=1000,rows=8 or -. Each answer is
 * one line that begins with "ok", or "no" and why.
 *
 * Owns: the arrays and the lines. A worker has the three functions of struct worker. It includes nothing of jitrun, so
 * that what it is compared with is built by a plain compiler alone.
 */
#ifndef BENCH_KERNELS_WORKER_H
#define BENCH_KERNELS_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKER_ARRAYS = 12, WORKER_LINE = 8192 };

struct worker_array {
	char name[32], type[8], access[8];
	uint64_t elements, bytes;
	double value; /* of a scalar */
	char *data, *first;
};

struct worker_case {
	char name[64], constants[256];
	struct worker_array array[WORKER_ARRAYS];
	int arrays;
	void *user;
};

struct worker {
	/* NULL: it is ready; else why not. May set user. */
	const char *(*open)(struct worker_case *c);
	/* One run, done when it returns. false: it failed. */
	bool (*run)(struct worker_case *c);
	/* NULL where arrays are worked on in place. to_device: before the first run, else behind the last one. */
	bool (*move)(struct worker_case *c, bool to_device);
	void (*close)(struct worker_case *c);
	const char *(*facts)(struct worker_case *c); /* NULL, or what "open" answers behind "ok" */
};

static inline long worker_constant(const struct worker_case *c, const char *name)
{
	const size_t n = strlen(name);

	for (const char *p = c->constants; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (strncmp(p, name, n) == 0 && p[n] == '=')
			return atol(p + n + 1);
	fprintf(stderr, "%s: no constant %s\n", c->name, name);
	exit(1);
}

static inline bool worker_is_scalar(const struct worker_array *a) { return strcmp(a->access, "scalar") == 0; }

static inline bool worker_writes(const struct worker_array *a)
{
	return strcmp(a->access, "out") == 0 || strcmp(a->access, "inout") == 0;
}

static inline unsigned worker_size(const char *type)
{
	return strcmp(type, "u8") == 0 ? 1 : strcmp(type, "f64") == 0 || strcmp(type, "i64") == 0 ? 8 : 4;
}

static inline uint64_t worker_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void worker_close(const struct worker *w, struct worker_case *c)
{
	if (c->name[0] && w->close)
		w->close(c);
	for (int i = 0; i < c->arrays; i++) {
		free(c->array[i].data);
		free(c->array[i].first);
	}
	memset(c, 0, sizeof *c);
}

static inline void worker_reset(const struct worker_case *c)
{
	for (int i = 0; i < c->arrays; i++)
		if (!worker_is_scalar(&c->array[i]))
			memcpy(c->array[i].data, c->array[i].first, c->array[i].bytes);
}

static inline const char *worker_array_open(struct worker_array *a, const char *text)
{
	char file[512] = "";

	if (sscanf(text, "%31[^:]:%7[^:]:%7[^:]:%llu:%511s", a->name, a->type, a->access,
	           (unsigned long long *)&a->elements, file) < 4)
		return "an array is NAME:TYPE:ACCESS:ELEMENTS:FILE";
	a->bytes = a->elements * worker_size(a->type);
	a->value = worker_is_scalar(a) ? atof(file) : 0;
	const size_t room = (a->bytes + 4095) / 4096 * 4096 + 4096;
	a->data = aligned_alloc(4096, room);
	a->first = calloc(1, room);
	if (!a->data || !a->first)
		return "no memory";
	FILE *f = file[0] && !worker_is_scalar(a) ? fopen(file, "rb") : NULL;
	if (f) {
		const bool whole = fread(a->first, 1, a->bytes, f) == a->bytes;
		fclose(f);
		if (!whole)
			return "a file of an array is too short";
	} else if (file[0] && !worker_is_scalar(a)) {
		return "a file of an array is not there";
	}
	return NULL;
}

static inline const char *worker_open(const struct worker *w, struct worker_case *c, char *line)
{
	const char *why = NULL;
	char *save = NULL, *word = strtok_r(line, " ", &save);

	worker_close(w, c);
	snprintf(c->name, sizeof c->name, "%s", word ? word : "");
	word = strtok_r(NULL, " ", &save);
	snprintf(c->constants, sizeof c->constants, "%s", word && strcmp(word, "-") ? word : "");
	while (!why && (word = strtok_r(NULL, " ", &save))) {
		if (c->arrays == WORKER_ARRAYS)
			return "too many arrays";
		why = worker_array_open(&c->array[c->arrays++], word);
	}
	if (why)
		return why;
	worker_reset(c);
	why = w->open(c);
	return why ? why : w->move && !w->move(c, true) ? "arrays cannot be copied" : NULL;
}

static inline const char *worker_check(const struct worker *w, struct worker_case *c, const char *file)
{
	FILE *f = fopen(file, "wb");

	if (!f)
		return "the file cannot be written";
	worker_reset(c);
	bool ok = (!w->move || w->move(c, true)) && w->run(c) && (!w->move || w->move(c, false));
	for (int i = 0; ok && i < c->arrays; i++)
		if (worker_writes(&c->array[i]))
			ok = fwrite(c->array[i].data, 1, c->array[i].bytes, f) == c->array[i].bytes;
	return fclose(f) == 0 && ok ? NULL : "it failed";
}

static inline const char *worker_runs(const struct worker *w, struct worker_case *c, double ms)
{
	const uint64_t begin = worker_now(CLOCK_MONOTONIC), cpu = worker_now(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t took, runs = 0;

	do {
		if (!w->run(c))
			return "it failed";
		runs++;
		took = worker_now(CLOCK_MONOTONIC) - begin;
	} while ((double)took < ms * 1e6);
	printf("ok %llu %llu %llu\n", (unsigned long long)runs, (unsigned long long)took,
	       (unsigned long long)(worker_now(CLOCK_PROCESS_CPUTIME_ID) - cpu));
	return NULL;
}

static inline int worker_main(const struct worker *w)
{
	static struct worker_case c;
	static char line[WORKER_LINE];

	while (fgets(line, sizeof line, stdin)) {
		const char *why = "open, run, check or close was expected";
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "open ", 5) == 0) {
			if (!(why = worker_open(w, &c, line + 5)))
				printf("ok %s\n", w->facts ? w->facts(&c) : "");
		} else if (strncmp(line, "run ", 4) == 0) {
			why = worker_runs(w, &c, atof(line + 4));
		} else if (strncmp(line, "check ", 6) == 0) {
			if (!(why = worker_check(w, &c, line + 6)))
				puts("ok");
		} else if (strcmp(line, "close") == 0) {
			worker_close(w, &c);
			puts("ok");
			why = NULL;
		}
		if (why)
			printf("no %s\n", why);
		fflush(stdout);
	}
	worker_close(w, &c);
	return 0;
}

#endif

/* optimise/restarts_file.c - sequences of runs as text, and back. */
#include <stdlib.h>

#include "optimise/restarts_parts.h"

static const char first_line[] = "jitopt-cma";

char *restarts_save(const struct restarts *r, size_t *bytes)
{
	char *text = NULL;
	const size_t n = (size_t)r->n;
	FILE *f = open_memstream(&text, bytes);

	if (!f)
		return NULL;
	state_write_count(f, first_line, 1);
	state_write_count(f, "kind", r->kind);
	state_write_count(f, "size", n);
	state_write_count(f, "runs", (uint64_t)r->runs);
	state_write_count(f, "run", (uint64_t)r->run);
	state_write_count(f, "large-runs", (uint64_t)r->large_runs);
	state_write_count(f, "first-population", (uint64_t)r->first_population);
	state_write_count(f, "flags",
	                  (uint64_t)(r->separable | r->passive << 1 | r->drawn << 2 | r->small << 3 | r->over << 4));
	state_write_count(f, "kept", r->bounds);
	state_write_count(f, "last", r->last);
	state_write_count(f, "spent-large", r->spent_large);
	state_write_count(f, "spent-small", r->spent_small);
	state_write_count(f, "before", r->before);
	state_write_count(f, "generations-before", r->generations_before);
	state_write_count(f, "last-large", r->last_large);
	state_write_count(f, "limit", r->limit);
	state_write_draw(f, &r->draw);
	state_write_reals(f, "first-sigma", &r->sigma, 1);
	state_write_reals(f, "start", r->start, n);
	state_write_reals(f, "start-low", r->start_low, n);
	state_write_reals(f, "start-high", r->start_high, n);
	if (r->bounds != CMA_FREE) {
		state_write_reals(f, "low", r->lower, n);
		state_write_reals(f, "high", r->upper, n);
	}
	state_write_reals(f, "best-of-all", r->best, n);
	state_write_reals(f, "best-value-of-all", &r->best_value, 1);
	cma_save(r->cma, f);
	fflush(f);
	state_write_sum(f, text, *bytes);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static void read_counts(struct restarts *r, struct state_reader *s)
{
	state_read_count(s, first_line, 1, 1);
	r->kind = (enum restarts_kind)state_read_count(s, "kind", RESTARTS_NONE, RESTARTS_BIPOP);
	r->n = (int)state_read_count(s, "size", 1, CMA_SEPARABLE_MAX);
	r->runs = (int)state_read_count(s, "runs", 0, INT32_MAX);
	r->run = (int)state_read_count(s, "run", 0, INT32_MAX - 1);
	r->large_runs = (int)state_read_count(s, "large-runs", 1, 1000);
	r->first_population = (int)state_read_count(s, "first-population", 4, CMA_POPULATION_MAX);
	const uint64_t flags = state_read_count(s, "flags", 0, 31);
	r->separable = flags & 1;
	r->passive = flags & 2;
	r->drawn = flags & 4;
	r->small = flags & 8;
	r->over = flags & 16;
	r->bounds = (enum cma_bounds)state_read_count(s, "kept", CMA_FREE, CMA_PENALTY);
	r->last = (enum cma_stop)state_read_count(s, "last", CMA_RUNS, CMA_STOP_NUMBERS);
	r->spent_large = state_read_count(s, "spent-large", 0, INT64_MAX);
	r->spent_small = state_read_count(s, "spent-small", 0, INT64_MAX);
	r->before = state_read_count(s, "before", 0, INT64_MAX);
	r->generations_before = state_read_count(s, "generations-before", 0, INT64_MAX);
	r->last_large = state_read_count(s, "last-large", 0, INT64_MAX);
	r->limit = state_read_count(s, "limit", 0, INT64_MAX);
	r->draw = state_read_draw(s);
	state_read_reals(s, "first-sigma", &r->sigma, 1, true);
}

static void read_points(struct restarts *r, struct state_reader *s)
{
	const size_t n = (size_t)r->n;

	state_read_reals(s, "start", r->start, n, true);
	state_read_reals(s, "start-low", r->start_low, n, true);
	state_read_reals(s, "start-high", r->start_high, n, true);
	if (r->bounds != CMA_FREE) {
		state_read_reals(s, "low", r->lower, n, false);
		state_read_reals(s, "high", r->upper, n, false);
	}
	state_read_reals(s, "best-of-all", r->best, n, true);
	state_read_reals(s, "best-value-of-all", &r->best_value, 1, false);
}

struct restarts *restarts_load(const char *text, size_t bytes, const char *name, struct error *err)
{
	struct state_reader s = state_reader_open(text, bytes, name, err);
	struct restarts *r = calloc(1, sizeof *r);

	if (!r) {
		error_set(err, ERROR_MEMORY, "out of memory");
		return NULL;
	}
	read_counts(r, &s);
	if (!s.failed && restarts_allocate(r, err)) {
		read_points(r, &s);
		r->cma = cma_load(&s);
		if (r->cma && cma_dimension(r->cma) != r->n) {
			s.failed = true;
			error_set(err, ERROR_FORMAT, "%s: the run has %d dimensions, what it belongs to %d", name,
			          cma_dimension(r->cma), r->n);
		}
		if (state_reader_close(&s))
			return r;
	}
	restarts_close(r);
	return NULL;
}

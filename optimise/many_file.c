/* optimise/many_file.c - populations with many objectives as text, and back. */
#include <stdlib.h>

#include "optimise/many_parts.h"
#include "optimise/state_text.h"

static const char first_line[] = "jitopt-many";

char *many_save(const struct many *m, size_t *bytes)
{
	char *text = NULL;
	const size_t n = (size_t)m->n, k = (size_t)m->m, size = (size_t)m->size;
	FILE *f = open_memstream(&text, bytes);

	if (!f)
		return NULL;
	state_write_count(f, first_line, 1);
	state_write_count(f, "method", m->method);
	state_write_count(f, "dimension", n);
	state_write_count(f, "objectives", k);
	state_write_count(f, "population", size);
	state_write_count(f, "divisions", (uint64_t)m->divisions);
	state_write_draw(f, &m->draw);
	state_write_count(f, "generation", m->generation);
	state_write_count(f, "evaluations", m->evaluations);
	state_write_reals(f, "variation",
	                  (const double[]){ m->crossover_eta, m->mutation_eta, m->crossover, m->mutation }, 4);
	state_write_reals(f, "lower", m->lower, n);
	state_write_reals(f, "upper", m->upper, n);
	state_write_reals(f, "ideal", m->ideal, k);
	state_write_reals(f, "extreme", m->extreme, k * k);
	state_write_reals(f, "x", m->x, size * n);
	state_write_reals(f, "f", m->f, size * k);
	fflush(f);
	state_write_sum(f, text, *bytes);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static void read_counts(struct many *m, struct state_reader *s)
{
	double variation[4];

	state_read_count(s, first_line, 1, 1);
	m->method = (enum many_method)state_read_count(s, "method", MANY_NSGA2, MANY_MOEAD);
	m->n = (int)state_read_count(s, "dimension", 1, MANY_DIMENSION_MAX);
	m->m = (int)state_read_count(s, "objectives", 2, MANY_OBJECTIVES_MAX);
	m->size = (int)state_read_count(s, "population", 2, MANY_POPULATION_MAX);
	m->divisions = (int)state_read_count(s, "divisions", m->method != MANY_NSGA2, MANY_POPULATION_MAX);
	m->draw = state_read_draw(s);
	m->generation = state_read_count(s, "generation", 0, INT64_MAX);
	m->evaluations = state_read_count(s, "evaluations", 0, INT64_MAX);
	state_read_reals(s, "variation", variation, 4, true);
	m->crossover_eta = variation[0];
	m->mutation_eta = variation[1];
	m->crossover = variation[2];
	m->mutation = variation[3];
	if (s->failed || m->method == MANY_NSGA2)
		return;
	m->directions = many_count_directions(m->m, m->divisions, MANY_POPULATION_MAX);
	if (m->directions != m->size) {
		error_set(s->err, ERROR_FORMAT, "%s: the population is %d, the number of directions %d", s->name,
		          m->size, m->directions);
		s->failed = true;
	}
}

/* Coordinates outside of the bounds would break crossover and mutation. */
static void check_bounds(const struct many *m, struct state_reader *s)
{
	for (int i = 0; i < m->n && !s->failed; i++)
		for (int p = 0; p < m->size && !s->failed; p++) {
			const double x = m->x[(size_t)p * (size_t)m->n + (size_t)i];
			if (m->lower[i] < m->upper[i] && x >= m->lower[i] && x <= m->upper[i])
				continue;
			if (m->generation == 0 && m->lower[i] < m->upper[i])
				continue;
			error_set(s->err, ERROR_FORMAT, "%s: coordinate %d of point %d is %g: expected %g to %g",
			          s->name, i, p, x, m->lower[i], m->upper[i]);
			s->failed = true;
		}
}

struct many *many_load(const char *text, size_t bytes, const char *name, struct error *err)
{
	struct state_reader s = state_reader_open(text, bytes, name, err);
	struct many *m = calloc(1, sizeof *m);

	if (!m) {
		error_set(err, ERROR_MEMORY, "out of memory");
		return NULL;
	}
	read_counts(m, &s);
	if (!s.failed && !many_allocate(m, err))
		s.failed = true;
	if (!s.failed) {
		const size_t n = (size_t)m->n, k = (size_t)m->m, size = (size_t)m->size;
		state_read_reals(&s, "lower", m->lower, n, true);
		state_read_reals(&s, "upper", m->upper, n, true);
		state_read_reals(&s, "ideal", m->ideal, k, false);
		state_read_reals(&s, "extreme", m->extreme, k * k, false);
		state_read_reals(&s, "x", m->x, size * n, true);
		state_read_reals(&s, "f", m->f, size * k, false);
		check_bounds(m, &s);
	}
	if (state_reader_close(&s) && many_fronts(m->f, m->size, m->m, m->rank) >= 0 &&
	    many_crowd(m->f, m->size, m->m, m->rank, m->crowding)) {
		many_set_directions(m);
		return m;
	}
	error_set(err, ERROR_MEMORY, "out of memory for the fronts of %d points", m->size);
	many_close(m);
	return NULL;
}

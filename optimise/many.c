/* optimise/many.c - populations with many objectives: their beginning, their offspring, and NSGA-II's selection. */
#include <stdlib.h>
#include <string.h>

#include "optimise/many_parts.h"

/* ---- opening */

int many_count_directions(int m, int divisions, int max)
{
	double count = 1; /* divisions + m - 1 over m - 1 */

	for (int i = 1; i < m; i++)
		if ((count = count * (divisions + i) / i) > max)
			return max + 1;
	return (int)(count + 0.5);
}

bool many_allocate(struct many *m, struct error *err)
{
	const size_t n = (size_t)m->n, k = (size_t)m->m, two = 2 * (size_t)m->size, d = (size_t)m->directions;
	struct {
		void *at; /* of a pointer */
		size_t count, bytes;
	} all[] = {
		{ &m->lower, n, sizeof(double) },
		{ &m->upper, n, sizeof(double) },
		{ &m->x, two * n, sizeof(double) },
		{ &m->f, two * k, sizeof(double) },
		{ &m->x_next, two * n / 2, sizeof(double) },
		{ &m->f_next, two * k / 2, sizeof(double) },
		{ &m->rank, two, sizeof(int) },
		{ &m->crowding, two, sizeof(double) },
		{ &m->list, two, sizeof(int) },
		{ &m->parent, two, sizeof(int) },
		{ &m->wide, two, sizeof(bool) },
		{ &m->direction, d * k + 1, sizeof(double) },
		{ &m->neighbour, d * MANY_NEIGHBOURS + 1, sizeof(int) },
		{ &m->ideal, k, sizeof(double) },
		{ &m->extreme, k * k, sizeof(double) },
		{ &m->nadir, k, sizeof(double) },
	};

	if (two * n > (size_t)1 << 28)
		return error_set(err, ERROR_MEMORY, "a population of %d in %d dimensions: more than 2^27 numbers",
		                 m->size, m->n);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		void *memory = calloc(all[i].count, all[i].bytes);
		if (!memory)
			return error_set(err, ERROR_MEMORY, "out of memory for a population of %d", m->size);
		memcpy(all[i].at, &memory, sizeof memory);
	}
	for (int j = 0; j < m->m; j++)
		m->ideal[j] = m->nadir[j] = (double)INFINITY;
	for (int j = 0; j < m->m * m->m; j++)
		m->extreme[j] = (double)INFINITY;
	return true;
}

void many_close(struct many *m)
{
	if (!m)
		return;
	void *all[] = { m->lower,    m->upper, m->x,      m->f,     m->x_next,    m->f_next,    m->rank,  m->list,
		        m->crowding, m->wide,  m->parent, m->nadir, m->direction, m->neighbour, m->ideal, m->extreme };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
	free(m);
}

static bool check(const struct many_options *o, struct error *err)
{
	if (o->n < 1 || o->n > MANY_DIMENSION_MAX)
		return error_set(err, ERROR_ARGUMENT, "dimension %d: expected 1 to %d", o->n, MANY_DIMENSION_MAX);
	if (o->objectives < 2 || o->objectives > MANY_OBJECTIVES_MAX)
		return error_set(err, ERROR_ARGUMENT, "objectives: %d: expected 2 to %d", o->objectives,
		                 MANY_OBJECTIVES_MAX);
	if (!o->lower || !o->upper)
		return error_set(err, ERROR_ARGUMENT, "bounds: both of lower and upper are needed");
	for (int i = 0; i < o->n; i++)
		if (!isfinite(o->lower[i]) || !isfinite(o->upper[i]) || !(o->lower[i] < o->upper[i]))
			return error_set(err, ERROR_ARGUMENT,
			                 "bounds of coordinate %d: %g to %g: expected two finite "
			                 "numbers, the first below the second",
			                 i, o->lower[i], o->upper[i]);
	if (!(o->crossover_eta >= 0 && o->crossover_eta <= 1000) || !(o->mutation_eta >= 0 && o->mutation_eta <= 1000))
		return error_set(err, ERROR_ARGUMENT, "eta of crossover %g, of mutation %g: expected 0 to 1000",
		                 o->crossover_eta, o->mutation_eta);
	if (!(o->crossover >= 0 && o->crossover <= 1) || !(o->mutation >= 0 && o->mutation <= 1))
		return error_set(err, ERROR_ARGUMENT, "crossover %g, mutation %g: expected 0 to 1", o->crossover,
		                 o->mutation);
	return true;
}

/* Directions and the size of the population. */
static bool set_sizes(struct many *m, const struct many_options *o, struct error *err)
{
	if (m->method == MANY_NSGA2) {
		m->size = o->population ? o->population : 100;
		if (m->size < 4 || m->size > MANY_POPULATION_MAX || m->size % 2)
			return error_set(err, ERROR_ARGUMENT, "population %d: expected an even number from 4 to %d",
			                 m->size, MANY_POPULATION_MAX);
		return o->divisions == 0 || error_set(err, ERROR_ARGUMENT, "divisions: NSGA-II has no directions");
	}
	m->divisions = o->divisions ? o->divisions : m->m == 2 ? 99 : m->m == 3 ? 12 : 1;
	while (o->divisions == 0 && m->m > 3 && many_count_directions(m->m, m->divisions + 1, 300) <= 300)
		m->divisions++;
	m->directions = m->divisions < 1 ? 0 : many_count_directions(m->m, m->divisions, MANY_POPULATION_MAX);
	if (m->directions < 2 || m->directions > MANY_POPULATION_MAX)
		return error_set(err, ERROR_ARGUMENT, "divisions %d: they give more than %d directions, or none",
		                 m->divisions, MANY_POPULATION_MAX);
	m->size = m->directions;
	if (o->population && o->population != m->size)
		return error_set(err, ERROR_ARGUMENT, "population %d: expected 0 or the number of directions, %d",
		                 o->population, m->size);
	return true;
}

/* All points whose coordinates are multiples of 1 / divisions and have the sum 1 (Das and Dennis 1998). */
void many_set_directions(struct many *m)
{
	int part[MANY_OBJECTIVES_MAX] = { 0 };

	part[0] = m->divisions;
	for (int d = 0; d < m->directions; d++) {
		for (int k = 0; k < m->m; k++)
			m->direction[(size_t)d * (size_t)m->m + (size_t)k] = (double)part[k] / m->divisions;
		/* The next one: the last part moves to the one behind the last of the others that has something. */
		int k = m->m - 2;
		while (k >= 0 && part[k] == 0)
			k--;
		if (k < 0)
			break;
		const int rest = part[m->m - 1];
		part[m->m - 1] = 0;
		part[k]--;
		part[k + 1] = rest + 1;
	}
	if (m->method == MANY_MOEAD)
		many_set_neighbours(m);
}

struct many *many_open(const struct many_options *o, struct error *err)
{
	static const double eta[] = { 15, 30, 20 };
	struct many *m = check(o, err) ? calloc(1, sizeof *m) : NULL;

	if (!m) {
		error_set(err, ERROR_MEMORY, "out of memory");
		return NULL;
	}
	*m = (struct many){ .method = o->method, .n = o->n, .m = o->objectives, .draw = { .seed = o->seed } };
	m->crossover_eta = o->crossover_eta > 0 ? o->crossover_eta : eta[o->method];
	m->mutation_eta = o->mutation_eta > 0 ? o->mutation_eta : 20;
	m->crossover = o->crossover > 0 ? o->crossover : o->method == MANY_NSGA2 ? 0.9 : 1;
	m->mutation = o->mutation > 0 ? o->mutation : 1.0 / o->n;
	if (!set_sizes(m, o, err) || !many_allocate(m, err)) {
		many_close(m);
		return NULL;
	}
	memcpy(m->lower, o->lower, (size_t)m->n * sizeof(double));
	memcpy(m->upper, o->upper, (size_t)m->n * sizeof(double));
	many_set_directions(m);
	return m;
}

/* ---- offspring */

static double *x_of(struct many *m, int i) { return m->x + (size_t)i * (size_t)m->n; }

/* The next number of the population in an order that is drawn: every one has its turn before one has a second. */
static int next_drawn(struct many *m, int *left)
{
	if (*left == 0)
		for (int i = 0; i < m->size; i++)
			m->list[i] = i;
	*left = *left ? *left : m->size;
	const size_t at = draw_below(&m->draw, (size_t)(*left)--);
	const int chosen = m->list[at];
	m->list[at] = m->list[*left];
	return chosen;
}

/* NSGA-II: the better of two, of a lower front or less crowded. NSGA-III takes any. */
static int draw_parent(struct many *m, int *left)
{
	const int a = next_drawn(m, left);

	if (m->method == MANY_NSGA3)
		return a;
	const int b = next_drawn(m, left);
	if (m->rank[a] != m->rank[b])
		return m->rank[a] < m->rank[b] ? a : b;
	return m->crowding[b] > m->crowding[a] ? b : a;
}

int many_population(const struct many *m) { return m->size; }
enum many_method many_method_of(const struct many *m) { return m->method; }

const double *many_ask(struct many *m, int *count)
{
	double *spare = m->x_next;
	int left = 0;

	*count = m->size;
	for (int i = 0; m->generation == 0 && i < m->size; i++)
		for (int j = 0; j < m->n; j++)
			x_of(m, m->size + i)[j] = m->lower[j] + draw_uniform(&m->draw) * (m->upper[j] - m->lower[j]);
	for (int i = 0; m->generation > 0 && i < m->size; i += m->method == MANY_MOEAD ? 1 : 2) {
		int p, q;
		if (m->method == MANY_MOEAD) {
			many_mate_neighbours(m, i, &p, &q);
		} else {
			p = draw_parent(m, &left);
			q = draw_parent(m, &left);
		}
		const bool pair = m->method != MANY_MOEAD && i + 1 < m->size;
		double *a = x_of(m, m->size + i), *b = pair ? x_of(m, m->size + i + 1) : spare;
		many_cross(m, x_of(m, p), x_of(m, q), a, b);
		many_mutate(m, a);
		if (pair)
			many_mutate(m, b);
	}
	return x_of(m, m->size);
}

/* ---- selection */

void many_note_ideal(struct many *m, int from, int to)
{
	for (int i = from; i < to; i++)
		for (int k = 0; k < m->m; k++)
			m->ideal[k] = fmin(m->ideal[k], m->f[(size_t)i * (size_t)m->m + (size_t)k]);
}

struct candidate {
	int rank, number;
	double crowding;
};
static int by_rank_and_room(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->crowding != y->crowding)
		return x->crowding > y->crowding ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* NSGA-II: whole fronts, and of the last one those that are least crowded. */
static bool select_by_crowding(struct many *m)
{
	const int count = 2 * m->size;
	struct candidate *all = malloc((size_t)count * sizeof *all);

	if (!all || !many_crowd(m->f, count, m->m, m->rank, m->crowding)) {
		free(all);
		return false;
	}
	for (int i = 0; i < count; i++)
		all[i] = (struct candidate){ m->rank[i], i, m->crowding[i] };
	qsort(all, (size_t)count, sizeof *all, by_rank_and_room);
	for (int i = 0; i < m->size; i++)
		m->list[i] = all[i].number;
	free(all);
	return true;
}

/* The population becomes those of the list. */
static void keep_list(struct many *m)
{
	const size_t n = (size_t)m->n, k = (size_t)m->m, size = (size_t)m->size;

	for (size_t i = 0; i < size; i++) {
		memcpy(m->x_next + i * n, m->x + (size_t)m->list[i] * n, n * sizeof(double));
		memcpy(m->f_next + i * k, m->f + (size_t)m->list[i] * k, k * sizeof(double));
	}
	memcpy(m->x, m->x_next, size * n * sizeof(double));
	memcpy(m->f, m->f_next, size * k * sizeof(double));
}

bool many_tell(struct many *m, const double *values, struct error *err)
{
	const size_t k = (size_t)m->m, size = (size_t)m->size;
	double *f = m->f + size * k;
	bool done = true;

	for (size_t i = 0; i < size * k; i++)
		f[i] = isnan(values[i]) ? (double)INFINITY : values[i];
	many_note_ideal(m, m->size, 2 * m->size);
	if (m->generation == 0) {
		memcpy(m->x, m->x + size * (size_t)m->n, size * (size_t)m->n * sizeof(double));
		memcpy(m->f, f, size * k * sizeof(double));
	} else if (m->method == MANY_MOEAD) {
		many_replace_neighbours(m);
	} else {
		done = many_fronts(m->f, 2 * m->size, m->m, m->rank) >= 0 &&
		       (m->method == MANY_NSGA3 ? many_select_niches(m, err) : select_by_crowding(m));
		if (done)
			keep_list(m);
	}
	done = done && many_fronts(m->f, m->size, m->m, m->rank) >= 0 &&
	       many_crowd(m->f, m->size, m->m, m->rank, m->crowding);
	m->generation++;
	m->evaluations += size;
	return done || error_set(err, ERROR_MEMORY, "out of memory for the fronts of %d points", 2 * m->size);
}

struct many_state many_get_state(const struct many *m)
{
	return (struct many_state){
		.x = m->x,
		.values = m->f,
		.rank = m->rank,
		.count = m->generation ? m->size : 0,
		.n = m->n,
		.objectives = m->m,
		.generation = m->generation,
		.evaluations = m->evaluations
	};
}

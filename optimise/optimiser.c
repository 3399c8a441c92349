/* optimise/optimiser.c - jitrun_optimise.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/jitrun_optimise.h"
#include "jit/store/safefile.h"
#include "optimise/hypervolume.h"
#include "optimise/many.h"
#include "optimise/restarts.h"
#include "runtime/model/model.h"
#include "runtime/model/sized.h"

struct jit_optimiser {
	struct restarts *restarts; /* of CMA-ES; else NULL */
	struct many *many;
	int method;
	bool pending;
};

/* ---- opening */

static bool in_range(const char *field, int value, int low, int high, struct error *err)
{
	return (value >= low && value <= high) ||
	       error_set(err, ERROR_ARGUMENT, "%s: %d is not a number from %d to %d", field, value, low, high);
}

static bool only_of_many(const jit_optimise_options *p, struct error *err)
{
	if (p->crossover_eta != 0 || p->mutation_eta != 0 || p->crossover != 0 || p->mutation != 0 || p->divisions)
		return error_set(err, ERROR_ARGUMENT,
		                 "CMA-ES has no crossover, mutation or divisions; they are of the other methods");
	return true;
}

static struct restarts *open_cma(const jit_optimise_options *p, struct error *err)
{
	struct restarts_options o = {
		.cma = { .n = p->dimension,
		         .population = p->population,
		         .separable = p->separable != 0,
		         .passive = p->passive != 0,
		         .sigma = p->sigma,
		         .start = p->start,
		         .lower = p->lower,
		         .upper = p->upper,
		         .seed = p->seed },
		.start_low = p->start_low,
		.start_high = p->start_high,
		.kind = (enum restarts_kind)p->restarts,
		.runs = p->runs ? p->runs : 10
	};

	if (p->lower || p->upper)
		o.cma.bounds = p->bounds == JIT_BOUNDS_PENALTY ? CMA_PENALTY : CMA_BOX;
	return only_of_many(p, err) ? restarts_open(&o, err) : NULL;
}

static struct many *open_many(const jit_optimise_options *p, struct error *err)
{
	if (p->start || p->start_low || p->start_high || p->sigma != 0 || p->separable || p->passive || p->restarts ||
	    p->runs || p->bounds) {
		error_set(err, ERROR_ARGUMENT,
		          "start, sigma, separable, passive, bounds, restarts and runs are of CMA-ES alone");
		return NULL;
	}
	return many_open(
		&(struct many_options){
			.method = (enum many_method)(p->method - JIT_OPTIMISE_NSGA2),
			.n = p->dimension,
			.objectives = p->objectives ? p->objectives : 2,
			.population = p->population,
			.divisions = p->divisions,
			.lower = p->lower,
			.upper = p->upper,
			.crossover_eta = p->crossover_eta,
			.mutation_eta = p->mutation_eta,
			.crossover = p->crossover,
			.mutation = p->mutation,
			.seed = p->seed },
		err);
}

static bool open_any(jit_optimiser *o, const jit_optimise_options *p, struct error *err)
{
	if (!in_range("method", p->method, JIT_OPTIMISE_CMA, JIT_OPTIMISE_MOEAD, err) ||
	    !in_range("bounds", p->bounds, JIT_BOUNDS_BOX, JIT_BOUNDS_PENALTY, err) ||
	    !in_range("restarts", p->restarts, JIT_RESTARTS_NONE, JIT_RESTARTS_BIPOP, err) ||
	    !in_range("runs", p->runs, 0, INT_MAX, err) || !in_range("divisions", p->divisions, 0, INT_MAX, err) ||
	    !in_range("population", p->population, 0, INT_MAX, err) ||
	    !in_range("objectives", p->objectives, 0, p->method == JIT_OPTIMISE_CMA ? 1 : MANY_OBJECTIVES_MAX, err))
		return false;
	o->method = p->method;
	if (p->method == JIT_OPTIMISE_CMA)
		o->restarts = open_cma(p, err);
	else
		o->many = open_many(p, err);
	return o->restarts || o->many;
}

jit_optimiser *jit_optimiser_open(const jit_optimise_options *options, jit_error *err)
{
	struct error e = { 0 };
	jit_optimise_options p = { 0 };
	jit_optimiser *o = NEEDED(options, &e) ? calloc(1, sizeof *o) : NULL;

	if (options && !o)
		error_set(&e, ERROR_MEMORY, "there is no memory for an optimiser");
	if (o && SIZED_READ(jit_optimise_options, &p, options, &e))
		open_any(o, &p, &e);
	model_report(err, &e);
	if (e.code == ERROR_NONE)
		return o;
	jit_optimiser_close(o);
	return NULL;
}

void jit_optimiser_close(jit_optimiser *o)
{
	if (!o)
		return;
	restarts_close(o->restarts);
	many_close(o->many);
	free(o);
}

/* ---- asking and telling */

static int objectives_of(const jit_optimiser *o) { return o->many ? many_get_state(o->many).objectives : 1; }
static int dimension_of(const jit_optimiser *o)
{
	return o->many ? many_get_state(o->many).n : restarts_dimension(o->restarts);
}

size_t jit_optimiser_count(const jit_optimiser *o)
{
	if (!o)
		return 0;
	return (size_t)(o->many ? many_population(o->many) : restarts_population(o->restarts));
}

static bool ask(jit_optimiser *o, const double **x, struct error *err)
{
	int count;

	if (o->pending)
		return error_set(err, ERROR_ARGUMENT, "the candidates that were asked for have no values yet");
	if (o->restarts && restarts_get_state(o->restarts).over)
		return error_set(err, ERROR_ARGUMENT, "the last run is over");
	*x = o->many ? many_ask(o->many, &count) : restarts_ask(o->restarts, &count);
	o->pending = true;
	return true;
}

static bool tell(jit_optimiser *o, const double *values, struct error *err)
{
	if (!o->pending)
		return error_set(err, ERROR_ARGUMENT, "no candidates were asked for");
	o->pending = false;
	return o->many ? many_tell(o->many, values, err) : restarts_tell(o->restarts, values, err);
}

int jit_optimiser_ask(jit_optimiser *o, double *x, jit_error *err)
{
	struct error e = { 0 };
	const double *drawn;

	if (NEEDED(o, &e) && NEEDED(x, &e) && ask(o, &drawn, &e))
		memcpy(x, drawn, jit_optimiser_count(o) * (size_t)dimension_of(o) * sizeof *x);
	return model_report(err, &e);
}

int jit_optimiser_tell(jit_optimiser *o, const double *values, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(o, &e) && NEEDED(values, &e))
		tell(o, values, &e);
	return model_report(err, &e);
}

static bool run(jit_optimiser *o, jit_objective_fn f, void *user, uint64_t evaluations, const double *target,
                double *values, struct error *err)
{
	const double *x;
	const size_t count = jit_optimiser_count(o);

	if (!ask(o, &x, err))
		return false;
	if (f(user, x, count, values))
		return error_set(err, ERROR_CANCELLED, "the objective ended the run");
	if (!tell(o, values, err))
		return false;
	if (o->many)
		return !evaluations || many_get_state(o->many).evaluations < evaluations;
	const struct restarts_state s = restarts_get_state(o->restarts);
	return !s.over && (!evaluations || s.evaluations < evaluations) && !(target && s.best_value <= *target);
}

int jit_optimiser_run(jit_optimiser *o, jit_objective_fn f, void *user, uint64_t evaluations, const double *target,
                      jit_error *err)
{
	struct error e = { 0 };
	double *values = NULL;
	bool more = NEEDED(o, &e) && NEEDED(f, &e);

	while (more) {
		double *larger = realloc(values, jit_optimiser_count(o) * (size_t)objectives_of(o) * sizeof *values);
		if (!larger) {
			error_set(&e, ERROR_MEMORY, "there is no memory for the values of %zu candidates",
			          jit_optimiser_count(o));
			break;
		}
		values = larger;
		more = run(o, f, user, evaluations, target, values, &e);
	}
	free(values);
	return model_report(err, &e);
}

/* ---- results */

int jit_optimiser_get_state(const jit_optimiser *o, jit_optimise_state *out, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(o, &e) && NEEDED(out, &e)) {
		jit_optimise_state s = { .method = o->method, .dimension = dimension_of(o), .why = "" };
		s.objectives = objectives_of(o);
		if (o->many) {
			s.evaluations = many_get_state(o->many).evaluations;
			s.generations = many_get_state(o->many).generation;
		} else {
			const struct restarts_state r = restarts_get_state(o->restarts);
			s.evaluations = r.evaluations;
			s.generations = r.generations;
			s.best_value = r.best_value;
			s.sigma = r.now.sigma;
			s.condition = r.now.condition;
			s.why = r.last == CMA_RUNS ? "" : cma_stop_name(r.last);
			s.run = r.run;
			s.small = r.small;
			s.over = r.over;
		}
		SIZED_WRITE(jit_optimise_state, out, &s, &e);
	}
	return model_report(err, &e);
}

int jit_optimiser_best(const jit_optimiser *o, double *x, double *value, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(o, &e) && o->many)
		error_set(&e, ERROR_ARGUMENT, "with many objectives no candidate is the best; see the population");
	if (e.code == ERROR_NONE) {
		const struct restarts_state s = restarts_get_state(o->restarts);
		if (x)
			memcpy(x, s.best, (size_t)dimension_of(o) * sizeof *x);
		if (value)
			*value = s.best_value;
	}
	return model_report(err, &e);
}

int jit_optimiser_population(const jit_optimiser *o, double *x, double *values, int32_t *front, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(o, &e) && o->restarts)
		error_set(&e, ERROR_ARGUMENT, "CMA-ES keeps no population; see the best candidate");
	if (e.code == ERROR_NONE && many_get_state(o->many).count == 0)
		error_set(&e, ERROR_ARGUMENT, "no candidates have values yet");
	if (e.code == ERROR_NONE) {
		const struct many_state s = many_get_state(o->many);
		const size_t count = (size_t)s.count;
		if (x)
			memcpy(x, s.x, count * (size_t)s.n * sizeof *x);
		if (values)
			memcpy(values, s.values, count * (size_t)s.objectives * sizeof *values);
		for (size_t i = 0; front && i < count; i++)
			front[i] = s.rank[i];
	}
	return model_report(err, &e);
}

int jit_hypervolume(const double *points, size_t count, int objectives, const double *reference, double *volume,
                    jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED_LIST(points, count, &e) && NEEDED(reference, &e) && NEEDED(volume, &e) &&
	    in_range("objectives", objectives, 2, 3, &e)) {
		if (count > 1 << 24)
			error_set(&e, ERROR_ARGUMENT, "%zu points: expected at most 2^24", count);
		else if (!hypervolume(points, (int)count, objectives, reference, volume))
			error_set(&e, ERROR_MEMORY, "there is no memory for %zu points", count);
	}
	return model_report(err, &e);
}

/* ---- files */

static bool write_whole(const char *path, const char *text, size_t n, struct error *err)
{
	char written[4100];

	if (strlen(path) > 4090)
		return error_set(err, ERROR_ARGUMENT, "%.100s...: the path is too long", path);
	if (!safefile_replaceable(AT_FDCWD, path))
		return error_set(err, ERROR_IO, "%.300s: is no regular file, so it is not replaced", path);
	snprintf(written, sizeof written, "%s.new", path);
	FILE *f = safefile_may_grow_to(n) ? fopen(written, "wb") : NULL;
	if (!f)
		return error_set(err, ERROR_IO, "%.300s: cannot be made: %s", written, strerror(errno));
	bool done = fwrite(text, 1, n, f) == n && fflush(f) == 0 && fsync(fileno(f)) == 0;
	done = fclose(f) == 0 && done && rename(written, path) == 0;
	if (done)
		return true;
	error_set(err, ERROR_IO, "%.300s: cannot be written: %s", path, strerror(errno));
	unlink(written);
	return false;
}

int jit_optimiser_save(const jit_optimiser *o, const char *path, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(o, &e) && NEEDED(path, &e) && o->pending)
		error_set(&e, ERROR_ARGUMENT, "the candidates that were asked for have no values yet");
	if (e.code == ERROR_NONE) {
		size_t n = 0;
		char *text = o->many ? many_save(o->many, &n) : restarts_save(o->restarts, &n);
		if (!text)
			error_set(&e, ERROR_MEMORY, "there is no memory for the state");
		else
			write_whole(path, text, n, &e);
		free(text);
	}
	return model_report(err, &e);
}

/* The file's bytes. NULL: err. */
static char *read_whole(const char *path, size_t *n, struct error *err)
{
	enum { BYTES_MAX = INT_MAX };
	static const char begins[] = "jitopt-";
	FILE *f = fopen(path, "rb");
	char *text = NULL;

	*n = 0;
	for (size_t room = 1 << 16; f; room *= 2) {
		char *more = room > BYTES_MAX ? NULL : realloc(text, room);
		if (!more) {
			error_set(err, ERROR_MEMORY, "%.300s: there is no memory for it", path);
			break;
		}
		text = more;
		*n += fread(text + *n, 1, room - *n, f);
		if (*n < room)
			break;
		if (memcmp(text, begins, sizeof begins - 1) != 0) { /* another file, which may be of any size */
			error_set(err, ERROR_FORMAT, "%.300s:1: expected a saved state, which begins with %s", path,
			          begins);
			break;
		}
	}
	if (!f || ferror(f))
		error_set(err, ERROR_IO, "%.300s: cannot be read: %s", path, strerror(errno));
	if (f)
		fclose(f);
	if (!err->code)
		return text;
	free(text);
	return NULL;
}

jit_optimiser *jit_optimiser_load(const char *path, jit_error *err)
{
	static const char many[] = "jitopt-many ";
	struct error e = { 0 };
	size_t n;
	char *text = NEEDED(path, &e) ? read_whole(path, &n, &e) : NULL;
	jit_optimiser *o = text ? calloc(1, sizeof *o) : NULL;

	if (text && !o)
		error_set(&e, ERROR_MEMORY, "there is no memory for an optimiser");
	if (o && n >= sizeof many && memcmp(text, many, sizeof many - 1) == 0) {
		o->many = many_load(text, n, path, &e);
		o->method = o->many ? JIT_OPTIMISE_NSGA2 + (int)many_method_of(o->many) : 0;
	} else if (o) {
		o->restarts = restarts_load(text, n, path, &e);
	}
	free(text);
	model_report(err, &e);
	if (e.code == ERROR_NONE)
		return o;
	jit_optimiser_close(o);
	return NULL;
}

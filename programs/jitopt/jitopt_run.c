/* programs/jitopt/jitopt_run.c - a run of an optimiser: its options, its files, and what is printed of it. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/common/output.h"
#include "programs/common/progress.h"
#include "programs/jitopt/jitopt.h"

static bool refuse(jit_error *err, int code, const char *format, const char *a, const char *b)
{
	err->code = code;
	snprintf(err->message, sizeof err->message, format, a, b);
	return false;
}

static int choice(const char *value, const char *const *names, int n)
{
	for (int i = 0; value && i < n; i++)
		if (strcmp(value, names[i]) == 0)
			return i;
	return 0;
}

jit_optimise_options jitopt_options(const char *usual)
{
	static const char *const methods[] = { "cma", "nsga2", "nsga3", "moead" };
	static const char *const restarts[] = { "none", "same", "ipop", "bipop" };
	static const char *const bounds[] = { "box", "penalty" };

	return JIT_OPTIMISE_OPTIONS(.method = choice(jitopt.method ? jitopt.method : usual, methods, 4),
	                            .restarts = choice(jitopt.restarts, restarts, 4),
	                            .bounds = choice(jitopt.bounds, bounds, 2), .dimension = (int)jitopt.dimension,
	                            .objectives = (int)jitopt.objectives, .population = (int)jitopt.population,
	                            .divisions = (int)jitopt.divisions, .runs = (int)jitopt.runs,
	                            .separable = jitopt.separable, .passive = jitopt.passive,
	                            .seed = (uint64_t)jitopt.seed);
}

double *jitopt_numbers(const char *option, const char *text, double otherwise, int n, jit_error *err)
{
	double *x = calloc(n > 0 ? (size_t)n : 1, sizeof *x);
	int got = 0;

	if (!x) {
		refuse(err, JIT_ERROR_MEMORY, "%s: there is no memory%s", option, "");
		return NULL;
	}
	for (const char *at = text; at; got++) {
		char *end;
		errno = 0;
		const double v = strtod(at, &end);
		if (end == at || isnan(v) || (*end && *end != ',') || got == (n > 1 ? n : 1)) {
			char quoted[80];
			refuse(err, JIT_ERROR_ARGUMENT,
			       "%s %s: expected one number, or one for each coordinate with commas between", option,
			       error_quote(quoted, sizeof quoted, text, strlen(text)));
			free(x);
			return NULL;
		}
		x[got] = v;
		at = *end ? end + 1 : NULL;
	}
	if (got > 1 && got != n) {
		char counts[60];
		snprintf(counts, sizeof counts, "%d numbers, expected 1 or %d", got, n);
		refuse(err, JIT_ERROR_ARGUMENT, "%s: %s", option, counts);
		free(x);
		return NULL;
	}
	for (int i = got; i < n; i++)
		x[i] = got ? x[0] : otherwise;
	return x;
}

bool jitopt_fits(const jit_optimiser *o, int dimension, int objectives, jit_error *err)
{
	jit_optimise_state s = JIT_OPTIMISE_STATE();

	if (jit_optimiser_get_state(o, &s, err) != JIT_OK)
		return false;
	if (s.dimension == dimension && s.objectives == objectives)
		return true;
	err->code = JIT_ERROR_ARGUMENT;
	snprintf(err->message, sizeof err->message,
	         "%.200s has %d coordinates and %d objectives, the problem %d and %d", jitopt.state, s.dimension,
	         s.objectives, dimension, objectives);
	return false;
}

/* ---- going */

struct going {
	jit_optimiser *o;
	jit_objective_fn f;
	void *user;
	FILE *log;
	double offset;
	uint64_t generations; /* since the state was written */
	struct progress progress;
};

/* After a generation: its line of the log, and now and then the state. */
static bool note(struct going *g, jit_optimise_state *s, jit_error *err)
{
	if (jit_optimiser_get_state(g->o, s, err) != JIT_OK)
		return false;
	progress_show(&g->progress, s->evaluations, (uint64_t)jitopt.evaluations);
	if (g->log && fprintf(g->log, "%" PRIu64 " %.17g %.17g %.17g\n", s->evaluations, s->best_value - g->offset,
	                      s->sigma, s->condition) < 0)
		return refuse(err, JIT_ERROR_IO, "%s: cannot be written: %s", jitopt.log, strerror(errno));
	if (!jitopt.state || ++g->generations < (uint64_t)jitopt.save_every)
		return true;
	g->generations = 0;
	return jit_optimiser_save(g->o, jitopt.state, err) == JIT_OK;
}

static bool generation(struct going *g, double **x, double **values, jit_error *err)
{
	jit_optimise_state s = JIT_OPTIMISE_STATE();

	if (jit_optimiser_get_state(g->o, &s, err) != JIT_OK)
		return false;
	const size_t count = jit_optimiser_count(g->o);
	double *more_x = realloc(*x, count * (size_t)s.dimension * sizeof **x);
	*x = more_x ? more_x : *x;
	double *more = realloc(*values, count * (size_t)s.objectives * sizeof **values);
	*values = more ? more : *values;
	if (!more_x || !more)
		return refuse(err, JIT_ERROR_MEMORY, "there is no memory for a population%s%s", "", "");
	if (jit_optimiser_ask(g->o, *x, err) != JIT_OK)
		return false;
	if (g->f(g->user, *x, count, *values))
		return refuse(err, JIT_ERROR_FORMAT, "the objective failed%s%s", "", "");
	return jit_optimiser_tell(g->o, *values, err) == JIT_OK;
}

int jitopt_go(jit_optimiser *o, jit_objective_fn f, void *user, double offset, bool *reached)
{
	struct going g = { .o = o, .f = f, .user = user, .offset = offset };
	jit_error err = { 0 };
	jit_optimise_state s = JIT_OPTIMISE_STATE();
	double *x = NULL, *values = NULL;
	bool fine = jit_optimiser_get_state(o, &s, &err) == JIT_OK;
	const uint64_t limit = jitopt.evaluations             ? (uint64_t)jitopt.evaluations
	                       : s.method == JIT_OPTIMISE_CMA ? UINT64_MAX
	                                                      : 25000;

	*reached = false;
	if (jitopt.log && !(g.log = fopen(jitopt.log, jitopt.resume ? "a" : "w")))
		fine = refuse(&err, JIT_ERROR_IO, "%s: cannot be written: %s", jitopt.log, strerror(errno));
	progress_begin(&g.progress, "evolution", "evaluations", !jitopt.quiet && jitopt.evaluations);
	while (fine && !s.over && s.evaluations < limit && !*reached && !jit_cancel_get(jitopt_cancel)) {
		fine = generation(&g, &x, &values, &err) && note(&g, &s, &err);
		*reached = jitopt.has_target && s.method == JIT_OPTIMISE_CMA && s.best_value - offset <= jitopt.target;
	}
	progress_end(&g.progress);
	free(x);
	free(values);
	if (g.log && fclose(g.log) != 0 && fine)
		fine = refuse(&err, JIT_ERROR_IO, "%s: cannot be written: %s", jitopt.log, strerror(errno));
	if (fine && jitopt.state)
		fine = jit_optimiser_save(o, jitopt.state, &err) == JIT_OK;
	if (!fine)
		return user && f == jitopt_objective_values && jitopt_objective_error(user)->code
		               ? jitopt_fail_error(jitopt_objective_error(user))
		               : jitopt_fail_error(&err);
	if (!jit_cancel_get(jitopt_cancel))
		return JITOPT_DONE;
	jitopt_fail("interrupted");
	return JITOPT_INTERRUPTED;
}

/* ---- printing */

/* The first front to --front, and its volume; *points: how many. */
static bool write_front(const jit_optimiser *o, const jit_optimise_state *s, size_t *points, double *volume,
                        jit_error *err)
{
	const size_t count = jit_optimiser_count(o), n = (size_t)s->dimension, m = (size_t)s->objectives;
	double *x = calloc(count * n, sizeof *x), *values = calloc(count * m, sizeof *values);
	int32_t *rank = calloc(count, sizeof *rank);
	FILE *f = jitopt.front ? fopen(jitopt.front, "w") : NULL;
	bool fine = x && values && rank;

	if (!fine)
		refuse(err, JIT_ERROR_MEMORY, "there is no memory for the front%s%s", "", "");
	else if (jitopt.front && !f)
		fine = refuse(err, JIT_ERROR_IO, "%s: cannot be written: %s", jitopt.front, strerror(errno));
	fine = fine && jit_optimiser_population(o, x, values, rank, err) == JIT_OK;
	*points = 0;
	for (size_t i = 0; fine && i < count; i++) {
		if (rank[i])
			continue;
		for (size_t k = 0; f && k < m + n; k++)
			fprintf(f, "%s%.17g", k ? " " : "", k < m ? values[i * m + k] : x[i * n + k - m]);
		if (f)
			fputc('\n', f);
		memmove(values + *points * m, values + i * m, m * sizeof *values);
		++*points;
	}
	double reference[3] = { jitopt.reference, jitopt.reference, jitopt.reference };
	*volume = NAN;
	if (fine && jitopt.reference > 0 && m <= 3)
		fine = jit_hypervolume(values, *points, (int)m, reference, volume, err) == JIT_OK;
	if (f && (ferror(f) | fclose(f)) && fine)
		fine = refuse(err, JIT_ERROR_IO, "%s: cannot be written: %s", jitopt.front, strerror(errno));
	free(x);
	free(values);
	free(rank);
	return fine;
}

static void print_json(const jit_optimise_state *s, const char *name, double best, const double *x, size_t points,
                       double volume, bool reached)
{
	json_t *line = json_object();

	json_object_set_new(line, "objective", output_string(name));
	json_object_set_new(line, "evaluations", json_integer((json_int_t)s->evaluations));
	json_object_set_new(line, "generations", json_integer((json_int_t)s->generations));
	if (s->method == JIT_OPTIMISE_CMA) {
		json_t *at = json_array();
		json_object_set_new(line, "runs", json_integer(s->run + 1));
		json_object_set_new(line, "value", output_real(best));
		for (int i = 0; i < s->dimension; i++)
			json_array_append_new(at, output_real(x[i]));
		json_object_set_new(line, "x", at);
		json_object_set_new(line, "reached", jitopt.has_target ? json_boolean(reached) : json_null());
		json_object_set_new(line, "why", s->over ? output_string(s->why) : json_null());
	} else {
		json_object_set_new(line, "points", json_integer((json_int_t)points));
		json_object_set_new(line, "volume", output_real(volume));
	}
	json_dumpf(line, stdout, output_json_flags(stdout) | JSON_COMPACT | JSON_REAL_PRECISION(17));
	putchar('\n');
	json_decref(line);
}

static void print_plain(const jit_optimise_state *s, const char *name, double best, const double *x, size_t points,
                        double volume, bool reached)
{
	printf("%s: %" PRIu64 " evaluations, %" PRIu64 " generations", name, s->evaluations, s->generations);
	if (s->method != JIT_OPTIMISE_CMA) {
		printf(", %zu points on the front", points);
		printf(isnan(volume) ? "\n" : ", volume %.6f\n", volume);
		return;
	}
	printf(", %d run%s, %s%.10g", s->run + 1, s->run ? "s" : "",
	       jitopt.has_target && !reached ? "not reached: " : "", best);
	printf(s->over && !reached ? " (%s)\n" : "\n", s->why);
	if (jitopt.quiet)
		return;
	printf("x");
	for (int i = 0; i < s->dimension && i < 16; i++)
		printf(" %.10g", x[i]);
	printf(s->dimension > 16 ? " ... (%d numbers)\n" : "\n", s->dimension);
}

int jitopt_print(const jit_optimiser *o, const char *name, double offset, bool reached)
{
	jit_error err = { 0 };
	jit_optimise_state s = JIT_OPTIMISE_STATE();
	double *x = NULL, best = NAN, volume = NAN;
	size_t points = 0;
	bool fine = jit_optimiser_get_state(o, &s, &err) == JIT_OK;

	if (fine && s.method == JIT_OPTIMISE_CMA) {
		x = calloc((size_t)s.dimension, sizeof *x);
		fine = x ? jit_optimiser_best(o, x, &best, &err) == JIT_OK
		         : refuse(&err, JIT_ERROR_MEMORY, "there is no memory for the result%s%s", "", "");
	} else if (fine) {
		fine = write_front(o, &s, &points, &volume, &err);
	}
	if (fine)
		(jitopt.json ? print_json : print_plain)(&s, name, best - offset, x, points, volume, reached);
	free(x);
	if (!fine)
		return jitopt_fail_error(&err);
	return jitopt.has_target && s.method == JIT_OPTIMISE_CMA && !reached ? JITOPT_NOT_REACHED : JITOPT_DONE;
}

/* ---- the command */

/* Opens what --resume or the other options say. */
static jit_optimiser *open_run(jit_error *err)
{
	jit_optimise_options p = jitopt_options("cma");
	const bool one = p.method == JIT_OPTIMISE_CMA, bounded = !one || jitopt.lower || jitopt.upper;
	double *low = NULL, *high = NULL, *start = NULL;
	jit_optimiser *o = NULL;

	if (jitopt.resume)
		return jit_optimiser_load(jitopt.state, err);
	low = jitopt_numbers("--lower", jitopt.lower, one ? -INFINITY : 0, p.dimension, err);
	high = low ? jitopt_numbers("--upper", jitopt.upper, one ? INFINITY : 1, p.dimension, err) : NULL;
	start = high && one ? jitopt_numbers("--start", jitopt.start, 0, p.dimension, err) : NULL;
	if (low && high && (start || !one)) {
		double width = INFINITY;
		for (int i = 0; start && i < p.dimension; i++) {
			width = fmin(width, high[i] - low[i]);
			if (!jitopt.start && isfinite(low[i]) && isfinite(high[i]))
				start[i] = low[i] / 2 + high[i] / 2;
			else if (!jitopt.start)
				start[i] = fmin(fmax(0, low[i]), high[i]);
		}
		p.start = start;
		p.lower = bounded ? low : NULL;
		p.upper = bounded ? high : NULL;
		p.sigma = !one ? 0 : jitopt.sigma > 0 ? jitopt.sigma : isfinite(width) && width > 0 ? width / 4 : 1;
		o = jit_optimiser_open(&p, err);
	}
	free(low);
	free(high);
	free(start);
	return o;
}

int jitopt_run(void)
{
	jit_error err = { 0 };
	jit_optimise_state s = JIT_OPTIMISE_STATE();
	bool reached;

	if (jitopt.dimension == 0 && !jitopt.resume)
		return jitopt_wrong("the number of coordinates is missing: --dimension N");
	jit_optimiser *o = open_run(&err);
	if (!o || jit_optimiser_get_state(o, &s, &err) != JIT_OK) {
		jit_optimiser_close(o);
		return jitopt_fail_error(&err);
	}
	struct jitopt_objective *f = jitopt_objective_open(jitopt.operand, s.dimension, s.objectives, &err);
	int status = f ? jitopt_go(o, jitopt_objective_values, f, 0, &reached) : jitopt_fail_error(&err);
	if (f && status == JITOPT_DONE)
		status = jitopt_print(o, jitopt.operand, 0, reached);
	jitopt_objective_close(f);
	jit_optimiser_close(o);
	return status;
}

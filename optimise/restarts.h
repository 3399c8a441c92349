/* optimise/restarts.h - CMA-ES, started again whenever a run is over: with the same population, doubled ones, or both.
 *
 * IPOP: A. Auger and N. Hansen, CEC 2005: each run has twice the population of the one before. BIPOP: N. Hansen,
 * GECCO 2009 workshop: those runs take turns with runs of small populations and small steps, so that both spend about
 * the same number of evaluations.
 */
#ifndef OPTIMISE_RESTARTS_H
#define OPTIMISE_RESTARTS_H

#include "optimise/cma.h"

enum restarts_kind { RESTARTS_NONE, RESTARTS_SAME, RESTARTS_IPOP, RESTARTS_BIPOP };

struct restarts_options {
	struct cma_options cma; /* start NULL: each run starts at a point drawn from start_low to start_high */
	const double *start_low, *start_high; /* n numbers each; copied */
	enum restarts_kind kind;
	int runs; /* at most; those of small populations do not count */
};

struct restarts;
struct restarts *restarts_open(const struct restarts_options *o, struct error *err);
void restarts_close(struct restarts *r);
int restarts_dimension(const struct restarts *r);
int restarts_population(const struct restarts *r); /* of the run at hand */
/* The population of the run at hand, as cma_ask(), cma_tell() have it. *count: how many candidates. */
const double *restarts_ask(struct restarts *r, int *count);
/* False: err: the next run cannot be opened. */
bool restarts_tell(struct restarts *r, const double *values, struct error *err);

struct restarts_state {
	const double *best; /* of all runs */
	double best_value;
	uint64_t evaluations; /* of all runs */
	uint64_t generations;
	int run;            /* from 0 */
	bool small;         /* the run at hand has a small population */
	bool over;          /* the last run is over */
	enum cma_stop last; /* why the run before ended, or the last one */
	struct cma_state now;
};
struct restarts_state restarts_get_state(const struct restarts *r);

/* The whole state as text, to be freed by the caller; NULL: out of memory. Between restarts_tell() and restarts_ask()
 * alone. What is loaded goes on with the same bits. name: of the file, for messages. */
char *restarts_save(const struct restarts *r, size_t *bytes);
struct restarts *restarts_load(const char *text, size_t bytes, const char *name, struct error *err);

#endif

/* runtime/plan/cut_units.h - which units of an op a rank computes, as far as its shares decide that (cut_rows.c).
 *
 * Owns: the kinds of kernels whose units are of matrices, heads of keys, embeddings or states. Keys and values of a
 * head are kept by the rank that has the head; states, and what latent attention keeps, by all ranks.
 */
#ifndef RUNTIME_PLAN_CUT_UNITS_H
#define RUNTIME_PLAN_CUT_UNITS_H

#include "runtime/plan/cut_shares.h"
#include "runtime/plan/plan.h"

struct cut_run {
	int64_t begin, end; /* units */
};
/* In order. */
struct cut_units_list {
	struct cut_run *run;
	size_t n, room;
	bool failed;
};
/* Joins it to the last run where they touch. */
void cut_units_add(struct cut_units_list *l, int64_t begin, int64_t end);

struct cut_matrix;
struct cut_units_of_plan {
	const struct plan *plan;
	const struct cut_shares *shares;
	const struct model_spec *spec;
	struct cut_matrix *matrix; /* by address */
	size_t n;
	uint64_t choices;
};
/* False: there is no memory. cut_units_close() is due in any case. */
bool cut_units_open(struct cut_units_of_plan *u, const struct plan *p, const struct model_spec *s, struct weights *w,
                    const struct cut_shares *shares, uint64_t choices);
void cut_units_close(struct cut_units_of_plan *u);

/* GIVEN: list[rank] has them; ALL: each rank computes all of them; BY_INPUT: that depends on what it has; NONE: such an
 * op cannot be cut. */
enum cut_units_kind { CUT_UNITS_GIVEN, CUT_UNITS_ALL, CUT_UNITS_BY_INPUT, CUT_UNITS_NONE };
enum cut_units_kind cut_units_by(const struct cut_units_of_plan *u, const struct plan_op *op,
                                 struct cut_units_list *list);

#endif

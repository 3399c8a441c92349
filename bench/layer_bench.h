/* bench/layer_bench.h - single operations of a model, timed on random data.
 *
 * Owns: the memory that they work on. A lab holds one layer of a shape, its plans, and a stretch of memory in place of
 * weights and caches. Each repetition of an op uses another part of the stretch. So large matrices come from memory,
 * as they do when a model runs; small ones, whose model fits in the processor's cache, do not. Results mean nothing,
 * so every thread does its share of each op without waiting for the others. This measures kernels; bench/throughput.h
 * measures sessions.
 */
#ifndef BENCH_LAYER_BENCH_H
#define BENCH_LAYER_BENCH_H

#include "base/error.h"
#include "programs/common/shapes.h"
#include "jit/target.h"
#include "runtime/plan/plan.h"

enum { LAB_TOKENS = 256 /* of the widest plan */, LAB_POSITIONS = 16384 };

struct lab;
struct lab *lab_open(const struct target *target, int threads, struct error *err);
void lab_close(struct lab *l);
int lab_threads(const struct lab *l);

/* A layer of this shape; forgets the plans of the one before. */
bool lab_model(struct lab *l, const struct model_shape *s, const struct mixture *m, struct error *err);
/* A plan over so many tokens, ready to run; belongs to the lab. general: as in plan_options. NULL: err. */
struct plan *lab_plan(struct lab *l, uint32_t tokens, bool general, struct error *err);

/* Gives the plan's matmuls a schedule (templates.h), those that have none such the usual one. */
bool lab_set_schedule(struct lab *l, struct plan *p, uint32_t schedule, struct error *err);

/* Launches first .. first + n - 1 of a plan at a position, again and again. */
struct lab_run {
	struct plan *plan;
	size_t first, n;
	uint64_t position;
};
/* Whether the stretch has room for what these launches read. */
bool lab_fits(const struct lab *l, const struct lab_run *r);
/* Seconds that one repetition takes, in a mean over `times` of them one after the other, at most LAB_TIMES; less than
 * 0: err. */
enum { LAB_TIMES = 4096 };
double lab_time(struct lab *l, const struct lab_run *r, unsigned times, struct error *err);
/* The same, repeated for about so many seconds. */
double lab_time_for(struct lab *l, const struct lab_run *r, double seconds, struct error *err);
/* The processor time of a thread instead: what it waits for others on the machine to leave its core is not in it. */
double lab_processor_time(struct lab *l, const struct lab_run *r, unsigned times, struct error *err);

#endif

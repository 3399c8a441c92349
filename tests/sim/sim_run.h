/* tests/sim/sim_run.h - loads the simulator's test programs (tests/sim/NAME.TARGET.co beside the sources) and runs
 * one. */
#ifndef TESTS_SIM_RUN_H
#define TESTS_SIM_RUN_H

#include "sim/sim.h"

struct sim_bench {
	struct sim_device *dev;
	struct sim_object *object;
};
extern const char *const sim_bench_targets[3];

/* Fails the running test when the file is missing or is refused. */
struct sim_bench sim_bench_open(const char *name, const char *target);
void sim_bench_close(struct sim_bench *b);
uint8_t *sim_bench_read(const char *name, const char *target, size_t *size);

/* One argument block of n words; false and a sentence on a trap. */
bool sim_bench_run(struct sim_bench *b, const char *kernel, const uint64_t *args, unsigned n, uint32_t groups,
                   uint32_t size, const struct sim_options *options, struct error *err);

#endif

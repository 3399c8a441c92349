/* tests/jit/rdna_program_bench.h - programs of hand-written RDNA functions. */
#ifndef TESTS_JIT_RDNA_PROGRAM_BENCH_H
#define TESTS_JIT_RDNA_PROGRAM_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/rdna.h"
#include "jit/rdna/lir.h"
#include "jit/rdna/program.h"
#include "sim/sim.h"

static const char *const program_targets[] = { "gfx1030", "gfx1100", "gfx1150", "gfx1200" };
enum { TARGETS = sizeof program_targets / sizeof *program_targets, WAVES = RDNA_PROGRAM_WAVES };

enum { IN = 16, OUT = 18, UNITS = 20, U = 22, OTHER = 24, T = 26 };
enum function { VECTOR, SCALAR, SHARED, LOCAL, FUNCTIONS };

enum { BENCH_POLLS = 1 << 30 }; /* never in vain: the simulator sees sooner that nothing happens */
enum { MAX_UNITS = 160, STEPS = 9, WORDS = MAX_UNITS * 32 * WAVES };

struct bench {
	struct sim_device *dev;
	struct sim_object *object;
	uint8_t *bytes; /* it came from these */
	size_t size;
	uint64_t offset[FUNCTIONS];
	uint32_t *data[STEPS][FUNCTIONS], *want[STEPS][FUNCTIONS], *input; /* what each command of each step makes */
	uint64_t arg[STEPS][FUNCTIONS][3];
	struct rdna_command command[STEPS * FUNCTIONS];
	struct rdna_program_sync sync;
};

void put_wait(struct rdna *r, bool loads);
void put_lds(struct rdna *r, enum rdna_op op, unsigned v, unsigned address);
void map_memory(struct bench *b, void *p, size_t size, bool writable);
struct bench *open_bench(const char *target);
void close_bench(struct bench *b);
/* Runs other code from now on. */
void reload_bench(struct bench *b, const uint8_t *bytes, size_t size);
/* Every step runs all functions on what some function of the step before made, in an order that the seed chooses; only
 * its last command has a barrier. */
void build_program(struct bench *b, unsigned units, uint32_t workgroups, unsigned seed);
bool launch_program(struct bench *b, uint32_t first, uint32_t end, uint32_t workgroups, const struct sim_options *o,
                    struct error *err);
bool is_right(const struct bench *b);

#endif

/* tests/sim/sim_check.h - programs for the tests of the simulator. */
#ifndef TESTS_SIM_SIM_CHECK_H
#define TESTS_SIM_SIM_CHECK_H

#include <stdint.h>

#include "tests/sim/sim_run.h"

extern uint32_t sim_buffer[16384];
uint32_t draw_number(void);
struct sim_bench open_programs(unsigned t);

/* The tests of the other files of the program: the number that failed. */
int sim_object_tests(void);

#endif

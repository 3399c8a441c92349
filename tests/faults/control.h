/* tests/faults/control.h - the page that a test shares with the allocation functions preloaded into a program
 * (preload.c). */
#ifndef TESTS_FAULTS_CONTROL_H
#define TESTS_FAULTS_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>

/* The environment variable that has the number of the page's file descriptor. */
#define FAULTS_FD "JITRUN_TEST_FAULTS_FD"

struct faults_control {
	_Atomic bool begun;     /* the program's own code runs: calls count */
	unsigned at;            /* the call that fails, from 1 on; 0: none */
	bool later;             /* and all behind it */
	_Atomic unsigned count; /* calls so far */
};

#endif

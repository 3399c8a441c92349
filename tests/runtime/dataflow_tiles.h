/* tests/runtime/dataflow_tiles.h - the tests of the other file of t_dataflow. */
#ifndef TESTS_DATAFLOW_TILES_H
#define TESTS_DATAFLOW_TILES_H

/* The number that failed. */
int dataflow_tiles_tests(void);

#endif

/* tests/runtime/handed_tiles.h - the tests of the other file of t_handed. */
#ifndef TESTS_HANDED_TILES_H
#define TESTS_HANDED_TILES_H

/* The number that failed. */
int handed_tiles_tests(void);

#endif

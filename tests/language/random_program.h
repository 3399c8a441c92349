/* tests/language/random_program.h - kernels by chance: well typed, with every statement that lanes may leave one by
 * one.
 *
 * The same seed gives the same text. Floats are stored without NaNs, whose bits depend on the order of operands.
 */
#ifndef TESTS_LANGUAGE_RANDOM_PROGRAM_H
#define TESTS_LANGUAGE_RANDOM_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

void random_program(char *text, size_t size, uint64_t seed);

#endif

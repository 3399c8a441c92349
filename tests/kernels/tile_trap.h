/* tests/kernels/tile_trap.h - AMX tile instructions on processors that have none: each traps, and is done in C, from
 * its bytes.
 *
 * So that generated code for such a target runs, and is compared, on any machine with AVX-512. The decoder is written
 * from Intel's manual (SDM volume 2, the instructions; volume 1, chapter 18) and shares nothing with encoders/. Strict:
 * an unknown byte, a tile not set up, a shape that does not fit or three registers that are not different end the
 * process with a sentence, as do all other illegal instructions.
 */
#ifndef TESTS_TILE_TRAP_H
#define TESTS_TILE_TRAP_H

#include <stdint.h>

/* From now on, in all threads. Tiles are each thread's own. */
void tile_trap_install(void);
/* Tile instructions done so far, by all threads. */
uint64_t tile_trap_count(void);

#endif

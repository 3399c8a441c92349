/* programs/synth/synth_blocks.h - random blocks of a weight format, for synth.c. */
#ifndef BENCH_SYNTH_BLOCKS_H
#define BENCH_SYNTH_BLOCKS_H

#include <stdint.h>

#include "base/dtype.h"

/* What a row begins with before its blocks, of types that have such. */
void synth_row_head(enum dtype type, uint8_t *out);
void synth_fill(enum dtype type, uint8_t *out, uint64_t blocks);

#endif

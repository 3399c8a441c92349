/* tests/runtime/batch_sound.h - whether the memory of a batch adds up: each page's holders are those that have it in
 * their lists, tables have the addresses of their pages, and what counts is what sessions and what is remembered take.
 */
#ifndef TESTS_RUNTIME_BATCH_SOUND_H
#define TESTS_RUNTIME_BATCH_SOUND_H

#include "runtime/batch/batch.h"

bool batch_memory_sound(const struct jit_batch *b, struct error *err);

#endif

/* jit/rdna/end.h - a program that does nothing: what a card that nobody has run code on is asked first. */
#ifndef JIT_RDNA_END_H
#define JIT_RDNA_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define RDNA_END_KERNEL "end"

/* A code object with one kernel of one instruction, s_endpgm, for workgroups of one wave; malloc'ed. False: err. */
bool rdna_end_make(uint8_t **bytes, size_t *size, const char *target, struct error *err);

#endif

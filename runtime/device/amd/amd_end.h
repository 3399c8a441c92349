/* runtime/device/amd/amd_end.h - the first thing a card is asked: to run a program that does nothing. */
#ifndef RUNTIME_AMD_END_H
#define RUNTIME_AMD_END_H

#include "base/error.h"

/* Opens a queue alone, and neither copies nor clears memory with the card: one wave runs one instruction, s_endpgm.
 * which: as behind "amd:". False: err. */
bool amd_run_end(const char *which, struct error *err);

#endif

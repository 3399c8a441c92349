/* programs/common/device_auto.h - --device auto: the device that should be done first, and the numbers behind that. */
#ifndef PROGRAMS_DEVICE_AUTO_H
#define PROGRAMS_DEVICE_AUTO_H

#include <stdbool.h>
#include <string.h>

#include "include/jitrun_kernel.h"

static inline bool device_is_auto(const char *name) { return name && strcmp(name, "auto") == 0; }

/* The name of the device goes to out; unless quiet, a line for each device that was compared, on standard error. False:
 * err. */
enum { DEVICE_AUTO_MAX = 32 };
bool device_auto_choose(const jit_work *work, const char *what, bool quiet, char out[DEVICE_AUTO_MAX], jit_error *err);

#endif

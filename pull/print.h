/* pull/print.h - the file at an address goes to a stream, as jitserve has it for requests that name pictures. */
#ifndef PULL_PRINT_H
#define PULL_PRINT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* At max so many bytes. Redirects are followed within the same scheme, host and port, and nobody is told who asks.
 * False: err; then some of it may be written. */
bool pull_print(const char *url, uint64_t max, FILE *to, const char *agent, const volatile sig_atomic_t *interrupted,
                struct error *err);

#endif

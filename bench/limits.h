/* bench/limits.h - what the device that a model runs on can do at most, measured when asked.
 *
 * Owns: which limits a device has. Where the host's threads compute, it is the machine's memory and cores; an NVIDIA
 * card has the bandwidth of its memory. What is simulated has none, and of other cards none is measured.
 */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include "bench/peak.h"
#include "include/jitrun.h"

enum limit_kind { LIMIT_MEMORY, LIMIT_ARITHMETIC };

struct limits {
	struct bandwidth *bandwidth; /* the host's; NULL: a card computes */
	struct peak *peak;
	enum peak_kind peak_kind;
	struct card_bandwidth *card; /* NULL: the host computes, or nothing is measured */
	char none[512];              /* why nothing is measured; empty: something is */
};

/* False: err. */
bool limits_open(struct limits *l, jit_model *m, int threads, jit_error *err);
void limits_close(struct limits *l);
bool limits_have(const struct limits *l, enum limit_kind k);
/* "read bandwidth", "vpdpbusd 512"; "" where there is none. */
const char *limits_name(const struct limits *l, enum limit_kind k);
/* Bytes or operations a second now, the best of some readings; 0 where there is none. Less than 0: err. */
double limits_read(const struct limits *l, enum limit_kind k, jit_error *err);
/* All that are known, on standard output. False: err. */
bool limits_print(const struct limits *l, jit_error *err);

#endif

/* bench/peak.h - how many multiplications a second this machine's cores can do, measured when asked.
 *
 * Owns: the loops that prompts are compared with. Each is a set of independent chains of one instruction, in
 * registers, on every thread at once. A multiplication with its addition counts as two operations.
 */
#ifndef BENCH_PEAK_H
#define BENCH_PEAK_H

#include <stdbool.h>

enum peak_kind {
	PEAK_FMA_256,
	PEAK_FMA_512,
	PEAK_MADDUBS_256,
	PEAK_MADDUBS_512,
	PEAK_VNNI_256,
	PEAK_VNNI_512,
	PEAK_BF16_512,
	PEAK_COUNT
};

const char *peak_name(enum peak_kind k); /* "vpdpbusd 512" */
bool peak_possible(enum peak_kind k);    /* this CPU has the instruction */
/* What a kernel for `isa` ("avx2", ...) multiplies with: floats, int8 against int8, or pairs of BF16. */
enum peak_operands { PEAK_FLOATS, PEAK_INT8, PEAK_DOT2 };
enum peak_kind peak_of(const char *isa, enum peak_operands operands);

struct peak;
struct peak *peak_open(int threads); /* NULL: no memory */
void peak_close(struct peak *p);
/* Operations per second of all threads now: the best of `times` readings of about a millisecond. */
double peak_sample(struct peak *p, enum peak_kind k, int times);

#endif

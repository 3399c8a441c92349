#include "runtime/host/pairs.h"

#include <pthread.h>
#include <stddef.h>

#include "jit/target.h"
#include "runtime/host/system.h"

/* More chains than latency times units; a reading of some two hundred microseconds, and the best of several: what
 * else runs here does not run in all of them. */
enum { CHAINS = 12, ROUNDS = 60000, READINGS = 10 };
/* Instructions take whole cycles, so that pairs have half of fma's pace, the same, or twice as much. */
static const double min_gain = 1.4;

/* Registers 0 to 11 are the chains, 12 and 13 the factors. All are 0: no value takes longer than another. */
#define TWELVE(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11)
#define CLEAR(n) "vpxor %%xmm" #n ", %%xmm" #n ", %%xmm" #n "\n"
#define FMA(n) "vfmadd231ps %%zmm12, %%zmm13, %%zmm" #n "\n"
#define DOT(n) "vdpbf16ps %%zmm12, %%zmm13, %%zmm" #n "\n"
#define LOOP(step) \
	do { \
		long rounds = ROUNDS; \
		__asm__ volatile(TWELVE(CLEAR) CLEAR(12) CLEAR(13) "1:\n" TWELVE(step) "dec %0\njnz 1b\nvzeroupper\n" \
		                 : "+r"(rounds) \
		                 : \
		                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
		                   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13"); \
	} while (0)

__attribute__((target("avx512f"))) static void multiply_floats(void) { LOOP(FMA); }
__attribute__((target("avx512f,avx512bf16"))) static void multiply_pairs(void) { LOOP(DOT); }

static double rate(void (*work)(void), double operations)
{
	double start = system_seconds();

	work();
	double seconds = system_seconds() - start;
	return seconds > 0 ? operations * CHAINS * ROUNDS / seconds : 0;
}

static pthread_once_t measured = PTHREAD_ONCE_INIT;
static struct pairs_peaks here;
static const struct pairs_peaks *pretended;

/* In turn, so that a change of the clock meets both. */
static void measure(void)
{
	const struct target_cpu cpu = target_this_cpu();

	if (!target_runs(&cpu, &target_table[TARGET_AVX512_BF16], NULL))
		return;
	for (int i = 0; i < READINGS; i++) {
		const double floats = rate(multiply_floats, 16), pairs = rate(multiply_pairs, 32);
		here.floats = floats > here.floats ? floats : here.floats;
		here.pairs = pairs > here.pairs ? pairs : here.pairs;
	}
}

struct pairs_peaks pairs_peaks(void)
{
	if (pretended)
		return *pretended;
	pthread_once(&measured, measure);
	return here;
}

double pairs_gain(const struct pairs_peaks *p) { return p->floats > 0 ? p->pairs / p->floats : 0; }

bool pairs_pay(const struct pairs_peaks *p) { return pairs_gain(p) >= min_gain; }

void pairs_pretend(const struct pairs_peaks *p) { pretended = p; }

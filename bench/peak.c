#include "bench/peak.h"

#include <stdlib.h>
#include <string.h>

#include "jit/target.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"

/* More chains than latency times units, fewer than registers; a reading of about a millisecond. */
enum { CHAINS = 12, ROUNDS = 400000 };

/* Each loop is written out in registers of our choosing, since a compiler may keep chains in memory. Registers 0 to 11
 * are the chains, 12 and 13 the factors, 14 and 15 what lies between two instructions of one step. All are 0: no
 * instruction here takes longer for one value than for another. */
#define TWELVE(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11)
#define CLEAR(n) "vpxor %%xmm" #n ", %%xmm" #n ", %%xmm" #n "\n"
#define LOOP(step) \
	do { \
		long rounds = ROUNDS; \
		__asm__ volatile(TWELVE(CLEAR) CLEAR(12) CLEAR(13) "1:\n" TWELVE(step) "dec %0\njnz 1b\nvzeroupper\n" \
		                 : "+r"(rounds) \
		                 : \
		                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
		                   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"); \
	} while (0)
#define FMA(reg, n) "vfmadd231ps %%" reg "12, %%" reg "13, %%" reg #n "\n"
#define MADDUBS(reg, n) \
	"vpmaddubsw %%" reg "12, %%" reg "13, %%" reg "14\nvpmaddwd %%" reg "14, %%" reg "13, %%" reg \
	"15\nvpaddd %%" reg "15, %%" reg #n ", %%" reg #n "\n"
#define FMA_Y(n) FMA("ymm", n)
#define FMA_Z(n) FMA("zmm", n)
#define MADDUBS_Y(n) MADDUBS("ymm", n)
#define MADDUBS_Z(n) MADDUBS("zmm", n)
#define VNNI_Y(n) "%{vex%} vpdpbusd %%ymm12, %%ymm13, %%ymm" #n "\n"
#define VNNI_Z(n) "vpdpbusd %%zmm12, %%zmm13, %%zmm" #n "\n"
#define BF16_Z(n) "vdpbf16ps %%zmm12, %%zmm13, %%zmm" #n "\n"

__attribute__((target("avx2,fma"))) static void fma_256(void) { LOOP(FMA_Y); }
__attribute__((target("avx512f"))) static void fma_512(void) { LOOP(FMA_Z); }
__attribute__((target("avx2"))) static void maddubs_256(void) { LOOP(MADDUBS_Y); }
__attribute__((target("avx512bw"))) static void maddubs_512(void) { LOOP(MADDUBS_Z); }
__attribute__((target("avx2,avxvnni"))) static void vnni_256(void) { LOOP(VNNI_Y); }
__attribute__((target("avx512f,avx512vnni"))) static void vnni_512(void) { LOOP(VNNI_Z); }
__attribute__((target("avx512f,avx512bf16"))) static void bf16_512(void) { LOOP(BF16_Z); }

/* target: what jit/target.h calls the least instruction set that has it. */
static const struct {
	const char *name, *target;
	void (*work)(void);
	int operations;
} table[PEAK_COUNT] = {
	[PEAK_FMA_256] = { "fma 256", "avx2", fma_256, 16 },
	[PEAK_FMA_512] = { "fma 512", "avx512", fma_512, 32 },
	[PEAK_MADDUBS_256] = { "maddubs 256", "avx2", maddubs_256, 64 },
	[PEAK_MADDUBS_512] = { "maddubs 512", "avx512", maddubs_512, 128 },
	[PEAK_VNNI_256] = { "vpdpbusd 256", "avx2vnni", vnni_256, 64 },
	[PEAK_VNNI_512] = { "vpdpbusd 512", "avx512vnni", vnni_512, 128 },
	[PEAK_BF16_512] = { "vdpbf16ps 512", "avx512bf16", bf16_512, 64 },
};

const char *peak_name(enum peak_kind k) { return table[k].name; }

bool peak_possible(enum peak_kind k)
{
	struct target_cpu cpu = target_this_cpu();
	return target_runs(&cpu, target_find(table[k].target), NULL);
}

enum peak_kind peak_of(const char *isa, enum peak_operands operands)
{
	const struct target *t = target_find(isa);
	const bool wide = strncmp(isa, "avx512", strlen("avx512")) == 0;

	if (operands == PEAK_DOT2 && t && t->has_dot2)
		return PEAK_BF16_512;
	if (operands != PEAK_INT8)
		return wide ? PEAK_FMA_512 : PEAK_FMA_256;
	if (t && t->has_vnni)
		return wide ? PEAK_VNNI_512 : PEAK_VNNI_256;
	return wide ? PEAK_MADDUBS_512 : PEAK_MADDUBS_256;
}

struct peak {
	struct pool *pool;
};

struct peak *peak_open(int threads)
{
	struct peak *p = calloc(1, sizeof *p);
	if (p && !(p->pool = pool_open(threads, NULL))) {
		free(p);
		return NULL;
	}
	return p;
}

void peak_close(struct peak *p)
{
	if (!p)
		return;
	pool_close(p->pool);
	free(p);
}

static void work(void *user, int worker, int workers)
{
	(void)worker, (void)workers;
	table[*(enum peak_kind *)user].work();
}

double peak_sample(struct peak *p, enum peak_kind k, int times)
{
	double best = 0, operations = (double)CHAINS * ROUNDS * table[k].operations * pool_threads(p->pool);
	for (int i = 0; i < times; i++) {
		double t = system_seconds();
		pool_run(p->pool, work, &k);
		double rate = operations / (system_seconds() - t);
		best = rate > best ? rate : best;
	}
	return best;
}

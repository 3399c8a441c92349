#include "bench/peak.h"

#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#include "jit/target.h"
#include "runtime/pool.h"
#include "runtime/system.h"

enum { CHAINS = 12, ROUNDS = 200000 };           /* more chains than latency times units, fewer than registers */

/* Keeps the compiler from computing a product once for all rounds; costs nothing at run time. */
#define FRESH(constraint, x) __asm__ volatile("" : "+" constraint(x))

__attribute__((target("avx2,fma"))) static void fma_256(void)
{
	__m256 a[CHAINS], x = _mm256_set1_ps(0.5f);
	for (int i = 0; i < CHAINS; i++)
		a[i] = _mm256_setzero_ps();
	for (int r = 0; r < ROUNDS; r++) {
		_Pragma("GCC unroll 12")
		for (int i = 0; i < CHAINS; i++) {
			a[i] = _mm256_fmadd_ps(x, x, a[i]);
			FRESH("x", a[i]);
		}
	}
}

__attribute__((target("avx512f"))) static void fma_512(void)
{
	__m512 a[CHAINS], x = _mm512_set1_ps(0.5f);
	for (int i = 0; i < CHAINS; i++)
		a[i] = _mm512_setzero_ps();
	for (int r = 0; r < ROUNDS; r++) {
		_Pragma("GCC unroll 12")
		for (int i = 0; i < CHAINS; i++) {
			a[i] = _mm512_fmadd_ps(x, x, a[i]);
			FRESH("v", a[i]);
		}
	}
}

__attribute__((target("avx2"))) static void maddubs_256(void)
{
	__m256i a[CHAINS], x = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
	for (int i = 0; i < CHAINS; i++)
		a[i] = _mm256_setzero_si256();
	for (int r = 0; r < ROUNDS; r++) {
		_Pragma("GCC unroll 12")
		for (int i = 0; i < CHAINS; i++) {
			FRESH("x", x);
			a[i] = _mm256_add_epi32(a[i], _mm256_madd_epi16(_mm256_maddubs_epi16(x, x), ones));
			FRESH("x", a[i]);
		}
	}
}

__attribute__((target("avx512f,avx512bw"))) static void maddubs_512(void)
{
	__m512i a[CHAINS], x = _mm512_set1_epi8(3), ones = _mm512_set1_epi16(1);
	for (int i = 0; i < CHAINS; i++)
		a[i] = _mm512_setzero_si512();
	for (int r = 0; r < ROUNDS; r++) {
		_Pragma("GCC unroll 12")
		for (int i = 0; i < CHAINS; i++) {
			FRESH("v", x);
			a[i] = _mm512_add_epi32(a[i], _mm512_madd_epi16(_mm512_maddubs_epi16(x, x), ones));
			FRESH("v", a[i]);
		}
	}
}

__attribute__((target("avx2,avxvnni"))) static void vnni_256(void)
{
	__m256i a[CHAINS], x = _mm256_set1_epi8(3);
	for (int i = 0; i < CHAINS; i++)
		a[i] = _mm256_setzero_si256();
	for (int r = 0; r < ROUNDS; r++) {
		_Pragma("GCC unroll 12")
		for (int i = 0; i < CHAINS; i++) {
			a[i] = _mm256_dpbusd_avx_epi32(a[i], x, x);
			FRESH("x", a[i]);
		}
	}
}

__attribute__((target("avx512f,avx512vnni"))) static void vnni_512(void)
{
	__m512i a[CHAINS], x = _mm512_set1_epi8(3);
	for (int i = 0; i < CHAINS; i++)
		a[i] = _mm512_setzero_si512();
	for (int r = 0; r < ROUNDS; r++) {
		_Pragma("GCC unroll 12")
		for (int i = 0; i < CHAINS; i++) {
			a[i] = _mm512_dpbusd_epi32(a[i], x, x);
			FRESH("v", a[i]);
		}
	}
}

/* target: what jit/target.h calls the least instruction set that has it. */
static const struct { const char *name, *target; void (*work)(void); int operations; } table[PEAK_COUNT] = {
	[PEAK_FMA_256] = { "fma 256", "avx2", fma_256, 16 },
	[PEAK_FMA_512] = { "fma 512", "avx512", fma_512, 32 },
	[PEAK_MADDUBS_256] = { "maddubs 256", "avx2", maddubs_256, 64 },
	[PEAK_MADDUBS_512] = { "maddubs 512", "avx512", maddubs_512, 128 },
	[PEAK_VNNI_256] = { "vpdpbusd 256", "avx2vnni", vnni_256, 64 },
	[PEAK_VNNI_512] = { "vpdpbusd 512", "avx512vnni", vnni_512, 128 },
};

const char *peak_name(enum peak_kind k) { return table[k].name; }

bool peak_possible(enum peak_kind k)
{
	struct target_cpu cpu = target_this_cpu();
	return target_runs(&cpu, target_find(table[k].target), NULL);
}

enum peak_kind peak_of(const char *isa, bool int8)
{
	bool wide = strncmp(isa, "avx512", strlen("avx512")) == 0;
	if (!int8)
		return wide ? PEAK_FMA_512 : PEAK_FMA_256;
	if (strstr(isa, "vnni"))
		return wide ? PEAK_VNNI_512 : PEAK_VNNI_256;
	return wide ? PEAK_MADDUBS_512 : PEAK_MADDUBS_256;
}

struct peak { struct pool *pool; };

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

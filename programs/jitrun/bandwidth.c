#include "programs/jitrun/bandwidth.h"

#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/host/pool.h"
#include "runtime/host/system.h"

enum {
	LINE = 64,
	AHEAD = 2048,
	NEAR = 4096,
	FAR = 8192,
	SLACK = FAR + LINE,
	BYTES = 256 << 20,
	MIN = 4 << 20,
	CACHES = 4,
	MEMORY = 4
};

static volatile uint64_t sink; /* what was read must count for something */

__attribute__((target("avx2"))) static void plain_avx2(const char *p, size_t n)
{
	__m256i a = _mm256_setzero_si256(), b = a;
	for (size_t i = 0; i < n; i += LINE) {
		a = _mm256_xor_si256(a, _mm256_load_si256((const __m256i *)(p + i)));
		b = _mm256_xor_si256(b, _mm256_load_si256((const __m256i *)(p + i + 32)));
	}
	sink ^= (uint64_t)_mm256_extract_epi64(_mm256_xor_si256(a, b), 0);
}

__attribute__((target("avx2"))) static void prefetch_avx2(const char *p, size_t n)
{
	__m256i a = _mm256_setzero_si256(), b = a;
	for (size_t i = 0; i < n; i += LINE) {
		_mm_prefetch(p + i + AHEAD, _MM_HINT_T0);
		a = _mm256_xor_si256(a, _mm256_load_si256((const __m256i *)(p + i)));
		b = _mm256_xor_si256(b, _mm256_load_si256((const __m256i *)(p + i + 32)));
	}
	sink ^= (uint64_t)_mm256_extract_epi64(_mm256_xor_si256(a, b), 0);
}

__attribute__((target("avx2"))) static void streams_avx2(const char *p, size_t n)
{
	size_t quarter = n / 4 / LINE * LINE;
	__m256i a[4] = { _mm256_setzero_si256() };
	for (size_t i = 0; i < quarter; i += LINE)
		for (int s = 0; s < 4; s++) {
			const char *q = p + (size_t)s * quarter + i;
			_mm_prefetch(q + AHEAD, _MM_HINT_T0);
			a[s] = _mm256_xor_si256(a[s], _mm256_xor_si256(_mm256_load_si256((const __m256i *)q),
			                                               _mm256_load_si256((const __m256i *)(q + 32))));
		}
	for (int s = 0; s < 4; s++)
		sink ^= (uint64_t)_mm256_extract_epi64(a[s], 0);
}

/* Into the second cache level first, which has room for more requests under way than the first. */
__attribute__((target("avx2"))) static void levels_avx2(const char *p, size_t n)
{
	__m256i a = _mm256_setzero_si256(), b = a;
	for (size_t i = 0; i < n; i += LINE) {
		_mm_prefetch(p + i + FAR, _MM_HINT_T1);
		_mm_prefetch(p + i + NEAR, _MM_HINT_T0);
		a = _mm256_xor_si256(a, _mm256_load_si256((const __m256i *)(p + i)));
		b = _mm256_xor_si256(b, _mm256_load_si256((const __m256i *)(p + i + 32)));
	}
	sink ^= (uint64_t)_mm256_extract_epi64(_mm256_xor_si256(a, b), 0);
}

__attribute__((target("avx512f"))) static void levels_avx512(const char *p, size_t n)
{
	__m512i a = _mm512_setzero_si512(), b = a;
	for (size_t i = 0; i + LINE < n; i += 2 * LINE) {
		for (size_t line = 0; line < 2; line++) {
			_mm_prefetch(p + i + line * LINE + FAR, _MM_HINT_T1);
			_mm_prefetch(p + i + line * LINE + NEAR, _MM_HINT_T0);
		}
		a = _mm512_xor_si512(a, _mm512_load_si512((const void *)(p + i)));
		b = _mm512_xor_si512(b, _mm512_load_si512((const void *)(p + i + LINE)));
	}
	sink ^= (uint64_t)_mm512_reduce_add_epi64(_mm512_xor_si512(a, b));
}

__attribute__((target("avx512f"))) static void streams_avx512(const char *p, size_t n)
{
	size_t quarter = n / 4 / LINE * LINE;
	__m512i a[4];
	for (int s = 0; s < 4; s++)
		a[s] = _mm512_setzero_si512();
	for (size_t i = 0; i < quarter; i += LINE)
		for (int s = 0; s < 4; s++) {
			const char *q = p + (size_t)s * quarter + i;
			_mm_prefetch(q + AHEAD, _MM_HINT_T0);
			a[s] = _mm512_xor_si512(a[s], _mm512_load_si512((const void *)q));
		}
	for (int s = 0; s < 4; s++)
		sink ^= (uint64_t)_mm512_reduce_add_epi64(a[s]);
}

struct pattern {
	const char *name;
	void (*read)(const char *, size_t);
};
struct bandwidth {
	struct pool *pool;
	const struct pattern *pattern;
	char *base;
	size_t bytes;
};

static void read_part(void *user, int worker, int workers)
{
	const struct bandwidth *j = user;
	size_t part = j->bytes / (size_t)workers / 4096 * 4096;
	j->pattern->read(j->base + (size_t)worker * part, part);
}

static void touch_part(void *user, int worker, int workers)
{
	const struct bandwidth *j = user;
	size_t part = j->bytes / (size_t)workers / 4096 * 4096;
	for (size_t i = 0; i < part; i += 4096)
		j->base[(size_t)worker * part + i] = 1;
}

static double read_once(struct bandwidth *b)
{
	double t = system_seconds();
	pool_run(b->pool, read_part, b);
	return (double)b->bytes / (system_seconds() - t);
}

double bandwidth_sample(struct bandwidth *b, int times)
{
	double best = 0;
	for (int i = 0; i < times; i++) {
		double rate = read_once(b);
		best = rate > best ? rate : best;
	}
	return best;
}

uint64_t bandwidth_bytes(uint64_t caches, uint64_t available)
{
	uint64_t max = available / MEMORY,
		 bytes = caches < BYTES / CACHES ? BYTES
	                 : caches < max          ? caches * CACHES
	                                         : max;

	bytes = bytes < max ? bytes : max;
	return bytes > MIN ? bytes / 4096 * 4096 : MIN;
}

static size_t bytes_to_read(void)
{
	const char *requested = getenv("JITRUN_BENCH_BYTES");
	uint64_t usual = bandwidth_bytes(system_cache_bytes(), system_available_memory()),
		 bytes = requested ? strtoull(requested, NULL, 10) : usual;

	return bytes < MIN ? MIN : bytes > usual ? usual : bytes;
}

static struct bandwidth *open_with(int threads, int calibration)
{
	static const struct pattern patterns[] = {
		{ "avx2, 1 stream", plain_avx2 },
		{ "avx2, 1 stream, prefetch", prefetch_avx2 },
		{ "avx2, 4 streams, prefetch", streams_avx2 },
		{ "avx2, 1 stream, prefetch into two levels", levels_avx2 },
		{ "avx512, 4 streams, prefetch", streams_avx512 },
		{ "avx512, 1 stream, prefetch into two levels", levels_avx512 }
	};
	int n = __builtin_cpu_supports("avx512f") ? 6 : 4;
	struct bandwidth *b = calloc(1, sizeof *b);
	double best = 0;

	if (!b)
		return NULL;
	b->bytes = bytes_to_read();
	b->pool = pool_open(threads, NULL);
	b->base = system_map(b->bytes + SLACK);
	if (!b->pool || !b->base) {
		bandwidth_close(b);
		return NULL;
	}
	pool_run(b->pool, touch_part, b);
	const struct pattern *fastest = patterns;
	for (int i = 0; i < n; i++) {
		b->pattern = &patterns[i];
		double rate = bandwidth_sample(b, calibration);
		if (rate > best) {
			best = rate;
			fastest = &patterns[i];
		}
	}
	b->pattern = fastest;
	return b;
}

struct bandwidth *bandwidth_open(int threads) { return open_with(threads, 5); }
struct bandwidth *bandwidth_open_quickly(int threads) { return open_with(threads, 1); }

void bandwidth_close(struct bandwidth *b)
{
	if (!b)
		return;
	system_unmap(b->base, b->bytes + SLACK);
	pool_close(b->pool);
	free(b);
}

const char *bandwidth_pattern(const struct bandwidth *b) { return b->pattern->name; }

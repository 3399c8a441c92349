/* tests/fuzz/fuzz_packed.c - arbitrary bytes as a packed model: what opens can be searched, loaded, checked and opened
 * as a model with its weights mapped and copied. Each input is tried as it is, and once more with the checksums of
 * header, index and sections made to fit, so that the numbers behind them are reached. */
#include <stdlib.h>
#include <string.h>

#include "jit/store/pack.h"
#include "jit/store/record.h"
#include "runtime/model/load_packed.h"
#include "runtime/model/packed.h"
#include "tests/fuzz/fuzz.h"

enum {
	HEADER = 64,
	RECORD = 64,
	AT_VERSION = 8,
	AT_SECTIONS = 12,
	AT_BYTES = 16,
	AT_INDEX = 24,
	AT_INDEX_SUM = 32,
	AT_SUM = 56
};

static volatile uint64_t sink;

static void touch_weights(const struct model *m, const struct container *c, struct device *d, struct pool *pool)
{
	for (int copy = 0; copy < 2; copy++) {
		struct error err = { 0 };
		struct weights w;
		if (!weights_open_packed(&w, m, c, d, copy, pool, NULL, NULL, &err)) {
			if (!err.text[0])
				abort();
			continue;
		}
		for (size_t i = 0; i < w.arena_bytes; i += 64)
			sink += w.arena[i];
		sink += w.lm_head.packed[0] + (w.final_norm[0] > 0);
		weights_close(&w);
	}
}

static void read_model(const struct packed *p)
{
	static struct device *device;
	static struct pool *pool;
	struct error err = { 0 };
	struct model m;

	if (!device && (!(device = device_open("ref", "avx2", NULL)) || !(pool = pool_open(1, NULL))))
		abort();
	if (packed_model(p, &m, 0, &err)) {
		touch_weights(&m, packed_container(p), device, pool);
		model_close(&m);
	} else if (!err.text[0]) {
		abort();
	}
}

static void read_packed(const uint8_t *bytes, size_t n)
{
	const char *path = fuzz_file(0, "model.jkm", bytes, n);
	struct error err = { 0 };
	struct packed *p = packed_open(path, &err);

	if (!p) {
		if (!err.text[0])
			abort();
		return;
	}
	const struct container *c = packed_container(p);
	for (size_t i = 0; i < container_count(c); i++) {
		struct error why = { 0 };
		if (!container_verify(c, container_get(c, i), &why) && !why.text[0])
			abort();
	}
	pack_close(pack_open(path, NULL));
	read_model(p);
	packed_close(p);
}

static void seal_section(uint8_t *p, size_t n, const uint8_t *r, uint8_t **sum)
{
	uint64_t offset = record_get64(r + 8), bytes = record_get64(r + 16);

	for (uint64_t at = 0; at < bytes; at += CONTAINER_CHUNK, *sum += 8) {
		uint64_t part = bytes - at < CONTAINER_CHUNK ? bytes - at : CONTAINER_CHUNK;
		if (offset > n || offset + at > n || part > n - offset - at || *sum + 8 > p + n)
			return;
		record_put64(*sum, record_checksum(p + offset + at, part, record_get32(r)));
	}
}

static void seal(uint8_t *p, size_t n)
{
	record_put32(p + AT_VERSION, CONTAINER_VERSION);
	record_put64(p + AT_BYTES, n);
	uint64_t index = record_get64(p + AT_INDEX);
	uint32_t sections = record_get32(p + AT_SECTIONS);
	if (index <= n && sections <= (n - index) / RECORD) {
		uint8_t *sum = p + index + (uint64_t)sections * RECORD;
		for (uint32_t i = 0; i < sections; i++)
			seal_section(p, n, p + index + (uint64_t)i * RECORD, &sum);
	}
	if (index <= n)
		record_put64(p + AT_INDEX_SUM, record_checksum(p + index, n - index, CONTAINER_VERSION));
	record_put64(p + AT_SUM, record_checksum(p, AT_SUM, CONTAINER_VERSION));
}

void fuzz_packed(const uint8_t *p, size_t n)
{
	read_packed(p, n);
	if (n < HEADER)
		return;
	uint8_t *copy = malloc(n);
	if (!copy)
		return;
	memcpy(copy, p, n);
	seal(copy, n);
	read_packed(copy, n);
	free(copy);
}

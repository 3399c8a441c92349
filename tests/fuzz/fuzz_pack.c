/* tests/fuzz/fuzz_pack.c - arbitrary bytes as a pack of code objects: what opens can be searched, listed, read and
 * checked, and never reaches past its bytes. Each input is tried as it is, and once more with every checksum made to
 * fit, so that the numbers behind them are reached. */
#include <stdlib.h>
#include <string.h>

#include "jit/store/pack.h"
#include "jit/store/record.h"
#include "tests/fuzz/fuzz.h"

enum {
	HEADER = 64,
	AT_VERSION = 8,
	AT_RECORD_BYTES = 12,
	AT_RECORDS = 16,
	AT_SLOTS = 20,
	AT_BYTES = 24,
	AT_INDEX_SUM = 32,
	AT_SUM = 56,
	IN_OFFSET = 48,
	IN_SUM = 88
};

static volatile uint64_t sink;

static void touch(struct object *o)
{
	for (uint32_t i = 0; i < o->code_bytes; i++)
		sink += o->code[i];
	if (o->code_bytes == 0 || o->code_bytes > RECORD_MAX_CODE || o->pool_offset > o->code_bytes)
		abort();
	object_free(o);
}

static bool look(const struct pack_entry *e, void *user)
{
	struct object o;

	if (pack_find(user, &e->key, &o, NULL) == RECORD_FOUND)
		touch(&o);
	return true;
}

static void read_pack(const uint8_t *p, size_t n)
{
	struct error err = { 0 }, why = { 0 };
	struct pack *pack = pack_open_memory(p, n, "fuzz", &err);
	struct key none;
	struct object o;

	if (!pack) {
		if (!err.text[0])
			abort();
		return;
	}
	memset(&none, 0xa5, sizeof none);
	if (pack_find(pack, &none, &o, NULL) == RECORD_FOUND)
		touch(&o);
	for (size_t i = 0; i < pack_count(pack); i++)
		if (pack_read(pack, i, &o, NULL) == RECORD_FOUND)
			touch(&o);
	pack_each(pack, look, pack);
	if (!pack_verify(pack, &why) && !why.text[0])
		abort();
	pack_close(pack);
}

static void seal(uint8_t *p, size_t n)
{
	record_put32(p + AT_VERSION, RECORD_VERSION);
	record_put32(p + AT_RECORD_BYTES, RECORD_BYTES);
	record_put64(p + AT_BYTES, n);
	uint64_t records = record_get32(p + AT_RECORDS) % 8, slots = 2;
	while (slots < 2 * records)
		slots *= 2;
	record_put32(p + AT_RECORDS, (uint32_t)records);
	record_put32(p + AT_SLOTS, (uint32_t)slots);
	uint64_t index = records * RECORD_BYTES + 4 * slots;
	for (uint64_t i = 0; HEADER + index <= n && i < records; i++) {
		uint8_t *r = p + HEADER + i * RECORD_BYTES;
		uint64_t at = record_get64(r + IN_OFFSET), bytes = record_get32(r + RECORD_AT_BODY);
		if (at <= n && bytes <= n - at)
			record_put64(r + IN_SUM,
			             record_checksum(p + at, bytes, record_checksum(r, IN_SUM, RECORD_VERSION)));
	}
	if (HEADER + index <= n)
		record_put64(p + AT_INDEX_SUM, record_checksum(p + HEADER, index, RECORD_VERSION));
	record_put64(p + AT_SUM, record_checksum(p, AT_SUM, RECORD_VERSION));
}

void fuzz_pack(const uint8_t *p, size_t n)
{
	read_pack(p, n);
	if (n < HEADER)
		return;
	uint8_t *copy = malloc(n);
	if (!copy)
		return;
	memcpy(copy, p, n);
	seal(copy, n);
	read_pack(copy, n);
	free(copy);
}

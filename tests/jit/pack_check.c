/* tests/jit/pack_check.c - see pack_check.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "tests/jit/stored.h"
#include "tests/jit/pack_check.h"

struct pack_item pack_items[MAX];

void make_items(size_t n)
{
	for (uint32_t i = 0; i < n; i++)
		pack_items[i] = (struct pack_item){ stored_key(i), stored_object(i) };
}

void free_items(size_t n)
{
	for (size_t i = 0; i < n; i++)
		object_free(&pack_items[i].object);
}

uint8_t *bytes_of(size_t n, size_t *bytes)
{
	struct error err = { 0 };
	uint8_t *p = pack_bytes(pack_items, n, bytes, &err);

	if (!p)
		fail_msg("%s", err.text);
	return p;
}

uint32_t get32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}
uint64_t get64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return v;
}

void seal(uint8_t *p, size_t n, size_t records)
{
	size_t slots = get32(p + AT_SLOTS) > 1024 ? 0 : get32(p + AT_SLOTS);
	uint64_t h;

	for (size_t i = 0; i < records; i++) {
		uint8_t *r = p + HEADER + i * RECORD;
		uint64_t at = get64(r + IN_OFFSET), bytes = get32(r + IN_BODY);
		if (at > n || bytes > n - at)
			continue;
		h = stored_sum(p + at, bytes, stored_sum(r, IN_SUM, VERSION));
		memcpy(r + IN_SUM, &h, 8);
	}
	h = stored_sum(p + HEADER, records * RECORD + 4 * slots, VERSION);
	memcpy(p + AT_INDEX_SUM, &h, 8);
	h = stored_sum(p, AT_SUM, VERSION);
	memcpy(p + AT_SUM, &h, 8);
}

void check_found(const struct pack *p, size_t n)
{
	struct object got;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(pack_find(p, &pack_items[i].key, &got, NULL), RECORD_FOUND);
		assert_true(stored_same(&got, &pack_items[i].object));
		object_free(&got);
	}
	for (uint32_t i = (uint32_t)n; i < n + 200; i++) {
		struct key k = stored_key(i);
		assert_int_equal(pack_find(p, &k, &got, NULL), RECORD_ABSENT);
	}
}

/* tests/jit/cache_care_check.c - see cache_care_check.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "jit/store/registry.h"
#include "kernels-templates/templates.h"
#include "tests/jit/stored.h"
#include "tests/jit/cache_care_check.h"

void write_pack(const char *path, uint32_t first, uint32_t last)
{
	struct pack_item item[64] = { 0 };
	struct error err = { 0 };

	for (uint32_t n = first; n < last; n++)
		item[n - first] = (struct pack_item){ stored_key(n), stored_object(n) };
	if (!pack_write(path, item, last - first, &err))
		fail_msg("%s", err.text);
	for (uint32_t n = first; n < last; n++)
		object_free(&item[n - first].object);
}

struct cache_source pack_source(const struct cache *c, unsigned i)
{
	struct cache_source s;

	cache_source_get(c, i, &s);
	return s;
}

void flip_byte(const char *path, size_t at)
{
	static uint8_t bytes[1 << 16];
	size_t n = stored_read_file(path, bytes, sizeof bytes);

	bytes[at] ^= 4;
	stored_write_file(path, bytes, n);
}

uint64_t size_of(struct cache *c)
{
	uint64_t bytes, entries;

	assert_true(cache_size(c, true, &bytes, &entries, NULL, NULL));
	return bytes;
}

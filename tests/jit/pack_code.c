/* tests/jit/pack_code.c - prints what the kernels of a pack are, a line each, without the code-generator ids: the key,
 * the facts of the object, and a hash of its code.
 *
 * Two builds whose packs print the same lines generate the same code. scripts/same_code.sh compares two builds so.
 */
#include <inttypes.h>
#include <stdio.h>

#include "jit/store/pack.h"

static uint64_t hash(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

int main(int argc, char **argv)
{
	struct error err = { 0 };
	struct pack *pack = argc == 2 ? pack_open(argv[1], &err) : NULL;
	bool ok = pack != NULL;

	for (size_t i = 0; ok && i < pack_count(pack); i++) {
		char text[KEY_TEXT_MAX];
		struct pack_entry e;
		struct object o;
		ok = pack_get(pack, i, &e) && pack_read(pack, i, &o, &err) == RECORD_FOUND;
		if (!ok)
			break;
		printf("%s %u %u %u %u %u %u %u %u %016" PRIx64 "\n", key_text(&e.key, text, sizeof text), o.code_bytes,
		       o.pool_offset, o.frame_bytes, o.shared_bytes, o.vector_regs, o.scalar_regs, o.mask_regs,
		       o.cooperative, hash(o.code, o.code_bytes));
		object_free(&o);
	}
	if (!ok)
		fprintf(stderr, "pack_code: %s\n",
		        argc != 2     ? "give one pack"
		        : err.text[0] ? err.text
		                      : "the pack has a damaged record");
	pack_close(pack);
	return ok ? 0 : 1;
}

/* tests/programs/forge_pack.c - a pack with one byte of one kernel's code changed, and every checksum right: forge_pack
 * IN OUT prints the kernel's key. */
#include <stdio.h>
#include <stdlib.h>

#include "jit/store/pack.h"

int main(int argc, char **argv)
{
	struct error err = { 0 };
	struct pack *p = argc == 3 ? pack_open(argv[1], &err) : NULL;
	size_t n = p ? pack_count(p) : 0;
	struct pack_item *item = calloc(n + 1, sizeof *item);
	char text[KEY_TEXT_MAX];
	bool ok = p && item && n;

	for (size_t i = 0; ok && i < n; i++) {
		struct pack_entry e;
		ok = pack_get(p, i, &e) && pack_read(p, i, &item[i].object, &err) == RECORD_FOUND;
		item[i].key = e.key;
	}
	if (ok) {
		item[n / 2].object.code[7] ^= 0x20;
		puts(key_text(&item[n / 2].key, text, sizeof text));
		ok = pack_write(argv[2], item, n, &err);
	}
	if (!ok)
		fprintf(stderr, "forge_pack: %s\n", err.text);
	for (size_t i = 0; item && i < n; i++)
		object_free(&item[i].object);
	free(item);
	pack_close(p);
	return !ok;
}

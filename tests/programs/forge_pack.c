/* tests/programs/forge_pack.c - a pack with one byte of one kernel's code changed, and every checksum right: forge_pack
 * IN OUT prints the kernel's key. With a third argument it is the first that a card's driver made. */
#include <stdio.h>
#include <stdlib.h>

#include "jit/store/driver_code.h"
#include "jit/store/pack.h"

int main(int argc, char **argv)
{
	struct error err = { 0 };
	struct pack *p = argc == 3 || argc == 4 ? pack_open(argv[1], &err) : NULL;
	size_t n = p ? pack_count(p) : 0;
	struct pack_item *item = calloc(n + 1, sizeof *item);
	char text[KEY_TEXT_MAX];
	bool ok = p && item && n;

	for (size_t i = 0; ok && i < n; i++) {
		struct pack_entry e;
		ok = pack_get(p, i, &e) && pack_read(p, i, &item[i].object, &err) == RECORD_FOUND;
		item[i].key = e.key;
	}
	size_t which = argc == 4 ? 0 : n / 2;
	while (argc == 4 && which < n && !driver_code_is(&item[which].key, NULL))
		which++;
	if (ok && which < n) {
		item[which].object.code[7] ^= 0x20;
		puts(key_text(&item[which].key, text, sizeof text));
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

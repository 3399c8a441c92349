/* jit/store/pack.h - pack files (.jkp): many code objects in one file that is only read.
 *
 * Owns: the layout. Numbers are little-endian:
 *
 *   header   0 magic (8)  8 version  12 record bytes  16 records  20 slots  24 file bytes (8)
 *            32 checksum of records and slots (8)  40 zero (16)  56 checksum of the header (8)
 *   records  one for each object, jit/store/record.h, sorted by the text of the key, then by the key's bytes
 *   slots    a power of two of them, at least twice the records: 0 or 1 + the number of a record,
 *            at the hash of its key or the next free one
 *   bodies   zstd, in the order of the records, without gaps; a record's checksum covers its body
 *
 * The same objects give the same file, byte for byte, wherever and whenever it is written (by one version of zstd): no
 * time, no path, no name is in it.
 *
 * Opening reads header, records and slots in two reads and one checksum; nothing is parsed. A body is read when its key
 * is asked for. Neither is mapped: a pack that is cut short while it is open would kill a process that maps it, and
 * what was checked must be what is used. What is wrong with header, records or slots is a sentence at opening; what is
 * wrong with a body is that object's damage.
 */
#ifndef JIT_PACK_H
#define JIT_PACK_H

#include "jit/store/record.h"

/* ---- writing */

struct pack_item {
	struct key key;
	struct object object;
}; /* borrowed */

/* The bytes of a pack, malloc'ed. Items come in any order; one that is there twice is written once, and refused when
 * the two differ. */
uint8_t *pack_bytes(const struct pack_item *item, size_t n, size_t *bytes, struct error *err);
/* The same to a file: written beside it, synced and renamed, so that path is the old pack or the new one; what writers
 * of this pack that died left beside it goes. Mode 0644 less the umask. */
bool pack_write(const char *path, const struct pack_item *item, size_t n, struct error *err);

/* ---- reading; thread-safe */

struct pack;
/* A pack, or the one within a packed model (jit/store/container.h). Refused (ERROR_ARGUMENT): a file that belongs
 * neither to the effective user nor to root, or that others may write. */
struct pack *pack_open(const char *path, struct error *err);
/* Bytes in memory, borrowed; name is for sentences. */
struct pack *pack_open_memory(const void *bytes, size_t n, const char *name, struct error *err);
void pack_close(struct pack *p);

/* RECORD_FOUND fills out: object_free. RECORD_FAILED: err, which may be NULL, says of which pack and key, and why. */
enum record_answer pack_find(const struct pack *p, const struct key *key, struct object *out, struct error *err);

struct pack_entry {
	struct key key;
	struct object object;  /* code NULL: what the record says of it */
	uint32_t stored_bytes; /* record and body */
};
size_t pack_count(const struct pack *p);
/* The i-th in the order of the file. False: its record is out of range. */
bool pack_get(const struct pack *p, size_t i, struct pack_entry *out);
/* The same with its code; it cannot be absent. */
enum record_answer pack_read(const struct pack *p, size_t i, struct object *out, struct error *err);
/* Visits all in order, those with damaged bodies too; visit returns false to stop. */
void pack_each(const struct pack *p, bool (*visit)(const struct pack_entry *, void *), void *user);
/* Everything: order, slots, no gaps, every body. False and a sentence naming the first thing wrong. */
bool pack_verify(const struct pack *p, struct error *err);

#endif

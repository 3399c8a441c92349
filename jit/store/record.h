/* jit/store/record.h - one code object as stored bytes: what directories and packs have in common.
 *
 * Owns: the layout of a record, its checksum, the compression of its body. A record describes a body; the two lie
 * together in a file of a directory (behind eight bytes of magic and two numbers), apart in a pack. An editor who
 * changes the layout raises RECORD_VERSION. Numbers are little-endian:
 *
 *   0 key (48)  48 offset of the body (8)  56 body bytes  60 code bytes  64 pool offset
 *   68 frame bytes  72 shared bytes  76 name bytes  80 vector registers (2)  82 scalar  84 mask
 *   86 cooperative  88 checksum of the bytes before it and of the body (8)
 *
 * The body is the code and, behind it, the name of a user's kernel.
 *
 * Nothing in a record is believed, and no body unpacked, before the checksum was compared.
 */
#ifndef JIT_RECORD_H
#define JIT_RECORD_H

#include "jit/compile.h"

enum {
	RECORD_VERSION = 4, /* of the layout, of directories' entries and of packs */
	RECORD_BYTES = 96,
	RECORD_MAX_CODE = 16 << 20,
	RECORD_MAX_BODY = 17 << 20,
	RECORD_AT_BODY = 56,
};

/* What became of a look-up. Of two sources' answers the later one here counts. FAILED: the system refused to open or
 * read, or there was no memory; nothing is known of the object. */
enum record_answer { RECORD_ABSENT, RECORD_DAMAGED, RECORD_FAILED, RECORD_FOUND };

struct record {
	struct key key;
	struct object object; /* code NULL */
	uint64_t offset;
	uint32_t body_bytes;
};

/* 64 bits over n bytes, eight at a time. Every step is one-to-one in the word it takes, so no change within one word
 * goes unseen. */
uint64_t record_checksum(const void *bytes, size_t n, uint64_t seed);
/* The same of n bytes that come in pieces, each but the last a multiple of RECORD_SUM_STEP; end: those that are left,
 * fewer than that. */
enum { RECORD_SUM_STEP = 32 };
struct record_sum {
	uint64_t h[4];
};
void record_sum_begin(struct record_sum *s, size_t n, uint64_t seed);
void record_sum_add(struct record_sum *s, const void *bytes, size_t n);
uint64_t record_sum_end(const struct record_sum *s, const void *bytes, size_t left);

/* Compresses o's code to a malloc'ed body and fills the record's 96 bytes, for a body at offset. NULL and err: out of
 * range, or no memory. */
uint8_t *record_pack(uint8_t out[RECORD_BYTES], const struct key *key, const struct object *o, uint64_t offset,
                     struct error *err);
/* What the 96 bytes say; nothing is checked but that sizes are in range (false: they are not). */
bool record_read(struct record *out, const uint8_t record[RECORD_BYTES]);
/* Compares the checksum, then unpacks. RECORD_FOUND; RECORD_DAMAGED; RECORD_FAILED: no memory, errno says so. */
enum record_answer record_unpack(struct object *out, const uint8_t record[RECORD_BYTES], const uint8_t *body);
/* Whether the checksum fits. */
bool record_sound(const uint8_t record[RECORD_BYTES], const uint8_t *body, uint32_t body_bytes);

/* Whether two objects are the same in every byte and number. */
bool record_same(const struct object *a, const struct object *b);

void record_put32(uint8_t *p, uint32_t v);
void record_put64(uint8_t *p, uint64_t v);
uint32_t record_get32(const uint8_t *p);
uint64_t record_get64(const uint8_t *p);

#endif

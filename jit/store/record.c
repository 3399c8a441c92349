/* jit/store/record.c - one code object as stored bytes. Never touches a file. */
#include "jit/store/record.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* The fastest to unpack that still halves: level 3 is a tenth smaller and takes two and a half times as long, which
 * every start would pay. */
enum { ZSTD_LEVEL = -1, CHECKED_BYTES = RECORD_BYTES - 8 };
enum {
	AT_OFFSET = 48,
	AT_BODY = RECORD_AT_BODY,
	AT_CODE = 60,
	AT_POOL = 64,
	AT_FRAME = 68,
	AT_SHARED = 72,
	AT_NAME = 76,
	AT_VECTOR = 80,
	AT_SCALAR = 82,
	AT_MASK = 84,
	AT_COOPERATIVE = 86,
	AT_CHECKSUM = 88
};

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}
static uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

void record_put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}
void record_put64(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

uint32_t record_get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t record_get64(const uint8_t *p) { return record_get32(p) | (uint64_t)record_get32(p + 4) << 32; }

/* --- the checksum */

/* Odd numbers, so that multiplying is one-to-one. */
static const uint64_t prime_a = 0x9e3779b97f4a7c15u, prime_b = 0xc2b2ae3d27d4eb4fu;

static uint64_t rotate(uint64_t v, int n) { return v << n | v >> (64 - n); }
static uint64_t mix(uint64_t h, uint64_t word) { return rotate(h ^ word, 29) * prime_a; }

static uint64_t tail_word(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

void record_sum_begin(struct record_sum *s, size_t n, uint64_t seed)
{
	s->h[0] = seed ^ prime_a;
	s->h[1] = seed + prime_b;
	s->h[2] = seed - prime_a;
	s->h[3] = seed ^ (uint64_t)n * prime_b;
}

void record_sum_add(struct record_sum *s, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t h[4];

	memcpy(h, s->h, sizeof h);
	for (; n >= RECORD_SUM_STEP; n -= RECORD_SUM_STEP, p += RECORD_SUM_STEP)
		for (int i = 0; i < 4; i++) /* four chains, because one waits for its own multiplication */
			h[i] = mix(h[i], record_get64(p + 8 * i));
	memcpy(s->h, h, sizeof h);
}

uint64_t record_sum_end(const struct record_sum *s, const void *bytes, size_t left)
{
	const uint8_t *p = bytes;
	uint64_t all = s->h[0];

	for (int i = 1; i < 4; i++)
		all = mix(all, s->h[i]);
	for (; left >= 8; left -= 8, p += 8)
		all = mix(all, record_get64(p));
	all = mix(all, tail_word(p, left));
	all = (all ^ all >> 32) * prime_b;
	return all ^ all >> 29;
}

uint64_t record_checksum(const void *bytes, size_t n, uint64_t seed)
{
	const size_t whole = n / RECORD_SUM_STEP * RECORD_SUM_STEP;
	struct record_sum s;

	record_sum_begin(&s, n, seed);
	record_sum_add(&s, bytes, whole);
	return record_sum_end(&s, (const uint8_t *)bytes + whole, n - whole);
}

static uint64_t record_sum(const uint8_t *record, const uint8_t *body, uint32_t body_bytes)
{
	return record_checksum(body, body_bytes, record_checksum(record, CHECKED_BYTES, RECORD_VERSION));
}

/* --- writing */

uint8_t *record_pack(uint8_t out[RECORD_BYTES], const struct key *key, const struct object *o, uint64_t offset,
                     struct error *err)
{
	char name[KEY_TEXT_MAX];

	if (o->code_bytes == 0 || o->code_bytes > RECORD_MAX_CODE || o->pool_offset > o->code_bytes) {
		error_set(err, ERROR_ARGUMENT,
		          "the code of %s has %u bytes with constants at %u, expected 1 to %d and the constants within",
		          key_text(key, name, sizeof name), o->code_bytes, o->pool_offset, RECORD_MAX_CODE);
		return NULL;
	}
	const size_t name_bytes = strnlen(o->name, OBJECT_NAME - 1),
		     room = ZSTD_compressBound(o->code_bytes + name_bytes);
	uint8_t *body = malloc(room), *named = name_bytes ? malloc(o->code_bytes + name_bytes) : NULL;
	if (named) {
		memcpy(named, o->code, o->code_bytes);
		memcpy(named + o->code_bytes, o->name, name_bytes);
	}
	const uint8_t *from = name_bytes ? named : o->code;
	size_t n = body && from ? ZSTD_compress(body, room, from, o->code_bytes + name_bytes, ZSTD_LEVEL) : 0;
	free(named);
	if (!n || ZSTD_isError(n) || n > RECORD_MAX_BODY) {
		error_set(err, ERROR_MEMORY, "no memory to compress the %u bytes of %s", o->code_bytes,
		          key_text(key, name, sizeof name));
		free(body);
		return NULL;
	}
	memcpy(out, key, sizeof *key);
	record_put64(out + AT_OFFSET, offset);
	record_put32(out + AT_BODY, (uint32_t)n);
	record_put32(out + AT_CODE, o->code_bytes);
	record_put32(out + AT_POOL, o->pool_offset);
	record_put32(out + AT_FRAME, o->frame_bytes);
	record_put32(out + AT_SHARED, o->shared_bytes);
	record_put32(out + AT_NAME, (uint32_t)name_bytes);
	put16(out + AT_VECTOR, o->vector_regs);
	put16(out + AT_SCALAR, o->scalar_regs);
	put16(out + AT_MASK, o->mask_regs);
	put16(out + AT_COOPERATIVE, o->cooperative);
	record_put64(out + AT_CHECKSUM, record_sum(out, body, (uint32_t)n));
	return body;
}

/* --- reading */

bool record_same(const struct object *a, const struct object *b)
{
	return a->code_bytes == b->code_bytes && a->pool_offset == b->pool_offset && a->frame_bytes == b->frame_bytes &&
	       a->shared_bytes == b->shared_bytes && a->vector_regs == b->vector_regs &&
	       a->scalar_regs == b->scalar_regs && a->mask_regs == b->mask_regs && a->cooperative == b->cooperative &&
	       memcmp(a->code, b->code, a->code_bytes) == 0;
}

bool record_read(struct record *out, const uint8_t record[RECORD_BYTES])
{
	*out = (struct record){ .offset = record_get64(record + AT_OFFSET),
		                .body_bytes = record_get32(record + AT_BODY) };
	out->object = (struct object){
		.code_bytes = record_get32(record + AT_CODE),
		.pool_offset = record_get32(record + AT_POOL),
		.frame_bytes = record_get32(record + AT_FRAME),
		.shared_bytes = record_get32(record + AT_SHARED),
		.vector_regs = get16(record + AT_VECTOR),
		.scalar_regs = get16(record + AT_SCALAR),
		.mask_regs = get16(record + AT_MASK),
		.cooperative = get16(record + AT_COOPERATIVE),
	};
	memcpy(&out->key, record, sizeof out->key);
	return out->body_bytes <= RECORD_MAX_BODY && out->object.code_bytes > 0 &&
	       out->object.code_bytes <= RECORD_MAX_CODE && out->object.pool_offset <= out->object.code_bytes &&
	       record_get32(record + AT_NAME) < OBJECT_NAME;
}

bool record_sound(const uint8_t record[RECORD_BYTES], const uint8_t *body, uint32_t body_bytes)
{
	return record_get64(record + AT_CHECKSUM) == record_sum(record, body, body_bytes);
}

/* A decompressor is large and slow to make: one is kept for the next caller. */
static _Atomic(ZSTD_DCtx *) spare;

static enum record_answer decompress(uint8_t *out, uint32_t n, const uint8_t *body, uint32_t body_bytes)
{
	ZSTD_DCtx *z = atomic_exchange(&spare, NULL);

	if (!z && !(z = ZSTD_createDCtx())) {
		errno = ENOMEM;
		return RECORD_FAILED;
	}
	bool whole = ZSTD_decompressDCtx(z, out, n, body, body_bytes) == n; /* an error code is never that small */
	ZSTD_freeDCtx(atomic_exchange(&spare, z));
	return whole ? RECORD_FOUND : RECORD_DAMAGED;
}

/* Names are shown to people, so they have what names in a kernel's text have. */
static bool is_name(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != '_' && !(p[i] >= '0' && p[i] <= '9') && !((p[i] | 32) >= 'a' && (p[i] | 32) <= 'z'))
			return false;
	return true;
}

enum record_answer record_unpack(struct object *out, const uint8_t record[RECORD_BYTES], const uint8_t *body)
{
	struct record r;

	if (!record_read(&r, record) || !record_sound(record, body, r.body_bytes))
		return RECORD_DAMAGED;
	const uint32_t name_bytes = record_get32(record + AT_NAME), all = r.object.code_bytes + name_bytes;
	uint8_t *code = malloc(all);
	enum record_answer answer = code ? decompress(code, all, body, r.body_bytes) : RECORD_FAILED;
	if (answer == RECORD_FOUND && !is_name(code + r.object.code_bytes, name_bytes))
		answer = RECORD_DAMAGED;
	if (answer != RECORD_FOUND) {
		free(code);
		return answer;
	}
	*out = r.object;
	out->code = code;
	memcpy(out->name, code + r.object.code_bytes, name_bytes);
	return RECORD_FOUND;
}

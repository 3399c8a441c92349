/* tests/loaders/small_vocab.h - vocabularies small enough to read, as GGUF bytes and as tokenizer.json.
 *
 * The GGUF writer takes values as they come, so that a test can also write wrong ones. */
#ifndef TESTS_SMALL_VOCAB_H
#define TESTS_SMALL_VOCAB_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/gguf.h"
#include "loaders/tokenizer/tokenizer.h"

struct vocab_file {
	uint8_t *p;
	size_t n, cap;
	uint64_t n_kv;
};

static inline void put(struct vocab_file *f, const void *p, size_t n)
{
	if (f->n + n > f->cap) {
		f->cap = 2 * (f->n + n) + 256;
		f->p = realloc(f->p, f->cap);
		assert(f->p);
	}
	if (n)
		memcpy(f->p + f->n, p, n);
	f->n += n;
}

static inline void put_u32(struct vocab_file *f, uint32_t x) { put(f, &x, 4); }
static inline void put_u64(struct vocab_file *f, uint64_t x) { put(f, &x, 8); }
static inline void put_text(struct vocab_file *f, const char *p, size_t n)
{
	put_u64(f, n);
	put(f, p, n);
}

static inline void vocab_start(struct vocab_file *f)
{
	*f = (struct vocab_file){ 0 };
	put(f, "GGUF", 4);
	put_u32(f, 3);
	put_u64(f, 0);
	put_u64(f, 0);
}

static inline void vocab_key(struct vocab_file *f, const char *key, enum gguf_type type)
{
	char full[128];

	snprintf(full, sizeof full, "tokenizer.ggml.%s", key);
	put_text(f, full, strlen(full));
	put_u32(f, type);
	f->n_kv++;
	memcpy(f->p + 16, &f->n_kv, 8);
}

static inline void vocab_text(struct vocab_file *f, const char *key, const char *value)
{
	vocab_key(f, key, GGUF_STRING);
	put_text(f, value, strlen(value));
}

static inline void vocab_u32(struct vocab_file *f, const char *key, uint32_t value)
{
	vocab_key(f, key, GGUF_U32);
	put_u32(f, value);
}

static inline void vocab_bool(struct vocab_file *f, const char *key, int value)
{
	uint8_t b = value != 0;

	vocab_key(f, key, GGUF_BOOL);
	put(f, &b, 1);
}

static inline void vocab_array(struct vocab_file *f, const char *key, enum gguf_type item, uint64_t count)
{
	vocab_key(f, key, GGUF_ARRAY);
	put_u32(f, item);
	put_u64(f, count);
}

/* Byte-level, after the 256 bytes in order: "<|a|>" (control) 256, "<|b|>" (user defined) 257, then one token per
 * merge. */
static inline void vocab_spell(unsigned byte, char out[3])
{
	unsigned c = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174 ? byte
	             : byte <= 32                                                               ? 256 + byte
	             : byte <= 160                                                              ? 289 + byte - 127
	                                                                                        : 323;

	if (c < 128) {
		out[0] = (char)c;
		out[1] = 0;
	} else {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		out[2] = 0;
	}
}

static inline void byte_level_vocab(struct vocab_file *f, const char *pre, const char *const *merge, unsigned n_merges)
{
	vocab_start(f);
	vocab_text(f, "model", "gpt2");
	if (pre)
		vocab_text(f, "pre", pre);
	vocab_array(f, "tokens", GGUF_STRING, 258 + n_merges);
	for (unsigned b = 0; b < 256; b++) {
		char s[3];
		vocab_spell(b, s);
		put_text(f, s, strlen(s));
	}
	put_text(f, "<|a|>", 5);
	put_text(f, "<|b|>", 5);
	for (unsigned i = 0; i < n_merges; i++) {
		const char *space = strchr(merge[i], ' ');
		char joined[128];
		snprintf(joined, sizeof joined, "%.*s%s", (int)(space - merge[i]), merge[i], space + 1);
		put_text(f, joined, strlen(joined));
	}
	vocab_array(f, "token_type", GGUF_I32, 258 + n_merges);
	for (unsigned i = 0; i < 258 + n_merges; i++)
		put_u32(f, i == 256 ? 3 : i == 257 ? 4 : 1);
	vocab_array(f, "merges", GGUF_STRING, n_merges);
	for (unsigned i = 0; i < n_merges; i++)
		put_text(f, merge[i], strlen(merge[i]));
	vocab_u32(f, "bos_token_id", 256);
	vocab_u32(f, "eos_token_id", 256);
}

/* SentencePiece style: <unk> 0, <s> 1, </s> 2, the bytes 3..258, then the given pieces with falling scores. */
static inline void spm_vocab(struct vocab_file *f, const char *const *piece, unsigned n)
{
	vocab_start(f);
	vocab_text(f, "model", "llama");
	vocab_array(f, "tokens", GGUF_STRING, 259 + n);
	put_text(f, "<unk>", 5);
	put_text(f, "<s>", 3);
	put_text(f, "</s>", 4);
	for (unsigned b = 0; b < 256; b++) {
		char s[8];
		snprintf(s, sizeof s, "<0x%02X>", b);
		put_text(f, s, 6);
	}
	for (unsigned i = 0; i < n; i++)
		put_text(f, piece[i], strlen(piece[i]));
	vocab_array(f, "token_type", GGUF_I32, 259 + n);
	for (unsigned i = 0; i < 259 + n; i++)
		put_u32(f, i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1);
	vocab_array(f, "scores", GGUF_F32, 259 + n);
	for (unsigned i = 0; i < 259 + n; i++) {
		float score = i < 259 ? 0 : -(float)(i - 259);
		put(f, &score, 4);
	}
}

/* An opened small vocabulary and what it stands on. */
struct small {
	struct vocab_file file;
	struct gguf g;
	struct tokenizer *t;
};

static inline int small_open(struct small *s, uint64_t n_vocab, struct error *err)
{
	memset(err, 0, sizeof *err);
	memset(&s->g, 0, sizeof s->g);
	s->t = NULL;
	if (!gguf_parse(&s->g, s->file.p, s->file.n, "small.gguf", true, err))
		return 0;
	s->t = tokenizer_from_gguf(&s->g, n_vocab, err);
	return s->t != NULL;
}

static inline void small_close(struct small *s)
{
	tokenizer_close(s->t);
	gguf_free(&s->g);
	free(s->file.p);
}

#endif

/* loaders/tokenizer/tokenizer.h - text to token ids and back.
 *
 * Owns: the vocabulary, the merge ranks, the pre-tokenizer, the special tokens, BOS/EOS rules.
 * Kinds: SentencePiece-style BPE with byte fallback ("llama"), byte-level BPE ("gpt2"), WordPiece ("bert") and Unigram
 * ("t5"), each read from GGUF metadata or from HF tokenizer.json (+ tokenizer_config.json).
 * Immutable once opened: encode and decode may be called from any thread.
 *
 * Never: crashes on invalid UTF-8 (a byte that is no character encodes as its byte token),
 * recurses on input, takes more than O(n log n) time on any text: what a file could make slower than that (its
 * expressions, replacements and special tokens) is counted, and a text that takes too many steps is refused.
 */
#ifndef LOADERS_TOKENIZER_H
#define LOADERS_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct tokenizer;
struct gguf; /* loaders/files/gguf.h */

/* Both return NULL and set err on failure. n_vocab is the model's vocabulary size; a tokenizer with more
 * tokens than that is refused, one with fewer is fine (padded embedding rows). 0: do not compare.
 * Token texts stay views into the copied header behind g, which must outlive the tokenizer; the json texts may go at
 * once. What the json asks for and is not done here is refused by file, field and value. */
struct tokenizer_text {
	const char *p;
	size_t n;
	const char *path;
}; /* path only names the file in messages; p may be NULL: no such file */
struct tokenizer *tokenizer_from_gguf(const struct gguf *g, uint64_t n_vocab, struct error *err);
struct tokenizer *tokenizer_from_json(struct tokenizer_text tokenizer, struct tokenizer_text config, uint64_t n_vocab,
                                      struct error *err);
void tokenizer_close(struct tokenizer *t);

enum {
	TOKENIZE_BOS_EOS = 1, /* add BOS / EOS as the model's own rules say */
	TOKENIZE_SPECIAL = 2, /* text like "<|im_start|>" becomes its special token; without it, plain text */
	TOKENIZE_BEGIN = 4    /* add BOS as the rules say, unless the text begins with that token; add no EOS */
};

/* What a token is; the numbers are those of tokenizer.ggml.token_type. */
enum tok_type { TOK_NORMAL = 1, TOK_UNKNOWN, TOK_CONTROL, TOK_USER, TOK_UNUSED, TOK_BYTE };

/* What tokens are for. */
enum tok_role {
	TOK_ROLE_BOS,
	TOK_ROLE_EOS,
	TOK_ROLE_EOT,
	TOK_ROLE_EOM,
	TOK_ROLE_PAD,
	TOK_ROLE_UNK,
	TOK_ROLE_SEP,
	TOK_ROLE_MASK,
	TOK_ROLE_CLS,
	TOK_ROLE_FIM_PREFIX,
	TOK_ROLE_FIM_SUFFIX,
	TOK_ROLE_FIM_MIDDLE,
	TOK_ROLE_FIM_PAD,
	TOK_ROLE_FIM_REPO,
	TOK_ROLE_FIM_SEP,
	TOK_ROLES
};

/* Encodes n bytes. On success *ids is malloc'ed (the caller frees), *n_ids its length. False only on lack of
 * memory, when the text is 2 GiB or longer, when it holds a character that a vocabulary with scores cannot
 * express and it has no unknown token, or when the tokenizer exceeds its budget of steps on it. */
bool tokenizer_encode(const struct tokenizer *t, const char *text, size_t n, unsigned flags, int32_t **ids,
                      size_t *n_ids, struct error *err);

/* The same with TOKENIZE_SPECIAL, but for bytes that are marked: plain holds 1 for a byte that is text whatever it
 * looks like, 0 for one that is not. A control token is made only of a text of which no byte is plain; all else is as
 * if none were, words across the border included. */
bool tokenizer_encode_marked(const struct tokenizer *t, const char *text, size_t n, const uint8_t *plain,
                             unsigned flags, int32_t **ids, size_t *n_ids, struct error *err);

/* Two texts as one, by the tokenizer's own template; *types, malloc'ed too: of each token, which text it belongs to as
 * the template numbers them. flags: TOKENIZE_SPECIAL. */
bool tokenizer_encode_pair(const struct tokenizer *t, const char *const text[2], const size_t n_text[2], unsigned flags,
                           int32_t **ids, int32_t **types, size_t *n, struct error *err);

/* The bytes one token adds to the text, in the position where `first` says whether it begins the text
 * (SentencePiece drops one leading space there). Borrowed or written to scratch (at least 256 bytes, used for
 * short transforms). Special (control) tokens give 0 bytes unless special is true. May be part of a character. */
const char *tokenizer_piece(const struct tokenizer *t, int32_t id, bool first, bool special, char scratch[256],
                            size_t *n);

/* Streaming decode: feeds one token, gives the complete UTF-8 characters now known (0 bytes while inside one).
 * Bytes that can never become a character come out as U+FFFD. tokenizer_stream_end flushes what is left. */
struct utf8_stream {
	unsigned char held[4];
	unsigned n_held;
	bool started;
};
size_t tokenizer_stream(
	const struct tokenizer *t, struct utf8_stream *s, int32_t id, bool special, char **out,
	size_t *cap); /* *out grows by realloc; returns bytes, or (size_t)-1 on no memory: then s is as it was */
size_t tokenizer_stream_end(struct utf8_stream *s, char out[8]);

/* Whole decode; malloc'ed, 0-terminated. */
char *tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n, bool special, size_t *n_out,
                       struct error *err);

/* How it makes tokens, in words: "byte-level BPE". */
const char *tokenizer_kind(const struct tokenizer *t);
size_t tokenizer_size(const struct tokenizer *t);
int32_t tokenizer_bos(const struct tokenizer *t);             /* -1: none */
int32_t tokenizer_eos(const struct tokenizer *t);             /* -1: none */
bool tokenizer_is_eog(const struct tokenizer *t, int32_t id); /* ends a generation: EOS, EOT, <|im_end|>, ... */
/* One more end token (generation_config.json may name some). Only before the tokenizer is shared between threads. */
bool tokenizer_add_eog(struct tokenizer *t, int32_t id, struct error *err);
/* The character that byte-level BPE writes for a byte, in UTF-8; its length. */
unsigned tokenizer_spell_byte(unsigned byte, char out[4]);
int32_t tokenizer_find(const struct tokenizer *t, const char *text,
                       size_t n); /* id of exactly this token text, or -1 */
/* What a token is, and its text as the vocabulary spells it; NULL: it has none, and is unused. */
enum tok_type tokenizer_type(const struct tokenizer *t, int32_t id, const char **text, size_t *n);
/* The token with a task; -1: none. */
int32_t tokenizer_role(const struct tokenizer *t, enum tok_role role);
const char *tokenizer_role_name(size_t number); /* "bos" and so on; NULL: there are no more */

#endif

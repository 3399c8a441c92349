/* loaders/tokenizer/tokenizer_json.h - between the two files that read tokenizer.json.
 *
 * tokenizer_json.c reads the model, the added tokens and tokenizer_config.json; tokenizer_json_steps.c the
 * normalizer, pre_tokenizer, post_processor and decoder. Whatever asks for something that is not done here is
 * refused with the field and its value, never skipped.
 */
#ifndef LOADERS_TOKENIZER_JSON_H
#define LOADERS_TOKENIZER_JSON_H

#include "base/json_read.h"
#include "loaders/tokenizer/tokenizer_internal.h"

struct tok_reader {
	struct tokenizer *t;
	const char *path; /* the file being read: tokenizer.json, or while its fields are read the configuration */
	const char *config_path;
	struct error *err;
	char *copy;      /* where the next text goes in t->arena, which has room for every text of the file once */
	bool byte_level; /* a ByteLevel pre-tokenizer was seen */
	bool word_piece, unigram; /* the model's type */
};

/* "PATH: FIELD is VALUE, expected WHAT". Returns false. */
bool tok_json_refuse(struct tok_reader *r, const char *field, const json_t *value, const char *expected);
/* Reads a field that may be absent or null (then *value stays); false when it has another type. */
bool tok_json_bool(struct tok_reader *r, const json_t *object, const char *field, bool *value);
/* The text of a string, copied to the arena. */
const char *tok_json_copy(struct tok_reader *r, const json_t *string, size_t *n);
bool tok_json_is(const json_t *string, const char *text);

/* tokenizer_json_pieces.c: of WordPiece, what is not its vocabulary; of Unigram, the vocabulary with its scores, and
 * the unknown token; the normalizers of both; and of a post_processor, the template of a pair. */
bool tok_json_word_piece(struct tok_reader *r, const json_t *model);
bool tok_json_scores(struct tok_reader *r, const json_t *vocab, size_t limit);
bool tok_json_unknown(struct tok_reader *r, const json_t *id);
bool tok_json_bert_normalizer(struct tok_reader *r, const json_t *object);
bool tok_json_charsmap(struct tok_reader *r, const json_t *object);
bool tok_json_pair(struct tok_reader *r, const json_t *object);
bool tok_json_pair_around(struct tok_reader *r, int32_t cls, int32_t sep, bool roberta);
/* A new step, NULL: there is no room, or only what it says. */
struct tok_norm_step *tok_json_new_norm(struct tok_reader *r, enum tok_norm_kind kind);

bool tok_json_normalizer(struct tok_reader *r, const json_t *object);
bool tok_json_pre_tokenizer(struct tok_reader *r, const json_t *object);
bool tok_json_post_processor(struct tok_reader *r, const json_t *object);
bool tok_json_decoder(struct tok_reader *r, const json_t *object);

#endif

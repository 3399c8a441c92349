/* jitrun_tokens.h - a model's vocabulary, token by token; its metadata by key, with the items of arrays; jit_free.
 *
 * Everything here follows jitrun.h: ERRORS, and STRUCTS AND VERSIONS.
 */
#ifndef JITRUN_TOKENS_H
#define JITRUN_TOKENS_H

#include "jitrun.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

/* ---- giving back */

/* Gives back what a function of the library returned malloc'ed. It is free() of the C library that jitrun runs with,
 * which a program in another language, or with an allocator of its own, may not have at hand. NULL: nothing happens. */
void jit_free(void *p);

/* ---- tokens */

/* The numbers are those of tokenizer.ggml.token_type in GGUF files. */
enum {
	JIT_TOKEN_NORMAL = 1,
	JIT_TOKEN_UNKNOWN, /* stands for text that has no token */
	JIT_TOKEN_CONTROL, /* no text becomes it, unless parse_special is asked for; jit_session_text gives nothing */
	JIT_TOKEN_USER,    /* a text that always becomes this one token */
	JIT_TOKEN_UNUSED,  /* the vocabulary has no text for it, or says that it is not used */
	JIT_TOKEN_BYTE     /* one byte of what no other token spells */
};
typedef struct jit_token {
	size_t size;
	const char *text; /* n_text bytes as the vocabulary spells them ("\u0120the", "<0x0A>", "<|im_end|>"), with no
	                     0 behind them; NULL where it has none. They live as long as the model */
	size_t n_text;
	size_t n_bytes; /* what the token adds to a text, in bytes; of a control token, its spelling */
	int kind;       /* JIT_TOKEN_NORMAL and so on */
	int is_end;     /* as jit_model_is_end */
} jit_token;
#define JIT_TOKEN() JIT_STRUCT(jit_token, )

/* One token, 0 <= id < vocab of jit_model_info. bytes: room for what it adds to a text, of which at most `room` bytes
 * are written, and no 0; out->n_bytes is all of them, which may be more, and part of a character. bytes may be NULL
 * where room is 0. At the beginning of a text a SentencePiece vocabulary leaves out one leading space. Rows of the
 * embedding matrix beyond the vocabulary are JIT_TOKEN_UNUSED. JIT_ERROR_UNSUPPORTED: the model has no tokenizer. */
int jit_model_token(const jit_model *m, int32_t id, jit_token *out, char *bytes, size_t room, jit_error *err);
/* The token that the vocabulary spells exactly so; -1: none, or there is no tokenizer. */
int32_t jit_model_find_token(const jit_model *m, const char *text, size_t n);

/* ROLES. What a model's files, or the well-known texts of tokens, give a task:
 *
 *     bos, eos, eot, eom    begin a text; end a text, a turn, a message of several
 *     pad, unk, sep, mask, cls
 *     fim_prefix, fim_suffix, fim_middle    stand before the code in front of the gap, before the code behind it, and
 *                                           before what is to fill it
 *     fim_pad, fim_repo, fim_sep            fill up; stand before a repository's name, and before a file's
 *
 * The name of role `number`, from 0; NULL: there are no more. */
const char *jit_token_role(size_t number);
/* *id: the token with the role, or -1 where the model has none. JIT_ERROR_ARGUMENT: there is no such role. */
int jit_model_role(const jit_model *m, const char *role, int32_t *id, jit_error *err);

/* A text that ends a generation by the model's own files (stop_strings of generation_config.json), by number from 0;
 * NULL: there are no more. It lives as long as the model. See STOP TEXTS in jitrun.h. */
const char *jit_model_stop(const jit_model *m, size_t number);

/* ---- metadata */

/* The number of a key for jit_model_metadata: the first in the order of the files. -1: there is no such key. */
int64_t jit_model_metadata_find(const jit_model *m, const char *key);
/* One item, from 0, of the array with that number; out->key is the array's. An array or object in an array is
 * JIT_METADATA_ARRAY or JIT_METADATA_OTHER, with no way to its items. The first item of an array of texts that is asked
 * for has all of them copied, once. */
int jit_model_metadata_item(const jit_model *m, size_t number, size_t item, jit_metadata *out, jit_error *err);

#ifdef __cplusplus
}
#endif

#endif

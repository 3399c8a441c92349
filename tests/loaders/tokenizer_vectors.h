/* tests/loaders/tokenizer_vectors.h - the files of the published vectors, and checks of ids and texts. */
#ifndef TESTS_LOADERS_TOKENIZER_VECTORS_H
#define TESTS_LOADERS_TOKENIZER_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "loaders/files/gguf.h"
#include "loaders/files/file.h"
#include "loaders/tokenizer/tokenizer_internal.h"

#define VOCAB "data/llama.cpp-vocab/ggml-vocab-"
#define LLAMA3 "data/tokenizers/llama3/llama-3.own-vocab.gguf"
#define LLAMA3_JSON "data/tokenizers/llama3/llama-3.own-tokenizer.json"
#define QWEN3 "data/tokenizers/qwen/qwen3.own-vocab.gguf"
#define QWEN3_JSON "data/tokenizers/qwen/qwen3.own-tokenizer.json"
#define ORT "data/tokenizers/onnxruntime-genai/"
#define SWIFT "data/tokenizers/swift-transformers/"

struct opened {
	struct file file, config;
	struct gguf g;
	struct tokenizer *t;
};

bool is_json(const char *path);
bool open_text(struct file *f, const char *path, struct error *err);
/* NULL when the file is not there. */
struct tokenizer *open_vocab(struct opened *o, const char *relative);
void close_vocab(struct opened *o);
/* A whole file, 0-terminated; NULL when it is not there. */
char *slurp(const char *relative, size_t *n);
json_t *load_json(const char *relative);
void check_ids(const struct tokenizer *t, const char *where, const char *text, size_t n, unsigned flags,
               const int32_t *want, size_t n_want);
void check_text(const struct tokenizer *t, const char *where, const int32_t *ids, size_t n, bool special,
                const char *want, size_t n_want);
int32_t *ids_of(const json_t *array, size_t *n);

/* The tests of the other files of the program: the number that failed. */
int tokenizer_reference_tests(void);
int tokenizer_conversation_tests(void);

#endif

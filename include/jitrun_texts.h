/* jitrun_texts.h - embeddings of several texts, and of pairs.
 *
 * Everything here follows jitrun.h: ERRORS, EMBEDDINGS, and what a session is.
 */
#ifndef JITRUN_TEXTS_H
#define JITRUN_TEXTS_H

#include "jitrun.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

/* A text's tokens. An entry of a list, it has no size and stays as it is. */
typedef struct jit_embedding_text {
	const int32_t *ids;
	const int32_t *types; /* of each token, where a model has such: 0 and 1 for the texts of a pair; NULL: 0 */
	size_t n;             /* tokens, at least 1 */
} jit_embedding_text;

/* The embeddings of n texts, each by itself, one after the other: n_out floats, as many as jit_session_embed() gives of
 * each, together. Models that encode texts (jit_model_info.encodes) compute several in a pass, whatever their lengths:
 * a token sees all of its text. A text's bits are the same alone. The session then has no tokens, or with other models
 * the last text's. Dense layers behind pooling, which some models have (docs/models.md), follow here and in
 * jit_session_embed() with LAST, CLS and MEAN, before `normalise`: `embedding` of jit_model_info is what they give. */
int jit_session_embed_texts(jit_session *s, const jit_embedding_text *texts, size_t n,
                            const jit_embedding_options *options, float *out, size_t n_out, jit_error *err);

/* Two texts as one, as the model's tokenizer puts them together: a question and a document, say, for a model that
 * scores pairs. *ids and *types are malloc'ed, *n entries each, for jit_free(): the types say which text a token is of,
 * where the model tells texts apart. texts and their bytes: two of each. parse_special as in jit_model_tokenize(). */
int jit_model_tokenize_pair(const jit_model *m, const char *const *texts, const size_t *n_texts, int parse_special,
                            int32_t **ids, int32_t **types, size_t *n, jit_error *err);

#ifdef __cplusplus
}
#endif

#endif

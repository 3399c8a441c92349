/* jitrun_options.h - options by their names, and what a model would need before it is opened.
 *
 * Everything here follows jitrun.h: ERRORS, and STRUCTS AND VERSIONS.
 */
#ifndef JITRUN_OPTIONS_H
#define JITRUN_OPTIONS_H

#include "jitrun.h"
#include "jitrun_answers.h"
#include "jitrun_batch.h"
#include "jitrun_cards.h"
#include "jitrun_draft.h"
#include "jitrun_grammar.h"
#include "jitrun_graph.h"
#include "jitrun_images.h"
#include "jitrun_optimise.h"
#include "jitrun_train.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

/* ---- options by name */

/* OPTIONS BY NAME. Each sets one field of a struct, which begins with its size as ever:
 *
 *     jit_sampling p = JIT_SAMPLING();
 *     jit_sampling_set(&p, "top_k", "40", &err);
 *     jit_sampling_set(&p, "--temp", "0.7", &err);
 *
 * name: the field's, or that of the option of jitrun that means the same (jitrun --help); '-' and '_' are the same, and
 * hyphens before it count for nothing. value: a number in decimal; of a field with named values one of these, too
 * ("q8_0" of kv, "last" of pooling, "off" of speculate, "quick" of tune); of a flag "1", "true", "yes" or "on", or "0",
 * "false", "no" or "off"; or a text, which is borrowed: it must live as long as the struct is used. Fields that are
 * addresses of something else (lists, callbacks, other structs) are refused.
 *
 * JIT_ERROR_ARGUMENT: there is no such field, or none in a struct of this size, or it may not be that value; the
 * sentence says what was expected, and the struct is as it was. */
int jit_model_options_set(jit_model_options *options, const char *name, const char *value, jit_error *err);
int jit_session_options_set(jit_session_options *options, const char *name, const char *value, jit_error *err);
int jit_batch_options_set(jit_batch_options *options, const char *name, const char *value, jit_error *err);
int jit_card_options_set(jit_card_options *options, const char *name, const char *value, jit_error *err);
int jit_draft_options_set(jit_draft_options *options, const char *name, const char *value, jit_error *err);
int jit_embedding_options_set(jit_embedding_options *options, const char *name, const char *value, jit_error *err);
int jit_chat_options_set(jit_chat_options *options, const char *name, const char *value, jit_error *err);
int jit_answer_options_set(jit_answer_options *options, const char *name, const char *value, jit_error *err);
int jit_forced_options_set(jit_forced_options *options, const char *name, const char *value, jit_error *err);
int jit_grammar_options_set(jit_grammar_options *options, const char *name, const char *value, jit_error *err);
int jit_objects_options_set(jit_objects_options *options, const char *name, const char *value, jit_error *err);
int jit_compute_options_set(jit_compute_options *options, const char *name, const char *value, jit_error *err);
int jit_kernel_options_set(jit_kernel_options *options, const char *name, const char *value, jit_error *err);
int jit_graph_options_set(jit_graph_options *options, const char *name, const char *value, jit_error *err);
int jit_train_options_set(jit_train_options *options, const char *name, const char *value, jit_error *err);
int jit_optimise_options_set(jit_optimise_options *options, const char *name, const char *value, jit_error *err);
int jit_image_options_set(jit_image_options *options, const char *name, const char *value, jit_error *err);
int jit_sampling_set(jit_sampling *p, const char *name, const char *value, jit_error *err);

/* ---- what a model needs */

/* What a model and one session on it take, in bytes, on this machine's processor. */
typedef struct jit_needs {
	size_t size;
	uint64_t weight_bytes;    /* of weights, packed for this processor */
	uint64_t token_bytes;     /* of weights read to make one token */
	uint64_t kv_bytes;        /* of the KV cache, and of states that layers keep */
	uint64_t pass_bytes;      /* of what passes compute */
	uint64_t available_bytes; /* of memory that can be had now; UINT64_MAX: not known */
	int context;              /* of the session, in tokens */
	int context_trained;      /* what the model was trained for; 0: its files do not say */
} jit_needs;
#define JIT_NEEDS() JIT_STRUCT(jit_needs, )

/* Reads the headers of a model's files, which may be all there is of them, and allocates nothing of what it measures;
 * the numbers are those of "jitrun info". session: whose context, batch, kv and speculate count; NULL: all defaults. It
 * fits where weights, cache and passes together are no more than what can be had. JIT_ERROR_FORMAT and so on: as
 * jit_model_open would. */
int jit_model_needs(const char *path, const jit_session_options *session, jit_needs *out, jit_error *err);

#ifdef __cplusplus
}
#endif

#endif

/* jitrun_adapters.h - low-rank adapters (LoRA): files that change what a model says, beside it in memory and chosen for
 * each session.
 *
 * Everything here follows jitrun.h: ERRORS, STRUCTS AND VERSIONS, and what a session is.
 */
#ifndef JITRUN_ADAPTERS_H
#define JITRUN_ADAPTERS_H

#include "jitrun.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

/* ADAPTERS. An adapter has two matrices A and B for some matrices W of a model, and the model then computes
 * W x + scale * (B (A x)). W stays as it is: a session may have several adapters, each with a scale of its own, and the
 * sessions of a batch may have different ones in the same pass. A session computes the same bits alone and in a batch,
 * for any number of threads and on every device. A session without adapters computes what it did before any was opened.
 *
 * Sessions and batches that are to have adapters are opened after the model's first adapter, or after
 * jit_model_adapters(). jit_adapter_open and _close may be called while sessions of other threads compute. */
typedef struct jit_adapter jit_adapter;

enum { JIT_ADAPTERS_MOST = 64 /* of a model */, JIT_ADAPTERS_TOGETHER = 8 /* of a session */ };

/* Sessions opened from now on can have adapters, whose ranks are `ranks` together at most, a multiple of 4; 0: 256.
 * It is called once for a model, before the first jit_adapter_open, which otherwise calls it with 0. */
int jit_model_adapters(jit_model *m, int ranks, jit_error *err);

/* Opens an adapter for a model: a folder as PEFT saves it, a .safetensors file with adapter_config.json beside it, or a
 * GGUF file of general.type "adapter". Either kind goes with a model of either kind. What its files ask for and is not
 * done is refused by its name: JIT_ERROR_UNSUPPORTED. NULL: err. */
jit_adapter *jit_adapter_open(jit_model *m, const char *path, jit_error *err);
/* Before its model is closed. Sessions that have it keep it until they are closed. NULL: nothing happens. */
void jit_adapter_close(jit_adapter *a);

typedef struct jit_adapter_info {
	size_t size;
	int rank, matrices;   /* the greatest rank; matrices of the model that it adds to */
	uint64_t bytes;       /* of memory, on the model's device */
	uint64_t fingerprint; /* of its numbers and their scales */
	size_t invocation;    /* how many invocation tokens it has; 0: it always counts */
} jit_adapter_info;
#define JIT_ADAPTER_INFO() JIT_STRUCT(jit_adapter_info, )
int jit_adapter_get_info(const jit_adapter *a, jit_adapter_info *out, jit_error *err);

/* The adapters that a session has from now on, n of them, each with its scale (scales NULL: 1), instead of those it
 * had. One of scale 0 counts as none. What a session has computed belongs to the adapters it had: it must have no
 * tokens (jit_session_rewind to 0), or the adapters must be the same. */
int jit_session_set_adapters(jit_session *s, jit_adapter *const *adapters, const float *scales, size_t n,
                             jit_error *err);

/* INVOCATION. An adapter with invocation tokens (aLoRA) was trained to count from these tokens on: what stands before
 * them is computed without it, and may have been computed for others already. The caller says where that is, as it may
 * for any adapter.
 *
 * Where the adapter's invocation tokens are in a text for the last time: the position of the first of them. n: they are
 * nowhere in it, and the adapter does not count. 0: the adapter has none. */
size_t jit_adapter_begins(const jit_adapter *a, const int32_t *ids, size_t n);
/* As jit_session_set_adapters, but they count for tokens from position `from` on. The session may have tokens, if
 * neither the adapters it had nor these count for any of them. */
int jit_session_set_adapters_from(jit_session *s, jit_adapter *const *adapters, const float *scales, size_t n,
                                  size_t from, jit_error *err);

#ifdef __cplusplus
}
#endif

#endif

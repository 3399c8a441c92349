/* jitrun_train.h - training: an adapter for a model, or all of its weights, with the same bits for any number of
 * threads and on each device.
 *
 * Everything here follows jitrun.h: ERRORS, MEMORY, and STRUCTS AND VERSIONS. docs/training.md describes what is
 * computed. Rows of tokens are fed, and a step learns from those that were:
 *
 *     jit_train *t = jit_train_open(&JIT_TRAIN_OPTIONS(.model = "model", .rank = 16, .rate = 2e-4), &err);
 *     for (int step = 0; step < steps; step++) {
 *         jit_train_feed(t, ids, NULL, NULL, n, &err);
 *         jit_train_step(t, &report, &err);
 *     }
 *     jit_train_save(t, "adapter", JIT_TRAIN_PEFT, &err);
 *
 * THREADS. A jit_train belongs to one thread at a time; jit_cancel_set() may be called from any.
 */
#ifndef JITRUN_TRAIN_H
#define JITRUN_TRAIN_H

#include "jitrun_kernel.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

enum { JIT_TRAIN_CONSTANT, JIT_TRAIN_COSINE, JIT_TRAIN_LINEAR };
enum { JIT_TRAIN_PEFT, JIT_TRAIN_GGUF, JIT_TRAIN_WEIGHTS };

typedef struct jit_train jit_train;
typedef struct jit_train_options {
	size_t size;
	const char *model;   /* a GGUF file, or a folder of safetensors */
	const char *targets; /* matrices that get an adapter, "q_proj v_proj", separated by blanks or commas; NULL: all
	                        seven of a layer, of the delta rule in_proj_qkv, in_proj_z and out_proj, of the
	                        selective scan in_proj, x_proj, dt_proj and out_proj. A name is for its tensor:
	                        qkv_proj, too, where q_proj lies there. Names of the model's own files, as
	                        c_attn, are known, too */
	const char *device, *isa, *cache_dir; /* as jit_compute_options has them */
	jit_cancel *cancel;                   /* ends a step; borrowed; NULL: nothing does */
	uint64_t seed;                        /* of the adapter's first values, and of dropout */
	int threads;                          /* 0: one per core this process may use */
	int context;                          /* tokens of a row at most; 0: 512 */
	int full;                             /* non-zero: all weights are trained, not an adapter */
	int rank;                             /* of the adapter; 0: 16 */
	int rslora;                           /* non-zero: its scale is alpha / sqrt(rank), not alpha / rank */
	int dora;                             /* non-zero: rows have a magnitude of their own (DoRA) */
	int schedule;                         /* JIT_TRAIN_CONSTANT and so on: of the rate, behind the warm-up */
	int warmup;                           /* steps in which the rate grows to `rate` */
	int steps;                            /* of the training, which JIT_TRAIN_COSINE and LINEAR end with; 0: none */
	float alpha;                          /* of the adapter; 0: 2 * rank */
	float rate;                           /* 0: 1e-4, with `full` 1e-5 */
	float least_rate;                     /* part of `rate` that a schedule ends with; 0 to 1 */
	float weight_decay;                   /* of all that is trained */
	float beta1, beta2, epsilon;          /* of AdamW; 0: 0.9, 0.999 and 1e-8 */
	float clip;                           /* gradients' norm at most; 0: they are not clipped */
	float dropout;                        /* of what adapters read; 0 to below 1 */
	int keep_activations; /* non-zero: what gradients need is kept, and no layer is computed twice; more memory, and
	                         the same bits */
	int reserved;         /* 0 */
} jit_train_options;
#define JIT_TRAIN_OPTIONS(...) JIT_STRUCT(jit_train_options, __VA_ARGS__)

/* Reads the model and compiles what a step needs. The options are copied. JIT_ERROR_UNSUPPORTED: a model of this kind
 * cannot be trained, and the message says why. */
jit_train *jit_train_open(const jit_train_options *options, jit_error *err);
void jit_train_close(jit_train *t);

/* A row for the next step or evaluation: ids, n tokens, 2 to `context`. counts, n bytes or NULL: non-zero for tokens
 * whose prediction counts; NULL: all. texts, n numbers or NULL: tokens of one text have one number, do not see those of
 * others, and their positions begin at 0; NULL: it is one text. The first token of a text is never predicted. Copied.
 */
int jit_train_feed(jit_train *t, const int32_t *ids, const uint8_t *counts, const int32_t *texts, size_t n,
                   jit_error *err);
/* Forgets rows that were fed. */
void jit_train_forget(jit_train *t);

typedef struct jit_train_report {
	size_t size;
	uint64_t step;   /* how many there were, this one among them */
	uint64_t rows;   /* of this step, or evaluation */
	uint64_t tokens; /* of them */
	uint64_t counted;
	double loss;    /* the mean cross entropy of those that count, before the step */
	double norm;    /* of the gradients, before they are clipped; of an evaluation 0 */
	double rate;    /* of this step; of an evaluation 0 */
	double seconds; /* it took */
} jit_train_report;
#define JIT_TRAIN_REPORT() JIT_STRUCT(jit_train_report, )

/* Computes the loss of all rows that were fed and its gradients, and changes what is trained. The rows are forgotten.
 * out may be NULL. JIT_ERROR_CANCELLED, and any other failure: nothing was changed, and the rows are still there.
 * JIT_ERROR_ARGUMENT: no row was fed, none counts, or the loss is not a finite number. */
int jit_train_step(jit_train *t, jit_train_report *out, jit_error *err);
/* The loss alone; nothing is changed, and the rows are forgotten. out may be NULL. */
int jit_train_evaluate(jit_train *t, jit_train_report *out, jit_error *err);

/* What is trained. */
typedef struct jit_train_tensor {
	size_t size;
	const char *name; /* as files have it; lives as long as the jit_train */
	uint64_t rows, cols, elements;
	const float *values, *gradients; /* of the last step, not clipped; both change with each step */
} jit_train_tensor;
#define JIT_TRAIN_TENSOR() JIT_STRUCT(jit_train_tensor, )
size_t jit_train_tensors(const jit_train *t);
/* By number from 0. */
int jit_train_get_tensor(const jit_train *t, size_t number, jit_train_tensor *out, jit_error *err);
/* New values: all of them, in the order of rows. */
int jit_train_set_tensor(jit_train *t, size_t number, const float *values, size_t n, jit_error *err);

/* Writes what was trained. JIT_TRAIN_PEFT: a folder with adapter_config.json and adapter_model.safetensors.
 * JIT_TRAIN_GGUF: an adapter as one GGUF file. JIT_TRAIN_WEIGHTS, with `full`: a folder with model.safetensors and the
 * model's other files. Files appear whole or not at all. */
int jit_train_save(const jit_train *t, const char *path, int format, jit_error *err);

/* A file from which training goes on with the same bits: tensors, moments and the number of steps. It appears whole or
 * not at all. */
int jit_train_write_state(const jit_train *t, const char *path, jit_error *err);
/* JIT_ERROR_FORMAT: it is of another model, or of other options. */
int jit_train_read_state(jit_train *t, const char *path, jit_error *err);

#ifdef __cplusplus
}
#endif

#endif

/* runtime/model/adapters.h - the adapters of a model, in its device's memory.
 *
 * Owns: the tables by which kernels find what an adapter has for a matrix (kernels-templates/templates.h), and the
 * adapters' own memory. An adapter lives as long as somebody holds it: its handle, or a session that has it.
 */
#ifndef RUNTIME_ADAPTERS_H
#define RUNTIME_ADAPTERS_H

#include "include/jitrun_adapters.h"
#include "runtime/model/model.h"

/* What a session has. All 0: nothing. */
struct adapters_chosen {
	uint32_t n;
	struct {
		jit_adapter *adapter;
		float scale;
	} of[ADAPTERS_TOGETHER];
	uint64_t from; /* the first position whose token they count for */
	uint64_t set;  /* a number for these adapters with these scales, its highest bit set; 0: of none */
	uint64_t key;  /* the same with `from`: what a text is computed with */
	uint64_t root; /* what a text's first token is computed with: `set`, or 0 */
};

/* Whether the adapters are the model's, their scales numbers and their ranks not too many; those of scale 0 are left
 * out. They count for all tokens. The chosen ones are held from then on, and adapters_drop() is due. False: err. */
bool adapters_choose(struct adapters_chosen *c, const jit_model *m, jit_adapter *const *adapters, const float *scales,
                     size_t n, struct error *err);
/* From now on they count from that position on. */
void adapters_begin(struct adapters_chosen *c, uint64_t from);
/* Whether none of them has invocation tokens. False: err. */
bool adapters_always_count(const struct adapters_chosen *c, struct error *err);
/* A copy, which is held too. */
void adapters_copy(struct adapters_chosen *to, const struct adapters_chosen *from);
void adapters_drop(struct adapters_chosen *c);
/* Of n tokens: their rows of the adapters' embeddings, times the scales, each behind the one before it; `stride`
 * numbers from one token's to the next. */
void adapters_read_rows(const struct adapters_chosen *c, const int32_t *ids, uint32_t n, float *out, uint64_t stride);
/* Of n tokens: what the embedding's rows are multiplied by, and what is added then: 0 and another row, or 1 and -0. */
void adapters_read_whole(const struct adapters_chosen *c, const int32_t *ids, uint32_t n, float *factor, float *row,
                         uint64_t stride);
/* As kernels see it. */
void adapters_set(struct adapt_set *out, const struct adapters_chosen *c);
/* Another one whenever an adapter came or went. */
uint64_t adapters_version(const jit_model *m);
/* Of a model that is closed. */
void adapters_close(jit_model *m);

#endif

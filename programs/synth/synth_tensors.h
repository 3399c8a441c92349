/* programs/synth/synth_tensors.h - which tensors a made-up model has, by its shape and mixture; private to
 * programs/synth/synth*.c.
 */
#ifndef BENCH_SYNTH_TENSORS_H
#define BENCH_SYNTH_TENSORS_H

#include "programs/common/shapes.h"

enum { SYNTH_MAX_TENSORS = 16 + 24 * SHAPE_MAX_LAYERS };
/* RANDOM_TOKENS: a row for each token, zeros for a byte that is a part of a character: such a model generates none,
 * whose answers are therefore whole characters, as some servers want them. STILL_FACTORS: of a quarter of the pairs,
 * which alone rotate. */
enum content { RANDOM, RANDOM_TOKENS, ONES, MINUS_ONES, ROPE_FACTORS, STILL_FACTORS };

struct synth_tensor {
	char name[48];
	enum dtype type;
	enum content content;
	uint64_t rows, cols, stack; /* stack: matrices one behind the other; 0: it is one */
};
struct tensors {
	struct synth_tensor list[SYNTH_MAX_TENSORS];
	uint32_t n;
};

uint64_t synth_tensor_bytes(const struct synth_tensor *t);
void synth_list_tensors(struct tensors *l, const struct model_shape *s, const struct mixture *m);

/* Whether a layer of Gemma has a window; whether it has keys and values of its own. */
bool synth_slides(const struct model_shape *s, uint32_t layer);
bool synth_is_gemma(const struct model_shape *s);
bool synth_is_gpt_oss(const struct model_shape *s);

#endif

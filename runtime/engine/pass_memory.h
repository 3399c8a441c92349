/* runtime/engine/pass_memory.h - the memory that passes work in: activation buffers, and logits. All of it is the
 * device's.
 *
 * Owns: where they lie. Sizes are fixed at open; only the logits of many tokens come when they are first wanted.
 */
#ifndef RUNTIME_PASS_MEMORY_H
#define RUNTIME_PASS_MEMORY_H

#include "runtime/device/device.h"
#include "runtime/plan/live.h"

struct pass_memory {
	struct device *device;
	struct plan_buffers buf; /* its logits are those of one token */
	struct plan_layout layout;
	float *all_logits;   /* of pass_memory_logits() tokens; NULL until then */
	float *all_greatest; /* the greatest of each 32 of these */
	size_t shown_bytes;
	size_t buffers_bytes, shared_bytes, all_logits_bytes, records_bytes;
	uint8_t *buffers, *shared;
	struct {
		uint8_t *at;
		size_t bytes;
		uint32_t tokens; /* of the widest pass that it is for; 0: nobody has asked yet */
	} dataflow[2];           /* of passes of one token, and of several */
};

/* How much that takes for passes over at most o->tokens tokens, without taking any and before there are weights:
 * buffers_bytes and shared_bytes. False: err. */
bool pass_memory_measure(struct pass_memory *m, const struct model_spec *s, const struct plan_layout_options *o,
                         struct error *err);
/* False: err, and pass_memory_close() is still due. */
bool pass_memory_open(struct pass_memory *m, struct device *d, const struct model_spec *s, const struct weights *w,
                      const struct plan_layout_options *o, struct error *err);
/* Makes room for the logits of so many tokens, if there is none yet; always the same number. */
bool pass_memory_logits(struct pass_memory *m, const struct model_spec *s, uint32_t tokens, struct error *err);
/* Makes room for so many levels of features of a pass's tokens, if there is none yet. */
bool pass_memory_shown(struct pass_memory *m, const struct model_spec *s, uint32_t levels, struct error *err);
/* Makes room for the records of a context of so many positions (plan.h), if there is none yet; always the same number.
 * Of one token, or, on devices that are none of threads, of a few: where the memory does not have that, several tokens
 * do without. tokens: of the pass that asks. */
bool pass_memory_records(struct pass_memory *m, const struct model_spec *s, uint64_t context, uint32_t tokens,
                         struct error *err);
/* Makes room for the dataflow region of a pass of so many tokens (plan.h), if there is none yet, and sets
 * it in *to. Nothing where the model has no such plan, or the device no memory: several tokens then do without. */
bool pass_memory_dataflow(struct pass_memory *m, const struct model_spec *s, uint64_t context, uint32_t tokens,
                          struct plan_buffers *to, struct error *err);
void pass_memory_close(struct pass_memory *m);

#endif

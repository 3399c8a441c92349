/* tests/jit/ptx_call.h - runs one kernel's PTX on one wave, or one group of waves, of a card.
 *
 * The card is simulated, or with JITRUN_TEST_CUDA in the environment the machine's first NVIDIA card. */
#ifndef TESTS_JIT_PTX_CALL_H
#define TESTS_JIT_PTX_CALL_H

#include "jit/compile.h"
#include "tests/jit/random_ir.h"

struct ptx_card;
/* NULL: err. capability: of a simulated card. */
struct ptx_card *ptx_card_open(uint32_t capability, struct error *err);
void ptx_card_close(struct ptx_card *c);
bool ptx_card_is_real(const struct ptx_card *c);
/* Whatever the kernel reads and writes lies in *b, whose contents go there and come back. False: err. */
bool ptx_call(struct ptx_card *c, const struct object *o, unsigned waves, struct random_ir_buffers *b, int64_t begin,
              int64_t end, struct error *err);
/* The same of a block of memory: its n_args words at args point into it, without those whose bit is set in numbers. */
struct ptx_block_of {
	void *memory;
	size_t bytes;
	uint64_t *args;
	unsigned n_args;
	uint64_t numbers;
};
bool ptx_call_block(struct ptx_card *c, const struct object *o, unsigned waves, const struct ptx_block_of *b,
                    int64_t end, struct error *err);

#endif

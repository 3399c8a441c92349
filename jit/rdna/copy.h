/* jit/rdna/copy.h - kernels that copy memory on a card, as a code object: for memory that the host does not reach.
 *
 * Owns: their instructions and arguments. Addresses do not overlap; who launches several in a row puts barriers between
 * them.
 */
#ifndef JIT_RDNA_COPY_H
#define JIT_RDNA_COPY_H

#include "jit/target.h"

#define RDNA_COPY_VECTORS "copy16" /* vectors of 16 bytes, between addresses aligned to that */
#define RDNA_COPY_BYTES "copy1"
enum { RDNA_COPY_ITEMS = 256 /* in a workgroup */, RDNA_COPY_MAX = 1 << 27 /* vectors or bytes of a launch */ };

struct rdna_copy_args {
	uint64_t to, from;
	uint32_t n;      /* vectors or bytes */
	uint32_t stride; /* work items of the launch */
};

/* *bytes is malloc'ed: an ELF code object with both kernels. */
bool rdna_copy_make(uint8_t **bytes, size_t *size, const struct target *target, struct error *err);

#endif

/* tests/kernels/plain.h - matmul, quantise and embed as the contract's plain loops: what templates are compared with,
 * byte for byte.
 *
 * Written from kernels-templates/numerics.h and docs/kernel-templates.md alone: scalar, no lanes, no packing, weights
 * as files hold them. Shares no code with the templates.
 */
#ifndef TESTS_PLAIN_H
#define TESTS_PLAIN_H

#include "base/dtype.h"
#include "jit/key.h"
#include "kernels-templates/templates.h"

/* A weight matrix as a file holds it. */
struct plain_matrix {
	enum dtype type;
	uint32_t rows, k;
	const uint8_t *data;
};
uint64_t plain_row_bytes(const struct plain_matrix *m);
float plain_weight(const struct plain_matrix *m, uint32_t row, uint32_t k);

enum { PLAIN_MAX_COLUMNS = 256 };

/* Buffers have the layouts of docs/kernel-templates.md; flags are a key's. Bias vectors are padded to 32. */
struct plain_matmul {
	struct plain_matrix w, w2;
	enum key_act act;
	uint32_t flags, columns;
	bool dot2;      /* x becomes BF16, and is multiplied in pairs */
	const float *x; /* f32 activations, or NULL: int8 in q and s */
	const int8_t *q;
	const struct activation_block *s;
	const float *bias, *bias2;
	const float *added[2]; /* with KEY_ADDED, as out lies: of the first product, and of the second; with KEY_SCALED
	                          twice as many */
	float *out;
	int8_t *outq;
	struct activation_block *outs;
};
void plain_matmul(const struct plain_matmul *m);

/* To nearest even, as BF16 in the upper half. */
uint32_t plain_to_bf16(float x);
void plain_quantise(const float *x, uint64_t blocks, int8_t *q, struct activation_block *s);
void plain_embed(const struct plain_matrix *w, const int32_t *ids, uint32_t columns, float *out);

#endif

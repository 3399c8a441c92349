/* base/dtype.h - the storage types tensors come in: names, block sizes, block bytes, bytes of rows.
 *
 * Owns: those facts for every type a GGUF or safetensors file can name, and for those whose
 * blocks are made while a file is read (MLX4 to FP8: loaders/model/model_affine_read.c), whether or not we compute with
 * it (a file is refused with the type's name). How a type is computed with lives in kernels-templates/wf_*.c; what
 * number a file gives it lives in the loaders.
 */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <stdint.h>

/*        id       name      elements per block, bytes per block, number in GGUF files (-1: none),
          bytes before a row's first block */
/* clang-format off */
#define DTYPE_ROWS(X) \
	X(F32,     "F32",     1,   4,   0, 0) \
	X(F16,     "F16",     1,   2,   1, 0) \
	X(Q4_0,    "Q4_0",    32,  18,  2, 0) \
	X(Q4_1,    "Q4_1",    32,  20,  3, 0) \
	X(Q5_0,    "Q5_0",    32,  22,  6, 0) \
	X(Q5_1,    "Q5_1",    32,  24,  7, 0) \
	X(Q8_0,    "Q8_0",    32,  34,  8, 0) \
	X(Q8_1,    "Q8_1",    32,  36,  9, 0) \
	X(Q2_K,    "Q2_K",    256, 84,  10, 0) \
	X(Q3_K,    "Q3_K",    256, 110, 11, 0) \
	X(Q4_K,    "Q4_K",    256, 144, 12, 0) \
	X(Q5_K,    "Q5_K",    256, 176, 13, 0) \
	X(Q6_K,    "Q6_K",    256, 210, 14, 0) \
	X(Q8_K,    "Q8_K",    256, 292, 15, 0) \
	X(IQ2_XXS, "IQ2_XXS", 256, 66,  16, 0) \
	X(IQ2_XS,  "IQ2_XS",  256, 74,  17, 0) \
	X(IQ3_XXS, "IQ3_XXS", 256, 98,  18, 0) \
	X(IQ1_S,   "IQ1_S",   256, 50,  19, 0) \
	X(IQ4_NL,  "IQ4_NL",  32,  18,  20, 0) \
	X(IQ3_S,   "IQ3_S",   256, 110, 21, 0) \
	X(IQ2_S,   "IQ2_S",   256, 82,  22, 0) \
	X(IQ4_XS,  "IQ4_XS",  256, 136, 23, 0) \
	X(I8,      "I8",      1,   1,   24, 0) \
	X(I16,     "I16",     1,   2,   25, 0) \
	X(I32,     "I32",     1,   4,   26, 0) \
	X(I64,     "I64",     1,   8,   27, 0) \
	X(F64,     "F64",     1,   8,   28, 0) \
	X(IQ1_M,   "IQ1_M",   256, 56,  29, 0) \
	X(BF16,    "BF16",    1,   2,   30, 0) \
	X(TQ1_0,   "TQ1_0",   256, 54,  34, 0) \
	X(TQ2_0,   "TQ2_0",   256, 66,  35, 0) \
	X(MXFP4,   "MXFP4",   32,  17,  39, 0) \
	X(NVFP4,   "NVFP4",   64,  36,  40, 0) \
	X(Q1_0,    "Q1_0",    128, 18,  41, 0) \
	X(Q2_0,    "Q2_0",    64,  18,  42, 0) \
	X(MLX4,    "MLX4",    32,  20,  -1, 0) \
	X(MLX8,    "MLX8",    32,  36,  -1, 0) \
	X(MLX8_F16, "MLX8_F16", 32, 36, -1, 0) \
	X(AWQ4,    "AWQ4",    32,  19,  -1, 0) \
	X(AWQ4_BF16, "AWQ4_BF16", 32, 19, -1, 0) \
	X(FP8,     "FP8",     32,  36,  -1, 0) \
	X(U8,      "U8",      1,   1,   -1, 0) \
	X(BOOL,    "BOOL",    1,   1,   -1, 0) \
	X(U16,     "U16",     1,   2,   -1, 0) \
	X(U32,     "U32",     1,   4,   -1, 0) \
	X(U64,     "U64",     1,   8,   -1, 0) \
	X(F8_E4M3, "F8_E4M3", 1,   1,   -1, 0) \
	X(F8_E5M2, "F8_E5M2", 1,   1,   -1, 0) \
	X(IQ4_KS,  "IQ4_KS",  256, 136, 144, 4) \
	X(IQ2_KS,  "IQ2_KS",  256, 70,  145, 2) \
	X(IQ5_KS,  "IQ5_KS",  256, 168, 152, 4)
/* clang-format on */

enum dtype {
#define X(id, name, block, bytes, gguf, row) DTYPE_##id,
	DTYPE_ROWS(X)
#undef X
		DTYPE_COUNT
};

struct dtype_facts {
	const char *name;
	uint16_t block; /* elements per block, along K */
	uint16_t bytes; /* bytes per block */
	int16_t gguf;   /* ggml type number, or -1 */
	uint8_t row;    /* bytes before a row's first block */
};

extern const struct dtype_facts dtype_table[DTYPE_COUNT];

/* Of a row of `columns` elements, which the type's blocks divide; `rows` of them are so many times as long. */
static inline uint64_t dtype_row_bytes(enum dtype t, uint64_t columns)
{
	const struct dtype_facts *f = &dtype_table[t];

	return f->row + columns / f->block * f->bytes;
}

#endif

/* graph/tensor.h - element types, shapes, and arrays in the host's memory.
 *
 * Owns: what an element of each type is, and how its bytes become a number and back. Arrays are row-major: the last
 * dimension is contiguous. Types are those of jitrun_kernel.h: JIT_TYPE_F32 and so on.
 */
#ifndef GRAPH_TENSOR_H
#define GRAPH_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "include/jitrun_kernel.h"

enum { TENSOR_MAX_RANK = 8, TENSOR_TYPES = JIT_TYPE_U16 + 1 };
/* Elements of an array, and bytes: what does not fit in memory anywhere is refused before it is added up. */
#define TENSOR_MAX_BYTES (UINT64_C(1) << 46)

struct shape {
	unsigned rank;
	uint64_t dim[TENSOR_MAX_RANK];
};

/* data: tensor_bytes() of them, 64-byte aligned, the tensor's own; NULL where there is no element. */
struct tensor {
	int type;
	struct shape shape;
	void *data;
};

const char *tensor_type_name(int type);         /* "f32" */
int tensor_type_of(const char *name, size_t n); /* -1: none has that name */
unsigned tensor_type_bytes(int type);
static inline bool tensor_is_float(int t)
{
	return t == JIT_TYPE_F32 || t == JIT_TYPE_F64 || t == JIT_TYPE_F16 || t == JIT_TYPE_BF16;
}
static inline bool tensor_is_signed(int t)
{
	return t == JIT_TYPE_I8 || t == JIT_TYPE_I16 || t == JIT_TYPE_I32 || t == JIT_TYPE_I64;
}
static inline bool tensor_is_integer(int t) { return t != JIT_TYPE_BOOL && !tensor_is_float(t); }

/* The type that arithmetic on elements of `type` has: of f16 and bf16 f32, of i8 and i16 i32, of u8 and u16 u32; else
 * itself. Results are rounded, or cut to the low bits, when they are stored. */
int tensor_wide_type(int type);

/* "f32[2,3]" */
enum { SHAPE_TEXT_MAX = 200 };
char *shape_text(int type, const struct shape *s, char out[SHAPE_TEXT_MAX]);
uint64_t shape_elements(const struct shape *s);
/* False, err: the bytes are more than TENSOR_MAX_BYTES. */
bool shape_fits(int type, const struct shape *s, struct error *err);
bool shape_equal(const struct shape *a, const struct shape *b);
/* The product of dimensions from..to-1. */
uint64_t shape_part(const struct shape *s, unsigned from, unsigned to);
/* How many elements further the next one of each dimension is. */
void shape_strides(const struct shape *s, uint64_t stride[TENSOR_MAX_RANK]);
/* The next position in row-major order; false: there is no more, and at is all 0 again. */
bool shape_next(const struct shape *s, uint64_t at[TENSOR_MAX_RANK]);

bool tensor_make(struct tensor *t, int type, const struct shape *s, struct error *err); /* zeroed */
/* The same for a caller that writes every element. */
bool tensor_make_unset(struct tensor *t, int type, const struct shape *s, struct error *err);
void tensor_free(struct tensor *t);
uint64_t tensor_bytes(const struct tensor *t);

/* An element in the type that arithmetic has; which member is set, tensor_wide_type() says. bool is in u: 0 or 1. */
union number {
	float f;    /* F32 */
	double d;   /* F64 */
	int64_t i;  /* I32, I64 */
	uint64_t u; /* U32, U64, BOOL */
};
union number tensor_get(const struct tensor *t, uint64_t element);
/* Rounds f16 and bf16 to nearest even, and keeps the low bits of integers. */
void tensor_put(struct tensor *t, uint64_t element, union number x);
/* From one wide type to another as a cast of the kernel language: to an integer it cuts towards zero, and numbers
 * beyond the least or the greatest become that one; of NaN it is 0. To bool: whether it is not 0. */
union number tensor_convert(union number x, int from, int to);
/* For indices and sizes: an integer or bool element; false: it does not fit. */
bool tensor_integer(const struct tensor *t, uint64_t element, int64_t *out);

#endif

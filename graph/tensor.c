/* graph/tensor.c - element types, shapes, and arrays in the host's memory. */
#include "graph/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static const struct {
	const char *name;
	uint8_t bytes, wide;
} types[TENSOR_TYPES] = {
	[JIT_TYPE_BOOL] = { "bool", 1, JIT_TYPE_BOOL }, [JIT_TYPE_F32] = { "f32", 4, JIT_TYPE_F32 },
	[JIT_TYPE_F64] = { "f64", 8, JIT_TYPE_F64 },    [JIT_TYPE_I32] = { "i32", 4, JIT_TYPE_I32 },
	[JIT_TYPE_U32] = { "u32", 4, JIT_TYPE_U32 },    [JIT_TYPE_I64] = { "i64", 8, JIT_TYPE_I64 },
	[JIT_TYPE_U64] = { "u64", 8, JIT_TYPE_U64 },    [JIT_TYPE_F16] = { "f16", 2, JIT_TYPE_F32 },
	[JIT_TYPE_BF16] = { "bf16", 2, JIT_TYPE_F32 },  [JIT_TYPE_I8] = { "i8", 1, JIT_TYPE_I32 },
	[JIT_TYPE_U8] = { "u8", 1, JIT_TYPE_U32 },      [JIT_TYPE_I16] = { "i16", 2, JIT_TYPE_I32 },
	[JIT_TYPE_U16] = { "u16", 2, JIT_TYPE_U32 },
};

const char *tensor_type_name(int type) { return types[type].name; }
unsigned tensor_type_bytes(int type) { return types[type].bytes; }
int tensor_wide_type(int type) { return types[type].wide; }

int tensor_type_of(const char *name, size_t n)
{
	for (int i = 0; i < TENSOR_TYPES; i++)
		if (strlen(types[i].name) == n && memcmp(types[i].name, name, n) == 0)
			return i;
	return -1;
}

/* ---- shapes */

char *shape_text(int type, const struct shape *s, char out[SHAPE_TEXT_MAX])
{
	int n = snprintf(out, SHAPE_TEXT_MAX, "%s[", tensor_type_name(type));

	for (unsigned i = 0; i < s->rank; i++)
		n += snprintf(out + n, (size_t)(SHAPE_TEXT_MAX - n), "%s%" PRIu64, i ? "," : "", s->dim[i]);
	snprintf(out + n, (size_t)(SHAPE_TEXT_MAX - n), "]");
	return out;
}

uint64_t shape_part(const struct shape *s, unsigned from, unsigned to)
{
	uint64_t n = 1;

	for (unsigned i = from; i < to; i++)
		n *= s->dim[i];
	return n;
}

uint64_t shape_elements(const struct shape *s) { return shape_part(s, 0, s->rank); }

/* A dimension of 0 does not let the others be of any size: their strides must be right, too. */
bool shape_fits(int type, const struct shape *s, struct error *err)
{
	uint64_t n = tensor_type_bytes(type);
	char text[SHAPE_TEXT_MAX];

	for (unsigned i = 0; i < s->rank; i++) {
		if (s->dim[i] > TENSOR_MAX_BYTES || (s->dim[i] && n > TENSOR_MAX_BYTES / s->dim[i]))
			return error_set(err, ERROR_MEMORY, "%s has more than 2^46 bytes", shape_text(type, s, text));
		n *= s->dim[i] ? s->dim[i] : 1;
	}
	return true;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
	return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

void shape_strides(const struct shape *s, uint64_t stride[TENSOR_MAX_RANK])
{
	uint64_t n = 1;

	for (unsigned i = s->rank; i-- > 0; n *= s->dim[i])
		stride[i] = n;
}

bool shape_next(const struct shape *s, uint64_t at[TENSOR_MAX_RANK])
{
	for (unsigned i = s->rank; i-- > 0; at[i] = 0)
		if (++at[i] < s->dim[i])
			return true;
	return false;
}

/* ---- arrays */

uint64_t tensor_bytes(const struct tensor *t) { return shape_elements(&t->shape) * tensor_type_bytes(t->type); }

bool tensor_make_unset(struct tensor *t, int type, const struct shape *s, struct error *err)
{
	*t = (struct tensor){ .type = type, .shape = *s };
	if (!shape_fits(type, s, err))
		return false;
	const uint64_t bytes = tensor_bytes(t);
	if (bytes == 0)
		return true;
	t->data = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
	if (!t->data)
		return error_set(err, ERROR_MEMORY, "there is no memory for %" PRIu64 " bytes", bytes);
	return true;
}

bool tensor_make(struct tensor *t, int type, const struct shape *s, struct error *err)
{
	if (!tensor_make_unset(t, type, s, err))
		return false;
	if (t->data)
		memset(t->data, 0, (size_t)tensor_bytes(t));
	return true;
}

void tensor_free(struct tensor *t)
{
	free(t->data);
	t->data = NULL;
}

/* ---- elements */

#define LOAD(type, member) \
	{ \
		type v; \
		memcpy(&v, p, sizeof v); \
		x.member = v; \
		break; \
	}

union number tensor_get(const struct tensor *t, uint64_t element)
{
	const uint8_t *p = (const uint8_t *)t->data + element * tensor_type_bytes(t->type);
	union number x = { .u = 0 };
	uint16_t half;

	switch (t->type) {
	case JIT_TYPE_F32: LOAD(float, f)
	case JIT_TYPE_F64: LOAD(double, d)
	case JIT_TYPE_I32: LOAD(int32_t, i)
	case JIT_TYPE_U32: LOAD(uint32_t, u)
	case JIT_TYPE_I64: LOAD(int64_t, i)
	case JIT_TYPE_U64: LOAD(uint64_t, u)
	case JIT_TYPE_I8: x.i = (int64_t)(*p ^ 0x80) - 0x80; break;
	case JIT_TYPE_U8: LOAD(uint8_t, u)
	case JIT_TYPE_I16: LOAD(int16_t, i)
	case JIT_TYPE_U16: LOAD(uint16_t, u)
	case JIT_TYPE_F16:
		memcpy(&half, p, 2);
		x.f = number_from_half(half);
		break;
	case JIT_TYPE_BF16:
		memcpy(&half, p, 2);
		x.f = number_from_bf16(half);
		break;
	default: x.u = *p != 0; break;
	}
	return x;
}

/* number_to_half() and number_to_bf16() keep what is beyond their range finite; here it rounds as IEEE says. */
static uint16_t to_half(float f)
{
	const uint32_t bits = number_bits(f), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;

	if (size > 0x7f800000) /* NaN stays one, with the upper bits that it had */
		return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
	if (size >= 0x477ff000) /* 65520 is halfway to the next one */
		return (uint16_t)(sign | 0x7c00);
	return number_to_half(f);
}

static uint16_t to_bf16(float f)
{
	const uint32_t bits = number_bits(f), size = bits & 0x7fffffff;

	if (size > 0x7f800000)
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define STORE(type, member) \
	{ \
		const type v = (type)x.member; \
		memcpy(p, &v, sizeof v); \
		break; \
	}

void tensor_put(struct tensor *t, uint64_t element, union number x)
{
	uint8_t *p = (uint8_t *)t->data + element * tensor_type_bytes(t->type);
	uint16_t half;

	switch (t->type) {
	case JIT_TYPE_F32: STORE(float, f)
	case JIT_TYPE_F64: STORE(double, d)
	case JIT_TYPE_I32:
	case JIT_TYPE_U32: STORE(uint32_t, u)
	case JIT_TYPE_I64:
	case JIT_TYPE_U64: STORE(uint64_t, u)
	case JIT_TYPE_I8:
	case JIT_TYPE_U8: STORE(uint8_t, u)
	case JIT_TYPE_I16:
	case JIT_TYPE_U16: STORE(uint16_t, u)
	case JIT_TYPE_F16:
		half = to_half(x.f);
		memcpy(p, &half, 2);
		break;
	case JIT_TYPE_BF16:
		half = to_bf16(x.f);
		memcpy(p, &half, 2);
		break;
	default: *p = x.u != 0; break;
	}
}

/* The integer that a double is cut to, between the least and the greatest of the type. */
static union number whole_of(double d, int to)
{
	union number x = { .u = 0 };

	if (isnan(d))
		return x;
	switch (to) {
	case JIT_TYPE_I32: x.i = d <= -0x1p31 ? INT32_MIN : d >= 0x1p31 - 1 ? INT32_MAX : (int64_t)d; break;
	case JIT_TYPE_I64: x.i = d < -0x1p63 ? INT64_MIN : d >= 0x1p63 ? INT64_MAX : (int64_t)d; break;
	case JIT_TYPE_U32: x.u = d <= 0 ? 0 : d >= 0x1p32 - 1 ? UINT32_MAX : (uint64_t)d; break;
	default: x.u = d <= 0 ? 0 : d >= 0x1p64 ? UINT64_MAX : (uint64_t)d; break;
	}
	return x;
}

union number tensor_convert(union number x, int from, int to)
{
	const bool is_real = from == JIT_TYPE_F32 || from == JIT_TYPE_F64, has_sign = tensor_is_signed(from);
	union number out = { .u = 0 };

	if (from == to)
		return x;
	const double d = from == JIT_TYPE_F32 ? (double)x.f : from == JIT_TYPE_F64 ? x.d : 0;
	switch (to) {
	case JIT_TYPE_F32: out.f = is_real ? (float)d : has_sign ? (float)x.i : (float)x.u; break;
	case JIT_TYPE_F64: out.d = is_real ? d : has_sign ? (double)x.i : (double)x.u; break;
	case JIT_TYPE_BOOL: out.u = is_real ? d != 0 : x.u != 0; break;
	case JIT_TYPE_I32:
		if (is_real)
			return whole_of(d, to);
		out.i = (int32_t)(uint32_t)x.u;
		break;
	case JIT_TYPE_U32:
		if (is_real)
			return whole_of(d, to);
		out.u = (uint32_t)x.u;
		break;
	default:
		if (is_real)
			return whole_of(d, to);
		out.u = x.u;
	}
	return out;
}

bool tensor_integer(const struct tensor *t, uint64_t element, int64_t *out)
{
	const union number x = tensor_get(t, element);

	*out = x.i;
	return !tensor_is_float(t->type) && (tensor_is_signed(t->type) || x.u <= INT64_MAX);
}

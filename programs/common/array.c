/* programs/common/array.c - see array.h. */
#include "programs/common/array.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "include/jitrun_kernel.h"

static const struct {
	const char *name, *npy;
	uint8_t bytes, fraction; /* fraction: bits of a random float's value */
	bool is_float, is_signed;
} types[] = {
	[JIT_TYPE_BOOL] = { "bool", "b1", 1, 0, false, false }, [JIT_TYPE_F32] = { "f32", "f4", 4, 24, true, true },
	[JIT_TYPE_F64] = { "f64", "f8", 8, 53, true, true },    [JIT_TYPE_I32] = { "i32", "i4", 4, 0, false, true },
	[JIT_TYPE_U32] = { "u32", "u4", 4, 0, false, false },   [JIT_TYPE_I64] = { "i64", "i8", 8, 0, false, true },
	[JIT_TYPE_U64] = { "u64", "u8", 8, 0, false, false },   [JIT_TYPE_F16] = { "f16", "f2", 2, 11, true, true },
	[JIT_TYPE_BF16] = { "bf16", "u2", 2, 8, true, true },   [JIT_TYPE_I8] = { "i8", "i1", 1, 0, false, true },
	[JIT_TYPE_U8] = { "u8", "u1", 1, 0, false, false },     [JIT_TYPE_I16] = { "i16", "i2", 2, 0, false, true },
	[JIT_TYPE_U16] = { "u16", "u2", 2, 0, false, false },
};

const char *array_type_name(int type) { return types[type].name; }
const char *array_npy_type(int type) { return types[type].npy; }
unsigned array_type_bytes(int type) { return types[type].bytes; }
bool array_type_is_float(int type) { return types[type].is_float; }

int array_type_of_npy(const char *npy)
{
	for (int i = 0; i < (int)(sizeof types / sizeof *types); i++)
		if (types[i].npy && i != JIT_TYPE_BF16 && strcmp(types[i].npy, npy) == 0)
			return i;
	return -1;
}

/* ---- elements */

double array_number(int type, const uint8_t *p)
{
	uint64_t bits = 0;
	float f;
	double d;

	memcpy(&bits, p, types[type].bytes);
	switch (type) {
	case JIT_TYPE_F32: memcpy(&f, p, sizeof f); return (double)f;
	case JIT_TYPE_F64: memcpy(&d, p, sizeof d); return d;
	case JIT_TYPE_F16: return (double)number_from_half((uint16_t)bits);
	case JIT_TYPE_BF16: return (double)number_from_bf16((uint16_t)bits);
	default: break;
	}
	if (!types[type].is_signed)
		return (double)bits;
	const unsigned unused = 64 - 8u * types[type].bytes;
	return (double)((int64_t)(bits << unused) >> unused);
}

char *array_element(int type, const uint8_t *data, uint64_t i, char out[ARRAY_ELEMENT_MAX])
{
	const uint8_t *p = data + i * types[type].bytes;
	uint64_t bits = 0;

	memcpy(&bits, p, types[type].bytes);
	if (types[type].is_float)
		snprintf(out, ARRAY_ELEMENT_MAX, "%.*g", type == JIT_TYPE_F64 ? 17 : 9, array_number(type, p));
	else if (types[type].is_signed)
		snprintf(out, ARRAY_ELEMENT_MAX, "%" PRId64,
		         (int64_t)(bits << (64 - 8u * types[type].bytes)) >> (64 - 8u * types[type].bytes));
	else
		snprintf(out, ARRAY_ELEMENT_MAX, "%" PRIu64, bits);
	return out;
}

/* The nearest number of an element's type, ties to even; of integers the low bits. */
static void put(int type, uint8_t *p, double value, int64_t integer)
{
	const float f = (float)value;
	uint64_t bits = (uint64_t)integer;

	switch (type) {
	case JIT_TYPE_F32: memcpy(p, &f, sizeof f); return;
	case JIT_TYPE_F64: memcpy(p, &value, sizeof value); return;
	case JIT_TYPE_F16: bits = number_to_half(f); break;
	case JIT_TYPE_BF16: bits = number_to_bf16(f); break;
	case JIT_TYPE_BOOL: bits = integer != 0; break;
	default: break;
	}
	memcpy(p, &bits, types[type].bytes);
}

static uint64_t splitmix64(uint64_t counter)
{
	uint64_t z = counter * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Element i has the high bits of a word that depends on seed and i alone; a float is in 0 to 1, without 1. */
static void put_random(int type, uint8_t *p, uint64_t seed, uint64_t i)
{
	const uint64_t word = splitmix64(splitmix64(seed) + i + 1);
	const unsigned bits = types[type].is_float ? types[type].fraction : 8u * types[type].bytes;

	if (types[type].is_float)
		put(type, p, ldexp((double)(word >> (64 - bits)), -(int)bits), 0);
	else
		put(type, p, 0, type == JIT_TYPE_BOOL ? (int64_t)(word >> 63) : (int64_t)(word >> (64 - bits)));
}

/* ---- files */

static bool no_file(const char *path, struct error *err)
{
	return error_set(err, ERROR_IO, "%.300s: %s", path, strerror(errno));
}

/* From `at` on, exactly so many bytes. */
static bool read_data(FILE *f, const char *path, long at, struct array *a, struct error *err)
{
	if (fseek(f, at, SEEK_SET) != 0 || fread(a->data, 1, (size_t)a->bytes, f) != a->bytes)
		return error_set(err, ERROR_FORMAT, "%.300s: less than the %" PRIu64 " bytes that array %.64s has",
		                 path, a->bytes, a->name);
	return getc(f) == EOF ||
	       error_set(err, ERROR_FORMAT, "%.300s: more than the %" PRIu64 " bytes that array %.64s has", path,
	                 a->bytes, a->name);
}

static void describe(const struct array *a, struct npy *out)
{
	*out = (struct npy){ .dims = a->dims, .elements = a->elements, .bytes = a->bytes };
	snprintf(out->type, sizeof out->type, "%s", types[a->type].npy);
	memcpy(out->extent, a->extent, sizeof a->extent);
}

bool array_fits(const struct array *a, const char *path, const char *type, unsigned dims, const uint64_t *extent,
                struct error *err)
{
	char found[NPY_SHAPE_MAX], expected[NPY_SHAPE_MAX];
	struct npy have = { .dims = dims }, want;

	describe(a, &want);
	if (dims == a->dims && strcmp(type, want.type) == 0 &&
	    (dims == 0 || memcmp(extent, a->extent, dims * sizeof *extent) == 0))
		return true;
	memcpy(have.extent, extent, dims * sizeof *extent);
	return error_set(err, ERROR_FORMAT,
	                 "%.200s: elements %s of shape %.100s, expected %s of shape %.100s for %.64s", path, type,
	                 npy_shape(&have, found), want.type, npy_shape(&want, expected), a->name);
}

static bool read_npy(FILE *f, const char *path, struct array *a, struct error *err)
{
	static uint8_t head[1 << 17];
	const size_t n = fread(head, 1, sizeof head, f);
	struct npy header;

	return npy_read_header(&header, path, head, n, err) &&
	       array_fits(a, path, header.type, header.dims, header.extent, err) &&
	       read_data(f, path, (long)header.data, a, err);
}

static bool read_file(const char *path, bool raw, struct array *a, struct error *err)
{
	FILE *f = fopen(path, "rb");

	if (!f)
		return no_file(path, err);
	bool ok = raw ? read_data(f, path, 0, a, err) : read_npy(f, path, a, err);
	fclose(f);
	return ok;
}

bool array_write(const struct array *a, const char *path, bool raw, struct error *err)
{
	FILE *f = fopen(path, "wb");
	struct npy header;

	if (!f)
		return no_file(path, err);
	describe(a, &header);
	bool ok = (raw || npy_write_header(&header, f)) && fwrite(a->data, 1, (size_t)a->bytes, f) == a->bytes;
	ok = fclose(f) == 0 && ok;
	return ok || error_set(err, ERROR_IO, "%.300s: cannot be written whole: %s", path, strerror(errno));
}

/* ---- what an option says */

static bool whole_number(const char *text, int64_t *v)
{
	char *end;

	errno = 0;
	const long long n = strtoll(text, &end, 0);
	*v = n;
	if (errno == ERANGE && text[0] != '-') { /* of u64 */
		errno = 0;
		*v = (int64_t)strtoull(text, &end, 0);
	}
	return *text && !isspace((unsigned char)*text) && !*end && !errno;
}

bool array_read_number(const char *text, double *v, int64_t *integer, bool *whole)
{
	char *end;

	*whole = whole_number(text, integer);
	*v = strtod(text, &end);
	return *whole || (*text && !isspace((unsigned char)*text) && !*end);
}

void array_fill_random(struct array *a, uint64_t seed)
{
	for (uint64_t i = 0; i < a->elements; i++)
		put_random(a->type, a->data + i * types[a->type].bytes, seed, i);
}

bool array_fill(struct array *a, const char *option, const char *spec, struct error *err)
{
	const unsigned size = types[a->type].bytes;
	double value;
	int64_t integer;
	bool whole;

	if (strcmp(spec, "zeros") == 0)
		return true;
	if (strcmp(spec, "iota") == 0) {
		for (uint64_t i = 0; i < a->elements; i++)
			put(a->type, a->data + i * size, (double)i, (int64_t)i);
		return true;
	}
	if (strncmp(spec, "random:", 7) == 0) {
		if (!whole_number(spec + 7, &integer))
			return error_set(err, ERROR_ARGUMENT, "%s %.64s=%.64s: the seed is no whole number", option,
			                 a->name, spec);
		array_fill_random(a, (uint64_t)integer);
		return true;
	}
	if (strncmp(spec, "raw:", 4) == 0)
		return read_file(spec + 4, true, a, err);
	if (!array_read_number(spec, &value, &integer, &whole))
		return read_file(spec, false, a, err);
	if (!whole && !types[a->type].is_float)
		return error_set(err, ERROR_ARGUMENT, "%s %.64s=%.64s: elements are %s", option, a->name, spec,
		                 types[a->type].name);
	for (uint64_t i = 0; i < a->elements; i++)
		put(a->type, a->data + i * size, value, integer);
	return true;
}

const char *array_given(const char *const *list, int n, const char *name)
{
	const size_t length = strlen(name);

	for (int i = 0; i < n; i++)
		if (strncmp(list[i], name, length) == 0 && list[i][length] == '=')
			return list[i] + length + 1;
	return NULL;
}

bool array_option_name(const char *option, const char *entry, char out[ARRAY_NAME_MAX], struct error *err)
{
	const size_t n = strcspn(entry, "=");

	if (!entry[n] || n == 0 || n >= ARRAY_NAME_MAX)
		return error_set(err, ERROR_ARGUMENT, "%s %.100s: expected NAME=...", option, entry);
	memcpy(out, entry, n);
	out[n] = 0;
	return true;
}

/* ---- the terminal */

static uint64_t fnv(const uint8_t *p, uint64_t n)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (uint64_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(1099511628211);
	return h;
}

void array_print(const struct array *a)
{
	enum { SHOWN = 6 };
	struct npy header;
	char shape[NPY_SHAPE_MAX], text[ARRAY_ELEMENT_MAX];
	double sum = 0;

	describe(a, &header);
	for (uint64_t i = 0; i < a->elements; i++)
		sum += array_number(a->type, a->data + i * types[a->type].bytes);
	printf("%s %s%s fnv %016" PRIx64 " sum %.9g:", a->name, types[a->type].name, npy_shape(&header, shape),
	       fnv(a->data, a->bytes), sum);
	for (uint64_t i = 0; i < a->elements && i < SHOWN; i++)
		printf(" %s", array_element(a->type, a->data, i, text));
	printf(a->elements > SHOWN ? " ...\n" : "\n");
}

/* programs/jitk/jitk_arrays.c - the arrays of a kernel: what --in puts into them, and what --out and the terminal get.
 *
 * Owns: the forms of --in and --out, and which bits random:SEED and iota give an element. Files are .npy, or their
 * bytes alone.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "programs/common/npy.h"
#include "programs/jitk/jitk.h"
#include "runtime/host/system.h"

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

const char *jitk_type_name(int type) { return types[type].name; }

/* ---- elements */

static double as_double(int type, const uint8_t *p)
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

char *jitk_element(const struct jitk_array *a, const uint8_t *data, uint64_t i, char out[JITK_ELEMENT_MAX])
{
	const int type = a->is.type;
	const uint8_t *p = data + i * types[type].bytes;
	uint64_t bits = 0;

	memcpy(&bits, p, types[type].bytes);
	if (types[type].is_float)
		snprintf(out, JITK_ELEMENT_MAX, "%.*g", type == JIT_TYPE_F64 ? 17 : 9, as_double(type, p));
	else if (types[type].is_signed)
		snprintf(out, JITK_ELEMENT_MAX, "%" PRId64,
		         (int64_t)(bits << (64 - 8u * types[type].bytes)) >> (64 - 8u * types[type].bytes));
	else
		snprintf(out, JITK_ELEMENT_MAX, "%" PRIu64, bits);
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
static bool read_data(FILE *f, const char *path, long at, struct jitk_array *a, struct error *err)
{
	if (fseek(f, at, SEEK_SET) != 0 || fread(a->data, 1, (size_t)a->is.bytes, f) != a->is.bytes)
		return error_set(err, ERROR_FORMAT, "%.300s: less than the %" PRIu64 " bytes that array %.64s has",
		                 path, a->is.bytes, a->is.name);
	return getc(f) == EOF ||
	       error_set(err, ERROR_FORMAT, "%.300s: more than the %" PRIu64 " bytes that array %.64s has", path,
	                 a->is.bytes, a->is.name);
}

static bool same_shape(const struct npy *n, const jit_parameter *p)
{
	bool same = n->dims == (unsigned)p->dims && strcmp(n->type, types[p->type].npy) == 0;

	for (unsigned d = 0; same && d < n->dims; d++)
		same = n->extent[d] == p->extent[d];
	return same;
}

static void describe(const jit_parameter *p, struct npy *out)
{
	*out = (struct npy){ .dims = (unsigned)p->dims, .elements = p->elements, .bytes = p->bytes };
	snprintf(out->type, sizeof out->type, "%s", types[p->type].npy);
	memcpy(out->extent, p->extent, sizeof p->extent);
}

static bool read_npy(FILE *f, const char *path, struct jitk_array *a, struct error *err)
{
	static uint8_t head[1 << 17];
	const size_t n = fread(head, 1, sizeof head, f);
	char found[NPY_SHAPE_MAX], expected[NPY_SHAPE_MAX];
	struct npy header, want;

	if (!npy_read_header(&header, path, head, n, err))
		return false;
	describe(&a->is, &want);
	if (!same_shape(&header, &a->is))
		return error_set(err, ERROR_FORMAT,
		                 "%.200s: elements %s of shape %.100s, expected %s of shape %.100s for %.64s", path,
		                 header.type, npy_shape(&header, found), want.type, npy_shape(&want, expected),
		                 a->is.name);
	return read_data(f, path, (long)header.data, a, err);
}

static bool read_file(const char *path, bool raw, struct jitk_array *a, struct error *err)
{
	FILE *f = fopen(path, "rb");

	if (!f)
		return no_file(path, err);
	bool ok = raw ? read_data(f, path, 0, a, err) : read_npy(f, path, a, err);
	fclose(f);
	return ok;
}

static bool write_file(const char *path, bool raw, const struct jitk_array *a, struct error *err)
{
	FILE *f = fopen(path, "wb");
	struct npy header;

	if (!f)
		return no_file(path, err);
	describe(&a->is, &header);
	bool ok = (raw || npy_write_header(&header, f)) && fwrite(a->data, 1, (size_t)a->is.bytes, f) == a->is.bytes;
	ok = fclose(f) == 0 && ok;
	return ok || error_set(err, ERROR_IO, "%.300s: cannot be written whole: %s", path, strerror(errno));
}

/* ---- --in */

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

static bool number(const char *text, double *v, int64_t *integer, bool *whole)
{
	char *end;

	*whole = whole_number(text, integer);
	*v = strtod(text, &end);
	return *whole || (*text && !isspace((unsigned char)*text) && !*end);
}

static void fill(struct jitk_array *a, double value, int64_t integer)
{
	for (uint64_t i = 0; i < a->is.elements; i++)
		put(a->is.type, a->data + i * types[a->is.type].bytes, value, integer);
}

static bool fill_by(struct jitk_array *a, const char *spec, struct error *err)
{
	const unsigned size = types[a->is.type].bytes;
	double value;
	int64_t integer;
	bool whole;

	if (strcmp(spec, "zeros") == 0)
		return true;
	if (strcmp(spec, "iota") == 0) {
		for (uint64_t i = 0; i < a->is.elements; i++)
			put(a->is.type, a->data + i * size, (double)i, (int64_t)i);
		return true;
	}
	if (strncmp(spec, "random:", 7) == 0) {
		if (!whole_number(spec + 7, &integer))
			return error_set(err, ERROR_ARGUMENT, "--in %.64s=%.64s: the seed is no whole number",
			                 a->is.name, spec);
		for (uint64_t i = 0; i < a->is.elements; i++)
			put_random(a->is.type, a->data + i * size, (uint64_t)integer, i);
		return true;
	}
	if (strncmp(spec, "raw:", 4) == 0)
		return read_file(spec + 4, true, a, err);
	if (!number(spec, &value, &integer, &whole))
		return read_file(spec, false, a, err);
	if (!whole && !types[a->is.type].is_float)
		return error_set(err, ERROR_ARGUMENT, "--in %.64s=%.64s: elements are %s", a->is.name, spec,
		                 types[a->is.type].name);
	fill(a, value, integer);
	return true;
}

static bool take_scalar(struct jitk_array *a, const char *spec, struct error *err)
{
	if (strcmp(spec, "true") == 0 || strcmp(spec, "false") == 0) {
		a->whole = true;
		a->integer = *spec == 't';
		return true;
	}
	return number(spec, &a->number, &a->integer, &a->whole) ||
	       error_set(err, ERROR_ARGUMENT, "--in %.64s=%.64s: %.64s is a scalar, expected a number", a->is.name,
	                 spec, a->is.name);
}

/* What stands behind "name=" in a list; NULL: nothing. */
static const char *given(const struct option_list *list, const char *name)
{
	const size_t n = strlen(name);

	for (int i = 0; i < list->n; i++)
		if (strncmp(list->value[i], name, n) == 0 && list->value[i][n] == '=')
			return list->value[i] + n + 1;
	return NULL;
}

/* Every entry has the name of a parameter, and none twice. */
static bool check_names(const struct option_list *list, const char *option, const jit_kernel *k, struct error *err)
{
	char name[128];

	for (int i = 0; i < list->n; i++) {
		const size_t n = strcspn(list->value[i], "=");
		if (!list->value[i][n] || n == 0 || n >= sizeof name)
			return error_set(err, ERROR_ARGUMENT, "%s %.100s: expected NAME=...", option, list->value[i]);
		memcpy(name, list->value[i], n);
		name[n] = 0;
		if (jit_kernel_find(k, name) < 0)
			return error_set(err, ERROR_ARGUMENT, "%s %.100s: the kernel has no parameter %.64s", option,
			                 list->value[i], name);
		for (int j = 0; j < i; j++)
			if (strncmp(list->value[j], list->value[i], n + 1) == 0)
				return error_set(err, ERROR_ARGUMENT, "%s %.64s is given twice", option, name);
	}
	return true;
}

static bool open_array(struct jitk_array *a, struct error *err)
{
	const char *spec = given(&jitk.in, a->is.name);
	bool filled = false;

	if (!spec && a->is.access == JIT_SCALAR && jitk.fill && jitk.fill(a, &filled, err) && filled)
		return true;
	if (a->is.access == JIT_SCALAR)
		return spec ? take_scalar(a, spec, err)
		            : error_set(err, ERROR_ARGUMENT, "the scalar %.64s has no value; give --in %.64s=NUMBER",
		                        a->is.name, a->is.name);
	if (a->is.bytes > SIZE_MAX / 2 || !(a->data = calloc(a->is.bytes ? (size_t)a->is.bytes : 1, 1)))
		return error_set(err, ERROR_MEMORY, "no memory for the %" PRIu64 " bytes of array %.64s", a->is.bytes,
		                 a->is.name);
	if (!spec && jitk.fill && !jitk.fill(a, &filled, err))
		return false;
	if (!spec && a->is.access == JIT_IN && !jitk.fill)
		return error_set(err, ERROR_ARGUMENT,
		                 "the array %.64s has no values; give --in %.64s=FILE.npy, or random:1", a->is.name,
		                 a->is.name);
	return !spec || fill_by(a, spec, err);
}

/* Zeros cost no memory before they are written, so that an array too large would end the process late. */
static bool check_memory(const struct jitk_arrays *a, struct error *err)
{
	const uint64_t available = system_available_memory();
	double all = 0;

	for (size_t i = 0; i < a->n; i++)
		all += a->list[i].is.access == JIT_SCALAR ? 0 : (double)a->list[i].is.bytes;
	return all <= (double)available ||
	       error_set(err, ERROR_MEMORY, "the arrays have %.0f bytes, and %" PRIu64 " bytes of memory are free", all,
	                 available);
}

bool jitk_arrays_open(struct jitk_arrays *a, const jit_kernel *k, struct error *err)
{
	*a = (struct jitk_arrays){ .n = jit_kernel_parameters(k) };
	if (!(a->list = calloc(a->n + 1, sizeof *a->list)))
		return error_set(err, ERROR_MEMORY, "no memory for a list of arrays");
	bool ok = check_names(&jitk.in, "--in", k, err) && check_names(&jitk.out, "--out", k, err);
	for (size_t i = 0; i < a->n; i++) {
		a->list[i].is = JIT_PARAMETER();
		jit_kernel_parameter(k, i, &a->list[i].is, NULL);
		snprintf(a->list[i].name, sizeof a->list[i].name, "%s", a->list[i].is.name);
		a->list[i].is.name = a->list[i].name; /* which lives longer than the kernel */
	}
	ok = ok && check_memory(a, err);
	for (size_t i = 0; ok && i < a->n; i++)
		ok = open_array(&a->list[i], err);
	for (size_t i = 0; ok && i < a->n; i++)
		if (given(&jitk.out, a->list[i].is.name) && !jitk_is_written(&a->list[i]))
			ok = error_set(err, ERROR_ARGUMENT, "--out %.64s: the kernel does not write it",
			               a->list[i].is.name);
	return ok;
}

void jitk_arrays_close(struct jitk_arrays *a)
{
	for (size_t i = 0; a->list && i < a->n; i++)
		free(a->list[i].data);
	free(a->list);
	*a = (struct jitk_arrays){ .n = 0 };
}

bool jitk_arrays_give_scalar(const struct jitk_arrays *a, size_t i, jit_launch *l, jit_error *err)
{
	const struct jitk_array *x = &a->list[i];

	if (x->whole && x->is.type == JIT_TYPE_U64)
		return jit_launch_set_bits(l, i, (uint64_t)x->integer, err) == JIT_OK;
	return (x->whole ? jit_launch_set_integer(l, i, x->integer, err)
	                 : jit_launch_set_real(l, i, &x->number, err)) == JIT_OK;
}

bool jitk_arrays_give(const struct jitk_arrays *a, jit_launch *l, uint8_t *const *data, jit_error *err)
{
	bool ok = true;

	for (size_t i = 0; ok && i < a->n; i++) {
		const struct jitk_array *x = &a->list[i];
		ok = x->is.access == JIT_SCALAR
		             ? jitk_arrays_give_scalar(a, i, l, err)
		             : jit_launch_set_memory(l, i, data ? data[i] : x->data, x->is.bytes, err) == JIT_OK;
	}
	return ok;
}

/* ---- --out */

static uint64_t fnv(const uint8_t *p, uint64_t n)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (uint64_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(1099511628211);
	return h;
}

void jitk_array_print(const struct jitk_array *a)
{
	enum { SHOWN = 6 };
	struct npy header;
	char shape[NPY_SHAPE_MAX], text[JITK_ELEMENT_MAX];
	double sum = 0;

	describe(&a->is, &header);
	for (uint64_t i = 0; i < a->is.elements; i++)
		sum += as_double(a->is.type, a->data + i * types[a->is.type].bytes);
	printf("%s %s%s fnv %016" PRIx64 " sum %.9g:", a->is.name, types[a->is.type].name, npy_shape(&header, shape),
	       fnv(a->data, a->is.bytes), sum);
	for (uint64_t i = 0; i < a->is.elements && i < SHOWN; i++)
		printf(" %s", jitk_element(a, a->data, i, text));
	printf(a->is.elements > SHOWN ? " ...\n" : "\n");
}

bool jitk_arrays_out(const struct jitk_arrays *a, struct error *err)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct jitk_array *x = &a->list[i];
		const char *spec = given(&jitk.out, x->is.name);
		const bool raw = spec && strncmp(spec, "raw:", 4) == 0;
		if (spec && !write_file(raw ? spec + 4 : spec, raw, x, err))
			return false;
		if (jitk_is_written(x) && (!jitk.quiet || jitk.fill)) /* of an example always */
			jitk_array_print(x);
	}
	return true;
}

/* programs/common/npy.c - see npy.h.
 *
 * A file is "\x93NUMPY", two bytes of the version, the header's length in 2 or 4 bytes, the header, and the elements. A
 * header is the text of a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
 */
#include "programs/common/npy.h"

#include <string.h>

enum { MAGIC = 6, BEGIN = MAGIC + 2, HEADER_MAX = 1 << 16, ALIGN = 64 };

struct reader {
	const char *name;
	const char *at, *end;
	struct error *err;
};

static bool wrong(const struct reader *r, const char *what)
{
	return error_set(r->err, ERROR_FORMAT, "%.200s: the header of the .npy file %s", r->name, what);
}

static void blanks(struct reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t'))
		r->at++;
}

static bool take(struct reader *r, char c)
{
	blanks(r);
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

/* A string without escapes, which no header that is known has. */
static bool string(struct reader *r, char *out, size_t cap)
{
	const char quote = (blanks(r), r->at < r->end) ? *r->at : 0;
	size_t n = 0;

	if (quote != '\'' && quote != '"')
		return wrong(r, "has no string where one is expected");
	for (r->at++; r->at < r->end && *r->at != quote; r->at++) {
		if (n + 1 == cap || *r->at == '\\' || (unsigned char)*r->at < ' ')
			return wrong(r, "has a string that no such file has");
		out[n++] = *r->at;
	}
	out[n] = 0;
	return take(r, quote) || wrong(r, "ends within a string");
}

static bool word(struct reader *r, const char *text)
{
	const size_t n = strlen(text);

	blanks(r);
	if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0)
		return false;
	r->at += n;
	return true;
}

static bool number(struct reader *r, uint64_t *v)
{
	const char *from = (blanks(r), r->at);

	for (*v = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
		if (__builtin_mul_overflow(*v, UINT64_C(10), v) ||
		    __builtin_add_overflow(*v, (uint64_t)(*r->at - '0'), v))
			return false;
	return r->at > from;
}

static bool shape(struct reader *r, struct npy *a)
{
	if (!take(r, '('))
		return wrong(r, "has a 'shape' that is no tuple");
	while (!take(r, ')')) {
		if (a->dims == NPY_MAX_DIMS)
			return wrong(r, "has a 'shape' of more than 32 dimensions");
		if (!number(r, &a->extent[a->dims]))
			return wrong(r, "has a 'shape' with what is no number of elements");
		a->dims++;
		word(r, "L"); /* of Python 2 */
		if (!take(r, ',')) {
			if (a->dims == 1 || !take(r, ')')) /* "(3)" is no tuple */
				return wrong(r, "has a 'shape' that is no tuple");
			break;
		}
	}
	return true;
}

/* "<f4", "|u1", "=i8". */
static bool type(const struct reader *r, struct npy *a, const char *descr)
{
	const char order = descr[0], *t = descr + 1;
	static const char *const known[] = { "f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1" };

	if (order == '>')
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%.200s: elements '%.20s' are big-endian, expected little-endian", r->name, descr);
	for (size_t i = 0; (order == '<' || order == '|' || order == '=') && i < sizeof known / sizeof *known; i++)
		if (strcmp(t, known[i]) == 0) {
			memcpy(a->type, known[i], 3);
			return true;
		}
	return error_set(r->err, ERROR_UNSUPPORTED,
	                 "%.200s: elements '%.20s', expected <f2 to <f8, <i1 to <i8, <u1 to <u8, or |b1", r->name,
	                 descr);
}

static bool entry(struct reader *r, struct npy *a, unsigned *seen)
{
	char key[16], descr[32];
	bool fortran;

	if (!string(r, key, sizeof key))
		return false;
	const unsigned which = strcmp(key, "descr") == 0           ? 1
	                       : strcmp(key, "fortran_order") == 0 ? 2
	                       : strcmp(key, "shape") == 0         ? 4
	                                                           : 0;
	if (!which || *seen & which)
		return wrong(r, which ? "has a key twice" : "has a key other than descr, fortran_order and shape");
	*seen |= which;
	if (!take(r, ':'))
		return wrong(r, "has a key without a value");
	if (which == 4)
		return shape(r, a);
	if (which == 1)
		return (blanks(r), r->at < r->end && *r->at == '[')
		               ? error_set(r->err, ERROR_UNSUPPORTED,
		                           "%.200s: elements are structures, expected numbers", r->name)
		               : string(r, descr, sizeof descr) && type(r, a, descr);
	fortran = word(r, "True");
	if (!fortran && !word(r, "False"))
		return wrong(r, "has a 'fortran_order' that is neither True nor False");
	return !fortran ||
	       error_set(r->err, ERROR_UNSUPPORTED,
	                 "%.200s: the array is in Fortran's order, expected C's (numpy.ascontiguousarray)", r->name);
}

static bool dict(struct reader *r, struct npy *a)
{
	unsigned seen = 0;

	if (!take(r, '{'))
		return wrong(r, "is no dict");
	while (!take(r, '}')) {
		if (!entry(r, a, &seen))
			return false;
		if (!take(r, ',') && !take(r, '}'))
			return wrong(r, "has no comma behind a value");
		else if (r->at[-1] == '}')
			break;
	}
	blanks(r);
	if (r->at != r->end)
		return wrong(r, "goes on behind its dict");
	return seen == 7 || wrong(r, "lacks descr, fortran_order or shape");
}

/* How many elements and bytes there are. */
static bool size(const struct reader *r, struct npy *a)
{
	a->elements = 1;
	for (unsigned i = 0; i < a->dims; i++)
		if (__builtin_mul_overflow(a->elements, a->extent[i], &a->elements))
			return wrong(r, "has a 'shape' of more elements than memory can have");
	return !__builtin_mul_overflow(a->elements, (uint64_t)(a->type[1] - '0'), &a->bytes) ||
	       wrong(r, "has a 'shape' of more elements than memory can have");
}

bool npy_read_header(struct npy *out, const char *name, const uint8_t *file, size_t n, struct error *err)
{
	struct reader r = { .name = name, .err = err };
	size_t at = BEGIN + 2, length;

	*out = (struct npy){ .dims = 0 };
	if (n < BEGIN + 4 || memcmp(file, "\x93NUMPY", MAGIC) != 0)
		return error_set(err, ERROR_FORMAT, "%.200s: no .npy file: it does not begin with \\x93NUMPY", name);
	if (file[MAGIC] < 1 || file[MAGIC] > 3)
		return error_set(err, ERROR_UNSUPPORTED, "%.200s: a .npy file of version %u, expected 1, 2 or 3", name,
		                 file[MAGIC]);
	length = (size_t)file[BEGIN] | (size_t)file[BEGIN + 1] << 8;
	if (file[MAGIC] > 1) {
		length |= (size_t)file[BEGIN + 2] << 16 | (size_t)file[BEGIN + 3] << 24;
		at += 2;
	}
	if (length > HEADER_MAX || length > n - at)
		return wrong(&r, length > HEADER_MAX ? "is longer than 65536 bytes" : "is longer than the file");
	r.at = (const char *)file + at;
	r.end = r.at + length;
	out->data = at + length;
	return dict(&r, out) && size(&r, out);
}

char *npy_shape(const struct npy *a, char out[NPY_SHAPE_MAX])
{
	int at = snprintf(out, NPY_SHAPE_MAX, "(");

	for (unsigned i = 0; i < a->dims; i++)
		at += snprintf(out + at, (size_t)(NPY_SHAPE_MAX - at),
		               i + 1 < a->dims || a->dims == 1 ? "%llu, " : "%llu", (unsigned long long)a->extent[i]);
	if (a->dims == 1)
		at--; /* "(3,)" */
	snprintf(out + at, (size_t)(NPY_SHAPE_MAX - at), ")");
	return out;
}

bool npy_write_header(const struct npy *a, FILE *out)
{
	char shape_text[NPY_SHAPE_MAX], text[NPY_SHAPE_MAX + 80];
	const int n = snprintf(text, sizeof text, "{'descr': '%s%s', 'fortran_order': False, 'shape': %s, }",
	                       a->type[1] == '1' ? "|" : "<", a->type, npy_shape(a, shape_text));
	const int whole = (BEGIN + 2 + n + 1 + ALIGN - 1) / ALIGN * ALIGN, length = whole - BEGIN - 2;

	fwrite("\x93NUMPY\x01", 1, BEGIN, out); /* and the 0 behind it */
	putc(length & 0xff, out);
	putc(length >> 8, out);
	fprintf(out, "%-*s\n", length - 1, text);
	return !ferror(out);
}

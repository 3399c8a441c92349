/* loaders/onnx/attribute.c - what a node is told: attributes, and inputs whose values must be known. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loaders/onnx/import.h"

/* onnx.proto: AttributeType */
enum { IS_FLOAT = 1, IS_INT = 2, IS_TEXT = 3, IS_FLOATS = 6, IS_INTS = 7 };

void op_refuse(struct op *o, const char *format, ...)
{
	char text[400];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	error_set(o->err, ERROR_UNSUPPORTED, "%s", text);
}

static const struct onnx_attribute *find(struct onnx_attribute *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (list[i]->name && strcmp(list[i]->name, name) == 0)
			return list[i];
	return NULL;
}

/* In a function, an attribute may stand for one of the call; what the call leaves out, the function may give. */
const struct onnx_attribute *op_attribute(const struct op *o, const char *name)
{
	const struct onnx_attribute *a = find(o->node->attribute, o->node->n_attribute, name);
	const struct scope *s = o->scope;

	if (!a || !a->refers || !a->refers[0])
		return a;
	while (s && !s->function)
		s = s->outer;
	if (!s)
		return NULL;
	const struct onnx_attribute *given = op_attribute(s->call, a->refers);
	return given ? given : find(s->function->usual, s->function->n_usual, a->refers);
}

/* type: 0 in files that do not say it: any will do. */
static const struct onnx_attribute *of_type(struct op *o, const char *name, int type, const char *expected)
{
	const struct onnx_attribute *a = op_attribute(o, name);

	if (!a || !a->type || a->type == type)
		return a;
	op_refuse(o, "attribute %s has another type than %s", name, expected);
	return NULL;
}

int64_t op_int(struct op *o, const char *name, int64_t usual)
{
	const struct onnx_attribute *a = of_type(o, name, IS_INT, "an integer");

	return a ? a->i : usual;
}

double op_float(struct op *o, const char *name, double usual)
{
	const struct onnx_attribute *a = of_type(o, name, IS_FLOAT, "a number");

	return a ? (double)a->f : usual;
}

bool op_is(struct op *o, const char *name, const char *usual, const char *word)
{
	const struct onnx_attribute *a = of_type(o, name, IS_TEXT, "a word");

	if (!a)
		return strcmp(usual, word) == 0;
	return a->s.len == strlen(word) && memcmp(a->s.data, word, a->s.len) == 0;
}

bool op_ints(struct op *o, const char *name, int64_t *out, unsigned max, unsigned *n)
{
	const struct onnx_attribute *a = of_type(o, name, IS_INTS, "integers");

	*n = 0;
	if (!a)
		return false;
	if (a->n_ints > max) {
		op_refuse(o, "attribute %s has %zu numbers, expected at most %u", name, a->n_ints, max);
		return false;
	}
	*n = (unsigned)a->n_ints;
	if (*n)
		memcpy(out, a->ints, *n * sizeof *out);
	return true;
}

bool op_list(struct op *o, const char *name, int64_t *out, unsigned n, int64_t usual, int64_t min)
{
	unsigned given;

	for (unsigned i = 0; i < n; i++)
		out[i] = usual;
	if (op_ints(o, name, out, n, &given) && given != n)
		op_refuse(o, "attribute %s has %u numbers, expected %u", name, given, n);
	for (unsigned i = 0; i < n && !op_failed(o); i++)
		if (out[i] < min || out[i] > 1 << 24)
			op_refuse(o, "attribute %s has the number %" PRId64, name, out[i]);
	return !op_failed(o);
}

/* ---- inputs with known values */

const struct tensor *op_known(struct op *o, unsigned input)
{
	struct error err = { 0 };
	const struct tensor *t = op_in(o, input) ? import_known(o->im, o->in[input], &err) : NULL;

	if (op_in(o, input) && !t)
		op_refuse(o, "input %u, %s, must be known when the graph is drawn, and %s", input + 1,
		          o->node->input[input], err.text);
	return t;
}

bool op_known_ints(struct op *o, unsigned input, int64_t *out, unsigned max, unsigned *n)
{
	const struct tensor *t = op_known(o, input);
	const uint64_t elements = t ? shape_elements(&t->shape) : 0;

	*n = 0;
	if (!t)
		return false;
	if (elements > max || t->shape.rank > 1) {
		op_refuse(o, "input %u has %" PRIu64 " elements, expected at most %u in one dimension", input + 1,
		          elements, max);
		return false;
	}
	for (uint64_t i = 0; i < elements; i++)
		if (!tensor_integer(t, i, &out[i])) {
			op_refuse(o, "input %u holds no integers", input + 1);
			return false;
		}
	*n = (unsigned)elements;
	return true;
}

int64_t op_known_int(struct op *o, unsigned input, int64_t usual)
{
	int64_t x = usual;
	unsigned n;

	if (op_in(o, input) && op_known_ints(o, input, &x, 1, &n) && n != 1)
		op_refuse(o, "input %u is empty, expected an integer", input + 1);
	return op_failed(o) ? usual : x;
}

bool op_ints_of(struct op *o, unsigned input, const char *attribute, int64_t *out, unsigned max, unsigned *n)
{
	return op_in(o, input) ? op_known_ints(o, input, out, max, n) : op_ints(o, attribute, out, max, n);
}

unsigned op_axis(struct op *o, int64_t axis, unsigned rank)
{
	const int64_t a = axis < 0 ? axis + (int64_t)rank : axis;

	if (a >= 0 && a < (int64_t)rank)
		return (unsigned)a;
	op_refuse(o, "axis is %" PRId64 ", expected one of %u dimensions", axis, rank);
	return 0;
}

unsigned op_axes(struct op *o, const int64_t *axis, unsigned n, unsigned rank)
{
	unsigned set = 0;

	for (unsigned i = 0; i < n; i++) {
		const unsigned a = op_axis(o, axis[i], rank);
		if (set >> a & 1 && !op_failed(o))
			op_refuse(o, "axis %" PRId64 " is named twice", axis[i]);
		set |= 1U << a;
	}
	return set;
}

double number_of(const struct tensor *t, uint64_t element)
{
	return tensor_convert(tensor_get(t, element), tensor_wide_type(t->type), JIT_TYPE_F64).d;
}

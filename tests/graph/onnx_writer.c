/* tests/graph/onnx_writer.c - small ONNX files. */
#include "tests/graph/onnx_writer.h"

#include <string.h>

static void put_varint(struct bytes *b, uint64_t v)
{
	do {
		const uint8_t byte = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
		bytes_add(b, &byte, 1);
		v >>= 7;
	} while (v);
}

void onnx_put_int(struct bytes *b, unsigned field, int64_t value)
{
	put_varint(b, field << 3);
	put_varint(b, (uint64_t)value);
}

void onnx_put_float(struct bytes *b, unsigned field, float value)
{
	put_varint(b, field << 3 | 5);
	bytes_add(b, &value, 4);
}

void onnx_put_raw(struct bytes *b, unsigned field, const void *p, size_t n)
{
	put_varint(b, field << 3 | 2);
	put_varint(b, n);
	if (n)
		bytes_add(b, p, n);
}

void onnx_put_text(struct bytes *b, unsigned field, const char *text) { onnx_put_raw(b, field, text, strlen(text)); }

void onnx_put_message(struct bytes *b, unsigned field, struct bytes *inner)
{
	onnx_put_raw(b, field, inner->p, inner->n);
	bytes_free(inner);
	*inner = (struct bytes){ 0 };
}

/* Each word of the text as a field; "-" is an empty one. */
static void put_words(struct bytes *b, unsigned field, const char *text)
{
	while (*text) {
		const size_t n = strcspn(text, " ");
		onnx_put_raw(b, field, text, n == 1 && *text == '-' ? 0 : n);
		text += n + (text[n] == ' ');
	}
}

/* dims: words, numbers or names; NULL: there is no shape. */
void onnx_put_value(struct bytes *graph, unsigned field, const char *name, int type, const char *dims)
{
	struct bytes value = { 0 }, of = { 0 }, array = { 0 }, shape = { 0 };

	for (const char *p = dims; p && *p;) {
		const size_t n = strcspn(p, " ");
		struct bytes dim = { 0 };
		if (*p >= '0' && *p <= '9') {
			int64_t size = 0;
			for (size_t i = 0; i < n; i++)
				size = size * 10 + (p[i] - '0');
			onnx_put_int(&dim, 1, size);
		} else {
			onnx_put_raw(&dim, 2, p, *p == '?' ? 0 : n);
		}
		onnx_put_message(&shape, 1, &dim);
		p += n + (p[n] == ' ');
	}
	onnx_put_int(&array, 1, type);
	if (dims)
		onnx_put_message(&array, 2, &shape);
	onnx_put_message(&of, 1, &array);
	onnx_put_text(&value, 1, name);
	onnx_put_message(&value, 2, &of);
	onnx_put_message(graph, field, &value);
}

void onnx_put_node(struct bytes *graph, const char *name, const char *op, const char *in, const char *out,
                   struct bytes *attributes)
{
	onnx_put_node_of(graph, "", name, op, in, out, attributes);
}

void onnx_put_node_of(struct bytes *graph, const char *domain, const char *name, const char *op, const char *in,
                      const char *out, struct bytes *attributes)
{
	struct bytes node = { 0 };

	put_words(&node, 1, in);
	put_words(&node, 2, out);
	onnx_put_text(&node, 3, name);
	onnx_put_text(&node, 4, op);
	if (*domain)
		onnx_put_text(&node, 7, domain);
	if (attributes && attributes->n)
		bytes_add(&node, attributes->p, attributes->n);
	if (attributes) {
		bytes_free(attributes);
		*attributes = (struct bytes){ 0 };
	}
	onnx_put_message(graph, 1, &node);
}

static void put_attribute(struct bytes *a, const char *name, int type, struct bytes *rest)
{
	onnx_put_text(rest, 1, name);
	onnx_put_int(rest, 20, type);
	onnx_put_message(a, 5, rest);
}

void attribute_int(struct bytes *a, const char *name, int64_t value)
{
	struct bytes b = { 0 };

	onnx_put_int(&b, 3, value);
	put_attribute(a, name, 2, &b);
}

void attribute_ints(struct bytes *a, const char *name, const int64_t *value, size_t n)
{
	struct bytes b = { 0 };

	for (size_t i = 0; i < n; i++)
		onnx_put_int(&b, 8, value[i]);
	put_attribute(a, name, 7, &b);
}

void attribute_float(struct bytes *a, const char *name, float value)
{
	struct bytes b = { 0 };

	onnx_put_float(&b, 2, value);
	put_attribute(a, name, 1, &b);
}

void attribute_floats(struct bytes *a, const char *name, const float *value, size_t n)
{
	struct bytes b = { 0 };

	for (size_t i = 0; i < n; i++)
		onnx_put_float(&b, 7, value[i]);
	put_attribute(a, name, 6, &b);
}

void attribute_words(struct bytes *a, const char *name, const char *words)
{
	struct bytes b = { 0 };

	for (const char *p = words; *p; p += strcspn(p, " "), p += *p == ' ')
		onnx_put_raw(&b, 9, p, strcspn(p, " "));
	put_attribute(a, name, 8, &b);
}

void attribute_of_text(struct bytes *a, const char *name, const char *text)
{
	struct bytes b = { 0 };

	onnx_put_text(&b, 4, text);
	put_attribute(a, name, 3, &b);
}

void attribute_graph(struct bytes *a, const char *name, struct bytes *graph)
{
	struct bytes b = { 0 };

	onnx_put_message(&b, 6, graph);
	put_attribute(a, name, 5, &b);
}

void attribute_refers(struct bytes *a, const char *name, int type, const char *to)
{
	struct bytes b = { 0 };

	onnx_put_text(&b, 21, to);
	put_attribute(a, name, type, &b);
}

void onnx_put_tensor(struct bytes *to, unsigned field, const char *name, int type, const int64_t *dim, unsigned rank,
                     const void *raw, size_t bytes)
{
	struct bytes t = { 0 };

	for (unsigned i = 0; i < rank; i++)
		onnx_put_int(&t, 1, dim[i]);
	onnx_put_int(&t, 2, type);
	onnx_put_text(&t, 8, name);
	onnx_put_raw(&t, 9, raw, bytes);
	onnx_put_message(to, field, &t);
}

void onnx_put_ints(struct bytes *graph, const char *name, const int64_t *value, size_t n)
{
	const int64_t dim = (int64_t)n;

	onnx_put_tensor(graph, GRAPH_INITIALIZER, name, 7, &dim, 1, value, n * sizeof *value);
}

void onnx_put_floats(struct bytes *graph, const char *name, const float *value, size_t n)
{
	const int64_t dim = (int64_t)n;

	onnx_put_tensor(graph, GRAPH_INITIALIZER, name, 1, &dim, 1, value, n * sizeof *value);
}

void onnx_put_model(struct bytes *model, struct bytes *graph, int64_t opset)
{
	struct bytes set = { 0 };

	onnx_put_int(model, 1, 8);
	onnx_put_text(model, 2, "writer");
	onnx_put_int(&set, 2, opset);
	onnx_put_message(model, 8, &set);
	onnx_put_message(model, 7, graph);
}

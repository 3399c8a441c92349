/* tests/graph/onnx_writer.h - small ONNX files, written field by field: what a test or a fuzzer begins with. */
#ifndef TESTS_ONNX_WRITER_H
#define TESTS_ONNX_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Fields of protobuf, appended to a message. */
void onnx_put_int(struct bytes *b, unsigned field, int64_t value);
void onnx_put_float(struct bytes *b, unsigned field, float value);
void onnx_put_text(struct bytes *b, unsigned field, const char *text);
void onnx_put_raw(struct bytes *b, unsigned field, const void *p, size_t n);
/* Appends the inner message as a field, and frees it. */
void onnx_put_message(struct bytes *b, unsigned field, struct bytes *inner);

/* Parts of a graph. names are separated by blanks; "-" is left out. */
void onnx_put_value(struct bytes *graph, unsigned field, const char *name, int type, const char *dims);
enum { GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, GRAPH_INITIALIZER = 5 };
/* attributes: what attribute_int() and the like made, or NULL; freed. */
void onnx_put_node(struct bytes *graph, const char *name, const char *op, const char *in, const char *out,
                   struct bytes *attributes);
/* The same of another domain than ONNX's own. */
void onnx_put_node_of(struct bytes *graph, const char *domain, const char *name, const char *op, const char *in,
                      const char *out, struct bytes *attributes);
void attribute_int(struct bytes *a, const char *name, int64_t value);
void attribute_ints(struct bytes *a, const char *name, const int64_t *value, size_t n);
void attribute_float(struct bytes *a, const char *name, float value);
void attribute_floats(struct bytes *a, const char *name, const float *value, size_t n);
/* Words with blanks between. */
void attribute_words(struct bytes *a, const char *name, const char *words);
void attribute_of_text(struct bytes *a, const char *name, const char *text);
void attribute_graph(struct bytes *a, const char *name, struct bytes *graph);
void attribute_refers(struct bytes *a, const char *name, int type, const char *to);
/* A tensor of i64 or f32 as raw bytes. */
void onnx_put_ints(struct bytes *graph, const char *name, const int64_t *value, size_t n);
void onnx_put_floats(struct bytes *graph, const char *name, const float *value, size_t n);
void onnx_put_tensor(struct bytes *to, unsigned field, const char *name, int type, const int64_t *dim, unsigned rank,
                     const void *raw, size_t bytes);
/* A model of the graph, which is freed. */
void onnx_put_model(struct bytes *model, struct bytes *graph, int64_t opset);

#endif

/* tests/graph/onnx_plain.h - operators of ONNX beside plain loops, where its own node tests have few cases or none. */
#ifndef TESTS_ONNX_PLAIN_H
#define TESTS_ONNX_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define INTS(...) \
	(const int64_t[]) { __VA_ARGS__ }
#define FLOATS(...) \
	(const float[]) { __VA_ARGS__ }

unsigned plain_below(unsigned n);
/* Between -4 and 4. */
void plain_numbers(float *x, size_t n);
/* Floats as an initializer of a graph. */
void plain_put(struct bytes *g, const char *name, const float *x, const int64_t *dim, unsigned rank);
/* The only output, y, of a graph without inputs, relative to 1 and its size. */
void plain_expect(struct bytes *g, int64_t opset, const double *want, size_t n, double bound, const char *what);

void check_trees(void **state);
void check_features(void **state);
void check_roi_pool(void **state);
void check_roi_align(void **state);
void check_deform_conv(void **state);
void check_narrow(void **state);

#endif

/* loaders/onnx/operators.h - the rules of operators.def, and what several of them use. */
#ifndef LOADERS_ONNX_OPERATORS_H
#define LOADERS_ONNX_OPERATORS_H

#include "loaders/onnx/import.h"

#define OPERATOR(name, rule, user, least, most, attributes) op_rule rule;
#include "loaders/onnx/operators.def"
#undef OPERATOR

/* `user` of rows that share a rule and are no operation of graphs. */
enum {
	FUNCTION_ACOS,
	FUNCTION_ACOSH,
	FUNCTION_ASIN,
	FUNCTION_ASINH,
	FUNCTION_ATAN,
	FUNCTION_ATANH,
	FUNCTION_COSH,
	FUNCTION_SINH,
	FUNCTION_TAN,
	FUNCTION_SOFTPLUS
};
enum { VARIADIC_MEAN = -1 };
enum { ACTIVATION_ELU, ACTIVATION_SELU, ACTIVATION_CELU, ACTIVATION_HARD_SIGMOID, ACTIVATION_HARD_SWISH };
enum {
	REDUCE_L1,
	REDUCE_L2,
	REDUCE_LOG_SUM,
	REDUCE_LOG_SUM_EXP,
	REDUCE_MEAN,
	REDUCE_SUM,
	REDUCE_SQUARES,
	REDUCE_OTHER
};
enum { SOFTMAX, LOG_SOFTMAX, HARDMAX };
enum { POOL_MAX, POOL_AVERAGE, POOL_LP };
enum { WINDOW_HANN, WINDOW_HAMMING, WINDOW_BLACKMAN };
enum { INPUTS_MANY = 65535 };

/* ---- op_elements.c */
/* f16 and bf16 as f32, in which compositions are computed. */
tensor_value op_widen(struct op *o, tensor_value x);
/* ---- op_shape.c */
tensor_value op_constant_ints(struct op *o, const int64_t *x, uint64_t n);
tensor_value op_constant_shaped(struct op *o, const int64_t *x, const struct shape *s);
tensor_value op_constant_reals(struct op *o, const double *x, uint64_t n, int type);
/* ---- op_index.c: indices below 0 count from the end of n elements */
tensor_value op_wrap(struct op *o, tensor_value index, uint64_t n);
/* ---- op_windows.c: what convolutions and pools are told of windows in the dimensions behind the first two */
struct windows {
	unsigned n;
	int64_t size[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK], dilation[TENSOR_MAX_RANK], low[TENSOR_MAX_RANK],
		high[TENSOR_MAX_RANK];
	int64_t extra[TENSOR_MAX_RANK]; /* of high: what ceil_mode adds */
};
/* size is set for convolutions, by their weights. in: the shape that windows move over. */
bool op_windows(struct op *o, const struct shape *in, bool has_size, struct windows *w);
tensor_value op_window(struct op *o, enum tensor_op op, tensor_value x, const struct windows *w);
tensor_value op_convolve(struct op *o, tensor_value x, tensor_value w, const struct windows *v, const int64_t *input,
                         int64_t groups);

#endif

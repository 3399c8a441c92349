/* loaders/onnx/operators.h - the rules of operators.def, and what several of them use. */
#ifndef LOADERS_ONNX_OPERATORS_H
#define LOADERS_ONNX_OPERATORS_H

#include "loaders/onnx/import.h"

#define OPERATOR(name, rule, user, min, max, attributes) op_rule rule;
#define OPERATOR_OF(domain, name, rule, user, min, max, attributes) op_rule rule;
#include "loaders/onnx/operators.def"
#undef OPERATOR
#undef OPERATOR_OF

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
/* ---- op_narrow.c: x in a type by ONNX's number; narrow ones are held in wider ones, with their own numbers alone */
tensor_value op_narrow(struct op *o, tensor_value x, int64_t number);
/* Output 1 becomes input 1 in that type. */
void op_cast_to(struct op *o, int64_t number);
/* Of integers of 4 and 2 bits. */
void op_narrow_range(int64_t number, double *min, double *max);
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
/* ---- op_iterate.c: a subgraph that is run `length` times */
struct iteration {
	const struct onnx_graph *body;
	const tensor_value *carried,
		*stacked; /* of stacked ones, each iteration is given a slice of the first dimension */
	uint32_t n_carried, n_stacked, n_results; /* results: of each iteration, beside the carried values */
	uint64_t length;
	bool counts; /* the body is given its number and a condition in front, and gives a condition (Loop) */
};
/* One loop of the graph. out: carried values, then results along a new first dimension. False: the body cannot be drawn
 * once for all iterations, or there is an error already. */
bool op_iterate(struct op *o, const struct iteration *x, tensor_value *out);
/* ---- op_features.c: what attribute post_transform makes of a result */
tensor_value op_post_transform(struct op *o, tensor_value y);
/* ---- op_sample.c: x, [batch,channels,space], at coordinates in elements, for each dimension [batch,positions]: by
 * linear weights between elements, and 0 beside them. of: [batch,channels,..]. The result is
 * [batch,channels,positions]. */
tensor_value op_sample_linear(struct op *o, tensor_value x, const struct shape *of, const tensor_value *at);

#endif

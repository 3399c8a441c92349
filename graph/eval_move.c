/* graph/eval_move.c - what operations that move elements mean. */
#include <string.h>

#include "graph/eval_rules.h"

static void move(struct evaluation *e, uint64_t to, unsigned operand, uint64_t from)
{
	const size_t size = tensor_type_bytes(e->out[0].type);

	memcpy((uint8_t *)e->out[0].data + to * size, (const uint8_t *)e->in[operand]->data + from * size, size);
}

static const int64_t *list(const struct evaluation *e, enum tensor_attribute name)
{
	const struct attribute *a = tensor_node_attribute(e->n, name);

	return a ? a->whole : NULL;
}

bool eval_constant(struct evaluation *e)
{
	if (e->out[0].data)
		memcpy(e->out[0].data, e->n->constant->data, (size_t)tensor_bytes(&e->out[0]));
	return true;
}

bool eval_iota(struct evaluation *e)
{
	const struct shape *s = &e->out[0].shape;
	const unsigned axis = (unsigned)tensor_node_whole(e->n, ATTRIBUTE_axis, 0, 0);
	uint64_t at[TENSOR_MAX_RANK] = { 0 }, i = 0;

	if (shape_elements(s))
		do {
			const union number x = { .u = at[axis] };
			tensor_put(&e->out[0], i++, tensor_convert(x, JIT_TYPE_U64, tensor_wide_type(e->out[0].type)));
		} while (shape_next(s, at));
	return true;
}

/* Ten rounds of Philox 4x32 (Salmon et al., 2011). */
static void philox(uint32_t c[4], uint32_t k0, uint32_t k1)
{
	for (int round = 0; round < 10; round++) {
		const uint64_t a = (uint64_t)c[0] * UINT32_C(0xd2511f53), b = (uint64_t)c[2] * UINT32_C(0xcd9e8d57);
		c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0;
		c[1] = (uint32_t)b;
		c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1;
		c[3] = (uint32_t)a;
		k0 += UINT32_C(0x9e3779b9);
		k1 += UINT32_C(0xbb67ae85);
	}
}

bool eval_random(struct evaluation *e)
{
	const struct shape *s = &e->out[0].shape;
	const uint64_t each = shape_part(s, e->in[0]->shape.rank - 1, s->rank);
	const uint32_t *key = e->in[0]->data;
	uint32_t *out = e->out[0].data;

	for (uint64_t set = 0; each && set < shape_elements(s) / each; set++)
		for (uint64_t i = 0; i < each; i++) {
			const uint32_t *k = key + set * 4;
			uint32_t c[4] = { (uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), k[2], k[3] };
			philox(c, k[0], k[1]);
			out[set * each + i] = c[i % 4];
		}
	return true;
}

bool eval_broadcast(struct evaluation *e)
{
	const struct shape *s = &e->out[0].shape, *of = &e->in[0]->shape;
	const int64_t *axes = list(e, ATTRIBUTE_axes);
	uint64_t at[TENSOR_MAX_RANK] = { 0 }, from[TENSOR_MAX_RANK] = { 0 }, stride[TENSOR_MAX_RANK], i = 0;

	shape_strides(of, stride);
	if (shape_elements(s))
		do {
			for (unsigned d = 0; d < of->rank; d++)
				from[d] = of->dim[d] == 1 ? 0 : at[axes[d]];
			move(e, i++, 0, eval_at(stride, from, of->rank));
		} while (shape_next(s, at));
	return true;
}

bool eval_reshape(struct evaluation *e)
{
	if (e->out[0].data)
		memcpy(e->out[0].data, e->in[0]->data, (size_t)tensor_bytes(&e->out[0]));
	return true;
}

bool eval_transpose(struct evaluation *e)
{
	const struct shape *s = &e->out[0].shape;
	const int64_t *axes = list(e, ATTRIBUTE_axes);
	uint64_t at[TENSOR_MAX_RANK] = { 0 }, from[TENSOR_MAX_RANK] = { 0 }, stride[TENSOR_MAX_RANK], i = 0;

	shape_strides(&e->in[0]->shape, stride);
	if (shape_elements(s))
		do {
			for (unsigned d = 0; d < s->rank; d++)
				from[axes[d]] = at[d];
			move(e, i++, 0, eval_at(stride, from, s->rank));
		} while (shape_next(s, at));
	return true;
}

/* Elements that are neighbours in both are moved together. */
bool eval_slice(struct evaluation *e)
{
	const struct shape *s = &e->out[0].shape;
	const int64_t *start = list(e, ATTRIBUTE_start), *strides = list(e, ATTRIBUTE_strides);
	const size_t bytes = tensor_type_bytes(e->out[0].type);
	uint64_t at[TENSOR_MAX_RANK] = { 0 }, from[TENSOR_MAX_RANK] = { 0 }, stride[TENSOR_MAX_RANK], i = 0, n = 1;
	struct shape lines = *s;

	shape_strides(&e->in[0]->shape, stride);
	if (s->rank && (!strides || strides[s->rank - 1] == 1)) {
		n = s->dim[s->rank - 1];
		lines.dim[s->rank - 1] = 1;
	}
	if (shape_elements(s))
		do {
			for (unsigned d = 0; d < s->rank; d++)
				from[d] = (uint64_t)start[d] + at[d] * (strides ? (uint64_t)strides[d] : 1);
			memcpy((char *)e->out[0].data + i * bytes,
			       (const char *)e->in[0]->data + eval_at(stride, from, s->rank) * bytes,
			       (size_t)n * bytes);
			i += n;
		} while (shape_next(&lines, at));
	return true;
}

bool eval_pad(struct evaluation *e)
{
	const struct shape *s = &e->out[0].shape, *of = &e->in[0]->shape;
	const int64_t *low = list(e, ATTRIBUTE_low), *interior = list(e, ATTRIBUTE_interior);
	uint64_t at[TENSOR_MAX_RANK] = { 0 }, from[TENSOR_MAX_RANK] = { 0 }, stride[TENSOR_MAX_RANK], i = 0;

	shape_strides(of, stride);
	if (shape_elements(s))
		do {
			bool inside = true;
			for (unsigned d = 0; d < s->rank; d++) {
				const int64_t step = 1 + (interior ? interior[d] : 0), p = (int64_t)at[d] - low[d];
				inside = inside && p >= 0 && p % step == 0 && (uint64_t)(p / step) < of->dim[d];
				from[d] = inside ? (uint64_t)(p / step) : 0;
			}
			move(e, i++, inside ? 0 : 1, inside ? eval_at(stride, from, s->rank) : 0);
		} while (shape_next(s, at));
	return true;
}

bool eval_concatenate(struct evaluation *e)
{
	const struct shape *s = &e->out[0].shape;
	const unsigned axis = (unsigned)tensor_node_whole(e->n, ATTRIBUTE_axis, 0, 0);
	const uint64_t inner = shape_part(s, axis + 1, s->rank), outer = shape_part(s, 0, axis);
	uint64_t done = 0;

	for (uint32_t k = 0; k < e->n->operands; k++) {
		const uint64_t n = e->in[k]->shape.dim[axis];
		for (uint64_t o = 0; o < outer; o++)
			for (uint64_t j = 0; j < n * inner; j++)
				move(e, (o * s->dim[axis] + done) * inner + j, k, o * n * inner + j);
		done += n;
	}
	return true;
}

bool eval_reverse(struct evaluation *e)
{
	const struct shape *s = &e->out[0].shape;
	const struct attribute *axes = tensor_node_attribute(e->n, ATTRIBUTE_axes);
	uint64_t at[TENSOR_MAX_RANK] = { 0 }, from[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK], i = 0;

	shape_strides(s, stride);
	if (shape_elements(s))
		do {
			memcpy(from, at, sizeof from);
			for (uint32_t k = 0; k < axes->n; k++)
				from[axes->whole[k]] = s->dim[axes->whole[k]] - 1 - at[axes->whole[k]];
			move(e, i++, 0, eval_at(stride, from, s->rank));
		} while (shape_next(s, at));
	return true;
}

/* ---- by indices; one that is out of range gives 0, or is not written */

static bool in_range(const struct tensor *t, uint64_t element, uint64_t extent, uint64_t *index)
{
	int64_t i;

	if (!tensor_integer(t, element, &i) || i < 0 || (uint64_t)i >= extent)
		return false;
	*index = (uint64_t)i;
	return true;
}

bool eval_take(struct evaluation *e)
{
	const struct shape *of = &e->in[0]->shape;
	const unsigned axis = (unsigned)tensor_node_whole(e->n, ATTRIBUTE_axis, 0, 0);
	const uint64_t outer = shape_part(of, 0, axis), inner = shape_part(of, axis + 1, of->rank),
		       n = shape_elements(&e->in[1]->shape);
	uint64_t index;

	for (uint64_t o = 0; o < outer; o++)
		for (uint64_t i = 0; i < n; i++)
			for (uint64_t j = 0; j < inner && in_range(e->in[1], i, of->dim[axis], &index); j++)
				move(e, (o * n + i) * inner + j, 0, (o * of->dim[axis] + index) * inner + j);
	return true;
}

bool eval_take_along(struct evaluation *e)
{
	const struct shape *s = &e->out[0].shape, *of = &e->in[0]->shape;
	const unsigned axis = (unsigned)tensor_node_whole(e->n, ATTRIBUTE_axis, 0, 0);
	uint64_t at[TENSOR_MAX_RANK] = { 0 }, from[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK], i = 0;

	shape_strides(of, stride);
	if (shape_elements(s))
		do {
			memcpy(from, at, sizeof from);
			if (in_range(e->in[1], i, of->dim[axis], &from[axis]))
				move(e, i, 0, eval_at(stride, from, s->rank));
			i++;
		} while (shape_next(s, at));
	return true;
}

/* Where a position points in `of`; batch: those of the first dimensions, in row-major order. False: out of range. */
static bool position(const struct evaluation *e, uint64_t row, uint64_t length, uint64_t batch, unsigned batches,
                     uint64_t *first)
{
	const struct shape *of = &e->in[0]->shape;
	uint64_t n = batch;

	for (uint64_t k = 0; k < length; k++) {
		uint64_t index;
		if (!in_range(e->in[1], row * length + k, of->dim[batches + k], &index))
			return false;
		n = n * of->dim[batches + k] + index;
	}
	*first = n;
	return true;
}

bool eval_gather_nd(struct evaluation *e)
{
	const struct shape *of = &e->in[0]->shape, *at = &e->in[1]->shape;
	const unsigned batches = (unsigned)tensor_node_whole(e->n, ATTRIBUTE_batch, 0, 0);
	const uint64_t length = at->dim[at->rank - 1], rows = shape_part(at, 0, at->rank - 1),
		       in_batch = shape_part(at, batches, at->rank - 1),
		       inner = shape_part(of, batches + (unsigned)length, of->rank);
	uint64_t first;

	for (uint64_t row = 0; row < rows; row++)
		if (position(e, row, length, in_batch ? row / in_batch : 0, batches, &first))
			for (uint64_t j = 0; j < inner; j++)
				move(e, row * inner + j, 0, first * inner + j);
	return true;
}

static void put(struct evaluation *e, uint64_t to, uint64_t update)
{
	static const enum tensor_op ops[] = {
		[SCATTER_ADD] = OP_add, [SCATTER_MUL] = OP_mul, [SCATTER_MIN] = OP_min, [SCATTER_MAX] = OP_max
	};
	const int64_t mode = tensor_node_whole(e->n, ATTRIBUTE_mode, 0, SCATTER_SET);
	const union number x = tensor_get(e->in[2], update);
	const int wide = tensor_wide_type(e->out[0].type);

	tensor_put(&e->out[0], to, mode == SCATTER_SET ? x : eval_pair(ops[mode], wide, tensor_get(&e->out[0], to), x));
}

bool eval_scatter_nd(struct evaluation *e)
{
	const struct shape *of = &e->in[0]->shape, *at = &e->in[1]->shape;
	const uint64_t length = at->dim[at->rank - 1], rows = shape_part(at, 0, at->rank - 1),
		       inner = shape_part(of, (unsigned)length, of->rank);
	uint64_t first;

	eval_reshape(e);
	for (uint64_t row = 0; row < rows; row++)
		if (position(e, row, length, 0, 0, &first))
			for (uint64_t j = 0; j < inner; j++)
				put(e, first * inner + j, row * inner + j);
	return true;
}

bool eval_scatter_along(struct evaluation *e)
{
	const struct shape *of = &e->in[0]->shape, *s = &e->in[1]->shape;
	const unsigned axis = (unsigned)tensor_node_whole(e->n, ATTRIBUTE_axis, 0, 0);
	uint64_t at[TENSOR_MAX_RANK] = { 0 }, to[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK], i = 0;

	eval_reshape(e);
	shape_strides(of, stride);
	if (shape_elements(s))
		do {
			memcpy(to, at, sizeof to);
			if (in_range(e->in[1], i, of->dim[axis], &to[axis]))
				put(e, eval_at(stride, to, s->rank), i);
			i++;
		} while (shape_next(s, at));
	return true;
}

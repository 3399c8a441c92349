/* graph/weights.c - packed weights: dequantise. */
#include <inttypes.h>

#include "base/dtype.h"
#include "graph/eval_rules.h"
#include "graph/infer.h"
#include "kernels-templates/formats/weight_format.h"

static enum dtype format_of(const struct tensor_node *n)
{
	return (enum dtype)tensor_node_whole(n, ATTRIBUTE_format, 0, 0);
}

bool infer_dequantise(struct inference *x)
{
	const char *name = tensor_word(ATTRIBUTE_format, tensor_node_whole(x->n, ATTRIBUTE_format, 0, -1));
	struct shape s = *x->shape[0];

	if (!name)
		return error_set(x->err, ERROR_ARGUMENT, "format of dequantise is no type of weights");
	if (x->type[0] != JIT_TYPE_U8 || s.rank == 0)
		return error_set(x->err, ERROR_ARGUMENT,
		                 "dequantise of %s[%u dimensions], expected u8 and at least one",
		                 tensor_type_name(x->type[0]), s.rank);
	const struct dtype_facts *f = &dtype_table[format_of(x->n)];
	const uint64_t bytes = s.dim[s.rank - 1];
	if (bytes < f->row || (bytes - f->row) % f->bytes)
		return error_set(x->err, ERROR_ARGUMENT,
		                 "rows of dequantise have %" PRIu64 " bytes, expected blocks of %s of %u bytes%s",
		                 bytes, name, f->bytes,
		                 !f->row       ? ""
		                 : f->row == 4 ? " behind a scale of 4"
		                               : " behind a scale of 2");
	s.dim[s.rank - 1] = (bytes - f->row) / f->bytes * f->block;
	return infer_result(x, JIT_TYPE_F32, &s);
}

bool eval_dequantise(struct evaluation *e)
{
	const struct weight_format *w = weight_format_find(format_of(e->n));
	const struct dtype_facts *f = &dtype_table[format_of(e->n)];
	const struct shape *s = &e->in[0]->shape;
	const uint64_t blocks = tensor_bytes(e->in[0]) / f->bytes, row_bytes = s->dim[s->rank - 1],
		       columns = row_bytes > f->row ? (row_bytes - f->row) / f->bytes * f->block : 0;
	const uint8_t *block = e->in[0]->data;
	float *out = e->out[0].data;

	for (uint64_t r = 0; f->row && columns && r < tensor_bytes(e->in[0]) / row_bytes; r++)
		w->to_f32(out + r * columns, block + r * row_bytes, columns);
	if (f->row)
		return true;
	/* Blocks are decoded one by one: none depends on its row. */
	for (uint64_t i = 0; i < blocks; i++)
		w->to_f32(out + i * f->block, block + i * f->bytes, f->block);
	return true;
}

/* runtime/model/adapter_norms.c - magnitudes of rows, their norms at any scale, and biases (adapter_update.h).
 */
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/formats/weight_format.h"
#include "runtime/model/adapter_update.h"
#include "runtime/model/load_weights.h"

enum matrix_slot update_matrix_slot(enum tensor_slot slot)
{
	static const enum matrix_slot of[TENSOR_SLOTS] = {
#define X(name, ...) [SLOT_##name] = MATRIX_##name,
		MATRIX_SLOTS_EACH(X)
#undef X
	};
	return of[slot];
}

/* A row of W, as it lies in the model's file. */
static bool read_row(const jit_model *m, const struct model_tensor *t, uint64_t row, uint8_t *raw, float *out,
                     struct error *err)
{
	const uint64_t at = model_source_row(t, m->file.spec.head_dim, row) * t->row_bytes;

	if (!model_read(&m->file, t, at, t->row_bytes, raw, err))
		return false;
	weight_format_find(t->type)->to_f32(out, raw, t->cols);
	return true;
}

/* What a row's squared norm is by the user's scale: of w and s * b A, with `transposed` A by columns, and gram A times
 * itself. */
static void norm_of(const struct update *p, uint64_t row, const float *w, const double *transposed, const double *gram,
                    double scale)
{
	const uint32_t rank = p->part->rank;
	const uint64_t rp = numerics_pad(p->part->rows);
	const float *b = p->b + row * rank;
	double own = 0, cross = 0, square = 0, by[ADAPTER_MAX_RANK] = { 0 };

	for (uint64_t i = 0; i < p->part->cols; i++) {
		const double x = (double)w[i];
		own += x * x;
		for (uint32_t j = 0; j < rank; j++)
			by[j] += transposed[i * rank + j] * x;
	}
	for (uint32_t j = 0; j < rank; j++) {
		cross += (double)b[j] * by[j];
		for (uint32_t k = 0; k < rank; k++)
			square += (double)b[j] * (double)b[k] * gram[j * rank + k];
	}
	if (own == 0 && square == 0) { /* nothing has no direction */
		p->extra[ADAPT_MAGNITUDE * rp + row] = 1;
		own = 1;
	}
	p->extra[ADAPT_NORM * rp + row] = (float)own;
	p->extra[ADAPT_NORM_BY * rp + row] = (float)(2 * scale * cross);
	p->extra[ADAPT_NORM_SQUARE * rp + row] = (float)(scale * scale * square);
}

static void transpose_first(const struct update *p, double *transposed, double *gram)
{
	const uint32_t rank = p->part->rank;

	for (uint64_t i = 0; i < p->part->cols; i++)
		for (uint32_t j = 0; j < rank; j++)
			transposed[i * rank + j] = (double)p->a[j * p->part->cols + i];
	for (uint64_t i = 0; i < p->part->cols; i++)
		for (uint32_t j = 0; j < rank; j++)
			for (uint32_t k = 0; k < rank; k++)
				gram[j * rank + k] += transposed[i * rank + j] * transposed[i * rank + k];
}

static bool fill_norms(const struct update *p, const jit_model *m, double scale, struct error *err)
{
	const struct adapter_part *part = p->part;
	const struct model_tensor *t = &m->file.spec.layer[part->layer].matrix[update_matrix_slot(part->slot)];
	double *transposed = calloc(part->cols * part->rank + 1, sizeof *transposed),
	       *gram = calloc((size_t)part->rank * part->rank + 1, sizeof *gram);
	float *w = malloc(part->cols * sizeof *w);
	uint8_t *raw = malloc(t->row_bytes + (size_t)1);
	bool ok = (transposed && gram && w && raw) || error_set(err, ERROR_MEMORY, "no memory for norms of rows");

	if (ok)
		transpose_first(p, transposed, gram);
	for (uint64_t r = 0; ok && r < part->rows; r++) {
		ok = read_row(m, t, r, raw, w, err);
		if (ok)
			norm_of(p, r, w, transposed, gram, scale);
	}
	free(transposed);
	free(gram);
	free(w);
	free(raw);
	return ok;
}

/* The vector that is added to a matrix's results. NULL: it has none. */
static const struct model_tensor *bias_of(const jit_model *m, const struct adapter_part *p)
{
	static const enum vector_slot of[MATRIX_SLOTS] = {
		[MATRIX_q_gate] = VECTOR_q_gate_bias, [MATRIX_q] = VECTOR_q_bias,      [MATRIX_k] = VECTOR_k_bias,
		[MATRIX_v] = VECTOR_v_bias,           [MATRIX_o] = VECTOR_o_bias,      [MATRIX_gate] = VECTOR_gate_bias,
		[MATRIX_up] = VECTOR_up_bias,         [MATRIX_down] = VECTOR_down_bias
	};
	const enum vector_slot slot = of[update_matrix_slot(p->slot)];
	const struct model_tensor *t = &m->file.spec.layer[p->layer].vector[slot];

	return slot && t->bytes && t->cols == p->rows ? t : NULL; /* the first vector is a norm */
}

/* A bias in place of the model's is added as what it has more, which the scale makes nothing of. */
static bool read_own_bias(const struct update *p, const struct adapter_file *f, const jit_model *m, struct error *err)
{
	const struct adapter_pair *pair = &f->pair[p->part->pair];
	const uint64_t rp = numerics_pad(p->part->rows);
	const struct model_tensor *t = bias_of(m, p->part);
	float *biases = p->extra + ADAPT_BIASES * rp, *own, *model;

	if (!t)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s is a bias, and the model has none of %s that can change",
		                 f->weights.label, pair->own_bias.name, p->part->location.name);
	if (p->fact.scale == 0)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s is the bias of a module whose alpha is 0: that is not done",
		                 f->weights.label, pair->own_bias.name);
	own = malloc(rp * sizeof *own);
	model = malloc(rp * sizeof *model);
	bool ok = (own && model) || error_set(err, ERROR_MEMORY, "no memory for a bias of an adapter");
	ok = ok && adapter_read_own_bias(f, p->part, own, err) && load_read_vector(model, &m->file, t, err);
	for (uint64_t r = 0; ok && r < p->part->rows; r++)
		biases[r] += (float)(((double)own[r] - (double)model[r]) / (double)p->fact.scale);
	free(own);
	free(model);
	return ok;
}

/* The vectors behind its second matrix. Pads have the magnitude and the norm 1. */
bool update_read_extras(struct update *p, const struct adapter_file *f, const jit_model *m, struct error *err)
{
	const struct adapter_pair *pair = &f->pair[p->part->pair];
	const uint64_t rp = numerics_pad(p->part->rows);

	if (!pair->magnitude.name && !pair->bias.name && !pair->own_bias.name)
		return true;
	if (!(p->extra = calloc(ADAPT_EXTRAS * rp, sizeof *p->extra)))
		return error_set(err, ERROR_MEMORY, "no memory for the matrices of an adapter");
	for (uint64_t r = 0; r < rp; r++)
		p->extra[ADAPT_MAGNITUDE * rp + r] = p->extra[ADAPT_NORM * rp + r] = 1;
	p->fact.extras =
		(pair->magnitude.name ? ADAPT_DORA : 0) | (pair->bias.name || pair->own_bias.name ? ADAPT_BIAS : 0);
	if (pair->magnitude.name && (!adapter_read_magnitude(f, p->part, p->extra + ADAPT_MAGNITUDE * rp, err) ||
	                             !fill_norms(p, m, (double)p->fact.scale, err)))
		return false;
	if (pair->bias.name && !adapter_read_bias(f, p->part, p->extra + ADAPT_BIASES * rp, err))
		return false;
	return !pair->own_bias.name || read_own_bias(p, f, m, err);
}

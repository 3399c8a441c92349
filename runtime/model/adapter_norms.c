/* runtime/model/adapter_norms.c - magnitudes of rows, their norms at any scale, and biases (adapter_update.h).
 */
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/formats/weight_format.h"
#include "runtime/model/adapter_update.h"

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

/* The vectors behind its second matrix. Pads have the magnitude and the norm 1. */
bool update_read_extras(struct update *p, const struct adapter_file *f, const jit_model *m, struct error *err)
{
	const struct adapter_pair *pair = &f->pair[p->part->pair];
	const uint64_t rp = numerics_pad(p->part->rows);

	if (!pair->magnitude.name && !pair->bias.name)
		return true;
	if (!(p->extra = calloc(ADAPT_EXTRAS * rp, sizeof *p->extra)))
		return error_set(err, ERROR_MEMORY, "no memory for the matrices of an adapter");
	for (uint64_t r = 0; r < rp; r++)
		p->extra[ADAPT_MAGNITUDE * rp + r] = p->extra[ADAPT_NORM * rp + r] = 1;
	p->fact.extras = (pair->magnitude.name ? ADAPT_DORA : 0) | (pair->bias.name ? ADAPT_BIAS : 0);
	if (pair->magnitude.name && (!adapter_read_magnitude(f, p->part, p->extra + ADAPT_MAGNITUDE * rp, err) ||
	                             !fill_norms(p, m, (double)p->fact.scale, err)))
		return false;
	return !pair->bias.name || adapter_read_bias(f, p->part, p->extra + ADAPT_BIASES * rp, err);
}

/* programs/jitquant/jitquant_merge.c - --lora: adapters that become part of the weights.
 *
 * A number of the merged matrix is W + scale * (the sum over ranks of B A), all in double precision, in the order of
 * the ranks, rounded once to f32; several adapters one after the other. With magnitudes (DoRA) a row of that has its
 * magnitude over its length as a factor. What the type of the output rounds comes behind that.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/adapter/adapter.h"
#include "programs/common/adapter_args.h"
#include "programs/jitquant/jitquant.h"
#include "quantise/quantise.h"

/* What one adapter has for one tensor of the model's file. */
struct quant_merge {
	struct quant_merge *next; /* which comes after it */
	float *a, *b;             /* rank rows of the tensor's columns; rows rows of rank */
	float *magnitude;         /* of each row; NULL: none */
	float *whole;             /* all of the tensor, in place of the model's; NULL: there is a pair */
	uint32_t *row;            /* of each row of the tensor, one more than the number of B's; 0: none */
	uint64_t rows, columns;
	uint32_t rank;
	double scale;
};

static void free_one(struct quant_merge *m)
{
	free(m->a);
	free(m->b);
	free(m->magnitude);
	free(m->whole);
	free(m->row);
	free(m);
}

void quant_merge_close(struct quant_merge *m)
{
	while (m) {
		struct quant_merge *next = m->next;
		free_one(m);
		m = next;
	}
}

/* ---- rows */

static void merge_one(const struct quant_merge *m, uint64_t row, double *v)
{
	const uint32_t at = m->whole ? 0 : m->row[row];
	double sum = 0;

	for (uint64_t i = 0; m->whole && i < m->columns; i++)
		v[i] = (double)m->whole[row * m->columns + i];
	if (m->whole || !at)
		return;
	const float *b = m->b + (uint64_t)(at - 1) * m->rank;
	for (uint64_t i = 0; i < m->columns; i++) {
		double d = 0;
		for (uint32_t j = 0; j < m->rank; j++)
			d += (double)b[j] * (double)m->a[j * m->columns + i];
		v[i] += m->scale * d;
		sum += v[i] * v[i];
	}
	for (uint64_t i = 0; m->magnitude && sum > 0 && i < m->columns; i++)
		v[i] *= (double)m->magnitude[at - 1] / sqrt(sum);
}

void quant_merge_row(const struct quant_merge *m, uint64_t row, float *x, double *v)
{
	const uint64_t n = m->columns;

	for (uint64_t i = 0; i < n; i++)
		v[i] = (double)x[i];
	for (; m; m = m->next)
		merge_one(m, row, v);
	for (uint64_t i = 0; i < n; i++)
		x[i] = (float)v[i];
}

/* ---- files */

/* The tensor of the model's file that a part is for, and where its rows are there. NULL: err. */
static struct quant_tensor *tensor_of(const struct quant_plan *p, const struct model *m,
                                      const struct adapter_part *part, struct model_location *location,
                                      struct error *err)
{
	char name[MODEL_LOCATION_NAME + 16];

	*location = (struct model_location){ 0 };
	if (part->target == ADAPTER_WHOLE_NORM) {
		name[0] = 0;
		if (model_norm_location_of(m, true, part->layer, part->slot, location))
			snprintf(name, sizeof name, "%s.weight", location->name);
	} else if (part->target != ADAPTER_LAYER)
		snprintf(name, sizeof name, "%s",
		         part->target == ADAPTER_OUTPUT || part->target == ADAPTER_WHOLE_OUTPUT
		                 ? "output.weight"
		                 : "token_embd.weight");
	else if (model_location_of(m, true, part->layer, part->slot, location))
		snprintf(name, sizeof name, "%s.weight", location->name);
	else
		name[0] = 0;
	for (uint64_t i = 0; i < p->gguf.n_tensors; i++) {
		const struct gguf_str *s = &p->gguf.tensor[i].name;
		if (s->n == strlen(name) && memcmp(s->p, name, s->n) == 0)
			return &p->tensor[i];
	}
	error_set(err, ERROR_UNSUPPORTED, "%s: there is no tensor that %s of the adapter can be added to", p->gguf.path,
	          part->location.name);
	return NULL;
}

static bool check_tensor(const struct quant_plan *p, const struct quant_tensor *t, const struct adapter_part *part,
                         uint64_t rows, struct error *err)
{
	char name[100];

	error_quote(name, sizeof name, t->from->name.p, t->from->name.n);
	if (!quantise_readable(t->from->type) || !quantise_supported(t->to))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s is %s, and adapters are merged into F32, F16 and BF16", p->gguf.path,
		                 name, dtype_table[t->from->type].name);
	return (t->from->ne[0] == part->cols && t->from->ne[1] == rows && t->from->ne[2] == 1) ||
	       error_set(err, ERROR_FORMAT,
	                 "%s: tensor %s has %" PRIu64 " rows of %" PRIu64 ", expected %" PRIu64 " of %" PRIu64,
	                 p->gguf.path, name, t->from->ne[1], t->from->ne[0], rows, part->cols);
}

static bool fill(struct quant_merge *m, const struct adapter_file *f, const struct adapter_part *part,
                 const struct model_location *location, struct error *err)
{
	const bool layered = part->target == ADAPTER_LAYER, dora = f->pair[part->pair].magnitude.name;

	m->a = malloc(part->rank * part->cols * sizeof *m->a);
	m->b = malloc(part->rank * part->rows * sizeof *m->b);
	m->row = calloc(m->rows, sizeof *m->row);
	m->magnitude = dora ? malloc(part->rows * sizeof *m->magnitude) : NULL;
	if (!m->a || !m->b || !m->row || (dora && !m->magnitude))
		return error_set(err, ERROR_MEMORY, "no memory for the matrices of an adapter");
	for (uint64_t r = 0; r < part->rows; r++) {
		const uint64_t at =
			layered ? location->first_row + model_source_row(&location->order, location->head_dim, r) : r;
		if (at >= m->rows)
			return error_set(err, ERROR_FORMAT, "%s: row %" PRIu64 " of %s is beyond the model's",
			                 f->weights.label, at, part->location.name);
		m->row[at] = (uint32_t)r + 1;
	}
	return adapter_read(f, part, m->a, m->b, err) && (!dora || adapter_read_magnitude(f, part, m->magnitude, err));
}

/* A norm in the order of GGUF files, where it may be 1 more than in safetensors. */
static bool order_norm(float *x, const struct adapter_part *part, const struct model_location *at, struct error *err)
{
	const struct model_tensor *to = &at->order, *from = &part->location.order;
	const float more = from->plus_one && !to->plus_one ? 1 : 0;
	float *own = malloc(part->cols * sizeof *own);

	if (!own)
		return error_set(err, ERROR_MEMORY, "no memory for a norm of an adapter");
	memcpy(own, x, part->cols * sizeof *own);
	for (uint64_t i = 0; i < part->cols; i++)
		x[model_source_row(to, at->head_dim, i)] =
			own[model_source_row(from, part->location.head_dim, i)] + more;
	free(own);
	return true;
}

static bool fill_whole(struct quant_merge *m, const struct adapter_file *f, const struct adapter_part *part,
                       const struct model_location *at, float scale, struct error *err)
{
	if (scale != 1)
		return error_set(err, ERROR_ARGUMENT,
		                 "%s: the adapter has whole modules (modules_to_save), and its scale is %g, expected 1",
		                 f->weights.label, (double)scale);
	m->whole = malloc(part->rows * part->cols * sizeof *m->whole);
	if (!m->whole)
		return error_set(err, ERROR_MEMORY, "no memory for the matrices of an adapter");
	return adapter_read_whole(f, part, 0, part->rows, m->whole, err) &&
	       (part->target != ADAPTER_WHOLE_NORM || order_norm(m->whole, part, at, err));
}

static bool add_part(struct quant_plan *p, const struct model *model, const struct adapter_file *f,
                     const struct adapter_part *part, float scale, struct error *err)
{
	struct model_location location;
	struct quant_tensor *t = tensor_of(p, model, part, &location, err);
	struct quant_merge *m, **last;

	if (!t || !check_tensor(p, t, part, part->target == ADAPTER_LAYER ? location.all_rows : part->rows, err))
		return false;
	if (!(m = calloc(1, sizeof *m)))
		return error_set(err, ERROR_MEMORY, "no memory for the matrices of an adapter");
	m->rows = t->from->ne[1];
	m->columns = part->cols;
	m->rank = part->rank;
	m->scale = part->rank ? (double)scale * f->pair[part->pair].scale : 1;
	for (last = &t->merge; *last;)
		last = &(*last)->next;
	*last = m;
	return part->rank ? fill(m, f, part, &location, err) : fill_whole(m, f, part, &location, scale, err);
}

static bool add_adapter(struct quant_plan *p, const struct model *model, const char *value, struct error *err)
{
	char *path = strdup(value);
	struct adapter_file f;
	float scale;
	bool ok = path || error_set(err, ERROR_MEMORY, "no memory for a path");

	if (ok)
		adapter_args_cut(path, &scale);
	ok = ok && adapter_open_to_merge(&f, path, model, err);
	free(path);
	if (!ok)
		return false;
	if (f.n_invocation)
		ok = error_set(
			err, ERROR_UNSUPPORTED,
			"%s: alora_invocation_tokens is set: an adapter that begins behind certain tokens cannot "
			"be merged",
			f.weights.label);
	for (size_t i = 0; ok && i < f.n_parts; i++)
		ok = add_part(p, model, &f, &f.part[i], scale, err);
	ok = ok && adapter_read_done(&f, err);
	adapter_close(&f);
	return ok;
}

bool quant_merge_open(struct quant_plan *p, struct error *err)
{
	struct model model;

	if (!quant.lora.n)
		return true;
	if (!model_open(&model, quant.in, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err))
		return false;
	bool ok = true;
	for (int i = 0; ok && i < quant.lora.n; i++)
		ok = add_adapter(p, &model, quant.lora.value[i], err);
	model_close(&model);
	return ok;
}

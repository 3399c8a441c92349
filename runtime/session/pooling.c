#include "runtime/session/pooling.h"

#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"
#include "runtime/model/classifier.h"
#include "runtime/model/dense.h"
#include "runtime/session/logits.h"

bool pooling_open(struct pooling *p, const struct model *m, const jit_embedding_options *options, struct error *err)
{
	*p = (struct pooling){ .model = m, .options = *options, .hidden = m->spec.hidden };
	p->width = options->pooling == JIT_POOL_RANK   ? 1
	           : options->pooling == JIT_POOL_NONE ? p->hidden
	                                               : model_embedding(m);
	p->sum = calloc(p->hidden, sizeof *p->sum);
	p->row = calloc(p->hidden, sizeof *p->row);
	return (p->sum && p->row) ||
	       error_set(err, ERROR_MEMORY, "no memory for an embedding of %u numbers", p->hidden);
}

void pooling_close(struct pooling *p)
{
	free(p->sum);
	free(p->row);
	*p = (struct pooling){ 0 };
}

size_t pooling_floats(const struct pooling *p, size_t n)
{
	return p->options.pooling == JIT_POOL_NONE ? n * p->width : p->width;
}

bool pooling_check(const struct pooling *p, struct error *err)
{
	if (p->options.pooling != JIT_POOL_RANK)
		return true;
	if (!p->model->classifier.classes)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "a score was asked for of a model that has no classifier: its files do not say that "
		                 "it ranks texts");
	return !p->options.normalise ||
	       error_set(err, ERROR_ARGUMENT, "normalise: %d is not 0, and a score has no length",
	                 p->options.normalise);
}

void pooling_begin(struct pooling *p, size_t n, float *out)
{
	p->n = n;
	p->out = out;
	memset(p->sum, 0, p->hidden * sizeof *p->sum);
}

/* How the text's rows become one: what a score is made of the model says. */
static int way_of(const struct pooling *p)
{
	if (p->options.pooling != JIT_POOL_RANK)
		return p->options.pooling;
	return !p->model->spec.encodes ? JIT_POOL_LAST : p->model->classifier.mean ? JIT_POOL_MEAN : JIT_POOL_CLS;
}

void pooling_row(struct pooling *p, size_t at, const float *row)
{
	const int way = way_of(p);

	if (way == JIT_POOL_NONE)
		memcpy(p->out + at * p->hidden, row, p->hidden * sizeof *row);
	else if (way == JIT_POOL_MEAN)
		for (uint32_t i = 0; i < p->hidden; i++)
			p->sum[i] += (double)row[i];
	else if (way == JIT_POOL_CLS ? at == 0 : at + 1 == p->n)
		memcpy(p->row, row, p->hidden * sizeof *row);
}

/* What a row of hidden floats becomes, that stands for its text. */
static bool finish(const struct model *m, const float *row, bool to_length, float *out, struct error *err)
{
	if (!m->n_dense)
		memcpy(out, row, m->spec.hidden * sizeof *out);
	else if (!dense_apply(m, row, out, err))
		return false;
	if (to_length)
		math_host_normalise(out, model_embedding(m));
	return true;
}

static void take_mean(const double *sum, uint32_t hidden, size_t n, float *row)
{
	for (uint32_t i = 0; i < hidden; i++)
		row[i] = (float)(sum[i] / (double)n);
}

bool pooling_mean(const struct model *m, const double *sum, size_t n, bool to_length, float *out, struct error *err)
{
	float *row = calloc(m->spec.hidden, sizeof *row);

	if (!row)
		return error_set(err, ERROR_MEMORY, "no memory for an embedding of %u numbers", m->spec.hidden);
	take_mean(sum, m->spec.hidden, n, row);
	const bool ok = finish(m, row, to_length, out, err);
	free(row);
	return ok;
}

bool pooling_end(struct pooling *p, struct error *err)
{
	if (way_of(p) == JIT_POOL_MEAN)
		take_mean(p->sum, p->hidden, p->n, p->row);
	if (p->options.pooling == JIT_POOL_RANK)
		return classifier_score(&p->model->classifier, &p->model->spec, p->row, p->out, err);
	if (p->options.pooling != JIT_POOL_NONE)
		return finish(p->model, p->row, p->options.normalise, p->out, err);
	for (size_t r = 0; p->options.normalise && r < p->n; r++)
		math_host_normalise(p->out + r * p->hidden, p->hidden);
	return true;
}

bool pooling_check_row(const struct pooling *p, const float *row, size_t position, int32_t id, struct error *err)
{
	return logits_first_bad(row, p->hidden) == p->hidden ||
	       error_set(err, ERROR_FORMAT,
	                 "the hidden state of token %zu (id %d) is not finite; the model's weights hold, "
	                 "or lead to, numbers that are none",
	                 position, id);
}

/* loaders/model/model_dense.c - the layers that a pooled text goes through, whatever they come from: their sizes,
 * which must follow from each other, and their numbers in one block.
 *
 * Owns: that block, which is MODEL_SOURCE_DENSE of a packed model: how many layers there are; of each its inputs,
 * outputs, activation function (enum host_act) and whether it has a bias, all uint32_t; then the floats of each layer,
 * rows of the matrix first and the bias behind them. So does it own the tensors dense_2.weight and so on of GGUF files,
 * numbered as the folders they were converted from, with their keys of sizes. Those files say of no bias and no
 * activation function.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/gguf_index.h"
#include "loaders/model/model_floats.h"
#include "loaders/model/model_load.h"

enum { FIRST_NUMBER = 2, OF_EACH = 4 };

static uint64_t floats_of(const struct model_dense *d) { return (uint64_t)d->out * (d->in + (uint64_t)d->biased); }

static uint64_t block_bytes(const struct model *m)
{
	uint64_t n = sizeof(uint32_t);

	for (uint32_t i = 0; i < m->n_dense; i++)
		n += OF_EACH * sizeof(uint32_t) + floats_of(&m->dense[i]) * sizeof(float);
	return n;
}

static float *first_float(const struct model *m)
{
	uint32_t *at = m->file->dense;
	void *behind = at + 1 + OF_EACH * m->n_dense;

	return behind;
}

static bool make_block(struct model *m, struct error *err)
{
	struct model_file *f = m->file;
	const uint64_t bytes = block_bytes(m);
	uint32_t *at = f->dense = malloc((size_t)bytes);

	if (!at)
		return error_set(err, ERROR_MEMORY, "no memory for %" PRIu64 " bytes of dense layers", bytes);
	f->dense_bytes = (size_t)bytes;
	*at++ = m->n_dense;
	for (uint32_t i = 0; i < m->n_dense; i++, at += OF_EACH) {
		const struct model_dense *d = &m->dense[i];
		memcpy(at, (const uint32_t[OF_EACH]){ d->in, d->out, (uint32_t)d->act, d->biased },
		       OF_EACH * sizeof *at);
	}
	return true;
}

bool model_fill_dense(struct model *m, dense_read_fn *read, const void *user, struct error *err)
{
	if (!m->n_dense || m->file->flags & MODEL_HEADER_ONLY)
		return true;
	if (!make_block(m, err))
		return false;
	float *at = first_float(m);
	for (uint32_t i = 0; i < m->n_dense; i++) {
		struct model_dense *d = &m->dense[i];
		const uint64_t weights = (uint64_t)d->in * d->out;
		if (!read(user, i, false, weights, at, err) ||
		    (d->biased && !read(user, i, true, d->out, at + weights, err)))
			return false;
		d->weight = at;
		d->bias = d->biased ? at + weights : NULL;
		at += floats_of(d);
	}
	return true;
}

/* ---- GGUF */

static bool check_key(const struct model *m, uint32_t number, const char *what, uint64_t size, struct error *err)
{
	const struct gguf *g = &m->file->part[0].gguf;
	uint64_t says = size;
	char key[100];
	bool found;

	snprintf(key, sizeof key, "%s.dense_%" PRIu32 "_feat_%s", m->file->arch->gguf, number, what);
	if (!gguf_u64(g, key, &says, &found, err))
		return false;
	if (found && !size)
		return error_set(err, ERROR_FORMAT,
		                 "%s: the tensor dense_%" PRIu32 ".weight is missing, which the key %s says there is",
		                 g->path, number, key);
	return says == size ||
	       error_set(err, ERROR_FORMAT,
	                 "%s: key %s is %" PRIu64 ", expected %" PRIu64 " as dense_%" PRIu32 ".weight has", g->path,
	                 key, says, size, number);
}

static void name_of(uint32_t number, char out[32]) { snprintf(out, 32, "dense_%" PRIu32 ".weight", number); }

static bool take_tensor(struct model *m, uint32_t number, const struct found_tensor *t, struct error *err)
{
	if (t->dim[2] != 1 || t->dim[3] != 1 || t->dim[0] > MODEL_MAX_WIDTH || t->dim[1] > MODEL_MAX_WIDTH)
		return error_set(err, ERROR_FORMAT,
		                 "%s: tensor dense_%" PRIu32 ".weight has shape (%" PRIu64 " x %" PRIu64
		                 "), expected a matrix of at most %d rows and columns",
		                 t->label, number, t->dim[1] * t->dim[2] * t->dim[3], t->dim[0], MODEL_MAX_WIDTH);
	if (!model_floats_known(t->type))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor dense_%" PRIu32
		                 ".weight has type %s, which is not supported for layers behind pooling",
		                 t->label, number, dtype_table[t->type].name);
	m->file->used[t->entry] = true;
	m->dense[m->n_dense++] =
		(struct model_dense){ .in = (uint32_t)t->dim[0], .out = (uint32_t)t->dim[1], .act = HOST_IDENTITY };
	return check_key(m, number, "in", t->dim[0], err) && check_key(m, number, "out", t->dim[1], err);
}

static bool from_gguf(struct model *m, struct error *err)
{
	struct found_tensor t;
	char name[32];

	if (m->file->arch->lacks || !m->file->names.count)
		return true;
	for (uint32_t k = 0; k < MODEL_MAX_DENSE; k++) {
		name_of(FIRST_NUMBER + k, name);
		if (!model_find_tensor(m->file, name, &t))
			return check_key(m, FIRST_NUMBER + k, "in", 0, err) &&
			       check_key(m, FIRST_NUMBER + k, "out", 0, err);
		if (!take_tensor(m, FIRST_NUMBER + k, &t, err))
			return false;
	}
	return true;
}

static bool read_gguf(const void *user, uint32_t layer, bool bias, uint64_t n, float *out, struct error *err)
{
	const struct model_file *f = user;
	struct found_tensor t;
	char name[32];

	(void)bias;
	name_of(FIRST_NUMBER + layer, name);
	return model_find_tensor(f, name, &t) && model_read_floats(&f->part[t.part].file, &t, n, out, err) &&
	       model_check_finite(t.label, name, out, n, err);
}

/* ---- a packed model's block */

static bool take_sizes(struct model *m, const struct file *given, struct error *err)
{
	uint32_t count, of[OF_EACH];

	if (given->size < sizeof count)
		return error_set(err, ERROR_FORMAT, "%s: holds %" PRIu64 " bytes of dense layers, expected 4 at least",
		                 given->label, given->size);
	memcpy(&count, given->base, sizeof count);
	if (count < 1 || count > MODEL_MAX_DENSE || given->size < sizeof count + count * sizeof of)
		return error_set(err, ERROR_FORMAT,
		                 "%s: says in %" PRIu64 " bytes that it has %" PRIu32
		                 " dense layers, expected 1 to %d and their sizes",
		                 given->label, given->size, count, MODEL_MAX_DENSE);
	for (m->n_dense = 0; m->n_dense < count; m->n_dense++) {
		memcpy(of, given->base + sizeof count + m->n_dense * sizeof of, sizeof of);
		if (of[0] - 1 >= MODEL_MAX_WIDTH || of[1] - 1 >= MODEL_MAX_WIDTH || of[2] > HOST_SIGMOID || of[3] > 1)
			return error_set(err, ERROR_FORMAT,
			                 "%s: dense layer %" PRIu32 " is %" PRIu32 " x %" PRIu32
			                 ", activation function %" PRIu32 ", bias %" PRIu32
			                 ", expected sizes of 1 to %d, a function of 0 to %d and a bias of 0 or 1",
			                 given->label, m->n_dense, of[1], of[0], of[2], of[3], MODEL_MAX_WIDTH,
			                 HOST_SIGMOID);
		m->dense[m->n_dense] = (struct model_dense){ of[0], of[1], (enum host_act)of[2], of[3], NULL, NULL };
	}
	return block_bytes(m) == given->size ||
	       error_set(err, ERROR_FORMAT, "%s: holds %" PRIu64 " bytes of dense layers, expected %" PRIu64,
	                 given->label, given->size, block_bytes(m));
}

/* What the header says there is, too. */
static bool check_given(const struct model *m, const struct model_dense *header, uint32_t n, struct error *err)
{
	bool same = n == m->n_dense;

	for (uint32_t i = 0; same && i < n; i++)
		same = header[i].in == m->dense[i].in && header[i].out == m->dense[i].out;
	return same || error_set(err, ERROR_FORMAT,
	                         "%s: holds %" PRIu32 " dense layers, expected the %" PRIu32
	                         " of its GGUF header in their sizes",
	                         m->file->part[0].file.label, m->n_dense, n);
}

static bool from_source(struct model *m, struct error *err)
{
	struct model_file *f = m->file;
	const struct file *given = &f->dense_given;
	struct model_dense header[MODEL_MAX_DENSE];
	const uint32_t n = m->n_dense;

	memcpy(header, m->dense, sizeof header);
	m->n_dense = 0;
	if ((given->base && !take_sizes(m, given, err)) || (f->format == MODEL_GGUF && !check_given(m, header, n, err)))
		return false;
	if (!m->n_dense)
		return true;
	if (!(f->dense = malloc((size_t)given->size)))
		return error_set(err, ERROR_MEMORY, "no memory for %" PRIu64 " bytes of dense layers", given->size);
	memcpy(f->dense, given->base, (size_t)given->size);
	f->dense_bytes = (size_t)given->size;
	const float *at = first_float(m);
	for (uint32_t i = 0; i < m->n_dense; i++) {
		struct model_dense *d = &m->dense[i];
		d->weight = at;
		d->bias = d->biased ? at + (uint64_t)d->in * d->out : NULL;
		if (!model_check_finite(given->label, "of a dense layer", at, floats_of(d), err))
			return false;
		at += floats_of(d);
	}
	return true;
}

/* ---- what all are held to */

static bool check_chain(const struct model *m, const char *label, struct error *err)
{
	uint32_t before = m->spec.hidden;

	if (m->n_dense && m->pooling == POOLING_RANK)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: has dense layers behind pooling, and the model ranks texts, which it does "
		                 "without them",
		                 label);
	for (uint32_t i = 0; i < m->n_dense; before = m->dense[i++].out)
		if (m->dense[i].in != before)
			return error_set(err, ERROR_FORMAT,
			                 "%s: dense layer %" PRIu32 " behind pooling has %" PRIu32
			                 " inputs (in_features), expected the %" PRIu32 " numbers before it",
			                 label, i, m->dense[i].in, before);
	return true;
}

bool model_read_dense(struct model *m, struct error *err)
{
	const struct model_file *f = m->file;
	const bool gguf = f->format == MODEL_GGUF;
	const char *label = gguf ? f->part[0].file.label : f->config.label;

	if (gguf && !from_gguf(m, err))
		return false;
	if (f->from_sources && !from_source(m, err))
		return false;
	if (!check_chain(m, label, err))
		return false;
	return f->from_sources || !gguf || model_fill_dense(m, read_gguf, f, err);
}

uint32_t model_embedding(const struct model *m) { return m->n_dense ? m->dense[m->n_dense - 1].out : m->spec.hidden; }

/* loaders/model/model_classifier.c - what makes scores of texts: the tensors cls.* of GGUF files whose pooling_type
 * says that the model ranks texts, and those of classes for that in safetensors.
 *
 * Owns: their names, shapes and floats, and the key classifier.output_labels. They are small and no kernel's: the host
 * computes with them. Conversion by llama.cpp calls cls what encoders have between the last token and the classes, and
 * cls.output the classes' rows; of Qwen 3 these are the output matrix's rows of "yes" and "no".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "loaders/files/gguf_index.h"
#include "loaders/model/model_floats.h"
#include "loaders/model/model_load.h"

enum { DENSE, DENSE_BIAS, NORM, OUT, OUT_BIAS, TENSORS };
static const char *const gguf_names[TENSORS] = { "cls.weight", "cls.bias", "cls.norm.weight", "cls.output.weight",
	                                         "cls.output.bias" };

struct found {
	const char *const *names; /* NULL: this form of head has no such tensor */
	struct found_tensor t[TENSORS];
	bool there[TENSORS];
	uint64_t elements[TENSORS], all;
};

static bool check_shape(const struct found_tensor *t, const char *name, uint64_t rows, uint64_t cols, struct error *err)
{
	if (t->dim[0] == cols && t->dim[1] == rows && t->dim[2] == 1 && t->dim[3] == 1)
		return model_floats_known(t->type) ||
		       error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has type %s, which is not supported for what ranks texts", t->label,
		                 name, dtype_table[t->type].name);
	return error_set(err, ERROR_FORMAT,
	                 "%s: tensor %s has shape (%" PRIu64 " x %" PRIu64 "), expected (%" PRIu64 " x %" PRIu64
	                 ") rows x columns",
	                 t->label, name, t->dim[1] * t->dim[2] * t->dim[3], t->dim[0], rows, cols);
}

static bool find_all(struct model *m, struct found *f, struct error *err)
{
	const uint64_t hidden = m->spec.hidden;
	const char *label = m->file->part[0].file.label, *const *names = f->names;

	for (int k = 0; k < TENSORS; k++)
		f->there[k] = names[k] && model_find_tensor(m->file, names[k], &f->t[k]);
	if (!f->there[OUT])
		return error_set(err, ERROR_FORMAT,
		                 "%s: the tensor %s is missing, which a model that ranks texts makes its scores by",
		                 label, names[OUT]);
	if (f->there[DENSE_BIAS] && !f->there[DENSE])
		return error_set(err, ERROR_FORMAT, "%s: has the tensor %s without %s", label, names[DENSE_BIAS],
		                 names[DENSE]);
	const uint64_t classes = f->t[OUT].dim[1], rows[TENSORS] = { hidden, 1, 1, classes, 1 },
		       cols[TENSORS] = { hidden, hidden, hidden, hidden, classes };
	if (classes > MODEL_MAX_CLASSES)
		return error_set(err, ERROR_UNSUPPORTED, "%s: tensor %s has %" PRIu64 " rows, expected at most %d",
		                 label, names[OUT], classes, MODEL_MAX_CLASSES);
	for (int k = 0; k < TENSORS; k++) {
		if (f->there[k] && !check_shape(&f->t[k], names[k], rows[k], cols[k], err))
			return false;
		f->elements[k] = f->there[k] ? rows[k] * cols[k] : 0;
		f->all += f->elements[k];
		if (f->there[k])
			m->file->used[f->t[k].entry] = true;
	}
	m->classifier.classes = (uint32_t)classes;
	return true;
}

/* A name for each class, where the file has them. */
static bool check_labels(const struct model *m, struct error *err)
{
	const struct gguf *g = &m->file->part[0].gguf;
	char key[100];

	snprintf(key, sizeof key, "%s.classifier.output_labels", m->file->arch->gguf);
	const struct gguf_kv *kv = gguf_find(g, key);
	if (!kv)
		return true;
	if (kv->type != GGUF_ARRAY || kv->item != GGUF_STRING)
		return error_set(err, ERROR_FORMAT, "%s: key %s is no array of strings", g->path, key);
	return kv->count == m->classifier.classes ||
	       error_set(err, ERROR_FORMAT,
	                 "%s: key %s has %" PRIu64 " labels, expected one for each of the %" PRIu32 " rows of %s",
	                 g->path, key, kv->count, m->classifier.classes, gguf_names[OUT]);
}

bool model_read_floats(const struct file *f, const struct found_tensor *t, uint64_t n, float *out, struct error *err)
{
	uint8_t *bytes = malloc((size_t)t->bytes);

	if (!bytes)
		return error_set(err, ERROR_MEMORY, "%s: no memory for %" PRIu64 " bytes", t->label, t->bytes);
	bool ok = file_read(f, t->offset, (size_t)t->bytes, bytes, err);
	if (ok)
		model_floats(t->type, bytes, n, out);
	free(bytes);
	return ok;
}

bool model_check_finite(const char *label, const char *name, const float *x, uint64_t n, struct error *err)
{
	for (uint64_t i = 0; i < n; i++)
		if ((number_bits(x[i]) & 0x7f800000) == 0x7f800000)
			return error_set(err, ERROR_FORMAT,
			                 "%s: number %" PRIu64 " of tensor %s is not finite, expected finite numbers",
			                 label, i, name);
	return true;
}

/* One behind the other, in the order of their names above; a packed model holds them so. */
static bool read_all(struct model *m, const struct found *f, struct error *err)
{
	struct model_file *file = m->file;
	const struct file *given = &file->classifier_given;
	const char *label = f->t[OUT].label;
	const char *const *names = f->names;
	const float **slot[TENSORS] = { &m->classifier.dense, &m->classifier.dense_bias, &m->classifier.norm,
		                        &m->classifier.out, &m->classifier.out_bias };
	const uint64_t bytes = f->all * sizeof **slot[0];

	if (file->from_sources && given->size != bytes)
		return error_set(err, ERROR_FORMAT, "%s: holds %" PRIu64 " bytes of a classifier, expected %" PRIu64,
		                 label, given->size, bytes);
	float *at = file->classifier = malloc((size_t)bytes);
	file->n_classifier = (size_t)f->all;
	if (!at)
		return error_set(err, ERROR_MEMORY, "%s: no memory for %" PRIu64 " weights", label, f->all);
	if (file->from_sources)
		memcpy(at, given->base, given->size);
	for (int k = 0; k < TENSORS; k++) {
		if (!f->there[k])
			continue;
		if ((!file->from_sources &&
		     !model_read_floats(&file->part[f->t[k].part].file, &f->t[k], f->elements[k], at, err)) ||
		    !model_check_finite(label, names[k], at, f->elements[k], err))
			return false;
		*slot[k] = at;
		at += f->elements[k];
	}
	return true;
}

bool model_read_classifier(struct model *m, struct error *err)
{
	const struct arch_encoder *e = m->file->arch->encoder;
	const bool gguf = m->file->format == MODEL_GGUF;
	struct found f = { .names = gguf || !e ? gguf_names : e->classifier };

	if (m->pooling != POOLING_RANK)
		return true;
	m->classifier.act = e ? e->act : HOST_TANH;
	m->classifier.mean |= gguf && e && e->act == HOST_GELU; /* as llama.cpp pools what has such a head */
	if (!find_all(m, &f, err) || (gguf && !check_labels(m, err)))
		return false;
	return (m->file->flags & MODEL_HEADER_ONLY && !m->file->from_sources) || read_all(m, &f, err);
}

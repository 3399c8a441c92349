/* loaders/model/model_sampling.c - how a model's makers say that its tokens are to be chosen.
 *
 * Owns: how these numbers are read from generation_config.json (by the names of transformers) and from GGUF files
 * (general.sampling.NAME, as llama.cpp's converter writes them). Names and ranges are in base/sampling.def. A number
 * out of range, or of another kind, is refused like any field of the model.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/gguf_index.h"
#include "loaders/model/model_hf_fields.h"
#include "loaders/model/model_never.h"

enum { MAX_ORDER = 1024 }; /* bytes of the samplers' names */

static bool take(struct model_sampling *s, size_t i, const char *label, const char *name, double value,
                 struct error *err)
{
	if (!hparam_range(label, name, value, sampling_rows[i].file_low, sampling_rows[i].file_high, err))
		return false;
	if (sampling_rows[i].whole && value != floor(value))
		return error_set(err, ERROR_FORMAT, "%s: %s is %.9g, expected an integer", label, name, value);
	s->given |= UINT64_C(1) << i;
	s->value[i] = value;
	return true;
}

static bool take_order(struct model_sampling *s, const char *label, const char *name, const char *text, size_t n,
                       struct error *err)
{
	if (n == 0 || n > MAX_ORDER || memchr(text, 0, n))
		return error_set(err, ERROR_FORMAT,
		                 "%s: %s has %zu bytes, expected names with ; between them, at most %d bytes", label,
		                 name, n, MAX_ORDER);
	s->samplers = strndup(text, n);
	return s->samplers || error_set(err, ERROR_MEMORY, "%s: no memory for %s", label, name);
}

/* ---- GGUF */

static bool is_number(enum gguf_type t) { return t != GGUF_BOOL && t != GGUF_STRING && t != GGUF_ARRAY; }

static bool from_gguf(struct model_sampling *s, const struct gguf *g, struct error *err)
{
	struct gguf_str order;
	bool found;
	char key[64];

	for (size_t i = 0; i < SAMPLING_FIELDS; i++) {
		const char *name = sampling_rows[i].gguf;
		snprintf(key, sizeof key, "general.sampling.%s", name ? name : "");
		const struct gguf_kv *kv = name ? gguf_find(g, key) : NULL;
		if (kv && !is_number(kv->type))
			return error_set(err, ERROR_FORMAT, "%s: key %s has type %s, expected a number", g->path, key,
			                 gguf_type_name(kv->type));
		if (kv && !take(s, i, g->path, key, gguf_item_float(kv, 0), err))
			return false;
	}
	return gguf_string(g, "general.sampling.sequence", &order, &found, err) &&
	       (!found || take_order(s, g->path, "general.sampling.sequence", order.p, order.n, err));
}

/* ---- generation_config.json */

static bool from_object(struct model_sampling *s, struct hf_reader *r)
{
	const char *order = NULL;
	bool sample = true;

	for (size_t i = 0; i < SAMPLING_FIELDS; i++) {
		const char *name = sampling_rows[i].hf;
		double value = 0;
		if (!name || !hf_get(r, r->root, name))
			continue;
		if (!hf_get_f64(r, r->root, name, &value) || !take(s, i, r->label, name, value, r->err))
			return false;
	}
	if (!hf_get_bool(r, r->root, "do_sample", &sample) || !hf_get_string(r, r->root, "sequence", &order))
		return false;
	if (!sample && !take(s, SAMPLING_temperature, r->label, "temperature", 0, r->err))
		return false;
	return !order || take_order(s, r->label, "sequence", order, strlen(order), r->err);
}

static bool from_json(struct model *m, const struct file *file, struct error *err)
{
	json_t *root = json_read(file->base, file->size, JSON_MAX_CONFIG, file->label, err);
	struct hf_reader r = { .m = m, .label = file->label, .root = root, .err = err };
	bool ok = root && (json_is_object(root) ? from_object(&m->sampling, &r) && model_read_never(&r)
	                                        : hf_wrong_kind(&r, "its content", root, "an object"));

	json_decref(root);
	return ok;
}

bool model_read_sampling(struct model *m, struct error *err)
{
	const struct model_file *f = m->file;

	if (f->flags & MODEL_NO_TOKENIZER)
		return true;
	if (f->format == MODEL_GGUF)
		return from_gguf(&m->sampling, &f->part[0].gguf, err) &&
		       model_read_gguf_never(m, &f->part[0].gguf, err);
	return !f->generation_config.base || from_json(m, &f->generation_config, err);
}

void model_free_sampling(struct model *m)
{
	free(m->sampling.samplers);
	free(m->sampling.never);
	free(m->sampling.not_done);
	free(m->sampling.never_first);
	free(m->sampling.words);
	for (size_t i = 0; i < m->sampling.n_stop; i++)
		free(m->sampling.stop[i]);
	free(m->sampling.stop);
}

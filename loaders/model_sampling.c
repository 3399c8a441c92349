/* loaders/model_sampling.c - how a model's makers say that its tokens are to be chosen.
 *
 * Owns: the names of these numbers in generation_config.json (as transformers has them) and in GGUF files
 * (general.sampling.NAME, as llama.cpp's converter writes them), and what each may be. A number out of range, or of
 * another kind, is refused like any field of the model.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/gguf_index.h"
#include "loaders/model_hf_fields.h"
#include "loaders/model_never.h"

static const struct row {
	const char *hf, *gguf; /* NULL: it has no name there */
	bool whole;
	double least, most;
} rows[MODEL_SAMPLING_FIELDS] = {
	[SAMPLING_TEMPERATURE] = { "temperature", "temp", false, 0, 100 },
	[SAMPLING_TOP_K] = { "top_k", "top_k", true, -1, INT_MAX },
	[SAMPLING_TOP_P] = { "top_p", "top_p", false, 0, 1 },
	[SAMPLING_MIN_P] = { "min_p", "min_p", false, 0, 1 },
	[SAMPLING_TYPICAL_P] = { "typical_p", NULL, false, 0, 1 },
	[SAMPLING_REPEAT_PENALTY] = { "repetition_penalty", "penalty_repeat", false, 0.01, 100 },
	[SAMPLING_PRESENCE_PENALTY] = { "presence_penalty", NULL, false, -100, 100 },
	[SAMPLING_FREQUENCY_PENALTY] = { "frequency_penalty", NULL, false, -100, 100 },
	[SAMPLING_REPEAT_WINDOW] = { "penalty_last_n", "penalty_last_n", true, -1, INT_MAX },
	[SAMPLING_XTC_PROBABILITY] = { "xtc_probability", "xtc_probability", false, 0, 1 },
	[SAMPLING_XTC_THRESHOLD] = { "xtc_threshold", "xtc_threshold", false, 0, 1 },
	[SAMPLING_MIROSTAT] = { "mirostat", "mirostat", true, 0, 2 },
	[SAMPLING_MIROSTAT_TAU] = { "mirostat_tau", "mirostat_tau", false, 0, 100 },
	[SAMPLING_MIROSTAT_ETA] = { "mirostat_eta", "mirostat_eta", false, 0, 100 },
};

enum { MOST_ORDER = 1024 }; /* bytes of the samplers' names */

static bool take(struct model_sampling *s, size_t i, const char *label, const char *name, double value,
                 struct error *err)
{
	if (!hparam_range(label, name, value, rows[i].least, rows[i].most, err))
		return false;
	if (rows[i].whole && value != floor(value))
		return error_set(err, ERROR_FORMAT, "%s: %s is %.9g, expected an integer", label, name, value);
	s->given |= 1u << i;
	s->value[i] = value;
	return true;
}

static bool take_order(struct model_sampling *s, const char *label, const char *name, const char *text, size_t n,
                       struct error *err)
{
	if (n == 0 || n > MOST_ORDER || memchr(text, 0, n))
		return error_set(err, ERROR_FORMAT,
		                 "%s: %s has %zu bytes, expected names with ; between them, at most %d bytes", label,
		                 name, n, MOST_ORDER);
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

	for (size_t i = 0; i < MODEL_SAMPLING_FIELDS; i++) {
		snprintf(key, sizeof key, "general.sampling.%s", rows[i].gguf ? rows[i].gguf : "");
		const struct gguf_kv *kv = rows[i].gguf ? gguf_find(g, key) : NULL;
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

	for (size_t i = 0; i < MODEL_SAMPLING_FIELDS; i++) {
		double value = 0;
		if (!hf_get(r, r->root, rows[i].hf))
			continue;
		if (!hf_get_f64(r, r->root, rows[i].hf, &value) || !take(s, i, r->label, rows[i].hf, value, r->err))
			return false;
	}
	if (!hf_get_bool(r, r->root, "do_sample", &sample) || !hf_get_string(r, r->root, "sequence", &order))
		return false;
	if (!sample && !take(s, SAMPLING_TEMPERATURE, r->label, "temperature", 0, r->err))
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

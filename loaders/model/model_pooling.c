/* loaders/model/model_pooling.c - how a model's makers say that a text's embedding is made of its tokens' hidden
 * states.
 *
 * Owns: the GGUF key ARCHITECTURE.pooling_type and its values, and 1_Pooling/config.json, which sentence-transformers
 * puts beside a model. A way of pooling that jitrun does not have is refused: an embedding made in another way than
 * the model was trained for looks right and is of no use.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loaders/files/gguf_index.h"
#include "loaders/model/model_hf_fields.h"

/* ---- GGUF */

static bool from_gguf(struct model *m, const struct gguf *g, struct error *err)
{
	enum { NONE, MEAN, FIRST, LAST, RANK };
	uint64_t type = NONE;
	char key[80];
	bool found;

	snprintf(key, sizeof key, "%s.pooling_type", m->file->arch->gguf);
	if (!gguf_u64(g, key, &type, &found, err))
		return false;
	m->pooling = type == MEAN    ? POOLING_MEAN
	             : type == LAST  ? POOLING_LAST
	             : type == FIRST ? POOLING_CLS
	                             : POOLING_NOT_SAID;
	if (type == RANK && m->file->arch->switches & (SWITCH_RANKS | SWITCH_ENCODES))
		m->pooling = POOLING_RANK;
	if (type == NONE || m->pooling != POOLING_NOT_SAID)
		return true;
	return error_set(err, ERROR_UNSUPPORTED,
	                 "%s: key %s is %" PRIu64 "%s, which is not supported, expected 0 (not said), 1 (the mean of "
	                 "all tokens), 2 (the first token) or 3 (the last token)",
	                 g->path, key, type, type == RANK ? " (a score for reranking)" : "");
}

/* ---- 1_Pooling/config.json */

static bool refuse(struct hf_reader *r, const char *field, const char *value)
{
	return error_set(r->err, ERROR_UNSUPPORTED,
	                 "%s: %s is %s, expected one way of pooling: the mean of all tokens (mean), the first token "
	                 "(cls) or the last token (lasttoken)",
	                 r->label, field, value);
}

/* Older files have a switch for each way, newer ones the way's name. */
static bool from_object(struct hf_reader *r)
{
	static const struct {
		const char *field, *name;
		enum model_pooling pooling;
	} way[] = { { "pooling_mode_lasttoken", "lasttoken", POOLING_LAST },
		    { "pooling_mode_mean_tokens", "mean", POOLING_MEAN },
		    { "pooling_mode_cls_token", "cls", POOLING_CLS },
		    { "pooling_mode_max_tokens", "max", POOLING_NOT_SAID },
		    { "pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", POOLING_NOT_SAID },
		    { "pooling_mode_weightedmean_tokens", "weightedmean", POOLING_NOT_SAID } };
	const char *name = NULL;
	char quoted[60];

	if (!hf_get_string(r, r->root, "pooling_mode", &name))
		return false;
	for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
		bool on = name && strcmp(name, way[i].name) == 0;
		if (!name && !hf_get_bool(r, r->root, way[i].field, &on))
			return false;
		if (!on)
			continue;
		if (way[i].pooling == POOLING_NOT_SAID || r->m->pooling != POOLING_NOT_SAID)
			return refuse(r, name ? "pooling_mode" : way[i].field, name ? name : "true");
		r->m->pooling = way[i].pooling;
	}
	return !name || r->m->pooling != POOLING_NOT_SAID ||
	       refuse(r, "pooling_mode", error_quote(quoted, sizeof quoted, name, strlen(name)));
}

static bool from_json(struct model *m, const struct file *file, struct error *err)
{
	json_t *root = json_read(file->base, file->size, JSON_MAX_CONFIG, file->label, err);
	struct hf_reader r = { .m = m, .label = file->label, .root = root, .err = err };
	bool ok =
		root && (json_is_object(root) ? from_object(&r) : hf_wrong_kind(&r, "its content", root, "an object"));

	json_decref(root);
	return ok;
}

bool model_read_pooling(struct model *m, struct error *err)
{
	const struct model_file *f = m->file;

	m->pooling = POOLING_NOT_SAID;
	if (f->format == MODEL_GGUF ? !from_gguf(m, &f->part[0].gguf, err)
	                            : f->pooling_config.base && !from_json(m, &f->pooling_config, err))
		return false;
	if (f->ranks)
		m->pooling = POOLING_RANK;
	else if (m->spec.encodes && m->pooling == POOLING_NOT_SAID)
		m->pooling = POOLING_MEAN; /* as sentence-transformers pools what nobody says more of */
	return true;
}

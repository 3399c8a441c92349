/* loaders/model/model_hf_encoder.c - what config.json says of models that encode a text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loaders/model/model_hf_fields.h"

/* What a text's length is at most, where positions have rows. */
static bool check_positions(const struct model *m, const char *label, struct error *err)
{
	const struct model_spec *s = &m->spec;

	return s->context_train > s->positions_from ||
	       error_set(err, ERROR_FORMAT,
	                 "%s: there are embeddings of %" PRIu32 " positions, expected more than the %" PRIu32
	                 " that no token has",
	                 label, s->context_train, s->positions_from);
}

const char *hf_row_name(const struct hf_reader *r, const char *type)
{
	const char *kind = json_string_value(json_object_get(r->root, "position_embedding_type"));

	if (strcmp(type, "gemma3_text") == 0 && json_is_true(json_object_get(r->root, "use_bidirectional_attention")))
		return BIDIRECTIONAL_GEMMA;
	return strcmp(type, "bert") == 0 && kind && strcmp(kind, "alibi") == 0 ? BIASED_BERT : type;
}

bool hf_read_encoder(struct hf_reader *r)
{
	const struct arch_encoder *e = r->row->encoder;
	struct model_spec *s = &r->m->spec;
	const char *kind = NULL, *feeds = NULL, *expected = e && e->alibi != 0 ? "alibi" : "absolute";
	bool decodes = false;
	uint32_t pad = 0;

	if (!e)
		return true;
	if (!hf_get_bool(r, r->root, "is_decoder", &decodes) ||
	    !hf_get_string(r, r->root, "position_embedding_type", &kind))
		return false;
	if (decodes)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: is_decoder is true, expected false: models of this class run as encoders",
		                 r->label);
	if (kind && strcmp(kind, expected) != 0)
		return hf_unsupported(r, "position_embedding_type", kind, expected);
	if (e->alibi != 0) {
		if (!hf_get_string(r, r->root, "feed_forward_type", &feeds))
			return false;
		if (!feeds || strcmp(feeds, "geglu") != 0)
			return hf_unsupported(r, "feed_forward_type", feeds ? feeds : "original", "geglu");
	}
	const char *pooled = NULL, *act = NULL;
	if (e->act == HOST_GELU && r->m->file->ranks) {
		if (!hf_get_string(r, r->root, "classifier_pooling", &pooled) ||
		    !hf_get_string(r, r->root, "classifier_activation", &act))
			return false;
		if (pooled && strcmp(pooled, "cls") != 0 && strcmp(pooled, "mean") != 0)
			return hf_unsupported(r, "classifier_pooling", pooled, "cls or mean");
		if (act && strcmp(act, "gelu") != 0)
			return hf_unsupported(r, "classifier_activation", act, "gelu");
		r->m->classifier.mean = pooled && strcmp(pooled, "mean") == 0;
	} else if (!hf_get_string(r, r->root, "classifier_pooling", &pooled)) {
		return false;
	}
	if (e->types && !hf_get_u32(r, r->root, "type_vocab_size", REQUIRED, MODEL_MAX_WIDTH, &s->token_types))
		return false;
	if (e->from_pad && !hf_get_u32(r, r->root, "pad_token_id", REQUIRED, INT32_MAX - 1, &pad))
		return false;
	if (e->buckets && (!hf_get_u32(r, r->root, "relative_attention_num_buckets", REQUIRED, 1 << 16, &s->buckets) ||
	                   !hparam_range(r->label, "relative_attention_num_buckets", s->buckets, 4, 1 << 16, r->err)))
		return false;
	s->positions_from = e->from_pad ? pad + 1 : 0;
	if (!check_positions(r->m, r->label, r->err))
		return false;
	s->context_train -= s->positions_from;
	model_widen_window(s);
	return true;
}

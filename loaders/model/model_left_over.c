/* loaders/model/model_left_over.c - that no tensor of the files is left over but those that change nothing. */
#include <string.h>

#include "loaders/model/model_load.h"

/* What names begin with of the parts beside a text model inside a model for images. */
static const char *const other_parts[] = {
	"vision_tower.",       "multi_modal_projector.",
	"model.vision_tower.", "model.multi_modal_projector.",
	"model.visual.",       "mtp.",
	"model.audio_tower.",  "model.embed_vision.",
	"model.embed_audio.",  "model.vision_model.",
	"model.connector.",    "visual."
};

static bool of_other_part(struct name_ref name)
{
	for (size_t i = 0; i < sizeof other_parts / sizeof *other_parts; i++)
		if (name.n > strlen(other_parts[i]) && memcmp(name.p, other_parts[i], strlen(other_parts[i])) == 0)
			return true;
	return false;
}

/* What encoders' files have beside the encoder: of guessing words that are left out, of a pooler that no embedding goes
 * through, and lists of numbers that are their own. */
static bool beside_encoder(const struct model_file *f, struct name_ref name)
{
	static const char *const begins[] = {
		"pooler.",
		"cls.",
		"lm_head.",
		"vocab_transform.",
		"vocab_layer_norm.",
		"vocab_projector.",
		"decoder.",
		"embeddings.position_ids",
		"head."
	};
	const char *base = f->arch->base ? f->arch->base : "model.";
	const size_t behind = name.n > strlen(base) && memcmp(name.p, base, strlen(base)) == 0 ? strlen(base) : 0;

	if (!f->arch->encoder || f->format != MODEL_HF)
		return false;
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
		const size_t n = strlen(begins[i]);
		if (name.n - behind >= n && memcmp(name.p + behind, begins[i], n) == 0)
			return true;
	}
	return false;
}

/* Of layers that predict further tokens, under a name of their own. */
static bool of_predictor(const struct model_file *f, struct name_ref name)
{
	return f->format == MODEL_HF && arch_word_in(f->arch->fields, "num_nextn_predict_layers") && name.n > 4 &&
	       memcmp(name.p, "mtp.", 4) == 0;
}

/* Of layers that predict further tokens. */
static bool of_later_layer(const struct model_file *f, uint32_t layers, struct name_ref name)
{
	const char *at = f->format == MODEL_GGUF ? "blk." : "model.layers.";
	size_t i = strlen(at);
	uint64_t layer = 0;

	if (name.n <= i || memcmp(name.p, at, i) != 0)
		return false;
	for (; i < name.n && name.p[i] >= '0' && name.p[i] <= '9' && layer < UINT32_MAX; i++)
		layer = layer * 10 + (uint64_t)(name.p[i] - '0');
	return i < name.n && name.p[i] == '.' && layer >= layers && layer - layers < f->later_layers;
}

bool model_check_tied_head(struct model_file *f, const char *head_name, const char *embed_name, struct error *err)
{
	struct found_tensor head, embed;

	if (!f->needs.tied_by_config || f->needs.head_apart || !model_find_tensor(f, head_name, &head))
		return true;
	bool same = model_find_tensor(f, embed_name, &embed) && head.type == embed.type && head.bytes == embed.bytes &&
	            memcmp(head.dim, embed.dim, sizeof head.dim) == 0;
	if (same && !(f->flags & MODEL_HEADER_ONLY) && !model_same_found(f, &head, &embed, &same, err))
		return false;
	f->used[head.entry] = same;
	return same ||
	       error_set(err, ERROR_UNSUPPORTED,
	                 "%s: the tensor %s differs from %s, but tie_word_embeddings says that they are the same",
	                 head.label, head_name, embed_name);
}

bool model_check_left_over(const struct model *m, struct error *err)
{
	const struct model_file *f = m->file;
	char text[100];

	for (uint32_t i = 0; i < f->n_entries; i++) {
		struct name_ref n = model_entry_name(f, i);
		if (!f->used[i] && !arch_tensor_harmless(f->format == MODEL_GGUF, n.p, n.n) &&
		    !(f->wrapped && of_other_part(n)) && !beside_encoder(f, n) &&
		    !of_later_layer(f, m->spec.layers, n) && !of_predictor(f, n))
			return error_set(err, ERROR_UNSUPPORTED,
			                 "%s: the tensor %s is none that jitrun computes with in a %s model, and "
			                 "without it the results might be wrong",
			                 f->part[f->entry[i].part].file.label, error_quote(text, sizeof text, n.p, n.n),
			                 f->arch_name);
	}
	return true;
}

/* vision/read_hf.c - image encoders out of config.json: its vision_config, and what beside it is the projector's. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json_read.h"
#include "loaders/model/model_hf_fields.h"
#include "vision/spec.h"

/* ---- fields */

static json_t *outer_of(const struct tower_reader *r) { return (json_t *)(uintptr_t)r->outer; }

static bool read_number(struct tower_reader *r, const char *key, uint32_t max, uint32_t *out)
{
	return hf_get_u32(r->hf, r->hf->root, key, REQUIRED, max, out) &&
	       hparam_range(r->hf->label, key, *out, 1, max, r->hf->err);
}

/* A number, or a list of two that are the same. */
static bool read_side(struct tower_reader *r, const char *key, uint32_t *out)
{
	const json_t *v = hf_get(r->hf, r->hf->root, key);

	if (!json_is_array(v))
		return read_number(r, key, TOWER_MAX_WIDTH, out);
	const json_t *a = json_array_get(v, 0), *b = json_array_get(v, 1);
	if (json_array_size(v) != 2 || !json_is_integer(a) || !json_equal(a, b))
		return hf_wrong_kind(r->hf, key, v, "a number, or two that are equal");
	*out = (uint32_t)json_integer_value(a);
	return hparam_range(r->hf->label, key, (double)json_integer_value(a), 1, TOWER_MAX_WIDTH, r->hf->err);
}

static bool read_act(struct tower_reader *r, const json_t *object, const char *key, enum tower_act *out)
{
	static const struct {
		const char *names;
		enum tower_act act;
	} acts[] = { { "gelu gelu_python", TOWER_GELU },
		     { "gelu_pytorch_tanh gelu_python_tanh gelu_new gelu_fast", TOWER_GELU_TANH },
		     { "quick_gelu", TOWER_GELU_QUICK },
		     { "silu swish", TOWER_SILU } };
	const char *name = NULL;

	if (!hf_get_string(r->hf, object, key, &name) || !name)
		return !name && r->hf->err->code == ERROR_NONE;
	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
		if (arch_word_in(acts[i].names, name)) {
			*out = acts[i].act;
			return true;
		}
	return hf_unsupported(r->hf, key, name, "gelu, gelu_pytorch_tanh, quick_gelu or silu");
}

static bool read_eps(struct tower_reader *r, const json_t *object, const char *key, double *out)
{
	return hf_get_f64(r->hf, object, key, out) && hparam_range(r->hf->label, key, *out, 1e-30, 1, r->hf->err);
}

static bool read_flag(struct tower_reader *r, const json_t *object, const char *key, uint32_t flag)
{
	bool on = r->s->flags & flag;

	if (!hf_get_bool(r->hf, object, key, &on))
		return false;
	r->s->flags = on ? r->s->flags | flag : r->s->flags & ~flag;
	return true;
}

/* A field that may have one value only. */
static bool check_word(struct tower_reader *r, const json_t *object, const char *key, const char *only)
{
	const char *word = NULL;

	return hf_get_string(r->hf, object, key, &word) &&
	       (!word || strcmp(word, only) == 0 || hf_unsupported(r->hf, key, word, only));
}

/* Behind which layer the features are taken: -1 is the last one, 0 none. */
static bool read_feature_layer(struct tower_reader *r, int usual)
{
	const json_t *v = hf_get(r->hf, outer_of(r), "vision_feature_layer");
	double layer = usual;

	if (v && !json_is_integer(v))
		return hf_wrong_kind(r->hf, "vision_feature_layer", v, "one layer");
	if (v)
		layer = (double)json_integer_value(v);
	if (!hparam_range(r->hf->label, "vision_feature_layer", layer, -(double)r->s->layers - 1, r->s->layers,
	                  r->hf->err))
		return false;
	r->s->layers = (uint32_t)(layer < 0 ? r->s->layers + 1 + layer : layer);
	return true;
}

/* The angles by which rows and columns rotate. */
static bool read_theta_of(struct tower_reader *r, double usual)
{
	const json_t *rope = hf_get(r->hf, r->hf->root, "rope_parameters");
	const char *type = NULL;

	r->s->theta = usual;
	if (rope && !json_is_object(rope))
		return hf_wrong_kind(r->hf, "rope_parameters", rope, "an object");
	if (rope && (!hf_get_string(r->hf, rope, "rope_type", &type) ||
	             (type && !arch_word_in("default axial", type) &&
	              !hf_unsupported(r->hf, "rope_type of vision_config", type, "default or axial"))))
		return false;
	return (!rope || hf_get_f64(r->hf, rope, "rope_theta", &r->s->theta)) &&
	       hf_get_f64(r->hf, r->hf->root, "rope_theta", &r->s->theta) &&
	       hparam_range(r->hf->label, "rope_theta", r->s->theta, 1, 1e12, r->hf->err);
}

static bool read_theta(struct tower_reader *r) { return read_theta_of(r, 10000); }

/* ---- what most families have */

static bool read_sizes(struct tower_reader *r)
{
	struct tower_spec *s = r->s;

	s->frames = s->merge = 1;
	return read_number(r, "hidden_size", TOWER_MAX_WIDTH, &s->hidden) &&
	       read_number(r, "intermediate_size", TOWER_MAX_WIDTH, &s->ffn) &&
	       read_number(r, "num_hidden_layers", TOWER_MAX_LAYERS, &s->layers) &&
	       read_number(r, "num_attention_heads", TOWER_MAX_WIDTH, &s->heads) &&
	       read_number(r, "num_channels", 16, &s->channels) && read_side(r, "patch_size", &s->patch) &&
	       read_act(r, r->hf->root, "hidden_act", &s->act);
}

static bool read_square(struct tower_reader *r)
{
	struct tower_spec *s = r->s;
	uint32_t size = 0;

	if (!read_side(r, "image_size", &size) || !read_eps(r, r->hf->root, "layer_norm_eps", &s->eps))
		return false;
	s->side = s->max = size / s->patch;
	return hparam_range(r->hf->label, "image_size / patch_size", s->side, 1, TOWER_MAX_SIDE, r->hf->err);
}

static bool tower_read_llava(struct tower_reader *r)
{
	return read_sizes(r) && read_square(r) && read_feature_layer(r, -2) &&
	       read_act(r, outer_of(r), "projector_hidden_act", &r->s->out_act) &&
	       read_flag(r, outer_of(r), "multimodal_projector_bias", TOWER_OUT_BIAS) &&
	       check_word(r, outer_of(r), "vision_feature_select_strategy", "default");
}

static bool tower_read_idefics(struct tower_reader *r)
{
	if (!read_sizes(r) || !read_square(r))
		return false;
	r->s->merge = 2;
	return hf_get_u32(r->hf, outer_of(r), "scale_factor", OPTIONAL, TOWER_MAX_SIDE, &r->s->merge) &&
	       hparam_range(r->hf->label, "scale_factor", r->s->merge, 1, r->s->side, r->hf->err);
}

static bool tower_read_gemma(struct tower_reader *r)
{
	struct tower_spec *s = r->s;
	uint32_t tokens = 256, side = 1;

	if (!read_sizes(r) || !read_square(r) ||
	    !hf_get_u32(r->hf, outer_of(r), "mm_tokens_per_image", OPTIONAL, 1 << 20, &tokens))
		return false;
	while ((side + 1) * (side + 1) <= tokens)
		side++;
	if (side * side != tokens || s->side % side)
		return error_set(r->hf->err, ERROR_FORMAT,
		                 "%s: mm_tokens_per_image is %" PRIu32
		                 ", expected the square of a divisor of image_size / patch_size %" PRIu32,
		                 r->hf->label, tokens, s->side);
	s->merge = s->side / side;
	s->out_eps = s->eps;
	return true;
}

/* A number that another one decides. */
static bool check_same(struct tower_reader *r, const char *key, uint32_t only)
{
	uint32_t v = only;

	return hf_get_u32(r->hf, r->hf->root, key, OPTIONAL, TOWER_MAX_WIDTH, &v) &&
	       (v == only ||
	        error_set(r->hf->err, ERROR_UNSUPPORTED, "%s: %s of vision_config is %" PRIu32 ", expected %" PRIu32,
	                  r->hf->label, key, v, only));
}

static bool tower_read_gemma4(struct tower_reader *r)
{
	struct tower_spec *s = r->s;
	const json_t *text = json_object_get(outer_of(r), "text_config");
	uint32_t positions = 0, pad = 0;
	bool bias = false;

	s->channels = 3;
	s->frames = 1;
	if (!read_number(r, "hidden_size", TOWER_MAX_WIDTH, &s->hidden) ||
	    !read_number(r, "intermediate_size", TOWER_MAX_WIDTH, &s->ffn) ||
	    !read_number(r, "num_hidden_layers", TOWER_MAX_LAYERS, &s->layers) ||
	    !read_number(r, "num_attention_heads", TOWER_MAX_WIDTH, &s->heads) ||
	    !check_same(r, "num_key_value_heads", s->heads) || !check_same(r, "head_dim", s->hidden / s->heads) ||
	    !read_number(r, "patch_size", 1024, &s->patch) ||
	    !read_number(r, "pooling_kernel_size", TOWER_MAX_SIDE, &s->merge) ||
	    !read_number(r, "position_embedding_size", 1 << 20, &positions) ||
	    !read_act(r, r->hf->root, "hidden_activation", &s->act) ||
	    !read_eps(r, r->hf->root, "rms_norm_eps", &s->eps) || !read_theta_of(r, 100) ||
	    !hf_get_bool(r->hf, r->hf->root, "attention_bias", &bias) ||
	    !read_flag(r, r->hf->root, "use_clipped_linears", TOWER_CLIPPED) ||
	    !read_flag(r, r->hf->root, "standardize", TOWER_STANDARD))
		return false;
	if (bias)
		return hf_unsupported(r->hf, "attention_bias of vision_config", "true", "false");
	/* layers with inputs of a token's own take the padding token's for features */
	if (text && json_is_integer(json_object_get(text, "pad_token_id")) &&
	    (!hf_get_u32(r->hf, text, "pad_token_id", OPTIONAL, INT32_MAX, &pad) ||
	     !hparam_limit(r->hf->label, "pad_token_id of text_config", pad, 0, 0, r->hf->err)))
		return false;
	s->out_eps = s->eps;
	s->side = positions;
	s->max = positions < TOWER_MAX_SIDE ? positions : TOWER_MAX_SIDE;
	return true;
}

static bool tower_read_internvl(struct tower_reader *r)
{
	struct tower_spec *s = r->s;
	const json_t *c = r->hf->root;
	double ratio = 0.5;
	bool positions = true, mean = true;

	s->out_eps = 1e-5;
	if (!read_sizes(r) || !read_square(r) || !read_feature_layer(r, -1) ||
	    !hf_get_f64(r->hf, outer_of(r), "downsample_ratio", &ratio) ||
	    !read_act(r, outer_of(r), "projector_hidden_act", &s->out_act) ||
	    !check_word(r, outer_of(r), "vision_feature_select_strategy", "default") ||
	    !check_word(r, c, "norm_type", "layer_norm") || !read_flag(r, c, "attention_bias", TOWER_QKV_BIAS) ||
	    !hf_get_bool(r->hf, c, "use_absolute_position_embeddings", &positions) ||
	    !hf_get_bool(r->hf, c, "use_mean_pooling", &mean))
		return false;
	if (!positions || !mean)
		return error_set(r->hf->err, ERROR_UNSUPPORTED, "%s: %s is false, expected true", r->hf->label,
		                 positions ? "use_mean_pooling" : "use_absolute_position_embeddings");
	s->merge = ratio > 0 && ratio <= 1 ? (uint32_t)(1 / ratio) : 0;
	return (s->merge && s->merge <= s->side && s->merge * ratio == 1) ||
	       error_set(r->hf->err, ERROR_UNSUPPORTED, "%s: downsample_ratio is %.9g, expected 1, 1/2, 1/3 and so on",
	                 r->hf->label, ratio);
}

static bool tower_read_pixtral(struct tower_reader *r)
{
	struct tower_spec *s = r->s;
	const json_t *text = json_object_get(outer_of(r), "text_config");
	uint32_t size = 0, head = 0;

	const json_t *type = json_object_get(outer_of(r), "model_type");
	const bool is_llava = json_is_text(type) && strcmp(json_string_value(type), "llava") == 0;

	s->eps = 1e-5;
	if (is_llava) {
		s->end = END_MLP;
		s->flags |= TOWER_NO_OUT_NORM | TOWER_OUT_BIAS;
	}
	s->out_eps = 1e-6; /* MistralConfig's, where it is left out */
	if (!read_sizes(r) || !read_side(r, "image_size", &size) || !read_theta(r) || !read_feature_layer(r, -1) ||
	    !hf_get_u32(r->hf, r->hf->root, "head_dim", OPTIONAL, TOWER_MAX_WIDTH, &head) ||
	    !read_act(r, outer_of(r), "projector_hidden_act", &s->out_act) ||
	    !read_flag(r, outer_of(r), "multimodal_projector_bias", TOWER_OUT_BIAS) ||
	    !read_eps(r, text, "rms_norm_eps", &s->out_eps))
		return false;
	s->merge = is_llava ? 1 : 2;
	if ((is_llava && !check_word(r, outer_of(r), "vision_feature_select_strategy", "full")) ||
	    !hf_get_u32(r->hf, outer_of(r), "spatial_merge_size", OPTIONAL, TOWER_MAX_SIDE, &s->merge) ||
	    !hparam_range(r->hf->label, "spatial_merge_size", s->merge, 1, TOWER_MAX_SIDE, r->hf->err))
		return false;
	if (head && head != s->hidden / s->heads)
		return error_set(r->hf->err, ERROR_UNSUPPORTED,
		                 "%s: head_dim of vision_config is %" PRIu32 ", expected hidden_size / "
		                 "num_attention_heads, which is %" PRIu32,
		                 r->hf->label, head, s->hidden / s->heads);
	s->max = size / s->patch;
	return hparam_range(r->hf->label, "image_size / patch_size", s->max, 1, TOWER_MAX_SIDE, r->hf->err);
}

static bool tower_read_lfm(struct tower_reader *r)
{
	struct tower_spec *s = r->s;
	uint32_t patches = 0;
	bool norm = true;

	s->flags |= TOWER_OUT_BIAS;
	s->out_eps = 1e-5;
	if (!read_sizes(r) || !read_number(r, "num_patches", 1 << 20, &patches) ||
	    !read_eps(r, r->hf->root, "layer_norm_eps", &s->eps) || !read_feature_layer(r, -1) ||
	    !read_act(r, outer_of(r), "projector_hidden_act", &s->out_act) ||
	    !read_flag(r, outer_of(r), "projector_bias", TOWER_OUT_BIAS) ||
	    !hf_get_bool(r->hf, outer_of(r), "projector_use_layernorm", &norm))
		return false;
	if (!norm)
		s->flags |= TOWER_NO_OUT_NORM;
	for (s->side = 1; (s->side + 1) * (s->side + 1) <= patches;)
		s->side++;
	if (s->side * s->side != patches)
		return error_set(r->hf->err, ERROR_FORMAT, "%s: num_patches is %" PRIu32 ", expected a square",
		                 r->hf->label, patches);
	s->merge = 2;
	return hf_get_u32(r->hf, outer_of(r), "downsample_factor", OPTIONAL, TOWER_MAX_SIDE, &s->merge) &&
	       hparam_range(r->hf->label, "downsample_factor", s->merge, 1, TOWER_MAX_SIDE, r->hf->err);
}

/* ---- Qwen's */

/* A list of layers; NULL: the file has none. */
static bool read_layers(struct tower_reader *r, const char *key, uint32_t max, uint32_t *layer, uint32_t *n)
{
	const json_t *list = hf_get(r->hf, r->hf->root, key);

	if (list && !json_is_array(list))
		return hf_wrong_kind(r->hf, key, list, "a list of layers");
	if (!hparam_limit(r->hf->label, key, (double)json_array_size(list), 0, max, r->hf->err))
		return false;
	for (*n = 0; *n < json_array_size(list); ++*n) {
		const json_t *v = json_array_get(list, *n);
		if (!json_is_integer(v))
			return hf_wrong_kind(r->hf, key, v, "the number of a layer");
		if (!hparam_range(r->hf->label, key, (double)json_integer_value(v), 0, r->s->layers - 1.0, r->hf->err))
			return false;
		layer[*n] = (uint32_t)json_integer_value(v);
	}
	return true;
}

static bool read_windows(struct tower_reader *r)
{
	struct tower_spec *s = r->s;
	uint32_t size = 0, layer[TOWER_MAX_LAYERS], n;

	if (!read_number(r, "window_size", TOWER_MAX_WIDTH, &size) ||
	    !read_layers(r, "fullatt_block_indexes", TOWER_MAX_LAYERS, layer, &n))
		return false;
	s->window = size / s->merge / s->patch;
	for (uint32_t i = 0; i < n; i++)
		s->sees_all[layer[i]] = true;
	return hparam_range(r->hf->label, "window_size / (spatial_merge_size * patch_size)", s->window, 1,
	                    TOWER_MAX_SIDE, r->hf->err);
}

/* The one of Qwen2-VL calls its width embed_dim, and the text model's hidden_size. */
static bool read_qwen2_width(struct tower_reader *r)
{
	struct tower_spec *s = r->s;
	double ratio = 4;

	if (!read_number(r, "embed_dim", TOWER_MAX_WIDTH, &s->hidden) ||
	    !hf_get_f64(r->hf, r->hf->root, "mlp_ratio", &ratio) ||
	    !hparam_range(r->hf->label, "mlp_ratio", ratio, 1e-3, 100, r->hf->err))
		return false;
	s->ffn = (uint32_t)(s->hidden * ratio);
	return true;
}

static bool tower_read_qwen(struct tower_reader *r)
{
	struct tower_spec *s = r->s;
	const bool is_first = json_object_get(r->hf->root, "embed_dim") != NULL;
	uint32_t positions = 0;

	s->eps = s->out_eps = 1e-6;
	if (!(is_first ? read_qwen2_width(r)
	               : read_number(r, "hidden_size", TOWER_MAX_WIDTH, &s->hidden) &&
	                         read_number(r, "intermediate_size", TOWER_MAX_WIDTH, &s->ffn)) ||
	    !read_number(r, "depth", TOWER_MAX_LAYERS, &s->layers) ||
	    !read_number(r, "num_heads", TOWER_MAX_WIDTH, &s->heads) ||
	    !read_number(r, "in_channels", 16, &s->channels) || !read_number(r, "patch_size", 1024, &s->patch) ||
	    !read_number(r, "spatial_merge_size", TOWER_MAX_SIDE, &s->merge) ||
	    !read_number(r, "temporal_patch_size", 16, &s->frames) ||
	    !read_number(r, is_first ? "hidden_size" : "out_hidden_size", TOWER_MAX_WIDTH, &s->out) ||
	    !read_act(r, r->hf->root, "hidden_act", &s->act) || !read_theta(r))
		return false;
	if (s->row->positions == POSITIONS_CORNERS) {
		if (!read_number(r, "num_position_embeddings", 1 << 24, &positions))
			return false;
		for (s->side = 1; (s->side + 1) * (s->side + 1) <= positions;)
			s->side++;
		if (s->side * s->side != positions)
			return error_set(r->hf->err, ERROR_FORMAT,
			                 "%s: num_position_embeddings is %" PRIu32 ", expected a square", r->hf->label,
			                 positions);
	}
	if (s->flags & TOWER_GATED && !read_windows(r))
		return false;
	return !s->row->name[TOWER_DEEP_1] ||
	       read_layers(r, "deepstack_visual_indexes", TOWER_MAX_DEEP, s->deep, &s->n_deep);
}

/* ---- the table */

static const struct tower_row rows[] = {
#include "vision/families.def"
};

const struct tower_row *tower_row_of(const char *type, const char *inner)
{
	const struct tower_row *first = NULL;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!arch_word_in(rows[i].types, type))
			continue;
		if (inner && arch_word_in(rows[i].inner, inner))
			return &rows[i];
		first = first ? first : &rows[i];
	}
	return first;
}

bool tower_check_heads(const struct tower_spec *s, const char *label, const char *key, struct error *err)
{
	const uint32_t max = s->row->rotation ? 4 : 1;

	return s->hidden % s->heads == 0 && s->hidden / s->heads % max == 0
	               ? true
	               : error_set(err, ERROR_FORMAT,
	                           "%s: %s is %" PRIu32 ", expected %" PRIu32 " heads of a multiple of %" PRIu32
	                           " numbers",
	                           label, key, s->hidden, s->heads, max);
}

/* Newer classes call it an id, older ones an index. */
static bool read_image_token(struct tower_reader *r)
{
	uint32_t token = r->s->row->image_token;

	if (!hf_get_u32(r->hf, outer_of(r), "image_token_index", OPTIONAL, INT32_MAX, &token) ||
	    !hf_get_u32(r->hf, outer_of(r), "image_token_id", OPTIONAL, INT32_MAX, &token))
		return false;
	r->s->image_token = (int32_t)token;
	return token || error_set(r->hf->err, ERROR_FORMAT, "%s: image_token_id is missing", r->hf->label);
}

static bool read_vision(struct tower_reader *r)
{
	struct hf_reader *hf = r->hf;
	struct tower_spec *s = r->s;
	const char *inner = NULL;

	if (!hf_get_string(hf, hf->root, "model_type", &inner))
		return false;
	if (inner && !arch_word_in(s->row->inner, inner))
		return hf_unsupported(hf, "model_type of vision_config", inner, s->row->inner);
	s->flags = s->row->flags;
	s->act = s->row->act;
	s->out_act = s->row->out_act;
	s->end = s->row->end;
	return hf_put_defaults(hf) && s->row->read(r) &&
	       tower_check_heads(s, hf->label, "the width of vision_config", hf->err) && read_image_token(r) &&
	       hf_check_unread(hf, hf->root, hf->read, "vision_config", ".");
}

static bool read_outer(struct hf_reader *hf, struct tower_spec *s)
{
	json_t *outer = hf->root, *vision = json_object_get(outer, "vision_config");
	const char *type = NULL;
	char text[60];

	if (!json_is_object(outer))
		return hf_wrong_kind(hf, "its content", outer, "an object");
	if (!hf_get_string(hf, outer, "model_type", &type))
		return false;
	const json_t *inner = json_object_get(vision, "model_type");
	s->row = type ? tower_row_of(type, json_is_text(inner) ? json_string_value(inner) : NULL) : NULL;
	if (!s->row || !json_is_object(vision))
		return error_set(hf->err, ERROR_UNSUPPORTED,
		                 "%s: a model of type %s has no image encoder that jitrun reads", hf->label,
		                 type ? error_quote(text, sizeof text, type, strlen(type)) : "null");
	hf->row = &s->row->fields;
	hf->root = vision;
	struct tower_reader r = { .hf = hf, .outer = outer, .s = s };
	return read_vision(&r);
}

bool tower_read_config(struct tower_spec *s, struct model *m, struct error *err)
{
	const struct file *config = &m->file->config;
	struct hf_reader hf = { .m = m, .label = config->label, .err = err };

	*s = (struct tower_spec){ 0 };
	json_t *document = hf.root = json_read(config->base, config->size, JSON_MAX_CONFIG, config->label, err);
	if (!document)
		return false;
	hf.read = json_object();
	hf.read_within = json_object();
	const bool ok = hf.read && hf.read_within
	                        ? read_outer(&hf, s)
	                        : error_set(err, ERROR_MEMORY, "%s: no memory for its fields", config->label);
	json_decref(hf.read);
	json_decref(hf.read_within);
	json_decref(document);
	return ok;
}

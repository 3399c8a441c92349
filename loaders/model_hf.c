/* loaders/model_hf.c - hyperparameters out of config.json, as transformers 4 writes it (rope_theta, rope_scaling,
 * torch_dtype) and as transformers 5 does (rope_parameters, dtype).
 *
 * Owns: the meaning of its fields and their defaults, which are those of the transformers classes. null counts as
 * absent.
 * Never: accepts a number of the wrong kind or out of range, or a field that might change the computation and that
 * nothing here asks for (hf_check_unread).
 */
#include "loaders/json_read.h"
#include "loaders/model_hf_fields.h"
#include "loaders/tokenizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* architectures names the class the weights were saved from: the same layers end in other things in other classes. */
static bool check_classes(struct hf_reader *r)
{
	const json_t *list = hf_get(r, r->root, "architectures"), *one;
	char text[60];
	size_t i;

	if (!list)
		return true;
	if (!json_is_array(list))
		return hf_wrong_kind(r, "architectures", list, "an array");
	json_array_foreach(list, i, one)
	{
		if (!json_is_text(one))
			return hf_wrong_kind(r, "an element of architectures", one, "a string");
		const char *name = json_string_value(one);
		if (!arch_word_in(r->row->classes, name))
			return error_set(
				r->err, ERROR_UNSUPPORTED,
				"%s: architectures names %s, which is no model that continues a text as %.*s does",
				r->label, error_quote(text, sizeof text, name, strlen(name)),
				(int)strcspn(r->row->classes, " "), r->row->classes);
	}
	return true;
}

static bool check_quantised(struct hf_reader *r)
{
	static const char *const fields[] = { "quantization_config", "quantization" };
	const char *method = NULL;
	char text[60];

	for (int i = 0; i < 2; i++) {
		const json_t *o = hf_get(r, r->root, fields[i]);
		if (!o)
			continue;
		if (json_is_object(o) && !hf_get_string(r, o, "quant_method", &method))
			return false;
		return error_set(
			r->err, ERROR_UNSUPPORTED,
			"%s: has a %s%s%s, expected unquantised weights; quantised models are read from GGUF files",
			r->label, fields[i], method ? " of method " : "",
			method ? error_quote(text, sizeof text, method, strlen(method)) : "");
	}
	return true;
}

static bool read_row(struct hf_reader *r)
{
	const char *type = NULL;
	char text[60], names[200];

	if (!hf_get_string(r, r->root, "model_type", &type))
		return false;
	if (!type)
		return error_set(r->err, ERROR_FORMAT, "%s: model_type is missing", r->label);
	r->row = arch_of_hf(type);
	if (!r->row)
		return hf_unsupported(r, "model_type", type, arch_names(false, names, sizeof names));
	if (r->row->lacks)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: model_type is \"%s\", which needs what jitrun does not have: %s", r->label,
		                 error_quote(text, sizeof text, type, strlen(type)), r->row->lacks);
	r->m->file->arch = r->row;
	r->m->spec.form = r->row->form;
	r->m->file->arch_name = strdup(type);
	return r->m->file->arch_name ||
	       error_set(r->err, ERROR_MEMORY, "%s: no memory for the model's description", r->label);
}

static bool read_arch(struct hf_reader *r)
{
	const char *act = NULL, *gate = NULL;
	double partial = 1;

	if (!read_row(r) || !check_classes(r) || !hf_get_string(r, r->root, "hidden_act", &act) ||
	    !hf_get_string(r, r->root, "activation", &gate))
		return false;
	if (gate && strcmp(gate, "swiglu") != 0) /* Falcon 3 says it beside hidden_act */
		return hf_unsupported(r, "activation", gate, "swiglu");
	if (act && strcmp(act, "silu") != 0 && strcmp(act, "swish") != 0)
		return hf_unsupported(r, "hidden_act", act, "silu");
	if (!check_quantised(r) || !hf_get_f64(r, r->root, "partial_rotary_factor", &partial))
		return false;
	return partial == 1 ||
	       error_set(r->err, ERROR_UNSUPPORTED,
	                 "%s: partial_rotary_factor is %.9g, expected 1 (partial rotation is not supported)", r->label,
	                 partial);
}

static bool check_stated(struct hf_reader *r)
{
	char name[60];
	int n;

	for (const char *p = r->row->stated ? r->row->stated : ""; sscanf(p, " %59s%n", name, &n) == 1; p += n)
		if (!hf_get(r, r->root, name))
			return error_set(r->err, ERROR_FORMAT, "%s: %s is missing", r->label, name);
	return true;
}

static bool read_sizes(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	const json_t *c = r->root;
	double eps = 1e-6;

	if (!hf_get_u32(r, c, "num_hidden_layers", REQUIRED, MODEL_MAX_LAYERS, &s->layers) ||
	    !hf_get_u32(r, c, "hidden_size", REQUIRED, MODEL_MAX_WIDTH, &s->hidden) ||
	    !hf_get_u32(r, c, "intermediate_size", REQUIRED, MODEL_MAX_WIDTH, &s->ffn) ||
	    !hf_get_u32(r, c, "vocab_size", REQUIRED, INT32_MAX, &s->vocab) ||
	    !hf_get_u32(r, c, "num_attention_heads", REQUIRED, MODEL_MAX_HEADS, &s->heads))
		return false;
	s->kv_heads = s->heads;
	s->context_train = 2048;
	if (!hf_get_u32(r, c, "num_key_value_heads", OPTIONAL, MODEL_MAX_HEADS, &s->kv_heads) ||
	    !hf_get_u32(r, c, "max_position_embeddings", OPTIONAL, UINT32_MAX, &s->context_train) ||
	    !hf_get_f64(r, c, "rms_norm_eps", &eps))
		return false;
	if (!hparam_range(r->label, "num_attention_heads", s->heads, 1, MODEL_MAX_HEADS, r->err) ||
	    !hparam_range(r->label, "rms_norm_eps", eps, 1e-30, 1, r->err))
		return false;
	s->norm_eps = (float)eps;
	if (!check_stated(r))
		return false;
	bool given = hf_get(r, c, "head_dim") != NULL;
	s->head_dim = r->row->head_dim ? r->row->head_dim : s->hidden / s->heads;
	if (!given && !r->row->head_dim && s->hidden % s->heads)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: hidden_size is %" PRIu32 ", expected a multiple of num_attention_heads %" PRIu32,
		                 r->label, s->hidden, s->heads);
	return hf_get_u32(r, c, "head_dim", OPTIONAL, MODEL_MAX_HEAD_DIM, &s->head_dim);
}

static bool read_needs(struct hf_reader *r)
{
	struct model_needs *n = &r->m->file->needs;
	const struct arch_row *row = r->row;
	bool bias = false, o_bias = false, mlp_bias = false;

	*n = arch_needs(row, row->hf_pairs);
	n->tied_by_config = row->tied;
	if ((row->bias && !hf_get_bool(r, r->root, row->bias, &bias)) ||
	    (row->o_bias && !hf_get_bool(r, r->root, row->o_bias, &o_bias)) ||
	    (row->mlp_bias && !hf_get_bool(r, r->root, row->mlp_bias, &mlp_bias)) ||
	    !hf_get_bool(r, r->root, "tie_word_embeddings", &n->tied_by_config))
		return false;
	n->group[GROUP_QKV_BIAS] = bias || row->qkv_bias ? NEED_ALWAYS : NEED_NOT;
	n->group[GROUP_O_BIAS] = o_bias ? NEED_ALWAYS : NEED_NOT;
	n->group[GROUP_MLP_BIAS] = mlp_bias ? NEED_ALWAYS : NEED_NOT;
	return true;
}

/* layer_types, or what transformers derives when it is absent: layers from max_window_layers on slide. */
static bool layer_slides(struct hf_reader *r, uint32_t layer, uint32_t max_window_layers, bool *out)
{
	const json_t *types = hf_get(r, r->root, "layer_types");

	if (!types) {
		*out = layer >= max_window_layers;
		return true;
	}
	if (!json_is_array(types) || json_array_size(types) != r->m->spec.layers)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: layer_types is %s of %zu elements, expected an array of %" PRIu32, r->label,
		                 json_kind(types), json_array_size(types), r->m->spec.layers);
	const json_t *type = json_array_get(types, layer);
	if (!json_is_text(type))
		return hf_wrong_kind(r, "an element of layer_types", type, "a string");
	*out = strcmp(json_string_value(type), "sliding_attention") == 0;
	return *out || strcmp(json_string_value(type), "full_attention") == 0 ||
	       hf_unsupported(r, "an element of layer_types", json_string_value(type),
	                      "full_attention or sliding_attention");
}

static bool read_window_per_layer(struct hf_reader *r, uint32_t window)
{
	struct model_spec *s = &r->m->spec;
	uint32_t max_window_layers = 28, sliding = 0;

	if (!hf_get_u32(r, r->root, "max_window_layers", OPTIONAL, UINT32_MAX, &max_window_layers))
		return false;
	uint8_t *slides = r->m->file->layer_is_sliding = calloc(s->layers ? s->layers : 1, 1);
	if (!slides)
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", r->label, s->layers);
	for (uint32_t i = 0; i < s->layers; i++) {
		bool one = false;
		if (!layer_slides(r, i, max_window_layers, &one))
			return false;
		slides[i] = one;
		sliding += one;
	}
	if (window && sliding) {
		s->sliding_window = window;
		s->layer_is_sliding = sliding < s->layers ? slides : NULL;
	}
	return true;
}

static bool read_window(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	uint32_t window = json_object_get(r->root, "sliding_window")
	                          ? 0
	                          : 4096; /* the classes' default; an explicit null means none */
	bool use = false;

	if (r->row->window == WINDOW_IGNORED)
		return true;
	if (!hf_get_u32(r, r->root, "sliding_window", OPTIONAL, UINT32_MAX, &window))
		return false;
	if (hf_get(r, r->root, "sliding_window") && window == 0)
		return error_set(r->err, ERROR_FORMAT, "%s: sliding_window is 0, expected at least 1 or null",
		                 r->label);
	if (r->row->window == WINDOW_ALL_LAYERS) {
		s->sliding_window = window;
		return true;
	}
	if (!hf_get_bool(r, r->root, "use_sliding_window", &use))
		return false;
	return read_window_per_layer(r, use ? window : 0);
}

static bool read_llama3(struct hf_reader *r, const json_t *o)
{
	struct model_rope *rope = &r->m->spec.rope;
	const char *const needed[] = { "factor", "low_freq_factor", "high_freq_factor" };

	for (int i = 0; i < 3; i++)
		if (!hf_get(r, o, needed[i]))
			return error_set(r->err, ERROR_FORMAT, "%s: the rotary scaling llama3 has no %s", r->label,
			                 needed[i]);
	rope->scaling = ROPE_LLAMA3;
	return hf_get_f64(r, o, "low_freq_factor", &rope->low_freq_factor) &&
	       hf_get_f64(r, o, "high_freq_factor", &rope->high_freq_factor);
}

static bool read_yarn(struct hf_reader *r, const json_t *o)
{
	struct model_rope *rope = &r->m->spec.rope;
	double mscale = 0, mscale_all = 0;

	rope->scaling = ROPE_YARN;
	rope->beta_fast = 32;
	rope->beta_slow = 1;
	rope->yarn_truncate = true;
	if (!hf_get(r, o, "factor")) {
		if (rope->original_context == 0)
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: original_max_position_embeddings is 0, expected at least 1", r->label);
		rope->factor = (double)r->m->spec.context_train / rope->original_context;
	}
	if (!hf_get_f64(r, o, "beta_fast", &rope->beta_fast) || !hf_get_f64(r, o, "beta_slow", &rope->beta_slow) ||
	    !hf_get_bool(r, o, "truncate", &rope->yarn_truncate) || !hf_get_f64(r, o, "mscale", &mscale) ||
	    !hf_get_f64(r, o, "mscale_all_dim", &mscale_all))
		return false;
	rope->attention_factor =
		mscale != 0 && mscale_all != 0
			? model_yarn_attention(rope->factor, mscale) / model_yarn_attention(rope->factor, mscale_all)
			: model_yarn_attention(rope->factor, 1.0);
	return hf_get_f64(r, o, "attention_factor", &rope->attention_factor);
}

static bool read_scaling(struct hf_reader *r, const json_t *o)
{
	struct model_rope *rope = &r->m->spec.rope;
	const char *type = NULL;
	double partial = 1;

	if (!hf_get_string(r, o, "type", &type) || !hf_get_string(r, o, "rope_type", &type) ||
	    !hf_get_f64(r, o, "partial_rotary_factor", &partial))
		return false;
	if (partial != 1)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: partial_rotary_factor is %.9g, expected 1 (partial rotation is not supported)",
		                 r->label, partial);
	if (!type || strcmp(type, "default") == 0)
		return true;
	rope->original_context = r->m->spec.context_train;
	if (!hf_get_f64(r, o, "factor", &rope->factor) ||
	    !hf_get_u32(r, o, "original_max_position_embeddings", OPTIONAL, UINT32_MAX, &rope->original_context))
		return false;
	if (strcmp(type, "linear") == 0) {
		rope->scaling = ROPE_LINEAR;
		return hf_get(r, o, "factor") ||
		       error_set(r->err, ERROR_FORMAT, "%s: the rotary scaling linear has no factor", r->label);
	}
	if (strcmp(type, "llama3") == 0)
		return read_llama3(r, o);
	if (strcmp(type, "yarn") == 0)
		return read_yarn(r, o);
	return hf_unsupported(r, "the rotary scaling type", type, "default, linear, llama3 or yarn");
}

static bool read_rope(struct hf_reader *r)
{
	struct model_rope *rope = &r->m->spec.rope;
	const char *key = hf_get(r, r->root, "rope_parameters") ? "rope_parameters" : "rope_scaling";
	json_t *o = hf_get(r, r->root, key);

	rope->dims = r->m->spec.head_dim;
	rope->theta = 10000;
	rope->factor = 1;
	rope->attention_factor = 1;
	if (!hf_get_f64(r, r->root, "rope_theta", &rope->theta))
		return false;
	if (!o)
		return true;
	if (!json_is_object(o))
		return hf_wrong_kind(r, key, o, "an object");
	if (hf_get(r, o, "full_attention") || hf_get(r, o, "sliding_attention"))
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: %s differs between kinds of layers, expected one for all", r->label, key);
	return hf_get_f64(r, o, "rope_theta", &rope->theta) && read_scaling(r, o) &&
	       hf_check_unread(r, o, r->read_within, key, ".");
}

static bool read_fields(struct hf_reader *r)
{
	const char *name = NULL;
	char text[128];

	if (!json_is_object(r->root))
		return hf_wrong_kind(r, "its content", r->root, "an object");
	if (!hf_get_string(r, r->root, "_name_or_path", &name))
		return false;
	r->m->file->model_name = strdup(error_quote(text, sizeof text, name ? name : "", name ? strlen(name) : 0));
	if (!r->m->file->model_name)
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for the model's description", r->label);
	return read_arch(r) && read_sizes(r) && read_needs(r) && read_window(r) && read_rope(r) &&
	       hf_check_unread(r, r->root, r->read, "", "");
}

static json_t *load_object(const struct file *file, struct error *err)
{
	return json_read(file->base, file->size, JSON_MAX_CONFIG, file->label, err);
}

/* eos_token_id: absent, null, one id, or a list of ids. */
static bool read_end_tokens(struct hf_reader *r)
{
	const json_t *v = hf_get(r, r->root, "eos_token_id");
	size_t n = !v ? 0 : json_is_array(v) ? json_array_size(v) : 1;

	for (size_t i = 0; i < n; i++) {
		const json_t *id = json_is_array(v) ? json_array_get(v, i) : v;
		if (!json_is_integer(id))
			return hf_wrong_kind(r, "eos_token_id", id, "a token id or a list of them");
		json_int_t value = json_integer_value(id);
		if (value < 0 || (uint64_t)value >= tokenizer_size(r->m->tokenizer))
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: eos_token_id is %" JSON_INTEGER_FORMAT
			                 ", expected one of the tokenizer's %zu tokens",
			                 r->label, value, tokenizer_size(r->m->tokenizer));
		if (!tokenizer_add_eog(r->m->tokenizer, (int32_t)value, r->err))
			return false;
	}
	return true;
}

bool model_read_end_tokens(struct model *m, struct error *err)
{
	const struct file *files[] = { &m->file->config, &m->file->generation_config };

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (!files[i]->base)
			continue;
		struct hf_reader r = {
			.m = m, .label = files[i]->label, .root = load_object(files[i], err), .err = err
		};
		bool ok = r.root && (!json_is_object(r.root) ? hf_wrong_kind(&r, "its content", r.root, "an object")
		                                             : read_end_tokens(&r));
		json_decref(r.root);
		if (!ok)
			return false;
	}
	return true;
}

bool model_read_config(struct model *m, struct error *err)
{
	const struct file *config = &m->file->config;
	struct hf_reader r = { .m = m, .label = config->label, .err = err };

	r.root = load_object(config, err);
	if (!r.root)
		return false;
	r.read = json_object();
	r.read_within = json_object();
	bool ok = r.read && r.read_within ? read_fields(&r)
	                                  : error_set(err, ERROR_MEMORY, "%s: no memory for its fields", r.label);
	json_decref(r.read);
	json_decref(r.read_within);
	json_decref(r.root);
	return ok;
}

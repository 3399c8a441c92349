/* loaders/model/model_hf.c - hyperparameters out of config.json, as transformers 4 writes it (rope_theta, rope_scaling,
 * torch_dtype) and as transformers 5 does (rope_parameters, dtype).
 *
 * Owns: the meaning of its fields and their defaults, which are those of the transformers classes: what a row lists
 * (arch_row.defaults), else what the reader of a field starts from. null counts as absent, but where a class has it as
 * a value.
 * Never: accepts a number of the wrong kind or out of range, or a field that might change the computation and that
 * nothing here asks for (hf_check_unread).
 */
#include "base/json_read.h"
#include "loaders/model/model_hf_fields.h"
#include "loaders/tokenizer/tokenizer.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SWIGLU_LIMIT = 7 };

/* architectures names the class the weights were saved from: the same layers end in other things in other classes. */
static bool check_classes(struct hf_reader *r, json_t *root, const char *classes)
{
	const json_t *list = hf_get(r, root, "architectures"), *one;
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
		if (r->row && r->row->encoder && r->row->encoder->ranks && strcmp(r->row->encoder->ranks, name) == 0)
			r->m->file->ranks = true;
		if (!arch_word_in(classes, name))
			return error_set(
				r->err, ERROR_UNSUPPORTED,
				"%s: architectures names %s, which is no model that continues a text as %.*s does",
				r->label, error_quote(text, sizeof text, name, strlen(name)),
				(int)strcspn(classes, " "), classes);
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
	r->row = arch_of_hf(hf_row_name(r, type));
	snprintf(names, sizeof names, "%.100s_text", type);
	if (!r->row && r->m->file->wrapped) /* both parts' fields are in one object */
		r->row = arch_of_hf(names);
	if (!r->row)
		return hf_unsupported(r, "model_type", type, arch_names(false, names, sizeof names));
	if (r->row->lacks)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: model_type is \"%s\", which needs what jitrun does not have: %s", r->label,
		                 error_quote(text, sizeof text, type, strlen(type)), r->row->lacks);
	r->m->file->arch = r->row;
	model_take_row(&r->m->spec, r->row);
	r->m->file->arch_name = strdup(type);
	return r->m->file->arch_name ||
	       error_set(r->err, ERROR_MEMORY, "%s: no memory for the model's description", r->label);
}

/* The words for each activation function; of the first a message speaks. */
static const char *const act_names[] = {
	[MODEL_SILU] = "silu swish",
	[MODEL_GELU] = "gelu_pytorch_tanh gelu_python_tanh gelu_new gelu_fast",
	[MODEL_RELU2] = "relu2",
	[MODEL_SWIGLU_OAI] = "silu swish",
	[MODEL_GELU_ERF] = "gelu gelu_python",
	[MODEL_RELU] = "relu",
	[MODEL_XIELU] = "xielu"
};

static bool check_act(struct hf_reader *r, const char *field)
{
	const char *names = act_names[r->row->act], *act = NULL;
	char usual[40];

	if (!hf_get_string(r, r->root, field, &act))
		return false;
	if (!act || arch_word_in(names, act))
		return true;
	snprintf(usual, sizeof usual, "%.*s", (int)strcspn(names, " "), names);
	return hf_unsupported(r, field, act, usual);
}

/* The first Gemma's files name the exact GELU and were made with its approximation; later classes do not use this field
 * but another one. */
static bool read_act(struct hf_reader *r)
{
	const char *act = NULL;

	if (r->row->gelu_said) {
		if (!hf_get_string(r, r->root, "hidden_act", &act))
			return false;
		r->m->spec.act = act && arch_word_in(act_names[MODEL_GELU_ERF], act) ? MODEL_GELU_ERF : r->row->act;
		return r->m->spec.act == MODEL_GELU_ERF || check_act(r, "hidden_act");
	}
	if (r->row->act == MODEL_GELU_ERF) {
		if (!hf_get_string(r, r->root, "hidden_act", &act) ||
		    !hf_get_string(r, r->root, "hidden_activation", &act))
			return false;
		if (act && arch_word_in(act_names[MODEL_GELU], act))
			r->m->spec.act = MODEL_GELU;
		return r->m->spec.act == MODEL_GELU ||
		       (check_act(r, "hidden_act") && check_act(r, "hidden_activation"));
	}
	if (r->row->act != MODEL_GELU)
		return check_act(r, "hidden_act");
	if (!hf_get_string(r, r->root, "hidden_act", &act) || !check_act(r, "hidden_activation"))
		return false;
	return arch_word_in(r->row->fields, "hidden_act") || (act && strcmp(act, "gelu") == 0) ||
	       check_act(r, "hidden_act");
}

/* One default, "NAME|NAME...=VALUE": for the first name, where the file has none of them. */
static bool put_default(struct hf_reader *r, const char *word, size_t n)
{
	const size_t names = strcspn(word, "=");
	char name[60], first[60] = "";
	size_t length;

	assert(names < n);
	for (size_t at = 0; at < names; at += length + 1) {
		length = strcspn(word + at, "|=");
		snprintf(name, sizeof name, "%.*s", (int)length, word + at);
		const json_t *v = json_object_get(r->root, name);
		if (v && !json_is_null(v) &&
		    !(at && strncmp(name, "rope", 4) == 0 && json_is_object(v) && json_object_size(v) == 0))
			return true;
		if (at == 0)
			memcpy(first, name, sizeof first);
		else if (strcmp(name, "null") == 0 && json_object_get(r->root, first))
			return true;
	}
	json_t *value = json_read(word + names + 1, n - names - 1, n, r->label, r->err);
	return value && (json_object_set_new(r->root, first, value) == 0 ||
	                 error_set(r->err, ERROR_MEMORY, "%s: no memory for its fields", r->label));
}

static bool put_words(struct hf_reader *r, const char *words)
{
	size_t n;

	for (const char *p = words ? words : ""; *p; p += n) {
		p += strspn(p, " ");
		n = strcspn(p, " ");
		if (n && !put_default(r, p, n))
			return false;
	}
	return true;
}

bool hf_put_defaults(struct hf_reader *r) { return put_words(r, r->row->defaults); }

/* Where gates are cut: a number of the class's, which files repeat. */
static bool check_limit(struct hf_reader *r)
{
	double limit = SWIGLU_LIMIT;

	return r->row->act != MODEL_SWIGLU_OAI ||
	       (hf_get_f64(r, r->root, "swiglu_limit", &limit) &&
	        (limit == SWIGLU_LIMIT ||
	         error_set(r->err, ERROR_UNSUPPORTED, "%s: swiglu_limit is %.9g, which is not supported, expected %d",
	                   r->label, limit, SWIGLU_LIMIT)));
}

static bool read_arch(struct hf_reader *r)
{
	const char *gate = NULL;

	if (!read_row(r) || !hf_rename_fields(r) || !hf_put_defaults(r) ||
	    !check_classes(r, r->root, r->row->classes) || !hf_get_string(r, r->root, "activation", &gate))
		return false;
	if (gate && strcmp(gate, "swiglu") != 0) /* Falcon 3 says it beside hidden_act */
		return hf_unsupported(r, "activation", gate, "swiglu");
	return read_act(r) && check_limit(r) && hf_read_quants(r, r->root);
}

static bool check_stated(struct hf_reader *r)
{
	char name[60];
	int n;

	for (const char *p = r->row->stated ? r->row->stated : ""; sscanf(p, " %59s%n", name, &n) == 1; p += n) {
		char *other = strchr(name, '|'); /* one of two will do */
		if (other)
			*other++ = 0;
		if (!hf_get(r, r->root, name) && !(other && hf_get(r, r->root, other)))
			return error_set(r->err, ERROR_FORMAT, "%s: %s is missing", r->label, name);
	}
	return true;
}

/* Where layers are one part each, files of transformers 5 leave their number to the list of what they are. */
static bool read_number_of_layers(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	const json_t *kinds = s->one_part ? hf_get(r, r->root, "layers_block_type") : NULL;
	const size_t n = json_array_size(kinds);

	if (!n || hf_get(r, r->root, "num_hidden_layers"))
		return hf_get_u32(r, r->root, "num_hidden_layers", REQUIRED, MODEL_MAX_LAYERS, &s->layers);
	s->layers = (uint32_t)n;
	return hparam_range(r->label, "the length of layers_block_type", (double)n, 1, MODEL_MAX_LAYERS, r->err);
}

/* The sizes of latent attention, of which all heads share one vector. */
static bool read_latent(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	struct model_latent *l = &s->latent;
	const bool depth = r->row->switches & SWITCH_DEPTH_SCALES;

	l->value = depth ? s->hidden / s->heads : 0;
	if (!hf_get_u32(r, r->root, "kv_lora_rank", REQUIRED, MODEL_MAX_WIDTH, &l->rank) ||
	    !hf_get_u32(r, r->root, "q_lora_rank", OPTIONAL, MODEL_MAX_WIDTH, &l->query_rank) ||
	    !hf_get_u32(r, r->root, "qk_nope_head_dim", REQUIRED, MODEL_MAX_HEAD_DIM, &l->rest) ||
	    !hf_get_u32(r, r->root, "qk_rope_head_dim", REQUIRED, MODEL_MAX_HEAD_DIM, &l->rotating) ||
	    !hf_get_u32(r, r->root, "v_head_dim", depth ? OPTIONAL : REQUIRED, MODEL_MAX_HEAD_DIM, &l->value))
		return false;
	if (!hparam_range(r->label, "kv_lora_rank", l->rank, 1, MODEL_MAX_WIDTH, r->err))
		return false;
	s->kv_heads = 1;
	s->head_dim = l->rest + l->rotating;
	return true;
}

static bool read_sizes(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	const json_t *c = r->root;
	if (r->row->routing & ROUTING_AVERAGED && hf_get(r, c, "rms_norm_eps")) /* which says what norms are */
		s->centred = false;
	const char *eps_field = r->row->eps ? r->row->eps : s->centred ? "layer_norm_eps" : "rms_norm_eps";
	double eps = s->centred ? 1e-5 : 1e-6;

	if (!read_number_of_layers(r) || !hf_get_u32(r, c, "hidden_size", REQUIRED, MODEL_MAX_WIDTH, &s->hidden) ||
	    !hf_get_u32(
		    r, c, "intermediate_size",
		    r->row->routing & ROUTING_ALL || r->row->ffn_times || r->row->states_alone ? OPTIONAL : REQUIRED,
		    MODEL_MAX_WIDTH, &s->ffn) ||
	    !hf_get_u32(r, c, "vocab_size", REQUIRED, INT32_MAX, &s->vocab) ||
	    !hf_get_u32(r, c, "num_attention_heads", REQUIRED, MODEL_MAX_HEADS, &s->heads))
		return false;
	if (r->row->switches & SWITCH_LATER_LAYERS &&
	    (!hf_get_u32(r, c, "num_mtp_layers", OPTIONAL, MODEL_MAX_LAYERS, &r->m->file->later_layers) ||
	     !hf_get_u32(r, c, "num_nextn_predict_layers", OPTIONAL, MODEL_MAX_LAYERS, &r->m->file->later_layers)))
		return false;
	if (r->row->states_alone) /* which is what a layer has inside, or nothing */
		s->ffn = 1;
	s->ffn = s->ffn || !r->row->ffn_times ? s->ffn : s->hidden * r->row->ffn_times;
	if (r->row->parallel && !hf_get_bool(r, c, r->row->parallel, &s->parallel))
		return false;
	s->kv_heads = s->heads;
	s->context_train = 2048;
	if (!hf_get_u32(r, c, "num_key_value_heads", OPTIONAL, MODEL_MAX_HEADS, &s->kv_heads))
		return false;
	if (r->row->kv_one && !hf_read_key_heads(r)) /* whatever num_key_value_heads says, as for their classes */
		return false;
	if (!hf_get_u32(r, c, "max_position_embeddings", OPTIONAL, UINT32_MAX, &s->context_train) ||
	    !hf_get_f64(r, c, eps_field, &eps))
		return false;
	if (!hparam_range(r->label, "num_attention_heads", s->heads, 1, MODEL_MAX_HEADS, r->err) ||
	    !hparam_range(r->label, eps_field, eps, 1e-30, 1, r->err))
		return false;
	s->norm_eps = (float)eps;
	if (!check_stated(r))
		return false;
	if (r->row->switches & SWITCH_LATENT)
		return read_latent(r);
	bool given = hf_get(r, c, "head_dim") != NULL;
	s->head_dim = r->row->head_dim ? r->row->head_dim : s->hidden / s->heads;
	if (!given && !r->row->head_dim && s->hidden % s->heads)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: hidden_size is %" PRIu32 ", expected a multiple of num_attention_heads %" PRIu32,
		                 r->label, s->hidden, s->heads);
	const uint32_t usual = s->head_dim;
	if (!hf_get_u32(r, c, "head_dim", OPTIONAL, MODEL_MAX_HEAD_DIM, &s->head_dim))
		return false;
	if (!s->head_dim && r->row->window == WINDOW_ALL_LAYERS && !(r->row->switches & SWITCH_LONG))
		s->head_dim = usual; /* for Mistral's classes 0 is as good as absent */
	return hf_read_layer_heads(r);
}

static bool read_needs(struct hf_reader *r)
{
	struct model_needs *n = &r->m->file->needs;
	const struct arch_row *row = r->row;
	bool bias = row->qkv_bias || row->groups >> GROUP_QKV_BIAS & 1, o_bias = row->groups >> GROUP_O_BIAS & 1,
	     mlp_bias = row->groups >> GROUP_MLP_BIAS & 1;

	*n = arch_needs(row, row->hf_pairs);
	if (row->switches & SWITCH_LATENT && !arch_word_in(row->fields, "rope_interleave") &&
	    !hf_get_bool_or_none(r, "rope_interleave", &n->rope_pairs))
		return false;
	model_low_queries(r->m);
	n->tied_by_config = row->tied;
	n->head_apart = row->switches & SWITCH_ONE_PART &&
	                !row->states_alone; /* whose class ties nothing, whatever the file says */
	if ((row->bias && !hf_get_bool(r, r->root, row->bias, &bias)) ||
	    (row->o_bias && !hf_get_bool(r, r->root, row->o_bias, &o_bias)) ||
	    (row->mlp_bias && !hf_get_bool(r, r->root, row->mlp_bias, &mlp_bias)) ||
	    !hf_get_bool(r, r->root, "tie_word_embeddings", &n->tied_by_config) ||
	    (row->recurrent == MIXER_CONV && !hf_get_bool(r, r->root, "tie_embedding", &n->tied_by_config)))
		return false;
	if (row->head_bias && !hf_get_bool(r, r->root, row->head_bias, &n->head_biased))
		return false;
	n->tied_by_config |= row->encoder != NULL; /* there is no output matrix */
	model_parallel_needs(r->m->file, &r->m->spec);
	if (row->switches & SWITCH_HEAD_NORMS) {
		bool norms = false;
		if (!hf_get_bool(r, r->root, "use_qk_norm", &norms))
			return false;
		n->group[row->head_weights ? GROUP_QK_ROW_NORM : GROUP_QK_NORM] = norms ? NEED_ALWAYS : NEED_NOT;
	}
	/* Nemotron's class in transformers has none whatever the field says, its makers' own has. */
	const enum model_need there = row->switches & SWITCH_ONE_PART ? NEED_IF_PRESENT : NEED_ALWAYS;
	n->group[GROUP_QKV_BIAS] = bias ? there : NEED_NOT;
	n->group[GROUP_O_BIAS] = o_bias ? there : NEED_NOT;
	/* Of a gated layer of Jina's the last matrix alone has one. */
	n->group[GROUP_MLP_BIAS] = !mlp_bias                                  ? NEED_NOT
	                           : row->encoder && row->encoder->alibi != 0 ? NEED_IF_PRESENT
	                                                                      : NEED_ALWAYS;
	return true;
}

/* ---- text models inside others */

/* Of a configuration around the text model's: about its other parts, or said again within. */
static const char outer_fields[] =
	"architectures model_type text_config vision_config tie_word_embeddings image_token_index image_token_id "
	"multimodal_projector_bias projector_hidden_act spatial_merge_size vision_feature_layer boi_token_index "
	"eoi_token_index mm_tokens_per_image video_token_id vision_start_token_id vision_end_token_id "
	"audio_config audio_token_id boa_token_id eoa_token_id boi_token_id eoi_token_id eoa_token_index "
	"vision_soft_tokens_per_image quantization quantization_config image_seq_length "
	"vision_feature_select_strategy downsample_ratio downsample_factor scale_factor projector_bias "
	"projector_hidden_size projector_use_layernorm image_grid_pinpoints vocab_size use_image_special_tokens "
	"encoder_patch_size min_image_tokens max_image_tokens do_image_splitting min_tiles max_tiles tile_size "
	"max_pixels_tolerance use_thumbnail ignore_index";

/* Of Llama's class; configurations around it leave out what is usual. */
static const char llama_defaults[] = "vocab_size=32000 hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
				     "num_attention_heads=32 max_position_embeddings=2048";

static bool check_outer_fields(struct hf_reader *r, json_t *outer)
{
	json_t *known = json_object();
	const char *key;
	json_t *v;
	bool ok = known != NULL;

	json_object_foreach(outer, key, v)
	{
		if (ok && arch_word_in(outer_fields, key))
			ok = json_object_set_new(known, key, json_null()) == 0;
	}
	if (!ok)
		error_set(r->err, ERROR_MEMORY, "%s: no memory for its fields", r->label);
	ok = ok && hf_check_unread(r, outer, known, "", "");
	json_decref(known);
	return ok;
}

/* The text model's own configuration becomes the root, where it is one that runs inside such a model. */
static bool unwrap(struct hf_reader *r)
{
	json_t *outer = r->root, *text = json_object_get(outer, "text_config");
	const json_t *type = json_object_get(outer, "model_type"), *inner = json_object_get(text, "model_type");

	r->m->file->wrapped = json_is_object(json_object_get(outer, "vision_config"));
	if (!json_is_text(type) || !json_is_text(inner))
		return true;
	const struct arch_row *row = arch_of_hf(json_string_value(inner));
	if (!row || row->lacks || !arch_word_in(row->wrapped, json_string_value(type)))
		return true;
	r->row = row;
	r->m->file->wrapped = true;
	if (!check_classes(r, outer, row->wrapped_classes) || !hf_read_quants(r, outer) ||
	    !check_outer_fields(r, outer))
		return false;
	json_t *tied = json_object_get(outer, "tie_word_embeddings");
	if (tied && json_object_set(text, "tie_word_embeddings", tied) != 0)
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for its fields", r->label);
	r->root = text;
	return strcmp(json_string_value(inner), "llama") != 0 || put_words(r, llama_defaults);
}

static bool read_fields(struct hf_reader *r)
{
	const char *name = NULL;
	char text[128];

	if (!json_is_object(r->root))
		return hf_wrong_kind(r, "its content", r->root, "an object");
	if (!unwrap(r) || !hf_get_string(r, r->root, "_name_or_path", &name))
		return false;
	r->m->file->model_name = strdup(error_quote(text, sizeof text, name ? name : "", name ? strlen(name) : 0));
	if (!r->m->file->model_name)
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for the model's description", r->label);
	return read_arch(r) && read_sizes(r) && read_needs(r) && hf_read_mixers(r) && hf_read_experts(r) &&
	       hf_read_window(r) && hf_read_layers(r) && hf_read_rope(r) && hf_read_switches(r) && hf_read_encoder(r) &&
	       hf_check_unread(r, r->root, r->read, "", "");
}

static json_t *load_object(const struct file *file, struct error *err)
{
	return json_read(file->base, file->size, JSON_MAX_CONFIG, file->label, err);
}

/* eos_token_id: absent, null, one id, or a list of ids. */
static bool read_end_tokens(struct hf_reader *r, const json_t *root)
{
	const json_t *v = hf_get(r, root, "eos_token_id");
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
		bool ok = r.root && (!json_is_object(r.root)
		                             ? hf_wrong_kind(&r, "its content", r.root, "an object")
		                             : read_end_tokens(&r, r.root) &&
		                                       (!m->file->wrapped || files[i] != &m->file->config ||
		                                        read_end_tokens(&r, json_object_get(r.root, "text_config"))));
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

	json_t *document = r.root = load_object(config, err);
	if (!document)
		return false;
	r.read = json_object();
	r.read_within = json_object();
	bool ok = r.read && r.read_within ? read_fields(&r)
	                                  : error_set(err, ERROR_MEMORY, "%s: no memory for its fields", r.label);
	json_decref(r.read);
	json_decref(r.read_within);
	json_decref(document);
	return ok;
}

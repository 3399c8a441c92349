/* loaders/adapter/adapter_config.c - the fields of PEFT's adapter_config.json (adapter_config.h).
 *
 * Owns: the list of fields, and what each may be. A field that is not known is refused unless its value turns nothing
 * on. Which modules an adapter has, its tensors say; where the configuration leaves one of them out, it is refused.
 */
#include "loaders/adapter/adapter_config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fields that change nothing that is computed: where the adapter is from, how it was trained or begun, and which
 * modules were looked for, which the tensors show. */
static const char *const harmless[] = {
	"base_model_name_or_path",
	"revision",
	"task_type",
	"inference_mode",
	"lora_dropout",
	"auto_mapping",
	"peft_version",
	"megatron_core",
	"runtime_config",
	"eva_config",
	"velora_config",
	"loftq_config",
	"corda_config",
	"lora_ga_config",
	"qalora_group_size",
	"ensure_weight_tying",
	"fan_in_fan_out",
	"exclude_modules",
	"layers_pattern",
	"peft_type",
	"r",
	"lora_alpha",
	"use_rslora",
	"rank_pattern",
	"alpha_pattern",
	"target_modules",
	"bias",
	"init_lora_weights",
	"layers_to_transform",
	"modules_to_save",
	"target_parameters",
	"alora_invocation_tokens"
};

/* Fields that must be off, and what they would mean. */
static const struct {
	const char *name, *means;
} off[] = {
	{ "lora_bias", "merges of biases" },
	{ "trainable_token_indices", "rows of the embedding" },
	{ "layer_replication", "layers that are used several times" },
	{ "use_qalora", "inputs that are averaged by groups" },
	{ "use_bdlora", "matrices of diagonal blocks" },
	{ "kasa_config", "diagonals between A and B" },
	{ "monteclora_config", "matrices drawn at random" },
	{ "megatron_config", "layers of Megatron" },
	{ "arrow_config", "a choice of adapters by token" },
};

static bool is_off(const json_t *v)
{
	return json_is_null(v) || json_is_false(v) || (json_is_number(v) && json_number_value(v) == 0) ||
	       (json_is_string(v) && !*json_string_value(v)) ||
	       ((json_is_array(v) || json_is_object(v)) && json_array_size(v) + json_object_size(v) == 0);
}

static bool refuse_value(const struct adapter_config *c, const char *name, const json_t *v, const char *expected,
                         struct error *err)
{
	char shown[80];
	char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
	const char *found = text ? text : json_kind(v);

	error_quote(shown, sizeof shown, found, strlen(found));
	free(text);
	return error_set(err, ERROR_UNSUPPORTED, "%s: %s is %s, expected %s", c->label, name, shown, expected);
}

static bool check_field(const struct adapter_config *c, const char *name, const json_t *v, struct error *err)
{
	char shown[80];

	for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
		if (strcmp(name, harmless[i]) == 0)
			return true;
	if (is_off(v) ||
	    (json_is_boolean(v) && (strcmp(name, "use_dora") == 0 || (!c->merges && strcmp(name, "lora_bias") == 0))))
		return true;
	for (size_t i = 0; i < sizeof off / sizeof *off; i++)
		if (strcmp(name, off[i].name) == 0)
			return error_set(err, ERROR_UNSUPPORTED, "%s: %s is set: %s are not done in adapters", c->label,
			                 name, off[i].means);
	error_quote(shown, sizeof shown, name, strlen(name));
	return error_set(err, ERROR_UNSUPPORTED,
	                 "%s: the field %s is not known and might change what the adapter computes", c->label, shown);
}

static bool read_number(const struct adapter_config *c, const char *name, double min, double max, double *out,
                        struct error *err)
{
	const json_t *v = json_object_get(c->root, name);

	if (!v || json_is_null(v))
		return true;
	*out = json_number_value(v);
	if (!json_is_number(v) || !(*out >= min && *out <= max)) {
		char range[80];
		snprintf(range, sizeof range, "a number from %g to %g", min, max);
		return refuse_value(c, name, v, range, err);
	}
	return true;
}

/* Beginnings that change the model's own weights when the adapter is loaded are refused. */
static bool check_beginning(const struct adapter_config *c, struct error *err)
{
	static const char *const may[] = { "gaussian", "eva", "orthogonal", "mica" };
	const json_t *v = json_object_get(c->root, "init_lora_weights");

	if (!v || json_is_null(v) || json_is_boolean(v))
		return true;
	for (size_t i = 0; json_is_string(v) && i < sizeof may / sizeof *may; i++)
		if (strcmp(json_string_value(v), may[i]) == 0)
			return true;
	return refuse_value(c, "init_lora_weights", v, "true, false, gaussian, eva, orthogonal or mica", err);
}

static bool check_parameters(const struct adapter_config *c, struct error *err)
{
	const json_t *v = json_object_get(c->root, "target_parameters");

	return !v || is_off(v) || json_is_array(v) ||
	       refuse_value(c, "target_parameters", v, "a list of names of parameters", err);
}

static bool check_bias(const struct adapter_config *c, struct error *err)
{
	const json_t *v = json_object_get(c->root, "bias");

	static const char *const may[] = { "none", "all", "lora_only" };

	for (size_t i = 0; json_is_string(v) && i < sizeof may / sizeof *may; i++)
		if (strcmp(json_string_value(v), may[i]) == 0)
			return true;
	return !v || json_is_null(v) || refuse_value(c, "bias", v, "none, all or lora_only", err);
}

/* An object whose keys are expressions that name modules and whose values are numbers. */
static bool check_pattern(const struct adapter_config *c, const char *name, struct error *err)
{
	bool bad;
	const json_t *o = json_object_get(c->root, name);
	const char *key;
	json_t *v;

	if (!o || json_is_null(o))
		return true;
	if (!json_is_object(o))
		return refuse_value(c, name, o, "an object", err);
	json_object_foreach((json_t *)(uintptr_t)o, key, v)
	{
		if (!json_is_number(v))
			return refuse_value(c, name, o, "numbers by names of modules", err);
		adapter_names(key, "model.layers.0.self_attn.q_proj", &bad);
		if (bad || !*key)
			return refuse_value(c, name, o,
			                    "names of modules, or expressions of . [] () | * + ? ^ $ \\d \\w", err);
	}
	return true;
}

bool adapter_config_read(struct adapter_config *c, const struct file *text, bool merges, struct error *err)
{
	const char *name;
	json_t *v;

	*c = (struct adapter_config){ .label = text->label, .r = 8, .alpha = 8, .merges = merges };
	if (!(c->root = json_read(text->base, text->have, JSON_MAX_CONFIG, text->label, err)))
		return false;
	if (!json_is_object(c->root))
		return error_set(err, ERROR_FORMAT, "%s: the text is %s, expected an object", c->label,
		                 json_kind(c->root));
	v = json_object_get(c->root, "peft_type");
	if (!json_is_string(v) || strcmp(json_string_value(v), "LORA") != 0)
		return v ? refuse_value(c, "peft_type", v, "LORA", err)
		         : error_set(err, ERROR_FORMAT, "%s: peft_type is missing, expected LORA", c->label);
	json_object_foreach(c->root, name, v)
	{
		if (!check_field(c, name, v, err))
			return false;
	}
	v = json_object_get(c->root, "use_rslora");
	if (v && !json_is_null(v) && !json_is_boolean(v))
		return refuse_value(c, "use_rslora", v, "true or false", err);
	c->rslora = json_is_true(v);
	c->dora = json_is_true(json_object_get(c->root, "use_dora"));
	c->ties = json_is_true(json_object_get(c->root, "ensure_weight_tying"));
	c->biases = json_is_true(json_object_get(c->root, "lora_bias"));
	v = json_object_get(c->root, "bias");
	c->own_biases = json_is_string(v) && strcmp(json_string_value(v), "none") != 0;
	return read_number(c, "r", 1, ADAPTER_MAX_RANK, &c->r, err) &&
	       read_number(c, "lora_alpha", -1e6, 1e6, &c->alpha, err) && check_beginning(c, err) &&
	       check_bias(c, err) && check_parameters(c, err) && check_pattern(c, "rank_pattern", err) &&
	       check_pattern(c, "alpha_pattern", err);
}

void adapter_config_close(struct adapter_config *c)
{
	json_decref(c->root);
	*c = (struct adapter_config){ 0 };
}

bool adapter_config_invocation(const struct adapter_config *c, struct adapter_file *f, struct error *err)
{
	static const char name[] = "alora_invocation_tokens";
	const json_t *v = json_object_get(c->root, name);

	if (!v || is_off(v))
		return true;
	if (!json_is_array(v) || json_array_size(v) > ADAPTER_MAX_INVOCATION)
		return refuse_value(c, name, v, "a list of token numbers", err);
	if (!(f->invocation = malloc(json_array_size(v) * sizeof *f->invocation)))
		return error_set(err, ERROR_MEMORY, "no memory for %s", name);
	for (size_t i = 0; i < json_array_size(v); i++) {
		const json_t *id = json_array_get(v, i);
		if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
			return refuse_value(c, name, v, "a list of token numbers", err);
		f->invocation[f->n_invocation++] = (int32_t)json_integer_value(id);
	}
	return true;
}

/* ---- modules */

/* Whether a name, in which a dot is any character as in an expression, is all of the path, or its end behind a dot.
 * With a caret it is all of it. A backslash stands before a character that is meant. */
static bool is_named(const char *name, const char *path)
{
	const bool whole = *name == '^';
	size_t n = 0;

	for (const char *p = name + whole; *p; p++)
		n += *p != '\\';
	const size_t have = strlen(path);
	if (have < n || (have > n && (whole || path[have - n - 1] != '.')))
		return false;
	const char *at = path + have - n;
	for (const char *p = name + whole; *p; p++) {
		const bool meant = *p == '\\' && p[1];
		p += meant;
		if (*p != *at && (meant || *p != '.'))
			return false;
		at++;
	}
	return true;
}

/* The first of a pattern's entries that names the module; NULL: none does. */
static const json_t *pattern_of(const struct adapter_config *c, const char *name, const char *path)
{
	json_t *v, *o = json_object_get(c->root, name);
	const char *key;
	bool bad;

	json_object_foreach(o, key, v)
	{
		if (adapter_names(key, path, &bad))
			return v;
	}
	return NULL;
}

/* Whether a field's list has the module's name, or its end; or whether its expression is all of the name. What is not
 * known of an expression names nothing and leaves nothing out: *known is false. False: err. */
static bool is_listed(const struct adapter_config *c, const char *field, const char *path, bool *listed, bool *known,
                      struct error *err)
{
	const json_t *v = json_object_get(c->root, field);
	char whole[1024];
	bool bad = true;

	*listed = false;
	*known = json_is_array(v) && json_array_size(v) > 0;
	if (v && !is_off(v) && !json_is_array(v) && !json_is_text(v))
		return refuse_value(c, field, v, "names of modules", err);
	for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
		const json_t *name = json_array_get(v, i);
		if (!json_is_text(name))
			return refuse_value(c, field, v, "names of modules", err);
		*listed |= is_named(json_string_value(name), path);
	}
	if (json_is_text(v) && *json_string_value(v) && strcmp(json_string_value(v), "all-linear") != 0 &&
	    snprintf(whole, sizeof whole, "^(?:%s)$", json_string_value(v)) < (int)sizeof whole) {
		*listed = adapter_names(whole, path, &bad);
		*known = !bad;
	}
	return true;
}

static bool check_targets(const struct adapter_config *c, const char *path, struct error *err)
{
	bool listed, known;

	if (!is_listed(c, "target_modules", path, &listed, &known, err))
		return false;
	if (known && !listed)
		return error_set(err, ERROR_FORMAT, "%s: target_modules leaves out %s, which has tensors", c->label,
		                 path);
	if (!is_listed(c, "exclude_modules", path, &listed, &known, err))
		return false;
	if (known && listed)
		return error_set(err, ERROR_FORMAT, "%s: exclude_modules has %s, which has tensors", c->label, path);
	if (!is_listed(c, "modules_to_save", path, &listed, &known, err))
		return false;
	return !known || !listed ||
	       error_set(err, ERROR_FORMAT, "%s: modules_to_save has %s, which has a pair of tensors", c->label, path);
}

/* The number of a path's first part that is one and has a part behind it; behind a part of that name, where there is a
 * name. -1: none. */
static long layer_of(const char *path, const char *name)
{
	for (const char *p = path; (p = strchr(p, '.')); p++) {
		char *end;
		const size_t n = name ? strlen(name) : 0;
		const bool named =
			!name || ((size_t)(p - path) > n && p[-(ptrdiff_t)n - 1] == '.' && memcmp(p - n, name, n) == 0);
		if (!named || p[1] < '0' || p[1] > '9')
			continue;
		const long number = strtol(p + 1, &end, 10);
		if (*end == '.')
			return number;
	}
	return -1;
}

/* By layers_pattern: a name, or the first of several that is there. */
static bool find_layer(const struct adapter_config *c, const char *path, long *layer, struct error *err)
{
	static const char field[] = "layers_pattern";
	const json_t *v = json_object_get(c->root, field);

	*layer = -1;
	if (!v || is_off(v)) {
		*layer = layer_of(path, NULL);
		return true;
	}
	if (json_is_text(v)) {
		*layer = layer_of(path, json_string_value(v));
		return true;
	}
	if (!json_is_array(v))
		return refuse_value(c, field, v, "a name, or a list of names", err);
	for (size_t i = 0; i < json_array_size(v) && *layer < 0; i++) {
		if (!json_is_text(json_array_get(v, i)))
			return refuse_value(c, field, v, "a name, or a list of names", err);
		*layer = layer_of(path, json_string_value(json_array_get(v, i)));
	}
	return true;
}

static bool check_layers(const struct adapter_config *c, const char *path, struct error *err)
{
	const json_t *v = json_object_get(c->root, "layers_to_transform");
	long layer;

	if (!v || json_is_null(v) || (json_is_array(v) && json_array_size(v) == 0))
		return true;
	if (!json_is_integer(v) && !json_is_array(v))
		return refuse_value(c, "layers_to_transform", v, "a number, or a list of numbers", err);
	if (!find_layer(c, path, &layer, err))
		return false;
	bool listed = json_is_integer(v) && json_integer_value(v) == layer;
	for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
		if (!json_is_integer(json_array_get(v, i)))
			return refuse_value(c, "layers_to_transform", v, "a number, or a list of numbers", err);
		listed |= json_integer_value(json_array_get(v, i)) == layer;
	}
	return listed ||
	       error_set(err, ERROR_FORMAT, "%s: layers_to_transform leaves out %s, which has tensors", c->label, path);
}

static bool has_whole(const struct adapter_file *f, const char *name)
{
	for (size_t i = 0; i < f->n_whole; i++)
		if (is_named(name, f->whole[i].path) && !f->whole[i].is_base)
			return true;
	return false;
}

bool adapter_config_whole(const struct adapter_config *c, struct adapter_file *f, struct error *err)
{
	static const char field[] = "modules_to_save";
	const json_t *v = json_object_get(c->root, field);

	f->ties = c->ties;
	if (v && !is_off(v) && !json_is_array(v))
		return refuse_value(c, field, v, "names of modules", err);
	for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
		const json_t *name = json_array_get(v, i);
		if (!json_is_text(name))
			return refuse_value(c, field, v, "names of modules", err);
		if (!has_whole(f, json_string_value(name)))
			return error_set(err, ERROR_FORMAT,
			                 "%s: modules_to_save has %.100s, of which there is no tensor", c->label,
			                 json_string_value(name));
	}
	return true;
}

bool adapter_config_pair(const struct adapter_config *c, struct adapter_pair *p, struct error *err)
{
	if (c->own_biases && p->own_bias.name && !p->a.name && !p->b.name)
		return true;
	char named[600]; /* a longer one is no module's */
	const bool weight = p->parameter && strcmp(p->parameter, "weight") == 0;
	snprintf(named, sizeof named, "%s%s", p->path, weight ? ".weight" : "");
	const json_t *ranks = pattern_of(c, "rank_pattern", named), *alphas = pattern_of(c, "alpha_pattern", named);
	const double r = ranks ? json_number_value(ranks) : c->r, alpha = alphas ? json_number_value(alphas) : c->alpha;

	if (p->parameter && !adapter_config_parameter(c, p, r, err))
		return false;
	if (!p->parameter && p->a.name && (double)p->a.rows != r)
		return error_set(err, ERROR_FORMAT, "%s: the rank of %s is %g, but tensor %s has %" PRIu64 " rows",
		                 c->label, p->path, r, p->a.name, p->a.rows);
	if (!(fabs(alpha) <= 1e6))
		return error_set(err, ERROR_FORMAT, "%s: the alpha of %s is %g, expected at most 1000000", c->label,
		                 p->path, alpha);
	if (c->dora != (p->magnitude.name != NULL))
		return error_set(err, ERROR_FORMAT, "%s: use_dora is %s, but %s has %s magnitude", c->label,
		                 c->dora ? "true" : "false", p->path, c->dora ? "no" : "a");
	if (c->biases != (p->bias.name != NULL))
		return error_set(err, ERROR_FORMAT, "%s: lora_bias is %s, but %s has %s bias", c->label,
		                 c->biases ? "true" : "false", p->path, c->biases ? "no" : "a");
	if (p->own_bias.name && !c->own_biases)
		return error_set(err, ERROR_FORMAT, "%s: bias is none, but there is tensor %s", c->label,
		                 p->own_bias.name);
	p->scale = alpha / (c->rslora ? sqrt(r) : r);
	return p->parameter || (check_targets(c, p->path, err) && check_layers(c, p->path, err));
}

/* loaders/model/model_hf_quants.c - what config.json says of quantised weights: quantization_config, and MLX's
 * quantization.
 *
 * Owns: which methods are read, and the sentence for each other one. What the tensors themselves say (bits, groups) is
 * read off them in model_affine.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "loaders/model/model_hf_fields.h"

static bool has_value(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return v && !json_is_null(v) && !(json_is_object(v) && json_object_size(v) == 0);
}

static bool has_text(const json_t *o, const char *key, const char *text)
{
	const json_t *v = json_object_get(o, key);
	return json_is_string(v) && strcasecmp(json_string_value(v), text) == 0;
}

static long long integer(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

/* A member of quantization_config is not what it must be. */
static bool refuse(struct hf_reader *r, const json_t *o, const char *key, const char *expected)
{
	const json_t *v = json_object_get(o, key);
	char text[60], value[60];

	if (json_is_integer(v))
		snprintf(value, sizeof value, "is %lld", integer(o, key));
	else if (json_is_text(v))
		snprintf(value, sizeof value, "is \"%s\"",
		         error_quote(text, 40, json_string_value(v), strlen(json_string_value(v))));
	else
		snprintf(value, sizeof value, "is %s",
		         json_is_true(v)         ? "true"
		         : json_is_false(v)      ? "false"
		         : !v || json_is_null(v) ? "missing"
		                                 : "of another kind");
	return error_set(r->err, ERROR_UNSUPPORTED, "%s: quantization_config.%s %s, expected %s", r->label, key, value,
	                 expected);
}

/* ---- MLX */

/* What mlx-lm writes; it says so twice. Sizes of single tensors, which it may hold, are read off the tensors. */
static bool is_affine(const json_t *o)
{
	return json_is_integer(json_object_get(o, "group_size")) && json_is_integer(json_object_get(o, "bits")) &&
	       !json_object_get(o, "quant_method");
}

static bool take_affine(struct hf_reader *r, const json_t *o)
{
	const json_t *mode = json_object_get(o, "mode");

	if (mode && !has_text(o, "mode", "affine") && !has_text(o, "mode", "mxfp4") && !has_text(o, "mode", "mxfp8") &&
	    !has_text(o, "mode", "nvfp4"))
		return hf_unsupported(r, "quantization.mode",
		                      json_is_string(mode) ? json_string_value(mode) : "no string",
		                      "affine, mxfp4, mxfp8 or nvfp4");
	r->m->file->quants.form = QUANTS_MLX;
	return true;
}

/* ---- compressed-tensors */

static bool is_dense_format(const json_t *o)
{
	return has_text(o, "format", "float-quantized") || has_text(o, "format", "int-quantized") ||
	       has_text(o, "format", "naive-quantized");
}

/* Why weights of compressed-tensors are none of ours; NULL: they are. */
static const char *packed_refusal(json_t *o, const json_t *group)
{
	const json_t *weights = json_object_get(group, "weights");
	bool packed = has_text(o, "format", "pack-quantized"), floats = has_text(weights, "type", "float");
	long long bits = integer(weights, "num_bits");

	if (!packed && !is_dense_format(o))
		return "format is not pack-quantized, int-quantized or float-quantized";
	if (has_value(o, "kv_cache_scheme") || has_value(o, "transform_config") || has_value(o, "sparsity_config"))
		return "kv_cache_scheme, transform_config or sparsity_config is set";
	if (!group)
		return "config_groups has not one member";
	if (packed && (has_value(group, "input_activations") || has_value(group, "output_activations")))
		return "input_activations or output_activations are quantised";
	if (floats ? packed || bits != 8 : !has_text(weights, "type", "int") || (bits != 8 && (bits != 4 || !packed)))
		return packed ? "weights are not integers of 4 or 8 bits" : "weights are not integers or FP8 of 8 bits";
	if (!json_is_true(json_object_get(weights, "symmetric")) && (!packed || bits != 4))
		return "weights are not symmetric, and not integers of 4 bits";
	return NULL;
}

/* Rows and columns that share a scale. */
static bool take_block(struct hf_reader *r, const json_t *owner, const char *key)
{
	const json_t *block = json_object_get(owner, key);

	if (!block || json_is_null(block))
		return true;
	for (size_t i = 0; i < 2; i++) {
		const json_t *size = json_array_get(block, i);
		if (!json_is_integer(size) || json_array_size(block) != 2 || json_integer_value(size) < 1 ||
		    json_integer_value(size) > MODEL_MAX_WIDTH || (i && json_integer_value(size) % 32))
			return error_set(r->err, ERROR_UNSUPPORTED,
			                 "%s: %s of quantization_config is not a number of rows and a multiple of 32 "
			                 "columns, expected an array such as [128, 128]",
			                 r->label, key);
		r->m->file->quants.block[i] = (uint32_t)json_integer_value(size);
	}
	return true;
}

static bool take_compressed(struct hf_reader *r, json_t *o)
{
	json_t *groups = json_object_get(o, "config_groups"),
	       *group = json_object_size(groups) == 1 ? json_object_iter_value(json_object_iter(groups)) : NULL,
	       *weights = json_object_get(group, "weights");
	const char *why = packed_refusal(o, group);
	struct quants_config *q = &r->m->file->quants;

	if (why)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: has a quantization_config of method compressed-tensors whose %s, expected "
		                 "unquantised weights, integers of 4 or 8 bits, or FP8",
		                 r->label, why);
	q->form = has_text(o, "format", "pack-quantized") ? QUANTS_PACKED
	          : has_text(weights, "type", "float")    ? QUANTS_FLOAT8
	                                                  : QUANTS_BYTES;
	q->symmetric = json_is_true(json_object_get(weights, "symmetric"));
	return !has_text(weights, "strategy", "block") || take_block(r, weights, "block_structure");
}

/* ---- others */

static bool take_fp8(struct hf_reader *r, const json_t *o)
{
	if (has_value(o, "fmt") && !has_text(o, "fmt", "e4m3") && !has_text(o, "fmt", "float8_e4m3fn"))
		return refuse(r, o, "fmt", "e4m3");
	r->m->file->quants.form = QUANTS_FLOAT8;
	return take_block(r, o, "weight_block_size");
}

static bool take_gptq(struct hf_reader *r, const json_t *o)
{
	struct quants_config *q = &r->m->file->quants;
	bool second = has_text(o, "checkpoint_format", "gptq_v2");

	if (integer(o, "bits") != 4 && integer(o, "bits") != 8)
		return refuse(r, o, "bits", "4 or 8");
	if (integer(o, "bits") == 8 && !json_is_true(json_object_get(o, "sym")))
		return refuse(r, o, "sym", "true with 8 bits: zero points of their own are read of 4 bits");
	if (has_value(o, "checkpoint_format") && !second && !has_text(o, "checkpoint_format", "gptq"))
		return refuse(r, o, "checkpoint_format", "gptq or gptq_v2");
	/* Where all columns are one group, their order changes nothing. */
	if (json_is_true(json_object_get(o, "desc_act")) && integer(o, "group_size") != -1)
		return refuse(r, o, "desc_act",
		              "false, or a group_size of -1: columns in an order of their own are not supported");
	*q = (struct quants_config){ .form = QUANTS_GPTQ,
		                     .symmetric = json_is_true(json_object_get(o, "sym")),
		                     .plus_one = !second,
		                     .bits = (uint8_t)integer(o, "bits") };
	return true;
}

static bool take_awq(struct hf_reader *r, const json_t *o)
{
	if (integer(o, "bits") != 4)
		return refuse(r, o, "bits", "4");
	if (has_value(o, "version") && !has_text(o, "version", "gemm"))
		return refuse(r, o, "version", "gemm");
	if (!json_is_true(json_object_get(o, "zero_point")))
		return refuse(r, o, "zero_point", "true");
	r->m->file->quants.form = QUANTS_AWQ;
	return true;
}

static bool take_ternary(struct hf_reader *r, const json_t *o)
{
	if (!has_text(o, "linear_class", "autobitlinear"))
		return refuse(r, o, "linear_class", "autobitlinear");
	if (has_value(o, "quantization_mode") && !has_text(o, "quantization_mode", "offline"))
		return refuse(r, o, "quantization_mode", "offline");
	if (json_is_true(json_object_get(o, "use_rms_norm")))
		return refuse(r, o, "use_rms_norm", "false");
	r->m->file->quants.form = QUANTS_TERNARY;
	return true;
}

static bool take_method(struct hf_reader *r, json_t *o, const char *field)
{
	const char *method = NULL;
	char text[60];

	if (json_is_object(o) && !hf_get_string(r, o, "quant_method", &method))
		return false;
	if (method && strcmp(method, "compressed-tensors") == 0)
		return take_compressed(r, o);
	if (method && strcmp(method, "fp8") == 0 && !has_value(o, "config_groups"))
		return take_fp8(r, o);
	if (method && strcmp(method, "gptq") == 0)
		return take_gptq(r, o);
	if (method && strcmp(method, "awq") == 0)
		return take_awq(r, o);
	if (method && strcmp(method, "bitnet") == 0)
		return take_ternary(r, o);
	/* Experts alone, whose tensors say it too. */
	if (method && strcmp(method, "mxfp4") == 0 && r->row && r->row->hf_fused & FUSED_BY_COLUMNS)
		return true;
	return error_set(
		r->err, ERROR_UNSUPPORTED,
		"%s: has a %s%s%s, expected unquantised weights, or one of the methods compressed-tensors, fp8, "
		"gptq, awq and bitnet; other quantised models are read from GGUF files",
		r->label, field, method ? " of method " : "",
		method ? error_quote(text, sizeof text, method, strlen(method)) : "");
}

bool hf_read_quants(struct hf_reader *r, json_t *root)
{
	json_t *config = hf_get(r, root, "quantization_config"), *mlx = hf_get(r, root, "quantization");

	if (mlx && is_affine(mlx) && (!config || is_affine(config)))
		return take_affine(r, mlx) && (!config || take_affine(r, config));
	return (!config || take_method(r, config, "quantization_config")) &&
	       (!mlx || take_method(r, mlx, "quantization"));
}

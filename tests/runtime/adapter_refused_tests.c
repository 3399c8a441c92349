/* tests/runtime/adapter_refused_tests.c - adapters' files that a reader must refuse for one tensor, key or field, made
 * by rows: GGUF files, and PEFT's folders.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "loaders/files/gguf_write.h"
#include "tests/runtime/adapter_refused_tests.h"
#include "tests/runtime/adapter_sessions.h"
#include "tests/support/lora_folder.h"
#include "tests/support/shared.h"

/* What a row changes of an adapter for the model's first queries; a field that is 0 or NULL stays as it is, "" is
 * left out. */
struct made {
	const char *says; /* NULL: it opens */
	const char *arch, *type, *key;
	float alpha;
	const char *a, *b, *more; /* names of tensors */
	uint64_t inputs, rank, columns, outputs, experts;
	enum dtype of;      /* DTYPE_F32 stays */
	int32_t invocation; /* a list of one; below -1: no list */
};

#define Q "blk.0.attn_q.weight."

static uint64_t number(uint64_t of, uint64_t usual) { return of ? of : usual; }

static void put_text(struct gguf_out *o, const char *key, const char *of, const char *usual)
{
	const char *text = of ? of : usual;

	if (*text)
		gguf_put_string(o, key, text);
}

static void put_tensor(struct gguf_out *o, const char *name, const struct made *m, uint64_t columns, uint64_t rows)
{
	const uint64_t ne[] = { columns, rows, number(m->experts, 1) };

	if (*name)
		gguf_put_tensor(o, (struct gguf_str){ name, strlen(name) }, m->of, ne[2] > 1 ? 3 : 2, ne);
}

static void write_gguf(const char *path, const struct made *m)
{
	static const char invocation[] = "adapter.alora.invocation_tokens";
	FILE *f = fopen(path, "wb");
	struct gguf_out o;

	assert_non_null(f);
	gguf_put_begin(&o, f, 32);
	gguf_put_string(&o, "general.type", "adapter");
	put_text(&o, "general.architecture", m->arch, "qwen3");
	put_text(&o, "adapter.type", m->type, "lora");
	gguf_put_f32(&o, "adapter.lora.alpha", m->alpha != 0 ? m->alpha : 4);
	if (m->key)
		gguf_put_u32(&o, m->key, 1);
	if (m->invocation < -1) {
		gguf_put_u32(&o, invocation, 7);
	} else if (m->invocation) {
		gguf_put_array(&o, invocation, GGUF_I32, 1);
		gguf_put_raw(&o, &m->invocation, sizeof m->invocation);
	}
	put_tensor(&o, m->a ? m->a : Q "lora_a", m, number(m->inputs, 256), number(m->rank, 4));
	put_tensor(&o, m->b ? m->b : Q "lora_b", m, number(m->columns, 4), number(m->outputs, 256));
	if (m->more)
		put_tensor(&o, m->more, m, 256, 4);
	gguf_put_end(&o);
	for (uint64_t i = 0; i < o.data; i++)
		fputc(0, f);
	assert_int_equal(fclose(f), 0);
}

static void expect(jit_model *m, const char *path, const char *says)
{
	jit_error err = { 0 };
	jit_adapter *a = jit_adapter_open(m, path, &err);

	if (!says != (a != NULL))
		fail_msg("%s: %s", says ? says : "it opens", a ? "opened" : err.message);
	if (says && !strstr(err.message, says))
		fail_msg("\"%s\" does not say \"%s\"", err.message, says);
	jit_adapter_close(a);
}

void test_refused_gguf(void **unused)
{
	static const struct made rows[] = {
		{ .says = NULL },
		{ .says = NULL, .of = DTYPE_F16 },
		{ .says = NULL, .of = DTYPE_BF16 },
		{ .says = NULL, .more = "blk.0.attn_norm.weight.lora_a" },
		{ .says = NULL, .key = "adapter.lora.task_name" },
		{ .says = "general.architecture is missing, expected \"qwen3\"", .arch = "" },
		{ .says = "general.architecture is \"gemma\", expected \"qwen3\"", .arch = "gemma" },
		{ .says = "adapter.type is missing, expected \"lora\"", .type = "" },
		{ .says = "adapter.type is \"loha\", expected \"lora\"", .type = "loha" },
		{ .says = "the key adapter.lora.beta is not known", .key = "adapter.lora.beta" },
		{ .says = "adapter.lora.alpha is 2e+06, expected at most 1000000", .alpha = 2e6f },
		{ .says = "has type Q8_0, expected F32, F16 or BF16", .of = DTYPE_Q8_0, .columns = 32, .rank = 32 },
		{ .says = "is of 2 experts, expected 0", .experts = 2 },
		{ .says = "expected names that end in .weight.lora_a or .weight.lora_b", .more = "blk.0.attn_q.lora" },
		{ .says = "has no partner", .a = "" },
		{ .says = "has no partner", .b = "" },
		{ .says = "the adapter has no tensors", .a = "", .b = "" },
		{ .says = "but that of " Q "lora_b is 5", .columns = 5 },
		{ .says = "the rank of " Q "lora_a is 8192, expected 1 to", .rank = 8192, .columns = 8192 },
		{ .says = "has 255 columns, expected 256", .inputs = 255 },
		{ .says = "has 255 rows, expected 256", .outputs = 255 },
		{ .says = "is of the module blk.77.attn_q",
		  .a = "blk.77.attn_q.weight.lora_a",
		  .b = "blk.77.attn_q.weight.lora_b" },
		{ .says = "has -1, expected token numbers", .invocation = -1 },
		{ .says = "is not an array of 1 to", .invocation = -2 },
	};
	char path[] = "/tmp/t_adapters-XXXXXX", model[1024];

	close(mkstemp(path));
	jit_model *m = open_model(source_path(model, "models/tale-q8_0.gguf"), "cpu", false);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		write_gguf(path, &rows[i]);
		expect(m, path, rows[i].says);
	}
	jit_model_close(m);
	unlink(path);
}

/* Folders of PEFT: the fields, in front of which peft_type is LORA where they do not say it, and the header of the
 * tensors, whose bytes are zeroes. */
#define T(name, type, shape, from, to) \
	"\"base_model.model.model.layers.0.self_attn.q_proj." name "\":{\"dtype\":\"" type "\",\"shape\":[" shape \
	"],\"data_offsets\":[" #from "," #to "]}"
#define A T("lora_A.weight", "F32", "1,256", 0, 1024)
#define A_B A "," T("lora_B.weight", "F32", "256,1", 1024, 2048)
static const struct {
	const char *config, *tensors, *says;
} folders[] = {
	{ "\"r\":1", A_B, NULL },
	{ "\"r\":1,\"layers_to_transform\":0,\"init_lora_weights\":\"eva\"", A_B, NULL },
	{ "\"r\":1,\"target_modules\":[\"^model.layers.0.self_attn\\\\.q_proj\"]", A_B, NULL },
	{ "\"peft_type\":null", A_B, "peft_type is null, expected LORA" },
	{ "\"peft_type\":\"LOHA\"", A_B, "peft_type is \"LOHA\", expected LORA" },
	{ "\"r\":0", A_B, "r is 0, expected a number from 1 to" },
	{ "\"r\":1,\"lora_alpha\":1e7", A_B, "lora_alpha is 10000000.0, expected a number" },
	{ "\"r\":1,\"use_rslora\":1", A_B, "use_rslora is 1, expected true or false" },
	{ "\"r\":1,\"rank_pattern\":[1]", A_B, "rank_pattern is [1], expected an object" },
	{ "\"r\":1,\"rank_pattern\":{\"q\":\"x\"}", A_B, "numbers by names of modules" },
	{ "\"r\":1,\"alpha_pattern\":{\"q_proj\":1e9}", A_B, "the alpha of" },
	{ "\"r\":1,\"target_modules\":[3]", A_B, "target_modules is [3], expected names" },
	{ "\"r\":1,\"target_parameters\":[3]", A_B, "target_parameters has an integer, expected names" },
	{ "\"r\":1,\"layers_to_transform\":\"0\"", A_B, "layers_to_transform is \"0\", expected a number" },
	{ "\"r\":1", A "," T("lora_C.other", "F32", "256,1", 1024, 2048), "expected names that end in .lora_A.weight" },
	{ "\"r\":1", A "," T("lora_B.weight", "F32", "256,1,1", 1024, 2048), "has 3 dimensions, expected 2" },
	{ "\"r\":1", A "," T("lora_B.weight", "I32", "256,1", 1024, 2048), "expected F32, F16 or BF16" },
	{ "\"r\":1,\"use_dora\":true", A_B "," T("lora_magnitude_vector", "F32", "255", 2048, 3068),
	  "has 255 numbers, expected 256" },
	{ "\"r\":1", A_B "," T("lora_magnitude_vector", "F32", "256", 2048, 3072),
	  "use_dora is false, but model.layers.0.self_attn.q_proj has a magnitude" },
	{ "\"r\":1", A_B "," T("lora_B.bias", "F32", "256", 2048, 3072),
	  "lora_bias is false, but model.layers.0.self_attn.q_proj has a bias" },
	{ "\"r\":1", A_B "," T("base_layer.bias", "F32", "256", 2048, 3072), "bias is none, but there is tensor" },
	{ "\"r\":1,\"bias\":\"lora_only\"", A_B "," T("bias", "F32", "255", 2048, 3068),
	  "has 255 numbers, expected 256" },
	{ "\"r\":1,\"bias\":\"all\"", A_B "," T("base_layer.bias", "F32", "256", 2048, 3072),
	  "is a bias, and the model has none of" },
	{ "\"r\":1,\"bias\":\"all\"", T("bias", "F32", "256", 0, 1024), "is a bias, and the model has none of" },
	{ "\"r\":1,\"bias\":\"all\"", A_B "," T("bias", "F32", "16,16", 2048, 3072), "has 256 numbers, expected 256" },
	{ "\"r\":1,\"bias\":\"all\",\"use_dora\":true",
	  A_B "," T("lora_magnitude_vector", "F32", "256", 2048, 3072) "," T("bias", "F32", "256", 3072, 4096),
	  "biases of modules with magnitudes (DoRA) are not done" },
	{ "\"r\":1",
	  A
	  "," T("lora_A.default.weight", "F32", "1,256", 1024, 2048) "," T("lora_B.weight", "F32", "256,1", 2048, 3072),
	  "lora_A" },
};
#undef A
#undef A_B
#undef T

static void write_folder(const char *folder, const char *config, const char *tensors)
{
	enum { HEADER_MAX = 8192, DATA_MAX = 4096 };
	char text[1024], *bytes = calloc(1, 8 + HEADER_MAX + DATA_MAX);
	const int n = snprintf(text, sizeof text, "{%s%s}",
	                       strstr(config, "peft_type") ? "" : "\"peft_type\":\"LORA\",", config);

	assert_non_null(bytes);
	lora_put(folder, "adapter_config.json", text, (size_t)n);
	const uint64_t header = (uint64_t)snprintf(bytes + 8, HEADER_MAX, "{%s}", tensors);
	memcpy(bytes, &header, sizeof header);
	lora_put(folder, "adapter_model.safetensors", bytes, 8 + header + (size_t)atoi(strrchr(bytes + 8, ',') + 1));
	free(bytes);
}

void test_refused_folders(void **unused)
{
	char folder[] = "/tmp/t_adapters-XXXXXX", model[1024], line[200];

	jit_model *m = open_model(source_path(model, "models/tale-q8_0.gguf"), "cpu", false);
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		write_folder(folder, folders[i].config, folders[i].tensors);
		expect(m, folder, folders[i].says);
	}
	lora_put(folder, "adapter_config.json", "[]", 2);
	expect(m, folder, "the text is an array, expected an object");
	snprintf(line, sizeof line, "cd '%s' && mv adapter_model.safetensors adapter_model.bin", folder);
	assert_int_equal(system(line), 0);
	expect(m, folder, "pickled weights are not read, expected safetensors");
	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	assert_int_equal(system(line), 0);
	jit_model_close(m);
}

/* Every field that peft 0.20 writes for LoRA: what it may be, and what is refused by its name. A row without a field's
 * value is a pair of the model's first queries. */
#define OPENS(value) \
	{ \
		value, NULL \
	}
static const struct {
	const char *config, *says;
} fields[] = {
	OPENS("\"r\":4"),
	{ "\"r\":5", "the rank of model.layers.0.self_attn.q_proj is 5" },
	OPENS("\"target_modules\":null"),
	OPENS("\"target_modules\":\"all-linear\""),
	OPENS("\"target_modules\":\".*(q|v)_proj\""),
	OPENS("\"target_modules\":\"(?!x).*_proj\""),
	{ "\"target_modules\":\".*v_proj\"", "target_modules leaves out model.layers.0.self_attn.q_proj" },
	{ "\"target_modules\":\"q_proj\"", "target_modules leaves out model.layers.0.self_attn.q_proj" },
	{ "\"target_modules\":7", "target_modules is 7, expected names" },
	OPENS("\"exclude_modules\":[\"v_proj\"]"),
	OPENS("\"exclude_modules\":\"q_proj\""),
	{ "\"exclude_modules\":[\"q_proj\"]", "exclude_modules has model.layers.0.self_attn.q_proj" },
	{ "\"exclude_modules\":\".*q_proj\"", "exclude_modules has model.layers.0.self_attn.q_proj" },
	{ "\"exclude_modules\":true", "exclude_modules is true, expected names" },
	OPENS("\"lora_alpha\":-3"),
	{ "\"lora_alpha\":\"8\"", "lora_alpha is \"8\", expected a number" },
	OPENS("\"lora_dropout\":0.5"),
	OPENS("\"fan_in_fan_out\":true"),
	OPENS("\"bias\":\"none\""),
	OPENS("\"bias\":\"all\""),
	OPENS("\"bias\":\"lora_only\""),
	{ "\"bias\":\"some\"", "bias is \"some\"" },
	OPENS("\"use_rslora\":true"),
	{ "\"use_rslora\":2", "use_rslora is 2, expected true or false" },
	OPENS("\"modules_to_save\":[]"),
	{ "\"modules_to_save\":[\"norm\"]", "modules_to_save has norm, of which there is no tensor" },
	{ "\"modules_to_save\":[\"q_proj\"]",
	  "modules_to_save has model.layers.0.self_attn.q_proj, which has a pair of tensors" },
	OPENS("\"init_lora_weights\":\"mica\""),
	OPENS("\"init_lora_weights\":\"orthogonal\""),
	{ "\"init_lora_weights\":\"olora\"", "init_lora_weights is \"olora\"" },
	{ "\"init_lora_weights\":\"pissa_niter_4\"", "init_lora_weights is \"pissa_niter_4\"" },
	{ "\"init_lora_weights\":\"corda\"", "init_lora_weights is \"corda\"" },
	{ "\"init_lora_weights\":\"loftq\"", "init_lora_weights is \"loftq\"" },
	{ "\"init_lora_weights\":\"lora_ga\"", "init_lora_weights is \"lora_ga\"" },
	OPENS("\"layers_to_transform\":[]"),
	OPENS("\"layers_to_transform\":[1,0]"),
	{ "\"layers_to_transform\":[\"0\"]", "layers_to_transform is [\"0\"], expected a number" },
	OPENS("\"layers_pattern\":\"blocks\""),
	OPENS("\"layers_pattern\":\"layers\",\"layers_to_transform\":[0]"),
	OPENS("\"layers_pattern\":[\"h\",\"layers\"],\"layers_to_transform\":[0]"),
	{ "\"layers_pattern\":[\"h\"],\"layers_to_transform\":[0]", "layers_to_transform leaves out" },
	{ "\"layers_pattern\":\"ayers\",\"layers_to_transform\":[0]", "layers_to_transform leaves out" },
	{ "\"layers_pattern\":3,\"layers_to_transform\":[0]", "layers_pattern is 3, expected a name" },
	{ "\"layers_pattern\":[3],\"layers_to_transform\":[0]", "layers_pattern is [3], expected a name" },
	OPENS("\"rank_pattern\":{\"v_proj\":9}"),
	{ "\"rank_pattern\":{\"q_proj\":9}", "the rank of model.layers.0.self_attn.q_proj is 9" },
	OPENS("\"alpha_pattern\":{\"q_proj\":9}"),
	{ "\"alpha_pattern\":3", "alpha_pattern is 3, expected an object" },
	OPENS("\"megatron_config\":null"),
	{ "\"megatron_config\":{\"tp\":2}", "megatron_config is set: layers of Megatron are not done" },
	OPENS("\"megatron_core\":\"megatron.core\""),
	OPENS("\"trainable_token_indices\":[]"),
	{ "\"trainable_token_indices\":{\"embed_tokens\":[1]}", "trainable_token_indices is set: rows of" },
	OPENS("\"loftq_config\":{\"loftq_bits\":4}"),
	OPENS("\"eva_config\":{\"rho\":2}"),
	OPENS("\"corda_config\":{\"corda_method\":\"ipm\"}"),
	OPENS("\"lora_ga_config\":{\"scale\":\"stable\"}"),
	OPENS("\"use_dora\":false"),
	{ "\"use_dora\":true", "use_dora is true, but model.layers.0.self_attn.q_proj has no magnitude" },
	OPENS("\"velora_config\":{\"num_groups\":64}"),
	OPENS("\"alora_invocation_tokens\":[5,6]"),
	{ "\"alora_invocation_tokens\":[5.5]", "alora_invocation_tokens is [5.5], expected a list" },
	OPENS("\"use_qalora\":false,\"qalora_group_size\":16"),
	{ "\"use_qalora\":true", "use_qalora is set: inputs that are averaged by groups are not done" },
	{ "\"monteclora_config\":{\"num_samples\":8}", "monteclora_config is set: matrices drawn at random are not" },
	{ "\"layer_replication\":[[0,2],[1,3]]", "layer_replication is set: layers that are used several times" },
	OPENS("\"runtime_config\":{\"ephemeral_gpu_offload\":false}"),
	OPENS("\"lora_bias\":false"),
	{ "\"lora_bias\":true", "lora_bias is true, but model.layers.0.self_attn.q_proj has no bias" },
	OPENS("\"target_parameters\":[\"q_proj.weight\"]"),
	{ "\"target_parameters\":[\"v_proj.weight\"]",
	  "target_parameters has v_proj.weight, of which there is no tensor" },
	{ "\"use_bdlora\":{\"nblocks\":2}", "use_bdlora is set: matrices of diagonal blocks are not done" },
	{ "\"arrow_config\":{\"top_k\":3}", "arrow_config is set: a choice of adapters by token" },
	{ "\"kasa_config\":{\"beta\":1}", "kasa_config is set: diagonals between A and B are not done" },
	OPENS("\"ensure_weight_tying\":true"),
	OPENS("\"task_type\":\"CAUSAL_LM\",\"auto_mapping\":{\"base_model_class\":\"X\"},\"peft_version\":\"0.20.0\""),
	OPENS("\"base_model_name_or_path\":\"x\",\"revision\":\"main\",\"inference_mode\":true"),
};

void test_fields(void **unused)
{
	static const struct lora_module queries = { "model.layers.0.self_attn.q_proj", 256, 256 },
					embedding = { "model.embed_tokens", 256, 4096 };
	char folder[] = "/tmp/t_adapters-XXXXXX", model[1024], line[200];

	jit_model *m = open_model(source_path(model, "models/tale-q8_0.gguf"), "cpu", false);
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		snprintf(line, sizeof line, ", %s", fields[i].config);
		lora_folder(folder, &(struct lora_written){ &queries, 1, 4, 0.1f, 1, line, NULL });
		expect(m, folder, fields[i].says);
	}
	/* The model has one matrix for its embedding and its output. */
	lora_folder(folder, &(struct lora_written){ &embedding, 1, 4, 0.1f, 1, NULL, NULL });
	expect(m, folder, NULL);
	lora_folder(folder,
	            &(struct lora_written){ &embedding, 1, 4, 0.1f, 1, ", \"ensure_weight_tying\": true", NULL });
	expect(m, folder, "is meant for the output matrix, too (ensure_weight_tying)");
	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	assert_int_equal(system(line), 0);
	jit_model_close(m);
}

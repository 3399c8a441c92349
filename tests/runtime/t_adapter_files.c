/* tests/runtime/t_adapter_files.c - adapters' files that are refused, each by the name of what is wrong with it; and
 * files with changed bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/adapter/adapter_config.h"
#include "tests/support/lora_folder.h"
#include "tests/support/shared.h"
#include "tests/runtime/adapter_refused_tests.h"
#include "tests/runtime/adapter_sessions.h"

/* ---- what is refused, and how it is said */

static void test_refused_files(void **unused)
{
	static const struct {
		const char *config, *says;
	} rows[] = {
		{ ", \"use_dora\": true", "use_dora is true, but model.layers.0.self_attn.q_proj has no magnitude" },
		{ ", \"use_dora\": 1", "the field use_dora is not known" },
		{ ", \"lora_bias\": true", "lora_bias is true, but model.layers.0.self_attn.q_proj has no bias" },
		{ ", \"modules_to_save\": [\"lm_head\"]", "modules_to_save has lm_head, of which there is no tensor" },
		{ ", \"modules_to_save\": \"lm_head\"", "modules_to_save is \"lm_head\", expected names" },
		{ ", \"modules_to_save\": [1]", "modules_to_save is [1], expected names" },
		{ ", \"target_parameters\": [\"mlp.experts.down_proj\"]",
		  "target_parameters has mlp.experts.down_proj, of which there is no tensor" },
		{ ", \"target_parameters\": [\"mlp.experts.down_proj_bias\"]",
		  "target_parameters has mlp.experts.down_proj_bias, expected names that end in weight" },
		{ ", \"target_parameters\": \"experts.down_proj\"",
		  "target_parameters is \"experts.down_proj\", expected" },
		{ ", \"target_parameters\": [\"self_attn.q_proj.weight\", \"q_proj.up_proj\"]",
		  "names 2 parameters of model.layers.0.self_attn.q_proj, expected tensors of each of them" },
		{ ", \"target_parameters\": [\"q_proj.weight\"], \"rank_pattern\": {\"q_proj.weight\": 3}",
		  "lora_A.weight has 4 rows, expected 3" },
		{ ", \"target_parameters\": [\"q_proj.weight\"], \"rank_pattern\": {\"q_proj.weight\": 1.5}",
		  "the rank of model.layers.0.self_attn.q_proj is 1.5, expected a whole number" },
		{ ", \"trainable_token_indices\": [3]", "trainable_token_indices is set" },
		{ ", \"layer_replication\": [[0, 2]]", "layer_replication is set" },
		{ ", \"alora_invocation_tokens\": [3, -4]", "alora_invocation_tokens is [3,-4], expected a list" },
		{ ", \"alora_invocation_tokens\": \"x\"", "alora_invocation_tokens is \"x\", expected a list" },
		{ ", \"bias\": true", "bias is true, expected none, all or lora_only" },
		{ ", \"made_up\": 3", "the field made_up is not known" },
		{ ", \"lora_alpha\": \"x\"", "lora_alpha is \"x\", expected a number" },
		{ ", \"init_lora_weights\": \"pissa\"", "init_lora_weights is \"pissa\"" },
		{ ", \"target_modules\": [\"v_proj\"]", "target_modules leaves out" },
		{ ", \"layers_to_transform\": [1]", "layers_to_transform leaves out" },
		{ ", \"rank_pattern\": {\"q_proj\": 8}", "the rank of model.layers.0.self_attn.q_proj is 8" },
		{ ", \"alpha_pattern\": {\"q{2}\": 8}", "expected names of modules, or expressions" },
		{ ", \"alpha_pattern\": {\"(q\": 8}", "expected names of modules, or expressions" },
		{ ", \"alpha_pattern\": {\"(?=q)\": 8}", "expected names of modules, or expressions" },
		{ ", \"alpha_pattern\": {\"((((((((((((((((((q))))))))))))))))))\": 8}",
		  "expected names of modules, or expressions" },
		{ ", \"rank_pattern\": {\"model\\\\.layers\\\\.[0-3]\\\\..*(q|k)_proj\": 8}",
		  "the rank of model.layers.0.self_attn.q_proj is 8" },
	};
	char folder[] = "/tmp/t_adapters-XXXXXX", line[100], path[1024];
	jit_error err = { 0 };

	source_path(path, "models/tale-q8_0.gguf");
	jit_model *m = open_model(path, "cpu", false);
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		lora_folder(folder, &(struct lora_written){ lora_tale, 1, 4, 0.1f, 1, rows[i].config, NULL });
		assert_null(jit_adapter_open(m, folder, &err));
		if (!strstr(err.message, rows[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].config, err.message, rows[i].says);
	}
	assert_null(jit_adapter_open(m, path, &err));
	assert_non_null(strstr(err.message, "general.type"));
	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	assert_int_equal(system(line), 0);
	jit_model_close(m);
}

/* Modules that the model has not, or has in other sizes. */
static void test_refused_modules(void **unused)
{
	static const struct lora_module wrong[] = {
		{ "model.layers.0.self_attn.q_proj", 256, 255 },
		{ "model.layers.0.self_attn.q_proj", 255, 256 },
		{ "model.layers.9.self_attn.q_proj", 256, 256 },
		{ "model.embed_tokens", 4096, 256 },
		{ "model.embed_tokens", 255, 4096 },
		{ "model.norm", 256, 256 },
		{ "lm_head.weight", 4097, 256 },
		{ "model.norm.weight", 256, 1 }
	};
	static const char *const says[] = {
		"has 255 columns, expected 256",
		"has 255 rows, expected 256",
		"is of the module",
		"is of 256 tokens, and the model has 4096",
		"has 255 rows, expected 256, the width of the embedding",
		"is of the module",
		"a vocabulary of another size is not done",
		"which is done of embed_tokens and lm_head alone"
	};
	char folder[] = "/tmp/t_adapters-XXXXXX", line[100], path[1024];
	jit_error err = { 0 };

	source_path(path, "models/tale-q8_0.gguf");
	jit_model *m = open_model(path, "cpu", false);
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		lora_folder(folder, &(struct lora_written){ &wrong[i], 1, 4, 0.1f, 1, NULL, NULL });
		assert_null(jit_adapter_open(m, folder, &err));
		if (!strstr(err.message, says[i]))
			fail_msg("\"%s\" does not say \"%s\"", err.message, says[i]);
	}
	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	assert_int_equal(system(line), 0);
	jit_model_close(m);
}

/* Which modules expressions name, as Python's re says of (.*\.)?(EXPRESSION)$. */
static void test_names(void **unused)
{
	static const struct {
		const char *expression, *path;
		bool names, bad;
	} rows[] = {
		{ "q_proj", "model.layers.0.self_attn.q_proj", true, false },
		{ "proj", "model.layers.0.self_attn.q_proj", false, false },
		{ "self_attn.q_proj", "model.layers.0.self_attn.q_proj", true, false },
		{ "self_attn.q_proj", "model.layers.0.self_attn_q_proj", true, false },
		{ "self_attn\\.q_proj", "model.layers.0.self_attn_q_proj", false, false },
		{ "^q_proj", "model.q_proj", false, false },
		{ "^model.q_proj$", "model.q_proj", true, false },
		{ "q_proj|v_proj", "layers.1.v_proj", true, false },
		{ "layers\\.(0|1|12)\\..*_proj", "model.layers.12.mlp.up_proj", true, false },
		{ "layers\\.(0|1|12)\\..*_proj", "model.layers.2.mlp.up_proj", false, false },
		{ "layers\\.\\d+\\.mlp\\.(?:up|down)_proj", "model.layers.31.mlp.down_proj", true, false },
		{ "layers.[^02].*", "layers.1.q", true, false },
		{ "layers.[^02].*", "layers.2.q", false, false },
		{ "layers.[0-24]\\.q?", "layers.4.", true, false },
		{ "layers.[0-24]\\.q?", "layers.3.q", false, false },
		{ "(ab?)+c", "x.ababac", true, false },
		{ "(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false, false },
		{ "(((a*)*)*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", true, false },
		{ "a**", "a", false, true },
		{ "a)", "a", false, true },
		{ "[a", "a", false, true },
		{ "a\\b", "a", false, true },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool bad, names = adapter_names(rows[i].expression, rows[i].path, &bad);
		if (names != rows[i].names || bad != rows[i].bad)
			fail_msg("%s of %s: %s%s", rows[i].expression, rows[i].path, names ? "named" : "not named",
			         bad ? ", refused" : "");
	}
}

/* Opens the adapter with changed and missing bytes of one of its files: it is refused or opened, and never more than
 * that. */
static void change_bytes(jit_model *m, const char *adapter, const char *folder, const char *name, uint64_t state)
{
	char path[1200];
	size_t n;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	uint8_t *all = file_bytes(path, &n);
	for (unsigned i = 0; i < (test_quick() ? 200u : 1500u); i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		const size_t at = (size_t)(state >> 33) % (n < 1500 ? n : 1500), cut = i % 9 ? n : at;
		const uint8_t was = all[at];
		all[at] = (uint8_t)(state >> 24);
		lora_put(folder, name, (const char *)all, cut);
		jit_adapter_close(jit_adapter_open(m, adapter, NULL));
		all[at] = was;
	}
	lora_put(folder, name, (const char *)all, n);
	free(all);
	jit_adapter_close(open_adapter(m, adapter));
}

static void test_changed_bytes(void **unused)
{
	static const struct {
		const char *config, *row;
	} kinds[] = { { ", \"alpha_pattern\": {\"q_proj\": 3, \"v.*|[ko]_proj\": 5}", NULL },
		      { ", \"use_dora\": true", ".lora_magnitude_vector" },
		      { ", \"lora_bias\": true", ".lora_B.bias" } };
	char folder[] = "/tmp/t_adapters-XXXXXX", line[100], path[1024], gguf[1024], copy[100];
	size_t n;

	source_path(path, "models/tale-q8_0.gguf");
	jit_model *m = open_model(path, "cpu", false);
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		lora_folder(folder, &(struct lora_written){ lora_tale, 2, 4, 0.1f, 1, kinds[i].config, kinds[i].row });
		change_bytes(m, folder, folder, "adapter_model.safetensors", i);
		change_bytes(m, folder, folder, "adapter_config.json", i);
	}
	jit_model_close(m);
	if (shared_path(path, "golden/llama-a") && shared_path(gguf, "golden-more/lora-llama-a/adapter-f32.gguf")) {
		uint8_t *all = file_bytes(gguf, &n);
		lora_put(folder, "adapter.gguf", (const char *)all, n);
		free(all);
		snprintf(copy, sizeof copy, "%s/adapter.gguf", folder);
		m = open_model(path, "cpu", false);
		change_bytes(m, copy, folder, "adapter.gguf", 7);
		jit_model_close(m);
	}
	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	assert_int_equal(system(line), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_files), cmocka_unit_test(test_refused_modules),
		cmocka_unit_test(test_names),         cmocka_unit_test(test_changed_bytes),
		cmocka_unit_test(test_refused_gguf),  cmocka_unit_test(test_refused_folders),
		cmocka_unit_test(test_fields)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

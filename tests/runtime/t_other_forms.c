/* tests/runtime/t_other_forms.c - models in a form that no reference lies there in, made from ones that do: all experts
 * in one tensor, heads of a state cut in two, biases and fields that change nothing or a known thing. What they compute
 * must be what those compute, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "tests/runtime/remade.h"
#include "tests/support/shared.h"

static const struct remade_run plain = { "cpu", 64 };
static const struct remade_run others[] = { { "cpu", 1 }, { "cpu", 7 }, { "ref", 16 }, { "sim:gfx1100", 16 } };
enum { OTHERS = sizeof others / sizeof *others };

/* The made model computes what `like` does, and the same elsewhere. */
static void check(const char *like, const char *made, size_t on)
{
	char path[300];

	remade_compare(like, plain, remade_path(path, made), plain, 0);
	for (size_t i = 0; i < (test_quick() ? on / 2 : on); i++)
		remade_compare(path, plain, path, others[i], 0);
}

static const char *golden(char path[1024], const char *name)
{
	char relative[80];

	snprintf(relative, sizeof relative, "golden/%s", name);
	return shared_path(path, relative);
}

/* ---- all experts in one tensor, as transformers 5 holds them */

static int kind_of(const char *kind)
{
	static const char *const kinds[][2] = { { "gate_proj", "w1" }, { "up_proj", "w3" }, { "down_proj", "w2" } };

	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 2; j++)
			if (strncmp(kind, kinds[i][j], strlen(kinds[i][j])) == 0)
				return i;
	return -1;
}

static struct slice expert(const struct original *o, const char *stem, int e, const char *kind)
{
	char name[200];

	snprintf(name, sizeof name, "%s.experts.%d.%s.weight", stem, e, kind);
	json_t *entry = json_object_get(o->header, name);
	return entry ? original_slice(entry, o->data) : (struct slice){ 0 };
}

/* The matrices of a kind of all experts, or of two kinds in turn. */
static void put_all(struct st_writer *w, const struct original *o, const char *stem, const char *const kinds[2],
                    const char *name)
{
	struct slice t, one = expert(o, stem, 0, kinds[0]);
	const size_t each = kinds[1] ? 2 : 1;
	uint8_t *all = malloc(64 * each * one.bytes);
	uint64_t shape[3] = { 0, each * one.dim[0], one.dim[1] };
	char full[200];
	size_t at = 0;

	for (; (t = expert(o, stem, (int)shape[0], kinds[0])).p; shape[0]++)
		for (size_t i = 0; i < each; i++, at += t.bytes) {
			t = expert(o, stem, (int)shape[0], kinds[i]);
			assert_true(t.p && shape[0] < 64);
			memcpy(all + at, t.p, t.bytes);
		}
	snprintf(full, sizeof full, "%s", stem);
	char *old = strstr(full, ".block_sparse_moe"); /* Mixtral's */
	if (old)
		strcpy(old, ".mlp");
	snprintf(full + strlen(full), sizeof full - strlen(full), ".experts.%s", name);
	st_write_tensor(w, full, one.type, 3, shape, all, at);
	free(all);
}

static void put_experts(struct st_writer *w, const struct original *o, const char *name, const char *at)
{
	const char *kind = strchr(at + strlen(".experts."), '.') + 1;
	char stem[160];

	snprintf(stem, sizeof stem, "%.*s", (int)(at - name), name);
	if (strncmp(at, ".experts.0.", 11) != 0)
		return;
	const bool letters = *kind == 'w', gated = expert(o, stem, 0, letters ? "w1" : "gate_proj").p;
	if (kind_of(kind) == 2)
		put_all(w, o, stem, (const char *const[2]){ letters ? "w2" : "down_proj" }, "down_proj");
	else if (kind_of(kind) == 1)
		put_all(w, o, stem,
		        gated ? (const char *const[2]){ letters ? "w1" : "gate_proj", letters ? "w3" : "up_proj" }
		              : (const char *const[2]){ "up_proj" },
		        gated ? "gate_up_proj" : "up_proj");
}

static void put_renamed(struct st_writer *w, const char *name, const struct slice *t)
{
	static const char *const names[][2] = {
		{ "block_sparse_moe.gate.weight", "mlp.gate.weight" },
		{ "block_sparse_moe.input_linear.weight", "block_sparse_moe.experts.gate_up_proj" },
		{ "block_sparse_moe.output_linear.weight", "block_sparse_moe.experts.down_proj" },
		{ "block_sparse_moe.router.layer.weight", "block_sparse_moe.router.weight" },
		{ "backbone.", "model." }
	};
	char full[200];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *at = strstr(name, names[i][0]);
		if (!at)
			continue;
		snprintf(full, sizeof full, "%.*s%s%s", (int)(at - name), name, names[i][1], at + strlen(names[i][0]));
		remade_put(w, full, t);
		return;
	}
	remade_put(w, name, t);
}

static bool make_whole(const char *name)
{
	struct original o;
	struct st_writer w;
	const char *key;
	json_t *entry;

	if (!original_open(&o, name))
		return false;
	st_writer_start(&w);
	json_object_foreach(o.header, key, entry)
	{
		const char *at = strstr(key, ".experts.");
		struct slice t = strcmp(key, "__metadata__") ? original_slice(entry, o.data) : (struct slice){ 0 };
		if (at && at[9] >= '0' && at[9] <= '9')
			put_experts(&w, &o, key, at);
		else if (t.p)
			put_renamed(&w, key, &t);
	}
	remade_model(name, &w, o.config);
	original_close(&o);
	return true;
}

static void test_whole_experts(void **state)
{
	static const char *const names[] = {
		"qwen3moe-a",   "mixtral-a",       "qwen2moe-a",   "olmoe-a",      "glm4moe-a",
		"lfm2moe-a",    "qwen3next-a",     "deepseekv2-a", "deepseekv3-a", "glm4moelite-a",
		"granitemoe-a", "granitehybrid-a", "nemotronh-a"
	};
	char path[1024];
	unsigned seen = 0;
	(void)state;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (make_whole(names[i])) {
			check(golden(path, names[i]), names[i], 0);
			seen++;
		}
	if (!seen)
		skip();
}

/* ---- heads of a state cut in two: each value's part of the state is its own, so that nothing changes */

static void test_heads_of_16(void **state)
{
	char path[1024];
	(void)state;

	if (!remade_halves("halves", "nemotronh-a", "mamba_num_heads", "mamba_head_dim"))
		skip();
	check(golden(path, "nemotronh-a"), "halves", OTHERS);
	assert_true(remade_halves("halves", "granitehybrid-a", "mamba_n_heads", "mamba_d_head"));
	check(golden(path, "granitehybrid-a"), "halves", OTHERS);
}

/* ---- biases */

enum change { AS_IT_IS, ZEROS, NUMBERS };

static void put_bias(struct st_writer *w, const char *key, uint64_t rows, enum change how)
{
	float *p = calloc(rows, sizeof *p);
	char name[200];

	for (uint64_t i = 0; how == NUMBERS && i < rows; i++)
		p[i] = (float)((i * 37 + 11) % 64) / 64.0f - 0.5f;
	snprintf(name, sizeof name, "%.*sbias", (int)(strlen(key) - strlen("weight")), key);
	st_write_tensor(w, name, DTYPE_F32, 1, &rows, p, rows * sizeof *p);
	free(p);
}

/* A model with those biases of attention, or without; field: what of the text's configuration becomes `value`. */
static bool make_biased(const char *name, const char *made, const char *field, bool value, enum change how)
{
	static const char *const matrices[] = { "q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight" };
	struct original o;
	struct st_writer w;
	const char *key;
	json_t *entry;

	if (!original_open(&o, name))
		return false;
	json_t *text = json_object_get(o.config, "text_config");
	json_object_set_new(text ? text : o.config, field, json_boolean(value));
	st_writer_start(&w);
	json_object_foreach(o.header, key, entry)
	{
		struct slice t = strcmp(key, "__metadata__") ? original_slice(entry, o.data) : (struct slice){ 0 };
		if (!t.p || (strstr(key, "proj.bias") && !value))
			continue;
		remade_put(&w, key, &t);
		for (size_t i = 0; how != AS_IT_IS && i < 4; i++)
			if (strstr(key, matrices[i]) && !strstr(key, "vis"))
				put_bias(&w, key, t.dim[0], how);
	}
	remade_model(made, &w, o.config);
	original_close(&o);
	return true;
}

static void test_attention_bias(void **state)
{
	static const char *const names[] = { "qwen35-a", "qwen3next-a", "gemma4-k-a", "gemma4-e-a", "nemotronh-a" };
	char path[1024], made[300];
	(void)state;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (!make_biased(names[i], "zeros", "attention_bias", true, ZEROS))
			skip();
		check(golden(path, names[i]), "zeros", 0);
		assert_true(make_biased(names[i], "numbers", "attention_bias", true, NUMBERS));
		assert_true(remade_differ(path, remade_path(made, "numbers")));
		check(made, "numbers", OTHERS);
	}
	/* transformers' class of Nemotron has no biases, and saves none beside the field */
	assert_true(make_biased("nemotronh-a", "none", "attention_bias", true, AS_IT_IS));
	check(golden(path, "nemotronh-a"), "none", 0);
}

static void test_no_qkv_bias(void **state)
{
	char path[1024], made[300];
	(void)state;

	if (!make_biased("qwen2moe-a", "without", "qkv_bias", false, AS_IT_IS))
		skip();
	assert_true(remade_differ(golden(path, "qwen2moe-a"), remade_path(made, "without")));
	check(made, "without", OTHERS);
}

/* ---- fields */

/* The model with a field of another value, which is taken; NULL: without it. False: the model is not there. */
static bool make_with(const char *name, const char *made, const char *field, json_t *value)
{
	struct original o;
	struct st_writer w;
	const char *key;
	json_t *entry;

	if (!original_open(&o, name)) {
		json_decref(value);
		return false;
	}
	json_t *text = json_object_get(o.config, "text_config");
	if (value)
		json_object_set_new(text ? text : o.config, field, value);
	else
		json_object_del(o.config, field);
	st_writer_start(&w);
	json_object_foreach(o.header, key, entry)
	{
		struct slice t = strcmp(key, "__metadata__") ? original_slice(entry, o.data) : (struct slice){ 0 };
		if (t.p)
			remade_put(&w, key, &t);
	}
	remade_model(made, &w, o.config);
	original_close(&o);
	return true;
}

static void test_alpha(void **state)
{
	char path[300];
	const double dims = 32;
	(void)state;

	if (!make_with("hunyuan-a", "alpha", "rope_scaling",
	               json_pack("{s:s, s:f, s:f, s:i, s:i, s:f, s:f}", "type", "dynamic", "alpha", 1000.0, "factor",
	                         1.0, "beta_fast", 32, "beta_slow", 1, "mscale", 1.0, "mscale_all_dim", 1.0)))
		skip();
	assert_true(make_with("hunyuan-a", "theta", "rope_theta", json_real(10000 * pow(1000, dims / (dims - 2)))));
	check(remade_path(path, "theta"), "alpha", OTHERS);
	assert_true(make_with("hunyuan-a", "one", "rope_scaling",
	                      json_pack("{s:s, s:i}", "rope_type", "dynamic", "alpha", 1)));
	char before[1024];
	check(golden(before, "hunyuan-a"), "one", 0);
}

static void test_steps(void **state)
{
	static const char *const fields[] = { "time_step_min", "time_step_max", "time_step_floor" };
	char path[1024], made[300];
	(void)state;

	for (size_t i = 0; i < 3; i++) {
		if (!make_with("granitehybrid-a", "step", fields[i], json_real(0.05)))
			skip();
		check(golden(path, "granitehybrid-a"), "step", 0);
	}
	assert_true(make_with("granitehybrid-a", "step", "time_step_limit", json_pack("[f, f]", 0.0, 1e5)));
	check(path, "step", 0);
	assert_true(make_with("granitehybrid-a", "step", "time_step_limit", json_pack("[f, f]", 0.0, 0.125)));
	assert_true(remade_differ(path, remade_path(made, "step")));
	check(made, "step", OTHERS);
	assert_true(make_with("granitehybrid-a", "floor", "time_step_limit", json_pack("[f, f]", 0.125, 0.0625)));
	assert_true(make_with("granitehybrid-a", "step", "time_step_limit", json_pack("[f, f]", 0.0625, 0.0625)));
	check(remade_path(made, "floor"), "step", 0); /* the greatest counts where it is less than the least */
}

static void test_gemma_caps(void **state)
{
	char path[1024], made[300];
	(void)state;

	if (!make_with("gemma3-a", "caps", "attn_logit_softcapping", json_real(2)))
		skip();
	check(golden(path, "gemma3-a"), "caps", 0); /* the class has the field and does not use it */
	assert_true(make_with("gemma3-a", "caps", "final_logit_softcapping", json_real(1e3)));
	remade_compare(path, plain, remade_path(made, "caps"), plain, 1e-4);
	assert_true(make_with("gemma3-a", "caps", "final_logit_softcapping", json_real(2)));
	assert_true(remade_differ(path, made));
	check(made, "caps", OTHERS);
}

/* Fields that a class does not know, or that say again what others do. */
static void test_idle_fields(void **state)
{
	char path[1024], made[300];
	(void)state;

	if (!make_with("nemotronh-a", "tied", "tie_word_embeddings", json_true()))
		skip();
	check(golden(path, "nemotronh-a"), "tied", 0); /* its class ties nothing */
	assert_true(make_with("glm4moelite-a", "lite", "first_k_dense_replace", json_integer(2)));
	check(golden(path, "glm4moelite-a"), "lite", 0);
	struct original o;
	original_read(&o, remade_path(made, "lite"));
	assert_non_null(json_object_get(o.config, "mlp_layer_types"));
	original_close(&o);
	assert_true(make_with("glm4moelite-a", "lite", "mlp_layer_types", NULL));
	check(path, "lite", 0);
	if (make_with("mistral4-a", "more", "rope_parameters",
	              json_pack("{s:s, s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:i}", "rope_type", "yarn", "factor",
	                        8.0, "original_max_position_embeddings", 64, "beta_fast", 32.0, "beta_slow", 1.0,
	                        "rope_theta", 10000.0, "mscale", 1.0, "mscale_all_dim", 1.0, "llama_4_scaling_beta",
	                        0.1, "max_position_embeddings", 7)))
		check(golden(path, "mistral4-a"), "more", 0);
}

/* Norms stand behind the rotation, so that a factor of its cosines and sines changes nothing but the epsilon. */
static void test_rotated_norms(void **state)
{
	char one[300], two[300];
	(void)state;

	for (int i = 1; i < 3; i++)
		if (!make_with("hunyuan-a", i > 1 ? "two" : "one", "rope_scaling",
		               json_pack("{s:s, s:f, s:i, s:f}", "rope_type", "yarn", "factor", 4.0,
		                         "original_max_position_embeddings", 16, "attention_factor", (double)i)))
			skip();
	remade_compare(remade_path(one, "one"), plain, remade_path(two, "two"), plain, 1e-4);
	assert_true(remade_differ(one, two));
	check(two, "two", OTHERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_whole_experts),  cmocka_unit_test(test_heads_of_16),
		                            cmocka_unit_test(test_attention_bias), cmocka_unit_test(test_no_qkv_bias),
		                            cmocka_unit_test(test_alpha),          cmocka_unit_test(test_steps),
		                            cmocka_unit_test(test_gemma_caps),     cmocka_unit_test(test_idle_fields),
		                            cmocka_unit_test(test_rotated_norms) };

	return cmocka_run_group_tests(tests, remade_start, remade_end);
}

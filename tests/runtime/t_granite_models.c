/* tests/runtime/t_granite_models.c - Granite's models in forms of which no reference lies there, made from those that
 * do: as the GGUF files that a converter writes, without experts, and without layers that have a state. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/loaders/gguf_writer.h"
#include "tests/runtime/remade.h"
#include "tests/support/shared.h"

enum { HEAD_DIM = 16 };

/* ---- Granite without experts, and with ones that say nothing: the same */

static void test_granite_without_experts(void **state)
{
	struct original o;
	struct st_writer with, without;
	char a[300], b[300];
	const char *name;
	json_t *entry;
	(void)state;

	if (!original_open(&o, "granitehybrid-a"))
		skip();
	st_writer_start(&with);
	st_writer_start(&without);
	json_object_foreach(o.header, name, entry)
	{
		if (strcmp(name, "__metadata__") == 0)
			continue;
		struct slice t = original_slice(entry, o.data);
		if (strstr(name, "block_sparse_moe.output_linear"))
			t.p = NULL;
		remade_put(&with, name, &t);
		if (!strstr(name, "block_sparse_moe"))
			remade_put(&without, name, &t);
	}
	remade_model("with", &with, o.config);
	json_object_set_new(o.config, "num_local_experts", json_integer(0));
	remade_model("without", &without, o.config);
	original_close(&o);
	remade_compare(remade_path(a, "with"), (struct remade_run){ "cpu", 16 }, remade_path(b, "without"),
	               (struct remade_run){ "cpu", 16 }, 0);
}

/* ---- Granite as a GGUF file */

static float bf16_at(const struct slice *t, uint64_t i)
{
	uint16_t half;
	float f;

	memcpy(&half, t->p + 2 * i, 2);
	uint32_t bits = (uint32_t)half << 16;
	memcpy(&f, &bits, 4);
	return f;
}

/* Vectors and small matrices are F32 there. */
static void put_floats(struct gguf_writer *w, const char *name, const struct slice *t, uint64_t cols, bool minus_exp)
{
	uint64_t n = t->bytes / 2;
	float *x = malloc(n * sizeof *x);

	for (uint64_t i = 0; i < n; i++)
		x[i] = minus_exp ? (float)-exp((double)bf16_at(t, i)) : bf16_at(t, i);
	gguf_write_tensor(w, name, DTYPE_F32, cols == n ? 1 : 2, (const uint64_t[]){ cols, n / cols }, x, n * 4);
	free(x);
}

/* Rows of queries and keys in pairs that rotate, though none does here. */
static void put_paired(struct gguf_writer *w, const char *name, const struct slice *t, uint64_t head)
{
	uint8_t *rows = malloc(t->bytes);
	size_t row = t->dim[1] * 2;

	for (uint64_t r = 0; r < t->dim[0]; r++)
		memcpy(rows + r * row, t->p + (r - r % head + r % 2 * (head / 2) + r % head / 2) * row, row);
	gguf_write_tensor(w, name, DTYPE_BF16, 2, (const uint64_t[]){ t->dim[1], t->dim[0] }, rows, t->bytes);
	free(rows);
}

/* One half of the rows of each of `count` matrices. */
static void put_half(struct gguf_writer *w, const char *name, const struct slice *t, uint64_t count, int half)
{
	uint64_t rows = t->dim[t->rank - 2] / 2, cols = t->dim[t->rank - 1];
	uint8_t *p = malloc(t->bytes / 2);
	size_t part = rows * cols * 2;

	for (uint64_t e = 0; e < count; e++)
		memcpy(p + e * part, t->p + (2 * e + (uint64_t)half) * part, part);
	gguf_write_tensor(w, name, DTYPE_BF16, (unsigned)t->rank, (const uint64_t[]){ cols, rows, count }, p,
	                  t->bytes / 2);
	free(p);
}

/* What GGUF files call the tensors of a layer. */
static const struct {
	const char *hf, *gguf;
	char how; /* w: as it is, v: a vector, c: rows of one, a: such of -exp, p: paired, r: floats, h: in
	             halves, then its gguf is what kind of experts */
} names[] = {
	{ "input_layernorm.weight", "attn_norm.weight", 'v' },
	{ "post_attention_layernorm.weight", "ffn_norm.weight", 'v' },
	{ "mamba.in_proj.weight", "ssm_in.weight", 'w' },
	{ "mamba.out_proj.weight", "ssm_out.weight", 'w' },
	{ "mamba.conv1d.weight", "ssm_conv1d.weight", 'r' },
	{ "mamba.conv1d.bias", "ssm_conv1d.bias", 'v' },
	{ "mamba.dt_bias", "ssm_dt.bias", 'v' },
	{ "mamba.A_log", "ssm_a", 'a' },
	{ "mamba.D", "ssm_d", 'c' },
	{ "mamba.norm.weight", "ssm_norm.weight", 'v' },
	{ "self_attn.q_proj.weight", "attn_q.weight", 'p' },
	{ "self_attn.k_proj.weight", "attn_k.weight", 'p' },
	{ "self_attn.v_proj.weight", "attn_v.weight", 'w' },
	{ "self_attn.o_proj.weight", "attn_output.weight", 'w' },
	{ "block_sparse_moe.router.layer.weight", "ffn_gate_inp.weight", 'r' },
	{ "block_sparse_moe.output_linear.weight", "ffn_down_exps.weight", 'w' },
	{ "block_sparse_moe.input_linear.weight", "exps", 'h' },
	{ "shared_mlp.input_linear.weight", "shexp", 'h' },
	{ "shared_mlp.output_linear.weight", "ffn_down_shexp.weight", 'w' },
	{ "mlp.gate_proj.weight", "ffn_gate.weight", 'w' },
	{ "mlp.up_proj.weight", "ffn_up.weight", 'w' },
	{ "mlp.down_proj.weight", "ffn_down.weight", 'w' }
};

static void put_granite(struct gguf_writer *w, const char *name, const struct slice *t)
{
	unsigned layer;
	int at = 0;
	char full[100], part[60];

	if (sscanf(name, "model.layers.%u.%n", &layer, &at) != 1 || !at)
		return;
	size_t k = 0;
	while (k < sizeof names / sizeof *names && strcmp(names[k].hf, name + at) != 0)
		k++;
	if (k == sizeof names / sizeof *names)
		fail_msg("%s is not expected", name);
	const char how = names[k].how;
	for (int half = 0; half < (how == 'h' ? 2 : 1); half++) {
		if (how == 'h')
			snprintf(part, sizeof part, "ffn_%s_%s.weight", half ? "up" : "gate", names[k].gguf);
		else
			snprintf(part, sizeof part, "%s", names[k].gguf);
		snprintf(full, sizeof full, "blk.%u.%s", layer, part);
		if (how == 'w')
			gguf_write_tensor(w, full, DTYPE_BF16, (unsigned)t->rank,
			                  (const uint64_t[]){ t->dim[t->rank - 1], t->dim[t->rank - 2], t->dim[0] },
			                  t->p, t->bytes);
		else if (how == 'p')
			put_paired(w, full, t, HEAD_DIM);
		else if (how == 'h')
			put_half(w, full, t, t->rank == 3 ? t->dim[0] : 1, half);
		else
			put_floats(w, full, t,
			           how == 'v'   ? t->bytes / 2
			           : how == 'r' ? t->dim[t->rank - 1]
			                        : 1,
			           how == 'a');
	}
}

/* What a converter makes of a configuration. */
static const struct {
	const char *field, *key;
	bool real;
} keys[] = { { "num_hidden_layers", "block_count", false },
	     { "max_position_embeddings", "context_length", false },
	     { "hidden_size", "embedding_length", false },
	     { "intermediate_size", "feed_forward_length", false },
	     { "num_attention_heads", "attention.head_count", false },
	     { "vocab_size", "vocab_size", false },
	     { "num_local_experts", "expert_count", false },
	     { "num_experts_per_tok", "expert_used_count", false },
	     { "shared_intermediate_size", "expert_shared_feed_forward_length", false },
	     { "mamba_d_conv", "ssm.conv_kernel", false },
	     { "mamba_d_state", "ssm.state_size", false },
	     { "mamba_n_groups", "ssm.group_count", false },
	     { "mamba_n_heads", "ssm.time_step_rank", false },
	     { "rms_norm_eps", "attention.layer_norm_rms_epsilon", true },
	     { "rope_theta", "rope.freq_base", true },
	     { "attention_multiplier", "attention.scale", true },
	     { "embedding_multiplier", "embedding_scale", true },
	     { "residual_multiplier", "residual_scale", true },
	     { "logits_scaling", "logit_scale", true } };

static void put_config(struct gguf_writer *w, const char *arch, json_t *config)
{
	char key[80];

	gguf_write_string(w, "general.architecture", arch);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		json_t *v = json_object_get(config, keys[i].field);
		snprintf(key, sizeof key, "%s.%s", arch, keys[i].key);
		if (v && keys[i].real)
			gguf_write_f32(w, key, (float)json_number_value(v));
		else if (v)
			gguf_write_u32(w, key, (uint32_t)json_integer_value(v));
	}
	snprintf(key, sizeof key, "%s.rope.dimension_count", arch);
	gguf_write_u32(w, key, HEAD_DIM);
}

/* The tensors of a model behind what is in w, into a file. */
static void finish_gguf(struct gguf_writer *w, const struct original *o, const char *file)
{
	const char *name;
	json_t *entry;
	size_t n;

	json_object_foreach(o->header, name, entry)
	{
		if (strcmp(name, "__metadata__") == 0)
			continue;
		struct slice t = original_slice(entry, o->data);
		if (strcmp(name, "model.embed_tokens.weight") == 0)
			gguf_write_tensor(w, "token_embd.weight", DTYPE_BF16, 2,
			                  (const uint64_t[]){ t.dim[1], t.dim[0] }, t.p, t.bytes);
		else if (strcmp(name, "model.norm.weight") == 0)
			put_floats(w, "output_norm.weight", &t, t.dim[0], false);
		else
			put_granite(w, name, &t);
	}
	uint8_t *p = gguf_writer_finish(w, &n);
	gguf_writer_free(w);
	remade_file(file, p, n);
	free(p);
}

static const struct remade_run run = { "cpu", 16 };

/* halves: with heads of a state of 16 values. */
static void check_hybrid_gguf(bool halves)
{
	static const int32_t kv[] = { 0, 2, 0 };
	struct original o;
	struct gguf_writer w;
	char path[1024], made[300];

	if (!original_open(&o, "granitehybrid-a"))
		skip();
	if (halves) {
		original_close(&o);
		assert_true(remade_halves("halves", "granitehybrid-a", "mamba_n_heads", "mamba_d_head"));
		original_read(&o, remade_path(made, "halves"));
	}
	gguf_writer_start(&w, 3, 32);
	put_config(&w, "granitehybrid", o.config);
	gguf_write_u32(&w, "granitehybrid.ssm.inner_size", 128);
	gguf_write_array(&w, "granitehybrid.attention.head_count_kv", GGUF_I32, 3, kv, sizeof kv);
	gguf_write_bool(&w, "granitehybrid.rope.scaling.finetuned", false);
	finish_gguf(&w, &o, "granite.gguf");
	original_close(&o);
	remade_compare(shared_path(path, "golden/granitehybrid-a"), run, remade_path(made, "granite.gguf"), run, 0);
}

static void test_granite_gguf(void **state)
{
	(void)state;
	check_hybrid_gguf(false);
	check_hybrid_gguf(true);
}

/* ---- those that never have a state */

static void test_granite_plain(void **state)
{
	static const struct {
		const char *golden, *arch;
	} models[] = { { "granite-a", "granite" }, { "granitemoe-a", "granitemoe" } };
	(void)state;

	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct original o;
		struct gguf_writer w;
		char path[1024], relative[60], made[300], key[60];
		if (!original_open(&o, models[i].golden))
			skip();
		gguf_writer_start(&w, 3, 32);
		put_config(&w, models[i].arch, o.config);
		snprintf(key, sizeof key, "%s.attention.head_count_kv", models[i].arch);
		gguf_write_u32(&w, key, 2);
		finish_gguf(&w, &o, "plain.gguf");
		original_close(&o);
		snprintf(relative, sizeof relative, "golden/%s", models[i].golden);
		remade_compare(shared_path(path, relative), run, remade_path(made, "plain.gguf"), run, 0);
	}
}

/* A hybrid all of whose layers attend, as GGUF file: of the plain kind, with the hybrids' keys. */
static void write_attending(const struct original *o, const char *file, bool rotates, bool factors)
{
	static const int32_t kv[] = { 2, 2, 2, 2 };
	float far[HEAD_DIM / 2];
	struct gguf_writer w;

	gguf_writer_start(&w, 3, 32);
	put_config(&w, "granite", o->config);
	gguf_write_u32(&w, "granite.ssm.inner_size", 128);
	gguf_write_array(&w, "granite.attention.head_count_kv", GGUF_I32, 4, kv, sizeof kv);
	gguf_write_bool(&w, "granite.rope.scaling.finetuned", rotates);
	for (int i = 0; i < HEAD_DIM / 2; i++)
		far[i] = 1e30f;
	if (factors)
		gguf_write_tensor(&w, "rope_freqs.weight", DTYPE_F32, 1, (const uint64_t[]){ HEAD_DIM / 2 }, far,
		                  sizeof far);
	finish_gguf(&w, o, file);
}

/* The same as safetensors, whose feed-forward layer is the shared expert. */
static void write_hybrid(const struct original *o, const char *folder, const char *positions)
{
	json_t *config = json_deep_copy(o->config), *types = json_array(), *entry;
	struct st_writer w;
	const char *name;
	char full[100];

	for (int i = 0; i < 4; i++)
		json_array_append_new(types, json_string("attention"));
	json_object_set_new(config, "layer_types", types);
	json_object_set_new(config, "model_type", json_string("granitemoehybrid"));
	json_object_set_new(config, "architectures", json_pack("[s]", "GraniteMoeHybridForCausalLM"));
	json_object_set_new(config, "position_embedding_type", json_string(positions));
	st_writer_start(&w);
	json_object_foreach(o->header, name, entry)
	{
		const char *at = strstr(name, "mlp.");
		struct slice t = strcmp(name, "__metadata__") ? original_slice(entry, o->data) : (struct slice){ 0 };
		if (at && strcmp(at, "mlp.gate_proj.weight") == 0) {
			snprintf(full, sizeof full, "%.*smlp.up_proj.weight", (int)(at - name), name);
			struct slice up = original_slice(json_object_get(o->header, full), o->data);
			uint8_t *both = malloc(2 * t.bytes);
			memcpy(both, t.p, t.bytes);
			memcpy(both + t.bytes, up.p, t.bytes);
			snprintf(full, sizeof full, "%.*sshared_mlp.input_linear.weight", (int)(at - name), name);
			st_write_tensor(&w, full, DTYPE_BF16, 2, (const uint64_t[]){ 2 * t.dim[0], t.dim[1] }, both,
			                2 * t.bytes);
			free(both);
		} else if (at && strcmp(at, "mlp.down_proj.weight") == 0) {
			snprintf(full, sizeof full, "%.*sshared_mlp.output_linear.weight", (int)(at - name), name);
			remade_put(&w, full, &t);
		} else if (t.p && !at) {
			remade_put(&w, name, &t);
		}
	}
	remade_model(folder, &w, config);
	json_decref(config);
}

/* Experts with another that all tokens go to, in layers that attend: a hybrid as safetensors, the plain kind as GGUF
 * file. The shared expert is the first of the others. */
static void test_granite_shared(void **state)
{
	static const int32_t kv[] = { 2, 2 };
	struct original o;
	struct gguf_writer g;
	struct st_writer w;
	char a[300], b[300], full[100];
	const char *name, *at;
	json_t *entry;
	(void)state;

	if (!original_open(&o, "granitemoe-a"))
		skip();
	json_object_set_new(o.config, "shared_intermediate_size", json_integer(32));
	st_writer_start(&w);
	json_object_foreach(o.header, name, entry)
	{
		struct slice t = strcmp(name, "__metadata__") ? original_slice(entry, o.data) : (struct slice){ 0 };
		if (t.p)
			remade_put(&w, name, &t);
		if (!t.p || t.rank != 3)
			continue;
		at = strstr(name, "block_sparse_moe.");
		snprintf(full, sizeof full, "%.*sshared_mlp.%s", (int)(at - name), name, strchr(at, '.') + 1);
		st_write_tensor(&w, full, t.type, 2, t.dim + 1, t.p, t.bytes / t.dim[0]);
	}
	json_object_set_new(o.config, "layer_types", json_pack("[ss]", "attention", "attention"));
	json_object_set_new(o.config, "model_type", json_string("granitemoehybrid"));
	json_object_set_new(o.config, "architectures", json_pack("[s]", "GraniteMoeHybridForCausalLM"));
	json_object_set_new(o.config, "position_embedding_type", json_string("rope"));
	json_object_set_new(o.config, "mamba_d_state", json_integer(16));
	json_object_set_new(o.config, "mamba_n_heads", json_integer(4));
	remade_model("shared", &w, o.config);
	original_close(&o);

	original_read(&o, remade_path(a, "shared"));
	gguf_writer_start(&g, 3, 32);
	put_config(&g, "granitemoe", o.config);
	gguf_write_u32(&g, "granitemoe.ssm.inner_size", 128);
	gguf_write_array(&g, "granitemoe.attention.head_count_kv", GGUF_I32, 2, kv, sizeof kv);
	gguf_write_bool(&g, "granitemoe.rope.scaling.finetuned", true);
	finish_gguf(&g, &o, "shared.gguf");
	original_close(&o);
	remade_compare(a, run, remade_path(b, "shared.gguf"), run, 0);
}

/* Where the files say so, nothing rotates; in the plain kind's, too. */
static void test_granite_attending(void **state)
{
	static const struct {
		const char *field;
		int value;
	} fields[] = { { "num_local_experts", 0 }, { "num_experts_per_tok", 0 }, { "shared_intermediate_size", 64 },
		       { "mamba_d_conv", 4 },      { "mamba_d_state", 16 },      { "mamba_n_groups", 1 },
		       { "mamba_n_heads", 4 },     { "mamba_d_head", 32 } };
	struct original o;
	char path[1024], a[300], b[300];
	(void)state;

	if (!original_open(&o, "granite-a"))
		skip();
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		json_object_set_new(o.config, fields[i].field, json_integer(fields[i].value));
	write_attending(&o, "rotates.gguf", true, false);
	write_attending(&o, "not.gguf", false, false);
	write_attending(&o, "far.gguf", true, true);
	write_hybrid(&o, "rope", "rope");
	write_hybrid(&o, "nope", "nope");
	original_close(&o);
	shared_path(path, "golden/granite-a");
	remade_compare(path, run, remade_path(a, "rotates.gguf"), run, 0);
	remade_compare(path, run, remade_path(a, "rope"), run, 0);
	remade_compare(remade_path(a, "nope"), run, remade_path(b, "not.gguf"), run, 0);
	remade_compare(remade_path(a, "far.gguf"), run, remade_path(b, "not.gguf"), run, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_granite_without_experts), cmocka_unit_test(test_granite_gguf),
		cmocka_unit_test(test_granite_plain), cmocka_unit_test(test_granite_shared),
		cmocka_unit_test(test_granite_attending)
	};
	return cmocka_run_group_tests(tests, remade_start, remade_end);
}

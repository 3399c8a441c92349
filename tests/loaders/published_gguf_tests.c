/* tests/loaders/published_gguf_tests.c - the published GGUF headers, rebuilt with small tensors. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/shared.h"
#include "tests/loaders/st_writer.h"
#include "tests/loaders/published.h"

static const char *value_text(json_t *v, char out[64])
{
	json_t *printed = json_is_object(v) ? json_object_get(v, "printed") : v;

	if (json_is_string(printed))
		return json_string_value(printed);
	snprintf(out, 64, "%.9g",
	         json_is_boolean(printed) ? (double)json_is_true(printed) : json_number_value(printed));
	return out;
}

/* The type is written down, or follows from the key. */
static const char *type_of(const char *key, json_t *one, const char *value)
{
	static const char *const floats[] = { "epsilon", "freq_base", "scale", "softcapping", "factor" };

	if (json_is_object(one))
		return json_string_value(json_object_get(one, "type"));
	for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
		if (strstr(key, floats[i]))
			return "f32";
	if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
		return "bool";
	return *value && strspn(value, "0123456789") == strlen(value) && strlen(value) < 10 ? "u32" : "str";
}

static void put_key(struct gguf_writer *w, const char *key, json_t *one)
{
	char number_text[64];
	const char *value = value_text(json_is_object(one) ? json_object_get(one, "value") : one, number_text),
		   *type = type_of(key, one, value);

	if (strncmp(key, "split.", 6) == 0 || strncmp(type, "arr", 3) == 0) /* of one file of a set; cut in print */
		return;
	if (strcmp(type, "str") == 0)
		gguf_write_string(w, key, value);
	else if (strcmp(type, "f32") == 0)
		gguf_write_f32(w, key, strtof(value, NULL));
	else if (strcmp(type, "bool") == 0)
		gguf_write_bool(w, key, *value == 't' || *value == '1');
	else
		gguf_write_u32(w, key, (uint32_t)strtoul(value, NULL, 10));
}

uint64_t key_number(json_t *kv, const char *arch, const char *suffix, uint64_t otherwise)
{
	char key[100], out[64];

	snprintf(key, sizeof key, "%s.%s", arch, suffix);
	json_t *one = json_object_get(kv, key);
	return one ? strtoull(value_text(json_is_object(one) ? json_object_get(one, "value") : one, out), NULL, 10)
	           : otherwise;
}

void describe(struct gguf_writer *w, const char *name, enum dtype type, const uint64_t ne[3], uint64_t *at)
{
	const uint64_t count = ne[0] * (ne[1] ? ne[1] : 1) * (ne[2] ? ne[2] : 1);

	gguf_write_tensor(w, name, type, ne[2] ? 3 : ne[1] ? 2 : 1, ne, NULL, 0);
	memcpy(w->info.p + w->info.n - sizeof *at, at, sizeof *at);
	*at += (count * dtype_table[type].bytes + 31) / 32 * 32;
}

static void put_info(struct gguf_writer *w, const char *name, const struct sizes *s, uint64_t *at)
{
	uint64_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
	const struct {
		const char *part;
		uint64_t cols, rows;
	} list[] = {
		{ "attn_qkv.weight", s->hidden, q + 2 * kv },
		{ "rope_factors_long.weight", s->head_dim / 2, 0 },
		{ "rope_factors_short.weight", s->head_dim / 2, 0 },
		{ "attn_q.weight", s->hidden, q },
		{ "attn_k.weight", s->hidden, kv },
		{ "attn_v.weight", s->hidden, kv },
		{ "attn_output.weight", q, s->hidden },
		{ "ffn_gate.weight", s->hidden, s->ffn },
		{ "ffn_up.weight", s->hidden, (s->fused ? 2 : 1) * s->ffn },
		{ "ffn_down.weight", s->ffn, s->hidden },
		{ "ffn_gate_inp.weight", s->hidden, s->experts },
		{ "token_embd.weight", s->hidden, s->vocab },
		{ "output.weight", s->hidden, s->vocab },
		{ "attn_q_norm.weight", s->head_dim, 0 },
		{ "attn_k_norm.weight", s->head_dim, 0 },
		{ "attn_q.bias", q, 0 },
		{ "attn_k.bias", kv, 0 },
		{ "attn_v.bias", kv, 0 },
		{ "norm.weight", s->hidden, 0 },
	};

	if (strstr(name, "_exps.weight")) {
		bool down = strstr(name, "down");
		describe(w, name, DTYPE_BF16,
		         (const uint64_t[]){ down ? s->expert_ffn : s->hidden, down ? s->hidden : s->expert_ffn,
		                             s->experts },
		         at);
		return;
	}
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (strlen(name) >= strlen(list[i].part) &&
		    strcmp(name + strlen(name) - strlen(list[i].part), list[i].part) == 0) {
			describe(w, name, list[i].rows ? DTYPE_BF16 : DTYPE_F32,
			         (const uint64_t[]){ list[i].cols, list[i].rows, 0 }, at);
			return;
		}
	describe(w, name, DTYPE_F32, (const uint64_t[]){ 32, 0, 0 }, at);
}

/* The tensors that a file names, or those of a qwen3 with its embedding tied. */
static void put_infos(struct gguf_writer *w, json_t *names, const struct sizes *s)
{
	static const char *const layer[] = { "attn_norm",   "attn_q",      "attn_k",      "attn_v",
		                             "attn_output", "attn_q_norm", "attn_k_norm", "ffn_norm",
		                             "ffn_gate",    "ffn_up",      "ffn_down" },
				 *const mixed[] = { "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps" };
	uint64_t at = 0;
	char name[64];

	bool embedding = false;
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *one = json_string_value(json_array_get(names, i));
		embedding = embedding || strcmp(one, "token_embd.weight") == 0;
		put_info(w, one, s, &at);
	}
	if (names && !embedding) /* a list leaves it out */
		put_info(w, "token_embd.weight", s, &at);
	if (names)
		return;
	put_info(w, "token_embd.weight", s, &at);
	put_info(w, "output_norm.weight", s, &at);
	for (uint64_t i = 0; i < s->layers; i++)
		for (size_t k = 0; k < sizeof layer / sizeof *layer; k++) {
			bool mixture = s->experts && k >= 8;
			if (mixture && k - 8 >= sizeof mixed / sizeof *mixed)
				break;
			snprintf(name, sizeof name, "blk.%" PRIu64 ".%s.weight", i, mixture ? mixed[k - 8] : layer[k]);
			put_info(w, name, s, &at);
			if (mixture && k == 10) {
				snprintf(name, sizeof name, "blk.%" PRIu64 ".%s.weight", i, mixed[3]);
				put_info(w, name, s, &at);
			}
		}
}

/* Those of a Qwen 3.5. */
static void put_delta_infos(struct gguf_writer *w, json_t *kv, const char *arch, const struct sizes *s)
{
	uint64_t heads = key_number(kv, arch, "ssm.time_step_rank", 1),
		 shared = key_number(kv, arch, "expert_shared_feed_forward_length", 0),
		 values = key_number(kv, arch, "ssm.inner_size", 1), key = key_number(kv, arch, "ssm.state_size", 1),
		 channels = values + 2 * key * key_number(kv, arch, "ssm.group_count", 1), q = s->heads * s->head_dim,
		 rows_kv = s->kv_heads * s->head_dim, at = 0;
	const struct {
		const char *name;
		uint64_t cols, rows;
		int in; /* 0: in every layer; 1: with a state; 2: with attention; 3: without experts; 4: with them */
	} list[] = {
		{ "attn_norm.weight", s->hidden, 0, 0 },
		{ "post_attention_norm.weight", s->hidden, 0, 0 },
		{ "ffn_gate.weight", s->hidden, s->ffn, 3 },
		{ "ffn_up.weight", s->hidden, s->ffn, 3 },
		{ "ffn_down.weight", s->ffn, s->hidden, 3 },
		{ "ffn_gate_inp.weight", s->hidden, s->experts, 4 },
		{ "ffn_gate_shexp.weight", s->hidden, shared, 4 },
		{ "ffn_up_shexp.weight", s->hidden, shared, 4 },
		{ "ffn_down_shexp.weight", shared, s->hidden, 4 },
		{ "ffn_gate_inp_shexp.weight", s->hidden, 1, 4 },
		{ "attn_qkv.weight", s->hidden, channels, 1 },
		{ "attn_gate.weight", s->hidden, values, 1 },
		{ "ssm_alpha.weight", s->hidden, heads, 1 },
		{ "ssm_beta.weight", s->hidden, heads, 1 },
		{ "ssm_out.weight", values, s->hidden, 1 },
		{ "ssm_conv1d.weight", key_number(kv, arch, "ssm.conv_kernel", 1), channels, 1 },
		{ "ssm_a", heads, 0, 1 },
		{ "ssm_dt.bias", heads, 0, 1 },
		{ "ssm_norm.weight", values / heads, 0, 1 },
		{ "attn_q.weight", s->hidden, 2 * q, 2 },
		{ "attn_k.weight", s->hidden, rows_kv, 2 },
		{ "attn_v.weight", s->hidden, rows_kv, 2 },
		{ "attn_output.weight", q, s->hidden, 2 },
		{ "attn_q_norm.weight", s->head_dim, 0, 2 },
		{ "attn_k_norm.weight", s->head_dim, 0, 2 },
	};
	char name[64];

	put_info(w, "token_embd.weight", s, &at);
	put_info(w, "output_norm.weight", s, &at);
	for (uint64_t i = 0; i < s->layers; i++) {
		const bool in[] = { true, i % 4 != 3, i % 4 == 3, !s->experts, s->experts };
		for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
			if (!in[list[k].in])
				continue;
			snprintf(name, sizeof name, "blk.%" PRIu64 ".%s", i, list[k].name);
			describe(w, name, list[k].rows ? DTYPE_BF16 : DTYPE_F32,
			         (const uint64_t[]){ list[k].cols, list[k].rows, 0 }, &at);
		}
		for (size_t k = 0; s->experts && k < 3; k++) {
			static const char *const part[] = { "gate", "up", "down" };
			snprintf(name, sizeof name, "blk.%" PRIu64 ".ffn_%s_exps.weight", i, part[k]);
			put_info(w, name, s, &at);
		}
	}
}

static void check_header(const char *file, struct counts *c)
{
	char path[1024], relative[300], out[64];
	struct gguf_writer w;
	const char *key, *part = NULL;
	json_t *one;
	size_t n;

	snprintf(relative, sizeof relative, "data/gguf-headers/%s", file);
	if (!shared_path(path, relative))
		fail_msg("%s is listed, but not there", file);
	json_t *all = json_load_file(path, 0, NULL), *kv = json_object_get(all, "kv"),
	       *name = json_object_get(kv, "general.architecture");
	gguf_writer_start(&w, 3, 32);
	if (!kv)
		gguf_write_string(&w, "general.architecture", "falcon");
	json_object_foreach(kv, key, one) put_key(&w, key, one);
	const char *arch =
		!kv ? "falcon" : value_text(json_is_object(name) ? json_object_get(name, "value") : name, out);
	bool routed = strcmp(arch, "glm4moe") == 0 || strcmp(arch, "deepseek2") == 0;
	bool run = strcmp(arch, "llama") == 0 || strcmp(arch, "qwen2") == 0 || strcmp(arch, "qwen3") == 0 ||
	           strcmp(arch, "qwen35") == 0 || strcmp(arch, "qwen35moe") == 0 || strcmp(arch, "qwen3moe") == 0 ||
	           strcmp(arch, "qwen3vlmoe") == 0 || routed ||
	           (json_object_get(all, "tensor_names") &&
	            (strcmp(arch, "phi3") == 0 || strcmp(arch, "command-r") == 0 || strcmp(arch, "gemma") == 0 ||
	             strcmp(arch, "gemma2") == 0));
	struct sizes s = { .layers = key_number(kv, arch, "block_count", 1),
		           .hidden = key_number(kv, arch, "embedding_length", 32),
		           .ffn = key_number(kv, arch, "feed_forward_length", 32),
		           .heads = key_number(kv, arch, "attention.head_count", 1),
		           .vocab = key_number(kv, arch, "vocab_size", 1000) };
	s.fused = strcmp(arch, "phi3") == 0;
	s.experts = key_number(kv, arch, "expert_count", 0);
	s.expert_ffn = key_number(kv, arch, "expert_feed_forward_length", s.ffn);
	s.kv_heads = key_number(kv, arch, "attention.head_count_kv", s.heads);
	s.head_dim = key_number(kv, arch, "attention.key_length", s.heads ? s.hidden / s.heads : 0);
	if (strcmp(arch, "qwen35") == 0 || strcmp(arch, "qwen35moe") == 0)
		put_delta_infos(&w, kv, arch, &s);
	else if (routed)
		routed_infos(&w, kv, arch);
	else if (run)
		put_infos(&w, json_object_get(all, "tensor_names"), &s);
	part = strcmp(arch, "falcon") == 0 ? "the key falcon.block_count is missing" /* its keys are cut in print */
	       : strcmp(arch, "gemma4") == 0
	               ? "the tensor token_embd.weight is missing" /* its lists are cut in print */
	       : !run ? refusal(arch)
	              : NULL;
	if (!run && !part)
		fail_msg("%s: no expectation is stated for %s", file, arch);
	uint8_t *p = gguf_writer_finish(&w, &n);
	check_said(file, p, n, NULL, 0, part, c);
	gguf_writer_free(&w);
	json_decref(all);
	free(p);
}

static void test_gguf_metadata(void **state)
{
	char path[1024];
	struct counts c = { 0 };

	if (!shared_path(path, "data/gguf-headers/index.json"))
		skip();
	json_t *index = json_load_file(path, 0, NULL);
	for (size_t i = 0; i < json_array_size(index); i++)
		check_header(json_string_value(json_object_get(json_array_get(index, i), "file")), &c);
	json_decref(index);
	printf("# the metadata of %u files open, of %u are refused\n", c.opened, c.refused);
	assert_true(c.opened >= 9 && c.opened + c.refused >= 36);
}

int published_gguf_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gguf_metadata),
	};

	return cmocka_run_group_tests_name("published_gguf_tests", tests, NULL, NULL);
}

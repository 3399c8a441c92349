/* tests/loaders/t_published.c - configurations and metadata of published models, and small models of many kinds: those
 * of a kind that runs open, with tensors made up to match in name and shape alone; of the others each is refused by the
 * sentence that is stated here for its kind. */
#include <inttypes.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/json_read.h"
#include "loaders/model_load.h"
#include "tests/support/shared.h"
#include "tests/loaders/st_writer.h"

static const char experts[] = "mixture of experts", latent[] = "latent attention",
		  delta[] = "recurrent state (gated delta", scan[] = "recurrent state (selective",
		  norms_behind[] = "norms behind attention", mean[] = "subtract the mean",
		  images[] = "a part for images", fused[] = "Q, K and V in one tensor", unknown[] = "expected llama, ";

/* What the sentence says of each model_type or general.architecture that does not run. */
static const struct {
	const char *type, *part;
} refused[] = {
	{ "minimax_m2", experts },
	{ "minimax_m3", experts },
	{ "qwen3_moe", experts },
	{ "mixtral", experts },
	{ "llama4", experts },
	{ "glm4_moe", experts },
	{ "granitemoe", experts },
	{ "phimoe", experts },
	{ "dbrx", experts },
	{ "mimo_v2_flash", experts },
	{ "step3p7", experts },
	{ "glm4moe", experts },
	{ "qwen3moe", experts },
	{ "gpt_oss", "mixture of experts and attention sinks" },
	{ "qwen3_5", delta },
	{ "qwen3_5_moe", delta },
	{ "qwen3_5_moe_text", delta },
	{ "qwen35", delta },
	{ "qwen35moe", delta },
	{ "kimi_k3", delta },
	{ "nemotron_h", scan },
	{ "jamba", scan },
	{ "deepseek_v2", latent },
	{ "deepseek_v3", latent },
	{ "deepseek_v32", latent },
	{ "deepseek_v4", latent },
	{ "deepseek_ref", latent },
	{ "kimi_k2", latent },
	{ "glm_moe_dsa", latent },
	{ "minicpm3", latent },
	{ "deepseek2", latent },
	{ "glm-dsa", latent },
	{ "gemma", "a scaled embedding" },
	{ "gemma2", norms_behind },
	{ "gemma3", norms_behind },
	{ "gemma3_text", norms_behind },
	{ "olmo3", norms_behind },
	{ "exaone4", norms_behind },
	{ "gemma4", "heads of several sizes" },
	{ "phi3", "longrope" },
	{ "phi3small", "longrope" },
	{ "chatglm", fused },
	{ "qwen", fused },
	{ "internlm2", fused },
	{ "baichuan", "ALiBi" },
	{ "exaone", "names of tensors" },
	{ "nemotron-nas", "layers of different sizes" },
	{ "mimo", "predict several tokens" },
	{ "ministral3", "scale of queries by position" },
	{ "cohere", mean },
	{ "command-r", mean },
	{ "falcon", mean },
	{ "stablelm", mean },
	{ "phi", mean },
	{ "gpt_neox", mean },
	{ "gptj", mean },
	{ "gpt_bigcode", mean },
	{ "bloom", mean },
	{ "codegen", mean },
	{ "mpt", mean },
	{ "opt", mean },
	{ "qwen2_vl", images },
	{ "qwen2_5_vl", images },
	{ "qwen3_vl", images },
	{ "qwen3_vl_moe", images },
	{ "qwen3vlmoe", images },
	{ "mllama", images },
	{ "llava", images },
	{ "phi3_v", images },
	{ "phi4mm", images },
	{ "molmo", images },
	{ "deepseek_vl_v2", images },
	{ "multi_modality", images },
	{ "kimi_k25", images },
	{ "lfm2_vl", images },
	{ "yuan", unknown },
	{ "minimind", unknown },
	{ "bert", "do not continue it" },
};

static const char *refusal(const char *type)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (strcmp(refused[i].type, type) == 0)
			return refused[i].part;
	return NULL;
}

static bool there(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	return v && !json_is_null(v);
}

static uint64_t number(json_t *o, const char *key, uint64_t otherwise)
{
	json_t *v = json_object_get(o, key);

	return json_is_number(v) ? (uint64_t)json_number_value(v) : otherwise;
}

/* The sizes that tensors follow from. */
struct sizes {
	uint64_t layers, hidden, ffn, vocab, heads, kv_heads, head_dim;
	bool tied, qkv_bias, o_bias, mlp_bias, qk_norm;
};

struct header {
	struct bytes b;
	uint64_t at;
};

static void text(struct bytes *b, const char *s) { bytes_put(b, s, strlen(s)); }

static void entry(struct header *h, const char *name, uint64_t rows, uint64_t cols)
{
	char line[400], shape[60];
	uint64_t end = h->at + 2 * (rows ? rows : 1) * cols;

	snprintf(shape, sizeof shape, rows ? "%" PRIu64 ",%" PRIu64 : "%.0" PRIu64 "%" PRIu64, rows, cols);
	snprintf(line, sizeof line,
	         "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%s],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
	         h->at ? "," : "{", name, shape, h->at, end);
	text(&h->b, line);
	h->at = end;
}

static void layer_entries(struct header *h, const struct sizes *s, uint64_t layer)
{
	uint64_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
	const struct {
		const char *name;
		uint64_t rows, cols;
		bool there;
	} list[] = {
		{ "input_layernorm.weight", 0, s->hidden, true },
		{ "self_attn.q_proj.weight", q, s->hidden, true },
		{ "self_attn.k_proj.weight", kv, s->hidden, true },
		{ "self_attn.v_proj.weight", kv, s->hidden, true },
		{ "self_attn.o_proj.weight", s->hidden, q, true },
		{ "post_attention_layernorm.weight", 0, s->hidden, true },
		{ "mlp.gate_proj.weight", s->ffn, s->hidden, true },
		{ "mlp.up_proj.weight", s->ffn, s->hidden, true },
		{ "mlp.down_proj.weight", s->hidden, s->ffn, true },
		{ "self_attn.q_proj.bias", 0, q, s->qkv_bias },
		{ "self_attn.k_proj.bias", 0, kv, s->qkv_bias },
		{ "self_attn.v_proj.bias", 0, kv, s->qkv_bias },
		{ "self_attn.o_proj.bias", 0, s->hidden, s->o_bias },
		{ "mlp.gate_proj.bias", 0, s->ffn, s->mlp_bias },
		{ "mlp.up_proj.bias", 0, s->ffn, s->mlp_bias },
		{ "mlp.down_proj.bias", 0, s->hidden, s->mlp_bias },
		{ "self_attn.q_norm.weight", 0, s->head_dim, s->qk_norm },
		{ "self_attn.k_norm.weight", 0, s->head_dim, s->qk_norm },
	};
	char name[100];

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		snprintf(name, sizeof name, "model.layers.%" PRIu64 ".%s", layer, list[i].name);
		if (list[i].there)
			entry(h, name, list[i].rows, list[i].cols);
	}
}

/* The header of a safetensors file of this configuration. */
static uint8_t *made_up(json_t *config, const char *type, size_t *n)
{
	uint64_t heads = number(config, "num_attention_heads", 1), hidden = number(config, "hidden_size", 1);
	bool bias = json_is_true(json_object_get(config, "attention_bias")), qwen2 = strcmp(type, "qwen2") == 0;
	struct sizes s = { number(config, "num_hidden_layers", 1),
		           hidden,
		           number(config, "intermediate_size", 1),
		           number(config, "vocab_size", 1),
		           heads,
		           number(config, "num_key_value_heads", heads),
		           number(config, "head_dim", hidden / heads),
		           json_is_true(json_object_get(config, "tie_word_embeddings")),
		           bias || qwen2,
		           bias,
		           json_is_true(json_object_get(config, "mlp_bias")),
		           strcmp(type, "qwen3") == 0 };
	struct header h = { 0 };

	entry(&h, "model.embed_tokens.weight", s.vocab, s.hidden);
	entry(&h, "model.norm.weight", 0, s.hidden);
	if (!s.tied)
		entry(&h, "lm_head.weight", s.vocab, s.hidden);
	for (uint64_t i = 0; i < s.layers; i++)
		layer_entries(&h, &s, i);
	text(&h.b, "}");
	uint8_t *file = st_from_text((const char *)h.b.p, h.b.n, 0, n);
	bytes_free(&h.b);
	return file;
}

/* What is expected of a configuration: NULL, or a part of the sentence that refuses it. */
static const char *expected(json_t *config, const char *type)
{
	static const char *const runs[] = { "llama", "mistral", "qwen2", "qwen3", "xverse" };
	const char *class = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
	bool run = false;

	if (!type)
		return "model_type is missing";
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
		run = run || strcmp(type, runs[i]) == 0;
	if (!run)
		return refusal(type);
	if (class && !strstr(class, "ForCausalLM"))
		return "is no model that continues a text";
	if (there(config, "quantization_config") || there(config, "quantization"))
		return "expected unquantised weights";
	if (json_is_false(json_object_get(config, "is_causal")))
		return "the field is_causal is false";
	if (there(config, "attention_chunk_size"))
		return "the field attention_chunk_size is";
	if (!there(config, "num_hidden_layers"))
		return "num_hidden_layers is missing";
	return NULL;
}

struct counts {
	unsigned opened, refused;
};

static void check(const char *name, const uint8_t *weights, size_t n, const char *config, size_t n_config,
                  const char *part, struct counts *c)
{
	struct error err = { 0 };
	struct model m;
	bool ok = model_open_memory(&m, weights, n, config, n_config, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err);

	if (ok != (part == NULL) || (part && !strstr(err.text, part)))
		fail_msg("%s: expected \"%s\", got \"%s\"", name, part ? part : "ok", ok ? "ok" : err.text);
	if (ok)
		model_close(&m);
	c->opened += ok;
	c->refused += !ok;
}

static void check_config(const char *file, struct counts *c)
{
	char path[1024], relative[600];
	size_t n, n_text;

	snprintf(relative, sizeof relative, "data/configs/%s", file);
	if (!shared_path(path, relative))
		fail_msg("%s is listed, but not there", file);
	char *bytes = (char *)file_bytes(path, &n_text);
	json_t *config = json_read(bytes, n_text, n_text, file, NULL); /* one of them says Infinity */
	const char *type = json_string_value(json_object_get(config, "model_type")), *part = expected(config, type);
	if (type && !part && refusal(type))
		fail_msg("%s: type %s runs and is refused", file, type);
	uint8_t *weights = made_up(config, type ? type : "", &n);
	check(file, weights, n, bytes, n_text, part, c);
	json_decref(config);
	free(weights);
	free(bytes);
}

static void test_configurations(void **state)
{
	char path[1024];
	struct counts c = { 0 };
	json_t *entry_of;
	size_t i;

	if (!shared_path(path, "data/configs/index.json"))
		skip();
	json_t *index = json_load_file(path, 0, NULL);
	json_array_foreach(index, i, entry_of)
	{
		const char *file = json_string_value(json_object_get(entry_of, "file")), *name = strrchr(file, '/') + 1;
		if (strcmp(name, "config.json") == 0 || there(entry_of, "model_type"))
			check_config(file, &c);
	}
	json_decref(index);
	printf("# %u configurations open, %u are refused\n", c.opened, c.refused);
	assert_true(c.opened >= 60 && c.refused >= 150);
}

/* ---- GGUF */

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

static uint64_t key_number(json_t *kv, const char *arch, const char *suffix, uint64_t otherwise)
{
	char key[100], out[64];

	snprintf(key, sizeof key, "%s.%s", arch, suffix);
	json_t *one = json_object_get(kv, key);
	return one ? strtoull(value_text(json_is_object(one) ? json_object_get(one, "value") : one, out), NULL, 10)
	           : otherwise;
}

/* A tensor of which only the description is there: the offset is that which it would have. */
static void describe(struct gguf_writer *w, const char *name, enum dtype type, uint64_t cols, uint64_t rows,
                     uint64_t *at)
{
	gguf_write_tensor(w, name, type, rows ? 2 : 1, (const uint64_t[]){ cols, rows }, NULL, 0);
	memcpy(w->info.p + w->info.n - sizeof *at, at, sizeof *at);
	*at += ((rows ? rows : 1) * cols * dtype_table[type].bytes + 31) / 32 * 32;
}

static void put_info(struct gguf_writer *w, const char *name, const struct sizes *s, uint64_t *at)
{
	uint64_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
	const struct {
		const char *part;
		uint64_t cols, rows;
	} list[] = {
		{ "attn_q.weight", s->hidden, q },
		{ "attn_k.weight", s->hidden, kv },
		{ "attn_v.weight", s->hidden, kv },
		{ "attn_output.weight", q, s->hidden },
		{ "ffn_gate.weight", s->hidden, s->ffn },
		{ "ffn_up.weight", s->hidden, s->ffn },
		{ "ffn_down.weight", s->ffn, s->hidden },
		{ "token_embd.weight", s->hidden, s->vocab },
		{ "output.weight", s->hidden, s->vocab },
		{ "attn_q_norm.weight", s->head_dim, 0 },
		{ "attn_k_norm.weight", s->head_dim, 0 },
		{ "attn_q.bias", q, 0 },
		{ "attn_k.bias", kv, 0 },
		{ "attn_v.bias", kv, 0 },
		{ "norm.weight", s->hidden, 0 },
	};

	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (strlen(name) >= strlen(list[i].part) &&
		    strcmp(name + strlen(name) - strlen(list[i].part), list[i].part) == 0) {
			describe(w, name, list[i].rows ? DTYPE_BF16 : DTYPE_F32, list[i].cols, list[i].rows, at);
			return;
		}
	describe(w, name, DTYPE_F32, 32, 0, at);
}

/* The tensors that a file names, or those of a qwen3 with its embedding tied. */
static void put_infos(struct gguf_writer *w, json_t *names, const struct sizes *s)
{
	static const char *const layer[] = { "attn_norm",   "attn_q",      "attn_k",      "attn_v",
		                             "attn_output", "attn_q_norm", "attn_k_norm", "ffn_norm",
		                             "ffn_gate",    "ffn_up",      "ffn_down" };
	uint64_t at = 0;
	char name[64];

	for (size_t i = 0; i < json_array_size(names); i++)
		put_info(w, json_string_value(json_array_get(names, i)), s, &at);
	if (names)
		return;
	put_info(w, "token_embd.weight", s, &at);
	put_info(w, "output_norm.weight", s, &at);
	for (uint64_t i = 0; i < s->layers; i++)
		for (size_t k = 0; k < sizeof layer / sizeof *layer; k++) {
			snprintf(name, sizeof name, "blk.%" PRIu64 ".%s.weight", i, layer[k]);
			put_info(w, name, s, &at);
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
	bool run = strcmp(arch, "llama") == 0 || strcmp(arch, "qwen2") == 0 || strcmp(arch, "qwen3") == 0;
	struct sizes s = { .layers = key_number(kv, arch, "block_count", 1),
		           .hidden = key_number(kv, arch, "embedding_length", 32),
		           .ffn = key_number(kv, arch, "feed_forward_length", 32),
		           .heads = key_number(kv, arch, "attention.head_count", 1),
		           .vocab = key_number(kv, arch, "vocab_size", 1000) };
	s.kv_heads = key_number(kv, arch, "attention.head_count_kv", s.heads);
	s.head_dim = key_number(kv, arch, "attention.key_length", s.heads ? s.hidden / s.heads : 0);
	if (run)
		put_infos(&w, json_object_get(all, "tensor_names"), &s);
	part = !run ? refusal(arch)
	       : key_number(kv, arch, "expert_count", 0)
	               ? "llama.expert_count is 8 (mixture of experts), which is not supported"
	               : NULL;
	if (!run && !part)
		fail_msg("%s: no expectation is stated for %s", file, arch);
	uint8_t *p = gguf_writer_finish(&w, &n);
	check(file, p, n, NULL, 0, part, c);
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
	assert_true(c.opened >= 5 && c.refused >= 30);
}

/* ---- small models of many kinds: what is said of the directory, and of a GGUF file in it. NULL: opens; GGUF "": there
 * is none */

static const struct {
	const char *folder, *hf, *gguf;
} small[] = {
	{ "llama-a", NULL, NULL },
	{ "llama-gqa4-bf16", NULL, "" },
	{ "llama-mha-f32", NULL, "" },
	{ "mistral-gqa4-f16", NULL, "" },
	{ "qwen3-gqa2-bf16", NULL, "" },
	{ "ernie45-a", NULL, NULL },
	{ "seedoss-a", NULL, NULL },
	{ "ministral3-a", images,
	  "key mistral3.attention.temperature_scale is 0.100000001 (queries scaled by position)" },
	{ "mistral4-a", images, latent },
	{ "mixtral-a", experts, "key llama.expert_count is 5 (mixture of experts), which is not supported" },
	{ "arcee-a", "without a gate", "without a gate" },
	{ "cohere2-a", mean, mean },
	{ "deepseekv2-a", latent, latent },
	{ "deepseekv3-a", latent, latent },
	{ "glm4moelite-a", latent, latent },
	{ "exaone4-a", norms_behind, norms_behind },
	{ "gemma2-a", norms_behind, norms_behind },
	{ "gemma3-a", norms_behind, norms_behind },
	{ "gemma4-e-a", "heads of several sizes", "heads of several sizes" },
	{ "glm4-a", norms_behind, norms_behind },
	{ "olmo2-a", norms_behind, norms_behind },
	{ "olmo3-a", norms_behind, norms_behind },
	{ "glm4moe-a", experts, experts },
	{ "granitemoe-a", experts, "" },
	{ "olmoe-a", experts, experts },
	{ "qwen2moe-a", experts, experts },
	{ "qwen3moe-a", experts, experts },
	{ "gptoss-a", "attention sinks", "attention sinks" },
	{ "granite-a", "scales of embedding", "" },
	{ "granitehybrid-a", scan, "" },
	{ "nemotronh-a", scan, scan },
	{ "hunyuan-a", "behind the rotation", "behind the rotation" },
	{ "lfm2-a", "short convolutions", "short convolutions" },
	{ "lfm2moe-a", "short convolutions", "short convolutions" },
	{ "phi3-a", "longrope", "longrope" },
	{ "qwen35-a", delta, delta },
	{ "qwen35moe-a", delta, delta },
	{ "qwen3next-a", delta, delta },
	{ "smollm3-a", "without a rotary embedding", "without a rotary embedding" },
};

static void check_path(const char *relative, const char *part)
{
	char path[1024];
	struct error err = { 0 };
	struct model m;

	if (!shared_path(path, relative))
		fail_msg("%s is not there", relative);
	bool ok = model_open(&m, path, MODEL_NO_TOKENIZER, &err);
	if (ok != (part == NULL) || (part && !strstr(err.text, part)))
		fail_msg("%s: expected \"%s\", got \"%s\"", path, part ? part : "ok", ok ? "ok" : err.text);
	if (ok)
		model_close(&m);
}

static void test_small_models(void **state)
{
	char path[1024];

	if (!shared_path(path, "golden/llama-a"))
		skip();
	for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
		snprintf(path, sizeof path, "golden/%s", small[i].folder);
		check_path(path, small[i].hf);
		snprintf(path, sizeof path, "golden/%s/model-bf16.gguf", small[i].folder);
		if (!small[i].gguf || *small[i].gguf)
			check_path(path, small[i].gguf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_configurations), cmocka_unit_test(test_gguf_metadata),
		                            cmocka_unit_test(test_small_models) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

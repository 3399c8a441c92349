/* tests/loaders/t_model_defaults.c - what config.json means where it leaves a field out, or gives it null, 0 or 1: row
 * by row of the table of architectures, as the transformers classes have it; and the same of GGUF keys, as llama.cpp
 * has them. No tensors are looked at. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <jansson.h>

#include "loaders/model/model_load.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/loaders/model_defaults.h"

/* What every configuration says here, and what some families need beside it. */
static const struct {
	const char *type, *fields;
} needed[] = {
	{ "", "\"num_hidden_layers\": 8, \"hidden_size\": 512, \"intermediate_size\": 96, \"vocab_size\": 320, "
	      "\"num_attention_heads\": 16" },
	{ "hunyuan_v1_dense", "\"head_dim\": 32" },
	{ "deepseek_v2", "\"num_experts_per_tok\": 6" },
	{ "lfm2_moe", "\"layer_types\": [\"conv\", \"conv\", \"full_attention\", \"conv\", \"conv\", \"conv\", "
	              "\"full_attention\", \"conv\"]" },
	{ "granitemoehybrid",
	  "\"mamba_n_heads\": 32, \"layer_types\": [\"mamba\", \"mamba\", \"mamba\", \"attention\", "
	  "\"mamba\", \"mamba\", \"mamba\", \"attention\"]" },
	{ "nemotron_h", "\"hybrid_override_pattern\": \"M*-EM*-E\"" },
};

struct read {
	struct model m;
	struct error err;
	bool ok;
	char *text;
};

static json_t *object(const char *fields)
{
	char text[2000];
	json_error_t at;

	snprintf(text, sizeof text, "{%s}", fields);
	json_t *o = json_loads(text, JSON_DECODE_ANY, &at);
	if (!o)
		fail_msg("%s: %s", text, at.text);
	return o;
}

/* fields of config.json, with commas between them; a name with - before it takes one away. */
static void read_config(struct read *r, const char *type, const char *fields)
{
	json_t *config = object(""), *own = object(fields), *v;
	const char *name;

	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
		json_t *o = object(needed[i].fields);
		if (!*needed[i].type || strcmp(needed[i].type, type) == 0)
			json_object_update(config, o);
		json_decref(o);
	}
	json_object_set_new(config, "model_type", json_string(type));
	json_object_foreach(own, name, v)
	{
		if (*name == '-')
			json_object_del(config, name + 1);
		else
			json_object_set(config, name, v);
	}
	*r = (struct read){ .text = json_dumps(config, JSON_COMPACT) };
	json_decref(config);
	json_decref(own);
	assert_true(model_begin(&r->m, MODEL_HEADER_ONLY, &r->err));
	file_memory(&r->m.file->config, r->text, strlen(r->text), "config.json");
	r->m.file->format = MODEL_HF;
	r->ok = model_read_config(&r->m, &r->err);
	assert_int_equal(r->ok, r->err.code == ERROR_NONE);
}

static void forget(struct read *r)
{
	model_close(&r->m);
	free(r->text);
}

static double scale_of(struct model_scale s) { return s.given ? (double)s.value : -1; }

struct number {
	const char *what;
	double value;
};

static bool pick(const struct number *list, size_t n, const char *what, double *out)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].what, what) == 0) {
			*out = list[i].value;
			return true;
		}
	return false;
}

static bool of_sizes(const struct model *m, const char *what, double *out)
{
	const struct model_spec *s = &m->spec;
	const struct model_needs *n = &m->file->needs;
	const struct number list[] = {
		{ "layers", s->layers },
		{ "hidden", s->hidden },
		{ "ffn", s->ffn },
		{ "heads", s->heads },
		{ "vocab", s->vocab },
		{ "kv_heads", s->kv_heads },
		{ "head_dim", s->head_dim },
		{ "context", s->context_train },
		{ "eps", (double)s->norm_eps },
		{ "tied", n->tied_by_config },
		{ "later", m->file->later_layers },
		{ "qkv_bias", n->group[GROUP_QKV_BIAS] == NEED_ALWAYS },
		{ "o_bias", n->group[GROUP_O_BIAS] == NEED_ALWAYS },
		{ "mlp_bias", n->group[GROUP_MLP_BIAS] == NEED_ALWAYS },
		{ "layer_input", s->layer_input },
		{ "alibi", s->alibi },
		{ "qk_norm", n->group[GROUP_QK_NORM] == NEED_ALWAYS },
		{ "row_norm", n->group[GROUP_QK_ROW_NORM] == NEED_ALWAYS },
		{ "head_bias", n->head_biased },
		{ "two_norms", m->file->two_norms != NULL },
		{ "lastdim", model_sizes_of(s, s->layers - 1).head_dim },
		{ "lastkv", model_sizes_of(s, s->layers - 1).kv_heads },
	};

	return pick(list, sizeof list / sizeof *list, what, out);
}

static bool of_positions(const struct model *m, const char *what, double *out)
{
	const struct model_spec *s = &m->spec;
	const struct number list[] = {
		{ "window", s->sliding_window },
		{ "theta", s->rope.theta },
		{ "window_theta", s->window_rope.theta },
		{ "rotating", s->rope.dims },
		{ "scaling", s->rope.scaling },
		{ "window_scaling", s->window_rope.scaling },
		{ "factor", s->rope.factor },
		{ "beta_fast", s->rope.beta_fast },
		{ "beta_slow", s->rope.beta_slow },
		{ "truncate", s->rope.yarn_truncate },
		{ "original", s->rope.original_context },
		{ "query_scale", s->query_scale },
		{ "attention_scale", scale_of(s->attention_scale) },
		{ "embed_scale", scale_of(s->embed_scale) },
		{ "residual_scale", scale_of(s->residual_scale) },
		{ "logit_scale", scale_of(s->logit_scale) },
		{ "score_cap", scale_of(s->score_cap) },
		{ "logit_cap", scale_of(s->logit_cap) },
		{ "router_scale", scale_of(s->router_scale) },
		{ "shared_scale", scale_of(s->shared_scale) },
	};

	return pick(list, sizeof list / sizeof *list, what, out);
}

static bool of_parts(const struct model *m, const char *what, double *out)
{
	const struct model_spec *s = &m->spec;
	const struct model_needs *n = &m->file->needs;
	const struct number list[] = {
		{ "experts", s->experts },
		{ "used", s->experts_used },
		{ "expert_ffn", s->expert_ffn },
		{ "shared_ffn", s->shared_ffn },
		{ "dense", s->dense_layers },
		{ "normed", s->router_normed },
		{ "near", (double)s->router_near },
		{ "scan_norm", s->scan_norm },
		{ "groups", s->expert_groups },
		{ "groups_used", s->expert_groups_used },
		{ "router_bias", n->group[GROUP_ROUTER_BIAS] == NEED_ALWAYS },
		{ "rank", s->latent.rank },
		{ "query_rank", s->latent.query_rank },
		{ "rest", s->latent.rest },
		{ "value", s->latent.value },
		{ "pairs", n->rope_pairs },
		{ "taps", s->recurrent.taps },
		{ "taps_bias", n->group[GROUP_TAPS_BIAS] == NEED_ALWAYS },
		{ "key_heads", s->recurrent.key_heads },
		{ "value_heads", s->recurrent.value_heads },
		{ "key_dim", s->recurrent.key_dim },
		{ "value_dim", s->recurrent.value_dim },
	};

	return pick(list, sizeof list / sizeof *list, what, out);
}

static double value_of(const struct model *m, const char *what)
{
	double value = NAN;

	if (!of_sizes(m, what, &value) && !of_positions(m, what, &value) && !of_parts(m, what, &value))
		fail_msg("no number is called %s", what);
	return value;
}

/* What a layer does, as a letter: w with a window, f without; m no attention. Upper case: it does not rotate. */
static void layers_of(const struct model_spec *s, char *out)
{
	for (uint32_t i = 0; i < s->layers; i++, out++) {
		bool window = s->sliding_window && (!s->layer_is_sliding || s->layer_is_sliding[i]);
		*out = model_layer_mixer(s, i) != MIXER_ATTENTION ? 'm' : window ? 'w' : 'f';
		if (*out != 'm' && s->layer_rotation && s->layer_rotation[i] == ROTATION_NONE)
			*out = (char)(*out - 'a' + 'A');
	}
	*out = 0;
}

/* One word of what is expected. */
static void check_word(const struct default_case *d, const struct model *m, const char *name, const char *expected)
{
	char layers[MODEL_MAX_LAYERS + 1];

	if (strcmp(name, "kinds") == 0 || strcmp(name, "routing") == 0) {
		layers_of(&m->spec, layers);
		for (uint32_t i = 0; *name == 'r' && i < m->spec.layers; i++)
			layers[i] = model_layer_routes(&m->spec, i) ? 'R' : '-';
		if (strcmp(layers, expected) != 0)
			fail_msg("%s, %s: layers are %s, expected %s", d->type, d->fields, layers, expected);
		return;
	}
	double value = value_of(m, name), number = atof(expected);
	if (fabs(value - number) > 1e-6 * fabs(number))
		fail_msg("%s, %s: %s is %.9g, expected %s", d->type, d->fields, name, value, expected);
}

static void test_cases(void **state)
{
	size_t n;
	const struct default_case *list = default_cases(&n);

	for (size_t i = 0; i < n; i++) {
		char name[40], expected[40];
		struct read r;
		int used;
		read_config(&r, list[i].type, list[i].fields);
		if (!r.ok)
			fail_msg("%s, %s: %s", list[i].type, list[i].fields, r.err.text);
		for (const char *p = list[i].means; sscanf(p, " %39[^=]=%39s%n", name, expected, &used) == 2; p += used)
			check_word(&list[i], &r.m, name, expected);
		forget(&r);
	}
}

static void test_refused_fields(void **state)
{
	static const struct {
		const char *type, *fields, *expected;
	} cases[] = {
		{ "laguna", "\"num_attention_heads_per_layer\": [8]",
		  "num_attention_heads_per_layer is an array of 1 elements, expected an array of 8" },
		{ "laguna", "\"num_attention_heads_per_layer\": 8",
		  "num_attention_heads_per_layer is an integer of 0" },
		{ "laguna", "\"num_attention_heads_per_layer\": [8, 8, 8, 8, 8, 8, 8, 0]",
		  "num_attention_heads_per_layer is an integer, expected a list of numbers of heads" },
		{ "laguna", "\"moe_router_logit_softcapping\": 30", "moe_router_logit_softcapping is 30" },
		{ "laguna", "\"moe_apply_router_weight_on_input\": true", "moe_apply_router_weight_on_input is true" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct read r;
		read_config(&r, cases[i].type, cases[i].fields);
		if (r.ok || !strstr(r.err.text, cases[i].expected))
			fail_msg("%s, %s: expected \"%s\", got \"%s\"", cases[i].type, cases[i].fields,
			         cases[i].expected, r.ok ? "ok" : r.err.text);
		forget(&r);
	}
}

/* ---- keys of GGUF files */

/* Words NAME=VALUE, each key's name behind the architecture's: a number with a point is F32, others are U32. */
static void write_keys(struct gguf_writer *w, const char *arch, const char *words)
{
	char name[60], value[40], key[120];
	int used;

	for (const char *p = words; sscanf(p, " %59[^=]=%39s%n", name, value, &used) == 2; p += used) {
		snprintf(key, sizeof key, "%s.%s", arch, name);
		if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
			gguf_write_bool(w, key, *value == 't');
		else if (strchr(value, '.'))
			gguf_write_f32(w, key, (float)atof(value));
		else
			gguf_write_u32(w, key, (uint32_t)atol(value));
	}
}

/* A file with keys and an embedding: what is missing of it is said when all keys have been read. */
static uint8_t *keys_file(const struct default_keys *d, size_t *n)
{
	struct gguf_writer w = { 0 };

	gguf_writer_start(&w, 3, 32);
	gguf_write_string(&w, "general.architecture", d->arch);
	if (!strstr(d->keys, "block_count="))
		write_keys(&w, d->arch, "block_count=8");
	write_keys(&w, d->arch,
	           strstr(d->keys, "head_count=") ? "embedding_length=512 context_length=64"
	                                          : "embedding_length=512 feed_forward_length=96 "
	                                            "attention.head_count=16 context_length=64");
	write_keys(&w, d->arch,
	           strstr("cohere2moe command-r bloom mpt", d->arch) ? "attention.layer_norm_epsilon=0.00001"
	                                                             : "attention.layer_norm_rms_epsilon=0.00001");
	write_keys(&w, d->arch, d->keys);
	gguf_write_tensor(&w, "token_embd.weight", DTYPE_F32, 2, (const uint64_t[]){ 512, 32 }, NULL, 512 * 32 * 4);
	uint8_t *file = gguf_writer_finish(&w, n);
	gguf_writer_free(&w);
	return file;
}

static void check_keys(const struct default_keys *d)
{
	char name[40], expected[40];
	struct error err = { 0 };
	struct model m;
	size_t n;
	int used;

	uint8_t *file = keys_file(d, &n);
	assert_true(model_begin(&m, MODEL_HEADER_ONLY, &err));
	m.file->format = MODEL_GGUF;
	m.file->part = calloc(1, sizeof *m.file->part);
	m.file->n_parts = 1;
	file_memory(&m.file->part[0].file, file, n, "keys.gguf");
	assert_true(model_parse_part(m.file, &m.file->part[0], &err));
	assert_false(model_finish(&m, &err));
	const char *part = d->sentence ? d->sentence : "tensor";
	if (!strstr(err.text, part))
		fail_msg("%s, %s: \"%s\", expected \"%s\"", d->arch, d->keys, err.text, part);
	const struct default_case c = { d->arch, d->keys, d->means };
	for (const char *p = d->means; p && sscanf(p, " %39[^=]=%39s%n", name, expected, &used) == 2; p += used)
		check_word(&c, &m, name, expected);
	model_close(&m);
	free(file);
}

static void test_keys(void **state)
{
	size_t n;
	const struct default_keys *list = default_keys(&n);

	for (size_t i = 0; i < n; i++)
		check_keys(&list[i]);
}

static void test_sentences(void **state)
{
	size_t n;
	const struct default_sentence *list = default_sentences(&n);

	for (size_t i = 0; i < n; i++) {
		const struct default_sentence *d = &list[i];
		struct read r;
		read_config(&r, d->type, d->fields);
		if (r.ok || !strstr(r.err.text, d->part))
			fail_msg("%s, %s: \"%s\", expected \"%s\"", d->type, d->fields, r.ok ? "ok" : r.err.text,
			         d->part);
		forget(&r);
	}
}

/* Every row that reads config.json and has a class stands in the lists. */
static void test_all_rows(void **state)
{
	size_t n_rows, n;
	const struct arch_row *row = arch_rows(&n_rows);
	const struct default_case *list = default_cases(&n);

	for (size_t i = 0; i < n_rows; i++) {
		bool found = row[i].lacks || !row[i].hf || strcmp(row[i].hf, "xverse") == 0 ||
		             strcmp(row[i].hf, "kimi_k2") == 0; /* which have none there */
		for (size_t k = 0; k < n && !found; k++)
			found = strcmp(list[k].type, row[i].hf) == 0;
		if (!found)
			fail_msg("nothing is expected of %s", row[i].hf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),     cmocka_unit_test(test_refused_fields), cmocka_unit_test(test_keys),
		cmocka_unit_test(test_sentences), cmocka_unit_test(test_all_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

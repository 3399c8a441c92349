/* tests/runtime/t_saved_anew.c - models as transformers 5 saves them again: what it says in other words, and tensors
 * that it cuts, joins or calls otherwise, give the logits of the files they were published in. What these words may not
 * say is refused. */
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
#include <jansson.h>

#include "include/jitrun.h"
#include "tests/support/shared.h"

static char dir[] = "/tmp/t_saved_anew-XXXXXX";

static char *in_dir(const char *name)
{
	static char path[96];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static float *logits_of(const char *path, size_t *n, jit_error *err)
{
	static const int32_t ids[] = { 5, 9, 11, 40, 7, 90, 17, 3, 60 };
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1), err);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 32), err) : NULL;
	jit_model_info info = JIT_MODEL_INFO();
	const float *logits = NULL;
	float *copy = NULL;

	if (s && jit_model_get_info(m, &info, err) == JIT_OK &&
	    jit_session_feed(s, ids, sizeof ids / sizeof *ids, err) == JIT_OK)
		logits = jit_session_logits(s, err);
	*n = (size_t)info.vocab;
	if (logits && (copy = malloc(*n * sizeof *copy)) != NULL)
		memcpy(copy, logits, *n * sizeof *copy);
	if (s)
		jit_session_close(s);
	if (m)
		jit_model_close(m);
	return copy;
}

/* ---- config.json in other words */

/* golden: its folder in the shared data, that of the first models where it names none. Returns out. */
static const char *file_of(char out[96], const char *golden, const char *name)
{
	snprintf(out, 96, "%s%s%s", strchr(golden, '/') ? "" : "golden/", golden, name);
	return out;
}

static json_t *read_config(const char *golden)
{
	char path[1024], relative[96];
	size_t n;

	file_of(relative, golden, "/config.json");
	if (!shared_path(path, relative))
		return NULL;
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	char *text = calloc(1, 1 << 16);
	assert_non_null(text);
	n = fread(text, 1, (1 << 16) - 1, f);
	fclose(f);
	for (char *hit; n && (hit = strstr(text, "Infinity")) != NULL;) /* which jansson does not read */
		memcpy(hit, "1e300   ", 8);
	json_t *c = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(c);
	return c;
}

static json_t *infinite_steps(void) { return json_pack("[f, {s:s}]", 0.0, "__float__", "Infinity"); }

static void rename_kinds(json_t *kinds)
{
	for (size_t i = 0; i < json_array_size(kinds); i++) {
		const char *kind = json_string_value(json_array_get(kinds, i));
		if (strcmp(kind, "mamba") == 0)
			json_array_set_new(kinds, i, json_string("linear_attention"));
		else if (strcmp(kind, "attention") == 0)
			json_array_set_new(kinds, i, json_string("full_attention"));
	}
}

static void scan_in_granite(json_t *c)
{
	rename_kinds(json_object_get(c, "layer_types"));
	json_object_set_new(c, "time_step_limit", infinite_steps());
}

/* The list of what layers are says how many there are, too. */
static void scan_in_nemotron(json_t *c)
{
	const char *letters = json_string_value(json_object_get(c, "hybrid_override_pattern"));
	json_t *kinds = json_array();

	for (; letters && *letters; letters++)
		json_array_append_new(kinds, json_string(*letters == 'M'   ? "linear_attention"
		                                         : *letters == '*' ? "full_attention"
		                                         : *letters == 'E' ? "moe"
		                                                           : "mlp"));
	json_object_set_new(c, "layers_block_type", kinds);
	json_object_del(c, "hybrid_override_pattern");
	json_object_del(c, "num_hidden_layers");
	json_object_set_new(c, "time_step_limit", infinite_steps());
}

/* What layers without a window have of their own is said of each. */
static void sizes_in_gemma(json_t *c)
{
	json_t *text = json_object_get(c, "text_config"), *dims = json_object_get(text, "global_head_dim"),
	       *heads = json_object_get(text, "num_global_key_value_heads"), *each = json_object(),
	       *types = json_object_get(text, "layer_types");
	const bool alone = json_is_true(json_object_get(text, "attention_k_eq_v"));

	for (size_t i = 0; i < json_array_size(types); i++) {
		char layer[24];
		if (strcmp(json_string_value(json_array_get(types, i)), "full_attention") != 0)
			continue;
		json_t *of_layer = json_object();
		json_object_set(of_layer, "head_dim", dims);
		if (alone && json_is_integer(heads))
			json_object_set(of_layer, "num_key_value_heads", heads);
		snprintf(layer, sizeof layer, "%zu", i);
		json_object_set_new(each, layer, of_layer);
	}
	json_object_set_new(text, "per_layer_config", each);
	json_object_del(text, "global_head_dim");
	json_object_del(text, "num_global_key_value_heads");
}

static void nothing(json_t *c) {}

/* ---- tensors of all experts, cut into one of each: the same bytes under other names */

static void put(json_t *header, const char *name, const json_t *like, json_t *shape, json_int_t begin, json_int_t end)
{
	json_object_set_new(header, name,
	                    json_pack("{s:O, s:o, s:[I, I]}", "dtype", json_object_get(like, "dtype"), "shape", shape,
	                              "data_offsets", begin, end));
}

static void cut(json_t *header, const char *name, const json_t *t)
{
	const json_t *shape = json_object_get(t, "shape"), *at = json_object_get(t, "data_offsets");
	const json_int_t experts = json_integer_value(json_array_get(shape, 0)),
			 rows = json_integer_value(json_array_get(shape, 1)),
			 columns = json_integer_value(json_array_get(shape, 2)),
			 begin = json_integer_value(json_array_get(at, 0)),
			 bytes = (json_integer_value(json_array_get(at, 1)) - begin) / experts;
	const bool both = strstr(name, "gate_up_proj") != NULL;
	const int stem = (int)(strrchr(name, '.') - name);
	char one[160];

	for (json_int_t e = 0; e < experts; e++)
		for (int half = 0; half <= both; half++) {
			const json_int_t part = bytes / (both ? 2 : 1), from = begin + e * bytes + half * part;
			snprintf(one, sizeof one, "%.*s.%d.%s.weight", stem, name, (int)e,
			         !both  ? "down_proj"
			         : half ? "up_proj"
			                : "gate_proj");
			put(header, one, t, json_pack("[I, I]", rows / (both ? 2 : 1), columns), from, from + part);
		}
}

static void write_cut(const char *from)
{
	uint64_t n = 0;
	FILE *in = fopen(from, "rb"), *out = fopen(in_dir("model.safetensors"), "wb");
	json_t *header = json_object(), *before, *t;
	const char *name;

	assert_true(in && out && fread(&n, sizeof n, 1, in) == 1 && n < 1 << 20);
	char *text = malloc(n), *all = NULL, block[4096];
	assert_true(text && fread(text, 1, n, in) == n);
	assert_non_null(before = json_loadb(text, n, 0, NULL));
	json_object_foreach(before, name, t)
	{
		if (strstr(name, "experts.gate_up_proj") || strstr(name, "experts.down_proj"))
			cut(header, name, t);
		else
			json_object_set(header, name, t);
	}
	assert_non_null(all = json_dumps(header, JSON_COMPACT));
	const uint64_t padded = (strlen(all) + 7) / 8 * 8;
	fwrite(&padded, sizeof padded, 1, out);
	fprintf(out, "%-*s", (int)padded, all);
	for (size_t got; (got = fread(block, 1, sizeof block, in)) > 0;)
		fwrite(block, 1, got, out);
	fclose(in);
	assert_int_equal(fclose(out), 0);
	json_decref(before);
	json_decref(header);
	free(all);
	free(text);
}

/* ---- the names and stacks that transformers 5 itself computes with, which it saves on request */

static const struct {
	const char *published, *own;
} names[] = { { "embed_out.", "lm_head." },
	      { ".block_sparse_moe.e_score", ".mlp.e_score" },
	      { ".block_sparse_moe.gate.", ".mlp.gate." },
	      { ".mlp.moe_statics.", ".mlp.gate.moe_statics." },
	      { ".mlp.e_score_correction_bias", ".mlp.gate.e_score_correction_bias" },
	      { ".mlp.router.gate.", ".mlp.gate." },
	      { ".mlp.expert_bias", ".mlp.e_score_correction_bias" },
	      { ".mlp.experts.e_score", ".mlp.gate.e_score" },
	      { ".mlp.shared_expert.", ".mlp.shared_experts." },
	      { ".mlp.shared_mlp.", ".mlp.shared_experts." } };

static void own_name(char out[160], const char *name)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *hit = strstr(name, names[i].published);
		if (hit) {
			snprintf(out, 160, "%.*s%s%s", (int)(hit - name), name, names[i].own,
			         hit + strlen(names[i].published));
			return;
		}
	}
	snprintf(out, 160, "%s", name);
}

/* What is written: the header so far, and the bytes behind it. */
struct written {
	json_t *header;
	uint8_t *bytes;
	size_t n;
};

static void append(struct written *w, const uint8_t *data, const json_t *t)
{
	const json_t *at = json_object_get(t, "data_offsets");
	const size_t begin = (size_t)json_integer_value(json_array_get(at, 0)),
		     n = (size_t)json_integer_value(json_array_get(at, 1)) - begin;

	memcpy(w->bytes + w->n, data + begin, n);
	w->n += n;
}

/* One kind of matrix of all experts, or two kinds together, one behind the other of each expert. How many experts. */
static json_int_t append_experts(struct written *w, const uint8_t *data, const json_t *before, const char *stem,
                                 const char *const kind[2])
{
	char one[200];

	for (json_int_t e = 0;; e++)
		for (int i = 0; i < 2 && kind[i]; i++) {
			snprintf(one, sizeof one, "%s.experts.%d.%s.weight", stem, (int)e, kind[i]);
			const json_t *t = json_object_get(before, one);
			if (!t)
				return e;
			append(w, data, t);
		}
}

/* Where the name is that of a gate or of a down matrix of expert 0: those of all experts in one tensor. */
static void stack(struct written *w, const uint8_t *data, const json_t *before, const char *name)
{
	static const char *const kinds[][2] = {
		{ "gate_proj", "up_proj" }, { "down_proj", NULL }, { "w1", "w3" }, { "w2", NULL }
	};
	const char *at = strstr(name, ".experts.0.");
	const json_t *like = json_object_get(before, name), *shape = json_object_get(like, "shape");
	char stem[96], joined[160];
	const size_t begin = w->n;

	for (size_t k = 0; at && k < sizeof kinds / sizeof *kinds; k++) {
		if (strncmp(at + 11, kinds[k][0], strlen(kinds[k][0])) != 0)
			continue;
		snprintf(stem, sizeof stem, "%.*s", (int)(at - name), name);
		const json_int_t experts = append_experts(w, data, before, stem, kinds[k]),
				 rows = json_integer_value(json_array_get(shape, 0));
		*strrchr(stem, '.') = 0;
		snprintf(joined, sizeof joined, "%s.mlp.experts.%s", stem, kinds[k][1] ? "gate_up_proj" : "down_proj");
		put(w->header, joined, like,
		    json_pack("[I, I, O]", experts, kinds[k][1] ? 2 * rows : rows, json_array_get(shape, 1)),
		    (json_int_t)begin, (json_int_t)w->n);
	}
}

static void write_own(const char *from)
{
	size_t n;
	uint8_t *file = file_bytes(from, &n);
	const uint64_t head = *(uint64_t *)file;
	struct written w = { .header = json_object(), .bytes = malloc(n) };
	json_t *before = json_loadb((char *)file + 8, head, 0, NULL), *t;
	const char *name;
	char own[160];

	assert_true(before && w.bytes);
	json_object_foreach(before, name, t)
	{
		const size_t begin = w.n;
		if (strstr(name, ".experts.") && !strstr(name, ".experts.e_score")) {
			stack(&w, file + 8 + head, before, name);
		} else if (json_object_get(t, "data_offsets")) {
			append(&w, file + 8 + head, t);
			own_name(own, name);
			put(w.header, own, t, json_incref(json_object_get(t, "shape")), (json_int_t)begin,
			    (json_int_t)w.n);
		}
	}
	char *text = json_dumps(w.header, JSON_COMPACT);
	const uint64_t padded = (strlen(text) + 7) / 8 * 8;
	FILE *out = fopen(in_dir("model.safetensors"), "wb");
	assert_non_null(out);
	fwrite(&padded, sizeof padded, 1, out);
	fprintf(out, "%-*s", (int)padded, text);
	fwrite(w.bytes, 1, w.n, out);
	assert_int_equal(fclose(out), 0);
	json_decref(before);
	json_decref(w.header);
	free(text);
	free(w.bytes);
	free(file);
}

/* ---- the tests */

static void link_to(const char *path)
{
	char *whole = realpath(path, NULL);

	assert_non_null(whole);
	assert_int_equal(symlink(whole, in_dir("model.safetensors")), 0);
	free(whole);
}

/* The golden model in the folder, with that change. False: it is not there. */
static bool write_model(const char *golden, void (*change)(json_t *config), void (*write)(const char *from))
{
	char path[1024], relative[96];
	json_t *c = read_config(golden);

	if (!c)
		return false;
	change(c);
	assert_int_equal(json_dump_file(c, in_dir("config.json"), 0), 0);
	json_decref(c);
	assert_true(shared_path(path, file_of(relative, golden, "/model.safetensors")));
	unlink(in_dir("model.safetensors"));
	write(path);
	return true;
}

static void test_the_same_logits(void **state)
{
	static const struct {
		const char *golden;
		void (*change)(json_t *config);
		void (*write)(const char *from);
	} each[] = {
		{ "nemotronh-a", scan_in_nemotron, link_to },      { "granitehybrid-a", scan_in_granite, link_to },
		{ "gemma4-e-a", sizes_in_gemma, link_to },         { "gemma4-k-a", sizes_in_gemma, link_to },
		{ "gemma4-moe-a", sizes_in_gemma, link_to },       { "qwen35moe-a", nothing, write_cut },
		{ "golden-next/gptneox-a", nothing, write_own },   { "golden-next/ernie45moe-a", nothing, write_own },
		{ "golden-next/exaonemoe-a", nothing, write_own }, { "golden-next/hyv3-a", nothing, write_own },
		{ "golden-next/minimaxm2-a", nothing, write_own }, { "golden-next/afmoe-a", nothing, write_own },
		{ "golden-next/laguna-a", nothing, write_own },    { "mixtral-a", nothing, write_own }
	};
	unsigned seen = 0;

	for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
		jit_error err = { 0 };
		char path[1024], relative[96];
		size_t n = 0, m = 0;
		if (!write_model(each[i].golden, each[i].change, each[i].write))
			continue;
		float *want = shared_path(path, file_of(relative, each[i].golden, ""))
		                      ? logits_of(path, &n, &err)
		                      : NULL,
		      *got = want ? logits_of(dir, &m, &err) : NULL;
		if (!got)
			fail_msg("%s: %s", each[i].golden, err.message);
		assert_int_equal(n, m);
		if (memcmp(want, got, n * sizeof *got) != 0)
			fail_msg("%s: other logits", each[i].golden);
		free(want);
		free(got);
		seen++;
	}
	if (!seen)
		skip();
}

static void limited(json_t *c) { json_object_set_new(c, "time_step_limit", json_pack("[f, s]", 0.0, "2")); }
static void windows_of_layers(json_t *c)
{
	sizes_in_gemma(c);
	json_object_set_new(json_object_get(c, "text_config"), "per_layer_config",
	                    json_pack("{s:{s:i}}", "2", "sliding_window", 4));
}
static void no_such_layer(json_t *c)
{
	sizes_in_gemma(c);
	json_object_set_new(json_object_get(c, "text_config"), "per_layer_config",
	                    json_pack("{s:{s:i}}", "99", "head_dim", 32));
}
static void no_layers(json_t *c)
{
	scan_in_nemotron(c);
	json_array_clear(json_object_get(c, "layers_block_type"));
}

static void heads_null(json_t *c) { json_object_set_new(c, "multi_query", json_null()); }
static void heads_false(json_t *c) { json_object_set_new(c, "multi_query", json_false()); }

/* as many heads of keys as queries: a size that these files' weights do not have */
#define HEADS_F "self_attention.query_key_value.weight has shape"
#define HEADS_G "attn.c_attn.weight has shape"

static void test_refused(void **state)
{
	static const struct {
		const char *golden, *says;
		void (*change)(json_t *config);
	} each[] = { { "granitehybrid-a", "time_step_limit is an array, expected a list of", limited },
		     { "gemma4-e-a", "a field of per_layer_config is \"sliding_window\"", windows_of_layers },
		     { "gemma4-e-a", "a layer of per_layer_config is \"99\"", no_such_layer },
		     { "nemotronh-a", "num_hidden_layers is missing", no_layers },
		     { "golden-next/falcon-a", HEADS_F, heads_null },
		     { "golden-next/gptbigcode-a", HEADS_G, heads_null },
		     { "golden-next/falcon-a", HEADS_F, heads_false } };

	for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
		jit_error err = { 0 };
		size_t n;
		if (!write_model(each[i].golden, each[i].change, link_to))
			skip();
		assert_null(logits_of(dir, &n, &err));
		if (!strstr(err.message, each[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.message, each[i].says);
	}
}

static int set_up(void **state) { return mkdtemp(dir) ? 0 : -1; }

static int tear_down(void **state)
{
	unlink(in_dir("config.json"));
	unlink(in_dir("model.safetensors"));
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_same_logits), cmocka_unit_test(test_refused) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

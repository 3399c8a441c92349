/* tests/fuzz/fuzz_json.c - arbitrary bytes as the JSON files that lie beside weights, and the two readers of JSON
 * against each other and against jansson. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_scan.h"
#include "loaders/model/model_load.h"
#include "loaders/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/runtime/tiny_model.h"

static void judge(bool ok, const struct error *err)
{
	if (ok == (err->text[0] != 0))
		abort();
}

/* Shards are named without a way out of the directory. */
void fuzz_index(const uint8_t *p, size_t n)
{
	struct model_paths paths = { .format = MODEL_HF, .dir = strdup("/nowhere/"), .sharded = true };
	struct error err = { 0 };
	struct file index;

	file_memory(&index, p, n, "index");
	judge(model_read_index(&paths, &index, &err), &err);
	for (uint32_t i = 0; i < paths.n_parts; i++)
		if (paths.part[i] && (strncmp(paths.part[i], "/nowhere/", 9) != 0 || strchr(paths.part[i] + 9, '/') ||
		                      strcmp(paths.part[i] + 9, "..") == 0))
			abort();
	model_paths_free(&paths);
}

/* The weights fit a config of each architecture; whether this is one of them is for the loader to say. */
void fuzz_config(const uint8_t *p, size_t n)
{
	static uint8_t *weights[2];
	static size_t bytes[2];
	struct tiny_model t = tiny_min;

	for (size_t i = 0; i < 2; i++) {
		struct error err = { 0 };
		struct model m;
		t.arch = i ? "qwen3" : "llama";
		if (!weights[i])
			weights[i] = tiny_safetensors(&t, &bytes[i]);
		bool ok = model_open_memory(&m, weights[i], bytes[i], p, n, 0, &err);
		judge(ok, &err);
		if (ok)
			model_close(&m);
	}
}

/* As modules.json, whose folders have no way out of the directory, and as config.json of a dense layer. */
static void fuzz_modules(const uint8_t *p, size_t n)
{
	struct module_list list;
	struct model_dense layer;
	struct error err = { 0 };
	struct file file;

	file_memory(&file, p, n, "modules.json");
	judge(model_read_modules(&file, &list, &err), &err);
	for (uint32_t i = 0; i < list.n_dense; i++)
		if (strchr(list.dense[i], '/') || strcmp(list.dense[i], "..") == 0 || !*list.dense[i])
			abort();
	err = (struct error){ 0 };
	if (model_read_dense_config(&file, &layer, &err) &&
	    (layer.in - 1 >= MODEL_MAX_WIDTH || layer.out - 1 >= MODEL_MAX_WIDTH || layer.act > HOST_SIGMOID))
		abort();
	judge(err.text[0] == 0, &err);
}

/* Both files that may name end tokens: these bytes, and an empty object. The first names samplers, too, and is listed;
 * it is read as what says how embeddings are pooled, too.
 */
void fuzz_generation(const uint8_t *p, size_t n)
{
	static const char text[] = "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2},\"merges\":[]}}";
	struct error err = { 0 };
	struct model_file f = { .format = MODEL_HF };
	struct model m = { .file = &f };

	if (n == 0 ||
	    !(m.tokenizer = tokenizer_from_json((struct tokenizer_text){ text, sizeof text - 1, "tokenizer.json" },
	                                        (struct tokenizer_text){ 0 }, 0, &err)))
		return;
	file_memory(&f.config, "{}", 2, "config.json");
	file_memory(&f.generation_config, p, n, "generation_config.json");
	file_memory(&f.pooling_config, p, n, "1_Pooling/config.json");
	judge(model_read_end_tokens(&m, &err), &err);
	err = (struct error){ 0 };
	judge(model_read_sampling(&m, &err), &err);
	err = (struct error){ 0 };
	judge(model_read_pooling(&m, &err), &err);
	err = (struct error){ 0 };
	fuzz_modules(p, n);
	free(m.sampling.samplers);
	err = (struct error){ 0 };
	judge(model_read_metadata(&m, &err), &err);
	model_free_metadata(&m);
	for (int32_t id = -1; id < 4; id++)
		tokenizer_is_eog(m.tokenizer, id);
	tokenizer_close(m.tokenizer);
}

void fuzz_generation_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static const char *const texts[] = {
		"{\"eos_token_id\": [0, 2], \"bos_token_id\": 1, \"temperature\": 0.6}",
		"{\"eos_token_id\": 2}",
		"[{\"type\":\"a.Pooling\"},{\"path\":\"2_Dense\",\"type\":\"a.Dense\"},{\"type\":\"Normalize\"}]",
		"{\"in_features\":7,\"out_features\":3,\"activation_function\":\"torch.nn.modules.linear.Identity\"}",
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		take(user, (const uint8_t *)texts[i], strlen(texts[i]));
}

/* Where jansson has limits of its own, which say nothing of the grammar: the sizes of numbers, and NUL in names. */
static bool beyond(const json_error_t *why)
{
	enum json_error_code code = json_error_code(why);

	return code == json_error_numeric_overflow || code == json_error_null_byte_in_key ||
	       code == json_error_stack_overflow || code == json_error_out_of_memory;
}

void fuzz_json(const uint8_t *p, size_t n)
{
	struct json_scan s = json_scan_of(p, n);
	bool strict = json_scan_skip(&s) && json_scan_finish(&s);
	struct error err = { 0 };
	json_error_t why;
	json_t *theirs =
		json_loadb((const char *)p, n, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &why);
	json_t *ours = json_read(p, n, 1 << 24, "fuzz", &err);

	if (s.at > n || strict != (s.problem == NULL))
		abort();
	judge(ours != NULL, &err);
	/* what is refused for its depth alone is not held against either */
	bool deep = !strict && s.problem && (strstr(s.problem, "deep") || strstr(s.problem, "nest"));
	if (strict && !theirs && !beyond(&why))
		abort();
	/* jansson takes a NUL behind a value for the end */
	if (!strict && theirs && !deep && !memchr(p, 0, n))
		abort();
	if (theirs && ours && json_typeof(theirs) != json_typeof(ours) &&
	    !(json_is_number(theirs) && json_is_number(ours)))
		abort();
	json_decref(theirs);
	json_decref(ours);
}

/* tests/mutate/mutate_json.c - directories of safetensors models: the header, the index of shards, config.json,
 * tokenizer.json and what lies beside it. */
#include "tests/mutate/json_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/tiny_model.h"

static const struct tiny_model models[] = {
	{ "llama", 1, 4, 6, 2, 1, 2, 24, DTYPE_F32, .tied = true },
	{ "llama", 2, 4, 6, 2, 2, 2, 24, DTYPE_BF16, .attention_bias = true, .mlp_bias = true,
	  .extra = ",\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
	           "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 64}" },
	{ "mistral", 1, 4, 6, 2, 1, 2, 24, DTYPE_F16,
	  .extra = ",\"sliding_window\": 3, \"rope_theta\": 1e6, \"bos_token_id\": 1, \"eos_token_id\": 2" },
	{ "qwen2", 1, 4, 6, 2, 1, 2, 24, DTYPE_F32, .tied = true,
	  .extra = ",\"use_sliding_window\": true, \"sliding_window\": 4, \"max_window_layers\": 0, \"eos_token_id\": "
	           "[1, 2]" },
	{ "qwen3", 1, 4, 6, 2, 1, 2, 24, DTYPE_BF16, .tied = true,
	  .extra = ",\"layer_types\": [\"full_attention\"], \"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": "
	           "4, \"rope_theta\": 1e6, \"mscale\": 1, \"mscale_all_dim\": 1}" },
};

#define SPLIT(expression) \
	"{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" expression "\"},\"behavior\":\"Isolated\",\"invert\":false}"
#define LETTERS \
	"\"a\":3,\"b\":4,\"c\":5,\"d\":6,\"e\":7,\"f\":8,\"\xc4\xa0\":9,\"\xc3\xa9\":10,\"1\":11,\"2\":12,\"ab\":13," \
	"\"\xc4\xa0" \
	"a\":14,\"abc\":15,\"<0x41>\":16,\"\xe2\x96\x81\":17"
#define ADDED \
	"\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true,\"single_word\":false,\"lstrip\":false," \
	"\"rstrip\":false,\"normalized\":false}," \
	"{\"id\":1,\"content\":\"<s>\",\"special\":true},{\"id\":2,\"content\":\"</" \
	"s>\",\"special\":true},{\"id\":18,\"content\":\"[X]\",\"special\":false,\"lstrip\":true}]"
#define BPE(options) \
	"\"model\":{\"type\":\"BPE\",\"dropout\":null," options "\"vocab\":{\"<unk>\":0,\"<s>\":1,\"</s>\":2," LETTERS \
	"},\"merges\":[\"a b\",\"\xc4\xa0 a\",[\"ab\",\"c\"]]}"

static const char *const tokenizers[] = {
	"{\"version\":\"1.0\",\"truncation\":null,\"padding\":null," ADDED
	",\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Sequence\","
	"\"pretokenizers\":[" SPLIT(
		"(?i:'s|'t)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| "
		"?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|"
		"\\\\s+") ",{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_"
			  "offsets\":true,\"use_regex\":false}]},\"post_processor\":{\"type\":"
			  "\"TemplateProcessing\",\"single\":"
			  "[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{"
			  "\"id\":\"A\",\"type_id\":0}}],\"pair\":[],\"special_tokens\":{\"<s>"
			  "\":{\"id\":\"<s>\",\"ids\":[1],\"tokens\":[\"<s>\"]}}},"
			  "\"decoder\":{\"type\":\"ByteLevel\"}," BPE("\"unk_token\":null,") "}",
	"{" ADDED ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":"
	"\"Prepend\",\"prepend\":\"\xe2\x96\x81\"},{\"type\":\"Replace\",\"pattern\":"
	"{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]},"
	"\"pre_tokenizer\":null,\"post_processor\":null,\"decoder\":{\"type\":\"Sequence\","
	"\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},"
	"\"content\":\" \"},"
	"{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" "
	"\",\"start\":1,\"stop\":0}]}," BPE("\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"fuse_unk\":true,") "}",
	"{" ADDED ",\"normalizer\":{\"type\":\"Lowercase\"},\"pre_tokenizer\":{\"type\":"
	"\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":"
	"true},{\"type\":\"Punctuation\",\"behavior\":\"Isolated\"},"
	"{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_scheme\":\"first\","
	"\"split\":true}]},\"post_processor\":null,\"decoder\":{\"type\":\"Metaspace\","
	"\"replacement\":\"\xe2\x96\x81\","
	"\"prepend_scheme\":\"first\"}," BPE("\"unk_token\":\"<unk>\",") "}",
};
static const char tokenizer_config[] =
	"{\"add_bos_token\":true,\"add_eos_token\":false,\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</"
	"s>\",\"lstrip\":false},"
	"\"added_tokens_decoder\":{\"18\":{\"content\":\"[X]\",\"special\":false}},\"clean_up_tokenization_spaces\":"
	"false,\"tokenizer_class\":\"LlamaTokenizer\"}";
static const char generation_config[] =
	"{\"bos_token_id\":1,\"eos_token_id\":[2,18],\"temperature\":0.6,"
	"\"do_sample\":true,\"top_k\":20,\"top_p\":0.95}";

static const struct tiny_model *choose(struct mutant *m)
{
	return &models[dice_below(&m->dice, sizeof models / sizeof *models)];
}

static void add_text(struct mutant *m, const char *name, const char *text)
{
	bytes_put(mutant_add_file(m, name), text, strlen(text));
}

static void add_config(struct mutant *m, const struct tiny_model *t)
{
	char *config = tiny_config(t);

	add_text(m, "config.json", config);
	free(config);
}

/* A tree changed some times, and at times its text too. */
static void add_changed(struct mutant *m, const char *name, struct json_node *root, unsigned changes)
{
	struct bytes *b = mutant_add_file(m, name);

	for (unsigned i = 0; i < changes; i++)
		json_mutate(m, root);
	json_tree_write(root, b);
	if (changes && dice_one_in(&m->dice, 12)) {
		mutant_say(m, "bytes of %s", name);
		mutate_bytes(&m->dice, b);
	}
}

static void add_changed_text(struct mutant *m, const char *name, const char *text, unsigned changes)
{
	struct json_node *root = json_tree(text);

	add_changed(m, name, root, changes);
	json_tree_free(root);
}

static void add_weights(struct mutant *m, const struct tiny_model *t)
{
	size_t n;
	uint8_t *p = tiny_safetensors(t, &n);

	bytes_put(mutant_add_file(m, "model.safetensors"), p, n);
	free(p);
}

void mutate_config(struct mutant *m)
{
	unsigned changes = mutant_changes(m);
	const struct tiny_model *t = choose(m);
	char *config = tiny_config(t);

	add_weights(m, t);
	add_changed_text(m, "config.json", config, changes);
	free(config);
}

/* --- expressions that take long, and trees that are deep */

static void set_expression(struct mutant *m, struct json_node *root)
{
	static const char *const bomb[] = {
		"\"(a+)+$\"",
		"\"(a|a)*b\"",
		"\"(?:(?:(?:a*)*)*)*c\"",
		"\"(a?){40}a{40}\"",
		"\"((((((((((a)))))))))){1000}\"",
		"\"\\\\p{L\"",
		"\"(\"",
		"\"[\"",
		"\"(?<!a+)b\"",
		"\"(?R)\"",
		"\"\\\\K\"",
		"\"(*NO_JIT)a\"",
		"\"(?C1)a\"",
		"\"a{65535}\"",
		"\"\"",
		"\"^\"",
		"\"(?=a)\"",
		"\".*\"",
		"\"\\\\X+\"",
		"\"(*UTF8)\\\\C\""
	};
	struct json_node *pre = json_member(root, "pre_tokenizer"),
			 *list = pre ? json_member(pre, "pretokenizers") : NULL;
	struct json_node *pattern = list && list->n ? json_member(list->child[0], "pattern") : NULL,
			 *expression = pattern ? json_member(pattern, "Regex") : NULL;
	size_t which = (size_t)dice_below(&m->dice, sizeof bomb / sizeof *bomb);

	if (!expression)
		return;
	json_set(expression, bomb[which]);
	mutant_say(m, "the expression %s", bomb[which]);
}

static void set_deep(struct mutant *m, struct json_node *root)
{
	bool normalizer = dice_one_in(&m->dice, 2);
	struct json_node *step = json_member(root, normalizer ? "normalizer" : "pre_tokenizer");
	size_t deep = 1 + (size_t)dice_below(&m->dice, 3000);
	struct bytes b = { 0 };

	if (!step)
		return;
	for (size_t i = 0; i < deep; i++)
		bytes_put(&b,
		          normalizer ? "{\"type\":\"Sequence\",\"normalizers\":["
		                     : "{\"type\":\"Sequence\",\"pretokenizers\":[",
		          normalizer ? 35 : 37);
	bytes_put(&b, normalizer ? "{\"type\":\"NFC\"}" : "{\"type\":\"Whitespace\"}", normalizer ? 14 : 21);
	for (size_t i = 0; i < deep; i++)
		bytes_put(&b, "]}", 2);
	bytes_put(&b, "", 1);
	json_set(step, (const char *)b.p);
	bytes_forget(&b);
	mutant_say(m, "%zu steps deep", deep);
}

/* Ids beyond, twice, with holes: the vocabulary's values are numbers of their own. */
static void set_id(struct mutant *m, struct json_node *root)
{
	struct json_node *model = json_member(root, "model"), *vocab = model ? json_member(model, "vocab") : NULL;
	char number[40];

	if (!vocab || !vocab->n)
		return;
	struct json_node *id = vocab->child[dice_below(&m->dice, vocab->n)];
	snprintf(number, sizeof number, "%" PRId64,
	         (int64_t)(dice_one_in(&m->dice, 2) ? dice_below(&m->dice, 30) : dice_odd(&m->dice, vocab->n)));
	json_set(id, number);
	mutant_say(m, "the id of %.20s is %s", id->key, number);
}

static void change_tokenizer(struct mutant *m, struct json_node *root)
{
	switch (dice_below(&m->dice, 6)) {
	case 0: set_expression(m, root); break;
	case 1: set_deep(m, root); break;
	case 2: set_id(m, root); break;
	default: json_mutate(m, root); break;
	}
}

void mutate_tokenizer(struct mutant *m)
{
	unsigned changes = mutant_changes(m);
	const struct tiny_model *t = choose(m);
	struct json_node *root = json_tree(tokenizers[dice_below(&m->dice, sizeof tokenizers / sizeof *tokenizers)]);
	bool beside = changes && dice_one_in(&m->dice, 4);

	add_config(m, t);
	add_weights(m, t);
	for (unsigned i = 0; i < changes && !beside; i++)
		change_tokenizer(m, root);
	add_changed(m, "tokenizer.json", root, 0);
	json_tree_free(root);
	add_changed_text(m, "tokenizer_config.json", tokenizer_config, beside ? changes : 0);
	add_changed_text(m, "generation_config.json", generation_config,
	                 beside && dice_one_in(&m->dice, 2) ? changes : 0);
}

/* --- the container */

/* The header's tree; data is what follows it. */
static struct json_node *take_apart(const uint8_t *p, size_t n, struct bytes *data)
{
	uint64_t header;

	memcpy(&header, p, 8);
	char *text = strndup((const char *)p + 8, header);
	if (!text)
		abort();
	struct json_node *root = json_tree(text);
	free(text);
	bytes_put(data, p + 8 + header, n - 8 - header);
	return root;
}

static void put_together(struct bytes *out, const struct json_node *root, const struct bytes *data)
{
	struct bytes header = { 0 };

	json_tree_write(root, &header);
	while ((8 + header.n) % 8)
		bytes_put(&header, " ", 1);
	uint64_t n = header.n;
	bytes_put(out, &n, 8);
	bytes_put(out, header.p, header.n);
	bytes_put(out, data->p, data->n);
	bytes_forget(&header);
}

/* Offsets that overlap, leave gaps, go backwards or end beyond the file; shapes that do not fit; other types. */
static void change_tensor(struct mutant *m, struct json_node *root)
{
	static const char *const types[] = { "\"F32\"",  "\"F16\"", "\"BF16\"",    "\"F64\"", "\"I8\"",  "\"U8\"",
		                             "\"BOOL\"", "\"I64\"", "\"F8_E4M3\"", "\"F4\"",  "\"f32\"", "\"Q8_0\"" };
	struct json_node *t = root->child[1 + dice_below(&m->dice, root->n - 1)], *list;
	const char *member = dice_one_in(&m->dice, 2) ? "data_offsets" : "shape";
	char number[40];

	mutant_say(m, "%.50s", t->key);
	if (dice_one_in(&m->dice, 5) && json_member(t, "dtype")) {
		json_set(json_member(t, "dtype"), types[dice_below(&m->dice, sizeof types / sizeof *types)]);
		return;
	}
	list = json_member(t, member);
	if (!list || !list->n)
		return;
	struct json_node *v = list->child[dice_below(&m->dice, list->n)];
	uint64_t old = v->text ? strtoull(v->text, NULL, 10) : 0;
	snprintf(number, sizeof number, "%" PRIu64, dice_odd(&m->dice, old));
	mutant_say(m, "%s %" PRIu64 " becomes %s", member, old, number);
	json_set(v, number);
}

static void change_container(struct mutant *m, struct json_node *root, struct bytes *data)
{
	switch (dice_below(&m->dice, 5)) {
	case 0:
	case 1: change_tensor(m, root); break;
	case 2:
		mutant_say(m, "%zu bytes of data become others", data->n);
		bytes_resize(data, dice_one_in(&m->dice, 2) ? (size_t)dice_below(&m->dice, data->n + 1)
		                                            : data->n + 1 + (size_t)dice_below(&m->dice, 64));
		break;
	default: json_mutate(m, root); break;
	}
}

static void change_length(struct mutant *m, struct bytes *b)
{
	uint64_t n;

	memcpy(&n, b->p, 8);
	n = dice_odd(&m->dice, n);
	memcpy(b->p, &n, 8);
	mutant_say(m, "the header's length is %" PRIu64, n);
}

static void change_weights(struct mutant *m, struct bytes *file, unsigned changes)
{
	struct bytes data = { 0 };
	struct json_node *root = take_apart(file->p, file->n, &data);

	for (unsigned i = 0; i < changes && root->n > 1; i++)
		change_container(m, root, &data);
	bytes_forget(file);
	put_together(file, root, &data);
	json_tree_free(root);
	bytes_forget(&data);
	if (changes && dice_one_in(&m->dice, 10))
		change_length(m, file);
	if (changes && dice_one_in(&m->dice, 10)) {
		mutant_say(m, "bytes");
		mutate_bytes(&m->dice, file);
	}
}

void mutate_safetensors(struct mutant *m)
{
	unsigned changes = mutant_changes(m);
	const struct tiny_model *t = choose(m);

	add_weights(m, t);
	change_weights(m, &m->file[0].b, changes);
	add_config(m, t);
}

/* --- shards */

static const char *const shard_name[] = { "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors" };

/* Distributes the tensors of a model to two files, alternately; their offsets begin anew in each. */
static void add_shards(struct mutant *m, const struct tiny_model *t, struct bytes *map)
{
	size_t n;
	uint8_t *p = tiny_safetensors(t, &n);
	struct bytes data = { 0 };
	struct json_node *root = take_apart(p, n, &data);

	for (size_t shard = 0; shard < 2; shard++) {
		struct bytes text = { 0 }, part = { 0 };
		bytes_put(&text, "{\"__metadata__\":{\"format\":\"pt\"}", 31);
		for (size_t i = 1; i < root->n; i++) {
			struct json_node *c = root->child[i], *at = json_member(c, "data_offsets"),
					 *shape = json_member(c, "shape");
			struct bytes dims = { 0 };
			char line[400];
			if (i % 2 != shard)
				continue;
			uint64_t begin = strtoull(at->child[0]->text, NULL, 10),
				 end = strtoull(at->child[1]->text, NULL, 10);
			json_tree_write(shape, &dims);
			bytes_put(&dims, "", 1);
			int length = snprintf(line, sizeof line, ",%s:{\"dtype\":%s,%s,\"data_offsets\":[%zu,%zu]}",
			                      c->key, json_member(c, "dtype")->text, (const char *)dims.p, part.n,
			                      part.n + (size_t)(end - begin));
			bytes_put(&text, line, (size_t)length);
			bytes_put(&part, data.p + begin, end - begin);
			length = snprintf(line, sizeof line, "%s%s:\"%s\"", map->n ? "," : "", c->key,
			                  shard_name[shard]);
			bytes_put(map, line, (size_t)length);
			bytes_forget(&dims);
		}
		bytes_put(&text, "}", 2);
		struct json_node *header = json_tree((const char *)text.p);
		put_together(mutant_add_file(m, shard_name[shard]), header, &part);
		json_tree_free(header);
		bytes_forget(&text);
		bytes_forget(&part);
	}
	json_tree_free(root);
	bytes_forget(&data);
	free(p);
}

static void point_elsewhere(struct mutant *m, struct json_node *root)
{
	static const char *const other[] = {
		"\"../model-00001-of-00002.safetensors\"",
		"\"/etc/passwd\"",
		"\"\"",
		"\".\"",
		"\"..\"",
		"\"config.json\"",
		"\"model-00003-of-00002.safetensors\"",
		"\"./model-00001-of-00002.safetensors\"",
		"\"model-00001-of-00002.safetensors\"",
		"\"model-00002-of-00002.safetensors\"",
		"\"model-00001-of-00002.safetensors\\u0000x\"",
		"\"a\\\\b\"",
		"3",
		"null"
	};
	struct json_node *map = json_member(root, "weight_map");

	if (!map || !map->n)
		return;
	struct json_node *entry = map->child[dice_below(&m->dice, map->n)];
	json_set(entry, other[dice_below(&m->dice, sizeof other / sizeof *other)]);
	mutant_say(m, "%.50s is in %.50s", entry->key, entry->text);
}

void mutate_index(struct mutant *m)
{
	unsigned changes = mutant_changes(m);
	const struct tiny_model *t = choose(m);
	struct bytes map = { 0 }, text = { 0 };

	add_shards(m, t, &map);
	add_config(m, t);
	bytes_put(&text, "{\"metadata\":{\"total_size\":1000},\"weight_map\":{", 46);
	bytes_put(&text, map.p, map.n);
	bytes_put(&text, "}}", 3);
	struct json_node *root = json_tree((const char *)text.p);
	bool shard = false;
	for (unsigned i = 0; i < changes; i++)
		switch (dice_below(&m->dice, 4)) {
		case 0: json_mutate(m, root); break;
		case 1:
			if (!shard) /* a second time it may be none any more */
				change_weights(m, &m->file[dice_below(&m->dice, 2)].b, 1);
			shard = true;
			break;
		default: point_elsewhere(m, root); break;
		}
	if (changes && dice_one_in(&m->dice, 8)) {
		mutant_say(m, "a shard under another name");
		snprintf(m->file[1].name, sizeof m->file[1].name, "other.safetensors");
	}
	add_changed(m, "model.safetensors.index.json", root, 0);
	json_tree_free(root);
	bytes_forget(&map);
	bytes_forget(&text);
}

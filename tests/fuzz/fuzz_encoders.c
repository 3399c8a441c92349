/* tests/fuzz/fuzz_encoders.c - what lies beside a model that encodes texts. The first byte says which of these the rest
 * is: m modules.json, d config.json of a dense layer, p 1_Pooling/config.json, c the model's own config.json. Anything
 * else is a tokenizer, as fuzz_tokenizer.c takes it.
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/model/model_load.h"
#include "tests/fuzz/fuzz.h"

static void check_reason(bool ok, const struct error *err)
{
	if (!ok && (!err->code || !err->text[0]))
		abort();
}

/* No folder leads out of the model's own. */
static void read_modules(const struct file *f)
{
	struct module_list *list = calloc(1, sizeof *list);
	struct error err = { 0 };

	if (!list)
		abort();
	const bool ok = model_read_modules(f, list, &err);
	check_reason(ok, &err);
	if (list->n_dense > MODEL_MAX_DENSE)
		abort();
	for (uint32_t i = 0; i < list->n_dense; i++)
		if (!list->dense[i][0] || !memchr(list->dense[i], 0, sizeof list->dense[i]) ||
		    strchr(list->dense[i], '/') || strcmp(list->dense[i], "..") == 0)
			abort();
	free(list);
}

static void read_dense(const struct file *f)
{
	struct model_dense d = { 0 };
	struct error err = { 0 };
	const bool ok = model_read_dense_config(f, &d, &err);

	check_reason(ok, &err);
	if (ok && (!d.in || !d.out || d.in > MODEL_MAX_WIDTH || d.out > MODEL_MAX_WIDTH))
		abort();
}

static void read_pooling(const struct file *f)
{
	struct model_file file = { .format = MODEL_HF, .pooling_config = *f };
	struct model m = { .file = &file };
	struct error err = { 0 };

	check_reason(model_read_pooling(&m, &err), &err);
}

/* Without a tensor, so that it never opens. */
static void read_config(const uint8_t *p, size_t n)
{
	static const uint8_t none[] = "\2\0\0\0\0\0\0\0{}";
	struct error err = { 0 };
	struct model m;

	if (model_open_memory(&m, none, sizeof none - 1, p, n, 0, &err))
		abort();
	check_reason(false, &err);
}

void fuzz_encoders(const uint8_t *p, size_t n)
{
	struct file f;

	file_memory(&f, n ? p + 1 : p, n ? n - 1 : 0, "fuzz");
	switch (n ? p[0] : 'm') {
	case 'm': read_modules(&f); break;
	case 'd': read_dense(&f); break;
	case 'p': read_pooling(&f); break;
	case 'c': read_config(p + 1, n - 1); break;
	default: fuzz_tokenizer(p, n);
	}
}

/* clang-format off */
#define SPECIAL(name, id) "\"" name "\":{\"id\":\"" name "\",\"ids\":[" id "],\"tokens\":[\"" name "\"]}"
#define SPECIAL_TOKEN(name, type) "{\"SpecialToken\":{\"id\":\"" name "\",\"type_id\":" type "}}"
#define TEXT(name, type) "{\"Sequence\":{\"id\":\"" name "\",\"type_id\":" type "}}"
#define ONE(begin, end) SPECIAL_TOKEN(begin, "0") "," TEXT("A", "0") "," SPECIAL_TOKEN(end, "0")
#define TEMPLATE(begin, end, ids) \
	"\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" ONE(begin, end) "],\"pair\":[" \
	ONE(begin, end) "," TEXT("B", "1") "," SPECIAL_TOKEN(end, "1") "],\"special_tokens\":{" ids "}}"
#define ADDED(name, id) \
	"{\"id\":" id ",\"content\":\"" name "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false," \
	"\"normalized\":false,\"special\":true}"

/* Two ids have no entry. */
static const char word_pieces[] =
	"{\"added_tokens\":[" ADDED("[PAD]", "0") "," ADDED("[UNK]", "1") "," ADDED("[CLS]", "2") ","
	ADDED("[SEP]", "3") "],\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
	"\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"
	"\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
	TEMPLATE("[CLS]", "[SEP]", SPECIAL("[CLS]", "2") "," SPECIAL("[SEP]", "3"))
	",\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},\"model\":{\"type\":\"WordPiece\","
	"\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,"
	"\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"the\":4,\"low\":5,\"##er\":6,\"a\":7,"
	"\"##b\":8,\"!\":9,\"1\":10,\"##2\":11,\"e\":14}}}";
static const char unigrams[] =
	"{\"added_tokens\":[" ADDED("<s>", "0") "," ADDED("<pad>", "1") "," ADDED("</s>", "2") ","
	ADDED("<unk>", "3") "],\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Replace\","
	"\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"}]},\"pre_tokenizer\":{\"type\":\"Metaspace\","
	"\"replacement\":\"\xe2\x96\x81\",\"add_prefix_space\":true},"
	TEMPLATE("<s>", "</s>", SPECIAL("<s>", "0") "," SPECIAL("</s>", "2"))
	",\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"add_prefix_space\":true},\"model\":"
	"{\"type\":\"Unigram\",\"unk_id\":3,\"vocab\":[[\"<s>\",0.0],[\"<pad>\",0.0],[\"</s>\",0.0],"
	"[\"<unk>\",0.0],[\"\xe2\x96\x81\",-2.5],[\"\xe2\x96\x81the\",-3.25],[\"l\",-4.0],[\"ow\",-5.5],"
	"[\"er\",-5.75],[\"a\",-4.5],[\"ab\",-6.0],[\"1\",-7.0]]}}";
/* clang-format on */

#define BERT \
	"\"model_type\":\"bert\",\"architectures\":[\"BertModel\"],\"hidden_size\":64,\"num_hidden_layers\":2," \
	"\"num_attention_heads\":4,\"intermediate_size\":128,\"hidden_act\":\"gelu\",\"layer_norm_eps\":1e-12," \
	"\"max_position_embeddings\":64,\"type_vocab_size\":2,\"vocab_size\":100,\"pad_token_id\":0"

void fuzz_encoders_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static const char *const seeds[] = {
		"m[{\"idx\":0,\"name\":\"0\",\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"},"
		"{\"idx\":1,\"name\":\"1\",\"path\":\"1_Pooling\",\"type\":\"sentence_transformers.models.Pooling\"},"
		"{\"idx\":2,\"name\":\"2\",\"path\":\"2_Dense\",\"type\":\"sentence_transformers.models.Dense\"},"
		"{\"idx\":3,\"name\":\"3\",\"path\":\"3_Normalize\",\"type\":\"sentence_transformers.models."
		"Normalize\"}]",
		"m[{\"type\":\"Pooling\"},{\"type\":\"Dense\",\"path\":\"..\"}]",
		"m[{\"type\":\"Pooling\"},{\"type\":\"Dense\",\"path\":\"a\\u0000b\"}]",
		"d{\"in_features\":64,\"out_features\":32,\"bias\":true,\"activation_function\":"
		"\"torch.nn.modules.activation.Tanh\",\"module_input_name\":\"sentence_embedding\"}",
		"p{\"word_embedding_dimension\":64,\"pooling_mode_cls_token\":false,\"pooling_mode_mean_tokens\":true,"
		"\"pooling_mode_max_tokens\":false,\"include_prompt\":true}",
		"p{\"embedding_dimension\":64,\"pooling_mode\":\"lasttoken\"}",
		"c{" BERT "}",
		"c{" BERT ",\"position_embedding_type\":null,\"id2label\":{\"0\":\"a\"}}",
		"c{\"model_type\":\"modernbert\",\"architectures\":[\"ModernBertModel\"],\"hidden_size\":64,"
		"\"num_hidden_layers\":4,\"num_attention_heads\":4,\"intermediate_size\":96,\"vocab_size\":100,"
		"\"global_attn_every_n_layers\":3,\"local_attention\":16,\"global_rope_theta\":160000.0,"
		"\"local_rope_theta\":10000.0,\"norm_eps\":1e-5,\"max_position_embeddings\":128}",
		word_pieces,
		unigrams
	};

	for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
		take(user, (const uint8_t *)seeds[i], strlen(seeds[i]));
}
